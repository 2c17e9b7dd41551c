"""What does reading a context cost a chat process, against a plain GET of the same bytes by the same client?"""

import statistics
import time
from collections.abc import Callable

import redis

from foreword.reader import TRUSTED, Reader


def ratios(client: "redis.Redis", project: str, repeat: int = 3000) -> dict[str, float]:
    """Median microseconds of a GET, of the reader's text, of text at another budget, of the whole bundle; and
    the ratio of the first two, paired.
    """
    reader = Reader(client, clock=lambda: 0.0)
    text = reader.project(project, actor=TRUSTED).text
    client.set("bench:text", text)

    def get() -> object:
        return client.get("bench:text")

    def read() -> object:
        return reader.project(project, actor=TRUSTED)

    gets, reads = [], []
    for _ in range(repeat):
        gets.append(_micros(get))
        reads.append(_micros(read))
    return {
        "get_us": statistics.median(gets),
        "text_us": statistics.median(reads),
        "ratio": statistics.median(r / g for r, g in zip(reads, gets, strict=True)),
        "budget_us": statistics.median(
            _micros(lambda: reader.project(project, actor=TRUSTED, budget=800)) for _ in range(repeat // 10)
        ),
        "bundle_us": statistics.median(
            _micros(lambda: reader.bundle(project, actor=TRUSTED)) for _ in range(repeat // 10)
        ),
    }


def _micros(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return (time.perf_counter() - begun) * 1e6

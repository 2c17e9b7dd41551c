"""How long does a full rebuild take, against the raw fetch of the same rows, and against the yardstick?

The base is the loader's own light statements, sent down one pipelined connection and fetched, nothing else.
Base and rebuild run alternately; the ratio is the median of paired ratios.
"""

import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import date
from gzip import decompress
from importlib.resources import files
from pathlib import Path
from typing import Any

from foreword import tokens
from loaders.connection import Connection
from loaders.project import Statements
from tasks.project import rebuild_project
from tasks.tools import Tools
from worker.settings import Settings
from worker.wiring import Services, tools

YARDSTICK = Path(__file__).parents[2] / "shared" / "data" / "yardstick" / "floor.py"
_RANKS = "fb374d419588a4632f3f557e76b4b70aebbca790"  # the name tiktoken looks for in TIKTOKEN_CACHE_DIR
AS_OF = date(2026, 11, 21)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Milliseconds: medians. ``ratio`` is the median of paired ratios of rebuild to base."""

    entities: int
    raw: float
    total: float
    ratio: float
    parts: dict[str, float]
    tokens: int
    peak_mib: float


def fetch_raw(connection: Connection, project: str, statements: Statements) -> int:
    """The base: every light row and edge of a project, fetched and dropped. Returns the number of rows."""
    with connection.pipeline():
        asked = {"project": project}
        cursors = [connection.execute(query, asked, prepare=True) for query in statements.light.values()]
        cursors.append(connection.execute(statements.edges, asked, prepare=True))
        return sum(len(cursor.fetchall()) for cursor in cursors)


def measure(opened: Tools, project: str, entities: int, repeat: int) -> Measured:
    """Base and rebuild alternately, after three rounds that warm connections and statements."""
    raws, totals, parts = [], [], []
    tokens_of = 0
    for round_ in range(repeat + 3):
        gc.collect()
        gc.disable()  # as the rebuild does
        begun = time.perf_counter()
        fetch_raw(opened.connection, project, opened.statements)
        between = time.perf_counter()
        gc.enable()
        gc.collect()
        started = time.perf_counter()
        built = rebuild_project(project, opened)
        ended = time.perf_counter()
        assert built is not None
        assert built.published
        if round_ >= 3:
            raws.append((between - begun) * 1000)
            totals.append((ended - started) * 1000)
            parts.append(built.milliseconds)
            tokens_of = built.stamp.tokens
    return Measured(
        entities=entities,
        raw=statistics.median(raws),
        total=statistics.median(totals),
        ratio=statistics.median(t / r for t, r in zip(totals, raws, strict=True)),
        parts={name: statistics.median(p[name] for p in parts) for name in parts[0]},
        tokens=tokens_of,
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def measure_apart(database_url: str, redis_url: str, project: str, entities: int, repeat: int) -> Measured:
    """``measure`` in a process of its own, so that its peak memory is its own."""
    asked = json.dumps([database_url, redis_url, project, entities, repeat])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.rebuild", asked], check=True, stdout=subprocess.PIPE, text=True
    )
    return Measured(**json.loads(done.stdout))


def yardstick(database_url: str, redis_url: str, project: str, repeat: int) -> dict[str, Any] | None:
    """The leanest rebuild known, in the same run; None where it is not at hand."""
    if not YARDSTICK.exists():
        return None
    with tempfile.TemporaryDirectory() as ranks:
        table = decompress(files("foreword").joinpath("data", "o200k_base.tiktoken.gz").read_bytes())
        Path(ranks, _RANKS).write_bytes(table)
        done = subprocess.run(
            [
                *(sys.executable, str(YARDSTICK), "--pg-uri", database_url, "--redis-url", redis_url),
                *(
                    "--project-id",
                    project,
                    "--mode",
                    "full",
                    "--repeat",
                    str(repeat),
                    "--today",
                    AS_OF.isoformat(),
                ),
            ],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "TIKTOKEN_CACHE_DIR": ranks},
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _main(asked: str) -> None:
    database_url, redis_url, project, entities, repeat = json.loads(asked)
    tokens.encoding()
    services = Services(database_url=database_url, redis_url=redis_url, broker_url=redis_url)
    gc.freeze()  # as a worker does after it has started
    with tools(Settings(as_of=AS_OF), services) as opened:
        found = measure(opened, project, entities, repeat)
    print(json.dumps({name: getattr(found, name) for name in Measured.__slots__}))


if __name__ == "__main__":
    _main(sys.argv[1])

"""What stands in Redis, by kind of key: how many keys, and the bytes that they take there.

A look goes over at most ``MOST`` keys of a database, a few hundred a round trip, so that nobody waits for it. SCAN
gives them in the order of their hashes: where there are more, those that were looked at stand for the others.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

import redis

from foreword import keys

MOST, AT_ONCE = 20_000, 250

BROKER, OTHER = "broker", "other"
"""Kinds: whatever is not ours is Celery's; what is ours and of no kind that we know."""

KINDS: Mapping[str, Sequence[str]] = {
    "bundles": [keys.project("*")],
    "differences": [keys.changes("*")],
    "focus bundles": [keys.focus("*", "*")],
    "briefs": [keys.brief("*", "*")],
    "overviews": [keys.projects_of("*")],
    "announcements": [keys.told("*"), keys.READY],
}
"""What is published, and patterns of its keys, in this layout. It may grow with what people do."""


def kind_of(key: str) -> str:
    """The kind of a key."""
    if not key.startswith("fw:"):
        return BROKER
    return next((kind for kind, like in KINDS.items() if any(fnmatchcase(key, one) for one in like)), OTHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """A look.

    Attributes:
        numbers, bytes: of keys, by kind.
        endless: keys that never expire.
        beside: bytes of the server that no key takes: connections, buffers, scripts. None where not every key was
            looked at.
    """

    numbers: Mapping[str, float]
    bytes: Mapping[str, float]
    endless: int
    beside: float | None


def look(clients: Sequence["redis.Redis"]) -> Stock:
    """Look at the databases of one server.

    Raises:
        redis.RedisError: it does not answer.
    """
    numbers: dict[str, float] = defaultdict(float)
    sizes: dict[str, float] = defaultdict(float)
    whole = True
    for client in clients:
        found = _sizes(client)
        there = client.dbsize()
        whole = whole and there <= MOST
        each = there / len(found) if there > MOST else 1.0
        for key, size in found.items():
            numbers[kind_of(key)] += each
            sizes[kind_of(key)] += each * size
    info: dict[str, Any] = clients[0].info()
    databases = [about for name, about in info.items() if name.startswith("db") and isinstance(about, dict)]
    return Stock(
        numbers=dict(numbers),
        bytes=dict(sizes),
        endless=sum(about["keys"] - about["expires"] for about in databases),
        beside=info["used_memory"] - sum(sizes.values()) if whole else None,
    )


def _sizes(client: "redis.Redis") -> dict[str, int]:
    """The first keys of a database, and the bytes of each."""
    sizes: dict[str, int] = {}
    scanned = client.scan_iter(count=AT_ONCE)
    while len(sizes) < MOST and (some := [*islice(scanned, AT_ONCE)]):
        with client.pipeline(transaction=False) as pipe:
            for key in some:
                pipe.memory_usage(key, samples=0)  # the whole of it
            found = pipe.execute()
        sizes |= {key.decode(errors="replace"): size for key, size in zip(some, found, strict=True) if size}
    return sizes

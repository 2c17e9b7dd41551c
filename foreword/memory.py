"""The cache in a dictionary: for tests of whoever uses Foreword, and for trying it without a server.

Keeps every promise of ``foreword.ports.Store`` within one process. Time to live is not kept: nothing here is
ever collected.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock

from foreword.keys import FENCE, META, TEXT, WANTED
from foreword.ports import NEWS_KEPT, WANTED_MOST, News, Raw


class MemoryStore:
    """``foreword.ports.Store`` in this process's memory."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._hashes: dict[str, tuple[tuple[int, int], dict[str, bytes]]] = {}
        self._sets: dict[str, set[str]] = {}
        self._lists: dict[str, list[bytes]] = {}
        self._told: dict[str, Mapping[str, str]] = {}

    def publish(
        self,
        key: str,
        fence: tuple[int, int],
        fields: Mapping[str, bytes],
        ttl: int,
        news: News | None = None,
    ) -> bool:
        """See ``Store.publish``."""
        del ttl
        with self._lock:
            before = self._hashes[key][0] if key in self._hashes else None
            if before is not None and before >= fence:
                return False
            self._hashes[key] = (fence, {**fields, FENCE: "{}:{}".format(*fence).encode()})
            if news is not None:
                follows = before is not None and news.since == "{}:{}".format(*before)
                listed = self._lists.get(news.key, []) if follows and news.entry else []
                self._lists[news.key] = [*listed, *([news.entry] if news.entry and follows else [])][-NEWS_KEPT:]
            return True

    def read(self, key: str, fields: Sequence[str]) -> list[Raw]:
        """See ``Store.read``."""
        with self._lock:
            stored = self._hashes.get(key, ((0, 0), {}))[1]
        return [stored.get(field) for field in fields]

    def read_many(self, wanted: Sequence[tuple[str, Sequence[str]]]) -> list[list[Raw]]:
        """See ``Store.read_many``."""
        return [self.read(key, fields) for key, fields in wanted]

    def read_with_list(self, key: str, fields: Sequence[str], news: str) -> tuple[list[Raw], list[Raw]]:
        """See ``Store.read_with_list``."""
        with self._lock:
            stored = self._hashes.get(key, ((0, 0), {}))[1]
            return [stored.get(field) for field in fields], [*self._lists.get(news, [])]

    def want(self, members: Sequence[str]) -> None:
        """See ``Store.want``."""
        with self._lock:
            wanted = self._sets.setdefault(WANTED, set())
            for member in members:
                if len(wanted) < WANTED_MOST:
                    wanted.add(member)

    def tell(self, name: str, event: Mapping[str, str], ttl: int) -> bool:
        """See ``Store.tell``."""
        del ttl
        with self._lock:
            new = name not in self._told
            self._told.setdefault(name, dict(event))
            return new

    def told(self, after: str, most: int) -> list[tuple[str, Mapping[str, str]]]:
        """See ``Store.told``."""
        with self._lock:
            numbered = [(f"{n}-0", event) for n, event in enumerate(self._told.values(), 1)]
        return numbered[int(after.partition("-")[0]) :][:most]

    def add_to_sets(self, keys: Iterable[str], member: str) -> None:
        """See ``Store.add_to_sets``."""
        with self._lock:
            for key in keys:
                self._sets.setdefault(key, set()).add(member)

    def set_members(self, *keys: str) -> set[str]:
        """See ``Store.set_members``."""
        with self._lock:
            return {member for key in keys for member in self._sets.get(key, ())}

    def outdate(self, key: str) -> None:
        """See ``Store.outdate``."""
        with self._lock:
            stored = self._hashes.get(key, ((0, 0), {}))[1]
            for field in {META, TEXT} & stored.keys():
                stored[field] = re.sub(rb"^(\d+ 0) [^ \n]+", rb"\1 0.0", stored[field], count=1)

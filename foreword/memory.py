"""The cache in a dictionary: for tests of whoever uses Foreword, and for trying it without a server.

Keeps every promise of ``foreword.ports.Store`` within one process. Time to live is not kept: nothing here is
ever collected.
"""

from collections.abc import Iterable, Mapping, Sequence
from threading import Lock

from foreword.ports import Raw


class MemoryStore:
    """``foreword.ports.Store`` in this process's memory."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._hashes: dict[str, tuple[tuple[int, int], dict[str, bytes]]] = {}
        self._sets: dict[str, set[str]] = {}

    def publish(self, key: str, fence: tuple[int, int], fields: Mapping[str, bytes], ttl: int) -> bool:
        """See ``Store.publish``."""
        del ttl
        with self._lock:
            if key in self._hashes and self._hashes[key][0] >= fence:
                return False
            self._hashes[key] = (fence, dict(fields))
            return True

    def read(self, key: str, fields: Sequence[str]) -> list[Raw]:
        """See ``Store.read``."""
        with self._lock:
            stored = self._hashes.get(key, ((0, 0), {}))[1]
        return [stored.get(field) for field in fields]

    def read_many(self, wanted: Sequence[tuple[str, Sequence[str]]]) -> list[list[Raw]]:
        """See ``Store.read_many``."""
        return [self.read(key, fields) for key, fields in wanted]

    def add_to_sets(self, keys: Iterable[str], member: str) -> None:
        """See ``Store.add_to_sets``."""
        with self._lock:
            for key in keys:
                self._sets.setdefault(key, set()).add(member)

    def set_members(self, key: str) -> set[str]:
        """See ``Store.set_members``."""
        with self._lock:
            return set(self._sets.get(key, ()))

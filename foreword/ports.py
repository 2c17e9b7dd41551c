"""What Foreword needs of a cache, by meaning. Redis provides it (``foreword.store``), memory does
(``foreword.memory``), and one conformance suite holds both to it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

Raw = bytes | str | None
"""A stored value: bytes, or str when the client decodes, or None when there is none."""


class Store(Protocol):
    """Published bundles, keyed by ``foreword.keys``."""

    def publish(self, key: str, fence: tuple[int, int], fields: Mapping[str, bytes], ttl: int) -> bool:
        """Replace all fields of ``key`` at once, unless something with an equal or higher fence is there.

        Returns whether it was stored. Readers see the old fields or the new, never a mixture. ``ttl`` seconds
        later the key may vanish: garbage collection, not correctness.
        """

    def read(self, key: str, fields: Sequence[str]) -> list[Raw]:
        """The values of some fields of one key, from one instant, in one round trip."""

    def read_many(self, wanted: Sequence[tuple[str, Sequence[str]]]) -> list[list[Raw]]:
        """Likewise of several keys, in one round trip, without promising one instant for all."""

    def add_to_sets(self, keys: Iterable[str], member: str) -> None:
        """Add ``member`` to the set under each of ``keys``."""

    def set_members(self, key: str) -> set[str]:
        """The set under ``key``; empty where there is none."""

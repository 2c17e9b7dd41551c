"""What Foreword needs of a cache, by meaning. Redis provides it (``foreword.store``), memory does
(``foreword.memory``), and one conformance suite holds both to it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Raw = bytes | str | None
"""A stored value: bytes, or str when the client decodes, or None when there is none."""


WANTED_MOST = 10_000
"""Wishes that wait at once; more are dropped, whoever wishes will wish again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """An entry for the list of differences that is kept beside a bundle.

    Attributes:
        key: of the list.
        since: the version from which the entry leads to the one published.
        entry: None where there is no such difference; then the list begins anew.
    """

    key: str
    since: str
    entry: bytes | None


NEWS_KEPT, NEWS_SECONDS = 200, 86_400
"""Differences kept a project, and for how long after the last: older is answered with "read the whole"."""


TOLD_KEPT = 1_000_000
"""Events of briefs that are ready, some 200 bytes each: a receiver may be away for a day."""


class Store(Protocol):
    """Published bundles, keyed by ``foreword.keys``."""

    def publish(
        self,
        key: str,
        fence: tuple[int, int],
        fields: Mapping[str, bytes],
        ttl: int,
        news: News | None = None,
    ) -> bool:
        """Replace all fields of ``key`` at once, unless something with an equal or higher fence is there.

        Returns whether it was stored. Readers see the old fields or the new, never a mixture. ``ttl`` seconds
        later the key may vanish: garbage collection, not correctness. In the same step ``news`` is added to its
        list; where what is replaced is not the version that it begins with, the list is emptied.
        """

    def read(self, key: str, fields: Sequence[str]) -> list[Raw]:
        """The values of some fields of one key, from one instant, in one round trip."""

    def read_many(self, wanted: Sequence[tuple[str, Sequence[str]]]) -> list[list[Raw]]:
        """Likewise of several keys, in one round trip, without promising one instant for all."""

    def read_with_list(self, key: str, fields: Sequence[str], news: str) -> tuple[list[Raw], list[Raw]]:
        """Some fields of one key, and the whole list under another, from one instant."""

    def want(self, members: Sequence[str]) -> None:
        """Ask for what is missing, as far as not very much is asked for already (``WANTED_MOST``)."""

    def tell(self, name: str, event: Mapping[str, str], ttl: int) -> bool:
        """Add an event to the stream of briefs that are ready, once: an event of the same ``name`` within ``ttl``
        seconds is not added again. Returns whether it was added. The newest TOLD_KEPT or more are kept.
        """

    def told(self, after: str, most: int) -> list[tuple[str, Mapping[str, str]]]:
        """At most ``most`` events of that stream after a place in it (``0-0`` is before the first), with their
        places.
        """

    def add_to_sets(self, keys: Iterable[str], member: str) -> None:
        """Add ``member`` to the set under each of ``keys``."""

    def set_members(self, *keys: str) -> set[str]:
        """What is in the sets under ``keys``, which share a cluster slot; empty where there is none."""

    def outdate(self, key: str) -> None:
        """Say of the bundle under ``key``, if there is one, that its dates are no longer true: a bundle of an
        earlier layout, that nobody builds any more.
        """

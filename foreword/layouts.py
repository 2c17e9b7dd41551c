"""Reading through a change of layout: what is not there in the current one is looked for in the one before.

A payload whose layout changes gets new keys (``foreword.keys``), which builders of the new version fill as a
trickle. Until a bundle is there a reader shows the earlier one. Once it is there, the earlier one is flagged as
stale for readers that know no other. Only what is missing costs a second round trip.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from foreword.keys import previous
from foreword.ports import Raw, Store

if TYPE_CHECKING:
    from foreword.store import AsyncRedisReads

Question = tuple[str, Sequence[str]]


class Layouts:
    """The reading half of a store, over the current layout and the one before."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.want = store.want
        self.told = store.told

    def read(self, key: str, fields: Sequence[str]) -> list[Raw]:
        """See ``Store.read``."""
        found = self._store.read(key, fields)
        return found if found[0] is not None else self._store.read(previous(key), fields)

    def read_many(self, wanted: Sequence[Question]) -> list[list[Raw]]:
        """See ``Store.read_many``."""
        found = self._store.read_many(wanted)
        lacking = _lacking(wanted, found)
        if lacking:
            _fill(found, lacking, self._store.read_many([_earlier(wanted[place]) for place in lacking]))
        return found

    def read_with_list(self, key: str, fields: Sequence[str], news: str) -> tuple[list[Raw], list[Raw]]:
        """See ``Store.read_with_list``."""
        found, listed = self._store.read_with_list(key, fields, news)
        if found[0] is not None:
            return found, listed
        return self._store.read_with_list(previous(key), fields, previous(news))

    def set_members(self, key: str) -> set[str]:
        """The members in either layout: see ``Store.set_members``."""
        return self._store.set_members(key, previous(key))


class AsyncLayouts:
    """``Layouts``, awaited."""

    def __init__(self, store: "AsyncRedisReads") -> None:
        self._store = store
        self.want = store.want
        self.told = store.told

    async def read(self, key: str, fields: Sequence[str]) -> list[Raw]:
        """See ``Layouts``."""
        found = await self._store.read(key, fields)
        return found if found[0] is not None else await self._store.read(previous(key), fields)

    async def read_many(self, wanted: Sequence[Question]) -> list[list[Raw]]:
        """See ``Layouts``."""
        found = await self._store.read_many(wanted)
        lacking = _lacking(wanted, found)
        if lacking:
            _fill(found, lacking, await self._store.read_many([_earlier(wanted[place]) for place in lacking]))
        return found

    async def read_with_list(self, key: str, fields: Sequence[str], news: str) -> tuple[list[Raw], list[Raw]]:
        """See ``Layouts``."""
        found, listed = await self._store.read_with_list(key, fields, news)
        if found[0] is not None:
            return found, listed
        return await self._store.read_with_list(previous(key), fields, previous(news))

    async def set_members(self, key: str) -> set[str]:
        """See ``Layouts``."""
        return await self._store.set_members(key, previous(key))


def _lacking(wanted: Sequence[Question], found: Sequence[Sequence[Raw]]) -> list[int]:
    """Places of what somebody owns and is not there: only such keys have a hash tag."""
    return [place for place, answer in enumerate(found) if answer[0] is None and "{" in wanted[place][0]]


def _earlier(question: Question) -> Question:
    key, fields = question
    return previous(key), fields


def _fill(found: list[list[Raw]], lacking: Sequence[int], earlier: Sequence[list[Raw]]) -> None:
    for place, answer in zip(lacking, earlier, strict=True):
        found[place] = answer

"""The shape of a section: as it may be (a part, with all its entries and what each costs), and as it is shown."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from prompts.commonmark import Line, Span, height, inline


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with what stands under it.

    Attributes:
        role: which section it is, for its looks.
        level: of the heading, from 2.
        intro: paragraphs before the list. ``outro``: those after it.
        lines: the list's lines. ``ordered``: whether they are numbered.
    """

    role: str
    level: int
    heading: Line
    intro: tuple[Line, ...] = ()
    lines: tuple[Line, ...] = ()
    ordered: bool = False
    outro: tuple[Line, ...] = ()


class Entry(NamedTuple):
    """A line that may be shown. The lower ``rank``, the sooner; ``entities``: ids of those that stand in it."""

    rank: float
    line: Line
    entities: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Part:
    """A section that is not yet fitted.

    Attributes:
        listed: the ids of the list that the heading counts. ``total``: of it, where it has a count.
        rank: of the heading; 0: it is always there.
        after: what stands after the list, given the ids that are shown anywhere and how many lines are here.
        reserve: characters for it, whatever is shown.
    """

    role: str
    level: int
    heading: Line
    total: int | None = None
    listed: tuple[str, ...] = ()
    intro: tuple[Line, ...] = ()
    entries: tuple[Entry, ...] = ()
    ordered: bool = False
    rank: float = 0
    after: Callable[[frozenset[str], int], tuple[Line, ...]] = field(default=lambda _ids, _lines: ())
    reserve: int = 0

    def cost(self) -> int:
        """Characters of all but the entries, at most; each block is parted from the next by two."""
        count = len(f" ({self.total:,} of {self.total:,})") if self.total is not None else 0
        return self.level + 3 + len(inline(self.heading)) + count + height(self.intro) + self.reserve + 4

    def section(self, shown: int, ids: frozenset[str]) -> Section:
        """With the first ``shown`` of its entries, where the lines of ``ids`` stand somewhere."""
        heading = self.heading
        if self.total:
            listed = sum(each in ids for each in self.listed) if self.listed else shown
            count = f"{self.total:,}" if listed == self.total else f"{listed:,} of {self.total:,}"
            heading = (*heading, Span(f" ({count})"))
        return Section(
            role=self.role,
            level=self.level,
            heading=heading,
            intro=self.intro,
            lines=tuple(entry.line for entry in self.entries[:shown]),
            ordered=self.ordered,
            outro=self.after(ids, shown),
        )


class Later(NamedTuple):
    """A part that may be left out, and is made when its turn comes: of hundreds of projects a dozen are shown."""

    rank: float
    make: Callable[[], Part]

"""What a page of a brief is: as much of its sections as fits, the most important first.

A brief's document (schema 1) becomes a ``Page``: sections of lines, each line a few spans of text. It is drawn in
``prompts.brief_markdown`` and ``prompts.brief_html``, so both say the same in the same order. Room is measured in
characters of Markdown.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from operator import itemgetter

from prompts.brief_items import Reading
from prompts.brief_parts import Later, Part, Section
from prompts.brief_phrases import (
    BY_MODEL,
    COUNTED_FIRST,
    LONGEST_SUMMARY,
    RETURN,
    Document,
    clock,
    one_line,
)
from prompts.brief_sections import Sections
from prompts.commonmark import Line, Span, bullet, height

LIMIT = 12_000
"""Characters of a brief's Markdown: about four minutes of reading, and what the longest chat messages carry."""

LEAST_LIMIT = 2_500
"""Characters for the title, every heading and every count of the fullest brief, without any line under them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A brief, laid out.

    Attributes:
        title: says whose it is, and the date written out.
        intro: paragraphs before the first heading.
        figures: the numbers to see at a glance, each with what it counts.
        foot: paragraphs after the last section.
    """

    title: Line
    intro: tuple[Line, ...]
    figures: tuple[tuple[int, str], ...]
    sections: tuple[Section, ...]
    foot: tuple[Line, ...]


def page(document: Document, limit: int = LIMIT) -> Page:
    """A brief laid out so that its Markdown has at most ``limit`` characters. A larger limit shows every line that
    a smaller one did.

    Raises:
        ValueError: ``limit`` is below ``LEAST_LIMIT``.
    """
    if limit < LEAST_LIMIT:
        raise ValueError(f"a brief does not fit in {limit} characters; give it at least {LEAST_LIMIT}")
    reading = Reading(document)
    frame = _frame(reading)
    summary = one_line((document.get("summary") or {}).get("text"), LONGEST_SUMMARY)
    parts = list(Sections(reading).parts())
    made = {at: part for at, part in enumerate(parts) if isinstance(part, Part)}
    later = {at: part for at, part in enumerate(parts) if isinstance(part, Later)}
    room = limit - _cost(frame) - sum(part.cost() for part in made.values())
    return _assembled(frame, made, _admitted(made, later, summary, room), summary)


# ---- what every brief has


def _frame(reading: Reading) -> Page:
    """The page without its summary and its sections."""
    return Page(
        title=_title(reading),
        intro=_greeting(reading),
        figures=_figures(reading),
        sections=(),
        foot=_foot(reading),
    )


def _title(reading: Reading) -> Line:
    name = one_line(reading.document.get("name"), 40)
    whose = f"{name}, your brief" if name else "Your brief"
    return (Span(f"{whose} for {reading.calendar.title()}"),)


def _greeting(reading: Reading) -> tuple[Line, ...]:
    return ((Span(RETURN),),) if reading.document.get("kind") == "return" else ()


def _figures(reading: Reading) -> tuple[tuple[int, str], ...]:
    """Where no template has put them into words."""
    totals, summary = reading.totals, reading.document.get("summary") or {}
    said = summary.get("text") and summary.get("words") != "model"
    if said or not totals.get("open"):
        return ()
    return tuple(
        (n, each.one if n == 1 else each.many) for each in COUNTED_FIRST if (n := totals.get(each.name) or 0)
    )


def _foot(reading: Reading) -> tuple[Line, ...]:
    made = clock(reading.document.get("generated_at"), reading.document.get("zone"))
    worded = [reading.document.get("summary") or {}, *((each.get("narrative") or {}) for each in reading.projects)]
    by_model = any(each.get("words") == "model" for each in worded)
    said = [f"As of {made}." if made else "", BY_MODEL if by_model else ""]
    return ((Span(" ".join(filter(None, said))),),) if any(said) else ()


# ---- fitting


def _cost(frame: Page) -> int:
    """Characters of what is always there but the sections."""
    figures = sum(len(f"{number:,} {label}") + 3 for number, label in frame.figures)
    return height((frame.title, *frame.intro, *frame.foot)) + figures + 4


def _admitted(made: dict[int, Part], later: Mapping[int, Later], summary: str, room: int) -> Counter[int]:
    """How many units of each part fit: they are admitted in the order of their rank, and the first that does not
    fit ends it, so that more room never shows less. The summary is part -1; the first unit of a part in ``later``
    is the part itself, which is made then.
    """
    units = [(0.0, -1, 0)] if summary else []
    units += [(each.rank, at, 0) for at, each in later.items()]
    units += [unit for at, part in made.items() for unit in _entries(at, part)]
    heapify(units)
    admitted = Counter[int]()
    while units:
        _, at, number = heappop(units)
        if at in later and not number:
            made[at] = later[at].make()
            for unit in _entries(at, made[at]):
                heappush(units, unit)
        room -= height(((Span(summary),),)) if at < 0 else _unit(made[at], number)
        if room < 0:
            break
        admitted[at] += 1
    return admitted


def _entries(at: int, part: Part) -> list[tuple[float, int, int]]:
    """(rank, number of the part, number of the entry): none ranks before its part."""
    return [(max(entry.rank, part.rank), at, number) for number, entry in enumerate(part.entries, 1)]


def _unit(part: Part, number: int) -> int:
    """Characters of an entry, by its number; of the part itself where that is 0."""
    return len(bullet(part.entries[number - 1].line, number * part.ordered)) + 1 if number else part.cost()


def _assembled(frame: Page, made: Mapping[int, Part], admitted: Counter[int], summary: str) -> Page:
    shown = {at: admitted[at] - bool(part.rank) for at, part in made.items()}
    there = [(at, part) for at, part in sorted(made.items(), key=itemgetter(0)) if shown[at] >= 0]
    ids = frozenset(
        entity for at, part in there for entry in part.entries[: shown[at]] for entity in entry.entities
    )
    projects = sum(bool(part.rank) for _, part in there)
    sections = tuple(part.section(projects if part.role == "projects" else shown[at], ids) for at, part in there)
    lead = ((Span(summary),),) if admitted[-1] else ()
    return replace(frame, intro=(*frame.intro, *lead), sections=sections)

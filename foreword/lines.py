"""The line grammar, and fitting lines into a token budget. The text of a bundle is lines and nothing else.

Grammar: a line is not empty, starts with neither white space nor ``/``, holds no line break and no control
character, is NFC, and ends in ``\\n``. Under it token counts add up exactly (``foreword.tokens``).

Fitting: every line has a place in the text (its section, its order there) and a rank (how early it is
admitted). Lines are admitted by rank until one does not fit; then admission stops. A larger budget
therefore always shows all that a smaller one showed. The price is at most one line's length of unused budget.
A line that comes later at the same place is the same line with more in it, and stands instead.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from foreword.errors import BadBudget
from foreword.text import ELLIPSIS, cut
from foreword.tokens import Counter

SMALLEST_BUDGET = 250
DEFAULT_BUDGET = 1500
LARGEST_BUDGET = 3000
"""Lines beyond this many tokens are not rendered: the whole form is behind the detail tools."""

LONGEST_LINE = 72
"""Tokens. Bounds what stopping at the first line that does not fit can leave unused: with its heading, less than a
twentieth of the default budget."""


class Line(NamedTuple):
    """One line of a text, counted.

    ``place`` orders the printed text; ``heading`` is the place of the section's heading that must be printed
    with it, or None; ``text`` ends in a newline; ``tokens`` is its exact count.
    """

    place: int
    heading: int | None
    tokens: int
    text: str


@dataclass(frozen=True, slots=True)
class Fitted:
    """A text that fits, and its exact count."""

    text: str
    tokens: int
    budget: int


def check_budget(budget: int) -> int:
    """``budget`` itself.

    Raises:
        BadBudget: below SMALLEST_BUDGET, the least that holds the header for any content.
    """
    if budget < SMALLEST_BUDGET:
        raise BadBudget(
            f"a budget of {budget} tokens cannot hold a project's header; ask for {SMALLEST_BUDGET} or more"
        )
    return budget


def is_line(text: str) -> bool:
    """Whether ``text`` is one line of the grammar, its newline included."""
    body = text[:-1]
    return (
        text.endswith("\n")
        and bool(body)
        and not body[0].isspace()
        and body[0] != "/"
        and not any(unicodedata.category(c) in {"Cc", "Zl", "Zp", "Cs"} for c in body)
        and unicodedata.is_normalized("NFC", body)
    )


def fit(lines: Sequence[Line], always: int, budget: int) -> Fitted:
    """The text of at most ``budget`` tokens that ``lines`` allow.

    ``lines`` are in order of rank; the first ``always`` of them are printed in any case and are known to fit
    SMALLEST_BUDGET. Headings are lines too: one is admitted, and paid for, with the first line that needs it,
    so ``lines`` holds each heading before the lines below it and never counts it twice.

    Raises:
        BadBudget: ``budget`` is below SMALLEST_BUDGET.
    """
    found = printed(lines, always, budget)
    return Fitted("".join(line.text for line in found), total(found), budget)


def printed(lines: Sequence[Line], always: int, budget: int) -> list[Line]:
    """The lines of ``fit``, as they stand in the text.

    Raises:
        BadBudget: ``budget`` is below SMALLEST_BUDGET.
    """
    chosen: dict[int, Line] = {}
    for line, _ in admitted(lines, always, check_budget(budget)):
        chosen[line.place] = line
    return [chosen[place] for place in sorted(chosen)]


def admitted(lines: Sequence[Line], always: int, budget: int) -> Iterator[tuple[Line, int]]:
    """The lines that ``fit`` prints, in order of rank, each with the total of the text that it ends."""
    headings = {line.place: line for line in lines if line.heading == line.place}
    tokens: dict[int, int] = {}
    total = 0
    for index, line in enumerate(lines):
        if line.heading == line.place:
            continue
        heading = headings.get(line.heading) if line.heading is not None else None
        new = heading is not None and heading.place not in tokens
        after = total + line.tokens - tokens.get(line.place, 0) + (heading.tokens if heading and new else 0)
        if after > budget and index >= always:
            return
        if heading is not None and new:
            tokens[heading.place] = heading.tokens
            yield heading, total + heading.tokens
        tokens[line.place] = line.tokens
        total = after
        yield line, total


def shorten(before: str, text: str, after: str, limit: int, count: Counter, end: str = "\n") -> tuple[str, int]:
    """``before + text + after + end``, ``text`` cut so that it counts at most ``limit`` tokens; the count.

    ``before`` and ``after`` alone must fit; ``text`` may vanish down to ``…``.
    """
    whole = f"{before}{text}{after}{end}"
    tokens = count(whole)
    while tokens > limit and text not in {"", ELLIPSIS}:
        text = cut(text, len(text) * 3 // 4)
        whole = f"{before}{text}{after}{end}"
        tokens = count(whole)
    return whole, tokens


def total(lines: Iterable[Line]) -> int:
    """The exact count of the lines printed together."""
    return sum(line.tokens for line in lines)

"""Making counted lines: cutting somebody's words to a number of tokens, and adding tokens up part by part."""

from collections.abc import Callable
from typing import NamedTuple

from foreword.light import WIDTHS, Part
from foreword.lines import LARGEST_BUDGET, LONGEST_LINE, Line, shorten
from foreword.questions import Key
from foreword.text import clean
from foreword.tokens import Counter

AFTER_TOKENS = 46
"""Of what follows a title in its line, so that LONGEST_LINE leaves some words to the title."""

ALWAYS, ANSWERS, VIEW = "always", "answers", "view"
"""Why a line is there: it is printed at any budget; it answers a question of the catalogue; it belongs to the
general view of the project."""


class Step(NamedTuple):
    """A line as it is admitted: why, whose, and the keys of facts (``foreword.questions``) that come with it."""

    line: Line
    rule: str
    keys: tuple[Key, ...] = ()
    entity: str | None = None


class Option(NamedTuple):
    """A line that may be admitted: with what is asked of it, whole, or first the one and then the other.

    ``view`` is what seeing it whole is worth to who asks what nobody listed.
    """

    name: str
    asked: Step | None
    whole: Step
    view: float = 0.0

    def admitted(self, *, whole: bool) -> Step:
        """The step that is meant: as asked, or whole, which is all there is where nothing is asked."""
        return self.whole if whole or self.asked is None else self.asked


class Writer:
    """Makes counted lines."""

    def __init__(self, count: Counter) -> None:
        self.count = count

    def named(self, place: int, before: str, name: str, after: str = "", limit: int = LONGEST_LINE) -> Line:
        """A line with somebody's words in it: quoted, and cut until the line counts ``limit`` tokens at most."""
        body = clean(name).replace('"', "'")
        written, tokens = shorten(f'{before}"', body, f'"{after}', limit, self.count)
        return Line(place, None, tokens, written)

    def titled(self, before: str, name: str, limit: int) -> tuple[str, int]:
        """The beginning of a line, in ``limit`` tokens at most, without the end of the line. ``name`` is clean."""
        return shorten(f'{before}"', name.replace('"', "'"), '"', limit, self.count, end="")

    def plain(self, place: int, text: str, limit: int = LARGEST_BUDGET) -> Line:
        """A line of our own words, cut to ``limit`` tokens."""
        written, tokens = shorten("", text, "", limit, self.count)
        return Line(place, None, tokens, written)

    def heading(self, place: int, text: str) -> Line:
        """The heading of the section that begins at ``place``."""
        written = f"## {text}\n"
        return Line(place, place, self.count(written), written)

    def widest(self, form: Callable[[tuple[int, int]], str], limit: int) -> str:
        """``form`` at the first of WIDTHS with which it counts ``limit`` tokens at most, or at the narrowest."""
        text = ""
        for width in WIDTHS:
            text = form(width)
            # No token is shorter than a byte: most texts need no counting.
            if len(text.encode()) <= limit or self.count(text) <= limit:
                break
        return text

    def parts(self, form: Callable[[tuple[int, int]], list[Part]]) -> list[tuple[Part, int]]:
        """``widest`` of a line's parts, each with its tokens. A part begins with a space, and no encoding joins
        across one, so that the tokens of a line are the sum of those of its parts.
        """
        found: list[tuple[Part, int]] = []
        for width in WIDTHS:
            found = [(part, self.count(part.text)) for part in form(width)]
            if sum([tokens for _, tokens in found]) <= AFTER_TOKENS:
                break
        return found

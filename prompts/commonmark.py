"""Lines of text as CommonMark: escaped, and as long as they are. Knows no brief.

A line is a few spans, each of one look. Whoever draws it otherwise (``prompts.brief_html``) reads the spans.
"""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple


class Span(NamedTuple):
    """Text of one look: plain, a title, or what somebody calls a thing that is mentioned."""

    text: str
    look: Literal["", "title", "name"] = ""


Line = tuple[Span, ...]


def bullet(line: Line, number: int) -> str:
    """An item of a list, which is numbered where the number is not 0."""
    return f"{number}. {paragraph(line)}" if number else f"- {paragraph(line)}"


def paragraph(line: Line) -> str:
    """A line that begins nothing but a paragraph."""
    return _LEADING.sub(r"\g<0>\\", inline(line))


def inline(line: Line) -> str:
    """A line after something else on the same line."""
    return "".join(_LOOKS[span.look].format(escaped(span.text)) for span in line)


_LOOKS = {"": "{}", "title": "**{}**", "name": "{}"}

_LEADING = re.compile(r"\A(?:\d+(?=[.)])|(?=[#>+=-]))")
"""Where a line would begin a list, a quotation or a heading: of this or, underlining it, of the line before."""


_SPECIAL = re.compile(
    r"""[\\`*_\[\]<|~$]       # emphasis, code, links and images, tags, tables, strike-through, formulas
    | \#(?=\#*\s*$)           # would close a heading
    | &(?=\#?\w+;)            # entities
    | @(?=\S)                 # addresses
    | :(?=//) | /(?=/)        # http://, and // alone
    | (?<=\S)\.(?=[^\W_])     # example.com
    | (?<=[wW]{3})\.          # www.
    """,
    re.VERBOSE,
)


def escaped(text: str) -> str:
    """``text`` for the inside of a line: shown as it is, whatever Markdown or a linkifier would make of it.

    GitHub alone links mail addresses (nothing else) even where they are escaped.
    """
    return _SPECIAL.sub(r"\\\g<0>", text)


def height(paragraphs: Iterable[Line]) -> int:
    """Characters of paragraphs, each with what parts it from the one before."""
    return sum(len(paragraph(line)) + 2 for line in paragraphs)

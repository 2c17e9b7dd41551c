"""A daily brief as Markdown: its page, drawn."""

from collections.abc import Iterator, Sequence

from prompts.brief_page import LIMIT, Page, page
from prompts.brief_parts import Section
from prompts.brief_phrases import Document
from prompts.commonmark import bullet, inline, paragraph


def markdown(document: Document, limit: int = LIMIT) -> str:
    """A brief as CommonMark, at most ``limit`` characters. A larger limit shows every line that a smaller one did.

    Raises:
        ValueError: ``limit`` is below ``LEAST_LIMIT``.
    """
    return _drawn(page(document, limit))


def _drawn(laid_out: Page) -> str:
    blocks = [f"# {inline(laid_out.title)}", *map(paragraph, laid_out.intro)]
    if laid_out.figures:
        blocks.append(_figures(laid_out.figures))
    blocks += [block for section in laid_out.sections for block in _blocks(section)]
    return "\n\n".join([*blocks, *map(paragraph, laid_out.foot)]) + "\n"


def _figures(figures: Sequence[tuple[int, str]]) -> str:
    return " · ".join(f"{number:,} {label}" for number, label in figures)


def _blocks(section: Section) -> Iterator[str]:
    yield f"{'#' * section.level} {inline(section.heading)}"
    yield from map(paragraph, section.intro)
    if section.lines:
        yield "\n".join(bullet(line, number * section.ordered) for number, line in enumerate(section.lines, 1))
    yield from map(paragraph, section.outro)

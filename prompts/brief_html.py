"""A daily brief as one HTML page, for mail and for a browser: what ``prompts.brief_page`` lays out, drawn.

The page loads nothing, runs nothing and links nowhere; its policy says so, too. Text reaches it as text only: the
template escapes every value, and attributes hold words of ours. Its style uses what mail programs know.
"""

from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template

from prompts.brief_page import page
from prompts.brief_phrases import Document

TEMPLATE = "brief.1.html"


def html(document: Document) -> str:
    """One self-contained page; the same document gives the same bytes. It holds the lines that the Markdown of
    the default length holds, so it is bounded likewise.
    """
    return _template().render(page=page(document))


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    source = files("prompts").joinpath(TEMPLATE).read_text(encoding="utf-8")
    return environment.from_string(source)

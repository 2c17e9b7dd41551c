"""Filling templates in. A template is a file ``<name>.<version>.md`` beside this module; what it is filled with
is data and can close neither its fence nor a line.
"""

from functools import cache
from importlib.resources import files
from string import Template

PROJECT_CONTEXT = "project_context.2"
"""The frame around a bundle's text in a chat's system prompt."""


def project_context(text: str) -> str:
    """A bundle's text in its frame, ready for a system prompt.

    ``text`` is lines of the bundle grammar; a line that begins with the frame's own closing tag cannot come
    from there, because every line begins with a word of ours.
    """
    return _template(PROJECT_CONTEXT).substitute(context=text)


@cache
def _template(name: str) -> Template:
    return Template(files("prompts").joinpath(f"{name}.md").read_text(encoding="utf-8"))

"""The inspector: what a chat reads of a project and why, as one HTML page that needs nothing but a browser.

The page holds the data of one inspection and computes the rest itself, so that a budget can be tried without
asking anyone. It opens from a file, loads nothing, and sends nothing: its content security policy allows its own
style and script, named by their hashes, and nothing else. Data reach the document as text only.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Template
from typing import Any

_INERT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
"""In JSON these stand in strings only, where an escape means the same: no title can end the script element."""


def inspector_page(inspection: Mapping[str, Any]) -> str:
    """One self-contained page; the same inspection gives the same bytes.

    ``inspection`` is JSON-ready: the steps in which lines are admitted, the questions with the text lengths that
    answer them, what was left out, coverage, the snapshot, and the differences to the bundle before.
    """
    style, script = _part("css"), _part("js")
    return Template(_part("html")).substitute(
        policy=_policy(style, script), style=style, script=script, data=_embedded(inspection)
    )


def _embedded(inspection: Mapping[str, Any]) -> str:
    # ASCII: line separators and lone surrogates are escaped with all else.
    written = json.dumps(dict(inspection), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return written.translate(_INERT)


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


@cache
def _part(suffix: str) -> str:
    return files("prompts").joinpath(f"inspector.{suffix}").read_text(encoding="utf-8")

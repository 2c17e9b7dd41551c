import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest

from prompts.inspector import inspector_page

HOSTILE = "</script><img src=x onerror=alert(1)><!--<script>\u2028\u2029\ud800&amp;]]> $data ${style}"


def inspection(words: str = "plain") -> dict[str, Any]:
    return {"project": {"id": "p", "handle": "PRJ1", "name": words}, words: [words], "steps": []}


class Elements(HTMLParser):
    """The elements of a page, each with its attributes and its own text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.comments: list[str] = []
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), []))
        self._inside = True

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 -- the signature is the parser's
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.found[-1][2].append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def texts(self, tag: str) -> list[str]:
        return ["".join(text) for name, _, text in self.found if name == tag]


@pytest.mark.promise("inspector.inert")
def test_hostile_words_change_nothing_but_the_data() -> None:
    plain, hostile = Elements(inspector_page(inspection())), Elements(inspector_page(inspection(HOSTILE)))

    assert [(tag, attributes) for tag, attributes, _ in hostile.found] == [
        (tag, attributes) for tag, attributes, _ in plain.found
    ]
    assert hostile.comments == []
    assert hostile.texts("script")[1] == plain.texts("script")[1]


def test_the_data_come_back_as_they_were() -> None:
    data = Elements(inspector_page(inspection(HOSTILE))).texts("script")[0]

    assert json.loads(data) == inspection(HOSTILE)
    assert re.search(r"[<>&]|[^\x20-\x7e]", data) is None


@pytest.mark.promise("inspector.offline")
def test_the_page_refers_to_nothing_outside() -> None:
    elements = Elements(inspector_page(inspection()))
    names = {name for _, attributes, _ in elements.found for name in attributes}

    assert names.isdisjoint({"src", "href", "srcset", "action", "formaction", "data", "poster", "style"})
    assert not any(name.startswith("on") for name in names)
    assert "url(" not in elements.texts("style")[0]
    assert "@import" not in elements.texts("style")[0]


@pytest.mark.promise("inspector.offline", "inspector.inert")
def test_the_policy_allows_its_own_style_and_script_and_nothing_else() -> None:
    elements = Elements(inspector_page(inspection()))
    policy = next(attributes["content"] for _, attributes, _ in elements.found if "http-equiv" in attributes)
    style, script = elements.texts("style")[0], elements.texts("script")[1]

    assert policy == (
        f"default-src 'none'; style-src '{hashed(style)}'; script-src '{hashed(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def hashed(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def test_the_script_writes_words_as_text_only() -> None:
    script = Elements(inspector_page(inspection())).texts("script")[1]

    for way in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(", "fetch("):
        assert way not in script


def test_the_same_inspection_gives_the_same_bytes() -> None:
    assert inspector_page(inspection(HOSTILE)) == inspector_page(inspection(HOSTILE))
    assert inspector_page(inspection(HOSTILE)).encode().decode() == inspector_page(inspection(HOSTILE))


def test_a_number_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        inspector_page({"budget": float("nan")})

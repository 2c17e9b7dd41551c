import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import texts

from foreword.text import clean, cut
from prompts.brief_html import html
from prompts.brief_page import page
from prompts.brief_phrases import LONGEST_TITLE

DATA = Path(__file__).parents[1] / "data" / "brief"

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</b></li></ul></section><h1>forged</h1>",
    '" onmouseover="alert(1)" x=\'',
    "--><!-- <style>*{display:none}</style>",
    "</style></title><script>alert(1)</script>",
    "{{ page }} {% raw %} ${x} {{ 7 * 7 }}",
    "&lt;b&gt; &#60;b&#62; &amp;amp;",
    "javascript:alert(1) http://evil.example",
)
titles = st.one_of(texts, st.sampled_from(HOSTILE))

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Elements(HTMLParser):
    """The elements of a page in order, each with its attributes and all text inside; nesting is checked."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.others: list[str] = []
        self._open: list[int] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), []))
        if tag not in VOID:
            self._open.append(len(self.found) - 1)

    def handle_endtag(self, tag: str) -> None:
        assert self.found[self._open.pop()][0] == tag

    def handle_data(self, data: str) -> None:
        for at in self._open:
            self.found[at][2].append(data)

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    def handle_pi(self, data: str) -> None:
        self.others.append(data)

    def texts(self, *tags: str) -> list[str]:
        return ["".join(text) for name, _, text in self.found if name in tags]

    def shape(self) -> list[tuple[str, dict[str, str | None]]]:
        return [(tag, attributes) for tag, attributes, _ in self.found]


def the(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return found


OURS = frozenset({"kind", "status", "became", "words", "state", "date", "since", "generated_at", "due", "was"})


def said_by_somebody(value: Any, words: str, key: str = "") -> Any:
    """A document with all that people write in it replaced; ids, dates and what is ours stay."""
    if isinstance(value, dict):
        return {name: said_by_somebody(each, words, name) for name, each in value.items()}
    if isinstance(value, list):
        return [said_by_somebody(each, words, key) for each in value]
    people = {
        "title",
        "name",
        "text",
        "reason",
        "next_step",
        "hints",
        "gone",
        "impact",
        "zone",
        "handle",
        "waits_for",
    }
    return words if isinstance(value, str) and key in people else value


@pytest.mark.parametrize("name", ["day", "empty"])
def test_a_brief_looks_as_it_did(name: str) -> None:
    assert html(the(name)) == (DATA / f"{name}.html").read_text(encoding="utf-8")


@pytest.mark.promise("brief.inert")
@given(words=titles)
def test_hostile_words_make_no_element_and_no_attribute(words: str) -> None:
    plain = Elements(html(said_by_somebody(the("day"), "plain")))
    hostile = Elements(html(said_by_somebody(the("day"), words if clean(words) else "plain")))

    assert hostile.shape() == plain.shape()
    assert hostile.others == []


@pytest.mark.promise("brief.inert")
@given(words=titles)
def test_a_title_is_shown_as_it_is(words: str) -> None:
    document = the("day")
    document["priorities"][0]["title"] = words

    first = Elements(html(document)).texts("ol")[0].strip()

    assert first.startswith(cut(clean(words), LONGEST_TITLE) or "(untitled)")


@pytest.mark.promise("brief.offline")
def test_the_page_refers_to_nothing_and_runs_nothing() -> None:
    elements = Elements(html(the("day")))
    tags = {tag for tag, _, _ in elements.found}
    names = {name for _, attributes, _ in elements.found for name in attributes}
    style = elements.texts("style")[0]

    assert tags.isdisjoint({"a", "script", "img", "link", "iframe", "object", "form", "base", "svg", "video"})
    assert names <= {"lang", "charset", "http-equiv", "content", "name", "class", "dir", "id", "aria-label"} | {
        "aria-labelledby"
    }
    assert "url(" not in style
    assert "@import" not in style


@pytest.mark.promise("brief.offline")
def test_the_policy_allows_its_own_style_and_nothing_else() -> None:
    head = Elements(html(the("day"))).found

    policy = next(attributes["content"] for _, attributes, _ in head if "http-equiv" in attributes)

    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


@pytest.mark.parametrize("words", ["template", "model"])
@pytest.mark.parametrize("name", ["day", "empty"])
def test_it_says_what_the_markdown_says_in_the_same_order(name: str, words: str) -> None:
    document = the(name)
    document["summary"]["words"] = words
    laid_out = page(document)
    lines = [laid_out.title, *laid_out.intro]
    for section in laid_out.sections:
        lines += [section.heading, *section.intro, *section.lines, *section.outro]
    said = ["".join(span.text for span in line) for line in (*lines, *laid_out.foot)]

    elements = Elements(html(document))

    figures = [f"{number:,} {label}" for number, label in laid_out.figures]
    drawn = elements.texts("h1", "h2", "h3", "p", "li")
    assert [each for each in drawn if each not in figures] == said
    assert [each for each in drawn if each in figures] == figures


def test_it_is_a_document_that_screen_readers_can_walk_through() -> None:
    elements = Elements(html(the("day")))
    levels = [int(tag[1]) for tag, _, _ in elements.found if re.fullmatch("h[1-6]", tag)]
    ids = [attributes["id"] for _, attributes, _ in elements.found if "id" in attributes]
    labels = [attributes["aria-labelledby"] for tag, attributes, _ in elements.found if tag == "section"]

    assert elements.found[0][:2] == ("html", {"lang": "en"})
    assert elements.texts("title") == ["Maren, your brief for Sunday 22 November 2026"]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below <= above + 1 for above, below in pairwise(levels))
    assert ids == labels
    assert len(set(ids)) == len(ids)
    assert "main" in {tag for tag, _, _ in elements.found}


def test_lists_hold_items_only() -> None:
    source = html(the("day"))

    for inside in re.findall(r"<([ou]l)[^>]*>(.*?)</\1>", source, re.DOTALL):
        assert re.fullmatch(r"\s*(<li>((?!<li>).)*</li>\s*)+", inside[1], re.DOTALL)


def test_it_follows_the_light_and_the_dark() -> None:
    source = html(the("day"))

    assert '<meta name="color-scheme" content="light dark">' in source
    assert "@media (prefers-color-scheme: dark)" in source


def test_titles_in_any_direction_stay_in_their_place() -> None:
    assert '<b dir="auto">فهرسة الكتب العربية المتبرع بها</b>' in html(the("day"))


def test_the_same_document_gives_the_same_bytes() -> None:
    assert html(the("day")) == html(the("day"))

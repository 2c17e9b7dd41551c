"""``explain`` and ``inspect`` on the sample, as an operator runs them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from acceptance.system import System
from browser import Browser
from processes import CHECKOUT

SAMPLE = CHECKOUT / "samples" / "harbour"
LIBRARY = "a8e1bf1f-2157-5c0b-a103-3b8fa71a9b3b"


@pytest.fixture(scope="module")
def sample(system: System) -> System:
    """The sample, imported and built without any worker."""
    for arguments in (["import", str(SAMPLE)], ["rebuild", "--all", "--inline"]):
        done = system.commands.run(*arguments)
        assert done.code == 0, done.err
    return system


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser.started() as started:
        yield started


def said(system: System, *arguments: str) -> str:
    done = system.commands.run(*arguments)
    assert done.code == 0, done.err
    return done.out


@pytest.mark.promise("explain.replay")
def test_the_lines_explained_are_those_that_a_chat_reads(sample: System) -> None:
    explained = json.loads(said(sample, "explain", LIBRARY, "--json"))
    lines: dict[int, str] = {}
    for step in explained["steps"]:
        if step["total"] <= explained["budget"]:
            lines[step["place"]] = step["text"]
    text = "".join(f"{lines[place]}\n" for place in sorted(lines))
    assert text == said(sample, "show", LIBRARY)


@pytest.mark.promise("explain.replay")
def test_one_entity_is_explained_alone(sample: System) -> None:
    steps = json.loads(said(sample, "explain", LIBRARY, "--json"))["steps"]
    first = next(step for step in steps if step["entity"] is not None)
    told = said(sample, "explain", LIBRARY, first["handle"])
    assert told.splitlines()[0] == first["text"]
    assert "rule answers" in told
    assert f"score {first['score']}: " in told
    found = json.loads(said(sample, "explain", LIBRARY, first["entity"], "--json"))
    assert found["steps"][0] == first
    assert found["left_out"] is None


@pytest.mark.promise("explain.left_out")
def test_the_table_says_what_is_left_out_and_why(sample: System) -> None:
    told = said(sample, "explain", LIBRARY, "--budget", "400")
    assert "left out:" in told
    assert "this one has 400" in told
    assert "and" in sample.commands.run("explain", LIBRARY, "--budget", "400").err


@pytest.mark.parametrize(
    ("arguments", "word", "code"),
    [
        (("explain", LIBRARY, "--budget", "249"), "250 or more", 2),
        (("explain", LIBRARY, "--budget", "3001"), "3000", 2),
        (("explain", LIBRARY, "T4711"), "T4711", 2),
        (("explain", "PRJ99"), "PRJ99", 2),
        (("inspect", LIBRARY, "--output", "/nowhere/page.html"), "--output", 1),
    ],
)
def test_what_cannot_be_explained_says_so(
    sample: System, arguments: tuple[str, ...], word: str, code: int
) -> None:
    done = sample.commands.run(*arguments)
    assert done.code == code, done.err
    assert word in done.err
    assert "Traceback" not in done.err


@pytest.mark.promise("inspector.fit")
def test_the_page_shows_the_text_that_a_chat_reads(sample: System, browser: Browser, tmp_path: Path) -> None:
    written = tmp_path / "page.html"
    said(sample, "inspect", LIBRARY, "--output", str(written))
    text = said(sample, "show", LIBRARY)
    with browser.page(written) as page:
        shown = page.run("document.body.innerText")
        assert page.errors == []
        assert page.requests == []
    assert all(line in " ".join(shown.split()) for line in text.splitlines()[:20])
    assert "unchanged" in shown.lower()

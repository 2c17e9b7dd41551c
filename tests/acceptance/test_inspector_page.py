"""The inspector page as someone sees it who opens the file, in a real browser without a network."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, Page

from prompts.inspector import inspector_page

HOSTILE = "</script><img src=x onerror='window.broken = 1'><!-- \u2028 <b>bold</b> ${1} &lt;"
BUDGETS = (250, 251, 299, 340, 400, 555, 700, 850, 1000)
SMALLEST, LARGEST, ALWAYS = 250, 1000, 4

TASKS, RISKS = 1000, 2000
"""Places of headings; the one of the tasks is always printed."""

KINDS = {"tasks": ("task", "T"), "risks": ("risk", "R")}

PRINTED = "[...document.querySelectorAll('.line:not(.ghost) .words')].map(line => line.textContent)"
WAITING = "[...document.querySelectorAll('.line.ghost .words')].map(line => line.textContent)"


def step(place: int, text: str, tokens: int, section: str, **more: Any) -> dict[str, Any]:
    return {
        "place": place,
        "heading": None,
        "is_heading": False,
        "text": text,
        "tokens": tokens,
        "cost": tokens,
        "section": section,
        "entity": None,
        "handle": None,
        "rule": "always",
        "facts": {},
        "score": None,
        "terms": {},
    } | more


def entity(section: str, number: int, tokens: int, title: str = "", **more: Any) -> dict[str, Any]:
    kind, letter = KINDS[section]
    place, heading = (TASKS, None) if section == "tasks" else (RISKS, RISKS)
    return step(
        place + number,
        f'{letter}{number} "{title or f"Some {kind} number {number}"}" todo',
        tokens,
        section,
        entity=f"{kind}-{number}",
        handle=f"{letter}{number}",
        heading=heading,
        **{"rule": "general", "score": 100 - number, "terms": {"state todo": 60, "due": 40 - number}} | more,
    )


def steps() -> list[dict[str, Any]]:
    """Some that are always printed, a heading that comes with its first line, and one line that grows twice."""
    index = {"rule": "question", "facts": {"Q2": 1}}
    return [
        step(0, '# project "Harbour"', 60, "project", facts={"Q1": 1}),
        step(TASKS, "## tasks: 30 total", 70, "tasks"),
        step(9000, "as of 2026-11-21", 40, "project"),
        step(1, f'about "{HOSTILE}"', 50, "project"),
        entity("tasks", 7, 30, rule="question", facts={"Q1": 1, "Q2": 2}),
        step(TASKS + 900, "also T11 T12", 20, "tasks", **index),
        step(RISKS, "## risks: 9 total", 25, "risks", is_heading=True, rule="counts"),
        entity("risks", 2, 35, title=HOSTILE, rule="question", facts={"Q3": 1}),
        *(entity("tasks", number, 20 + number) for number in (3, 5, 9)),
        step(TASKS + 900, "also T11 T12 T13 T14", 33, "tasks", **index),
        *(entity("risks", number, 31) for number in (1, 4, 3)),
        *(entity("tasks", number, 47) for number in (1, 2, 4, 6, 8)),
        step(TASKS + 900, "also T11 T12 T13 T14 T15 T16", 41, "tasks", **index),
        *(entity("risks", number, 59) for number in (5, 6, 7)),
    ]


def fitted(walked: list[dict[str, Any]], budget: int) -> tuple[list[str], int, list[str]]:
    """The lines of the text, its tokens, and the lines not admitted in their order: the rule, said once more."""
    headings = {each["place"]: each for each in walked if each["is_heading"]}
    printed: dict[int, dict[str, Any]] = {}
    left = budget
    stopped = len(walked)
    for index, each in enumerate(walked):
        if each["is_heading"]:
            continue
        added = [each]
        if each["heading"] is not None and each["heading"] not in printed:
            added.append(headings[each["heading"]])
        replaced = printed[each["place"]]["tokens"] if each["place"] in printed else 0
        cost = sum(one["tokens"] for one in added) - replaced
        if cost > left and index >= ALWAYS:
            stopped = index
            break
        left -= cost
        printed.update({one["place"]: one for one in added})
    waiting = [each["text"] for each in walked[stopped:] if not each["is_heading"]]
    return [printed[place]["text"] for place in sorted(printed)], budget - left, waiting


def thresholds(walked: list[dict[str, Any]], question: str) -> list[int]:
    """For each fact of a question the tokens of the first text that holds it."""
    found: list[int] = []
    for budget in range(SMALLEST, LARGEST + 1):
        text, tokens, _ = fitted(walked, budget)
        facts = sum(each["facts"].get(question, 0) for each in walked if each["text"] in text)
        found += [tokens] * (facts - len(found))
    return found


def inspection() -> dict[str, Any]:
    walked = steps()
    nodes = [each for each in walked if each["entity"]]
    asks = {"Q1": "What is next?", "Q2": "What is overdue?", "Q3": HOSTILE}
    return {
        "project": {"id": "project", "handle": "PRJ1", "name": f"Harbour {HOSTILE}"},
        "as_of": "2026-11-21",
        "zone": "UTC",
        "generation": 3,
        "budget": 400,
        "smallest": SMALLEST,
        "largest": LARGEST,
        "always": ALWAYS,
        "steps": walked,
        "questions": [
            {"id": name, "asks": asked, "facts": 4, "at": thresholds(walked, name)} for name, asked in asks.items()
        ],
        "left_out": [
            {
                "entity": f"left-{number}",
                "handle": f"T{number}" if number % 2 else None,
                "kind": "task",
                "title": HOSTILE if number == 50 else f"Left out {number}",
                "reason": "cap" if number % 3 else "finished",
                "detail": "ten tasks come before it",
                "score": number,
            }
            for number in range(50, 62)
        ],
        "left_out_total": 20,
        "coverage": {
            "tasks": {"total": 30, "direct": 9, "unlinked": 21, "reachable": 20, "orphan": 3},
            "risks": {"total": 9, "direct": 0, "unlinked": 9, "reachable": 7, "orphan": 2},
        },
        "graph": {
            "root_id": "project",
            "nodes": [{"id": "project", "kind": "project", "name": "Harbour", "state_key": "active"}]
            + [
                {
                    "id": each["entity"],
                    "kind": each["entity"].split("-")[0],
                    "name": each["text"],
                    "state_key": None,
                    "direct_edge": each["section"] == "tasks",
                }
                for each in nodes
            ],
            "edges": [
                {
                    "id": f"edge-{each['entity']}",
                    "src_id": "project" if each["section"] == "tasks" else "task-7",
                    "dst_id": each["entity"],
                    "rel": "has",
                }
                for each in nodes
            ],
            "omitted": {"tasks": 12},
            "capped_by": ["kind"],
        },
        "differences": {
            "generation": 2,
            "lines": [
                {"change": "added", "before": None, "after": HOSTILE},
                {"change": "changed", "before": "as of 2026-11-20", "after": "as of 2026-11-21"},
            ],
        },
    }


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inspector") / "inspector.html"
    path.write_text(inspector_page(inspection()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser.started() as one:
        yield one


@pytest.fixture
def page(browser: Browser, file: Path) -> Iterator[Page]:
    """The page; nothing a test does with it may raise an error in it, or ask for the network."""
    with browser.page(file) as one:
        yield one
        assert (one.errors, one.requests) == ([], [])


def budget_of(page: Page) -> int:
    return int(page.run("document.querySelector('#slider').valueAsNumber"))


def slide(page: Page, budget: int) -> None:
    page.run(
        "(() => { const slider = document.querySelector('#slider');"
        f" slider.value = {budget}; slider.dispatchEvent(new Event('input')) }})()"
    )
    page.settle()


@pytest.mark.promise("inspector.fit")
def test_the_text_is_what_fits_at_any_budget(page: Page) -> None:
    for budget in BUDGETS:
        slide(page, budget)

        text, tokens, waiting = fitted(steps(), budget)
        assert page.run(PRINTED) == text
        assert page.run(WAITING) == waiting
        assert page.text("#stat-tokens") == f"{tokens:,}"


def test_a_line_that_grows_stands_once_in_the_text_and_its_next_form_waits(page: Page) -> None:
    slide(page, 500)

    grown = [line for line in page.run(PRINTED) if line.startswith("also ")]
    assert grown == ["also T11 T12 T13 T14"]
    assert [line for line in page.run(WAITING) if line.startswith("also ")] == ["also T11 T12 T13 T14 T15 T16"]


def test_the_reader_stays_at_a_line_that_grows(page: Page) -> None:
    focused = "document.activeElement.querySelector('.words')?.textContent"
    place = f".line[data-place='{TASKS + 900}']"
    page.run(f'document.querySelector("{place}").focus()')
    before = page.run(focused)
    page.press(*"]" * 12)

    assert before == "also T11 T12"
    assert page.run(focused) == "also T11 T12 T13 T14 T15 T16"


def test_every_waiting_line_says_the_budget_that_admits_it(page: Page) -> None:
    said = [
        int(re.sub(r"\D", "", words))
        for words in page.run("[...document.querySelectorAll('.line.ghost .need')].map(it => it.textContent)")
    ]
    waiting = page.run(WAITING)

    assert all(one <= other for one, other in pairwise(said))
    for line, need in zip(waiting, said, strict=True):
        assert line in fitted(steps(), need)[0]
        assert line not in fitted(steps(), need - 1)[0]


def test_the_waterline_stands_between_what_is_printed_and_what_waits(page: Page) -> None:
    order = page.run("[...document.querySelector('#lines').children].map(it => it.className.split(' ').at(-1))")
    ghosts = len(page.run(WAITING))

    assert order.index("waterline") == len(order) - ghosts - 1
    assert "of 400 tokens" in page.text("#waterline")


def test_recall_is_what_the_thresholds_say(page: Page) -> None:
    for budget in BUDGETS:
        slide(page, budget)

        tokens = fitted(steps(), budget)[1]
        present = [sum(at <= tokens for at in each["at"]) for each in inspection()["questions"]]
        counts = page.run("[...document.querySelectorAll('#questions .count')].map(it => it.textContent)")
        assert counts == [f"{number}/4" for number in present]
        assert abs(int(page.text("#stat-recall").removesuffix(" %")) - 100 * sum(present) / 12) <= 0.5


def test_keys_change_the_budget(page: Page) -> None:
    page.press("]")
    up = budget_of(page)
    page.press("[", "[", "[")
    down = budget_of(page)
    page.press("}")
    one_more = budget_of(page)

    assert (up, down) == (450, 300)
    assert len(fitted(steps(), one_more - 1)[0]) == len(fitted(steps(), down)[0])
    assert fitted(steps(), one_more)[2] == fitted(steps(), down)[2][1:]
    page.press("{")
    assert page.run(PRINTED) == fitted(steps(), down)[0]


def test_slider_field_and_buttons_change_the_budget(page: Page) -> None:
    page.run("document.querySelector('#slider').focus()")
    page.press("ArrowRight", "ArrowRight", "ArrowLeft")
    assert budget_of(page) == 410

    page.click("#presets [data-budget='500']")
    assert budget_of(page) == 500

    page.run("document.querySelector('#budget').select()")
    page.press("6", "0", "1", "Enter")
    assert budget_of(page) == 601

    page.press("Home", "Tab")
    page.run("document.querySelector('#slider').focus()")
    page.press("End")
    assert budget_of(page) == LARGEST


def test_j_and_k_move_between_lines_and_across_the_waterline(page: Page) -> None:
    focused = "document.activeElement.querySelector('.words')?.textContent ?? document.activeElement.id"
    text, _, waiting = fitted(steps(), 400)
    seen = []
    for _ in range(len(text) + 2):
        page.press("j")
        seen.append(page.run(focused))
    page.press("k", "ArrowUp", "ArrowDown")

    assert seen == [*text, "waterline", waiting[0]]
    assert page.run(focused) == "waterline"
    page.press("w", "j")
    assert page.run(focused) == waiting[0]


def test_a_line_explains_itself_on_focus_and_on_hover(page: Page) -> None:
    line = ".line[data-entity='task-7']"
    page.hover(line)
    hovered = page.text("#tip")
    page.hover("h1")
    gone = page.run("document.querySelector('#tip').hidden")
    page.run(f'document.querySelector("{line}").focus()')

    assert gone
    assert page.text("#tip") == hovered
    assert page.run("document.activeElement.getAttribute('aria-describedby')") == "tip"
    for words in ("T7", "question", "30 tokens", "What is overdue?", "+2 facts", "93", "state todo", "of 250"):
        assert words in hovered
    page.press("Escape")
    assert page.run("document.querySelector('#tip').hidden")


def test_the_first_line_of_a_section_says_that_it_pays_for_the_heading(page: Page) -> None:
    page.hover(".line[data-entity='risk-2']")

    assert "adds 60: 25 for its section's heading" in page.text("#tip")


def test_the_graph_has_every_node_and_edge_and_points_to_lines(page: Page) -> None:
    graph = inspection()["graph"]
    page.hover(".node[data-entity='task-7']")

    assert page.run("document.querySelectorAll('#graph .node').length") == len(graph["nodes"])
    assert page.run("document.querySelectorAll('#graph .edge').length") == len(graph["edges"])
    lit = page.run("[...document.querySelectorAll('.node.lit')].map(it => it.dataset.entity).sort()")
    neighbours = {"project", *(each["dst_id"] for each in graph["edges"] if each["src_id"] == "task-7")}
    assert lit == sorted({"task-7", *neighbours})
    assert page.run("[...document.querySelectorAll('.line.marked')].map(it => it.dataset.entity)") == ["task-7"]
    assert "+12 left out" in page.text("#legend")
    assert "kind" in page.text("#caps")


def test_nodes_are_filled_when_their_line_is_printed(page: Page) -> None:
    filled = "[...document.querySelectorAll('.node.in')].map(it => it.dataset.entity).sort()"
    for budget in BUDGETS:
        slide(page, budget)

        text = fitted(steps(), budget)[0]
        printed = [each["entity"] for each in steps() if each["entity"] and each["text"] in text]
        assert page.run(filled) == sorted(["project", *printed])


def test_no_two_nodes_lie_on_each_other(page: Page) -> None:
    places = page.run(
        "[...document.querySelectorAll('.node')].map(it => it.transform.baseVal.consolidate().matrix)"
        ".map(at => [at.e, at.f])"
    )

    for number, (x, y) in enumerate(places):
        assert all((x - u) ** 2 + (y - v) ** 2 > 27**2 for u, v in places[:number])


def test_what_is_left_out_follows_the_budget_and_the_filter(page: Page) -> None:
    handles = "[...document.querySelectorAll('#out-rows tr')].map(it => it.dataset.entity)"
    lines = [each["entity"] for each in steps() if each["entity"]]
    listed = [each["entity"] for each in inspection()["left_out"]]
    for budget in BUDGETS:
        slide(page, budget)

        text = fitted(steps(), budget)[0]
        printed = {each["entity"] for each in steps() if each["text"] in text}
        assert sorted(page.run(handles)) == sorted([*(set(lines) - printed), *listed])

    page.press("/")
    page.press(*"OUT 55")
    assert page.run(handles) == ["left-55"]
    page.run("document.querySelector('#filter').value = ''")
    page.press("x", "Escape")
    page.run("document.querySelector('#filter').dispatchEvent(new Event('input'))")
    page.click("[data-reason='finished']")
    assert sorted(page.run(handles)) == ["left-51", "left-54", "left-57", "left-60"]
    page.hover("#out-rows tr")
    assert "ten tasks come before it" in page.text("#tip")


def test_differences_are_told_apart(page: Page) -> None:
    assert page.run("[...document.querySelectorAll('#diff li')].map(it => it.className)") == ["added", "changed"]
    assert page.run("document.querySelector('#diff .added ins').textContent") == HOSTILE
    assert page.run("document.querySelector('#diff .changed del').textContent") == "as of 2026-11-20"


@pytest.mark.promise("inspector.inert")
def test_hostile_words_are_shown_and_do_nothing(page: Page) -> None:
    shown = page.run(PRINTED)

    assert f'about "{HOSTILE}"' in shown
    assert f'R2 "{HOSTILE}" todo' in shown
    assert page.run("document.querySelector('#name').textContent") == f"Harbour {HOSTILE}"
    assert page.run("typeof window.broken") == "undefined"
    assert page.run("document.querySelectorAll('img, .words *, #name *, #diff b').length") == 0


@pytest.mark.promise("inspector.inert", "inspector.offline")
def test_a_script_that_got_in_would_not_run(browser: Browser, file: Path) -> None:
    with browser.page(file) as page:
        page.run(
            "document.body.append(Object.assign(document.createElement('script'), {text: 'window.broken = 1'}),"
            " Object.assign(document.createElement('img'), {src: 'http://localhost:9/x.png'}))"
        )
        page.settle()

        assert page.run("typeof window.broken") == "undefined"
        assert len([error for error in page.errors if "Content Security Policy" in error]) == 2


def test_help_opens_and_closes(page: Page) -> None:
    page.press("?")
    opened = page.run("document.querySelector('#help').open")
    page.press("]", "Escape")

    assert opened
    assert budget_of(page) == 400
    assert not page.run("document.querySelector('#help').open")


GROUND = "getComputedStyle(document.body).backgroundColor"

# Words whose colour has too little contrast with what lies under them: backgrounds are painted over each other as
# the browser does it, on a canvas.
FAINT = """
(() => {
  const canvas = Object.assign(document.createElement("canvas"), {width: 1, height: 1});
  const brush = canvas.getContext("2d", {willReadFrequently: true});
  const painted = (colours) => {
    for (const colour of colours) { brush.fillStyle = colour; brush.fillRect(0, 0, 1, 1); }
    return [...brush.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (rgb) => rgb.map((each) => each / 255)
    .map((each) => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
    .reduce((sum, each, index) => sum + each * [0.2126, 0.7152, 0.0722][index], 0);
  const under = (element) => {
    const found = [];
    for (let at = element; at; at = at.parentElement) found.unshift(getComputedStyle(at).backgroundColor);
    return ["white", ...found];
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *:not(svg *):not(script):not(option)")) {
    const words = [...element.childNodes].some((it) => it.nodeType === 3 && it.textContent.trim());
    if (!words || !element.checkVisibility()) continue;
    const grounds = under(element);
    const pair = [light(painted(grounds)), light(painted([...grounds, getComputedStyle(element).color]))];
    const contrast = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (contrast < 4.5) faint.push(`${element.className || element.tagName} ${contrast.toFixed(2)}`);
  }
  for (const node of document.querySelectorAll(".node")) {
    const [circle, text] = [node.querySelector("circle"), node.querySelector("text")];
    const pair = [circle, text].map((it) => light(painted(["white", getComputedStyle(it).fill])));
    const contrast = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (contrast < 4.5) faint.push(`node ${contrast.toFixed(2)}`);
  }
  return faint;
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_are_readable_in_both_schemes(browser: Browser, file: Path, scheme: str) -> None:
    with browser.page(file, scheme=scheme) as page:
        page.press("j", "j", "j")

        assert page.run(FAINT) == []


def test_the_dark_scheme_is_the_users_or_chosen(browser: Browser, file: Path) -> None:
    with browser.page(file) as page:
        light = page.run(GROUND), page.screenshot()
        page.click("#theme")
        chosen = page.run(GROUND)
    with browser.page(file, scheme="dark") as page:
        dark = page.run(GROUND), page.screenshot()
        page.click("#theme")
        back = page.run(GROUND)

    assert light[1].startswith(b"\x89PNG")
    assert light[1] != dark[1]
    assert (chosen, back) == (dark[0], light[0])


@pytest.mark.parametrize("width", [1280, 700])
def test_nothing_sticks_out(browser: Browser, file: Path, width: int) -> None:
    with browser.page(file, width=width) as page:
        page.press("j")

        assert page.run("document.documentElement.scrollWidth") <= width
        assert page.run("document.querySelector('#tip').getBoundingClientRect().right") <= width


def test_nothing_moves_for_those_who_want_no_motion(browser: Browser, file: Path) -> None:
    running = {}
    for reduced in (True, False):
        with browser.page(file, reduced_motion=reduced) as page:
            page.run("document.querySelector('#budget').focus()")
            slide(page, 700)
            running[reduced] = page.run(
                "[...document.querySelectorAll('.fresh .words')].map(it => getComputedStyle(it).animationName)"
            )

    assert set(running[True]) == {"none"}
    assert set(running[False]) == {"fresh"}

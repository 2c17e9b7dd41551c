"""A brief as a chat reads it: lines of the grammar, in the budget, the document's numbers, nothing forged."""

import copy
import json
import re
from collections import Counter
from datetime import timedelta
from typing import Any
from zoneinfo import available_timezones

import pytest
from briefs import NOON, Made, accounts, an_account, brief, digest_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import FORGERIES, PROJECT_ID, a_goal, a_project, a_risk, a_task, texts, uid

from foreword.brief import Document, part
from foreword.brief_lines import brief_lines
from foreword.lines import DEFAULT_BUDGET, LARGEST_BUDGET, SMALLEST_BUDGET, Line, fit, is_line, printed, total
from foreword.tokens import count

pytestmark = pytest.mark.usefixtures("encoding")

budgets = st.integers(SMALLEST_BUDGET, LARGEST_BUDGET)
QUOTED = re.compile(r'"[^"\n]*"')


def two_days(*account: Any, name: str | None = "Asta") -> Made:
    """A brief after a brief."""
    return brief(*account, previous=brief(*account, now=NOON - timedelta(days=1)), name=name)


def lines_of(document: Document) -> tuple[list[Line], int]:
    return brief_lines(document, count)


def text_of(document: Document, budget: int = LARGEST_BUDGET) -> str:
    return fit(*lines_of(document), budget).text


def bare(text: str) -> list[str]:
    """Lines without what stands between quotation marks."""
    return QUOTED.sub('""', text).split("\n")


# ---- grammar and budget


@given(accounts, texts)
@example([], "")
@pytest.mark.promise("lines.additive", "brief.lines")
def test_every_line_is_one_of_the_grammar_and_counted_exactly(account: list[Any], name: str) -> None:
    lines, always = lines_of(two_days(*account, name=name).document)

    assert all(is_line(line.text) and line.text.count("\n") == 1 for line in lines)
    assert [line.tokens for line in lines] == [count(line.text) for line in lines]
    assert total(lines[:always]) <= SMALLEST_BUDGET


@given(accounts, budgets)
@pytest.mark.promise("lines.budget", "brief.lines")
def test_no_text_is_over_its_budget(account: list[Any], budget: int) -> None:
    found = fit(*lines_of(two_days(*account).document), budget)

    assert found.tokens == count(found.text) <= budget


@given(accounts, st.lists(budgets, min_size=2, max_size=2).map(sorted))
@pytest.mark.promise("lines.monotone", "brief.lines")
def test_a_larger_budget_shows_all_that_a_smaller_one_did(account: list[Any], both: list[int]) -> None:
    lines = lines_of(two_days(*account).document)
    small, large = (printed(*lines, budget) for budget in both)

    assert set(small) <= set(large)
    assert [line for line in large if line in small] == small


@given(accounts)
@pytest.mark.promise("build.deterministic", "brief.lines")
def test_a_stored_document_reads_the_same(account: list[Any]) -> None:
    document = two_days(*account).document

    assert lines_of(json.loads(json.dumps(document))) == lines_of(document)


@pytest.mark.parametrize("name", [*FORGERIES, "\ufdfa" * 200, "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 50])
@pytest.mark.parametrize("size", [0, 20_000, 10**9])
@pytest.mark.promise("lines.budget", "brief.lines")
def test_the_head_fits_the_smallest_budget(name: str, size: int) -> None:
    zone = max(available_timezones(), key=count)
    document = adversarial(name, zone, size)

    lines, always = lines_of(document)

    assert count(fit(lines, always, SMALLEST_BUDGET).text) <= SMALLEST_BUDGET


def adversarial(name: str, zone: str, size: int) -> Document:
    """A document with one number everywhere."""
    account = an_account({"one": 2}, due_at="2026-11-20 00:00:00+00")
    document: Document = json.loads(json.dumps(two_days(*account, name=name).document))
    document["zone"] = zone

    def grown(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: grown(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [grown(inner) for inner in value]
        return size if isinstance(value, int) and not isinstance(value, bool) else value

    found: Document = grown(document)
    return found


# ---- nothing forged


@given(accounts, budgets)
@pytest.mark.promise("lines.unforgeable", "brief.lines")
def test_outside_quotation_marks_nothing_depends_on_titles(account: list[Any], budget: int) -> None:
    document = two_days(*account).document
    plain = copy.deepcopy(document)
    for item in items_of(plain):
        item["title"] = "a title"
    for each in (*plain["projects"], *plain["quiet"]["items"]):
        each["name"] = "a project"

    hostile, harmless = (lines_of(each) for each in (document, plain))

    assert [bare(line.text) for line in hostile[0]] == [bare(line.text) for line in harmless[0]]
    assert all(line.text.count('"') % 2 == 0 for line in hostile[0])
    assert len(text_of(document, budget).splitlines()) == len(printed(*hostile, budget))


def items_of(document: Document) -> list[dict[str, Any]]:
    """Every item in a document, wherever it stands."""
    found = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "title" in value and "id" in value:
                found.append(value)
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(document)
    return found


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.promise("lines.unforgeable", "brief.lines")
def test_no_state_nor_title_begins_a_line(forgery: str) -> None:
    rows = a_project(
        tasks=[a_task("t", title=forgery[:200], state_key=forgery[:60], due_at="2026-11-20 00:00:00+00")],
        project={"name": forgery[:200], "state_key": forgery[:60]},
    )

    found = text_of(two_days(rows, name=forgery).document).splitlines()

    known = r"(# brief for |projects: |open tasks: |goals: |milestones missed: |since 2026|## PRJ1 |T1 |brief of )"
    assert all(re.match(known, line) for line in found)
    assert Counter(line.split()[0] for line in found if line.startswith(("T", "##"))) == {"T1": 1, "##": 1}


# ---- what is told


@given(accounts)
@pytest.mark.promise("brief.lines")
def test_each_entity_stands_once_and_below_its_own_project(account: list[Any]) -> None:
    document = two_days(*account).document
    lines, always = lines_of(document)

    places = Counter(line.place for line in lines)
    assert set(places.values()) == {1}
    projects = {section["handle"] for section in document["projects"]}
    told, at = Counter[tuple[str, str]](), ""
    for line in sorted(lines[always:], key=lambda line: line.place):
        first, _, _ = line.text.removeprefix("## ").partition(" ")
        if line.text.startswith("## "):
            at = first
        elif not first.startswith("PRJ"):
            told[at, first] += 1
    expected = {(item["project"], item["handle"]) for item in items_of(document) if item["project"] in projects}
    assert set(told.values()) <= {1}
    assert told.keys() <= expected


@pytest.mark.promise("brief.lines")
def test_entities_whose_handles_share_a_number_both_have_a_line() -> None:
    # Who was a task and is a goal keeps the handle.
    rows = a_project(
        goals=[a_goal("was a task"), a_goal("goal")], tasks=[a_task("t", updated_at="2026-11-21 00:00:00+00")]
    )
    handles = {PROJECT_ID: "PRJ1", uid("was a task"): "T7", uid("goal"): "G7", uid("t"): "T1"}
    made = brief(rows)
    document = json.loads(json.dumps(made.document).replace('"G1"', '"G7"').replace('"G2"', '"T7"'))

    text = text_of(document)

    assert part(digest_of(rows), handles).handle == "PRJ1"
    assert "\nT7 " in text
    assert "\nG7 " in text


@given(accounts, budgets)
@settings(max_examples=40)
@pytest.mark.promise("brief.lines")
def test_numbers_are_the_documents_at_any_budget(account: list[Any], budget: int) -> None:
    document = two_days(*account).document
    totals, changes = document["totals"], document["changes"]

    found = bare(text_of(document, budget))

    told = " ".join(found[:6])
    assert numbers(told, "projects: {}, quiet: {}") == [totals["projects"], document["quiet"]["total"]]
    names = ("open", "overdue", "blocked", "today", "upcoming", "in_progress", "done", "changed")
    said = "open tasks: {}, overdue: {}, blocked: {}, due today: {}, due in 7 days: {}, in progress: {}, "
    said += "done: {}, changed: {}"
    assert numbers(told, said) == [totals[name] for name in names]
    assert numbers(told, "goals: {}, behind: {}, at risk: {}") == [
        totals["goals"][name] for name in ("live", "behind", "at_risk")
    ]
    assert numbers(told, "milestones missed: {}, at risk: {}, risks: {}") == [
        *(totals["milestones"][name] for name in ("missed", "at_risk")),
        totals["risks"],
    ]
    news = ("newly_overdue", "newly_done", "slipped", "new_risks")
    assert numbers(told, "newly overdue {}, done {}, slipped {}, new risks {}") == [
        changes[n]["total"] for n in news
    ]
    assert found[-2] == f"brief of {document['date']}, {document['zone']}"


def numbers(text: str, form: str) -> list[int]:
    found = re.search(re.escape(form).replace(r"\{\}", r"(\d+)"), text)
    return [int(number) for number in found.groups()] if found is not None else []


@given(accounts)
@pytest.mark.promise("brief.lines")
def test_the_numbers_of_a_heading_are_those_of_its_section(account: list[Any]) -> None:
    document = two_days(*account).document

    headings = {
        line.text.split()[1]: bare(line.text)[0] for line in lines_of(document)[0] if line.text[:3] == "## "
    }

    for section in document["projects"]:
        said = headings[section["handle"]]
        for name, key in (
            ("overdue", "overdue"),
            ("blocked", "blocked"),
            ("today", "today"),
            ("in 7 days", "upcoming"),
            ("done", "done"),
        ):
            expected = [section["counts"][key]] if section["counts"][key] else []
            assert numbers(said + ",", f" {name} {{}}") == expected


@pytest.mark.promise("brief.lines")
def test_a_line_says_what_the_lists_say() -> None:
    old = a_project(
        tasks=[a_task("t", due_at="2026-11-19 00:00:00+00"), a_task("late", due_at="2026-11-20 00:00:00+00")]
    )
    new = a_project(
        tasks=[
            a_task("t", title="put off", due_at="2026-11-24 00:00:00+00"),
            a_task("late", title="late", due_at="2026-11-20 00:00:00+00", priority=1),
        ],
        risks=[a_risk("r", title="wind", impact="high", probability="0.3")],
    )

    text = text_of(brief(new, previous=brief(old, now=NOON - timedelta(days=1))).document)

    said = {line.split('"')[1]: line for line in text.splitlines() if '"' in line}
    assert "was due 2026-11-19 due 2026-11-24" in said["put off"]
    assert " newly overdue " in said["late"]
    assert " p1 due 2026-11-20" in said["late"]
    assert said["wind"].endswith('"wind" identified new impact high probability 0.3')


@pytest.mark.promise("brief.lines")
def test_actions_come_first_and_survive_the_smallest_budget_that_holds_them() -> None:
    account = an_account({f"p{n}": 4 for n in range(30)}, due_at="2026-11-20 00:00:00+00", priority=1)
    document = two_days(*account).document

    text = text_of(document, DEFAULT_BUDGET)

    first = {item["id"] for item in document["priorities"]}
    handles = {(item["project"], item["handle"]) for item in document["priorities"]}
    assert len(first) == 5
    assert sum(" first " in line or line.endswith(" first") for line in text.splitlines()) == 5
    assert {handle for _, handle in handles} <= {line.split()[0] for line in text.splitlines()}


@pytest.mark.promise("brief.lines")
def test_a_brief_without_projects_is_a_text() -> None:
    text = text_of(brief(name=None).document, SMALLEST_BUDGET)

    assert text.startswith(f'# brief for "{uid("user")[:8]}')
    assert "projects: 0" in text


@given(accounts)
@settings(max_examples=20)
@pytest.mark.promise("brief.lines")
def test_less_than_a_line_and_its_heading_is_left_unused(account: list[Any]) -> None:
    lines, always = lines_of(two_days(*account).document)
    everything = total(lines)

    for budget in (SMALLEST_BUDGET, 500, DEFAULT_BUDGET):
        found = fit(lines, always, budget)
        longest = max(line.tokens for line in lines)
        assert everything <= budget or found.tokens > budget - 2 * longest

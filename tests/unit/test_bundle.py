"""A project's bundle: its JSON, and its text at any budget, read by a parser that knows the grammar only."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parsed import DAY, HANDLE, Said, keys_of, outside_quotes, parsed
from strategies import (
    FORGERIES,
    PROJECT_ID,
    TODAY,
    UTC,
    a_big_project,
    a_document,
    a_goal,
    a_hostile_project,
    a_milestone,
    a_plan,
    a_project,
    a_risk,
    a_row,
    a_task,
    an_edge,
    drafted,
    handles_of,
    hostile_cells,
    projects,
    reading,
    rendered,
    shuffled,
    uid,
    written,
)

from foreword.bundle import Content, lights_of, render
from foreword.draft import Draft, completed
from foreword.kinds import KINDS
from foreword.lines import LONGEST_LINE, fit, is_line
from foreword.page import Page, page
from foreword.rows import ProjectRows
from foreword.text import clean
from foreword.tokens import count, encoding
from foreword.writer import Step

ROOT = Path(__file__).parents[2]

budgets = st.integers(250, 4000)
rarely_first = [
    *("goals", "requirements", "plans", "milestones", "documents", "outputs"),
    *("decisions", "insights", "risks", "signals", "tasks"),
]


# ---- helpers


def text_of(content: Content, budget: int) -> str:
    return fit(content.lines, content.always, budget).text


def label_of(light: Mapping[str, Any], handle: str) -> str:
    kind = next(kind for kind in KINDS.all if re.fullmatch(rf"{kind.handle}[0-9]+", handle))
    return clean(str(light.get(kind.label, ""))).replace('"', "'") or "(untitled)"


def lines_of(draft: Draft) -> Page:
    """What a draft's text is made of."""
    return page(draft, lights_of(draft), handles_of(draft), count)


hostile = pytest.mark.parametrize("seed", range(12))


# ---- nothing is forged


@given(projects(), budgets)
@settings(max_examples=200)
@pytest.mark.promise("lines.unforgeable", "lines.additive")
def test_every_line_of_any_project_is_one_of_our_forms(rows: ProjectRows, budget: int) -> None:
    content = rendered(rows)
    text = text_of(content, budget)

    said = parsed(text)

    assert all(is_line(f"{each.line}\n") for each in said)
    forms = [each.form for each in said]
    assert [forms.count(form) for form in ("name", "facts", "counts", "over all", "as of")] == [1] * 5
    assert all(forms.count(form) <= 1 for form in ("context", "absent", "edges"))
    counted = [each.groups["plural"] for each in said if each.form == "count"]
    assert counted == [kind.plural for kind in KINDS.entities if kind.name not in rows.absent]


def check_unforged(rows: ProjectRows, budget: int) -> None:
    """Sections, the handle at each line's start and every handle outside quotation marks are those of the data;
    so is all that is said of an entity.
    """
    draft = drafted(rows)
    handle_of, lights, found = handles_of(draft), lights_of(draft), draft.buckets
    id_of = {handle: entity for entity, handle in handle_of.items()}
    said = parsed(text_of(rendered(rows), budget))
    entities = [each for each in said if each.form == "entity"]
    headings = [each.section for each in said if each.form == "heading"]
    assert headings == list(dict.fromkeys(each.section for each in entities))
    for each in entities:
        entity = id_of[each.handle]
        light, parts = lights[entity], each.parts
        title = each.groups["title"]
        assert draft.by_id[entity][0].plural == each.section
        assert label_of(light, each.handle).startswith(title.removesuffix("…"))
        named = {
            "waits for": found.waits_for.get(entity, ()),
            "plan": light.get("plan_ids", []),
            "goal": light.get("goal_ids", light.get("linked_goal_ids", [])),
            "task": light.get("linked_task_ids", []),
        }
        for word, (names, total) in each.links.items():
            assert names == [handle_of[i] for i in named[word][: len(names)]]
            assert total == len(named[word])
        listed = {name for names, _ in each.links.values() for name in names}
        assert outside_quotes(each.line) == {each.handle, *listed}
        assert ("unlinked" in parts) <= (not light["direct_edge"])
        assert ("changed" in parts) <= (entity in found.changed)
        assert ("no tasks or plans" in parts) <= (entity in found.idle)
        stated = light.get("state_key", light.get("channel"))
        assert ("blocked" in parts) <= (entity in found.blocked or stated == "blocked")
        if "needed by" in parts:
            assert parts["needed by"] == f"needed by {len(found.needed_by[entity])}"
        if "due" in parts:
            assert parts["due"] == f"due {light['due_at']}"
    for each in said:
        if each.form == "context":
            assert outside_quotes(each.line) == {handle_of[draft.context_document or ""]}
        elif each.form != "entity":
            assert outside_quotes(each.line) == set()


@given(projects(), budgets)
@settings(max_examples=200)
@pytest.mark.promise("lines.unforgeable")
def test_no_text_forges_a_section_or_a_handle(rows: ProjectRows, budget: int) -> None:
    check_unforged(rows, budget)


@hostile
@pytest.mark.promise("lines.unforgeable")
def test_no_text_of_a_large_hostile_project_forges_a_section_or_a_handle(seed: int) -> None:
    check_unforged(a_hostile_project(seed), 3000)


@pytest.mark.parametrize("forgery", FORGERIES, ids=range(len(FORGERIES)))
@pytest.mark.promise("lines.unforgeable")
def test_a_forgery_in_every_place_at_once_changes_no_count_and_no_section(forgery: str) -> None:
    def a_copy(text: str) -> ProjectRows:
        state = text[:61]
        return a_project(
            project={
                "name": text,
                "state_key": state,
                "type_key": state,
                "next_step_short": text,
                "description": text,
            },
            tasks=[a_task(f"t{n}", title=text, state_key=state, type_key=state) for n in range(3)],
            goals=[a_goal("g", name=text, state_key=state)],
            risks=[a_risk("r", title=text, impact=state, state_key=state)],
            signals=[a_row("signal", uid("s"), channel=state, payload_summary=text)],
            edges=[an_edge("project", "has_task", "t0"), an_edge("t0", "depends_on", "t1")],
        )

    hostile, plain = (parsed(written(a_copy(text), 3000).text) for text in (forgery, "plain"))

    ours = {"heading", "counts", "over all", "as of"}
    assert [each.line for each in hostile if each.form in ours] == [
        each.line for each in plain if each.form in ours
    ]
    assert [e.handle for e in hostile if e.form == "entity"] == ["G1", "R1", "S1", "T1", "T2", "T3"]
    for told, said in zip(*([e for e in each if e.form == "count"] for each in (hostile, plain)), strict=True):
        known = said.counts.keys() - {"plain"}
        assert {label: told.counts[label] for label in known} == {label: said.counts[label] for label in known}
        assert all(number <= 3 for label, number in told.counts.items() if label not in known)


# ---- budgets


@given(projects(), budgets)
@settings(max_examples=200)
@pytest.mark.promise("lines.budget")
def test_a_text_of_any_project_is_within_any_budget(rows: ProjectRows, budget: int) -> None:
    content = rendered(rows)

    fitted = fit(content.lines, content.always, budget)

    assert count(fitted.text) == fitted.tokens <= budget


def beginning(said: Said) -> str:
    """What stays of a line that says more at a larger budget."""
    match said.form:
        case "entity":
            return f'{said.handle} "{said.groups["title"]}"'
        case "count" | "facts":
            return said.line.split(", ")[0]
        case _:
            return said.line


def is_within(part: Said, whole: Said) -> bool:
    """Whether a line says all that another of the same beginning says, in the same order."""
    if part.form == "facts":
        facts = iter(whole.line.split(", "))
        return all(fact in facts for fact in part.line.split(", "))
    if part.form == "count":
        return part.counts.items() <= whole.counts.items()
    if part.form == "entity":
        words = iter(whole.parts.items())
        return all(word in words for word in part.parts.items())
    return part.line == whole.line


def check_nothing_lost(smaller: str, larger: str) -> None:
    """Every line of the smaller text stands in the larger, as it is or with more in it, in the same order."""
    less, more = parsed(smaller), parsed(larger)
    by_beginning = {beginning(each): place for place, each in enumerate(more)}
    assert len(by_beginning) == len(more)
    places = [by_beginning[beginning(each)] for each in less]
    assert places == sorted(places)
    for each, place in zip(less, places, strict=True):
        assert is_within(each, more[place]), (each.line, more[place].line)


@hostile
@pytest.mark.promise("lines.budget", "lines.monotone")
def test_a_large_hostile_project_fits_every_budget_and_a_larger_one_loses_nothing(seed: int) -> None:
    content = rendered(a_hostile_project(seed))
    before = None

    for budget in range(250, 4001, 50):
        fitted = fit(content.lines, content.always, budget)
        assert fitted.tokens <= budget
        check_nothing_lost(before or fitted.text, fitted.text)
        before = fitted.text


@given(projects(), budgets, st.integers(0, 500))
@pytest.mark.promise("lines.monotone")
def test_a_larger_budget_loses_no_line(rows: ProjectRows, budget: int, more: int) -> None:
    content = rendered(rows)

    check_nothing_lost(text_of(content, budget), text_of(content, budget + more))


@given(projects(), budgets, st.integers(0, 500))
@pytest.mark.promise("lines.monotone")
def test_a_larger_budget_loses_no_fact(rows: ProjectRows, budget: int, more: int) -> None:
    content = rendered(rows)

    smaller, larger = (
        keys_of(text_of(content, b), content.data["handles"], PROJECT_ID) for b in (budget, budget + more)
    )

    assert smaller <= larger


def an_adversary(seed: int) -> ProjectRows:
    """A project of any size with hostile texts, long or short lists, few or many links."""
    random = Random(seed)
    each, edges = random.choice([(0, 0), (1, 5), (3, 20), (8, 300), (15, 60), (30, 900)])
    return a_hostile_project(seed, each=each, edges=edges)


@pytest.mark.parametrize("seed", range(50))
@pytest.mark.promise("lines.budget", "lines.additive", "lines.monotone", "lines.parts")
def test_two_hundred_budgets_of_a_project_each_hold_their_text(seed: int) -> None:
    drawn = lines_of(drafted(an_adversary(seed)))
    encode = encoding().encode_ordinary
    keys = {step.line.text: set(step.keys) for step in drawn.steps}
    random = Random(seed)
    before: set[tuple[str, str]] = set()

    for budget in sorted([250, 251, 1500, 3000, *random.sample(range(252, 3400), 196)]):
        fitted = fit(drawn.lines, drawn.always, budget)
        assert len(encode(fitted.text)) == fitted.tokens <= budget
        shown = set().union(*(keys[line] for line in fitted.text.splitlines(keepends=True)))
        assert before <= shown
        before = shown


@hostile
@pytest.mark.promise("lines.parts", "lines.additive")
def test_every_step_is_counted_exactly_and_says_more_than_the_one_it_replaces(seed: int) -> None:
    drawn = lines_of(drafted(an_adversary(seed + 100)))
    encode = encoding().encode_ordinary
    standing: dict[int, Step] = {}

    for step in drawn.steps:
        assert is_line(step.line.text)
        assert step.line.tokens == len(encode(step.line.text))
        if (earlier := standing.get(step.line.place)) is not None:
            less, more = parsed(earlier.line.text)[0], parsed(step.line.text)[0]
            assert (beginning(less), is_within(less, more)) == (beginning(more), True)
            assert set(earlier.keys) <= set(step.keys)
            assert earlier.line.tokens < step.line.tokens
        standing[step.line.place] = step


@given(projects())
@settings(max_examples=200)
@pytest.mark.promise("lines.parts", "lines.additive")
def test_every_step_of_any_project_is_counted_exactly(rows: ProjectRows) -> None:
    for step in lines_of(drafted(rows)).steps:
        assert step.line.tokens == count(step.line.text)


WORDS = (
    "mend",
    "the",
    "net",
    "loft",
    "before",
    "winter",
    "storms",
    "come",
    "with",
    "tar",
    "and",
    "twine",
    "again",
)


def titled(rows: ProjectRows) -> ProjectRows:
    """The rows with titles of some length, as people write them."""
    entities = {
        kind: [
            tuple(
                " ".join(WORDS[n % 5 : 5 + n % 9])
                if at == KINDS.by_name[kind].at[KINDS.by_name[kind].label]
                else cell
                for at, cell in enumerate(row)
            )
            for n, row in enumerate(table)
        ]
        for kind, table in rows.entities.items()
    }
    return replace(rows, entities=entities)


@pytest.mark.parametrize("budget", [1500, 3000])
@pytest.mark.parametrize("seed", range(24))
@pytest.mark.promise("lines.used")
def test_where_a_line_is_left_out_little_of_the_budget_is_unused(seed: int, budget: int) -> None:
    rows = titled(a_big_project(600 * (1 + seed % 7), 900, seed=seed)) if seed % 2 else a_hostile_project(seed)
    drawn = lines_of(drafted(rows))
    headings = [step.line.tokens for step in drawn.steps if step.line.heading == step.line.place]

    fitted = fit(drawn.lines, drawn.always, budget)

    total = fit(drawn.lines, drawn.always, 10**6).tokens
    assert total > budget
    assert budget - fitted.tokens < LONGEST_LINE + max(headings)


@given(projects())
@settings(max_examples=200)
@pytest.mark.promise("lines.budget")
def test_no_entity_takes_more_than_a_lines_share_and_some_of_its_title_is_there(rows: ProjectRows) -> None:
    content = rendered(rows)

    for line in content.lines:
        if re.match(rf'{HANDLE} "', line.text):
            assert line.tokens <= LONGEST_LINE
            assert not re.match(rf'{HANDLE} "…"', line.text) or len(clean(line.text)) < 200
    assert content.overview.tokens <= LONGEST_LINE


def with_huge_counts(draft: Draft) -> Draft:
    """The draft of a project with six digits of everything, all of it in every bucket."""
    huge = frozenset(map(str, range(999_999)))
    counts = dict.fromkeys(("total", "direct", "unlinked", "reachable", "orphan"), 999_999)
    return replace(
        draft,
        buckets=replace(draft.buckets, needed=huge, changed=huge),
        coverage={kind.plural: counts for kind in draft.kinds.entities},
        sizes={kind.name: {bucket: 999_999 for bucket, _ in kind.tally} for kind in draft.kinds.entities},
        states={kind.name: {f"state_{n}": 999_999 for n in range(20)} for kind in draft.kinds.entities},
        graph=replace(draft.graph, dangling=999_999, foreign=999_999),
    )


@pytest.mark.promise("lines.budget", "lines.counted")
def test_the_header_fits_the_smallest_budget_whatever_the_counts_and_names() -> None:
    huge = with_huge_counts(drafted(a_project()))

    for seed in range(10):
        cells = hostile_cells(KINDS.project, Random(seed))
        draft = replace(huge, rows=replace(huge.rows, project=(PROJECT_ID, *cells)))
        content = render(draft, handles_of(draft), count)
        fitted = fit(content.lines, content.always, 250)
        assert fitted.tokens <= 250
        counts = [each.counts for each in parsed(fitted.text) if each.form == "count"]
        assert [next(iter(each.items())) for each in counts] == [(kind.plural, 999_999) for kind in KINDS.entities]
        assert {"overdue", "blocked", "ready and dated"} <= counts[0].keys()
        assert {number for each in counts for number in each.values()} == {999_999}
        assert "unlinked: 10999989, waited for: 999999, changed since yesterday: 999999\n" in fitted.text


@pytest.mark.promise("lines.budget", "build.kind")
def test_a_registry_of_thirty_kinds_with_huge_counts_still_fits_the_smallest_budget() -> None:
    risk = KINDS.by_name["risk"]
    more = [
        replace(
            risk,
            name=f"thing{letter}",
            plural=f"things{letter}",
            table=f"onto_things_{letter}",
            handle=f"X{letter}",
        )
        for letter in "ABCDEFGHIJKLMNOPQRS"
    ]
    kinds = KINDS.extended(*more)
    huge = with_huge_counts(drafted(a_project(kinds=kinds), kinds=kinds))

    content = render(huge, handles_of(huge), count)

    fitted = fit(content.lines, content.always, 250)
    assert fitted.tokens == count(fitted.text) <= 250
    assert "\n30 kinds, 0 entities\n" in fitted.text
    assert "\nthingsS: 999999, direct: 999999, unlinked: 999999, open: 999999" in text_of(content, 3000)


@pytest.mark.parametrize(
    "char", ["\U00010000", "\u0bb9", "\ufdfa", "\u26f7", "\U0001f9d1\u200d", "x ", "\U0010ffff"]
)
@pytest.mark.promise("lines.budget")
def test_a_project_of_nothing_but_expensive_characters_fits_the_smallest_budget(char: str) -> None:
    cells = {f.name: (char * 200)[: f.cut + 1] for f in KINDS.project.light if f.cut}
    rows = a_project(project=cells, tasks=[a_task(title=char * 200, state_key=(char * 61)[:61])])

    fitted = written(rows, 250)

    assert fitted.tokens == count(fitted.text) <= 250
    assert {"name", "facts", "counts", "count", "as of"} <= {each.form for each in parsed(fitted.text)}


# ---- what the text says


@given(projects())
@pytest.mark.promise("lines.order")
def test_sections_run_from_stable_to_volatile_in_handle_order(rows: ProjectRows) -> None:
    said = parsed(text_of(rendered(rows), 4000))

    headings = [each.section for each in said if each.form == "heading"]
    assert headings == [plural for plural in rarely_first if plural in headings]
    numbers = [
        (each.handle.rstrip("0123456789"), int(re.sub("[A-Z]", "", each.handle)))
        for each in said
        if each.form == "entity"
    ]
    letters = list(dict.fromkeys(letter for letter, _ in numbers))
    assert numbers == sorted(numbers, key=lambda n: (letters.index(n[0]), n[1]))
    sections = [each.section for each in said]
    assert sections[sections.index("counts") :] == ["counts"] * (len(said) - sections.index("counts") - 1) + [
        "as of"
    ]
    assert (said[0].form, said[-1].line) == ("name", "as of 2026-11-21")


NAMED = {
    "due today": "today",
    "due in 7 days": "soon",
    "ready and dated": "ready",
    "in progress": "in_progress",
    "unblocking others": "unblocking",
    "behind": "overdue",
    "missed": "overdue",
    "at risk": "at_risk",
    "without tasks or plans": "idle",
    "with tasks": "measured",
    "decided": "happened",
}
"""The bucket that a count is of, where it is called otherwise."""


@given(projects(), budgets)
@settings(max_examples=200)
@pytest.mark.promise("lines.counted", "graph.partition")
def test_counts_say_what_there_is_whatever_is_shown(rows: ProjectRows, budget: int) -> None:
    read, found = reading(rows), drafted(rows).buckets
    direct = read.near(PROJECT_ID, 1)

    said = parsed(text_of(rendered(rows), budget))

    for each in said:
        if each.form == "count":
            kind = next(kind for kind in KINDS.entities if kind.plural == each.groups["plural"])
            ids = {entity for entity, name in read.kind_of.items() if name == kind.name}
            counts = dict(each.counts)
            assert counts.pop(kind.plural) == len(ids)
            if "direct" in counts:
                assert (counts.pop("direct"), counts.pop("unlinked")) == (len(ids & direct), len(ids - direct))
            tallied = {name: bucket for bucket, name in kind.tally}
            for name, number in counts.items():
                if name in tallied:
                    assert tallied[name] == NAMED.get(name, name)
                    assert number == len(ids & found.of(tallied[name]))
                else:
                    states = [row[kind.at["state_key"]] for row in rows.entities[kind.name]]
                    assert number == states.count(name) > 0
        elif each.form == "over all":
            entities = read.kind_of.keys() - {PROJECT_ID}
            assert each.counts == {
                "unlinked": len(entities - direct),
                "waited for": len(found.needed),
                "changed since yesterday": len(found.changed),
            }


@given(projects())
@pytest.mark.promise("lines.counted", "recall.closure")
def test_the_smallest_text_counts_every_set_that_the_catalogue_asks_of(rows: ProjectRows) -> None:
    said = {
        each.groups["plural"]: each.counts for each in parsed(text_of(rendered(rows), 250)) if each.form == "count"
    }
    asked = {
        "tasks": {"overdue", "blocked", "ready and dated"},
        "goals": {"without tasks or plans", "with tasks"},
        "milestones": {"upcoming"},
        "risks": {"open"},
        "decisions": {"decided"},
    }

    assert said.keys() == {kind.plural for kind in KINDS.entities if kind.name not in rows.absent}
    for plural, counts in said.items():
        assert asked.get(plural, set()) | {plural} <= counts.keys()


@given(projects())
@pytest.mark.promise("lines.counted", "graph.once")
def test_a_text_with_room_says_what_is_not_kept_and_which_edges_lead_nowhere(rows: ProjectRows) -> None:
    read = reading(rows)
    absent = [KINDS.by_name[kind].plural for kind in rows.absent]
    edges = [f"{what} edges: {n}" for what, n in (("dangling", read.dangling), ("foreign", read.foreign)) if n]

    said = parsed(text_of(rendered(rows), 4000))

    assert [each.line for each in said if each.form == "absent"] == [
        f"not kept here: {', '.join(absent)}" for _ in absent[:1]
    ]
    assert [each.line for each in said if each.form == "edges"] == [", ".join(edges) for _ in edges[:1]]


@given(projects(most=2))
@pytest.mark.promise("lines.counted", "lines.parts")
def test_where_there_is_room_a_line_says_all_there_is(rows: ProjectRows) -> None:
    draft = drafted(rows)
    id_of = {handle: entity for entity, handle in handles_of(draft).items()}
    found, lights = draft.buckets, lights_of(draft)

    said = parsed(text_of(rendered(rows), 4000))

    lines = {id_of[each.handle]: each.parts for each in said if each.form == "entity"}
    assert lines.keys() == {row[0] for table in rows.entities.values() for row in table}
    for entity, parts in lines.items():
        state = lights[entity].get("state_key")
        assert ("unlinked" in parts) is (entity not in draft.graph.direct)
        assert ("changed" in parts) is (entity in found.changed)
        assert ("no tasks or plans" in parts) is (entity in found.idle)
        if draft.by_id[entity][0].name == "task":
            assert ("blocked" in parts) is (entity in found.blocked or state == "blocked")
        assert ("waits for" in parts) is (entity in found.waits_for)
        assert ("needed by" in parts) is (entity in found.needed_by)


@pytest.mark.promise("lines.counted")
def test_an_empty_project_says_that_nothing_is_there() -> None:
    asked = {
        "tasks": {"overdue", "blocked", "ready and dated"},
        "goals": {"without tasks or plans", "with tasks"},
        "milestones": {"upcoming"},
        "risks": {"open"},
        "decisions": {"decided"},
    }

    head, facts, heading, *counts, over_all, last = written(a_project(), 250).text.splitlines()

    assert (head, facts) == ('# project "Net loft"', "state active, from unset to unset")
    assert (heading, last) == ("## counts", "as of 2026-11-21")
    assert over_all == "unlinked: 0, waited for: 0, changed since yesterday: 0"
    for kind, line in zip(KINDS.entities, counts, strict=True):
        said = dict(part.split(": ") for part in line.split(", "))
        assert {kind.plural, *asked.get(kind.plural, ())} <= said.keys()
        assert set(said.values()) == {"0"}


@pytest.mark.promise("lines.unforgeable")
def test_a_state_that_reads_like_a_count_of_ours_is_not_counted() -> None:
    states = ["direct", "unlinked", "goals", "blocked", "due_today", "T7", "on hold", "waiting"]
    rows = a_project(tasks=[a_task(f"t{n}", state_key=state) for n, state in enumerate(states)])

    (tasks, *_) = (each.counts for each in parsed(written(rows, 3000).text) if each.form == "count")

    assert tasks == {
        "tasks": 8,
        "direct": 0,
        "unlinked": 8,
        "open": 8,
        "overdue": 0,
        "due today": 0,
        "due in 7 days": 0,
        "blocked": 1,
        "ready and dated": 0,
        "in progress": 0,
        "unblocking others": 0,
        "waiting": 1,
    }


@pytest.mark.promise("lines.monotone")
def test_no_fact_of_the_project_is_cut_shorter_where_more_of_them_are_said() -> None:
    long = dict.fromkeys(("state_key", "type_key", "facet_stage", "facet_scale", "facet_context"), "wordier" * 6)
    content = rendered(a_project(project=long))

    less, more = (text_of(content, budget).splitlines()[1].split(", ") for budget in (250, 3000))

    assert len(less) == 3
    assert len(more) == 6
    assert set(less) <= set(more)


@pytest.mark.promise("lines.monotone", "lines.counted")
def test_a_project_without_a_state_says_so_at_any_budget() -> None:
    content = rendered(a_project(project={"state_key": None, "type_key": "project.boat"}))

    less, more = (text_of(content, budget).splitlines()[1] for budget in (250, 3000))

    assert less == "state unset, from unset to unset"
    assert more == "state unset, type project.boat, from unset to unset"


@pytest.mark.promise("lines.counted")
def test_a_kind_without_a_table_is_said_to_be_absent_never_zero() -> None:
    content = rendered(a_project(absent=("output", "decision")))

    assert "\nnot kept here: outputs, decisions\n" in text_of(content, 300)
    assert "\noutputs: " not in text_of(content, 250)
    assert "\ndecisions: " not in text_of(content, 250)
    assert content.data["coverage"]["absent"] == ["output", "decision"]
    assert not {"outputs", "decisions"} & content.data["slices"].keys()
    assert not {"outputs", "decisions"} & content.data["header"]["entity_counts"].keys()


@pytest.mark.promise("lines.order")
def test_an_edit_of_a_task_leaves_all_before_the_tasks_as_it_was() -> None:
    def the_loft(state: str) -> str:
        tasks = [a_task("t1", state_key=state), a_task("t2")]
        return written(a_project(tasks=tasks, goals=[a_goal()], plans=[a_plan()], milestones=[a_milestone()])).text

    before, after = the_loft("todo"), the_loft("blocked")

    assert before != after
    assert before.split("## tasks")[0] == after.split("## tasks")[0]


@pytest.mark.promise("build.unlinked")
@given(projects())
def test_slices_are_as_rich_without_edges_as_with_them(rows: ProjectRows) -> None:
    slices = rendered(replace(rows, edges=[])).data["slices"]

    for kind in KINDS.entities:
        if kind.name not in rows.absent:
            assert len(slices[kind.plural]) == min(len(rows.entities.get(kind.name, ())), kind.shown)
            assert not any(light["direct_edge"] for light in slices[kind.plural])


@pytest.mark.parametrize(
    ("before", "after"), [("active", "planning"), ("planning", "odd"), ("odd", "paused"), ("paused", "completed")]
)
@pytest.mark.promise("reader.overview")
def test_relevance_goes_by_state_first(before: str, after: str) -> None:
    late = [a_task(f"t{n}", due_at="2026-01-01 00:00:00+00") for n in range(600)]

    calm, busy = (
        rendered(a_project(project={"state_key": before})),
        rendered(a_project(project={"state_key": after}, tasks=late)),
    )

    assert calm.relevance > busy.relevance


@pytest.mark.promise("reader.overview")
def test_a_projects_line_in_an_overview_says_how_it_stands() -> None:
    rows = a_project(
        project={"next_step_short": 'Ask "who"', "end_at": "2027-01-15 00:00:00+00"},
        tasks=[
            a_task("t1", due_at="2026-11-01 00:00:00+00"),
            a_task("t2", state_key="blocked"),
            a_task("t3", state_key="done"),
        ],
    )

    line = rendered(rows).overview.text

    assert line == 'PRJ1 "Net loft" active, until 2027-01-15, 2 open, 1 overdue, 1 blocked, next "Ask \'who\'"\n'


# ---- JSON

NODE = ["id", "kind", "name", "state_key", "type_key", "direct_edge", "last_updated"]
EDGE = ["id", "src_id", "src_kind", "dst_id", "dst_kind", "rel"]


@given(projects(most=12))
@pytest.mark.promise("graph.schema")
def test_the_snapshot_has_the_shape_of_the_light_schema(rows: ProjectRows) -> None:
    draft = drafted(rows)
    graph = json.loads(json.dumps(rendered(rows).data["graph"]))

    assert list(graph) == [
        "root_id",
        "root_kind",
        "max_depth",
        "nodes",
        "edges",
        "coverage",
        "omitted",
        "capped_by",
    ]
    assert (graph["root_id"], graph["root_kind"], graph["max_depth"]) == (PROJECT_ID, "project", 2)
    assert [(node["id"], node["kind"]) for node in graph["nodes"]] == list(draft.snapshot.nodes)
    kind_of = reading(rows).kind_of
    for node in graph["nodes"]:
        assert list(node) == NODE
        assert node["direct_edge"] is (node["id"] in draft.graph.direct)
        assert isinstance(node["name"], str)
        assert re.fullmatch(DAY, node["last_updated"] or "2026-11-21")
    stored = {edge[0]: edge for edge in rows.edges}
    for edge in graph["edges"]:
        assert list(edge) == EDGE
        _, src, _, dst, _, rel = stored[edge["id"]]
        assert (edge["src_id"], edge["dst_id"], edge["rel"]) == (src, dst, rel)
        assert (edge["src_kind"], edge["dst_kind"]) == (kind_of[src], kind_of[dst])
    plurals = {kind.plural for kind in KINDS.entities if kind.name not in rows.absent}
    assert graph["coverage"].keys() == plurals
    assert graph["omitted"] == {KINDS.by_name[kind].plural: n for kind, n in draft.snapshot.omitted.items()}
    assert graph["capped_by"] == list(draft.snapshot.capped_by)


@given(projects())
@pytest.mark.promise("graph.schema", "handles.either")
def test_what_the_json_shows_has_a_uuid_and_a_handle(rows: ProjectRows) -> None:
    data = rendered(rows).data

    shown = {node["id"] for node in data["graph"]["nodes"]}
    shown |= {light["id"] for table in data["slices"].values() for light in table}
    shown |= {entity["id"] for entity in data["recent"]["entities"]}
    assert shown <= data["handles"].keys()
    assert len(set(data["handles"].values())) == len(data["handles"])
    for light in (light for table in data["slices"].values() for light in table):
        assert data["handles"][light["id"]] == light["handle"]


@given(projects())
@pytest.mark.promise("graph.schema")
def test_the_header_counts_every_kind_and_holds_no_empty_field(rows: ProjectRows) -> None:
    header = rendered(rows).data["header"]

    assert header["id"] == PROJECT_ID
    assert header["entity_counts"] == {
        plural: counts["total"] for plural, counts in drafted(rows).coverage.items()
    }
    assert None not in header.values()
    assert "timezone" not in header


@pytest.mark.parametrize(("src", "dst"), [("project", "doc"), ("doc", "project")])
@pytest.mark.promise("graph.schema")
def test_the_context_document_is_in_the_header_whichever_way_its_edge_points(src: str, dst: str) -> None:
    rows = a_project(
        documents=[a_document("doc", title="Brief")], edges=[an_edge(src, "has_context_document", dst)]
    )

    content = rendered(rows)

    assert content.data["header"]["context_document_id"] == uid("doc")
    assert content.data["header"]["context_document_title"] == "Brief"
    assert "context document DOC1\n" in text_of(content, 1500)


@pytest.mark.promise("build.deterministic")
def test_of_several_context_documents_the_one_with_the_lowest_id_is_taken() -> None:
    names = [f"doc{n}" for n in range(5)]
    documents = [a_document(name) for name in names]
    edges = [an_edge("project", "has_context_document", name) for name in names]

    for order in (edges, edges[::-1]):
        header = rendered(a_project(documents=documents, edges=order)).data["header"]
        assert header["context_document_id"] == min(map(uid, names))


@pytest.mark.promise("graph.schema")
def test_only_a_document_is_a_context_document() -> None:
    rows = a_project(tasks=[a_task("t")], edges=[an_edge("project", "has_context_document", "t")])

    assert "context_document_id" not in rendered(rows).data["header"]


# ---- the same rows, the same bytes


def bytes_of(content: Content) -> Sequence[bytes]:
    texts = [text_of(content, budget).encode() for budget in (250, 1500, 4000)]
    return [orjson.dumps(content.data, default=dict), json.dumps(content.data, default=dict).encode(), *texts]


@given(projects(), st.integers(0, 99))
@settings(max_examples=150)
@pytest.mark.promise("build.deterministic")
def test_rows_in_any_order_give_the_same_bytes(rows: ProjectRows, seed: int) -> None:
    assert bytes_of(rendered(rows)) == bytes_of(rendered(shuffled(rows, seed)))


def surveyed(rows: ProjectRows) -> ProjectRows:
    """The rows with only those cells that decide what is shown."""
    kept = {kind.name: [kind.at[name] for name in kind.ranking] for kind in KINDS.entities}
    entities = {
        kind: [tuple(cell if at in {0, *kept[kind]} else None for at, cell in enumerate(row)) for row in table]
        for kind, table in rows.entities.items()
    }
    return replace(rows, entities=entities)


@given(projects(most=9))
@pytest.mark.promise("build.deterministic")
def test_a_bundle_from_surveyed_rows_is_the_bundle_from_whole_rows(rows: ProjectRows) -> None:
    whole = {row[0]: row for table in rows.entities.values() for row in table}

    draft = completed(drafted(surveyed(rows)), whole)

    assert bytes_of(render(draft, handles_of(draft), count)) == bytes_of(rendered(rows))


@hostile
@pytest.mark.promise("build.deterministic")
def test_rows_of_a_large_project_in_any_order_give_the_same_bytes(seed: int) -> None:
    rows = a_hostile_project(seed, each=40, edges=800)

    assert bytes_of(rendered(rows)) == bytes_of(rendered(shuffled(rows, seed)))


DIGEST = """
import hashlib
from strategies import *
for rows in (a_hostile_project(1), a_big_project(500, 900), shuffled(a_big_project(500, 900), 3)):
    draft = drafted(rows)
    content = render(draft, handles_of(draft), len)
    text = "".join(line.text for line in content.lines)
    print(hashlib.sha256(repr((content.data, text)).encode()).hexdigest())
"""


@pytest.mark.promise("build.deterministic")
def test_another_process_with_other_hashes_gives_the_same_bytes() -> None:
    def digests(seed: str) -> list[str]:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
        done = subprocess.run(
            [sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    one, other = digests("1"), digests("2")

    assert one == other
    assert one[1] == one[2]


# ---- every input builds


@pytest.mark.parametrize("day", [date.min, date(2000, 2, 29), date.max])
@pytest.mark.promise("graph.total")
def test_any_day_of_the_calendar_can_be_the_as_of_date(day: date) -> None:
    draft = drafted(a_project(tasks=[a_task(due_at="2026-11-21 00:00:00+00")]), as_of=day)

    content = render(draft, handles_of(draft), count)

    assert text_of(content, 250).endswith(f"as of {day.isoformat()}\n")


@pytest.mark.promise("graph.total")
def test_ids_in_several_tables_build_one_line_each() -> None:
    rows = a_project(
        tasks=[a_task("x")],
        goals=[a_goal("x"), a_goal("g")],
        risks=[a_row("risk", PROJECT_ID)],
        edges=[an_edge("project", "has_goal", "x"), an_edge("g", "relates_to", "x")],
    )

    said = parsed(written(rows).text)

    assert [each.handle for each in said if each.form == "entity"] == ["G1", "T1"]


@pytest.mark.promise("graph.total", "graph.caps", "lines.budget")
def test_a_hundred_thousand_entities_and_edges_build() -> None:
    rows = a_big_project(100_000, 100_000)

    content = rendered(rows)

    fitted = fit(content.lines, content.always, 1500)
    assert count(fitted.text) == fitted.tokens <= 1500
    graph, coverage = content.data["graph"], content.data["coverage"]["kinds"]
    assert len(graph["nodes"]) == 60
    assert len(graph["edges"]) <= 80
    assert "nodes" in graph["capped_by"]
    assert sum(graph["omitted"].values()) == sum(counts["reachable"] for counts in coverage.values()) - 59
    assert sum(counts["total"] for counts in coverage.values()) == 100_000
    assert len(orjson.dumps(content.data)) < 1_000_000


@pytest.mark.promise("build.deterministic")
def test_a_bundle_says_when_and_where_its_dates_are_true() -> None:
    content = rendered(a_project())

    assert content.data["as_of"] == TODAY.isoformat()
    assert content.data["zone"] == UTC.key
    assert drafted(a_project()).valid_until.isoformat() == "2026-11-22T00:00:00+00:00"

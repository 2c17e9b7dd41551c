"""The document of a brief: what presses first, what is new, and what the next brief compares with."""

import json
import zlib
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from briefs import NOON, Made, accounts, an_account, as_one, brief
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    PROJECT_ID,
    TODAY,
    ZONES,
    a_goal,
    a_milestone,
    a_project,
    a_risk,
    a_task,
    an_edge,
    projects,
    shuffled,
    uid,
)

from foreword.brief import ITEMS, PRIORITIES, SECTION_ITEMS, SECTIONS, Document, pack, reason, unpack, worded
from foreword.digest import Before
from foreword.errors import BadInput
from foreword.rows import ProjectRows

MERGED = ("today", "upcoming", "wins")
ATTENTION = ("overdue", "blocked", "at_risk", "risks", "cycles")
CHANGES = ("newly_overdue", "newly_done", "slipped", "new_risks")


def lists_of(document: Document) -> dict[str, Document]:
    """The lists over all projects, by name."""
    return (
        {name: document[name] for name in MERGED}
        | {name: document["attention"][name] for name in ATTENTION}
        | {name: document["changes"][name] for name in CHANGES}
    )


def yesterday(*rows: ProjectRows) -> Made:
    return brief(*rows, now=NOON - timedelta(days=1))


# ---- totals and lists


@given(accounts, st.sampled_from(ZONES))
@pytest.mark.promise("brief.totals")
def test_totals_are_the_sums_of_the_projects(account: list[ProjectRows], zone: Any) -> None:
    made = brief(*account, zone=zone)

    counts: Counter[str] = Counter()
    for each in made.parts:
        counts.update(each.digest.counts)
    totals = made.document["totals"]
    assert totals["projects"] == len(account)
    for name in totals.keys() - {"projects", "goals", "milestones"}:
        assert totals[name] == counts[name]
    assert totals["goals"]["live"] == sum(totals["goals"][s] for s in ("on_track", "at_risk", "behind"))
    for kind, status in (("goals", "behind"), ("goals", "at_risk"), ("milestones", "missed")):
        assert totals[kind][status] == counts[f"{kind}_{status}"]


@given(accounts)
@pytest.mark.promise("brief.totals")
def test_lists_are_capped_and_their_totals_are_not(account: list[ProjectRows]) -> None:
    document = brief(*account, previous=yesterday(*account)).document

    for name, found in lists_of(document).items():
        assert found["total"] == sum(section["counts"][name] for section in document["projects"]) + sum(
            each.digest.counts[name]
            for each in brief(*account, previous=yesterday(*account)).parts
            if each.digest.project_id in {quiet["id"] for quiet in document["quiet"]["items"]}
        )
        assert len(found["items"]) == min(found["total"], ITEMS)
    for section in document["projects"]:
        for found in (value for value in section.values() if isinstance(value, dict) and "items" in value):
            assert len(found["items"]) == min(found["total"], SECTION_ITEMS)


@given(accounts)
@pytest.mark.promise("brief.totals")
def test_a_list_over_projects_is_the_list_over_all_at_once(account: list[ProjectRows]) -> None:
    before = yesterday(*account)
    merged = lists_of(brief(*account, previous=before).document)
    together = Made(
        at=before.at,
        document=before.document,
        parts=before.parts,
        known=replace(before.known, projects=frozenset({PROJECT_ID})),
    )
    at_once = lists_of(brief(as_one(account), previous=together).document)

    for name, found in merged.items():
        assert found["total"] == at_once[name]["total"]
        assert [item["id"] for item in found["items"]] == [item["id"] for item in at_once[name]["items"]]


@given(accounts, st.integers(0, 99))
@pytest.mark.promise("build.deterministic")
def test_neither_the_order_of_rows_nor_of_parts_matters(account: list[ProjectRows], seed: int) -> None:
    before = yesterday(*account)
    made = brief(*account, previous=before)
    again = brief(*(shuffled(rows, seed) for rows in account), previous=before)

    assert again.document == made.document
    assert pack(again.known) == pack(made.known)


@given(accounts)
@pytest.mark.promise("brief.totals")
def test_every_project_has_a_section_or_a_line(account: list[ProjectRows]) -> None:
    document = brief(*account, previous=yesterday(*account)).document

    told = [each["id"] for each in (*document["projects"], *document["quiet"]["items"])]
    assert sorted(told) == sorted(rows.project_id for rows in account)


@given(accounts)
@pytest.mark.promise("brief.document")
def test_a_document_is_json(account: list[ProjectRows]) -> None:
    document = brief(*account, previous=yesterday(*account)).document

    assert json.loads(json.dumps(document, allow_nan=False)) == document


@pytest.mark.promise("brief.totals")
def test_of_very_many_projects_the_most_pressing_are_told_whole() -> None:
    account = an_account({f"p{n:02}": 1 + n % 7 for n in range(SECTIONS + 10)}, due_at="2026-11-20 00:00:00+00")

    document = brief(*account).document

    sizes = [section["counts"]["overdue"] for section in document["projects"]]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == SECTIONS + 10
    shown = [bool(section["overdue"]["items"]) for section in document["projects"]]
    assert shown == [True] * SECTIONS + [False] * 10
    assert all(section["overdue"]["total"] for section in document["projects"])


@pytest.mark.promise("brief.totals")
def test_quiet_projects_are_counted_and_the_first_are_named() -> None:
    account = an_account({f"p{n:02}": 2 for n in range(SECTIONS + 5)})

    document = brief(*account).document

    assert document["quiet"]["total"] == SECTIONS + 5
    assert len(document["quiet"]["items"]) == SECTIONS
    assert {each["open"] for each in document["quiet"]["items"]} == {2}
    assert document["projects"] == []


@pytest.mark.parametrize("name", ["slipped", "new_risks"])
@pytest.mark.promise("brief.totals")
def test_a_project_of_which_anything_is_told_is_not_quiet(name: str) -> None:
    old = a_project(tasks=[a_task("t", due_at="2027-01-01 00:00:00+00")], risks=[a_risk("old")])
    new = a_project(
        tasks=[a_task("t", due_at="2027-02-01 00:00:00+00")] if name == "slipped" else [a_task("t")],
        risks=[a_risk("old"), *([a_risk("new")] if name == "new_risks" else [])],
    )

    document = brief(new, previous=yesterday(old)).document

    assert document["changes"][name]["total"] == 1
    assert [section["id"] for section in document["projects"]] == [PROJECT_ID]


@pytest.mark.promise("brief.document")
def test_an_account_without_projects_has_a_brief() -> None:
    document = brief().document

    assert document["totals"]["projects"] == document["totals"]["open"] == 0
    assert document["priorities"] == document["projects"] == document["hints"] == []


@pytest.mark.promise("brief.document")
def test_what_went_away_meanwhile_is_named() -> None:
    assert brief(gone=["Net loft"]).document["gone"] == ["Net loft"]


# ---- priority actions


@given(accounts)
@pytest.mark.promise("brief.priorities")
def test_actions_are_few_and_nothing_blocked_is_among_them(account: list[ProjectRows]) -> None:
    made = brief(*account)

    actions = made.document["priorities"]
    candidates = sum(each.digest.lists["candidates"].total for each in made.parts)
    assert len(actions) == min(PRIORITIES, candidates)
    assert not any(action.get("blocked") for action in actions)
    assert {action["kind"] for action in actions} <= {"task", "milestone"}
    assert all(action["reason"] for action in actions)
    assert len({action["id"] for action in actions}) == len(actions)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=5), st.integers(0, 9))
@pytest.mark.promise("brief.priorities")
def test_at_most_three_of_one_project_while_others_have_some(sizes: list[int], seed: int) -> None:
    account = an_account(
        {f"p{seed}{n}": size for n, size in enumerate(sizes)}, due_at="2026-11-20 00:00:00+00", priority=2
    )

    actions = brief(*account).document["priorities"]

    taken = Counter(action["project_id"] for action in actions)
    assert len(actions) == min(PRIORITIES, sum(sizes))
    for n, size in enumerate(sizes):
        own = taken[uid(f"p{seed}{n}")]
        others_left = sum(sizes) - size - (len(actions) - own)
        assert own <= 3 or others_left == 0


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"days_late": 1}, "1 day late"),
        ({"days_late": 9, "priority": 1}, "9 days late, priority 1"),
        ({"due": "2026-11-21"}, "due today"),
        ({"due": "2026-11-22"}, "due tomorrow"),
        ({"due": "2026-11-28", "state": "in_progress"}, "due in 7 days, in progress"),
        ({"start": "2026-11-21", "due": "2026-11-22"}, "due tomorrow"),
        ({"start": "2026-11-24"}, "starts in 3 days"),
        ({"start": "2026-11-21", "due": "2027-11-21"}, "starts today"),
        ({"start": "2026-12-21", "due": "2027-11-21"}, "due in 365 days"),
        ({"start": "2026-11-24", "due": "2026-11-01"}, "starts in 3 days"),
        ({"frees": 1}, "the last thing that another task waits for"),
        ({"frees": 3, "priority": 5}, "frees 3 tasks"),
        ({}, "open"),
    ],
)
@pytest.mark.promise("brief.priorities")
def test_an_action_says_why_it_comes_first(item: dict[str, Any], said: str) -> None:
    assert reason(item, TODAY) == said


@pytest.mark.promise("brief.priorities")
def test_a_task_that_starts_today_and_is_due_much_later_says_that_it_starts() -> None:
    account = a_project(tasks=[a_task("t", start_at="2026-11-21 00:00:00+00", due_at="2027-11-21 00:00:00+00")])

    actions = brief(account).document["priorities"]

    assert [action["reason"] for action in actions] == ["starts today"]


# ---- since the previous brief


@pytest.mark.promise("brief.difference")
def test_what_became_of_the_actions_of_yesterday() -> None:
    names = ("done", "over", "put off", "still", "deleted")
    old = a_project(tasks=[a_task(n, title=n, due_at="2026-11-19 00:00:00+00") for n in names])
    new = a_project(
        tasks=[
            a_task("done", state_key="done"),
            a_task("over", state_key="cancelled"),
            a_task("put off", due_at="2026-12-19 00:00:00+00"),
            a_task("still", due_at="2026-11-19 00:00:00+00"),
        ]
    )

    changes = brief(new, previous=yesterday(old)).document["changes"]

    became = {action["title"]: action["became"] for action in changes["priorities"]}
    assert became == {"done": "done", "over": "finished", "put off": "slipped", "still": "open", "deleted": "gone"}


@pytest.mark.promise("brief.difference")
def test_the_actions_of_a_project_that_the_brief_is_not_about_any_more_are_not_called_gone() -> None:
    account = an_account({"one": 1}, due_at="2026-11-20 00:00:00+00")

    changes = brief(previous=yesterday(*account)).document["changes"]

    assert [action["became"] for action in changes["priorities"]] == ["left"]


@given(accounts)
@pytest.mark.promise("brief.difference")
def test_between_briefs_of_one_instant_nothing_is_new(account: list[ProjectRows]) -> None:
    first = brief(*account)

    changes = brief(*account, previous=first).document["changes"]

    assert [changes[name]["total"] for name in ("newly_overdue", "slipped", "new_risks")] == [0, 0, 0]
    assert [a["id"] for a in changes["priorities"]] == [a["id"] for a in first.document["priorities"]]
    assert {a["became"] for a in changes["priorities"]} <= {"open"}


@pytest.mark.promise("brief.difference")
def test_without_a_previous_brief_there_is_no_difference() -> None:
    changes = brief(a_project(tasks=[a_task("t", due_at="2026-11-20 00:00:00+00")])).document["changes"]

    assert changes["since"] is None
    assert [changes[name]["total"] for name in CHANGES] == [0, 0, 0, 0]
    assert changes["priorities"] == []


@pytest.mark.promise("brief.difference")
def test_a_risk_of_a_new_project_is_not_new() -> None:
    old, new = an_account({"old": 1}), a_project(risks=[a_risk()])

    changes = brief(*old, new, previous=yesterday(*old)).document["changes"]

    assert changes["new_risks"]["total"] == 0


# ---- what the next brief compares with


@given(accounts)
@pytest.mark.promise("brief.known")
def test_what_is_known_is_packed_and_unpacked(account: list[ProjectRows]) -> None:
    found = brief(*account).known

    assert unpack(pack(found)) == found


@given(projects(), st.binary(max_size=60), st.integers(0, 10_000), st.integers(0, 255))
@pytest.mark.promise("brief.known")
def test_damage_is_bad_input(rows: ProjectRows, junk: bytes, at: int, byte: int) -> None:
    whole = pack(brief(rows).known)
    at %= len(whole)
    damaged = [junk, whole[:at], whole[:at] + bytes([whole[at] ^ (byte or 1)]) + whole[at + 1 :]]

    for stored in damaged:
        with pytest.raises(BadInput):
            unpack(stored)


@pytest.mark.parametrize("said", [
    "null", "[]", "1", '"text"', "{}", '{"date": "2026-11-21"}', "[" * 100_000,
    '{"date": 5, "projects": [], "open": [], "risks": [], "due": {}, "priorities": []}',
    '{"date": "yesterday", "projects": [], "open": [], "risks": [], "due": {}, "priorities": []}',
    '{"date": "2026-11-21", "projects": [[]], "open": [], "risks": [], "due": {}, "priorities": []}',
    '{"date": "2026-11-21", "projects": [], "open": 7, "risks": [], "due": {}, "priorities": []}',
    '{"date": "2026-11-21", "projects": [], "open": [], "risks": [], "due": [], "priorities": []}',
    '{"date": "2026-11-21", "projects": [], "open": [], "risks": [], "due": null, "priorities": []}',
    '{"date": "2026-11-21", "projects": [], "open": [], "risks": [], "due": {}, "priorities": null}',
    '{"date": "2026-11-21", "projects": [], "open": [], "risks": [], "due": {}, "priorities": [1]}',
    '{"date": "2026-11-21", "projects": [], "open": [], "risks": [], "due": {}, "priorities": [{}]}',
])  # fmt: skip
@pytest.mark.promise("brief.known")
def test_another_document_is_bad_input(said: str) -> None:
    with pytest.raises(BadInput):
        unpack(zlib.compress(said.encode()))


@pytest.mark.promise("brief.known")
def test_what_is_known_takes_some_tens_of_bytes_a_task() -> None:
    random = Random(1)
    ids = [f"{random.getrandbits(128):032x}" for _ in range(2000)]
    found = Before(
        date=TODAY, projects=frozenset({"p"}), open=frozenset(ids), due=dict.fromkeys(ids[:1000], "2026-11-21")
    )

    assert len(pack(found)) < 40 * len(ids)


# ---- words


@pytest.mark.promise("brief.document")
def test_words_are_put_where_they_belong_and_nothing_else_changes() -> None:
    account = an_account({"one": 1, "two": 1}, due_at="2026-11-20 00:00:00+00")
    document = brief(*account).document
    said, own = {"text": "All.", "words": "model", "why": None}, {"text": "One.", "words": "model", "why": None}

    found = worded(document, said, {uid("one"): own})

    assert found["summary"] == said
    assert {s["id"]: s["narrative"]["text"] for s in found["projects"]} == {uid("one"): "One.", uid("two"): ""}
    assert document["summary"]["text"] == ""
    plain = {key: value for key, value in found.items() if key not in {"summary", "projects"}}
    assert plain == {key: document[key] for key in plain}


@pytest.mark.promise("brief.totals")
def test_hints_say_what_the_data_lacks() -> None:
    rows = a_project(
        tasks=[a_task("loose"), a_task("a"), a_task("b"), a_task("old", state_key="in_progress")],
        goals=[a_goal("idle"), a_goal("idle too")],
        milestones=[a_milestone()],
        edges=[
            an_edge("a", "depends_on", "b"),
            an_edge("b", "depends_on", "a"),
            an_edge("project", "has_task", "old"),
        ],
    )

    assert brief(rows).document["hints"] == [
        "1 task is linked to nothing",
        "2 goals have no task or plan",
        "2 tasks wait for themselves through others",
        "1 task in progress was not touched for a week",
    ]

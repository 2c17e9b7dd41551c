"""A project's part in a brief: true totals, lists that hold what the rules say, and what is new."""

from dataclasses import replace
from datetime import UTC as ZULU
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from briefs import NOON, digest_of, ids_of
from hypothesis import given
from hypothesis import strategies as st
from rules import by_the_rules, cells, circular, due_days, is_open, local
from strategies import (
    ODD_TIMES,
    PROJECT_ID,
    TODAY,
    ZONES,
    a_goal,
    a_milestone,
    a_plan,
    a_project,
    a_risk,
    a_row,
    a_task,
    an_edge,
    projects,
    reading,
    shuffled,
    tasks_of_goal,
    uid,
)

from foreword.brief import window_of
from foreword.digest import LISTED, Before, Digest, Window
from foreword.rows import ProjectRows

YESTERDAY = TODAY - timedelta(days=1)
LISTS_OF_TASKS = {
    "overdue": "overdue",
    "today": "today",
    "upcoming": "soon",
    "blocked": "blocked",
    "unblocking": "unblocking",
    "in_progress": "in_progress",
    "stale": "stale",
}
"""Lists of a digest, and what the rules call them."""


def membership(rows: ProjectRows, zone: ZoneInfo) -> dict[str, set[str]]:
    """Who belongs into which list, by the rules."""
    known, found = cells(rows), by_the_rules(rows, zone)
    opened = {i for i, entity in known.items() if is_open(entity)}

    def of(kind: str) -> set[str]:
        return {i for i in opened if known[i]["kind"] == kind}

    tasks = of("task")
    waits = {(who, whom) for who, whom in reading(rows).waits() if {who, whom} <= tasks}
    return {
        **{name: tasks & found[rule] for name, rule in LISTS_OF_TASKS.items()},
        "goals": of("goal"),
        "milestones": of("milestone") & due_days(rows, zone).keys(),
        "at_risk": (of("goal") | of("milestone")) & (found["overdue"] | found["at_risk"]),
        "risks": of("risk"),
        "cycles": {i for i in tasks if circular(i, waits)},
    }


def before(rows: ProjectRows | None = None, **more: Any) -> Before:
    """What a brief of yesterday knew, of the project if it was about it."""
    known = {"projects": frozenset({PROJECT_ID})}
    if rows is not None:
        found = digest_of(rows, as_of=YESTERDAY)
        known |= {"open": found.open, "due": found.due, "risks": found.risks}  # type: ignore[dict-item]
    return Before(date=YESTERDAY, **{**known, **more})


def day_of(name: str, **cells: Any) -> Digest:
    """The digest of one task and nothing else."""
    return digest_of(a_project(tasks=[a_task(name, **cells)]))


# ---- totals and lists


@given(projects(), st.sampled_from(ZONES))
@pytest.mark.promise("brief.facts", "graph.total")
def test_lists_hold_what_the_rules_say_in_any_zone(rows: ProjectRows, zone: ZoneInfo) -> None:
    found = digest_of(rows, zone=zone)

    for name, expected in membership(rows, zone).items():
        assert found.lists[name].total == found.counts[name] == len(expected), name
        assert set(ids_of(found, name)) <= expected, name


@given(projects(), st.sampled_from(ZONES))
@pytest.mark.promise("brief.facts")
def test_goals_and_milestones_stand_as_their_days_say(rows: ProjectRows, zone: ZoneInfo) -> None:
    known, due = cells(rows), due_days(rows, zone)
    opened = {i for i, entity in known.items() if is_open(entity)}
    week = (TODAY + timedelta(days=7)).isoformat()

    found = digest_of(rows, zone=zone)

    for name, past in (("goal", "behind"), ("milestone", "missed")):
        those = {i for i in opened if known[i]["kind"] == name}
        late = {i for i in those if due.get(i, "9") < TODAY.isoformat()}
        soon = {i for i in those - late if due.get(i, "99") <= week}
        assert found.counts[f"{name}s_{past}"] == len(late)
        assert found.counts[f"{name}s_at_risk"] == len(soon)
    live = {i for i in opened if known[i]["kind"] == "goal" and known[i]["state_key"] != "draft"}
    statuses = ("on_track", "at_risk", "behind")
    assert sum(found.counts[f"goals_{status}"] for status in statuses) == len(live)


@given(projects())
@pytest.mark.promise("brief.facts")
def test_progress_is_the_tasks_done_of_those_that_support_a_goal(rows: ProjectRows) -> None:
    known, read = cells(rows), reading(rows)

    found = digest_of(rows)

    for _, goal in found.lists["goals"].items:
        tasks = tasks_of_goal(read, goal["id"])
        done = {i for i in tasks if known[i]["state_key"] in {"done", "completed"}}
        assert (goal.get("done"), goal.get("tasks")) == ((len(done), len(tasks)) if tasks else (None, None))


@pytest.mark.promise("brief.facts")
def test_a_cancelled_task_is_finished_and_no_progress() -> None:
    states = {"plain": "done", "of the plan": "completed", "cancelled": "cancelled", "open": "todo"}
    rows = a_project(
        goals=[a_goal("g")],
        plans=[a_plan("p")],
        tasks=[a_task(name, state_key=state) for name, state in states.items()],
        edges=[
            an_edge("plain", "supports_goal", "g"),
            an_edge("g", "achieved_by", "p"),
            an_edge("of the plan", "belongs_to_plan", "p"),
            an_edge("cancelled", "supports", "g"),
            an_edge("g", "has_task", "open"),
        ],
    )

    found = digest_of(rows)

    assert [(item["done"], item["tasks"]) for _, item in found.lists["goals"].items] == [(2, 4)]
    assert found.counts["open"] == 1


@given(projects())
@pytest.mark.promise("brief.totals")
def test_a_list_is_capped_and_its_total_is_not(rows: ProjectRows) -> None:
    found = digest_of(rows, before=before(risks=frozenset()))

    for listed in found.lists.values():
        keys = [key for key, _ in listed.items]
        assert len(listed.items) == min(listed.total, LISTED)
        assert keys == sorted(keys)
        assert len({item["id"] for _, item in listed.items}) == len(keys)


@pytest.mark.promise("brief.totals")
def test_of_many_tasks_a_few_are_listed_and_all_are_counted() -> None:
    late = [a_task(f"t{n}", due_at="2026-11-01 00:00:00+00") for n in range(3 * LISTED)]

    found = digest_of(a_project(tasks=late))

    assert found.lists["overdue"].total == found.counts["overdue"] == found.counts["open"] == 3 * LISTED
    assert len(found.lists["overdue"].items) == LISTED
    assert len(found.open) == 3 * LISTED


@given(projects(), st.integers(0, 99))
@pytest.mark.promise("build.deterministic")
def test_the_same_rows_in_any_order_give_the_same_digest(rows: ProjectRows, seed: int) -> None:
    known = before(risks=frozenset())

    assert digest_of(rows, before=known) == digest_of(shuffled(rows, seed), before=known)


@given(projects())
@pytest.mark.promise("brief.totals")
def test_all_that_is_shown_or_waited_for_is_named(rows: ProjectRows) -> None:
    found = digest_of(rows)

    items = [item for listed in found.lists.values() for _, item in listed.items]
    wanted = {item["id"] for item in items} | {i for item in items for i in item.get("waits_for", ())}
    assert wanted | {PROJECT_ID} == found.named.keys()


@pytest.mark.promise("brief.facts")
def test_a_task_that_is_blocked_in_every_way_is_counted_once() -> None:
    rows = a_project(
        tasks=[a_task("t", state_key="blocked", due_at="2026-11-01 00:00:00+00"), a_task("a"), a_task("b")],
        edges=[an_edge("t", "depends_on", "a"), an_edge("b", "blocks", "t"), an_edge("t", "blocked_by", "b")],
    )

    found = digest_of(rows)

    assert {name: found.counts[name] for name in ("open", "overdue", "blocked")} == {
        "open": 3,
        "overdue": 1,
        "blocked": 1,
    }
    assert found.lists["candidates"].total == 0
    (_, item), *_ = found.lists["blocked"].items
    assert (item["waits"], item["waits_for"]) == (2, sorted([uid("a"), uid("b")]))


@pytest.mark.parametrize("state", ["draft", "achieved", "abandoned"])
@pytest.mark.promise("brief.facts")
def test_a_goal_that_is_not_live_is_never_behind(state: str) -> None:
    found = digest_of(a_project(goals=[a_goal("g", state_key=state, target_date="2026-01-01 00:00:00+00")]))

    assert not any(found.counts[f"goals_{status}"] for status in ("on_track", "at_risk", "behind"))
    assert found.lists["at_risk"].total == 0
    assert [item["status"] for _, item in found.lists["goals"].items] == (["draft"] if state == "draft" else [])


@pytest.mark.promise("brief.facts")
def test_in_a_cycle_nobody_unblocks_and_the_cycle_is_listed() -> None:
    rows = a_project(
        tasks=[a_task(name) for name in ("a", "b", "outside")],
        edges=[
            an_edge("a", "depends_on", "b"),
            an_edge("b", "depends_on", "a"),
            an_edge("outside", "requires", "a"),
        ],
    )

    found = digest_of(rows)

    assert set(ids_of(found, "cycles")) == {uid("a"), uid("b")}
    assert found.lists["unblocking"].total == 0


@pytest.mark.promise("brief.facts")
def test_who_unblocks_says_how_many_it_frees() -> None:
    rows = a_project(
        tasks=[
            *(a_task(name) for name in ("first", "one", "two", "both", "other")),
            a_task("over", state_key="done"),
        ],
        edges=[an_edge(name, "depends_on", "first") for name in ("one", "two", "both", "over")]
        + [an_edge("both", "depends_on", "other")],
    )

    found = digest_of(rows)

    assert [(item["id"], item["frees"]) for _, item in found.lists["unblocking"].items] == [(uid("first"), 2)]


# ---- times


@pytest.mark.parametrize("odd", [time for time in ODD_TIMES if time is not None])
@pytest.mark.parametrize("column", ["due_at", "start_at", "completed_at", "updated_at"])
@pytest.mark.parametrize("zone", ZONES, ids=str)
@pytest.mark.promise("brief.one-line")
def test_a_time_that_is_none_costs_its_own_line_only(odd: str, column: str, zone: ZoneInfo) -> None:
    whole = [a_task(f"t{n}", due_at="2026-11-20 10:00:00+00", state_key="in_progress") for n in range(3)]
    tasks = [*whole, a_task("odd", **{"title": "odd", column: odd})]

    found, without = (digest_of(a_project(tasks=rows), zone=zone) for rows in (tasks, whole))

    for name, listed in without.lists.items():
        shown = [item for _, item in found.lists[name].items if item["id"] != uid("odd")]
        assert shown == [item for _, item in listed.items]


@pytest.mark.parametrize(
    "odd", ["2026-02-30 00:00:00+00", "2026-13-45 10:00:00+00", "TBD - as soon as we can", "20261"]
)
@pytest.mark.parametrize("column", ["due_at", "start_at", "completed_at", "updated_at"])
@pytest.mark.parametrize("zone", ZONES, ids=str)
@pytest.mark.promise("brief.one-line")
def test_a_text_in_a_column_of_times_costs_its_own_line_only(odd: str, column: str, zone: ZoneInfo) -> None:
    first = a_task("first", **{"title": "first", column: odd})
    rows = a_project(tasks=[first, a_task("waits")], edges=[an_edge("waits", "depends_on", "first")])

    found = digest_of(rows, zone=zone)

    assert found.counts["open"] == 2
    assert found.counts["blocked"] == found.counts["unblocking"] == 1
    assert digest_of(rows, zone=zone, before=before(due={uid("first"): "2026-01-01"})).counts["slipped"] == 0


@pytest.mark.parametrize("zone", ZONES, ids=str)
@pytest.mark.promise("brief.facts")
def test_a_date_without_a_time_is_that_day_everywhere(zone: ZoneInfo) -> None:
    found = digest_of(a_project(tasks=[a_task("t", due_at="2026-11-21 00:00:00+00")]), zone=zone)

    assert found.counts["today"] == 1
    assert found.counts["overdue"] == 0
    assert [item["due"] for _, item in found.lists["today"].items] == ["2026-11-21"]


WINDOW = Window(
    now=datetime(2026, 11, 21, 9, 0, 0, 500_000, ZULU),
    changed=datetime(2026, 11, 20, 9, tzinfo=ZULU),
    done=datetime(2026, 11, 20, 9, tzinfo=ZULU),
)


@pytest.mark.parametrize(
    ("at", "recent"),
    [
        ("2026-11-20 08:59:59.999999+00", False),
        ("2026-11-20 09:00:00+00", True),
        ("2026-11-20 09:00:00", True),
        ("2026-11-20 09:00:00.000001+00", True),
        ("2026-11-21 09:00:00+00", True),
        ("2026-11-21 09:00:00.5+00", True),
        ("2026-11-21 09:00:00.500001+00", False),
        ("2026-11-21 09:00:01+00", False),
        ("2026-11-22 00:00:00+00", False),
        ("2026-11-21 00:00:00+00", True),
        ("2026-11-20 00:00:00+00", True),
        ("2026-11-20", True),
        ("2026-11-19 00:00:00+00", False),
        ("infinity", False),
        ("-infinity", False),
        ("0044-03-15 00:00:00+00 BC", False),
        ("12026-11-21 00:00:00+00", False),
    ],
)
@pytest.mark.promise("brief.facts")
def test_recent_is_from_the_window_on_to_now(at: str, recent: bool) -> None:  # noqa: FBT001
    rows = a_project(
        tasks=[a_task("t", state_key="done", completed_at=at), a_task("touched", updated_at=at)],
        decisions=[a_row("decision", uid("d"), decision_at=at)],
        signals=[a_row("signal", uid("s"), ts=at)],
        goals=[a_goal("g", state_key="achieved", completed_at=at)],
    )

    found = digest_of(rows, window=WINDOW)

    expected = 1 if recent else 0
    assert [found.counts[name] for name in ("done", "wins", "decisions", "changed")] == [
        expected * n for n in (1, 2, 1, 2)
    ]


@given(projects(), st.sampled_from(ZONES))
@pytest.mark.promise("brief.facts")
def test_what_changed_was_touched_in_the_last_day_in_any_zone(rows: ProjectRows, zone: ZoneInfo) -> None:
    instant = NOON - timedelta(days=1)

    def recent(stored: str | None) -> bool:
        if local(stored, zone) is None:
            return False
        moment = datetime.fromisoformat(str(stored))
        if moment.time() == datetime.min.time():
            return instant.astimezone(zone).date() <= moment.date() <= NOON.astimezone(zone).date()
        return instant <= moment <= NOON

    touched = {"signal": "ts", "insight": "created_at"}
    expected = {i for i, each in cells(rows).items() if recent(each[touched.get(each["kind"], "updated_at")])}

    found = digest_of(rows, zone=zone)

    assert found.lists["changed"].total == len(expected)
    assert set(ids_of(found, "changed")) <= expected


# ---- since the previous brief


@pytest.mark.parametrize(("at", "open_then", "is_done"), [
    ("2026-11-21 08:00:00+00", True, True),
    ("2026-11-21 08:00:00+00", False, True),
    ("2026-11-01 08:00:00+00", False, False),
    (None, True, True),
    (None, False, False),
    ("infinity", True, True),
    ("infinity", False, False),
])  # fmt: skip
@pytest.mark.promise("brief.facts")
def test_done_is_by_the_time_on_record_else_by_what_was_open(
    at: str | None,
    open_then: bool,  # noqa: FBT001
    is_done: bool,  # noqa: FBT001
) -> None:
    rows = a_project(tasks=[a_task("t", state_key="done", completed_at=at)])
    then = before(open=frozenset({uid("t")} if open_then else ()))

    found = digest_of(rows, before=then)

    assert found.counts["done"] == found.counts["newly_done"] == found.counts["wins"] == int(is_done)


@pytest.mark.promise("brief.difference")
def test_without_a_previous_brief_nothing_is_new() -> None:
    rows = a_project(
        tasks=[a_task("t", due_at="2026-11-01 00:00:00+00"), a_task("d", state_key="done", completed_at=None)],
        risks=[a_risk()],
    )

    found = digest_of(rows)

    assert not any(found.counts[name] for name in ("newly_overdue", "newly_done", "slipped", "new_risks", "done"))


@pytest.mark.promise("brief.difference")
def test_of_a_project_that_the_previous_brief_did_not_know_nothing_is_new() -> None:
    rows = a_project(
        tasks=[a_task("t", due_at="2026-11-01 00:00:00+00"), a_task("d", state_key="done", completed_at=None)],
        risks=[a_risk()],
    )
    then = before(projects=frozenset({uid("another")}), open=frozenset({uid("d")}), due={uid("t"): "2026-10-01"})

    found = digest_of(rows, before=then)

    assert not any(found.counts[name] for name in ("newly_overdue", "newly_done", "slipped", "new_risks", "done"))


@pytest.mark.parametrize(
    ("then", "now", "newly_overdue", "was"),
    [
        ("2026-11-20", "2026-11-20", True, None),
        ("2026-11-19", "2026-11-19", False, None),
        ("2026-11-19", "2026-11-20", False, "2026-11-19"),
        ("2026-11-25", "2026-11-18", True, None),
        (None, "2026-11-18", True, None),
        ("2026-11-20", "2026-11-21", False, "2026-11-20"),
        ("2026-11-21", "2026-11-20", True, None),
        ("2026-11-19", None, False, None),
        ("2026-11-25", "2027-11-25", False, "2026-11-25"),
    ],
)
@pytest.mark.promise("brief.difference")
def test_what_is_newly_overdue_and_what_was_put_off(
    then: str | None,
    now: str | None,
    newly_overdue: bool,  # noqa: FBT001
    was: str | None,
) -> None:
    old, new = (a_project(tasks=[a_task("t", due_at=day and f"{day} 00:00:00+00")]) for day in (then, now))

    found = digest_of(new, before=before(old))

    assert bool(found.lists["newly_overdue"].total) == newly_overdue
    assert [(item["was"], item["due"]) for _, item in found.lists["slipped"].items] == (
        [(was, now)] if was else []
    )


@pytest.mark.promise("brief.difference")
def test_a_risk_is_new_when_it_was_not_open_before() -> None:
    old = a_project(risks=[a_risk("old"), a_risk("again", state_key="closed"), a_risk("over")])
    new = a_project(risks=[a_risk("old"), a_risk("again"), a_risk("new"), a_risk("over", state_key="mitigated")])

    found = digest_of(new, before=before(old))

    assert set(ids_of(found, "new_risks")) == {uid("again"), uid("new")}


@pytest.mark.parametrize(("cells_", "became"), [
    ({"state_key": "done"}, "done"),
    ({"state_key": "completed"}, "done"),
    ({"state_key": "cancelled"}, "finished"),
    ({"due_at": "2026-11-30 00:00:00+00"}, "slipped"),
    ({"due_at": "2026-11-19 00:00:00+00"}, "open"),
    ({"due_at": None}, "open"),
    ({"state_key": "no state that anybody knows"}, "open"),
])  # fmt: skip
@pytest.mark.promise("brief.difference")
def test_what_became_of_an_action(cells_: dict[str, Any], became: str) -> None:
    rows = a_project(tasks=[a_task("t", **{"due_at": "2026-11-20 00:00:00+00", **cells_})])
    then = before(priorities=({"id": uid("t"), "due": "2026-11-20"}, {"id": uid("elsewhere")}))

    assert digest_of(rows, before=then).became == {uid("t"): became}


@pytest.mark.promise("brief.difference")
def test_a_milestone_that_was_put_first_is_followed_too() -> None:
    rows = a_project(milestones=[a_milestone("m", state_key="completed", completed_at="2026-11-21 08:00:00+00")])
    then = before(priorities=({"id": uid("m"), "due": "2026-11-20"},))

    found = digest_of(rows, before=then)

    assert found.became == {uid("m"): "done"}
    assert ids_of(found, "wins") == [uid("m")]


@given(projects(), projects())
@pytest.mark.promise("brief.difference", "graph.total")
def test_the_difference_of_any_two_days_is_that_of_their_facts(old: ProjectRows, new: ProjectRows) -> None:
    # Half of the entities are the same, in another state.
    entities = {
        name: [(*row[:1], *other[1:]) for row, other in zip(table, new.entities.get(name, ()), strict=False)]
        for name, table in old.entities.items()
    }
    new = replace(new, entities=entities)
    then = before(old)
    dues, opened = due_days(new, ZONES[0]), {i for i, each in cells(new).items() if is_open(each)}
    tasks = {i for i in opened if cells(new)[i]["kind"] == "task"}
    were = due_days(old, ZONES[0])
    known = {i for i, each in cells(old).items() if is_open(each) and each["kind"] == "task"}

    found = digest_of(new, before=then)

    late = {i for i in tasks if dues.get(i, "9") < TODAY.isoformat()}
    was_late = {i for i in known if were.get(i, "9") < YESTERDAY.isoformat()}
    assert found.lists["newly_overdue"].total == len(late - was_late)
    slipped = {i for i in tasks & known if i in were and dues.get(i, "") > were[i]}
    assert {item["id"] for _, item in found.lists["slipped"].items} == slipped
    assert then.open == known


@pytest.mark.promise("brief.facts")
def test_weeks_compare_with_weeks_and_absences_with_the_last_day() -> None:
    week_ago = NOON - timedelta(days=7)

    exactly = window_of(NOON, TODAY, week_ago, TODAY - timedelta(days=7))
    longer = window_of(NOON, TODAY, week_ago - timedelta(days=1), TODAY - timedelta(days=8))
    first = window_of(NOON, TODAY, None, None)

    assert (exactly.changed, exactly.done) == (week_ago, week_ago)
    assert (longer.changed, longer.done) == (NOON - timedelta(days=1), week_ago - timedelta(days=1))
    assert (first.changed, first.done) == (NOON - timedelta(days=1), NOON - timedelta(days=1))


@pytest.mark.parametrize("day", [date.min, date.min + timedelta(days=1), date.max])
@pytest.mark.promise("graph.total")
def test_the_first_and_last_days_of_the_calendar_have_digests(day: date) -> None:
    rows = a_project(tasks=[a_task("t", due_at=f"{day.isoformat()} 00:00:00+00"), a_task("u")])

    assert digest_of(rows, as_of=day).counts["today"] == 1

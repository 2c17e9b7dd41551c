"""What counts as overdue, due, blocked, unblocking: compared with the brief's rules, read one by one."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rules import WEEK, by_the_rules, cells, circular, due_days, is_open
from strategies import (
    ZONES,
    a_goal,
    a_milestone,
    a_project,
    a_row,
    a_task,
    an_edge,
    drafted,
    projects,
    reading,
    uid,
)

from foreword.buckets import Buckets, in_cycles
from foreword.rows import ProjectRows


def buckets_of(rows: ProjectRows, zone: ZoneInfo) -> Buckets:
    return drafted(rows, zone=zone).buckets


@given(projects(), st.sampled_from(ZONES))
@settings(max_examples=200)
@pytest.mark.promise("build.buckets", "graph.total")
def test_buckets_are_what_the_rules_say_in_any_zone(rows: ProjectRows, zone: ZoneInfo) -> None:
    found = buckets_of(rows, zone)

    for name, expected in by_the_rules(rows, zone).items():
        assert found.of(name) == expected, name


@given(projects())
@pytest.mark.promise("build.buckets")
def test_open_is_what_is_in_no_finished_state(rows: ProjectRows) -> None:
    known = cells(rows)

    found = buckets_of(rows, ZONES[0])

    assert found.open == {i for i, entity in known.items() if is_open(entity)}


@given(projects())
@pytest.mark.promise("build.buckets")
def test_who_is_open_waits_for_what_is_open(rows: ProjectRows) -> None:
    known = cells(rows)
    opened = {i for i, entity in known.items() if is_open(entity)}
    waits = {(who, whom) for who, whom in reading(rows).waits() if {who, whom} <= opened}

    found = buckets_of(rows, ZONES[0])

    assert {(who, whom) for who, all_of in found.waits_for.items() for whom in all_of} == waits
    assert {(who, whom) for whom, all_of in found.needed_by.items() for who in all_of} == waits
    for lists in (found.waits_for, found.needed_by):
        assert all(all_of and list(all_of) == sorted(set(all_of)) for all_of in lists.values())


@given(projects(), st.sampled_from(ZONES))
@pytest.mark.promise("build.buckets")
def test_due_is_the_local_date_of_what_is_open_and_can_be_late(rows: ProjectRows, zone: ZoneInfo) -> None:
    found = buckets_of(rows, zone).due

    assert found == due_days(rows, zone)


@pytest.mark.parametrize("zone", ZONES, ids=str)
@pytest.mark.promise("build.buckets")
def test_a_date_only_due_is_due_on_its_own_day_everywhere(zone: ZoneInfo) -> None:
    rows = a_project(tasks=[a_task("t", due_at="2026-11-21 00:00:00+00")])

    found = buckets_of(rows, zone)

    assert found.today == {uid("t")}
    assert found.overdue == frozenset()


@pytest.mark.parametrize(
    ("zone", "bucket"),
    [
        ("UTC", "today"),
        ("America/New_York", "overdue"),
        ("Pacific/Kiritimati", "today"),
        ("Asia/Kathmandu", "today"),
    ],
)
@pytest.mark.promise("build.buckets")
def test_a_due_with_a_time_is_due_on_the_wall_clock_of_the_zone(zone: str, bucket: str) -> None:
    rows = a_project(tasks=[a_task("t", due_at="2026-11-21 04:30:00+00")])

    assert buckets_of(rows, ZoneInfo(zone)).of(bucket) == {uid("t")}


@pytest.mark.parametrize(
    ("due", "start", "expected"),
    [
        ("2026-11-20", None, "overdue"),
        ("2026-11-20", "2026-11-21", "overdue"),
        ("2026-11-20", "2026-11-24", "overdue soon"),
        ("2026-11-24", "2026-11-21", "today soon"),
        ("2026-11-21", None, "today"),
        (None, "2026-11-21", "today"),
        ("2026-11-22", None, "soon"),
        ("2026-11-28", None, "soon"),
        (None, "2026-11-28", "soon"),
        ("2026-12-31", "2026-11-22", "soon"),
    ],
)
@pytest.mark.promise("build.buckets")
def test_a_task_is_in_the_buckets_of_its_days(due: str | None, start: str | None, expected: str) -> None:
    times = {"due_at": due and f"{due} 00:00:00+00", "start_at": start and f"{start} 00:00:00+00"}

    found = buckets_of(a_project(tasks=[a_task("t", **times)]), ZONES[0])

    assert {name for name in ("overdue", "today", "soon") if found.of(name)} == {*expected.split()}


@pytest.mark.parametrize("state", ["done", "cancelled", "archived", "completed", "closed"])
@pytest.mark.promise("build.buckets", "graph.open-first")
def test_what_is_finished_is_never_late_nor_blocked_nor_blocking(state: str) -> None:
    rows = a_project(
        tasks=[a_task("late", state_key=state, due_at="2026-01-01 00:00:00+00"), a_task("waits"), a_task("open")],
        edges=[an_edge("waits", "depends_on", "late"), an_edge("late", "depends_on", "open")],
    )

    found = buckets_of(rows, ZONES[0])

    assert found.overdue | found.blocked | found.unblocking == frozenset()


@pytest.mark.parametrize("state", ["achieved", "abandoned", "draft"])
@pytest.mark.promise("build.buckets")
def test_a_goal_that_is_over_or_not_yet_begun_is_never_behind(state: str) -> None:
    rows = a_project(goals=[a_goal("g", state_key=state, target_date="2026-01-01 00:00:00+00")])

    assert buckets_of(rows, ZONES[0]).overdue == frozenset()


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (None, None),
        ("2026-11-20", "overdue"),
        ("2026-11-21", "at_risk"),
        ("2026-11-28", "at_risk"),
        ("2026-11-29", None),
    ],
)
@pytest.mark.promise("build.buckets")
def test_the_status_of_a_goal_and_of_a_milestone_follows_from_its_day(
    target: str | None, status: str | None
) -> None:
    day = target and f"{target} 00:00:00+00"
    rows = a_project(goals=[a_goal("g", target_date=day)], milestones=[a_milestone("m", due_at=day)])

    found = buckets_of(rows, ZONES[0])

    for name in ("overdue", "at_risk"):
        assert found.of(name) == ({uid("g"), uid("m")} if name == status else set())


@pytest.mark.parametrize("state", ["achieved", "abandoned", "draft"])
@pytest.mark.promise("build.buckets")
def test_a_goal_that_is_over_or_not_yet_begun_is_never_at_risk(state: str) -> None:
    rows = a_project(goals=[a_goal("g", state_key=state, target_date="2026-11-22 00:00:00+00")])

    found = buckets_of(rows, ZONES[0])

    assert found.at_risk == frozenset()
    assert found.idle == ({uid("g")} if state == "draft" else set())


@pytest.mark.parametrize(
    ("touched", "stale"),
    [
        ("2026-11-13 10:00:00+00", True),
        ("2026-11-14 00:00:00+00", True),
        ("2026-11-14 23:59:59+00", True),
        ("2026-11-15 00:00:00+00", False),
        ("2026-11-21 10:00:00+00", False),
        ("infinity", False),
    ],
)
@pytest.mark.promise("build.buckets")
def test_work_in_progress_is_stale_from_seven_days_without_a_touch(touched: str, stale: bool) -> None:  # noqa: FBT001
    rows = a_project(
        tasks=[a_task("t", state_key="in_progress", updated_at=touched), a_task("idle", updated_at=touched)]
    )

    found = buckets_of(rows, ZONES[0])

    assert found.in_progress == {uid("t")}
    assert found.stale == ({uid("t")} if stale else set())


@pytest.mark.promise("build.buckets")
def test_seven_days_are_counted_on_the_wall_clock_of_the_zone() -> None:
    rows = a_project(tasks=[a_task("t", state_key="in_progress", updated_at="2026-11-15 04:00:00+00")])

    assert buckets_of(rows, ZoneInfo("UTC")).stale == frozenset()
    assert buckets_of(rows, ZoneInfo("America/New_York")).stale == {uid("t")}


@pytest.mark.parametrize("rel", ["has_task", "supports_goal", "references", "inspired_by"])
@pytest.mark.parametrize(("kind", "serves"), [("task", True), ("plan", True), ("risk", False), ("goal", False)])
@pytest.mark.promise("build.buckets")
def test_a_goal_is_idle_until_any_task_or_plan_is_linked_to_it(rel: str, kind: str, serves: bool) -> None:  # noqa: FBT001
    rows = a_project(edges=[an_edge("x", rel, "g"), an_edge("project", "has_goal", "g")])
    over: dict[str, Any] = {"state_key": "achieved"} if kind == "goal" else {}
    entities = {**rows.entities, "goal": [a_goal("g")]}
    entities[kind] = [*entities[kind], a_row(kind, uid("x"), **over)]
    rows = replace(rows, entities=entities)

    assert buckets_of(rows, ZONES[0]).idle == (set() if serves else {uid("g")})


@pytest.mark.promise("build.buckets", "graph.total")
def test_all_of_a_cycle_are_needed_and_none_is_ready() -> None:
    names = ("a", "b", "c")
    rows = a_project(
        tasks=[a_task(name, due_at="2026-11-25 00:00:00+00") for name in (*names, "free")],
        edges=[an_edge(who, "depends_on", whom) for who, whom in (("a", "b"), ("b", "c"), ("c", "a"))],
    )

    found = buckets_of(rows, ZONES[0])

    assert found.needed == found.blocked == {uid(name) for name in names}
    assert found.needed_by == {uid(whom): (uid(who),) for who, whom in (("a", "b"), ("b", "c"), ("c", "a"))}
    assert found.ready == {uid("free")}
    assert found.unblocking == frozenset()


@pytest.mark.parametrize("rel", ["depends_on", "requires", "blocked_by"])
@pytest.mark.promise("build.buckets")
def test_a_task_that_waits_for_an_open_one_is_blocked_and_the_other_unblocks(rel: str) -> None:
    rows = a_project(tasks=[a_task("waits"), a_task("first")], edges=[an_edge("waits", rel, "first")])

    found = buckets_of(rows, ZONES[0])

    assert found.blocked == {uid("waits")}
    assert found.unblocking == {uid("first")}
    assert found.waits_for == {uid("waits"): (uid("first"),)}


@pytest.mark.promise("build.buckets")
def test_a_task_that_waits_for_what_is_no_task_is_not_blocked_by_it() -> None:
    rows = a_project(tasks=[a_task("t")], goals=[a_goal("g")], edges=[an_edge("t", "depends_on", "g")])

    found = buckets_of(rows, ZONES[0])

    assert found.blocked == frozenset()
    assert found.waits_for == {uid("t"): (uid("g"),)}


@pytest.mark.promise("build.buckets")
def test_one_of_two_blockers_frees_nobody() -> None:
    rows = a_project(
        tasks=[a_task("waits"), a_task("one"), a_task("two")],
        edges=[an_edge("one", "blocks", "waits"), an_edge("waits", "requires", "two")],
    )

    assert buckets_of(rows, ZONES[0]).unblocking == frozenset()


@pytest.mark.promise("build.buckets", "graph.total")
def test_in_a_cycle_nobody_unblocks_but_who_stands_before_it_does() -> None:
    rows = a_project(
        tasks=[a_task(name) for name in ("a", "b", "c", "out", "before")],
        edges=[
            an_edge("a", "depends_on", "b"),
            an_edge("b", "depends_on", "c"),
            an_edge("c", "depends_on", "a"),
            an_edge("out", "depends_on", "a"),
            an_edge("before", "depends_on", "out"),
        ],
    )

    found = buckets_of(rows, ZONES[0])

    assert found.unblocking == {uid("out")}
    assert found.blocked == {uid(name) for name in ("a", "b", "c", "out", "before")}


nodes = st.integers(0, 7).map(str)


@given(st.dictionaries(nodes, st.sets(nodes)))
@settings(max_examples=300)
@pytest.mark.promise("build.buckets", "graph.total")
def test_those_in_cycles_are_those_who_wait_for_themselves(waiting: dict[str, set[str]]) -> None:
    waits = {(who, whom) for who, all_of in waiting.items() for whom in all_of}

    assert in_cycles(waiting) == {task for task in waiting if circular(task, waits)}


@pytest.mark.parametrize("length", [1, 2, 9, 40, 30_000])
@pytest.mark.promise("build.buckets", "graph.total")
def test_a_chain_of_any_length_is_no_cycle_until_it_is_closed(length: int) -> None:
    chain = {str(n): {str(n + 1)} for n in range(length)}

    assert in_cycles(chain) == set()
    assert in_cycles({**chain, str(length): {"0"}}) == {str(n) for n in range(length + 1)}
    assert in_cycles({**chain, str(length): {str(length)}}) == {str(length)}


@pytest.mark.parametrize("day", [date.min, date.min + timedelta(days=1), date.max - WEEK, date.max])
@pytest.mark.promise("graph.total")
def test_the_first_and_last_days_of_the_calendar_have_buckets(day: date) -> None:
    rows = a_project(
        tasks=[a_task("t", due_at=f"{day.isoformat()} 00:00:00+00")],
        signals=[a_row("signal", uid("s"), ts=f"{day.isoformat()} 12:00:00+00")],
    )

    found = drafted(rows, as_of=day).buckets

    assert found.today == {uid("t")}
    assert found.changed == {uid("s")}

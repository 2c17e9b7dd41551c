"""What counts as overdue, due, blocked, unblocking: compared with the brief's rules, read one by one."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import TODAY, ZONES, a_goal, a_project, a_row, a_task, an_edge, drafted, projects, reading, uid

from foreword.buckets import Buckets, in_cycles
from foreword.kinds import KINDS
from foreword.rows import ProjectRows

DONE = {"done", "completed", "achieved", "abandoned", "cancelled", "closed", "mitigated", "archived"}
DUE = {"task": "due_at", "goal": "target_date", "milestone": "due_at"}
TOUCHED = {"signal": "ts", "insight": "created_at"}
WEEK = timedelta(days=7)


def cells(rows: ProjectRows) -> dict[str, dict[str, Any]]:
    """Every entity's cells by name, and its kind."""
    return {
        row[0]: {
            "kind": kind,
            **{field.name: cell for field, cell in zip(KINDS.by_name[kind].light, row[1:], strict=True)},
        }
        for kind, table in rows.entities.items()
        for row in table
    }


def local(stored: str | None, zone: ZoneInfo) -> date | None:
    """The calendar date of a stored time, read slowly."""
    try:
        instant = datetime.strptime((stored or "").replace("+00", "+0000"), "%Y-%m-%d %H:%M:%S%z")
    except ValueError:
        try:
            instant = datetime.strptime((stored or "").replace("+00", "+0000"), "%Y-%m-%d %H:%M:%S.%f%z")
        except ValueError:
            return None
    try:
        return instant.date() if instant.time() == time.min else instant.astimezone(zone).date()
    except OverflowError:
        return None


def is_open(entity: Mapping[str, Any]) -> bool:
    finished = DONE | {"published"} if entity["kind"] == "output" else DONE
    return entity.get("state_key") not in finished


def by_the_rules(rows: ProjectRows, zone: ZoneInfo) -> dict[str, set[str]]:
    """The brief's table, each row of it one comprehension."""
    known = cells(rows)
    opened = {i for i, entity in known.items() if is_open(entity)}
    tasks = {i for i in opened if known[i]["kind"] == "task"}
    waits = {(who, whom) for who, whom in reading(rows).waits() if {who, whom} <= tasks}
    dated = {i for i in opened if known[i]["kind"] in DUE and not is_draft_goal(known[i])}
    due = {i: local(known[i][DUE[known[i]["kind"]]], zone) for i in dated}
    start = {i: local(known[i].get("start_at"), zone) for i in dated}
    overdue = {i for i in dated if (day := due[i]) is not None and day < TODAY}
    today = {i for i in dated if TODAY in (due[i], start[i])} - overdue
    within = {i for i in dated for day in (due[i], start[i]) if day is not None and TODAY < day <= TODAY + WEEK}
    touched = {i: local(e[TOUCHED.get(e["kind"], "updated_at")], zone) for i, e in known.items()}
    return {
        "overdue": overdue,
        "today": today,
        "soon": within - overdue - today,
        "blocked": {i for i in tasks if known[i]["state_key"] == "blocked"} | {who for who, _ in waits},
        "in_progress": {i for i in tasks if known[i]["state_key"] == "in_progress"},
        "unblocking": {whom for who, whom in waits if frees(whom, who, waits) and not circular(whom, waits)},
        "changed": {i for i, day in touched.items() if day in (TODAY - timedelta(days=1), TODAY)},
    }


def is_draft_goal(entity: Mapping[str, Any]) -> bool:
    return bool(entity["kind"] == "goal" and entity["state_key"] == "draft")


def frees(whom: str, who: str, waits: set[tuple[str, str]]) -> bool:
    return {b for a, b in waits if a == who} == {whom}


def circular(task: str, waits: set[tuple[str, str]]) -> bool:
    found = {b for a, b in waits if a == task}
    while True:
        more = found | {b for a, b in waits if a in found}
        if more == found:
            return task in found
        found = more


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

    found = buckets_of(rows, ZONES[0]).waits_for

    assert {(who, whom) for who, all_of in found.items() for whom in all_of} == waits
    assert all(list(all_of) == sorted(all_of) for all_of in found.values())


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
    ("due", "start", "bucket"),
    [
        ("2026-11-20", None, "overdue"),
        ("2026-11-20", "2026-11-21", "overdue"),
        ("2026-11-21", None, "today"),
        (None, "2026-11-21", "today"),
        ("2026-11-22", None, "soon"),
        ("2026-11-28", None, "soon"),
        (None, "2026-11-28", "soon"),
        ("2026-12-31", "2026-11-22", "soon"),
    ],
)
@pytest.mark.promise("build.buckets")
def test_a_task_is_in_the_bucket_of_its_days(due: str | None, start: str | None, bucket: str) -> None:
    times = {"due_at": due and f"{due} 00:00:00+00", "start_at": start and f"{start} 00:00:00+00"}

    found = buckets_of(a_project(tasks=[a_task("t", **times)]), ZONES[0])

    assert {name for name in ("overdue", "today", "soon") if found.of(name)} == {bucket}


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

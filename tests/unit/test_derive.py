"""Fields that follow from edges: compared with the relations read one by one."""

from typing import Any

import pytest
from hypothesis import given, settings
from strategies import (
    Reading,
    a_goal,
    a_plan,
    a_project,
    a_row,
    a_task,
    an_edge,
    drafted,
    projects,
    reading,
    rendered,
    tasks_of_goal,
    tasks_of_plan,
    uid,
)

from foreword.rows import ProjectRows

DONE = {"done", "completed"}
"""States of a task that count as progress: one that was given up is over, and no progress."""


def lights(rows: ProjectRows) -> dict[str, dict[str, Any]]:
    """Every light record that the slices show, by id."""
    return {light["id"]: light for table in rendered(rows).data["slices"].values() for light in table}


def linked(read: Reading, entity: str, kind: str) -> list[str]:
    return sorted(other for other in read.neighbours(entity) if read.kind_of[other] == kind)


def finished(rows: ProjectRows, tasks: set[str]) -> int:
    return sum(1 for row in rows.entities.get("task", ()) if row[0] in tasks and row[2] in DONE)


@given(projects())
@settings(max_examples=200)
@pytest.mark.promise("build.derived")
def test_a_tasks_links_and_dependencies_are_what_edges_say(rows: ProjectRows) -> None:
    read = reading(rows)
    known = lights(rows)

    for task in (light for light in known.values() if read.kind_of[light["id"]] == "task"):
        entity = task["id"]
        assert task["plan_ids"] == linked(read, entity, "plan")
        assert task["goal_ids"] == linked(read, entity, "goal")
        assert task["output_ids"] == linked(read, entity, "output")
        assert task["dependency_count"] == len({whom for who, whom in read.waits() if who == entity})
        assert task["dependent_count"] == len({who for who, whom in read.waits() if whom == entity})


@given(projects())
@settings(max_examples=200)
@pytest.mark.promise("build.derived")
def test_progress_of_plans_and_goals_is_what_edges_say(rows: ProjectRows) -> None:
    read = reading(rows)
    known = lights(rows)

    for plan in (light for light in known.values() if read.kind_of[light["id"]] == "plan"):
        tasks = tasks_of_plan(read, plan["id"])
        assert (plan["task_count"], plan["completed_task_count"]) == (len(tasks), finished(rows, tasks))
    for goal in (light for light in known.values() if read.kind_of[light["id"]] == "goal"):
        tasks = tasks_of_goal(read, goal["id"])
        done = finished(rows, tasks)
        assert (goal["total_tasks"], goal["completed_tasks"]) == (len(tasks), done)
        assert goal.get("progress_percent") == (100 * done // len(tasks) if tasks else None)


@given(projects())
@pytest.mark.promise("build.derived")
def test_an_outputs_links_are_what_edges_say(rows: ProjectRows) -> None:
    read = reading(rows)

    for light in rendered(rows).data["slices"].get("outputs", []):
        assert light["linked_goal_ids"] == linked(read, light["id"], "goal")
        assert light["linked_task_ids"] == linked(read, light["id"], "task")


@given(projects())
@pytest.mark.promise("build.derived")
def test_every_slice_says_whether_it_is_linked_directly(rows: ProjectRows) -> None:
    direct = reading(rows).near(rows.project_id, 1)

    for entity, light in lights(rows).items():
        assert light["direct_edge"] is (entity in direct)


@pytest.mark.parametrize(
    ("src", "rel", "dst"),
    [
        ("t", "supports_goal", "g"),
        ("t", "supports", "g"),
        ("g", "achieved_by", "t"),
        ("g", "supports_goal", "t"),
        ("g", "has_task", "t"),
    ],
)
@pytest.mark.promise("build.derived")
def test_a_task_counts_towards_its_goal_in_either_direction(src: str, rel: str, dst: str) -> None:
    rows = a_project(goals=[a_goal("g")], tasks=[a_task("t", state_key="done")], edges=[an_edge(src, rel, dst)])

    goal = lights(rows)[uid("g")]

    assert (goal["completed_tasks"], goal["total_tasks"], goal["progress_percent"]) == (1, 1, 100)


@pytest.mark.parametrize(
    ("src", "rel", "dst"), [("p", "supports_goal", "g"), ("g", "achieved_by", "p"), ("g", "has_plan", "p")]
)
@pytest.mark.parametrize(
    ("task", "of", "plan"), [("p", "has_task", "t"), ("t", "belongs_to_plan", "p"), ("t", "has_task", "p")]
)
@pytest.mark.promise("build.derived")
def test_a_task_counts_towards_a_goal_through_its_plan(
    src: str, rel: str, dst: str, task: str, of: str, plan: str
) -> None:
    rows = a_project(
        goals=[a_goal("g")],
        plans=[a_plan("p")],
        tasks=[a_task("t"), a_task("also direct", state_key="done")],
        edges=[
            an_edge(src, rel, dst),
            an_edge(task, of, plan),
            an_edge("also direct", "supports_goal", "g"),
            an_edge("p", "has_task", "also direct"),
        ],
    )

    goal = lights(rows)[uid("g")]

    assert (goal["completed_tasks"], goal["total_tasks"], goal["progress_percent"]) == (1, 2, 50)


@pytest.mark.promise("build.derived")
def test_a_goal_without_tasks_has_no_progress_rather_than_none_of_it() -> None:
    goal = lights(a_project(goals=[a_goal("g")]))[uid("g")]

    assert "progress_percent" not in goal
    assert goal["total_tasks"] == 0


@pytest.mark.promise("build.derived")
def test_an_output_knows_its_goals_and_tasks() -> None:
    rows = a_project(
        outputs=[a_row("output", uid("o"))],
        tasks=[a_task("t")],
        goals=[a_goal("g")],
        edges=[an_edge("t", "produces", "o"), an_edge("o", "supports_goal", "g")],
    )

    output = lights(rows)[uid("o")]

    assert output["linked_task_ids"] == [uid("t")]
    assert output["linked_goal_ids"] == [uid("g")]


@given(projects())
@settings(max_examples=200)
@pytest.mark.promise("build.derived")
def test_what_works_towards_goals_and_plans_is_what_edges_say(rows: ProjectRows) -> None:
    read = reading(rows)
    of_kind = {kind: {i for i, name in read.kind_of.items() if name == kind} for kind in ("goal", "plan", "task")}
    expected = {goal: tasks_of_goal(read, goal) for goal in of_kind["goal"]}
    expected |= {plan: tasks_of_plan(read, plan) for plan in of_kind["plan"]}

    work = drafted(rows).work

    assert {i: set(tasks) for i, tasks in work.tasks.items()} == {
        i: tasks for i, tasks in expected.items() if tasks
    }
    assert work.served == {
        goal for goal in of_kind["goal"] if read.neighbours(goal) & (of_kind["task"] | of_kind["plan"])
    }


@pytest.mark.parametrize(
    ("state", "done"), [("done", 1), ("completed", 1), ("cancelled", 0), ("abandoned", 0), ("todo", 0), (None, 0)]
)
@pytest.mark.promise("build.derived")
def test_a_task_that_was_given_up_is_no_progress(state: str | None, done: int) -> None:
    rows = a_project(
        goals=[a_goal("g")], tasks=[a_task("t", state_key=state)], edges=[an_edge("t", "supports_goal", "g")]
    )

    goal = lights(rows)[uid("g")]

    assert (goal["completed_tasks"], goal["total_tasks"]) == (done, 1)


@given(projects())
@pytest.mark.promise("build.derived")
def test_a_task_waits_for_those_that_are_open_while_it_is(rows: ProjectRows) -> None:
    draft, read = drafted(rows), reading(rows)
    opened = draft.buckets.open
    waits = {(who, whom) for who, whom in read.waits() if {who, whom} <= opened}

    for entity, near in draft.near.items():
        assert list(near.open_waits) == sorted(whom for who, whom in waits if who == entity)
        assert near.needed_by == sum(whom == entity for _, whom in waits)

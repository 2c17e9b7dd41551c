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
    projects,
    reading,
    rendered,
    uid,
)

from foreword.rows import ProjectRows

DONE = {"done", "completed", "achieved", "abandoned", "cancelled", "closed", "mitigated", "archived"}


def lights(rows: ProjectRows) -> dict[str, dict[str, Any]]:
    """Every light record that the slices show, by id."""
    return {light["id"]: light for table in rendered(rows).data["slices"].values() for light in table}


def linked(read: Reading, entity: str, kind: str) -> list[str]:
    return sorted(other for other in read.neighbours(entity) if read.kind_of[other] == kind)


def tasks_of_plan(read: Reading, plan: str) -> set[str]:
    return {b for a, rel, b in read.said if (a, rel, read.kind_of[b]) == (plan, "has_task", "task")}


def tasks_of_goal(read: Reading, goal: str) -> set[str]:
    """Those that support it, that it has, and those of the plans that do or that it has."""
    said = {(rel, b if a == goal else a) for a, rel, b in read.said if goal in (a, b)}
    tasks = {
        other for rel, other in said if rel in {"supports_goal", "has_task"} and read.kind_of[other] == "task"
    }
    for rel, other in said:
        if rel in {"supports_goal", "has_plan"} and read.kind_of[other] == "plan":
            tasks |= tasks_of_plan(read, other)
    return tasks


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

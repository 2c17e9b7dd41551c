"""The tables of a run, by COPY: projects that say whose they are, people, and later their subscriptions."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from chaos.people import Project, uid, words
from storm.people import Circle, Person

from loaders.connection import Connection
from loaders.subscriptions import compute
from loaders.tables import ACTORS, MEMBERS

TASKS = 12
"""Of a project."""

_STATES = ("todo", "todo", "in_progress", "blocked", "done")
_DAYS = (-9, -2, 0, 1, 5, 30, None)
"""From today to a task's date; far enough from any edge that an hour makes no difference."""


def fill_projects(connection: Connection, circle: Circle) -> None:
    """Projects, each with some rows of the kinds that a brief tells of."""
    dice = Random(f"{circle.seed}/fill")
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    with connection.transaction():
        _copy(
            connection,
            "onto_projects (id, name, state_key, created_by, updated_at)",
            [
                (p.id, words(p, dice), dice.choice(("active", "active", "planning")), circle.owner(p.tenant), noon)
                for p in circle.projects
            ],
        )
        tasks, goals, milestones, risks, edges = [], [], [], [], []
        for project in circle.projects:
            tasks += [_task(project, number, noon, dice) for number in range(TASKS)]
            ids = uid(project.id, "goal"), uid(project.id, "milestone"), uid(project.id, "risk")
            until = noon + timedelta(days=dice.choice((-4, 3, 40)))
            goals.append((ids[0], project.id, words(project, dice), "active", until))
            milestones.append((ids[1], project.id, words(project, dice), "pending", until))
            risks.append((ids[2], project.id, words(project, dice), "identified", "high"))
            first, second = dice.sample(range(TASKS), 2)
            edges.append(
                (project, "task", task_id(project, first), "depends_on", "task", task_id(project, second))
            )
            edges.append((project, "task", task_id(project, second), "supports_goal", "goal", ids[0]))
        _copy(
            connection,
            "onto_tasks (id, project_id, title, state_key, priority, due_at, completed_at, created_at,"
            " updated_at)",
            tasks,
        )
        _copy(connection, "onto_goals (id, project_id, name, state_key, target_date)", goals)
        _copy(connection, "onto_milestones (id, project_id, title, state_key, due_at)", milestones)
        _copy(connection, "onto_risks (id, project_id, title, state_key, impact)", risks)
        _copy(
            connection,
            "onto_edges (id, project_id, src_kind, src_id, rel, dst_kind, dst_id)",
            [(uid(src, dst), project.id, a, src, rel, b, dst) for project, a, src, rel, b, dst in edges],
        )


def task_id(project: Project, number: int) -> str:
    """Of a project's task."""
    return uid(project.id, "task", number)


def _task(project: Project, number: int, noon: datetime, dice: Random) -> tuple[Any, ...]:
    state, days = dice.choice(_STATES), dice.choice(_DAYS)
    touched = noon - timedelta(days=dice.choice((2, 3, 20)))
    return (
        task_id(project, number),
        project.id,
        words(project, dice),
        state,
        dice.randint(1, 5),
        noon + timedelta(days=days) if days is not None else None,
        touched if state == "done" else None,
        touched - timedelta(days=9),
        touched,
    )


def fill_people(connection: Connection, circle: Circle, people: Sequence[Person]) -> None:
    """People, and what they are members of."""
    with connection.transaction():
        _copy(connection, f"{ACTORS} (id, kind, name)", [(p.id, "human", f"person {p.id[:8]}") for p in people])
        _copy(
            connection,
            f"{MEMBERS} (id, project_id, actor_id, role_key)",
            [
                (uid(person.id, number), circle.projects[number].id, person.id, "editor")
                for person in people
                for number in sorted(person.projects)
            ],
        )
    connection.execute("analyze")


def subscribe(connection: Connection, people: Sequence[Person]) -> None:
    """Subscriptions, as an import makes them: rows, and their next runs in the same transaction."""
    now = datetime.now(UTC)
    with connection.transaction():
        _copy(
            connection,
            "fw_subscriptions (user_id, zone, at, weekday, active, when_empty, tenant, last_visit_at)",
            [
                (
                    p.id,
                    p.zone,
                    p.at,
                    p.weekday,
                    p.active,
                    p.when_empty,
                    p.tenant,
                    now - timedelta(days=p.away) if p.away is not None else None,
                )
                for p in people
            ],
        )
        compute(connection, [person.id for person in people])


def _copy(connection: Connection, into: str, rows: Iterable[Sequence[Any]]) -> None:
    with connection.cursor().copy(f"copy {into} from stdin".encode()) as copy:
        for row in rows:
            copy.write_row(row)

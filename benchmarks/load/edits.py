"""What people do to their projects: a table of edits, each with how often it happens.

Each is one transaction. An edit returns the live projects that it changed; none where there was nothing to change.
"""

import random
from collections.abc import Callable
from typing import Any

import psycopg

from benchmarks.load.account import Account, Project
from benchmarks.synthetic import STATES, new_id, words

Database = psycopg.Connection[tuple[Any, ...]]

Edit = Callable[[Database, Project, random.Random, Account], list[Project]]

_SOON = "now() + make_interval(days => %s)"


def _one(
    database: Database, project: Project, kind: str, dice: random.Random, what: str, *values: Any
) -> list[Project]:
    """Change one entity of a kind: ``what`` is the statement's part between the table and the condition."""
    ids = project.ids.get(kind)
    if not ids:
        return []
    done = database.execute(f"update onto_{kind}s set {what} where id = %s".encode(), [*values, dice.choice(ids)])
    return [project] if done.rowcount else []


def _rename(database: Database, project: Project, dice: random.Random, _: Account) -> list[Project]:
    return _one(database, project, "task", dice, "title = %s, updated_at = now()", words(dice, 12))


def _move_on(database: Database, project: Project, dice: random.Random, _: Account) -> list[Project]:
    state = dice.choice(STATES["task"])
    done = "completed_at = case when %s = 'done' then now() end"
    return _one(database, project, "task", dice, f"state_key = %s, {done}, updated_at = now()", state, state)


def _plan(database: Database, project: Project, dice: random.Random, _: Account) -> list[Project]:
    return _one(database, project, "task", dice, f"due_at = {_SOON}, updated_at = now()", dice.randint(-3, 30))


def _reassess(database: Database, project: Project, dice: random.Random, _: Account) -> list[Project]:
    return _one(database, project, "risk", dice, "state_key = %s, updated_at = now()", dice.choice(STATES["risk"]))


def _write(database: Database, project: Project, dice: random.Random, _: Account) -> list[Project]:
    """A document grows to some pages, which no bundle shows and every edit carries."""
    return _one(database, project, "document", dice, "content = %s, updated_at = now()", words(dice, 3000))


def _say_what_next(database: Database, project: Project, dice: random.Random, _: Account) -> list[Project]:
    database.execute(
        "update onto_projects set next_step_short = %s, updated_at = now() where id = %s",
        [words(dice, 8), project.id],
    )
    return [project]


def _add(database: Database, project: Project, dice: random.Random, _: Account) -> list[Project]:
    """A task that supports a goal."""
    task, goals = new_id(dice), project.ids.get("goal")
    database.execute(
        "insert into onto_tasks (id, project_id, title, state_key, due_at)"
        f" values (%s, %s, %s, 'todo', {_SOON})".encode(),
        [task, project.id, words(dice, 12), dice.randint(0, 30)],
    )
    if goals:
        database.execute(
            "insert into onto_edges (id, project_id, src_kind, src_id, rel, dst_kind, dst_id)"
            " values (%s, %s, 'task', %s, 'supports_goal', 'goal', %s)",
            [new_id(dice), project.id, task, dice.choice(goals)],
        )
    project.ids.setdefault("task", []).append(task)
    return [project]


def _signal(database: Database, project: Project, dice: random.Random, _: Account) -> list[Project]:
    database.execute(
        "insert into onto_signals (id, project_id, channel, ts, payload)"
        " values (%s, %s, 'chat', now(), jsonb_build_object('summary', %s::text))",
        [new_id(dice), project.id, words(dice, 30)],
    )
    return [project]


def _remove(database: Database, project: Project, dice: random.Random, _: Account) -> list[Project]:
    """A task, softly, so that there are not more and more of them."""
    ids = project.ids.get("task")
    if not ids or len(ids) < 2:
        return []
    place = dice.randrange(len(ids))
    done = database.execute("update onto_tasks set deleted_at = now() where id = %s", [ids.pop(place)])
    return [project] if done.rowcount else []


def _cut(database: Database, project: Project, _: random.Random, __: Account) -> list[Project]:
    done = database.execute(
        "delete from onto_edges where id = (select id from onto_edges where project_id = %s limit 1)", [project.id]
    )
    return [project] if done.rowcount else []


def _postpone_all(database: Database, project: Project, _: random.Random, __: Account) -> list[Project]:
    """Every open task by a day, in one statement."""
    done = database.execute(
        "update onto_tasks set due_at = due_at + interval '1 day', updated_at = now()"
        " where project_id = %s and deleted_at is null and state_key <> 'done'",
        [project.id],
    )
    return [project] if done.rowcount else []


def _hand_over(database: Database, project: Project, dice: random.Random, account: Account) -> list[Project]:
    """A task goes to another project: both change."""
    other = dice.choice(account.projects)
    ids = project.ids.get("task")
    if not ids or len(ids) < 2 or other.gone or other is project:
        return []
    task = ids.pop(dice.randrange(len(ids)))
    done = database.execute("update onto_tasks set project_id = %s where id = %s", [other.id, task])
    other.ids.setdefault("task", []).append(task)
    return [project, other] if done.rowcount else []


def _begin(database: Database, project: Project, dice: random.Random, account: Account) -> list[Project]:
    """A new project of the same owner, with a few tasks."""
    born = Project(new_id(dice), project.owner, 5)
    database.execute(
        "insert into onto_projects (id, name, state_key, created_by) values (%s, %s, 'planning', %s)",
        [born.id, words(dice, 5), born.owner],
    )
    born.ids["task"] = [new_id(dice) for _ in range(born.entities)]
    with database.cursor() as cursor:
        cursor.executemany(
            "insert into onto_tasks (id, project_id, title, state_key) values (%s, %s, %s, 'todo')",
            [(task, born.id, words(dice, 12)) for task in born.ids["task"]],
        )
    account.projects.append(born)
    return [born]


def _close(database: Database, project: Project, dice: random.Random, account: Account) -> list[Project]:
    """One of the coldest projects is deleted: nothing is waited for, for nothing can be read."""
    coldest = account.projects[-dice.randint(1, min(50, len(account.projects) // 2)) :][0]
    if coldest.gone or coldest is project:
        return []
    coldest.gone = True
    database.execute("update onto_projects set deleted_at = now() where id = %s", [coldest.id])
    return []


EDITS: dict[Edit, float] = {
    _rename: 26,
    _move_on: 22,
    _plan: 12,
    _signal: 11,
    _add: 10,
    _write: 5,
    _remove: 4,
    _reassess: 4,
    _say_what_next: 3,
    _cut: 1,
    _postpone_all: 1,
    _hand_over: 0.5,
    _begin: 0.3,
    _close: 0.2,
}
"""How often each happens, of a hundred."""

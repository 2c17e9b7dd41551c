"""No connection is shared across a fork: what is opened before one stays the parent's, and children open theirs.

A connection that two processes use hands one the rows of the other, with no error. So the proof is in the rows.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from uuid import UUID, uuid5

import pytest
from acceptance.system import System
from processes import CHECKOUT

from foreword.reader import TRUSTED
from worker import dispatch

PROJECTS = [str(uuid5(UUID(int=0), f"project {n}")) for n in range(40)]
TASKS = 60
ROUNDS = 3

FILL = """
with project as (
  insert into onto_projects (id, name, state_key, created_at, updated_at)
  values (%(project)s, %(name)s, 'active', now(), now())
), task as (
  insert into onto_tasks (id, project_id, title, state_key, created_at, updated_at)
  select gen_random_uuid(), %(project)s, %(name)s || ' task ' || n, 'todo', now(), now()
  from generate_series(1, %(tasks)s) n returning id
)
insert into onto_edges (id, project_id, src_kind, src_id, dst_kind, dst_id, rel, created_at)
select gen_random_uuid(), %(project)s, 'project', %(project)s, 'task', id, 'has_task', now() from task
"""

# A parent that has worked, a child that works, a child that does nothing, the parent again.
FORK = """
import json, os
from worker.process import Process
from worker.settings import from_environment
from worker.wiring import services

def backend(process):
    tools = process.tools()
    (pid,) = tools.connection.execute("select pg_backend_pid()").fetchone()
    return [pid, tools.store._client.client_id()]

def in_a_child(work):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, json.dumps(work()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        told = json.load(pipe)
    return told, os.waitpid(child, 0)[1]

def closing(process):
    process.close()  # as when a child of the worker ends

settings = from_environment(os.environ)
with services(settings) as found:
    process = Process(settings, found)
    before = backend(process)
    first, first_status = in_a_child(lambda: backend(process))
    idle, idle_status = in_a_child(lambda: closing(process))
    after = backend(process)
    process.close()
print(json.dumps([before, first, after, first_status, idle_status]))
"""


@pytest.fixture(scope="module")
def filled(system: System) -> System:
    """Projects that are alike but for their names."""
    for number, project in enumerate(PROJECTS):
        asked = {"project": project, "name": f"Harbour {number}", "tasks": TASKS}
        system.connection.execute(FILL.encode(), asked)
    return system


@pytest.fixture(scope="module")
def working(filled: System) -> Iterator[System]:
    """A worker with more children than cores, over those projects."""
    with filled.worker("--concurrency", "4"):
        yield filled


@pytest.mark.promise("worker.forks", "loader.tenant")
def test_concurrent_builds_hold_their_own_projects_rows_and_no_others(working: System) -> None:
    for _ in range(ROUNDS):
        outcomes: dict[str, str | None] = {}

        dispatch.rebuild(working.connection, working.app(), PROJECTS, outcomes.__setitem__)

        assert outcomes == dict.fromkeys(PROJECTS)
        for number, project in enumerate(PROJECTS):
            data = working.reader.bundle(project, actor=TRUSTED).data
            assert data["header"]["id"] == project
            assert data["coverage"]["kinds"]["tasks"]["total"] == TASKS
            titles = {task["title"] for task in data["slices"]["tasks"]}
            assert titles
            assert all(title.startswith(f"Harbour {number} task ") for title in titles), (number, titles)
            ids = {node["id"] for node in data["graph"]["nodes"]} - {project}
            owners = working.connection.execute(
                "select distinct project_id from onto_tasks where id = any(%s::uuid[])", [list(ids)]
            ).fetchall()
            assert owners == [(project,)]


@pytest.mark.promise("worker.forks")
def test_each_child_of_the_worker_has_a_session_of_its_own_and_the_parent_has_none(working: System) -> None:
    dispatch.rebuild(working.connection, working.app(), PROJECTS, lambda *_: None)

    sessions = working.connection.execute(
        "select count(*), count(distinct pid) from pg_stat_activity where application_name = 'foreword'"
        " and datname = current_database() and pid <> pg_backend_pid()"
    ).fetchone()

    assert sessions is not None
    assert 2 <= sessions[0] == sessions[1] <= 4


@pytest.mark.promise("worker.forks")
def test_a_connection_opened_before_a_fork_stays_the_parents(filled: System) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK],
        env={**filled.commands.environment, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    before, child, after, *statuses = json.loads(done.stdout)
    assert statuses == [0, 0]
    assert after == before  # still its own, and still working
    assert child[0] != before[0]
    assert child[1] != before[1]

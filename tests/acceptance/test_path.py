"""Enqueue, worker, Redis, reader: the sample's bundles arrive through real processes, and so do failures."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import redis
from acceptance.system import System, held, is_waited
from processes import CHECKOUT, eventually

from foreword import keys, tokens
from foreword.errors import NotAMember
from foreword.kinds import KINDS
from foreword.lines import DEFAULT_BUDGET
from foreword.reader import TRUSTED
from foreword.stamp import Stamp
from foreword.store import RedisStore
from loaders import ledger
from loaders.claims import EDITS
from loaders.connection import connect
from tasks.project import rebuild_project
from tasks.tools import Tools
from worker import dispatch
from worker.app import FOCUS, REBUILD
from worker.wiring import tools

SAMPLE = CHECKOUT / "samples" / "harbour"

LIBRARY = "a8e1bf1f-2157-5c0b-a103-3b8fa71a9b3b"
BOAT = "8b7e4cad-0a07-5b44-8dc5-f5e96d8984ed"
NOBODY = "00000000-0000-4000-8000-000000000000"
ASTA = "d3e203a5-d5ea-50e8-811a-37dc1dbcb303"
IDRIS = "a7af32f0-f494-5c31-afaa-1331553955cc"
SHELF = "91309b9b-d47e-5ea4-b919-7bf0fe6dd2fd"
TOVE = "4d485163-42a7-59eb-9fec-c01eccb9dd5c"
NOTE_BUILDS = """
create table builds (project_id uuid);
create function note_build() returns trigger language plpgsql as $$
  begin insert into builds values (new.project_id); return null; end $$;
create trigger builds_noted after update of generation on fw_projects
  for each row when (old.generation is distinct from new.generation) execute function note_build();
"""
OWNED = {LIBRARY: ASTA, BOAT: TOVE}

# Written without anything of ours: what of a kind there is, what hangs on the project, what within two steps.
COUNT = """
with live as ({live}),
ends as (
  select e.src_id as a, e.dst_id as b from onto_edges e where e.project_id = %(project)s
  union select e.dst_id, e.src_id from onto_edges e where e.project_id = %(project)s
),
known as ({everything}),
direct as (select b as id from ends join known on known.id = b where a = %(project)s),
second as (select b as id from ends join direct on direct.id = a join known on known.id = b)
select (select count(*) from live), (select count(*) from live where id in (select id from direct)),
       (select count(*) from live where id in (select id from direct union select id from second))
"""
WITHOUT_DELETED_AT = {"onto_signals", "onto_insights"}


@pytest.fixture(scope="module")
def working(system: System) -> Iterator[System]:
    """The sample imported, a worker running, everything rebuilt once."""
    imported = system.commands.run("import", str(SAMPLE), "--json")
    assert imported.code == 0, imported.err
    with system.worker("--concurrency", "2"):
        rebuilt = system.commands.run("rebuild", "--all", "--json")
        assert rebuilt.code == 0, rebuilt.err
        assert sorted(json.loads(rebuilt.out)["rebuilt"]) == sorted([LIBRARY, BOAT])
        yield system


def rebuild(system: System, *projects: str, **options: Any) -> dict[str, str | None]:
    """Rebuild by the worker, and what became of each."""
    outcomes: dict[str, str | None] = {}
    dispatch.rebuild(system.connection, system.app(), projects, outcomes.__setitem__, **options)
    return outcomes


def stamp(system: System, project: str) -> Stamp:
    found = system.reader.project(project, actor=TRUSTED).stamp
    assert found is not None
    return found


def fields(system: System, project: str) -> dict[str, bytes]:
    """What is published of a project, but for the fence."""
    found: dict[Any, Any] = dict(system.redis.hgetall(keys.project(project)))
    return {name.decode(): value for name, value in found.items() if name.decode() != keys.FENCE}


def handled(system: System) -> int:
    """How many rebuild messages the worker has done with; -1 while it is busy, or does not answer."""
    app = system.app()
    with app.connection_for_write() as connection:
        asking = app.control.inspect(limit=1, connection=connection)
        stats, active = (
            asking.stats(),
            asking.active(),
        )  # in this order: what was counted and is not active is done
    if not stats or not active or any(active.values()):
        return -1
    return sum(each["total"].get(REBUILD, 0) for each in stats.values())


def idle(system: System) -> int:
    """Likewise, when it is not busy."""
    assert eventually(lambda: handled(system) >= 0)
    return handled(system)


@pytest.fixture
def builds(working: System) -> Iterator[Callable[[], int]]:
    """How many builds were recorded since the test began."""
    working.connection.execute(NOTE_BUILDS)

    def count() -> int:
        row = working.connection.execute("select count(*) from builds").fetchone()
        assert row is not None
        return int(row[0])

    yield count
    working.connection.execute("drop function note_build cascade; drop table builds")


@pytest.mark.promise("worker.path")
@pytest.mark.parametrize("project", [LIBRARY, BOAT])
def test_a_member_reads_a_text_within_its_budget_and_its_exact_count(working: System, project: str) -> None:
    read = working.reader.project(project, actor=OWNED[project])

    assert read.status == "fresh"
    assert read.tokens == tokens.count(read.text) <= DEFAULT_BUDGET
    assert read.stamp is not None
    assert (read.stamp.as_of, read.stamp.zone, read.stamp.tokens) == ("2026-11-21", "UTC", read.tokens)
    assert read.text.endswith("as of 2026-11-21\n")


@pytest.mark.promise("worker.path")
@pytest.mark.parametrize("budget", [250, 400, 1000, 4000])
def test_the_same_bundle_is_read_at_any_budget(working: System, budget: int) -> None:
    read = working.reader.project(LIBRARY, actor=ASTA, budget=budget)

    assert read.tokens == tokens.count(read.text) <= budget


@pytest.mark.promise("worker.path", "loader.manifest")
@pytest.mark.parametrize(
    ("project", "total", "direct", "reachable"), [(LIBRARY, 243, 139, 205), (BOAT, 16, 11, 14)]
)
def test_coverage_is_what_sql_counts_and_what_the_readme_says(
    working: System, project: str, total: int, direct: int, reachable: int
) -> None:
    everything = " union all ".join(_live(kind.table) for kind in KINDS.entities)

    coverage = working.reader.bundle(project, actor=TRUSTED).data["coverage"]["kinds"]

    for kind in KINDS.entities:
        query = COUNT.format(live=_live(kind.table), everything=everything).encode()
        counted = working.connection.execute(query, {"project": project}).fetchone()
        built = coverage[kind.plural]
        assert (built["total"], built["direct"], built["reachable"]) == counted, kind.name
        assert built["unlinked"] == built["total"] - built["direct"]
    sums = [sum(kind[count] for kind in coverage.values()) for count in ("total", "direct", "reachable")]
    assert sums == [total, direct, reachable]


def _live(table: str) -> str:
    rows = f"select id from {table} where project_id = %(project)s"
    return rows if table in WITHOUT_DELETED_AT else f"{rows} and deleted_at is null"


@pytest.mark.promise("worker.path")
def test_an_edited_task_is_in_the_next_bundle(working: System) -> None:
    title = "Count the lifebuoys on the quay"
    working.connection.execute(
        "update onto_tasks set title = %s, state_key = 'in_progress', priority = 1, due_at = '2026-11-20',"
        " updated_at = '2026-11-21 08:00Z' where id = (select id from onto_tasks where project_id = %s"
        " and deleted_at is null and state_key = 'todo' order by id limit 1)",
        [title, BOAT],
    )
    before = working.reader.project(BOAT, actor=TRUSTED).text

    outcomes = rebuild(working, BOAT)

    assert outcomes == {BOAT: None}
    assert title not in before
    assert title in working.reader.project(BOAT, actor=TRUSTED).text


@pytest.mark.promise("worker.path", "reader.members")
def test_nobody_but_a_member_reads(working: System) -> None:
    for actor in (TOVE, NOBODY):  # Tove was removed in October
        with pytest.raises(NotAMember):
            working.reader.project(LIBRARY, actor=actor)
        with pytest.raises(NotAMember):
            working.reader.bundle(LIBRARY, actor=actor)


@pytest.mark.promise("worker.path", "reader.members")
def test_a_member_who_is_removed_reads_no_more_after_the_next_build(working: System) -> None:
    allowed = working.reader.project(BOAT, actor=IDRIS)
    with _changed(
        working,
        f"update onto_project_members set removed_at = now() where actor_id = '{IDRIS}' and project_id = '{BOAT}'",
        f"update onto_project_members set removed_at = null where actor_id = '{IDRIS}' and project_id = '{BOAT}'",
    ):
        rebuild(working, BOAT)

        with pytest.raises(NotAMember):
            working.reader.project(BOAT, actor=IDRIS)
        assert BOAT not in working.reader.overview(IDRIS).text
        assert allowed.status == "fresh"
    rebuild(working, BOAT)
    assert working.reader.project(BOAT, actor=IDRIS)


@pytest.mark.promise("reader.overview")
@pytest.mark.parametrize(
    ("actor", "projects"), [(IDRIS, {LIBRARY, BOAT}), (SHELF, {LIBRARY}), (TOVE, {BOAT}), (NOBODY, set())]
)
def test_an_overview_holds_what_its_actor_may_read(working: System, actor: str, projects: set[str]) -> None:
    read = working.reader.overview(actor)

    assert {each["id"] for each in read.data["projects"]} == projects
    assert bool(read) == bool(projects)
    assert read.text.startswith(f"## projects: {len(projects)}\n" if projects else "")
    assert read.tokens == tokens.count(read.text)


@pytest.mark.promise("worker.path", "handles.either")
def test_a_focus_bundle_is_built_by_a_job(working: System) -> None:
    task = working.connection.execute(
        "select entity_id, number from fw_handles where project_id = %s and kind = 'task' order by number",
        [LIBRARY],
    ).fetchone()
    assert task is not None

    working.app().send_task(FOCUS, args=[LIBRARY, f"T{task[1]}"], queue=EDITS, retry=False)

    assert eventually(lambda: working.reader.focus(LIBRARY, task[0], actor=ASTA))
    read = working.reader.focus(LIBRARY, task[0], actor=ASTA)
    assert read.status == "fresh"
    assert read.tokens == tokens.count(read.text) <= DEFAULT_BUDGET
    assert f"T{task[1]}" in read.text
    with pytest.raises(NotAMember):
        working.reader.focus(LIBRARY, task[0], actor=TOVE)


@pytest.mark.promise("worker.progress")
def test_an_outcome_is_reported_only_when_the_bundle_in_redis_is_new(working: System) -> None:
    before = {project: stamp(working, project).generation for project in (LIBRARY, BOAT)}
    seen: dict[str, int] = {}

    def done(project: str, error: str | None) -> None:
        assert error is None
        seen[project] = stamp(working, project).generation

    dispatch.rebuild(working.connection, working.app(), [LIBRARY, BOAT], done)

    assert seen.keys() == before.keys()
    assert all(seen[project] > before[project] for project in before)


@pytest.mark.promise("worker.progress")
def test_a_build_is_answered_only_when_its_bundle_is_in_redis(working: System) -> None:
    before = stamp(working, BOAT).generation
    with held(working.services.database_url) as looking:
        asked = ledger.request_builds(working.connection, [BOAT])
        working.app().send_task(REBUILD, args=[BOAT], queue=EDITS, retry=False)
        assert eventually(lambda: is_waited(looking))
        working.redis.client_pause(700, all=False)  # who writes to Redis waits, much longer than a build takes

    assert eventually(lambda: ledger.answers(working.connection, asked))

    assert stamp(working, BOAT).generation > before


@pytest.mark.promise("worker.progress")
def test_a_message_that_comes_twice_builds_once(working: System, builds: Callable[[], int]) -> None:
    before = idle(working)
    ledger.request_builds(working.connection, [BOAT])

    for _ in range(2):
        working.app().send_task(REBUILD, args=[BOAT], queue=EDITS, retry=False)

    assert eventually(lambda: handled(working) == before + 2)
    assert builds() == 1


@pytest.mark.promise("worker.progress")
def test_a_message_that_nobody_asked_for_builds_nothing(working: System, builds: Callable[[], int]) -> None:
    before = idle(working)

    working.app().send_task(REBUILD, args=[BOAT], kwargs={"from_the_future": 1}, queue=EDITS, retry=False)

    assert eventually(lambda: handled(working) == before + 1)
    assert builds() == 0


@pytest.mark.promise("worker.progress")
def test_a_message_that_is_lost_is_sent_again(working: System) -> None:
    broker_url = working.services.redis_url.replace("db=0", "db=2")  # where no worker listens yet
    outcomes: dict[str, str | None] = {}

    def ask() -> None:
        with connect(working.services.database_url) as connection:
            app = working.app(broker_url)
            dispatch.rebuild(connection, app, [BOAT], outcomes.__setitem__, resend_seconds=0.5)

    before = stamp(working, BOAT).generation
    with _another_database(working, 2) as broker:
        asking = threading.Thread(target=ask)
        asking.start()
        assert eventually(lambda: broker.llen(EDITS))
        broker.delete(EDITS)
        assert not outcomes

        with working.worker("--queue", EDITS, broker_url=broker_url):
            asking.join(60)

    assert outcomes == {BOAT: None}
    assert stamp(working, BOAT).generation > before


@contextmanager
def _another_database(system: System, number: int) -> Iterator[Any]:
    with redis.Redis.from_url(system.services.redis_url.replace("db=0", f"db={number}")) as client:
        try:
            yield client
        finally:
            client.flushdb()


@contextmanager
def _changed(system: System, change: str, back: str) -> Iterator[None]:
    system.connection.execute(change.encode())
    try:
        yield
    finally:
        system.connection.execute(back.encode())


@pytest.mark.promise("build.broken-row", "worker.progress")
def test_a_row_that_breaks_the_build_is_named_and_the_old_bundle_stays(working: System) -> None:
    # An adopted database may keep its priorities as text; one of them is no number.
    before = working.reader.project(BOAT, actor=TRUSTED)
    connection = working.connection
    an_open_task = "select id from onto_tasks where project_id = %s and deleted_at is null and state_key = 'todo'"
    (task,) = connection.execute(f"{an_open_task} order by id limit 1".encode(), [BOAT]).fetchone() or ()
    connection.execute("create table kept as select id, priority from onto_tasks")
    connection.execute("alter table onto_tasks drop constraint onto_tasks_priority_range")
    connection.execute("alter table onto_tasks alter column priority type text")
    connection.execute("update onto_tasks set priority = null")
    connection.execute("update onto_tasks set priority = 'urgent' where id = %s", [task])

    failed = working.commands.run("rebuild", "--all", "--json")
    listed = json.loads(working.commands.run("projects", "--json").out)

    told = json.loads(failed.out)
    named = f"task {task}: priority is 'urgent', not a whole number"
    assert failed.code == 1
    assert told["rebuilt"] == [LIBRARY]
    assert named in told["failed"][BOAT]
    assert "Traceback" not in failed.err
    assert working.reader.project(BOAT, actor=TRUSTED) == before
    assert {each["id"]: named in (each["error"] or "") for each in listed} == {LIBRARY: False, BOAT: True}

    connection.execute("update onto_tasks set priority = null where id = %s", [task])
    connection.execute("alter table onto_tasks alter column priority type integer using priority::integer")
    connection.execute("update onto_tasks t set priority = k.priority from kept k where k.id = t.id")
    repaired = rebuild(working, LIBRARY, BOAT)

    assert repaired == {LIBRARY: None, BOAT: None}
    assert stamp(working, BOAT).generation > before.stamp.generation if before.stamp else False
    assert connection.execute("select count(*) from fw_projects where error is not null").fetchone() == (0,)


@pytest.mark.promise("build.broken-row")
def test_a_bundle_that_redis_refuses_is_a_failed_build_and_not_silence(working: System) -> None:
    key = keys.project(BOAT)
    kept = working.redis.dump(key)
    assert kept is not None
    working.redis.delete(key)
    working.redis.set(key, "somebody else's")

    outcomes = rebuild(working, LIBRARY, BOAT)

    assert outcomes[LIBRARY] is None
    assert "Redis refuses: " in (outcomes[BOAT] or "")
    working.redis.restore(key, 0, kept, replace=True)
    assert rebuild(working, BOAT) == {BOAT: None}


@pytest.mark.promise("build.broken-row")
def test_a_failure_that_nobody_foresaw_is_an_answer_too(working: System) -> None:
    def count(_text: str) -> int:
        raise RuntimeError("no such luck")

    with tools(working.settings, working.services) as opened:
        broken: Tools = replace(opened, count=count)
        requests = ledger.request_builds(opened.connection, [BOAT])

        with pytest.raises(RuntimeError):
            rebuild_project(BOAT, broken)
        answers = ledger.answers(opened.connection, requests)
        again = rebuild_project(BOAT, opened)

    assert answers == {BOAT: "RuntimeError: no such luck"}
    assert again is not None
    assert again.published


@pytest.mark.promise("store.fence", "worker.path")
def test_a_deleted_project_is_gone_and_a_late_build_does_not_bring_it_back(working: System) -> None:
    old = fields(working, BOAT)
    late = stamp(working, BOAT)
    undelete = f"update onto_projects set deleted_at = null where id = '{BOAT}'"
    with _changed(working, f"update onto_projects set deleted_at = now() where id = '{BOAT}'", undelete):
        outcomes = rebuild(working, BOAT)

        assert outcomes == {BOAT: None}
        assert working.reader.project(BOAT, actor=TRUSTED).status == "missing"
        assert working.reader.bundle(BOAT, actor=TOVE).status == "missing"
        assert {each["id"] for each in working.reader.overview(IDRIS).data["projects"]} == {LIBRARY}

        assert not RedisStore(working.redis).publish(keys.project(BOAT), late.fence, old, 1000)
        assert working.reader.project(BOAT, actor=TRUSTED).status == "missing"
        unknown = working.commands.run("show", BOAT)
        assert (unknown.code, unknown.out) == (2, "")
        assert f"there is no live project {BOAT}" in unknown.err

    assert rebuild(working, BOAT) == {BOAT: None}
    assert working.reader.project(BOAT, actor=TOVE).status == "fresh"


@pytest.mark.promise("worker.path")
def test_a_restarted_database_costs_no_build(working: System) -> None:
    assert rebuild(working, LIBRARY, BOAT) == {LIBRARY: None, BOAT: None}  # connections are open
    ended = working.connection.execute(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity"
        " where application_name = 'foreword' and datname = current_database() and pid <> pg_backend_pid()"
    ).fetchone()

    outcomes = [rebuild(working, LIBRARY, BOAT, resend_seconds=1e6) for _ in range(3)]

    assert ended not in {(0,), None}
    assert outcomes == [{LIBRARY: None, BOAT: None}] * 3

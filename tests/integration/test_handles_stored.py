"""Handles in a real PostgreSQL: drawn once, by many at a time, and stable whatever becomes of their bearers."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from random import Random
from threading import Barrier, Event
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import PATIENCE
from psycopg.types.json import Jsonb
from strategies import drafted, uid

from foreword.errors import BuildError, UnknownEntity
from foreword.kinds import KINDS, PROJECT
from loaders import handles
from loaders.catalog import Catalog, inspect
from loaders.connection import Connection, connect
from loaders.entity import load_entity, resolve
from loaders.handles import bearer, handles_for, project_of
from loaders.project import compile_statements, load_project
from worker.servers import Addresses

HERE, ELSEWHERE = uid("project"), uid("other project")
WHEN = "2026-01-01T09:00:00Z"

Named = Sequence[tuple[str, str]]


@pytest.fixture(scope="module")
def shared_url(servers: Addresses, migrated: str) -> str:
    with connect(servers.database_url) as admin:
        admin.execute(f"create database fw_handles_stored template {migrated}".encode())
    return servers.database_url.replace("/foreword?", "/fw_handles_stored?")


@pytest.fixture(scope="module")
def catalog(shared_url: str) -> Catalog:
    with connect(shared_url) as connection:
        return inspect(connection)


@pytest.fixture
def database_url(shared_url: str) -> str:
    """One database, emptied, for all tests of this module: none alters its tables."""
    with connect(shared_url) as connection:
        emptied(connection)
    return shared_url


def emptied(connection: Connection) -> None:
    tables = [*(kind.table for kind in KINDS.all), "onto_edges", "fw_handles"]
    connection.execute("; ".join(f"delete from {table}" for table in tables).encode())


def put(connection: Connection, table: str, *rows: dict[str, Any]) -> None:
    """Insert rows; what is not given is null, but for the times."""
    whole = [{"created_at": WHEN, "updated_at": WHEN, **row} for row in rows]
    statement = f"insert into {table} select * from jsonb_populate_recordset(null::{table}, %s)"
    connection.execute(statement.encode(), [Jsonb(whole)])


def tasks(*numbers: int) -> list[tuple[str, str]]:
    return [("task", str(UUID(int=n))) for n in numbers]


def drawn(connection: Connection, named: Named, project: str = HERE) -> dict[str, str]:
    return handles_for(connection, project, named, KINDS)


# ---- drawn once


@pytest.mark.promise("handles.stable")
def test_the_first_build_numbers_entities_as_they_came_about(connection: Connection, catalog: Catalog) -> None:
    put(connection, "onto_projects", {"id": HERE, "name": "Pier"})
    days = {"third": "03", "first": "01", "second": "02"}
    for name, day in days.items():
        row = {"id": uid(name), "project_id": HERE, "title": name, "created_at": f"2026-03-{day}T00:00:00.5Z"}
        put(connection, "onto_tasks", row)
        put(connection, "onto_risks", {**row, "id": uid(f"{name} risk")})
    draft = drafted(load_project(connection, HERE, compile_statements(catalog)))

    handles = drawn(connection, draft.named)

    numbered = {name: (handles[uid(name)], handles[uid(f"{name} risk")]) for name in days}
    assert numbered == {"first": ("T1", "R1"), "second": ("T2", "R2"), "third": ("T3", "R3")}


@pytest.mark.promise("handles.stable")
def test_numbers_count_per_project_and_kind(connection: Connection) -> None:
    mixed = [("goal", uid("g")), *tasks(1, 2), ("document", uid("d"))]

    here, there = drawn(connection, mixed), drawn(connection, [*reversed(mixed)], ELSEWHERE)

    assert [here[i] for _, i in mixed] == ["G1", "T1", "T2", "DOC1"]
    assert [there[i] for _, i in mixed] == ["G1", "T2", "T1", "DOC1"]


@pytest.mark.promise("handles.stable")
def test_one_entity_named_twice_has_one_handle(connection: Connection) -> None:
    handles = drawn(connection, [*tasks(1, 1, 2), *tasks(2, 1)])

    assert len(handles) == len(set(handles.values())) == 2


def test_nothing_named_draws_nothing(connection: Connection) -> None:
    assert drawn(connection, []) == {}


@pytest.mark.promise("handles.stable")
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), steps=st.integers(5, 40))
def test_a_handle_never_changes_and_is_never_used_again(
    shared_url: str, catalog: Catalog, seed: int, steps: int
) -> None:
    random = Random(seed)
    known: dict[str, str] = {}
    living: list[str] = []
    with connect(shared_url) as connection:
        emptied(connection)
        put(connection, "onto_projects", {"id": HERE, "name": "Pier"})
        statements = compile_statements(catalog)
        for step in range(steps):
            happen(connection, random, living, f"{seed} {step}")

            draft = drafted(load_project(connection, HERE, statements))
            handles = drawn(connection, random.sample(draft.named, len(draft.named)))

            assert {i: handles.get(i, known[i]) for i in known} == known
            known |= handles
            assert len(set(known.values())) == len(known)


def happen(connection: Connection, random: Random, living: list[str], name: str) -> None:
    """Something that an application does to its entities."""
    what = random.choice(["insert", "insert", "insert", "rename", "delete", "bury", "revive", "move"])
    one = random.choice(living) if living else uid("nobody")
    if what == "insert":
        living.append(uid(name))
        put(connection, "onto_tasks", {"id": uid(name), "project_id": HERE, "title": name, "created_at": WHEN})
    elif what == "rename":
        connection.execute("update onto_tasks set title = %s, created_at = now() where id = %s", [name, one])
    elif what == "delete":
        connection.execute("delete from onto_tasks where id = %s", [one])
    elif what == "move":
        connection.execute("update onto_tasks set project_id = %s where id = %s", [ELSEWHERE, one])
    else:
        gone = WHEN if what == "bury" else None
        connection.execute("update onto_tasks set deleted_at = %s where id = %s", [gone, one])


# ---- drawn by many at a time


@pytest.fixture
def crowd(database_url: str) -> Iterator[list[Connection]]:
    """Connections to the same database."""
    connections = [connect(database_url) for _ in range(6)]
    yield connections
    for connection in connections:
        connection.close()


@pytest.mark.promise("handles.stable")
@pytest.mark.parametrize("seed", range(4))
def test_drawers_at_once_agree(crowd: list[Connection], seed: int) -> None:
    random = Random(seed)
    start = Barrier(len(crowd))
    sets = [[random.sample(tasks(*range(40)), 25) for _ in range(8)] for _ in crowd]
    kinds = [[[(("goal", "task")[int(i[-1], 16) % 2], i) for _, i in named] for named in each] for each in sets]

    def draw(connection: Connection, wanted: list[list[tuple[str, str]]]) -> list[dict[str, str]]:
        start.wait()
        return [drawn(connection, named) for named in wanted]

    with ThreadPoolExecutor(len(crowd)) as threads:
        told = [found for each in threads.map(draw, crowd, kinds) for found in each]

    borne = {(entity, handle) for found in told for entity, handle in found.items()}
    assert len(borne) == len({entity for entity, _ in borne}) == len({handle for _, handle in borne})
    assert borne == {*drawn(crowd[0], [(k, i) for each in kinds for named in each for k, i in named]).items()}


@pytest.mark.promise("handles.stable")
def test_whoever_loses_a_number_takes_the_next(crowd: list[Connection]) -> None:
    winner, loser, watcher, *_ = crowd
    drawn(winner, tasks(1))
    winner.execute("begin")
    winner.execute("select 1 from fw_handles for update")
    first = drawn(winner, tasks(2))

    with ThreadPoolExecutor(1) as thread:
        second = thread.submit(drawn, loser, tasks(3, 2))
        while not watcher.execute("select pg_blocking_pids(%s)", [loser.info.backend_pid]).fetchall()[0][0]:
            pass
        winner.execute("commit")

    assert first == {uid_of(2): "T2"}
    assert second.result() == {uid_of(2): "T2", uid_of(3): "T3"}


def uid_of(number: int) -> str:
    return str(UUID(int=number))


@pytest.mark.promise("handles.stable")
def test_a_deadlock_of_drawers_is_only_another_try(
    crowd: list[Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other, third, watcher, *_ = crowd
    tries, is_taken, lookup = count(1), Event(), handles._lookup

    def look(*asked: Any) -> dict[str, str]:
        assert next(tries) != 2 or is_taken.wait(PATIENCE)
        return lookup(*asked)

    monkeypatch.setattr(handles, "_lookup", look)
    other.execute("set deadlock_timeout to '10ms'")  # so that it is the one to find it
    one.execute("set deadlock_timeout to '10min'")
    insert = b"insert into fw_handles values (%s, %s, 'task', %s) on conflict do nothing"
    for connection, entity, number in ((third, 5, 2), (one, 9, 3)):
        connection.execute("begin")
        connection.execute(insert, [HERE, uid_of(entity), number])

    # It looks for a deadlock once, when it has waited for a while: so the one that it is to find has to be there
    # when it begins to wait.
    with ThreadPoolExecutor(2) as threads:
        second = threads.submit(drawn, other, tasks(1, 5, 9))  # takes T1, then waits for the bearer of T2
        until_blocked(watcher, other, third)
        waits = threads.submit(one.execute, insert, [HERE, uid_of(1), 7])
        until_blocked(watcher, one, other)
        third.execute("rollback")  # it takes T2, too, and waits for the bearer of T3: the deadlock
        waits.result()  # as the other was rolled back
        is_taken.set()
        until_blocked(watcher, other, one)  # it tries again, with T1, and waits for the bearer of T7
        one.execute("commit")

    assert second.result() == {uid_of(1): "T7", uid_of(5): "T2", uid_of(9): "T3"}


def until_blocked(watcher: Connection, waiting: Connection, by: Connection) -> None:
    """Return when the one session waits for the other."""
    blocking = "select pg_blocking_pids(%s)"
    while watcher.execute(blocking, [waiting.info.backend_pid]).fetchall()[0][0] != [by.info.backend_pid]:
        pass


@pytest.mark.promise("handles.stable")
def test_who_never_gets_a_number_is_told_so(connection: Connection) -> None:
    connection.execute("""create rule never as on insert to fw_handles do instead nothing""")

    with pytest.raises(BuildError, match="others kept drawing the same handles; try again"):
        drawn(connection, tasks(1))

    connection.execute("drop rule never on fw_handles")


@pytest.mark.promise("handles.stable")
def test_handles_of_projects_are_unique_over_projects(crowd: list[Connection]) -> None:
    start = Barrier(len(crowd))
    ids = [uid(f"project {n}") for n in range(10)]

    def draw(connection: Connection) -> dict[str, str]:
        start.wait()
        return {i: drawn(connection, [(PROJECT, i)], i)[i] for i in ids}

    with ThreadPoolExecutor(len(crowd)) as threads:
        told = [*threads.map(draw, crowd)]

    assert told == [told[0]] * len(crowd)
    assert len({*told[0].values()}) == len(ids)
    assert [project_of(crowd[0], int(told[0][i].removeprefix("PRJ"))) for i in ids] == ids
    assert project_of(crowd[0], 10**18 - 1) is None


# ---- looked up


@pytest.mark.promise("handles.either")
@pytest.mark.parametrize(
    "reference",
    ["T1", "t1", " T1 ", uid("task"), uid("task").upper(), f"{{{uid('task')}}}", uid("task").replace("-", "")],
)
def test_an_entity_answers_to_its_handle_and_its_uuid(
    connection: Connection, catalog: Catalog, reference: str
) -> None:
    put(connection, "onto_projects", {"id": HERE, "name": "Pier"})
    put(connection, "onto_tasks", {"id": uid("task"), "project_id": HERE, "title": "Paint"})
    drawn(connection, [("task", uid("task"))])

    kind, entity = resolve(connection, HERE, reference, catalog)
    whole = load_entity(connection, HERE, reference, catalog)

    assert (kind.name, entity) == ("task", uid("task"))
    assert (whole["handle"], whole["row"]["title"]) == ("T1", "Paint")


@pytest.mark.promise("handles.either")
@pytest.mark.parametrize(
    "reference", ["T2", "T0", "T01", "X1", "PRJ1", "", "T", "12", uid("nobody"), "T9999999999999999999"]
)
def test_what_nobody_answers_to_is_an_unknown_entity(
    connection: Connection, catalog: Catalog, reference: str
) -> None:
    put(connection, "onto_projects", {"id": HERE, "name": "Pier"})
    put(connection, "onto_tasks", {"id": uid("task"), "project_id": HERE, "title": "Paint"})
    drawn(connection, [("task", uid("task")), (PROJECT, HERE)])

    with pytest.raises(UnknownEntity):
        resolve(connection, HERE, reference, catalog)


@pytest.mark.promise("handles.either", "loader.tenant")
def test_a_handle_is_its_project_s_own(connection: Connection, catalog: Catalog) -> None:
    for project, name in ((HERE, "here"), (ELSEWHERE, "there")):
        put(connection, "onto_projects", {"id": project, "name": name})
        put(connection, "onto_tasks", {"id": uid(name), "project_id": project, "title": name})
        drawn(connection, [("task", uid(name))], project)

    assert resolve(connection, HERE, "T1", catalog)[1] == uid("here")
    assert resolve(connection, ELSEWHERE, "T1", catalog)[1] == uid("there")
    with pytest.raises(UnknownEntity):
        resolve(connection, HERE, uid("there"), catalog)


@pytest.mark.promise("handles.stable")
def test_a_handle_stays_its_bearer_s_after_the_bearer_is_deleted(connection: Connection, catalog: Catalog) -> None:
    put(connection, "onto_tasks", *({"id": i, "project_id": HERE, "title": "t"} for _, i in tasks(1, 2)))
    drawn(connection, tasks(1, 2))
    connection.execute("delete from onto_tasks where id = %s", [uid_of(2)])

    newer = drawn(connection, tasks(3))

    assert newer == {uid_of(3): "T3"}
    assert bearer(connection, HERE, "task", 2) == uid_of(2)
    with pytest.raises(UnknownEntity, match="'T2'"):
        resolve(connection, HERE, "T2", catalog)

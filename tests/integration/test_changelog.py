"""The change log in a real PostgreSQL: every edit of every table, by whatever statement, in the edit's
transaction; and tokens, which tell exactly which bundles contain it.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from strategies import uid

import foreword
from foreword.freshness import contains
from foreword.kinds import KINDS
from loaders.connection import Connection, connect
from loaders.migrate import migrate
from loaders.tables import LINKING, ontology
from loaders.watch import unwatched

A, B = uid("project a"), uid("project b")
TABLES = sorted([*(kind.table for kind in KINDS.all), *LINKING])


@pytest.fixture
def application(database_url: str) -> Iterator[Connection]:
    """The application's connection; two projects, and an empty log."""
    with connect(database_url) as connection:
        for project in (A, B):
            connection.execute("insert into onto_projects (id, name) values (%s, 'p')", [project])
        connection.execute("delete from fw_changes")
        yield connection


def logged(connection: Connection) -> list[tuple[Any, ...]]:
    """What the log holds, and forget it."""
    rows = connection.execute(
        "with held as (delete from fw_changes returning *) select project_id, table_name, op, rows,"
        " array(select unnest(row_ids)::text order by 1) from held order by 1, 2, 3, 4"
    )
    return rows.fetchall()


def put(connection: Connection, table: str, name: str, project: str = A) -> str:
    """A row with everything that the table demands."""
    given = {
        "id": uid(name),
        "project_id": project,
        "actor_id": uid("actor"),
        "kind": "human",
        "role_key": "viewer",
    }
    columns = [c for c in ontology().tables[table].columns if not c.nullable and c.server_default is None]
    ends = {"src_id": uid("x"), "dst_id": uid("y"), "ts": "2026-01-01"}
    values = [(given | ends).get(c.name, name) for c in columns]
    places = ", ".join(["%s"] * len(columns))
    names = ", ".join(c.name for c in columns)
    connection.execute(f"insert into {table} ({names}) values ({places})".encode(), values)
    return uid(name)


@pytest.mark.parametrize("table", sorted(set(TABLES) - {"onto_projects", "onto_actors"}))
@pytest.mark.promise("fresh.recorded")
def test_every_operation_on_every_table_is_logged(application: Connection, table: str) -> None:
    row = put(application, table, "row")
    inserted = logged(application)
    application.execute(f"update {table} set id = id".encode())
    updated = logged(application)
    application.execute(f"delete from {table}".encode())

    assert inserted == [(A, table, "I", 1, [row])]
    assert updated == [(A, table, "U", 1, [row])]
    assert logged(application) == [(A, table, "D", 1, [row])]


@pytest.mark.promise("fresh.recorded")
def test_edits_of_projects_and_of_actors_are_edits_of_projects(application: Connection) -> None:
    application.execute("update onto_projects set name = 'q' where id = %s", [A])
    renamed = logged(application)
    actor = put(application, "onto_actors", "actor")
    nobodys = logged(application)
    put(application, "onto_project_members", "membership", B)
    logged(application)
    application.execute("update onto_actors set name = 'x'")

    assert renamed == [(A, "onto_projects", "U", 1, [A])]
    assert nobodys == []
    assert logged(application) == [(B, "onto_actors", "U", 1, [actor])]


@pytest.mark.promise("fresh.recorded")
def test_a_statement_that_touches_many_rows_is_one_row_of_the_log_a_project(application: Connection) -> None:
    application.execute(
        "insert into onto_tasks (id, project_id, title) select gen_random_uuid(), p, 't'"
        " from unnest(%s::uuid[]) p, generate_series(1, 5000)",
        [[A, B]],
    )

    inserted = logged(application)
    application.execute("update onto_tasks set title = 'u'")

    assert {(*row[:4], len(set(row[4]))) for row in inserted} == {
        (A, "onto_tasks", "I", 5000, 5000),
        (B, "onto_tasks", "I", 5000, 5000),
    }
    assert sorted((row[0], row[3]) for row in logged(application)) == sorted([(A, 5000), (B, 5000)])


@pytest.mark.promise("fresh.recorded")
def test_a_row_that_moves_touches_both_projects(application: Connection) -> None:
    row = put(application, "onto_tasks", "mover")
    stays = put(application, "onto_tasks", "stays", B)
    logged(application)

    application.execute("update onto_tasks set project_id = %s", [B])

    found = {project: (op, rows, ids) for project, _, op, rows, ids in logged(application)}
    assert found == {A: ("U", 0, []), B: ("U", 2, sorted([row, stays]))}


@pytest.mark.promise("fresh.recorded")
def test_copy_cascades_truncation_and_replicas_are_seen(application: Connection) -> None:
    with application.cursor() as cursor, cursor.copy("copy onto_tasks (id, project_id, title) from stdin") as copy:
        copy.write_row((uid("copied"), A, "copied"))
    copied = logged(application)
    application.execute("set session_replication_role = replica; delete from onto_tasks; reset all")
    as_replica = logged(application)
    application.execute(
        "alter table onto_tasks add foreign key (project_id) references onto_projects on delete cascade"
    )
    put(application, "onto_tasks", "child", B)
    logged(application)
    application.execute("delete from onto_projects where id = %s", [B])
    cascaded = logged(application)
    application.execute("insert into fw_projects (project_id) values (%s)", [A])
    application.execute("truncate onto_tasks")

    assert copied == [(A, "onto_tasks", "I", 1, [uid("copied")])]
    assert as_replica == [(A, "onto_tasks", "D", 1, [uid("copied")])]
    assert [row[:3] for row in cascaded] == [(B, "onto_projects", "D"), (B, "onto_tasks", "D")]
    assert logged(application) == [(A, "onto_tasks", "T", 0, [])]


@pytest.mark.promise("fresh.recorded")
def test_what_is_rolled_back_or_touches_nothing_leaves_no_trace(application: Connection) -> None:
    application.execute("begin")
    put(application, "onto_tasks", "never")
    application.execute("savepoint s")
    put(application, "onto_goals", "neither")
    application.execute("rollback to s; rollback")
    application.execute("update onto_tasks set title = 'x' where false; delete from onto_goals")
    application.execute(
        "insert into onto_tasks (id, project_id, title) select id, id, 'x' from onto_projects where false"
    )

    assert logged(application) == []


@pytest.mark.promise("fresh.recorded")
def test_the_application_needs_no_right_on_our_tables(application: Connection) -> None:
    application.execute("create role fw_app; grant select, insert, update on onto_tasks to fw_app")
    try:
        application.execute("set role fw_app")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            application.execute("select * from fw_changes")
        put(application, "onto_tasks", "theirs")
        with application.transaction():
            assert foreword.token(application)
        # Nothing of the application's may come between a function of ours and what it means.
        application.execute("create function pg_temp.count(uuid) returns bigint language sql return -1")
        application.execute("set search_path = pg_temp, public, pg_catalog")
        put(application, "onto_tasks", "theirs too")
    finally:
        application.execute("reset role; reset search_path")

    assert sorted(row[4] for row in logged(application)) == sorted([[uid("theirs")], [uid("theirs too")]])
    application.execute("drop owned by fw_app; drop role fw_app")


@pytest.mark.promise("fresh.recorded")
def test_nobody_else_makes_triggers_of_what_runs_as_the_owner(application: Connection) -> None:
    application.execute("create role fw_guest")
    functions = application.execute("select oid::regprocedure::text from pg_proc where proname like 'fw_log%'")
    names = [row[0] for row in functions.fetchall()]

    allowed = [
        name
        for name in names
        if application.execute("select has_function_privilege('fw_guest', %s, 'execute')", [name]).fetchall()[0][0]
    ]

    application.execute("drop role fw_guest")
    assert len(names) == 13
    assert allowed == []


@pytest.mark.promise("fresh.recorded", "schema.adopt")
def test_a_table_that_cannot_be_watched_is_named_and_written_to_as_before(database_url: str) -> None:
    with connect(database_url) as connection:
        connection.execute("drop table onto_goals; create table onto_goals (id int, project_id text, name text)")
        connection.execute("alter table onto_project_members rename to members")
        migrate(database_url)

        blind = unwatched(connection)
        connection.execute("insert into onto_goals values (1, 'somewhere', 'x')")
        connection.execute("insert into onto_actors (id, kind) values (%s, 'human')", [uid("actor")])

        assert blind == ["onto_goals"]
        assert connection.execute("select count(*) from fw_changes").fetchall() == [(0,)]


@pytest.mark.promise("fresh.recorded")
def test_after_a_table_was_watched_anew_everything_is_built_again(database_url: str) -> None:
    with connect(database_url) as connection:
        connection.execute("insert into fw_projects (project_id) values (%s)", [A])
        connection.execute(
            "alter table onto_goals rename to old; create table onto_goals (like old including all)"
        )

        migrate(database_url)

        assert connection.execute("select refresh_at <= now() from fw_projects").fetchall() == [(True,)]
        assert unwatched(connection) == []


@pytest.mark.promise("fresh.recorded")
def test_edits_of_one_project_wait_for_nobody(application: Connection, database_url: str) -> None:
    with connect(database_url) as other:
        other.execute("set lock_timeout to '2s'")
        application.execute("begin")
        put(application, "onto_tasks", "one")
        put(other, "onto_tasks", "two")
        other.execute("begin")
        put(other, "onto_goals", "three", B)
        put(application, "onto_goals", "four", B)
        put(other, "onto_goals", "five")
        application.execute("commit")
        other.execute("commit")

    assert sum(row[3] for row in logged(application)) == 5


# ---- tokens


def snapshot(connection: Connection) -> str:
    found: str = connection.execute("select pg_current_snapshot()::text").fetchall()[0][0]
    return found


@pytest.mark.promise("fresh.exact")
def test_a_token_is_contained_as_soon_as_its_transaction_has_committed_whatever_the_order(
    database_url: str,
) -> None:
    with connect(database_url) as early, connect(database_url) as late, connect(database_url) as watcher:
        early.execute("begin")
        first = foreword.token(early)
        late.execute("begin")
        second = foreword.token(late)
        none = snapshot(watcher)
        late.execute("commit")
        only_the_later = snapshot(watcher)
        early.execute("rollback")
        both = snapshot(watcher)

    found = [[contains(1, seen, token) for token in (first, second)] for seen in (none, only_the_later, both)]
    assert found == [[False, False], [False, True], [True, True]]


@pytest.mark.promise("fresh.exact")
def test_a_token_stands_for_the_whole_transaction_savepoints_included(database_url: str) -> None:
    with connect(database_url) as writer:
        writer.execute("begin")
        before = foreword.token(writer)
        writer.execute("savepoint s; insert into onto_projects (id, name) values (gen_random_uuid(), 'x')")
        inside = foreword.token(writer)
        writer.execute("release s; commit")
        log = writer.execute("select '1:' || txid from fw_changes").fetchall()

    assert [(before,), (inside,)] == [*log, *log]


@pytest.mark.promise("fresh.exact")
def test_every_way_of_writing_has_a_token(database_url: str) -> None:
    url = database_url.replace("postgresql://", "postgresql+psycopg://")

    def check(token: str, logged: str) -> None:
        assert token == f"1:{logged}"

    logged = "select max(txid)::text from fw_changes"
    insert = "insert into onto_projects (id, name) values (gen_random_uuid(), 'x')"
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(insert))
        check(foreword.token(connection), str(connection.execute(text(logged)).scalar()))
    with Session(engine) as session:
        session.execute(text(insert))
        check(foreword.token(session), str(session.execute(text(logged)).scalar()))
    engine.dispose()
    with psycopg.connect(database_url) as plain, plain.cursor() as cursor:
        cursor.execute(insert)
        check(foreword.token(cursor), str(cursor.execute(logged).fetchall()[0][0]))

    async def others() -> None:
        async with await psycopg.AsyncConnection.connect(database_url) as connection:
            await connection.execute(insert)
            token = await foreword.token_async(connection)
            check(token, str((await (await connection.execute(logged)).fetchall())[0][0]))
        async_engine = create_async_engine(url)
        async with async_engine.begin() as connection:
            await connection.execute(text(insert))
            token = await foreword.token_async(connection)
            check(token, str((await connection.execute(text(logged))).scalar()))
        async with AsyncSession(async_engine) as session:
            await session.execute(text(insert))
            token = await foreword.token_async(session)
            check(token, str((await session.execute(text(logged))).scalar()))
        await async_engine.dispose()

    asyncio.run(others())


@pytest.mark.promise("fresh.exact")
def test_after_a_restore_no_token_from_before_it_is_contained(database_url: str) -> None:
    with connect(database_url) as writer:
        before = foreword.token(writer)
        writer.execute("update fw_facts set value = value + 1 where name = 'epoch'")
        seen = snapshot(writer)

    assert contains(1, seen, before)
    assert not contains(2, seen, before)


def test_the_documents_name_every_letter_of_the_log(application: Connection) -> None:
    said = Path(__file__).parents[2].joinpath("docs/operations.md").read_text()
    for letter in "IUDTE":
        assert f"`{letter}`" in said

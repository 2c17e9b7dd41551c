"""Loading a project from a real PostgreSQL that is edited, locked, altered and broken meanwhile."""

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import pq
from psycopg.pq import TransactionStatus
from psycopg.types.json import Jsonb
from strategies import FORGERIES, drafted, handles_of, projects, rendered, uid

from foreword import codec
from foreword.bundle import Content, render
from foreword.draft import Draft, completed
from foreword.errors import BuildError, ForewordError, SchemaError, Unavailable, UnknownProject
from foreword.focus import render_focus, select_focus
from foreword.kinds import KINDS, Kind
from foreword.lines import fit
from foreword.rows import ProjectRows
from foreword.stamp import Stamp
from foreword.tokens import count
from loaders.catalog import inspect
from loaders.connection import Connection, connect
from loaders.jsonl import import_directory
from loaders.migrate import migrate
from loaders.project import Statements, compile_statements, load_chosen, load_project, survey_project
from worker.servers import Addresses

HARBOUR = Path(__file__).parents[2] / "samples" / "harbour"
LIBRARY, BOAT = "a8e1bf1f-2157-5c0b-a103-3b8fa71a9b3b", "8b7e4cad-0a07-5b44-8dc5-f5e96d8984ed"
PROJECT, OTHER, THIRD = uid("project"), uid("other project"), uid("third project")
WHEN = "2026-01-01T09:00:00Z"

Cells = dict[str, Any]
Load = Callable[[Connection, str, Statements], Draft]


# ---- rows in, drafts out


def put(connection: Connection, table: str, *rows: Cells) -> None:
    """Insert rows; what is not given is null, but for the times."""
    whole = [{"created_at": WHEN, "updated_at": WHEN, "ts": WHEN, **row} for row in rows]
    statement = f"insert into {table} select * from jsonb_populate_recordset(null::{table}, %s)"
    connection.execute(statement.encode(), [Jsonb(whole)])


def put_project(connection: Connection, project: str = PROJECT, **more: Any) -> None:
    put(connection, "onto_projects", {"id": project, "name": "Net loft", **more})


def entity(kind: Kind, name: str, project: str = PROJECT, **more: Any) -> Cells:
    titled = {kind.label: name} if kind.label in {column.name for column in kind.columns} else {}
    return {"id": uid(name), "project_id": project, **titled, **more}


def edge(src: str, rel: str, dst: str, project: str = PROJECT) -> Cells:
    ends = {"src_id": src, "src_kind": "task", "dst_id": dst, "dst_kind": "task"}
    return {"id": uid(f"{src} {rel} {dst}"), "project_id": project, "rel": rel, **ends}


def put_one_of_each(connection: Connection, called: str = "old") -> None:
    """An entity of every kind, linked to the project, and a member."""
    for kind in KINDS.entities:
        put(connection, kind.table, entity(kind, f"{called} {kind.name}"))
        put(connection, "onto_edges", edge(PROJECT, f"has_{kind.name}", uid(f"{called} {kind.name}")))
    member = {"id": uid(called), "project_id": PROJECT, "actor_id": uid(f"{called} actor"), "role_key": "owner"}
    put(connection, "onto_project_members", member)


def loaded_whole(connection: Connection, project: str, statements: Statements) -> Draft:
    rows = load_project(connection, project, statements)
    return drafted(rows, kinds=statements.catalog.kinds)


def loaded_in_two(connection: Connection, project: str, statements: Statements) -> Draft:
    with survey_project(connection, project, statements) as rows:
        draft = drafted(rows, kinds=statements.catalog.kinds)
        chosen: dict[str, list[str]] = {}
        for i, (kind, _) in draft.by_id.items():
            if i != project:
                chosen.setdefault(kind.name, []).append(i)
        return completed(draft, load_chosen(connection, chosen, statements))


both_ways = pytest.mark.parametrize("load", [loaded_whole, loaded_in_two], ids=["whole", "in two"])


def content_of(draft: Draft) -> Content:
    return render(draft, handles_of(draft), count)


def everything(content: Content) -> tuple[bytes, list[Any], int]:
    return codec.dumps(content.data), list(content.lines), content.always


def text_of(content: Content) -> str:
    return fit(content.lines, content.always, 3000).text


@pytest.fixture(scope="module")
def shared_url(servers: Addresses, migrated: str, encoding: None) -> str:
    return created(servers, "fw_loader", f"template {migrated}")


@pytest.fixture
def database_url(shared_url: str) -> str:
    """One database, emptied, for all tests that leave its tables as they are; that is faster than one each."""
    with connect(shared_url) as connection:
        emptied(connection)
    return shared_url


@pytest.fixture(scope="module")
def statements(shared_url: str) -> Statements:
    with connect(shared_url) as connection:
        return compile_statements(inspect(connection))


_number = itertools.count(1)


@pytest.fixture
def own(servers: Addresses, migrated: str, encoding: None) -> Iterator[Connection]:
    """A database for one test that alters its tables: a project with one entity of every kind."""
    with connect(created(servers, f"fw_own_{next(_number)}", f"template {migrated}")) as connection:
        put_project(connection)
        put_one_of_each(connection)
        yield connection


@pytest.fixture
def harbour(connection: Connection, statements: Statements) -> Connection:
    import_directory(connection, HARBOUR, statements.catalog)
    return connection


@pytest.fixture(scope="module")
def hostile(servers: Addresses, migrated: str, encoding: None) -> Iterator[Connection]:
    """A database that holds nobody to anything but to its types."""
    with connect(created(servers, "fw_hostile", f"template {migrated}")) as connection:
        connection.execute("""
        do $$ declare c record; begin
          for c in select conrelid::regclass as t, conname from pg_constraint where contype = 'c'
                     and conrelid::regclass::text like 'onto%' loop
            execute format('alter table %s drop constraint %I', c.t, c.conname);
          end loop;
          for c in select table_name, column_name from information_schema.columns where is_nullable = 'NO'
                     and table_name like 'onto%' and column_name not in ('id', 'project_id') loop
            execute format('alter table %I alter column %I drop not null', c.table_name, c.column_name);
          end loop;
        end $$""")
        yield connection


def created(servers: Addresses, name: str, how: str) -> str:
    with connect(servers.database_url) as admin:
        admin.execute(f"create database {name} {how}".encode())
    return servers.database_url.replace("/foreword?", f"/{name}?")


def emptied(connection: Connection) -> None:
    tables = [*(kind.table for kind in KINDS.all), "onto_edges", "onto_project_members", "onto_actors"]
    connection.execute("; ".join(f"delete from {table}" for table in tables).encode())


# ---- one snapshot


def until_blocked(watcher: Connection, pid: int) -> None:
    """Return when the session waits for a lock."""
    while not watcher.execute("select cardinality(pg_blocking_pids(%s)) > 0", [pid]).fetchall()[0][0]:
        pass


@contextmanager
def at_the_same_time(job: Callable[[], Any]) -> Iterator[Future[Any]]:
    with ThreadPoolExecutor(1) as threads:
        yield threads.submit(job)


@pytest.mark.promise("loader.one-snapshot")
@both_ways
@pytest.mark.parametrize("held", ["onto_projects", "onto_tasks", "onto_insights", "onto_edges"])
def test_an_edit_that_commits_during_a_load_is_wholly_absent(
    connection: Connection, database_url: str, statements: Statements, held: str, load: Load
) -> None:
    put_project(connection)
    put_one_of_each(connection)
    before = everything(content_of(load(connection, PROJECT, statements)))

    with connect(database_url) as writer, connect(database_url) as watcher:
        writer.execute("begin")
        writer.execute(f"lock table {held} in access exclusive mode".encode())
        put_one_of_each(writer, "new")
        writer.execute("update onto_projects set name = 'renamed'; delete from onto_goals")
        edit = writer.execute("select pg_current_xact_id()::text").fetchall()[0][0]
        with at_the_same_time(lambda: load(connection, PROJECT, statements)) as loading:
            until_blocked(watcher, connection.info.backend_pid)
            writer.execute("commit")
            draft = loading.result()
        seen = watcher.execute(
            "select pg_visible_in_snapshot(%s::text::xid8, %s::text::pg_snapshot)", [edit, draft.rows.snapshot]
        ).fetchall()[0][0]

    assert everything(content_of(draft)) == before
    assert draft.rows.members == ((uid("old actor"), "owner"),)
    assert not seen
    assert text_of(content_of(load(connection, PROJECT, statements))).startswith('# project "renamed"')


@pytest.mark.promise("loader.one-snapshot")
def test_an_edit_between_survey_and_choice_is_wholly_absent(
    connection: Connection, database_url: str, statements: Statements
) -> None:
    put_project(connection)
    put_one_of_each(connection)
    before = everything(content_of(loaded_in_two(connection, PROJECT, statements)))

    with survey_project(connection, PROJECT, statements) as rows:
        draft = drafted(rows)
        with connect(database_url) as writer:
            writer.execute("update onto_tasks set title = 'renamed', state_key = 'done'; delete from onto_plans")
            put_one_of_each(writer, "new")
        chosen = {kind.name: [uid(f"old {kind.name}")] for kind in KINDS.entities}
        draft = completed(draft, load_chosen(connection, chosen, statements))

    assert everything(content_of(draft)) == before


# ---- light


@contextmanager
def received(connection: Connection) -> Iterator[list[int]]:
    """How many bytes the server sends to this connection: libpq's own trace adds up the messages' lengths."""
    found: list[int] = []
    with tempfile.TemporaryFile() as trace:
        connection.pgconn.trace(os.dup(trace.fileno()))
        connection.pgconn.set_trace_flags(pq.Trace.SUPPRESS_TIMESTAMPS)
        try:
            yield found
        finally:
            connection.pgconn.untrace()
        trace.seek(0)
        found.append(sum(int(line.split(b"\t")[1]) for line in trace if line.startswith(b"B\t")))


@pytest.mark.promise("loader.light")
@both_ways
def test_bodies_of_documents_do_not_travel(connection: Connection, statements: Statements, load: Load) -> None:
    put_project(connection)
    connection.execute(
        """insert into onto_documents (id, project_id, title, description, content)
        select gen_random_uuid(), %s, 'Minutes ' || n, repeat('long ', 100000), repeat('0123456789', 100000)
        from generate_series(1, 50) n""",
        [PROJECT],
    )
    size = connection.execute("select sum(length(content)) from onto_documents").fetchall()[0][0]

    with received(connection) as moved:
        draft = load(connection, PROJECT, statements)

    assert size == 50_000_000
    assert moved[0] < 60_000
    shown = content_of(draft).data["slices"]["documents"]
    assert {document["content"] for document in shown} == {("0123456789" * 20)[:199] + "…"}
    assert len(shown) == 10


def test_the_measure_of_what_travels_sees_a_body(connection: Connection) -> None:
    with received(connection) as moved:
        connection.execute("select repeat('x', 1000000)").fetchall()

    assert 1_000_000 < moved[0] < 1_001_000


# ---- loud


def failing_with(load: Load, connection: Connection, statements: Statements, error: type[ForewordError]) -> str:
    """What a load that has to fail says; the connection is ready for the next one."""
    with pytest.raises(error) as caught:
        load(connection, PROJECT, statements)
    assert connection.closed or connection.info.transaction_status == TransactionStatus.IDLE
    return str(caught.value)


@pytest.fixture
def blind_role(database_url: str) -> Iterator[str]:
    with connect(database_url) as admin:
        admin.execute("create role fw_blind")
        admin.execute("grant select on all tables in schema public to fw_blind")
        yield "fw_blind"
        admin.execute("drop owned by fw_blind")
        admin.execute("drop role fw_blind")


@pytest.mark.promise("loader.loud")
@both_ways
@pytest.mark.parametrize("table", ["onto_projects", "onto_risks", "onto_edges", "onto_project_members"])
def test_a_table_that_may_not_be_read_fails_the_load(
    connection: Connection, statements: Statements, blind_role: str, load: Load, table: str
) -> None:
    put_project(connection)
    connection.execute(f"revoke select on {table} from {blind_role}".encode())
    connection.execute(f"set role {blind_role}".encode())

    said = failing_with(load, connection, statements, SchemaError)

    assert f"permission denied for table {table}" in said
    connection.execute("reset role")
    assert load(connection, PROJECT, statements).rows.project[0] == PROJECT


@pytest.mark.promise("loader.loud")
@both_ways
def test_a_foreign_end_that_may_not_be_looked_up_fails_the_load(
    connection: Connection, statements: Statements, load: Load
) -> None:
    put_project(connection)
    put(connection, "onto_edges", edge(PROJECT, "has_task", uid("nobody")))
    broken = replace(statements, elsewhere=statements.elsewhere.replace("onto_risks", "onto_risks_gone"))

    said = failing_with(load, connection, broken, SchemaError)

    assert 'relation "onto_risks_gone" does not exist' in said
    assert load(connection, PROJECT, statements).graph.dangling == 1


@pytest.mark.promise("loader.loud", "loader.absent")
def test_a_table_that_vanishes_after_the_start_is_an_error_and_no_empty_kind(
    own: Connection, statements: Statements
) -> None:
    own.execute("drop table onto_risks")

    whole = failing_with(loaded_whole, own, statements, SchemaError)
    in_two = failing_with(loaded_in_two, own, statements, SchemaError)

    assert whole == in_two
    assert whole.startswith(f'loading project {PROJECT}: relation "onto_risks" does not exist')


@pytest.mark.promise("loader.loud")
def test_a_view_that_stumbles_fails_the_load(own: Connection, statements: Statements) -> None:
    own.execute("alter table onto_plans rename to plans")
    own.execute("create view onto_plans as select * from plans where 1 / (random() * 0)::int = 1")

    whole = failing_with(loaded_whole, own, statements, BuildError)
    in_two = failing_with(loaded_in_two, own, statements, BuildError)

    assert whole == in_two == f"loading project {PROJECT}: division by zero"


@pytest.mark.promise("loader.loud")
@both_ways
@pytest.mark.parametrize(("limit", "error"), [("statement_timeout", BuildError), ("lock_timeout", Unavailable)])
def test_a_statement_that_takes_too_long_fails_the_load(
    connection: Connection,
    database_url: str,
    statements: Statements,
    load: Load,
    limit: str,
    error: type[ForewordError],
) -> None:
    put_project(connection)
    connection.execute(f"set {limit} to '200ms'".encode())

    with connect(database_url) as application:
        application.execute("begin")
        application.execute("lock table onto_signals")
        said = failing_with(load, connection, statements, error)
    connection.execute(f"set {limit} to '30s'".encode())

    assert "canceling statement due to" in said
    assert load(connection, PROJECT, statements).rows.project[0] == PROJECT


@pytest.mark.promise("loader.loud")
@both_ways
def test_a_lost_connection_is_unavailable(
    connection: Connection, database_url: str, statements: Statements, load: Load
) -> None:
    put_project(connection)

    with connect(database_url) as application:
        application.execute("begin")
        application.execute("lock table onto_signals")
        with (
            at_the_same_time(lambda: failing_with(load, connection, statements, Unavailable)) as failing,
            connect(database_url) as watcher,
        ):
            until_blocked(watcher, connection.info.backend_pid)
            watcher.execute("select pg_terminate_backend(%s)", [connection.info.backend_pid])
            said = failing.result()

    assert "connection" in said
    assert connection.closed


@pytest.mark.promise("loader.loud")
@both_ways
def test_a_connection_lost_between_loads_is_unavailable(
    connection: Connection, database_url: str, statements: Statements, load: Load
) -> None:
    put_project(connection)
    load(connection, PROJECT, statements)
    with connect(database_url) as admin:
        admin.execute("select pg_terminate_backend(%s, 10000)", [connection.info.backend_pid])

    failing_with(load, connection, statements, Unavailable)

    assert connection.closed


@both_ways
def test_a_project_that_is_not_there_leaves_the_connection_ready(
    connection: Connection, statements: Statements, load: Load
) -> None:
    put_project(connection, deleted_at=WHEN)

    said = failing_with(load, connection, statements, UnknownProject)

    assert PROJECT in said
    with pytest.raises(BuildError, match="invalid input syntax for type uuid"):
        load(connection, "nonsense", statements)


def test_statements_stay_prepared_from_load_to_load(connection: Connection, statements: Statements) -> None:
    put_project(connection)
    loaded_in_two(connection, PROJECT, statements)
    prepared = "select name from pg_prepared_statements where prepare_time < %s"
    now = connection.execute("select clock_timestamp()").fetchall()[0][0]

    loaded_in_two(connection, PROJECT, statements)

    assert len(connection.execute(prepared, [now]).fetchall()) >= len(KINDS.all)


def test_after_a_column_changed_its_type_one_load_fails_and_the_next_fits(
    own: Connection, statements: Statements
) -> None:
    before = [loaded_whole(own, PROJECT, statements), loaded_in_two(own, PROJECT, statements)]
    with psycopg.connect(own.info.dsn, autocommit=True) as application:
        application.execute("alter table onto_tasks alter column created_at type timestamp")

    said = failing_with(loaded_in_two, own, statements, SchemaError)

    assert "a table was altered meanwhile: cached plan must not change result type; try again" in said
    after = [loaded_whole(own, PROJECT, statements), loaded_in_two(own, PROJECT, statements)]
    assert [content_of(draft).data for draft in after] == [content_of(draft).data for draft in before]


# ---- absent tables, missing columns, other schemas


@pytest.mark.promise("loader.absent")
def test_a_missing_table_is_an_absent_kind_and_said_to_be(own: Connection) -> None:
    own.execute("drop table onto_outputs, onto_decisions")

    statements = compile_statements(inspect(own))
    draft = loaded_whole(own, PROJECT, statements)

    content = content_of(draft)
    assert everything(content_of(loaded_in_two(own, PROJECT, statements))) == everything(content)
    assert statements.catalog.absent == ("decision", "output")
    assert content.data["coverage"]["absent"] == ["decision", "output"]
    assert not {"decision", "output"} & draft.rows.entities.keys()
    for counted in (content.data["slices"], content.data["coverage"]["kinds"], content.data["graph"]["coverage"]):
        assert not {"decisions", "outputs"} & counted.keys()
    assert not {"decisions", "outputs"} & content.data["header"]["entity_counts"].keys()
    assert "\nnot kept here: decisions, outputs\n" in text_of(content)
    assert content.data["coverage"]["edges"]["dangling"] == 2


@pytest.mark.promise("loader.absent")
def test_an_empty_table_is_no_absent_kind(connection: Connection, statements: Statements) -> None:
    put_project(connection)

    content = content_of(loaded_whole(connection, PROJECT, statements))

    assert statements.catalog.absent == ()
    assert content.data["slices"]["outputs"] == []
    assert "\noutputs: 0" in text_of(content)
    assert "not kept here" not in text_of(content)


@pytest.mark.promise("loader.absent")
def test_without_a_table_of_members_nobody_is_one(own: Connection) -> None:
    own.execute("drop table onto_project_members, onto_actors")

    rows = load_project(own, PROJECT, compile_statements(inspect(own)))

    assert rows.members == ()
    assert len(rows.entities["task"]) == 1


def test_members_are_those_not_removed_each_once(connection: Connection, statements: Statements) -> None:
    put_project(connection)
    for number, (actor, role, removed) in enumerate(
        [
            ("a", "viewer", None),
            ("a", "editor", WHEN),
            ("b", "owner", WHEN),
            ("c", "owner", None),
            ("c", "owner", None),
        ]
    ):
        row = {"id": uid(str(number)), "project_id": PROJECT, "actor_id": uid(actor)}
        put(connection, "onto_project_members", {**row, "role_key": role, "removed_at": removed})

    rows = load_project(connection, PROJECT, statements)

    assert sorted(rows.members) == sorted([(uid("a"), "viewer"), (uid("c"), "owner")])


@pytest.mark.promise("loader.absent")
@pytest.mark.parametrize("table", ["onto_edges", "onto_projects"])
def test_without_edges_or_projects_the_database_is_to_be_migrated(connection: Connection, table: str) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute(f"drop table {table}".encode())

        with pytest.raises(SchemaError, match=f"has no table {table}; run `python -m worker migrate`"):
            inspect(connection)


@pytest.mark.promise("loader.absent")
@pytest.mark.parametrize(
    "column",
    [
        *("onto_tasks.due_at", "onto_tasks.project_id", "onto_goals.id", "onto_projects.props"),
        *("onto_signals.payload", "onto_insights.props", "onto_edges.rel", "onto_project_members.removed_at"),
    ],
)
def test_a_missing_column_is_named_at_the_start(connection: Connection, column: str) -> None:
    table, name = column.split(".")
    with connection.transaction(force_rollback=True):
        connection.execute(f"alter table {table} drop column {name}".encode())

        with pytest.raises(SchemaError, match=f"the database lacks {column};"):
            inspect(connection)


@pytest.mark.promise("loader.absent")
def test_columns_that_no_light_record_needs_may_be_missing(own: Connection) -> None:
    for column in ("onto_tasks.created_by", "onto_tasks.props", "onto_plans.plan", "onto_goals.deleted_at"):
        table, name = column.split(".")
        own.execute(f"alter table {table} drop column {name}".encode())

    rows = load_project(own, PROJECT, compile_statements(inspect(own)))

    assert {name: len(table) for name, table in rows.entities.items()} == dict.fromkeys(rows.entities, 1)


@pytest.mark.promise("loader.absent")
def test_tables_are_found_where_the_search_path_leads(own: Connection, statements: Statements) -> None:
    before = everything(content_of(loaded_whole(own, PROJECT, statements)))
    own.execute('create schema "App"')
    for table in (*(kind.table for kind in KINDS.all), "onto_edges", "onto_project_members"):
        own.execute(f'alter table {table} set schema "App"'.encode())
        own.execute(f"create table {table} (decoy text)".encode())
    with pytest.raises(SchemaError, match=r"the database lacks onto_projects\.created_at"):
        inspect(own)
    own.execute('set search_path to "App", public')

    found = compile_statements(inspect(own))

    assert found.catalog.absent == ()
    assert everything(content_of(loaded_whole(own, PROJECT, found))) == before


# ---- adopted columns


def test_columns_of_other_types_are_read_as_what_they_mean(own: Connection, statements: Statements) -> None:
    kinds = KINDS.by_name
    put(own, "onto_tasks", entity(kinds["task"], "paint", state_key="blocked", priority=2, due_at=WHEN))
    put(own, "onto_risks", entity(kinds["risk"], "storm", impact="high", probability=0.5))
    before = everything(content_of(loaded_whole(own, PROJECT, statements)))
    own.execute("create type state as enum ('todo', 'blocked', 'active')")
    own.execute("create domain called as varchar(80) check (value <> '')")
    for column, type_ in [
        ("onto_tasks.state_key", "state"),
        ("onto_projects.state_key", "state"),
        ("onto_tasks.title", "called"),
        ("onto_risks.impact", "varchar(20)"),
        ("onto_tasks.priority", "smallint"),
        ("onto_tasks.due_at", "timestamp"),
        ("onto_risks.probability", "numeric(3, 1)"),
        ("onto_projects.props", "json"),
    ]:
        table, name = column.split(".")
        own.execute(f"alter table {table} alter column {name} drop default".encode())
        own.execute(f"alter table {table} alter column {name} type {type_} using {name}::{type_}".encode())

    found = compile_statements(inspect(own))
    whole, in_two = loaded_whole(own, PROJECT, found), loaded_in_two(own, PROJECT, found)

    assert everything(content_of(whole)) == everything(content_of(in_two)) == before


@pytest.mark.parametrize("encoding_of_server", ["SQL_ASCII", "LATIN1"])
def test_text_is_text_whatever_the_database_encodes_it_in(servers: Addresses, encoding_of_server: str) -> None:
    how = f"template template0 encoding {encoding_of_server} locale 'C'"
    url = created(servers, f"fw_{encoding_of_server.lower()}", how)
    migrate(url)
    with connect(url) as connection:
        put_project(connection)
        connection.execute("update onto_projects set name = %s", ["Café Ærø"])

        rows = load_project(connection, PROJECT, compile_statements(inspect(connection)))

    assert rows.project[:2] == (PROJECT, "Café Ærø")


# ---- archived, deleted


@pytest.mark.promise("loader.archived")
def test_what_is_archived_or_deleted_is_not_live(own: Connection) -> None:
    for table in ("onto_tasks", "onto_signals", "onto_projects"):
        own.execute(f"alter table {table} add column archived_at timestamptz".encode())
    own.execute("truncate onto_edges; update onto_signals set archived_at = now()")
    for name, more in {"live": {}, "archived": {"archived_at": WHEN}, "deleted": {"deleted_at": WHEN}}.items():
        put(own, "onto_tasks", entity(KINDS.by_name["task"], name, **more))
        put(own, "onto_edges", edge(PROJECT, "has_task", uid(name)))
    statements = compile_statements(inspect(own))

    whole, in_two = loaded_whole(own, PROJECT, statements), loaded_in_two(own, PROJECT, statements)

    assert {row[0] for row in whole.rows.entities["task"]} == {uid("old task"), uid("live")}
    assert whole.rows.entities["signal"] == []
    assert len(whole.rows.entities["goal"]) == 1  # a table without the column
    assert (len(whole.graph.edges), whole.graph.dangling) == (1, 2)
    assert everything(content_of(in_two)) == everything(content_of(whole))
    own.execute("update onto_projects set archived_at = now()")
    failing_with(loaded_whole, own, statements, UnknownProject)
    failing_with(loaded_in_two, own, statements, UnknownProject)


# ---- tenants


MARKERS = {PROJECT: "Albatross", OTHER: "Bittern", THIRD: "Cormorant"}


def three_tenants(random: Random, edges: int) -> dict[str, list[Cells]]:
    """Rows by table, of three projects. Every text holds its project's marker; edges lead anywhere."""
    found: dict[str, list[Cells]] = {"onto_projects": [], "onto_edges": [], "onto_project_members": []}
    ends = [uid("nobody")]
    for project, marker in MARKERS.items():
        found["onto_projects"].append(marked(KINDS.project, project, marker, random))
        member = {
            "id": uid(marker),
            "project_id": project,
            "actor_id": uid(f"actor {marker}"),
            "role_key": "owner",
        }
        found["onto_project_members"].append(member)
        ends.append(project)
        for kind in KINDS.entities:
            rows = [marked(kind, project, marker, random) for _ in range(random.randint(0, 4))]
            found.setdefault(kind.table, []).extend(rows)
            ends += [row["id"] for row in rows]
    for number in range(edges):
        project, marker = random.choice([*MARKERS.items()])
        rel = random.choice(["has_task", "depends_on", "has_context_document", "supports_goal", f"{marker}_rel"])
        between = edge(random.choice([project, *ends]), rel, random.choice(ends), project)
        found["onto_edges"].append({**between, "id": uid(f"edge {number}"), "src_kind": marker})
    return found


def marked(kind: Kind, project: str, marker: str, random: Random) -> Cells:
    row: Cells = {"id": uid(f"{kind.name} {random.random()}"), "project_id": project}
    for column in kind.columns_of():
        if column.type == "text" and not column.one_of:
            row[column.name] = random.choice([marker, f"{marker} " * 90, f"{random.choice(FORGERIES)} {marker}"])
        elif column.type == "jsonb":
            row[column.name] = {"summary": f"of {marker}", "timezone": marker, "more": [marker]}
        elif column.type == "timestamptz" and not column.name.startswith("deleted"):
            row[column.name] = random.choice([WHEN, "2026-11-20T10:00:00Z", "2026-11-23T00:00:00Z"])
    if kind.deletable and kind is not KINDS.project and random.random() < 0.2:
        row["deleted_at"] = WHEN
    return row | ({"id": project} if kind is KINDS.project else {})


@pytest.mark.promise("loader.tenant")
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32), edges=st.integers(0, 60))
def test_no_bundle_holds_anything_of_another_project(hostile: Connection, seed: int, edges: int) -> None:
    tables = three_tenants(Random(seed), edges)
    emptied(hostile)
    for table, rows in tables.items():
        put(hostile, table, *({k: _storable(v) for k, v in row.items()} for row in rows))
    statements = compile_statements(inspect(hostile))
    owner = {
        str(row["id"]): str(row.get("project_id", row["id"]))
        for name, rows in tables.items()
        for row in rows
        if name != "onto_edges"
    }
    dead = {row["id"] for rows in tables.values() for row in rows if row.get("deleted_at")}

    for project, marker in MARKERS.items():
        for load in (loaded_whole, loaded_in_two):
            draft = load(hostile, project, statements)
            published = bytes_of(draft)

            strangers = {i for i, p in owner.items() if p != project} | {*MARKERS.values()} - {marker}
            assert not [name for name in strangers if name.encode() in published]
            assert marker.encode() in published
            counted = counted_edges(
                [e for e in tables["onto_edges"] if e["project_id"] == project], project, owner, dead
            )
            assert (draft.graph.dangling, draft.graph.foreign) == counted


def counted_edges(edges: list[Cells], project: str, owner: dict[str, str], dead: set[str]) -> tuple[int, int]:
    """(dangling, foreign), edge by edge."""
    dangling = foreign = 0
    for row in edges:
        ends = {row["src_id"], row["dst_id"]}
        if any(owner.get(end, project) != project for end in ends):
            foreign += 1
        elif any(end not in owner or end in dead for end in ends):
            dangling += 1
    return dangling, foreign


def bytes_of(draft: Draft) -> bytes:
    """All that is published of a project, and the focus bundle of one of its entities."""
    content = content_of(draft)
    stamp = Stamp(epoch=1, generation=1)
    fields = codec.encode(content, stamp, fit(content.lines, content.always, 3000), draft.rows.members)
    some = next((rows[0][0] for rows in draft.rows.entities.values() if rows), None)
    if some is not None and draft.by_id.get(some) is not None:
        focus = select_focus(draft, some)
        names = {i: f"X{n}" for n, (_, i) in enumerate(focus.named)}
        fields["focus"] = codec.dumps(render_focus(focus, names, count, with_graph=True).data)
    return b"\n".join(name.encode() + b" " + value for name, value in sorted(fields.items()))


def _storable(value: Any) -> Any:
    return value.replace("\0", "") if isinstance(value, str) else value


# ---- what is stored is what is loaded


def store(connection: Connection, rows: ProjectRows, random: Random) -> None:
    """Put light rows into the tables, in another order, the ends that are elsewhere into another project."""
    emptied(connection)
    kinds = [(KINDS.project, [rows.project]), *((k, rows.entities.get(k.name, ())) for k in KINDS.entities)]
    for kind, light in kinds:
        put(
            connection,
            kind.table,
            *(_stored(kind, row, rows.project_id) for row in random.sample([*light], len(light))),
        )
    put(connection, "onto_tasks", *({"id": i, "project_id": OTHER, "title": "far"} for i in rows.elsewhere))
    names = ("id", "src_id", "src_kind", "dst_id", "dst_kind", "rel", "project_id")
    edges = [dict(zip(names, (*e, rows.project_id), strict=True)) for e in rows.edges]
    put(connection, "onto_edges", *random.sample(edges, len(edges)))


def _stored(kind: Kind, row: tuple[Any, ...], project: str) -> Cells:
    cells = dict(zip(kind.at, row[1:], strict=True))
    whole = {"id": row[0], "project_id": project, "props": {}}
    for name in ("timezone", "summary"):
        if name in cells:
            whole["props"] = {name: cells.pop(name)}
    if "payload_summary" in cells:
        whole["payload"] = {"summary": cells.pop("payload_summary")}
    return whole | dict.fromkeys(("created_at", "updated_at", "ts")) | cells


def without_nul(rows: ProjectRows) -> ProjectRows:
    """What PostgreSQL can hold: text without NUL; a signal has some payload."""

    def clean(light: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(map(_storable, light))

    entities = {name: [clean(row) for row in table] for name, table in rows.entities.items()}
    at = KINDS.by_name["signal"].at["payload_summary"]
    if "signal" in entities:
        entities["signal"] = [
            (*r[:at], r[at] if r[at] is not None else "?", *r[at + 1 :]) for r in entities["signal"]
        ]
    edges = {e[0]: (*e[:5], _storable(e[5])) for e in rows.edges}
    return replace(
        rows, project=clean(rows.project), entities=entities, edges=[*edges.values()], members=(), absent=()
    )


@pytest.mark.promise("loader.light", "build.deterministic")
@settings(max_examples=25)
@given(rows=projects().map(without_nul), seed=st.integers(0, 99))
def test_what_is_stored_is_what_is_loaded_in_whatever_order(
    hostile: Connection, rows: ProjectRows, seed: int
) -> None:
    store(hostile, rows, Random(seed))
    statements = compile_statements(inspect(hostile))

    whole = loaded_whole(hostile, rows.project_id, statements)
    in_two = loaded_in_two(hostile, rows.project_id, statements)

    loaded = whole.rows
    assert loaded.project == rows.project
    assert {k: sorted(t) for k, t in loaded.entities.items()} == {
        kind.name: sorted(rows.entities.get(kind.name, ())) for kind in KINDS.entities
    }
    assert sorted(loaded.edges) == sorted(rows.edges)
    assert loaded.elsewhere == rows.elsewhere & {end for e in rows.edges for end in (e[1], e[3])}
    assert everything(content_of(whole)) == everything(content_of(in_two)) == everything(rendered(rows))


@pytest.mark.promise("build.deterministic")
@pytest.mark.parametrize("project", [LIBRARY, BOAT])
def test_survey_and_choice_give_what_a_whole_load_gives(
    harbour: Connection, statements: Statements, project: str
) -> None:
    whole = everything(content_of(loaded_whole(harbour, project, statements)))
    for table in ("onto_tasks", "onto_edges", "onto_documents"):
        harbour.execute(f"create table shuffled as select * from {table} order by random()".encode())
        harbour.execute(
            f"truncate {table}; insert into {table} select * from shuffled; drop table shuffled".encode()
        )

    in_two = everything(content_of(loaded_in_two(harbour, project, statements)))

    assert in_two == whole
    assert everything(content_of(loaded_whole(harbour, project, statements))) == whole


def test_one_id_in_two_tables_is_one_entity(connection: Connection, statements: Statements) -> None:
    put_project(connection)
    kinds = KINDS.by_name
    put(connection, "onto_tasks", entity(kinds["task"], "twice"))
    put(connection, "onto_goals", entity(kinds["goal"], "twice"), entity(kinds["goal"], "g", id=PROJECT))

    whole = loaded_whole(connection, PROJECT, statements)

    assert everything(content_of(whole)) == everything(content_of(loaded_in_two(connection, PROJECT, statements)))
    assert {k: c["total"] for k, c in whole.coverage.items() if c["total"]} == {"tasks": 1}


# ---- coverage


_LIVE_ROWS = " union all ".join(
    f"select id, project_id, '{kind.plural}' as kind from {kind.table}"
    + (" where deleted_at is null" if kind.deletable else "")
    for kind in KINDS.entities
)

_COVERAGE = f"""
with live as (select id, kind from ({_LIVE_ROWS}) l where project_id = %(project)s),
nodes as (select id, kind from live union all select %(project)s::uuid, 'projects'),
links as (select e.src_id as a, e.dst_id as b from onto_edges e join nodes s on s.id = e.src_id
  join nodes d on d.id = e.dst_id where e.project_id = %(project)s and e.src_id <> e.dst_id),
steps as (select a, b from links union select b, a from links),
direct as (select b as id from steps where a = %(project)s),
near as (select id from direct union select b from steps where a in (select id from direct))
select kind, count(*), count(*) filter (where id in (select id from direct)),
  count(*) filter (where id not in (select id from direct)), count(*) filter (where id in (select id from near)),
  count(*) filter (where id not in (select a from steps))
from live group by kind
"""

_BROKEN = f"""
with live as (select id from ({_LIVE_ROWS}) l where project_id = %(project)s union select %(project)s::uuid),
far as (select id from ({_LIVE_ROWS}) l where project_id <> %(project)s
  union select id from onto_projects where id <> %(project)s),
e as (select *, src_id in (select id from live) and dst_id in (select id from live) as whole,
    src_id in (select id from far) or dst_id in (select id from far) as away
  from onto_edges where project_id = %(project)s),
said as (select case rel when 'belongs_to_plan' then 'has_task' when 'blocked_by' then 'blocks'
    when 'depends_on' then 'blocks' when 'supports' then 'supports_goal' when 'achieved_by' then 'supports_goal'
    else rel end as rel, case when turned then dst_id else src_id end as a,
    case when turned then src_id else dst_id end as b
  from (select *, rel in ('belongs_to_plan', 'blocked_by', 'depends_on', 'achieved_by') as turned from e) t
  where whole and src_id <> dst_id),
kept as (select distinct rel, case when rel = 'relates_to' then least(a, b) else a end,
    case when rel = 'relates_to' then greatest(a, b) else b end from said)
select count(*) filter (where not whole and not away), count(*) filter (where not whole and away),
  count(*) filter (where whole and src_id = dst_id), (select count(*) from kept),
  (select count(*) from said) - (select count(*) from kept)
from e
"""


@pytest.mark.promise("loader.manifest", "graph.partition", "graph.once")
@both_ways
@pytest.mark.parametrize(("project", "total"), [(LIBRARY, 243), (BOAT, 16)])
def test_coverage_is_what_plain_sql_counts(
    harbour: Connection, statements: Statements, load: Load, project: str, total: int
) -> None:
    names = ("total", "direct", "unlinked", "reachable", "orphan")
    counted = harbour.execute(_COVERAGE.encode(), {"project": project}).fetchall()
    by_kind = {kind: dict(zip(names, numbers, strict=True)) for kind, *numbers in counted}
    broken = harbour.execute(_BROKEN.encode(), {"project": project}).fetchall()[0]

    found = content_of(load(harbour, project, statements)).data["coverage"]

    nothing = dict.fromkeys(names, 0)
    assert found["kinds"] == {kind.plural: by_kind.get(kind.plural, nothing) for kind in KINDS.entities}
    assert found["edges"] == dict(
        zip(("dangling", "foreign", "self_loops", "live", "duplicate"), broken, strict=True)
    )
    assert sum(kind["total"] for kind in found["kinds"].values()) == total


@pytest.mark.promise("loader.manifest")
def test_coverage_is_what_the_sample_says_of_itself(harbour: Connection, statements: Statements) -> None:
    found = content_of(loaded_whole(harbour, LIBRARY, statements)).data["coverage"]

    summed = {
        name: sum(kind[name] for kind in found["kinds"].values()) for name in ("direct", "unlinked", "orphan")
    }
    assert summed == {"direct": 139, "unlinked": 104, "orphan": 16}
    assert found["edges"] == {"live": 300, "dangling": 9, "foreign": 1, "duplicate": 23, "self_loops": 1}

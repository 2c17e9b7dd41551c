"""Migrations: on an empty database, on an application's, twice, at once, against locks and without permission."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import MetaData, create_engine
from sqlalchemy.pool import NullPool

from foreword.errors import SchemaError, Unavailable
from foreword.kinds import KINDS
from loaders.catalog import inspect
from loaders.connection import Connection, connect
from loaders.migrate import _LOCK, migrate, newest, stop_watching
from loaders.project import compile_statements, load_project
from loaders.tables import OWN, ontology
from worker.servers import Addresses

PROJECT = "00000000-0000-4000-8000-000000000001"

_number = itertools.count(1)

# What an application may have made of the tables: other types, keys, rules and names, and a history of its own.
APPLICATION = """
create type task_state as enum ('todo', 'in_progress', 'done');
create table alembic_version (version_num varchar(32) primary key);
insert into alembic_version values ('f00dfeed');
create table onto_projects (id uuid primary key default gen_random_uuid(), tenant text not null default 'acme',
  name varchar(200) not null check (name <> ''), description text, state_key text, type_key text,
  facet_context text, facet_scale text, facet_stage text, start_at timestamptz, end_at timestamptz,
  next_step_short text, next_step_long text, props jsonb not null default '{}',
  created_at timestamptz not null default now(), updated_at timestamptz not null default now(),
  deleted_at timestamptz, archived_at timestamptz);
create table onto_tasks (id uuid primary key, project_id uuid not null references onto_projects on delete cascade,
  title text not null, description text, state_key task_state not null default 'todo', priority smallint,
  type_key text, start_at timestamptz, due_at date, completed_at timestamptz, estimate interval,
  created_at timestamptz not null default now(), updated_at timestamptz not null default now(),
  search tsvector generated always as (to_tsvector('english', title)) stored, deleted_at timestamptz,
  unique (project_id, title));
create table onto_edges (id bigint generated always as identity primary key, project_id uuid not null,
  src_kind text, src_id uuid, dst_kind text, dst_id uuid, rel text, created_at timestamptz default now(),
  unique (src_id, rel, dst_id));
create index by_due on onto_tasks (due_at desc) include (title) where state_key <> 'done';
create view open_tasks as select * from onto_tasks where state_key <> 'done';
create function touch() returns trigger language plpgsql as 'begin new.updated_at := now(); return new; end';
create trigger touched before update on onto_tasks for each row execute function touch();
alter table onto_tasks enable row level security;
create policy everyone on onto_tasks using (true);
comment on table onto_tasks is 'what is to be done';
insert into onto_projects (id, name) values ('00000000-0000-4000-8000-000000000001', 'Pier');
insert into onto_tasks (id, project_id, title)
  select gen_random_uuid(), '00000000-0000-4000-8000-000000000001', 'task ' || n from generate_series(1, 100) n;
insert into onto_edges (project_id, src_kind, src_id, dst_kind, dst_id, rel)
  select project_id, 'project', project_id, 'task', id, 'has_task' from onto_tasks;
"""

# Every row of the system's tables that describes something in the schema, with the transaction that wrote it: an
# alteration, even one that is taken back, leaves another number.
_DESCRIBED = {
    "relation": "select relname, relkind, relfilenode, relacl::text from pg_class c {where} relname",
    "column": """select relname || '.' || attname, atttypid::regtype, attnotnull, a.xmin::text
        from pg_attribute a join pg_class c on c.oid = attrelid {where} attrelid, attnum""",
    "default": """select relname, adnum, pg_get_expr(adbin, adrelid), d.xmin::text
        from pg_attrdef d join pg_class c on c.oid = adrelid {where} adrelid, adnum""",
    "constraint": """select relname, conname, pg_get_constraintdef(o.oid), o.xmin::text
        from pg_constraint o join pg_class c on c.oid = conrelid {where} conrelid, conname""",
    "index": """select c.relname, pg_get_indexdef(indexrelid), indisvalid, i.xmin::text
        from pg_index i join pg_class c on c.oid = indexrelid {where} indexrelid""",
    "trigger": """select relname, tgname, tgenabled, t.xmin::text
        from pg_trigger t join pg_class c on c.oid = tgrelid {where} tgrelid, tgname""",
}
_IN_PUBLIC = "where c.relnamespace = 'public'::regnamespace order by"


def described(connection: Connection) -> set[tuple[str, ...]]:
    """All there is in the schema, to the letter."""
    found = set()
    for what, query in _DESCRIBED.items():
        rows = connection.execute(query.format(where=_IN_PUBLIC).encode()).fetchall()
        found |= {(what, *map(str, row)) for row in rows}
    functions = connection.execute(
        "select proname, p.xmin::text from pg_proc p where pronamespace = 'public'::regnamespace"
    )
    return found | {("function", *row) for row in functions.fetchall()}


def contents(connection: Connection) -> dict[str, Any]:
    """Every row of the application's tables, and where it lies."""
    return {
        table: connection.execute(f"select ctid::text, t::text from {table} t order by 1".encode()).fetchall()
        for table in ("onto_projects", "onto_tasks", "onto_edges", "alembic_version")
    }


@pytest.fixture
def empty(servers: Addresses) -> str:
    """The URL of a database without any table, dropped with the server."""
    name = f"fw_schema_{next(_number)}"
    with connect(servers.database_url) as admin:
        admin.execute(f"create database {name} template template0".encode())
    return servers.database_url.replace("/foreword?", f"/{name}?")


@pytest.fixture
def adopted(empty: str) -> Iterator[Connection]:
    """An application's database."""
    with connect(empty) as connection:
        connection.execute(APPLICATION.encode())
        yield connection


# ---- the application's is not touched


@pytest.mark.promise("schema.adopt")
def test_of_an_application_s_database_nothing_is_altered(empty: str, adopted: Connection) -> None:
    before, rows = described(adopted), contents(adopted)

    migrate(empty)

    after = described(adopted)
    assert before <= after
    ours = {each for each in after - before if each[0] != "trigger"}
    assert {name for _, name, *_ in ours if not name.startswith("fw_")} == set()
    theirs = {each for each in after - before if not each[1].startswith("fw_")}
    triggers = {(table, name) for what, table, name, *_ in theirs if what == "trigger"}
    assert {table for table, _ in triggers} == {"onto_projects", "onto_tasks", "onto_edges"}
    assert {name for _, name in triggers} == {"fw_insert", "fw_update", "fw_delete", "fw_truncate"}
    assert contents(adopted) == rows


@pytest.mark.promise("schema.adopt")
def test_migrating_again_changes_nothing_at_all(empty: str, adopted: Connection) -> None:
    first = migrate(empty)
    before = described(adopted)

    again = migrate(empty)

    assert first == again == newest()
    assert described(adopted) == before


@pytest.mark.promise("schema.adopt", "loader.absent")
def test_an_adopted_database_says_what_it_lacks_and_is_read(empty: str, adopted: Connection) -> None:
    migrate(empty)

    catalog = inspect(adopted)
    rows = load_project(adopted, PROJECT, compile_statements(catalog))

    assert [kind.name for kind in catalog.present] == ["task"]
    assert catalog.missing_indexes == (("onto_edges", "project_id"),)
    assert len(rows.entities["task"]) == len(rows.edges) == 100
    assert rows.absent == tuple(kind.name for kind in KINDS.entities if kind.name != "task")


@pytest.mark.promise("schema.adopt")
def test_an_index_that_is_missing_or_invalid_is_reported(database_url: str) -> None:
    with connect(database_url) as connection:
        complete = inspect(connection).missing_indexes
        connection.execute("drop index onto_goals_live; alter table onto_plans drop constraint onto_plans_pkey")
        connection.execute("create index on onto_goals (state_key, project_id)")
        connection.execute(
            "update pg_index set indisvalid = false where indexrelid = 'onto_project_members_project_id'::regclass"
        )

        missing = inspect(connection).missing_indexes

    assert complete == ()
    assert sorted(missing) == [
        ("onto_goals", "project_id"),
        ("onto_plans", "id"),
        ("onto_project_members", "project_id"),
    ]


@pytest.mark.promise("schema.adopt")
def test_a_database_with_some_of_the_tables_but_no_projects_is_left_alone(empty: str) -> None:
    with connect(empty) as connection:
        connection.execute("create table onto_tasks (id int); insert into onto_tasks values (7)")
        before = described(connection)

        with pytest.raises(SchemaError, match=r'"onto_tasks" already exists; the failed step left nothing'):
            migrate(empty)

        added = {name for _, name, *_ in described(connection) - before}
        assert {name for name in added if not name.startswith("fw_alembic_version")} == set()
        assert connection.execute("select * from onto_tasks").fetchall() == [(7,)]


# ---- others at the same time


def test_migrations_at_once_are_one(empty: str) -> None:
    start = Barrier(3)

    def one() -> str:
        start.wait()
        return migrate(empty)

    with ThreadPoolExecutor(3) as threads:
        reached = [running.result() for running in [threads.submit(one) for _ in range(3)]]

    assert reached == [newest()] * 3
    with connect(empty) as connection:
        assert connection.execute("select version_num from fw_alembic_version").fetchall() == [(newest(),)]


def test_a_migration_gives_up_on_another_that_goes_on_for_long(empty: str) -> None:
    with connect(empty) as other:
        other.execute("select pg_advisory_lock(%s)", [_LOCK])

        with pytest.raises(
            Unavailable, match=r"somebody else held a lock for 0\.02 s .* try again when it has ended"
        ):
            migrate(empty, lock_seconds=0.02)

        assert described(other) == set()
    assert migrate(empty) == newest()


def test_a_migration_gives_up_on_a_lock_of_the_application_and_leaves_nothing(empty: str) -> None:
    with connect(empty) as application:
        application.execute("begin; create table onto_actors (id uuid)")

        with pytest.raises(Unavailable, match=r"somebody else held a lock for 0\.02 s"):
            migrate(empty, lock_seconds=0.02)

        application.execute("rollback")
        left = {name for _, name, *_ in described(application)}
        assert {name for name in left if not name.startswith("fw_alembic_version")} == set()
    assert migrate(empty) == newest()


@pytest.mark.promise("schema.adopt")
def test_a_table_that_is_never_free_is_named_and_left_for_the_next_time(empty: str, adopted: Connection) -> None:
    adopted.execute("begin; lock table onto_tasks in row exclusive mode")

    with pytest.raises(Unavailable, match=r"onto_tasks was written to without a pause .* run it again"):
        migrate(empty, lock_seconds=0.1)

    adopted.execute("rollback")
    assert migrate(empty) == newest()


@pytest.mark.promise("schema.adopt")
def test_while_triggers_wait_for_a_table_others_go_on_writing_to_it(empty: str, adopted: Connection) -> None:
    adopted.execute("begin; update onto_tasks set title = title || '!'")

    with ThreadPoolExecutor(1) as thread, connect(empty) as another:
        running = thread.submit(migrate, empty)
        another.execute("set lock_timeout to '5s'")
        for number in range(20):
            another.execute(
                "insert into onto_tasks (id, project_id, title) values (gen_random_uuid(), %s, %s)",
                [PROJECT, f"meanwhile {number}"],
            )
        assert not running.done()
        adopted.execute("commit")
        assert running.result() == newest()


def test_a_table_that_comes_later_is_watched_by_the_next_migration(empty: str, adopted: Connection) -> None:
    migrate(empty)
    adopted.execute("create table onto_goals (id uuid primary key, project_id uuid, name text)")
    adopted.execute("insert into onto_goals values (gen_random_uuid(), %s, 'unwatched')", [PROJECT])

    migrate(empty)

    adopted.execute("delete from onto_goals")
    logged = adopted.execute("select table_name, op, rows from fw_changes where table_name = 'onto_goals'")
    assert logged.fetchall() == [("onto_goals", "D", 1)]


def test_triggers_are_not_taken_off_in_the_middle_of_a_migration(empty: str, adopted: Connection) -> None:
    migrate(empty)
    adopted.execute("select pg_advisory_lock(%s)", [_LOCK])

    with pytest.raises(Unavailable, match=r"somebody else held a lock for 0\.02 s"):
        stop_watching(empty, lock_seconds=0.02)

    adopted.execute("update onto_tasks set title = title || '!'")
    assert adopted.execute("select count(*) from fw_changes").fetchall() == [(1,)]


def test_triggers_are_taken_off_and_put_on_again(empty: str, adopted: Connection) -> None:
    migrate(empty)
    stop_watching(empty)
    adopted.execute("update onto_tasks set title = title || '?'")
    unwatched = adopted.execute("select count(*) from fw_changes").fetchall()

    migrate(empty)
    adopted.execute("update onto_tasks set title = title || '!'")

    assert unwatched == [(0,)]
    assert adopted.execute("select table_name, op, rows from fw_changes").fetchall() == [("onto_tasks", "U", 100)]


# ---- what is wrong is said


def test_a_role_that_may_not_create_tables_is_told_so(empty: str, adopted: Connection) -> None:
    before = described(adopted)
    adopted.execute("create role fw_guest login")

    with pytest.raises(SchemaError, match="permission denied for schema public; the failed step left nothing"):
        migrate(empty.replace("://postgres@", "://fw_guest@"))

    assert described(adopted) == before
    adopted.execute("drop role fw_guest")


def test_a_database_that_does_not_answer_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="migrating: PostgreSQL: "):
        migrate("postgresql://nobody@/nothing?host=/nowhere")


def test_any_form_of_address_that_libpq_takes_will_do(empty: str) -> None:
    with connect(empty) as connection:
        dsn = connection.info.dsn

    migrate(dsn)

    assert "dbname=" in dsn
    with connect(dsn) as connection:
        assert inspect(connection).absent == ()


# ---- the migrated schema is the metadata's


# What the metadata says, in PostgreSQL's own words.
_SAID = {
    "columns": """select c.relname, a.attname, format_type(atttypid, atttypmod), attnotnull,
        pg_get_expr(adbin, adrelid), attidentity, attgenerated
        from pg_attribute a join pg_class c on c.oid = attrelid
        left join pg_attrdef d on adrelid = attrelid and adnum = attnum
        where c.relkind = 'r' and attnum > 0 and not attisdropped""",
    "constraints": """select c.relname, conname, contype, pg_get_constraintdef(o.oid)
        from pg_constraint o join pg_class c on c.oid = conrelid where true""",
    "indexes": """select c.relname, pg_get_indexdef(i.indexrelid), indisunique, indisvalid
        from pg_index i join pg_class c on c.oid = indexrelid where true""",
    "sequences": """select c.relname, seqtypid::regtype::text, seqstart, seqincrement, seqmax, seqmin, seqcache
        from pg_sequence s join pg_class c on c.oid = seqrelid where true""",
    "comments": """select c.relname, description from pg_description join pg_class c on c.oid = objoid
        where classoid = 'pg_class'::regclass""",
}


def said(connection: Connection) -> dict[str, list[Any]]:
    mine = " and c.relnamespace = 'public'::regnamespace and c.relname not like 'fw_alembic%'"
    return {
        what: sorted(connection.execute((query + mine).encode()).fetchall(), key=str)
        for what, query in _SAID.items()
    }


@pytest.mark.promise("schema.metadata")
def test_the_migrated_schema_is_what_the_metadata_creates(database_url: str, empty: str) -> None:
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(empty), poolclass=NullPool)
    for metadata in (ontology(), OWN):
        metadata.create_all(engine)
    engine.dispose()

    with connect(database_url) as migrated, connect(empty) as created:
        found, wanted = said(migrated), said(created)

    assert found == wanted
    assert {table for table, *_ in found["columns"]} == {*ontology().tables, *OWN.tables}
    assert min(map(len, found.values())) > 2


@pytest.mark.promise("schema.metadata")
@pytest.mark.parametrize("metadata", [ontology(), OWN], ids=["the application's", "our own"])
def test_alembic_sees_no_difference(database_url: str, metadata: MetaData) -> None:
    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(database_url), poolclass=NullPool
    )
    options = {
        "version_table": "fw_alembic_version",
        "compare_type": True,
        "compare_server_default": True,
        "include_name": lambda name, type_, _: type_ != "table" or name in metadata.tables,
    }

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        difference = compare_metadata(context, metadata)

    engine.dispose()
    assert difference == []


@pytest.mark.promise("schema.metadata")
def test_what_is_compared_tells_schemas_apart(database_url: str) -> None:
    with connect(database_url) as connection:
        before = said(connection)
        for alteration in (
            "alter table onto_risks drop constraint onto_risks_impact_known",
            "alter table onto_plans alter column created_at drop default",
            "drop index onto_goals_live; create index onto_goals_live on onto_goals (project_id)",
            "comment on table fw_handles is 'else'",
        ):
            with connection.transaction(force_rollback=True):
                connection.execute(alteration.encode())

                assert said(connection) != before

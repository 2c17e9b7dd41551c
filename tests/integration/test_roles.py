"""The roles of deploy/postgres/roles.sql over a real PostgreSQL: each does its work and nothing else, and
row-level security of the application's never makes half a bundle.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import psycopg
import pytest
from psycopg import errors

from foreword.errors import SchemaError
from foreword.memory import MemoryStore
from foreword.reader import TRUSTED, Context, Reader
from loaders import briefs, claims, shelf, subscriptions
from loaders.briefs import Begun
from loaders.catalog import inspect
from loaders.claims import EDITS, SWEEP, compile_claims
from loaders.connection import Connection, connect
from loaders.jsonl import import_directory
from loaders.migrate import migrate
from loaders.privileges import revision
from loaders.project import compile_statements
from loaders.wanted import wanted
from loaders.watch import TABLES
from tasks.brief import finish_brief
from tasks.project import rebuild_project
from tasks.schedule import schedule
from tasks.tools import Tools
from worker.checkup import Finding, Patient, Verdict, examine
from worker.servers import Addresses
from worker.settings import Settings
from worker.wiring import Services

CHECKOUT = Path(__file__).parents[2]
ROLES = (CHECKOUT / "deploy" / "postgres" / "roles.sql").read_text(encoding="utf-8")
HARBOUR = CHECKOUT / "samples" / "harbour"
LIBRARY, BOAT = "a8e1bf1f-2157-5c0b-a103-3b8fa71a9b3b", "8b7e4cad-0a07-5b44-8dc5-f5e96d8984ed"
ASTA = "d3e203a5-d5ea-50e8-811a-37dc1dbcb303"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()
MIGRATE, WORKER, APP, CHAT = "foreword_migrate", "foreword_worker", "foreword_app", "fw_some_chat"

_number = itertools.count(1)

As = Callable[[str], Connection]
"""A connection of a role."""


def url_of(servers: Addresses, name: str, role: str = "postgres") -> str:
    return servers.database_url.replace("postgres@/foreword?", f"{role}@/{name}?")


@pytest.fixture(scope="module")
def deployed(servers: Addresses, encoding: None) -> Iterator[str]:
    """The name of a database as it is deployed: roles, migrations, roles again, the application's rows."""
    with connect(servers.database_url) as admin:
        admin.execute("create database fw_roles")
        admin.execute(f"create role {CHAT} login".encode())
    with connect(url_of(servers, "fw_roles")) as admin:
        admin.execute(ROLES.encode())
        migrate(url_of(servers, "fw_roles", MIGRATE))
        admin.execute(ROLES.encode())
    with connect(url_of(servers, "fw_roles", APP)) as connection:
        import_directory(connection, HARBOUR, inspect(connection))
    yield "fw_roles"
    with connect(servers.database_url) as admin:
        admin.execute("drop database fw_roles with (force)")
        for role in (MIGRATE, WORKER, APP, CHAT):  # of whom no database has anything any more
            admin.execute(f"drop role {role}".encode())


@pytest.fixture
def as_(servers: Addresses, deployed: str) -> Iterator[As]:
    """Opens connections to a fresh copy of that database."""
    name = f"fw_roles_{next(_number)}"
    with connect(servers.database_url) as admin:
        admin.execute(f"create database {name} template {deployed}".encode())
        opened: list[Connection] = []

        def open_as(role: str) -> Connection:
            opened.append(connect(url_of(servers, name, role)))
            return opened[-1]

        yield open_as
        for each in opened:
            each.close()
        admin.execute(f"drop database {name} with (force)".encode())


@contextmanager
def tools_of(connection: Connection, store: MemoryStore) -> Iterator[Tools]:
    yield Tools(
        connection=connection,
        statements=compile_statements(inspect(connection)),
        store=store,
        zone=ZoneInfo("UTC"),
        as_of=date(2026, 11, 21),
    )


def rebuild(connection: Connection, store: MemoryStore, project: str = LIBRARY) -> None:
    with tools_of(connection, store) as tools:
        rebuild_project(project, tools)


def read(store: MemoryStore, project: str = LIBRARY) -> Context:
    return Reader.over(store, clock=lambda: NOON).project(project, actor=TRUSTED)


# ---- each does its work


@pytest.mark.promise("secure.roles")
def test_the_workers_role_builds_relays_and_makes_briefs(as_: As) -> None:
    worker, store = as_(WORKER), MemoryStore()
    statements = compile_claims(inspect(worker))

    assert claims.lead(worker, "relay") is not None
    claims.find_unbuilt(worker, statements)
    claimed = claims.claim(worker, statements, EDITS, 8, claims.dirty(worker))
    claimed += claims.claim(worker, statements, EDITS, 8, claims.dirty(worker))
    for claim in claimed:
        with tools_of(worker, store) as tools:
            rebuild_project(claim.project_id, tools, if_due=True)
    claims.claim(worker, statements, SWEEP, 8, [])
    assert claims.park(worker) == claims.take_over(worker) == []
    assert claims.wish(worker, statements, [BOAT], lambda _: [0]) == 1
    subscriptions.save(worker, wanted({"user_id": ASTA, "zone": "UTC"}))
    schedule(worker)
    with tools_of(worker, store) as tools:
        begun = briefs.begin_now(worker, ASTA, date(2026, 11, 21), force=False)
        assert isinstance(begun, Begun)
        finish_brief(begun, tools)
    claims.resign(worker, "relay")

    assert {claim.project_id for claim in claimed} == {LIBRARY, BOAT}
    assert read(store).status == "fresh"
    found = shelf.stored(worker, ASTA, None)
    assert found is not None
    assert (found.state, found.revision) == ("ready", 1)


@pytest.mark.promise("secure.roles")
def test_a_relay_may_end_a_builder_of_its_own_role(as_: As) -> None:
    builder, relay = as_(WORKER), as_(WORKER)
    ((session,),) = builder.execute("select pg_backend_pid()").fetchall()

    relay.execute("select pg_terminate_backend(%s)", [session])

    with pytest.raises(psycopg.OperationalError):
        builder.execute("select pg_sleep(10)")


@pytest.mark.promise("secure.roles")
def test_the_applications_edits_are_logged_and_tokens_taken_without_a_right_on_our_tables(as_: As) -> None:
    application, worker, store = as_(APP), as_(WORKER), MemoryStore()
    rebuild(worker, store)

    with application.transaction():
        application.execute("update onto_projects set name = 'Renamed' where id = %s", [LIBRARY])
        ((token,),) = application.execute("select fw_token()").fetchall()
    rebuild(worker, store)

    assert "Renamed" in read(store).text
    found = Reader.over(store, clock=lambda: NOON).project(LIBRARY, actor=TRUSTED, at_least=token, wait=0)
    assert found.status == "fresh"


@pytest.mark.promise("secure.roles")
def test_the_application_says_who_gets_briefs_and_what_was_made_for_the_old_hour_is_taken_back(as_: As) -> None:
    application, worker = as_(APP), as_(WORKER)
    application.execute("insert into fw_subscriptions (user_id, zone, at) values (%s, 'UTC', '23:59')", [ASTA])
    worker.execute(
        "insert into fw_briefs (user_id, local_date, state, kind, zone, due_at, build_at)"
        " values (%s, '2999-01-01', 'pending', 'daily', 'UTC', '2999-01-01', '2999-01-01')",
        [ASTA],
    )

    application.execute("update fw_subscriptions set at = '08:00' where user_id = %s", [ASTA])

    assert worker.execute("select count(*) from fw_briefs").fetchall() == [(0,)]


@pytest.mark.promise("secure.roles")
def test_the_migrating_role_migrates_again_and_takes_the_triggers_off_and_on(as_: As, servers: Addresses) -> None:
    admin = as_("postgres")
    ((name,),) = admin.execute("select current_database()").fetchall()

    migrate(url_of(servers, name, MIGRATE))
    admin.execute(ROLES.encode())

    assert inspect(as_(WORKER)).absent == ()


# ---- and nothing else

REFUSED = [
    *((WORKER, f"update {table} set id = id") for table in ("onto_projects", "onto_tasks", "onto_actors")),
    (WORKER, "delete from onto_documents"),
    (WORKER, "insert into onto_edges select * from onto_edges"),
    (WORKER, "truncate onto_tasks"),
    (WORKER, "truncate fw_changes"),
    (WORKER, "drop table fw_changes"),
    (WORKER, "alter table onto_tasks disable trigger all"),
    (WORKER, "create table mine (id int)"),
    (WORKER, "update fw_alembic_version set version_num = ''"),
    (WORKER, "create trigger t after insert on onto_tasks execute function fw_log_insert_rows()"),
    (WORKER, "set role foreword_migrate"),
    (WORKER, "select pg_read_file('/etc/passwd')"),
    (WORKER, "copy onto_tasks to program 'cat'"),
    (WORKER, "select * from pg_authid"),
    (WORKER, "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'postgres'"),
    (WORKER, "select * from onto_secrets"),
    (APP, "select * from fw_changes"),
    (APP, "insert into fw_changes (project_id, table_name, op, rows) values (gen_random_uuid(), 't', 'U', 1)"),
    (APP, "delete from fw_projects"),
    (APP, "select * from fw_briefs"),
    (APP, "update fw_facts set value = 2"),
    (APP, "select nextval('fw_generation')"),
    (APP, "create table mine (id int)"),
    (APP, "drop table onto_tasks"),
    (CHAT, "select * from onto_tasks"),
    (CHAT, "select * from fw_briefs"),
    (CHAT, "select * from fw_subscriptions"),
    (CHAT, "select fw_log_insert_rows()"),
    (CHAT, "create table mine (id int)"),
    (MIGRATE, "create database other"),
    (MIGRATE, "create role other"),
    (MIGRATE, "alter role foreword_worker superuser"),
]


@pytest.mark.promise("secure.roles")
def test_nobody_does_what_is_not_theirs(as_: As) -> None:
    admin = as_("postgres")
    admin.execute("create table onto_secrets (id int)")
    admin.execute(ROLES.encode())
    sessions = {role: as_(role) for role in (WORKER, APP, CHAT, MIGRATE)}
    allowed = []

    for role, statement in REFUSED:
        try:
            sessions[role].execute(statement.encode())
        except (errors.InsufficientPrivilege, errors.FeatureNotSupported):  # a trigger's function is never called
            continue
        allowed.append((role, statement))

    assert allowed == []


@pytest.mark.promise("doctor.says")
def test_the_doctor_says_what_a_migration_made_that_the_roles_were_not_given(as_: As) -> None:
    worker, migrating, admin = as_(WORKER), as_(MIGRATE), as_("postgres")
    settings, nowhere = Settings(), Services(database_url="", redis_url="", broker_url="")
    one = Patient(settings=settings, services=nowhere, connection=worker, cache=None, broker=None)

    def rights() -> Finding:
        return next(each for each in examine(one) if each.check == "rights")

    before = rights()
    migrating.execute("create table fw_more (number int generated always as identity)")
    migrating.execute("revoke all on fw_alembic_version from foreword_worker")
    forgotten = rights()
    with pytest.raises(SchemaError, match=r"denied for table fw_alembic_version; run .*roles\.sql after every"):
        revision(worker)
    admin.execute(ROLES.encode())
    after = rights()

    assert (before.verdict, after.verdict, forgotten.verdict) == (Verdict.OK, Verdict.OK, Verdict.FAIL)
    assert forgotten.what == (
        "our role lacks SELECT on fw_alembic_version, SELECT, INSERT, UPDATE, DELETE on fw_more,"
        " USAGE on fw_more_number_seq"
    )
    assert forgotten.remedy == "run deploy/postgres/roles.sql again, as after every migration"


def test_the_file_names_the_tables_that_the_loader_reads() -> None:
    assert sorted(set(TABLES)) == [table for table in sorted(set(TABLES)) if f"'{table}'" in ROLES]
    assert ROLES.count("'onto_") == len(set(TABLES))


# ---- row-level security of the application

TENANTS = """
alter table onto_tasks enable row level security;
alter table onto_tasks force row level security;
create policy tenants on onto_tasks to foreword_app
  using (project_id::text = current_setting('app.project', true));
"""


@pytest.mark.promise("secure.tenants")
def test_a_role_that_policies_hide_rows_from_builds_nothing_and_says_which_tables(as_: As) -> None:
    worker, store = as_(WORKER), MemoryStore()
    rebuild(worker, store)
    before = read(store).text

    as_("postgres").execute(TENANTS.encode())

    with pytest.raises(SchemaError, match=r"hides rows of onto_tasks from the role foreword_worker"):
        inspect(as_(WORKER))
    assert read(store).text == before


@pytest.mark.promise("secure.tenants")
def test_a_policy_that_comes_while_a_worker_runs_fails_its_builds_and_the_old_bundle_stays(as_: As) -> None:
    worker, store = as_(WORKER), MemoryStore()
    with tools_of(worker, store) as tools:
        rebuild_project(LIBRARY, tools)
        before = read(store).text
        as_("postgres").execute(TENANTS.encode())

        with pytest.raises(SchemaError, match="row-level security"):
            rebuild_project(LIBRARY, tools)

    assert read(store).text == before
    assert worker.execute(
        "select error like '%%row-level security%%', attempts from fw_projects where project_id = %s", [LIBRARY]
    ).fetchall() == [(True, 0)]


@pytest.mark.promise("secure.tenants")
@pytest.mark.parametrize(
    "let",
    [
        "alter role foreword_worker bypassrls",
        "create policy everything on onto_tasks for select to foreword_worker using (true)",
    ],
)
def test_a_role_that_may_see_all_builds_the_same_bundle_under_policies(as_: As, let: str) -> None:
    before, after = MemoryStore(), MemoryStore()
    rebuild(as_(WORKER), before)
    admin = as_("postgres")
    admin.execute(TENANTS.encode())
    admin.execute(let.encode())
    try:
        rebuild(as_(WORKER), after)

        assert read(after).text == read(before).text
    finally:
        admin.execute("alter role foreword_worker nobypassrls")


@pytest.mark.promise("secure.tenants")
def test_a_policy_that_forbids_beside_one_that_allows_still_hides(as_: As) -> None:
    admin = as_("postgres")
    admin.execute(TENANTS.encode())
    admin.execute("create policy everything on onto_tasks for select using (true)")
    inspect(as_(WORKER))

    admin.execute("create policy no on onto_tasks as restrictive for select using (state_key <> 'done')")

    with pytest.raises(SchemaError, match="hides rows"):
        inspect(as_(WORKER))


@pytest.mark.promise("secure.tenants")
def test_the_applications_tenants_stay_apart_and_their_edits_are_logged(as_: As) -> None:
    admin, application = as_("postgres"), as_(APP)
    admin.execute(TENANTS.encode())
    admin.execute("delete from fw_changes")
    application.execute("set row_security to on")
    application.execute("select set_config('app.project', %s, false)", [LIBRARY])

    application.execute("update onto_tasks set title = title")

    assert application.execute("select distinct project_id from onto_tasks").fetchall() == [(LIBRARY,)]
    assert admin.execute("select distinct project_id from fw_changes").fetchall() == [(LIBRARY,)]


def test_a_connection_that_has_nobodys_leave_sees_an_error_and_not_an_empty_table(as_: As) -> None:
    as_("postgres").execute(TENANTS.encode())

    with closing(as_(WORKER)) as worker, pytest.raises(errors.InsufficientPrivilege):
        worker.execute("select count(*) from onto_tasks")

"""The jobs over a real PostgreSQL and a real Redis: rebuild and focus, late, twice, interrupted and altered."""

import gc
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import redis
from psycopg.types.json import Jsonb
from redis.backoff import NoBackoff
from redis.retry import Retry
from strategies import uid

from foreword import keys
from foreword.errors import (
    BuildError,
    ForewordError,
    NotAMember,
    SchemaError,
    Unavailable,
    UnknownEntity,
    UnknownProject,
)
from foreword.kinds import KINDS
from foreword.reader import TRUSTED, Context, Reader
from foreword.stamp import Stamp
from foreword.store import RedisStore
from loaders import ledger
from loaders.connection import Connection, connect
from loaders.jsonl import import_directory
from tasks.focus import build_focus
from tasks.project import SURVEY_FROM, Built, rebuild_project
from tasks.tools import Tools
from worker.settings import Settings
from worker.wiring import tools_over

HARBOUR = Path(__file__).parents[2] / "samples" / "harbour"
LIBRARY, BOAT = "a8e1bf1f-2157-5c0b-a103-3b8fa71a9b3b", "8b7e4cad-0a07-5b44-8dc5-f5e96d8984ed"
PROJECT, OTHER = uid("project"), uid("other project")
WHEN = "2026-01-01T09:00:00Z"
NOW = datetime(2026, 11, 21, 11, 0, tzinfo=UTC).timestamp()

Open = Callable[[], Tools]


@pytest.fixture
def database_url(request: pytest.FixtureRequest, new_url: Callable[[], str], shared_url: str) -> str:
    """One database, emptied, for all tests of this module but those that alter its tables: they have their own."""
    if "alters" in request.fixturenames:
        return new_url()
    tables = [*(k.table for k in KINDS.all), "onto_edges", "onto_project_members", "onto_actors", "fw_handles"]
    with connect(shared_url) as connection:
        connection.execute("; ".join(f"delete from {table}" for table in (*tables, "fw_projects")).encode())
    return shared_url


@pytest.fixture
def opened(database_url: str, redis_client: "redis.Redis") -> Iterator[Open]:
    """Opens the tools of one more worker."""
    with ExitStack() as stack:

        def one() -> Tools:
            connection = stack.enter_context(connect(database_url))
            return replace(tools_over(Settings(), connection, redis_client), now=lambda: NOW)

        yield one


@pytest.fixture
def tools(opened: Open) -> Tools:
    """A worker's tools, and a project with three tasks in a row."""
    tools = opened()
    put(tools.connection, "onto_projects", {"id": PROJECT, "name": "Pier"})
    for day, name in enumerate(("first", "second", "third"), 1):
        put_task(tools.connection, name, created_at=f"2026-01-0{day}T09:00:00Z")
    put_edge(tools.connection, uid("second"), "depends_on", uid("first"))
    put_edge(tools.connection, uid("third"), "depends_on", uid("second"))
    return tools


@pytest.fixture
def application(database_url: str) -> Iterator[Connection]:
    """A connection of the application, or of whoever looks on."""
    with connect(database_url) as connection:
        yield connection


@pytest.fixture
def reader(redis_client: "redis.Redis") -> Reader:
    return Reader(redis_client, clock=lambda: NOW)


def put(connection: Connection, table: str, *rows: Mapping[str, Any]) -> None:
    """Insert rows; what is not given is null, but for the times."""
    whole = [{"created_at": WHEN, "updated_at": WHEN, "project_id": PROJECT, **row} for row in rows]
    statement = f"insert into {table} select * from jsonb_populate_recordset(null::{table}, %s)"
    connection.execute(statement.encode(), [Jsonb(whole)])


def put_task(connection: Connection, name: str, **more: Any) -> None:
    put(connection, "onto_tasks", {"id": uid(name), "title": name, "state_key": "todo", **more})


def put_edge(connection: Connection, src: str, rel: str, dst: str) -> None:
    ends = {"src_id": src, "src_kind": "task", "dst_id": dst, "dst_kind": "task"}
    put(connection, "onto_edges", {"id": uid(f"{src} {rel} {dst}"), "rel": rel, **ends})


def built(tools: Tools, project: str = PROJECT) -> Built:
    found = rebuild_project(project, tools)
    assert found is not None
    return found


def shown(reader: Reader, project: str = PROJECT) -> Context:
    return reader.bundle(project, actor=TRUSTED)


def titles(context: Context) -> list[str]:
    return sorted(task["title"] for task in context.data["slices"]["tasks"])


def until_blocked(watcher: Connection, waiting: Connection) -> None:
    """Return when the session waits for a lock."""
    pid = waiting.info.backend_pid
    while not watcher.execute("select pg_blocking_pids(%s)", [pid]).fetchall()[0][0]:
        pass


# ---- publishing


def test_a_rebuild_publishes_what_is_in_the_database(tools: Tools, reader: Reader) -> None:
    found = built(tools)

    context = shown(reader)
    assert found.published
    assert context.stamp == found.stamp
    assert titles(context) == ["first", "second", "third"]
    assert (context.stamp.epoch, context.stamp.as_of, context.stamp.zone) == (1, "2026-11-21", "UTC")
    assert context.tokens == tools.count(context.text) == found.stamp.tokens
    assert set(found.milliseconds) == {"load", "select", "handles", "render", "publish"}


def test_the_next_rebuild_shows_the_edit_under_a_higher_generation(tools: Tools, reader: Reader) -> None:
    first = built(tools)
    tools.connection.execute("update onto_tasks set title = 'renamed' where title = 'third'")

    second = built(tools)

    assert second.stamp.generation > first.stamp.generation
    assert titles(shown(reader)) == ["first", "renamed", "second"]


class Late(RedisStore):
    """A cache that publishes only after something else has happened."""

    def __init__(self, client: "redis.Redis", meanwhile: Callable[[], object]) -> None:
        super().__init__(client)
        self._meanwhile = meanwhile

    def publish(self, *args: Any, **more: Any) -> bool:
        self._meanwhile()
        return super().publish(*args, **more)


@pytest.mark.promise("store.fence")
def test_a_worker_that_lost_its_turn_unawares_does_not_replace_a_newer_bundle(
    tools: Tools, opened: Open, reader: Reader, redis_client: "redis.Redis"
) -> None:
    other, newer = opened(), []

    def meanwhile() -> None:
        tools.connection.execute("select pg_advisory_unlock_all()")
        put_task(other.connection, "fourth")
        newer.append(built(other))

    older = built(replace(tools, store=Late(redis_client, meanwhile)))

    assert not older.published
    assert newer[0].published
    assert titles(shown(reader)) == ["first", "fourth", "second", "third"]
    recorded = other.connection.execute("select generation, snapshot from fw_projects").fetchall()
    assert recorded == [(newer[0].stamp.generation, newer[0].stamp.snapshot)]


@pytest.mark.promise("build.deterministic")
def test_a_large_project_is_surveyed_and_published_just_the_same(
    opened: Open, redis_client: "redis.Redis"
) -> None:
    tools = opened()
    import_directory(tools.connection, HARBOUR, tools.statements.catalog)
    parts = [keys.LINES, keys.DATA, keys.HEAD]

    def published(project: str) -> list[Any]:
        built(tools, project)
        fields: Any = redis_client.hgetall(keys.project(project))
        return [
            {k: v for k, v in fields.items() if k.startswith(b"m:")},
            *(fields[part.encode()] for part in parts),
        ]

    whole = [published(project) for project in (LIBRARY, BOAT)]
    tools.connection.execute("update fw_projects set entities = %s", [SURVEY_FROM])

    assert [published(project) for project in (LIBRARY, BOAT)] == whole
    counted = tools.connection.execute("select entities from fw_projects where project_id = %s", [LIBRARY])
    assert counted.fetchall() == [(243,)]


def test_who_is_removed_reads_no_more_after_the_next_build(tools: Tools, reader: Reader) -> None:
    actor = uid("actor")
    put(tools.connection, "onto_project_members", {"id": uid("m"), "actor_id": actor, "role_key": "viewer"})
    built(tools)
    before = reader.project(PROJECT, actor=actor)
    tools.connection.execute("update onto_project_members set removed_at = now()")

    built(tools)

    assert before.text
    with pytest.raises(NotAMember):
        reader.project(PROJECT, actor=actor)


# ---- projects that are gone


@pytest.mark.parametrize("gone", ["delete from onto_projects", "update onto_projects set deleted_at = now()"])
def test_the_bundle_of_a_project_that_is_gone_is_buried(
    tools: Tools, reader: Reader, redis_client: "redis.Redis", gone: str
) -> None:
    built(tools)
    tools.connection.execute(gone.encode())

    buried = rebuild_project(PROJECT, tools)

    assert buried is not None
    assert buried.stamp.gone
    assert not shown(reader)
    fields: Any = redis_client.hkeys(keys.project(PROJECT))
    assert sorted(fields) == [b"fence", b"meta", b"text"]
    recorded = tools.connection.execute("select entities, error from fw_projects").fetchall()
    assert recorded == [(ledger.GONE, None)]
    assert ledger.unburied(tools.connection) == []


def test_a_late_build_does_not_bring_a_buried_project_back(
    tools: Tools, opened: Open, reader: Reader, redis_client: "redis.Redis"
) -> None:
    other = opened()
    built(tools)

    def meanwhile() -> None:
        tools.connection.execute("select pg_advisory_unlock_all()")
        other.connection.execute("delete from onto_projects")
        rebuild_project(PROJECT, other)

    late = built(replace(tools, store=Late(redis_client, meanwhile)))

    assert not late.published
    assert not shown(reader)


def test_a_project_that_comes_back_is_read_again(tools: Tools, reader: Reader) -> None:
    built(tools)
    tools.connection.execute("update onto_projects set deleted_at = now()")
    rebuild_project(PROJECT, tools)
    tools.connection.execute("update onto_projects set deleted_at = null")

    assert built(tools).published
    assert titles(shown(reader)) == ["first", "second", "third"]


def test_of_a_project_that_never_was_nothing_is_published(tools: Tools, redis_client: "redis.Redis") -> None:
    with pytest.raises(UnknownProject):
        rebuild_project(OTHER, tools)

    assert redis_client.keys() == []


# ---- asked for


def test_a_request_is_built_once_however_often_its_message_comes(tools: Tools) -> None:
    request = ledger.request_builds(tools.connection, [PROJECT])

    answers = [rebuild_project(PROJECT, tools, if_due=True) for _ in range(3)]

    assert [answer is not None for answer in answers] == [True, False, False]
    assert ledger.answers(tools.connection, request) == {PROJECT: None}


def test_requests_that_came_together_are_answered_by_one_build(tools: Tools) -> None:
    requests = [ledger.request_builds(tools.connection, [PROJECT]) for _ in range(5)]

    answers = [rebuild_project(PROJECT, tools, if_due=True) for _ in requests]

    assert sum(answer is not None for answer in answers) == 1
    assert [ledger.answers(tools.connection, request) for request in requests] == [{PROJECT: None}] * 5


def test_a_message_that_nobody_sent_builds_nothing(tools: Tools, redis_client: "redis.Redis") -> None:
    built(tools)
    redis_client.flushall()

    assert rebuild_project(PROJECT, tools, if_due=True) is None
    assert redis_client.keys() == []


@pytest.mark.promise("build.covered")
@pytest.mark.parametrize("locked", ["onto_projects", "onto_insights", "fw_handles"])
def test_an_edit_and_its_request_during_a_build_get_a_build_of_their_own(
    tools: Tools, application: Connection, opened: Open, reader: Reader, locked: str
) -> None:
    requester = opened().connection
    before = ledger.request_builds(requester, [PROJECT])

    with ThreadPoolExecutor(1) as thread:
        application.execute(f"begin; lock table {locked} in access exclusive mode".encode())
        running = thread.submit(rebuild_project, PROJECT, tools, if_due=True)
        until_blocked(requester, tools.connection)
        put_task(application, "fourth")
        application.execute("commit")
        during = ledger.request_builds(requester, [PROJECT])
        first = running.result()

    assert ledger.answers(requester, before) == {PROJECT: None}
    assert first is not None
    rebuild_project(PROJECT, tools, if_due=True)  # its message; the build that ran may have seen the request
    assert titles(shown(reader)) == ["first", "fourth", "second", "third"]
    assert ledger.answers(requester, during) == {PROJECT: None}


@pytest.mark.promise("build.covered")
def test_a_message_that_finds_the_project_being_built_leaves_it_to_the_builder(
    tools: Tools, application: Connection, opened: Open, reader: Reader
) -> None:
    other = opened()
    ledger.request_builds(other.connection, [PROJECT])

    with ThreadPoolExecutor(1) as thread:
        application.execute("begin; lock table onto_insights in access exclusive mode")
        running = thread.submit(rebuild_project, PROJECT, tools, if_due=True)
        until_blocked(other.connection, tools.connection)
        put_task(application, "fourth")
        later = ledger.request_builds(other.connection, [PROJECT])
        left_alone = rebuild_project(PROJECT, other, if_due=True)
        application.execute("commit")
        running.result()

    assert left_alone is None
    assert ledger.answers(other.connection, later) == {PROJECT: None}
    assert titles(shown(reader)) == ["first", "fourth", "second", "third"]


def test_a_database_that_is_younger_than_its_cache_is_told_apart_from_a_newer_build(
    tools: Tools, redis_client: "redis.Redis"
) -> None:
    ahead = Stamp(epoch=1, generation=10**6).line().encode()
    RedisStore(redis_client).publish(keys.project(PROJECT), (1, 10**6), {keys.META: ahead}, 60)

    with pytest.raises(BuildError, match="python -m worker restored"):
        rebuild_project(PROJECT, tools)

    tools.connection.execute("update fw_facts set value = value + 1 where name = 'epoch'")
    assert built(tools).published


def test_an_entity_that_changes_its_kind_keeps_its_handle(tools: Tools, reader: Reader) -> None:
    built(tools)
    before = reader.bundle(PROJECT, actor=TRUSTED).data["slices"]["tasks"][0]
    with tools.connection.transaction():
        tools.connection.execute("update onto_tasks set deleted_at = now() where id = %s", [before["id"]])
        tools.connection.execute(
            "insert into onto_goals (id, project_id, name) values (%s, %s, 'converted')", [before["id"], PROJECT]
        )

    built(tools)

    after = reader.bundle(PROJECT, actor=TRUSTED).data["slices"]["goals"]
    assert (before["id"], before["handle"]) in [(goal["id"], goal["handle"]) for goal in after]


@pytest.mark.promise("loader.loud")
def test_a_load_that_a_time_limit_cuts_off_leaves_no_lock_behind(
    tools: Tools, application: Connection, opened: Open
) -> None:
    other, watcher = opened(), opened().connection

    class TimeIsUp(Exception):
        """Raised from a signal, anywhere, as Celery's time limit is."""

    def strike(*_: object) -> None:
        raise TimeIsUp

    def have_it_struck(builder: int) -> None:
        until_blocked(watcher, tools.connection)
        signal.pthread_kill(builder, signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, strike)
    application.execute("begin; lock table onto_insights in access exclusive mode")
    with ThreadPoolExecutor(1) as thread:
        thread.submit(have_it_struck, threading.get_ident())
        with pytest.raises(TimeIsUp):
            rebuild_project(PROJECT, tools)
    signal.signal(signal.SIGALRM, before)
    application.execute("rollback")

    assert tools.connection.closed
    assert built(other).published


# ---- builds that fail


def failed(tools: Tools, error: type[ForewordError], reader: Reader) -> str:
    """What a build that has to fail says, and leaves as it was; those who wait for it hear the same."""
    before = shown(reader)
    request = ledger.request_builds(tools.connection, [PROJECT])
    with pytest.raises(error) as caught:
        rebuild_project(PROJECT, tools)
    assert shown(reader) == before
    assert gc.isenabled()
    assert ledger.answers(tools.connection, request) == {PROJECT: str(caught.value)}
    return str(caught.value)


@pytest.mark.usefixtures("alters")
@pytest.mark.promise("build.broken-row", "loader.loud")
def test_a_build_without_a_table_fails_and_leaves_the_old_bundle(tools: Tools, reader: Reader) -> None:
    first = built(tools)
    tools.connection.execute("alter table onto_goals rename to gone")

    said = failed(tools, SchemaError, reader)

    assert 'relation "onto_goals" does not exist' in said
    tools.connection.execute("alter table gone rename to onto_goals")
    assert built(tools).stamp.generation > first.stamp.generation
    assert tools.connection.execute("select error from fw_projects").fetchall() == [(None,)]


@pytest.mark.usefixtures("alters")
def test_what_another_try_may_mend_is_no_answer_yet(tools: Tools, reader: Reader) -> None:
    built(tools)
    request = ledger.request_builds(tools.connection, [PROJECT])
    tools.connection.execute("alter table onto_goals rename to gone")

    with pytest.raises(SchemaError):
        rebuild_project(PROJECT, tools, if_due=True, last_try=False)

    assert ledger.answers(tools.connection, request) == {}
    tools.connection.execute("alter table gone rename to onto_goals")
    assert rebuild_project(PROJECT, tools, if_due=True) is not None
    assert ledger.answers(tools.connection, request) == {PROJECT: None}


@pytest.mark.usefixtures("alters")
@pytest.mark.promise("build.broken-row")
@pytest.mark.parametrize(
    ("column", "type_", "value", "said"),
    [
        ("priority", "text", "'high'", "priority is 'high', not a whole number"),
        ("completed_at", "bigint", "1764000000", "completed_at is 1764000000, not text"),
        ("updated_at", "double precision", "17.5", "updated_at is 17.5, not text"),
    ],
)
def test_a_row_that_cannot_be_understood_is_named(
    tools: Tools, opened: Open, reader: Reader, column: str, type_: str, value: str, said: str
) -> None:
    built(tools)
    tools.connection.execute("alter table onto_tasks drop constraint onto_tasks_priority_range")
    tools.connection.execute(f"alter table onto_tasks alter {column} drop default".encode())
    tools.connection.execute(f"alter table onto_tasks alter {column} type {type_} using {value}".encode())

    whole = failed(tools, BuildError, reader)
    tools.connection.execute("update fw_projects set entities = %s", [SURVEY_FROM])
    surveyed = failed(tools, BuildError, reader)
    with pytest.raises(BuildError) as focused:
        build_focus(PROJECT, uid("first"), opened())

    for found in (whole, str(focused.value)):
        assert found.startswith(f"project {PROJECT} cannot be built: task ")
        assert found.count(said) == 3
    assert surveyed.startswith(f"project {PROJECT} cannot be built: ")


@pytest.mark.usefixtures("alters")
@pytest.mark.parametrize("entities", [0, SURVEY_FROM], ids=["whole", "surveyed"])
def test_tables_altered_under_a_running_worker_cost_no_build(
    tools: Tools, application: Connection, reader: Reader, entities: int
) -> None:
    generations = [built(tools).stamp.generation]

    for column, type_ in (("priority", "bigint"), ("created_at", "timestamp"), ("completed_at", "date")):
        application.execute("update fw_projects set entities = %s", [entities])
        generations.append(built(tools).stamp.generation)  # with statements that are prepared by now
        application.execute("update fw_projects set entities = %s", [entities])
        application.execute(f"alter table onto_tasks alter column {column} type {type_}".encode())
        generations.append(built(tools).stamp.generation)

    assert generations == [*range(generations[0], generations[0] + 7)]
    assert titles(shown(reader)) == ["first", "second", "third"]


@pytest.mark.promise("loader.loud")
def test_a_worker_killed_in_the_middle_leaves_the_request_to_the_next(
    tools: Tools, application: Connection, opened: Open, reader: Reader
) -> None:
    other = opened()
    built(tools)
    before = shown(reader)
    request = ledger.request_builds(other.connection, [PROJECT])

    with ThreadPoolExecutor(1) as thread:
        application.execute("begin; lock table onto_insights in access exclusive mode")
        running = thread.submit(rebuild_project, PROJECT, tools, if_due=True)
        until_blocked(other.connection, tools.connection)
        other.connection.execute("select pg_terminate_backend(%s, 10000)", [tools.connection.info.backend_pid])
        application.execute("rollback")
        with pytest.raises(Unavailable, match=f"loading project {PROJECT}: PostgreSQL: "):
            running.result()

    assert shown(reader) == before
    assert ledger.answers(other.connection, request) == {}
    assert rebuild_project(PROJECT, other, if_due=True) is not None
    assert ledger.answers(other.connection, request) == {PROJECT: None}


def test_a_cache_that_is_down_fails_the_build_and_whoever_waits_is_told(tools: Tools, opened: Open) -> None:
    request = ledger.request_builds(tools.connection, [PROJECT])
    client = redis.Redis(unix_socket_path="/nowhere/redis.sock", retry=Retry(NoBackoff(), 0))
    down = replace(tools, store=RedisStore(client))

    with pytest.raises(redis.ConnectionError):
        rebuild_project(PROJECT, down)

    answer = ledger.answers(tools.connection, request)[PROJECT]
    assert answer is not None
    assert answer.startswith("ConnectionError: ")
    assert built(opened()).published


# ---- days and zones


@pytest.mark.promise("build.buckets")
@pytest.mark.parametrize(
    ("named", "zone", "as_of", "midnight"),
    [
        ("Pacific/Kiritimati", "Pacific/Kiritimati", "2026-11-22", "2026-11-22T10:00:00+00:00"),
        ("Pacific/Pago_Pago", "Pacific/Pago_Pago", "2026-11-21", "2026-11-22T11:00:00+00:00"),
        ("Asia/Kathmandu", "Asia/Kathmandu", "2026-11-21", "2026-11-21T18:15:00+00:00"),
        (None, "UTC", "2026-11-21", "2026-11-22T00:00:00+00:00"),
    ],
)
def test_a_bundle_is_of_the_day_in_its_project_s_zone(
    tools: Tools, reader: Reader, named: str | None, zone: str, as_of: str, midnight: str
) -> None:
    tools.connection.execute("update onto_projects set props = %s", [Jsonb({"timezone": named})])
    tools.connection.execute("update onto_tasks set due_at = '2026-11-21T12:00:00Z' where title = 'first'")

    stamp = built(tools).stamp

    assert (stamp.zone, stamp.as_of) == (zone, as_of)
    assert datetime.fromtimestamp(stamp.valid_until, UTC).isoformat() == midnight
    assert shown(reader).text.endswith(f"as of {as_of}\n")
    due = "overdue" if as_of > "2026-11-22" else "due today"
    assert f", {due}: 1" in reader.project(PROJECT, actor=TRUSTED, budget=3000).text


NO_ZONES: tuple[object, ...] = (
    *("Nowhere/Else", "", " ", "America", "..", "../../../etc/passwd", "/etc/localtime", "UTC\n", "zone.tab"),
    *(
        "__init__.py",
        "é",
        "x" * 99,
        5,
        True,
        [],
        ["UTC"],
        {"timezone": "UTC"},
        "\U0001f30d",
        "a//b",
        "a..b",
        "utc\t",
    ),
)


@pytest.mark.promise("build.buckets")
@pytest.mark.parametrize("named", NO_ZONES, ids=repr)
def test_what_is_no_zone_falls_back_to_the_default(tools: Tools, reader: Reader, named: object) -> None:
    tools.connection.execute("update onto_projects set props = %s", [Jsonb({"timezone": named})])

    stamp = built(replace(tools, zone=ZoneInfo("Pacific/Kiritimati"))).stamp

    assert (stamp.zone, stamp.as_of) == ("Pacific/Kiritimati", "2026-11-22")
    assert shown(reader).status == "fresh"


# ---- focus


@pytest.mark.promise("handles.either")
@pytest.mark.parametrize("reference", ["T2", "t2", uid("second"), uid("second").upper()])
def test_a_focus_bundle_is_built_by_handle_and_by_uuid(tools: Tools, reader: Reader, reference: str) -> None:
    built(tools)

    stamp = build_focus(PROJECT, reference, tools, with_graph=True)

    context = reader.focus(PROJECT, uid("second"), actor=TRUSTED)
    assert context.stamp == stamp
    assert context.data["focus"]["id"] == uid("second")
    assert {linked["id"] for linked in context.data["linked"]["entities"]} == {uid("first"), uid("third")}
    assert context.data["graph"]["root_id"] == PROJECT
    assert context.tokens == tools.count(context.text)


@pytest.mark.promise("loader.tenant")
def test_of_what_is_not_the_project_s_no_focus_is_built(tools: Tools, redis_client: "redis.Redis") -> None:
    put(tools.connection, "onto_projects", {"id": OTHER, "name": "Boat"})
    put_task(tools.connection, "far", project_id=OTHER)
    put_task(tools.connection, "deleted", deleted_at=WHEN)

    for reference in (uid("far"), uid("deleted"), uid("never"), PROJECT, "T99", "nonsense"):
        with pytest.raises(UnknownEntity):
            build_focus(PROJECT, reference, tools)

    with pytest.raises(UnknownProject):
        build_focus(uid("never"), uid("first"), tools)
    assert redis_client.keys() == []
    assert built(tools).published

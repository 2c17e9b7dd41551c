"""A thirteenth kind, declared here and nowhere else, on its way from a real table to a reader."""

from collections.abc import Iterator
from datetime import date
from zoneinfo import ZoneInfo

import psycopg
import pytest
import redis
from psycopg.types.json import Jsonb
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool
from strategies import uid

from foreword.kinds import KINDS, Column, Derived, Field, Kind, Score
from foreword.reader import TRUSTED, Context, Reader
from foreword.store import RedisStore
from loaders.catalog import inspect
from loaders.connection import Connection, connect
from loaders.entity import full_graph, load_entity
from loaders.project import compile_statements
from loaders.tables import ontology
from tasks.focus import build_focus
from tasks.project import rebuild_project
from tasks.tools import Tools
from worker.servers import Addresses

PROJECT = uid("project")
WHEN = "2026-01-01T09:00:00Z"

VESSEL = Kind(
    name="vessel",
    plural="vessels",
    table="onto_vessels",
    handle="V",
    label="called",
    columns=(
        Column(name="called", required=True),
        Column(name="state_key"),
        Column(name="berths", type="integer", between=(0, 400)),
        Column(name="hull", one_of=("wood", "steel")),
        Column(name="inspection_at", type="timestamptz"),
        Column(name="log"),
    ),
    light=(
        Field("called", 200),
        Field("state_key", 60),
        Field("berths"),
        Field("hull", 60),
        Field("inspection_at", time=True),
        Field("created_at", time=True),
        Field("updated_at", time=True),
        Field("log", 40),
        Field("flag", 20, "props->>'flag'"),
    ),
    derived=(Derived("task_ids", "links", "task"),),
    line=(("{}", "state_key"), ("{} berths", "berths"), ("flag {}", "flag"), ("inspection {}", "inspection_at")),
    score=Score(by={"hull": {"wood": 80}}, otherwise=50, bucket={"overdue": 40}),
    due="inspection_at",
    finished=frozenset({"sunk"}),
    tally=(("open", "open"), ("overdue", "overdue")),
    volatility=35,
)
FLEET = KINDS.extended(VESSEL)


def put(connection: Connection, table: str, *rows: dict[str, object]) -> None:
    """Insert rows; what is not given is null, but for the times."""
    whole = [{"created_at": WHEN, "updated_at": WHEN, "project_id": PROJECT, **row} for row in rows]
    statement = f"insert into {table} select * from jsonb_populate_recordset(null::{table}, %s)"
    connection.execute(statement.encode(), [Jsonb(whole)])


def edge(src: str, rel: str, dst: str) -> dict[str, object]:
    return {"id": uid(f"{src} {dst}"), "src_id": src, "src_kind": "?", "dst_id": dst, "dst_kind": "?", "rel": rel}


@pytest.fixture(scope="module")
def harbour_url(servers: Addresses, migrated: str, encoding: None) -> str:
    """A database with the thirteenth table, as the metadata creates it, and a project with some rows in it."""
    with connect(servers.database_url) as admin:
        admin.execute(f"create database fw_kind template {migrated}".encode())
    url = servers.database_url.replace("/foreword?", "/fw_kind?")
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=NullPool)
    ontology(FLEET).tables["onto_vessels"].create(engine)
    engine.dispose()
    with connect(url) as connection:
        put(connection, "onto_projects", {"id": PROJECT, "name": "Harbour"})
        put(connection, "onto_tasks", {"id": uid("task"), "title": "Caulk her", "state_key": "todo"})
        gannet = {"called": "Gannet", "state_key": "afloat", "berths": 6, "hull": "wood", "log": "wet " * 500}
        dated = {"inspection_at": "2026-11-20T00:00:00Z", "props": {"flag": "NO", "kept": [1, {"x": None}]}}
        put(
            connection,
            "onto_vessels",
            {"id": uid("gannet"), **gannet, **dated},
            {"id": uid("skua"), "called": "Skua", "state_key": "sunk", "created_at": "2026-01-02T09:00:00Z"},
            {"id": uid("tern"), "called": "Tern", "deleted_at": WHEN},
        )
        put(connection, "onto_edges", edge(PROJECT, "has_vessel", uid("gannet")))
        put(connection, "onto_edges", edge(uid("task"), "relates_to", uid("gannet")))
    return url


@pytest.fixture
def tools(harbour_url: str, redis_client: "redis.Redis") -> Iterator[Tools]:
    with connect(harbour_url) as connection:
        yield Tools(
            connection=connection,
            statements=compile_statements(inspect(connection, FLEET)),
            store=RedisStore(redis_client),
            zone=ZoneInfo("UTC"),
            as_of=date(2026, 11, 21),
        )


@pytest.fixture
def bundle(tools: Tools, redis_client: "redis.Redis") -> Context:
    """What a reader gets of the project after a rebuild."""
    rebuild_project(PROJECT, tools)
    return Reader(redis_client, clock=lambda: 0.0).bundle(PROJECT, actor=TRUSTED)


pytestmark = pytest.mark.promise("build.kind")


def test_its_table_is_what_the_declaration_says(harbour_url: str) -> None:
    with connect(harbour_url) as connection:
        columns = connection.execute(
            """select column_name, udt_name, is_nullable = 'NO' from information_schema.columns
            where table_name = 'onto_vessels' order by ordinal_position"""
        ).fetchall()
        for refused in ({"hull": "tin"}, {"berths": 401}):
            with pytest.raises(psycopg.errors.CheckViolation):
                put(connection, "onto_vessels", {"id": uid("x"), "called": "x", **refused})
        found = inspect(connection, FLEET)

    assert [
        (c.name, "int4" if c.type == "integer" else c.type, c.required) for c in VESSEL.columns_of()
    ] == columns
    assert (found.absent, found.missing_indexes) == ((), ())


def test_it_is_in_the_slices_whole_as_declared(bundle: Context) -> None:
    gannet, skua = bundle.data["slices"]["vessels"]

    assert gannet == {
        "handle": "V1",
        "id": uid("gannet"),
        "called": "Gannet",
        "state_key": "afloat",
        "berths": 6,
        "hull": "wood",
        "inspection_at": "2026-11-20",
        "created_at": "2026-01-01",
        "flag": "NO",
        "log": ("wet " * 10)[:39] + "…",
        "task_ids": [uid("task")],
        "direct_edge": True,
    }
    assert (skua["handle"], skua["called"], skua["direct_edge"]) == ("V2", "Skua", False)


def test_it_is_in_coverage_header_and_snapshot(bundle: Context) -> None:
    counted = {"total": 2, "direct": 1, "unlinked": 1, "reachable": 1, "orphan": 1}

    assert bundle.data["coverage"]["kinds"]["vessels"] == bundle.data["graph"]["coverage"]["vessels"] == counted
    assert bundle.data["header"]["entity_counts"]["vessels"] == 2
    nodes = {node["id"]: node["kind"] for node in bundle.data["graph"]["nodes"]}
    assert nodes == {PROJECT: "project", uid("gannet"): "vessel", uid("task"): "task"}


def test_it_has_its_section_and_its_lines(bundle: Context) -> None:
    lines = bundle.text.splitlines()

    assert lines.index("## vessels") < lines.index('V1 "Gannet" afloat 6 berths flag NO inspection 2026-11-20')
    assert "\nvessels: 2, direct: 1, unlinked: 1, open: 1, overdue: 1" in bundle.text


def test_it_may_be_in_focus_and_is_read_whole(tools: Tools, bundle: Context, redis_client: "redis.Redis") -> None:
    build_focus(PROJECT, "v1", tools)

    focus = Reader(redis_client, clock=lambda: 0.0).focus(PROJECT, uid("gannet"), actor=TRUSTED)
    whole = load_entity(tools.connection, PROJECT, "V1", tools.statements.catalog)
    pages = [*full_graph(tools.connection, PROJECT, tools.statements.catalog)]

    assert 'vessel V1 "Gannet" afloat' in focus.text
    assert [linked["id"] for linked in focus.data["linked"]["entities"]] == [uid("task")]
    assert (whole["kind"], whole["row"]["log"]) == ("vessel", "wet " * 500)
    assert whole["row"]["props"] == {"flag": "NO", "kept": [1, {"x": None}]}
    assert {row["id"] for page in pages if page["kind"] == "vessel" for row in page["entities"]} == {
        uid("gannet"),
        uid("skua"),
    }


def test_without_its_table_it_is_absent(tools: Tools, redis_client: "redis.Redis") -> None:
    tools.connection.execute("alter table onto_vessels rename to vessels")
    try:
        without = Tools(
            connection=tools.connection,
            statements=compile_statements(inspect(tools.connection, FLEET)),
            store=tools.store,
            zone=tools.zone,
        )
        rebuild_project(PROJECT, without)
    finally:
        tools.connection.execute("alter table vessels rename to onto_vessels")

    bundle = Reader(redis_client, clock=lambda: 0.0).bundle(PROJECT, actor=TRUSTED)
    assert bundle.data["coverage"]["absent"] == ["vessel"]
    assert bundle.data["coverage"]["edges"]["dangling"] == 2
    assert "vessels" not in bundle.data["slices"]
    assert "\nnot kept here: vessels\n" in bundle.text


def test_a_table_that_is_not_declared_is_not_read(tools: Tools) -> None:
    twelve = compile_statements(inspect(tools.connection))

    assert "onto_vessels" not in twelve.catalog.columns
    assert tools.statements.light.keys() - twelve.light.keys() == {"vessel"}

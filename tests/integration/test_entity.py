"""The full form from a real PostgreSQL: one entity whole, and a project's whole graph in pages."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.pq import TransactionStatus
from psycopg.types.json import Jsonb
from strategies import uid

from foreword.errors import BuildError, SchemaError, Unavailable, UnknownEntity
from foreword.kinds import KINDS
from loaders.catalog import Catalog, inspect
from loaders.connection import Connection, connect
from loaders.entity import full_graph, load_entity, resolve
from loaders.jsonl import import_directory
from worker.servers import Addresses

HARBOUR = Path(__file__).parents[2] / "samples" / "harbour"
LIBRARY = "a8e1bf1f-2157-5c0b-a103-3b8fa71a9b3b"
PROJECT, OTHER = uid("project"), uid("other project")
WHEN = "2026-01-01T09:00:00+00:00"
KEYS = {"project_id", "page", "last", "kind", "entities", "edges"}

Pages = list[dict[str, Any]]


@pytest.fixture(scope="module")
def shared_url(servers: Addresses, migrated: str) -> str:
    with connect(servers.database_url) as admin:
        admin.execute(f"create database fw_entity template {migrated}".encode())
    return servers.database_url.replace("/foreword?", "/fw_entity?")


@pytest.fixture(scope="module")
def catalog(shared_url: str) -> Catalog:
    with connect(shared_url) as connection:
        return inspect(connection)


@pytest.fixture
def connection(shared_url: str) -> Iterator[Connection]:
    """One database, with nothing but a project, for all tests of this module: what they alter they restore."""
    with connect(shared_url) as connection:
        emptied(connection)
        put(connection, "onto_projects", {"id": PROJECT, "name": "Pier"}, {"id": OTHER, "name": "Boat"})
        yield connection


def emptied(connection: Connection) -> None:
    tables = [
        *(kind.table for kind in KINDS.all),
        "onto_edges",
        "fw_handles",
        "onto_project_members",
        "onto_actors",
    ]
    connection.execute("; ".join(f"delete from {table}" for table in tables).encode())


def put(connection: Connection, table: str, *rows: dict[str, Any]) -> None:
    """Insert rows; what is not given is null, but for the times."""
    whole = [{"created_at": WHEN, "updated_at": WHEN, "ts": WHEN, **row} for row in rows]
    statement = f"insert into {table} select * from jsonb_populate_recordset(null::{table}, %s)"
    connection.execute(statement.encode(), [Jsonb(whole)])


def put_task(connection: Connection, name: str = "task", **more: Any) -> str:
    put(connection, "onto_tasks", {"id": uid(name), "project_id": PROJECT, "title": name, **more})
    return uid(name)


def put_edge(connection: Connection, src: str, rel: str, dst: str, project: str = PROJECT) -> str:
    row = {"id": uid(f"{src} {rel} {dst} {project}"), "project_id": project, "rel": rel}
    ends = {"src_kind": "task", "src_id": src, "dst_kind": "goal", "dst_id": dst}
    put(connection, "onto_edges", row | ends)
    return str(row["id"])


@pytest.fixture
def harbour(connection: Connection, catalog: Catalog) -> Connection:
    import_directory(connection, HARBOUR, catalog)
    return connection


def rows_of(table: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HARBOUR / f"{table}.jsonl").read_text().splitlines()]


# ---- one entity


@pytest.mark.promise("loader.full")
def test_every_live_entity_of_the_sample_comes_whole(harbour: Connection, catalog: Catalog) -> None:
    for kind in KINDS.entities:
        for row in rows_of(kind.table):
            if row["project_id"] != LIBRARY or row.get("deleted_at"):
                continue

            whole = load_entity(harbour, LIBRARY, row["id"], catalog)

            times = {c.name for c in kind.columns_of() if c.type == "timestamptz"}
            written = {k: v.replace("Z", "+00:00") if k in times and v else v for k, v in row.items()}
            assert whole["row"] == dict.fromkeys(catalog.columns[kind.table]) | written
            assert whole["kind"] == kind.name
            assert whole["handle"].startswith(kind.handle)


@pytest.mark.promise("loader.full")
def test_relationships_are_those_that_name_it_outward_and_inward(harbour: Connection, catalog: Catalog) -> None:
    edges = [edge for edge in rows_of("onto_edges") if edge["project_id"] == LIBRARY]
    named = {edge[end] for edge in edges for end in ("src_id", "dst_id")}
    tasks = [row for row in rows_of("onto_tasks") if row["project_id"] == LIBRARY and not row["deleted_at"]]
    some = [row["id"] for row in tasks if row["id"] in named]

    found = {i: load_entity(harbour, LIBRARY, i, catalog)["relationships"] for i in some}

    for i, relationships in found.items():
        outward = {(e["id"], e["rel"], "out", e["dst_kind"], e["dst_id"]) for e in edges if e["src_id"] == i}
        inward = {
            (e["id"], e["rel"], "in", e["src_kind"], e["src_id"]) for e in edges if e["dst_id"] == i != e["src_id"]
        }
        assert {tuple(r[k] for k in ("id", "rel", "direction", "kind", "other_id")) for r in relationships} == (
            outward | inward
        )
        assert len(relationships) == len(outward | inward)
    assert len(found) > 50


@pytest.mark.promise("loader.full")
def test_columns_that_only_this_database_has_come_too(connection: Connection) -> None:
    task = put_task(connection, description="long " * 100_000)
    connection.execute(
        "alter table onto_tasks add estimate interval default '2 days', add tags text[] default '{a,b}'"
    )

    row = load_entity(connection, PROJECT, task, inspect(connection))["row"]

    assert (row["estimate"], row["tags"]) == ("2 days", ["a", "b"])
    assert len(row["description"]) == 500_000
    connection.execute("alter table onto_tasks drop estimate, drop tags")


NUMBERS: tuple[Any, ...] = (
    *(0, -1, 2**53 + 1, 2**63 - 1, 2**64 - 1, -(2**63), 1.5, -0.25, 1e-300, 1152921504606846976),
    *(
        {"deep": [{"er": [2**62]}]},
        "1234567890123456789012345678901234567890",
        "\u2028 \\u0000 “”",
        True,
        None,
        [],
        {},
    ),
)


@pytest.mark.promise("loader.full")
def test_props_come_whole_whatever_they_hold(connection: Connection, catalog: Catalog) -> None:
    props = {str(place): value for place, value in enumerate(NUMBERS)}
    task = put_task(connection, props=props)

    whole = load_entity(connection, PROJECT, task, catalog)

    assert whole["row"]["props"] == props
    assert orjson.loads(orjson.dumps(whole)) == whole


@pytest.mark.promise("loader.full")
@pytest.mark.parametrize(
    "number",
    [
        *("18446744073709551616", "-9223372036854775809", "9" * 131072, "1" + "0" * 400, "-" + "1" * 5000),
        *("1" + "0" * 400 + ".5", "12345678901234567890123"),
    ],
)
def test_a_number_that_64_bits_do_not_hold_comes_as_text(
    connection: Connection, catalog: Catalog, number: str
) -> None:
    task = put_task(connection)
    connection.execute("update onto_tasks set props = jsonb_build_object('n', %s::numeric)", [number])

    whole = load_entity(connection, PROJECT, task, catalog)
    (page,) = full_graph(connection, PROJECT, catalog)

    assert whole["row"]["props"] == page["entities"][0]["props"] == {"n": number}
    assert orjson.loads(orjson.dumps(whole)) == whole


@pytest.mark.promise("loader.full")
def test_json_that_is_nested_beyond_reading_is_an_error_that_names_the_row(
    connection: Connection, catalog: Catalog
) -> None:
    task = put_task(connection)
    connection.execute("update onto_tasks set props = (repeat('[', 3000) || repeat(']', 3000))::jsonb")

    with pytest.raises(BuildError, match=f"task {task} cannot be given whole"):
        load_entity(connection, PROJECT, task, catalog)

    with pytest.raises(BuildError, match=f"a task of project {PROJECT} cannot be given whole"):
        [*full_graph(connection, PROJECT, catalog)]
    assert connection.info.transaction_status == TransactionStatus.IDLE


@pytest.mark.promise("loader.full", "loader.tenant")
def test_what_is_another_project_s_or_deleted_is_unknown(connection: Connection, catalog: Catalog) -> None:
    put_task(connection, "deleted", deleted_at=WHEN)
    put_task(connection, "far", project_id=OTHER)

    for name in ("deleted", "far", "never"):
        with pytest.raises(UnknownEntity, match=f"project {PROJECT} has no live entity '{uid(name)}'"):
            load_entity(connection, PROJECT, uid(name), catalog)

    assert load_entity(connection, OTHER, uid("far"), catalog)["row"]["title"] == "far"


@pytest.mark.promise("loader.full", "loader.archived")
def test_what_is_archived_is_unknown_and_on_no_page(connection: Connection) -> None:
    task = put_task(connection)
    connection.execute("alter table onto_tasks add archived_at timestamptz default now()")
    catalog = inspect(connection)

    with pytest.raises(UnknownEntity):
        resolve(connection, PROJECT, task, catalog)

    assert [page["entities"] for page in full_graph(connection, PROJECT, catalog)] == [[]]
    connection.execute("alter table onto_tasks drop archived_at")


@pytest.mark.promise("loader.full", "loader.tenant")
def test_an_edge_of_another_project_is_no_relationship(connection: Connection, catalog: Catalog) -> None:
    task = put_task(connection)
    put_edge(connection, task, "supports", uid("goal"), OTHER)
    loop = put_edge(connection, task, "blocks", task)

    relationships = load_entity(connection, PROJECT, task, catalog)["relationships"]

    assert relationships == [{"id": loop, "rel": "blocks", "direction": "out", "kind": "goal", "other_id": task}]


@pytest.mark.promise("loader.full", "handles.either")
def test_an_entity_that_nothing_showed_before_gets_its_handle(connection: Connection, catalog: Catalog) -> None:
    first, second = put_task(connection, "first"), put_task(connection, "second")

    handles = [load_entity(connection, PROJECT, i, catalog)["handle"] for i in (second, first, second)]

    assert handles == ["T1", "T2", "T1"]
    assert load_entity(connection, PROJECT, "t2", catalog)["row"]["id"] == first


# ---- the whole graph


def entities_of(pages: Pages) -> list[tuple[str, str]]:
    return [(page["kind"], row["id"]) for page in pages for row in page["entities"]]


def edges_of(pages: Pages) -> list[str]:
    return [row["id"] for page in pages for row in page["edges"]]


@pytest.mark.promise("loader.full")
@pytest.mark.parametrize("size", [1, 7, 500])
def test_pages_hold_every_live_entity_and_every_edge_once(
    harbour: Connection, catalog: Catalog, size: int
) -> None:
    live = {
        (kind.name, row["id"])
        for kind in KINDS.entities
        for row in rows_of(kind.table)
        if row["project_id"] == LIBRARY and not row.get("deleted_at")
    }
    edges = {row["id"] for row in rows_of("onto_edges") if row["project_id"] == LIBRARY}

    pages = [*full_graph(harbour, LIBRARY, catalog, size)]

    assert edges_of(pages) == sorted(edges)
    assert entities_of(pages) == sorted(live, key=lambda each: (KINDS.places[each[0]], each[1]))
    assert max(len(page["entities"]) + len(page["edges"]) for page in pages) <= size
    assert all(page.keys() == KEYS and orjson.loads(orjson.dumps(page)) == page for page in pages)
    assert [page["page"] for page in pages] == [*range(1, len(pages) + 1)]
    assert [page["last"] for page in pages] == [False] * (len(pages) - 1) + [True]


@pytest.mark.promise("loader.full")
@settings(max_examples=20)
@given(
    sizes=st.lists(st.integers(0, 5), min_size=11, max_size=11), edges=st.integers(0, 7), size=st.integers(1, 6)
)
def test_any_graph_fits_any_page(
    shared_url: str, catalog: Catalog, sizes: list[int], edges: int, size: int
) -> None:
    with connect(shared_url) as connection:
        emptied(connection)
        numbers = itertools.count(1)
        for kind, many in zip(KINDS.entities, sizes, strict=True):
            titled = {c.name: "x" for c in kind.columns if c.name in {"title", "name", "text"}}
            rows = [{"id": str(UUID(int=next(numbers))), "project_id": PROJECT, **titled} for _ in range(many)]
            put(connection, kind.table, *rows)
        for number in range(edges):
            put_edge(connection, uid(str(number)), "has", uid("x"))

        pages = [*full_graph(connection, PROJECT, catalog, size)]

    assert len(entities_of(pages)) == len({*entities_of(pages)}) == sum(sizes)
    assert len(edges_of(pages)) == len({*edges_of(pages)}) == edges
    assert [page["last"] for page in pages] == [False] * (len(pages) - 1) + [True]
    assert all(page["entities"] or page["edges"] for page in pages) or len(pages) == 1


@pytest.mark.promise("loader.full")
def test_an_empty_project_is_one_page(connection: Connection, catalog: Catalog) -> None:
    pages = [*full_graph(connection, PROJECT, catalog)]

    assert pages == [{"project_id": PROJECT, "page": 1, "last": True, "kind": None, "entities": [], "edges": []}]


@pytest.mark.promise("loader.full", "loader.one-snapshot")
def test_an_edit_in_the_middle_of_the_pages_is_on_none(
    connection: Connection, shared_url: str, catalog: Catalog
) -> None:
    put_task(connection, "first")
    put_task(connection, "second")
    put_edge(connection, uid("first"), "blocks", uid("second"))
    pages = full_graph(connection, PROJECT, catalog, 1)

    begun = [next(pages)]
    with connect(shared_url) as application:
        put_task(application, "third")
        put(application, "onto_insights", {"id": uid("insight"), "project_id": PROJECT, "title": "new"})
        put_edge(application, uid("third"), "blocks", uid("first"))
        application.execute(
            "update onto_tasks set title = 'renamed'; delete from onto_tasks where title = 'second'"
        )
    begun += pages

    assert sorted(entities_of(begun)) == sorted([("task", uid("first")), ("task", uid("second"))])
    assert {row["title"] for page in begun for row in page["entities"]} == {"first", "second"}
    assert len(edges_of(begun)) == 1
    assert len(entities_of([*full_graph(connection, PROJECT, catalog)])) == 4


@pytest.mark.promise("loader.full", "handles.stable")
def test_pages_carry_the_handles_that_were_drawn_and_draw_none(connection: Connection, catalog: Catalog) -> None:
    put_task(connection, "first")
    load_entity(connection, PROJECT, put_task(connection, "second"), catalog)

    (page,) = full_graph(connection, PROJECT, catalog)

    assert {row["title"]: row["handle"] for row in page["entities"]} == {"first": None, "second": "T1"}
    assert connection.execute("select count(*) from fw_handles").fetchall() == [(1,)]


def test_pages_that_nobody_reads_to_the_end_leave_the_connection_ready(
    connection: Connection, catalog: Catalog
) -> None:
    put_task(connection, "first")
    put_task(connection, "second")
    pages = full_graph(connection, PROJECT, catalog, 1)
    next(pages)

    pages.close()  # type: ignore[attr-defined]  # a generator

    assert connection.info.transaction_status == TransactionStatus.IDLE
    assert len([*full_graph(connection, PROJECT, catalog, 1)]) == 2


@pytest.mark.promise("loader.loud")
def test_a_table_that_vanished_is_an_error_and_no_empty_page(connection: Connection, catalog: Catalog) -> None:
    task = put_task(connection)
    connection.execute("alter table onto_insights rename to gone")

    with pytest.raises(SchemaError, match='relation "onto_insights" does not exist'):
        [*full_graph(connection, PROJECT, catalog)]

    with pytest.raises(SchemaError, match='relation "onto_insights" does not exist'):
        resolve(connection, PROJECT, uid("nobody"), catalog)
    connection.execute("alter table gone rename to onto_insights")
    assert load_entity(connection, PROJECT, task, catalog)["relationships"] == []


@pytest.mark.promise("loader.loud")
def test_a_connection_lost_between_pages_is_unavailable(
    connection: Connection, shared_url: str, catalog: Catalog
) -> None:
    put_task(connection, "first")
    put_task(connection, "second")
    put_task(connection, "third")
    pages = full_graph(connection, PROJECT, catalog, 1)
    next(pages)
    with connect(shared_url) as admin:
        admin.execute("select pg_terminate_backend(%s, 10000)", [connection.info.backend_pid])

    with pytest.raises(Unavailable, match="reading the graph"):
        list(pages)

    assert connection.closed

"""The project loader: one project's light rows, edges and members, from one snapshot of the database.

All statements are in flight at once on one pipelined connection, so a project costs one round trip and the
server's own time. Text is cut in the database; bodies never travel. A statement that fails fails the load.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, MetaData, bindparam, func, literal_column, select, text
from sqlalchemy.dialects import postgresql

from foreword.errors import UnknownProject
from foreword.graph import unresolved_ends
from foreword.kinds import PROJECT, Field, Kind
from foreword.rows import ProjectRows
from loaders.catalog import Catalog
from loaders.connection import Connection, mapped
from loaders.tables import EDGES, MEMBERS, ontology

_DIALECT = postgresql.psycopg.dialect()  # type: ignore[no-untyped-call]
_BEGIN = "begin isolation level repeatable read read only"
_SNAPSHOT = "select pg_current_snapshot()::text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """The loader's SQL for one database, compiled once.

    Attributes:
        catalog: the tables it was compiled for.
        light: by kind, the project's included: its live rows.
        edges, members: likewise; members is empty where the database keeps none.
        elsewhere: of given ids, those that belong to other projects.
    """

    catalog: Catalog
    light: Mapping[str, str]
    edges: str
    members: str
    elsewhere: str


def compile_statements(catalog: Catalog) -> Statements:
    """Compile the loader's statements for the tables that a database has."""
    metadata = ontology(catalog.kinds)
    kinds = (catalog.kinds.project, *catalog.present)
    return Statements(
        catalog=catalog,
        light={kind.name: _light(kind, metadata, catalog) for kind in kinds},
        edges=_edges(metadata),
        members=_members(catalog),
        elsewhere=_elsewhere(catalog),
    )


def _light(kind: Kind, metadata: MetaData, catalog: Catalog) -> str:
    table = metadata.tables[kind.table]
    columns = [_cell(field, table.c[field.name] if not field.source else None) for field in kind.light]
    owner = table.c.id if kind.name == PROJECT else table.c.project_id
    statement = select(table.c.id, *columns).where(
        owner == bindparam("project"), text(catalog.live(kind.table, kind.table))
    )
    return _compiled(statement)


def _cell(field: Field, column: ColumnElement[str] | None) -> ColumnElement[str]:
    """A light field: the column, or its expression, cut to one character more than is shown, so that the
    ellipsis can be decided without the rest of the text.
    """
    cell: ColumnElement[str] = literal_column(field.source) if column is None else column
    return cell if field.cut is None else func.left(cell, literal_column(str(field.cut + 1))).label(field.name)


def _edges(metadata: MetaData) -> str:
    c = metadata.tables[EDGES].c
    return _compiled(
        select(c.id, c.src_id, c.src_kind, c.dst_id, c.dst_kind, c.rel).where(c.project_id == bindparam("project"))
    )


def _members(catalog: Catalog) -> str:
    if not catalog.has_members:
        return ""
    return (
        f"select distinct on (actor_id) actor_id, role_key from {MEMBERS} "  # noqa: S608 - a constant
        "where project_id = %(project)s::uuid and removed_at is null order by actor_id, role_key"
    )


def _elsewhere(catalog: Catalog) -> str:
    others = [
        f"select id from {kind.table} where id = any(%(ids)s::uuid[]) and project_id <> %(project)s::uuid"  # noqa: S608
        for kind in catalog.present
    ]
    project = f"select id from {catalog.kinds.project.table} where id = any(%(ids)s::uuid[])"  # noqa: S608
    return " union all ".join([*others, project])


def _compiled(statement: object) -> str:
    return str(statement.compile(dialect=_DIALECT))  # type: ignore[attr-defined]


def load_project(connection: Connection, project_id: str, statements: Statements) -> ProjectRows:
    """One project's rows from one snapshot. ``connection`` is in autocommit mode and in no transaction.

    Raises:
        UnknownProject: there is no live project of this id.
        BuildError, SchemaError, Unavailable: a statement failed; nothing of the result is usable.
    """
    with mapped(f"loading project {project_id}"):
        try:
            return _load(connection, project_id, statements)
        finally:
            if not connection.closed:
                connection.rollback()


def _load(connection: Connection, project_id: str, statements: Statements) -> ProjectRows:
    asked = {"project": project_id}
    with connection.pipeline():
        connection.execute(_BEGIN)
        snapshot = connection.execute(_SNAPSHOT, prepare=True)
        light = {name: connection.execute(query, asked, prepare=True) for name, query in statements.light.items()}
        edges = connection.execute(statements.edges, asked, prepare=True)
        members = connection.execute(statements.members, asked, prepare=True) if statements.members else None
        rows = {name: cursor.fetchall() for name, cursor in light.items()}
        found = ProjectRows(
            project_id=project_id,
            project=_one(rows.pop(PROJECT), project_id),
            entities=rows,
            edges=edges.fetchall(),
            members=tuple(members.fetchall()) if members is not None else (),
            absent=statements.catalog.absent,
            snapshot=snapshot.fetchall()[0][0],
        )
    return _with_elsewhere(connection, found, statements)


def _one(rows: list[tuple[object, ...]], project_id: str) -> tuple[object, ...]:
    if not rows:
        raise UnknownProject(f"no live project {project_id}; `python -m worker projects` lists those there are")
    return rows[0]


def _with_elsewhere(connection: Connection, rows: ProjectRows, statements: Statements) -> ProjectRows:
    """Tell edges into other projects from edges into nothing, in the same snapshot. Most projects have a few
    dead ends, so this is a second, small round trip.
    """
    unresolved = unresolved_ends(rows, statements.catalog.kinds)
    if not unresolved:
        return rows
    # One literal instead of a list: psycopg takes 1.5 µs an element for a list of uuids.
    ids = "{" + ",".join(sorted(unresolved)) + "}"
    found = connection.execute(statements.elsewhere, {"project": rows.project_id, "ids": ids}, prepare=True)
    return replace(rows, elsewhere=frozenset(row[0] for row in found.fetchall()))

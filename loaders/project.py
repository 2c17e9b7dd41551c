"""The project loader: one project's light rows, edges and members, from one snapshot of the database.

All statements are in flight at once on one pipelined connection, so a project costs one round trip and the
server's own time. Text is cut in the database; bodies never travel. A statement that fails fails the load.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from sqlalchemy import (
    ColumnElement,
    MetaData,
    Select,
    Table,
    Text,
    bindparam,
    cast,
    func,
    literal_column,
    select,
    text,
)
from sqlalchemy.dialects import postgresql

from foreword.errors import UnknownProject
from foreword.graph import unresolved_ends
from foreword.kinds import PROJECT, Field, Kind
from foreword.rows import ProjectRows, Row
from loaders.catalog import Catalog
from loaders.connection import Connection, mapped, pipeline
from loaders.tables import EDGES, MEMBERS, ontology

_DIALECT = postgresql.psycopg.dialect()  # type: ignore[no-untyped-call]
_BEGIN = "begin isolation level repeatable read read only"
_SNAPSHOT = "select pg_current_snapshot()::text"


class NotThere(UnknownProject):
    """No live project has this id, as of a snapshot."""

    def __init__(self, project_id: str, snapshot: str) -> None:
        super().__init__(f"no live project {project_id}; `python -m worker projects` lists those there are")
        self.snapshot = snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """The loader's SQL for one database, compiled once.

    Attributes:
        catalog: the tables it was compiled for.
        light: by kind, the project's included: its live light rows.
        survey: the same rows with nothing but the fields that decide what is shown; the others are null.
        chosen: by kind, the light rows of given ids.
        edges, members: likewise; members is empty where the database keeps none.
        elsewhere: of given ids, those that belong to other projects.
    """

    catalog: Catalog
    light: Mapping[str, str]
    survey: Mapping[str, str]
    chosen: Mapping[str, str]
    edges: str
    members: str
    elsewhere: str


def compile_statements(catalog: Catalog) -> Statements:
    """Compile the loader's statements for the tables that a database has."""
    metadata = ontology(catalog.kinds)
    project, entities = catalog.kinds.project, catalog.present
    light = {kind.name: _live_rows(kind, metadata, catalog) for kind in (project, *entities)}
    survey = {kind.name: _live_rows(kind, metadata, catalog, kind.ranking) for kind in entities}
    return Statements(
        catalog=catalog,
        light=light,
        survey={PROJECT: light[PROJECT], **survey},
        chosen={kind.name: _chosen_rows(kind, metadata) for kind in entities},
        edges=_edges(metadata),
        members=_members(catalog),
        elsewhere=_elsewhere(catalog),
    )


def _live_rows(kind: Kind, metadata: MetaData, catalog: Catalog, only: frozenset[str] | None = None) -> str:
    table = metadata.tables[kind.table]
    owner = table.c.id if kind.name == PROJECT else table.c.project_id
    live = text(catalog.live(kind.table, kind.table))
    return _compiled(_light(kind, table, only).where(owner == bindparam("project"), live))


def _chosen_rows(kind: Kind, metadata: MetaData) -> str:
    table = metadata.tables[kind.table]
    return _compiled(_light(kind, table)) + f" where {kind.table}.id = any(%(ids)s::uuid[])"


def _light(kind: Kind, table: Table, only: frozenset[str] | None = None) -> Select[Any]:
    fields = [
        _cell(field, table) if only is None or field.name in only else literal_column("null")
        for field in kind.light
    ]
    return select(table.c.id, *fields)


def _cell(field: Field, table: Table) -> ColumnElement[Any]:
    """A light field: the column, or its expression, cut to one character more than is shown, so that the
    ellipsis can be decided without the rest of the text. Adopted databases keep states as enums, which cannot be
    cut before they are text.
    """
    cell: ColumnElement[Any] = literal_column(field.source) if field.source else table.c[field.name]
    return cell if field.cut is None else func.left(cast(cell, Text), literal_column(str(field.cut + 1)))


def _edges(metadata: MetaData) -> str:
    c = metadata.tables[EDGES].c
    return _compiled(
        select(c.id, c.src_id, c.src_kind, c.dst_id, c.dst_kind, c.rel).where(c.project_id == bindparam("project"))
    )


def _members(catalog: Catalog) -> str:
    if not catalog.has_members:
        return ""
    return (
        # An actor may have several rows: the highest role counts. A role nobody knows may read, as a viewer may.
        f"select distinct on (actor_id) actor_id, coalesce(role_key, 'viewer') from {MEMBERS} "  # noqa: S608
        "where project_id = %(project)s::uuid and removed_at is null "
        "order by actor_id, array_position(array['owner', 'editor', 'viewer'], role_key), role_key"
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
    """All light rows of one project, from one snapshot. ``connection`` is in autocommit mode, in no transaction.

    Raises:
        NotThere: there is no live project of this id.
        BuildError, SchemaError, Unavailable: a statement failed; nothing of the result is usable.
    """
    with whole_project(connection, project_id, statements) as rows:
        return rows


@contextmanager
def whole_project(connection: Connection, project_id: str, statements: Statements) -> Iterator[ProjectRows]:
    """``load_project`` with its snapshot held open. Raises: as ``load_project``."""
    with _snapshot(connection, f"loading project {project_id}"):
        yield _load(connection, project_id, statements, statements.light)


@contextmanager
def survey_project(connection: Connection, project_id: str, statements: Statements) -> Iterator[ProjectRows]:
    """One project's rows with only the fields that decide what is shown, and its snapshot held open for
    ``load_chosen``: on large projects most of the time goes into text that nobody will be shown.

    Raises: as ``load_project``.
    """
    with _snapshot(connection, f"loading project {project_id}"):
        yield _load(connection, project_id, statements, statements.survey)


def load_chosen(
    connection: Connection, chosen: Mapping[str, Sequence[str]], statements: Statements
) -> dict[str, Row]:
    """Light rows of ``chosen`` ids (by kind), by id, from the snapshot that ``survey_project`` holds open."""
    with pipeline(connection):
        cursors = [
            connection.execute(statements.chosen[kind], {"ids": "{" + ",".join(ids) + "}"}, prepare=True)
            for kind, ids in chosen.items()
            if ids
        ]
    return {row[0]: row for cursor in cursors for row in cursor.fetchall()}


@contextmanager
def _snapshot(connection: Connection, what: str) -> Iterator[None]:
    """A read-only transaction, begun by the first pipeline inside.

    Committed where all went well: on a rollback psycopg forgets the statements it has prepared, and preparing them
    is half of loading a small project. After a failure they are better forgotten: a table may have been altered.
    """
    with mapped(what):
        try:
            yield
        except BaseException:
            _leave(connection)
            raise
        connection.commit()


def _leave(connection: Connection) -> None:
    """End a transaction that failed. A connection that was left in the middle of something, as by a time limit,
    can only be closed.
    """
    if not connection.closed:
        try:
            connection.rollback()
        except psycopg.Error:
            connection.close()


def _load(
    connection: Connection, project_id: str, statements: Statements, queries: Mapping[str, str]
) -> ProjectRows:
    asked = {"project": project_id}
    with pipeline(connection):
        connection.execute(_BEGIN)
        snapshot = connection.execute(_SNAPSHOT, prepare=True)
        light = {name: connection.execute(query, asked, prepare=True) for name, query in queries.items()}
        edges = connection.execute(statements.edges, asked, prepare=True)
        members = connection.execute(statements.members, asked, prepare=True) if statements.members else None
    # Fetched after the pipeline's end, which brings every result: before it, the first fetch is a round trip more.
    rows = {name: cursor.fetchall() for name, cursor in light.items()}
    seen = snapshot.fetchall()[0][0]
    project = rows.pop(PROJECT)
    if not project:
        raise NotThere(project_id, seen)
    found = ProjectRows(
        project_id=project_id,
        project=project[0],
        entities=rows,
        edges=edges.fetchall(),
        members=tuple(members.fetchall()) if members is not None else (),
        absent=statements.catalog.absent,
        snapshot=seen,
    )
    return _with_elsewhere(connection, found, statements)


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

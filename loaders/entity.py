"""The full form: one entity with every column and its relationships, or a whole project's graph in pages.

This is what list and detail tools read when the light form is not enough. Whole rows, straight from the
database, never cached.
"""

import json
import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

import orjson

from foreword.errors import BuildError, UnknownEntity
from foreword.handles import handle, parse_reference
from foreword.kinds import Kind
from loaders.catalog import Catalog
from loaders.connection import Connection, mapped
from loaders.handles import bearer, handles_for
from loaders.tables import EDGES

PAGE = 500
"""Entities, or edges, on a page of the full graph."""

_LONG_NUMBER = re.compile("[0-9]{19}")
"""Shorter whole numbers have 64 bits, and PostgreSQL writes no exponents."""

_EDGES_OF = f"""
select id, rel, src_kind, src_id, dst_kind, dst_id from {EDGES}
where project_id = %(project)s::uuid and (src_id = %(id)s::uuid or dst_id = %(id)s::uuid) order by rel, id
"""  # noqa: S608 - a constant


def resolve(connection: Connection, project_id: str, reference: str, catalog: Catalog) -> tuple[Kind, str]:
    """The kind and id that a handle or UUID stands for, among the live entities of a project.

    Raises:
        UnknownEntity: no live entity of this project answers to it. One of another project does not either.
    """
    parsed = parse_reference(reference, catalog.kinds)
    entity = parsed if isinstance(parsed, str) else bearer(connection, project_id, *parsed)
    if entity is not None:
        with mapped(f"looking up {reference}"):
            for kind in catalog.present:
                if _row(connection, project_id, kind, entity, catalog, "1") is not None:
                    return kind, entity
    raise UnknownEntity(f"project {project_id} has no live entity {reference!r}")


def load_entity(connection: Connection, project_id: str, reference: str, catalog: Catalog) -> dict[str, Any]:
    """One entity whole: kind, handle, every column, every relationship.

    Raises:
        UnknownEntity: no live entity of this project answers to the handle or UUID.
    """
    kind, entity = resolve(connection, project_id, reference, catalog)
    with mapped(f"loading {kind.name} {entity}"):
        row = _row(connection, project_id, kind, entity, catalog, "to_jsonb(t)")
        edges = connection.execute(_EDGES_OF, {"project": project_id, "id": entity}).fetchall()
    if row is None:
        raise UnknownEntity(f"{kind.name} {entity} was deleted meanwhile")
    handles = handles_for(connection, project_id, [(kind.name, entity)], catalog.kinds)
    return {
        "kind": kind.name,
        "handle": handles[entity],
        "row": _parsed(row[0], f"{kind.name} {entity}"),
        "relationships": [_relationship(edge, entity) for edge in edges],
    }


def _row(
    connection: Connection, project_id: str, kind: Kind, entity: str, catalog: Catalog, what: str
) -> tuple[Any, ...] | None:
    query = f"select {what} from {kind.table} t where id = %s and project_id = %s and {catalog.live(kind.table)}"  # noqa: S608
    return connection.execute(query, [entity, project_id]).fetchone()


def _parsed(row: str, what: str) -> Any:
    """A row from its JSON. PostgreSQL's numbers know no bounds: those that 64 bits do not hold stay text.

    Raises:
        BuildError: it is nested deeper than anybody reads.
    """
    try:
        if _LONG_NUMBER.search(row) is None:
            return orjson.loads(row)
        return json.loads(row, parse_int=_whole, parse_float=_fraction)
    except (ValueError, RecursionError) as error:
        raise BuildError(f"{what} cannot be given whole: {error}") from error


def _whole(digits: str) -> int | str:
    return number if len(digits) <= 20 and -(2**63) <= (number := int(digits)) < 2**64 else digits


def _fraction(digits: str) -> float | str:
    return found if isfinite(found := float(digits)) else digits


def _relationship(edge: tuple[Any, ...], entity: str) -> dict[str, Any]:
    edge_id, rel, src_kind, src, dst_kind, dst = edge
    outward = src == entity
    return {
        "id": edge_id,
        "rel": rel,
        "direction": "out" if outward else "in",
        "kind": dst_kind if outward else src_kind,
        "other_id": dst if outward else src,
    }


def full_graph(
    connection: Connection, project_id: str, catalog: Catalog, size: int = PAGE
) -> Iterator[dict[str, Any]]:
    """Every live entity and every edge of a project, in pages that are whole by themselves, from one snapshot.

    Pages number from 1; the last says ``"last": true``. Memory is bounded by one page, whatever the project.
    """
    with mapped(f"reading the graph of project {project_id}"):
        connection.execute("begin isolation level repeatable read read only")
        try:
            yield from _numbered(_pages(connection, project_id, catalog, size), project_id)
        finally:
            if not connection.closed:
                connection.rollback()


def _pages(connection: Connection, project_id: str, catalog: Catalog, size: int) -> Iterator[dict[str, Any]]:
    letters = {kind.name: kind.handle for kind in catalog.kinds.all}
    for kind in catalog.present:
        query = f"""
            select to_jsonb(t), h.kind, h.number from {kind.table} t
            left join fw_handles h on h.project_id = t.project_id and h.entity_id = t.id
            where t.project_id = %s and {catalog.live(kind.table, "t")} order by t.id
        """  # noqa: S608 - tables of the registry
        for rows in _batches(connection, query, project_id, size):
            yield {
                "kind": kind.name,
                "entities": [
                    {
                        "handle": handle(letters[named], n) if named in letters else None,
                        **_parsed(row, f"a {kind.name} of project {project_id}"),
                    }
                    for row, named, n in rows
                ],
                "edges": [],
            }
    edges = f"select to_jsonb(t) from {EDGES} t where project_id = %s order by id"  # noqa: S608
    for rows in _batches(connection, edges, project_id, size):
        yield {"kind": None, "entities": [], "edges": [_parsed(row[0], "an edge") for row in rows]}


def _batches(connection: Connection, query: str, project_id: str, size: int) -> Iterator[list[tuple[Any, ...]]]:
    with connection.cursor("fw_page") as cursor:
        cursor.execute(query, [project_id])
        while rows := cursor.fetchmany(size):
            yield rows


def _numbered(pages: Iterator[dict[str, Any]], project_id: str) -> Iterator[dict[str, Any]]:
    """Pages with their number; which one is the last is known one page later."""
    held: dict[str, Any] | None = None
    number = 0
    for page in pages:
        if held is not None:
            yield {"project_id": project_id, "page": number, "last": False, **held}
        held, number = page, number + 1
    yield {
        "project_id": project_id,
        "page": max(number, 1),
        "last": True,
        **(held or {"kind": None, "entities": [], "edges": []}),
    }

"""One project's rows as they were loaded: the input of every build. Values only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foreword.edges import Edge
from foreword.kinds import Kind, Registry

Row = tuple[Any, ...]
"""The cells of a light row: ``id``, then the fields of ``Kind.light`` in order. Text, integers or None;
times, numbers and identifiers are text as PostgreSQL prints them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRows:
    """Everything a bundle is built from, of one project at one instant of the database.

    Attributes:
        project_id: the project.
        project: its own light row.
        entities: live light rows by kind; a kind that the database does not have is no key.
        edges: all edges with this project_id, dead ends and duplicates included.
        elsewhere: those ends of edges that are entities or rows of other projects.
        members: (actor id, role) of each who may read it.
        absent: kinds the database has no table for.
        snapshot: the ``pg_current_snapshot()`` in which all of it was read.
    """

    project_id: str
    project: Row
    entities: Mapping[str, Sequence[Row]]
    edges: Sequence[Edge] = ()
    elsewhere: frozenset[str] = frozenset()
    members: tuple[tuple[str, str], ...] = ()
    absent: tuple[str, ...] = ()
    snapshot: str = ""


def misfits(rows: ProjectRows, kinds: Registry) -> list[str]:
    """Cells that are not what their column's declaration says, each in words: what a failed build looks at
    to name the row that broke it. Adopted databases hold columns of other types than ours.
    """
    found = [*_misfits(kinds.project, [rows.project])]
    for kind in kinds.entities:
        found += _misfits(kind, rows.entities.get(kind.name, ()))
    return found


def _misfits(kind: Kind, rows: Sequence[Row]) -> list[str]:
    types = {column.name: column.type for column in kind.columns_of()}
    expected = [int if types.get(field.name) == "integer" else str for field in kind.light]
    return [
        f"{kind.name} {row[0]}: {field.name} is {cell!r}, not {'a whole number' if wanted is int else 'text'}"
        for row in rows
        for field, wanted, cell in zip(kind.light, expected, row[1:], strict=True)
        if cell is not None and not isinstance(cell, wanted)
    ]

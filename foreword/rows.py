"""One project's rows as they were loaded: the input of every build. Values only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foreword.edges import Edge

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

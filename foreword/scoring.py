"""How much entities matter, in whole points: the declarations of ``Kind.score`` put to work.

Pure functions of rows and buckets. Every row of a project passes through ``ranked``, so points are remembered
per combination of the cells that decide them (a state, a priority): a project has a few dozen such
combinations, whatever its size.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import isnan
from operator import itemgetter
from typing import Any

from foreword.buckets import Buckets
from foreword.graph import Ranked, best, merged
from foreword.kinds import Kind
from foreword.rows import Row

LEAST_OPEN = 20
"""Points of an open entity at least; finished ones get less than 10."""

UNLINKED = 10
"""Points that an open entity loses in a slice when it is not linked to the project and its kind is not always
included: linked ones come first, but a blocked task is worth a line however badly it is linked. Little enough
that an open one stays before every finished one."""

UNKNOWN_PROBABILITY = 0.5

_LOWEST_PRIORITY = 5


def ranked(kind: Kind, rows: Sequence[Row], buckets: Buckets) -> list[Ranked]:
    """(score, touched, id, kind) of every row, in the order of the rows."""
    columns = [name for name in _columns(kind) if name in kind.at]
    points = _Points(kind, columns)
    cells = itemgetter(*(kind.at[name] for name in columns)) if columns else lambda _: ()
    touched = kind.at[kind.touched]
    bonus = _bonuses(kind.score.bucket, buckets)
    name = kind.name
    if not bonus:
        return [(points[cells(row)], row[touched] or "", row[0], name) for row in rows]
    extra = bonus.get
    return [(points[cells(row)] + extra(row[0], 0), row[touched] or "", row[0], name) for row in rows]


def best_by_link(
    entities: Iterable[Ranked], direct: frozenset[str], limit: int
) -> tuple[list[Ranked], list[Ranked]]:
    """The best of the entities linked to the project, and the best of the others, ``limit`` of each at most."""
    linked: list[Ranked] = []
    others: list[Ranked] = []
    for entity in entities:
        (linked if entity[2] in direct else others).append(entity)
    return best(linked, limit), best(others, limit)


def slice_of(kind: Kind, linked: Sequence[Ranked], others: Sequence[Ranked], limit: int) -> list[str]:
    """The ids of the best entities of ``kind``, best first, ``limit`` at most: of the linked and the others, as
    ``best_by_link`` found them. The deduction leaves the others in their order.
    """
    both = [*linked, *(others if kind.always else map(_deducted, others))]
    return [entity[2] for entity in merged(both)[:limit]]


def _deducted(entity: Ranked) -> Ranked:
    score, touched, name, kind = entity
    return entity if score < LEAST_OPEN else (score - UNLINKED, touched, name, kind)


def _columns(kind: Kind) -> list[str]:
    """The columns that decide the points, the state first."""
    declared = kind.score
    extra = [
        name for name, weight in (("priority", declared.priority), ("probability", declared.probability)) if weight
    ]
    return list(dict.fromkeys(["state_key", *declared.by, *extra]))


class _Points(dict[Any, int]):
    """Points by the cells that decide them."""

    def __init__(self, kind: Kind, columns: Sequence[str]) -> None:
        super().__init__()
        self._kind = kind
        self._columns = columns

    def __missing__(self, cells: Any) -> int:
        values = cells if len(self._columns) != 1 else (cells,)
        found = self[cells] = _points(self._kind, tuple(self._columns), *values)
        return found


def terms(kind: Kind, row: Row, buckets: Buckets) -> dict[str, int]:
    """The points of a row by what they are for, in words; their sum is its score."""
    cells = {name: row[kind.at[name]] for name in _columns(kind) if name in kind.at}
    found = _terms(kind, cells)
    if not kind.is_finished(cells.get("state_key")):
        found |= {name: extra for name, extra in kind.score.bucket.items() if row[0] in buckets.of(name)}
    return found


@lru_cache(maxsize=4096, typed=True)  # the same states and priorities come in every build
def _points(kind: Kind, columns: Sequence[str], *cells: Any) -> int:
    return sum(_terms(kind, dict(zip(columns, cells, strict=True))).values())


def _terms(kind: Kind, cells: Mapping[str, Any]) -> dict[str, int]:
    declared, state = kind.score, cells.get("state_key")
    if kind.is_finished(state):
        return {f"{state} is finished": declared.finished}
    found = {
        f"{column} {cells.get(column)}": table[str(cells.get(column))]
        for column, table in declared.by.items()
        if table.get(str(cells.get(column)), 0)
    } or {"any other": declared.otherwise}
    if declared.priority and cells.get("priority") is not None:
        above = _LOWEST_PRIORITY - min(max(cells["priority"], 1), _LOWEST_PRIORITY)
        found[f"priority {cells['priority']}"] = declared.priority * above
    if declared.probability:
        found[f"probability {cells.get('probability')}"] = int(
            declared.probability * _probability(cells.get("probability"))
        )
    lacking = LEAST_OPEN - sum(found.values())
    return found if lacking <= 0 else found | {"open at all": lacking}


def _probability(stored: Any) -> float:
    """Within 0..1, whatever a numeric column holds: it may be NaN."""
    try:
        found = float(stored)
    except (TypeError, ValueError):
        return UNKNOWN_PROBABILITY
    return UNKNOWN_PROBABILITY if isnan(found) else min(max(found, 0.0), 1.0)


def _bonuses(points: Mapping[str, int], buckets: Buckets) -> dict[str, int]:
    """Points by entity; buckets hold open entities only."""
    bonus: dict[str, int] = {}
    for name, extra in points.items():
        for entity in buckets.of(name):
            bonus[entity] = bonus.get(entity, 0) + extra
    return bonus

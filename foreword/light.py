"""Light records: the short form of an entity, as JSON and as a line of text.

What is in them, and how they read, is declared by the kind. Dates are local calendar dates; empty fields are
left out; ``updated_at`` is there only where it says more than ``created_at``.
"""

from collections.abc import Mapping
from functools import cache
from math import isfinite
from typing import Any

from foreword.dates import LocalDate
from foreword.derive import Neighbourhood, derived
from foreword.kinds import Kind
from foreword.rows import Row
from foreword.text import LONGEST_WORD, UNLINKED, clean, cut, quote, word

MOST_HANDLES = 5
"""Handles listed in a line's part at most; the rest is counted."""

FREE_TEXT = 60
"""A field that may hold more characters than this is somebody's words and is quoted; the rest are keys."""

WIDTHS = ((90, MOST_HANDLES), (40, MOST_HANDLES), (16, 3), (6, 2), (1, 1))
"""(characters of a text, handles of a list) in a line, beside the title: the widest whose tokens are not too many
is taken, so that no text of one entity crowds out the others.
"""

_PROGRESS = "progress"
"""What ``Kind.line`` calls the tasks done of those that count."""

Record = dict[str, Any]


def record(kind: Kind, row: Row, local_date: LocalDate) -> Record:
    """The light record of a row, without derived fields: ``id`` first, then the declared fields that it has."""
    light: Record = {"id": row[0]}
    for place, name, limit, shown in _fields(kind):
        cell = row[place]
        if cell is None:
            continue
        if shown is not None:
            cell = local_date(cell) if shown is _DATE else _number(cell)
            if cell is None:
                continue
        elif limit and len(cell) > limit:
            cell = cut(cell, limit)
        light[name] = cell
    if light.get("updated_at") == light.get("created_at"):
        light.pop("updated_at", None)
    return light


_DATE, _NUMBER = "date", "number"


def _number(cell: str) -> float | None:
    """A stored number; what JSON has no number for is none."""
    number = float(cell)
    return number if isfinite(number) else None


@cache
def _fields(kind: Kind) -> tuple[tuple[int, str, int, str | None], ...]:
    """(position, name, characters at most or 0, as what it is shown if not as text) of each light field."""
    return tuple(
        (place, f.name, f.cut or 0, _DATE if f.time else _NUMBER if f.number else None)
        for place, f in enumerate(kind.light, 1)
    )


def full_record(kind: Kind, row: Row, local_date: LocalDate, near: Neighbourhood, *, direct: bool) -> Record:
    """The light record with derived fields and, as every slice shows it, whether it is linked directly."""
    light = record(kind, row, local_date)
    light.update((name, value) for name, value in derived(kind, near).items() if value is not None)
    light["direct_edge"] = direct
    return light


def label(kind: Kind, light: Record) -> str:
    """What the entity is called; an empty title is stated as such."""
    return clean(str(light.get(kind.label) or "")) or "(untitled)"


def after_label(
    kind: Kind,
    light: Record,
    near: Neighbourhood,
    handles: Mapping[str, str],
    *,
    direct: bool,
    width: tuple[int, int] = WIDTHS[0],
) -> str:
    """What follows the title in an entity's line: declared parts, then ``unlinked`` where no edge to the
    project exists. ``width`` is one of WIDTHS.
    """
    parts = []
    for before, behind, name, longest in _parts(kind):
        value = light.get(name)
        if name == _PROGRESS and near.tasks:
            parts.append(f" {before}{len(near.done)}/{len(near.tasks)}{behind}")
        elif value is not None and value != []:
            parts.append(f" {before}{_shown(value, handles, longest, width)}{behind}")
    if not direct:
        parts.append(f" {UNLINKED}")
    return "".join(parts)


@cache
def _parts(kind: Kind) -> tuple[tuple[str, str, str, int], ...]:
    """(text before, text behind, field, its characters at most or 0) of each declared part of a line."""
    longest = {f.name: f.cut or 0 for f in kind.light}
    return tuple((*form.split("{}"), name, longest.get(name, 0)) for form, name in kind.line)  # type: ignore[misc]


def _shown(value: Any, handles: Mapping[str, str], longest: int, width: tuple[int, int]) -> str:
    """A list of handles; somebody's words; a key; a date or a number, which is never cut."""
    characters, most = width
    if isinstance(value, list):
        listed = " ".join(handles[i] for i in value[:most])
        return listed if len(value) <= most else f"{listed} +{len(value) - most}"
    if longest > FREE_TEXT:
        return quote(cut(clean(str(value)), characters))
    return word(str(value), min(LONGEST_WORD, characters) if longest else LONGEST_WORD)

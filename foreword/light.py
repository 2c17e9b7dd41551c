"""Light records: the short form of an entity, as JSON and as a line of text.

What is in them, and how they read, is declared by the kind. Dates are local calendar dates; empty fields are
left out; ``updated_at`` is there only where it says more than ``created_at``.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from foreword.dates import LocalDate
from foreword.derive import Neighbourhood, derived
from foreword.kinds import Kind
from foreword.rows import Row
from foreword.text import clean, cut, quote, word

MOST_HANDLES = 5
"""Handles listed in a line's part at most; the rest is counted."""

FREE_TEXT = 60
"""A field that may hold more characters than this is somebody's words and is quoted; the rest are keys."""

LONGEST_PART = 90
"""Characters of free text in a line, beside the title."""

Record = dict[str, Any]


def record(kind: Kind, row: Row, local_date: LocalDate) -> Record:
    """The light record of a row, without derived fields: ``id`` first, then the declared fields that it has."""
    light: Record = {"id": row[0]}
    for place, name, limit, is_time in _fields(kind):
        cell = row[place]
        if cell is None:
            continue
        if is_time:
            cell = local_date(cell)
            if cell is None:
                continue
        elif limit and len(cell) > limit:
            cell = cut(cell, limit)
        light[name] = cell
    if light.get("updated_at") == light.get("created_at"):
        light.pop("updated_at", None)
    return light


@cache
def _fields(kind: Kind) -> tuple[tuple[int, str, int, bool], ...]:
    """(position, name, characters at most or 0, whether it is a time) of each light field."""
    return tuple((place, f.name, f.cut or 0, f.time) for place, f in enumerate(kind.light, 1))


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
    kind: Kind, light: Record, near: Neighbourhood, handles: Mapping[str, str], *, direct: bool
) -> str:
    """What follows the title in an entity's line: declared parts, then ``unlinked`` where no edge to the
    project exists.
    """
    values = light if not near.tasks else {**light, "progress": f"{len(near.done)}/{len(near.tasks)}"}
    parts = []
    for before, behind, name, free in _parts(kind):
        value = values.get(name)
        if value is not None and value != []:
            parts.append(f" {before}{_shown(value, handles, free=free)}{behind}")
    if not direct:
        parts.append(" unlinked")
    return "".join(parts)


@cache
def _parts(kind: Kind) -> tuple[tuple[str, str, str, bool], ...]:
    """(text before, text behind, field, whether it is free text) of each declared part of a line."""
    texts = {f.name for f in kind.light if (f.cut or 0) > FREE_TEXT}
    return tuple((*form.split("{}"), name, name in texts) for form, name in kind.line)  # type: ignore[misc]


def _shown(value: Any, handles: Mapping[str, str], *, free: bool) -> str:
    if isinstance(value, list):
        listed = " ".join(handles[i] for i in value[:MOST_HANDLES])
        return listed if len(value) <= MOST_HANDLES else f"{listed} +{len(value) - MOST_HANDLES}"
    if free:
        return quote(cut(clean(str(value)), LONGEST_PART))
    text = str(value)
    return text if "/" in text and text.replace("/", "").isdigit() else word(text)

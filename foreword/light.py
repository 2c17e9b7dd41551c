"""Light records: the short form of an entity, as JSON and as a line of text.

What is in them, and how they read, is declared by the kind. Dates are local calendar dates; empty fields are
left out; ``updated_at`` is there only where it says more than ``created_at``.
"""

from collections.abc import Mapping
from typing import Any

from foreword.dates import LocalDate
from foreword.derive import Neighbourhood, derived
from foreword.kinds import Kind
from foreword.rows import Row
from foreword.text import clean, cut, quote, word

MOST_HANDLES = 5
"""Handles listed in a line's part at most; the rest is counted."""

LONGEST_PART = 90
"""Characters of free text in a line, beside the title."""

Record = dict[str, Any]


def record(kind: Kind, row: Row, local_date: LocalDate) -> Record:
    """The light record of a row, without derived fields: ``id`` first, then the declared fields that it has."""
    light: Record = {"id": row[0]}
    for field, cell in zip(kind.light, row[1:], strict=True):
        if cell is None:
            continue
        if field.time:
            cell = local_date(cell)  # noqa: PLW2901 - the cell as it is shown
        elif field.cut is not None:
            cell = cut(cell, field.cut)  # noqa: PLW2901
        if cell is not None:
            light[field.name] = cell
    if light.get("updated_at") == light.get("created_at"):
        light.pop("updated_at", None)
    return light


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
    texts = {field.name for field in kind.light if (field.cut or 0) > 60}
    parts = []
    for form, name in kind.line:
        value = values.get(name)
        if value is None or value == []:
            continue
        parts.append(form.format(_shown(value, handles, free=name in texts)))
    if not direct:
        parts.append("unlinked")
    return "".join(f" {part}" for part in parts)


def _shown(value: Any, handles: Mapping[str, str], *, free: bool) -> str:
    if isinstance(value, list):
        listed = " ".join(handles[i] for i in value[:MOST_HANDLES])
        return listed if len(value) <= MOST_HANDLES else f"{listed} +{len(value) - MOST_HANDLES}"
    if free:
        return quote(cut(clean(str(value)), LONGEST_PART))
    text = str(value)
    return text if "/" in text and text.replace("/", "").isdigit() else word(text)

"""Light records: the short form of an entity, as JSON and as a line of text.

What is in them, and how they read, is declared by the kind. Dates are local calendar dates; empty fields are
left out; ``updated_at`` is there only where it says more than ``created_at``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import isfinite
from typing import Any, NamedTuple

from foreword.dates import LocalDate
from foreword.derive import Neighbourhood, derived
from foreword.kinds import Kind
from foreword.rows import Row
from foreword.text import CHANGED, ELLIPSIS, LONGEST_WORD, UNLINKED, clean, cut, quote, word

MOST_HANDLES = 5
"""Handles listed in a line's part at most; the rest is counted."""

FIRST_WORDS = 12
"""Words of somebody's text beside the title: a beginning that says what it is about."""

FREE_TEXT = 60
"""A field that may hold more characters than this is somebody's words and is quoted; the rest are keys."""

WIDTHS = ((120, MOST_HANDLES), (40, MOST_HANDLES), (16, 3), (6, 2), (1, 1))
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
    for name, value in derived(kind, near).items():
        if value is not None:
            light[name] = value
    light["direct_edge"] = direct
    return light


def label(kind: Kind, light: Record) -> str:
    """What the entity is called; an empty title is stated as such."""
    return clean(str(light.get(kind.label) or "")) or "(untitled)"


class Part(NamedTuple):
    """One thing that a line can say: its text, which begins with a space, the ids that it lists, and whether
    it says
    enough: of somebody's text the first twelve words, or all.
    """

    name: str
    text: str
    lists: tuple[str, ...] = ()
    enough: bool = True


BLOCKED, WAITS, NEEDED, IDLE = "blocked", "waits_for", "needed_by", "idle"
"""Parts that an entity of any kind can have. What follows from the absence of an edge is said in words."""


class Said(NamedTuple):
    """What a line can say of an entity beside its light record."""

    near: Neighbourhood
    blocked: bool = False
    idle: bool = False
    changed: bool = False
    direct: bool = True


def parts_of(
    kind: Kind, light: Record, said: Said, handles: Mapping[str, str], width: tuple[int, int] = WIDTHS[0]
) -> list[Part]:
    """What follows the title in an entity's line, in order: what its kind declares, then what every kind can say.
    ``width`` is one of WIDTHS.
    """
    near = said.near
    parts = []
    for declared in _parts(kind):
        name, longest = declared.name, declared.longest
        value = light.get(name)
        if name == _PROGRESS and near.tasks:
            parts.append(_plain(declared, f"{len(near.done)}/{len(near.tasks)}"))
        elif value is None or value == []:
            continue
        elif isinstance(value, list):
            parts.append(_plain(declared, _listed(value, handles, width)))
        elif longest > FREE_TEXT:
            parts.append(_quoted(declared, str(value), width))
        else:
            parts.append(_keyed(declared, str(value), width))
    flags = _flags(light, said)
    if flags:
        # They stand after the state: behind a number they would read as what is counted.
        state = 1 if parts and parts[0].name == "state_key" else 0
        parts[state:state] = flags
    if near.open_waits:
        listed = _listed(near.open_waits, handles, width)
        parts.append(Part(WAITS, f" waits for {listed}", near.open_waits[: width[1]]))
    if near.needed_by:
        parts.append(Part(NEEDED, f" needed by {near.needed_by}"))
    return parts


_BLOCKED, _IDLE = Part(BLOCKED, " blocked"), Part(IDLE, " no tasks or plans")
_CHANGED, _UNLINKED = Part(CHANGED, " changed"), Part(UNLINKED, f" {UNLINKED}")


def _flags(light: Record, said: Said) -> list[Part]:
    flags = []
    if said.blocked and light.get("state_key") != BLOCKED:
        flags.append(_BLOCKED)
    if said.idle:
        flags.append(_IDLE)
    if said.changed:
        flags.append(_CHANGED)
    if not said.direct:
        flags.append(_UNLINKED)
    return flags


@dataclass(frozen=True, slots=True, eq=False)
class _Declared:
    """A declared part of a line: text before, its field, text behind, the field's characters at most or 0."""

    before: str
    name: str
    behind: str
    longest: int


@cache
def _parts(kind: Kind) -> tuple[_Declared, ...]:
    longest = {f.name: f.cut or 0 for f in kind.light}
    forms = ((*form.split("{}"), name) for form, name in kind.line)
    return tuple(_Declared(f" {before}", name, behind, longest.get(name, 0)) for before, behind, name in forms)


def _plain(declared: _Declared, text: str) -> Part:
    return Part(declared.name, f"{declared.before}{text}{declared.behind}")


@lru_cache(maxsize=4096)  # the same states, priorities and dates stand in many lines, and again in every build
def _keyed(declared: _Declared, text: str, width: tuple[int, int]) -> Part:
    """A key; a date or a number, which is never cut."""
    return _plain(declared, word(text, min(LONGEST_WORD, width[0]) if declared.longest else LONGEST_WORD))


def _quoted(declared: _Declared, text: str, width: tuple[int, int]) -> Part:
    """Somebody's words."""
    shown = quote(cut(_first_words(clean(text)), width[0]))
    return _plain(declared, shown)._replace(enough=not _is_short(shown, text))


def _listed(ids: Sequence[str], handles: Mapping[str, str], width: tuple[int, int]) -> str:
    """A list of handles."""
    most = width[1]
    listed = " ".join([handles[i] for i in ids[:most]])
    return listed if len(ids) <= most else f"{listed} +{len(ids) - most}"


def _is_short(shown: str, text: str) -> bool:
    """Whether a text was cut before its first words were over. One that ends in an ellipsis may have been."""
    words = quote(text)[1:-1].split(" ")
    first = " ".join(words[:FIRST_WORDS])
    return not shown[1:].startswith(first) or (len(words) <= FIRST_WORDS and first.endswith(ELLIPSIS))


def _first_words(text: str) -> str:
    words = text.split(" ", FIRST_WORDS)
    return text if len(words) <= FIRST_WORDS else " ".join(words[:FIRST_WORDS]) + ELLIPSIS

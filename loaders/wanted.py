"""What a subscription may be: texts, as a person or a file gives them, checked and read in one place; and which
actor a text means. What is wrong is said with what there is instead. Nothing is stored here.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import time
from typing import Any

from foreword.errors import BadInput
from foreword.handles import uuid_of
from foreword.zones import zone_named
from loaders.catalog import Catalog
from loaders.connection import Connection, mapped
from loaders.records import did_you_mean
from loaders.tables import ACTORS

CHANNELS = ("chat", "mail")
WHEN_EMPTY = ("brief", "none")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

# Actors by what they were called: their id before their user's, before an address.
_FIND = """
with called as (
  select distinct name, lower(name) as lowered,
    case when name ~* '^[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}$' then lower(name) end as number
  from unnest(%(names)s::text[]) as given(name)),
found as ({found})
select name, rank, min(id::text), count(distinct id) from found group by name, rank order by name, rank
"""
_FOUND = "select c.name, {rank} as rank, a.id from called c join {table} a on {on} where {live}"
_BY = (
    ("id", "a.id::text = c.number"),
    ("user_id", "a.user_id::text = c.number"),
    ("email", "lower(a.email) = c.lowered"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a subscription is to be. Made by ``wanted``.

    Attributes:
        user_id: the actor.
        zone: its name, of the IANA database.
        at: when, on the wall of the zone.
        weekday: 0 is Monday; None is every day.
        channels: some of CHANNELS.
        when_empty: whether somebody without a live project gets a short brief, or none.
        tenant: who pays, so that nobody's thousands delay another's brief; None: everybody for himself.
        active: None leaves it as it is; a new one is.
    """

    user_id: str
    zone: str
    at: time = time(9)
    weekday: int | None = None
    channels: tuple[str, ...] = ("chat",)
    when_empty: str = "brief"
    tenant: str | None = None
    active: bool | None = None


def wanted(fields: Mapping[str, object]) -> Wanted:
    """What a subscription is to be, of texts as a person or a file gives them; empty ones count as absent.

    Raises:
        BadInput: something is missing, unknown, or cannot be so.
    """
    given = {name: value for name, value in fields.items() if value not in (None, "")}
    for name in given:
        if name not in _FIELDS:
            meant = did_you_mean(name, _FIELDS) or f"; there are {', '.join(_FIELDS)}"
            raise BadInput(f"a subscription has no {name!r}{meant}")
    for name in ("user_id", "zone"):
        if name not in given:
            raise BadInput(f"a subscription needs {name}; give one{_EXAMPLES[name]}")
    return Wanted(**{name: _FIELDS[name](value) for name, value in given.items()})


def actor_named(connection: Connection, catalog: Catalog, text: str) -> str:
    """The live actor that ``text`` means: an actor's id, else its user's, else its e-mail address in any case.

    Raises:
        BadInput: none, or several. Without a table of actors: no UUID.
    """
    (found,) = actors_named(connection, catalog, [text]).values()
    if isinstance(found, BadInput):
        raise found
    return found


def actors_named(connection: Connection, catalog: Catalog, names: Iterable[str]) -> dict[str, str | BadInput]:
    """``actor_named`` for many: by each text the actor, or what is wrong."""
    texts = dict.fromkeys(names)
    if not catalog.has(ACTORS):
        return {text: _uuid(text) for text in texts}
    found: dict[str, str | BadInput] = {}
    with mapped("looking for actors"):
        rows = connection.execute(_finding(catalog), {"names": [text.strip() for text in texts]}).fetchall()
    for name, rank, actor, count in rows:
        several = BadInput(f"{count} actors have the {_BY[rank][0]} {name!r}; name one by its id")
        found.setdefault(name, actor if count == 1 else several)
    nobody = "there is no live actor {!r}; give an actor's id, its user_id, or its e-mail address"
    return {text: found.get(text.strip()) or BadInput(nobody.format(text)) for text in texts}


def _finding(catalog: Catalog) -> str:
    live = catalog.live(ACTORS, "a")
    parts = [
        _FOUND.format(rank=rank, table=ACTORS, on=on, live=live)
        for rank, (column, on) in enumerate(_BY)
        if column in catalog.columns[ACTORS]
    ]
    return _FIND.format(found=" union all ".join(parts))


def _uuid(text: str) -> str | BadInput:
    try:
        return uuid_of(text.strip(), "user")
    except BadInput as error:
        return error


# ---- texts


def _zone(value: object) -> str:
    return zone_named(str(value).strip()).key


def _time(value: object) -> time:
    try:
        found = value if isinstance(value, time) else time.fromisoformat(_clock(str(value).strip()))
    except ValueError:
        found = None
    if found is None or found.tzinfo is not None or found.microsecond:
        raise BadInput(f"{value!r} is no time of day; write HH:MM or HH:MM:SS, such as 09:00")
    return found


def _clock(text: str) -> str:
    """``9:00`` is ``09:00``; everything shorter or longer is left to be refused."""
    text = f"0{text}" if text[1:2] == ":" else text
    if len(text) not in (5, 8):
        raise ValueError(text)
    return text


def _weekday(value: object) -> int | None:
    text = str(value).strip().lower()
    if text == "daily":
        return None
    if text in {"0", "1", "2", "3", "4", "5", "6"} and not isinstance(value, bool):
        return int(text)
    named = [number for number, day in enumerate(WEEKDAYS) if len(text) >= 3 and day.startswith(text)]
    if not named:
        meant = did_you_mean(text, WEEKDAYS) or "; write monday to sunday, 0 (monday) to 6, or daily"
        raise BadInput(f"there is no weekday {value!r}{meant}")
    return named[0]


def _channels(value: object) -> tuple[str, ...]:
    names = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        raise BadInput(f"channels is {value!r}; name some of {', '.join(CHANNELS)}")
    for name in names:
        _one_of("channel", CHANNELS)(name)
    return tuple(name for name in CHANNELS if name in names)


def _one_of(what: str, known: tuple[str, ...]) -> Callable[[object], str]:
    def check(value: object) -> str:
        if not isinstance(value, str) or value not in known:
            raise BadInput(
                f"there is no {what} {value!r}{did_you_mean(str(value), known)}; it is {' or '.join(known)}"
            )
        return value

    return check


def _active(value: object) -> bool:
    found = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(str(value).lower())
    if found is None:
        raise BadInput(f"active is {value!r}; write true or false")
    return found


def _tenant(value: object) -> str:
    text = str(value)
    if "\0" in text:
        raise BadInput("tenant holds the character NUL, which PostgreSQL cannot; leave it out")
    return text


_FIELDS: dict[str, Callable[[object], Any]] = {
    "user_id": lambda value: uuid_of(str(value).strip(), "user"),
    "zone": _zone,
    "at": _time,
    "weekday": _weekday,
    "channels": _channels,
    "when_empty": _one_of("when_empty", WHEN_EMPTY),
    "tenant": _tenant,
    "active": _active,
}
"""What a subscription has, and how its text is read."""

_EXAMPLES = {"user_id": "", "zone": ", such as Europe/Berlin"}

"""What must be true after a storm, whoever died in it. It is looked at from outside: rows, the stream, Redis.

Promises: one row per user and local date, in the state that it must be in, made once; one event for each ready
brief, none before it was due; what it says is its user's only, and is what a fresh one would say.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import orjson
from chaos.people import canaries
from storm.people import READY, Person
from storm.world import World

from foreword.memory import MemoryStore
from foreword.reader import Reader
from loaders.catalog import inspect
from loaders.project import compile_statements
from tasks.brief import write_brief
from tasks.tools import Tools

PATIENCE_SECONDS = 150.0
"""Without any progress, until what is not there yet is given up: longer than any lease or message."""

Key = tuple[str, str]
"""A user and a local date."""

_STANDING = """
select (select count(distinct (user_id, local_date)) from fw_briefs where state in ('ready', 'skipped')),
  (select count(*) from fw_briefs where state in ('pending', 'generating')),
  (select count(distinct (user_id, local_date)) from fw_announcements where sent_at is not null),
  (select count(*) from fw_announcements where sent_at is null and dead_at is null),
  (select count(*) > count(distinct (user_id, local_date)) from fw_briefs)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A brief's row without its text."""

    state: str
    revision: int
    attempts: int
    kind: str
    due: datetime | None  # a brief that nobody's clock asked for is due at no time
    told: datetime | None
    made: datetime | None
    scheduled: datetime
    stamp: str | None


def await_end(world: World) -> float:
    """Wait until everything is made and told, or nothing goes on any more, or a brief is there twice, which no
    time mends; seconds after the last was due.
    """
    wanted, announced = len(world.expected), len(world.ready)
    seen: object = None
    since = time.monotonic()
    with world.plain() as connection:
        connection.autocommit = True
        while time.monotonic() - since < PATIENCE_SECONDS:
            ((ended, under_way, told, waiting, twice),) = connection.execute(_STANDING).fetchall()
            if twice or (ended >= wanted and not under_way and told >= announced and not waiting):
                break
            if (standing := (ended, told)) != seen or datetime.now(UTC) < world.last_due:
                seen, since = standing, time.monotonic()
            time.sleep(0.2)
    return max((datetime.now(UTC) - world.last_due).total_seconds(), 0.0)


def check(world: World) -> tuple[Mapping[Key, Row], Mapping[Key, float]]:
    """Look at everything, and note what is violated; the rows, and when each event stood in the stream (seconds
    since 1970), by user and date.
    """
    rows, events = _rows(world), _events(world)
    _check_rows(world, rows)
    told = _check_events(world, events)
    _check_texts(world)
    _check_copies(world, rows)
    _check_numbers(world, rows)
    return {key: found[0] for key, found in rows.items()}, told


# ---- rows


def _rows(world: World) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = {}
    with world.plain() as connection:
        for user, day, *cells in connection.execute(
            "select user_id::text, local_date::text, state, revision, attempts, kind, due_at, told_at,"
            " generated_at, created_at, stamp from fw_briefs"
        ):
            found.setdefault((user, day), []).append(Row(**dict(zip(Row.__slots__, cells, strict=True))))
    return found


def _check_rows(world: World, rows: Mapping[Key, list[Row]]) -> None:
    add, expected = world.findings.add, world.expected
    for key in expected.keys() - rows.keys():
        add("one row", f"{key}: there is none")
    for key, found in rows.items():
        person = expected.get(key)
        if len(found) != 1:
            add("one row", f"{key}: there are {len(found)}")
        if person is None:
            add("one row", f"{key}: there is one ({found[0].state}) that nobody wants")
            continue
        row = found[0]
        if row.state != person.becomes:
            add("state", f"{key} is {row.state} after {row.attempts} attempts and not {person.becomes}")
        if row.due != person.due:
            add("due", f"{key} is due {row.due} and not {person.due}")
        if person.becomes == READY and row.state == READY:
            kind = "return" if person.away else "daily"
            if row.revision != 1:
                add("made once", f"{key} has revision {row.revision}")
            if row.kind != kind or row.told is None:
                add("state", f"{key} is {row.kind} and not {kind}, told at {row.told}")


# ---- the stream


def _events(world: World) -> list[tuple[float, Mapping[str, str]]]:
    found: list[tuple[float, Mapping[str, str]]] = []
    with world.cache() as client:
        reader, after = Reader(client, asks=False), "0-0"
        while page := reader.ready(after, most=1000):
            after = page[-1][0]
            found += [(int(place.partition("-")[0]) / 1000, event) for place, event in page]
    return found


def _check_events(world: World, events: list[tuple[float, Mapping[str, str]]]) -> dict[Key, float]:
    add, wanted = world.findings.add, world.ready
    told: dict[Key, float] = {}
    for at, event in events:
        key = event["user"], event["date"]
        person = wanted.get(key)
        if key in told:
            add("told once", f"{key} again, {at - told[key]:.1f} s later")
        if person is None:
            add("told once", f"{key}: nobody is to be told")
            continue
        told.setdefault(key, at)
        if at < person.due.timestamp():
            add("told when due", f"{key} {person.due.timestamp() - at:.3f} s early")
        if event["zone"] != person.zone or not _is_at(event["due"], person.due):
            add("told once", f"{key}: the event is another's: {event}")
    for key in wanted.keys() - told.keys():
        add("told once", f"{key}: never")
    return told


def _is_at(written: str, when: datetime) -> bool:
    try:
        return datetime.fromisoformat(written) == when
    except ValueError:
        return False


# ---- what briefs say


def _check_texts(world: World) -> None:
    """Every brief is its user's, about projects of theirs only."""
    wanted = world.ready
    with world.plain() as connection, connection.cursor("texts") as cursor:
        cursor.itersize = 500
        cursor.execute(
            "select user_id::text, local_date::text, document::text, lines::text from fw_briefs where revision > 0"
        )
        for user, day, document, lines in cursor:
            if (person := wanted.get((user, day))) is not None and (
                why := _not_theirs(person, document, lines, world)
            ):
                world.findings.add("theirs", f"{(user, day)} {why}")


def _not_theirs(person: Person, document: str, lines: str, world: World) -> str:
    said = orjson.loads(document)
    if (said["user"], said["date"], said["zone"]) != (person.id, person.day.isoformat(), person.zone):
        return f"is for {said['user']} on {said['date']} in {said['zone']}"
    named = {each["id"] for each in [*said["projects"], *said["quiet"]["items"]]}
    theirs = {world.circle.projects[number].id for number in person.projects}
    if named != theirs:
        return f"names projects {sorted(named ^ theirs)} too many or too few"
    strange = canaries(f"{document}{lines}".encode()) - person.projects
    return f"holds words of projects {sorted(strange)}" if strange else ""


def _check_copies(world: World, rows: Mapping[Key, list[Row]]) -> None:
    """Redis has what PostgreSQL has."""
    with world.cache() as client:
        reader = Reader(client, asks=False)
        for user, day in sorted(world.ready.keys() & rows.keys()):
            row = rows[user, day][0]
            if row.state != READY:
                continue
            context = reader.brief(user, date.fromisoformat(day))
            if context.data.get("user") != user or context.line.strip() != (row.stamp or "").strip():
                world.findings.add("copies", f"{(user, day)} reads {context.line!r} and not {row.stamp!r}")


def _check_numbers(world: World, rows: Mapping[Key, list[Row]]) -> None:
    """A sample says what is so."""
    wanted = world.ready
    ready = sorted(key for key, found in rows.items() if key in wanted and found[0].state == READY)
    chosen = Random(f"{world.options.seed}/sample").sample(ready, min(len(ready), world.options.sample))
    with _tools(world) as tools, world.plain() as connection:
        for user, day in chosen:
            row = connection.execute(
                "select document, generated_at from fw_briefs"
                " where user_id = %s and local_date = %s and state = 'ready'",
                [user, day],
            ).fetchone()
            if row is None:
                world.findings.add("state", f"{(user, day)} was ready and is not any more")
                continue
            document, made = row
            person = wanted[user, day]
            fresh = write_brief(
                user, person.day, tools, kind=document["kind"], zone=person.zone, now=made - timedelta(seconds=1)
            )
            if (stored := _numbers(document)) != (now := _numbers(orjson.loads(orjson.dumps(fresh.document)))):
                world.findings.add("numbers", f"{(user, day)} says {stored} and not {now}")


def _numbers(document: Mapping[str, Any]) -> Any:
    return (
        document["totals"],
        {section["id"]: section["counts"] for section in document["projects"]},
        {name: listed["total"] for name, listed in document["attention"].items()},
        Counter(item["id"] for item in document["priorities"]),
    )


@contextmanager
def _tools(world: World) -> Iterator[Tools]:
    with world.database() as connection:
        yield Tools(
            connection=connection,
            statements=compile_statements(inspect(connection)),
            store=MemoryStore(),
            zone=ZoneInfo("UTC"),
            dumps=orjson.dumps,
        )

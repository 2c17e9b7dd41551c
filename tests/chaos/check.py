"""What must be true when everything has calmed down: every bundle is, byte for byte, what a fresh build gives.

Built here by the functions that builders use, into nothing, from the database as it is: so this finds what was
lost, late, doubled or overtaken on the way, and nothing that the builder itself gets wrong.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import psycopg
import redis
from chaos.world import World

from foreword import keys
from foreword.errors import ForewordError
from foreword.memory import MemoryStore
from loaders.catalog import inspect
from loaders.connection import connect
from loaders.project import compile_statements
from loaders.tables import MEMBERS
from tasks.audit import Fields, difference, fresh_fields
from tasks.tools import Tools

BOUND_SECONDS = 30.0
"""From the last fault until everything is as it should be. Generous: a lease that has to end, a connection that is
found dead after ten seconds, a worker that is started anew, and a few dozen builds on a busy machine."""


class Fresh:
    """Builds bundles from the database as it is now, and publishes none."""

    def __init__(self, database_url: str) -> None:
        self._connection = connect(database_url)
        self._tools = Tools(
            connection=self._connection,
            statements=compile_statements(inspect(self._connection)),
            store=MemoryStore(),
            zone=ZoneInfo("UTC"),
            dumps=orjson.dumps,
        )

    def close(self) -> None:
        """End its session."""
        self._connection.close()

    def build(self, project_id: str) -> Fields | None:
        """The fields of a project's bundle without its stamp; None where there is no such live project."""
        return fresh_fields(project_id, self._tools)


@contextmanager
def fresh_builds(database_url: str) -> Iterator[Fresh]:
    """A builder for comparisons."""
    one = Fresh(database_url)
    try:
        yield one
    finally:
        one.close()


def stored_fields(client: "redis.Redis", project_id: str) -> Fields:
    """A project's hash."""
    found: dict[bytes, bytes] = client.hgetall(keys.project(project_id))  # type: ignore[assignment]
    return {name.decode(): value for name, value in found.items()}


# ---- one look at everything


def troubles(world: World, fresh: Fresh) -> dict[str, str]:
    """By project (or promise), what is not as it should be."""
    found: dict[str, str] = {}
    with redis.Redis.from_url(world.cache_url, socket_timeout=10) as client:
        for project in world.people.all:
            stored = stored_fields(client, project.id)
            wrong = difference(stored, fresh.build(project.id))
            if wrong:
                found[project.id] = wrong
        found |= _unlisted(world, client)
    return found | _in_the_database(world) | _waiting(world)


def _unlisted(world: World, client: "redis.Redis") -> dict[str, str]:
    """Members whose overview would not show a project of theirs."""
    live = (
        f"select m.actor_id::text, m.project_id::text from {MEMBERS} m join onto_projects p on p.id = m.project_id"
    )
    with world.connect() as connection:
        rows = connection.execute(
            f"{live} where m.removed_at is null and p.deleted_at is null".encode()
        ).fetchall()
    lost = [(actor, project) for actor, project in rows if not client.sismember(keys.projects_of(actor), project)]
    return {f"overview of {actor}": f"does not name project {project}" for actor, project in lost[:3]}


_AUDITS = {
    "change log": "select project_id::text, count(*), min(at)::text from fw_changes group by 1 order by 1 limit 5",
    "parked": "select project_id::text, attempts, error from fw_projects where parked_at is not null",
    "attempts": "select project_id::text, attempts, sends, error from fw_projects where attempts + sends > 0",
    "requests": "select project_id::text, requested, finished from fw_projects where requested > finished limit 5",
}
"""What the ledger must not hold when all is quiet, by name."""


def _in_the_database(world: World) -> dict[str, str]:
    with world.connect() as connection:
        rows = {name: connection.execute(sql.encode()).fetchall() for name, sql in _AUDITS.items()}
    return {name: f"{found}" for name, found in rows.items() if found}


def _waiting(world: World) -> dict[str, str]:
    """Edits that nobody can read yet."""
    waiting = world.journal.waiting()
    return {
        f"edits of {project}": f"{len(edits)} not readable, first {edits[0].number} ({edits[0].token})"
        for project, edits in waiting.items()
    }


# ---- until it is well


def quiescent_after(
    world: World, since: float, bound: float = BOUND_SECONDS
) -> tuple[float | None, dict[str, str]]:
    """Seconds from ``since`` until one look finds nothing wrong, or None; and what was wrong at the last look."""
    last: dict[str, str] = {"nothing": "was looked at"}
    with fresh_builds(world.database_url) as fresh:
        while time.monotonic() - since < bound:
            looked = time.monotonic()
            with suppress(psycopg.Error, redis.RedisError, ForewordError):
                last = _quick(world) or troubles(world, fresh)
                if not last:
                    return looked - since, {}
            time.sleep(0.1)
        return None, last | troubles(world, fresh)


def _quick(world: World) -> dict[str, str]:
    """What is cheap to ask, and enough to know that it is too early."""
    return _in_the_database(world) | _waiting(world) | _doubtful(world)


def _doubtful(world: World) -> dict[str, Any]:
    doubts = world.journal.doubts()
    return {"in doubt": f"{len(doubts)} edits"} if doubts else {}

"""The state of each project: who asked for a build, which build answered, what went wrong. One row a project.

It is ours alone. A message on the queue is only a wake-up: what is asked for stands here, and so does what
became of it, whoever died in between.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors

from foreword.errors import BuildError
from foreword.stamp import SCHEMA
from loaders.connection import Connection, by_index, mapped, pipeline

# Ask for builds; every request gets a number above all before it. The number is drawn before the row is locked,
# so a later one may be there first and stays. In one order, so that two who ask for the same do not deadlock.
_REQUEST = """
insert into fw_projects as p (project_id, requested)
select id, nextval('fw_request') from (select distinct id from unnest(%(ids)s::uuid[]) id order by id) asked
on conflict (project_id) do update set requested = greatest(p.requested, excluded.requested),
  parked_at = null, attempts = case when p.parked_at is null then p.attempts else 0 end,
  quiet_until = case when p.parked_at is null then p.quiet_until else '-infinity' end
returning project_id, requested
"""

# A build begins: its attempt is counted and its place in the order drawn, under the project's lock. The commit is
# waited for (no "unhurried" here): a generation that a crash of the server could give away twice is no order.
_BEGIN = """
insert into fw_projects as p (project_id, attempts, builder, begun_at, tried)
select {project}, 1, pg_backend_pid(), now(), pg_current_snapshot()::text {on_condition}
on conflict (project_id) do update set attempts = p.attempts + 1, sends = 0, builder = excluded.builder,
  begun_at = excluded.begun_at, tried = excluded.tried
returning nextval('fw_generation'), (select value from fw_facts where name = 'epoch'), p.requested,
  p.requested > p.finished, p.entities, p.xmax <> 0, pg_current_xact_id()::text
"""
_BEGIN_NOW = _BEGIN.format(project="%(project)s::uuid", on_condition="")

# Only where there is something to do, and nobody does it. The condition goes first, so that no lock is left
# behind.
_BEGIN_IF_DUE = "with free as materialized (select case when {due} then {lock} end as had)".format(
    due="""exists (select from fw_changes where project_id = %(project)s::uuid)
      or exists (select from fw_projects where project_id = %(project)s::uuid
                 and (requested > finished or refresh_at <= now()))""",
    lock="pg_try_advisory_lock(%(class)s, hashtext(%(project)s::text))",
) + _BEGIN.format(project="%(project)s::uuid", on_condition="from free where had")

_ORDER = "select nextval('fw_generation'), (select value from fw_facts where name = 'epoch')"

# What follows in the transaction does not wait for the disk: if it is lost in a crash, a build is repeated.
# SET LOCAL would do the same and leave a warning in the server's log: a pipeline is no transaction block.
_UNHURRIED = "select set_config('synchronous_commit', 'off', true)"

# A published build: in one step the log forgets what the bundle holds, and the build is on record, with every
# request up to the one that it saw when it began. What of other projects depends on whether these rows exist
# (their edges that end here) is logged for them, as any edit is: a row of theirs in fw_projects could deadlock
# two builds.
_FINISH = """
with held as (
  delete from fw_changes where project_id = %(project)s::uuid
    and pg_visible_in_snapshot(txid, %(snapshot)s::pg_snapshot)
  returning table_name, row_ids, txid, at),
ends as (select unnest(row_ids) as id from held where table_name <> 'onto_edges'),
echoes as (
  insert into fw_changes (project_id, table_name, op, rows)
  select project_id, 'onto_edges', 'E', 0 from (
    select e.project_id from ends join onto_edges e on e.src_id = ends.id
    union select e.project_id from ends join onto_edges e on e.dst_id = ends.id) elsewhere
  where project_id <> %(project)s::uuid)
update fw_projects p set finished = greatest(finished, %(request)s), generation = %(generation)s,
  snapshot = %(snapshot)s, entities = %(entities)s, built_at = now(), error = null, attempts = 0, builder = null,
  sends = 0, parked_at = null, incarnation = %(marker)s, layout = %(layout)s,
  quiet_until = now() + p.pace * interval '1 ms',
  valid_until = now() + %(valid_for)s * interval '1 s',
  refresh_at = case when p.refresh_at between p.begun_at and now() then p.refresh_at  -- it came due meanwhile
    else now() + %(refresh_in)s * interval '1 s' end
where project_id = %(project)s::uuid and generation < %(generation)s
returning (
  select array[count(*), min(txid::text::bigint), max(txid::text::bigint), extract(epoch from min(at)),
    extract(epoch from clock_timestamp() - min(at))]::float8[] from held)
"""

# A build that was not published, or whose reason to fail is not its own: as if it had not been tried.
_EXCUSE = """
update fw_projects set attempts = greatest(attempts - 1, 0), builder = null, sends = 0,
  quiet_until = now() + interval '1 s'
where project_id = %(project)s::uuid and builder = pg_backend_pid()
"""

# One that failed answers requests with its reason; the last good build stays on record. What a later build has
# done well, an earlier one that fails late does not spoil.
_FAIL = """
update fw_projects set finished = greatest(finished, %(request)s), error = %(error)s, builder = null, sends = 0,
  quiet_until = now() + case when %(excused)s > 0 then interval '1 s'
    else least(power(2, attempts - 1) * interval '0.5 s', interval '1 min') end,
  attempts = attempts - %(excused)s, parked_at = case when attempts - %(excused)s >= %(most)s then now() end
where project_id = %(project)s::uuid and generation < %(generation)s
returning attempts
"""

MOST_ATTEMPTS = 8
"""Builds of a project that may fail or die in a row, before it is parked."""

# How requests stand.
_ANSWERED = """
select project_id, finished, error from fw_projects where project_id = any(%(ids)s::uuid[])
"""

# Whether a request is waiting.
_ASKED = "select requested > finished from fw_projects where project_id = %(project)s::uuid"

# The newest place in the order that this database has given away.
_NEWEST = "select (select value from fw_facts where name = 'epoch'), (select last_value from fw_generation)"

# Nobody asked for this project, and there is none.
_FORGET = """
delete from fw_projects where project_id = %(project)s::uuid and builder = pg_backend_pid() and generation = 0
"""

# Projects that have been asked for and may have to be buried.
_UNBURIED = "select project_id from fw_projects where entities >= 0 order by project_id"

_LOCK = "select pg_advisory_lock(%s, hashtext(%s))"
_UNLOCK = "select pg_advisory_unlock(%s, hashtext(%s))"
LOCK_CLASS = 0x464F5245
"""Of our advisory locks: keeps them apart from the application's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A build's place in the order of publications, and the request it answers.

    ``asked`` tells whether that request is still unanswered. ``entities`` is the project's size at its last
    build, 0 before the first, GONE after it was deleted; ``known`` is False for a project that nobody ever asked
    for or edited. ``transaction`` is on the server's disk, and so is everything with a lower id: beyond it a
    snapshot claims nothing (``foreword.freshness.capped``).
    """

    epoch: int
    generation: int
    request: int
    asked: bool
    entities: int
    known: bool
    transaction: int = 2**63


GONE = -1
"""The size of a project that is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What a published build has put on record.

    Attributes:
        snapshot: what it was built from.
        entities: the size of the project, GONE for a tombstone.
        marker: of Redis, read before the publication.
        valid_for: seconds from now for which its dates are true, None where they never will be.
        refresh_in: seconds from now after which it is to be built again though nobody edits it. Both are spans,
            because the builder's clock and the database's may differ, by which a build could be due for ever.
    """

    snapshot: str
    entities: int
    marker: str = ""
    valid_for: float | None = None
    refresh_in: float | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """The edits that a build answered: what it took from the change log.

    Attributes:
        edits: rows of the log.
        first, last: the lowest and the highest transaction among them.
        at: when the oldest was made, seconds since 1970 by the database's clock; ``waited`` is how long ago.
    """

    edits: int
    first: int
    last: int
    at: float
    waited: float


def request_builds(connection: Connection, project_ids: Sequence[str]) -> dict[str, int]:
    """Ask for builds: the number of the request by project. What was parked is tried again."""
    with mapped("asking for builds"):
        rows = connection.execute(_REQUEST, {"ids": list(project_ids)}).fetchall()
    return dict(rows)


@contextmanager
def turn(connection: Connection, project_id: str) -> Iterator[Turn]:
    """The project's lock, held for one build, and the build's place in the order.

    The lock belongs to the session: it goes with a worker that dies. It is an economy, not the safety: a build
    that lost its session unawares is refused by the fence.

    Raises:
        BuildError: another build of the project held the lock for the whole lock time-out.
    """
    lock = [LOCK_CLASS, project_id]
    begun = _begun(connection, project_id, lock, _BEGIN_NOW)
    try:
        yield _turn(begun)
    finally:
        _unlock(connection, lock)


@contextmanager
def place(connection: Connection, project_id: str) -> Iterator[Turn]:
    """A place in the order for something that is published beside the project's bundle, such as a focus bundle. It
    is no attempt at the project, holds a lock of its own and makes no build wait.
    """
    lock = [LOCK_CLASS + 1, project_id]
    generation, epoch = _begun(connection, project_id, lock, _ORDER)
    try:
        yield Turn(epoch=epoch or 0, generation=generation, request=0, asked=False, entities=0, known=True)
    finally:
        _unlock(connection, lock)


def draw(connection: Connection) -> tuple[int, int]:
    """(epoch, generation): a place in the order of publications, above all drawn before it."""
    with mapped("drawing a place in the order of publications"):
        row = connection.execute(_ORDER, prepare=True).fetchall()[0]
    return row[1] or 0, row[0]


@contextmanager
def turn_if_due(connection: Connection, project_id: str) -> Iterator[Turn | None]:
    """Like ``turn``, but None where there is nothing to do, as for a message that came twice; or where another
    build holds the lock: what it does not cover is still in the log when it is done.
    """
    asked = {"project": project_id, "class": LOCK_CLASS}
    with mapped(f"beginning a build of project {project_id}"):
        try:
            with by_index(connection):
                begun = connection.execute(_BEGIN_IF_DUE, asked, prepare=True)
            row = begun.fetchone()
        except psycopg.Error:
            _unlock(connection, [LOCK_CLASS, project_id])
            raise
    if row is None:
        yield None
        return
    try:
        yield _turn(row)
    finally:
        _unlock(connection, [LOCK_CLASS, project_id])


def asked(connection: Connection, project_id: str) -> bool:
    """Whether a request for the project is waiting."""
    with mapped(f"looking for requests for project {project_id}"):
        row = connection.execute(_ASKED, {"project": project_id}, prepare=True).fetchone()
    return row is not None and bool(row[0])


def _begun(connection: Connection, project_id: str, lock: list[Any], statement: str) -> tuple[Any, ...]:
    """Wait for a lock, then draw a place in the order under it."""
    with mapped(f"beginning a build of project {project_id}"):
        try:
            with pipeline(connection):  # one round trip; the second statement sees what the lock waited for
                connection.execute(_LOCK, lock, prepare=True)
                begun = connection.execute(statement, {"project": project_id}, prepare=True)
            return begun.fetchall()[0]
        except errors.LockNotAvailable as error:
            raise BuildError(f"project {project_id}: another build holds its lock; try again later") from error
        except psycopg.Error:  # the lock may be had, and outlives the failure
            _unlock(connection, lock)
            raise


def _turn(row: tuple[Any, ...]) -> Turn:
    return Turn(
        generation=row[0],
        epoch=row[1] or 0,
        request=row[2],
        asked=row[3],
        entities=row[4],
        known=row[5],
        transaction=int(row[6]),
    )


def _unlock(connection: Connection, lock: list[Any]) -> None:
    """Give the lock back, however far the build came. Where that cannot be done the session ends, and its lock."""
    if connection.closed:
        return
    try:
        connection.execute(_UNLOCK, lock, prepare=True)
    except psycopg.Error:
        connection.close()


def finish(connection: Connection, project_id: str, turn: Turn, published: Published) -> Held | None:
    """Record a build whose publication was accepted, or its tombstone; which edits it answered, None where none.
    After the publication, never before: a crash in between only repeats work. One that was refused is not to be
    recorded: what its snapshot saw, the bundle that stands there may lack (docs/adr/0009).
    """
    asked = {
        "project": project_id,
        "request": turn.request,
        "generation": turn.generation,
        "snapshot": published.snapshot,
        "entities": published.entities,
        "marker": published.marker,
        "layout": SCHEMA,
        "valid_for": published.valid_for,
        "refresh_in": published.refresh_in,
    }
    with mapped(f"recording the build of project {project_id}"), by_index(connection):
        connection.execute(_UNHURRIED, prepare=True)
        finished = connection.execute(_FINISH, asked, prepare=True)
    row = finished.fetchone()
    if row is None or not row[0][0]:
        return None
    edits, first, last, at, waited = row[0]
    return Held(int(edits), int(first), int(last), at, max(waited, 0.0))


def fail(connection: Connection, project_id: str, turn: Turn, error: str, *, excused: bool = False) -> int:
    """Record a build that failed; ``excused`` where that says nothing about the project. What was published before
    stays, and so does what the log holds: it is tried again after a while, and parked after MOST_ATTEMPTS. How
    many there were in a row; 0 where a newer build was there.
    """
    asked = {
        "project": project_id,
        "request": turn.request,
        "generation": turn.generation,
        "error": error[:2000],
        "most": MOST_ATTEMPTS,
        "excused": int(excused),
    }
    with mapped(f"recording the failed build of project {project_id}"):
        row = connection.execute(_FAIL, asked).fetchone()
    return row[0] if row is not None else 0


def excuse(connection: Connection, project_id: str) -> None:
    """Take an attempt back that says nothing about the project: a server did not answer, a newer build was
    there.
    """
    with mapped(f"recording a build of project {project_id} that did not count"):
        connection.execute(_EXCUSE, {"project": project_id})


def answers(connection: Connection, requests: dict[str, int]) -> dict[str, str | None]:
    """Of the projects in ``requests`` (to request number), those answered: to None, or to their error."""
    with mapped("asking how builds stand"):
        rows = connection.execute(_ANSWERED, {"ids": list(requests)}).fetchall()
    return {project: error for project, finished, error in rows if finished >= requests[project]}


def newest(connection: Connection) -> tuple[int, int]:
    """The highest (epoch, generation) that this database has drawn."""
    with mapped("looking at the order of publications"):
        row = connection.execute(_NEWEST).fetchone()
    return (row[0] or 0, row[1]) if row is not None else (0, 0)


def forget(connection: Connection, project_id: str) -> None:
    """Take back that a project was begun that never was one."""
    with mapped(f"forgetting project {project_id}"):
        connection.execute(_FORGET, {"project": project_id})


def unburied(connection: Connection) -> list[str]:
    """Projects that were asked for at some time and are not known to be gone."""
    with mapped("listing projects"):
        return [row[0] for row in connection.execute(_UNBURIED).fetchall()]

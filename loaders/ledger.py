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
from loaders.connection import Connection, mapped

# Ask for builds; every request gets a number above all before it. The number is drawn before the row is locked,
# so a later one may be there first and stays. In one order, so that two who ask for the same do not deadlock.
_REQUEST = """
insert into fw_projects as p (project_id, requested)
select id, nextval('fw_request') from (select distinct id from unnest(%(ids)s::uuid[]) id order by id) asked
on conflict (project_id) do update set requested = greatest(p.requested, excluded.requested)
returning project_id, requested
"""

# What to build and in which order to publish. Under the project's lock.
_BEGIN = """
select nextval('fw_generation'), (select value from fw_facts where name = 'epoch'),
       coalesce(p.requested, 0), coalesce(p.requested > p.finished, false), coalesce(p.entities, 0),
       p.project_id is not null
from (select %(project)s::uuid as project_id) asked left join fw_projects p using (project_id)
"""

# What follows in the transaction does not wait for the disk: if it is lost in a crash, a build is repeated.
# SET LOCAL would do the same and leave a warning in the server's log: a pipeline is no transaction block.
_UNHURRIED = "select set_config('synchronous_commit', 'off', true)"

# A build answered every request up to the one it saw when it began.
_FINISH = """
insert into fw_projects as p (project_id, finished, generation, snapshot, entities, built_at, error)
values (%(project)s::uuid, %(request)s, %(generation)s, %(snapshot)s, %(entities)s, now(), null)
on conflict (project_id) do update set
  finished = greatest(p.finished, excluded.finished), generation = excluded.generation,
  snapshot = excluded.snapshot, entities = excluded.entities, built_at = excluded.built_at, error = null
where p.generation < excluded.generation
"""

# So did one that failed, with its reason; the last good build stays on record. What a later build has done well,
# an earlier one that fails late does not spoil.
_FAIL = """
insert into fw_projects as p (project_id, finished, error) values (%(project)s::uuid, %(request)s, %(error)s)
on conflict (project_id) do update set finished = greatest(p.finished, excluded.finished), error = excluded.error
where p.generation < %(generation)s
"""

# How requests stand.
_ANSWERED = """
select project_id, finished, error from fw_projects where project_id = any(%(ids)s::uuid[])
"""

# Whether a request is waiting.
_ASKED = "select requested > finished from fw_projects where project_id = %(project)s::uuid"

# The newest place in the order that this database has given away.
_NEWEST = "select (select value from fw_facts where name = 'epoch'), (select last_value from fw_generation)"

# A project that is gone has its tombstone published; there is nothing more to do for it. Where a later build found
# it again, an earlier one that comes late does not bury it.
_BURY = """
update fw_projects set finished = greatest(finished, %(request)s), generation = %(generation)s,
  snapshot = 'gone', entities = 0, built_at = now(), error = null
where project_id = %(project)s::uuid and generation < %(generation)s
"""

# Projects that have been asked for and may have to be buried.
_UNBURIED = "select project_id from fw_projects where snapshot <> 'gone' order by project_id"

_LOCK = "select pg_advisory_lock(%s, hashtext(%s))"
_TRY_LOCK = "select pg_try_advisory_lock(%s, hashtext(%s))"
_UNLOCK = "select pg_advisory_unlock(%s, hashtext(%s))"
_LOCK_CLASS = 0x464F5245  # "FORE": keeps our advisory locks apart from the application's


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A build's place in the order of publications, and the request it answers.

    ``asked`` tells whether that request is still unanswered: a message that came twice finds it answered.
    ``entities`` is the project's size at its last build, 0 before the first; ``known`` is False for a project that
    nobody ever asked for.
    """

    epoch: int
    generation: int
    request: int
    asked: bool
    entities: int
    known: bool


def request_builds(connection: Connection, project_ids: Sequence[str]) -> dict[str, int]:
    """Ask for builds: the number of the request by project."""
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
    lock = [_LOCK_CLASS, project_id]
    begun = _begun(connection, project_id, lock, _LOCK)
    assert begun is not None  # noqa: S101 - waited for
    try:
        yield begun
    finally:
        _unlock(connection, lock)


@contextmanager
def turn_if_free(connection: Connection, project_id: str) -> Iterator[Turn | None]:
    """Like ``turn``, but None where another build holds the lock: whoever holds it looks again when it is done
    (``asked``), so nobody has to wait for it.
    """
    lock = [_LOCK_CLASS, project_id]
    begun = _begun(connection, project_id, lock, _TRY_LOCK)
    try:
        yield begun
    finally:
        if begun is not None:
            _unlock(connection, lock)


def asked(connection: Connection, project_id: str) -> bool:
    """Whether a request for the project is waiting."""
    with mapped(f"looking for requests for project {project_id}"):
        row = connection.execute(_ASKED, {"project": project_id}, prepare=True).fetchone()
    return row is not None and bool(row[0])


def _begun(connection: Connection, project_id: str, lock: list[Any], how: str) -> Turn | None:
    with mapped(f"beginning a build of project {project_id}"):
        try:
            with connection.pipeline():  # one round trip; the second statement sees what the lock waited for
                locked = connection.execute(how, lock, prepare=True)
                begun = connection.execute(_BEGIN, {"project": project_id}, prepare=True)
            had, row = locked.fetchall()[0][0], begun.fetchall()[0]
        except errors.LockNotAvailable as error:
            raise BuildError(f"project {project_id}: another build holds its lock; try again later") from error
        except psycopg.Error:  # the lock may be had, and outlives the failure
            _unlock(connection, lock)
            raise
    if had is False:
        return None
    return Turn(generation=row[0], epoch=row[1] or 0, request=row[2], asked=row[3], entities=row[4], known=row[5])


def _unlock(connection: Connection, lock: list[Any]) -> None:
    """Give the lock back, however far the build came. Where that cannot be done the session ends, and its lock."""
    if connection.closed:
        return
    try:
        connection.execute(_UNLOCK, lock, prepare=True)
    except psycopg.Error:
        connection.close()


def finish(connection: Connection, project_id: str, turn: Turn, snapshot: str, entities: int) -> None:
    """Record a published build. After the publication, never before: a crash in between only repeats work."""
    asked = {
        "project": project_id,
        "request": turn.request,
        "generation": turn.generation,
        "snapshot": snapshot,
        "entities": entities,
    }
    with mapped(f"recording the build of project {project_id}"), connection.pipeline():
        connection.execute(_UNHURRIED, prepare=True)
        connection.execute(_FINISH, asked, prepare=True)


def fail(connection: Connection, project_id: str, turn: Turn, error: str) -> None:
    """Record a build that failed. What was published before stays."""
    asked = {
        "project": project_id,
        "request": turn.request,
        "generation": turn.generation,
        "error": error[:2000],
    }
    with mapped(f"recording the failed build of project {project_id}"):
        connection.execute(_FAIL, asked)


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


def bury(connection: Connection, project_id: str, turn: Turn) -> None:
    """Record that a project is gone and its tombstone published."""
    asked = {"project": project_id, "request": turn.request, "generation": turn.generation}
    with mapped(f"recording that project {project_id} is gone"):
        connection.execute(_BURY, asked)


def unburied(connection: Connection) -> list[str]:
    """Projects that were asked for at some time and are not known to be gone."""
    with mapped("listing projects"):
        return [row[0] for row in connection.execute(_UNBURIED).fetchall()]

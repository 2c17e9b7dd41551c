"""What random faults hit once in a while, brought about on purpose: each takes a world whose product runs.

A lock on a table that the loader reads holds a build in its middle for as long as the provocation needs, so that
nothing here depends on being quick.
"""

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import psutil
import psycopg
import redis
from chaos.editors import Connection
from chaos.edits import tick
from chaos.faults import PUBLICATION, spring
from chaos.journal import Edit, Tick, greatest
from chaos.people import PROBED, Project, ticks
from chaos.proxy import Trap
from chaos.servers import wait_until
from chaos.world import World

import foreword
from foreword import keys
from foreword.kinds import KINDS
from foreword.reader import TRUSTED, Reader

READABLE_SECONDS = 30.0
"""For an edit, after something died in its build: the bound of a whole run."""

POISON = "poison"
"""In a project's name it kills the process that builds it, under the sabotage of that name."""

_LOGGED = "select count(*) from fw_changes"
_WAITING = """
select count(*) from pg_stat_activity where wait_event_type = 'Lock' and application_name like 'foreword%'
"""


def edit(world: World, project: Project, connection: Connection) -> Edit:
    """A tick, committed and noted."""
    kind = PROBED[0]
    with connection.transaction():
        statement = tick(kind, project)
        ((_, _, number),) = connection.execute(statement.sql.encode(), statement.parameters).fetchall()
        made = Edit(
            number=number,
            editor="provocation",
            token=foreword.token(connection),
            projects=frozenset({project.id}),
            ticks=(Tick(project=project.id, kind=kind.name, number=number),),
            operations=("tick",),
        )
        world.journal.note(made)
    world.journal.settle(made, committed=True)
    return made


def readable_after(world: World, made: Edit) -> float | None:
    """Seconds until everybody can read it; None where that takes too long."""
    begun = time.monotonic()
    came = wait_until(
        lambda: not any(made in edits for edits in world.journal.waiting().values()), READABLE_SECONDS
    )
    return time.monotonic() - begun if came else None


@contextmanager
def in_the_middle(world: World, project: Project) -> Iterator[Edit]:
    """An edit whose build has begun and cannot end before the block does."""
    with world.connect() as connection, world.connect() as holding:
        holding.execute("begin")
        holding.execute("lock table onto_insights in access exclusive mode")
        made = edit(world, project, connection)
        begun = wait_until(lambda: connection.execute(_WAITING).fetchone() != (0,))
        if not begun:
            raise TimeoutError("no build began")
        yield made
        holding.execute("commit")


def killed_in_the_middle(world: World, rounds: int = 3) -> list[float | None]:
    """(a) SIGKILL to whoever builds: its message is lost. Seconds until each edit was readable all the same."""
    found = []
    for number in range(rounds):
        with in_the_middle(world, world.people.projects[number]) as made:
            for member in world.crew.members:
                for child in member.children:
                    with suppress(psutil.Error):
                        child.kill()
        found.append(readable_after(world, made))
    return found


def broker_restarted_in_flight(world: World, rounds: int = 3) -> list[float | None]:
    """(b) The broker dies and comes back while tasks are in flight. Seconds until each edit was readable. Workers
    may end of it; the crew starts them again.
    """
    found = []
    for number in range(rounds):
        with in_the_middle(world, world.people.projects[number]) as made:
            world.broker.end(signal.SIGKILL if number % 2 else signal.SIGTERM)
            world.broker.start()
        found.append(readable_after(world, made))
    return found


def poisoned(world: World) -> tuple[list[str], list[float | None]]:
    """(c) A project whose build kills its process, in a world sabotaged with POISON. The projects that are parked
    after a while, and the seconds until edits of others were readable meanwhile.
    """
    poison, *others = world.people.projects
    with world.connect() as connection:
        connection.execute(
            f"update {KINDS.project.table} set name = %s where id = %s".encode(),
            [f"{poison.canary} {POISON}", poison.id],
        )
        seconds = [readable_after(world, edit(world, other, connection)) for other in others[:5]]
        wait_until(lambda: _parked(connection), READABLE_SECONDS)
        seconds.append(readable_after(world, edit(world, others[0], connection)))
        return _parked(connection), seconds


def ids_given_again(world: World, rounds: int = 3) -> list[tuple[str, int | None, int]]:
    """(d) PostgreSQL crashes when a bundle is on its way, and gives transaction ids away again that left no trace
    on its disk; nobody builds. By round what a reader was told who demanded the edit that came next: the status,
    the tick that the bundle shows, the edit's own.
    """
    found: list[tuple[str, int | None, int]] = []
    with redis.Redis.from_url(world.cache_url) as client:
        for project in world.people.projects[:rounds]:
            with _burning(world), world.connect() as connection:
                wait_until(lambda: connection.execute(_LOGGED).fetchone() == (0,))
                before = client.hget(keys.project(project.id), keys.FENCE)
                edits = partial(edit, world, project, connection)
                spring(world, lambda _: Trap(word=PUBLICATION, hold=0.5), edits, READABLE_SECONDS)
                world.postgres.end(signal.SIGQUIT)
            with _frozen(world):
                world.postgres.start()
                with world.connect() as connection:
                    made = edit(world, project, connection)
                wait_until(lambda: client.hget(keys.project(project.id), keys.FENCE) != before, 5)  # noqa: B023
                context = Reader(client, asks=False).bundle(project.id, actor=TRUSTED, at_least=made.token)
            shown, _ = greatest(ticks(json.dumps(context.data, default=dict).encode()))
            found.append((context.status, shown.get(made.ticks[0].kind), made.ticks[0].number))
            readable_after(world, made)
    return found


@contextmanager
def _burning(world: World) -> Iterator[None]:
    """Somebody draws transaction ids, and writes nothing."""
    stop = threading.Event()

    def burn() -> None:
        with suppress(psycopg.Error), world.connect() as connection:
            while not stop.is_set():
                connection.execute("begin")
                connection.execute("select pg_current_xact_id()")
                connection.execute("rollback")

    thread = threading.Thread(target=burn, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def _frozen(world: World) -> Iterator[None]:
    """Nobody of the product moves."""
    processes = [p for member in world.crew.members for p in [member.head, *member.children] if p is not None]
    for process in processes:
        with suppress(psutil.Error):
            process.suspend()
    try:
        yield
    finally:
        for process in processes:
            with suppress(psutil.Error):
                process.resume()


def _parked(connection: Connection) -> list[str]:
    rows = connection.execute("select project_id::text from fw_projects where parked_at is not null").fetchall()
    return [row[0] for row in rows]

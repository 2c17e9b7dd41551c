"""One run: projects are built and edited, then everybody's brief is due at once while processes die; then silence,
and everything is looked at.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from chaos.harness import NotReady
from chaos.servers import wait_until
from storm.check import await_end, check
from storm.editing import edited
from storm.fill import fill_people, fill_projects, subscribe
from storm.people import Circle
from storm.report import Outcome, outcome
from storm.sabotage import PREPARED
from storm.strikes import plan, striking
from storm.world import Options, World, manned

from foreword.reader import TRUSTED, Reader
from loaders.migrate import migrate
from worker.app import BRIEFS
from worker.servers import embedded
from worker.wiring import Services

READY_SECONDS = 180.0
"""For the first bundle of every project, and for somebody to take briefs."""

PROGRESS_SECONDS = 10.0

Say = Callable[[str], object]


@contextmanager
def served(options: Options) -> Iterator[Services]:
    """Servers of a run's own."""
    data = options.home / f"servers-{uuid4().hex[:6]}"
    data.mkdir(parents=True)
    try:
        with embedded(data) as found:
            migrate(found.database_url)
            broker = found.redis_url.replace("db=0", "db=1")
            yield Services(database_url=found.database_url, redis_url=found.redis_url, broker_url=broker)
    finally:
        shutil.rmtree(data, ignore_errors=True)


def run(options: Options, services: Services, *, say: Say = print, keep: bool = False) -> Outcome:
    """Run once, over an empty database and an empty Redis. The run's directory is kept where it was violated.

    Raises:
        NotReady: the product did not come up.
    """
    home = options.home / f"{options.seed}-{uuid4().hex[:6]}"
    home.mkdir(parents=True)
    world = World(options=options, services=services, circle=Circle.of(options.seed, options.projects), home=home)
    unwanted = False
    try:
        found = _stormed(world, say)
        unwanted = found.ok and not keep
    except KeyboardInterrupt:
        unwanted = True
        raise
    finally:
        if unwanted:
            shutil.rmtree(home, ignore_errors=True)
    return replace(found, directory="" if unwanted else str(home))


def _stormed(world: World, say: Say) -> Outcome:
    options = world.options
    with world.database() as connection:
        fill_projects(connection, world.circle)
        people = world.circle.people(options.subscriptions, datetime.now(UTC), options.seconds)
        fill_people(connection, world.circle, [*people])  # their ids do not depend on the time
        for statement in PREPARED.get(options.sabotage, ()):
            connection.execute(statement.encode())
    with manned(world):
        say(f"seed {options.seed}: {world.home}")
        _await_product(world)
        with edited(world, "calm") as calm:
            time.sleep(options.calm)
        with world.database() as connection, edited(world, "storm") as stormy:
            begin = datetime.now(UTC) + timedelta(seconds=options.lead)
            world.people = [*world.circle.people(options.subscriptions, begin, options.seconds)]
            subscribe(connection, world.people)
            say(f"  {len(world.people)} subscriptions, {len(world.ready)} briefs within {options.seconds:.0f} s")
            _weather(world, say)
            ended_after = await_end(world)
        rows, told = check(world)
        return outcome(world, rows, told, (calm, stormy), ended_after)


def _weather(world: World, say: Say) -> None:
    """Strikes until the last brief is due."""
    options = world.options
    lasts = options.lead + options.seconds
    begun = time.monotonic()
    with striking(world, plan(options.seed, lasts, options.kills, options.doubled, options.purges)) as done:
        while (left := begun + lasts - time.monotonic()) > 0 or not done.is_set():
            time.sleep(max(min(left, PROGRESS_SECONDS), 0.1))
            say(_progress(world, time.monotonic() - begun))


def _progress(world: World, seconds: float) -> str:
    with world.database() as connection:
        states = connection.execute(
            "select state, count(*) from fw_briefs group by state order by state"
        ).fetchall()
        ((told,),) = connection.execute(
            "select count(*) from fw_announcements where sent_at is not null"
        ).fetchall()
    listed = ", ".join(f"{state} {number}" for state, number in states)
    return f"  {seconds:5.0f} s  {listed or 'nothing'}, told {told}, struck {sum(world.struck.values())}"


def _await_product(world: World) -> None:
    """Every project has a bundle, and somebody takes what is sent to do with briefs."""
    with world.cache() as client, world.broker() as broker:
        reader = Reader(client)
        missing: Sequence[str] = [project.id for project in world.circle.projects]

        def built() -> bool:
            nonlocal missing
            missing = [project for project in missing if not reader.project(project, actor=TRUSTED)]
            return not missing

        if not wait_until(built, READY_SECONDS):
            raise NotReady(f"no bundle of {', '.join(missing[:3])} and others; see {world.home}")
        if not wait_until(lambda: not broker.llen(BRIEFS), READY_SECONDS):
            raise NotReady(f"nobody takes ticks; see {world.home}")

"""A world for a storm: a database and a Redis that somebody else started, the product's processes, its people.

The servers stay up: what dies here are workers, their children, relays, their builders, and beats.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import psycopg
import redis
from celery import Celery
from chaos.crew import CHECKOUT, MARK, Crew, Member, command
from chaos.watch import Findings
from storm.people import READY, Circle, Person

from loaders.claims import EDITS, SWEEP
from loaders.connection import Connection, connect
from worker.app import BRIEFS, create_app
from worker.settings import from_environment
from worker.wiring import Services

SABOTAGED = CHECKOUT / "tests" / "storm" / "sabotaged.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a storm is to be.

    Attributes:
        seconds: within which every brief is due.
        lead: seconds before the first is.
        calm: seconds of edits without briefs before, to compare with.
        kills, doubled, purges: how many processes are killed, messages are sent twice, times the queue is emptied.
        rate: edits a second, by ``editors`` who each wait until theirs can be read.
        apart: whether workers take either edits or briefs, as in production; else each takes everything.
        sample: briefs that are compared with fresh ones.
    """

    seed: int
    subscriptions: int
    seconds: float
    home: Path
    lead: float = 5.0
    calm: float = 10.0
    projects: int = 300
    kills: int = 20
    doubled: int = 200
    purges: int = 5
    rate: float = 4.0
    editors: int = 4
    workers: int = 2
    concurrency: int = 1
    relays: int = 2
    beats: int = 2
    apart: bool = False
    sample: int = 100
    sabotage: str = ""
    bytecode: str = ""


@dataclass
class World:
    """Everything of a run."""

    options: Options
    services: Services
    circle: Circle
    home: Path
    mark: str = field(default_factory=lambda: str(uuid4()))
    findings: Findings = field(default_factory=Findings)
    people: list[Person] = field(default_factory=list)
    struck: Counter[str] = field(default_factory=Counter)
    crew: Crew[Member] = field(init=False)

    @property
    def expected(self) -> Mapping[tuple[str, str], Person]:
        """Who gets a row, by user and date."""
        return {(p.id, p.day.isoformat()): p for p in self.people if p.becomes}

    @property
    def ready(self) -> Mapping[tuple[str, str], Person]:
        """Who gets a brief."""
        return {key: person for key, person in self.expected.items() if person.becomes == READY}

    @property
    def last_due(self) -> datetime:
        """Of those who get one."""
        return max(person.due for person in self.ready.values())

    def app(self) -> Celery:
        """A client of the broker."""
        return create_app(from_environment({}), self.services)

    @contextmanager
    def database(self) -> Iterator[Connection]:
        """A connection as loaders have it."""
        with connect(self.services.database_url) as connection:
            yield connection

    @contextmanager
    def plain(self) -> Iterator["psycopg.Connection"]:
        """A connection of the application."""
        with psycopg.connect(self.services.database_url) as connection:
            yield connection

    @contextmanager
    def cache(self) -> Iterator["redis.Redis"]:
        """The Redis that chats read."""
        with redis.Redis.from_url(self.services.redis_url, socket_timeout=10) as client:
            yield client

    @contextmanager
    def broker(self) -> Iterator["redis.Redis"]:
        """The Redis of the queues."""
        with redis.Redis.from_url(self.services.broker_url, socket_timeout=10) as client:
            yield client


@contextmanager
def manned(world: World) -> Iterator[World]:
    """The product runs for the length of a block. Nothing of it is left afterwards."""
    with Crew([*_members(world)], world.mark).running() as crew:
        world.crew = crew
        yield world


def _members(world: World) -> Iterator[Member]:
    options = world.options
    queues = [f"--queue={name}" for name in (EDITS, SWEEP)], [f"--queue={BRIEFS}"]
    for n in range(options.workers):
        taken = queues[min(n, 1)] if options.apart else []
        yield _member(world, f"worker-{n}", "work", f"--concurrency={options.concurrency}", *taken)
    for n in range(options.relays):
        yield _member(world, f"relay-{n}", "relay")
    for n in range(options.beats):
        yield _member(world, f"beat-{n}", "beat")


def _member(world: World, name: str, *verb: str) -> Member:
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    compiled = {"PYTHONPYCACHEPREFIX": world.options.bytecode} if world.options.bytecode else {}
    services = {
        "FOREWORD_DATABASE_URL": world.services.database_url,
        "FOREWORD_REDIS_URL": world.services.redis_url,
        "FOREWORD_BROKER_URL": world.services.broker_url,
        "FOREWORD_DATA_DIR": str(world.home / "data"),
    }
    environment = {**kept, **compiled, **services, "HOME": str(world.home), "LANG": "C.UTF-8", MARK: world.mark}
    how = command(*verb, sabotage=world.options.sabotage, script=SABOTAGED)
    return Member(name, how, environment, world.home / f"{name}.log")

"""Watches the system from outside: memory, files and processor time of every process, connections, what waits."""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import psutil
import psycopg
import redis

from benchmarks.load.stock import Stock, look
from benchmarks.load.system import System
from foreword.errors import ForewordError
from loaders.claims import EDITS, SWEEP
from loaders.condition import condition
from loaders.connection import Connection, connect
from worker.app import BRIEFS

QUEUES = (EDITS, BRIEFS, SWEEP)

LOAD = "the load itself"

STOCK_EVERY = 6
"""Samples to one look at every key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """Attributes:
    age: seconds since it was started.
    unique, share: bytes of memory that nobody else has, and with its part of what is shared.
    """

    pid: int
    age: float
    main: bool
    unique: int
    share: int
    files: int
    cpu: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A look at everything.

    Attributes:
        at: seconds of the monotonic clock.
        processes: by group.
        waits: what waits: of the database (lag, dirty, asked, building, sweep, briefs), and messages by queue.
        connections: to PostgreSQL and to Redis.
        stored: bytes in Redis.
        machine: core seconds that the machine was busy since it started.
    """

    at: float
    machine: float
    processes: Mapping[str, tuple[Process, ...]]
    waits: Mapping[str, float]
    connections: Mapping[str, int]
    stored: int

    @property
    def idle(self) -> bool:
        """Whether nothing waits any more."""
        return not any(self.waits.values())


@dataclass(slots=True)
class Watch:
    """Samples, one every ``every`` seconds by a thread of its own, and with some of them a look at what stands in
    Redis; ``failures`` are when it could not look.
    """

    system: System
    every: float
    samples: list[Sample] = field(default_factory=list)
    stocks: list[tuple[float, Stock]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def watching(self) -> "Iterator[Watch]":
        """Look for the length of a block."""
        over = threading.Event()

        def watch() -> None:
            while not over.is_set():
                began = time.monotonic()
                try:
                    self.samples.append(self.sample())
                    if len(self.samples) % STOCK_EVERY == 1:
                        self.stocks.append((time.monotonic(), self.stock()))
                except ForewordError as error:
                    self.failures.append(str(error))
                over.wait(max(began + self.every - time.monotonic(), 0))

        thread = threading.Thread(target=watch, name="watch", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            over.set()
            thread.join()

    def stock(self) -> Stock:
        """What stands in Redis.

        Raises:
            ForewordError: it could not look.
        """
        services = self.system.services
        try:
            with ExitStack() as stack:
                urls = {services.redis_url: None, services.broker_url: None}
                return look([stack.enter_context(redis.Redis.from_url(url)) for url in urls])
        except (redis.RedisError, OSError) as error:
            raise ForewordError(f"looking at Redis: {type(error).__name__}: {error}") from error

    def sample(self) -> Sample:
        """One look; its own connections are not counted.

        Raises:
            ForewordError: it could not look.
        """
        try:
            return self._sample()
        except (redis.RedisError, psycopg.Error, psutil.Error, OSError) as error:
            raise ForewordError(f"looking at the system: {type(error).__name__}: {error}") from error

    def _sample(self) -> Sample:
        services = self.system.services
        with (
            closing(connect(services.database_url)) as connection,
            redis.Redis.from_url(services.redis_url) as cache,
            redis.Redis.from_url(services.broker_url) as broker,
        ):
            stands = condition(connection)
            ((briefs,),) = connection.execute(_BRIEFS).fetchall()
            lengths = {f"messages: {name}": broker.llen(name) for name in QUEUES}
            info: dict[str, Any] = cache.info()
            names = ("lag", "dirty", "asked", "building", "sweep")
            waits: dict[str, Any] = {name: getattr(stands, name) for name in names} | {"briefs": briefs} | lengths
            return Sample(
                at=time.monotonic(),
                machine=_busy(),
                processes=_processes(self.system),
                waits=waits,
                connections={"postgresql": _sessions(connection), "redis": info["connected_clients"] - 2},
                stored=info["used_memory"],
            )


_BRIEFS = """
select count(*) from fw_briefs where due_at <= now() and (state in ('pending', 'generating')
  or (state = 'ready' and told_at is null))
"""

_SESSIONS = """
select count(*) from pg_stat_activity
where backend_type = 'client backend' and application_name <> 'load' and pid <> pg_backend_pid()
"""


def _sessions(connection: Connection) -> int:
    return int(connection.execute(_SESSIONS).fetchall()[0][0])


def _processes(system: System) -> dict[str, tuple[Process, ...]]:
    families = system.processes() | {LOAD: [psutil.Process(os.getpid())]}
    return {name: tuple(_looked_at(family)) for name, family in families.items()}


def _looked_at(family: list[psutil.Process]) -> Iterator[Process]:
    for number, process in enumerate(family):
        with suppress(psutil.Error), process.oneshot():
            memory, times = process.memory_full_info(), process.cpu_times()
            yield Process(
                pid=process.pid,
                age=time.time() - process.create_time(),
                main=number == 0,
                unique=memory.uss,
                share=memory.pss,
                files=process.num_fds(),
                cpu=times.user + times.system,
            )


def _busy() -> float:
    times = psutil.cpu_times()
    return sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0)


def others(first: Sample, last: Sample) -> float:
    """Cores that were busy between two samples with what is none of ours."""
    ours = sum(cores(first, last)[0].values())
    return max((last.machine - first.machine) / max(last.at - first.at, 1e-9) - ours, 0.0)


def cores(first: Sample, last: Sample) -> tuple[dict[str, float], tuple[str, float]]:
    """Cores that each group had between two samples, and the busiest process with its share of one. What came and
    went between them is not counted.
    """
    lasted = max(last.at - first.at, 1e-9)
    before = {process.pid: process.cpu for family in first.processes.values() for process in family}
    had: dict[str, float] = defaultdict(float)
    busiest = ("", 0.0)
    for name, family in last.processes.items():
        for process in family:
            share = (process.cpu - before.get(process.pid, 0.0)) / lasted
            had[name] += share
            if share > busiest[1]:
                busiest = (f"{name} (process {process.pid}{', main' if process.main else ''})", share)
    return dict(had), busiest


Life = list[tuple[float, float]]


def recycled(samples: Sequence[Sample], group: str) -> list[Life]:
    """(age, bytes of its own) of the children of a worker in whose place it put others: a life each, in order.
    Those that ended with their worker are not among them: they have not done all of their tasks.
    """
    lives: dict[tuple[int, int], Life] = defaultdict(list)
    gone: dict[int, list[Life]] = defaultdict(list)
    ended = []
    for sample in samples:
        family = sample.processes.get(group, ())
        parent = next((process.pid for process in family if process.main), 0)
        here = {(parent, process.pid): process for process in family if not process.main}
        for who in [who for who in lives if who not in here]:
            gone[who[0]].append(lives.pop(who))
        for who, child in here.items():
            if who not in lives and gone[parent]:
                ended.append(gone[parent].pop(0))
            lives[who].append((child.age, float(child.unique)))
    return ended

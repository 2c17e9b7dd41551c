"""How soon is an edit readable, and what does logging it cost the application?

Three questions. Edit to readable bundle (``at_least`` of a reader that looks every 4 ms), with a real relay and a
real worker: on an idle machine, under a load of edits, and with nobody to take a message. Edits a second with our
triggers and without them, alternating, in the same run. And builds per edit in a burst.
"""

import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg
import redis

import foreword
from foreword import TRUSTED, Reader
from loaders.connection import connect
from worker.servers import Addresses

CHECKOUT = Path(__file__).parents[1]
WRITE_SECONDS = 2.0
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds from commit to readable."""

    name: str
    edits: int
    p50: float
    p99: float
    worst: float
    late: int


@dataclass(frozen=True, slots=True)
class Throughput:
    """Edits a second, without triggers and with; medians of alternating rounds."""

    writers: int
    rows: int
    without: float
    with_triggers: float

    @property
    def kept(self) -> float:
        """The share that is left."""
        return self.with_triggers / self.without


# ---- edit to readable


def latencies(servers: Addresses, edits: int, load_seconds: float) -> list[Latency]:
    """Idle, under load, and without any worker."""
    projects = _projects(servers, 200)
    with _system(servers, "relay", "work"):
        _settled(servers, projects)
        idle = _idle(servers, projects, edits)
        loaded = _loaded(servers, projects, load_seconds)
    with _system(servers, "relay"):
        _settled(servers, projects)
        alone = _idle(servers, projects, max(edits // 4, 10))
    return [
        _latency("idle", idle),
        _latency("50 edits/s over 200 projects", loaded),
        _latency("idle, every message lost", alone),
    ]


def _latency(name: str, found: Sequence[float | None]) -> Latency:
    taken = sorted(each for each in found if each is not None)
    half, most = (taken[min(int(len(taken) * q), len(taken) - 1)] for q in (0.5, 0.99))
    return Latency(name, len(found), half, most, taken[-1], len(found) - len(taken))


def _idle(servers: Addresses, projects: Sequence[str], edits: int) -> list[float | None]:
    dice = random.Random(1)
    with _reading(servers) as reader, psycopg.connect(servers.database_url) as connection:
        return [_edit_and_wait(connection, reader, project) for project in dice.choices(projects, k=edits)]


def _loaded(servers: Addresses, projects: Sequence[str], seconds: float) -> list[float | None]:
    """50 edits a second; every third of them is waited for, by one of four readers."""
    found: list[float | None] = []
    over = time.monotonic() + seconds

    def write(seed: int, rate: float, *, wait: bool) -> None:
        dice = random.Random(seed)
        with _reading(servers) as reader, psycopg.connect(servers.database_url) as connection:
            due = time.monotonic()
            while time.monotonic() < over:
                project = dice.choice(projects)
                if wait:
                    found.append(_edit_and_wait(connection, reader, project))
                else:
                    _edit(connection, project)
                due += 1 / rate
                time.sleep(max(due - time.monotonic(), 0))

    threads = [threading.Thread(target=write, args=(n, 35.0 / 2), kwargs={"wait": False}) for n in range(2)]
    threads += [threading.Thread(target=write, args=(9 + n, 15.0 / 4), kwargs={"wait": True}) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def _edit_and_wait(connection: "psycopg.Connection", reader: Reader, project: str) -> float | None:
    token = _edit(connection, project)
    begun = time.perf_counter()
    found = reader.project(project, actor=TRUSTED, at_least=token, wait=30)
    return (time.perf_counter() - begun) * 1000 if found.status == "fresh" else None


def _edit(connection: "psycopg.Connection", project: str) -> str:
    connection.execute(
        "update onto_tasks set title = %s where id = (select id from onto_tasks where project_id = %s limit 1)",
        [f"edited {time.time()}", project],
    )
    token = foreword.token(connection)
    connection.commit()
    return token


# ---- what it costs the application


def throughput(servers: Addresses) -> list[Throughput]:
    """Edits a second of 1, 4 and 8 writers, of one row and of a thousand rows a statement."""
    projects = _projects(servers, 40)
    with connect(servers.database_url) as connection:
        connection.execute(
            "insert into onto_tasks (id, project_id, title) select gen_random_uuid(), p, 'a title of usual length'"
            " from unnest(%s::uuid[]) p, generate_series(1, 230)",
            [projects],
        )
        connection.execute("analyze onto_tasks")
        ids = [
            row[0]
            for row in connection.execute("select id from onto_tasks where project_id = any(%s)", [projects])
        ]
    one = ("update onto_tasks set title = %s where id = %s::uuid", ids)
    many = ("update onto_tasks set title = %s where project_id = any(%s::uuid[])", projects)
    return [
        _compare(servers, writers, rows, statement, keys)
        for rows, (statement, keys) in ((1, one), (1000, many))
        for writers in (1, 4, 8)
    ]


def _compare(servers: Addresses, writers: int, rows: int, statement: str, keys: Sequence[str]) -> Throughput:
    found: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(ROUNDS):
        for triggers in (False, True):
            _switch(servers, on=triggers)
            found[triggers].append(_rate(servers, writers, rows, statement, keys))
    return Throughput(writers, rows, statistics.median(found[False]), statistics.median(found[True]))


def _switch(servers: Addresses, *, on: bool) -> None:
    with connect(servers.database_url) as connection:
        connection.execute(
            f"alter table onto_tasks {'enable always' if on else 'disable'} trigger fw_update".encode()
        )
        connection.execute("truncate fw_changes")
        connection.execute("vacuum onto_tasks")


def _rate(servers: Addresses, writers: int, rows: int, statement: str, keys: Sequence[str]) -> float:
    """Each writer its own rows of keys, so that they wait for the log, if for anything, and not for each other."""
    counts = [0] * writers
    over = time.monotonic() + WRITE_SECONDS
    many = rows > 1

    def write(number: int) -> None:
        dice = random.Random(number)
        own = keys[number::writers]
        with psycopg.connect(servers.database_url, autocommit=True) as connection:
            connection.prepare_threshold = 0
            while time.monotonic() < over:
                chosen = dice.sample(own, min(5, len(own))) if many else dice.choice(own)
                connection.execute(statement.encode(), [str(uuid4()), chosen])
                counts[number] += 1

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / WRITE_SECONDS


# ---- bursts


def builds_in_a_burst(servers: Addresses, edits: int = 1000) -> tuple[int, float, int]:
    """(edits, seconds they took, builds until the last was readable) of one project."""
    (project,) = _projects(servers, 1)
    with _system(servers, "relay", "work"):
        _settled(servers, [project])
        with _reading(servers) as reader, psycopg.connect(servers.database_url) as connection:
            before = _generation(servers)
            begun = time.perf_counter()
            for _ in range(edits):
                token = _edit(connection, project)
            took = time.perf_counter() - begun
            reader.project(project, actor=TRUSTED, at_least=token, wait=30)
            return edits, took, _generation(servers) - before


def _generation(servers: Addresses) -> int:
    with connect(servers.database_url) as connection:
        return int(connection.execute("select last_value from fw_generation").fetchall()[0][0])


# ---- what is needed for it


def _projects(servers: Addresses, number: int) -> list[str]:
    """Projects of twenty tasks, alone in the database."""
    with connect(servers.database_url) as connection:
        connection.execute("truncate onto_tasks, onto_projects, onto_edges, fw_projects, fw_changes")
        created = connection.execute(
            "insert into onto_projects (id, name) select gen_random_uuid(), 'project ' || n"
            " from generate_series(1, %s) n returning id",
            [number],
        )
        projects = [row[0] for row in created.fetchall()]
        connection.execute(
            "insert into onto_tasks (id, project_id, title) select gen_random_uuid(), p, 'task ' || n"
            " from unnest(%s::uuid[]) p, generate_series(1, 20) n",
            [projects],
        )
        connection.execute("analyze")
    return projects


@contextmanager
def _reading(servers: Addresses) -> Iterator[Reader]:
    with redis.Redis.from_url(servers.redis_url) as client:
        yield Reader(client)


def _settled(servers: Addresses, projects: Sequence[str]) -> None:
    """Wait until everything is built."""
    with _reading(servers) as reader:
        while not all(reader.project(project, actor=TRUSTED) for project in projects):
            time.sleep(0.1)
    time.sleep(1.5)


@contextmanager
def _system(servers: Addresses, *commands: str) -> Iterator[None]:
    """Relay and worker as processes of their own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FOREWORD_")} | {
        "FOREWORD_DATABASE_URL": servers.database_url,
        "FOREWORD_REDIS_URL": servers.redis_url,
        "FOREWORD_BROKER_URL": servers.redis_url.replace("db=0", "db=1"),
    }
    with ExitStack() as stack:
        for command in commands:
            process = subprocess.Popen(
                [sys.executable, "-m", "worker", command],
                cwd=CHECKOUT,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(process.wait)
            stack.callback(process.send_signal, signal.SIGTERM)
        yield

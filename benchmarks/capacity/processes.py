"""What do the real processes take at rest, and what does each build and brief cost with all of them around it?

A relay, a beat and a worker of two children, as operators start them. First nothing happens; then edits come at a
slow, steady pace, so that nobody waits for a processor; then as many briefs are due.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import redis

from benchmarks.capacity.costs import Process, Whole
from foreword.reader import TRUSTED, Reader
from loaders.connection import Connection
from worker.crew import CHECKOUT
from worker.screen import bar
from worker.wiring import Services

CHILDREN = 2
PATIENCE = 120.0

RELAY, BUILDER, WORKER, CHILD, BEAT, REDIS = (
    "relay",
    "relay's builder",
    "worker",
    "worker's child",
    "beat",
    "Redis",
)
SESSIONS, OWN = "PostgreSQL's sessions", "PostgreSQL's own processes"

COMMANDS = {RELAY: ["relay"], WORKER: ["work", f"--concurrency={CHILDREN}"], BEAT: ["beat"]}
CHILDREN_OF = {RELAY: BUILDER, WORKER: CHILD}

_OWN = ("checkpointer", "background writer", "walwriter", "autovacuum", "logical replication", "io worker")
"""How PostgreSQL calls processes that serve nobody in particular."""


def spent(process: psutil.Process) -> float:
    """Seconds of processor time so far, of a process of one thread: to the nanosecond where the system tells."""
    with suppress(OSError):
        return int(Path(f"/proc/{process.pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9
    return _whole(process)


def _whole(process: psutil.Process) -> float:
    """Of all its threads, to a hundredth of a second; of one that has ended its parent knows (``_reaped``)."""
    with suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0


def _reaped(process: psutil.Process) -> float:
    """Of its children that have ended."""
    times = process.cpu_times()
    return float(times.children_user + times.children_system)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """See the fields of Costs of the same names."""

    processes: Sequence[Process]
    build: Whole
    brief: Whole
    background: float


def measure_processes(
    services: Services,
    application: Connection,
    projects: Sequence[str],
    *,
    rest: float,
    load: float,
    rate: float,
) -> Found:
    """Watch them for ``rest`` seconds without work and ``load`` seconds with ``rate`` edits each second.
    ``projects`` are alone in the database, each with one member; none is built yet.
    """
    with (
        _running(services) as heads,
        redis.Redis.from_url(services.redis_url) as client,
        bar("processes", 4) as done,
    ):
        crowd = _Crowd(heads, application, client)
        _until(lambda: _read(client, projects))
        _until(crowd.complete)
        application.execute("vacuum (analyze)")  # else it is done for us, while we look
        time.sleep(min(rest, 2.0))
        done(1)
        idle = crowd.watch(lambda: time.sleep(rest))
        processes = crowd.at_rest(idle)
        done(1)
        edits = crowd.watch(lambda: _edit(application, projects, load, rate))
        done(1)
        briefs = crowd.watch(lambda: _have_briefs(application))
        done(1)
    return Found(
        processes=processes,
        build=_each(edits, idle),
        brief=_each(briefs, idle),
        background=edits.spent[OWN] / edits.spent[SESSIONS],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watched:
    """Seconds of processor time by role while something went on, and how many came of it."""

    seconds: float
    spent: Mapping[str, float]
    made: int


def _each(worked: _Watched, idle: _Watched) -> Whole:
    """Milliseconds for one, over what is spent at rest."""

    def more(*roles: str) -> float:
        both = [(worked.spent.get(role, 0.0), idle.spent.get(role, 0.0) / idle.seconds) for role in roles]
        return 1000 * max(sum(spent - rest * worked.seconds for spent, rest in both), 0.0) / max(worked.made, 1)

    return Whole(
        relay=more(RELAY),
        worker=more(WORKER),
        children=more(CHILD, BUILDER),
        postgres=more(SESSIONS, OWN),
        redis=more(REDIS),
    )


class _Crowd:
    """All processes that take part."""

    def __init__(
        self, heads: Mapping[str, psutil.Process], application: Connection, client: "redis.Redis"
    ) -> None:
        self._heads = heads
        self._application = application
        self._session = application.info.backend_pid
        postmaster = psutil.Process(self._session).parent()
        assert postmaster is not None
        self._postmaster = postmaster
        self._redis = psutil.Process(client.info("server")["process_id"])

    def complete(self) -> bool:
        """Whether all have started."""
        return len(self._heads[WORKER].children()) >= CHILDREN and bool(self._heads[RELAY].children())

    def watch(self, work: Callable[[], object]) -> _Watched:
        """What is spent while ``work`` is done, which says how many came of it. The application's session is left
        out.
        """
        before, began = self._spent(), time.monotonic()
        made = work()
        seconds, after = time.monotonic() - began, self._spent()
        after.subtract(before)
        return _Watched(seconds=seconds, spent=after, made=made if isinstance(made, int) else 0)

    def at_rest(self, idle: _Watched) -> list[Process]:
        """What each process takes, of those that are alike on average."""
        found = []
        for role, alike in self._by_role().items():
            memory = [each.memory_full_info() for each in alike]
            found.append(
                Process(
                    role=role,
                    share=idle.spent[role] / idle.seconds / len(alike),
                    resident=sum(each.rss for each in memory) / len(alike),
                    own=sum(each.uss for each in memory) / len(alike),
                )
            )
        return found

    def _by_role(self) -> dict[str, list[psutil.Process]]:
        children = {CHILDREN_OF[role]: self._heads[role].children() for role in CHILDREN_OF}
        served = self._postmaster.children()
        return {
            **{role: [head] for role, head in self._heads.items()},
            **children,
            REDIS: [self._redis],
            SESSIONS: [each for each in served if not _serves_nobody(each) and each.pid != self._session],
            OWN: [self._postmaster, *filter(_serves_nobody, served)],
        }

    def _spent(self) -> "Counter[str]":
        """Seconds by role, with those of processes that ended: workers replace a child, and so its session."""
        found: Counter[str] = Counter()
        for role, alike in self._by_role().items():
            found[role] += sum(map(_whole, alike))  # type: ignore[assignment]  # a Counter of seconds
        for role, of in CHILDREN_OF.items():
            found[of] += _reaped(self._heads[role])  # type: ignore[assignment]
        found[SESSIONS] += _reaped(self._postmaster)  # type: ignore[assignment]
        return found


def _serves_nobody(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return any(name in " ".join(process.cmdline()) for name in _OWN)
    return True


# ---- what they do


def _edit(application: Connection, projects: Sequence[str], seconds: float, rate: float) -> int:
    """Edit one project after the other, and wait until all is built; how many builds there were."""
    tasks: dict[str, str] = dict(
        application.execute("select project_id::text, id::text from onto_tasks").fetchall()
    )
    chance = random.Random(5)
    before = _number(application, "select last_value from fw_generation")
    over = due = time.monotonic()
    over += seconds
    while due < over:
        application.execute(
            "update onto_tasks set title = %s where id = %s",
            [f"edited {chance.getrandbits(64):x}", tasks[chance.choice(projects)]],
        )
        due += 1 / rate
        time.sleep(max(due - time.monotonic(), 0))
    _until(lambda: not _number(application, "select count(*) from fw_changes"))
    return _number(application, "select last_value from fw_generation") - before


def _have_briefs(application: Connection) -> int:
    """Have a brief due for everybody, at once, and wait until all are told; how many."""
    application.execute(
        "insert into fw_briefs (user_id, local_date, state, kind, zone, due_at, build_at)"
        " select distinct actor_id, (now() at time zone 'Etc/GMT-14')::date, 'pending', 'daily', 'UTC',"
        " now(), now() from onto_project_members"
    )
    waiting = "select count(*) from fw_briefs b where state <> 'ready' or exists (select from fw_announcements a"
    waiting += " where a.user_id = b.user_id and a.sent_at is null)"
    _until(lambda: not _number(application, waiting))
    return _number(application, "select count(*) from fw_briefs")


def _read(client: "redis.Redis", projects: Sequence[str]) -> bool:
    reader = Reader(client, asks=False)
    return all(reader.project(project, actor=TRUSTED) for project in projects)


def _number(application: Connection, sql: str) -> int:
    return int(application.execute(sql.encode()).fetchall()[0][0])


def _until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("relay and worker do not do what they are waited for: does `make demo` work here?")
        time.sleep(0.1)


@contextmanager
def _running(services: Services) -> Iterator[dict[str, psutil.Process]]:
    """The commands by role, told to end afterwards."""
    with tempfile.TemporaryDirectory(prefix="fw-capacity-") as home, ExitStack() as stack:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FOREWORD_")} | {
            "FOREWORD_DATABASE_URL": services.database_url,
            "FOREWORD_REDIS_URL": services.redis_url,
            "FOREWORD_BROKER_URL": services.broker_url,
            "FOREWORD_DATA_DIR": home,
            "FOREWORD_AUDIT_SECONDS": "0",
        }
        started = {
            role: stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "worker", *command],
                    cwd=CHECKOUT,
                    env=environment,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
            for role, command in COMMANDS.items()
        }
        try:
            yield {role: psutil.Process(process.pid) for role, process in started.items()}
        finally:  # all at once; the stack waits for each
            for process in started.values():
                process.terminate()

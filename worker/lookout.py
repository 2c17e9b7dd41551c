"""A look at the running system, again and again, in a thread of its own: whatever hangs, hangs here.

It finds which children are ready, how much memory they take, whether PostgreSQL and Redis answer and what waits in
them; and it starts embedded servers again that have died.
"""

import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field

import psutil
import redis
from celery import Celery

from foreword.errors import BuildError, ForewordError, Unavailable
from loaders.claims import EDITS, SWEEP
from loaders.connection import Connection, connect
from loaders.glance import Glance, glance
from worker import crew
from worker.app import BRIEFS
from worker.settings import Settings
from worker.supervisor import PAUSES, Event, Kept, State, Tell
from worker.wiring import Services, services, takes

LOOK_SECONDS = 1.0
START_SECONDS = 0.2
"""Between looks; while something starts, somebody waits for it."""

ANSWER_SECONDS = 2.0
STATEMENT_SECONDS, HANGS_SECONDS = 5, 8.0
"""For a statement, which PostgreSQL ends by itself; unless it hangs, and the connection is cut."""

CALM_SECONDS = 30.0
"""For which all servers must have answered before anybody's silence is his own: after an outage of the broker
workers and beats need so long to find it.
"""

SERVERS = ("PostgreSQL", "Redis", "broker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the last look saw.

    Attributes:
        answers: whether each of ``SERVERS`` does; empty before the first look.
        glance: the last one that PostgreSQL gave; None before the first.
        queues: messages that wait, by queue; empty where the broker does not answer.
        memory: resident bytes by pid of a child, its own children included. What they share counts several times.
    """

    answers: Mapping[str, bool] = field(default_factory=dict)
    glance: Glance | None = None
    queues: Mapping[str, int] = field(default_factory=dict)
    memory: Mapping[int, int] = field(default_factory=dict)


class Lookout(threading.Thread):
    """Looks until it is stopped. ``listening`` names the port where a part of that name listens when it is
    ready.
    """

    def __init__(
        self,
        settings: Settings,
        found: Services,
        app: Celery,
        kept: Sequence[Kept],
        listening: Mapping[str, tuple[str, int]],
        tell: Tell,
    ) -> None:
        super().__init__(name="lookout", daemon=True)
        self.seen = Seen()
        self._looked = self._calm_since = time.monotonic()
        self._settings, self._found, self._app = settings, found, app
        self._kept, self._listening, self._tell = kept, listening, tell
        self._over = threading.Event()
        self._connection: Connection | None = None
        self._failures = dict.fromkeys(SERVERS, 0)
        self._silent: set[str] = set()
        self._complaint = ""
        self._said_to_fail = {"failing": 0, "parked": 0}
        self._mended = 0.0
        self._attempts = 0

    def stop(self) -> None:
        """Look no more; returns when the last look is over, and what it has begun to mend."""
        self._over.set()
        if self.ident is not None:
            self.join()

    @property
    def is_calm(self) -> bool:
        """Whether all servers answer, and did for a while."""
        is_late = time.monotonic() - self._looked > HANGS_SECONDS
        return not is_late and self._looked - self._calm_since >= CALM_SECONDS

    def run(self) -> None:
        """Look."""
        with ExitStack() as stack:
            clients = {
                name: stack.enter_context(
                    redis.Redis.from_url(url, socket_timeout=ANSWER_SECONDS, socket_connect_timeout=ANSWER_SECONDS)
                )
                for name, url in (("Redis", self._found.redis_url), ("broker", self._found.broker_url))
            }
            while not self._over.is_set():
                try:
                    self._look(clients)
                except Exception as error:  # noqa: BLE001 - a bug here must not end the system, nor be silent
                    self._complain(f"looking failed: {type(error).__name__}: {error}")
                    self._over.wait(LOOK_SECONDS)
                begins = any(kept.state == State.STARTING for kept in self._kept)
                self._over.wait(START_SECONDS if begins else LOOK_SECONDS)
            if self._connection is not None:
                self._connection.close()

    def _complain(self, text: str) -> None:
        """Once, and not every second."""
        if text != self._complaint:
            self._complaint = text
            self._tell(Event(name="look_failed", text=text))

    def _look(self, clients: "Mapping[str, redis.Redis]") -> None:
        seen = self._glance()
        queues = self._lengths(clients["broker"])
        answers = {
            "PostgreSQL": seen is not None,
            "Redis": takes(clients["Redis"]),
            "broker": queues is not None,
        }
        self.seen = Seen(
            answers=answers, glance=seen or self.seen.glance, queues=queues or {}, memory=memory(self._kept)
        )
        self._look_who_is_ready(answers)
        self._note(answers)
        if seen is not None:
            self._note_projects(seen)
        before, self._looked = self._looked, time.monotonic()
        if max(self._failures.values()) > 1 or self._looked - before > HANGS_SECONDS:  # or nobody looked
            self._calm_since = self._looked

    def _glance(self) -> Glance | None:
        try:
            if self._connection is None or self._connection.closed:
                self._connection = connect(self._found.database_url, statement_seconds=STATEMENT_SECONDS)
            with cut_after(self._connection, HANGS_SECONDS):
                return glance(self._connection)
        except (Unavailable, BuildError):  # BuildError: it takes longer than a statement may
            if self._connection is not None:
                self._connection.close()
            return None

    def _lengths(self, client: "redis.Redis") -> dict[str, int] | None:
        names = (EDITS, BRIEFS, SWEEP)
        try:
            with client.pipeline(transaction=False) as pipe:
                for name in names:
                    pipe.llen(name)
                lengths = dict(zip(names, pipe.execute(), strict=True))
        except (redis.RedisError, OSError):
            return None
        return lengths if takes(client) else None

    def _look_who_is_ready(self, answers: Mapping[str, bool]) -> None:
        """Workers when they answer, what listens when it does, and others when they have left a sign of life."""
        starting = [kept for kept in self._kept if kept.state == State.STARTING and kept.pid is not None]
        working = [kept for kept in starting if kept.part.arguments[0] == "work"]
        replies: set[str] = set()
        if working and answers["broker"]:
            with suppress(ForewordError):
                replies = crew.answering(self._app, START_SECONDS)
        for kept in starting:
            pid = kept.pid or 0
            if kept in working:
                is_ready = any(name.endswith(f"-{pid}@{socket.gethostname()}") for name in replies)
            elif kept.part.name in self._listening:
                is_ready = _listens(self._listening[kept.part.name])
            else:
                is_ready = (self._settings.health / f"{kept.part.name}-{pid}").exists()
            if is_ready:
                kept.ready_pid = pid

    def _note(self, answers: Mapping[str, bool]) -> None:
        """Say what does not answer, and what does again; start what is ours to start."""
        for name, does in answers.items():
            self._failures[name] = 0 if does else self._failures[name] + 1
        ours = {
            "PostgreSQL": self._settings.database_url is None,
            "Redis": self._settings.redis_url is None,
        }
        mends = any(ours[name] and self._failures[name] > 1 for name in ours)
        for name, failures in self._failures.items():
            if failures > (0 if mends else 1):  # once is a hiccup; but who mends, starts all that are missing
                self._say(name, answers=False)
            elif not failures:
                self._say(name, answers=True)
        if mends:
            self._mend()
        else:
            self._attempts = 0

    def _say(self, server: str, *, answers: bool) -> None:
        """Where it is news."""
        if answers and server in self._silent:
            self._silent.remove(server)
            self._tell(Event(name="server_answers", text=f"{server} answers again", facts={"server": server}))
        elif not answers and server not in self._silent:
            self._silent.add(server)
            self._tell(
                Event(
                    name="server_silent",
                    text=f"{server} does not answer, or takes nothing",
                    facts={"server": server},
                )
            )

    def _note_projects(self, seen: Glance) -> None:
        """Say when the first one fails or is given up, when twice as many are as were said, and when none is any
        more. Others say which, and why.
        """
        fail = {"failing": seen.failing, "parked": seen.parked}
        if any(number >= max(2 * self._said_to_fail[what], 1) for what, number in fail.items()):
            self._said_to_fail = {what: max(number, self._said_to_fail[what]) for what, number in fail.items()}
            worst = seen.worst.handle if seen.worst is not None else None
            facts = {"failing": seen.failing, "parked": seen.parked, "worst": worst}
            text = f"{failing(seen)}\n    `python -m worker projects --failing` names them all"
            self._tell(Event(name="projects_fail", text=text, facts=facts))
        elif any(self._said_to_fail.values()) and not any(fail.values()):
            self._said_to_fail = fail
            self._tell(Event(name="no_project_fails", text="no project fails any more"))

    def _mend(self) -> None:
        """Start embedded servers that do not run. They belong to all who use them: whoever enters starts what is
        missing, and whoever leaves before others leaves them running.
        """
        rest = PAUSES[min(self._attempts, len(PAUSES)) - 1] if self._attempts else 0.0
        if time.monotonic() - self._mended < rest or self._over.is_set():
            return
        self._attempts += 1
        try:
            with services(self._settings):
                pass
        except ForewordError as error:
            text = f"an embedded server cannot be started: {error}"
            self._tell(Event(name="server_not_started", text=text))
        self._mended = time.monotonic()


def failing(seen: Glance) -> str:
    """Which projects fail, or were given up, in one line; nothing where none does."""
    numbers = (("projects failing, tried again", seen.failing), ("parked", seen.parked))
    counted = ", ".join(f"{name}: {number}" for name, number in numbers if number)
    if not counted:
        return ""
    if seen.worst is None:
        return counted
    attempts = f"{seen.worst.attempts} attempt{'s' if seen.worst.attempts > 1 else ''}"
    return f"{counted}; {seen.worst.handle}, {attempts}: {' '.join(seen.worst.error.split())}"


def memory(kept: Sequence[Kept]) -> dict[int, int]:
    """Resident bytes by pid, of each child and what descends from it."""
    parents, sizes = {}, {}
    for process in psutil.process_iter(["ppid", "memory_info"]):
        parents[process.pid] = process.info["ppid"]
        sizes[process.pid] = process.info["memory_info"].rss if process.info["memory_info"] else 0
    totals = {pid: 0 for each in kept if (pid := each.pid) is not None}
    for pid, size in sizes.items():
        above: int | None = pid
        while above and above not in totals:
            above = parents.get(above)
        if above:
            totals[above] += size
    return totals


@contextmanager
def cut_after(connection: Connection, seconds: float) -> Iterator[None]:
    """Cut the connection in the middle of what takes longer: a server that hangs would hold up whoever asks."""
    with closing(socket.socket(fileno=os.dup(connection.fileno()))) as wire:
        timer = threading.Timer(seconds, _shut, [wire])
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


def _shut(wire: socket.socket) -> None:
    with suppress(OSError):  # it is already
        wire.shutdown(socket.SHUT_RDWR)


def _listens(address: tuple[str, int]) -> bool:
    with suppress(OSError), closing(socket.create_connection(address, timeout=ANSWER_SECONDS)):
        return True
    return False

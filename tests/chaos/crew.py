"""The product's processes, supervised as in production: started, started again when they end, and shot at.

Each has its own ways to the servers (``Ways``), so that one can lose PostgreSQL while the others have it. What a
killed process leaves behind, such as children of a worker, lives on for a while as it would; then it is reaped.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import psutil
from chaos.proxy import Link
from chaos.servers import TcpPostgres, TcpRedis

CHECKOUT = Path(__file__).parents[2]
MARK = "FW_CHAOS_MARK"

RESTART_SECONDS = 0.5
"""Between an end and the next start; doubled with every end in the first seconds, up to four."""

REAP_SECONDS = 8.0
"""How long what a killed process left may live on."""

STOP_SECONDS = 30.0
"""For a process to finish what it does after SIGTERM."""


@dataclass(frozen=True, slots=True)
class Ways:
    """A process' ways to the servers."""

    postgres: Link
    cache: Link
    broker: Link

    @property
    def all(self) -> tuple[Link, Link, Link]:
        """Each of them."""
        return self.postgres, self.cache, self.broker

    def environment(self, data: Path, concurrency: int) -> dict[str, str]:
        """What the process is told."""
        return {
            "FOREWORD_DATABASE_URL": TcpPostgres.url_at(self.postgres.port),
            "FOREWORD_REDIS_URL": TcpRedis.url_at(self.cache.port),
            "FOREWORD_BROKER_URL": TcpRedis.url_at(self.broker.port),
            "FOREWORD_DATA_DIR": str(data),
            "FOREWORD_CONCURRENCY": str(concurrency),
        }


class Member:
    """One process of the product, and those before it."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.name, self.log = name, log
        self._command, self._environment = [*command], dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._patience = RESTART_SECONDS
        self._next = 0.0
        self.shot = False

    @property
    def role(self) -> str:
        """``worker``, ``relay`` or ``beat``."""
        return self.name.partition("-")[0]

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def head(self) -> psutil.Process | None:
        """Its main process."""
        if self._process is None or self._process.poll() is not None:
            return None
        with suppress(psutil.Error):
            return psutil.Process(self._process.pid)
        return None

    @property
    def children(self) -> list[psutil.Process]:
        """What it has forked."""
        with suppress(psutil.Error):
            return self.head.children(recursive=True) if self.head else []
        return []

    def start(self) -> None:
        """Start it."""
        self._started, self.shot = time.monotonic(), False
        with self.log.open("ab") as log:
            log.write(f"---- {time.strftime('%H:%M:%S')} started\n".encode())
            log.flush()
            self._process = subprocess.Popen(
                self._command,
                cwd=CHECKOUT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def ended(self) -> int | None:
        """Its exit code, once, where it has ended."""
        if self._process is None or self._process.poll() is None:
            return None
        code, self._process = self._process.returncode, None
        lived = time.monotonic() - self._started
        self._patience = min(self._patience * 2, 4.0) if lived < 5 else RESTART_SECONDS
        self._next = time.monotonic() + self._patience
        return code

    @property
    def due(self) -> bool:
        """Whether it is time to start it again."""
        return self._process is None and time.monotonic() >= self._next

    def send(self, number: signal.Signals) -> None:
        """A signal to its main process."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def wait(self, seconds: float) -> bool:
        """Whether it ends in time."""
        if self._process is None:
            return True
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


class Wired(Member):
    """One whose ways to the servers can be cut."""

    def __init__(
        self, name: str, command: Sequence[str], ways: Ways, environment: Mapping[str, str], log: Path
    ) -> None:
        super().__init__(name, command, environment, log)
        self.ways = ways


M = TypeVar("M", bound=Member)


class Crew(Generic[M]):
    """All processes of the product of a run, looked after by a thread."""

    def __init__(self, members: Sequence[M], mark: str) -> None:
        self.members = [*members]
        self.exits: Counter[str] = Counter()
        self._mark = mark
        self._stop = threading.Event()
        self._orphans: list[tuple[float, psutil.Process]] = []
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._supervise, name="crew", daemon=True)

    @contextmanager
    def running(self) -> Iterator["Crew[M]"]:
        """Started, and supervised for the length of a block; then stopped in order, and nothing of it left."""
        try:
            for member in self.members:
                member.start()
            self._thread.start()
            yield self
        finally:
            self._stop.set()
            if self._thread.is_alive():
                self._thread.join()
            self._end()

    def of(self, role: str) -> list[M]:
        """Workers, relays or beats that run."""
        return [member for member in self.members if member.role == role and member.alive]

    def bereave(self, processes: Sequence[psutil.Process]) -> None:
        """These may lose their parent: they are reaped some time later, if they still live."""
        with self._lock:
            self._orphans += [(time.monotonic() + REAP_SECONDS, process) for process in processes]

    def _supervise(self) -> None:
        while not self._stop.wait(0.1):
            for member in self.members:
                code = member.ended()
                if code is not None:
                    self._note(member, code)
                if member.due:
                    member.start()
            self._reap()

    def _note(self, member: Member, code: int) -> None:
        why = "shot" if member.shot else f"by itself, code {code}"
        self.exits[f"{member.role} {why}"] += 1
        with member.log.open("a", encoding="utf-8") as log:
            log.write(f"---- {time.strftime('%H:%M:%S')} ended with {code} ({why})\n")

    def _reap(self) -> None:
        with self._lock:
            due = [process for at, process in self._orphans if at < time.monotonic()]
            self._orphans = [(at, process) for at, process in self._orphans if at >= time.monotonic()]
        for process in due:
            with suppress(psutil.Error):
                if process.is_running() and process.ppid() not in {m.head.pid for m in self.members if m.head}:
                    process.kill()  # psutil knows it from another process that got its number
                    self.exits["orphans reaped"] += 1

    def _end(self) -> None:
        for member in self.members:
            member.send(signal.SIGCONT)
            member.send(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        for member in self.members:
            if not member.wait(max(deadline - time.monotonic(), 0.1)):
                self.exits[f"{member.role} did not stop"] += 1
                self.bereave(member.children)
                member.send(signal.SIGKILL)
                member.wait(10)
        for process in marked(self._mark):
            with suppress(psutil.Error):
                process.kill()


def marked(mark: str) -> list[psutil.Process]:
    """Processes of this run, wherever they hang: their environment says so."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                found.append(process)
    return found


SABOTAGED = CHECKOUT / "tests" / "chaos" / "sabotaged.py"


def command(*arguments: str, sabotage: str = "", script: Path = SABOTAGED) -> list[str]:
    """``python -m worker``, or the same with something broken in it by a script."""
    how = [str(script), sabotage] if sabotage else ["-m", "worker"]
    return [sys.executable, *how, *arguments]

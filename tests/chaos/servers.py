"""Servers to be shot at: PostgreSQL and Redis on loopback ports, started, killed and restarted at will.

The binaries, the account and the cluster are those of ``worker.programs``; what is different is that these listen
on TCP (a proxy stands before them), keep every log, and are expected to die.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg

from worker.programs import Account, Postgres, Program, Redis

PATIENCE = 60.0
"""Seconds for a server to come up: after a SIGKILL it first waits for its old backends, then recovers."""


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class TcpPostgres(Postgres):
    """PostgreSQL that listens on a loopback port."""

    def __init__(self, data: Path, run: Path, mark: str) -> None:
        super().__init__(data, run, mark)
        self.port = free_port()

    @property
    def url(self) -> str:
        """Around the proxy, for the application and for who checks."""
        return self.url_at(self.port)

    @staticmethod
    def url_at(port: int) -> str:
        """The same database behind another port."""
        return f"postgresql://postgres@127.0.0.1:{port}/foreword"

    def command(self) -> list[str]:
        """The last of two equal settings counts. Commits of the application are synchronous, as by default."""
        ours = ["--listen_addresses=127.0.0.1", f"--port={self.port}", "--log_line_prefix=%m %p %a "]
        return [*super().command(), *ours, "--max_connections=150", "--logging_collector=off"]

    def ready(self) -> bool:
        """Whether it takes a connection and has our database."""
        try:
            with psycopg.connect(
                self.url.replace("/foreword", "/postgres"), autocommit=True, connect_timeout=5
            ) as connection:
                if not connection.execute("select from pg_database where datname = 'foreword'").rowcount:
                    connection.execute("create database foreword")
        except psycopg.Error:
            return False
        return True


class TcpRedis(Redis):
    """Redis on a loopback port. ``lasting``: it keeps a log, and loses nothing that it answered when it is killed;
    else a kill empties it.
    """

    def __init__(self, data: Path, run: Path, mark: str, *, lasting: bool) -> None:
        super().__init__(data, run, mark)
        self.port, self.lasting = free_port(), lasting

    @property
    def url(self) -> str:
        """Around the proxy."""
        return self.url_at(self.port)

    @staticmethod
    def url_at(port: int) -> str:
        """The same server behind another port."""
        return f"redis://127.0.0.1:{port}/0"

    def command(self) -> list[str]:
        """The last of two equal settings counts."""
        kept = "yes" if self.lasting else "no"
        ours = ["--port", str(self.port), "--bind", "127.0.0.1", "--appendonly", kept]
        return [*super().command(), *ours]

    def ready(self) -> bool:
        """Whether it answers a PING."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(5) == b"+PONG"
        return False


class Server:
    """One server of the run: up, or down because somebody shot it."""

    def __init__(self, program: Program, account: Account) -> None:
        self.program, self._account = program, account
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    @property
    def pid(self) -> int:
        """Of its head."""
        assert self._process is not None
        return self._process.pid

    def family(self) -> list[psutil.Process]:
        """Its head and everything below."""
        if self._process is None or self._process.poll() is not None:
            return []
        with suppress(psutil.Error):
            head = psutil.Process(self._process.pid)
            return [head, *head.children(recursive=True)]
        return []

    def prepare(self) -> None:
        """Make its directories, and the cluster. Only before the first start: what a killed PostgreSQL left behind
        keeps a new one from running beside its old backends.
        """
        for directory in (self.program.run, self.program.room):
            self._account.give(directory)
        self.program.prepare(self._account)

    def start(self) -> None:
        """Start it and wait until it answers; again where it ends, as PostgreSQL does while old backends live."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                self._spawn()
            if self.program.ready():
                self.starts += 1
                return
            time.sleep(0.05)
        raise RuntimeError(f"{self.program.name} did not start; {self.program.last_words()}")

    def _spawn(self) -> None:
        with self.program.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._account.prefix, *self.program.command()],
                cwd=self.program.room,
                env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=0o077,
                **self._account.options,
            )

    def end(self, number: signal.Signals, *, family: bool = False) -> None:
        """Send a signal to the head, or to all of it, and wait until the head is gone."""
        targets = self.family() if family else self.family()[:1]
        for target in targets:
            with suppress(psutil.Error):
                target.send_signal(number)
                target.resume()
        if self._process is not None:
            self._process.wait(PATIENCE)

    def stop(self) -> None:
        """The end of the run: nothing of it may be left."""
        family = [*self.family(), *self.program.heads()]
        for each in family:
            with suppress(psutil.Error):
                each.kill()
        if self._process is not None:
            self._process.wait(PATIENCE)
        for each in self.program.heads():  # what was born meanwhile, and backends without a postmaster
            with suppress(psutil.Error):
                each.kill()
        psutil.wait_procs(family, PATIENCE)

    def keep_files(self, to: Path) -> None:
        """Copy its files as they are now."""
        shutil.copytree(self.program.room, to, dirs_exist_ok=True)

    def put_files(self, back: Path) -> None:
        """While it is down: its files as they were."""
        shutil.rmtree(self.program.room)
        shutil.copytree(back, self.program.room)
        for path in (self.program.room, *self.program.room.rglob("*")):
            os.chown(path, self._account.owner, -1)


def wait_until(condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Whether it comes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True

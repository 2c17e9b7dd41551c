"""The command line as real processes: run to their end, or started, watched and told to end.

Every process carries a mark in its environment, and so do its children: what was left running is found by it.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from uuid import uuid4

import psutil

CHECKOUT = Path(__file__).parents[1]
PATIENCE = 60.0
"""Seconds that a condition may take on a busy machine. Nothing waits this long when all is well."""

_MARK = "FW_TEST_MARK"


def eventually(condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Whether the condition comes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def runs(process: psutil.Process) -> bool:
    """Whether a process runs still: one that has ended and that its new parent has not buried yet does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def arguments(process: psutil.Process) -> list[str]:
    """The words of its command line; none where it has ended meanwhile."""
    with suppress(psutil.Error):
        return process.cmdline()
    return []


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


class Running:
    """A command that runs. What it says is collected as it says it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.out: list[str] = []
        self.err: list[str] = []
        assert process.stdout is not None
        assert process.stderr is not None
        self._readers = [
            threading.Thread(target=_collect, args=each)
            for each in ((process.stdout, self.out), (process.stderr, self.err))
        ]
        for reader in self._readers:
            reader.start()

    @property
    def children(self) -> list[psutil.Process]:
        """Its children and theirs."""
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.process.pid).children(recursive=True)
        return []

    def child(self, *words: str) -> psutil.Process | None:
        """The child that it has started with these among its arguments."""
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.process.pid).children():
                if set(words) <= set(child.cmdline()):
                    return child
        return None

    def says(self, words: str) -> bool:
        """Whether it says this, now or soon; False when it ends without."""

        def said() -> bool:
            return words in "".join([*self.out, *self.err])

        return eventually(lambda: said() or self.process.poll() is not None) and said()

    def tell(self, number: signal.Signals) -> Ended:
        """Send a signal, and wait for the end."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> Ended:
        """Wait for the end."""
        code = self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
        return Ended(code, "".join(self.out), "".join(self.err))


def _collect(pipe: IO[str], lines: list[str]) -> None:
    with pipe:
        lines.extend(pipe)


@dataclass(frozen=True, slots=True)
class Commands:
    """``python -m worker`` of a user who lives in ``home`` and has nothing set but what the test has set."""

    home: Path
    environment: Mapping[str, str]
    mark: str

    @classmethod
    @contextmanager
    def somewhere(cls, bytecode: Path, **variables: str) -> "Iterator[Commands]":
        """In a new home, with compiled modules kept in ``bytecode``. At the end nothing of them may run."""
        mark = str(uuid4())
        home = Path(tempfile.mkdtemp(prefix="fw-a-", dir="/tmp"))  # short, for sockets
        kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
        fixed = {"HOME": str(home), "LANG": "C.UTF-8", "PYTHONPYCACHEPREFIX": str(bytecode), _MARK: mark}
        one = cls(home, kept | fixed | variables, mark)
        try:
            yield one
            assert not one.left()
        finally:
            one.kill_left()
            shutil.rmtree(home, ignore_errors=True)

    def run(self, *arguments: str, **variables: str) -> Ended:
        """Run a command to its end."""
        with self.start(*arguments, **variables) as running:
            return running.ended()

    def start(self, *arguments: str, **variables: str) -> AbstractContextManager[Running]:
        """Start a command; killed at the end of the block if it still runs."""
        return self.python("-m", "worker", *arguments, **variables)

    @contextmanager
    def python(self, *arguments: str, **variables: str) -> Iterator[Running]:
        """The same of a program that takes the place of the command line."""
        # A suite that a shell runs in the background ignores SIGINT, and so would the commands.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=CHECKOUT,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        running = Running(process)
        try:
            yield running
        finally:
            process.kill()
            running.ended()

    def left(self, *directories: Path) -> list[str]:
        """What still runs of these commands, or of servers at home or in other directories."""
        found = []
        for process in self._left(directories):
            with suppress(psutil.Error):
                found.append(f"{process.pid} {' '.join(process.cmdline())}")
        return found

    def kill_left(self, *directories: Path) -> None:
        """End what a failed test left."""
        for process in self._left(directories):
            with suppress(psutil.Error):
                process.kill()

    def _left(self, directories: tuple[Path, ...]) -> Iterator[psutil.Process]:
        places = [f"{directory}/" for directory in (self.home, *directories)]
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.pid != os.getpid() and self._owns(process, places):
                    yield process

    def _owns(self, process: psutil.Process, places: list[str]) -> bool:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        command = " ".join(process.cmdline())
        return any(place in command for place in places) or process.environ().get(_MARK) == self.mark

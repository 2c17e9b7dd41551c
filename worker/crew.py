"""Workers as child processes: starting one, knowing whether any answers, stopping it in order."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from celery import Celery

from foreword.errors import ServerError, Unavailable
from worker.app import NODE
from worker.parent import VARIABLE as PARENT
from worker.screen import say
from worker.settings import Settings, child_environment
from worker.wiring import redis_errors

CHECKOUT = Path(__file__).parents[1]

ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
"""What tells a command to end."""

WORK, RELAY = "work", "relay"
NAMES = {WORK: "worker", RELAY: "relay"}
"""What other commands run as a child process, and what it is called."""

PING_SECONDS = 1.0
START_PING_SECONDS = 0.1
START_SECONDS = 60
STOP_SECONDS = 90
"""More than the hard time limit of a task: a warm shutdown waits for what is under way."""

TAIL_BYTES = 8192
"""Of a log that are looked at for its last lines."""

END_SECONDS = 5
"""For killed processes to be gone."""


def answers(app: Celery, seconds: float = PING_SECONDS) -> bool:
    """Whether any worker of ours answers; the application may have others on the same broker."""
    return bool(_answering(app, seconds, limit=1))


def answering(app: Celery, seconds: float = PING_SECONDS) -> set[str]:
    """The names of our workers that answer within so many seconds, which are all waited for."""
    return {name for reply in _answering(app, seconds) for name in reply}


def _answering(app: Celery, seconds: float, limit: int | None = None) -> list[dict[str, Any]]:
    # A connection of its own for each question, since one that had no answer goes on waiting for it, deaf to the
    # next; and one that waits no longer than we do, since closing it waits for its wait (a second by default).
    waits = {"polling_interval": seconds}
    with (
        redis_errors("asking for workers"),
        app.connection_for_write(transport_options=waits) as connection,
    ):
        ours = {"pattern": f"{NODE}-*@*", "matcher": "glob"}
        return app.control.ping(timeout=seconds, limit=limit, connection=connection, **ours) or []


@contextmanager
def child(settings: Settings, log: Path, command: str = WORK) -> Iterator["subprocess.Popen[bytes]"]:
    """A worker, or a relay, as a child process for the length of a block, stopped in order at its end."""
    with ExitStack() as stack:
        # Interrupted between the birth of a child and our knowing its pid, we could not stop it: signals wait.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
            born = start(settings, log, [command])
            stack.callback(_stop, born, command)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield born


def start(settings: Settings, log: Path, arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
    """A command as a child process that ends with us. In a session of its own, so that Ctrl-C reaches it only
    through us. To be called from the main thread: with the thread that starts it, it ends, too.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "worker", *arguments],
            cwd=CHECKOUT,
            env={**child_environment(settings), PARENT: str(os.getpid())},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def _stop(worker: "subprocess.Popen[bytes]", command: str) -> None:
    """Warm first. By force when it takes too long, or a second Ctrl-C hurries us: the ledger knows what was asked
    for, so that nothing is lost by it.
    """
    if worker.poll() is not None:
        return
    try:
        say(f"stopping the {NAMES[command]}")
        worker.send_signal(signal.SIGTERM)
        worker.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        end(worker)
    except BaseException:
        end(worker)
        raise


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a child at once, and what it has forked: in the middle of a build that would go on alone, and its hold
    on the embedded servers would keep us from stopping them.
    """
    psutil.wait_procs(kill(process), END_SECONDS)
    process.wait()


def kill(process: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    """The same, without waiting for it; what it had forked."""
    family: list[psutil.Process] = []
    if process.poll() is None:
        with suppress(psutil.Error, ProcessLookupError):
            family = psutil.Process(process.pid).children(recursive=True)
            os.killpg(process.pid, signal.SIGKILL)
            for member in family:  # the builders of a relay have sessions of their own
                with suppress(psutil.Error):
                    member.kill()
    return family


def wait_until_ready(app: Celery, worker: "subprocess.Popen[bytes]", log: Path) -> None:
    """Wait for a worker that was just started.

    Raises:
        ServerError: it ended instead, or did not answer in time; with the end of its log.
    """
    begun = time.monotonic()
    while worker.poll() is None and time.monotonic() - begun < START_SECONDS:
        if answers(app, START_PING_SECONDS):
            return
    raise ServerError(f"the worker did not start; the end of {log}:\n{tail(log)}")


def tail(log: Path, lines: int = 5, since: int = 0) -> str:
    """The last lines of a log, of what was written after its first ``since`` bytes."""
    with suppress(OSError), log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - TAIL_BYTES, min(since, size)))
        return "\n".join(file.read().decode("utf-8", "replace").splitlines()[-lines:])
    return ""


@contextmanager
def some_worker(settings: Settings, app: Celery) -> Iterator[None]:
    """A worker for the length of a block: one that answers, else, with embedded servers, one of our own.

    Raises:
        Unavailable: nobody answers and the broker is not ours, so workers are somebody's to run.
        ServerError: our own did not start.
    """
    if answers(app):
        yield
        return
    if settings.redis_url is not None or settings.broker_url is not None:
        raise Unavailable("no worker answers; start one with `python -m worker work`, or build here with --inline")
    say("no worker is running: starting one for this command")
    with own_worker(settings, app):
        yield


@contextmanager
def own_worker(settings: Settings, app: Celery) -> Iterator[None]:
    """A worker of our own for the length of a block.

    Raises:
        ServerError: it did not start.
    """
    log = settings.data_dir / "worker.log"
    with child(settings, log) as worker:
        wait_until_ready(app, worker, log)
        yield

"""Workers as child processes: starting one, knowing whether any answers, stopping it in order."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from celery import Celery

from foreword.errors import ServerError, Unavailable
from worker.screen import say
from worker.settings import PREFIX, Settings, to_environment
from worker.wiring import redis_errors

CHECKOUT = Path(__file__).parents[1]

PING_SECONDS = 1.0
START_PINGS = 60
STOP_SECONDS = 90
"""More than the hard time limit of a task: a warm shutdown waits for what is under way."""


def answers(app: Celery, seconds: float = PING_SECONDS) -> bool:
    """Whether any worker answers."""
    with redis_errors("asking for workers"):
        return bool(app.control.ping(timeout=seconds, limit=1))


def start(settings: Settings, log: Path) -> "subprocess.Popen[bytes]":
    """A worker as a child process in a session of its own, so that Ctrl-C reaches it only through us."""
    # These settings and no others: the demo's worker must not find the servers that the user's environment names.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "worker", "work"],
            cwd=CHECKOUT,
            env=inherited | to_environment(settings),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def wait_until_ready(app: Celery, child: "subprocess.Popen[bytes]", log: Path) -> None:
    """Wait for a worker that was just started.

    Raises:
        ServerError: it ended instead, or did not answer in time; with the end of its log.
    """
    for _ in range(START_PINGS):
        if answers(app):
            return
        if child.poll() is not None:
            break
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-5:])
    raise ServerError(f"the worker did not start; the end of {log}:\n{tail}")


def stop(child: "subprocess.Popen[bytes]") -> None:
    """Stop a worker: warm first, then by force, by its own pid."""
    if child.poll() is not None:
        return
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


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
    child = start(settings, log)
    try:
        wait_until_ready(app, child, log)
        yield
    finally:
        stop(child)

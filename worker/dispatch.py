"""Asking for builds and following them to their real end, through the ledger and not through results.

A message is a wake-up that may vanish, so what is not answered is sent again; a build that has been answered
ignores it. Only a window of projects is on the queue at a time: a sweep of many does not stand in the way of
an edit.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable

import redis
from celery import Celery
from kombu.exceptions import OperationalError

from foreword.errors import Unavailable
from loaders import ledger
from loaders.claims import EDITS, SWEEP
from loaders.connection import Connection
from worker.app import REBUILD

WINDOW = 32
POLL_SECONDS = 0.03
RESEND_SECONDS = 15.0
GIVE_UP_SECONDS = 300.0
"""Without any answer: the hard limit of a task, several times over."""

Done = Callable[[str, str | None], None]
"""Called for each project: its id, and None or its error."""


def rebuild(
    connection: Connection,
    app: Celery,
    project_ids: Iterable[str],
    done: Done,
    *,
    resend_seconds: float = RESEND_SECONDS,
) -> None:
    """Have projects rebuilt by workers; returns when every one is answered. A message that is not answered within
    ``resend_seconds`` is sent again.

    Raises:
        Unavailable: the broker does not take messages, or no worker answers any more.
    """
    todo = deque(project_ids)
    queue = EDITS if len(todo) == 1 else SWEEP
    waiting: dict[str, int] = {}
    sent: dict[str, float] = {}
    heard = time.monotonic()
    while todo or waiting:
        fresh = [todo.popleft() for _ in range(min(WINDOW - len(waiting), len(todo)))]
        if fresh:
            waiting.update(ledger.request_builds(connection, fresh))
        for project in waiting:
            if time.monotonic() - sent.get(project, -resend_seconds) >= resend_seconds:
                _send(app, project, queue)
                sent[project] = time.monotonic()
        for project, error in ledger.answers(connection, waiting).items():
            heard = time.monotonic()
            del waiting[project], sent[project]
            done(project, error)
        if waiting:
            _check_silence(heard, queue, waiting)
            time.sleep(POLL_SECONDS)


def _send(app: Celery, project_id: str, queue: str) -> None:
    try:
        app.send_task(REBUILD, args=[project_id], queue=queue, retry=False)
    except (OperationalError, redis.RedisError) as error:
        raise Unavailable(
            f"the broker takes no messages: {error}; what was asked for stands in the ledger, run this again"
        ) from error


def _check_silence(heard: float, queue: str, waiting: Collection[str]) -> None:
    if time.monotonic() - heard > GIVE_UP_SECONDS:
        named = ", ".join(sorted(waiting)[:5]) + (" and others" if len(waiting) > 5 else "")
        raise Unavailable(
            f"no build was answered for {GIVE_UP_SECONDS:.0f} s, of {named}:"
            f" does a worker serve the queue {queue}? Look at the workers' logs, then run this again"
        )

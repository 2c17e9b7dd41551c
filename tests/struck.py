"""A program whose work is interrupted at any point, again and again: ``struck.py claim|build DATABASE REDIS``.

In a process of its own, as in pytest's a signal could strike pytest. It prints one line where all went well.
"""

import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from random import Random

import psycopg
from strategies import uid

from foreword.errors import ForewordError
from loaders import claims
from loaders.catalog import inspect
from loaders.connection import Connection, connect
from tasks.project import rebuild_project
from worker.settings import Settings
from worker.wiring import redis_client, tools_over

Work = Callable[[], object]

STRIKES = 100
WITHIN = {"claim": 0.01, "build": 0.02}
"""Seconds after which a strike comes, at most: some pieces of work."""


class Ended(KeyboardInterrupt):
    """What a process is told that is to end (as ``worker.cli``): no error, and nothing may take its place."""


class TimeIsUp(Exception):
    """What Celery's time limit raises: libraries may take it for an error."""


class Striker:
    """Has work interrupted, once."""

    def __init__(self) -> None:
        self.kind: type[BaseException] = Ended
        self.struck = False
        self.lost = False  # where Python has to swallow it: the command line then finds it again
        self._armed = False

    def during(self, work: Work) -> None:
        """Work, and be struck in it or not."""
        self._armed = True
        try:
            work()
        finally:
            self._armed = False

    def strike(self, *_: object) -> None:
        if self._armed:
            self._armed, self.struck = False, True
            raise self.kind

    def swallowed(self, lost: "sys.UnraisableHookArgs") -> None:
        self.lost |= isinstance(lost.exc_value, Ended)


@contextmanager
def claiming(database_url: str, _: str) -> Iterator[tuple[Connection, Work]]:
    with closing(connect(database_url)) as relay:
        statements = claims.compile_claims(inspect(relay))
        yield relay, lambda: claims.claim(relay, statements, claims.EDITS, 8, claims.dirty(relay))


@contextmanager
def building(database_url: str, redis_url: str) -> Iterator[tuple[Connection, Work]]:
    with closing(connect(database_url)) as connection, redis_client(redis_url) as client:
        tools = tools_over(Settings(), connection, client)
        yield connection, lambda: rebuild_project(uid("project"), tools)


def main(work_of: str, database_url: str, redis_url: str, seed: str = "1") -> None:
    opened, dice = {"claim": claiming, "build": building}[work_of], Random(seed)
    logging.getLogger("psycopg").addHandler(logging.NullHandler())
    closed = 0
    for number in range(STRIKES):
        with opened(database_url, redis_url) as (connection, work):
            interrupt(work, (Ended, TimeIsUp)[number % 2], dice.random() * WITHIN[work_of])
            closed += connection.closed
            with suppress(ForewordError, psycopg.Error):  # refused, perhaps; but never waited for
                work()
    with opened(database_url, redis_url) as (_, work):
        work()
    sys.stdout.write(f"{STRIKES} strikes, {closed} sessions closed\n")


def interrupt(work: Work, kind: type[BaseException], after: float) -> None:
    """Work until something raises ``kind`` in the middle of it."""
    striker, ended = Striker(), False
    striker.kind, sys.unraisablehook = kind, striker.swallowed
    signal.signal(signal.SIGALRM, striker.strike)
    signal.setitimer(signal.ITIMER_REAL, after + 0.0001, 0.001)  # again, where nothing was under way
    while not striker.struck:
        try:
            striker.during(work)
        except (TimeIsUp, ForewordError):
            continue
        except Ended:
            ended = True
    signal.setitimer(signal.ITIMER_REAL, 0)
    if kind is Ended and not (ended or striker.lost):
        raise SystemExit("something else took the interruption's place")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A program whose work is interrupted at any point, again and again: ``struck.py claim|build DATABASE REDIS``.

In a process of its own, as in pytest's a signal could strike pytest. It prints one line where all went well.
"""

import signal
import sys
import threading
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


class Ended(BaseException):
    """What a process is told that is to end: no error, and nothing may take its place."""


class TimeIsUp(Exception):
    """What Celery's time limit raises: libraries may take it for an error."""


class Strikes:
    """Raises an interruption, once, in the main thread, at some time after ``soon``."""

    def __init__(self, within: float) -> None:
        self.came = False
        self._within, self._dice = within, Random(1)
        self._kind: type[BaseException] = Ended

    def soon(self, kind: type[BaseException]) -> threading.Timer:
        self.came, self._kind = False, kind
        at, main = self._within * self._dice.random(), threading.main_thread().ident
        return threading.Timer(at, signal.pthread_kill, [main, signal.SIGUSR1])

    def strike(self, *_: object) -> None:
        self.came = True
        raise self._kind


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


def main(work_of: str, database_url: str, redis_url: str) -> None:
    strikes = Strikes(WITHIN[work_of])
    signal.signal(signal.SIGUSR1, strikes.strike)
    opened = {"claim": claiming, "build": building}[work_of]
    broken = 0
    for number in range(STRIKES):
        kind = (Ended, TimeIsUp)[number % 2]
        with opened(database_url, redis_url) as (connection, work):
            timer = strikes.soon(kind)
            ended = False
            try:
                timer.start()
                while not strikes.came:
                    with suppress(TimeIsUp, ForewordError):
                        work()
            except Ended:
                ended = True
            timer.join()
            if kind is Ended and not ended:
                raise SystemExit("something else took the interruption's place")
            broken += connection.closed
            with suppress(ForewordError, psycopg.Error):  # refused, perhaps; but never waited for
                work()
    with opened(database_url, redis_url) as (_, work):
        work()
    sys.stdout.write(f"{STRIKES} strikes, {broken} sessions given up\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

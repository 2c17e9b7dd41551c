"""The relay's part in briefs: a thread that has them made, and one that tells that they are ready.

What both do stands in the database, so nothing here has to be remembered; a second relay's threads do no harm.
"""

import queue
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import date

from foreword.errors import ForewordError
from loaders import brief_queue, shelf
from loaders.beats import since_tick
from loaders.brief_queue import Reaped
from loaders.claims import EVERYTHING, Term
from loaders.connection import Connection, connect
from tasks.announce import AT_ONCE, announce
from tasks.brief import copy_brief
from tasks.schedule import schedule
from tasks.tools import Tools
from worker.events import emit
from worker.outage import Outage
from worker.settings import Settings
from worker.wiring import Services, tools

WINDOW = 32
"""Messages under way and not begun: enough that workers never wait, so few that the broker holds little."""

IDLE_SECONDS, BUSY_SECONDS = 0.25, 0.02
CHORES_SECONDS, REAP_SECONDS, PRUNE_SECONDS = 1.0, 30.0, 3600.0

RECONNECT_SECONDS = 1.0

WITHOUT_BEAT_SECONDS = 15.0
"""After which the relay ticks itself: every beat is down, or the broker between."""

Send = Callable[[str, date, bool], None]
"""Has a brief made: (user, date, whether by a worker; else by a builder of the relay's)."""


class Led(threading.Thread):
    """A thread that works while its relay leads, over connections of its own, through whatever the servers do."""

    def __init__(self, name: str, over: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self.term: Term | None = None
        self._over = over
        self._outage = Outage(name)

    def run(self) -> None:
        """Work until the relay is over, beginning anew after whatever goes wrong."""
        while not self._over.is_set():
            try:
                self._work()
            except ForewordError as error:
                if times := self._outage.failed(error):
                    emit("thread_interrupted", thread=self.name, error=str(error), times=times)
            except Exception:  # noqa: BLE001 - whatever it is, it is begun anew
                emit("thread_failed", thread=self.name, exception=traceback.format_exc())
            self._over.wait(RECONNECT_SECONDS)

    def _work(self) -> None:
        raise NotImplementedError

    @property
    def _leads(self) -> bool:
        return self.term is not None and self.term.paused < EVERYTHING


class Dispatcher(Led):
    """Sees to it that what is due is scheduled, and what is scheduled is made."""

    def __init__(self, settings: Settings, services: Services, over: threading.Event, send: Send) -> None:
        super().__init__("dispatcher", over)
        self._kept_days = settings.brief_days
        self._done: dict[str, float] = {}
        self._services = services
        self._send = send

    def _work(self) -> None:
        with closing(connect(self._services.database_url)) as connection:
            done = 0.0
            while not self._over.is_set():
                sent = 0
                if self._leads:
                    if time.monotonic() - done >= CHORES_SECONDS:
                        done = time.monotonic()
                        self._chores(connection)
                    sent = self._round(connection)
                    self._outage.went()
                self._over.wait(BUSY_SECONDS if sent else IDLE_SECONDS)

    def _chores(self, connection: Connection) -> None:
        if since_tick(connection) >= WITHOUT_BEAT_SECONDS:
            schedule(connection)
        thorough = self._is_time("reap", REAP_SECONDS)
        given_up = brief_queue.reap(connection) if thorough else Reaped(failed=brief_queue.release(connection))
        for user, day in given_up.failed:
            emit("brief_failed", user=user, date=day)
        if given_up.missed:
            emit("briefs_missed", number=given_up.missed)
        if self._is_time("prune", PRUNE_SECONDS) and any(shelf.prune(connection, self._kept_days).values()):
            del self._done["prune"]  # the rest with the next chores: years of briefs must not hold up today's

    def _is_time(self, chore: str, seconds: float) -> bool:
        """Whether a chore was not done for so long; from now on it was."""
        now = time.monotonic()
        if now - self._done.get(chore, -seconds) < seconds:
            return False
        self._done[chore] = now
        return True

    def _round(self, connection: Connection) -> int:
        claimed = brief_queue.claim(connection, WINDOW)
        for user, day, sends in claimed:
            self._send(user, day, sends == 1)
        return len(claimed)


class Herald(Led):
    """Tells on a channel that briefs are ready, and copies to Redis what readers miss there. A receiver that takes
    its time holds up nobody who has a herald of his own.
    """

    def __init__(self, settings: Settings, services: Services, over: threading.Event, channel: str) -> None:
        super().__init__(f"{channel}_herald", over)
        self._channel = channel
        self._settings = settings
        self._services = services
        self._wanted: queue.SimpleQueue[tuple[str, date | None]] = queue.SimpleQueue()

    def copy(self, user: str, day: date | None) -> None:
        """Have a brief copied, if it was ever made; without a date the latest."""
        self._wanted.put((user, day))

    def _work(self) -> None:
        with tools(self._settings, self._services) as own:
            while not self._over.is_set():
                told = 0
                if self._leads:
                    told = announce(own, channels=[self._channel])
                    self._copy(own)
                    self._outage.went()
                self._over.wait(BUSY_SECONDS if told >= AT_ONCE else IDLE_SECONDS)

    def _copy(self, own: Tools) -> None:
        with suppress(queue.Empty):
            while True:
                user, day = self._wanted.get_nowait()
                found = shelf.stored(own.connection, user, day)
                if found is not None:
                    copy_brief(found, own)

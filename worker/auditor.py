"""The relay's slow audit: while nothing waits, one bundle after the other is compared with a fresh build, by a
child of the relay's. What it finds is in the numbers on record, and a mismatch is an event.
"""

import secrets
import threading
from collections.abc import Callable
from contextlib import closing

from loaders import audits, claims
from loaders.claims import THE_SWEEP
from loaders.connection import Connection, connect
from worker.heralds import Led
from worker.wiring import Services

AT_ONCE = 60
"""Picked by one pass over the projects, which takes a tenth of a second for 100,000."""


class Auditor(Led):
    """Has a project audited every so many seconds, unless something waits or the bulk is paused."""

    def __init__(
        self, services: Services, over: threading.Event, seconds: float, audit: Callable[[str], object]
    ) -> None:
        super().__init__("auditor", over)
        self._services = services
        self._seconds = seconds
        self._audit = audit
        self._picked: list[str] = []

    def _work(self) -> None:
        if not self._seconds:
            self._over.wait()
            return
        while not self._over.wait(self._seconds):
            if self.term is not None and self.term.paused < THE_SWEEP:
                with closing(connect(self._services.database_url)) as connection:
                    self._one(connection)
                    self._outage.went()

    def _one(self, connection: Connection) -> None:
        if claims.dirty(connection):
            return
        self._picked = self._picked or audits.pick(connection, AT_ONCE, secrets.token_hex(4))
        if self._picked:
            self._audit(self._picked.pop())

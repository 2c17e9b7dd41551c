"""A process that hangs ends itself, so that whatever starts processes again does: Compose, systemd, Kubernetes.

All that those see of a process is whether it runs. The thread here looks whether the main loop turns
(``worker.pulse``), and never says so in its place. ``up`` sees more, and ends what hangs sooner
(``worker.supervisor``).

It needs the interpreter: one whose main thread never lets go of it is not found.
"""

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn

from foreword.errors import ForewordError
from loaders.connection import connect, mapped
from worker.events import emit
from worker.pulse import Pulse, teller
from worker.wiring import takes

HUNG_SECONDS = 150.0
"""Without a sign of life, while servers answer: longer than a worker may be deaf before it leaves none, or a last
task may take.
"""

ODD_SECONDS = 30.0
"""Of silence, from which on servers are asked at each look whether it is their fault."""

LOOK_SECONDS = 5.0
GAP_SECONDS = 2 * LOOK_SECONDS
"""For which a look counts at most: while the whole process stands still, as on Ctrl-Z, nobody looks."""

STATEMENT_SECONDS = 5
LAST_WORD_SECONDS = 10.0
"""For the event that says why: whoever takes it may be what hangs."""

EXIT_CODE = 70
"""EX_SOFTWARE of sysexits.h."""


class Watchdog:
    """Looks at one sign of life, which changes whenever the main loop has turned. ``answers`` tells whether all
    servers do that the loop could wait for: who waits for one does not hang.
    """

    def __init__(
        self,
        sign: Callable[[], object],
        answers: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sign, self._answers, self._clock = sign, answers, clock
        self._seen, self._looked = sign(), clock()
        self.silence = 0.0

    def hangs(self) -> bool:
        """Whether it does, by this look. Silence counts from the last sign, or from the end of an outage."""
        now = self._clock()
        self.silence += min(now - self._looked, GAP_SECONDS)
        self._looked = now
        if (sign := self._sign()) != self._seen:
            self._seen, self.silence = sign, 0.0
        if self.silence >= ODD_SECONDS and not self._answers():
            self.silence = 0.0
        return self.silence >= HUNG_SECONDS


def watch(pulse: Pulse, servers: Sequence[str]) -> None:
    """Have this process watched until its end. ``servers`` are URLs of PostgreSQL and Redis."""
    dog = Watchdog(lambda: (pulse.turned, pulse.waited), lambda: all(map(answers, servers)))
    threading.Thread(target=_look, args=[dog], name="watchdog", daemon=True).start()


def answers(url: str) -> bool:
    """Whether a PostgreSQL or a Redis does; one of those that takes nothing does not."""
    if not url.startswith("postgres"):
        with teller(url) as client:
            return takes(client)
    try:
        with mapped("asking"), connect(url, statement_seconds=STATEMENT_SECONDS) as connection:
            connection.execute("select")
    except ForewordError:
        return False
    return True


def _look(dog: Watchdog) -> None:
    while True:
        try:
            if dog.hangs():
                _end(dog.silence)
        except Exception:  # noqa: BLE001 - whatever it is, it is looked again
            emit("thread_failed", thread="watchdog", exception=traceback.format_exc())
        time.sleep(LOOK_SECONDS)


def _end(silence: float) -> NoReturn:
    """At once and without cleaning up, for which the main thread would be needed: as if it had been killed."""
    try:
        threading.Timer(LAST_WORD_SECONDS, os._exit, [EXIT_CODE]).start()
        frame = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001 - there is no other way
        emit("process_hung", seconds=round(silence), stack="".join(traceback.format_stack(frame)))
    finally:
        os._exit(EXIT_CODE)

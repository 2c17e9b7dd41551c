"""An outage in few words: when it begins, then less and less often, with how often it was met meanwhile, and when
it is over. What fails and what is said of it is the caller's; this only knows when, and says the end.
"""

import time
from collections.abc import Callable

from worker.events import emit

PAUSES = (10.0, 30.0, 60.0, 120.0, 300.0)
"""Seconds between two words on one outage; the last one for ever. Five minutes of it are five lines."""

SURE_SECONDS = 2.0
"""For which it must have gone well again: a server that comes and goes is one outage."""


class Outage:
    """Of one thing that fails over and over, as one thread meets it."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._clock = what, clock
        self._begin()

    def _begin(self) -> None:
        self._since = self._last = self._speaks = self._clock()
        self._well: float | None = None
        self._kinds: set[type[BaseException]] = set()
        self._times = self._said = self._lines = 0

    def failed(self, error: BaseException) -> int:
        """It has failed. How often since it was last spoken of, where it is to be spoken of now; else 0. An error
        of a kind that was not spoken of yet is, at once: a server that is back and lacks a table is another thing.
        """
        if not self._times:
            self._begin()
        self._times += 1
        self._well, self._last = None, self._clock()
        if self._last < self._speaks and type(error) in self._kinds:
            return 0
        self._kinds.add(type(error))
        self._speaks = self._last + PAUSES[min(self._lines, len(PAUSES) - 1)]
        self._lines += 1
        unsaid, self._said = self._times - self._said, self._times
        return unsaid

    def went(self) -> None:
        """It went well. To be told as often as it does: when it is sure, the end of an outage is said. That may be
        long after, where nobody tried; it lasted from its first failure to its last.
        """
        if not self._times:
            return
        now = self._clock()
        self._well = now if self._well is None else self._well
        if now - self._well >= SURE_SECONDS:
            emit("goes_on", what=self._what, seconds=round(self._last - self._since, 1), times=self._times)
            self._times = 0

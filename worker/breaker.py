"""Leaving alone what is down: whoever waits for it each time keeps everything behind him waiting too."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Breaker:
    """Leaves a server alone for ``seconds`` after ``most`` questions in a row went unanswered; then one is a
    trial. Time is monotonic and in seconds.
    """

    clock: Callable[[], float] = time.monotonic
    most: int = 3
    seconds: float = 60.0
    _failed: int = 0
    _until: float = 0.0

    def left(self) -> float:
        """Seconds until the server may be asked; 0 when it may."""
        return max(self._until - self.clock(), 0.0) if self._failed >= self.most else 0.0

    def note(self, *, answered: bool) -> None:
        """What became of a question."""
        self._failed = 0 if answered else self._failed + 1
        self._until = self.clock() + self.seconds

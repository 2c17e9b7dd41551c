"""Signs of life: what a main loop leaves behind each time it has turned, so that looking costs next to nothing.

Two of them. A file in the health directory, touched at most once a second, for a probe on the same machine: its
age is all there is to know, and a shell can know it (``worker.health``). And an entry in a sorted set of Redis,
for ``status`` on any machine: who it is, with the time of its last turn as the score. Who supervises processes
looks at the files (``worker.supervisor``).

Nothing here runs by itself: a thread of its own would go on telling that a loop turns which hangs. A process whose
loop turns but which does none of the work that waits (``stalled``) leaves no sign either.
"""

import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from worker.health import clear

KEY = "fw:alive"
"""The sorted set, in the Redis of bundles."""

TOUCH_SECONDS, TELL_SECONDS = 1.0, 5.0
AFTER_FAILURE_SECONDS = 30.0
"""Until a Redis that did not answer is told again: a loop must not spend its time waiting for it."""

REDIS_SECONDS = 0.5
FORGET_SECONDS = 120.0
"""After which nobody remembers who was there."""

SILENT_SECONDS = 20.0
"""After which a process is not seen any more."""


class Pulse:
    """The signs of life of one process. Failing to leave one is the sign of its absence, and never an error.

    ``turned`` and ``waited``: when the main loop last had turned, and when it had and waits for a server; seconds
    since 1970, 0 before.
    """

    def __init__(
        self, role: str, directory: Path, *, stalled: Callable[[], bool] = bool, **more: str | list[str]
    ) -> None:
        self._file = directory / f"{role}-{os.getpid()}"
        self._stalled = stalled
        started = round(time.time())
        about: dict[str, object] = {
            "role": role,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "started": started,
            **more,
        }
        self._member = json.dumps(about)
        self.turned = self.waited = self._touched = self._told = 0.0
        with suppress(OSError):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            clear(directory)

    def beat(self) -> None:
        """The main loop has turned. To be called as often as it does."""
        now = time.time()
        if abs(now - self._touched) < TOUCH_SECONDS:
            return
        self._touched = now
        if self._stalled():
            return
        self.turned = now
        with suppress(OSError):
            self._file.touch()

    def wait(self) -> None:
        """The main loop has turned, and could not do what it is for: no sign of life, but it does not hang."""
        self.waited = time.time()

    def tell(self, client: "redis.Redis") -> None:
        """Tell Redis when the loop last turned, if that is due."""
        now = time.monotonic()
        if now < self._told or not self.turned:
            return
        self._told = now + AFTER_FAILURE_SECONDS
        with suppress(redis.RedisError, OSError), client.pipeline(transaction=False) as pipe:
            pipe.zadd(KEY, {self._member: self.turned})
            pipe.zremrangebyscore(KEY, "-inf", time.time() - FORGET_SECONDS)
            pipe.execute()
            self._told = now + TELL_SECONDS

    def end(self) -> None:
        """It ends in order, and leaves nothing to be missed."""
        with suppress(OSError):
            self._file.unlink()


def teller(url: str) -> "redis.Redis":
    """A client for ``tell`` in a main loop: not connected yet, and never waited for."""
    return redis.Redis.from_url(url, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A process that told of itself: ``ago`` seconds ago its loop turned; ``more`` is what its role adds."""

    role: str
    host: str
    pid: int
    started: int
    ago: float
    more: Mapping[str, str | list[str]]

    @property
    def here(self) -> bool:
        """Whether it was seen lately."""
        return self.ago < SILENT_SECONDS


def seen(client: "redis.Redis") -> list[Seen]:
    """Who told of themselves within the last two minutes, by role, host and process.

    Raises:
        redis.RedisError: Redis does not answer.
    """
    now = time.time()
    found = []
    told: Any = client.zrange(KEY, 0, -1, withscores=True)
    for member, turned in told:
        with suppress(ValueError, KeyError, TypeError):  # somebody else's
            about = json.loads(member)
            named = {name: about.pop(name) for name in ("role", "host", "pid", "started")}
            found.append(Seen(**named, ago=max(now - turned, 0.0), more=about))
    return sorted(found, key=lambda each: (each.role, each.host, each.pid))


@dataclass(slots=True)
class Deaf:
    """Whether a worker takes nothing though something waits for it, as one that lost its place at the broker
    without noticing.

    Attributes:
        waiting: messages in its queues.
        accepted: how many it ever took.
        patience: seconds for which that may be so: longer than any task takes.
    """

    waiting: Callable[[], int]
    accepted: Callable[[], int]
    patience: float
    clock: Callable[[], float] = time.monotonic
    _before: int = field(default=-1, init=False)
    _since: float = field(default=0.0, init=False)

    def __call__(self) -> bool:
        """By now."""
        accepted, now = self.accepted(), self.clock()
        if accepted != self._before or not self.waiting():
            self._before, self._since = accepted, now
        return now - self._since > self.patience

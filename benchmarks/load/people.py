"""Those who use the system: editors at a stated rate, somebody who sees when each edit can be read, and chats.

Editors do not wait for answers (open loop): who is late edits again at once, so that a slow system is not spared.
"""

import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from queue import Empty, SimpleQueue

import psycopg
import redis

import foreword
from benchmarks.load.account import Account, User, skewed
from benchmarks.load.edits import EDITS
from foreword import TRUSTED, Reader

EDITORS, CHATS = 4, 4

SURGE_SECONDS, SURGE_EVERY, SURGE = 5.0, 50.0, 3.0
"""For so long, every so often, there are so many times as many edits; otherwise fewer, the mean is as stated."""

SOONEST, LATER = 0.01, 0.1
"""Seconds until an edit is looked for; then again after this share of its age."""


@dataclass(slots=True)
class Followed:
    """An edit: when it was committed (seconds of the monotonic clock), and what it took to become readable."""

    project: str
    token: str
    committed: float
    lag: float | None = None


@dataclass(slots=True)
class Seen:
    """What the people saw. Lists only grow: who wants a part takes slices.

    Attributes:
        edits: every edit of a live project.
        took: when each transaction was committed, and the seconds that it took.
        reads: likewise, by what was read; ``statuses`` what came of it.
        failures: whatever should not have happened.
    """

    edits: list[Followed] = field(default_factory=list)
    took: list[tuple[float, float]] = field(default_factory=list)
    reads: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    statuses: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        """Edits that cannot be read yet."""
        return sum(edit.lag is None for edit in self.edits[-50_000:])


@dataclass(slots=True)
class Pace:
    """How often somebody acts, a second. May be changed while they do."""

    edits: float
    reads: float
    surges: bool = True
    began: float = field(default_factory=time.monotonic)

    def now(self) -> float:
        """Edits a second at this moment."""
        if not self.surges:
            return self.edits
        share = SURGE_SECONDS / SURGE_EVERY
        surge = (time.monotonic() - self.began) % SURGE_EVERY < SURGE_SECONDS
        return self.edits * (SURGE if surge else (1 - SURGE * share) / (1 - share))


def _bundle(reader: Reader, user: User, project: str) -> str:
    return reader.project(project, actor=user.id).status


def _shorter(reader: Reader, user: User, project: str) -> str:
    return reader.project(project, actor=user.id, budget=600).status


def _structured(reader: Reader, user: User, project: str) -> str:
    return reader.bundle(project, actor=user.id).status


def _overview(reader: Reader, user: User, _: str) -> str:
    return reader.overview(user.id).status


def _brief(reader: Reader, user: User, _: str) -> str:
    return reader.brief(user.id).status


READS: dict[str, tuple[float, Callable[[Reader, User, str], str]]] = {
    "project": (70, _bundle),
    "project, other budget": (10, _shorter),
    "project, structured": (5, _structured),
    "overview": (8, _overview),
    "brief": (7, _brief),
}
"""What chats read: how often of a hundred, and how; what comes is a status."""


class People:
    """All of them, as threads of this process."""

    def __init__(self, urls: tuple[str, str], account: Account, seed: int, pace: Pace) -> None:
        self._database, self._cache = urls
        self._account, self._seed, self._pace = account, seed, pace
        self._over, self._gone_home = threading.Event(), threading.Event()
        self._committed: SimpleQueue[Followed] = SimpleQueue()
        self.seen = Seen()

    @contextmanager
    def at_work(self) -> Iterator[Seen]:
        """They edit and read for the length of a block; ``stop`` ends that before, edits are followed on."""
        threads = [self._thread(f"editor {n}", lambda n=n: self._edit(n)) for n in range(EDITORS)]  # type: ignore[misc]
        threads += [self._thread(f"chat {n}", lambda n=n: self._chat(n)) for n in range(CHATS)]  # type: ignore[misc]
        threads.append(self._thread("follower", self._follow))
        for thread in threads:
            thread.start()
        try:
            yield self.seen
        finally:
            self.stop()
            self._gone_home.set()
            for thread in threads:
                thread.join()

    def stop(self) -> None:
        """Edit and read no more; edits are still looked for."""
        self._over.set()

    def _thread(self, name: str, run: Callable[[], None]) -> threading.Thread:
        def guarded() -> None:
            try:
                run()
            except Exception as error:  # noqa: BLE001 - whatever it is, the run must say so in the end
                self.seen.failures.append(f"{name}: {type(error).__name__}: {error}")

        return threading.Thread(target=guarded, name=name, daemon=True)

    def _edit(self, number: int) -> None:
        dice = random.Random(f"{self._seed}/editor/{number}")
        weights = [*EDITS.values()]
        often = skewed(len(self._account.projects))
        with psycopg.connect(self._database, application_name="load") as database:
            due = time.monotonic()
            while not self._over.wait(max(due - time.monotonic(), 0)):
                due += dice.expovariate(max(self._pace.now(), 1e-3) / EDITORS)
                project = dice.choices(self._account.projects[: len(often)], cum_weights=often)[0]
                if project.gone:
                    continue
                edit = dice.choices([*EDITS], weights)[0]
                began = time.monotonic()
                changed = edit(database, project, dice, self._account)
                token = foreword.token(database)
                database.commit()
                committed = time.monotonic()
                self.seen.took.append((committed, committed - began))
                followed = [Followed(each.id, token, committed) for each in changed if not each.gone]
                self.seen.edits += followed
                for each in followed:
                    self._committed.put(each)

    def _follow(self) -> None:
        """Looks for every edit, the less often the longer it takes, until all have gone home."""
        waiting: list[tuple[float, int, Followed]] = []
        order = count()  # of two that are due at once
        with redis.Redis.from_url(self._cache) as client:
            reader = Reader(client, asks=False)
            while not self._gone_home.is_set():
                with suppress(Empty):
                    while True:
                        edit = self._committed.get_nowait()
                        heappush(waiting, (edit.committed + SOONEST, next(order), edit))
                if not waiting or waiting[0][0] > time.monotonic():
                    time.sleep(SOONEST / 2)
                    continue
                _, _, edit = heappop(waiting)
                found = reader.project(edit.project, actor=TRUSTED, at_least=edit.token)
                now = time.monotonic()
                if found.status == "fresh" or (found.stamp is not None and found.stamp.gone):
                    edit.lag = now - edit.committed
                else:
                    again = now + max(SOONEST, LATER * (now - edit.committed))
                    heappush(waiting, (again, next(order), edit))

    def _chat(self, number: int) -> None:
        dice = random.Random(f"{self._seed}/chat/{number}")
        often = skewed(len(self._account.users))
        with closing(redis.Redis.from_url(self._cache)) as client:
            reader = Reader(client)
            due = time.monotonic()
            while not self._over.wait(max(due - time.monotonic(), 0)):
                due += dice.expovariate(self._pace.reads / CHATS)
                user = dice.choices(self._account.users, cum_weights=often)[0]
                what = dice.choices([*READS], [weight for weight, _ in READS.values()])[0]
                began = time.monotonic()
                status = READS[what][1](reader, user, dice.choice(user.projects).id)
                ended = time.monotonic()
                self.seen.reads[what].append((ended, ended - began))
                self.seen.statuses[f"{what}: {status}"] += 1

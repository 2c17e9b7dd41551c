"""Who reads while everything shakes: a watcher that sees every bundle, and askers who demand their own writes.

Both only look and note. A read that contradicts a promise is a violation the moment it is seen; whether a bundle
shows what its stamp claims is decided when it is known which edits are committed.
"""

import json
import queue
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import redis
from chaos.journal import Edit, Journal, greatest, visible
from chaos.people import PROBED, Population, Project, canaries, ticks

from foreword import keys
from foreword.kinds import KINDS
from foreword.reader import TRUSTED, Context, Reader
from foreword.stamp import Stamp

POLL_SECONDS = 0.03
"""How finely staleness is measured."""

SETTLE_SECONDS = 1.0
"""Before an observation is judged: who saw a commit's effect before its answer has the answer by then."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise broken: when (seconds into the run), which, and what exactly."""

    at: float
    promise: str
    what: str


@dataclass
class Findings:
    """Violations, from every thread. Of one promise only the first few are kept; all are counted."""

    begun: float = field(default_factory=time.monotonic)
    found: list[Violation] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, promise: str, what: str) -> None:
        """Note one."""
        with self._lock:
            self.counts[promise] = self.counts.get(promise, 0) + 1
            if self.counts[promise] <= 5:
                self.found.append(Violation(time.monotonic() - self.begun, promise, what))


def guarded(name: str, target: Callable[[], None], findings: Findings) -> threading.Thread:
    """A thread of the harness. One that breaks must say so: whoever sees nothing finds nothing."""

    def run() -> None:
        try:
            target()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            findings.add("harness", f"{name}: {type(error).__name__}: {error}: {traceback.format_exc()}")

    return threading.Thread(target=run, name=name, daemon=True)


@dataclass
class Era:
    """Between two times that the cache was emptied or put back. Odd while it happens: nothing is to be compared
    then, and nothing across.
    """

    number: int = 0

    def turn(self) -> None:
        """Something begins that may take bundles away, or has ended."""
        self.number += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A bundle that was readable.

    Attributes:
        ticks: by kind, what it shows; ``missing`` are probes that a whole slice does not show.
    """

    at: float
    project: str
    stamp: Stamp
    ticks: dict[str, int]
    missing: tuple[str, ...]


class Watcher:
    """Polls every project's fence; reads, checks and notes every bundle that it has not seen."""

    def __init__(
        self,
        url: str,
        people: Population,
        journal: Journal,
        findings: Findings,
        era: Era,
        stop: threading.Event,
    ) -> None:
        self._client = redis.Redis.from_url(url, socket_timeout=3, socket_connect_timeout=2)
        self._projects = {project.id: project for project in people.all}
        self._journal, self._findings, self._era, self._stop = journal, findings, era, stop
        self._seen: dict[str, tuple[int, int]] = {}
        self._era_seen = 0
        self._counted: dict[str, tuple[int, int]] = {}
        self._shown: dict[str, str] = {}  # the snapshot of what was read last; of a project that is gone none
        self._unjudged: list[Observation] = []
        self.builds = 0
        self.judged = 0
        self.thread = guarded("watcher", self._run, findings)

    @property
    def known(self) -> set[str]:
        """Projects that had a bundle, or a tombstone, at some time."""
        return {*self._counted}

    def _run(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            with suppress(redis.RedisError, OSError):
                self.look()
            self.judge()
        self._client.close()

    # ---- looking

    def look(self) -> None:
        """Once at every project."""
        era = self._era.number
        if era != self._era_seen:  # what was seen before it is not to be compared with what is there now
            self._seen.clear()
            self._era_seen = era
        with self._client.pipeline(transaction=False) as pipe:
            for project_id in self._projects:
                pipe.hget(keys.project(project_id), keys.FENCE)
            fences = pipe.execute()
        now = time.monotonic()
        for project, raw in zip(self._projects.values(), fences, strict=True):
            if raw is None or _fence(raw) != self._seen.get(project.id):
                self._read(project, era)
            else:
                self._account(project, now)

    def _account(self, project: Project, now: float) -> None:
        """Tell whose edits are readable. Also of what was seen before: an edit may be noted after its bundle."""
        snapshot = self._shown.get(project.id)
        if snapshot is None:
            self._journal.dismiss(project.id)
        else:
            self._journal.seen(project.id, snapshot, now)

    def _read(self, project: Project, era: int) -> None:
        fields: dict[bytes, bytes] = self._client.hgetall(keys.project(project.id))  # type: ignore[assignment]
        now = time.monotonic()
        fence = _fence(fields.get(keys.FENCE.encode()))
        steady = era % 2 == 0 and self._era.number == era
        self._compare(project, fence, steady=steady)
        if fence is None:
            return
        stamp = _stamp(fields)
        if stamp is None or stamp.fence != fence:
            self._findings.add("whole", f"{project.id}: fence {fence}, stamp {stamp}")
            return
        if stamp.gone:
            self._shown.pop(project.id, None)
        else:
            self._shown[project.id] = stamp.snapshot
        self._account(project, now)
        if self._counted.get(project.id) == fence:
            return
        self._counted[project.id] = fence
        self.builds += 1
        self._inspect(project, fields)
        if not stamp.gone:
            self._unjudged.append(observed(project, stamp, fields, now, self._findings))

    def _compare(self, project: Project, fence: tuple[int, int] | None, *, steady: bool) -> None:
        before = self._seen.pop(project.id, None)
        if steady and before is not None:
            if fence is None:
                self._findings.add("monotonic", f"{project.id}: its bundle vanished, it was {before}")
            elif fence < before:
                self._findings.add("monotonic", f"{project.id}: {fence} after {before}")
        if fence is not None and steady:
            self._seen[project.id] = fence

    def _inspect(self, project: Project, fields: dict[bytes, bytes]) -> None:
        """Nothing of other projects; neither in what readers are told of changes."""
        told: list[bytes] = self._client.lrange(keys.changes(project.id), -3, -1)  # type: ignore[assignment]
        for name, raw in [*fields.items(), *((b"changes", entry) for entry in told)]:
            foreign = canaries(raw) - {project.number}
            if foreign:
                self._findings.add("tenant", f"{project.id} field {name!r} holds words of projects {foreign}")

    # ---- judging

    def judge(self, *, at_once: bool = False) -> None:
        """Observations old enough, of which all is known."""
        now = time.monotonic()
        later = []
        for one in self._unjudged:
            young = now - one.at < SETTLE_SECONDS and not at_once
            if young or self._journal.in_doubt(one.project, one.stamp.snapshot):
                later.append(one)
            else:
                self._judge(one)
        self._unjudged = later

    def _judge(self, one: Observation) -> None:
        """It shows no less than its stamp claims; what it shows beyond that, it shows of whole transactions."""
        self.judged += 1
        for kind, number in self._journal.expected(one.project, one.stamp.snapshot).items():
            shown = one.ticks.get(kind)
            if shown is None and kind in one.missing:
                self._findings.add("shown", f"{_named(one)} does not show tick {number} of its {kind}")
            elif shown is not None and shown < number:
                self._findings.add(
                    "stamp", f"{_named(one)} shows tick {shown} of its {kind}, older than the stamp's {number}"
                )
        for torn in self._journal.torn(one.project, one.ticks):
            self._findings.add("one-snapshot", f"{_named(one)} shows {dict(one.ticks)}, a part of {torn}")


def _named(one: Observation) -> str:
    return f"{one.project}, generation {one.stamp.generation}, snapshot {one.stamp.snapshot}"


def _fence(raw: Any) -> tuple[int, int] | None:
    if raw is None:
        return None
    epoch, _, generation = bytes(raw).decode().partition(":")
    return int(epoch), int(generation)


def _stamp(fields: dict[bytes, bytes]) -> Stamp | None:
    """The stamp, the same in both places where it stands."""
    meta = fields.get(keys.META.encode(), b"").decode()
    line = fields.get(keys.TEXT.encode(), b"\n").decode().partition("\n")[0]
    return Stamp.parse(meta) if meta.strip() == line.strip() else None


def observed(
    project: Project, stamp: Stamp, fields: dict[bytes, bytes], now: float, findings: Findings
) -> Observation:
    """What a bundle shows: one tick of each probe, the same in every field."""
    raw = [value for name, value in fields.items() if not name.startswith(b"m:")]
    shown, torn = greatest(tick for value in raw for tick in ticks(value))
    if torn:
        findings.add("whole", f"{project.id}, generation {stamp.generation} shows two ticks of {torn}")
    data = json.loads(fields.get(keys.DATA.encode(), b"{}"))
    return Observation(
        at=now,
        project=project.id,
        stamp=stamp,
        ticks=dict(shown),
        missing=tuple(_missing(shown, data)),
    )


def _missing(shown: Iterable[str], data: dict[str, Any]) -> list[str]:
    """Probes that are not there although every row of their kind is."""
    known = set(shown)
    whole = {
        kind.name
        for kind in PROBED
        if len(data["slices"].get(kind.plural, ())) == data["coverage"]["kinds"][kind.plural]["total"]
    }
    return sorted((whole | {KINDS.project.name}) - known)


# ---- askers


@dataclass
class Demands:
    """Edits that somebody wants to read, and what became of it."""

    share: float
    waiting: "queue.Queue[Edit]" = field(default_factory=lambda: queue.Queue(maxsize=64))
    asked: int = 0
    answered: int = 0
    stale: int = 0
    deleted: int = 0

    def offer(self, edit: Edit, dice: Random) -> None:
        """Some edits are asked for; none where askers are behind."""
        if dice.random() < self.share:
            with suppress(queue.Full):
                self.waiting.put_nowait(edit)


Ask = Callable[[Reader, str, str, float], Context]


def ask_bundle(reader: Reader, project: str, token: str, wait: float) -> Context:
    """A chat that has just written, and reads everything."""
    return reader.bundle(project, actor=TRUSTED, at_least=token, wait=wait)


def ask_text(reader: Reader, project: str, token: str, wait: float) -> Context:
    """Or its prompt."""
    return reader.project(project, actor=TRUSTED, at_least=token, wait=wait)


ASKS: tuple[Ask, ...] = (ask_bundle, ask_text)


class Asker:
    """Reads at least an edit, until it gets it or the project is gone."""

    def __init__(
        self,
        name: str,
        url: str,
        demands: Demands,
        findings: Findings,
        stop: threading.Event,
        *,
        asks: bool,
        how: Ask,
    ) -> None:
        self._client = redis.Redis.from_url(url, socket_timeout=5, socket_connect_timeout=2)
        self._reader = Reader(self._client, asks=asks)
        self._demands, self._findings, self._stop, self._how = demands, findings, stop, how
        self.thread = guarded(name, self._run, findings)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                edit = self._demands.waiting.get(timeout=0.2)
            except queue.Empty:
                continue
            for project in sorted(edit.projects):
                self._demands.asked += 1
                self._demand(edit, project)
        self._client.close()

    def _demand(self, edit: Edit, project: str) -> None:
        while not self._stop.is_set():
            try:
                found = self._how(self._reader, project, edit.token, 1.0)
            except (redis.RedisError, OSError):
                self._stop.wait(0.2)
                continue
            if found.status == "fresh":
                self._judge(edit, project, found)
                self._demands.answered += 1
                return
            if found.status == "stale":
                self._demands.stale += 1
            if found.stamp is not None and found.stamp.gone:
                self._demands.deleted += 1
                return

    def _judge(self, edit: Edit, project: str, found: Context) -> None:
        """Fresh means: the edit is in there, by the stamp and to be seen."""
        stamp = found.stamp
        if stamp is None or not visible(stamp.snapshot, edit.transaction):
            self._findings.add(
                "at-least", f"{project}: asked for {edit.token}, got fresh {stamp and stamp.snapshot}"
            )
            return
        shown, _ = greatest(ticks(found.text.encode() + json.dumps(found.data, default=dict).encode()))
        for tick in edit.ticks:
            number = shown.get(tick.kind)
            if tick.project == project and number is not None and number < tick.number:
                self._findings.add(
                    "at-least", f"{project}: asked for tick {tick.number} of {tick.kind}, fresh shows {number}"
                )

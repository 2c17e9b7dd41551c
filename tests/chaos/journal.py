"""What the harness knows of its own edits: which are committed, what they must show, who still waits for them.

An edit is noted before its commit and settled after, so that nobody who sees it in a bundle can have seen it
before it stood here. An edit whose commit was cut off stays in doubt until the database has been asked.
"""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock

Clock = Callable[[], float]


def visible(snapshot: str, transaction: int) -> bool:
    """Whether a transaction counts as over in a ``pg_snapshot`` (xmin:xmax:xip,...).

    The harness' own reading of it, to hold ``foreword.freshness.contains`` against.
    """
    low, high, running = snapshot.split(":")
    if transaction < int(low):
        return True
    return transaction < int(high) and str(transaction) not in running.split(",")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A probe's new number."""

    project: str
    kind: str
    number: int


@dataclass(slots=True, kw_only=True)
class Edit:
    """A transaction of the application that changed something.

    Attributes:
        number: in the order of the harness; stands in ``chaos_edits`` if and only if the edit is committed.
        token: as the writer got it from ``foreword.token``; ``transaction`` is its transaction id.
        projects: whose rows it changed.
        committed: None while nobody knows.
        at: when its commit was answered (monotonic), or found out.
        doubted: its commit was cut off, so that ``at`` is late.
    """

    number: int
    editor: str
    token: str
    projects: frozenset[str]
    ticks: tuple[Tick, ...]
    operations: tuple[str, ...]
    committed: bool | None = None
    at: float = 0.0
    doubted: bool = False

    @property
    def transaction(self) -> int:
        """Without the epoch."""
        return int(self.token.rpartition(":")[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """How long an edit took to a readable bundle that contains it."""

    edit: int
    project: str
    committed: float
    readable: float
    doubted: bool

    @property
    def seconds(self) -> float:
        """From the commit's answer."""
        return self.readable - self.committed


@dataclass
class Journal:
    """All edits of a run. Used by every thread."""

    clock: Clock = time.monotonic
    on_commit: Callable[[Edit], object] = bool
    file: Path | None = None
    committed: int = 0
    rolled_back: int = 0
    arrivals: list[Arrival] = field(default_factory=list)
    operations: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _lock: Lock = field(default_factory=Lock)
    _doubts: dict[int, Edit] = field(default_factory=dict)
    _ticks: dict[tuple[str, str], list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    _several: dict[str, list[Edit]] = field(default_factory=lambda: defaultdict(list))
    _waiting: dict[str, dict[int, Edit]] = field(default_factory=lambda: defaultdict(dict))

    def note(self, edit: Edit) -> None:
        """An edit is about to be committed."""
        with self._lock:
            self._doubts[edit.number] = edit

    def settle(self, edit: Edit, *, committed: bool, doubted: bool = False) -> None:
        """What became of it."""
        with self._lock:
            edit.committed, edit.doubted, edit.at = committed, doubted, self.clock()
            if not committed:
                self.rolled_back += 1
            else:
                self._count(edit)
            self._doubts.pop(edit.number, None)
            self._write(edit)
        if committed and edit.projects:
            self.on_commit(edit)

    def _write(self, edit: Edit) -> None:
        """For whoever looks for the reason of a violation."""
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(edit), default=sorted) + "\n")

    def _count(self, edit: Edit) -> None:
        self.committed += 1
        for operation in edit.operations:
            self.operations[operation] += 1
        for tick in edit.ticks:
            self._ticks[tick.project, tick.kind].append((tick.number, edit.transaction))
        for project in edit.projects:
            self._waiting[project][edit.number] = edit
            if sum(tick.project == project for tick in edit.ticks) > 1:
                self._several[project].append(edit)

    def doubts(self) -> list[Edit]:
        """Edits of which nobody knows whether they are committed."""
        with self._lock:
            return [*self._doubts.values()]

    def in_doubt(self, project: str, snapshot: str) -> bool:
        """Whether such an edit of the project might be in the snapshot."""
        with self._lock:
            return any(project in e.projects and visible(snapshot, e.transaction) for e in self._doubts.values())

    def expected(self, project: str, snapshot: str) -> dict[str, int]:
        """By kind, the tick that a bundle of this snapshot must show, for probes that were ever ticked."""
        with self._lock:
            known = {kind: sorted(ticks, reverse=True) for (p, kind), ticks in self._ticks.items() if p == project}
        shown = {
            kind: next((n for n, token in ticks if visible(snapshot, token)), 0) for kind, ticks in known.items()
        }
        return {kind: n for kind, n in shown.items() if n}

    def torn(self, project: str, shown: Mapping[str, int]) -> list[str]:
        """Edits of which a bundle shows one tick and lacks another. A greater tick of a probe includes lesser."""
        with self._lock:
            several = [*self._several[project]]
        return [
            f"edit {edit.number} ({edit.token}): {there}"
            for edit in several
            if len({*(there := _which(edit, project, shown)).values()}) > 1
        ]

    def seen(self, project: str, snapshot: str, at: float) -> None:
        """A bundle of this snapshot was readable then: whoever waited for an edit in it waits no more."""
        with self._lock:
            waiting = self._waiting[project]
            for edit in [edit for edit in waiting.values() if visible(snapshot, edit.transaction)]:
                del waiting[edit.number]
                self.arrivals.append(
                    Arrival(
                        edit=edit.number,
                        project=project,
                        committed=edit.at,
                        readable=max(at, edit.at),
                        doubted=edit.doubted,
                    )
                )

    def dismiss(self, project: str) -> None:
        """The project is gone: its edits are not shown any more, and not missed."""
        with self._lock:
            self._waiting[project].clear()

    def waiting(self, projects: Iterable[str] | None = None) -> dict[str, list[Edit]]:
        """Edits not yet readable, by project."""
        with self._lock:
            wanted = self._waiting if projects is None else {p: self._waiting[p] for p in projects}
            return {project: [*edits.values()] for project, edits in wanted.items() if edits}

    def oldest_wait(self, now: float) -> float:
        """Seconds that the longest waiting edit has waited."""
        return max((now - e.at for edits in self.waiting().values() for e in edits), default=0.0)


def _which(edit: Edit, project: str, shown: Mapping[str, int]) -> dict[str, bool]:
    """By tick of the project, whether it is shown, of those whose probe is shown at all."""
    ticks = [tick for tick in edit.ticks if tick.project == project and tick.kind in shown]
    return {f"{tick.kind} {tick.number}": shown[tick.kind] >= tick.number for tick in ticks}


def greatest(shown: Iterable[tuple[str, int]]) -> tuple[Mapping[str, int], list[str]]:
    """By kind, the tick shown; and the kinds of which one bundle shows two."""
    found: dict[str, set[int]] = defaultdict(set)
    for kind, number in shown:
        found[kind].add(number)
    return {kind: max(ns) for kind, ns in found.items()}, [kind for kind, ns in found.items() if len(ns) > 1]

"""What must hold of a load, and what bound it: pure functions of series of samples."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Series = Sequence[tuple[float, float]]
"""(seconds, value), in order."""

KIB, MIB = 2**10, 2**20

TOLERATED = {
    "memory": (0.10, 8 * MIB),
    "child": (0.10, 8 * MIB),  # after its first 250 tasks, in as many more
    "files": (0.10, 4),
    "connections": (0.10, 4),
    "keys": (0.10, 10),  # a queue is a key while something is in it
    "KiB": (0.10, 256),  # of keys that are not to grow: 300 bytes a second in the later half of half an hour
    "MiB": (0.10, 8),  # of a whole server
}
"""What may be added in the time looked at: a share of the level, or so much (bytes; a number) if that is more."""

FEWEST_LIVES = 5

SHORTEST_SECONDS = 60.0
"""Of a half: what lived more shortly says nothing."""

BUSY, MACHINE_BUSY = 0.85, 0.9
"""Of a core, and of all cores: what is busier has no time left."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What grows without an end in sight: from where to where, within how many seconds."""

    what: str
    of: str
    begin: float
    end: float
    seconds: float


def slope(series: Series) -> float:
    """Theil and Sen's: the median of the slopes between all pairs, which no spike moves. A second."""
    pairs = [(b - a) / (t - s) for n, (s, a) in enumerate(series) for t, b in series[n + 1 :] if t > s]
    return statistics.median(pairs) if pairs else 0.0


def growth(what: str, of: str, series: Series) -> Growth | None:
    """Whether the second half of a series goes on rising by more than is tolerated; a first half warms up."""
    half = series[len(series) // 2 :]
    lasts = half[-1][0] - half[0][0] if half else 0.0
    if lasts < SHORTEST_SECONDS:
        return None
    level = statistics.median(value for _, value in half)
    risen = slope(half) * lasts
    share, least = TOLERATED[what]
    if risen <= max(share * level, least):
        return None
    return Growth(what, of, level - risen / 2, level + risen / 2, lasts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lives:
    """Of children that did their tasks and were replaced: what one has grown by over the later half of its life.

    Attributes:
        of: whose they were.
        number: of lives.
        seconds: the median of a life.
        level, grew: bytes.
    """

    of: str
    number: int
    seconds: float
    level: float
    grew: float

    @property
    def grows(self) -> bool:
        """Whether that is more than is tolerated; of few lives it is not known."""
        share, least = TOLERATED["child"]
        return self.number >= FEWEST_LIVES and self.grew > max(share * self.level, least)


def lives(of: str, found: Sequence[Series]) -> Lives:
    """Of series of (age, bytes), a life each. No life is long enough to be judged by itself, but all of them begin
    as copies of one parent and end after as many tasks: so they are laid over each other, from 0 to 1.
    """
    later = [(age / life[-1][0], value) for life in found for age, value in life if 2 * age >= life[-1][0] > 0]
    return Lives(
        of=of,
        number=len(found),
        seconds=statistics.median(life[-1][0] for life in found) if found else 0.0,
        level=statistics.median(value for _, value in later) if later else 0.0,
        grew=slope(sorted(later)) / 2,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """So many edits a second for a while.

    Attributes:
        asked, done: edits a second.
        p50, p99: seconds from commit to readable of those that arrived; ``behind`` did not, until the step's end.
        cores: cores that each group of processes had on average; ``others`` what is none of ours; the machine has
            ``of``.
        busiest: the process that had the most of a core, and how much.
    """

    asked: float
    done: float
    p50: float
    p99: float
    behind: int
    cores: Mapping[str, float]
    others: float
    of: int
    busiest: tuple[str, float]

    @property
    def holds(self) -> bool:
        """Whether the system kept up: as many edits as were asked for, less than two seconds of them behind."""
        return self.done >= 0.9 * self.asked and self.behind < 2 * self.asked


def bound(step: Step) -> str:
    """What a step that does not hold was bound by, in words."""
    had = {**step.cores, "what is none of ours": step.others}
    used = sum(had.values())
    shares = ", ".join(f"{name} {cores:.2f}" for name, cores in sorted(had.items(), key=lambda x: -x[1])[:4])
    if used >= MACHINE_BUSY * step.of:
        return f"the machine's processors: {used:.2f} of {step.of} cores were busy, of them {shares}"
    name, share = step.busiest
    if share >= BUSY:
        return f"one process, {name}: {share:.2f} of its core, while {used:.2f} of {step.of} cores were busy"
    return f"waiting: {used:.2f} of {step.of} cores were busy, of them {shares}; busiest {name} with {share:.2f}"

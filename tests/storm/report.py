"""What a storm has shown: figures, violations, and one line of JSON."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from chaos.watch import Violation
from storm.check import Key, Row
from storm.world import World

from benchmarks.spread import Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run.

    Attributes:
        dispatched: rows scheduled a second, from the first batch to the last.
        generated: briefs a second, from the first to the last; ``each`` by worker process.
        behind: seconds by which a brief was ready after it was due; 0 where it was ready before.
        late: seconds from due to the event in the stream.
        calm, edits: seconds from an edit to its bundle, without briefs and with.
        ended_after: seconds from the last due time until everything was told.
    """

    seed: int
    subscriptions: int
    briefs: int
    struck: dict[str, int]
    exits: dict[str, int]
    again: int
    dispatched: float
    generated: float
    each: float
    behind: Spread
    late: Spread
    calm: Spread
    edits: Spread
    ended_after: float
    violations: list[Violation] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    directory: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing promised was broken."""
        return not self.violations

    def as_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self) | {"ok": self.ok}, default=str)


def outcome(
    world: World,
    rows: Mapping[Key, Row],
    told: Mapping[Key, float],
    edits: tuple[Sequence[float], Sequence[float]],
    ended_after: float,
) -> Outcome:
    """Of a run that is over."""
    made = [row for key, row in rows.items() if key in world.ready and row.made is not None]
    generated = _rate(row.made.timestamp() for row in made if row.made is not None)
    dues = {key: person.due.timestamp() for key, person in world.ready.items()}
    options = world.options
    return Outcome(
        seed=options.seed,
        subscriptions=options.subscriptions,
        briefs=len(made),
        struck=dict(sorted(world.struck.items())),
        exits=dict(world.crew.exits),
        again=sum(row.attempts > 1 for row in made),
        dispatched=_rate(row.scheduled.timestamp() for row in rows.values()),
        generated=generated,
        each=generated / (options.workers * options.concurrency),
        behind=Spread.of((row.told - row.due).total_seconds() for row in made if row.told and row.due),
        late=Spread.of(at - dues[key] for key, at in told.items()),
        calm=Spread.of(edits[0]),
        edits=Spread.of(edits[1]),
        ended_after=ended_after,
        violations=[*world.findings.found],
        counts=dict(world.findings.counts),
    )


def _rate(moments: Iterable[float]) -> float:
    """Of what came after the first."""
    ordered = sorted(moments)
    later = [moment for moment in ordered if moment > ordered[0]]
    return len(later) / (later[-1] - ordered[0]) if later else 0.0


def written(found: Outcome) -> str:
    """For people."""
    lines = [
        f"seed {found.seed}  {found.subscriptions} subscriptions  {'ok' if found.ok else 'VIOLATED'}",
        f"  struck {_listed(found.struck)}",
        f"  exits {_listed(found.exits)}",
        f"  briefs {found.briefs}, {found.again} of them begun more than once",
        f"  scheduled {found.dispatched:.0f}/s",
        f"  generated {found.generated:.1f}/s, {found.each:.1f}/s each process",
        f"  ready after due: {found.behind}",
        f"  told after due:  {found.late}",
        f"  edits without briefs: {found.calm}",
        f"  edits meanwhile:      {found.edits}",
        f"  all told {found.ended_after:.1f} s after the last was due",
    ]
    lines += [f"  VIOLATION ({found.counts[v.promise]}) {v.promise}: {v.what[:1500]}" for v in found.violations]
    if found.directory:
        lines.append(f"  kept: {found.directory}")
    return "\n".join(lines)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts.items()) or "none"

"""What a run has shown: figures, violations, and one line of JSON."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from chaos.journal import Arrival
from chaos.watch import Violation
from chaos.world import Struck, World

from benchmarks.spread import Spread

NEAR_SECONDS = 5.0
"""A fault that ended so long ago may still be felt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run."""

    seed: int
    seconds: float
    edits: int
    rolled_back: int
    builds: int
    begun: int
    judged: int
    demands: dict[str, int]
    faults: dict[str, int]
    missed: int
    tampered: int
    exits: dict[str, int]
    losses: dict[str, int]
    operations: dict[str, int]
    calm: Spread
    near: Spread
    slowest: list[str]
    quiescent_after: float | None
    violations: list[Violation] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    directory: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing promised was broken."""
        return not self.violations and self.quiescent_after is not None

    def as_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self) | {"ok": self.ok}, default=str)


def spreads(arrivals: Sequence[Arrival], struck: Sequence[Struck]) -> tuple[Spread, Spread]:
    """Staleness without a fault near, and with one. Edits whose commit was cut off have no time of commit."""
    known = [arrival for arrival in arrivals if not arrival.doubted]
    near = [any(_touches(fault, arrival) for fault in struck) for arrival in known]
    return (
        Spread.of(a.seconds for a, is_near in zip(known, near, strict=True) if not is_near),
        Spread.of(a.seconds for a, is_near in zip(known, near, strict=True) if is_near),
    )


def _touches(fault: Struck, arrival: Arrival) -> bool:
    ended = fault.ended or float("inf")
    return fault.begun <= arrival.readable and ended + NEAR_SECONDS >= arrival.committed


def slowest(world: World, most: int = 3) -> list[str]:
    """The edits that took longest, of different projects, each with the faults that it met."""
    begun = world.findings.begun
    found: dict[str, str] = {}
    for arrival in sorted(world.journal.arrivals, key=lambda each: -each.seconds):
        met = Counter(fault.name for fault in world.struck if _touches(fault, arrival))
        told = f"{arrival.seconds:.1f} s: edit {arrival.edit} at {arrival.committed - begun:.1f} s, project"
        found.setdefault(arrival.project, f"{told} {arrival.project}; met {_listed(met)}")
        if len(found) == most:
            break
    return [*found.values()]


def faults_of(world: World) -> dict[str, int]:
    """How often each struck."""
    return dict(sorted(Counter(struck.name for struck in world.struck).items()))


def written(outcome: Outcome) -> str:
    """For people."""
    quiet = f"{outcome.quiescent_after:.1f} s" if outcome.quiescent_after is not None else "NOT QUIESCENT"
    lines = [
        f"seed {outcome.seed}  {outcome.seconds:.0f} s  {'ok' if outcome.ok else 'VIOLATED'}",
        f"  faults {sum(outcome.faults.values())}: {_listed(outcome.faults)}",
        f"  missed {outcome.missed}, messages laid hands on {outcome.tampered}",
        f"  edits {outcome.edits} ({outcome.rolled_back} rolled back, lost {_listed(outcome.losses)})",
        f"  builds {outcome.builds} read, {outcome.begun} begun; {outcome.judged} compared with their stamps",
        f"  demands {_listed(outcome.demands)}",
        f"  exits {_listed(outcome.exits)}",
        f"  stale without a fault near: {outcome.calm}",
        f"  stale with a fault near:    {outcome.near}",
        f"  quiescent after {quiet}",
    ]
    lines[-1:-1] = [f"    slowest {told}" for told in outcome.slowest]
    lines += [f"  VIOLATION at {v.at:.1f} s: {v.promise}: {v.what[:1500]}" for v in outcome.violations]
    if outcome.directory:
        lines.append(f"  kept: {outcome.directory}")
    return "\n".join(lines)


def _listed(counts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts.items()) or "none"


def table(outcomes: Sequence[Outcome]) -> str:
    """Several runs, a line each, and their sum."""
    wide = "p50/p99/worst"
    head = f"{'seed':>6} {'s':>5} {'faults':>6} {'edits':>7} {'builds':>7}"
    head += f" {f'calm {wide}':>20} {f'near {wide}':>20} quiet"
    rows = [head]
    for o in outcomes:
        quiet = f"{o.quiescent_after:.1f}" if o.quiescent_after is not None else "never"
        rows.append(
            f"{o.seed:>6} {o.seconds:>5.0f} {sum(o.faults.values()):>6} {o.edits:>7} {o.builds:>7}"
            f" {_three(o.calm):>20} {_three(o.near):>20} {quiet:>5} {'' if o.ok else 'VIOLATED'}"
        )
    rows.append(
        f"{'sum':>6} {sum(o.seconds for o in outcomes):>5.0f} {sum(sum(o.faults.values()) for o in outcomes):>6}"
        f" {sum(o.edits for o in outcomes):>7} {sum(o.builds for o in outcomes):>7}"
        f"  red {sum(not o.ok for o in outcomes)} of {len(outcomes)}"
    )
    return "\n".join(rows)


def _three(spread: Spread) -> str:
    return f"{spread.p50:.2f}/{spread.p99:.2f}/{spread.worst:.2f}"

"""What a load has shown: figures, and whatever should not have been."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from benchmarks.load import judge
from benchmarks.load.judge import KIB, MIB, Growth, Lives
from benchmarks.load.run import Record
from benchmarks.load.stock import KINDS, Stock
from benchmarks.load.watch import LOAD, QUEUES, Sample, cores, recycled
from benchmarks.spread import Spread
from loaders.claims import SLOWEST_MILLISECONDS
from worker.screen import console, heading, table

BOUND_SECONDS = 30.0
"""From an edit to its bundle, whatever is restarted meanwhile: docs/operations.md."""

LATEST_SECONDS = 120.0
"""From when a brief is due until it is told: the herd of an hour is built ahead and told in time."""

REST_SECONDS = 2 * SLOWEST_MILLISECONDS / 1000
"""Without an edit, after which a project's next one is built at once."""

AUDITED = 0.9
"""Of the projects at least; the day of some ends meanwhile."""

UNJUDGED = {"redis", LOAD}
"""Groups whose memory may grow: Redis holds more as people write more (that is shown), and we keep our records."""

UNSEEN_SHARE = 0.4
"""Of the steady part, for which nobody has looked at processes, or at Redis. Of a short one nothing is judged."""

QUARTERS = ("at 0 %", "25 %", "50 %", "75 %", "100 %")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A group's: processes at most, and MiB of its largest one and of all, at five moments of the steady part."""

    group: str
    processes: int
    largest: Sequence[float]
    all: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Keys of a kind in Redis, and their MiB, at five moments of the steady part."""

    kind: str
    keys: Sequence[int]
    mib: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A run. Seconds, unless said otherwise; ``wrong`` is empty where everything held."""

    seconds: float
    projects: int
    entities: int
    users: int
    filled: float
    built: float
    edits_a_second: float
    reads_a_second: float
    transaction: Spread
    lag: Spread
    rested_lag: Spread
    restarting_lag: Spread
    restarts: Mapping[str, float]
    reads: Mapping[str, Spread]
    statuses: Mapping[str, int]
    briefs_due: int
    briefs_told: int
    late: Spread
    memory: Sequence[Memory]
    cores: Mapping[str, float]
    connections: Mapping[str, Sequence[int]]
    redis_mib: Sequence[float]
    stored: Sequence[Stored]
    children: Sequence[Lives]
    steps: Sequence[Mapping[str, Any]]
    bound: str
    drained: float | None
    audit: Mapping[str, Any]
    wrong: Sequence[str]


def outcome(record: Record) -> Outcome:
    """Judge a run."""
    steady = record.steady
    lasted = record.ended - record.began
    edits = record.edits(record.began, record.ended)
    reads = {what: _steady(record, taken) for what, taken in sorted(record.seen.reads.items())}
    return Outcome(
        seconds=lasted,
        projects=record.options.projects,
        entities=record.entities,
        users=record.options.users,
        filled=record.filled,
        built=record.built,
        edits_a_second=len(edits) / lasted,
        reads_a_second=sum(spread.number for spread in reads.values()) / lasted,
        transaction=_steady(record, record.seen.took),
        lag=Spread.of(edit.lag for edit in edits if edit.lag is not None),
        rested_lag=Spread.of(_rested(record)),
        restarting_lag=Spread.of(edit.lag for edit in record.edits(*record.restarting) if edit.lag is not None),
        restarts=record.restarts,
        reads=reads,
        statuses=dict(sorted(record.seen.statuses.items())),
        briefs_due=record.due,
        briefs_told=record.told,
        late=Spread.of(record.late),
        memory=[*_memory(steady)],
        cores=_cores(steady),
        connections={
            name: [min(found), max(found), found[-1]]
            for name in ("postgresql", "redis")
            if (found := [sample.connections[name] for sample in steady])
        },
        redis_mib=[sample.stored / MIB for sample in _five(steady)],
        stored=[*_stored([stock for _, stock in record.steady_stocks])],
        children=_children(steady),
        steps=[asdict(step) | {"holds": step.holds} for step in record.steps],
        bound=_bound(record),
        drained=record.drained,
        audit=record.audit,
        wrong=[*_wrong(record)],
    )


def _cores(steady: Sequence[Sample]) -> dict[str, float]:
    """Cores that each group had, on average over neighbouring samples: so those that were restarted count, too."""
    totals: dict[str, float] = defaultdict(float)
    for first, last in pairwise(steady):
        for name, share in cores(first, last)[0].items():
            totals[name] += share / (len(steady) - 1)
    return dict(totals)


def _steady(record: Record, taken: Iterable[tuple[float, float]]) -> Spread:
    """Of (when, seconds) of the steady part."""
    return Spread.of(took for at, took in taken if record.began <= at < record.ended)


def _rested(record: Record) -> Iterator[float]:
    """Of edits of projects that nobody had edited for a while: others wait for their project's pace."""
    last: dict[str, float] = {}
    for edit in sorted(record.edits(record.began, record.ended), key=lambda edit: edit.committed):
        if edit.lag is not None and edit.committed - last.get(edit.project, -REST_SECONDS) >= REST_SECONDS:
            yield edit.lag
        last[edit.project] = edit.committed


def _bound(record: Record) -> str:
    if not record.steps:
        return "not tried"
    last = record.steps[-1]
    if last.holds:
        return f"nothing, up to {last.asked:.0f} edits/s"
    return judge.bound(last)


def _stored(stocks: Sequence[Stock]) -> Iterator[Stored]:
    five = _five(stocks)
    for kind in {kind: None for stock in stocks for kind in stock.bytes}:
        yield Stored(
            kind=kind,
            keys=[round(stock.numbers.get(kind, 0)) for stock in five],
            mib=[stock.bytes.get(kind, 0.0) / MIB for stock in five],
        )


def _children(steady: Sequence[Sample]) -> list[Lives]:
    return [judge.lives(name, recycled(steady, name)) for name in QUEUES]


def _five(steady: Sequence[Any]) -> list[Any]:
    last = len(steady) - 1
    return [steady[round(last * quarter / 4)] for quarter in range(5)] if steady else []


def _memory(steady: Sequence[Sample]) -> Iterator[Memory]:
    names = {name: None for sample in steady for name in sample.processes}
    for name in names:
        families = [sample.processes.get(name, ()) for sample in steady]
        five = [sample.processes.get(name, ()) for sample in _five(steady)]
        yield Memory(
            group=name,
            processes=max(map(len, families)),
            largest=[max((process.unique for process in family), default=0) / MIB for family in five],
            all=[sum(process.share for process in family) / MIB for family in five],
        )


# ---- what should not have been


def _wrong(record: Record) -> Iterator[str]:
    seen = record.seen
    lost = [edit for edit in seen.edits if edit.lag is None]
    if lost:
        yield f"{len(lost)} edits never became readable, the first {lost[0].token} of {lost[0].project}"
    worst = max(
        (edit.lag for edit in record.edits(record.began, record.ended) if edit.lag is not None), default=0.0
    )
    if worst > BOUND_SECONDS:
        yield f"an edit took {worst:.1f} s to become readable, more than {BOUND_SECONDS:.0f}"
    if not seen.edits:
        yield "nothing was edited"
    yield from _unseen(record)
    if record.drained is None:
        yield f"things still waited in the end: {record.left}"
    if record.told != record.due:
        yield f"{record.told} briefs were told of {record.due} that were due"
    if max(record.late, default=0.0) > LATEST_SECONDS:
        yield f"a brief was told {max(record.late):.0f} s after it was due"
    yield from seen.failures
    yield from (f"not planned: {text}" for text in record.died)
    if record.audit.get("different") or record.audit.get("missing"):
        yield f"the audit found {record.audit['different']} bundles different, {record.audit['missing']} missing"
    if record.audit.get("same", 0) < AUDITED * record.live:
        yield f"only {record.audit.get('same', 0)} of {record.live} bundles could be audited"
    yield from (_told(grows) for grows in [*growths(record.steady), *stored_growths(record.steady_stocks)])
    yield from (
        f"memory of children of {each.of} grew by {each.grew / MIB:.1f} MiB in the later half of a life"
        for each in _children(record.steady)
        if each.grows
    )


def _unseen(record: Record) -> Iterator[str]:
    """What was not looked at cannot be judged."""
    looks = {
        "the processes": [sample.at for sample in record.steady],
        "Redis": [at for at, _ in record.steady_stocks],
    }
    for what, times in looks.items():
        gaps = [after - before for before, after in pairwise([record.began, *times, record.ended])]
        if max(gaps) > max(UNSEEN_SHARE * (record.ended - record.began), judge.SHORTEST_SECONDS):
            yield f"nobody looked at {what} for {max(gaps):.0f} s"


def _told(grows: Growth) -> str:
    per = MIB if grows.what == "memory" else 1
    return (
        f"{grows.what} of {grows.of} grew from {grows.begin / per:.1f} to {grows.end / per:.1f}"
        f" within {grows.seconds:.0f} s"
    )


def growths(steady: Sequence[Sample]) -> Iterator[Growth]:
    """Whatever grows without an end: memory and files of every process, connections of all."""
    memory: dict[str, list[tuple[float, float]]] = defaultdict(list)
    files: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for sample in steady:
        for name, family in sample.processes.items():
            for process in family:
                series = f"{name} (process {process.pid})"
                files[series].append((sample.at, process.files))
                if name not in UNJUDGED:
                    memory[series].append((sample.at, process.unique))
    sessions = {
        name: [(sample.at, float(sample.connections[name])) for sample in steady]
        for name in ("postgresql", "redis")
    }
    for what, found in (("memory", memory), ("files", files), ("connections", sessions)):
        for of, series_of in found.items():
            if grows := judge.growth(what, of, series_of):
                yield grows


def stored_growths(stocks: Sequence[tuple[float, Stock]]) -> Iterator[Growth]:
    """What grows in Redis, though people make none of it: queues, keys that nobody knows or that never expire, and
    the server itself.
    """
    found = {
        ("keys", "Redis that never expire"): [(at, float(stock.endless)) for at, stock in stocks],
        ("MiB", "Redis beside its keys"): [(at, s.beside / MIB) for at, s in stocks if s.beside is not None],
    }
    for kind in {kind for _, stock in stocks for kind in stock.bytes} - KINDS.keys():
        found["KiB", f"{kind} keys in Redis"] = [(at, stock.bytes.get(kind, 0.0) / KIB) for at, stock in stocks]
    for (what, of), series in found.items():
        if grows := judge.growth(what, of, series):
            yield grows


# ---- for people


def show(found: Outcome) -> None:
    """Print tables."""
    _show_times(found)
    _show_memory(found)
    _show_stored(found)
    if found.steps:
        _show_steps(found.steps)
    screen = console()
    screen.print(f"bound first by: {found.bound}", soft_wrap=True)
    drained = f"{found.drained:.1f} s" if found.drained is not None else "never"
    screen.print(f"idle after the last edit: {drained}")
    audit = {name: value for name, value in found.audit.items() if isinstance(value, int)}
    screen.print(f"audit of bundles against fresh builds: {_listed(audit)}")
    for each in found.wrong:
        screen.print(f"WRONG: {each}", style="bold red", soft_wrap=True)
    screen.print("everything held" if not found.wrong else f"{len(found.wrong)} things did not hold", style="bold")


def _show_times(found: Outcome) -> None:
    heading(
        f"{found.seconds:.0f} s: {found.projects} projects, {found.entities} entities, {found.users} people;"
        f" inserted in {found.filled:.0f} s, all built {found.built:.1f} s later"
    )
    spreads = {
        "an edit's transaction": found.transaction,
        "edit to readable": found.lag,
        "  of a project at rest": found.rested_lag,
        "  while processes were restarted": found.restarting_lag,
        **{f"read: {what}": spread for what, spread in found.reads.items()},
        "brief due to told": found.late,
    }
    columns = ("milliseconds", "number", "p50", "p95", "p99", "worst")
    rows = [
        (what, s.number, *(f"{1000 * value:.1f}" for value in (s.p50, s.p95, s.p99, s.worst)))
        for what, s in spreads.items()
    ]
    screen = console()
    screen.print(table(columns, rows, right=columns[1:]))
    screen.print(f"{found.edits_a_second:.1f} edits/s, {found.reads_a_second:.1f} reads/s")
    screen.print(f"what came of all reads: {_listed(found.statuses)}", soft_wrap=True)
    screen.print(f"briefs: {found.briefs_told} told of {found.briefs_due}")
    if found.restarts:
        screen.print(f"restarted, s: {_listed({name: f'{took:.1f}' for name, took in found.restarts.items()})}")


def _show_memory(found: Outcome) -> None:
    heading("MiB over time: the largest process's own, and all of the group with their parts of what is shared")
    columns = ("group", "processes", "cores", *QUARTERS, *(f"all {quarter}" for quarter in QUARTERS))
    rows = [
        (
            each.group,
            each.processes,
            f"{found.cores.get(each.group, 0.0):.2f}",
            *(f"{value:.0f}" for value in (*each.largest, *each.all)),
        )
        for each in found.memory
    ]
    screen = console()
    screen.print(table(columns, rows, right=columns[1:]))
    screen.print(f"stored in Redis, MiB: {', '.join(f'{value:.1f}' for value in found.redis_mib)}")
    for name, (least, most, last) in found.connections.items():
        screen.print(f"connections to {name}: {least} to {most}, in the end {last}")
    for each in found.children:
        if each.number:
            screen.print(
                f"children of {each.of}: {each.number} recycled, after {each.seconds:.0f} s; of"
                f" {each.level / MIB:.0f} MiB, {each.grew / MIB:+.1f} over the later half of a life"
            )


def _show_stored(found: Outcome) -> None:
    heading("keys in Redis, and their MiB, over time")
    columns = ("kind", *(f"keys {quarter}" for quarter in QUARTERS), *(f"MiB {quarter}" for quarter in QUARTERS))
    rows = [(each.kind, *each.keys, *(f"{mib:.2f}" for mib in each.mib)) for each in found.stored]
    console().print(table(columns, rows, right=columns[1:]))


def _show_steps(steps: Sequence[Mapping[str, Any]]) -> None:
    heading("more and more edits, until something binds")
    columns = ("edits/s asked", "done", "p50 ms", "p99 ms", "behind", "cores busy", "held")
    rows = [
        (
            f"{step['asked']:.0f}",
            f"{step['done']:.0f}",
            f"{1000 * step['p50']:.0f}",
            f"{1000 * step['p99']:.0f}",
            step["behind"],
            f"{sum(step['cores'].values()) + step['others']:.2f}",
            "yes" if step["holds"] else "no",
        )
        for step in steps
    ]
    console().print(table(columns, rows, right=columns))


def _listed(found: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in found.items())

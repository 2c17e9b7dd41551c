"""How much an account needs: a pure function from what was measured and what is assumed.

What Foreword itself decides (windows, pauses, spreads) is imported from where it is decided, so the model moves
with the code. What it leaves out, and to which side it errs, is in docs/capacity.md.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Annotated, Any, get_type_hints

from benchmarks.capacity.costs import ENTITIES, Brief, Chores, Costs, Cpu, Rebuild
from benchmarks.capacity.processes import BEAT, BUILDER, CHILD, RELAY, WORKER
from foreword.ports import NEWS_KEPT
from loaders.claims import EDITS, LEADER_SECONDS, PACE_MILLISECONDS, SLOWEST_MILLISECONDS, SWEEP
from loaders.tick import AHEAD, SPREAD
from tasks.brief import DATED_DAYS
from tasks.project import SPREAD_SECONDS
from worker.app import BRIEFS
from worker.gauges import LOOK_SECONDS, SHARE
from worker.heralds import BUSY_SECONDS
from worker.heralds import WINDOW as BRIEFS_WINDOW
from worker.relay import CHORES_SECONDS, POLL_SECONDS, UNBUILT_SECONDS, windows
from worker.settings import BRIEF_DAYS, WINDOW

RELAYS = 2
"""One leads, another follows."""

SESSIONS_OF_RELAY = 7
"""The loop, the watch, the dispatcher, the heralds, the auditor's builder, the metrics."""

DAY_SECONDS = 86_400
GIB = 2.0**30


@dataclass(frozen=True, slots=True)
class Assumed:
    """What a field of an account says, which is also the command line's help; ``grows`` where it is of the whole
    account and not of one of something.
    """

    says: str
    grows: bool = False


Sizes = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What is assumed."""

    projects: Annotated[int, Assumed("live projects", grows=True)] = 1_000_000
    sizes: Annotated[Sizes, Assumed("entities of a project, and the share of such projects")] = (
        (20, 0.7),
        (100, 0.22),
        (1_000, 0.075),
        (10_000, 0.005),
    )
    edits: Annotated[float, Assumed("edits a second, mean of a day", grows=True)] = 250.0
    reads: Annotated[float, Assumed("texts read a second, mean of a day", grows=True)] = 1_000.0
    focuses: Annotated[float, Assumed("focus bundles asked for a second, mean of a day", grows=True)] = 5.0
    peak: Annotated[float, Assumed("edits, reads and focus bundles of the busiest hour, in means of a day")] = 4.0
    zipf: Annotated[float, Assumed("how unevenly edits fall: the n-th project gets 1 / n to this power")] = 1.0
    follow: Annotated[float, Assumed("how much edits prefer large projects: entities to this power")] = 0.5
    members: Annotated[float, Assumed("members of a project")] = 3.0
    users: Annotated[int, Assumed("people with a daily brief", grows=True)] = 200_000
    theirs: Annotated[float, Assumed("projects of one of them")] = 5.0
    same: Annotated[float, Assumed("share of them whose brief is due at the same minute")] = 0.25
    zone: Annotated[float, Assumed("share of the projects whose midnight is the same")] = 0.4
    visited: Annotated[float, Assumed("share of the projects that anybody reads on a day")] = 0.1
    focused: Annotated[float, Assumed("focus bundles kept, per project")] = 0.5
    kept: Annotated[float, Assumed("days that briefs are kept for")] = BRIEF_DAYS
    outage: Annotated[float, Assumed("hours without a build that the change log is to hold, at the busiest")] = 1.0
    target: Annotated[float, Assumed("share of a core that is to be used")] = 0.6
    fragmentation: Annotated[float, Assumed("Redis's memory to what its keys say")] = 1.3
    bloat: Annotated[float, Assumed("PostgreSQL's tables to what they take when packed")] = 1.5
    window: Annotated[int, Assumed("messages for edits under way at most: FOREWORD_WINDOW")] = WINDOW
    children: Annotated[int, Assumed("child processes of a worker")] = 8
    memory: Annotated[float, Assumed("GiB of the largest Redis at hand")] = 64.0
    cores: Annotated[float, Assumed("cores of the largest PostgreSQL at hand")] = 32.0

    def at(self, projects: int) -> "Account":
        """The same account with so many projects: rates and people grow with them."""
        by = projects / self.projects
        grown = {name: getattr(self, name) * by for name, each in assumed().items() if each.grows}
        return replace(self, **(grown | {"projects": projects, "users": round(self.users * by)}))


@cache
def assumed() -> Mapping[str, Assumed]:
    """What each field of an account says."""
    hints = get_type_hints(Account, include_extras=True)
    return {name: hints[name].__metadata__[0] for name in (each.name for each in fields(Account))}


@dataclass(frozen=True, slots=True)
class Limit:
    """Something of which there is one, whatever is bought: what is needed of it at the busiest, what it has, and
    what raises it.
    """

    name: str
    needs: float
    has: float
    unit: str
    remedy: str

    @property
    def load(self) -> float:
        """Above 1 it binds."""
        return self.needs / self.has


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """What an account needs at its busiest.

    Attributes:
        rates: a second.
        cores: by what they are for, at the target's utilisation.
        workers, children: Celery workers, and their processes that build, by queue.
        sessions: of PostgreSQL.
        cache: bytes of Redis, by what they hold.
        hosts: bytes of the processes of workers and relays.
        storage: bytes of PostgreSQL beside the application's own.
        wal: bytes of write-ahead log a second.
        midnight: seconds until the largest zone's bundles are of the new day.
        refill: seconds until an emptied Redis is full again.
        limits: the tightest first.
    """

    account: Account
    rates: Mapping[str, float]
    cores: Mapping[str, float]
    workers: Mapping[str, int]
    children: Mapping[str, int]
    sessions: int
    cache: Mapping[str, float]
    hosts: float
    storage: Mapping[str, float]
    wal: float
    midnight: float
    refill: float
    limits: Sequence[Limit]


# ---- how edits become builds

PACES = tuple(
    min(PACE_MILLISECONDS * 2**n, SLOWEST_MILLISECONDS) / 1000
    for n in range(math.ceil(math.log2(SLOWEST_MILLISECONDS / PACE_MILLISECONDS)) + 1)
)
"""Seconds of pause after the first build of a clean project, after the next while edits come, and so on."""


def builds_of(edits: float, build: float) -> tuple[float, float]:
    """(builds a second, share of the time that it waits with an edit) of a project with so many edits a second, at
    random, whose build takes ``build`` seconds. Above about one edit a second, more edits make fewer builds.

    A build is followed by a pause. If an edit came meanwhile, the next build ends the pause, and the pause after
    that is the next longer one; else the next edit is built at once, and pauses begin anew. What comes from one
    such beginning to the next is added up.
    """
    if edits <= 0:
        return 0.0, 0.0
    waits = [build + pace for pace in PACES]
    if edits * waits[-1] > 30:  # it never rests
        return 1 / waits[-1], 1 - 1 / (edits * waits[-1])
    reached, times, lasted, dirty = 1.0, 0.0, 1 / edits, 0.0
    for wait in waits:
        quiet, met = math.exp(-edits * wait), -math.expm1(-edits * wait)  # one less the other loses small numbers
        visits = reached / quiet if wait == waits[-1] else reached
        times += visits
        lasted += visits * wait
        dirty += visits * max(wait - met / edits, 0.0)
        reached *= met
    return times / lasted, dirty / lasted


_EXACT = 100
_STEP = 1.2


def ranks(projects: int, zipf: float) -> Iterator[tuple[float, float]]:
    """(how many projects, share of all edits that each of them gets): the most edited one by one, then alike ones
    together.
    """
    groups: list[tuple[float, float]] = []
    first = 1
    while first <= projects:
        last = first if first < _EXACT else min(math.ceil(first * _STEP), projects)
        groups.append((last - first + 1, ((first + last) / 2) ** -zipf))
        first = last + 1
    whole = math.fsum(number * weight for number, weight in groups)
    return ((number, weight / whole) for number, weight in groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class Editing:
    """Builds a second for edits; projects that wait with an edit on average; differences kept of all projects."""

    builds: float
    dirty: float
    news: float


def editing(account: Account, edits: float, build: float) -> Editing:
    """What so many edits a second of the account become. Differences are those of a mean day."""
    builds = dirty = news = 0.0
    for number, share in ranks(account.projects, account.zipf):
        rate, waiting = builds_of(edits * share, build)
        daily, _ = builds_of(account.edits * share, build)
        builds += number * rate
        dirty += number * waiting
        news += number * min(daily * DAY_SECONDS + 1, NEWS_KEPT)  # one more at midnight
    return Editing(builds=builds, dirty=dirty, news=news)


# ---- what things cost at a size


def between(points: Sequence[tuple[float, float]], at: float) -> float:
    """The straight line between the points around ``at``; beyond the first and the last as it goes on, but never
    below nothing.
    """
    if len(points) == 1:
        return points[0][1]
    after = next((i for i, (x, _) in enumerate(points) if x >= at and i), len(points) - 1)
    (x0, y0), (x1, y1) = points[after - 1], points[after]
    return max(y0 + (y1 - y0) * (at - x0) / (x1 - x0), 0.0)


class _Mean:
    """Costs of an average project: of all, or of those that are edited."""

    def __init__(self, costs: Costs, sizes: Sizes, follow: float = 0.0) -> None:
        weights = [(entities, share * entities**follow) for entities, share in sizes]
        whole = math.fsum(weight for _, weight in weights)
        self._weights = [(entities, weight / whole) for entities, weight in weights]
        self._rebuilds = costs.rebuilds

    def of(self, value: Callable[[Rebuild], float]) -> float:
        """The mean of something of a rebuild."""
        points = [(float(each.entities), value(each)) for each in self._rebuilds]
        return math.fsum(weight * between(points, entities) for entities, weight in self._weights)

    @property
    def cpu(self) -> Cpu:
        """The mean of what it costs."""
        return Cpu(
            python=self.of(lambda each: each.cpu.python),
            postgres=self.of(lambda each: each.cpu.postgres),
            redis=self.of(lambda each: each.cpu.redis),
        )


def brief_cpu(costs: Costs, projects: float) -> Cpu:
    """A brief's of so many projects."""

    def of(value: Callable[[Cpu], float]) -> float:
        return between([(float(each.projects), value(each.cpu)) for each in costs.briefs], projects)

    return Cpu(
        python=of(lambda cpu: cpu.python), postgres=of(lambda cpu: cpu.postgres), redis=of(lambda cpu: cpu.redis)
    )


# ---- the relay


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking:
    """The leading relay's looks, while so many projects wait with edits: seconds from one to the next, and of
    processor time for one.
    """

    period: float
    python: float
    postgres: float
    window: int

    def most(self, lane: str) -> float:
        """Builds of a lane that it can send a second: a window each look."""
        return windows(self.window)[lane] / self.period


def looking(costs: Costs, dirty: float, window: int = WINDOW) -> Looking:
    """Looks that find so many dirty projects; beyond a page of them it is a page."""
    most = costs.rounds[-1].dirty
    at = min(dirty, most)
    python = between([(each.dirty, each.python) for each in costs.rounds], at) / 1000
    postgres = between([(each.dirty, each.postgres) for each in costs.rounds], at) / 1000
    took = python + postgres
    return Looking(period=took + max(POLL_SECONDS, took), python=python, postgres=postgres, window=window)


# ---- what goes on at the busiest


class _Busy:
    """What goes on a second at the busiest, and what each of it costs."""

    def __init__(self, costs: Costs, account: Account) -> None:
        edited, every = _Mean(costs, account.sizes, account.follow), _Mean(costs, account.sizes)
        self.costs, self.account, self.every, self.edited = costs, account, every, edited
        self.editing = editing(account, account.edits * account.peak, edited.cpu.total / 1000)
        self.looks = looking(costs, self.editing.dirty, account.window)
        self.edits, self.reads = account.edits * account.peak, account.reads * account.peak
        self.focuses = account.focuses * account.peak
        self.herd = account.projects * account.zone
        self.swept = min(self.herd / SPREAD_SECONDS, self.looks.most(SWEEP))
        self.briefs = account.users * account.same / (AHEAD.total_seconds() * SPREAD)
        self.brief = brief_cpu(costs, account.theirs)

    @property
    def messages(self) -> float:
        return self.editing.builds + self.swept + self.briefs + self.focuses

    @property
    def relay(self) -> float:
        """Cores of the leading relay's interpreter."""
        sent = self.messages * self.costs.message.python + self.briefs * self.costs.brief.relay
        return self.looks.python / self.looks.period + sent / 1000

    def chores(self, value: Callable[[Chores], float]) -> float:
        """Seconds of a chore of the relay's in the ledger."""
        return between([(each.projects, value(each)) for each in self.costs.chores], self.account.projects) / 1000

    def of(self, value: Callable[[Cpu], float]) -> float:
        """Cores that are spent on everything that is made, by one of those who make it."""
        made = (
            (self.editing.builds, self.edited.cpu),
            (self.swept, self.every.cpu),
            (self.briefs, self.brief),
            (self.focuses, self.costs.focus),
        )
        return math.fsum(number * value(cpu) for number, cpu in made) / 1000


def size(costs: Costs, account: Account) -> Sizing:
    """What the account needs."""
    busy = _Busy(costs, account)
    cores, cache, children = _cores(busy), _cache(busy), _children(busy)
    workers = _workers(busy, children)
    return Sizing(
        account=account,
        rates={
            "edits": busy.edits,
            "builds for edits": busy.editing.builds,
            "builds at midnight": busy.swept,
            "briefs": busy.briefs,
            "reads": busy.reads,
            "builds that nobody reads": account.projects * (1 - account.visited) / DAY_SECONDS,
        },
        cores=cores,
        workers=workers,
        children=children,
        sessions=sum(children.values()) + RELAYS * SESSIONS_OF_RELAY,
        cache=cache,
        hosts=_hosts(costs, workers, children),
        storage=_storage(busy),
        wal=_wal(busy),
        midnight=max(busy.herd / busy.looks.most(SWEEP), SPREAD_SECONDS),
        # Every project is compared with the empty Redis, and built again meanwhile.
        refill=account.projects * max(1 / busy.looks.most(SWEEP), costs.verify.total / 1000),
        limits=sorted(_limits(busy, cores, sum(cache.values())), key=lambda each: -each.load),
    )


def _cores(busy: _Busy) -> dict[str, float]:
    """At the target's utilisation, as if everything's busiest time were the same: midnight somewhere, seven
    o'clock elsewhere.
    """
    costs = busy.costs
    carried = costs.build.worker
    spent = {
        "workers of edits": busy.editing.builds * (busy.edited.cpu.python + carried)
        + busy.focuses * (costs.focus.python + carried),
        "workers of the sweep": busy.swept * (busy.every.cpu.python + carried),
        "workers of briefs": busy.briefs * (busy.brief.python + carried),
        "relay": 1000 * busy.relay,
        "PostgreSQL": 1000 * _postgres(busy),
        "Redis: cache": 1000 * busy.of(lambda cpu: cpu.redis) + busy.reads * costs.read.redis,
        "Redis: broker": busy.messages * _broker(costs),
    }
    return {name: each / 1000 / busy.account.target for name, each in spent.items()}


def _postgres(busy: _Busy) -> float:
    """Cores of PostgreSQL, without what the application's own statements take."""
    costs = busy.costs
    logging = busy.edits * max(costs.edit.logged - costs.edit.plain, 0.0) / 1000
    around = max(costs.brief.postgres - brief_cpu(costs, 1).postgres, 0.0) * busy.briefs / 1000
    look = busy.chores(lambda each: each.look)
    relay = (
        busy.looks.postgres / busy.looks.period
        + busy.chores(lambda each: each.second) / CHORES_SECONDS
        + busy.chores(lambda each: each.half_minute) / UNBUILT_SECONDS
        + RELAYS * look / max(LOOK_SECONDS, SHARE * look)
    )
    return (busy.of(lambda cpu: cpu.postgres) + logging + around + relay) * (1 + costs.background)


def _broker(costs: Costs) -> float:
    """Milliseconds of Redis for a message, from being sent to being done, with the events that Flower sees."""
    built = next(each for each in costs.rebuilds if each.entities == ENTITIES)
    return max(costs.build.redis - built.cpu.redis, costs.message.redis)


def _children(busy: _Busy) -> dict[str, int]:
    """Each does one thing at a time, and waits for the servers meanwhile."""
    at_once = {
        EDITS: busy.editing.builds * busy.edited.cpu.total + busy.focuses * busy.costs.focus.total,
        SWEEP: busy.swept * busy.every.cpu.total,
        BRIEFS: busy.briefs * busy.brief.total,
    }
    return {queue: max(math.ceil(each / 1000 / busy.account.target), 1) for queue, each in at_once.items()}


def _workers(busy: _Busy, children: Mapping[str, int]) -> dict[str, int]:
    """Each has so many children, and one main process through which every message goes."""
    sent = {EDITS: busy.editing.builds + busy.focuses, SWEEP: busy.swept, BRIEFS: busy.briefs}
    most = 1000 * busy.account.target / max(busy.costs.build.worker, 1e-9)
    return {
        queue: max(math.ceil(number / busy.account.children), math.ceil(sent[queue] / most))
        for queue, number in children.items()
    }


def _hosts(costs: Costs, workers: Mapping[str, int], children: Mapping[str, int]) -> float:
    relay = costs.process(RELAY).resident + costs.process(BUILDER).resident
    return (
        sum(workers.values()) * costs.process(WORKER).resident
        + sum(children.values()) * costs.process(CHILD).own
        + RELAYS * (relay + costs.process(BEAT).resident)
    )


def _cache(busy: _Busy) -> dict[str, float]:
    account = busy.account
    held = {
        "bundles": account.projects * busy.every.of(lambda each: each.redis),
        "lists of changes": busy.editing.news * busy.every.of(lambda each: each.news),
        "focus bundles": account.projects * account.focused * 2 * busy.every.of(lambda each: each.focus),
        "briefs": account.users * (min(account.kept, DATED_DAYS) + 1) * _of_brief(busy, lambda each: each.redis),
        "who may read what": account.projects * account.members * busy.costs.member,
    }
    return {name: each * account.fragmentation for name, each in held.items()}


def _of_brief(busy: _Busy, value: Callable[[Brief], float]) -> float:
    return between([(each.projects, value(each)) for each in busy.costs.briefs], busy.account.theirs)


def _storage(busy: _Busy) -> dict[str, float]:
    account, costs = busy.account, busy.costs
    briefs = account.kept * _of_brief(busy, lambda each: each.kept) + 2 * _of_brief(
        busy, lambda each: each.row - each.kept
    )
    return {
        "fw_projects": account.projects * costs.ledger * account.bloat,
        "fw_handles": account.projects * busy.every.of(lambda each: each.handles) * costs.handle * account.bloat,
        "fw_briefs": account.users * briefs * account.bloat,
        "fw_changes": account.outage * 3600 * busy.edits * costs.edit.row,
    }


def _wal(busy: _Busy) -> float:
    costs = busy.costs
    return (
        busy.editing.builds * busy.edited.of(lambda each: each.wal)
        + busy.swept * busy.every.of(lambda each: each.wal)
        + busy.edits * max(costs.edit.logged_wal - costs.edit.plain_wal, 0.0)
        + busy.briefs * _of_brief(busy, lambda each: each.row)
    )


def _limits(busy: _Busy, cores: Mapping[str, float], cache: float) -> Iterator[Limit]:
    account, looks = busy.account, busy.looks
    share = account.target
    yield Limit("builds for edits sent", busy.editing.builds, share * looks.most(EDITS), "a second", WINDOW_REMEDY)
    yield Limit(
        f"midnight within {SPREAD_SECONDS} s",
        busy.herd / SPREAD_SECONDS,
        looks.most(SWEEP),
        "builds a second",
        "a larger FOREWORD_WINDOW; a longer spread; not building what nobody visits",
    )
    yield Limit(
        "the relay's interpreter",
        busy.relay,
        share,
        "cores",
        "several ids a message; a leader for each part of the ids",
    )
    yield Limit(
        "the relay's half-minute chores",
        busy.chores(lambda each: each.half_minute),
        LEADER_SECONDS,
        "s at once",
        "a page at a time, or an index for it",
    )
    most = BRIEFS_WINDOW / (BUSY_SECONDS + BRIEFS_WINDOW * busy.costs.brief.relay / 1000)
    yield Limit("briefs sent", busy.briefs, share * most, "a second", "building further ahead; a larger window")
    yield Limit("the cache's thread", cores["Redis: cache"] * share, share, "cores", "a cluster")
    yield Limit(
        "the broker's thread", cores["Redis: broker"] * share, share, "cores", "no events; a broker for each queue"
    )
    yield Limit(
        "the cache's memory", cache / GIB, account.memory, "GiB", "let it evict; keep fewer briefs; a cluster"
    )
    yield Limit("PostgreSQL's cores", cores["PostgreSQL"], account.cores, "cores", "a larger server")


WINDOW_REMEDY = "a larger FOREWORD_WINDOW"


# ---- questions to the model


def holds(costs: Costs, account: Account, name: str) -> float:
    """Projects up to which a limit holds, as the account grows."""
    return _largest(lambda projects: _load(size(costs, account.at(round(projects))), name), 1.0, 1e9)


def keeps_up(costs: Costs, account: Account, share: float = 1.0) -> float:
    """Edits a second, of the account's projects, that take a ``share`` of what one leading relay can send."""

    def load(edits: float) -> float:
        busy = _Busy(costs, replace(account, edits=edits / account.peak))
        return busy.editing.builds / (share * busy.looks.most(EDITS))

    return _largest(load, 0.01, 1e7)


def _load(sizing: Sizing, name: str) -> float:
    return next(each.load for each in sizing.limits if each.name == name)


def _largest(load: Callable[[float], float], low: float, high: float) -> float:
    """Where a growing load reaches 1, to a hundredth."""
    if load(high) < 1:
        return math.inf
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if load(middle) < 1 else (low, middle)
    return low


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubled:
    """What becomes of an account where one assumption is twice as large: factors of all cores, of Redis's memory,
    of PostgreSQL's tables, of the tightest limit's load.
    """

    name: str
    cores: float
    cache: float
    storage: float
    tightest: float

    @property
    def most(self) -> float:
        """How far the one goes that changes most, either way."""
        return max(abs(math.log(max(each, 1e-9))) for each in self._factors)

    @property
    def _factors(self) -> tuple[float, ...]:
        return self.cores, self.cache, self.storage, self.tightest


_GIVEN = ("window", "target", "fragmentation", "bloat", "children", "memory", "cores")
"""Of the machines and not of the account."""


def doubled(costs: Costs, account: Account) -> list[Doubled]:
    """What each assumption does, what changes most first."""
    base = size(costs, account)
    found = []
    for each in fields(account):
        if each.name in _GIVEN:
            continue
        other = size(costs, replace(account, **{each.name: _twice(getattr(account, each.name), each.name)}))
        found.append(
            Doubled(
                name=each.name,
                cores=sum(other.cores.values()) / sum(base.cores.values()),
                cache=sum(other.cache.values()) / sum(base.cache.values()),
                storage=sum(other.storage.values()) / sum(base.storage.values()),
                tightest=other.limits[0].load / base.limits[0].load,
            )
        )
    return sorted(found, key=lambda each: -each.most)


_SHARES = ("same", "zone", "visited")


def _twice(value: Any, name: str) -> Any:
    if name == "sizes":
        return tuple((2 * entities, share) for entities, share in value)
    return min(2 * value, 1.0) if name in _SHARES else 2 * value

"""The order of things: fill, build, edit and read for a while, more and more, silence, audit."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.load import account as accounts
from benchmarks.load.account import Account
from benchmarks.load.judge import Step
from benchmarks.load.people import Followed, Pace, People, Seen
from benchmarks.load.stock import Stock
from benchmarks.load.system import CHECKOUT, System, environment
from benchmarks.load.watch import Sample, Watch, cores, others
from foreword.errors import ForewordError
from loaders.condition import condition
from loaders.connection import Connection, connect
from worker.screen import bar, say

RESTART_AT = 0.25
"""Of the run: when each process is restarted in turn."""

BUILT_SECONDS, DRAINED_SECONDS = 1800.0, 120.0
"""For everything to be built at first; for everything to be done after the last edit."""

PROGRESS_SECONDS = 10.0

CORES = os.cpu_count() or 1

SAMPLES = 180
"""Of a run; but none sooner than a second after the last."""

STEP_SECONDS, STEPS = 15.0, 8
"""Of the edits that are doubled from step to step until something binds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the load is to be: see ``__main__``. ``restart`` are the parts to be restarted, None: all."""

    home: Path
    seed: int
    seconds: float
    projects: int
    users: int
    edits: float
    reads: float
    restart: Sequence[str] | None = None
    ramp: bool = True


@dataclass(slots=True, kw_only=True)
class Record:
    """What a run has given, to be judged and told.

    Attributes:
        filled, built: seconds to insert the account, and from then on until every project had its bundle.
        stocks: what stood in Redis, and when.
        began, ended: the steady part, by the monotonic clock; what came after it are the steps.
        steps: of the edits that were doubled until something bound.
        left: what waited to the end.
        died: what the supervisor said of processes that ended unasked.
        live: projects with a bundle in the end.
        restarts: seconds until a successor was ready, by part; ``restarting`` when that was.
        due, told, late: briefs that were to come and came; seconds from due to told.
        drained: seconds from the last edit until nothing waited; None where something did to the end.
    """

    options: Options
    filled: float = 0.0
    built: float = 0.0
    began: float = 0.0
    ended: float = 0.0
    seen: Seen = field(default_factory=Seen)
    samples: Sequence[Sample] = ()
    stocks: Sequence[tuple[float, Stock]] = ()
    restarts: dict[str, float] = field(default_factory=dict)
    restarting: tuple[float, float] = (0.0, 0.0)
    steps: list[Step] = field(default_factory=list)
    due: int = 0
    told: int = 0
    late: list[float] = field(default_factory=list)
    drained: float | None = None
    left: dict[str, float] = field(default_factory=dict)
    audit: dict[str, Any] = field(default_factory=dict)
    died: list[str] = field(default_factory=list)
    live: int = 0
    entities: int = 0

    @property
    def steady(self) -> Sequence[Sample]:
        """The samples of the steady part."""
        return [sample for sample in self.samples if self.began <= sample.at <= self.ended]

    @property
    def steady_stocks(self) -> Sequence[tuple[float, Stock]]:
        """Likewise."""
        return [(at, stock) for at, stock in self.stocks if self.began <= at <= self.ended]

    def edits(self, begin: float, end: float) -> Sequence[Followed]:
        """Those that were committed in between."""
        return [edit for edit in self.seen.edits if begin <= edit.committed < end]


def run(options: Options, system: System) -> Record:
    """Load a system that runs and holds nothing.

    Raises:
        ForewordError: it did not come as far as an end that can be judged.
    """
    record = Record(options=options)
    account = Account.of(options.seed, options.projects, options.users)
    record.entities = sum(project.entities for project in account.projects)
    with closing(connect(system.services.database_url)) as connection:
        _fill(record, account, connection)
        pace = Pace(options.edits, options.reads)
        urls = system.services.database_url, system.services.redis_url
        people = People(urls, account, options.seed, pace)
        watch = Watch(system, max(options.seconds / SAMPLES, 1.0))
        events = len(system.events)
        record.due = accounts.subscribe(connection, account, options.seed, options.seconds)
        say(
            f"{options.seconds:.0f} s of {options.edits:g} edits/s, {options.reads:g} reads/s, {record.due} briefs"
        )
        with watch.watching(), people.at_work() as seen:
            record.seen, record.samples, record.stocks = seen, watch.samples, watch.stocks
            _steady(record, system)
            if options.ramp:
                _more_and_more(record, watch, pace)
            people.stop()
            _drain(record, watch)
        seen.failures += [f"watching: {failure}" for failure in watch.failures]
        _look_back(record, connection, system, events)
    record.audit = _audit(system, record.live)
    return record


def _fill(record: Record, account: Account, connection: Connection) -> None:
    began = time.monotonic()
    with bar(f"inserting {len(account.projects)} projects", len(account.projects)) as advance:
        accounts.fill(connection, account, record.options.seed, advance)
    record.filled = time.monotonic() - began
    while True:
        stands = condition(connection)
        if stands.built >= len(account.projects) and not (stands.dirty or stands.building or stands.asked):
            break
        if time.monotonic() - began > BUILT_SECONDS:
            raise ForewordError(f"{stands.built} of {len(account.projects)} projects are built: see the logs")
        time.sleep(0.2)
    record.built = time.monotonic() - began - record.filled
    say(f"inserted in {record.filled:.0f} s, all built {record.built:.1f} s later")


def _steady(record: Record, system: System) -> None:
    """Until the time is over, and each process has been restarted in between."""
    options = record.options
    record.began = time.monotonic()
    record.ended = record.began + options.seconds
    to_restart = [*(system.parts() if options.restart is None else options.restart)]
    said = record.began
    while (now := time.monotonic()) < record.ended or to_restart:
        if to_restart and now - record.began > RESTART_AT * options.seconds:
            record.restarting = (record.restarting[0] or now, record.restarting[1])
            part = to_restart.pop(0)
            record.restarts[part] = system.restart(part)
            record.restarting = (record.restarting[0], time.monotonic())
        if now - said >= PROGRESS_SECONDS:
            _tell(record, said, now)
            said = now
        time.sleep(min(0.2, max(record.ended - time.monotonic(), 0)))
    record.ended = max(record.ended, now)


def _tell(record: Record, since: float, now: float) -> None:
    edits = record.edits(since, now)
    lags = sorted(edit.lag for edit in edits if edit.lag is not None)
    shown = (
        f"readable after p50 {lags[len(lags) // 2]:.2f} worst {lags[-1]:.2f} s" if lags else "none readable yet"
    )
    used = sum(cores(record.samples[-2], record.samples[-1])[0].values()) if len(record.samples) > 1 else 0.0
    say(
        f"  {now - record.began:5.0f} s  {len(edits) / (now - since):.0f} edits/s, {shown},"
        f" {record.seen.waiting} waiting, {used:.1f} cores busy"
    )


def _more_and_more(record: Record, watch: Watch, pace: Pace) -> None:
    """Twice as many edits from step to step until the system does not keep up."""
    while len(record.steps) < STEPS:
        pace.edits *= 2
        pace.surges = False
        first, began = watch.sample(), time.monotonic()
        time.sleep(STEP_SECONDS)
        last, ended = watch.sample(), time.monotonic()
        edits = record.edits(began, ended)
        lags = sorted(edit.lag for edit in edits if edit.lag is not None)
        used, busiest = cores(first, last)
        step = Step(
            asked=pace.edits,
            done=len(edits) / (ended - began),
            p50=lags[len(lags) // 2] if lags else STEP_SECONDS,
            p99=lags[len(lags) * 99 // 100] if lags else STEP_SECONDS,
            behind=len(edits) - len(lags),
            cores=used,
            others=others(first, last),
            of=CORES,
            busiest=busiest,
        )
        record.steps.append(step)
        say(f"  {step.asked:.0f} edits/s asked, {step.done:.0f} done, p99 {step.p99:.2f} s, {step.behind} behind")
        if not step.holds:
            return


def _drain(record: Record, watch: Watch) -> None:
    began = time.monotonic()
    while time.monotonic() - began < DRAINED_SECONDS:
        sample = watch.sample()
        if sample.idle and not record.seen.waiting:
            record.drained = time.monotonic() - began
            return
        record.left = {name: value for name, value in sample.waits.items() if value}
        time.sleep(0.2)


_LATE = """
select extract(epoch from told_at - due_at)::float8 from fw_briefs where due_at is not null and told_at is not null
"""


def _look_back(record: Record, connection: Connection, system: System, events: int) -> None:
    record.late = [row[0] for row in connection.execute(_LATE).fetchall()]
    record.told = len(record.late)
    record.live = condition(connection).built
    ended = [event for event in system.events[events:] if event["event"] in {"ended", "server_silent", "killed"}]
    planned = set(record.restarts)
    for event in ended:
        if event.get("process") in planned:
            planned.remove(event["process"])
        else:
            record.died.append(event["text"])


def _audit(system: System, projects: int) -> dict[str, Any]:
    """Every bundle against a fresh build, by the command that an operator has."""
    command = ["--data-dir", str(system.home), "audit", "--projects", str(max(projects, 1)), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "worker", *command],
        cwd=CHECKOUT,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if not done.stdout:
        raise ForewordError(f"the audit gave nothing, exit code {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found

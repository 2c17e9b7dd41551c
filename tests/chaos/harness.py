"""One run: a world is made, shaken while it is edited and read, left alone, and compared with a fresh build."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import psycopg
from chaos.check import BOUND_SECONDS, quiescent_after
from chaos.faults import BY_NAME, parting, plan
from chaos.injector import Injector, healed
from chaos.journal import Journal
from chaos.report import Outcome, faults_of, slowest, spreads
from chaos.servers import wait_until
from chaos.watch import Violation
from chaos.world import Options, World, edited, made, peopled

READY_SECONDS = 120.0
"""For the first bundle of every project: processes start, and everything is built once."""

PROGRESS_SECONDS = 5.0

Say = Callable[[str], object]


class NotReady(Exception):
    """The product did not come up, before any fault."""


def run(
    options: Options, names: tuple[str, ...] = tuple(BY_NAME), *, say: Say = print, keep: bool = False
) -> Outcome:
    """Run once. What was violated is in the outcome; the run's directory is kept then.

    Raises:
        NotReady: the first bundles did not come.
    """
    with made(options) as world:
        try:
            outcome = _shaken(world, names, say)
        except KeyboardInterrupt:
            world.unwanted = True
            raise
        except BaseException:
            say(f"kept: {world.home}")
            raise
        world.unwanted = outcome.ok and not keep
    return replace(outcome, directory="" if world.unwanted else str(world.home))


def _shaken(world: World, names: tuple[str, ...], say: Say) -> Outcome:
    options = world.options
    with peopled(world):
        say(f"seed {options.seed}: {world.home}, cache {'with' if world.lasting else 'without'} a log")
        await_first_bundles(world)
        world.findings.begun = begun = time.monotonic()
        injector = Injector(world, plan(options.seed, options.seconds, names))
        with injector.striking():
            with edited(world):
                _watch(world, begun, say)
            last = parting(options.seed, names)
            if last is not None:
                injector.strike(last)
        shaken = time.monotonic() - begun
        healed(world)
        calm = time.monotonic()
        quiet, troubles = quiescent_after(world, calm)
        wait_until(lambda: not world.journal.doubts(), 5)
        world.watcher.judge(at_once=True)
        for subject, what in troubles.items():
            world.findings.add("quiescent", f"{BOUND_SECONDS:.0f} s after the last fault: {subject}: {what}")
        drawn = _drawn(world)
    return _outcome(world, shaken, quiet, drawn, injector)


def _watch(world: World, begun: float, say: Say) -> None:
    """For as long as it is to last; shorter where it is red."""
    while (left := begun + world.options.seconds - time.monotonic()) > 0 and not _red(world):
        time.sleep(min(left, PROGRESS_SECONDS))
        say(_progress(world, begun))


def await_first_bundles(world: World) -> None:
    """Return when every project has its first bundle."""
    wanted = {project.id for project in world.people.there}
    if not wait_until(lambda: wanted <= world.watcher.known, READY_SECONDS):
        raise NotReady(f"no bundle of {', '.join(sorted(wanted - world.watcher.known))}; see {world.home}")


def _red(world: World) -> bool:
    """A red run need not go on for long."""
    found = world.findings.found
    return bool(found) and time.monotonic() - world.findings.begun - found[0].at > 10


def _progress(world: World, begun: float) -> str:
    journal: Journal = world.journal
    now = time.monotonic()
    worst = max((a.seconds for a in journal.arrivals), default=0.0)
    return (
        f"  {now - begun:5.0f} s  edits {journal.committed}  builds {world.watcher.builds}"
        f"  faults {len(world.struck)}  waiting {sum(map(len, journal.waiting().values()))}"
        f" (oldest {journal.oldest_wait(now):.1f} s)  worst {worst:.1f} s"
        f"  violations {sum(world.findings.counts.values())}"
    )


def _drawn(world: World) -> int:
    """Generations given away."""
    with suppress(psycopg.Error), world.connect() as connection:
        row = connection.execute("select last_value from fw_generation").fetchone()
        return int(row[0]) if row else 0
    return 0


def _outcome(world: World, seconds: float, quiet: float | None, drawn: int, injector: Injector) -> Outcome:
    calm, near = spreads(world.journal.arrivals, world.struck)
    violations = [*world.findings.found]
    violations += [Violation(0.0, "application untouched", told) for told in world.losses.ours[:5]]
    violations += [Violation(0.0, "harness", told) for told in injector.broken]
    demands = world.demands
    return Outcome(
        seed=world.options.seed,
        seconds=seconds,
        edits=world.journal.committed,
        rolled_back=world.journal.rolled_back,
        builds=world.watcher.builds,
        begun=drawn,
        judged=world.watcher.judged,
        demands={
            "asked": demands.asked,
            "answered": demands.answered,
            "stale meanwhile": demands.stale,
            "deleted": demands.deleted,
            "followed": world.follower.followed,
            "too old": world.follower.too_old,
        },
        faults=faults_of(world),
        missed=sum(world.missed.values()),
        tampered=world.tampered,
        exits=dict(world.crew.exits),
        losses=dict(world.losses.reasons),
        operations=dict(sorted(world.journal.operations.items())),
        calm=calm,
        near=near,
        slowest=slowest(world),
        quiescent_after=quiet,
        violations=violations,
        counts=dict(world.findings.counts),
    )

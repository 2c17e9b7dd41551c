"""``make chaos``: real servers, two workers, two relays, an application that edits and readers that read, while
everything is shot at; then silence, and every bundle is compared with a fresh build.

A seed gives the same edits and the same faults at the same times: ``--seed N`` replays them. Timing is the
machine's: which child was hit in the middle of what differs from run to run, so a violation may take a few
replays.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from chaos.faults import BY_NAME, plan
from chaos.harness import NotReady, run
from chaos.report import Outcome, table, written
from chaos.sabotage import SABOTAGES
from chaos.world import Options, interruptible


def main(arguments: Sequence[str]) -> int:
    """0: nothing was violated; 1: something was; 130: interrupted."""
    asked = _parser().parse_args(arguments)
    interruptible()
    names = _faults(asked)
    if asked.plan:
        _print_plan(asked.seed, asked.seconds, names)
        return 0
    outcomes: list[Outcome] = []
    try:
        for seed in range(asked.seed, asked.seed + asked.runs):
            outcomes.append(_one(asked, seed, names))
            if not outcomes[-1].ok and not asked.on:
                break
    except KeyboardInterrupt:
        _aside("interrupted; nothing is left running")
        return 130
    except NotReady as error:
        _aside(f"not ready: {error}")
        return 1
    if len(outcomes) > 1:
        _say(table(outcomes))
    return 0 if all(outcome.ok for outcome in outcomes) else 1


def _one(asked: argparse.Namespace, seed: int, names: tuple[str, ...]) -> Outcome:
    options = Options(
        seed=seed,
        seconds=asked.seconds,
        projects=asked.projects,
        rate=asked.rate / asked.editors,
        editors=asked.editors,
        workers=asked.workers,
        relays=asked.relays,
        sabotage=asked.sabotage,
        home=asked.dir,
    )
    outcome = run(options, names, say=_aside if asked.json else _say, keep=asked.keep)
    _say(outcome.as_json() if asked.json else written(outcome))
    return outcome


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def _aside(words: str) -> None:
    sys.stderr.write(f"{words}\n")


def _faults(asked: argparse.Namespace) -> tuple[str, ...]:
    wanted = asked.faults.split(",") if asked.faults is not None else [*BY_NAME]
    without = asked.no_faults.split(",") if asked.no_faults else []
    if asked.no_faults == "all" or wanted == [""]:
        return ()
    unknown = sorted({*wanted, *without} - BY_NAME.keys())
    if unknown:
        raise SystemExit(f"unknown faults {', '.join(unknown)}; there are {', '.join(BY_NAME)}")
    return tuple(name for name in BY_NAME if name in wanted and name not in without)


def _print_plan(seed: int, seconds: float, names: tuple[str, ...]) -> None:
    for planned in plan(seed, seconds, names):
        _say(f"{planned.at:7.1f} s  {planned.fault.name:<20} for {planned.lasts:.1f} s")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--seed", type=int, default=1, help="of the first run; every second seed has a cache that keeps a log")
    add("--runs", type=int, default=1, help="runs, with a seed each")
    add("--seconds", type=float, default=60, help="of shaking, a run")
    add("--projects", type=int, default=24, help="there at the start; a fifth more may be founded")
    add("--rate", type=float, default=40, help="transactions a second, where nothing holds them")
    add("--editors", type=int, default=4, help="connections of the application")
    add("--workers", type=int, default=2, help="Celery workers, of two processes each")
    add("--relays", type=int, default=2, help="relays")
    add("--faults", help="only these, by name, with commas")
    add("--no-faults", default="", help="not these; 'all' for none")
    add("--sabotage", default="", choices=["", *SABOTAGES], help="break the product, to see that it shows")
    add("--keep", action="store_true", help="keep the directory, also where all is well")
    add("--on", action="store_true", help="go on after a violation")
    add("--json", action="store_true", help="a line of JSON a run; progress goes to standard error")
    add("--plan", action="store_true", help="print the faults that a seed gives, and run nothing")
    add("--dir", type=Path, default=Path("/tmp/chaos"), help="where runs keep their files")
    return parser

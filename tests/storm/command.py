"""``make storm``: a real PostgreSQL, a real Redis, workers, relays and beats, and everybody's brief due within the
same minutes, while processes are killed, messages come twice or never, and people edit; then every brief is looked
at: one a user and date, told once and in time, of their projects only, with the numbers of a fresh one.

A seed gives the same people, edits and strikes at the same times; timing is the machine's.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from chaos.harness import NotReady
from chaos.world import interruptible
from storm.harness import run, served
from storm.report import Outcome, written
from storm.sabotage import SABOTAGES
from storm.world import Options


def main(arguments: Sequence[str]) -> int:
    """0: nothing was violated; 1: something was; 130: interrupted."""
    asked = _parser().parse_args(arguments)
    interruptible()
    try:
        outcomes = [_one(asked, seed) for seed in range(asked.seed, asked.seed + asked.runs)]
    except KeyboardInterrupt:
        _aside("interrupted; nothing is left running")
        return 130
    except NotReady as error:
        _aside(f"not ready: {error}")
        return 1
    return 0 if all(outcome.ok for outcome in outcomes) else 1


def _one(asked: argparse.Namespace, seed: int) -> Outcome:
    options = Options(
        seed=seed,
        subscriptions=asked.subscriptions,
        seconds=asked.seconds,
        lead=asked.lead,
        calm=asked.calm,
        projects=asked.projects,
        kills=asked.kills,
        doubled=asked.doubled,
        purges=asked.purges,
        rate=asked.rate,
        workers=asked.workers,
        concurrency=asked.concurrency,
        relays=asked.relays,
        beats=asked.beats,
        apart=asked.apart,
        sample=asked.sample,
        sabotage=asked.sabotage,
        home=asked.dir,
    )
    with served(options) as services:
        found = run(options, services, say=_aside if asked.json else _say, keep=asked.keep)
    _say(found.as_json() if asked.json else written(found))
    return found


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def _aside(words: str) -> None:
    sys.stderr.write(f"{words}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="storm",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="sabotages:\n" + "\n".join(f"  {name:<16}{what}" for name, what in SABOTAGES.items()),
    )
    add = parser.add_argument
    add("--seed", type=int, default=1, help="of the first run")
    add("--runs", type=int, default=1, help="runs, with a seed each")
    add("--subscriptions", type=int, default=2000, help="people")
    add("--seconds", type=float, default=60, help="within which all their briefs are due")
    add("--lead", type=float, default=10, help="seconds before the first of them is due")
    add("--calm", type=float, default=20, help="seconds of edits without briefs before")
    add("--projects", type=int, default=300, help="of all of them; everybody has one to three (at most 999)")
    add("--kills", type=int, default=20, help="of workers, their children, relays, their builders, and beats")
    add("--doubled", type=int, default=200, help="messages that nobody asked for, each sent twice")
    add("--purges", type=int, default=5, help="times that the queue of briefs is emptied")
    add("--rate", type=float, default=4, help="edits a second")
    add("--workers", type=int, default=2, help="Celery workers")
    add("--concurrency", type=int, default=1, help="processes of each")
    add("--relays", type=int, default=2, help="relays")
    add("--beats", type=int, default=2, help="beats")
    add("--apart", action="store_true", help="the first worker takes edits only, the others briefs only")
    add("--sample", type=int, default=100, help="briefs that are compared with fresh ones")
    add("--sabotage", default="", choices=["", *SABOTAGES], help="break the product, to see that it shows")
    add("--keep", action="store_true", help="keep the logs, also where all is well")
    add("--json", action="store_true", help="a line of JSON a run; progress goes to standard error")
    add("--dir", type=Path, default=Path("/tmp/storm"), help="where runs keep their files")
    return parser

"""How much of what people ask is in a bundle's text: ``make recall``.

make recall ARGS="--data /path/to/rows --no-ladder --plot recall.svg"
"""

import argparse
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.recall import report
from benchmarks.recall.measure import curve_of, measure, measure_unseen
from benchmarks.recall.plot import draw
from benchmarks.recall.stability import LARGEST, kept_over, recalls
from benchmarks.recall.subjects import LADDER, Subject, as_of_of, imported, rungs
from loaders.connection import Connection, connect
from loaders.migrate import migrate
from worker.screen import bar, print_json, say
from worker.servers import embedded

HARBOUR = Path(__file__).parents[2] / "samples" / "harbour"

_CURVE = range(250, 3001, 125)

_ON_LADDER = "synthetic projects"


def main() -> None:
    """Measure and print."""
    asked = _arguments()
    with _connected() as connection:
        groups = {str(asked.data.name): _of_directory(connection, asked)}
        if asked.ladder:
            groups[_ON_LADDER] = _on_ladder(connection, held_out=asked.held_out)
    found = {title: _measured(title, subjects, asked) for title, subjects in groups.items()}
    if asked.json:
        print_json(found)
    if asked.plot:
        say("drawing")
        draw({title: curve_of(subjects, _CURVE) for title, subjects in groups.items()}, asked.plot)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall", description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=HARBOUR, help="a directory of <table>.jsonl files (the sample)"
    )
    parser.add_argument(
        "--as-of",
        type=date.fromisoformat,
        help="the local date that it is looked at (the one its manifest.json names: as_of, or the date of the"
        " commit that it was made from; else 2026-11-21). Synthetic projects have their own",
    )
    parser.add_argument("--ladder", action=argparse.BooleanOptionalAction, default=True, help=_ON_LADDER)
    parser.add_argument("--stability", action="store_true", help="what a prompt cache keeps over a day of edits")
    parser.add_argument("--edits", type=int, default=200, help="edits of that day (200)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw recall against budget: .svg or .png")
    parser.add_argument("--json", action="store_true", help="print everything as JSON instead of tables")
    parser.add_argument(
        "--held-out",
        action="store_true",
        help="score the question types that no builder knows, too: to be looked at once",
    )
    return parser.parse_args()


@contextmanager
def _connected() -> Iterator[Connection]:
    """A connection to a migrated database that is gone afterwards."""
    home = Path(tempfile.mkdtemp(prefix="fw-recall-"))
    try:
        with embedded(home, redis=False) as servers:
            migrate(servers.database_url)
            with connect(servers.database_url, statement_seconds=0) as connection:
                yield connection
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _of_directory(connection: Connection, asked: argparse.Namespace) -> list[Subject]:
    say(f"importing {asked.data}")
    as_of = asked.as_of or as_of_of(asked.data)
    return list(imported(connection, asked.data, as_of, held_out=asked.held_out))


def _on_ladder(connection: Connection, *, held_out: bool) -> list[Subject]:
    found = []
    with bar(f"creating {_ON_LADDER}", len(LADDER)) as advance:
        for subject in rungs(connection, held_out=held_out):
            found.append(subject)
            advance(1)
    return found


def _measured(title: str, subjects: Sequence[Subject], asked: argparse.Namespace) -> dict[str, Any]:
    """Measure a group of projects; print tables, unless JSON is wanted."""
    projects = []
    with bar(f"measuring {title}", len(subjects)) as advance:
        for subject in subjects:
            projects.append(measure(subject))
            advance(1)
    if not asked.json:
        report.show_projects(title, projects)
    found = report.as_json(projects)
    if asked.held_out:
        unseen = [each for subject in subjects for each in measure_unseen(subject)]
        if not asked.json:
            report.show_unseen(title, unseen)
        found["held out"] = report.unseen_json(unseen)
    if asked.stability:
        found["stability"] = _stability(subjects, asked)
    return found


def _stability(subjects: Sequence[Subject], asked: argparse.Namespace) -> dict[str, Any]:
    small = [each for each in subjects if sum(map(len, each.project.rows.entities.values())) <= LARGEST]
    if len(small) < len(subjects):
        say(f"no edits of {len(subjects) - len(small)} projects with more than {LARGEST} entities")
    kept = {}
    with bar("editing", len(small)) as advance:
        for subject in small:
            kept[subject.name] = kept_over(subject.project, asked.edits)
            advance(1)
    if kept and not asked.json:
        report.show_stability(kept, {subject.name: recalls(subject) for subject in small})
    return report.stability_json(kept)


if __name__ == "__main__":
    main()

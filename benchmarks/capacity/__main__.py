"""``make capacity``: what an account needs, by what was measured and what is assumed.

make capacity ARGS="--projects 50000 --edits 20 --users 3000"
make capacity ARGS="--measure --save mine.json"
"""

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from benchmarks.capacity.costs import SHIPPED, Costs, load, save
from benchmarks.capacity.measure import Effort, measure
from benchmarks.capacity.model import Account, assumed, doubled, size
from benchmarks.capacity.report import STEPS, Table, filled, findings, measured, sized, written
from worker.screen import console, heading, print_json, say, table
from worker.servers import embedded

PAGE = Path(__file__).parents[2] / "docs" / "capacity.md"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure if asked to, and print."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    try:
        costs = _measured(Effort()) if asked.measure else load(asked.costs)
        account = Account(**{each.name: getattr(asked, each.name) for each in fields(Account)})
    except ValueError as error:
        parser.error(str(error))
    if asked.save:
        save(costs, asked.save)
        costs = load(asked.save)  # as others will read it
    if asked.page:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), costs, account), encoding="utf-8")
        say(f"written: {PAGE}")
    if asked.json:
        print_json(_as_json(costs, account))
    else:
        _show(costs, account)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capacity", description=__doc__)
    parser.add_argument(
        "--measure", action="store_true", help="measure anew, some four minutes, on servers of its own"
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep the costs")
    parser.add_argument(
        "--costs",
        type=_costs,
        default=SHIPPED,
        metavar="FILE",
        help="costs measured earlier (default: the shipped ones)",
    )
    parser.add_argument("--page", action="store_true", help="write the tables into docs/capacity.md")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    given = parser.add_argument_group("what is assumed")
    for each in fields(Account):
        default, says = each.default, assumed()[each.name].says
        if isinstance(default, tuple):
            given.add_argument("--sizes", type=_sizes, default=default, help=f"{says} ({written(default)})")
        else:
            given.add_argument(f"--{each.name}", type=type(default), default=default, help=f"{says} ({default:,})")
    return parser


def _costs(name: str) -> Path:
    return SHIPPED if name == "default" else Path(name)


def _sizes(told: str) -> tuple[tuple[int, float], ...]:
    pairs = (each.partition(":") for each in told.split(","))
    return tuple((int(entities), float(share)) for entities, _, share in pairs)


def _measured(effort: Effort) -> Costs:
    home = Path(tempfile.mkdtemp(prefix="fw-capacity-"))
    try:
        with embedded(home) as servers:
            return measure(servers, effort)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _as_json(costs: Costs, account: Account) -> dict[str, Any]:
    sizings = [size(costs, account.at(max(account.projects // step, 1))) for step in STEPS]
    return {
        "costs": asdict(costs),
        "sizings": [asdict(each) | {"loads": {one.name: one.load for one in each.limits}} for each in sizings],
        "doubled": [asdict(each) for each in doubled(costs, account)],
        "findings": findings(costs, account),
    }


def _show(costs: Costs, account: Account) -> None:
    screen = console()
    for each in (*measured(costs), *sized(costs, account)):
        heading(each.title)
        screen.print(_drawn(each))
    heading("what it comes to")
    for sentence in findings(costs, account):
        screen.print(sentence)


def _drawn(shown: Table) -> Any:
    """Figures to the right, words to the left."""
    words = {"what raises it", "is"}
    return table(shown.columns, shown.rows, right=[each for each in shown.columns[1:] if each not in words])


if __name__ == "__main__":
    main()

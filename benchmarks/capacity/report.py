"""What was measured and what follows from it, as tables: for a terminal, and for docs/capacity.md.

The page holds each table between two marks, so that it can be written anew, and a test can tell whether it is what
the model says.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

from benchmarks.capacity.costs import ENTITIES, Costs, Cpu
from benchmarks.capacity.model import (
    DAY_SECONDS,
    Account,
    Sizing,
    assumed,
    brief_cpu,
    doubled,
    holds,
    keeps_up,
    looking,
    size,
)
from loaders.claims import EDITS

WIDTH = 118
"""Of a line of the page that is no table's."""

STEPS = (1000, 100, 10, 1)
"""The account is shown at as many parts of its size."""


@dataclass(frozen=True, slots=True)
class Table:
    """``name`` is the mark in the page. The first column says what a row is, the others are figures."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


# ---- figures


def figure(value: float) -> str:
    """Two digits below ten, three above; nothing below a ten-thousandth."""
    if math.isinf(value):
        return "any"
    if abs(value) < 1e-4:
        return "0"
    return f"{value:.2g}" if abs(value) < 9.95 else f"{float(f'{value:.3g}'):,.0f}"


def memory(value: float) -> str:
    """Bytes, in the unit that fits."""
    return _in_units(value, {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40})


def duration(seconds: float) -> str:
    """Seconds, in the unit that fits."""
    return _in_units(seconds, {"s": 1, "min": 120, "h": 7200}, {"min": 60, "h": 3600})


def _in_units(value: float, units: Mapping[str, float], divisors: Mapping[str, float] | None = None) -> str:
    unit = [name for name, least in units.items() if value >= least][-1:] or [next(iter(units))]
    return f"{figure(value / ((divisors or units).get(unit[0]) or 1))} {unit[0]}"


def _times(factor: float) -> str:
    return f"{factor:.2f}" if abs(factor - 1) >= 0.005 else ""


# ---- what was measured


def measured(costs: Costs) -> list[Table]:
    """The costs."""
    return [_rebuilds(costs), _briefs(costs), _others(costs), _looks(costs), _processes(costs), _whole(costs)]


def _ms(cpu: Cpu) -> list[str]:
    return [figure(cpu.python), figure(cpu.postgres), figure(cpu.redis)]


_CPU = ("Python ms", "PostgreSQL ms", "Redis ms")


def _rebuilds(costs: Costs) -> Table:
    rows = [
        [f"{each.entities:,}", *_ms(each.cpu), memory(each.redis), figure(each.handles), memory(each.wal)]
        for each in costs.rebuilds
    ]
    columns = ("entities", *_CPU, "bundle in Redis", "handles", "log")
    return Table("rebuilds", "a rebuild after an edit, by the project's size", columns, rows)


def _briefs(costs: Costs) -> Table:
    rows = [
        [figure(each.projects), *_ms(each.cpu), memory(each.redis), memory(each.row), memory(each.kept)]
        for each in costs.briefs
    ]
    columns = ("projects", *_CPU, "a copy in Redis", "row", "row, kept")
    return Table("briefs", f"a brief, by the user's projects of {ENTITIES} entities", columns, rows)


def _others(costs: Costs) -> Table:
    edit = costs.edit
    rows = [
        [f"focus bundle of {ENTITIES} entities", *_ms(costs.focus)],
        ["edit of a row, without our triggers", "", figure(edit.plain), ""],
        ["edit of a row, with them", "", figure(edit.logged), ""],
        ["1,000 edits a second: cores of PostgreSQL for the triggers", "", figure(edit.logged - edit.plain), ""],
        ["message sent", *_ms(costs.message)],
        ["text read", *_ms(costs.read)],
        ["project compared with an emptied Redis", *_ms(costs.verify)],
    ]
    return Table("others", "other things", ("of each", *_CPU), rows)


def _looks(costs: Costs) -> Table:
    rows = [
        [f"look at {each.dirty:,} dirty projects", figure(each.python), figure(each.postgres)]
        for each in costs.rounds
    ]
    for each in costs.chores:
        of = f"of {each.projects:,} projects"
        rows += [
            [f"chores of a second, {of}", "", figure(each.second)],
            [f"chores of half a minute, {of}", "", figure(each.half_minute)],
            [f"a look for metrics, {of}", "", figure(each.look)],
        ]
    return Table("looks", "the leading relay", ("of each", *_CPU[:2]), rows)


def _processes(costs: Costs) -> Table:
    rows = [
        [each.role, f"{100 * each.share:.1f} %", memory(each.resident), memory(each.own)]
        for each in costs.processes
    ]
    columns = ("process, at rest", "of a core", "resident", "its own")
    return Table("processes", "processes at rest; of some there are many, and this is one", columns, rows)


def _whole(costs: Costs) -> Table:
    """What real processes spent, beside what the parts say of the same."""
    built = next(each.cpu for each in costs.rebuilds if each.entities == ENTITIES)
    rows = []
    for name, whole, part in (("build", costs.build, built), ("brief", costs.brief, brief_cpu(costs, 1))):
        spent = (whole.relay, whole.worker, whole.children, whole.postgres, whole.redis)
        rows.append([f"a {name}, real processes", *map(figure, spent)])
        rows.append([f"a {name}, measured by itself", "", "", *_ms(part)])
    columns = ("ms", "relay", "worker", "children", "PostgreSQL", "Redis")
    return Table("whole", f"with everything around it, of {ENTITIES} entities", columns, rows)


# ---- what follows


def sized(costs: Costs, account: Account) -> list[Table]:
    """What the account needs, and at a tenth, a hundredth, a thousandth of its size; what binds; what matters."""
    sizings = [size(costs, account.at(max(account.projects // step, 1))) for step in STEPS]
    return [_sizing(sizings), _limits(costs, sizings[-1]), _sensitivity(costs, account), assumptions(account)]


def _sizing(sizings: Sequence[Sizing]) -> Table:
    def row(name: str, value: Any, shown: Any = figure) -> list[str]:
        return [name, *(shown(value(each)) for each in sizings)]

    first = sizings[0]
    rows = [
        *(row(f"{name} a second", lambda each, name=name: each.rates[name]) for name in first.rates),
        row("builds for an edit", lambda each: each.rates["builds for edits"] / max(each.rates["edits"], 1e-9)),
        *(row(f"cores, {name}", lambda each, name=name: each.cores[name]) for name in first.cores),
        row("cores, all", lambda each: sum(each.cores.values())),
        *(row(f"workers, {name}", lambda each, name=name: each.workers[name]) for name in first.workers),
        *(row(f"children, {name}", lambda each, name=name: each.children[name]) for name in first.children),
        row("PostgreSQL's sessions", lambda each: each.sessions),
        row("memory of workers, relays, beats", lambda each: each.hosts, memory),
        *(row(f"Redis, {name}", lambda each, name=name: each.cache[name], memory) for name in first.cache),
        row("Redis, all", lambda each: sum(each.cache.values()), memory),
        *(
            row(f"PostgreSQL, {name}", lambda each, name=name: each.storage[name], memory)
            for name in first.storage
        ),
        row("write-ahead log a second", lambda each: each.wal, memory),
        row("a zone's midnight takes", lambda each: each.midnight, duration),
        row("an emptied Redis is full after", lambda each: each.refill, duration),
        row("binds first", lambda each: each.limits[0].name, str),
        row("at a load of", lambda each: each.limits[0].load),
    ]
    columns = ("at the busiest", *(f"{each.account.projects:,} projects" for each in sizings))
    return Table("sizing", "what an account needs", columns, rows)


def _limits(costs: Costs, sizing: Sizing) -> Table:
    rows = [
        [
            each.name,
            f"{figure(each.needs)} {each.unit}",
            figure(each.has),
            figure(each.load),
            figure(holds(costs, sizing.account, each.name)),
            each.remedy,
        ]
        for each in sizing.limits
    ]
    columns = ("there is one of", "needs", "has", "load", "holds up to projects", "what raises it")
    return Table("limits", f"what binds, at {sizing.account.projects:,} projects", columns, rows)


def _sensitivity(costs: Costs, account: Account) -> Table:
    rows = [
        [each.name, _times(each.cores), _times(each.cache), _times(each.storage), _times(each.tightest)]
        for each in doubled(costs, account)
    ]
    columns = (
        "twice as much of gives so many times",
        "cores",
        "Redis",
        "PostgreSQL's tables",
        "the tightest limit",
    )
    return Table("sensitivity", "what one assumption does", columns, [row for row in rows if any(row[1:])])


def assumptions(account: Account) -> Table:
    """What is assumed, and what it is called."""
    rows = [[f"--{name}", _value(getattr(account, name)), each.says] for name, each in assumed().items()]
    return Table("assumptions", "what is assumed", ("option", "here", "is"), rows)


def _value(value: Any) -> str:
    return (
        written(value)
        if isinstance(value, tuple)
        else f"{value:,.4g}"
        if isinstance(value, float)
        else f"{value:,}"
    )


def written(sizes: Sequence[tuple[int, float]]) -> str:
    """Sizes as the command line takes them."""
    return ",".join(f"{entities}:{share:g}" for entities, share in sizes)


def findings(costs: Costs, account: Account) -> list[str]:
    """What it comes to, in sentences."""
    sizing = size(costs, account)
    tightest, most = sizing.limits[0], doubled(costs, account)
    needs, has = f"{figure(tightest.needs)} {tightest.unit}", figure(tightest.has)
    over = ", ".join(each.name for each in sizing.limits if each.load > 1) or "nothing"
    all_of_it, comfortable = keeps_up(costs, account), keeps_up(costs, account, account.target)
    few, many = account.window, costs.rounds[-1].dirty
    sent, behind = (looking(costs, dirty, account.window).most(EDITS) for dirty in (few, many))
    unread = account.projects * (1 - account.visited)
    return [
        _line(
            f"At {account.projects:,} projects {tightest.name} binds first: {needs} are needed, {has} there are.",
            f"It holds up to {figure(holds(costs, account, tightest.name))} projects.",
        ),
        f"Beyond what there is one of: {over}.",
        _line(
            f"One leading relay sends {figure(sent)} builds for edits a second, which is what {figure(all_of_it)}",
            f"edits a second become ({figure(comfortable)} at {account.target:.0%} of it);",
            f"{costs.rounds[-1].dirty:,} projects behind it sends {figure(behind)} a second.",
        ),
        _line(
            f"The largest zone's bundles are of the new day after {duration(sizing.midnight)}, an emptied Redis",
            f"is full after {duration(sizing.refill)}; what is read meanwhile is built at once.",
        ),
        _line(
            f"Of {account.projects:,} builds that midnights ask for in a day {figure(unread)} are of projects",
            f"that nobody reads: {figure(unread / DAY_SECONDS)} a second all day.",
        ),
        _line(
            f"Doubled, {_first(most, 'cores')} changes the cores most, {_first(most, 'cache')} Redis,",
            f"{_first(most, 'storage')} PostgreSQL's tables, {_first(most, 'tightest')} the tightest limit.",
        ),
    ]


def _line(*parts: str) -> str:
    return " ".join(parts)


def _first(found: Sequence[Any], of: str) -> str:
    return f"--{max(found, key=lambda each: abs(math.log(max(getattr(each, of), 1e-9)))).name}"


# ---- the page


def markdown(table: Table) -> str:
    """A table as the page has it."""
    lines = [table.columns, ["---", *("---:" for _ in table.columns[1:])], *table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _item(sentence: str) -> str:
    return fill(sentence, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)


_MARKED = re.compile(r"(<!-- from the model: (?P<name>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str, costs: Costs, account: Account) -> str:
    """The page with every table in it as it is now.

    Raises:
        KeyError: it has a mark that is no table's.
    """
    known = {each.name: markdown(each) for each in (*measured(costs), *sized(costs, account))}
    known["findings"] = "\n".join(_item(each) for each in findings(costs, account))
    known["machine"] = f"{costs.machine}."
    return _MARKED.sub(lambda found: f"{found[1]}{known[found['name']]}\n{found[3]}", page)

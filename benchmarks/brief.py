"""What does a brief cost per project as an account grows, and against the bundles of the same projects?

Everything is in memory: loading is the same for both, and a bundle's benchmark measures it. Each round makes the
brief of the account, briefs of single projects and the bundles, one after another; ratios are medians of those of
the rounds. The first round warms up: a process counts the tokens of a line once (``foreword.tokens.count``).
"""

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from zoneinfo import ZoneInfo

from benchmarks.synthetic import create_project
from foreword.brief import About, compose, known, pack, part, window_of
from foreword.brief_lines import brief_lines
from foreword.bundle import render
from foreword.digest import digest
from foreword.draft import select
from foreword.handles import handle
from foreword.kinds import KINDS
from foreword.lines import DEFAULT_BUDGET, fit
from foreword.rows import ProjectRows
from foreword.tokens import count
from loaders.catalog import inspect
from loaders.connection import Connection
from loaders.project import compile_statements, load_project

PROJECTS = (1, 10, 100, 300)

ENTITIES = 280
"""Of a project: 67 tasks with the shares of kinds that ``benchmarks.synthetic`` has."""

_MODELS = 10
"""Projects that are made and loaded; an account holds copies of them with ids of their own."""

_DAY, _ZONE = date(2026, 11, 21), ZoneInfo("Europe/Berlin")
_NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Medians. ``brief``: milliseconds of the whole brief; ``per_project``: a project's share of it, to the brief
    of that project alone; ``to_bundles``: to selecting and writing the bundles of the same projects.
    """

    projects: int
    tasks: int
    brief: float
    per_project: float
    to_bundles: float


@dataclass(frozen=True, slots=True)
class _Project:
    rows: ProjectRows
    handles: Mapping[str, str]


def costs(connection: Connection, sizes: Sequence[int] = PROJECTS) -> list[Cost]:
    """One cost for each size of an account."""
    models = _models(connection)
    account = [_apart(models[n % _MODELS], n) for n in range(max(sizes))]
    return [_cost(account[:size]) for size in sizes]


def _cost(account: Sequence[_Project]) -> Cost:
    rounds = max(3, 60 // len(account))
    briefs, ones, bundles = [], [], []
    for _ in range(rounds + 1):
        briefs.append(_milliseconds(partial(_brief, account)))
        ones.append(statistics.fmean(_milliseconds(partial(_brief, [each])) for each in account[:_MODELS]))
        bundles.append(_milliseconds(lambda: [_bundle(each) for each in account]))
    paired = list(zip(briefs[1:], ones[1:], bundles[1:], strict=True))
    return Cost(
        projects=len(account),
        tasks=sum(len(each.rows.entities["task"]) for each in account),
        brief=statistics.median(briefs[1:]),
        per_project=statistics.median(brief / len(account) / one for brief, one, _ in paired),
        to_bundles=statistics.median(brief / bundle for brief, _, bundle in paired),
    )


def _brief(account: Sequence[_Project]) -> object:
    """Everything that a brief is but the loading of its rows."""
    about = About(user="user", name="A. User", date=_DAY, zone=_ZONE.key, window=window_of(_NOW, _DAY, None, None))
    parts = [
        part(digest(each.rows, as_of=_DAY, zone=_ZONE, window=about.window), each.handles) for each in account
    ]
    document = compose(about, parts)
    lines, always = brief_lines(document, count)
    return pack(known(document, parts)), fit(lines, always, DEFAULT_BUDGET)


def _bundle(project: _Project) -> object:
    content = render(select(project.rows, as_of=_DAY, zone=_ZONE), project.handles, count)
    return fit(content.lines, content.always, DEFAULT_BUDGET)


def _milliseconds(call: Callable[[], object]) -> float:
    gc.collect()
    gc.disable()  # as builds do
    begun = time.perf_counter()
    call()
    took = (time.perf_counter() - begun) * 1000
    gc.enable()
    return took


# ---- accounts


def _models(connection: Connection) -> list[ProjectRows]:
    statements = compile_statements(inspect(connection))
    made = [create_project(connection, ENTITIES, seed) for seed in range(1, _MODELS + 1)]
    return [load_project(connection, project, statements) for project in made]


def _apart(rows: ProjectRows, number: int) -> _Project:
    """A copy with ids of its own, and handles as they are drawn for a project that has none."""

    def own(entity: str) -> str:
        return f"{number:08x}{entity[8:]}"

    entities = {name: [(own(row[0]), *row[1:]) for row in table] for name, table in rows.entities.items()}
    handles = {
        row[0]: handle(kind.handle, place)
        for kind in KINDS.entities
        for place, row in enumerate(entities.get(kind.name, ()), 1)
    }
    project = own(rows.project_id)
    copied = replace(
        rows,
        project_id=project,
        project=(project, *rows.project[1:]),
        entities=entities,
        edges=[(own(e), own(src), a, own(dst), b, rel) for e, src, a, dst, b, rel in rows.edges],
    )
    return _Project(copied, handles | {project: handle("PRJ", number + 1)})

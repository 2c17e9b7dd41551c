"""Deciding what a bundle shows: the first of the two pure steps from rows to text.

A draft names entities by id only; handles are looked up or drawn by the caller before ``foreword.bundle``
writes it out. The same rows in any order give the same draft.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import chain, zip_longest
from operator import itemgetter
from typing import NamedTuple
from zoneinfo import ZoneInfo

from foreword.buckets import Buckets, buckets
from foreword.dates import LocalDate, local_dates, next_midnight
from foreword.derive import Neighbourhood, Surroundings, Work, work_of
from foreword.edges import WAITING, waits
from foreword.graph import Graph, Ranked, Snapshot, best, coverage, graph_of, snapshot
from foreword.kinds import BEST, HAPPENED, KINDS, LATEST, Kind, Registry
from foreword.light import MOST_HANDLES
from foreword.questions import Asked, Standing, asked, candidates
from foreword.rows import ProjectRows, Row
from foreword.scoring import best_by_link, ranked, slice_of
from foreword.selection import VIEW_LINES, VIEW_WORTH, general_order

ENTITIES = 200
"""Entities of which there may be a line, if the project has as many: more lines than LARGEST_BUDGET holds."""

RECENT = 10
"""Recently changed entities listed; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a bundle will show, before handles are known.

    Attributes:
        rows, kinds, as_of, zone: what it was drawn from.
        graph, buckets, work, coverage, snapshot: the project's structure.
        slices: ids of the entities shown, by kind, best first.
        recent: ids of the entities changed last, latest first.
        scores: of every entity of which there may be a line.
        questions: what people ask, and the facts that answer it.
        views: what seeing an entity's line is worth to who asks what nobody listed: the best and the latest of
            each kind. ``view``: ids of more entities, in the order in which their lines are admitted after all
            else.
        sizes: by kind, of the buckets that its counts name. ``states``: by kind, how many are in each state.
        by_id: kind and light row of everything shown or named, the project's own included.
        near: the neighbourhoods of everything shown.
        context_document: the id of the project's context document, if any.
    """

    rows: ProjectRows
    kinds: Registry
    as_of: date
    zone: ZoneInfo
    graph: Graph
    buckets: Buckets
    work: Work
    coverage: Mapping[str, Mapping[str, int]]
    snapshot: Snapshot
    slices: Mapping[str, Sequence[str]]
    recent: Sequence[str]
    scores: Mapping[str, int]
    questions: Sequence[Asked]
    views: Mapping[str, float]
    view: Sequence[str]
    sizes: Mapping[str, Mapping[str, int]]
    states: Mapping[str, Mapping[str, int]]
    by_id: Mapping[str, tuple[Kind, Row]]
    near: Mapping[str, Neighbourhood]
    context_document: str | None

    @property
    def named(self) -> list[tuple[str, str]]:
        """(kind, id) of everything whose handle the text needs, in the order in which handles are drawn."""
        return in_order_of_creation(self.by_id)

    @property
    def local_date(self) -> LocalDate:
        """How stored times read in the project's zone."""
        return local_dates(self.zone)

    @property
    def since(self) -> date:
        """The day before the as-of date: what was touched from then on counts as changed."""
        return self.as_of - timedelta(days=1) if self.as_of > date.min else self.as_of

    @property
    def valid_until(self) -> datetime:
        """The first instant at which the as-of date is no longer true, in UTC."""
        return next_midnight(self.as_of, self.zone)


def in_order_of_creation(by_id: Mapping[str, tuple[Kind, Row]]) -> list[tuple[str, str]]:
    """(kind, id) of each, so that those that are first shown together are numbered as they came about."""
    born = []
    for entity, (kind, row) in by_id.items():
        created = kind.at.get("created_at")
        born.append((kind.name, str(row[created]) if created is not None else "", entity))
    return [(kind, entity) for kind, _, entity in sorted(born)]


class Sorted(NamedTuple):
    """A project's rows, each id once, and what bundles and briefs both ask of them first."""

    rows: ProjectRows
    kinds: Registry
    graph: Graph
    work: Work
    buckets: Buckets


def sorted_out(rows: ProjectRows, *, as_of: date, zone: ZoneInfo, kinds: Registry = KINDS) -> Sorted:
    """Sort a project's rows as of a local date: once, for bundles and briefs alike."""
    graph = graph_of(rows, kinds)
    rows = _once(rows, graph, kinds)
    work = work_of(graph)
    found = buckets(
        rows.entities,
        waits(key for (rel, *_), keys in graph.groups.items() if rel in WAITING for key in keys),
        work,
        as_of=as_of,
        local_date=local_dates(zone),
        kinds=kinds,
    )
    return Sorted(rows, kinds, graph, work, found)


def select(rows: ProjectRows, *, as_of: date, zone: ZoneInfo, kinds: Registry = KINDS) -> Draft:
    """Decide what a project's bundle shows as of a local date."""
    rows, _, graph, work, found = sorted_out(rows, as_of=as_of, zone=zone, kinds=kinds)
    ranks: dict[str, list[Ranked]] = {}
    rank_of: dict[str, Ranked] = {}
    linked: dict[str, list[Ranked]] = {}
    view: dict[str, list[str]] = {}
    for kind in kinds.entities:  # all of it kind by kind: what has just been looked at is looked at fastest
        group = ranks[kind.name] = ranked(kind, rows.entities.get(kind.name, ()), found)
        rank_of.update(zip(map(itemgetter(2), group), group, strict=True))
        linked[kind.name], others = best_by_link(group, graph.direct, ENTITIES)
        view[kind.name] = slice_of(kind, linked[kind.name], others, ENTITIES)
    slices = {kind.name: view[kind.name][: kind.shown] for kind in kinds.entities}
    snap = snapshot(rows.project_id, graph, linked.values(), rank_of)
    recent = _recent(found.changed, rank_of)
    context_document = _context_document(graph, rows.project_id)
    questions = asked(Standing(rows, graph, found, kinds, lambda entity: rank_of[entity][0]))
    views = _views(kinds, rows, ranks, view, found)
    order = general_order(view, {entity: rank_of[entity][0] for group in view.values() for entity in group})
    lines = _enough(candidates(questions, graph) | views.keys(), order)
    shown = {i for group in slices.values() for i in group} | {i for i, _ in snap.nodes[1:]} | lines
    near = _neighbourhoods(rows, graph, found, work, shown, kinds)
    mentioned = {i for entity, n in near.items() for i in mentions(kinds.by_name[graph.kind_of[entity]], n)}
    wanted = shown | mentioned | set(recent)
    if context_document is not None:
        wanted.add(context_document)
    by_id = rows_by_id(rows, kinds, wanted)
    return Draft(
        rows=rows,
        kinds=kinds,
        as_of=as_of,
        zone=zone,
        graph=graph,
        buckets=found,
        work=work,
        coverage=coverage(rows, graph, kinds),
        snapshot=snap,
        slices=slices,
        recent=recent,
        scores={entity: rank_of[entity][0] for entity in shown},
        questions=questions,
        views=views,
        view=[entity for entity in order if entity in lines],
        sizes=_sizes(kinds, graph, found),
        states=_states(kinds, rows),
        by_id=by_id,
        near=near,
        context_document=context_document,
    )


def completed(draft: Draft, light: Mapping[str, Row]) -> Draft:
    """The draft with whole light rows for what it shows, where it was selected from rows that held only the
    fields of ``Kind.ranking``. ``light`` has them by id.
    """
    by_id = {i: (kind, light.get(i, row)) for i, (kind, row) in draft.by_id.items()}
    return replace(draft, by_id=by_id)


def _once(rows: ProjectRows, graph: Graph, kinds: Registry) -> ProjectRows:
    """Each id in one row only. Nothing keeps two tables from holding one id, nor from holding the project's:
    the project wins, then the kind declared first, as in ``graph_of``.
    """
    tables = {kind.name: rows.entities.get(kind.name, ()) for kind in kinds.entities}
    if sum(map(len, tables.values())) < len(graph.kind_of):
        return rows
    kind_of = graph.kind_of
    once = {
        name: [row for row in table if kind_of[row[0]] == name]
        for name, table in tables.items()
        if name in rows.entities
    }
    return replace(rows, entities=once)


def _enough(entities: AbstractSet[str], order: Sequence[str]) -> set[str]:
    """``entities``, and the first of ``order`` until there are ENTITIES."""
    more = [entity for entity in order if entity not in entities]
    return {*entities, *more[: max(ENTITIES - len(entities), 0)]}


_NONE: Mapping[str, int] = {}


def _sizes(kinds: Registry, graph: Graph, found: Buckets) -> dict[str, dict[str, int]]:
    kind_of = graph.kind_of.__getitem__
    buckets = {bucket for kind in kinds.entities for bucket, _ in kind.tally} - {"open"}
    counted: dict[str, Mapping[str, int]] = {
        bucket: Counter(map(kind_of, entities)) for bucket in buckets if (entities := found.of(bucket))
    }
    counted["open"] = {name: len(entities) for name, entities in found.open_of.items()}
    return {
        kind.name: {bucket: counted.get(bucket, _NONE).get(kind.name, 0) for bucket, _ in kind.tally}
        for kind in kinds.entities
    }


def _states(kinds: Registry, rows: ProjectRows) -> dict[str, dict[str, int]]:
    return {
        kind.name: Counter(filter(None, map(itemgetter(at), rows.entities.get(kind.name, ()))))
        for kind in kinds.entities
        if (at := kind.at.get("state_key")) is not None
    }


def _views(
    kinds: Registry,
    rows: ProjectRows,
    ranks: Mapping[str, Sequence[Ranked]],
    view: Mapping[str, Sequence[str]],
    found: Buckets,
) -> dict[str, float]:
    """What an entity's line is worth to who asks what nobody listed: the first few of each of the views that
    its kind declares, the first of every view before the second of any, the latest before the best: of long lists
    people ask for the end. A view's own size is one of its facts.
    """
    declared = [(order, kind) for kind in kinds.entities for order in kind.views]
    lists = [
        view[kind.name][:VIEW_LINES] if order == BEST else _first_of(order, kind, rows, ranks[kind.name], found)
        for order, kind in sorted(declared, key=lambda view: view[0] not in {LATEST, HAPPENED})
    ]
    inward = chain.from_iterable(zip_longest(*lists))
    return {entity: VIEW_WORTH / (VIEW_LINES + 1) for entity in inward if entity is not None}


def _first_of(order: str, kind: Kind, rows: ProjectRows, entities: Sequence[Ranked], found: Buckets) -> list[str]:
    """The first few entities of a view."""
    if order == HAPPENED:
        at = kind.at[kind.happened]
        dated = [row for row in rows.entities.get(kind.name, ()) if row[at] is not None]
        entities = [(0, row[at], row[0], "") for row in dated if row[at][:1].isdigit()]  # infinity is no date
    elif order != LATEST:
        bucket = found.of(order)
        entities = [entity for entity in entities if entity[2] in bucket]
    return [entity[2] for entity in best(entities, VIEW_LINES)]


def _recent(changed: frozenset[str], rank_of: Mapping[str, Ranked]) -> list[str]:
    touched = [(0, *rank_of[entity][1:]) for entity in changed]
    return [entity[2] for entity in best(touched, RECENT)]


def _context_document(graph: Graph, root: str) -> str | None:
    documents = [
        dst if src == root else src
        for rel, src, dst in graph.around
        if rel == "has_context_document"
        and root in (src, dst)
        and "document" in (graph.kind_of[src], graph.kind_of[dst])
    ]
    return min(documents, default=None)


def _neighbourhoods(
    rows: ProjectRows, graph: Graph, found: Buckets, work: Work, shown: set[str], kinds: Registry
) -> dict[str, Neighbourhood]:
    around = Surroundings(graph, shown, done_tasks(rows, kinds), work, found)
    return {entity: around.of(entity) for entity in shown}


DONE = frozenset({"done", "completed"})
"""States of a task that count as progress. A cancelled one is finished, and no progress."""


def done_tasks(rows: ProjectRows, kinds: Registry) -> frozenset[str]:
    """The tasks that are done."""
    task = kinds.by_name.get("task")
    if task is None or "state_key" not in task.at:
        return frozenset()
    at = task.at["state_key"]
    return frozenset(row[0] for row in rows.entities.get(task.name, ()) if row[at] in DONE)


def mentions(kind: Kind, near: Neighbourhood) -> set[str]:
    """Other entities that the line of an entity of ``kind`` names: the first few of each list."""
    found = set(near.open_waits[:MOST_HANDLES])
    for field in kind.derived:
        if field.rule == "links" and field.kind in near.links:
            found.update(sorted(near.links[field.kind])[:MOST_HANDLES])
    return found


def rows_by_id(rows: ProjectRows, kinds: Registry, wanted: set[str]) -> dict[str, tuple[Kind, Row]]:
    """Kind and row of each wanted id that is there, and the project's own."""
    by_id = {
        row[0]: (kind, row)
        for kind in reversed(kinds.entities)
        for row in rows.entities.get(kind.name, ())
        if row[0] in wanted
    }
    by_id[rows.project_id] = (kinds.project, rows.project)
    return by_id

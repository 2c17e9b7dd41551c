"""The focus bundle: one entity in its project, what it is related to, and what those are.

Built on demand over a project's draft, with the same records, lines and budgets.
"""

import collections
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foreword.bundle import graph_json, header, lights_of
from foreword.derive import Neighbourhood, Surroundings
from foreword.draft import Draft, done_tasks, in_order_of_creation, mentions, rows_by_id
from foreword.errors import UnknownEntity
from foreword.graph import Graph, best
from foreword.kinds import PROJECT, Kind
from foreword.light import FREE_TEXT, Record, full_record, label, parts_of
from foreword.lines import Line
from foreword.rows import Row
from foreword.scoring import ranked
from foreword.sheets import said_of
from foreword.tokens import Counter
from foreword.writer import Writer

MOST_OF_A_RELATION = 12
"""Relationships of one relation and direction listed; all are counted."""

MOST_LINKED = 30
"""Linked entities described; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FocusDraft:
    """What a focus bundle will show.

    Attributes:
        base: the project's draft.
        entity: the id in focus.
        relations: (relation, "out" or "in", other id) in canonical form, sorted, the project's own included.
        linked: the linked entities that are described, best first.
        linked_total: how many there are.
        near, by_id: of the entity and of those described.
        named: (kind, id) of every entity whose handle is needed.
    """

    base: Draft
    entity: str
    relations: Sequence[tuple[str, str, str]]
    linked: Sequence[str]
    linked_total: int
    near: Mapping[str, Neighbourhood]
    by_id: Mapping[str, tuple[Kind, Row]]
    named: Sequence[tuple[str, str]]


def select_focus(base: Draft, entity: str) -> FocusDraft:
    """Decide what the focus bundle of a live entity shows.

    Raises:
        UnknownEntity: the project has no such live entity.
    """
    graph, rows, kinds = base.graph, base.rows, base.kinds
    if graph.kind_of.get(entity, PROJECT) == PROJECT:
        raise UnknownEntity(f"project {rows.project_id} has no live entity {entity}")
    relations = _relations(graph, entity)
    others = {other for *_, other in relations} - {rows.project_id}
    scores = [
        rank
        for kind in kinds.entities
        for rank in ranked(kind, [r for r in rows.entities.get(kind.name, ()) if r[0] in others], base.buckets)
    ]
    linked = [rank[2] for rank in best(scores, MOST_LINKED)]
    shown = {entity, *linked}
    surroundings = Surroundings(graph, shown, done_tasks(rows, kinds), base.work, base.buckets)
    near = {i: surroundings.of(i) for i in shown}
    wanted = shown | {other for *_, other in _listed(relations)}
    wanted |= {i for each, n in near.items() for i in mentions(kinds.by_name[graph.kind_of[each]], n)}
    by_id = rows_by_id(rows, kinds, wanted)
    return FocusDraft(
        base=base,
        entity=entity,
        relations=relations,
        linked=linked,
        linked_total=len(others),
        near=near,
        by_id=by_id,
        named=in_order_of_creation(by_id),
    )


def _relations(graph: Graph, entity: str) -> list[tuple[str, str, str]]:
    outward = [(rel, "out", dst) for rel, src, dst in graph.edges if src == entity]
    inward = [(rel, "in", src) for rel, src, dst in graph.edges if dst == entity]
    return sorted(outward + inward)


@dataclass(frozen=True, slots=True, kw_only=True)
class FocusContent:
    """A rendered focus bundle: ``data`` is JSON-ready, ``lines`` are in order of rank."""

    data: Mapping[str, Any]
    lines: Sequence[Line]
    always: int


def render_focus(
    draft: FocusDraft, handles: Mapping[str, str], count: Counter, *, with_graph: bool = False
) -> FocusContent:
    """Write a focus draft out. ``handles`` must hold every id of ``draft.named``."""
    lights = {i: _light(draft, i) for i in draft.near}
    data: dict[str, Any] = {
        "project_id": draft.base.rows.project_id,
        "as_of": draft.base.as_of.isoformat(),
        "zone": draft.base.zone.key,
        "header": header(draft.base),
        "focus": _entity(draft, draft.entity, lights, handles),
        "relationships": _relationships(draft, handles),
        "linked": {
            "total": draft.linked_total,
            "entities": [_entity(draft, i, lights, handles) for i in draft.linked],
        },
    }
    if with_graph:
        data["graph"] = graph_json(draft.base, lights_of(draft.base))
    lines, always = _lines(draft, lights, handles, count)
    return FocusContent(data=data, lines=lines, always=always)


def _light(draft: FocusDraft, entity: str) -> Record:
    kind, row = draft.by_id[entity]
    direct = entity in draft.base.graph.direct
    return full_record(kind, row, draft.base.local_date, draft.near[entity], direct=direct)


def _entity(draft: FocusDraft, entity: str, lights: Mapping[str, Record], handles: Mapping[str, str]) -> Record:
    return {"kind": draft.by_id[entity][0].name, "handle": handles[entity], **lights[entity]}


def _relationships(draft: FocusDraft, handles: Mapping[str, str]) -> Record:
    by_relation: dict[str, int] = {}
    for rel, *_ in draft.relations:
        by_relation[rel] = by_relation.get(rel, 0) + 1
    return {
        "total": len(draft.relations),
        "by_relation": by_relation,
        "shown": [
            {
                "rel": rel,
                "direction": direction,
                "id": other,
                "handle": handles[other],
                "kind": draft.by_id[other][0].name,
            }
            for rel, direction, other in _listed(draft.relations)
        ],
    }


_RELATIONS, _LINKED, _LAST = 1 << 20, 1 << 30, 1 << 62


def _lines(
    draft: FocusDraft, lights: Mapping[str, Record], handles: Mapping[str, str], count: Counter
) -> tuple[list[Line], int]:
    write = Writer(count)
    project = str(header(draft.base).get("name", ""))
    always = [
        write.named(0, "# project ", project, limit=36),
        _entity_line(draft, draft.entity, 2, lights, handles, write),
        write.plain(_RELATIONS, f"## relations: {len(draft.relations)}"),
        write.plain(_LINKED, f"## linked entities: {draft.linked_total}"),
        write.plain(_LAST, f"as of {draft.base.as_of.isoformat()}"),
    ]
    lines = [*_texts(draft, lights, write), *_relation_lines(draft, handles, write)]
    lines += [_entity_line(draft, i, _LINKED + n, lights, handles, write) for n, i in enumerate(draft.linked, 1)]
    return [*always, *lines], len(always)


def _entity_line(
    draft: FocusDraft,
    entity: str,
    place: int,
    lights: Mapping[str, Record],
    handles: Mapping[str, str],
    write: Writer,
) -> Line:
    kind, light = draft.by_id[entity][0], lights[entity]
    said = said_of(draft.base, entity, draft.near[entity])
    parts = write.parts(lambda width: parts_of(kind, light, said, handles, width))
    after = "".join(part.text for part, _ in parts)
    return write.named(place, f"{kind.name} {handles[entity]} ", label(kind, light), after)


def _texts(draft: FocusDraft, lights: Mapping[str, Record], write: Writer) -> list[Line]:
    """The free text of the entity in focus, beside its title."""
    kind, light = draft.by_id[draft.entity][0], lights[draft.entity]
    texts = [f.name for f in kind.light if (f.cut or 0) > FREE_TEXT and f.name != kind.label and light.get(f.name)]
    return [write.named(3 + n, f"{name} ", str(light[name])) for n, name in enumerate(texts)]


def _relation_lines(draft: FocusDraft, handles: Mapping[str, str], write: Writer) -> list[Line]:
    """One line a relation and direction: how many, and handles at the other ends."""
    to = {"out": "to", "in": "from"}
    totals = collections.Counter((rel, direction) for rel, direction, _ in draft.relations)
    named: dict[tuple[str, str], list[str]] = {each: [] for each in totals}
    for rel, direction, other in _listed(draft.relations):
        named[rel, direction].append(handles[other])
    lines = []
    for n, ((rel, direction), found) in enumerate(named.items(), 1):
        after = f" {to[direction]} {totals[rel, direction]}: {' '.join(found)}"
        lines.append(write.named(_RELATIONS + n, "relation ", rel, after))
    return lines


def _listed(relations: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The first few relationships of each relation and direction: none is left out because of another."""
    seen: collections.Counter[tuple[str, str]] = collections.Counter()
    listed = []
    for rel, direction, other in relations:
        seen[rel, direction] += 1
        if seen[rel, direction] <= MOST_OF_A_RELATION:
            listed.append((rel, direction, other))
    return listed

"""The bundle of a project: everything precomputed that a chat needs before the first message.

Two pure steps, because handles are stored and drawn between them::

    draft = select(rows, as_of=..., zone=...)     what will be shown
    handles = ...draft.named...                   looked up or drawn by the caller, under the project's lock
    content = render(draft, handles, count)       header, snapshot, slices, coverage, lines

The same rows in any order and the same handles give the same content, to the byte.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foreword.draft import Draft
from foreword.graph import MAX_DEPTH
from foreword.kinds import PROJECT, Kind
from foreword.light import Record, full_record, label, record
from foreword.lines import Line
from foreword.page import page
from foreword.tokens import Counter


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A rendered bundle: ``data`` is JSON-ready, ``lines`` are in order of rank (``foreword.lines``).

    ``always`` lines are printed whatever the budget; ``overview`` is the project's line in an actor's overview.
    """

    data: Mapping[str, Any]
    lines: Sequence[Line]
    always: int
    overview: Line
    relevance: int


def render(draft: Draft, handles: Mapping[str, str], count: Counter) -> Content:
    """Write a draft out. ``handles`` must hold every id of ``draft.named``."""
    lights = lights_of(draft)
    data: dict[str, Any] = {
        "project_id": draft.rows.project_id,
        "as_of": draft.as_of.isoformat(),
        "zone": draft.zone.key,
        "header": header(draft),
        "graph": graph_json(draft, lights),
        "slices": {
            draft.kinds.by_name[kind].plural: [{"handle": handles[i], **lights[i]} for i in ids]
            for kind, ids in draft.slices.items()
            if kind not in draft.rows.absent
        },
        "coverage": coverage_json(draft),
        "recent": _recent_json(draft, handles),
        "handles": {i: handles[i] for i in sorted(draft.by_id)},
    }
    written = page(draft, lights, handles, count)
    data["answers"] = [
        {"question": asked.name, "asks": asked.words, "facts": asked.size, "at": written.answers[asked.name]}
        for asked in written.questions
    ]
    return Content(
        data=data,
        lines=written.lines,
        always=written.always,
        overview=written.overview,
        relevance=relevance(draft),
    )


def lights_of(draft: Draft) -> dict[str, Record]:
    """The light records of everything a draft shows, by id."""
    local_date = draft.local_date
    lights = {}
    for entity, near in draft.near.items():
        kind, row = draft.by_id[entity]
        lights[entity] = full_record(kind, row, local_date, near, direct=entity in draft.graph.direct)
    return lights


def header(draft: Draft) -> Record:
    """The project's header fields, with counts for every kind and the context document."""
    light = record(draft.kinds.project, draft.rows.project, draft.local_date)
    light.pop("timezone", None)
    if draft.context_document is not None:
        light["context_document_id"] = draft.context_document
        kind, row = draft.by_id[draft.context_document]
        light["context_document_title"] = label(kind, record(kind, row, draft.local_date))
    light["entity_counts"] = {plural: counts["total"] for plural, counts in draft.coverage.items()}
    return light


def graph_json(draft: Draft, lights: Mapping[str, Record]) -> Record:
    """The graph snapshot in the shape of the specification's light schema."""
    snap = draft.snapshot
    kind_of = draft.graph.kind_of
    project = record(draft.kinds.project, draft.rows.project, draft.local_date)
    return {
        "root_id": draft.rows.project_id,
        "root_kind": PROJECT,
        "max_depth": MAX_DEPTH,
        "nodes": [
            _node(draft.kinds.by_name[kind], project if kind == PROJECT else lights[entity])
            for entity, kind in snap.nodes
        ],
        "edges": [
            {
                "id": edge[0],
                "src_id": edge[1],
                "src_kind": kind_of[edge[1]],
                "dst_id": edge[3],
                "dst_kind": kind_of[edge[3]],
                "rel": edge[5],
            }
            for edge in snap.edges
        ],
        "coverage": draft.coverage,
        "omitted": {draft.kinds.by_name[kind].plural: n for kind, n in snap.omitted.items()},
        "capped_by": list(snap.capped_by),
    }


def _node(kind: Kind, light: Record) -> Record:
    return {
        "id": light["id"],
        "kind": kind.name,
        "name": label(kind, light),
        "state_key": light.get("state_key"),
        "type_key": light.get("type_key"),
        "direct_edge": light.get("direct_edge", False),
        "last_updated": light.get("updated_at") or light.get(kind.touched) or light.get("created_at"),
    }


def coverage_json(draft: Draft) -> Record:
    """Coverage of every kind, the edges left out by reason, and the kinds the database has no table for."""
    graph = draft.graph
    return {
        "kinds": draft.coverage,
        "edges": {
            "live": len(graph.edges),
            "dangling": graph.dangling,
            "foreign": graph.foreign,
            "duplicate": graph.duplicate,
            "self_loops": graph.loops,
        },
        "absent": list(draft.rows.absent),
    }


def _recent_json(draft: Draft, handles: Mapping[str, str]) -> Record:
    return {
        "since": draft.since.isoformat(),
        "total": len(draft.buckets.changed),
        "entities": [_changed(draft, i, handles[i]) for i in draft.recent],
    }


def _changed(draft: Draft, entity: str, handle: str) -> Record:
    kind, row = draft.by_id[entity]
    light = record(kind, row, draft.local_date)
    return {
        "id": entity,
        "handle": handle,
        "kind": kind.name,
        "name": label(kind, light),
        "state_key": light.get("state_key"),
        "touched": light.get(kind.touched) or light.get("created_at"),
    }


_RELEVANCE = {"active": 3000, "planning": 2000, "paused": 1000}


def relevance(draft: Draft) -> int:
    """How far up a project stands in an overview: by state, then by what presses."""
    state = record(draft.kinds.project, draft.rows.project, draft.local_date).get("state_key")
    if draft.kinds.project.is_finished(state):
        return 0
    pressing = len(draft.buckets.overdue) + len(draft.buckets.blocked) + len(draft.buckets.today)
    return _RELEVANCE.get(str(state), 1500) + min(pressing, 499)

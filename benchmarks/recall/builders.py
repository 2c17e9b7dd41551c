"""Texts of one project at a budget, made without seeing any question: ours, and simpler ways to do it."""

import json
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from zoneinfo import ZoneInfo, available_timezones

from foreword.bundle import Content, graph_json, lights_of, render
from foreword.derive import Surroundings
from foreword.draft import Draft, done_tasks, rows_by_id, select
from foreword.handles import handle, number_of
from foreword.kinds import KINDS, Registry
from foreword.light import full_record, label, parts_of, record
from foreword.lines import fit
from foreword.rows import ProjectRows
from foreword.scoring import ranked
from foreword.sheets import said_of
from foreword.tokens import count


@dataclass(frozen=True)
class Project:
    """A project's rows, and what is made of them once for all builders.

    ``known`` are handles that were drawn before: whoever has one keeps it.
    """

    rows: ProjectRows
    as_of: date
    kinds: Registry = KINDS
    known: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def zone(self) -> ZoneInfo:
        """The project's own, else UTC."""
        name = self.rows.project[self.kinds.project.at["timezone"]]
        return ZoneInfo(name if name in available_timezones() else "UTC")

    @cached_property
    def draft(self) -> Draft:
        """What the product would show."""
        return select(self.rows, as_of=self.as_of, zone=self.zone, kinds=self.kinds)

    @cached_property
    def handles(self) -> Mapping[str, str]:
        """A handle for every entity: the one that is known, else the next number of its kind, as they came about.

        Those of entities that are gone stay, because no number is given twice.
        """
        found = {**self.known, self.rows.project_id: handle(self.kinds.project.handle, 1)}
        last: dict[str, int] = {}
        for drawn in found.values():
            letters, number = drawn.rstrip("0123456789"), number_of(drawn)
            last[letters] = max(last.get(letters, 0), number)
        for kind in self.kinds.entities:
            at = kind.at["created_at"]
            new = [row for row in self.rows.entities.get(kind.name, ()) if row[0] not in found]
            for number, row in enumerate(
                sorted(new, key=lambda r: (str(r[at]), r[0])), last.get(kind.handle, 0) + 1
            ):
                found[row[0]] = handle(kind.handle, number)
        return found

    @cached_property
    def content(self) -> Content:
        """The product's bundle."""
        return render(self.draft, self.handles, count)

    @cached_property
    def lines(self) -> Mapping[str, str]:
        """The product's whole line of every entity, beside its kind's name."""
        draft, graph = self.draft, self.draft.graph
        ids = set(graph.kind_of) - {self.rows.project_id}
        by_id = rows_by_id(self.rows, self.kinds, ids)
        around = Surroundings(graph, ids, done_tasks(self.rows, self.kinds), draft.work, draft.buckets)
        found = {}
        for entity in sorted(ids):
            kind, row = by_id[entity]
            near = around.of(entity)
            light = full_record(kind, row, draft.local_date, near, direct=entity in draft.graph.direct)
            parts = parts_of(kind, light, said_of(draft, entity, near), self.handles)
            title = label(kind, light).replace('"', "'")
            found[entity] = f'{kind.name} {self.handles[entity]} "{title}"{"".join(part.text for part in parts)}'
        return found

    @cached_property
    def touched(self) -> Mapping[str, str]:
        """When each entity last changed."""
        return {
            row[0]: str(row[kind.at[kind.touched]] or "")
            for kind in self.kinds.entities
            for row in self.rows.entities.get(kind.name, ())
        }

    @cached_property
    def nearest(self) -> Mapping[str, int]:
        """Steps from the project, over live edges, of whatever is reached."""
        neighbours: dict[str, list[str]] = {}
        for _, src, dst in self.draft.graph.edges:
            neighbours.setdefault(src, []).append(dst)
            neighbours.setdefault(dst, []).append(src)
        depth = {self.rows.project_id: 0}
        wave, steps = {self.rows.project_id}, 0
        while wave:
            steps += 1
            wave = {other for each in wave for other in neighbours.get(each, ())} - depth.keys()
            depth.update(dict.fromkeys(wave, steps))
        return depth


def ours(project: Project, budget: int) -> str:
    """The product's text."""
    content = project.content
    return fit(content.lines, content.always, budget).text


def _head(project: Project) -> str:
    kind = project.kinds.project
    light = record(kind, project.rows.project, project.draft.local_date)
    parts = [f"{key} {value}" for key, value in light.items() if key not in {"id", "name", "description"}]
    return f'# project "{light.get("name", "")}"\n{", ".join(parts)}\n'


def _listed(project: Project, order: Iterable[str], budget: int, head: str = "") -> str:
    """Whole lines in an order, until one does not fit."""
    text = head or _head(project)
    used = count(text)
    for entity in order:
        line = project.lines[entity] + "\n"
        used += count(line)
        if used > budget:
            break
        text += line
    return text


def random_lines(project: Project, budget: int) -> str:
    """Lines in any order."""
    ids = sorted(project.lines)
    random.Random(project.rows.project_id).shuffle(ids)
    return _listed(project, ids, budget)


def most_recent(project: Project, budget: int) -> str:
    """The most recently updated first."""
    return _listed(project, sorted(project.lines, key=lambda i: project.touched[i], reverse=True), budget)


_FAR = 1 << 20


def breadth_first(project: Project, budget: int) -> str:
    """The nearest to the project first, then by id."""
    return _listed(project, sorted(project.lines, key=lambda i: (project.nearest.get(i, _FAR), i)), budget)


def breadth_first_scored(project: Project, budget: int, head: str = "") -> str:
    """The nearest to the project first, the better scored first among them."""
    scores = {
        rank[2]: rank[0]
        for kind in project.kinds.entities
        for rank in ranked(kind, project.rows.entities.get(kind.name, ()), project.draft.buckets)
    }
    order = sorted(project.lines, key=lambda i: (project.nearest.get(i, _FAR), -scores[i], i))
    return _listed(project, order, budget, head)


def counts_and_breadth_first(project: Project, budget: int) -> str:
    """What our text has at any budget, its counts above all, then lines that we did not choose."""
    content = project.content
    head = fit(content.lines[: content.always], content.always, budget).text
    return breadth_first_scored(project, budget, f"{head}## all\n")


def flat_json(project: Project, budget: int) -> str:
    """Light records of everything as JSON lines, in the order of the tables."""
    text = json.dumps(record(project.kinds.project, project.rows.project, project.draft.local_date)) + "\n"
    used = count(text)
    for kind in project.kinds.entities:
        for row in project.rows.entities.get(kind.name, ()):
            line = json.dumps(record(kind, row, project.draft.local_date), ensure_ascii=False) + "\n"
            used += count(line)
            if used > budget:
                return text
            text += line
    return text


def graph_document(project: Project, budget: int) -> str:
    """The graph snapshot as one JSON document at its caps. What does not fit is no JSON, and so nothing."""
    text = json.dumps(graph_json(project.draft, lights_of(project.draft)), ensure_ascii=False, default=dict)
    return text if count(text) <= budget else ""


Builder = Callable[[Project, int], str]

YARDSTICKS: Mapping[str, Builder] = {
    "graph JSON": graph_document,
    "flat JSON": flat_json,
    "random lines": random_lines,
    "breadth first": breadth_first,
    "most recent": most_recent,
    "breadth first, scored": breadth_first_scored,
}

ABLATIONS: Mapping[str, Builder] = {"our counts + breadth first": counts_and_breadth_first}
"""Parts of the product with the rest done simply. No yardsticks: they hold what is ours."""

OURS = "foreword"

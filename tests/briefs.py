"""Briefs of invented accounts for property tests: projects told apart, handles drawn, one day after another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC as ZULU
from datetime import date, datetime, time
from zoneinfo import ZoneInfo

from hypothesis import strategies as st
from strategies import PROJECT_ID, TODAY, UTC, a_project, a_row, a_task, projects, uid

from foreword.brief import About, Document, Part, compose, known, part, window_of
from foreword.digest import Before, Digest, Window, digest
from foreword.edges import Edge
from foreword.handles import handle
from foreword.kinds import KINDS
from foreword.rows import ProjectRows, Row

NOON = datetime.combine(TODAY, time(12), ZULU)
"""When briefs of TODAY are made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A brief that was made: the document, the parts that it is composed from, and what the next compares with."""

    at: datetime
    document: Document
    parts: Sequence[Part]
    known: Before


def brief(
    *rows: ProjectRows,
    now: datetime = NOON,
    zone: ZoneInfo = UTC,
    previous: Made | None = None,
    name: str | None = "Asta",
    gone: Sequence[str] = (),
) -> Made:
    """The brief of projects at an instant, after the previous one if there was any."""
    day = now.astimezone(zone).date()
    about = About(
        user=uid("user"),
        name=name,
        date=day,
        zone=zone.key,
        window=window_of(now, day, previous.at if previous else None, previous.known.date if previous else None),
        before=previous.known if previous else None,
    )
    parts = [part_of(each, about, handle("PRJ", place)) for place, each in enumerate(rows, 1)]
    document = compose(about, parts, gone)
    return Made(at=now, document=document, parts=parts, known=known(document, parts))


def part_of(rows: ProjectRows, about: About, project: str = "PRJ1") -> Part:
    """A project's part."""
    zone = ZoneInfo(about.zone)
    found = digest(rows, as_of=about.date, zone=zone, window=about.window, before=about.before)
    return part(found, {**handles_of(rows), rows.project_id: project})


def digest_of(
    rows: ProjectRows,
    *,
    zone: ZoneInfo = UTC,
    as_of: date = TODAY,
    window: Window | None = None,
    before: Before | None = None,
) -> Digest:
    """A project's digest of TODAY; recent is the last day."""
    return digest(rows, as_of=as_of, zone=zone, window=window or window_of(NOON, TODAY, None, None), before=before)


def ids_of(found: Digest, name: str) -> list[str]:
    """The ids that a list shows."""
    return [item["id"] for _, item in found.lists[name].items]


def handles_of(rows: ProjectRows) -> dict[str, str]:
    """Handles counted per kind, in the order of the ids."""
    return {
        row[0]: handle(kind.handle, number)
        for kind in KINDS.entities
        for number, row in enumerate(sorted(rows.entities.get(kind.name, ()), key=lambda row: str(row[0])), 1)
    }


def apart(rows: ProjectRows, number: int) -> ProjectRows:
    """The same project with ids of its own, so that an account can hold several."""

    def own(entity: str) -> str:
        return f"{number:08x}{entity[8:]}"

    def own_row(row: Row) -> Row:
        return (own(row[0]), *row[1:])

    def own_edge(edge: Edge) -> Edge:
        return (own(edge[0]), own(edge[1]), edge[2], own(edge[3]), edge[4], edge[5])

    return replace(
        rows,
        project_id=own(rows.project_id),
        project=own_row(rows.project),
        entities={name: [own_row(row) for row in table] for name, table in rows.entities.items()},
        edges=[own_edge(edge) for edge in rows.edges],
        elsewhere=frozenset(map(own, rows.elsewhere)),
    )


def as_one(account: Sequence[ProjectRows]) -> ProjectRows:
    """All entities of several projects as if they were one's: the links between them as they were."""
    named = {rows.project_id: PROJECT_ID for rows in account}
    entities = {
        kind.name: [row for rows in account for row in rows.entities.get(kind.name, ())] for kind in KINDS.entities
    }
    edges = [
        (number, named.get(src, src), a, named.get(dst, dst), b, rel)
        for rows in account
        for number, src, a, dst, b, rel in rows.edges
    ]
    return replace(account[0], project_id=PROJECT_ID, project=account[0].project, entities=entities, edges=edges)


accounts = st.lists(projects(most=4, most_edges=12), min_size=1, max_size=4).map(
    lambda found: [apart(rows, number) for number, rows in enumerate(found, 1)]
)
"""The projects of a person, each with any content."""


def an_account(tasks: Mapping[str, int], **cells: object) -> list[ProjectRows]:
    """Projects by name, each with so many tasks that are alike but for their names."""
    return [
        replace(
            a_project(tasks=[a_task(f"{name} {n}", title=f"{name} {n}", **cells) for n in range(size)]),
            project_id=uid(name),
            project=a_row("project", uid(name), name=name, state_key="active"),
        )
        for name, size in tasks.items()
    ]

"""Every number of a brief against the database's: SQL written from the rules, over the full rows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5
from zoneinfo import ZoneInfo

import pytest

from benchmarks.recall import ladder
from foreword.brief import SECTIONS, About, Document, Part, compose, known, pack, part, unpack, window_of
from foreword.digest import DONE_NOW, FINISHED, GONE, OPEN, SLIPPED, Before, digest
from foreword.handles import handle
from foreword.kinds import KINDS
from foreword.rows import ProjectRows
from loaders.catalog import inspect
from loaders.connection import Connection
from loaders.jsonl import import_directory
from loaders.members import projects_in_hand
from loaders.project import compile_statements, load_project

HERE = Path(__file__).parents[1] / "data" / "brief_facts"
HARBOUR = Path(__file__).parents[2] / "samples" / "harbour"
IDRIS, ASTA, TOVE = (
    *("a7af32f0-f494-5c31-afaa-1331553955cc", "d3e203a5-d5ea-50e8-811a-37dc1dbcb303"),
    "4d485163-42a7-59eb-9fec-c01eccb9dd5c",
)
ZONES = ("UTC", "America/New_York", "Pacific/Auckland", "Asia/Kolkata")
NINE = time(9, 0, 30, 500_000)

NUMBERS = (
    *("overdue", "today", "upcoming", "blocked", "unblocking", "in_progress", "stale", "changed", "done", "wins"),
    *("decisions", "goals", "milestones", "at_risk", "risks", "cycles", "newly_overdue", "newly_done", "slipped"),
    *("new_risks", "goals_idle", "loose", "loose_tasks"),
)
"""Of a project's counts those that are the size of a list."""

OF_A_SECTION = (
    *("goals", "milestones", "risks", "overdue", "blocked", "today", "upcoming", "in_progress", "stale"),
    *("unblocking", "changed", "done", "decisions"),
)
SPEAKING = (
    *("overdue", "today", "upcoming", "blocked", "unblocking", "in_progress", "changed", "done", "decisions"),
    *("wins", "at_risk", "slipped", "new_risks"),
)
"""Lists of which one that is not empty is something to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the database says: ids by (list, project), sizes of kinds, records by id, who waits for whom."""

    listed: Mapping[tuple[str, str], frozenset[str]]
    tasks: Mapping[str, int]
    open: Mapping[str, int]
    statuses: Mapping[tuple[str, str, str], int]
    said: Mapping[str, Mapping[str, Any]]
    waits: Mapping[str, Sequence[str]]
    then: Mapping[str, Mapping[str, Any]]
    now: Mapping[str, Mapping[str, Any]]

    def of(self, name: str, project: str | None = None) -> frozenset[str]:
        found = [ids for (list_, own), ids in self.listed.items() if list_ == name and project in (None, own)]
        return frozenset().union(*found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Morning:
    """A brief that was made: the document, the parts, and what the next one compares with."""

    at: datetime
    day: date
    document: Document
    known: Before


# ---- the product's side


def brief_of(rows: Sequence[ProjectRows], zone: str, now: datetime, previous: Morning | None) -> Morning:
    day = now.astimezone(ZoneInfo(zone)).date()
    before = unpack(pack(previous.known)) if previous is not None else None
    window = window_of(now, day, previous.at if previous else None, previous.day if previous else None)
    about = About(user=IDRIS, name="Idris", date=day, zone=zone, window=window, before=before)
    parts = [part_of(each, about, f"PRJ{place}") for place, each in enumerate(rows, 1)]
    document = compose(about, parts)
    return Morning(at=now, day=day, document=json.loads(json.dumps(document)), known=known(document, parts))


def part_of(rows: ProjectRows, about: About, project: str) -> Part:
    found = digest(
        rows, as_of=about.date, zone=ZoneInfo(about.zone), window=about.window, before=about.before, kinds=KINDS
    )
    return part(found, {**handles_of(rows), rows.project_id: project})


def handles_of(rows: ProjectRows) -> dict[str, str]:
    return {
        row[0]: handle(kind.handle, number)
        for kind in KINDS.entities
        for number, row in enumerate(sorted(rows.entities.get(kind.name, ())), 1)
    }


# ---- the database's side


@contextmanager
def asked(
    connection: Connection, projects: Sequence[str], zone: str, now: datetime, previous: Morning | None
) -> Iterator[None]:
    """The tables of ``facts.sql``, gone afterwards but for what is needed the next time: ``then_live``."""
    day = now.astimezone(ZoneInfo(zone)).date()
    connection.execute("create temporary table mine as select unnest(%s::uuid[]) as project", [list(projects)])
    connection.execute(
        "create temporary table asked as select %s::date as day, %s::text as zone, %s::timestamptz as now,"
        " %s::timestamptz as previous, %s::date as then_day",
        [day, zone, now, previous and previous.at, previous and previous.day],
    )
    if previous is None:
        connection.execute("create temporary table then_mine as select * from mine limit 0")
        run(connection, "facts.sql", instead=[("then_live", "(select * from live limit 0)")])
        connection.execute("create temporary table then_live as select * from live limit 0")
    else:
        run(connection, "facts.sql")
    yield
    connection.execute("drop table then_live, then_mine")
    connection.execute("create temporary table then_live as select * from live")
    connection.execute("create temporary table then_mine as select * from mine")
    connection.execute(
        "drop table mine, asked, since, live, edge, tie, waits, task_waits, cycles, frees, goal_task, status,"
        " listed, said cascade"
    )
    connection.execute("drop function pg_temp.local_day; drop function pg_temp.recent")


def run(connection: Connection, name: str, instead: Sequence[tuple[str, str]] = ()) -> None:
    sql = (HERE / name).read_text(encoding="utf-8")
    for old, new in instead:
        sql = sql.replace(f" {old} ", f" {new} ")
    for statement in filter(str.strip, sql.split(";\n")):
        connection.execute(statement.encode())


def facts(connection: Connection) -> Facts:
    def rows(query: str) -> list[tuple[Any, ...]]:
        return connection.execute(query.encode()).fetchall()

    columns = ("id", "state", "open", "due")
    return Facts(
        listed={(n, p): frozenset(ids) for n, p, ids in rows(_LISTED)},
        tasks=dict(rows("select project::text, count(*) from live where kind = 'task' group by 1")),
        open=dict(rows("select project::text, count(*) from live where kind = 'task' and open group by 1")),
        statuses={(p, k, s): n for p, k, s, n in rows(_STATUSES)},
        said={
            each["id"]: each
            for (text,) in rows("select row_to_json(said)::text from said")
            for each in [json.loads(text)]
        },
        waits=dict(rows("select who::text, array_agg(whom::text order by whom::text) from waits group by 1")),
        then={row[0]: dict(zip(columns, row, strict=True)) for row in rows(_STOOD.format("then_live"))},
        now={row[0]: dict(zip(columns, row, strict=True)) for row in rows(_STOOD.format("live"))},
    )


_LISTED = "select name, project::text, array_agg(id::text) from listed group by 1, 2"
_STATUSES = "select project::text, kind, status, count(*) from status group by 1, 2, 3"
_STOOD = "select id::text, state, open, due::text from {}"


# ---- the one and the other


def assert_agrees(document: Document, truth: Facts, projects: Sequence[str], before: Before | None) -> None:
    assert_totals(document, truth, projects)
    attention = ("overdue", "blocked", "at_risk", "risks", "cycles")
    changes = ("newly_overdue", "newly_done", "slipped", "new_risks")
    for holder, names in (
        (document["attention"], attention),
        (document, ("today", "upcoming", "wins")),
        (document["changes"], changes),
    ):
        for name in names:
            assert_list(holder[name], truth, name, None, 10)
    told = [*document["projects"], *document["quiet"]["items"]]
    assert sorted(each["id"] for each in told) == sorted(projects)
    for place, section in enumerate(document["projects"]):
        assert_section(section, truth, full=place < SECTIONS)
    for quiet in document["quiet"]["items"]:
        assert quiet["open"] == truth.open.get(quiet["id"], 0)
        assert not [name for name in SPEAKING if truth.of(name, quiet["id"])]
    for action in document["priorities"]:
        assert action["id"] in truth.of("candidates")
        assert_item(action, truth, "candidates")
    assert len(document["priorities"]) == min(5, len(truth.of("candidates")))
    assert_became(document, truth, before)
    assert_hints(document["hints"], truth)


def assert_totals(document: Document, truth: Facts, projects: Sequence[str]) -> None:
    totals = document["totals"]
    sizes = {name: len(truth.of(name)) for name in NUMBERS}
    assert totals["projects"] == len(projects)
    assert totals["tasks"] == sum(truth.tasks.values())
    assert totals["open"] == sum(truth.open.values())
    plain = totals.keys() - {"projects", "tasks", "open", "goals", "milestones"}
    assert {name: totals[name] for name in plain} == {name: sizes[name] for name in plain}
    goals = {s: sum_of(truth, "goal", s) for s in ("on_track", "at_risk", "behind")}
    assert totals["goals"] == {"live": sum(goals.values()), **goals}
    assert totals["milestones"] == {s: sum_of(truth, "milestone", s) for s in ("at_risk", "missed")}


def sum_of(truth: Facts, kind: str, status: str) -> int:
    return sum(n for (_, k, s), n in truth.statuses.items() if (k, s) == (kind, status))


def assert_section(section: Document, truth: Facts, *, full: bool) -> None:
    project = section["id"]
    expected = {name: len(truth.of(name, project)) for name in NUMBERS}
    expected |= {"tasks": truth.tasks.get(project, 0), "open": truth.open.get(project, 0)}
    for kind, plural, statuses in (
        ("goal", "goals", ("on_track", "at_risk", "behind")),
        ("milestone", "milestones", ("at_risk", "missed")),
    ):
        expected |= {f"{plural}_{s}": truth.statuses.get((project, kind, s), 0) for s in statuses}
    assert section["counts"] == expected
    for name in OF_A_SECTION:
        assert_list(section[name], truth, name, project, 5 if full else 0)


def assert_list(found: Document, truth: Facts, name: str, project: str | None, most: int) -> None:
    expected = truth.of(name, project)
    ids = [item["id"] for item in found["items"]]
    assert found["total"] == len(expected), name
    assert len(ids) == len(set(ids)) == min(most, len(expected)), name
    assert expected >= set(ids), name
    for item in found["items"]:
        assert_item(item, truth, name)


def assert_item(item: Document, truth: Facts, name: str) -> None:
    record = truth.said[item["id"]]
    for field in (
        "kind",
        "project_id",
        "priority",
        "impact",
        "probability",
        "due",
        "done_on",
        "start",
        "days_late",
    ):
        assert item.get(field) == record[field], (name, field, item)
    for field in ("blocked", "frees", "waits", "status", "tasks", "done"):
        assert item.get(field) == record[field], (name, field, item)
    assert item.get("state") == (record["state"][:60] if record["state"] is not None else None)
    assert item.get("was") == (record["was"] if name == "slipped" else None)
    assert len(item.get("waits_for", ())) == min(5, len(truth.waits.get(item["id"], ())))


def assert_became(document: Document, truth: Facts, before: Before | None) -> None:
    actions = {action["id"]: action["became"] for action in document["changes"]["priorities"]}
    assert list(actions) == [action["id"] for action in (before.priorities if before is not None else ())]
    for entity, became in actions.items():
        then, now = truth.then[entity], truth.now.get(entity)
        if now is None:
            assert became == GONE
        elif not now["open"]:
            assert became == (DONE_NOW if now["state"] in {"done", "completed", "achieved"} else FINISHED)
        else:
            late = bool(then["due"] and now["due"] and now["due"] > then["due"])
            assert became == (SLIPPED if late else OPEN)


def assert_hints(hints: Sequence[str], truth: Facts) -> None:
    expected = (len(truth.of(name)) for name in ("loose_tasks", "goals_idle", "cycles", "stale"))
    assert [int(hint.split()[0]) for hint in hints] == [n for n in expected if n]


# ---- days on which it is asked


def mornings(first: date, zone: str) -> list[datetime]:
    """A day; the next; exactly a week later, on which a week's brief compares with the last; after an absence;
    once more on the same day; and around a change of the clocks.
    """
    days = [first, *(first + timedelta(days=n) for n in (1, 8, 30, 31))]
    found = [datetime.combine(day, NINE, ZoneInfo(zone)).astimezone(UTC) for day in days]
    return [*found, found[-1] + timedelta(hours=6)]


def assert_days(connection: Connection, projects: Sequence[str], first: date, zone: str) -> set[str]:
    """Every brief of ``mornings``, with edits in between; the names of the lists that ever held anything."""
    statements = compile_statements(inspect(connection))
    previous: Morning | None = None
    seen: set[str] = set()
    for number, now in enumerate(mornings(first, zone)):
        with asked(connection, projects, zone, now, previous):
            connection.execute("alter table asked add column round text")
            connection.execute("update asked set round = %s", [str(number)])
            truth = facts(connection)
            rows = [load_project(connection, project, statements) for project in projects]
            found = brief_of(rows, zone, now, previous)
            assert_agrees(found.document, truth, projects, previous.known if previous else None)
        seen |= {name for name, _ in truth.listed}
        previous = found
        edited(connection, number, now + timedelta(hours=20), zone)
    return seen


def edited(connection: Connection, number: int, now: datetime, zone: str) -> None:
    connection.execute(
        "create temporary table asked as select %s::timestamptz as now, %s::date as day, %s::text as zone,"
        " %s::text as round",
        [now, now.astimezone(ZoneInfo(zone)).date(), zone, str(number)],
    )
    run(connection, "edits.sql")
    connection.execute("drop function pg_temp.turn; drop table asked")


def members_added(connection: Connection, projects: Sequence[str], user: str) -> None:
    connection.execute(
        "insert into onto_actors (id, kind, name) values (%s, 'human', 'Somebody') on conflict do nothing", [user]
    )
    for project in projects:
        connection.execute(
            "insert into onto_project_members (id, project_id, actor_id, role_key) values (%s, %s, %s, 'viewer')",
            [str(uuid5(NAMESPACE_OID, project)), project, user],
        )


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.promise("brief.facts")
def test_every_number_is_the_databases_on_the_sample(connection: Connection, zone: str) -> None:
    import_directory(connection, HARBOUR, inspect(connection))
    projects = [project for project, _ in projects_in_hand(connection, inspect(connection), IDRIS)]

    seen = assert_days(connection, projects, date(2026, 11, 20), zone)

    assert len(projects) == 2
    assert seen >= {*NUMBERS, "candidates"} - {"loose"}


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.promise("brief.facts")
def test_every_number_is_the_databases_on_hostile_projects(connection: Connection, zone: str) -> None:
    projects = [
        ladder.create(connection, tasks=60, linked=0.3, hostile=hostile, seed=seed)
        for seed, hostile in ((1, True), (2, False), (3, True))
    ]

    seen = assert_days(connection, sorted(projects), ladder.AS_OF, zone)

    assert seen >= {"overdue", "blocked", "unblocking", "newly_overdue", "slipped", "cycles"}


@pytest.mark.parametrize(("user", "expected"), [(IDRIS, 2), (ASTA, 1), (TOVE, 1)])
@pytest.mark.promise("brief.facts")
def test_a_brief_is_about_the_projects_in_hand_that_one_may_read(
    connection: Connection, user: str, expected: int
) -> None:
    import_directory(connection, HARBOUR, inspect(connection))
    statements = compile_statements(inspect(connection))
    now = datetime(2026, 11, 21, 8, tzinfo=UTC)
    projects = [project for project, _ in projects_in_hand(connection, inspect(connection), user)]

    found = brief_of([load_project(connection, p, statements) for p in projects], "UTC", now, None)

    assert found.document["totals"]["projects"] == expected
    with asked(connection, projects, "UTC", now, None):
        assert_agrees(found.document, facts(connection), projects, None)

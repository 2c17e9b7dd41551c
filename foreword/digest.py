"""One project's part in a brief: counted whole, listed in part. Pure functions of its rows.

The buckets are those of the bundle (``foreword.buckets``), so that a brief never contradicts the chat. Source of
the rules: specification of the brief, "What counts as what".
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from heapq import nsmallest
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from foreword.buckets import Buckets, in_cycles
from foreword.dates import LocalDate, local_dates
from foreword.derive import Work
from foreword.draft import DONE, Sorted, done_tasks, sorted_out
from foreword.graph import Graph, coverage
from foreword.kinds import KINDS, Kind, Registry
from foreword.light import MOST_HANDLES, label, record
from foreword.questions import exposure
from foreword.rows import ProjectRows, Row
from foreword.scoring import ranked

LISTED = 10
"""Items kept of a list. Its total is true whatever is kept."""

Item = dict[str, Any]
"""An entity as a brief shows it, JSON-ready. Other entities in it are ids until they have handles."""

Order = tuple[Any, ...]
"""What orders an item among those of all projects: the lower, the earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What counts as recent.

    Attributes:
        now: the instant that the brief is about; what is dated later is not recent.
        changed: what was touched from then on counts as changed.
        done: what was finished or decided from then on counts as done.
    """

    now: datetime
    changed: datetime
    done: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What the previous brief knew, to tell what is new.

    Attributes:
        date: its date.
        projects: those that it was about; of others nothing is known.
        open: the tasks that were open. ``due``: due dates of what was open. ``risks``: those open.
        priorities: the actions that it put first, as items.
    """

    date: date
    projects: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()
    due: Mapping[str, str] = field(default_factory=dict)
    risks: frozenset[str] = frozenset()
    priorities: tuple[Item, ...] = ()


class Listed(NamedTuple):
    """A list of a project: its true total, and its first items."""

    total: int
    items: tuple[tuple[Order, Item], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """What a brief needs of a project.

    Attributes:
        project_id, header: the project, and its light record.
        counts: sizes, by name.
        lists: by name.
        became: of the previous brief's priority actions those in this project: what has become of each, by id.
        open, due, risks: what the next brief compares with, as in ``Before``.
        named: kind and row of everything whose handle is needed, by id.
    """

    project_id: str
    header: Item
    counts: Mapping[str, int]
    lists: Mapping[str, Listed]
    became: Mapping[str, str]
    open: frozenset[str]
    due: Mapping[str, str]
    risks: frozenset[str]
    named: Mapping[str, tuple[Kind, Row]]


def digest(
    rows: ProjectRows,
    *,
    as_of: date,
    zone: ZoneInfo,
    window: Window,
    before: Before | None = None,
    kinds: Registry = KINDS,
) -> Digest:
    """A project's part in the brief of the local date ``as_of``."""
    project = _project(sorted_out(rows, as_of=as_of, zone=zone, kinds=kinds), as_of, zone, window, before)
    lists = {name: _listed(project, name, *declared) for name, declared in _LISTS.items()}
    shown = {item["id"] for found in lists.values() for _, item in found.items}
    waited = {i for entity in shown for i in project.buckets.waits_for.get(entity, ())[:MOST_HANDLES]}
    return Digest(
        project_id=rows.project_id,
        header=record(kinds.project, rows.project, project.local_date),
        counts=_counts(project, lists),
        lists=lists,
        became=_became(project, before),
        open=project.open["task"],
        due={i: due for i, due in project.buckets.due.items() if i in project.open["task"]},
        risks=project.open["risk"],
        named={i: project.by_id[i] for i in sorted(shown | waited)}
        | {rows.project_id: (kinds.project, rows.project)},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Project:
    """A project's rows, sorted, and what is asked of them again and again. ``ids`` and ``open`` are by kind."""

    rows: ProjectRows
    kinds: Registry
    graph: Graph
    work: Work
    buckets: Buckets
    as_of: date
    local_date: LocalDate
    since: "_Since"
    before: Before | None
    scores: Mapping[str, int]
    by_id: Mapping[str, tuple[Kind, Row]]
    ids: Mapping[str, frozenset[str]]
    open: Mapping[str, frozenset[str]]
    done: frozenset[str]

    def cell(self, entity: str, field: str) -> Any:
        """A field of an entity's row; None where its kind has none."""
        kind, row = self.by_id[entity]
        at = kind.at.get(field)
        return row[at] if at is not None else None


def _project(found: Sorted, as_of: date, zone: ZoneInfo, window: Window, before: Before | None) -> _Project:
    kinds, rows = found.kinds, found.rows
    tables = {kind: rows.entities.get(kind.name, ()) for kind in kinds.entities}
    ids = {kind.name: frozenset(row[0] for row in table) for kind, table in tables.items()}
    return _Project(
        rows=rows,
        kinds=kinds,
        graph=found.graph,
        work=found.work,
        buckets=found.buckets,
        as_of=as_of,
        local_date=_real_dates(zone),
        since=_Since(window, zone),
        before=before if before is not None and rows.project_id in before.projects else None,
        scores={
            i: score for kind, table in tables.items() for score, _, i, _ in ranked(kind, table, found.buckets)
        },
        by_id={row[0]: (kind, row) for kind, table in tables.items() for row in table},
        ids=ids,
        open={name: ids[name] & found.buckets.open for name in ids},
        done=done_tasks(rows, kinds),
    )


def _real_dates(zone: ZoneInfo) -> LocalDate:
    """``local_dates`` for whoever computes with them: an adopted text column can hold a 30 February."""
    local_date = local_dates(zone)

    def real_date(stored: str | None) -> str | None:
        day = local_date(stored)
        return day if _day(day) is not None else None

    return real_date


def _day(text: str | None) -> date | None:
    """The date that is meant; None where it is none."""
    try:
        return date.fromisoformat(text) if text is not None else None
    except ValueError:
        return None


class _Since:
    """Whether a stored time is recent. A date without a time is a calendar date: recent from the first day on."""

    def __init__(self, window: Window, zone: ZoneInfo) -> None:
        self._now = _stored(window.now)
        self._today = window.now.astimezone(zone).date().isoformat()
        self._from = {
            "changed": (_stored(window.changed), window.changed.astimezone(zone).date().isoformat()),
            "done": (_stored(window.done), window.done.astimezone(zone).date().isoformat()),
        }

    def __call__(self, what: str, stored: Any) -> bool:
        if not isinstance(stored, str) or len(stored) < 10 or stored[4] != "-" or stored[-1] == "C":
            return False
        instant, day = self._from[what]
        if stored[10:] in _DATE_ONLY:
            return day <= stored[:10] <= self._today
        return instant <= stored.removesuffix("+00") <= self._now


_DATE_ONLY = frozenset({" 00:00:00+00", " 00:00:00", ""})


def _stored(instant: datetime) -> str:
    """As PostgreSQL prints it in UTC, so that times of one session compare as text: without the zeros at the end
    of a fraction, or what came about at that very instant would be before it.
    """
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}".rstrip("0").rstrip(".")


# ---- lists: who is in them, in which order


def _by_score(p: _Project, i: str) -> Order:
    return (-p.scores.get(i, 0), p.buckets.due.get(i, "9"), i)


def _by_press(p: _Project, i: str) -> Order:
    """By score; of equals what is due nearest to today, for what has been late for years can wait another day."""
    due = _day(p.buckets.due.get(i))
    away = abs((due - p.as_of).days) if due is not None else FAR
    return (-p.scores.get(i, 0), away, i)


FAR = 10**7
"""Days to what has no date: more than the calendar has."""


def _by_due(p: _Project, i: str) -> Order:
    days = [day for day in (p.buckets.due.get(i), p.local_date(p.cell(i, "start_at"))) if day]
    ahead = [day for day in days if day > p.as_of.isoformat()]
    return (min(ahead or days or ["9"]), -p.scores.get(i, 0), i)


def _latest(p: _Project, i: str) -> Order:
    kind, _ = p.by_id[i]
    return (-_moment(p.cell(i, kind.happened) or p.cell(i, kind.touched)), i)


def _last_touched(p: _Project, i: str) -> Order:
    return (-_moment(p.cell(i, p.by_id[i][0].touched)), i)


def _first_touched(p: _Project, i: str) -> Order:
    return (_moment(p.cell(i, p.by_id[i][0].touched)), i)


def _by_exposure(p: _Project, i: str) -> Order:
    return (-exposure(p.cell(i, "impact"), p.cell(i, "probability")), i)


def _by_status(p: _Project, i: str) -> Order:
    return (_STATUSES.index(_status(p, i)), p.buckets.due.get(i, "9"), -p.scores.get(i, 0), i)


def _moment(stored: Any) -> int:
    """Digits of a stored time, for comparing; 0 where there is none."""
    digits = "".join(c for c in str(stored or "")[:26] if c.isdigit())
    return int(digits.ljust(20, "0")[:20] or 0)


def _tasks(bucket: str) -> Callable[[_Project], Iterable[str]]:
    return lambda p: p.open["task"] & p.buckets.of(bucket)


def _newly_overdue(p: _Project) -> Iterable[str]:
    """Overdue, and not so when the previous brief was made."""
    if p.before is None:
        return ()
    then, day = p.before.due, p.before.date.isoformat()
    return (i for i in p.open["task"] & p.buckets.overdue if not then.get(i, "9") < day)


def _slipped(p: _Project) -> Iterable[str]:
    """Open, and due later than the previous brief said."""
    if p.before is None:
        return ()
    then, now = p.before.due, p.buckets.due
    both = p.open["task"] & then.keys() & now.keys()
    return (i for i in both if now[i] > then[i] and _day(now[i]) and _day(then[i]))


def _done(p: _Project) -> frozenset[str]:
    """Done by the time on record, or open when the previous brief was made: times may be set late, or never."""
    was_open = p.before.open if p.before is not None else frozenset[str]()
    return frozenset(i for i in p.done if i in was_open or p.since("done", p.cell(i, "completed_at")))


def _wins(p: _Project) -> Iterable[str]:
    """Tasks done, goals achieved, milestones reached."""
    reached = (
        i
        for name in ("goal", "milestone")
        for i in p.ids.get(name, frozenset())
        if p.cell(i, "state_key") in _REACHED and p.since("done", p.cell(i, "completed_at"))
    )
    return (*_done(p), *reached)


_REACHED = DONE | {"achieved"}


def _candidates(p: _Project) -> Iterable[str]:
    """What somebody can do something about today: tasks that press and are not blocked, milestones that do."""
    found = p.buckets
    pressing = found.overdue | found.today | found.soon | found.unblocking
    milestones = p.open.get("milestone", frozenset()) & (found.overdue | found.at_risk)
    return (p.open["task"] & pressing) - found.blocked | milestones


def _cycles(p: _Project) -> set[str]:
    """Open tasks that wait for themselves, directly or through others: none of them can ever begin."""
    tasks = p.open["task"]
    return in_cycles({who: set(whom) & tasks for who, whom in p.buckets.waits_for.items() if who in tasks})


_LISTS: Mapping[str, tuple[Callable[[_Project], Iterable[str]], Callable[[_Project, str], Order]]] = {
    "candidates": (_candidates, _by_press),
    "overdue": (_tasks("overdue"), _by_score),
    "today": (_tasks("today"), _by_score),
    "upcoming": (_tasks("soon"), _by_due),
    "blocked": (_tasks("blocked"), _by_score),
    "unblocking": (_tasks("unblocking"), _by_score),
    "in_progress": (_tasks("in_progress"), _by_score),
    "stale": (_tasks("stale"), _first_touched),
    "changed": (lambda p: (i for i, (kind, row) in p.by_id.items() if _is_changed(p, kind, row)), _last_touched),
    "done": (_done, _latest),
    "wins": (_wins, _latest),
    "decisions": (lambda p: (i for i in _of(p, "decision") if p.since("done", p.cell(i, "decision_at"))), _latest),
    "goals": (lambda p: p.open.get("goal", ()), _by_status),
    "milestones": (lambda p: p.open.get("milestone", frozenset()) & p.buckets.due.keys(), _by_status),
    "at_risk": (
        lambda p: (
            i
            for name in ("goal", "milestone")
            for i in p.open.get(name, frozenset()) & (p.buckets.overdue | p.buckets.at_risk)
        ),
        _by_status,
    ),
    "risks": (lambda p: p.open.get("risk", ()), _by_exposure),
    "cycles": (_cycles, _by_score),
    "newly_overdue": (_newly_overdue, _by_score),
    "newly_done": (lambda p: _done(p) if p.before is not None else (), _latest),
    "slipped": (_slipped, _by_score),
    "new_risks": (lambda p: p.open["risk"] - p.before.risks if p.before is not None else (), _by_exposure),
}
"""By name: the ids in a list, and their order."""


def _of(p: _Project, kind: str) -> frozenset[str]:
    return p.ids.get(kind, frozenset())


def _is_changed(p: _Project, kind: Kind, row: Row) -> bool:
    at = kind.at.get(kind.touched)
    return at is not None and p.since("changed", row[at])


def _listed(
    p: _Project, name: str, members: Callable[[_Project], Iterable[str]], order: Callable[[_Project, str], Order]
) -> Listed:
    keyed = [(order(p, i), i) for i in set(members(p))]
    return Listed(len(keyed), tuple((key, _item(p, i, name)) for key, i in nsmallest(LISTED, keyed)))


# ---- items


def _item(p: _Project, entity: str, name: str) -> Item:
    """An entity as the list called ``name`` shows it: what is empty is left out."""
    kind, row = p.by_id[entity]
    light = record(kind, row, p.local_date)
    item: Item = {"id": entity, "kind": kind.name, "title": label(kind, light), "project_id": p.rows.project_id}
    rules = {**_FIELDS, **_OF_LIST.get(name, {})}
    said = ((field, rule(p, entity, light)) for field, rule in rules.items())
    return item | {field: value for field, value in said if value is not None}


Rule = Callable[[_Project, str, Item], Any]


def _touched(p: _Project, i: str, _: Item) -> str | None:
    return p.local_date(p.cell(i, p.by_id[i][0].touched))


_FIELDS: dict[str, Rule] = {
    "state": lambda _p, _i, light: light.get("state_key"),
    "priority": lambda _p, _i, light: light.get("priority"),
    "impact": lambda _p, _i, light: light.get("impact"),
    "probability": lambda _p, _i, light: light.get("probability"),
    "due": lambda p, i, light: light.get(p.by_id[i][0].due),
    "days_late": lambda p, i, _: _days_late(p, i) if i in p.buckets.overdue else None,
    "start": lambda p, _, light: light["start_at"] if light.get("start_at", "") >= p.as_of.isoformat() else None,
    "done_on": lambda p, i, light: light.get(p.by_id[i][0].happened),
    "blocked": lambda p, i, _: True if i in p.buckets.blocked else None,
    "waits_for": lambda p, i, _: list(p.buckets.waits_for.get(i, ())[:MOST_HANDLES]) or None,
    "waits": lambda p, i, _: len(p.buckets.waits_for.get(i, ())) or None,
    "frees": lambda p, i, _: _frees(p, i) if i in p.buckets.unblocking else None,
    "done": lambda p, i, _: len(p.work.tasks[i] & p.done) if _has_progress(p, i) else None,
    "tasks": lambda p, i, _: len(p.work.tasks[i]) if _has_progress(p, i) else None,
    "status": lambda p, i, _: _status(p, i) if _has_status(p, i) else None,
}
"""By field of an item: what is said of an entity, or None."""

_OF_LIST: dict[str, dict[str, Rule]] = {
    "slipped": {"was": lambda p, i, _: p.before.due[i] if p.before is not None else None},
    "changed": {"touched": _touched},
    "stale": {"touched": _touched},
}
"""Fields that only some lists have."""


def _days_late(p: _Project, entity: str) -> int | None:
    due = _day(p.buckets.due[entity])
    return (p.as_of - due).days if due is not None else None


def _has_progress(p: _Project, entity: str) -> bool:
    return p.by_id[entity][0].name == "goal" and bool(p.work.tasks.get(entity))


def _has_status(p: _Project, entity: str) -> bool:
    return entity in p.buckets.open and p.by_id[entity][0].name in {"goal", "milestone"}


def _frees(p: _Project, entity: str) -> int:
    """Open tasks that wait for this task and for no other."""
    tasks = p.open["task"]
    waiting = (i for i in p.buckets.needed_by.get(entity, ()) if i in tasks)
    return sum(1 for i in waiting if tasks.intersection(p.buckets.waits_for[i]) == {entity})


ON_TRACK, AT_RISK, BEHIND, MISSED, AHEAD, DRAFT = "on_track", "at_risk", "behind", "missed", "ahead", "draft"
_STATUSES = (BEHIND, MISSED, AT_RISK, ON_TRACK, AHEAD, DRAFT)
"""Of goals and milestones; the most pressing first."""


def _status(p: _Project, entity: str) -> str:
    """Of an open goal or milestone."""
    kind, row = p.by_id[entity]
    goal = kind.name == "goal"
    if kind.due_except and "state_key" in kind.at and row[kind.at["state_key"]] in kind.due_except:
        return DRAFT
    if entity in p.buckets.overdue:
        return BEHIND if goal else MISSED
    if entity in p.buckets.at_risk:
        return AT_RISK
    return ON_TRACK if goal else AHEAD


# ---- counts


def _counts(p: _Project, lists: Mapping[str, Listed]) -> dict[str, int]:
    goals, milestones = (
        Counter(_status(p, i) for i in p.open.get(name, frozenset()) & p.buckets.open)
        for name in ("goal", "milestone")
    )
    orphans = {plural: counts["orphan"] for plural, counts in coverage(p.rows, p.graph, p.kinds).items()}
    return {
        "tasks": len(_of(p, "task")),
        "open": len(p.open["task"]),
        **{name: lists[name].total for name in _LISTS if name != "candidates"},
        **{f"goals_{status}": goals[status] for status in (ON_TRACK, AT_RISK, BEHIND)},
        **{f"milestones_{status}": milestones[status] for status in (AT_RISK, MISSED)},
        "goals_idle": len(p.buckets.idle),
        "loose_tasks": orphans.get("tasks", 0),
        "loose": sum(orphans.values()),
    }


# ---- what became of yesterday's priorities


DONE_NOW, FINISHED, SLIPPED, OPEN, GONE, LEFT = "done", "finished", "slipped", "open", "gone", "left"
"""What has become of an action put first; left: its project is closed or paused, or the user's no more."""


def _became(p: _Project, before: Before | None) -> dict[str, str]:
    actions = before.priorities if before is not None else ()
    return {action["id"]: _fate(p, action) for action in actions if action["id"] in p.by_id}


def _fate(p: _Project, action: Item) -> str:
    entity = action["id"]
    if entity not in p.buckets.open:
        return DONE_NOW if p.cell(entity, "state_key") in _REACHED else FINISHED
    then, now = action.get("due"), p.buckets.due.get(entity)
    return SLIPPED if then and now and now > then else OPEN

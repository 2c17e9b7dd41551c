"""Which entities are overdue, due, blocked, idle, ready: computed once, for bundles and briefs alike.

Pure functions of rows, relations and the as-of date. "Open" is everything that is not in a finished
state of its kind; a state nobody knows counts as open. Source of the rules: specification of the brief,
"What counts as what".
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, timedelta

from foreword.dates import LocalDate
from foreword.derive import Work
from foreword.kinds import Kind, Registry
from foreword.rows import Row

SOON_DAYS = 7

STALE_DAYS = 7
"""Days without a touch from which work in progress counts as stale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """Sets of entity ids. One entity may be in several.

    Attributes:
        open: every entity that is not finished; what has no state never is. ``open_of``: the same by kind.
        overdue: open, the local date of its due column before the as-of date: for a goal, that it is behind, for
            a milestone, that it is missed.
        today: open, due on the as-of date, or a task starting then and not overdue.
        soon: open, due within the seven days after, or a task starting then: also one that starts today.
        ahead: soon, and neither overdue nor today.
        at_risk: open goals and milestones due on the as-of date or within the seven days after.
        blocked: open tasks in state blocked, or waiting for an open task.
        ready: open tasks that are not blocked and have a due date.
        in_progress: open tasks in state in_progress. ``stale``: those untouched for seven days.
        unblocking: open tasks that are the last thing some open task waits for.
        idle: open goals that no task or plan is linked to. ``measured``: those with tasks that count.
        upcoming: open milestones due on the as-of date or later.
        happened: what has a date on which it came about, of the kinds whose counts name it: decisions.
        changed: entities touched on the as-of date or the day before.
        needed: open entities that open ones wait for.
        waits_for, needed_by: for each open entity, the open entities it waits for, and that wait for it, sorted.
        due: the local due date of each open entity that has one and can be late.
    """

    open: frozenset[str]
    open_of: Mapping[str, AbstractSet[str]]
    overdue: frozenset[str]
    today: frozenset[str]
    soon: frozenset[str]
    ahead: frozenset[str]
    at_risk: frozenset[str]
    blocked: frozenset[str]
    ready: frozenset[str]
    in_progress: frozenset[str]
    stale: frozenset[str]
    unblocking: frozenset[str]
    idle: frozenset[str]
    measured: frozenset[str]
    upcoming: frozenset[str]
    happened: frozenset[str]
    changed: frozenset[str]
    needed: frozenset[str]
    waits_for: Mapping[str, tuple[str, ...]]
    needed_by: Mapping[str, tuple[str, ...]]
    due: Mapping[str, str]

    def of(self, name: str) -> frozenset[str]:
        """The set called ``name``."""
        found: frozenset[str] = getattr(self, name)
        return found


def buckets(
    entities: Mapping[str, Sequence[Row]],
    waits: Iterable[tuple[str, str]],
    work: Work,
    *,
    as_of: date,
    local_date: LocalDate,
    kinds: Registry,
) -> Buckets:
    """Sort live entities into buckets as of a local date. ``waits`` holds (who waits, for whom)."""
    horizon = _Horizon.of(as_of)
    live = {kind.name: _open_rows(kind, entities.get(kind.name, ())) for kind in kinds.entities}
    dated: dict[str, set[str]] = {"overdue": set(), "today": set(), "soon": set()}
    due: dict[str, str] = {}
    changed: set[str] = set()
    for kind in kinds.entities:
        _touched(kind, entities.get(kind.name, ()), horizon, local_date, changed)
        _date(kind, live[kind.name], horizon, local_date, dated, due)
    opened = {name: {row[0] for row in rows} for name, rows in live.items()}
    tasks, goals, milestones = (opened.get(name, set()) for name in ("task", "goal", "milestone"))
    everyone = frozenset().union(*opened.values())
    waits_for = _waiting(waits, everyone)
    blocked, in_progress, stale = _states(kinds, live.get("task", ()), horizon, local_date)
    blocked |= {who for who, whom in waits_for.items() if who in tasks and not tasks.isdisjoint(whom)}
    return Buckets(
        open=everyone,
        open_of=opened,
        overdue=frozenset(dated["overdue"]),
        today=frozenset(dated["today"]),
        soon=frozenset(dated["soon"]),
        ahead=frozenset(dated["soon"] - dated["overdue"] - dated["today"]),
        at_risk=frozenset((goals | milestones) & (dated["today"] | dated["soon"])),
        blocked=frozenset(blocked),
        ready=frozenset((tasks & due.keys()) - blocked),
        in_progress=frozenset(in_progress),
        stale=frozenset(stale),
        unblocking=_unblocking(waits_for, tasks),
        idle=frozenset(goals - work.served),
        measured=frozenset(goals & work.tasks.keys()),
        upcoming=frozenset(i for i in milestones & due.keys() if due[i] >= horizon.today),
        happened=_happened(kinds, entities, local_date),
        changed=frozenset(changed),
        needed=frozenset().union(*waits_for.values()),
        waits_for={who: tuple(sorted(whom)) for who, whom in waits_for.items()},
        needed_by=_turned(waits_for),
        due=due,
    )


def _states(
    kinds: Registry, tasks: Sequence[Row], horizon: "_Horizon", local_date: LocalDate
) -> tuple[set[str], set[str], set[str]]:
    """Open tasks in state blocked; in progress; in progress and stale."""
    kind = kinds.by_name.get("task")
    if kind is None or "state_key" not in kind.at:
        return set(), set(), set()
    at, touched = kind.at["state_key"], kind.at[kind.touched]
    in_progress = [row for row in tasks if row[at] == "in_progress"]
    stale = {row[0] for row in in_progress if (local_date(row[touched]) or horizon.today) <= horizon.stale}
    return {row[0] for row in tasks if row[at] == "blocked"}, {row[0] for row in in_progress}, stale


def _happened(kinds: Registry, entities: Mapping[str, Sequence[Row]], local_date: LocalDate) -> frozenset[str]:
    """Entities of the kinds that count those that came about, where they have a date for it."""
    return frozenset(
        row[0]
        for kind in kinds.entities
        if any(bucket == "happened" for bucket, _ in kind.tally)
        for at in (kind.at[kind.happened],)
        for row in entities.get(kind.name, ())
        if local_date(row[at]) is not None
    )


def _turned(waits_for: Mapping[str, set[str]]) -> dict[str, tuple[str, ...]]:
    needed_by: dict[str, list[str]] = {}
    for who in sorted(waits_for):
        for whom in waits_for[who]:
            needed_by.setdefault(whom, []).append(who)
    return {whom: tuple(who) for whom, who in needed_by.items()}


@dataclass(frozen=True, slots=True)
class _Horizon:
    """ISO dates compare as text, so the boundaries are text."""

    stale: str
    yesterday: str
    today: str
    last: str

    @classmethod
    def of(cls, as_of: date) -> "_Horizon":
        days = (-STALE_DAYS, -1, 0, SOON_DAYS)
        return cls(*(_shifted(as_of, day).isoformat() for day in days))


def _shifted(day: date, days: int) -> date:
    try:
        return day + timedelta(days=days)
    except OverflowError:  # the first and last days of the calendar
        return day


def _open_rows(kind: Kind, rows: Sequence[Row]) -> Sequence[Row]:
    at = kind.at.get("state_key")
    if at is None:
        return rows
    finished = kind.is_finished
    verdicts: dict[object, bool] = {}
    for state in {row[at] for row in rows}:
        verdicts[state] = finished(state if isinstance(state, str) else None)
    return [row for row in rows if not verdicts[row[at]]]


def _touched(kind: Kind, rows: Sequence[Row], horizon: _Horizon, local_date: LocalDate, changed: set[str]) -> None:
    at = kind.at.get(kind.touched)
    if at is None:
        return
    # A local date is at most a day away from the UTC date, so most rows are settled by comparing text.
    floor = _shifted(date.fromisoformat(horizon.yesterday), -1).isoformat()
    for row in [row for row in rows if (row[at] or "") >= floor]:
        day = local_date(row[at])
        if day is not None and horizon.yesterday <= day <= horizon.today:
            changed.add(row[0])


def _date(
    kind: Kind,
    rows: Sequence[Row],
    horizon: _Horizon,
    local_date: LocalDate,
    dated: dict[str, set[str]],
    due_days: dict[str, str],
) -> None:
    """Put open rows that are late, due or starting into their buckets, and note when they are due."""
    due_at, start_at, state_at = (kind.at.get(name) for name in (kind.due, "start_at", "state_key"))
    if due_at is None:
        return
    for row in rows:
        if row[due_at] is None and (start_at is None or row[start_at] is None):
            continue
        if state_at is not None and row[state_at] in kind.due_except:
            continue
        due = local_date(row[due_at])
        start = local_date(row[start_at]) if start_at is not None else None
        if due is not None:
            due_days[row[0]] = due
        if due is not None and due < horizon.today:
            dated["overdue"].add(row[0])
        elif horizon.today in (due, start):
            dated["today"].add(row[0])
        if any(day is not None and horizon.today < day <= horizon.last for day in (due, start)):
            dated["soon"].add(row[0])


def _waiting(waits: Iterable[tuple[str, str]], open_ids: frozenset[str]) -> dict[str, set[str]]:
    waiting: dict[str, set[str]] = {}
    for who, whom in waits:
        if who in open_ids and whom in open_ids:
            waiting.setdefault(who, set()).add(whom)
    return waiting


def _unblocking(waiting: Mapping[str, set[str]], tasks: set[str]) -> frozenset[str]:
    """Open tasks whose completion frees an open task: they are the only open task it still waits for.

    In a cycle nobody unblocks: completing a member needs the member itself to be free first.
    """
    among = {who: whom & tasks for who, whom in waiting.items() if who in tasks}
    freeing = {next(iter(whom)) for whom in among.values() if len(whom) == 1}
    return frozenset(freeing - in_cycles(among)) if freeing else frozenset()


def in_cycles(waiting: Mapping[str, set[str]]) -> set[str]:
    """Who waits, directly or through others, for itself.

    Linear in the number of waits (Kosaraju): a search for each task would take hours on one long chain of tasks.
    """
    inner, size = dict(waiting), 2 * len(waiting)
    while 0 < len(inner) <= size // 2:  # who waits for nobody is in none: peeled off so, most projects are done
        size = len(inner)
        inner = {who: left for who, whom in inner.items() if (left := whom & inner.keys())}
    back: dict[str, set[str]] = {}
    for who, whom in inner.items():
        for other in whom:
            back.setdefault(other, set()).add(who)
    found: set[str] = set()
    seen: set[str] = set()
    for who in reversed(_finished(back)):
        component = _reach(who, inner, seen)
        if len(component) > 1 or who in inner.get(who, ()):
            found.update(component)
    return found


def _finished(edges: Mapping[str, set[str]]) -> list[str]:
    """Nodes in the order in which a depth-first search leaves them."""
    seen: set[str] = set()
    left: list[str] = []
    for start in edges:
        stack = [(start, iter(edges[start]))] if start not in seen else []
        seen.add(start)
        while stack:
            _, others = stack[-1]
            for other in others:
                if other not in seen:
                    seen.add(other)
                    stack.append((other, iter(edges.get(other, ()))))
                    break
            else:
                left.append(stack.pop()[0])
    return left


def _reach(start: str, edges: Mapping[str, set[str]], seen: set[str]) -> list[str]:
    """The nodes not yet ``seen`` that are reached from ``start``."""
    stack = [start] if start not in seen else []
    seen.update(stack)
    found = []
    while stack:
        found.append(stack.pop())
        new = edges.get(found[-1], set()) - seen
        seen |= new
        stack += new
    return found

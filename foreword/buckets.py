"""Which entities are overdue, due, blocked, unblocking: computed once, for bundles and briefs alike.

Pure functions of rows, waiting relations and the as-of date. "Open" is everything that is not in a finished
state of its kind; a state nobody knows counts as open. Source of the rules: specification of the brief,
"What counts as what".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from foreword.dates import LocalDate
from foreword.kinds import Kind, Registry
from foreword.rows import Row

SOON_DAYS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """Sets of entity ids. One entity may be in several.

    Attributes:
        open: every entity that is not finished; what has no state never is.
        overdue: open, the local date of its due column before the as-of date.
        today: open, due on the as-of date, or a task starting then and not overdue.
        soon: open, due within the seven days after, or a task starting then.
        blocked: open tasks in state blocked, or waiting for an open task.
        in_progress: open tasks in state in_progress.
        unblocking: open tasks that are the last thing some open task waits for.
        changed: entities touched on the as-of date or the day before.
        waits_for: for each open entity, the open entities it waits for, sorted.
    """

    open: frozenset[str]
    overdue: frozenset[str]
    today: frozenset[str]
    soon: frozenset[str]
    blocked: frozenset[str]
    in_progress: frozenset[str]
    unblocking: frozenset[str]
    changed: frozenset[str]
    waits_for: Mapping[str, tuple[str, ...]]

    def of(self, name: str) -> frozenset[str]:
        """The set called ``name``."""
        found: frozenset[str] = getattr(self, name)
        return found


def buckets(
    entities: Mapping[str, Sequence[Row]],
    waits: Iterable[tuple[str, str]],
    *,
    as_of: date,
    local_date: LocalDate,
    kinds: Registry,
) -> Buckets:
    """Sort live entities into buckets as of a local date. ``waits`` holds (who waits, for whom)."""
    open_ids: list[str] = []
    tasks: set[str] = set()
    dated: dict[str, set[str]] = {"overdue": set(), "today": set(), "soon": set()}
    changed: set[str] = set()
    blocked: set[str] = set()
    in_progress: set[str] = set()
    horizon = _Horizon.of(as_of)
    for kind in kinds.entities:
        rows = entities.get(kind.name, ())
        _touched(kind, rows, horizon, local_date, changed)
        live = _open_rows(kind, rows)
        open_ids += [row[0] for row in live]
        _date(kind, live, horizon, local_date, dated)
        at = kind.at.get("state_key")
        if kind.name == "task" and at is not None:
            tasks = {row[0] for row in live}
            blocked = {row[0] for row in live if row[at] == "blocked"}
            in_progress = {row[0] for row in live if row[at] == "in_progress"}
    everyone = frozenset(open_ids)
    waiting = _waiting(waits, everyone)
    blocked |= {who for who, whom in waiting.items() if who in tasks and not tasks.isdisjoint(whom)}
    return Buckets(
        open=everyone,
        overdue=frozenset(dated["overdue"]),
        today=frozenset(dated["today"]),
        soon=frozenset(dated["soon"]),
        blocked=frozenset(blocked),
        in_progress=frozenset(in_progress),
        unblocking=_unblocking(waiting, tasks),
        changed=frozenset(changed),
        waits_for={who: tuple(sorted(whom)) for who, whom in waiting.items()},
    )


@dataclass(frozen=True, slots=True)
class _Horizon:
    """ISO dates compare as text, so the boundaries are text."""

    yesterday: str
    today: str
    last: str

    @classmethod
    def of(cls, as_of: date) -> "_Horizon":
        back, ahead = _shifted(as_of, -1), _shifted(as_of, SOON_DAYS)
        return cls(back.isoformat(), as_of.isoformat(), ahead.isoformat())


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
    kind: Kind, rows: Sequence[Row], horizon: _Horizon, local_date: LocalDate, dated: dict[str, set[str]]
) -> None:
    """Put open rows that are late, due or starting into their buckets."""
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
        bucket = _bucket(due, start, horizon)
        if bucket:
            dated[bucket].add(row[0])


def _bucket(due: str | None, start: str | None, horizon: _Horizon) -> str | None:
    if due is not None and due < horizon.today:
        return "overdue"
    if horizon.today in (due, start):
        return "today"
    if any(day is not None and horizon.today < day <= horizon.last for day in (due, start)):
        return "soon"
    return None


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

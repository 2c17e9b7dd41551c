"""How a brief says things: dates, numbers, and the facts of an item, in a few words each.

Nothing here knows a section or a page. Titles, names and words of a model are somebody's text: one line, cut.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from foreword.brief import YEAR
from foreword.text import clean, cut

Item = Mapping[str, Any]
Document = Mapping[str, Any]

LONGEST_TITLE = 100
LONGEST_MENTION = 48
"""Of a title inside a line."""
LONGEST_NAME = 28
"""Of a project's name beside a task."""
LONGEST_SUMMARY = 1_200
LONGEST_NARRATIVE = 500
LONGEST_REASON = 160

UNTITLED = "(untitled)"
RETURN = "You have been away, so the daily briefs rest until you are back. Here is where things stand."
BY_MODEL = "A model worded parts of this; its words were checked against the facts."


def one_line(text: Any, limit: int) -> str:
    """Somebody's text on one line, at most ``limit`` characters."""
    return cut(clean(text), limit) if isinstance(text, str) else ""


def counted(number: int, one: str, many: str) -> str:
    """``1 task``, ``2,000 tasks``."""
    return f"{number:,} {one if number == 1 else many}"


def joined(parts: Sequence[str], last: str = " and ") -> str:
    """``a, b and c``."""
    return last.join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def short_names(names: Mapping[str, str]) -> dict[str, str]:
    """Names of projects for the end of a line: ``Net Loft Library`` of ``Net Loft Library: open the harbour
    library``, where no other project could be meant; at most LONGEST_NAME characters.
    """
    first = {project: _SUBTITLE.split(name, maxsplit=1)[0] for project, name in names.items()}
    meant = Counter(
        each for project, name in names.items() for each in {name.casefold(), first[project].casefold()}
    )
    return {
        project: cut(
            first[project] if len(first[project]) > 2 and meant[first[project].casefold()] == 1 else name,
            LONGEST_NAME,
        )
        for project, name in names.items()
    }


_SUBTITLE = re.compile(": | - | \u2013 ")


class Calendar:
    """Dates as a person says them on a given day. What is no date reads as it is."""

    def __init__(self, today: str) -> None:
        self._today = date.fromisoformat(today)

    def title(self) -> str:
        """``Sunday 22 November 2026``."""
        return f"{self._today:%A} {self._today.day} {self._today:%B} {self._today.year}"

    def day(self, iso: Any) -> str:
        """``tomorrow``, ``Thu 19 Nov``, ``Fri 1 Jan 2027``."""
        near = {0: "today", 1: "tomorrow", -1: "yesterday"}
        day = day_of(iso)
        return (day and near.get((day - self._today).days)) or self._written(iso, "%a", "%b")

    def in_full(self, iso: Any) -> str:
        """``Thursday 19 November``, however near."""
        return self._written(iso, "%A", "%B")

    def is_ahead(self, iso: Any) -> bool:
        """Whether it is a date, and not past."""
        day = day_of(iso)
        return day is not None and day >= self._today

    def is_past(self, iso: Any) -> bool:
        """Whether it is a date before today."""
        return day_of(iso) is not None and not self.is_ahead(iso)

    def _written(self, iso: Any, weekday: str, month: str) -> str:
        day = day_of(iso)
        if day is None:
            return one_line(iso, 20)
        return f"{day:{weekday}} {day.day} {day:{month}}{'' if day.year == self._today.year else f' {day.year}'}"


def day_of(iso: Any) -> date | None:
    """Of a date or a time."""
    try:
        return date.fromisoformat(str(iso)[:10])
    except ValueError:
        return None


Fact = Callable[[Item, Calendar], str]

_STATUSES = {
    "on_track": "on track",
    "at_risk": "at risk",
    "behind": "behind",
    "draft": "a draft",
    "missed": "missed",
    "ahead": "",
}


def _progress(item: Item, _: Calendar) -> str:
    return f"{item['done']:,} of {counted(item['tasks'], 'task', 'tasks')} done" if item.get("tasks") else ""


def _late(item: Item, _: Calendar) -> str:
    """``3 days late``; what has been late for more than a year, since when."""
    days, due = item.get("days_late"), day_of(item.get("due"))
    if days and days > YEAR and due is not None:
        return f"late since {due:%b} {due.year}"
    return f"{counted(days, 'day', 'days')} late" if days else ""


def _start(item: Item, calendar: Calendar) -> str:
    return f"starts {calendar.day(item['start'])}" if item.get("start") else ""


def _due(item: Item, calendar: Calendar) -> str:
    if not item.get("due") or item.get("days_late") or item.get("was"):
        return ""
    return f"{'was due' if calendar.is_past(item['due']) else 'due'} {calendar.day(item['due'])}"


def moved(item: Item, calendar: Calendar) -> str:
    """``from Tue 24 Nov to Tue 1 Dec``."""
    return f"from {calendar.day(item['was'])} to {calendar.day(item.get('due'))}" if item.get("was") else ""


def _waits(item: Item, _: Calendar) -> str:
    handles = [one_line(each, 20) for each in item.get("waits_for") or ()]
    if not handles:
        return "blocked" if item.get("blocked") else ""
    more = (item.get("waits") or 0) - len(handles)
    return "waits for " + joined([*handles, *([f"{more:,} more"] if more > 0 else [])])


def _frees(item: Item, _: Calendar) -> str:
    return f"frees {counted(item['frees'], 'task', 'tasks')}" if item.get("frees") else ""


def _exposure(item: Item, _: Calendar) -> str:
    impact = one_line(item.get("impact"), 20)
    chance = "has occurred" if item.get("state") == "occurred" else _likely(item.get("probability"))
    return ", ".join(filter(None, (f"{impact} impact" if impact else "", chance)))


def _likely(probability: Any) -> str:
    """``60% likely`` of a number from 0 to 1, which may come as text."""
    try:
        chance = float(probability)
    except (TypeError, ValueError):
        return ""
    return f"{round(chance * 100)}% likely" if 0 <= chance <= 1 else ""


def finished(item: Item, calendar: Calendar) -> str:
    """``achieved yesterday``."""
    ended = {"decision": "decided", "goal": "achieved", "milestone": "reached"}.get(item.get("kind", ""), "done")
    return f"{ended} {calendar.day(item['done_on'])}" if item.get("done_on") else ""


FACTS: tuple[Fact, ...] = (
    lambda item, _: _STATUSES.get(item.get("status", ""), ""),
    _progress,
    _late,
    _start,
    _due,
    moved,
    _waits,
    _frees,
    lambda item, _: "in progress" if item.get("state") == "in_progress" else "",
    _exposure,
)
"""What is said of an item that is open, in this order."""

FINISHED = frozenset({"wins", "done", "newly_done", "decisions"})
"""Lists of what is not: of theirs only that is said. What is open may have a date of completion all the same."""

FATES: dict[str, Fact] = {
    "done": lambda _item, _calendar: "done",
    "finished": lambda _item, _calendar: "closed",
    "slipped": lambda item, calendar: f"moved to {calendar.day(item['due'])}" if item.get("due") else "moved",
    "open": lambda _item, _calendar: "still open",
    "gone": lambda _item, _calendar: "no longer there",
    "left": lambda _item, _calendar: "in a project that is closed, paused or no longer yours",
}


class Count(NamedTuple):
    """How a number of the document is worded."""

    name: str
    one: str
    many: str


_PRESSING = (
    Count("overdue", "overdue", "overdue"),
    Count("today", "today", "today"),
    Count("upcoming", "in the next seven days", "in the next seven days"),
    Count("blocked", "blocked", "blocked"),
)

COUNTED_FIRST = (Count("open", "open task", "open tasks"), *_PRESSING)
"""To see at a glance."""

_STATE_OF_TASKS = (
    *_PRESSING,
    Count("unblocking", "that frees others", "that free others"),
    Count("in_progress", "in progress", "in progress"),
    Count("stale", "untouched for a week", "untouched for a week"),
)

_STATE_OF_REST = (
    Count("goals_behind", "goal behind", "goals behind"),
    Count("goals_at_risk", "goal at risk", "goals at risk"),
    Count("milestones_missed", "milestone missed", "milestones missed"),
    Count("milestones_at_risk", "milestone at risk", "milestones at risk"),
    Count("risks", "open risk", "open risks"),
)


def in_words(counts: Mapping[str, Any], words: Iterable[Count]) -> list[str]:
    """What is not zero."""
    return [counted(counts[each.name], each.one, each.many) for each in words if counts.get(each.name)]


_RECENT = (
    Count("done", "task done", "tasks done"),
    Count("wins", "win", "wins"),
    Count("decisions", "decision", "decisions"),
    Count("changed", "change", "changes"),
)


_STANDINGS = (("goals", ("live", "on_track", "at_risk", "behind")), ("milestones", ("at_risk", "missed")))


def of_project(counts: Mapping[str, Any], state: Any) -> Iterator[str]:
    """Every count of a project that is not zero."""
    tasks, rest, recent = (
        in_words(counts, words) for words in (_STATE_OF_TASKS, _STATE_OF_REST, _RECENT[:1] + _RECENT[2:])
    )
    opened = counted(counts.get("open") or 0, "open task", "open tasks")
    yield f"{'In planning, ' if state == 'planning' else ''}{opened}{': ' if tasks else ''}{', '.join(tasks)}"
    if rest:
        yield ", ".join(rest)
    if recent:
        yield "Lately: " + ", ".join(recent)


def in_numbers(totals: Mapping[str, Any]) -> Iterator[str]:
    """Every total of the document that is not zero."""
    tasks = in_words(totals, _STATE_OF_TASKS)
    yield (
        f"{counted(totals.get('projects', 0), 'project', 'projects')}, "
        f"{counted(totals.get('tasks', 0), 'task', 'tasks')}, {totals.get('open', 0):,} open"
        + (f": {', '.join(tasks)}" if tasks else "")
    )
    recent = in_words(totals, _RECENT)
    if recent:
        yield "Lately: " + ", ".join(recent)
    for name, states in _STANDINGS:
        found = totals.get(name) or {}
        words = [f"{found[state]:,} {state.replace('_', ' ')}" for state in states if found.get(state)]
        if words:
            yield f"{name.capitalize()}: {', '.join(words)}"
    if totals.get("risks"):
        yield f"Open risks: {totals['risks']:,}"


def clock(instant: Any, zone: Any) -> str:
    """``07:00, Europe/Berlin`` of an ISO instant; in UTC where the zone is unknown, empty where there is none."""
    try:
        at = datetime.fromisoformat(str(instant))
    except ValueError:
        return ""
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    try:
        return f"{at.astimezone(ZoneInfo(str(zone))):%H:%M}, {one_line(zone, 40)}"
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return f"{at.astimezone(UTC):%H:%M}, UTC"

"""The brief of a person and a day: one structured document, composed from the digests of their projects.

Everything else about a brief (Markdown, HTML, a chat's text, a model's words) is rendered from this document.
Lists are ``{"total": n, "items": [...]}``: the total is true, the items are the first few. Source of the rules:
specification of the brief, "What it says".
"""

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, timedelta
from itertools import chain
from typing import Any

from foreword.digest import GONE, LEFT, Before, Digest, Item, Listed, Window
from foreword.errors import BadInput

SCHEMA = 1
"""Version of the document."""

Document = dict[str, Any]

PRIORITIES, OF_ONE_PROJECT = 5, 3
"""Actions put first at most; and of one project, as long as others have some."""

ITEMS, SECTION_ITEMS = 10, 5
"""Items of a list over all projects, and of a project's own."""

SECTIONS = 40
"""Projects whose own lists are in the document. Of the others that have something to say it holds the counts."""

DAY, WEEK = timedelta(days=1), timedelta(days=7)

DAILY, RETURN, ASKED = "daily", "return", "asked"
"""Kinds of a brief: on schedule; after an absence; by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Whose brief, of which day.

    Attributes:
        user, name: the actor.
        date, zone: the local date.
        kind: DAILY, RETURN or ASKED.
        window: what counts as recent.
        before: what the previous brief knew.
    """

    user: str
    name: str | None
    date: date
    zone: str
    kind: str = DAILY
    window: Window
    before: Before | None = None


def window_of(now: datetime, day: date, previous: datetime | None, before: date | None) -> Window:
    """What counts as recent at ``now``: since the previous brief, made at ``previous`` for the date ``before``.
    Where that is further back than a week, what was touched in the last day counts as changed.
    """
    if previous is None or before is None:
        return Window(now=now, changed=now - DAY, done=now - DAY)
    return Window(now=now, changed=previous if day - before <= WEEK else now - DAY, done=previous)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A project's part, its handles filled in. ``digest`` without them."""

    handle: str
    digest: Digest

    @property
    def pressing(self) -> tuple[int, int]:
        """How far up it stands: by what presses, then by what moves."""
        counts = self.digest.counts
        return sum(counts[name] for name in _PRESSING), sum(counts[name] for name in _MOVING)


_PRESSING = (
    "overdue",
    "today",
    "blocked",
    "goals_behind",
    "milestones_missed",
    "milestones_at_risk",
    "goals_at_risk",
)
_MOVING = ("upcoming", "in_progress", "changed", "wins", "decisions", "unblocking", "slipped", "new_risks")


def part(found: Digest, handles: Mapping[str, str]) -> Part:
    """A digest with handles; ``handles`` must hold every id of ``Digest.named``."""
    project = handles[found.project_id]

    def named(item: Item) -> Item:
        waits = {"waits_for": [handles[i] for i in item["waits_for"]]} if "waits_for" in item else {}
        return {"id": item["id"], "handle": handles[item["id"]], "project": project, **item, **waits}

    lists = {
        name: Listed(listed.total, tuple((order, named(item)) for order, item in listed.items))
        for name, listed in found.lists.items()
    }
    return Part(handle=project, digest=replace(found, lists=lists, named={}))


def compose(about: About, parts: Iterable[Part], gone: Sequence[str] = ()) -> Document:
    """The document. ``gone`` names projects that went away while their parts were made."""
    ordered = sorted(parts, key=lambda p: (*(-n for n in p.pressing), p.digest.project_id))
    speaking = [each for each in ordered if any(each.pressing)]
    quiet = [each for each in ordered if not any(each.pressing)]
    totals = _totals(ordered)
    document: Document = {
        "schema": SCHEMA,
        "user": about.user,
        "name": about.name,
        "date": about.date.isoformat(),
        "zone": about.zone,
        "kind": about.kind,
        "since": about.before.date.isoformat() if about.before is not None else None,
        "generated_at": about.window.now.isoformat(timespec="seconds"),
        "window_from": about.window.changed.isoformat(timespec="seconds"),
        "summary": dict(UNWORDED),
        "totals": totals,
        "priorities": _priorities(ordered, about.date),
        "attention": {
            name: _merged(ordered, name) for name in ("overdue", "blocked", "at_risk", "risks", "cycles")
        },
        "today": _merged(ordered, "today"),
        "upcoming": _merged(ordered, "upcoming"),
        "wins": _merged(ordered, "wins"),
        "changes": _changes(about, ordered),
        "projects": [_section(each, full=place < SECTIONS) for place, each in enumerate(speaking)],
        "quiet": {"total": len(quiet), "items": [_quiet(each) for each in quiet[:SECTIONS]]},
        "hints": _hints(ordered),
        "gone": list(gone),
    }
    return document


UNWORDED = {"text": "", "words": "template", "why": None}
"""A summary or narrative before anybody has put it into words."""


def worded(
    document: Document, summary: Mapping[str, Any], narratives: Mapping[str, Mapping[str, Any]]
) -> Document:
    """The document with its words: the summary, and narratives by project id."""
    sections = [
        {**section, "narrative": dict(narratives.get(section["id"], section["narrative"]))}
        for section in document["projects"]
    ]
    return {**document, "summary": dict(summary), "projects": sections}


# ---- parts of the document

_SUMMED = (
    "tasks",
    "open",
    "overdue",
    "today",
    "upcoming",
    "blocked",
    "unblocking",
    "in_progress",
    "stale",
    "changed",
    "done",
    "wins",
    "decisions",
    "risks",
)
_SECTION_LISTS = (
    "goals",
    "milestones",
    "risks",
    "overdue",
    "blocked",
    "today",
    "upcoming",
    "in_progress",
    "stale",
    "unblocking",
    "changed",
    "done",
    "decisions",
)


def _totals(parts: Sequence[Part]) -> Document:
    summed: Counter[str] = Counter()
    for each in parts:
        summed.update(each.digest.counts)
    live = sum(summed[f"goals_{status}"] for status in ("on_track", "at_risk", "behind"))
    return {
        "projects": len(parts),
        **{name: summed[name] for name in _SUMMED},
        "goals": {
            "live": live,
            **{status: summed[f"goals_{status}"] for status in ("on_track", "at_risk", "behind")},
        },
        "milestones": {status: summed[f"milestones_{status}"] for status in ("at_risk", "missed")},
    }


def _merged(parts: Sequence[Part], name: str) -> Document:
    """A list over all projects: each part holds its own first ones, so the first of all are among them."""
    found = [each.digest.lists[name] for each in parts]
    first = sorted(chain.from_iterable(listed.items for listed in found), key=lambda keyed: keyed[0])
    return {"total": sum(listed.total for listed in found), "items": [item for _, item in first[:ITEMS]]}


def _own(each: Part, name: str, most: int) -> Document:
    listed = each.digest.lists[name]
    return {"total": listed.total, "items": [item for _, item in listed.items[:most]]}


def _section(each: Part, *, full: bool) -> Document:
    found = each.digest
    header = {key: found.header[key] for key in ("next_step_short", "start_at", "end_at") if key in found.header}
    named = {"next_step_short": "next_step", "start_at": "start", "end_at": "end"}
    return {
        "id": found.project_id,
        "handle": each.handle,
        "name": _name(each),
        "state": found.header.get("state_key"),
        **{named[key]: value for key, value in header.items()},
        "narrative": dict(UNWORDED),
        "counts": dict(found.counts),
        **{name: _own(each, name, SECTION_ITEMS if full else 0) for name in _SECTION_LISTS},
    }


def _quiet(each: Part) -> Document:
    found = each.digest
    return {
        "id": found.project_id,
        "handle": each.handle,
        "name": _name(each),
        "state": found.header.get("state_key"),
        "open": found.counts["open"],
    }


def _name(each: Part) -> str:
    return str(each.digest.header.get("name") or "(untitled)")


def _changes(about: About, parts: Sequence[Part]) -> Document:
    """The difference to the previous brief; empty where there is none to compare with."""
    before = about.before
    still = {each.digest.project_id for each in parts}
    became = {entity: fate for each in parts for entity, fate in each.digest.became.items()}
    return {
        "since": before.date.isoformat() if before is not None else None,
        **{name: _merged(parts, name) for name in ("newly_overdue", "newly_done", "slipped", "new_risks")},
        "priorities": [
            {**action, "became": became.get(action["id"], GONE if action["project_id"] in still else LEFT)}
            for action in (before.priorities if before is not None else ())
        ],
    }


# ---- priority actions


def _priorities(parts: Sequence[Part], day: date) -> list[Item]:
    """The first few candidates of all projects, so that no project has all of them while others have some."""
    keyed = chain.from_iterable(each.digest.lists["candidates"].items for each in parts)
    ordered = [item for _, item in sorted(keyed, key=lambda keyed: keyed[0])]
    taken: Counter[str] = Counter()
    first: list[Item] = []
    later: list[Item] = []
    for item in ordered:
        taken[item["project"]] += 1
        (first if taken[item["project"]] <= OF_ONE_PROJECT else later).append(item)
    chosen = [*first, *later][:PRIORITIES]
    return [{**item, "reason": reason(item, day)} for item in ordered if item in chosen]


def reason(item: Item, day: date) -> str:
    """Why an action comes first, in words: how late or when due, whom it frees, how important it is."""
    said = [_when(item, day)]
    if item.get("frees"):
        said.append(
            "the last thing that another task waits for" if item["frees"] == 1 else f"frees {item['frees']} tasks"
        )
    if item.get("priority") in {1, 2}:
        said.append(f"priority {item['priority']}")
    if item.get("state") == "in_progress":
        said.append("in progress")
    return ", ".join(filter(None, said)) or "open"


YEAR = 365
"""Days to which lateness is counted: beyond it nobody minds the day."""


def _when(item: Item, day: date) -> str:
    if late := item.get("days_late"):
        if late > YEAR and "due" in item:
            return f"late since {date.fromisoformat(item['due']):%B %Y}"
        return f"{late} {'day' if late == 1 else 'days'} late"
    told = ((word, item[name]) for name, word in (("due", "due"), ("start", "starts")) if name in item)
    ahead = [(word, days) for word, at in told if (days := (date.fromisoformat(at) - day).days) >= 0]
    # What starts today and is due next year comes first because it starts.
    near = [(word, days) for word, days in ahead if days <= WEEK.days]
    for word, days in (near or ahead)[:1]:
        return f"{word} {('today', 'tomorrow')[days] if days < 2 else f'in {days} days'}"
    return ""


# ---- hints


def _hints(parts: Sequence[Part]) -> list[str]:
    """What the data lacks, so that more could be said next time."""
    summed: Counter[str] = Counter()
    for each in parts:
        summed.update(each.digest.counts)
    said = (
        ("loose_tasks", "task is linked to nothing", "tasks are linked to nothing"),
        ("goals_idle", "goal has no task or plan", "goals have no task or plan"),
        ("cycles", "task waits for itself through others", "tasks wait for themselves through others"),
        ("stale", "task in progress was not touched for a week", "tasks in progress were not touched for a week"),
    )
    return [f"{n} {one if n == 1 else many}" for name, one, many in said if (n := summed[name])]


# ---- what the next brief compares with


def known(document: Document, parts: Iterable[Part]) -> Before:
    """What this brief knows, for the next one."""
    every = [each.digest for each in parts]
    kept = ("id", "handle", "kind", "title", "project", "project_id", "due")
    return Before(
        date=date.fromisoformat(document["date"]),
        projects=frozenset(each.project_id for each in every),
        open=frozenset(chain.from_iterable(each.open for each in every)),
        due={entity: due for each in every for entity, due in each.due.items()},
        risks=frozenset(chain.from_iterable(each.risks for each in every)),
        priorities=tuple({key: item[key] for key in kept if key in item} for item in document["priorities"]),
    )


def pack(before: Before) -> bytes:
    """``before`` for storage: some 35 bytes an open task."""
    found = asdict(before) | {"date": before.date.isoformat()}
    found |= {name: sorted(found[name]) for name in ("projects", "open", "risks")}
    found["due"] = dict(sorted(before.due.items()))
    return zlib.compress(json.dumps(found, separators=(",", ":")).encode())


def unpack(stored: bytes) -> Before:
    """What ``pack`` made.

    Raises:
        BadInput: it is something else.
    """
    try:
        found = json.loads(zlib.decompress(stored))
        return Before(
            date=date.fromisoformat(found["date"]),
            **{name: frozenset(found[name]) for name in ("projects", "open", "risks")},
            due={**found["due"]},
            priorities=tuple({**action, "id": action["id"]} for action in found["priorities"]),
        )
    except (zlib.error, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(f"what an earlier brief knew cannot be read: {error}") from error

"""A brief as a chat reads it: lines of the bundle's grammar, counted, in an exact token budget.

Every project is a section; an entity stands once, in its project's, however many lists it is in, and its line says
what the lists say of it. Lines are admitted in the order of what presses.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from foreword.brief import Document
from foreword.digest import Item
from foreword.handles import number_of
from foreword.light import WIDTHS
from foreword.lines import LONGEST_LINE, Line
from foreword.text import clean, cut, word
from foreword.tokens import Counter
from foreword.writer import AFTER_TOKENS, Writer

_HEAD, _LAST = 0, 1 << 60
_SECTION = 1 << 40
"""Places of a project."""

LONGEST = 56
"""Tokens of an item's line: a brief shows more, shorter lines than a bundle."""

_KINDS = ("task", "goal", "milestone", "risk", "decision")


def brief_lines(document: Document, count: Counter) -> tuple[list[Line], int]:
    """The lines of a brief in order of rank (``foreword.lines.fit``), and how many are printed in any case."""
    write = Writer(count)
    always = [*_head(document, write), write.plain(_LAST, f"brief of {document['date']}, {document['zone']}")]
    places = {section["id"]: n * _SECTION for n, section in enumerate(document["projects"], 1)}
    headings = {section["id"]: _heading(section, places[section["id"]], write) for section in document["projects"]}
    marks = _marks(document)
    lines: list[Line] = []
    opened: set[str] = set()
    items = {item["id"]: item for item in _in_order(document) if item["project_id"] in places}
    at = _places(items.values(), places)
    for entity, item in items.items():
        project = item["project_id"]
        if project not in opened:
            opened.add(project)
            lines.append(headings[project])
        line = _line(item, marks.get(entity, ()), at[entity], write)
        lines.append(line._replace(heading=places[project]))
    unopened = [headings[section["id"]] for section in document["projects"] if section["id"] not in opened]
    lines += [line._replace(heading=None) for line in unopened]
    lines += _quiet(document, len(document["projects"]) + 1, write)
    return [*always, *lines], len(always)


def _head(document: Document, write: Writer) -> Iterator[Line]:
    totals = document["totals"]
    goals, milestones, changes = totals["goals"], totals["milestones"], document["changes"]
    yield write.named(_HEAD, "# brief for ", str(document["name"] or document["user"]), limit=24)
    numbers = (
        (f"projects: {totals['projects']}", f"quiet: {document['quiet']['total']}"),
        tuple(f"{name}: {totals[key]}" for name, key in _TASK_NUMBERS),
        (f"goals: {goals['live']}", f"behind: {goals['behind']}", f"at risk: {goals['at_risk']}"),
        (
            f"milestones missed: {milestones['missed']}",
            f"at risk: {milestones['at_risk']}",
            f"risks: {totals['risks']}",
        ),
    )
    for place, said in enumerate(numbers, 1):
        yield write.plain(_HEAD + place, ", ".join(said))
    if changes["since"]:
        new = ((name, changes[key]["total"]) for name, key in _NEWS)
        yield write.plain(_HEAD + 9, f"since {changes['since']}: " + ", ".join(f"{name} {n}" for name, n in new))


_TASK_NUMBERS = (
    ("open tasks", "open"),
    ("overdue", "overdue"),
    ("blocked", "blocked"),
    ("due today", "today"),
    ("due in 7 days", "upcoming"),
    ("in progress", "in_progress"),
    ("done", "done"),
    ("changed", "changed"),
)
_NEWS = (
    ("newly overdue", "newly_overdue"),
    ("done", "newly_done"),
    ("slipped", "slipped"),
    ("new risks", "new_risks"),
)


def _heading(section: Mapping[str, Any], place: int, write: Writer) -> Line:
    """``## PRJ2 "Net Loft Library" active, overdue 9, blocked 20``, what is zero left out."""
    counts = section["counts"]
    said = [f"{name} {counts[key]}" for name, key in _SECTION_NUMBERS if counts[key]]
    state = [word(str(section["state"]))] if section.get("state") else []
    ends = [f"until {word(section['end'])}"] if section.get("end") else []
    after = " " + ", ".join([*state, *ends, *said]) if state or ends or said else ""
    line = write.named(place, f"## {section['handle']} ", str(section["name"]), after, limit=LONGEST_LINE)
    return line._replace(heading=place)


_SECTION_NUMBERS = (
    ("overdue", "overdue"),
    ("blocked", "blocked"),
    ("today", "today"),
    ("in 7 days", "upcoming"),
    ("done", "done"),
)


def _in_order(document: Document) -> Iterator[Item]:
    """Every item, first what is to be done first; an entity may come again."""
    attention, changes = document["attention"], document["changes"]
    lists = [
        document["priorities"],
        document["today"]["items"],
        *(attention[name]["items"] for name in ("overdue", "at_risk", "blocked")),
        *(changes[name]["items"] for name in ("slipped", "new_risks")),
        attention["risks"]["items"],
        document["wins"]["items"],
        document["upcoming"]["items"],
        attention["cycles"]["items"],
    ]
    yield from chain.from_iterable(lists)
    # Then the projects' own lists, the first of each before the second of any.
    own = [[item for name in _OWN for item in section[name]["items"]] for section in document["projects"]]
    for nth in range(max(map(len, own), default=0)):
        yield from (items[nth] for items in own if nth < len(items))


_OWN = (
    "overdue",
    "today",
    "goals",
    "blocked",
    "milestones",
    "risks",
    "upcoming",
    "in_progress",
    "done",
    "decisions",
)


def _marks(document: Document) -> dict[str, tuple[str, ...]]:
    """What lists say of an entity beside what is true of it anyway, by id."""
    changes = document["changes"]
    marked = (
        ("first", document["priorities"]),
        ("newly overdue", changes["newly_overdue"]["items"]),
        ("new", changes["new_risks"]["items"]),
    )
    found: dict[str, tuple[str, ...]] = {}
    for mark, items in marked:
        for item in items:
            found[item["id"]] = (*found.get(item["id"], ()), mark)
    for item in changes["slipped"]["items"]:
        found[item["id"]] = (*found.get(item["id"], ()), f"was due {item['was']}")
    return found


def _places(items: Iterable[Item], sections: Mapping[str, int]) -> dict[str, int]:
    """Where each stands: below its project, by kind, there by handle. Who is converted keeps the handle, so that
    a number alone is no place: of two lines at one place only one would be printed.
    """

    def key(item: Item) -> tuple[int, int, int, str]:
        handle = item["handle"]
        return sections[item["project_id"]], _KINDS.index(item["kind"]), number_of(handle), handle

    return {item["id"]: sections[item["project_id"]] + n for n, item in enumerate(sorted(items, key=key), 1)}


def _line(item: Item, marks: tuple[str, ...], place: int, write: Writer) -> Line:
    after = write.widest(lambda width: _said(item, marks, width), AFTER_TOKENS)
    return write.named(place, f"{item['handle']} ", str(item["title"]), after, limit=LONGEST)


def _said(item: Item, marks: tuple[str, ...], width: tuple[int, int]) -> str:
    longest, most = width
    said = [word(str(item["state"]), min(longest, 40))] if item.get("state") else []
    if item.get("blocked") and item.get("state") != "blocked":
        said.append("blocked")
    said += marks
    said += [form.format(word(str(item[field]))) for field, form in _PARTS if item.get(field) is not None]
    if "tasks" in item:
        said.append(f"{item['done']}/{item['tasks']} done")
    if item.get("status") in _STATUSES:
        said.append(_STATUSES[item["status"]])
    if item.get("waits_for"):
        listed, waits = item["waits_for"][:most], item["waits"]
        said.append(f"waits for {' '.join(listed)}" + (f" +{waits - len(listed)}" if waits > len(listed) else ""))
    if item.get("frees"):
        said.append(f"frees {item['frees']}")
    return "".join(f" {part}" for part in said)


_PARTS = (
    ("priority", "p{}"),
    ("start", "start {}"),
    ("due", "due {}"),
    ("done_on", "on {}"),
    ("impact", "impact {}"),
    ("probability", "probability {}"),
)
_STATUSES = {"behind": "behind", "at_risk": "at risk", "missed": "missed", "on_track": "on track"}


def _quiet(document: Document, section: int, write: Writer) -> list[Line]:
    lines = []
    for n, each in enumerate(document["quiet"]["items"]):
        state = f" {word(str(each['state']))}" if each.get("state") else ""
        text = cut(clean(str(each["name"])), WIDTHS[0][0])
        lines.append(
            write.named(section * _SECTION + n, f"{each['handle']} ", text, f"{state}, {each['open']} open")
        )
    return lines

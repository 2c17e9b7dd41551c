"""The items of a brief: which list shows which, and the line of each.

Every item is a line once, in the first list that wants it; the other lists count it and say where it stands.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from foreword.text import quote
from prompts.brief_phrases import (
    FACTS,
    FINISHED,
    LONGEST_MENTION,
    LONGEST_TITLE,
    UNTITLED,
    Calendar,
    Document,
    Item,
    finished,
    moved,
    one_line,
    short_names,
)
from prompts.commonmark import Line, Span


class Plan(NamedTuple):
    """How a list of the document is shown: its section, and the ranks of its lines."""

    path: tuple[str, ...]
    role: str
    level: int
    heading: str
    first: float
    step: float


PRIORITIES = Plan(("priorities",), "first", 2, "Do these first", 1, 0.1)
LISTS = (
    Plan(("attention", "overdue"), "overdue", 3, "Overdue", 3, 1),
    Plan(("attention", "blocked"), "blocked", 3, "Blocked", 3.2, 1),
    Plan(("attention", "cycles"), "cycles", 3, "Waiting for each other", 3.4, 1),
    Plan(("attention", "at_risk"), "at-risk", 3, "Goals and milestones", 4, 1),
    Plan(("attention", "risks"), "risks", 3, "Risks", 5, 1),
    Plan(("today",), "today", 2, "Today", 3.1, 0.8),
    Plan(("upcoming",), "upcoming", 2, "The next seven days", 5.1, 1),
    Plan(("wins",), "wins", 2, "Wins", 5.2, 1),
)
HOMES = ("priorities", "blocked", "overdue", "at_risk", "today", "risks", "cycles", "upcoming", "wins")
"""Which list shows an item that several have: what is blocked cannot be done, however late it is."""
MENTION = "changes"
"""Shows an item that none of them has: a line of what changed names it."""

OF_PROJECT = {
    "goals": 3,
    "milestones": 3,
    "overdue": 3,
    "blocked": 3,
    "today": 3,
    "risks": 2,
    "unblocking": 2,
    "in_progress": 3,
    "stale": 2,
    "upcoming": 2,
    "decisions": 2,
    "done": 2,
    "changed": 2,
}
"""A project's lists in order, and how many of each its section shows."""
OPEN = (
    "goals",
    "milestones",
    "risks",
    "overdue",
    "blocked",
    "today",
    "upcoming",
    "unblocking",
    "in_progress",
    "stale",
)
"""Those of them that hold what is open."""

_NEW = {"newly_overdue": "newly overdue", "new_risks": "new"}
CHANGES = {
    "newly_overdue": "Newly overdue",
    "newly_done": "Done",
    "slipped": "Moved",
    "new_risks": "New risks",
}

MENTIONED = 5
"""Items named in one line."""


class Reading:
    """A document, and what is asked of it again and again."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.calendar = Calendar(document["date"])
        self.totals: Mapping[str, Any] = document.get("totals") or {}
        self.projects: Sequence[Item] = document.get("projects") or ()
        quiet = (document.get("quiet") or {}).get("items") or ()
        self._names = short_names(
            {each["id"]: one_line(each.get("name"), 200) for each in (*self.projects, *quiet)}
        )
        self.alone = self.totals.get("projects") == 1
        self.home = self._homes()
        self.open = self._opened()
        self._new = {item["id"]: word for name, word in _NEW.items() for item in self.list_of("changes", name)[1]}

    def _opened(self) -> Mapping[str, Mapping[str, set[str]]]:
        """By project and kind: the ids of what some list says is open."""
        found: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        paths = [
            *(plan.path for plan in LISTS if plan.path != ("wins",)),
            *(("changes", name) for name in CHANGES if name != "newly_done"),
        ]
        everywhere = [*(self.document.get("priorities") or ())]
        everywhere += [item for path in paths for item in self.list_of(*path)[1]]
        everywhere += [
            item for each in self.projects for name in OPEN for item in (each.get(name) or {}).get("items") or ()
        ]
        for item in everywhere:
            found[item["project_id"]][item.get("kind", "task")].add(item["id"])
        return found

    def list_of(self, *path: str) -> tuple[int, Sequence[Item]]:
        """(total, items) of a list of the document; one that is absent is empty."""
        found: Any = self.document
        for step in path:
            found = found.get(step) or {}
        return total_of(found), found.get("items") or ()

    def _homes(self) -> dict[str, str]:
        """By id: the list that shows an item."""
        paths = {plan.path[-1]: plan.path for plan in LISTS}
        lists = {name: self.list_of(*path)[1] for name, path in paths.items()}
        lists["priorities"] = self.document.get("priorities") or ()
        mentioned = (item for name in CHANGES for item in self.list_of("changes", name)[1][:MENTIONED])
        homes = {item["id"]: MENTION for item in mentioned}
        return homes | {item["id"]: name for name in reversed(HOMES) for item in lists[name]}

    def facts(self, item: Item, *names: str) -> list[str]:
        """What is said of an item in the lists called ``names``."""
        kind = item.get("kind", "task")
        facts = [fact(item, self.calendar) for fact in (FACTS if FINISHED.isdisjoint(names) else (finished,))]
        if item.get("touched"):
            word = "untouched since" if "stale" in names else "changed"
            facts.append(f"{word} {self.calendar.day(item['touched'])}")
        facts.append(self._new.get(item["id"], ""))
        shown = kind != "task" and "risks" not in names and "decisions" not in names
        return list(filter(None, (one_line(kind, 20) if shown else "", *facts)))

    def line(self, item: Item, facts: Iterable[str], *, alone: bool = False) -> Line:
        """``Call the yard: 3 days late (Harbour, T12)``; ``alone``: among those of its project only."""
        said = ", ".join(filter(None, facts))
        return (*self.title_of(item), Span(f": {said} " if said else " "), *self._place(item, alone=alone))

    @staticmethod
    def title_of(item: Item) -> Line:
        """Its title, whole as far as a line goes."""
        return (Span(one_line(item.get("title"), LONGEST_TITLE) or UNTITLED, "title"),)

    def mention(self, item: Item) -> Line:
        """An item inside a line: ``"Call the yard" (T12)`` where it has a line of its own elsewhere."""
        moves = moved(item, self.calendar)
        if self.home[item["id"]] != MENTION:
            handle = one_line(item.get("handle"), 20)
            title = quote(one_line(item.get("title"), LONGEST_MENTION) or UNTITLED)
            said = " ".join(filter(None, (f"({handle})" if handle else "", moves)))
            return (Span(title, "name"), Span(f" {said}" if said else ""))
        return (*self.title_of(item), Span(f" {moves} " if moves else " "), *self._place(item))

    def _place(self, item: Item, *, alone: bool = False) -> Line:
        """``(Harbour, T12)``."""
        handle = one_line(item.get("handle"), 20)
        name = "" if alone else self._name(item)
        if not (name or handle):
            return ()
        comma = ", " if name and handle else ""
        return (Span("("), *((Span(name, "name"),) if name else ()), Span(f"{comma}{handle})"))

    def _name(self, item: Item) -> str:
        """The project's name; none where there is but one."""
        if self.alone:
            return ""
        return self._names.get(item.get("project_id", "")) or one_line(item.get("project"), 20)


def total_of(found: Any) -> int:
    """Of a list of the document, which may be absent."""
    return (found or {}).get("total") or 0

"""A brief in words without any model: its summary, and a narrative for each of its projects.

The summary says the numbers of all projects; a narrative says where one stands, for its numbers and its next step
are printed beside it. Numbers come from the structured document and from nowhere else; titles are quoted and cut.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from foreword.text import clean, cut, quote

Document = Mapping[str, Any]

TITLE = 70
"""Characters of a title in running text."""

SHORT_TITLE = 48
"""Characters of a title in a narrative, which may name four."""

LONGEST_NARRATIVE = 300
"""Characters, as of a model's (``prompts.words``)."""


def summary(document: Document) -> str:
    """Two to four sentences: what presses, what moved since the last brief, what to do first."""
    if not document["totals"]["projects"]:
        return "You have no project in planning or under way, so there is nothing to report."
    return " ".join([_standing(document), *_since(document), *_first(document)])


def narrative(section: Mapping[str, Any], today: date | None = None) -> str:
    """Where a project stands, in at most three sentences: its goals, its next milestone, what holds up others.

    Dates of the year of ``today`` go without their year.
    """
    after = [*_next_milestone(section, today), *_holding_up(section)]
    told = [" ".join([*goals, *after]) for goals in _goals(section)]
    return next((said for said in told if len(said) <= LONGEST_NARRATIVE), told[-1]) or _otherwise(
        section["counts"]
    )


def _goals(section: Mapping[str, Any]) -> Iterator[list[str]]:
    """What is said of goals: of those that press, else of the one that is furthest; the longest first."""
    goals = _items(section, "goals")
    pressing = [each for status in ("behind", "at_risk") for each in goals if each.get("status") == status]
    moving = [each for each in goals if each.get("status") == "on_track" and each.get("tasks")]
    if len(pressing) > 1:
        yield [_of_two(*pressing[:2])]
    if not pressing and moving:
        pressing = [max(moving, key=lambda goal: goal["done"] / goal["tasks"])]
    yield [f"{_of_goal(each)}." for each in pressing[:1]]


def _of_two(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    if one["status"] == other["status"] and not (one.get("tasks") or other.get("tasks")):
        return f"{_short(one)} and {_short(other)} are {_STATUSES[one['status']]}."
    return f"{_of_goal(one)}, and {_of_goal(other)}."


def _of_goal(goal: Mapping[str, Any]) -> str:
    tasks = goal.get("tasks")
    progress = f", {goal['done']} of {tasks} {'task' if tasks == 1 else 'tasks'} done" if tasks else ""
    return f"{_short(goal)} is {_STATUSES[goal['status']]}{progress}"


_STATUSES = {"behind": "behind", "at_risk": "at risk", "on_track": "on track"}


def _next_milestone(section: Mapping[str, Any], today: date | None) -> Iterator[str]:
    ahead = [each for each in _items(section, "milestones") if each.get("status") != "missed" and each.get("due")]
    for each in sorted(ahead, key=lambda milestone: str(milestone["due"]))[:1]:
        due = date.fromisoformat(each["due"])
        year = "" if today is not None and due.year == today.year else f" {due.year}"
        yield f"Next milestone: {_short(each)} on {_day(each['due'])}{year}."


def _holding_up(section: Mapping[str, Any]) -> Iterator[str]:
    """The task for which most others wait, of those that can be done."""
    found = [each for each in _items(section, "unblocking") if each.get("frees")]
    for each in sorted(found, key=lambda task: (bool(task.get("blocked")), -task["frees"]))[:1]:
        others = "another task" if each["frees"] == 1 else f"{each['frees']} other tasks"
        yield f"{_short(each)} holds up {others}."


def _otherwise(counts: Mapping[str, int]) -> str:
    """Where there is nothing to name."""
    pressing = [
        word
        for name, word in (("overdue", "late"), ("blocked", "blocked"), ("today", "due today"))
        if counts[name]
    ]
    if pressing:
        return f"Some of its work is {' and '.join(filter(None, (', '.join(pressing[:-1]), pressing[-1])))}."
    if any(counts[f"goals_{status}"] for status in ("behind", "at_risk")):
        return "Some of its goals are not on track."
    if any(counts[f"milestones_{status}"] for status in ("missed", "at_risk")):
        return "Some of its milestones are missed or close."
    return "Nothing is late, blocked or due today."


def _items(section: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    items: Sequence[Mapping[str, Any]] = section[name]["items"]
    return items


def _short(item: Mapping[str, Any]) -> str:
    return quote(cut(clean(str(item["title"])), SHORT_TITLE))


_PRESSING = (
    ("overdue", "{} overdue"),
    ("blocked", "{} blocked"),
    ("today", "{} for today"),
    ("goals_behind", "{} goal behind", "{} goals behind"),
    ("goals_at_risk", "{} goal at risk", "{} goals at risk"),
    ("milestones_missed", "{} milestone missed", "{} milestones missed"),
    ("milestones_at_risk", "{} milestone at risk", "{} milestones at risk"),
)
_NEWS = (
    ("newly_done", "{} done"),
    ("newly_overdue", "{} newly overdue"),
    ("slipped", "{} put off"),
    ("new_risks", "{} new risk", "{} new risks"),
)


def _numbers(counts: Mapping[str, int], forms: tuple[tuple[str, ...], ...]) -> list[str]:
    """What is not zero, in words: a form for one and a form for many, where they differ."""
    return [forms[-1 if n > 1 else 0].format(n) for name, *forms in forms if (n := counts[name])]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _standing(document: Document) -> str:
    totals = document["totals"]
    pressing = _numbers({**totals, **_flat(totals)}, _PRESSING)
    where = "your project" if totals["projects"] == 1 else f"your {totals['projects']} projects"
    tasks = f"{totals['open']} {'task is' if totals['open'] == 1 else 'tasks are'} open in {where}"
    if not pressing:
        return f"{_sentence(tasks)} Nothing is late, blocked or due today."
    return f"{tasks}: {', '.join(pressing)}."


def _flat(totals: Mapping[str, Any]) -> dict[str, int]:
    return {f"{kind}_{status}": n for kind in ("goals", "milestones") for status, n in totals[kind].items()}


def _since(document: Document) -> Iterator[str]:
    """What moved since the previous brief."""
    changes = document["changes"]
    if changes["since"] is None:
        return
    moved = _numbers({name: changes[name]["total"] for name, *_ in _NEWS}, _NEWS)
    day = f"{date.fromisoformat(changes['since']):%A}, {_day(changes['since'])}"
    yield f"Since {day}: {', '.join(moved)}." if moved else f"Nothing was finished or put off since {day}."


def _first(document: Document) -> Iterator[str]:
    """The first of the priority actions."""
    for action in document["priorities"][:1]:
        title = quote(cut(clean(str(action["title"])), TITLE))
        yield f"Start with {action['handle']} {title}: {action['reason']}."


def _day(iso: str) -> str:
    found = date.fromisoformat(iso)
    return f"{found.day} {found:%B}"

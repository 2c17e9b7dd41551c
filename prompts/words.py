"""Words by a model about a brief's facts: what it is asked, and what becomes of its answer. Pure: who asks is
handed in, and nothing here knows a network.

A model sees facts only, as JSON between fences, and its text is used only when ``prompts.factcheck`` finds nothing
to object to; otherwise the template's text stands, and why is recorded. Titles and names were written by users:
they are data in a prompt, never instructions.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from hashlib import sha256
from importlib.resources import files
from math import isfinite
from string import Template
from typing import Any, Literal

from foreword.errors import Unavailable
from foreword.kinds import FINISHED
from foreword.text import clean, cut
from prompts.factcheck import problems
from prompts.vocabulary import GIVEN_UP, WEEKDAYS

__all__ = [
    "LARGEST_FACTS",
    "LONGEST_NARRATIVE",
    "LONGEST_SUMMARY",
    "PROJECT",
    "SUMMARY",
    "ModelUnavailable",
    "Words",
    "facts_for_project",
    "facts_for_summary",
    "messages_for_project",
    "messages_for_summary",
    "problems",
    "write",
]

SUMMARY, PROJECT = "brief_summary.1", "brief_project.1"
"""Prompts: files ``<name>.<version>.md``, the system's part and the user's with a line ``---`` between."""

LONGEST_SUMMARY, LONGEST_NARRATIVE = 600, 300
"""Characters of an executive summary, and of a project's narrative."""

LARGEST_FACTS = 6_000
"""Characters of the JSON in a prompt. What does not fit is left out from the end; counts never are."""

_MOST_ITEMS, _MOST_PROJECTS = 40, 20
_LONGEST_TITLE, _LONGEST_WORD = 80, 40

Facts = Mapping[str, Any]
Message = dict[str, str]
Ask = Callable[[Sequence[Message]], str]
"""Puts messages to a model and returns its whole text. Raises ModelUnavailable, and for nothing the model says."""


class ModelUnavailable(Unavailable):
    """The model gave no whole answer in time. The message is a short reason, never a key and never its words."""


@dataclass(frozen=True, slots=True)
class Words:
    """Text of a brief, who worded it, and why it is not the model where one was asked."""

    text: str
    words: Literal["model", "template"]
    why: str | None = None


# ---- facts


def facts_for_summary(document: Facts) -> dict[str, Any]:
    """What an executive summary may speak of: counts, projects with their counts, each item once with what it is.

    ``{"date", "weekday", "since", "name", "counts": {word: n}, "projects": [...], "items": [...]}``, at most
    LARGEST_FACTS characters as JSON. The text is checked against exactly this.
    """
    attention, changes = _map(document, "attention"), _map(document, "changes")
    lists = (
        ("priority", document.get("priorities")),
        ("overdue", attention.get("overdue")),
        ("blocked", attention.get("blocked")),
        ("", attention.get("at_risk")),
        ("", attention.get("risks")),
        ("today", document.get("today")),
        ("done", document.get("wins")),
        ("overdue new", changes.get("newly_overdue")),
        ("done new", changes.get("newly_done")),
        ("slipped", changes.get("slipped")),
        ("new", changes.get("new_risks")),
        ("", changes.get("priorities")),
        ("upcoming", document.get("upcoming")),
    )
    totals = _map(document, "totals")
    counts = {
        **{word: n for word, n in totals.items() if isinstance(n, int)},
        **{f"goals_{word}" if word != "live" else "goals": n for word, n in _map(totals, "goals").items()},
        **{f"milestones_{word}": n for word, n in _map(totals, "milestones").items()},
        "wins": _total(document.get("wins")),
        **{word: _total(changes.get(word)) for word in ("newly_overdue", "newly_done", "slipped", "new_risks")},
    }
    projects = [
        {**_short(p, _PROJECT_FIELDS), "counts": _map(p, "counts")} for p in _items(document.get("projects"))
    ]
    return _fitted({**_header(document), "counts": counts}, projects, _merged(lists))


def facts_for_project(section: Facts, document: Facts) -> dict[str, Any]:
    """What a project's narrative may speak of, in the shape of ``facts_for_summary``; counts are the project's."""
    lists = (
        ("overdue", section.get("overdue")),
        ("blocked", section.get("blocked")),
        ("", section.get("goals")),
        ("", section.get("milestones")),
        ("", section.get("risks")),
        ("today", section.get("today")),
        ("in_progress", section.get("in_progress")),
        ("unblocking", section.get("unblocking")),
        ("done", section.get("done")),
        ("upcoming", section.get("upcoming")),
        ("stale", section.get("stale")),
        ("changed", section.get("changed")),
        ("", section.get("decisions")),
    )
    counts = _map(section, "counts")
    project = {**_short(section, _PROJECT_FIELDS), "counts": counts}
    return _fitted({**_header(document), "counts": counts}, [project], _merged(lists))


_PROJECT_FIELDS = ("handle", "name", "state", "next_step", "start", "end")
_ITEM_FIELDS = (
    *("handle", "kind", "title", "project", "state", "priority", "due", "start", "days_late", "done_on"),
    *("waits_for", "frees", "impact", "probability", "done", "tasks", "status", "was", "touched", "became"),
)
_SAYS = {
    "status": {"on_track": "on_track", "at_risk": "at_risk", "behind": "behind", "missed": "missed"},
    "became": {"done": "done", "slipped": "slipped"},
    "state": {"blocked": "blocked", "in_progress": "in_progress", **dict.fromkeys(FINISHED - GIVEN_UP, "done")},
}
"""Values of fields that say what an item is, beside the lists in which it stands."""


def _header(document: Facts) -> dict[str, Any]:
    day = _text(document.get("date"))
    return {
        "date": day,
        "weekday": WEEKDAYS[date.fromisoformat(day).weekday()].capitalize(),
        "since": document.get("since"),
        "name": _text(document.get("name")),
    }


def _merged(lists: Iterable[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Each item once, in the order of its first appearance, with what it ``is``."""
    found: dict[tuple[Any, Any], dict[str, Any]] = {}
    for words, listed in lists:
        for item in _items(listed):
            short = found.setdefault((item.get("project"), item.get("handle")), {})
            short.update(_short(item, _ITEM_FIELDS))
            short["is"] = sorted({*short.get("is", ()), *_being(item), *words.split()})
    return list(found.values())


def _being(item: Facts) -> Iterable[str]:
    yield from (says[item[field]] for field, says in _SAYS.items() if item.get(field) in says)
    if item.get("blocked") or item.get("waits_for"):
        yield "blocked"
    if (item.get("days_late") or 0) > 0:
        yield "overdue"
    if (item.get("frees") or 0) > 0:
        yield "unblocking"
    if item.get("was"):
        yield "slipped"
    if item.get("done_on") and item.get("state") not in GIVEN_UP:
        yield "done"


def _fitted(facts: dict[str, Any], projects: list[Any], items: list[Any]) -> dict[str, Any]:
    """``facts`` with as many projects and items as fit, the first of each before the later ones."""
    projects, items = projects[:_MOST_PROJECTS], items[:_MOST_ITEMS]
    while len(_json({**facts, "projects": projects, "items": items})) > LARGEST_FACTS and (projects or items):
        # Items say more than projects do, so that there are twice as many.
        (items if len(items) > 2 * len(projects) else projects or items).pop()
    return {**facts, "projects": projects, "items": items}


def _short(thing: Facts, fields: Iterable[str]) -> dict[str, Any]:
    return {field: _value(field, thing[field]) for field in fields if thing.get(field) is not None}


def _value(field: str, value: Any) -> Any:
    if isinstance(value, str):
        return _text(value, _LONGEST_TITLE if field in {"title", "name", "next_step"} else _LONGEST_WORD)
    if isinstance(value, float) and not isfinite(value):
        return None  # JSON has no word for it
    return [_text(each) for each in value[:5]] if isinstance(value, list) else value


def _text(value: Any, longest: int = _LONGEST_WORD) -> str:
    """User text as it may be quoted: one line, no quotation marks, so that a quoted title ends where it does."""
    return cut(clean(str(value or "")).translate(_UNQUOTED), longest)


_UNQUOTED = str.maketrans(dict.fromkeys('"“”„‟«»', "'"))


def _items(listed: Any) -> list[Any]:
    return list(listed.get("items", ()) if isinstance(listed, Mapping) else listed or ())


def _total(listed: Any) -> int:
    return int(listed.get("total", 0)) if isinstance(listed, Mapping) else 0


def _map(thing: Facts, name: str) -> dict[str, Any]:
    return dict(thing.get(name) or {})


# ---- prompts


def messages_for_summary(document: Facts) -> list[Message]:
    """The messages that ask for an executive summary of ``document``."""
    return _messages(SUMMARY, facts_for_summary(document), LONGEST_SUMMARY)


def messages_for_project(section: Facts, document: Facts) -> list[Message]:
    """The messages that ask for the narrative of one project of ``document``."""
    return _messages(PROJECT, facts_for_project(section, document), LONGEST_NARRATIVE)


def _messages(prompt: str, facts: Facts, longest: int) -> list[Message]:
    written = _json(facts)
    # Nobody can write a fence that depends on all of the data into the data; nor can a < stand in it.
    fence = f"facts-{sha256(written.encode()).hexdigest()[:16]}"
    return [
        {"role": role, "content": part.substitute(facts=written, fence=fence, longest=longest).strip()}
        for role, part in zip(("system", "user"), _parts(prompt), strict=True)
    ]


def _json(facts: Facts) -> str:
    """Compact JSON in which no data can hold a tag; anything outside a string is ours."""
    return json.dumps(facts, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_INERT)


_INERT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "`": "\\u0060"})


@cache
def _parts(prompt: str) -> tuple[Template, ...]:
    text = files("prompts").joinpath(f"{prompt}.md").read_text(encoding="utf-8")
    return tuple(map(Template, text.split("\n---\n")))


# ---- writing

_TRIES = 2
_LONGEST_WHY = 200
_LONGEST_REFUSED = 1_000
_AGAIN = (
    "That text cannot be used, for these reasons (a JSON list, quoting your text): {wrong}\n"
    "Write it again from the same facts, without these faults. Answer with the text alone."
)


def write(ask: Ask, messages: Sequence[Message], check: Callable[[str], list[str]], template: str) -> Words:
    """The model's words if ``check`` finds no problem in them, at the second try told what was wrong with the
    first; the ``template`` otherwise, with why. Never fails for what a model does or says.
    """
    wrong: list[str] = []
    for _ in range(_TRIES):
        try:
            text = ask(messages).strip()
        except ModelUnavailable as unavailable:
            return Words(template, "template", _why(str(unavailable)))
        wrong = check(text)
        if not wrong:
            return Words(text, "model")
        said = [{"role": "assistant", "content": cut(text, _LONGEST_REFUSED)}] if text else []
        again = {"role": "user", "content": _AGAIN.format(wrong=json.dumps(wrong[:5]).translate(_INERT))}
        messages = [*messages, *said, again]
    return Words(template, "template", _why(f"refused: {'; '.join(wrong)}"))


def _why(text: str) -> str:
    return cut(clean(text), _LONGEST_WHY)

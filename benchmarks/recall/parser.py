"""What a text says, read by somebody who knows only the text: JSON objects, and lines under headings.

Each JSON object is a record; each other line is one, and inherits its nearest heading. A record names an entity
by UUID, by its exact title, or by a handle that a record of the same text binds to a title. What stands between
quotation marks is somebody's words and states nothing.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

HANDLE = re.compile(r"[A-Z]{1,4}[1-9][0-9]*", re.ASCII)
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

KINDS = {
    "task": "tasks", "goal": "goals", "plan": "plans", "milestone": "milestones", "risk": "risks",
    "decision": "decisions", "requirement": "requirements", "document": "documents", "output": "outputs",
    "signal": "signals", "insight": "insights",
}  # fmt: skip
"""What there are, and how several of them are called."""

LABELS: Mapping[str, Sequence[str]] = {
    "due": ("due", "due_at"),
    "target": ("target", "target_date"),
    "start": ("start", "from", "start_at", "starts"),
    "end": ("to", "until", "end", "end_at"),
    "done": ("done", "completed", "achieved", "completed_at"),
    "decided": ("on", "decided", "decision_at"),
    "created": ("created", "created_at"),
    "touched": ("touched", "updated", "updated_at", "ts", "at"),
    "impact": ("impact",),
    "probability": ("probability",),
    "priority": ("priority",),
    "type": ("type", "type_key"),
    "channel": ("channel",),
    "stage": ("stage", "facet_stage"),
    "state": ("state", "state_key"),
    "needed by": ("needed by",),
    "progress": ("progress",),
}
"""What a value may be called, in a text or as a key of JSON."""

DATED = frozenset({"due", "target", "start", "end", "done", "decided", "created", "touched"})
"""The labels whose values are dates."""

WAITS = ("waits for", "blocked by", "waits_for")

COUNTS: Mapping[str, Sequence[str]] = {
    "idle": ("without tasks or plans", "idle"),
    "dated": ("ready and dated",),
}
"""What a count may be called where its name alone is not it."""

IDLE = "no tasks or plans"

UNSET = "unset"
"""What stands where a value would, if there is none."""

_TITLES = ("title", "name", "text", "payload_summary", "label")
_NAMES = ("id", "handle")


@dataclass(slots=True)
class Record:
    """One thing that a text says.

    Attributes:
        heading: the words of the heading it stands under, or the path of keys in JSON.
        names, title: whom it is about: UUIDs and handles, and the title they are bound to.
        above: the title of the heading it stands under, of whom a record is that names nobody.
        mentioned: UUIDs and handles that it names, its own among them.
        values: (label, value) as stated.
        waits: names that its subject waits for; ``waiting`` wait for it.
        words: everything outside quotation marks, in order, that no label explains.
        quoted: what is inside them, but for the title.
        counts: (label, number).
    """

    heading: str = ""
    names: tuple[str, ...] = ()
    title: str | None = None
    above: str | None = None
    mentioned: tuple[str, ...] = ()
    values: list[tuple[str, str]] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    words: tuple[str, ...] = ()
    quoted: tuple[str, ...] = ()
    counts: list[tuple[str, int]] = field(default_factory=list)

    @property
    def said(self) -> str:
        """Its words, to look for a phrase in."""
        return " ".join(word.strip(",:") for word in self.words)

    @property
    def of_kind(self) -> str | None:
        """What it counts: the kind that it begins with, or that its heading is about, in the plural."""
        first = self.words[0].strip(",:") if self.words else ""
        named = {first, *self.heading.split()} & set(KINDS.values())
        return first if first in named else min(named, default=None)


def normal(text: str) -> str:
    """How two texts are compared: composed, in one line, without invisible characters, quotation marks alike."""
    kept = "".join(
        c for c in text.replace('"', "'") if unicodedata.category(c) not in {"Cc", "Cf", "Cs"} or c.isspace()
    )
    return " ".join(unicodedata.normalize("NFC", kept).split())


def parse(text: str) -> list[Record]:
    """The records of ``text``."""
    found = _json(text)
    return list(_objects(found, "") if isinstance(found, dict | list) else _lines(text))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


# ---- lines


def _lines(text: str) -> Iterator[Record]:
    heading, above = "", None
    for line in filter(str.strip, text.split("\n")):
        found = _json(line) if line.startswith("{") else None
        if isinstance(found, dict):
            yield from _objects(found, heading)
            continue
        record = _line(line.lstrip("# "))
        if line.startswith("#"):
            heading, above = record.said, record.title
        record.heading, record.above = heading, above
        yield record


_TOKEN = re.compile(r'"[^"]*"|[^\s"]+')


def _line(line: str) -> Record:
    tokens = _TOKEN.findall(line)
    bare = [_bare(token) for token in tokens if not token.startswith('"')]
    quoted = [normal(token.strip('"')) for token in tokens if token.startswith('"')]
    mentioned = tuple(token for token in bare if _is_name(token))
    first = next((at for at, token in enumerate(tokens) if token.startswith('"')), len(tokens))
    names = tuple(_bare(token) for token in tokens[:first] if _is_name(_bare(token)))[:1]
    # Quotation marks hold a title where a line begins with them, or before them only says whose they are.
    titled = bool(quoted) and (bool(names) or all(token in {"project", *KINDS} for token in tokens[:first]))
    record = Record(
        names=names,
        title=quoted[0] if titled else None,
        mentioned=mentioned,
        quoted=tuple(quoted[1:] if titled else quoted),
        counts=[] if names else list(_counts(line)),
    )
    record.words = tuple(_explain(tokens, record))
    return record


def _bare(token: str) -> str:
    return token.strip(",:")


def _is_name(token: str) -> bool:
    return bool(HANDLE.fullmatch(token) or UUID.fullmatch(token))


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PRIORITY = re.compile(r"p[1-5]")
_SHARE = re.compile(r"[0-9]+/[0-9]+")
_PHRASES = {
    **{tuple(phrase.split()): label for label, phrases in LABELS.items() for phrase in phrases},
    **{tuple(phrase.split()): "waits for" for phrase in WAITS},
}


def _explain(tokens: Sequence[str], record: Record) -> Iterator[str]:
    """Put labelled values, and what has a form of its own (``p2``, ``3/7 done``), into the record; the words that
    are left.
    """
    at = 0
    while at < len(tokens):
        taken = _labelled(tokens, at, record) or _formed(tokens, at, record)
        if not taken and not tokens[at].startswith('"'):
            yield tokens[at].strip(",")
        at += max(taken, 1)


def _labelled(tokens: Sequence[str], at: int, record: Record) -> int:
    """Take a label and what follows it: how many tokens that were."""
    for length in (2, 1):
        label = _PHRASES.get(tuple(map(_bare, tokens[at : at + length])))
        after = at + length
        if label is None or after >= len(tokens):
            continue
        names = _leading_names(tokens[after:])
        if label == "waits for":
            record.waits += names
            return length + len(names)
        if label == "needed by" and names:
            record.waiting += names
            return length + len(names)
        value = tokens[after].strip(",").strip('"')
        # "done" is a state as well, "to" and "on" are words
        if label not in DATED or _DATE.match(value):
            record.values += [] if value == UNSET else [(label, value)]
            return length + 1
    return 0


def _formed(tokens: Sequence[str], at: int, record: Record) -> int:
    token = tokens[at].strip(",")
    if _PRIORITY.fullmatch(token):
        record.values.append(("priority", token[1:]))
        return 1
    if _SHARE.fullmatch(token) and tokens[at + 1 : at + 2] == ["done"]:
        record.values.append(("progress", token))
        return 2
    return 0


def _leading_names(tokens: Sequence[str]) -> list[str]:
    names: list[str] = []
    for token in map(_bare, tokens):
        if not _is_name(token):
            break
        names.append(token)
    return names


_LABELLED = re.compile(r"([A-Za-z_][A-Za-z0-9_.+ -]*?)(?: since [a-z0-9-]+)?: ([0-9]+)(?![0-9/-])")
_NUMBERED = re.compile(r"(?<![0-9/-])([0-9]+) ([a-z_][a-z_ ]*)")


def _counts(line: str) -> Iterator[tuple[str, int]]:
    """``overdue: 4`` or ``4 overdue``, outside quotation marks."""
    bare = re.sub(r'"[^"]*"', "~", line)
    if ": " in bare:
        for label, number in _LABELLED.findall(bare):
            yield label.strip().removeprefix("and "), int(number)
    else:
        for number, label in _NUMBERED.findall(bare):
            yield label.strip(), int(number)


# ---- JSON


def _objects(found: Any, path: str) -> Iterator[Record]:
    """A record of each object, outer ones first; keys on the way are its heading."""
    if isinstance(found, list):
        for each in found:
            yield from _objects(each, path)
    if isinstance(found, dict):
        yield _object(found, path)
        for key, value in found.items():
            yield from _objects(value, f"{path} {key}".strip())


def _object(found: Mapping[str, Any], path: str) -> Record:
    scalars = {key: value for key, value in found.items() if isinstance(value, str | int | float) and value != ""}
    title = next((normal(str(scalars[key])) for key in _TITLES if key in scalars), None)
    flat = {key: value for key, value in found.items() if not isinstance(value, dict)}
    return Record(
        heading=path,
        names=tuple(str(scalars[key]) for key in _NAMES if key in scalars),
        title=title,
        mentioned=tuple(UUID.findall(json.dumps(flat))),
        values=list(_values(scalars)),
        waits=[str(each) for key in WAITS if isinstance(found.get(key), list) for each in found[key]],
        words=tuple(str(scalars[key]) for key in ("state_key", "kind") if key in scalars),
        quoted=tuple(normal(str(value)) for key, value in scalars.items() if key not in _TITLES),
        counts=[(key, value) for key, value in scalars.items() if type(value) is int],
    )


_LABEL_OF = {name: label for label, names in LABELS.items() for name in names}


def _values(scalars: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in scalars.items():
        if key in _LABEL_OF:
            yield _LABEL_OF[key], str(value)
    if {"total_tasks", "completed_tasks"} <= scalars.keys():
        yield "progress", f"{scalars['completed_tasks']}/{scalars['total_tasks']}"

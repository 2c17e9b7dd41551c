"""Reading a sentence about a brief: which entities, numbers, dates and words stand in it, and who is named
together. It is read against the facts (``Known``); whether it is true is ``prompts.factcheck``'s to say. What
cannot be read is said here: the language is closed, and a word outside it is an error.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import takewhile
from typing import Any

from foreword.kinds import FINISHED, KINDS
from foreword.text import clean
from prompts.vocabulary import (
    ADRIFT,
    ALIKE,
    ASKS,
    LABEL,
    MONTHS,
    NEXTS,
    NOUNS,
    NUMERAL,
    PHRASES,
    PRIORITY,
    PUNCTUATION,
    REFUSED,
    ROLES,
    SO,
    SPELLED,
    STATES,
    STOPS,
    TENS,
    WEEKDAYS,
    WHEN,
    is_plain,
)

_LONGEST_QUOTED = 60
APOSTROPHES = str.maketrans({"\u2018": "'", "\u2019": "'"})
PROJECTS = "projects"


# ---- the facts


@dataclass(frozen=True, slots=True)
class Entity:
    """An item or a project, as a text may speak of it."""

    handle: str
    title: str
    project: str
    kind: str  # its plural, as NOUNS has it
    says: frozenset[str]
    dates: Mapping[str, date]
    fields: Mapping[str, Any]
    counts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, thing: Mapping[str, Any], *, is_project: bool) -> "Entity":
        """An item or a project of the facts."""
        state = str(thing.get("state") or "")
        says = {str(word) for word in thing.get("is", ())}
        says.update(filter(None, [STATES.get(state), thing.get("impact")]))
        if state not in FINISHED and "done" not in says:
            says.add("open")
        dates = {role: found for name, role in ROLES.items() if (found := _date(thing.get(name)))}
        says.update(role for role in ("due", "start") if role in dates)
        says.update(name for name in ("priority", "probability") if thing.get(name) is not None)
        if "priority" in thing.get("is", ()) or thing.get("priority") in {1, 2}:
            says.add("top")
        handle, title = str(thing.get("handle", "")), str(thing.get("title") or thing.get("name") or "")
        letters = handle.rstrip("0123456789")
        kinds = {"project"} if is_project else {thing.get("kind"), letters}
        kind = next((each.plural for each in KINDS.all if {each.name, each.handle} & kinds), "")
        project = handle if is_project else str(thing.get("project", ""))
        counts = thing.get("counts") or {}
        return cls(handle, title, project, kind, frozenset(says), dates, thing, counts)

    @property
    def is_project(self) -> bool:
        """Or else an item."""
        return self.kind == PROJECTS


@dataclass(frozen=True, slots=True)
class Known:
    """Everything that a text may state."""

    today: date
    since: date | None
    counts: Mapping[str, int]
    by_handle: Mapping[str, tuple[Entity, ...]]
    by_title: Mapping[str, tuple[Entity, ...]]
    by_step: Mapping[str, tuple[Entity, ...]]
    names: tuple[str, ...]
    address: re.Pattern[str] | None

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "Known":
        """Of facts in the shape of ``prompts.words.facts_for_summary``."""
        projects = [Entity.of(each, is_project=True) for each in facts.get("projects", ())]
        entities = [*projects, *(Entity.of(each, is_project=False) for each in facts.get("items", ()))]
        today = _date(facts.get("date"))
        if today is None:
            raise ValueError("facts without a date cannot be checked against")  # a fault of the caller
        return cls(
            today,
            _date(facts.get("since")),
            {word: n for word, n in facts.get("counts", {}).items() if isinstance(n, int)},
            grouped(entities, lambda entity: entity.handle),
            grouped(entities, lambda entity: _folded(entity.title)),
            grouped(projects, lambda project: _folded(str(project.fields.get("next_step") or ""))),
            tuple(sorted({e.title for e in projects if _is_plain_name(e.title)}, key=len, reverse=True)),
            _address(str(facts.get("name") or "")),
        )

    def titled(self, quoted: str) -> tuple[Entity, ...]:
        """Whom a quotation means: a whole title, or the beginning of one that is cut with an ellipsis."""
        title = _folded(quoted)
        beginning = title.removesuffix("…").removesuffix("...")
        if title in self.by_title or len(title) == len(beginning) or len(beginning) < _SHORTEST_CUT:
            return self.by_title.get(title, ())
        return tuple(each for full, those in self.by_title.items() if full.startswith(beginning) for each in those)


def grouped(entities: Iterable[Entity], key: Callable[[Entity], str]) -> dict[str, tuple[Entity, ...]]:
    """Entities by a name that they may share; those without are left out."""
    found: dict[str, tuple[Entity, ...]] = {}
    for entity in entities:
        found[key(entity)] = (*found.get(key(entity), ()), entity)
    return {name: those for name, those in found.items() if name}


def _date(value: Any) -> date | None:
    try:
        return date.fromisoformat(str(value)[:10]) if value else None
    except ValueError:
        return None


def _folded(title: str) -> str:
    return clean(title).translate(APOSTROPHES).casefold()


_SHORTEST_CUT = 12
"""Characters of a title's beginning that are enough to name it."""
_LONGEST_BARE = 5


def _is_plain_name(name: str) -> bool:
    """Whether a project's name may stand without quotation marks: it is short, and nothing in it can be read as a
    statement. Items may not, for their titles are sentences ("Pay the bank").
    """
    words = name.split()
    plain = len(name) > 2 and name[0].isupper() and not any(map(str.isdigit, name)) and not LABEL.search(name)
    return plain and len(words) <= _LONGEST_BARE and not all(map(is_plain, words))


def _address(name: str) -> re.Pattern[str] | None:
    """The person's name or first name, where it addresses them and nowhere else."""
    if not re.fullmatch(r"[^\W\d_]+(?:[ '-][^\W\d_]+){0,3}", name):
        return None
    names = "|".join(map(re.escape, sorted({name, name.split(maxsplit=1)[0]}, key=len, reverse=True)))
    return re.compile(rf"(?:^\s*|, |\b(?:hello|morning),? )(?P<name>{names})(?=[,:.!?]|$)", re.IGNORECASE)


# ---- a sentence, as marks at places

SUBJECT, NUMBER, DATE, SAYS, NOUN, STOP = "subject", "number", "date", "says", "noun", "stop"
ASK, NEXT = "ask", "next"
_TITLE, STEP, BARE = "\ue000", "\ue001", "\ue002"  # held: a title, a project's next step, a name without marks


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that was read at a place of a sentence: its kind, and what it means."""

    kind: str
    start: int
    end: int
    value: Any
    raw: str


_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
QUOTED = re.compile(r'"([^"]*)"|“([^”]*)”')
_HELD = re.compile("[\ue000-\ue002]([\U000f0000-\U000ffffd])")
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")


class Reading:
    """One text, read against what is known."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._held: list[tuple[Entity, ...]] = []

    def hold(self, text: str) -> tuple[str, list[str]]:
        """``text`` with one held place for every title, and quotations that are none."""
        unknown: list[str] = []

        def quoted(found: re.Match[str]) -> str:
            inside = found[1] if found[1] is not None else found[2]
            for title, tail in ((inside, ""), (inside.rstrip(",.;:!?"), inside[-1:])):
                those = self._known.titled(title)
                if those:
                    return self._held_as(those) + tail
                if step := self._known.by_step.get(_folded(title)):
                    return self._held_as(step, STEP) + tail
            unknown.append(f'no entity has the title "{shown(inside)}"')
            return "_"

        # Characters that stand for titles are none of a text's own.
        held = QUOTED.sub(quoted, re.sub("[\ue000-\ue002\U000f0000-\U000ffffd]", "\ufffd", text))
        if '"' in held or "“" in held or "”" in held:
            unknown.append("a quotation mark is not closed")
        for name in self._known.names:
            those = self._known.by_title[_folded(name)]
            pieces = re.split(rf"(?<!\w){re.escape(name)}(?!\w)", held)
            held = pieces[0] + "".join(self._held_as(those, BARE) + piece for piece in pieces[1:])
        return held, unknown

    def _held_as(self, those: tuple[Entity, ...], sign: str = _TITLE) -> str:
        self._held.append(those)
        return f"{sign}{chr(0xF0000 + len(self._held) - 1)}"

    def marks(self, sentence: str) -> tuple[list[Mark], list[str]]:
        """The marks of a sentence in order, none over another, and what in it is nothing known."""
        rest, wrong = sentence, list[str]()
        marks: list[Mark] = []

        def take(pattern: re.Pattern[str], read: Callable[[re.Match[str]], Iterable[Mark] | str | None]) -> None:
            nonlocal rest
            for found in list(pattern.finditer(rest)):
                read_as = read(found)
                if read_as is None:
                    continue
                if isinstance(read_as, str):
                    wrong.append(read_as)
                else:
                    marks.extend(read_as)
                rest = _without(rest, found.span())

        if self._known.address and (address := self._known.address.search(rest)):
            rest = _without(rest, address.span("name"))
        take(_HELD, lambda f: [Mark(SUBJECT, *f.span(), self._held[ord(f[1]) - 0xF0000], f[0][0])])
        take(WHEN, lambda f: self._when(f, sentence))
        take(ALIKE, self._alike)
        take(SO, lambda _: [])
        take(PHRASES, lambda _: [])
        take(ASKS, lambda f: [Mark(ASK, *f.span(), f[0].lower(), f[0])])
        take(NEXTS, lambda f: [Mark(NEXT, *f.span(), f[0].lower(), f[0])])
        for says, pattern in REFUSED:
            for found in list(pattern.finditer(rest)):
                wrong.append(f'"{shown(found[0])}" {says}')
                rest = _without(rest, found.span())
        take(LABEL, lambda f: [Mark(NOUN if f.lastgroup in NOUNS else SAYS, *f.span(), f.lastgroup, f[0])])
        take(NUMERAL, _number)
        wrong.extend(f'the number in "{shown(found)}" cannot be read' for found in re.findall(r"\S*\d\S*", rest))
        marks.extend(Mark(STOP, *found.span(), None, found[0]) for found in STOPS.finditer(rest))
        marks.sort(key=lambda mark: mark.start)
        wrong.extend(f'it is unclear whom "{found[0]}" means' for found in ADRIFT.finditer(rest))
        wrong.extend(_unplain(rest, marks))
        if {SUBJECT} <= {mark.kind for mark in marks} <= {SUBJECT, STOP} and not _WORD.search(rest):
            wrong.append("a name stands alone and is no sentence")
        return marks, wrong

    def _when(self, found: re.Match[str], sentence: str) -> Iterable[Mark] | str | None:
        if found[0].lower() == "today":
            return _today(found, sentence)
        dates = _dates(found, self._known.today)
        if not dates:
            return f'"{shown(found[0])}" is no date'
        return [Mark(DATE, *found.span(), dates, found[0])]

    def _alike(self, found: re.Match[str]) -> Iterable[Mark] | str | None:
        raw = found[0]
        those = self._known.by_handle.get(raw.upper())
        if those:
            return [Mark(SUBJECT, *found.span(), those, raw)]
        letters = raw.rstrip("0123456789").upper()
        if raw == raw.lower() and PRIORITY.fullmatch(raw):
            return [Mark(NUMBER, *found.span(), (int(raw[1]), "priority"), raw)]
        if letters in {kind.handle for kind in KINDS.all}:
            return f"there is no {shown(raw)} in the facts"
        return f'"{shown(raw)}" is not in the facts'


def _without(text: str, span: tuple[int, int]) -> str:
    return text[: span[0]] + " " * (span[1] - span[0]) + text[span[1] :]


def _unplain(rest: str, marks: Sequence[Mark]) -> Iterator[str]:
    """Words in what is left of a sentence that are not plain ones, and symbols that prose does without."""
    ends = {mark.end for mark in marks}
    for found in _WORD.finditer(rest):
        possessive = found[0] == "s" and rest[found.start() - 1] == "'" and found.start() - 1 in ends
        if not possessive and not is_plain(found[0]):
            yield f'it uses the word "{shown(found[0])}", which is not among those allowed'
    odd = {char for char in rest if not char.isalnum() and char not in PUNCTUATION and char != "_"}
    if odd:
        yield f"it has the symbols {' '.join(sorted(odd))}"


def shown(text: str) -> str:
    """What is wrong, quoted no longer than need be."""
    return clean(text)[:_LONGEST_QUOTED]


def _today(found: re.Match[str], sentence: str) -> Iterable[Mark] | None:
    """A label after "due" or "starting", a date elsewhere."""
    before = sentence[: found.start()].rstrip().lower()
    if before.endswith(("due", "starting", "starts", "for")):
        return None
    return [Mark(DATE, *found.span(), "today", found[0])]


def _dates(found: re.Match[str], today: date) -> tuple[date, ...]:
    """The dates that the words can mean; none where there is no such date or its weekday is another."""
    part = found.groupdict()
    if part["iso"]:
        exact = _date(part["iso"])
        return (exact,) if exact else ()
    if part["relative"]:
        days = {"tomorrow": 1, "yesterday": -1}.get(part["relative"].lower(), 0)
        return (today + timedelta(days=days),)
    if part["weekday"]:
        near = (today + timedelta(days=n) for n in range(-7, 8))
        return tuple(day for day in near if WEEKDAYS[day.weekday()] == part["weekday"].lower())
    if part["m3"]:
        first = _date(f"{int(part['y3']):04}-{_month(part['m3']):02}-01")
        within = [first + timedelta(days=n) for n in range(31)] if first else []
        return tuple(each for each in within if first and each.month == first.month)
    month, day = part["m1"] or part["m2"], int(part["d1"] or part["d2"])
    number = _month(month)
    year, weekday = part["y1"] or part["y2"], part["w1"] or part["w2"]
    years = (int(year),) if year else (today.year, today.year - 1, today.year + 1)
    meant = (_date(f"{each:04}-{number:02}-{day:02}") for each in years)
    return tuple(
        each for each in meant if each and (not weekday or WEEKDAYS[each.weekday()][:2] == weekday[:2].lower())
    )


def _month(name: str) -> int:
    return next(n for n, each in enumerate(MONTHS, 1) if each.startswith(name[:3].lower()))


def _number(found: re.Match[str]) -> Iterable[Mark]:
    part = found.groupdict()
    if part["n"]:
        value = float(part["n"].replace(",", ""))
    elif part["tens"]:
        value = TENS[part["tens"].lower()] + SPELLED[part["unit"].lower()]
    else:
        value = SPELLED[part["spelled"].lower()] if part["spelled"] else 0
    unit = "percent" if part["percent"] or part["spelled_percent"] else ""
    return [Mark(NUMBER, *found.span(), (value, unit), found[0])]


# ---- who is spoken of


@dataclass(frozen=True, slots=True)
class Group:
    """Entities named together: what is said of them is said of each. An entity may be named by a handle and its
    title at once, and with the project that it is ``inside`` of.
    """

    start: int
    end: int
    entities: tuple[Entity, ...]
    last: tuple[Entity, ...]  # whom the latest name can mean
    inside: tuple[Entity, ...] = ()
    mismatched: tuple[str, ...] = ()

    def narrowed(self, end: int, to: tuple[Entity, ...], otherwise: str) -> "Group":
        """This group, where its latest name means one of ``to`` only."""
        if not to:
            return replace(self, end=end, mismatched=(*self.mismatched, otherwise))
        earlier = tuple(entity for entity in self.entities if entity not in self.last)
        return replace(self, end=end, entities=earlier + to, last=to)

    @property
    def projects(self) -> tuple[Entity, ...]:
        """The projects that this names."""
        return (*(entity for entity in self.entities if entity.is_project), *self.inside)


_APPOSED = re.compile(r"[ (]*\Z")
JOINED = re.compile(r"[ ()]*(?:,|,? ?\band\b|,? ?\bor\b|&)[ ()]*\Z")
_INSIDE = re.compile(r"[ )]*\b(?:in|of|from|for|at|under)\b[ (]*\Z")


def named_together(sentence: str, marks: Iterable[Mark]) -> list[Group]:
    """Who is spoken of, in order."""
    found: list[Group] = []
    for mark in (mark for mark in marks if mark.kind == SUBJECT):
        those: tuple[Entity, ...] = mark.value
        alone = Group(mark.start, mark.end, those, those)
        if not found:
            found.append(alone)
            continue
        group, between = found[-1], sentence[found[-1].end : mark.start]
        if _APPOSED.match(between):
            both = tuple(entity for entity in group.last if entity in those)
            found[-1] = group.narrowed(mark.end, both, "a handle stands with the title of another entity")
        elif alone.projects and not group.projects and _INSIDE.match(between):
            homes = {project.handle for project in alone.projects}
            inside = tuple(entity for entity in group.last if entity.project in homes)
            narrowed = group.narrowed(mark.end, inside, "an entity is said to be in a project that it is not in")
            found[-1] = replace(narrowed, inside=alone.projects)
        elif bool(alone.projects) == bool(group.projects) and JOINED.match(between):
            found[-1] = replace(group, end=mark.end, entities=group.entities + those, last=those)
        else:
            found.append(alone)
    return found


def placed(
    text: str, marks: Sequence[Mark], groups: Sequence[Group], carried: Sequence[Entity]
) -> tuple[list[Group], list[str]]:
    """The groups with their handles narrowed to the project that they are said to be in, and who is not in it."""
    found, wrong = list(groups), list[str]()
    for place, group in enumerate(groups):
        if not all(entity.is_project for entity in group.entities):
            continue
        homes = {project.handle for project in group.entities}
        before = place - 1 if place and not groups[place - 1].projects else None
        governs = bool(_GOVERNED.search(text[: group.start])) or text[group.end :].startswith("'s")
        if before is not None:
            stops = (m for m in marks if m.kind == STOP and groups[before].end <= m.start < group.start)
            governs = governs or next(stops, None) is None
        theirs = {each.project for each in carried if not each.is_project}
        if before is None and governs and _ITS.search(text[: group.start]) and not theirs <= homes:
            wrong.append("an entity is said to be in a project that it is not in")
        if before is not None and governs:
            inside = [before]
        else:
            inside = list(takewhile(lambda n: not groups[n].projects, range(place + 1, len(groups))))
        for each in inside:
            kept = tuple(entity for entity in found[each].entities if entity.project in homes)
            if {e.handle for e in kept} == {e.handle for e in found[each].entities}:
                found[each] = replace(found[each], entities=kept, last=kept)
            else:
                wrong.append("an entity is said to be in a project that it is not in")
    return found, wrong


_ITS = re.compile(r"\b(?:it|they|both|this|these|which)\b", re.IGNORECASE)
_GOVERNED = re.compile(
    r"\b(?:in|of|from|for|at|on|to|with|by|project|projects)(?: the| your)?(?: projects?)? ?\(?\Z", re.IGNORECASE
)

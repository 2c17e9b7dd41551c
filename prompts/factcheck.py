"""The fact check: whether a text about a brief says anything that the brief's facts do not. Pure.

It reads a small English and refuses what it cannot read: a false refusal costs a nicer sentence, a false
acceptance is a lie in somebody's morning. Every handle, quoted title, number, date and state is tied to what it
speaks of: the last entity named before it in its sentence, else the first one after it, else the whole. What it
cannot know is opinion ("this matters most"): words without a number, date, name or state.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

from foreword.kinds import FINISHED, KINDS
from foreword.text import clean

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS_WORDS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_TENS = {word: 10 * n for n, word in enumerate(_TENS_WORDS, 2)}
_SPELLED = {word: n for n, word in enumerate(_SMALL)} | _TENS
_NOTHING = ("no", "none", "nothing")

_LONGEST_QUOTED = 60
_APOSTROPHES = str.maketrans({"\u2018": "'", "\u2019": "'"})


def problems(text: str, facts: Mapping[str, Any], longest: int) -> list[str]:
    """What is wrong with ``text``, for whoever has to write it again; nothing when it may be used.

    ``facts`` has the shape of ``prompts.words.facts_for_summary``, ``longest`` is in characters.
    """
    text = text.translate(_APOSTROPHES)
    wrong = [says for says, found in _FORM if found(text)]
    if len(text) > longest:
        wrong.append(f"it has {len(text)} characters, {longest} are allowed")
    if wrong:
        return wrong
    reading = _Reading(_Known.of(facts))
    wrong = list(dict.fromkeys(reading.problems(text)))
    return wrong if wrong or reading.stated else ["it names no entity and no number of the facts"]


# ---- form

_MARKUP = re.compile(r"[<>`*#|\[\]{}\\_~^=@$€£+]|&\w+;|https?:|www\.|\w/\w", re.IGNORECASE)
_LEAK = re.compile(
    r"\bfacts-|\b(?:instructions?|prompts?|json|language model|as an ai|assistant|system message|i'm sorry"
    r"|i am sorry|i (?:cannot|can't|can not|will not|won't))\b",
    re.IGNORECASE,
)
_ENGLISH = re.compile(
    r"\b(?:the|is|are|and|has|have|with|of|to|at|due|late|overdue|blocked|missed|done|nothing)\b", re.IGNORECASE
)
_DIGITS_ELSEWHERE = re.compile(r"[^\D0-9]|[²³¹¼-¾⁰-₟⅐-↋①-⓿]")

_FORM: tuple[tuple[str, Callable[[str], object]], ...] = (
    ("it is empty", lambda text: not text.strip()),
    ("it has line breaks or characters that cannot be printed", lambda text: not text.isprintable()),
    ("it has markup, a link or a symbol that only code or money needs", _MARKUP.search),
    ("it speaks of its instructions", lambda text: _LEAK.search(_outside(text))),
    ("it has digits or numbers other than 0 to 9", _DIGITS_ELSEWHERE.search),
    ("it is not English", lambda text: text.strip() and not _ENGLISH.search(_outside(text))),
    ("it does not end a sentence", lambda text: text.strip() and text.strip()[-1] not in '.!?)"”'),
)


def _outside(text: str) -> str:
    return _QUOTED.sub(" ", text)


# ---- facts

_ROLES = {"due": "due", "end": "due", "start": "start", "done_on": "done", "was": "was", "touched": "changed"}


@dataclass(frozen=True, slots=True)
class _Entity:
    """An item or a project, as a text may speak of it."""

    handle: str
    title: str
    project: str
    is_project: bool
    says: frozenset[str]
    dates: Mapping[str, date]
    fields: Mapping[str, Any]
    counts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, thing: Mapping[str, Any], *, is_project: bool) -> "_Entity":
        says = {str(word) for word in thing.get("is", ())}
        says.add("done" if thing.get("state") in FINISHED or "done" in says else "open")
        says.update({"live"} if thing.get("state") == "active" else (), filter(None, [thing.get("impact")]))
        dates = {role: found for name, role in _ROLES.items() if (found := _date(thing.get(name)))}
        handle, title = str(thing.get("handle", "")), str(thing.get("title") or thing.get("name") or "")
        project = handle if is_project else str(thing.get("project", ""))
        counts = thing.get("counts") or {}
        return cls(handle, title, project, is_project, frozenset(says), dates, thing, counts)


@dataclass(frozen=True, slots=True)
class _Known:
    """Everything that a text may state."""

    today: date
    since: date | None
    counts: Mapping[str, int]
    by_handle: Mapping[str, tuple[_Entity, ...]]
    by_title: Mapping[str, tuple[_Entity, ...]]
    names: tuple[str, ...]
    words: frozenset[str]

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "_Known":
        projects = [_Entity.of(each, is_project=True) for each in facts.get("projects", ())]
        entities = [*projects, *(_Entity.of(each, is_project=False) for each in facts.get("items", ()))]
        spoken = [entity.title for entity in entities] + [str(facts.get("name") or "")]
        today = _date(facts.get("date"))
        if today is None:
            raise ValueError("facts without a date cannot be checked against")  # a fault of the caller
        return cls(
            today,
            _date(facts.get("since")),
            {word: n for word, n in facts.get("counts", {}).items() if isinstance(n, int)},
            _grouped(entities, lambda entity: entity.handle),
            _grouped(entities, lambda entity: _folded(entity.title)),
            tuple(sorted({e.title for e in projects if _is_plain_name(e.title)}, key=len, reverse=True)),
            frozenset(word.casefold() for word in _WORD.findall(" ".join(spoken))),
        )


def _grouped(entities: Iterable[_Entity], key: Callable[[_Entity], str]) -> dict[str, tuple[_Entity, ...]]:
    found: dict[str, tuple[_Entity, ...]] = {}
    for entity in entities:
        found[key(entity)] = (*found.get(key(entity), ()), entity)
    return {name: those for name, those in found.items() if name}


def _date(value: Any) -> date | None:
    try:
        return date.fromisoformat(str(value)[:10]) if value else None
    except ValueError:
        return None


def _folded(title: str) -> str:
    return clean(title).translate(_APOSTROPHES).casefold()


def _is_plain_name(name: str) -> bool:
    """Whether a project's name may stand without quotation marks: nothing in it can be read as a statement."""
    return len(name) > 2 and name[0].isupper() and not any(map(str.isdigit, name)) and not _LABEL.search(name)


# ---- a sentence, as marks at places

_SUBJECT, _NUMBER, _DATE, _SAYS, _NOUN, _STOP = "subject", "number", "date", "says", "noun", "stop"


@dataclass(frozen=True, slots=True)
class _Mark:
    kind: str
    start: int
    end: int
    value: Any
    raw: str


_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_QUOTED = re.compile(r'"([^"]*)"|“([^”]*)”')
_HELD = re.compile("\ue000([\U000f0000-\U000ffffd])")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")

_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if name != "september" else "sept?(?:ember)?" for name in _MONTHS)
_WEEKDAY = "|".join(WEEKDAYS) + "|mon|tues?|wed|thurs?|thu|fri|sat|sun"
_DAY, _YEAR = r"(?P<{0}>[0-3]?\d)(?:st|nd|rd|th)?", r"(?:,? (?P<{0}>\d{{4}}))?"
_WHEN = re.compile(
    rf"\b(?P<iso>\d{{4}}-\d\d-\d\d)\b"
    rf"|\b(?:(?P<w1>{_WEEKDAY})\.?,? (?:the )?)?{_DAY.format('d1')} (?:of )?(?P<m1>{_MONTH})\b\.?"
    rf"{_YEAR.format('y1')}"
    rf"|\b(?:(?P<w2>{_WEEKDAY})\.?,? )?(?P<m2>{_MONTH})\.? {_DAY.format('d2')}\b{_YEAR.format('y2')}"
    rf"|\b(?P<relative>tomorrow|yesterday|tonight|today)\b"
    rf"|\b(?P<weekday>{'|'.join(WEEKDAYS)})\b",
    re.IGNORECASE,
)
_NUMERAL = re.compile(
    r"(?<![\w.,])(?P<n>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?P<percent> ?%| percent\b)?(?![\w%]|[.,:/-]\d)"
    rf"|\b(?P<tens>{'|'.join(_TENS)})-(?P<unit>{'|'.join(_SMALL[1:10])})\b"
    rf"|\b(?P<spelled>{'|'.join(_SPELLED)})\b(?P<spelled_percent> percent\b)?"
    rf"|\b(?P<nothing>{'|'.join(_NOTHING)})\b",
    re.IGNORECASE,
)
_ALIKE = re.compile(r"(?<!\w)(?=\w*[^\W\d_])(?=\w*\d)\w+(?:-\w*\d\w*)*")
"""What has letters and digits: a handle, a priority, or nothing that is known."""
_PRIORITY = re.compile(r"p([1-5])", re.IGNORECASE)

_VERBS = {
    "overdue": r"overdue|late|past due|delayed|past (?:its|their) (?:due date|deadline)",
    "done": r"done|finished|completed|closed|achieved|delivered|shipped|resolved|mitigated|accomplished|wins?|won"
    r"|(?:is|are|was|were|now|already|been) complete",
    "blocked": r"blocked|stuck|wait(?:s|ing)?(?: for| on)?|held up|depend(?:s|ing)? on|on hold",
    "in_progress": r"in progress|under ?way|ongoing|started|begun|being worked on",
    "open": r"open|unfinished|remain(?:s|ing)?|outstanding|pending|still to do",
    "stale": r"stale|untouched|idle|neglected|forgotten",
    "changed": r"changed|updated|touched|modified",
    "unblocking": r"unblock(?:s|ing)?|frees?|freeing|unlock(?:s|ing)?|blocks|blocking|hold(?:s|ing) up|needed by",
    "upcoming": r"upcoming|coming up|next (?:7|seven) days",
    "today": r"due today|starting today|starts today|due and starting today",
    "at_risk": r"at risk|in danger|endangered",
    "behind": r"behind(?: schedule)?",
    "on_track": r"on track|on schedule|on time",
    "missed": r"missed",
    "slipped": r"slipped|postponed|pushed back|rescheduled|moved",
    "new": r"newly|new",
    "critical": r"critical",
    "high": r"high[- ]impact|high impact",
    "medium": r"medium[- ]impact",
    "low": r"low[- ]impact",
    "priority": r"priority|top priority",
    "days": r"days?",
    "live": r"live|active",
    "probability": r"probability|likelihood|chance",
}
_NOUNS = {
    "tasks": r"tasks?",
    "projects": r"projects?",
    "goals": r"goals?",
    "milestones": r"milestones?",
    "risks": r"risks?",
    "decisions": r"decisions?",
}
_LABEL = re.compile(
    "|".join(rf"\b(?P<{word}>{pattern})\b" for word, pattern in (_VERBS | _NOUNS).items()), re.IGNORECASE
)
_STOPS = re.compile(r"[,:;()–—]|\b(?:and|but|while|whereas|because|so|or|then)\b", re.IGNORECASE)  # noqa: RUF001
_CARRIED = re.compile(r"\b(?:it|its|they|them|their|both|this|these|those|that|there|which|who)\b", re.IGNORECASE)
_UNREADABLE = (
    (
        "denies something",
        r"not|\w+n't|never|hardly|barely|without|neither|nor|cannot|no longer|except|other than|excluding",
    ),
    (
        "says how many in words that cannot be checked",
        (
            r"all|every|everything|everyone|each|always|entire(?:ly)?|whole|most|mostly|majority|half|thirds?|quarters?"
            r"|dozens?|hundreds?|thousands?|millions?|twice|doubled?|triple|couple|pair|several|many|few|fewer"
            r"|second|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|nearly|almost|about|around|over"
            r"|under|approximately|roughly|at least|more than|less than|up to|only"
        ),
    ),
    (
        "speaks of a period that the facts do not have",
        (
            r"(?:this|next|last|coming|past|previous|the) (?:quarter|few days)"
            r"|weeks?|months?|years?|hours?|minutes?|weekend|fortnight|o'clock|[ap]\.?m\.?"
            rf"|(?:in|by|since|until|of|early|late|mid|during|before|after) (?:{_MONTH})(?! \d)"
        ),
    ),
    ("expects what is not known yet", r"will|going to|expected|probably|likely|soon"),
)
_REFUSED = tuple(
    (says, re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE)) for says, pattern in _UNREADABLE
)
_PUNCTUATION = frozenset(" .,:;!?()'\"“”–—-%…&")  # noqa: RUF001  # what prose is written with


class _Reading:
    """One text, read against what is known."""

    def __init__(self, known: _Known) -> None:
        self._known = known
        self._held: list[tuple[_Entity, ...]] = []
        self.stated = 0

    def problems(self, text: str) -> Iterator[str]:
        held, unknown = self._hold(text)
        yield from unknown
        carried: tuple[_Entity, ...] = ()
        for sentence in _SENTENCE_END.split(held):
            marks, wrong = self._marks(sentence)
            yield from wrong
            groups = _groups(sentence, marks)
            before = carried if _CARRIED.search(sentence) else ()
            yield from _Sentence(self._known, sentence, marks, groups, before).problems()
            yield from (wrong for group in groups for wrong in group.mismatched)
            self.stated += sum(mark.kind in {_SUBJECT, _NUMBER} for mark in marks)
            carried = groups[-1].entities if groups else before

    def _hold(self, text: str) -> tuple[str, list[str]]:
        """``text`` with one held place for every title, and quotations that are none."""
        unknown: list[str] = []

        def quoted(found: re.Match[str]) -> str:
            inside = found[1] if found[1] is not None else found[2]
            for title, tail in ((inside, ""), (inside.rstrip(",.;:!?"), inside[-1:])):
                those = self._known.by_title.get(_folded(title))
                if those:
                    return self._held_as(those) + tail
            unknown.append(f'no entity has the title "{_shown(inside)}"')
            return "_"

        held = _QUOTED.sub(quoted, text)
        if '"' in held or "“" in held or "”" in held:
            unknown.append("a quotation mark is not closed")
        for name in self._known.names:
            those = self._known.by_title[_folded(name)]
            pieces = re.split(rf"(?<!\w){re.escape(name)}(?!\w)", held)
            held = pieces[0] + "".join(self._held_as(those) + piece for piece in pieces[1:])
        return held, unknown

    def _held_as(self, those: tuple[_Entity, ...]) -> str:
        self._held.append(those)
        return f"\ue000{chr(0xF0000 + len(self._held) - 1)}"

    def _marks(self, sentence: str) -> tuple[list[_Mark], list[str]]:
        """The marks of a sentence in order, none over another, and what in it is nothing known."""
        rest, wrong = sentence, list[str]()
        marks: list[_Mark] = []

        def take(pattern: re.Pattern[str], read: Callable[[re.Match[str]], Iterable[_Mark] | str | None]) -> None:
            nonlocal rest
            for found in list(pattern.finditer(rest)):
                read_as = read(found)
                if read_as is None:
                    continue
                if isinstance(read_as, str):
                    wrong.append(read_as)
                else:
                    marks.extend(read_as)
                rest = rest[: found.start()] + " " * (found.end() - found.start()) + rest[found.end() :]

        take(_HELD, lambda f: [_Mark(_SUBJECT, f.start(), f.end(), self._held[ord(f[1]) - 0xF0000], "title")])
        take(_WHEN, lambda f: self._when(f, sentence))
        take(_ALIKE, self._alike)
        wrong.extend(
            f'"{_shown(found[0])}" {says}' for says, pattern in _REFUSED for found in pattern.finditer(rest)
        )
        take(_LABEL, lambda f: [_Mark(_NOUN if f.lastgroup in _NOUNS else _SAYS, *f.span(), f.lastgroup, f[0])])
        take(_NUMERAL, _number)
        wrong.extend(f'the number in "{_shown(found)}" cannot be read' for found in re.findall(r"\S*\d\S*", rest))
        marks.extend(_Mark(_STOP, *found.span(), None, found[0]) for found in _STOPS.finditer(rest))
        wrong.extend(self._names(sentence, rest))
        return sorted(marks, key=lambda mark: mark.start), wrong

    def _when(self, found: re.Match[str], sentence: str) -> Iterable[_Mark] | str | None:
        if found[0].lower() == "today":
            return _today(found, sentence)
        dates = _dates(found, self._known.today)
        if not dates:
            return f'"{_shown(found[0])}" is no date'
        return [_Mark(_DATE, *found.span(), dates, found[0])]

    def _alike(self, found: re.Match[str]) -> Iterable[_Mark] | str | None:
        raw = found[0]
        those = self._known.by_handle.get(raw.upper())
        if those:
            return [_Mark(_SUBJECT, *found.span(), those, raw)]
        letters = raw.rstrip("0123456789").upper()
        if raw == raw.lower() and _PRIORITY.fullmatch(raw):
            return [_Mark(_NUMBER, *found.span(), (int(raw[1]), "priority"), raw)]
        if letters in {kind.handle for kind in KINDS.all}:
            return f"there is no {_shown(raw)} in the facts"
        return f'"{_shown(raw)}" is not in the facts'

    def _names(self, sentence: str, rest: str) -> Iterator[str]:
        """Words that are names of nobody known, or in another script; symbols that prose does without."""
        for found in _WORD.finditer(rest):
            word = found[0]
            begins = not sentence[: found.start()].strip(" (“\"'")
            foreign = not word.isascii()
            named = word[0].isupper() and not begins and word not in {"I", "I'm"}
            if (foreign or named) and not self._is_known(word):
                yield f'"{_shown(word)}" is a name or a word that the facts do not have'
        odd = {char for char in rest if not char.isalnum() and char not in _PUNCTUATION and char != "_"}
        if odd:
            yield f"it has the symbols {' '.join(sorted(odd))}"

    def _is_known(self, word: str) -> bool:
        folded = word.casefold().removesuffix("'s")
        return folded in self._known.words or all(part in self._known.words for part in folded.split("-"))


def _shown(text: str) -> str:
    return clean(text)[:_LONGEST_QUOTED]


def _today(found: re.Match[str], sentence: str) -> Iterable[_Mark] | None:
    """A label after "due" or "starting", a date elsewhere."""
    before = sentence[: found.start()].rstrip().lower()
    if before.endswith(("due", "starting", "starts")):
        return None
    return [_Mark(_DATE, *found.span(), "today", found[0])]


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
    month, day = part["m1"] or part["m2"], int(part["d1"] or part["d2"])
    number = next(n for n, name in enumerate(_MONTHS, 1) if name.startswith(month[:3].lower()))
    year, weekday = part["y1"] or part["y2"], part["w1"] or part["w2"]
    years = (int(year),) if year else (today.year, today.year - 1, today.year + 1)
    meant = (_date(f"{each:04}-{number:02}-{day:02}") for each in years)
    return tuple(
        each for each in meant if each and (not weekday or WEEKDAYS[each.weekday()][:2] == weekday[:2].lower())
    )


def _number(found: re.Match[str]) -> Iterable[_Mark]:
    part = found.groupdict()
    if part["n"]:
        value = float(part["n"].replace(",", ""))
    elif part["tens"]:
        value = _TENS[part["tens"].lower()] + _SPELLED[part["unit"].lower()]
    else:
        value = _SPELLED[part["spelled"].lower()] if part["spelled"] else 0
    unit = "percent" if part["percent"] or part["spelled_percent"] else ""
    return [_Mark(_NUMBER, *found.span(), (value, unit), found[0])]


# ---- who is spoken of


@dataclass(frozen=True, slots=True)
class _Group:
    """Entities named together: what is said of them is said of each. An entity may be named by a handle and its
    title at once, and with the project that it is ``inside`` of.
    """

    start: int
    end: int
    entities: tuple[_Entity, ...]
    last: tuple[_Entity, ...]  # whom the latest name can mean
    inside: tuple[_Entity, ...] = ()
    mismatched: tuple[str, ...] = ()

    def narrowed(self, end: int, to: tuple[_Entity, ...], otherwise: str) -> "_Group":
        """This group, where its latest name means one of ``to`` only."""
        if not to:
            return replace(self, end=end, mismatched=(*self.mismatched, otherwise))
        earlier = tuple(entity for entity in self.entities if entity not in self.last)
        return replace(self, end=end, entities=earlier + to, last=to)

    @property
    def projects(self) -> tuple[_Entity, ...]:
        """The projects that this names."""
        return (*(entity for entity in self.entities if entity.is_project), *self.inside)


_APPOSED = re.compile(r"[ (]*\Z")
_JOINED = re.compile(r"[ ()]*(?:,|,? ?\band\b|,? ?\bor\b|&)[ ()]*\Z")
_GOES_ON = re.compile(r" and (?:is|are|was|were|has|have)\b")
"""After "T1 waits for T2": what follows is said of T1 again."""
_INSIDE = re.compile(r"[ )]*\b(?:in|of|from|for|at|under)\b[ (]*\Z")


def _groups(sentence: str, marks: Iterable[_Mark]) -> list[_Group]:
    found: list[_Group] = []
    for mark in (mark for mark in marks if mark.kind == _SUBJECT):
        those: tuple[_Entity, ...] = mark.value
        alone = _Group(mark.start, mark.end, those, those)
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
        elif bool(alone.projects) == bool(group.projects) and _JOINED.match(between):
            found[-1] = replace(group, end=mark.end, entities=group.entities + those, last=those)
        else:
            found.append(alone)
    return found


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence's statements, each checked of those of whom it is made."""

    known: _Known
    text: str
    marks: Sequence[_Mark]
    groups: Sequence[_Group]
    carried: tuple[_Entity, ...]
    tallies: list[int] = field(default_factory=list)  # where numbers end that count many

    def problems(self) -> Iterator[str]:
        used: set[int] = set()
        for place, mark in enumerate(self.marks):
            if mark.kind == _NUMBER and place not in used:
                with_it, wrong = self._numbered(place, self._window(place))
                used.update(with_it)
                yield from wrong
            elif mark.kind == _DATE:
                yield from self._dated(mark)
        for place, mark in enumerate(self.marks):
            if mark.kind == _SAYS and place not in used:
                yield from self._said(mark)

    # ---- whom

    def _of(self, mark: _Mark) -> tuple[_Entity, ...]:
        before = [group for group in self.groups if group.end <= mark.start]
        after = [group for group in self.groups if group.start >= mark.end]
        if len(before) > 1 and _GOES_ON.match(self.text[before[-1].end :]) and self._is_object(before[-1]):
            return before[-2].entities
        if before:
            return before[-1].entities
        return self.carried or (after[0].entities if after else ())

    def _is_object(self, group: _Group) -> bool:
        """Whether it is for whom another one waits, or whom it frees."""
        before = [mark for mark in self.marks if mark.end <= group.start]
        return bool(before) and before[-1].kind == _SAYS and before[-1].value in {"blocked", "unblocking"}

    def _projects(self, mark: _Mark) -> tuple[_Entity, ...]:
        """The projects whose counts are meant: named last before the number, else first after it."""
        those = [group for group in self.groups if group.projects]
        before = [group for group in those if group.end <= mark.start]
        carried = tuple(entity for entity in self.carried if entity.is_project)
        return before[-1].projects if before else carried or (those[0].projects if those else ())

    # ---- numbers

    def _window(self, place: int) -> list[int]:
        """Places of what the number at ``place`` counts: the labels and nouns up to whatever ends its phrase."""
        found = []
        for later in range(place + 1, len(self.marks)):
            if self.marks[later].kind not in {_SAYS, _NOUN}:
                break
            found.append(later)
        return found

    def _numbered(self, place: int, window: list[int]) -> tuple[list[int], list[str]]:
        """Places of words that are read with the number, and what is wrong with it."""
        mark, (value, unit) = self.marks[place], self.marks[place].value
        says = f'the number in "{_shown(self.text[mark.start : mark.end + 30])}" does not agree with the facts'
        those, labels = self._of(mark), {self.marks[each].value for each in window}
        before = self.marks[place - 1].value if place and self.marks[place - 1].kind == _SAYS else unit
        if unit == "percent":
            of = [each for each in window if self.marks[each].value in {"done", "tasks", "probability"}]
            return of, self._each(those, lambda e: value in _shares(e), says)
        if before in _OF_ONE and those:
            plain = labels <= {"tasks", "open"}
            return window, self._each(those, lambda e: plain and _OF_ONE[before](e) == value, says)
        if "days" in labels:
            return window, self._lasted(place, labels | {before}, those, says)
        if self._is_of(place):
            return [place + 1, *self._window(place + 1)], self._out_of(place, those, says)
        return window, self._counted(mark, value, labels, says)

    def _is_of(self, place: int) -> bool:
        first, second = self.marks[place], self.marks[place + 1] if place + 1 < len(self.marks) else None
        if second is None or second.kind != _NUMBER:
            return False
        return re.fullmatch(r" of (?:the |its |their )?", self.text[first.end : second.start]) is not None

    def _out_of(self, place: int, those: tuple[_Entity, ...], says: str) -> list[str]:
        """Of "2 of 5 tasks done": a goal's progress, or how many of a whole have a property."""
        part, whole = self.marks[place].value[0], self.marks[place + 1].value[0]
        labels = {self.marks[each].value for each in self._window(place + 1)}
        if any(entity.fields.get("tasks") is not None for entity in those):
            agree = self._each(
                those, lambda e: (e.fields.get("done"), e.fields.get("tasks")) == (part, whole), says
            )
            return agree if labels <= {"tasks", "done"} else [says]
        of = "open" if "open" in labels else "tasks"
        return self._counted(self.marks[place], part, labels - {"open"}, says) + self._counted(
            self.marks[place], whole, {of}, says
        )

    def _counted(self, mark: _Mark, value: float, labels: set[str], says: str) -> list[str]:
        """A count of the whole, or of the projects that the sentence names."""
        name = _COUNTS.get(frozenset(labels))
        if name is None:
            return [f'it is unclear what the number in "{_shown(self.text[mark.start : mark.end + 30])}" counts']
        if self._is_joined(mark):
            return [
                f'it is unclear whether "{_shown(self.text[mark.start : mark.end + 30])}" is said of others, too'
            ]
        self.tallies.append(mark.end)
        projects = self._projects(mark)
        scopes = [project.counts for project in projects] if projects else [self.known.counts]
        # A word that is not in the facts is not known to be none.
        return [] if all(name in scope and scope[name] == value for scope in scopes) else [says]

    def _is_joined(self, mark: _Mark) -> bool:
        """Whether the number is one of several that are spoken of: "T1 and 5 tasks are late"."""
        before = [group for group in self.groups if group.end <= mark.start]
        between = self.text[before[-1].end : mark.start] if before else "."
        return bool(_JOINED.match(between)) and not (before[-1].projects and "," in between)

    def _lasted(self, place: int, labels: set[str], those: tuple[_Entity, ...], says: str) -> list[str]:
        """Of "3 days late", "in 3 days", "3 days ago", "untouched for 3 days": from their dates to today."""
        mark, today = self.marks[place], self.known.today
        value, head = mark.value[0], self.text[: mark.start].lower()
        tail = self.text[self.marks[place + 1].end :].lower()
        if "overdue" in labels or re.search(r"\bby \Z", head):
            return self._each(those, lambda e: "overdue" in e.says and value in _days(e, {"due"}, today), says)
        if re.search(r"\bin \Z", head) or re.match(r" (?:left|away|from now)\b", tail):
            return self._each(those, lambda e: -value in _days(e, {"due", "start"}, today), says)
        if "stale" in labels or re.search(r"\bfor \Z", head):
            return self._each(those, lambda e: value in _days(e, {"changed"}, today), says)
        if re.match(r" ago\b", tail):
            roles = {"done"} if "done" in labels else {"changed"} if "changed" in labels else {"due", "start"}
            return self._each(those, lambda e: value in _days(e, roles, today), says)
        return [says]

    @staticmethod
    def _each(those: tuple[_Entity, ...], holds: Callable[[_Entity], bool], says: str) -> list[str]:
        return [] if those and all(map(holds, those)) else [says]

    # ---- dates

    def _dated(self, mark: _Mark) -> Iterator[str]:
        those = self._of(mark)
        says = f'the date in "{_shown(self.text[: mark.end][-40:])}" does not agree with the facts'
        head = self.text[: mark.start].strip().lower()
        past = {"done", "changed", "slipped", "new"} & {other.value for other in self.marks if other.kind == _SAYS}
        if mark.value == "today":
            # At the beginning it says when this is written, unless something is said to have happened then.
            theirs = ({day for role, day in e.dates.items() if role in {"due", "start", "done"}} for e in those)
            free = not head and not past
            if not free and not (those and all(self.known.today in days for days in theirs)):
                yield says
            return
        if not those:
            written = self.known.today in mark.value and head in {"", "on", "as of"} and not past
            if not written and not (self.known.since in mark.value and head == "since" and past):
                yield says
            return
        roles = self._role(mark)
        if not all(set(mark.value) & {day for role, day in e.dates.items() if role in roles} for e in those):
            yield says

    def _role(self, mark: _Mark) -> frozenset[str]:
        """What the words before a date say that it is of them; anything where they say nothing."""
        ends = [other.end for other in self.marks if other.end <= mark.start and other.kind in {_SUBJECT, _DATE}]
        words = self.text[max(ends, default=0) : mark.start].lower()
        found = [(found.end(), roles) for pattern, roles in _ROLE_WORDS for found in pattern.finditer(words)]
        return max(found, key=lambda each: each[0])[1] if found else frozenset(_ROLES.values())

    # ---- states

    def _said(self, mark: _Mark) -> Iterator[str]:
        word = mark.value
        if word in _SILENT:
            return
        items = [group.end for group in self.groups if group.end <= mark.start and not group.projects]
        if max((tally for tally in self.tallies if tally <= mark.start), default=-1) > max(items, default=-1):
            yield f'it is unclear how many of those counted "{_shown(mark.raw)}" is said of'
            return
        those = self._of(mark)
        says = f'"{_shown(mark.raw)}" does not agree with the facts of whom it is said'
        if not those:
            if not any(self.known.counts.get(name, 0) > 0 for name in _ANYWHERE.get(word, (word,))):
                yield f'"{_shown(mark.raw)}" is said of nobody, or the facts count none'
            return
        if not all(self._is(entity, mark) for entity in those):
            yield says
        yield from self._related(mark, those)

    def _is(self, entity: _Entity, mark: _Mark) -> bool:
        if not entity.is_project:
            return mark.value in entity.says
        nouns = [other.value for other in self.marks if other.kind == _NOUN and other.value != "projects"]
        if not nouns:
            return mark.value in entity.says and mark.value in {"done", "live"}
        names = (_COUNTS.get(frozenset({mark.value, noun})) for noun in nouns)
        return any(entity.counts.get(name, 0) > 0 for name in names if name)

    def _related(self, mark: _Mark, those: tuple[_Entity, ...]) -> Iterator[str]:
        """Of "T1 waits for T2" and "T2 unblocks T1": whether the two are so."""
        after = [group for group in self.groups if mark.end <= group.start]
        if mark.value not in {"blocked", "unblocking"} or not after or after[0].entities == those:
            return
        if re.search(r"[,:;]| and ", self.text[mark.end : after[0].start]):
            return
        pairs = ((one, other) for one in those for other in after[0].entities)
        for one, other in pairs:
            waiting, awaited = (one, other) if mark.value == "blocked" else (other, one)
            known = awaited.handle in waiting.fields.get("waits_for", ()) and waiting.project == awaited.project
            if not known:
                yield f"the facts do not say that {waiting.handle} waits for {awaited.handle}"


_SILENT = frozenset({"days", "priority", "probability"})
"""Labels that state nothing where no number stands with them."""

_ANYWHERE = {
    "at_risk": ("goals_at_risk", "milestones_at_risk"),
    "behind": ("goals_behind",),
    "on_track": ("goals_on_track",),
    "missed": ("milestones_missed",),
    "new": ("newly_overdue", "newly_done", "new_risks"),
    "live": ("open",),
}
"""What must have been counted where a state is said of nobody in particular; of other states, themselves."""

_ROLE_WORDS = tuple(
    (re.compile(rf"\b(?:{words})\b"), frozenset(roles))
    for words, roles in (
        ("due|deadline|target|by", {"due"}),
        ("was due|were due|from|originally|used to be", {"due", "was"}),
        ("to|until", {"due"}),
        ("starts?|started|starting|begins?|began", {"start"}),
        ("done|finished|completed|achieved|closed|delivered", {"done"}),
        ("changed|touched|updated|untouched since", {"changed"}),
    )
)

_OF_TASKS = (
    *("overdue", "today", "upcoming", "blocked", "unblocking", "in_progress", "stale", "changed", "done", "open"),
    "slipped",
)
_COUNTS: dict[frozenset[str], str] = {
    **{frozenset({word}): word for word in _OF_TASKS},
    **{frozenset({word, "tasks"}): word for word in _OF_TASKS},
    **{frozenset({word, "open", "tasks"}): word for word in _OF_TASKS if word not in {"done", "open", "changed"}},
    **{frozenset({"new", word}): f"newly_{word}" for word in ("overdue", "done")},
    **{frozenset({"new", word, "tasks"}): f"newly_{word}" for word in ("overdue", "done")},
    frozenset({"tasks"}): "tasks",
    frozenset({"projects"}): "projects",
    frozenset({"goals"}): "goals",
    frozenset({"goals", "live"}): "goals",
    **{frozenset({word, "goals"}): f"goals_{word}" for word in ("at_risk", "behind", "on_track")},
    **{frozenset({word, "milestones"}): f"milestones_{word}" for word in ("at_risk", "missed")},
    frozenset({"risks"}): "risks",
    frozenset({"risks", "open"}): "risks",
    frozenset({"risks", "new"}): "new_risks",
}
"""What a number counts, by the words with it."""


def _days(entity: _Entity, roles: set[str], today: date) -> set[int]:
    """Days from each date of the entity to today; what lies ahead is negative."""
    return {(today - day).days for role, day in entity.dates.items() if role in roles}


_OF_ONE: Mapping[str, Callable[[_Entity], Any]] = {
    "priority": lambda entity: entity.fields.get("priority"),
    "probability": lambda entity: entity.fields.get("probability"),
    "unblocking": lambda entity: entity.fields.get("frees"),
    "blocked": lambda entity: len(entity.fields.get("waits_for") or ()),
}
"""Numbers of one entity that are said after their word: priority 1, unblocks 3 tasks, waits for 2 tasks."""


def _shares(entity: _Entity) -> set[float]:
    """Percentages: progress, rounded as people do, and probability."""
    done, tasks, probability = (entity.fields.get(name) for name in ("done", "tasks", "probability"))
    shares = {float(round(100 * done / tasks))} if tasks and done is not None else set()
    return shares | ({round(100 * probability, 6)} if isinstance(probability, int | float) else set())

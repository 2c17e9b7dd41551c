"""The fact check: whether a text about a brief says anything that the brief's facts do not. Pure.

It reads a small English and refuses what it cannot read: a false refusal costs a nicer sentence, a false
acceptance is a lie in somebody's morning, or an order that somebody hid in a title. The language is closed:
outside quoted titles stand handles, numbers, dates, words whose truth is looked up (states, kinds, relations),
and the few plain words of ``_PLAIN``. Every statement is tied to what it speaks of: the last entity named before
it in its sentence, else the first one after it, else the whole. What remains unchecked is opinion: "T1 is urgent".
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import product, takewhile
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
_DIGITS_ELSEWHERE = re.compile(r"[^\D0-9]|[²³¹¼-¾⁰-₟⅐-↋①-⓿]")

_FORM: tuple[tuple[str, Callable[[str], object]], ...] = (
    ("it is empty", lambda text: not text.strip()),
    ("it has line breaks or characters that cannot be printed", lambda text: not text.isprintable()),
    ("it has markup, a link or a symbol that only code or money needs", lambda t: _MARKUP.search(_outside(t))),
    ("it has digits or numbers other than 0 to 9", lambda text: _DIGITS_ELSEWHERE.search(_outside(text))),
    ("it does not end a sentence", lambda text: text.strip() and text.strip()[-1] not in '.!?)"”'),
)


def _outside(text: str) -> str:
    """Titles hold what their writers wrote; only a title of the facts passes, and whoever shows it escapes it."""
    return _QUOTED.sub(" ", text)


# ---- facts

GIVEN_UP = frozenset({"abandoned", "cancelled", "archived"})
"""States of FINISHED in which nothing was reached."""

_PROJECTS = "projects"
_STATES = {
    **dict.fromkeys(("done", "completed", "achieved", "closed", "mitigated", "published"), "done"),
    **dict.fromkeys(("cancelled", "canceled"), "cancelled"),
    **dict.fromkeys(("paused", "on_hold"), "paused"),
    **{state: state for state in ("abandoned", "archived", "deferred", "draft", "planning")},
    **{state: state for state in ("in_progress", "blocked")},
    "active": "live",
}
"""What a state lets a text say, by the state: words of ``_VERBS``."""

_ROLES = {"due": "due", "end": "due", "start": "start", "done_on": "done", "was": "was", "touched": "changed"}


@dataclass(frozen=True, slots=True)
class _Entity:
    """An item or a project, as a text may speak of it."""

    handle: str
    title: str
    project: str
    kind: str  # its plural, as _NOUNS has it
    says: frozenset[str]
    dates: Mapping[str, date]
    fields: Mapping[str, Any]
    counts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, thing: Mapping[str, Any], *, is_project: bool) -> "_Entity":
        state = str(thing.get("state") or "")
        says = {str(word) for word in thing.get("is", ())}
        says.update(filter(None, [_STATES.get(state), thing.get("impact")]))
        if state not in FINISHED and "done" not in says:
            says.add("open")
        dates = {role: found for name, role in _ROLES.items() if (found := _date(thing.get(name)))}
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
        return self.kind == _PROJECTS


@dataclass(frozen=True, slots=True)
class _Known:
    """Everything that a text may state."""

    today: date
    since: date | None
    counts: Mapping[str, int]
    by_handle: Mapping[str, tuple[_Entity, ...]]
    by_title: Mapping[str, tuple[_Entity, ...]]
    by_step: Mapping[str, tuple[_Entity, ...]]
    names: tuple[str, ...]
    address: re.Pattern[str] | None

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "_Known":
        projects = [_Entity.of(each, is_project=True) for each in facts.get("projects", ())]
        entities = [*projects, *(_Entity.of(each, is_project=False) for each in facts.get("items", ()))]
        today = _date(facts.get("date"))
        if today is None:
            raise ValueError("facts without a date cannot be checked against")  # a fault of the caller
        return cls(
            today,
            _date(facts.get("since")),
            {word: n for word, n in facts.get("counts", {}).items() if isinstance(n, int)},
            _grouped(entities, lambda entity: entity.handle),
            _grouped(entities, lambda entity: _folded(entity.title)),
            _grouped(projects, lambda project: _folded(str(project.fields.get("next_step") or ""))),
            tuple(sorted({e.title for e in projects if _is_plain_name(e.title)}, key=len, reverse=True)),
            _address(str(facts.get("name") or "")),
        )

    def titled(self, quoted: str) -> tuple[_Entity, ...]:
        """Whom a quotation means: a whole title, or the beginning of one that is cut with an ellipsis."""
        title = _folded(quoted)
        beginning = title.removesuffix("…").removesuffix("...")
        if title in self.by_title or len(title) == len(beginning) or len(beginning) < _SHORTEST_CUT:
            return self.by_title.get(title, ())
        return tuple(each for full, those in self.by_title.items() if full.startswith(beginning) for each in those)


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


_SHORTEST_CUT = 12
"""Characters of a title's beginning that are enough to name it."""

_LONGEST_BARE = 5


def _is_plain_name(name: str) -> bool:
    """Whether a project's name may stand without quotation marks: it is short, and nothing in it can be read as a
    statement. Items may not, for their titles are sentences ("Pay the bank").
    """
    words = name.split()
    plain = len(name) > 2 and name[0].isupper() and not any(map(str.isdigit, name)) and not _LABEL.search(name)
    return plain and len(words) <= _LONGEST_BARE and not all(map(is_plain, words))


def _address(name: str) -> re.Pattern[str] | None:
    """The person's name or first name, where it addresses them and nowhere else."""
    if not re.fullmatch(r"[^\W\d_]+(?:[ '-][^\W\d_]+){0,3}", name):
        return None
    names = "|".join(map(re.escape, sorted({name, name.split(maxsplit=1)[0]}, key=len, reverse=True)))
    return re.compile(rf"(?:^\s*|, |\b(?:hello|morning),? )(?P<name>{names})(?=[,:.!?]|$)", re.IGNORECASE)


# ---- a sentence, as marks at places

_SUBJECT, _NUMBER, _DATE, _SAYS, _NOUN, _STOP = "subject", "number", "date", "says", "noun", "stop"
_ASK, _NEXT = "ask", "next"
_TITLE, _STEP, _BARE = "\ue000", "\ue001", "\ue002"  # held: a title, a project's next step, a name without marks


@dataclass(frozen=True, slots=True)
class _Mark:
    kind: str
    start: int
    end: int
    value: Any
    raw: str


_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_QUOTED = re.compile(r'"([^"]*)"|“([^”]*)”')
_HELD = re.compile("[\ue000-\ue002]([\U000f0000-\U000ffffd])")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")

_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if name != "september" else "sept?(?:ember)?" for name in _MONTHS)
_WEEKDAY = "|".join(WEEKDAYS) + "|mon|tues?|wed|thurs?|thu|fri|sat|sun"
_DAY, _YEAR = r"(?P<{0}>[0-3]?\d)(?:st|nd|rd|th)?", r"(?:,? (?P<{0}>\d{{4}}))?"
_WHEN = re.compile(
    rf"\b(?P<iso>\d{{4}}-\d\d-\d\d)\b"
    rf"|\b(?:(?P<w1>{_WEEKDAY})\.?,? (?:the )?)?{_DAY.format('d1')} (?:of )?(?P<m1>{_MONTH})\b\.?"
    rf"{_YEAR.format('y1')}"
    rf"|\b(?:(?P<w2>{_WEEKDAY})\.?,? )?(?P<m2>{_MONTH})\.? {_DAY.format('d2')}\b{_YEAR.format('y2')}"
    rf"|\b(?P<m3>{_MONTH}) (?P<y3>\d{{4}})\b"
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
    "overdue": r"overdue|late|past due|delayed|(?:past|missed) (?:its|their) (?:due dates?|deadlines?)",
    "done": r"done|finished|completed|closed|achieved|delivered|shipped|resolved|mitigated|accomplished"
    r"|decided|made|wins?"
    r"|(?:is|are|was|were|now|already|been) complete",
    "blocked": r"blocked|stuck|wait(?:s|ing)?(?: for| on)?|held up|depend(?:s|ing)? on",
    "in_progress": r"in progress|under ?way|ongoing|started|begun|being worked on",
    "cancelled": r"cancell?ed",
    "abandoned": r"abandoned",
    "archived": r"archived",
    "deferred": r"deferred",
    "paused": r"paused|on hold",
    "draft": r"drafts?|in draft",
    "planning": r"(?:in |being )?plann(?:ing|ed)",
    "open": r"open|unfinished|remain(?:s|ing)?|outstanding|pending|still to do",
    "stale": r"stale|untouched|idle|neglected|forgotten",
    "changed": r"changed|updated|touched|modified",
    "unblocking": r"unblock(?:s|ing)?|frees|to free|freeing|unlock(?:s|ing)?|blocks|blocking|needed by"
    r"|hold(?:s|ing) (?:things |work )?up",
    "upcoming": r"upcoming|coming up|next (?:7|seven) days",
    "today": r"(?:due|starting|starts|for|due and starting) today",
    "at_risk": r"at risk|in danger|endangered",
    "behind": r"behind(?: schedule)?",
    "on_track": r"on track|on schedule|on time",
    "missed": r"missed",
    "slipped": r"slipped|postponed|pushed back|rescheduled|moved|put off",
    "new": r"newly|new",
    "critical": r"critical",
    "high": r"high[- ]impact|high impact",
    "medium": r"medium[- ]impact",
    "low": r"low[- ]impact",
    "top": r"(?:top|high|highest) priority",
    "priority": r"priority",
    "days": r"days?",
    "live": r"live|active",
    "probability": r"probability|likelihood|chance",
    "due": r"due(?! dates?\b)|ends(?= on | today| tomorrow| \d)",
    "start": r"starts|starting|begins|beginning",
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
_PLAIN: Mapping[str, str] = {
    "articles": "a an the this that these those another other others its their your both",
    "pronouns": "you it they them there here which what",
    "being": "is are was were be been being has have had having do it's there's that's they're you've",
    "prepositions": "of in on at to for from by with since among including across",
    "conjunctions": "and but while whereas or then namely",
    "adverbs": "also already still now yet first too just currently",
    "opinion": "important urgent pressing matters should",
    "things": "work item items deadline deadlines date dates",
    "greeting": "hello",
}
"""Words that may stand outside titles, by what they do. None states anything that is not checked elsewhere, and
none orders, compares, assigns, explains, or tells anybody to do a thing.
"""

_ASKED = (
    *((verb, "") for verb in ("finish", "finishing", "close", "closing")),
    *((verb, "") for verb in ("tackle", "review", "check", "watch", "see")),
    *((verb, "with") for verb in ("start", "begin", "deal")),
    *(("decide", ""), ("decide", "on"), ("look", "at"), ("looking", "at"), ("ask", "about"), ("work", "on")),
    *(("focus", "on"), ("keep an eye", "on"), ("attend", "to")),
)
"""What a text may ask its reader to do, as verb and preposition; an open item follows, or "it", or a kind."""

_ASKS = re.compile(
    r"(?:(?<=^)|(?<=[.:] ))unblock\b|\b(?:"
    + "|".join(f"{verb}(?: first| now)?{preposition and ' ' + preposition}" for verb, preposition in _ASKED)
    + r")\b",
    re.IGNORECASE,
)
_NEXTS = re.compile(r"\bnext steps?\b|\bnext(?= milestone\b)", re.IGNORECASE)
_PHRASES = re.compile(
    r"\b(?:needs?|deserves?) (?:your |the )?(?:urgent )?attention\b|\b(?:comes?|goes) (?:first|next)\b"
    r"|\b(?:first )?things? to (?:do|look at|finish)\b|\bgood morning\b|\bin total\b"
    r"|\b(?:brings?|shows?)(?= \d)|\bstands? at(?= \d)|\b(?:called|titled|named)(?= [\ue000-\ue002])"
    r"|(?:(?<=day)|(?<=days)) (?:left|away|ahead|ago)\b",
    re.IGNORECASE,
)
"""Words that may stand together only."""
_DANGLING = re.compile(
    r"\b(?:of|in|on|at|to|for|from|by|with|among|including|across|the|an?|your|its|their|and|but|while|whereas|or"
    r"|namely|should|has|have|had|having|being)[ .,;:!?)]*\Z",
    re.IGNORECASE,
)
_ADRIFT = re.compile(r"\b(?:for|to|by|on|with|from|at|in) (?:you|it|them)\b", re.IGNORECASE)
_SO = re.compile(rf"\bso(?= (?:{'|'.join(verb for verb, _ in _ASKED)})\b)", re.IGNORECASE)
_ALL_PLAIN = frozenset(" ".join(_PLAIN.values()).split())


def is_plain(word: str) -> bool:
    """Whether ``word`` may stand outside titles whatever stands with it."""
    return word.casefold() in _ALL_PLAIN


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
            groups, misplaced = _placed(sentence, marks, _groups(sentence, marks), carried)
            yield from misplaced
            before = carried if _CARRIED.search(sentence) else ()
            if not wrong:
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
                those = self._known.titled(title)
                if those:
                    return self._held_as(those) + tail
                if step := self._known.by_step.get(_folded(title)):
                    return self._held_as(step, _STEP) + tail
            unknown.append(f'no entity has the title "{_shown(inside)}"')
            return "_"

        # Characters that stand for titles are none of a text's own.
        held = _QUOTED.sub(quoted, re.sub("[\ue000-\ue002\U000f0000-\U000ffffd]", "\ufffd", text))
        if '"' in held or "“" in held or "”" in held:
            unknown.append("a quotation mark is not closed")
        for name in self._known.names:
            those = self._known.by_title[_folded(name)]
            pieces = re.split(rf"(?<!\w){re.escape(name)}(?!\w)", held)
            held = pieces[0] + "".join(self._held_as(those, _BARE) + piece for piece in pieces[1:])
        return held, unknown

    def _held_as(self, those: tuple[_Entity, ...], sign: str = _TITLE) -> str:
        self._held.append(those)
        return f"{sign}{chr(0xF0000 + len(self._held) - 1)}"

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
                rest = _without(rest, found.span())

        if self._known.address and (address := self._known.address.search(rest)):
            rest = _without(rest, address.span("name"))
        take(_HELD, lambda f: [_Mark(_SUBJECT, *f.span(), self._held[ord(f[1]) - 0xF0000], f[0][0])])
        take(_WHEN, lambda f: self._when(f, sentence))
        take(_ALIKE, self._alike)
        take(_SO, lambda _: [])
        take(_PHRASES, lambda _: [])
        take(_ASKS, lambda f: [_Mark(_ASK, *f.span(), f[0].lower(), f[0])])
        take(_NEXTS, lambda f: [_Mark(_NEXT, *f.span(), f[0].lower(), f[0])])
        for says, pattern in _REFUSED:
            for found in list(pattern.finditer(rest)):
                wrong.append(f'"{_shown(found[0])}" {says}')
                rest = _without(rest, found.span())
        take(_LABEL, lambda f: [_Mark(_NOUN if f.lastgroup in _NOUNS else _SAYS, *f.span(), f.lastgroup, f[0])])
        take(_NUMERAL, _number)
        wrong.extend(f'the number in "{_shown(found)}" cannot be read' for found in re.findall(r"\S*\d\S*", rest))
        marks.extend(_Mark(_STOP, *found.span(), None, found[0]) for found in _STOPS.finditer(rest))
        marks.sort(key=lambda mark: mark.start)
        wrong.extend(f'it is unclear whom "{found[0]}" means' for found in _ADRIFT.finditer(rest))
        wrong.extend(_unplain(rest, marks))
        if {_SUBJECT} <= {mark.kind for mark in marks} <= {_SUBJECT, _STOP} and not _WORD.search(rest):
            wrong.append("a name stands alone and is no sentence")
        return marks, wrong

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


def _without(text: str, span: tuple[int, int]) -> str:
    return text[: span[0]] + " " * (span[1] - span[0]) + text[span[1] :]


def _unplain(rest: str, marks: Sequence[_Mark]) -> Iterator[str]:
    """Words in what is left of a sentence that are not plain ones, and symbols that prose does without."""
    ends = {mark.end for mark in marks}
    for found in _WORD.finditer(rest):
        possessive = found[0] == "s" and rest[found.start() - 1] == "'" and found.start() - 1 in ends
        if not possessive and not is_plain(found[0]):
            yield f'it uses the word "{_shown(found[0])}", which is not among those allowed'
    odd = {char for char in rest if not char.isalnum() and char not in _PUNCTUATION and char != "_"}
    if odd:
        yield f"it has the symbols {' '.join(sorted(odd))}"


def _shown(text: str) -> str:
    return clean(text)[:_LONGEST_QUOTED]


def _today(found: re.Match[str], sentence: str) -> Iterable[_Mark] | None:
    """A label after "due" or "starting", a date elsewhere."""
    before = sentence[: found.start()].rstrip().lower()
    if before.endswith(("due", "starting", "starts", "for")):
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
    return next(n for n, each in enumerate(_MONTHS, 1) if each.startswith(name[:3].lower()))


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
        checks = {_SAYS: self._said, _NOUN: self._kind, _ASK: self._asked, _NEXT: self._next}
        for place, mark in enumerate(self.marks):
            if mark.kind in checks and place not in used:
                yield from checks[mark.kind](mark)
        yield from self._bare()
        yield from self._unrelated()
        yield from self._loose()

    def _loose(self) -> Iterator[str]:
        """Words that are nothing by themselves, where what they need is not there."""
        if _DANGLING.search(self.text):
            yield "a sentence breaks off"
        if any(mark.raw == _STEP for mark in self.marks) and not _NEXTS.search(self.text):
            yield "a next step is quoted and not called so"
        for mark in self.marks:
            if mark.kind in {_SAYS, _NOUN} and _FIRST.search(self.text[: mark.start]):
                yield 'it says which is the "first"'
        for found in _SINCE.finditer(self.text):
            after = next((mark for mark in self.marks if mark.start >= found.end()), None)
            if after is None or after.kind != _DATE or self.text[found.end() : after.start].strip():
                yield f'no date follows "{found[0]}"'

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
        return bool(before) and before[-1].kind == _SAYS and before[-1].value in _RELATIONS

    def _projects(self, mark: _Mark) -> tuple[_Entity, ...]:
        """The projects whose counts are meant: named last before the number, else first after it."""
        those = [group for group in self.groups if group.projects]
        before = [group for group in those if group.end <= mark.start]
        carried = tuple(entity for entity in self.carried if entity.is_project)
        return before[-1].projects if before else carried or (those[0].projects if those else ())

    # ---- kinds and relations

    def _kind(self, mark: _Mark) -> Iterator[str]:
        """Of "the task T1", "T1 is a task" and "the next task: T1": whether it is one."""
        after = [group for group in self.groups if group.start >= mark.end]
        before = [group for group in self.groups if group.end <= mark.start]
        one = not mark.raw.lower().endswith("s")
        says = f'"{_shown(mark.raw)}" is not the kind of what it is said of'
        if after and re.fullmatch(r",?(?: called| named| titled)? \(?", self.text[mark.end : after[0].start]):
            those = after[0].entities
        elif self._is_end(mark):
            those = ()
            if mark.value != "tasks":
                yield "only tasks wait for each other"
        elif before:
            between = self.text[before[-1].end : mark.start]
            apart = any(m.kind == _STOP and before[-1].end <= m.start < mark.start for m in self.marks)
            apart = apart and not re.search(r",(?: is| are)?(?: an?| the| your| one of the)\b[^,]*\Z", between)
            has = before[-1].projects and not re.search(r"\b(?:is|are|was|were)\b", between)
            those = () if apart or has else before[-1].entities
        elif _IT_IS.search(self.text[: mark.start]):
            those = self.carried
            if not those:
                yield says
        else:
            those = after[0].entities if one and after and not after[0].projects else ()
        if any(entity.kind != mark.value for entity in those):
            yield says

    def _is_end(self, noun: _Mark) -> bool:
        """Whether the noun is what something waits for or frees: "frees another task"."""
        first = next((mark for mark in reversed(self.marks) if mark.end <= noun.start), None)
        if first is None or first.kind != _SAYS or first.value not in _RELATIONS:
            return False
        return re.fullmatch(_DETERMINED, self.text[first.end : noun.start]) is not None

    def _asked(self, mark: _Mark) -> Iterator[str]:
        """What the reader is asked to do is done to an open item, or to what the facts count."""
        tail, after = self.text[mark.end :], next((m for m in self.marks if m.start >= mark.end), None)
        says = f'"{_shown(mark.raw)}" asks for what is no open item of the facts'
        its = re.match(r" (?:it|them|this|these|those|both)\b", tail, re.IGNORECASE)
        before = [group for group in self.groups if group.end <= mark.start]
        if its:
            those = before[-1].entities if before else self.carried
        else:
            while after is not None and after.kind in {_SAYS, _NUMBER}:
                end = after.end
                after = next((m for m in self.marks if m.start >= end), None)
            if after is not None and after.kind == _NOUN and after.value != _PROJECTS:
                return
            those = after.value if after is not None and after.kind == _SUBJECT else ()
        needed = {"open", "blocked"} if mark.value == "unblock" else {"open"}
        if not those or not all(needed <= entity.says for entity in those):
            yield says
        elif mark.value in _OF_ITEMS and any(entity.is_project for entity in those):
            yield f'"{_shown(mark.raw)}" asks for a whole project'

    def _next(self, mark: _Mark) -> Iterator[str]:
        """A project's next step is quoted; its next milestone is the first of those that are not missed."""
        if "step" in mark.value:
            steps = [m.value for m in self.marks if m.raw == _STEP]
            named = [each for m in self.marks if m.kind == _SUBJECT and m.raw != _STEP for each in m.value]
            projects = [each for each in named or self.carried if each.is_project]
            if projects and not any(each in step for step in steps for each in projects):
                yield f'"{_shown(mark.raw)}" stands without the next step of its project, in quotation marks'
        elif "milestone" not in self.text[mark.end : mark.end + 10].lower():
            return
        else:
            after = [group.entities for group in self.groups if group.start >= mark.end]
            those = next(iter([*after, *(group.entities for group in reversed(self.groups))]), ())
            if not those or not all(map(self._is_next, those)):
                yield "the next milestone is another one"

    def _is_next(self, entity: _Entity) -> bool:
        due = entity.dates.get("due")
        if entity.kind != "milestones" or due is None or due < self.known.today or "done" in entity.says:
            return False
        others = (e for those in self.known.by_handle.values() for e in those if e.kind == "milestones")
        dues = (e.dates.get("due") for e in others if e.project == entity.project and "done" not in e.says)
        return not any(each and self.known.today <= each < due for each in dues)

    def _bare(self) -> Iterator[str]:
        """A project's name without quotation marks stands where only a name can: it may be an order."""
        named = [found.span() for found in _BARE_NAMED.finditer(self.text)]
        for mark in self.marks:
            if mark.raw == _BARE and not any(start <= mark.start < end for start, end in named):
                yield "a project's name needs quotation marks where it is no part of a sentence"

    def _unrelated(self) -> Iterator[str]:
        """Two that stand in one clause are said to be something to each other."""
        for one, other in zip(self.groups, self.groups[1:], strict=False):
            if bool(one.projects) != bool(other.projects):
                continue  # see _placed
            between = [mark for mark in self.marks if one.end <= mark.start < other.start]
            joined = any(m.kind in {_STOP, _NEXT} or m.value in _RELATIONS for m in between)
            if not joined and not any(m.raw == _STEP for m in self.marks):
                yield f"what {one.last[0].handle} is to {other.last[0].handle} cannot be checked"

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
        if value == 0 and mark.raw.lower() == "nothing":
            return self._none(place, says)
        if self._is_of(place):
            return [place + 1, *self._window(place + 1)], self._out_of(place, those, says)
        return window, self._counted(mark, value, labels, says) + self._listed(window, labels)

    def _none(self, place: int, says: str) -> tuple[list[int], list[str]]:
        """Of "nothing is late, blocked or due today": each of them is none."""
        used, wrong = list[int](), list[str]()
        for later in range(place + 1, len(self.marks)):
            other = self.marks[later]
            if other.kind == _SAYS:
                used.append(later)
                wrong.extend(self._counted(self.marks[place], 0, {other.value}, says))
            elif other.kind != _STOP or other.raw.lower() not in {",", "or"}:
                break
        return used, wrong if used else self._counted(self.marks[place], 0, set(), says)

    def _listed(self, window: list[int], labels: set[str]) -> list[str]:
        """Of "2 overdue tasks, including T1 and T2": whether those are of the counted."""
        end = self.marks[window[-1]].end if window else 0
        after = next((group for group in self.groups if group.start >= end), None)
        if not window or after is None or after.projects:
            return []
        if not re.fullmatch(_LISTING, self.text[end : after.start]) or _OWN_CLAUSE.match(self.text[after.end :]):
            return []
        nouns, states = labels & _NOUNS.keys(), labels - _NOUNS.keys()
        agree = all(states <= entity.says and nouns <= {entity.kind} for entity in after.entities)
        return [] if agree else [f"{after.last[0].handle} is not one of those that are counted before it"]

    def _is_of(self, place: int) -> bool:
        first, second = self.marks[place], self.marks[place + 1] if place + 1 < len(self.marks) else None
        if second is None or second.kind != _NUMBER:
            return False
        return re.fullmatch(r" of (?:the |its |their |your )?", self.text[first.end : second.start]) is not None

    def _out_of(self, place: int, those: tuple[_Entity, ...], says: str) -> list[str]:
        """Of "2 of 5 tasks done": a goal's progress, or how many of a whole have a property."""
        part, whole = self.marks[place].value[0], self.marks[place + 1].value[0]
        labels = {self.marks[each].value for each in self._window(place + 1)}
        if any(entity.fields.get("tasks") is not None for entity in those):
            agree = self._each(
                those, lambda e: (e.fields.get("done"), e.fields.get("tasks")) == (part, whole), says
            )
            return agree if labels <= {"tasks", "done"} else [says]
        of = {"open"} if "open" in labels else labels & _NOUNS.keys() or {"tasks"}
        return self._counted(self.marks[place], part, labels - {"open"}, says) + self._counted(
            self.marks[place], whole, of, says
        )

    def _counted(self, mark: _Mark, value: float, labels: set[str], says: str) -> list[str]:
        """A count of the whole, or of the projects that the sentence names."""
        name = _COUNTS.get(frozenset(labels))
        if name is None:
            return [f'it is unclear what the number in "{_shown(self.text[mark.start : mark.end + 30])}" counts']
        if self._is_had(mark):
            return [f'the facts count nothing of whom "{_shown(self.text[mark.start : mark.end + 30])}" is said']
        if self._is_joined(mark):
            return [
                f'it is unclear whether "{_shown(self.text[mark.start : mark.end + 30])}" is said of others, too'
            ]
        self.tallies.append(mark.end)
        projects = self._projects(mark)
        scopes = [project.counts for project in projects] if projects else [self.known.counts]
        # A word that is not in the facts is not known to be none.
        return [] if all(name in scope and scope[name] == value for scope in scopes) else [says]

    def _is_had(self, mark: _Mark) -> bool:
        """Whether the count is said of an item: "T1 has 3 goals", "it has 3 goals"."""
        before = [group for group in self.groups if group.end <= mark.start]
        those = before[-1].entities if before else self.carried
        between = self.text[before[-1].end if before else 0 : mark.start]
        stopped = not before or any(m.kind == _STOP and before[-1].end <= m.start < mark.start for m in self.marks)
        has = _HAS.search(between) and not re.search(r"\b(?:you|there)\b", between, re.IGNORECASE)
        return bool(those and not any(each.is_project for each in those) and (has or not stopped)) and not (
            before and before[-1].projects
        )

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
        if {"overdue", "behind"} & labels or re.search(r"\bby \Z", head):
            late = {"overdue", *({"behind"} & labels)}
            return self._each(those, lambda e: late <= e.says and value in _days(e, {"due"}, today), says)
        if re.search(r"\bin \Z", head) or re.match(r" (?:left|away|ahead|from now)\b", tail):
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
            since = self.known.since in mark.value and re.search(r"\bsince\Z", head)
            if not written and not (since and past):
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
        if word == "days":
            yield "it speaks of days and does not say how many"
            return
        items = [group.end for group in self.groups if group.end <= mark.start and not group.projects]
        if max((tally for tally in self.tallies if tally <= mark.start), default=-1) > max(items, default=-1):
            yield f'it is unclear how many of those counted "{_shown(mark.raw)}" is said of'
            return
        those = self._of(mark)
        says = f'"{_shown(mark.raw)}" does not agree with the facts of whom it is said'
        if not those:
            if not (self._is_attribute(mark) or mark.raw.lower().startswith("next")):
                yield f'it is unclear of how many "{_shown(mark.raw)}" is said'
            elif not any(self.known.counts.get(name, 0) > 0 for name in _ANYWHERE.get(word, (word,))):
                yield f'"{_shown(mark.raw)}" is said of nobody, or the facts count none'
            return
        others = self._object(mark, those) if word in _RELATIONS else ()
        if others is None:
            yield f'it is unclear whom "{_shown(mark.raw)}" means'
        elif others:
            yield from self._related(mark, those, others)
        elif not all(self._is(entity, mark) for entity in those):
            yield says

    def _is_attribute(self, mark: _Mark) -> bool:
        """Whether it says which and not how: "the overdue tasks", and not "the tasks are overdue"."""
        tail = self.text[mark.end :]
        after = next((other for other in self.marks if other.start >= mark.end), None)
        noun = after is not None and after.kind in {_NOUN, _SAYS} and self.text[mark.end : after.start] == " "
        return noun or re.match(r" (?:work|items?|things?)\b", tail) is not None

    def _is(self, entity: _Entity, mark: _Mark) -> bool:
        if not entity.is_project:
            return mark.value in entity.says
        nouns = [other.value for other in self.marks if other.kind == _NOUN and other.value != _PROJECTS]
        if not nouns or mark.value in _OF_PROJECTS:
            return mark.value in entity.says and mark.value in _OF_PROJECTS
        before = [group.end for group in self.groups if group.end <= mark.start]
        if _IS.search(self.text[max(before, default=0) : mark.start]):
            return False  # of how many of them is not said
        names = (_COUNTS.get(frozenset({mark.value, noun})) for noun in nouns)
        return any(entity.counts.get(name, 0) > 0 for name in names if name)

    @staticmethod
    def _related(mark: _Mark, those: tuple[_Entity, ...], others: tuple[_Entity, ...]) -> Iterator[str]:
        """Of "T1 waits for T2" and "T2 unblocks T1": whether the two are so."""
        # A handle of several projects means the one that is so.
        for one, other in product(_by_handle(those), _by_handle(others)):
            waiting, awaited = (one, other) if mark.value == "blocked" else (other, one)
            known = any(
                b.handle in a.fields.get("waits_for", ()) and a.project == b.project
                for a, b in product(waiting, awaited)
            )
            if not known:
                yield f"the facts do not say that {waiting[0].handle} waits for {awaited[0].handle}"

    def _object(self, mark: _Mark, those: tuple[_Entity, ...]) -> tuple[_Entity, ...] | None:
        """Whom the subject waits for or frees: none where nobody is named, None where it is unclear who."""
        tail = self.text[mark.end :]
        after = next((group for group in self.groups if mark.end <= group.start), None)
        before = [group for group in self.groups if group.end <= mark.start and group.entities != those]
        if re.match(r"(?: by| for| on)? (?:it|them|both|this|these|those)\b(?! task)", tail, re.IGNORECASE):
            return before[-1].entities if before else self.carried if self.carried != those else None
        if after and after.entities != those and not re.search(r"[,:;]| and ", tail[: after.start - mark.end]):
            return after.entities
        if mark.raw.lower().endswith((" for", " on", " by")) and not _OBJECT.match(tail):
            return None
        return ()


def _by_handle(those: Iterable[_Entity]) -> list[tuple[_Entity, ...]]:
    return list(_grouped(those, lambda entity: entity.handle).values())


_RELATIONS = frozenset({"blocked", "unblocking"})
_SINCE = re.compile(r"\bsince\b", re.IGNORECASE)
_IS = re.compile(r"\b(?:is|are|was|were|be|been)\b", re.IGNORECASE)
_HAS = re.compile(r"\b(?:has|have|had|with|its|their)\b", re.IGNORECASE)
_FIRST = re.compile(r"\bfirst \Z", re.IGNORECASE)
_IT_IS = re.compile(
    r"\b(?:it|this|that|they|both|these|those|which)(?:'s| also| still| now)* ?(?:is|are|was|were)?\b",
    re.IGNORECASE,
)
_DETERMINED = r"(?: (?:the|an?|its|their|these|those|this|that|another|other|one))* "
_OBJECT = re.compile(r" (?:\d|the other|another|other|one|two|three|four|five|six|seven|eight|nine|ten|tasks?)\b")
_LISTING = r"[ ,:(–—-]*(?:(?:including|namely|among them|with|is|are|and)\b[ :]*)*"  # noqa: RUF001
_OWN_CLAUSE = re.compile(
    r" *(?:'s\b|(?:also |still |now )?"
    r"(?:is|are|was|were|has|have|needs?|comes?|stands?|waits?|frees|blocks|starts)\b)"
)
_OF_ITEMS = frozenset({"finish", "finishing", "close", "closing", "decide", "decide on", "unblock"})
_OF_PROJECTS = frozenset(
    {"done", "live", "planning", "paused", "cancelled", "abandoned", "archived", "due", "start"}
)
_BARE_NAME = "\ue002[\U000f0000-\U000ffffd](?: ?\\(?[A-Z]+[0-9]+\\)?)?"
_BARE_NAMES = rf"{_BARE_NAME}(?:(?:,|,? and|,? or) {_BARE_NAME})*"
_BARE_NAMED = re.compile(
    rf"\b(?:in|of|from|for|at|on|to|with|by|about|among|including|project|projects)(?: the| your)?(?: projects?)?"
    rf" \(?{_BARE_NAMES}"
    rf"|{_BARE_NAMES}(?:'s\b"
    r"| \(?(?:is|are|was|were|has|have|had|needs?|comes?|stands?|waits?|shows?|ends|starts)\b"
    r"| (?:also|still|now|already) )",
    re.IGNORECASE,
)


def _placed(
    text: str, marks: Sequence[_Mark], groups: Sequence[_Group], carried: Sequence[_Entity]
) -> tuple[list[_Group], list[str]]:
    """The groups with their handles narrowed to the project that they are said to be in, and who is not in it."""
    found, wrong = list(groups), list[str]()
    for place, group in enumerate(groups):
        if not all(entity.is_project for entity in group.entities):
            continue
        homes = {project.handle for project in group.entities}
        before = place - 1 if place and not groups[place - 1].projects else None
        governs = bool(_GOVERNED.search(text[: group.start])) or text[group.end :].startswith("'s")
        if before is not None:
            stops = (m for m in marks if m.kind == _STOP and groups[before].end <= m.start < group.start)
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

_ANYWHERE = {
    "at_risk": ("goals_at_risk", "milestones_at_risk"),
    "behind": ("goals_behind",),
    "on_track": ("goals_on_track",),
    "missed": ("milestones_missed",),
    "new": ("newly_overdue", "newly_done", "new_risks"),
    "live": ("open",),
    "due": ("overdue", "today", "upcoming"),
    "start": ("today", "upcoming"),
}
"""What must have been counted where a state is said of nobody in particular; of other states, themselves."""

_ROLE_WORDS = tuple(
    (re.compile(rf"\b(?:{words})\b"), frozenset(roles))
    for words, roles in (
        ("due|deadlines?|target|by|ends?|(?:late|overdue|behind|missed) since", {"due"}),
        ("was due|were due|from|originally|used to be", {"due", "was"}),
        ("to|until", {"due"}),
        ("starts?|started|starting|begins?|began", {"start"}),
        ("done|finished|completed|achieved|closed|delivered|made|decided", {"done"}),
        ("changed|touched|updated|(?:untouched|idle|stale) since", {"changed"}),
        ("since", ()),  # when it was blocked or begun is not known
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

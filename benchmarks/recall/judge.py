"""Whether a fact is in a text, what a text says that is not true, and the scores.

Knows texts through ``parser`` and the database through ``facts`` and ``truth``; nothing of how texts are made.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from benchmarks.recall.facts import Fact, Need, Question
from benchmarks.recall.parser import COUNTS, DATED, HANDLE, IDLE, KINDS, Record, normal, parse
from benchmarks.recall.truth import FLAGS, LONGEST_TITLE, Truth

LEAST_OF_A_TITLE = 20
"""Characters of a title that was cut which are enough to know it by."""


class Reading:
    """A text read: its records, and whom its names stand for.

    ``handles``, by id, says whom handles stand for where titles cannot: some are borne by several, or lost when
    cut. Scores are made without; what a builder says of itself is checked with them.
    """

    def __init__(self, text: str, truth: Truth, handles: Mapping[str, str] | None = None) -> None:
        self.records = parse(text)
        self.truth = truth
        known = {handle: frozenset([entity]) for entity, handle in (handles or {}).items()}
        self._bound: dict[str, frozenset[str]] = {}
        for record in self.records:
            if record.title is not None:
                for handle in filter(HANDLE.fullmatch, record.names[:1]):
                    self._bound.setdefault(handle, known.get(handle) or self.titled(record.title))
        self._of: dict[str, list[Record]] = {}
        self._flagged: dict[str, set[str]] = {}
        for record in self.records:
            for entity in self.about(record) or self.titled(record.above):
                self._of.setdefault(entity, []).append(record)
            for flag in _flags(record):
                self._flagged.setdefault(flag, set()).update(self._listed(record))

    # ---- whom it names

    def titled(self, title: str | None) -> frozenset[str]:
        """The entities with this title, or with one that begins so where it was cut."""
        if title is None:
            return frozenset()
        exact = self.truth.names.get(title)
        if exact is not None:
            return exact
        return self._cut.get(title[:-1].rstrip(), frozenset()) if _is_cut(title) else frozenset()

    @cached_property
    def _cut(self) -> Mapping[str, frozenset[str]]:
        wanted = {title[:-1].rstrip() for r in self.records if (title := r.title) and _is_cut(title)}
        return {
            short: frozenset(i for name, ids in self.truth.names.items() if name.startswith(short) for i in ids)
            for short in wanted
        }

    def named(self, names: Iterable[str]) -> frozenset[str]:
        """The entities that any of ``names``, UUIDs and handles, stands for."""
        found: set[str] = set()
        for name in names:
            found |= {name} if name in self.truth.values else self._bound.get(name, frozenset())
        return frozenset(found)

    def about(self, record: Record) -> frozenset[str]:
        """Whom a record names as its subject: by name, else by title."""
        return self.named(record.names) or self.titled(record.title)

    def _listed(self, record: Record) -> frozenset[str]:
        """Whom a record is about; of one that has no title and states no relation, everybody in it."""
        bare = record.title is None and not record.waits and not record.waiting
        return self.named(record.mentioned) or self.about(record) if bare else self.about(record)

    def of(self, entity: str) -> Sequence[Record]:
        """The records about ``entity``, those that only their heading says it of included."""
        return self._of.get(entity, ())

    # ---- what it says

    def holds(self, fact: Fact) -> bool:
        """Whether the text says so."""
        if fact.need == "count":
            return int(fact.value) in self.counted(fact.entity, fact.other)
        return _SAYS[fact.need](self, fact)

    def waits(self, fact: Fact) -> bool:
        """Whether it says that one waits for the other, in the line of either."""
        return any(fact.other in self.named(r.waits) for r in self.of(fact.entity)) or any(
            fact.entity in self.named(r.waiting) for r in self.of(fact.other)
        )

    def linked(self, fact: Fact) -> bool:
        """Whether it names both in one record."""
        both = {fact.entity, fact.other}
        return any(both <= self.about(r) | self.named(r.mentioned) for who in sorted(both) for r in self.of(who))

    def called(self, fact: Fact) -> bool:
        """Whether it says of an entity what is to be said of it."""
        if fact.other == "":
            return bool(self.of(fact.entity))
        return fact.entity in self._flagged.get(fact.other, ())

    def stated(self, fact: Fact) -> bool:
        """Whether it gives an entity's state, and says what else is to be said of it."""
        return any(_has_state(record, fact.value) for record in self.of(fact.entity)) and self.called(fact)

    def quotes(self, fact: Fact) -> bool:
        """Whether it has an entity's text."""
        wanted = normal(fact.value)
        return any(_begins(quoted, wanted) for record in self.of(fact.entity) for quoted in record.quoted)

    def values(self, fact: Fact) -> bool:
        """Whether it gives an entity's value under its label."""
        said = (value for r in self.of(fact.entity) for label, value in r.values if label == fact.other)
        return any(same(fact.other, value, fact.value) for value in said)

    @cached_property
    def _counts(self) -> Mapping[tuple[str | None, str], frozenset[int]]:
        """The numbers given, by plural of a kind or nothing, and label."""
        found: dict[tuple[str | None, str], set[int]] = {}
        for record in self.records:
            kind = record.of_kind
            for label, number in record.counts:
                name = "total" if label == kind else label.replace("_", " ")
                found.setdefault((kind, name), set()).add(number)
        return {key: frozenset(numbers) for key, numbers in found.items()}

    def counted(self, kind: str, label: str) -> frozenset[int]:
        """The numbers that the text gives for a count."""
        names = COUNTS.get(label, (label.replace("_", " "),))
        given = [self._counts.get((KINDS.get(kind), name), frozenset()) for name in names]
        return frozenset().union(*given)

    # ---- what it says that is not so

    def falsehoods(self) -> list[str]:
        """Statements that disagree with the database."""
        wrong = [false for record in self.records for false in self._false(record)]
        for (kind, label), number in self.truth.counts.items():
            wrong += [f"{kind} {label}: {n}, not {number}" for n in self.counted(kind, label) - {number}]
        return wrong

    def _false(self, record: Record) -> Iterator[str]:
        """What a record says that is true of none of those it may be about: titles need not be unique."""
        about = self.about(record) or (self.titled(record.above) & {self.truth.project})
        if not about:
            return
        who = f"{' '.join(record.names)} {record.title or ''}".strip()
        for label, value in record.values:
            known = [self.truth.values[i].get(label) for i in about]
            if not any(k is not None and same(label, value, k) for k in known):
                yield f"{who}: {label} {value}, not {known}"
        for name in record.waits:
            others = self.named([name])
            if others and not any((a, b) in self.truth.waits for a in about for b in others):
                yield f"{who}: waits for {name}"
        if record.names:
            for flag, words in _WORDS_OF.items():
                if _phrase(words, record.said) and not self.truth.flagged[flag] & about:
                    yield f"{who}: {words}"


_WORDS_OF = {**dict(zip(FLAGS, FLAGS, strict=True)), "idle": IDLE}


def _flags(record: Record) -> Iterator[str]:
    """What a record or its heading says of its subject in a word."""
    for flag, words in _WORDS_OF.items():
        if _phrase(words, record.said) or _phrase(words, record.heading):
            yield flag
    if _phrase("recent", record.heading):
        yield "changed"


_SAYS: Mapping[Need, Callable[[Reading, Fact], bool]] = {
    "waits": Reading.waits,
    "linked": Reading.linked,
    "named": Reading.called,
    "state": Reading.stated,
    "text": Reading.quotes,
    "beginning": Reading.quotes,
    "date": Reading.values,
    "number": Reading.values,
    "word": Reading.values,
}


def _is_cut(title: str) -> bool:
    return title.endswith("…") and len(title) > LEAST_OF_A_TITLE


def _phrase(words: str, text: str) -> bool:
    return f" {words} " in f" {text} "


def _has_state(record: Record, state: str) -> bool:
    wanted = normal(state)
    return (
        wanted in record.quoted
        or _phrase(wanted, record.said)
        or any(label == "state" and same(label, value, wanted) for label, value in record.values)
    )


def _begins(said: str, wanted: str) -> bool:
    """Whether a text begins as wanted, or was cut only where it is long."""
    return said.startswith(wanted) or (
        said.endswith("…") and len(said) > LONGEST_TITLE * 3 // 4 and wanted.startswith(said[:-1].rstrip())
    )


_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def same(label: str, said: str, wanted: str) -> bool:
    """Whether two values are one: dates by day, numbers by size, words however they are spelled."""
    if label in DATED:
        return said[:10] == wanted[:10]
    if _NUMBER.fullmatch(said) and _NUMBER.fullmatch(wanted):
        return float(said) == float(wanted)
    return _spelled(said) == _spelled(wanted)


def _spelled(word: str) -> str:
    return normal(word).replace("_", " ").lower()


@dataclass(frozen=True, slots=True)
class Mark:
    """How a text did on one question: facts present of those required, and whether it says how many there are."""

    name: str
    present: int
    required: int
    closed: bool

    @property
    def share(self) -> float:
        """The part of the answer that is there."""
        return self.present / self.required


def mark(question: Question, reading: Reading) -> Mark:
    """Judge one question. Tied places go to the candidates that the text says most of."""
    present = sum(map(reading.holds, question.required))
    required = len(question.required)
    places, candidates = question.tied
    shares = sorted(
        ((sum(map(reading.holds, each)), len(each)) for each in candidates), key=lambda s: (-s[0] / s[1], s[1])
    )
    for found, of in shares[:places]:
        present += found
        required += of
    closed = bool(question.counted) and reading.holds(question.counted[0])
    return Mark(question.name, present, required, closed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """R recall, A whole answers, S silent cuts, W the worst question: shares. False facts as they read."""

    recall: float
    whole: float
    silent: float
    worst: float
    false: Sequence[str]
    marks: Sequence[Mark]


def score(text: str, asked: Sequence[Question], truth: Truth) -> Scores:
    """Judge a text by the questions ``asked``."""
    reading = Reading(text, truth)
    marks = [mark(question, reading) for question in asked]
    shares = [each.share for each in marks]
    return Scores(
        recall=sum(shares) / len(shares),
        whole=sum(each.present == each.required for each in marks) / len(marks),
        silent=sum(each.present < each.required and not each.closed for each in marks) / len(marks),
        worst=min(shares),
        false=reading.falsehoods(),
        marks=marks,
    )

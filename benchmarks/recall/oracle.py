"""What a builder reaches that sees the questions, and what none can: the scale on which scores are read.

Both put texts together from the same pieces: a line's beginning (handle and title), each thing said in it, each
number of the counts. A fact needs certain pieces; a piece costs its tokens once. ``greedy`` takes facts by weight
per token. ``Bound`` lets pieces be bought in fractions, which is a linear programme: no text of these pieces
answers more.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import highspy
import numpy as np

from benchmarks.recall.facts import Fact, Question
from benchmarks.recall.parser import KINDS
from foreword.tokens import count

Piece = tuple[str, str]
"""(whose, what)."""

Candidate = tuple[str, int]
"""(question, number) of one of those that contest a top list's last places."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A fact: whose question it answers, what it is worth, the pieces that it needs, and the candidate that it
    belongs to, if its place is contested.
    """

    question: str
    weight: float
    pieces: frozenset[Piece]
    candidate: Candidate | None


@dataclass(frozen=True, slots=True)
class Pieces:
    """Everything that the questions about one project can be answered with.

    Attributes:
        wanted: facts; weights add up to the recall of a text that holds them all.
        tokens: the price of each piece.
        places: by question, how many candidates may fill its contested places.
    """

    wanted: Sequence[Wanted]
    tokens: Mapping[Piece, int]
    places: Mapping[str, int]


def pieces_of(asked: Sequence[Question], titles: Mapping[str, str], handles: Mapping[str, str]) -> Pieces:
    """The pieces of a project. ``titles`` and ``handles`` are by id."""
    texts: dict[Piece, str] = {}
    wanted = []
    for question in asked:
        weight = 1 / question.size / len(asked)
        for fact, candidate in _facts(question):
            said = _pieces(fact, titles, handles)
            texts.update(said)
            wanted.append(Wanted(question.name, weight, frozenset(said), candidate))
    return Pieces(
        wanted=wanted,
        tokens={piece: count(text) for piece, text in texts.items()},
        places={question.name: question.tied[0] for question in asked},
    )


def _facts(question: Question) -> Iterator[tuple[Fact, Candidate | None]]:
    for fact in question.required:
        yield fact, None
    for number, each in enumerate(question.tied[1]):
        for fact in each:
            yield fact, (question.name, number)


_BEFORE = {"due": "due", "decided": "on", "start": "from", "end": "to"}

_SAID: Mapping[str, Callable[[Fact], str]] = {
    "date": lambda fact: f" {_BEFORE.get(fact.other, 'on')} {fact.value}",
    "text": lambda fact: f' {fact.other} "{fact.value}"',
    "beginning": lambda fact: f' {fact.other} "{fact.value}"',
    "number": lambda fact: f" {fact.value}" if fact.other == "progress" else f" {fact.other} {fact.value}",
    "word": lambda fact: f" {fact.other} {fact.value}",
}


def _pieces(fact: Fact, titles: Mapping[str, str], handles: Mapping[str, str]) -> dict[Piece, str]:
    """The pieces that a fact needs, with their texts."""
    who, other = fact.entity, fact.other
    if fact.need == "count":
        name = "" if other == "total" else other
        start = {(who, "counts"): f"{KINDS.get(who, 'all')}\n"}
        return start | {(who, f"count {other}"): f", {name}: {fact.value}"}
    if other == "next step":  # a line of its own
        return {(who, other): f'{other} "{fact.value}"\n'}
    line = {(who, "line"): _line(who, titles, handles)}
    if fact.need in {"waits", "linked"}:
        start = {(who, "waits"): " waits for"} if fact.need == "waits" else {}
        return line | start | {(who, other): f" {handles[other]}", (other, "line"): _line(other, titles, handles)}
    if fact.need == "state":
        line[who, "state"] = f" {fact.value}"
    if fact.need in {"state", "named"}:
        return line | ({(who, other): f" {other}"} if other else {})
    return line | {(who, f"{fact.need} {other}"): _SAID[fact.need](fact)}


def _line(who: str, titles: Mapping[str, str], handles: Mapping[str, str]) -> str:
    return f'{handles[who]} "{titles.get(who, "")[:200]}"\n'


# ---- greedy


class _Choice(NamedTuple):
    """Facts that are taken together: what they are worth for the tokens that they still cost."""

    density: float
    price: int
    facts: Sequence[int]


def greedy(pieces: Pieces, budget: int) -> float:
    """Recall of the clairvoyant greedy: the most weight per token that still fits, again and again, over single
    facts and over all facts about one entity.
    """
    return _Greedy(pieces).run(budget)


class _Greedy:
    """Groups of facts on a heap by what they are worth per token. Taking one changes the worth of those that share
    its pieces or its places: they are put on the heap anew, and what it held of them is no longer true.
    """

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._groups = _groups(pieces.wanted)
        self._touching: dict[object, list[int]] = {}
        self._holding: dict[int, list[int]] = {}
        for number, group in enumerate(self._groups):
            for i in group:
                self._holding.setdefault(i, []).append(number)
            for mark in {mark for i in group for mark in _marks(pieces.wanted[i])}:
                self._touching.setdefault(mark, []).append(number)
        self._have: set[Piece] = set()
        self._done: set[int] = set()
        self._taken: set[Candidate] = set()
        self._left = dict(pieces.places)
        self._version = [0] * len(self._groups)
        self._heap: list[tuple[float, int, int, int]] = []
        for number in range(len(self._groups)):
            self._offer(number)

    def run(self, budget: int) -> float:
        """Take what fits."""
        spent = 0
        while self._heap:
            _, number, version, price = heapq.heappop(self._heap)
            if version != self._version[number] or spent + price > budget:
                continue  # what costs too much now does so until something makes it cheaper, and offers it anew
            spent += price
            self._take(self._choice(number).facts)
        return _recall(self._pieces.wanted, self._done)

    def _choice(self, number: int) -> _Choice:
        fresh = [i for i in self._groups[number] if i not in self._done and self._open(self._pieces.wanted[i])]
        needed = {piece for i in fresh for piece in self._pieces.wanted[i].pieces} - self._have
        price = sum(self._pieces.tokens[piece] for piece in needed)
        worth = sum(self._pieces.wanted[i].weight for i in fresh)
        return _Choice(worth / max(price, 0.01), price, fresh)

    def _open(self, fact: Wanted) -> bool:
        return fact.candidate is None or fact.candidate in self._taken or self._left[fact.candidate[0]] > 0

    def _offer(self, number: int) -> None:
        self._version[number] += 1
        choice = self._choice(number)
        if choice.facts:
            heapq.heappush(self._heap, (-choice.density, number, self._version[number], choice.price))

    def _take(self, facts: Iterable[int]) -> None:
        """Take facts, and offer anew whatever shares something with them."""
        stale: set[int] = set()
        for i in facts:
            fact = self._pieces.wanted[i]
            self._done.add(i)
            changed: set[object] = set(fact.pieces - self._have)
            self._have |= fact.pieces
            if fact.candidate is not None and fact.candidate not in self._taken:
                self._taken.add(fact.candidate)
                self._left[fact.candidate[0]] -= 1
                changed.add(fact.candidate[0])
            stale.update(number for mark in changed for number in self._touching[mark])
            stale.update(self._holding[i])
        for number in stale:
            self._offer(number)


def _recall(wanted: Sequence[Wanted], taken: Iterable[int]) -> float:
    """No question counts more than whole, though some candidates have more facts than others."""
    share = 1 / max(len({fact.question for fact in wanted}), 1)
    answered: dict[str, float] = {}
    for i in taken:
        answered[wanted[i].question] = answered.get(wanted[i].question, 0.0) + wanted[i].weight
    return sum(min(each, share) for each in answered.values())


def _marks(fact: Wanted) -> Iterator[object]:
    """What a fact's worth or price depends on: its pieces, and its question's contested places."""
    yield from fact.pieces
    if fact.candidate is not None:
        yield fact.candidate[0]


def _groups(wanted: Sequence[Wanted]) -> list[list[int]]:
    """Facts taken together: each alone, and all that share a line or a kind's counts."""
    groups: set[tuple[int, ...]] = {(i,) for i in range(len(wanted))}
    by: dict[str, list[int]] = {}
    for i, fact in enumerate(wanted):
        for whose in {whose for whose, what in fact.pieces if what in {"line", "counts"}}:
            by.setdefault(whose, []).append(i)
    # Contested facts of several questions may stand together, but not several candidates of one.
    for members in by.values():
        candidates = {candidate for i in members if (candidate := wanted[i].candidate) is not None}
        if len({question for question, _ in candidates}) == len(candidates):
            groups.add(tuple(members))
    return [list(group) for group in sorted(groups)]


# ---- bound


class Bound:
    """The most recall that pieces bought in fractions give: an upper bound for every text made of them.

    Variables: pieces bought, candidates chosen, facts present. A fact is present as far as each of its pieces is
    bought and its candidate is chosen. Only the budget changes from one solution to the next.
    """

    def __init__(self, pieces: Pieces) -> None:
        self._solver = _silent()
        candidates = dict.fromkeys(fact.candidate for fact in pieces.wanted if fact.candidate is not None)
        names: list[object] = [*pieces.tokens, *candidates]
        at = {name: place for place, name in enumerate(names)}
        first = len(names)
        worth = [0.0] * first + [fact.weight for fact in pieces.wanted]
        self._columns(worth)
        rows = [_row({at[piece]: tokens for piece, tokens in pieces.tokens.items()}, highspy.kHighsInf)]
        for place, fact in enumerate(pieces.wanted, first):
            needed = [*fact.pieces, *([fact.candidate] if fact.candidate is not None else [])]
            rows += [_row({place: 1.0, at[name]: -1.0}, 0.0) for name in needed]
        for question, places in pieces.places.items():
            mine = {at[each]: 1.0 for each in candidates if each[0] == question}
            rows += [_row(mine, places)] if mine else []
        rows += _whole(pieces.wanted, first)
        self._rows(rows)

    def _columns(self, worth: Sequence[float]) -> None:
        size = len(worth)
        self._solver.addVars(size, np.zeros(size), np.ones(size))
        self._solver.changeColsCost(size, np.arange(size, dtype=np.int32), np.array(worth))
        self._solver.changeObjectiveSense(highspy.ObjSense.kMaximize)

    def _rows(self, rows: Sequence["_Row"]) -> None:
        starts = np.cumsum([0, *(len(row.columns) for row in rows)])
        self._solver.addRows(
            len(rows),
            np.full(len(rows), -highspy.kHighsInf),
            np.array([row.most for row in rows], dtype=float),
            int(starts[-1]),
            starts[:-1].astype(np.int32),
            np.array([column for row in rows for column in row.columns], dtype=np.int32),
            np.array([value for row in rows for value in row.values], dtype=float),
        )

    def at(self, budget: int) -> float:
        """The bound for texts of ``budget`` tokens."""
        self._solver.changeRowBounds(0, -highspy.kHighsInf, budget)
        self._solver.run()
        return float(self._solver.getObjectiveValue())


class _Row(NamedTuple):
    columns: Sequence[int]
    values: Sequence[float]
    most: float


def _row(found: Mapping[int, float], most: float) -> _Row:
    return _Row(list(found), list(found.values()), most)


def _whole(wanted: Sequence[Wanted], first: int) -> Iterator[_Row]:
    """No question is answered more than wholly, though some candidates have more facts than others."""
    by: dict[str, dict[int, float]] = {}
    for place, fact in enumerate(wanted, first):
        by.setdefault(fact.question, {})[place] = fact.weight
    for question in {fact.question: None for fact in wanted if fact.candidate is not None}:
        yield _row(by[question], 1 / len(by))


def _silent() -> Any:
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    return solver


def bound(pieces: Pieces, budget: int) -> float:
    """``Bound`` for one budget."""
    return Bound(pieces).at(budget)


def bounds(pieces: Pieces, budgets: Iterable[int]) -> dict[int, float]:
    """``Bound`` for several budgets."""
    programme = Bound(pieces)
    return {budget: programme.at(budget) for budget in budgets}

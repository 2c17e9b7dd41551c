"""The scale of recall: what the clairvoyant greedy reaches, and what nothing of the same pieces exceeds."""

from collections.abc import Iterable, Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import uid

from benchmarks.recall.facts import Fact, Question
from benchmarks.recall.oracle import Bound, Candidate, Piece, Pieces, Wanted, greedy, pieces_of

LINE, OTHER, THIRD = ("a", "line"), ("b", "line"), ("c", "line")
DUE, STATE = ("a", "date due"), ("a", "state")


def plain(facts: Sequence[Iterable[Piece]], tokens: dict[Piece, int]) -> Pieces:
    """Facts of one question each."""
    wanted = [Wanted(f"Q{n}", 1 / len(facts), frozenset(each), None) for n, each in enumerate(facts)]
    return Pieces(wanted=wanted, tokens=tokens, places=dict.fromkeys((f.question for f in wanted), 0))


@st.composite
def instances(draw: st.DrawFn) -> Pieces:
    """Small instances with shared pieces and contested places."""
    pieces = [(who, what) for who in "abc" for what in ("line", "state", "due")]
    tokens = {piece: draw(st.integers(1, 9)) for piece in pieces}
    wanted = []
    places = {}
    questions = draw(st.integers(1, 3))
    for number in range(questions):
        name = f"Q{number}"
        required = draw(st.lists(st.sampled_from(pieces), max_size=3))
        tied = draw(st.lists(st.lists(st.sampled_from(pieces), min_size=1, max_size=2), max_size=3))
        places[name] = draw(st.integers(1, len(tied))) if tied else 0
        size = len(required) + sum(sorted(map(len, tied))[: places[name]])
        weight = 1 / max(size, 1) / questions
        facts: list[tuple[Piece, Candidate | None]] = [(piece, None) for piece in required]
        facts += [(piece, (name, at)) for at, each in enumerate(tied) for piece in each]
        wanted += [
            Wanted(name, weight, frozenset([piece, (piece[0], "line")]), candidate) for piece, candidate in facts
        ]
    return Pieces(wanted=wanted, tokens=tokens, places=places)


def best(pieces: Pieces, budget: int) -> float:
    """The most recall that any set of whole pieces gives, by trying all."""
    sets = (
        set(chosen)
        for size in range(len(pieces.tokens) + 1)
        for chosen in combinations(pieces.tokens, size)
        if sum(map(pieces.tokens.__getitem__, chosen)) <= budget
    )
    return max(recall(pieces, chosen) for chosen in sets)


def recall(pieces: Pieces, have: set[Piece]) -> float:
    """What a text of these pieces answers, the best candidates in the contested places."""
    total = 0.0
    questions = {fact.question for fact in pieces.wanted}
    for question in questions:
        mine = [fact for fact in pieces.wanted if fact.question == question]
        worth = sum(fact.weight for fact in mine if fact.candidate is None and fact.pieces <= have)
        tied: dict[object, float] = {}
        for fact in mine:
            if fact.candidate is not None and fact.pieces <= have:
                tied[fact.candidate] = tied.get(fact.candidate, 0.0) + fact.weight
        worth += sum(sorted(tied.values(), reverse=True)[: pieces.places[question]])
        total += min(worth, 1 / len(questions))
    return total


@settings(max_examples=25)
@given(pieces=instances(), budget=st.integers(0, 40))
def test_greedy_is_within_the_best_and_the_best_within_the_bound(pieces: Pieces, budget: int) -> None:
    found, most, bound = greedy(pieces, budget), best(pieces, budget), Bound(pieces).at(budget)
    assert found <= most + 1e-9
    assert most <= bound + 1e-6


@given(pieces=instances(), budgets=st.lists(st.integers(0, 80), min_size=2, max_size=4))
def test_a_bound_does_not_depend_on_the_one_before(pieces: Pieces, budgets: list[int]) -> None:
    reused = Bound(pieces)
    assert [reused.at(b) for b in budgets] == pytest.approx([Bound(pieces).at(b) for b in budgets], abs=1e-6)


@given(pieces=instances())
def test_a_budget_for_everything_answers_everything(pieces: Pieces) -> None:
    enough = sum(pieces.tokens.values())
    whole = recall(pieces, set(pieces.tokens))
    assert Bound(pieces).at(enough) == pytest.approx(whole, abs=1e-6)
    assert greedy(pieces, enough) == pytest.approx(whole) or any(fact.candidate for fact in pieces.wanted)


@pytest.mark.parametrize(("budget", "most"), [(0, 0), (3, 0), (4, 1), (7, 1), (8, 2), (11, 2), (12, 3)])
def test_where_every_fact_costs_the_same_greedy_and_best_agree(budget: int, most: int) -> None:
    pieces = plain([[LINE], [OTHER], [THIRD]], dict.fromkeys((LINE, OTHER, THIRD), 4))
    assert greedy(pieces, budget) == pytest.approx(most / 3)
    assert best(pieces, budget) == pytest.approx(most / 3)
    assert Bound(pieces).at(budget) == pytest.approx(budget / 12)


def test_greedy_takes_together_what_shares_a_line() -> None:
    # Alone, either fact of the dear line is worth less a token than the cheap one; together they are worth more.
    tokens = {LINE: 8, STATE: 1, DUE: 1, OTHER: 6}
    pieces = plain([[LINE, STATE], [LINE, DUE], [OTHER]], tokens)
    assert greedy(pieces, 10) == pytest.approx(2 / 3)
    assert greedy(pieces, 16) == pytest.approx(1)


def test_a_contested_place_is_filled_once() -> None:
    tied = [Wanted("Q", 1.0, frozenset([piece]), ("Q", n)) for n, piece in enumerate((LINE, OTHER, THIRD))]
    pieces = Pieces(wanted=tied, tokens=dict.fromkeys((LINE, OTHER, THIRD), 2), places={"Q": 1})
    assert greedy(pieces, 6) == 1
    assert Bound(pieces).at(6) == pytest.approx(1)
    assert Bound(pieces).at(1) == pytest.approx(0.5)


def test_what_costs_too_much_comes_back_when_something_makes_it_cheaper() -> None:
    # The pair is not affordable at first alone; with the line that the others pay for, it is.
    tokens = {LINE: 5, STATE: 1, DUE: 4}
    pieces = plain([[LINE, STATE], [LINE, DUE]], tokens)
    assert greedy(pieces, 9) == pytest.approx(1 / 2)
    assert greedy(pieces, 10) == pytest.approx(1)


def test_pieces_are_shared_by_the_facts_that_need_them() -> None:
    ship, sail = uid("ship"), uid("sail")
    facts = [
        Fact("count", "task", "overdue", "1"),
        Fact("date", ship, "due", "2026-11-20"),
        Fact("state", ship, "", "todo"),
        Fact("waits", ship, sail, ""),
    ]
    asked = Question(name="Q", asks="?", required=facts, tied=(0, ()), counted=facts[:1])
    pieces = pieces_of([asked], {ship: "Ship", sail: "Sail"}, {ship: "T1", sail: "T2"})
    assert sum(fact.weight for fact in pieces.wanted) == pytest.approx(1)
    assert all((ship, "line") in fact.pieces for fact in pieces.wanted[1:])
    assert (sail, "line") in pieces.wanted[3].pieces
    enough = sum(pieces.tokens.values())
    assert greedy(pieces, enough) == pytest.approx(1)
    assert greedy(pieces, enough - 1) < 1

"""What is admitted first: most weight for its tokens, and a share for the general view."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.lines import DEFAULT_BUDGET, LARGEST_BUDGET
from foreword.selection import (
    LEAST_RESERVED,
    MOST_RESERVED,
    RESERVED_FROM,
    Offer,
    by_worth,
    reserved,
    reserving,
)

weights = st.integers(0, 40).map(lambda eighths: eighths / 8)
"""Sums and halves of these are exact."""


@st.composite
def markets(draw: st.DrawFn) -> list[Offer]:
    """Offers of lines: with something asked of them, or nothing; some answer a fact only together."""
    names = [f"n{n}" for n in range(draw(st.integers(0, 9)))]
    offers = []
    for name in names:
        asked = draw(st.one_of(st.just(0), st.integers(1, 12)))
        others = st.sampled_from([*names, "somebody without a line"])
        offers.append(
            Offer(
                name,
                asked,
                asked + draw(st.integers(0 if asked else 1, 12)),
                draw(weights),
                draw(weights),
                [(other, draw(weights)) for other in draw(st.lists(others, max_size=3)) if other != name],
            )
        )
    return offers


def greedily(offers: Sequence[Offer]) -> list[tuple[str, bool]]:
    """The order, found by looking at everything that is left before every choice."""
    names = {offer.name for offer in offers}
    taken: dict[str, bool] = {}
    order: list[tuple[str, bool]] = []

    def worth(offer: Offer) -> float:
        shared = [(other, weight) for other, weight in offer.pairs if other in names]
        shared += [(of.name, weight) for of in offers for other, weight in of.pairs if other == offer.name]
        return offer.answers + sum(weight / (1 if other in taken else 2) for other, weight in shared)

    while True:
        choices = []
        for place, offer in enumerate(offers):
            if offer.name not in taken:
                if offer.asked:
                    choices.append((-worth(offer) / offer.asked, place, False, offer.name))
                if offer.view or not offer.asked:
                    choices.append((-(worth(offer) + offer.view) / offer.whole, place, True, offer.name))
            elif not taken[offer.name] and offer.view:
                choices.append((-offer.view / max(offer.whole - offer.asked, 1), place, True, offer.name))
        if not choices:
            return order
        *_, whole, name = min(choices)
        taken[name] = whole
        order.append((name, whole))


@given(markets())
@settings(max_examples=400)
@pytest.mark.promise("recall.greedy")
def test_what_is_worth_most_for_its_tokens_is_next_chosen_anew_after_each_line(offers: list[Offer]) -> None:
    assert by_worth(offers) == greedily(offers)


@given(markets())
@pytest.mark.promise("recall.greedy")
def test_every_offer_is_taken_once_or_first_as_asked_and_then_whole(offers: list[Offer]) -> None:
    order = by_worth(offers)

    for offer in offers:
        taken = [whole for name, whole in order if name == offer.name]
        assert taken in ([[True], [False, True]] if offer.view else [[False]] if offer.asked else [[True]])
    assert len(order) == len(set(order))


@pytest.mark.promise("recall.greedy")
def test_a_dear_line_waits_for_two_cheap_ones_that_are_worth_as_much() -> None:
    offers = [Offer("dear", 20, 20, 3.0), Offer("cheap", 5, 5, 1.5), Offer("cheap too", 5, 5, 1.5)]

    assert by_worth(offers) == [("cheap", False), ("cheap too", False), ("dear", False)]


@pytest.mark.promise("recall.greedy")
def test_a_fact_of_two_lines_counts_half_for_each_until_one_is_there() -> None:
    offers = [
        Offer("waits", 10, 10, 0.0, 0.0, [("first", 2.0)]),
        Offer("between", 10, 10, 1.5),
        Offer("first", 10, 10, 1.0),
    ]

    assert [name for name, _ in by_worth(offers)] == ["first", "waits", "between"]


@pytest.mark.promise("recall.greedy", "lines.parts")
def test_what_is_asked_comes_before_the_rest_of_the_same_line() -> None:
    offers = [Offer("a", 10, 20, 1.0, 0.25), Offer("b", 10, 10, 0.375), Offer("c", 0, 10, 0.0, 0.125)]

    # Of the first, the rest is worth 0.25 for 10 more tokens: what was worth the whole has been counted.
    assert by_worth(offers) == [("a", False), ("b", False), ("a", True), ("c", True)]


@pytest.mark.promise("recall.greedy")
def test_what_the_whole_line_is_worth_is_no_reason_for_the_rest_once_a_part_is_there() -> None:
    offers = [Offer("a", 10, 20, 10.0, 0.125), Offer("b", 10, 10, 1.0)]

    assert by_worth(offers) == [("a", False), ("b", False), ("a", True)]


@pytest.mark.promise("recall.greedy", "build.deterministic")
def test_equals_are_taken_in_the_order_in_which_they_are_offered() -> None:
    offers = [Offer(name, 10, 10, 1.0) for name in "cabd"]

    assert [name for name, _ in by_worth(offers)] == list("cabd")


# ---- a share for the general view

Line = tuple[str, int, bool]
"""(name, tokens, whether it is a view's)."""


class Admission:
    """Admits a line once; a second time it takes nothing."""

    def __init__(self) -> None:
        self.admitted: list[Line] = []

    def __call__(self, line: Line) -> tuple[int, bool]:
        if line in self.admitted:
            return 0, False
        self.admitted.append(line)
        return line[1], line[2]


@st.composite
def queues(draw: st.DrawFn) -> tuple[list[Line], list[Line]]:
    """An order in which views may be, and the views, of which some are in it."""
    order = [(f"o{n}", draw(st.integers(1, 60)), draw(st.booleans())) for n in range(draw(st.integers(0, 40)))]
    views = [line for line in order if line[2] and draw(st.booleans())]
    views += [(f"v{n}", draw(st.integers(1, 60)), True) for n in range(draw(st.integers(0, 20)))]
    return order, views


shares = st.floats(0, 1)


@given(queues(), shares, st.integers(0, 2000))
@settings(max_examples=300)
@pytest.mark.promise("recall.reserved")
def test_all_of_the_order_is_admitted_in_order_and_views_keep_their_share(
    lines: tuple[list[Line], list[Line]], share: float, spent: int
) -> None:
    order, views = lines
    admit = Admission()
    of_views, total, seen, left = 0, spent, [], list(views)

    for line in reserving(order, views, share, admit, spent):
        # Whenever the views are short of their share, one of them is next, as long as there are any.
        if of_views < share * (total - RESERVED_FROM) and left:
            assert line == left.pop(0)
        else:
            seen.append(line)
        total = spent + sum(tokens for _, tokens, _ in admit.admitted)
        of_views = sum(tokens for _, tokens, is_view in admit.admitted if is_view)

    assert seen == order
    assert set(order) <= set(admit.admitted)


@given(queues(), st.integers(0, RESERVED_FROM))
@pytest.mark.promise("recall.reserved")
def test_nothing_is_out_of_turn_where_nothing_is_reserved(
    lines: tuple[list[Line], list[Line]], spent: int
) -> None:
    order, views = lines

    assert list(reserving(order, views, 0.0, Admission(), spent)) == order


@pytest.mark.promise("recall.reserved")
def test_little_texts_answer_the_catalogue_only() -> None:
    order = [(f"o{n}", 50, False) for n in range(40)]
    views = [(f"v{n}", 50, True) for n in range(40)]

    admitted = list(reserving(order, views, 0.5, Admission(), 0))

    first = next(place for place, line in enumerate(admitted) if line[2])
    assert sum(tokens for _, tokens, _ in admitted[:first]) == RESERVED_FROM + 50
    assert [line[2] for line in admitted[first : first + 6]] == [True, False] * 3


@given(st.integers(0, 10**7), st.integers(0, 10**4))
@pytest.mark.promise("recall.reserved")
def test_more_is_reserved_the_less_of_the_catalogue_fits_and_steadily(demand: int, more: int) -> None:
    one, other = reserved(demand), reserved(demand + more)

    assert LEAST_RESERVED <= one <= other <= MOST_RESERVED
    assert other - one <= 1e-9 + more / DEFAULT_BUDGET * 1.5


@pytest.mark.promise("recall.reserved")
def test_little_is_reserved_where_all_answers_fit_and_a_half_at_most() -> None:
    assert reserved(0) == reserved(DEFAULT_BUDGET) == LEAST_RESERVED > 0
    assert reserved(10 * LARGEST_BUDGET) == MOST_RESERVED <= 0.5
    assert all(a <= b for a, b in pairwise(map(reserved, range(0, 2 * LARGEST_BUDGET, 10))))


@pytest.mark.promise("recall.greedy", "graph.total")
def test_thousands_of_offers_are_ordered_at_once() -> None:
    random = Random(1)
    offers = [
        Offer(
            str(n),
            random.randint(1, 60),
            60,
            random.random(),
            0.01,
            [(str(random.randrange(5000)), random.random())],
        )
        for n in range(5000)
    ]

    assert sorted(name for name, whole in by_worth(offers) if whole) == sorted(offer.name for offer in offers)

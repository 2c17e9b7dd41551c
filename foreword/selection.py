"""Which lines come first when not all fit. Pure functions of weights and tokens; no text is made here.

What a line is worth is what it answers of the catalogue (``foreword.questions``) and what it adds to a general
view of the project, for the questions that nobody listed; what comes first is worth most per token. The order
does not depend on the budget, so a larger budget never loses a line.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from foreword.lines import DEFAULT_BUDGET

T = TypeVar("T")

STEP = 5
"""Points that an entity loses in the general order for each better one of its kind: variety before depth."""

VIEW_LINES = 5
"""Entities of a view: the best of a kind, or its latest."""

VIEW_WORTH = 0.08
"""What a view is worth, where a question of the catalogue is worth 1. Where the catalogue's sets are small
they are whole before views begin; where they run to hundreds, the views come before their tails
(docs/adr/0010)."""

RESERVED_FROM = 700
"""Tokens up to which a text answers the catalogue only: of less, a part for all else is too little for both."""


LEAST_RESERVED, MOST_RESERVED = 0.08, 0.5
_FITS, _RISE = 1.05, 1.2


def reserved(demand: int) -> float:
    """The share of tokens beyond RESERVED_FROM that the views have at least, where answering the whole
    catalogue takes ``demand`` tokens: little where it fits the default budget, up to a half where only the tails
    of long lists would gain by more. In between it rises steadily, so that an edit changes little.
    """
    return min(max(LEAST_RESERVED + (demand / DEFAULT_BUDGET - _FITS) * _RISE, LEAST_RESERVED), MOST_RESERVED)


def general_order(slices: Mapping[str, Sequence[str]], scores: Mapping[str, int]) -> list[str]:
    """Ids of all entities in ``slices`` (kind to ids, best first), the one to admit first first.

    Ties go to the kind declared earlier, then to the id.
    """
    ranked = [
        (STEP * place - scores[entity], kind_place, entity)
        for kind_place, entities in enumerate(slices.values())
        for place, entity in enumerate(entities)
    ]
    return [entity for _, _, entity in sorted(ranked)]


class Offer(NamedTuple):
    """A line that may be admitted with what is asked of it, or whole, or first the one and then the other.

    Attributes:
        name: whose line it is.
        asked, whole: tokens of the line with what is asked, 0 where nothing is, and with all that it can say.
        answers: the weight of the catalogue's facts that it answers by itself.
        view: the weight of seeing it whole.
        pairs: (other name, weight) of facts that need the other's line as well.
    """

    name: str
    asked: int
    whole: int
    answers: float = 0.0
    view: float = 0.0
    pairs: Sequence[tuple[str, float]] = ()


def by_worth(offers: Iterable[Offer]) -> list[tuple[str, bool]]:
    """(name, whether whole) in order of admission: most weight per token first, chosen anew after each line.

    A fact that needs two lines counts half for each until one of them is there, then whole for the other. Ties go
    to the offer that came first.
    """
    market = _Market(offers)
    order: list[tuple[str, bool]] = []
    while (found := market.pop()) is not None:
        order.append(found)
    return order


_Entry = tuple[float, int, bool, bool, str]
"""(worth per token, negative; the offer's place; whether the whole line; whether the first of its place; name)"""


class _Market:
    """The offers, and a heap of what each is worth. An entry that is no longer true is dropped when it comes
    up.
    """

    def __init__(self, offers: Iterable[Offer]) -> None:
        self._offers = {offer.name: (place, offer) for place, offer in enumerate(offers)}
        self._worth = {name: offer.answers for name, (_, offer) in self._offers.items()}
        self._partners: dict[str, list[tuple[str, float]]] = defaultdict(list)
        for name, (_, offer) in self._offers.items():
            for other, weight in offer.pairs:
                if other in self._offers:
                    self._partners[name].append((other, weight / 2))
                    self._partners[other].append((name, weight / 2))
        for name, partners in self._partners.items():
            self._worth[name] += sum(weight for _, weight in partners)
        self._taken: dict[str, bool] = {}
        self._heap = [entry for name in self._offers for entry in self._entries(name)]
        heapq.heapify(self._heap)

    def _entries(self, name: str) -> Iterator[_Entry]:
        """What can be done for a name of which nothing is there: to admit its line as asked, or whole."""
        place, offer = self._offers[name]
        worth = self._worth[name]
        if offer.asked:
            yield -worth / max(offer.asked, 1), place, False, True, name
        if offer.view > 0 or not offer.asked:
            yield -(worth + offer.view) / max(offer.whole, 1), place, True, True, name

    def pop(self) -> tuple[str, bool] | None:
        """The best offer that is left."""
        while self._heap:
            _, place, whole, first, name = heapq.heappop(self._heap)
            # What was worth the whole line is not what the rest of it is worth once a part is there.
            if self._taken.get(name, False) or first == (name in self._taken):
                continue
            self._taken[name] = whole
            if first:
                self._raise_partners(name)
            _, offer = self._offers[name]
            if not whole and offer.view > 0:
                rest = max(offer.whole - offer.asked, 1)
                heapq.heappush(self._heap, (-offer.view / rest, place, True, False, name))
            return name, whole
        return None

    def _raise_partners(self, name: str) -> None:
        """What needed a name's line as well is worth its whole weight now."""
        for other, weight in self._partners.get(name, ()):
            if other not in self._taken:
                self._worth[other] += weight
                for entry in self._entries(other):
                    heapq.heappush(self._heap, entry)


def reserving(
    order: Iterable[T], views: Iterable[T], share: float, admit: Callable[[T], tuple[int, bool]], spent: int
) -> Iterator[T]:
    """Admit an order, and out of turn as many of ``views`` as their ``share`` takes.

    ``admit`` is asked once of each, when its turn has come, and says how many tokens it took and whether it was a
    view's; ``spent`` is what has been before.
    """
    ahead, behind = iter(order), iter(views)
    of_views = 0
    while True:
        short = of_views < share * (spent - RESERVED_FROM)
        found = next(behind, None) if short else None
        if found is None:
            found = next(ahead, None)
        if found is None:
            return
        tokens, is_view = admit(found)
        spent += tokens
        of_views += tokens if is_view else 0
        yield found

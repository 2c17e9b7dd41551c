"""Which questions a bundle's text answers, at any budget: read from what was published with it.

``Context.data["answers"]`` holds, for each question of the catalogue, how many facts a whole answer has and
the totals of tokens from which one more of them is in the text. Budgets only cut lines off the end of one
order of admission, so that is all there is to know.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Answered:
    """What a text says of one question: ``present`` of ``facts``. Whole when none is ``missing``."""

    question: str
    asks: str
    facts: int
    present: int

    @property
    def missing(self) -> int:
        """Facts of a whole answer that the text does not hold: ask the detail tools for them."""
        return self.facts - self.present


def answered(data: Mapping[str, Any], budget: int) -> list[Answered]:
    """What the text of a structured bundle answers at a budget in tokens, question by question."""
    return [
        Answered(each["question"], each["asks"], each["facts"], sum(total <= budget for total in each["at"]))
        for each in data.get("answers", ())
    ]

"""Which lines come first when not all fit. One pure function, made to be replaced.

It sees the shown entities of each kind, best first, and returns all of them in the order in which their lines
are admitted. The order does not depend on the budget, so a larger budget never loses a line.
"""

from collections.abc import Mapping, Sequence

STEP = 5
"""Points that an entity loses for each better one of its kind: variety before depth."""


def admission_order(slices: Mapping[str, Sequence[str]], scores: Mapping[str, int]) -> list[str]:
    """Ids of all entities in ``slices`` (kind to ids, best first), the one to admit first first.

    Ties go to the kind declared earlier, then to the id.
    """
    ranked = [
        (STEP * place - scores[entity], kind_place, entity)
        for kind_place, entities in enumerate(slices.values())
        for place, entity in enumerate(entities)
    ]
    return [entity for _, _, entity in sorted(ranked)]

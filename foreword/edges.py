"""What relations mean: which spellings are one relation, which way it points, and who waits for whom.

Databases hold a relation under several names and either way round. ``canonical`` reads them as one, so that
a reversed twin counts once. An unknown relation keeps its own name.
"""

from collections.abc import Iterable
from functools import lru_cache

Edge = tuple[str, str, str, str, str, str]
"""(id, src_id, src_kind, dst_id, dst_kind, rel) as stored."""

WAITS_IF_DST = "blocks"
"""src blocks dst: dst waits for src."""

WAITS_IF_SRC = "requires"
"""src requires dst: src waits for dst."""

WAITING = frozenset({WAITS_IF_DST, WAITS_IF_SRC})
"""The canonical relations by which one waits for another."""

# spelling: (the relation it stands for, whether its ends change places)
_ALIASES: dict[str, tuple[str, bool]] = {
    "belongs_to_plan": ("has_task", True),
    "blocked_by": ("blocks", True),
    "depends_on": ("blocks", True),
    "supports": ("supports_goal", False),
    "achieved_by": ("supports_goal", True),
}

_SYMMETRIC = frozenset({"relates_to"})

# The kind a relation points at. The same relation stored the other way round is its reversed twin.
_POINTS_AT = {
    "supports_goal": "goal",
    "targets_milestone": "milestone",
    "has_context_document": "document",
    "mitigates": "risk",
    "addresses": "risk",
    "produces": "output",
}

# The kind a relation comes from, where that is what tells its direction.
_COMES_FROM = {"threatens": "risk"}


def spelled(rel: str) -> tuple[str, bool]:
    """The relation that ``rel`` stands for, and whether its ends change places."""
    return _ALIASES.get(rel, (rel, False))


def points_at(rel: str) -> str | None:
    """The kind at the far end of a canonical relation, where the relation says so (has_risk: risk)."""
    return _POINTS_AT.get(rel) or (rel[4:] if rel.startswith("has_") else None)


def canonical(rel: str, src: str, src_kind: str, dst: str, dst_kind: str) -> tuple[str, str, str]:
    """(relation, src, dst), the same for every way in which one relation between two entities is stored."""
    name, flipped = spelled(rel)
    if flipped:
        src, src_kind, dst, dst_kind = dst, dst_kind, src, src_kind
    if name in _SYMMETRIC:
        return (name, src, dst) if src <= dst else (name, dst, src)
    target, source = points_at(name), _COMES_FROM.get(name)
    if (target is not None and src_kind == target != dst_kind) or (source == dst_kind != src_kind):
        return name, dst, src
    return name, src, dst


@lru_cache(maxsize=4096)  # a few hundred in all, the same ones in every build
def turning(rel: str, src_kind: str, dst_kind: str) -> tuple[str, int]:
    """``canonical`` without the ids: the relation, and 0 as stored, 1 ends change places, 2 lower id first."""
    name, src, _ = canonical(rel, "a", src_kind, "b", dst_kind)
    return name, 2 if name in _SYMMETRIC else int(src == "b")


def waits(canonical_edges: Iterable[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """(who waits, for whom) for every canonical edge that says so."""
    telling = [key for key in canonical_edges if key[0] in WAITING]
    return [(dst, src) if rel == WAITS_IF_DST else (src, dst) for rel, src, dst in telling]

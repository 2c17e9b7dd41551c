"""The graph around a project: which edges live, what they cover, and the capped snapshot of it.

Pure and total: cycles, self loops, duplicates, dead ends, edges of other projects and missing edges are data.
The same rows in any order give the same result; every choice ends in a comparison by id.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from foreword.edges import Edge, turning
from foreword.kinds import PROJECT, Registry
from foreword.rows import ProjectRows

MAX_DEPTH = 2
MAX_NODES = 60
"""The project counts."""
MAX_EDGES = 80
MAX_NODES_OF_A_KIND = 10

Triple = tuple[str, str, str]

Ranked = tuple[int, str, str, str]
"""(score, touched, id, kind) of an entity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A project's live edges, each once, and what follows from them.

    Attributes:
        kind_of: the kind of every live entity, the project included, by id.
        edges: (relation, src, dst) in canonical form to the stored edge that stands for it.
        direct: entities with an edge to the project, either way round.
        reachable: entities within two steps of the project. ``reached``: how many they are, by kind.
        linked: entities with any live edge.
        around: the keys of the edges that touch a direct entity.
        groups: the keys of the edges by (relation, kind of one end, kind of the other), in either order of the
        ends:
            a project has a few dozen such groups, and most rules look at a few of them.
        dangling, foreign, duplicate, loops: edges left out, by reason.
    """

    kind_of: Mapping[str, str]
    edges: Mapping[tuple[str, str, str], Edge]
    direct: frozenset[str]
    reachable: frozenset[str]
    reached: Mapping[str, int]
    linked: frozenset[str]
    around: Sequence[tuple[str, str, str]]
    groups: Mapping[Triple, Sequence[tuple[str, str, str]]]
    dangling: int
    foreign: int
    duplicate: int
    loops: int


def graph_of(rows: ProjectRows, kinds: Registry) -> Graph:
    """Index a project's rows and edges in one pass each."""
    kind_of = _kinds_by_id(rows, kinds)
    edges, groups, dangling, foreign, duplicate, loops = _live_edges(rows, kind_of)
    root = rows.project_id
    direct = _ends([key for triple, keys in groups.items() if PROJECT in triple[1:] for key in keys]) - {root}
    around = [key for key in edges if key[1] in direct or key[2] in direct]
    reachable = _ends(around) - {root}
    return Graph(
        kind_of=kind_of,
        edges=edges,
        direct=direct,
        reachable=reachable,
        reached=Counter(map(kind_of.__getitem__, reachable)),
        linked=_ends(edges) - {root},
        around=around,
        groups=groups,
        dangling=dangling,
        foreign=foreign,
        duplicate=duplicate,
        loops=loops,
    )


_SRC, _DST = itemgetter(1), itemgetter(2)


def _ends(keys: Collection[tuple[str, str, str]]) -> frozenset[str]:
    """Both ends of canonical edges. In C, because it runs over all edges of a project."""
    return frozenset().union(map(_SRC, keys), map(_DST, keys))


def _kinds_by_id(rows: ProjectRows, kinds: Registry) -> dict[str, str]:
    kind_of: dict[str, str] = {}
    first = itemgetter(0)
    # Reversed, so that of two kinds that share an id the first declared wins.
    for kind in reversed(kinds.entities):
        kind_of.update(dict.fromkeys(map(first, rows.entities.get(kind.name, ())), kind.name))
    kind_of[rows.project_id] = PROJECT
    return kind_of


def _live_edges(
    rows: ProjectRows, kind_of: Mapping[str, str]
) -> tuple[dict[tuple[str, str, str], Edge], dict[Triple, list[tuple[str, str, str]]], int, int, int, int]:
    """The hottest loop of a build: one turn per stored edge."""
    edges: dict[tuple[str, str, str], Edge] = {}
    dangling = foreign = duplicate = loops = 0
    kind = kind_of.get
    decided: dict[Triple, tuple[str, int, list[tuple[str, str, str]]]] = {}
    groups: dict[Triple, list[tuple[str, str, str]]] = {}
    elsewhere = rows.elsewhere
    for edge in rows.edges:
        src, dst = edge[1], edge[3]
        src_kind, dst_kind = kind(src), kind(dst)
        if src_kind is None or dst_kind is None:
            if src in elsewhere or dst in elsewhere:
                foreign += 1
            else:
                dangling += 1
            continue
        if src == dst:
            loops += 1
            continue
        triple = (edge[5], src_kind, dst_kind)
        # A project has a few dozen such triples: deciding once each saves most of the work.
        found = decided.get(triple)
        if found is None:
            name, turn = turning(*triple)
            found = decided[triple] = name, turn, groups.setdefault((name, src_kind, dst_kind), [])
        name, turn, group = found
        if turn == 1 or (turn == 2 and src > dst):
            src, dst = dst, src
        key = (name, src, dst)
        known = edges.setdefault(key, edge)
        if known is edge:
            group.append(key)
        else:
            duplicate += 1
            if edge[0] < known[0]:
                edges[key] = edge
    return edges, groups, dangling, foreign, duplicate, loops


def unresolved_ends(rows: ProjectRows, kinds: Registry) -> frozenset[str]:
    """Ends of edges that are no live entity of the project: dead, missing, or another project's."""
    kind_of = _kinds_by_id(rows, kinds)
    ends = set(map(itemgetter(1), rows.edges)).union(map(itemgetter(3), rows.edges))
    return frozenset(ends.difference(kind_of))


def coverage(rows: ProjectRows, graph: Graph, kinds: Registry) -> dict[str, dict[str, int]]:
    """For every kind that the database has: how much of it the graph holds. ``total = direct + unlinked``."""
    direct = Counter(map(graph.kind_of.__getitem__, graph.direct))
    alone = Counter(map(graph.kind_of.__getitem__, graph.kind_of.keys() - graph.linked))
    table = {}
    for kind in kinds.entities:
        if kind.name in rows.absent:
            continue
        total, name = len(rows.entities.get(kind.name, ())), kind.name
        table[kind.plural] = {
            "total": total,
            "direct": direct[name],
            "unlinked": total - direct[name],
            "reachable": graph.reached.get(name, 0),
            "orphan": alone[name],
        }
    return table


def best(entities: Iterable[Ranked], limit: int) -> list[Ranked]:
    """The ``limit`` best: higher score first, then later touched, then lower id."""
    found = list(entities)
    if len(found) > 2 * limit > 0:
        # Comparing numbers alone settles most; of a few dozen entities there is nothing to settle.
        least = sorted(map(itemgetter(0), found))[-limit]
        found = [entity for entity in found if entity[0] >= least]
    if len(found) > 4 * limit > 0:
        # Ties on (score, touched) are settled by id below, so everything equal to the last place stays in.
        floor: tuple[int, str] = heapq.nlargest(limit, found)[-1][:2]
        found = [entity for entity in found if entity >= floor]  # a tuple is beyond its own beginning
    found.sort(key=itemgetter(2))
    found.sort(key=itemgetter(0, 1), reverse=True)
    return found[:limit]


def merged(entities: list[Ranked]) -> list[Ranked]:
    """The same, best first, of a few lists that were in order one by one: a sort of whole entities sees that."""
    return sorted(sorted(entities), key=itemgetter(0, 1), reverse=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The capped breadth-first graph.

    Attributes:
        nodes: (id, kind) in the order of admission, the project first.
        edges: stored edges between nodes: first the one by which each node was reached, then by rank.
        omitted: reachable entities that are no node, by kind.
        capped_by: the caps that left something out: nodes, kind, edges.
    """

    nodes: tuple[tuple[str, str], ...]
    edges: tuple[Edge, ...]
    omitted: Mapping[str, int]
    capped_by: tuple[str, ...]


def snapshot(
    root: str, graph: Graph, linked: Iterable[Sequence[Ranked]], rank_of: Mapping[str, Ranked]
) -> Snapshot:
    """Breadth first from the project, nearer nodes first, better ones first within a depth.

    ``linked`` holds of each kind the best of those linked to the project, more than MAX_NODES_OF_A_KIND;
    ``rank_of`` every entity. Nodes of the second depth are neighbours of admitted nodes, so each node hangs
    together with the project through nodes and edges that are kept.
    """
    admitted = _Admission(root)
    admitted.add(linked)
    inner = {node for node, _ in admitted.nodes[1:]}
    touching = [key for key in graph.around if key[1] in inner or key[2] in inner]
    outer = _ends(touching) - graph.direct - {root}
    if outer and len(admitted.nodes) >= MAX_NODES:
        admitted.capped.add("nodes")
    elif outer:
        by_kind: dict[str, list[Ranked]] = defaultdict(list)
        for entity in map(rank_of.__getitem__, outer):
            by_kind[entity[3]].append(entity)
        admitted.add(by_kind.values())
    position = {node: place for place, (node, _) in enumerate(admitted.nodes)}
    kept, dropped = _kept_edges(graph, position)
    shown = Counter(kind for _, kind in admitted.nodes)
    if dropped:
        admitted.capped.add("edges")
    return Snapshot(
        nodes=tuple(admitted.nodes),
        edges=kept,
        omitted={kind: n - shown[kind] for kind, n in sorted(graph.reached.items()) if n > shown[kind]},
        capped_by=tuple(sorted(admitted.capped)),
    )


class _Admission:
    """Nodes let in under the caps, best first."""

    __slots__ = ("_of_kind", "capped", "nodes")

    def __init__(self, root: str) -> None:
        self.nodes: list[tuple[str, str]] = [(root, PROJECT)]
        self.capped: set[str] = set()
        self._of_kind: dict[str, int] = {}

    def add(self, groups: Iterable[Sequence[Ranked]]) -> None:
        """Admit one depth. Of each kind only the best few can get in, so only those are sorted."""
        few = [entity for group in groups for entity in best(group, MAX_NODES_OF_A_KIND + 1)]
        for _, _, entity, kind in best(few, len(few)):
            if len(self.nodes) >= MAX_NODES:
                self.capped.add("nodes")
                return
            if self._of_kind.get(kind, 0) >= MAX_NODES_OF_A_KIND:
                self.capped.add("kind")
                continue
            self._of_kind[kind] = self._of_kind.get(kind, 0) + 1
            self.nodes.append((entity, kind))


def _kept_edges(graph: Graph, position: Mapping[str, int]) -> tuple[tuple[Edge, ...], int]:
    """The edges between nodes, at most MAX_EDGES, and how many more there are.

    An edge ranks by the later of its nodes, then the earlier, then its id; the first that reaches a node from
    an earlier one is the node's own and comes before all others.
    """
    between = {}
    for key in [key for key in graph.edges if key[1] in position and key[2] in position]:
        a, b, edge = position[key[1]], position[key[2]], graph.edges[key]
        between[max(a, b), min(a, b), edge[0]] = edge
    reached: set[int] = set()
    tree, rest = [], []
    for rank in sorted(between):
        if rank[0] in reached:
            rest.append(between[rank])
        else:
            reached.add(rank[0])
            tree.append(between[rank])
    return tuple((tree + rest)[:MAX_EDGES]), max(len(tree) + len(rest) - MAX_EDGES, 0)

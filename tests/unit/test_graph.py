"""The graph around a project: which edges live, what they cover, the capped snapshot."""

from collections import Counter
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    PROJECT_ID,
    Reading,
    a_big_project,
    a_goal,
    a_plan,
    a_project,
    a_row,
    a_task,
    an_edge,
    drafted,
    projects,
    reading,
    shuffled,
    uid,
)

from foreword.draft import Draft
from foreword.graph import Graph, best, graph_of, unresolved_ends
from foreword.kinds import KINDS
from foreword.rows import ProjectRows
from foreword.scoring import ranked

FINISHED = {"done", "completed", "achieved", "abandoned", "cancelled", "closed", "mitigated", "archived"}

big = pytest.mark.parametrize(
    ("entities", "edges", "relations"),
    [
        (400, 900, ("has_task", "contains")),
        (3000, 300, ("contains",)),
        (60, 3000, ("blocks", "relates_to", "supports_goal", "contains")),
        (59, 4000, ("references",)),
    ],
)


def graph_from(rows: ProjectRows) -> Graph:
    return graph_of(rows, KINDS)


def state_of(draft: Draft, entity: str) -> str | None:
    kind = draft.graph.kind_of[entity]
    row = next(row for row in draft.rows.entities[kind] if row[0] == entity)
    state: str | None = row[KINDS.by_name[kind].at["state_key"]] if "state_key" in KINDS.by_name[kind].at else None
    return state


def is_done(draft: Draft, entity: str) -> bool:
    kind, state = draft.graph.kind_of[entity], state_of(draft, entity)
    return state in FINISHED or (kind == "output" and state == "published")


def depths(read: Reading) -> dict[str, int]:
    """How many steps each entity within two is from the project."""
    one = read.near(PROJECT_ID, 1)
    return {entity: 1 if entity in one else 2 for entity in read.near(PROJECT_ID, 2)}


def reached(edges: Iterable[tuple[str, str]]) -> set[str]:
    """What hangs together with the project through ``edges``."""
    found, before = {PROJECT_ID}, 0
    pairs = list(edges)
    while len(found) != before:
        before = len(found)
        found |= {end for pair in pairs if found & set(pair) for end in pair}
    return found


# ---- which edges live


@given(projects())
@pytest.mark.promise("graph.once", "graph.total")
def test_edges_count_once_and_what_is_left_out_is_counted_by_reason(rows: ProjectRows) -> None:
    read, graph = reading(rows), graph_from(rows)

    assert {(src, rel, dst) for rel, src, dst in graph.edges} == read.said
    assert (graph.dangling, graph.foreign) == (read.dangling, read.foreign)
    assert (graph.duplicate, graph.loops) == (read.duplicate, read.loops)
    assert len(rows.edges) == len(read.said) + read.dangling + read.foreign + read.duplicate + read.loops


@given(projects())
@pytest.mark.promise("graph.once")
def test_of_several_edges_that_say_the_same_the_lowest_id_stands_for_all(rows: ProjectRows) -> None:
    graph = graph_from(rows)
    stored = {edge[0]: edge for edge in rows.edges}

    for (rel, src, dst), edge in graph.edges.items():
        alone = graph_from(a_copy_with(rows, [stored[edge[0]]]))
        twins = [e[0] for e in rows.edges if graph_from(a_copy_with(rows, [e])).edges.keys() == {(rel, src, dst)}]
        assert alone.edges.keys() == {(rel, src, dst)}
        assert edge[0] == min(twins)


def a_copy_with(rows: ProjectRows, edges: list[tuple[str, str, str, str, str, str]]) -> ProjectRows:
    return ProjectRows(
        project_id=rows.project_id,
        project=rows.project,
        entities=rows.entities,
        edges=edges,
        elsewhere=rows.elsewhere,
    )


@given(projects())
@pytest.mark.promise("graph.once")
def test_ends_that_are_no_entity_of_the_project_are_to_be_looked_up(rows: ProjectRows) -> None:
    known = reading(rows).kind_of.keys()

    assert unresolved_ends(rows, KINDS) == {end for e in rows.edges for end in (e[1], e[3])} - known


@pytest.mark.promise("graph.once")
def test_stored_kinds_of_ends_are_not_believed() -> None:
    rows = a_project(tasks=[a_task("t")], plans=[a_plan("p")], edges=[an_edge("t", "belongs_to_plan", "p")])
    lying = [(e[0], e[1], "risk", e[3], "project", e[5]) for e in rows.edges]

    assert graph_from(a_copy_with(rows, lying)).edges.keys() == {("has_task", uid("p"), uid("t"))}


@pytest.mark.promise("graph.once")
def test_a_relation_named_like_the_project_makes_nothing_direct() -> None:
    edges = [an_edge("t1", PROJECT_ID, "t2")]

    graph = graph_from(a_project(tasks=[a_task("t1"), a_task("t2")], edges=edges))

    assert graph.direct == frozenset()


@pytest.mark.promise("graph.total")
def test_an_id_in_two_tables_is_one_entity_and_the_projects_own_id_is_the_project() -> None:
    twice, own = a_goal("t"), a_row("risk", PROJECT_ID)
    rows = a_project(tasks=[a_task("t")], goals=[twice], risks=[own], edges=[an_edge("project", "has_task", "t")])

    draft = drafted(rows)

    assert draft.graph.kind_of[uid("t")] == "task"
    assert draft.slices["goal"] == []
    assert draft.slices["risk"] == []
    assert draft.coverage["goals"]["total"] == 0


# ---- coverage


@given(projects())
@pytest.mark.promise("graph.partition", "graph.once")
def test_coverage_is_a_count_by_hand(rows: ProjectRows) -> None:
    read = reading(rows)
    direct, reachable = read.near(PROJECT_ID, 1), read.near(PROJECT_ID, 2)

    coverage = drafted(rows).coverage

    assert coverage.keys() == {kind.plural for kind in KINDS.entities if kind.name not in rows.absent}
    for kind in KINDS.entities:
        ids = {entity for entity, name in read.kind_of.items() if name == kind.name}
        if kind.name not in rows.absent:
            assert coverage[kind.plural] == {
                "total": len(ids),
                "direct": len(ids & direct),
                "unlinked": len(ids - direct),
                "reachable": len(ids & reachable),
                "orphan": sum(1 for entity in ids if not read.neighbours(entity)),
            }


@given(projects())
@pytest.mark.promise("graph.partition")
def test_total_is_direct_and_unlinked_for_every_kind(rows: ProjectRows) -> None:
    for counts in drafted(rows).coverage.values():
        assert counts["total"] == counts["direct"] + counts["unlinked"]
        assert counts["orphan"] <= counts["unlinked"]
        assert counts["direct"] <= counts["reachable"] <= counts["total"]


# ---- the snapshot


def check_caps(draft: Draft) -> None:
    nodes, edges = draft.snapshot.nodes, draft.snapshot.edges
    assert nodes[0] == (PROJECT_ID, "project")
    assert len(nodes) == len(set(nodes)) <= 60
    assert len(edges) == len({edge[0] for edge in edges}) <= 80
    assert all(count <= 10 for kind, count in Counter(kind for _, kind in nodes).items())


def check_connected(draft: Draft) -> None:
    kept = {entity for entity, _ in draft.snapshot.nodes}
    pairs = [(edge[1], edge[3]) for edge in draft.snapshot.edges]
    assert all({src, dst} <= kept for src, dst in pairs)
    assert reached(pairs) == kept


def check_omitted(draft: Draft, read: Reading) -> None:
    kept = {entity for entity, _ in draft.snapshot.nodes}
    left_out = Counter(read.kind_of[entity] for entity in read.near(PROJECT_ID, 2) - kept)
    between = sum(1 for a, _, b in read.said if {a, b} <= kept)
    assert draft.snapshot.omitted == dict(left_out)
    assert ("edges" in draft.snapshot.capped_by) is (between > len(draft.snapshot.edges))
    assert bool(left_out) is bool({"nodes", "kind"} & set(draft.snapshot.capped_by))


def check_nearest_first(draft: Draft, read: Reading) -> None:
    depth = depths(read)
    order = [depth[entity] for entity, _ in draft.snapshot.nodes[1:]]
    assert order == sorted(order)


def check_open_first(draft: Draft, read: Reading) -> None:
    """Within a depth and a kind, nothing finished is kept while something open that could be kept is left out."""
    depth = depths(read)
    kept = {entity for entity, _ in draft.snapshot.nodes}
    inner = {entity for entity in kept if depth.get(entity) == 1}
    for entity in depth.keys() - kept:
        could = depth[entity] == 1 or read.neighbours(entity) & inner
        rivals = {e for e in kept - {PROJECT_ID} if depth[e] == depth[entity] and same_kind(read, e, entity)}
        if could and not is_done(draft, entity):
            assert not any(is_done(draft, rival) for rival in rivals)


def same_kind(read: Reading, a: str, b: str) -> bool:
    return read.kind_of[a] == read.kind_of[b]


def check_best_first(draft: Draft, read: Reading) -> None:
    """Within a depth: score down, then last touched first, then the lower id."""
    depth = depths(read)
    ranks = [(depth[entity], *rank(draft, entity)) for entity, _ in draft.snapshot.nodes[1:]]
    by_id = sorted(ranks, key=lambda r: r[3])
    latest = sorted(by_id, key=lambda r: r[2], reverse=True)
    assert ranks == sorted(latest, key=lambda r: (r[0], -r[1]))


def rank(draft: Draft, entity: str) -> tuple[int, str, str]:
    kind = KINDS.by_name[draft.graph.kind_of[entity]]
    rows = [row for row in draft.rows.entities[kind.name] if row[0] == entity]
    score, touched, _, _ = ranked(kind, rows, draft.buckets)[0]
    return score, touched, entity


@given(projects(most=9))
@pytest.mark.promise("graph.caps", "graph.connected", "graph.schema", "graph.open-first")
def test_the_snapshot_of_any_project(rows: ProjectRows) -> None:
    draft, read = drafted(rows), reading(rows)

    check_caps(draft)
    check_connected(draft)
    check_omitted(draft, read)
    check_nearest_first(draft, read)
    check_open_first(draft, read)
    check_best_first(draft, read)


@big
@pytest.mark.promise("graph.caps", "graph.connected", "graph.schema", "graph.open-first")
def test_the_snapshot_of_a_project_that_meets_every_cap(
    entities: int, edges: int, relations: tuple[str, ...]
) -> None:
    rows = a_big_project(entities, edges, relations=relations)
    draft, read = drafted(rows), reading(rows)

    check_caps(draft)
    check_connected(draft)
    check_omitted(draft, read)
    check_nearest_first(draft, read)
    check_best_first(draft, read)


@pytest.mark.promise("graph.caps")
def test_every_cap_can_be_the_one_that_stops() -> None:
    by_kind = a_project(
        tasks=[a_task(f"t{n}") for n in range(11)],
        edges=[an_edge("project", "has_task", f"t{n}") for n in range(11)],
    )
    tied = [a_task(f"t{n}") for n in range(9)]
    by_edges = a_project(
        tasks=tied,
        edges=[an_edge("project", "has_task", f"t{n}") for n in range(9)]
        + [an_edge(f"t{a}", "blocks", f"t{b}") for a in range(9) for b in range(9) if a != b],
    )

    assert drafted(by_kind).snapshot.capped_by == ("kind",)
    assert drafted(by_edges).snapshot.capped_by == ("edges",)
    assert drafted(a_big_project(600, 3000, relations=("contains",))).snapshot.capped_by == ("edges", "nodes")
    assert drafted(a_project(tasks=tied)).snapshot.capped_by == ()


@pytest.mark.promise("graph.connected", "graph.caps")
def test_who_is_known_only_through_someone_left_out_is_left_out_too() -> None:
    rows = a_project(
        tasks=[a_task(f"t{n}", priority=1) for n in range(10)] + [a_task("least", priority=5)],
        goals=[a_goal("beyond")],
        edges=[an_edge("project", "has_task", f"t{n}") for n in range(10)]
        + [an_edge("project", "has_task", "least"), an_edge("least", "supports_goal", "beyond")],
    )

    found = drafted(rows).snapshot

    assert {uid("least"), uid("beyond")}.isdisjoint(entity for entity, _ in found.nodes)
    assert found.omitted == {"task": 1, "goal": 1}
    assert found.capped_by == ("kind",)


@given(projects())
@pytest.mark.promise("graph.connected")
def test_the_first_edges_are_those_by_which_the_nodes_were_reached(rows: ProjectRows) -> None:
    draft = drafted(rows)
    position = {entity: place for place, (entity, _) in enumerate(draft.snapshot.nodes)}

    tree = draft.snapshot.edges[: len(position) - 1]

    read = reading(rows)
    for place, edge in enumerate(tree, 1):
        ends = sorted((position[edge[1]], position[edge[3]]))
        entity = draft.snapshot.nodes[place][0]
        assert ends == [min(position[i] for i in read.neighbours(entity) if i in position), place]


@given(projects())
@pytest.mark.promise("build.unlinked")
def test_without_an_edge_to_the_project_the_snapshot_is_the_root_alone(rows: ProjectRows) -> None:
    alone = a_copy_with(rows, [e for e in rows.edges if PROJECT_ID not in (e[1], e[3])])

    draft = drafted(alone)

    assert draft.snapshot.nodes == ((PROJECT_ID, "project"),)
    assert draft.snapshot.edges == ()
    assert all(counts["direct"] == 0 for counts in draft.coverage.values())


@given(projects(), st.integers(0, 99))
@pytest.mark.promise("build.deterministic")
def test_the_order_of_rows_changes_nothing(rows: ProjectRows, seed: int) -> None:
    one, other = drafted(rows), drafted(shuffled(rows, seed))

    assert one.snapshot == other.snapshot
    assert one.coverage == other.coverage
    assert one.slices == other.slices
    assert one.named == other.named


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from("ab"), st.integers(0, 9**9).map(str), st.just("task")),
        min_size=20,
        max_size=60,
    ),
    st.integers(0, 6),
)
@pytest.mark.promise("build.deterministic")
def test_the_best_are_those_of_a_whole_sort(entities: list[tuple[int, str, str, str]], limit: int) -> None:
    by_id = sorted(entities, key=lambda e: e[2])
    by_rank = sorted(sorted(by_id, key=lambda e: e[1], reverse=True), key=lambda e: -e[0])

    assert best(entities, limit) == by_rank[:limit]


@pytest.mark.promise("graph.total", "graph.caps")
def test_a_hundred_thousand_entities_in_cycles_build() -> None:
    tasks = [a_row("task", f"{n:08}", state_key="todo") for n in range(100_000)]
    chain = [(f"e{n:08}", f"{n:08}", "", f"{(n + 1) % 60_000:08}", "", "depends_on") for n in range(99_000)]
    roots = [(f"r{n:08}", PROJECT_ID, "", f"{n * 90:08}", "", "has_task") for n in range(1000)]

    draft = drafted(a_project(tasks=tasks, edges=chain + roots))

    check_caps(draft)
    check_connected(draft)
    assert draft.coverage["tasks"]["total"] == 100_000
    assert len(draft.buckets.blocked) == 99_000


@pytest.mark.promise("graph.schema")
def test_kinds_of_nodes_are_those_of_their_tables() -> None:
    rows = a_project(tasks=[a_task("t")], edges=[an_edge("t", "inspired_by", "project")])

    nodes: Mapping[str, str] = dict(drafted(rows).snapshot.nodes)

    assert nodes == {PROJECT_ID: "project", uid("t"): "task"}

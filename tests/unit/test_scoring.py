"""How much entities matter."""

from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import (
    PROBABILITIES,
    a_document,
    a_goal,
    a_project,
    a_risk,
    a_row,
    a_task,
    an_edge,
    drafted,
    hostile_cells,
    projects,
    uid,
)

from foreword.buckets import Buckets
from foreword.kinds import KINDS, Kind
from foreword.rows import ProjectRows, Row
from foreword.scoring import UNLINKED, best_by_link, ranked, slice_of
from foreword.selection import general_order

kinds = st.sampled_from(KINDS.entities)


def scores(rows: ProjectRows) -> dict[str, int]:
    """The score of every entity of a project."""
    found = drafted(rows).buckets
    every = [rank for kind in KINDS.entities for rank in ranked(kind, rows.entities.get(kind.name, ()), found)]
    return {entity: score for score, _, entity, _ in every}


def score_of(row: Row, kind: str = "task") -> int:
    """The score of one entity alone in its project."""
    (score,) = scores(replace(a_project(), entities={kind: [row]})).values()
    return score


def state_of(kind: Kind, row: Row) -> str | None:
    return row[kind.at["state_key"]] if "state_key" in kind.at else None


@given(projects())
@settings(max_examples=200)
@pytest.mark.promise("graph.open-first", "graph.total")
def test_open_entities_score_20_or_more_and_finished_ones_less_than_10(rows: ProjectRows) -> None:
    found = scores(rows)

    for kind in KINDS.entities:
        for row in rows.entities.get(kind.name, ()):
            if kind.is_finished(state_of(kind, row)):
                assert 0 <= found[row[0]] < 10
            else:
                assert 20 <= found[row[0]] <= 400


@given(kinds, st.integers(0, 10**6))
@pytest.mark.promise("build.deterministic")
def test_points_follow_from_the_row_alone(kind: Kind, seed: int) -> None:
    row = ("x", *hostile_cells(kind, Random(seed)))
    nothing = drafted(a_project()).buckets

    alone = ranked(kind, [row], nothing)
    among = ranked(kind, [("y", *hostile_cells(kind, Random(seed + 1))), row], nothing)

    assert among[1:] == alone


@pytest.mark.promise("graph.open-first")
def test_what_presses_scores_up() -> None:
    todo = score_of(a_task(state_key="todo"))

    assert score_of(a_task(state_key="blocked")) > score_of(a_task(state_key="in_progress")) > todo
    assert score_of(a_task(due_at="2026-11-20 00:00:00+00")) > score_of(a_task(due_at="2026-11-21 00:00:00+00"))
    assert score_of(a_task(due_at="2026-11-21 00:00:00+00")) > score_of(a_task(due_at="2026-11-22 00:00:00+00"))
    assert score_of(a_task(due_at="2026-11-22 00:00:00+00")) > todo
    assert score_of(a_task(priority=1)) > score_of(a_task(priority=2)) > score_of(a_task(priority=5)) == todo
    assert score_of(a_goal(), "goal") > score_of(a_goal(state_key="draft"), "goal")


@pytest.mark.parametrize(("odd", "sane"), [(0, 1), (-(2**31), 1), (2**31 - 1, 5), (6, 5)])
@pytest.mark.promise("graph.open-first")
def test_a_priority_beyond_the_scale_counts_as_its_end(odd: int, sane: int) -> None:
    assert score_of(a_task(priority=odd)) == score_of(a_task(priority=sane))


@pytest.mark.parametrize("impact", ["low", "medium", "high", "critical"])
@pytest.mark.parametrize("probability", PROBABILITIES)
@pytest.mark.promise("graph.total")
def test_any_probability_counts_between_none_and_one(probability: str | None, impact: str) -> None:
    least, score, most = (score_of(a_risk(impact=impact, probability=p), "risk") for p in ("0", probability, "1"))

    assert least <= score <= most


@pytest.mark.promise("graph.open-first")
def test_an_unknown_probability_counts_as_a_half() -> None:
    half, unknown, nan = (score_of(a_risk(impact="high", probability=p), "risk") for p in ("0.5", None, "NaN"))

    assert half == unknown == nan


@given(projects(most=9))
@pytest.mark.promise("graph.open-first")
def test_a_slice_shows_open_before_finished_and_direct_before_unlinked_of_equal_score(rows: ProjectRows) -> None:
    draft = drafted(rows)
    found = scores(rows)

    for kind in KINDS.entities:
        order = draft.slices[kind.name]
        finished = [found[entity] < 10 for entity in order]
        assert finished == sorted(finished)
        assert len(order) == len(set(order)) == min(len(rows.entities.get(kind.name, ())), kind.shown)
        for before, after in pairwise(order):
            if found[before] == found[after] >= 20 and not kind.always:
                assert before in draft.graph.direct or after not in draft.graph.direct


@given(projects(most=9), st.integers(1, 5))
@settings(max_examples=200)
@pytest.mark.promise("graph.open-first", "build.deterministic")
def test_a_slice_is_the_beginning_of_a_whole_sort_after_the_deduction(rows: ProjectRows, shown: int) -> None:
    draft = drafted(rows)

    for kind in KINDS.entities:
        entities = ranked(kind, rows.entities.get(kind.name, ()), draft.buckets)
        deducted = [
            (score - UNLINKED if score >= 20 and not kind.always and i not in draft.graph.direct else score, at, i)
            for score, at, i, _ in entities
        ]
        by_rank = sorted(sorted(sorted(deducted, key=itemgetter(2)), key=itemgetter(1), reverse=True), key=points)
        linked, others = best_by_link(entities, draft.graph.direct, shown)
        assert slice_of(kind, linked, others, shown) == [i for _, _, i in by_rank[:shown]]


def points(entity: tuple[int, str, str]) -> int:
    return -entity[0]


@pytest.mark.promise("build.unlinked")
def test_a_blocked_task_is_worth_a_line_however_badly_it_is_linked() -> None:
    plain = [a_task(f"t{n}") for n in range(30)]
    rows = a_project(
        tasks=[*plain, a_task("stuck", state_key="blocked")],
        edges=[an_edge("project", "has_task", f"t{n}") for n in range(30)],
    )

    assert uid("stuck") in drafted(rows).slices["task"]


@pytest.mark.promise("build.unlinked")
def test_what_is_always_included_need_not_be_linked() -> None:
    linked = [a_document(f"d{n}", state_key="draft") for n in range(10)]
    rows = a_project(
        documents=[*linked, a_document("under review", state_key="in_review")],
        edges=[an_edge("project", "has_document", f"d{n}") for n in range(10)],
    )

    assert drafted(rows).slices["document"][0] == uid("under review")


@pytest.mark.promise("build.kind")
def test_a_kind_can_be_counted_without_being_shown() -> None:
    quiet = [replace(kind, shown=0) if kind.name == "signal" else kind for kind in KINDS.entities]
    registry = type(KINDS).of(KINDS.project, *quiet)
    rows = a_project(kinds=registry, signals=[a_row("signal", uid(f"s{n}")) for n in range(9)])

    draft = drafted(rows, kinds=registry)

    assert draft.slices["signal"] == []
    assert draft.coverage["signals"]["total"] == 9


@given(projects())
@pytest.mark.promise("graph.open-first", "build.deterministic")
def test_lines_are_admitted_once_each_the_best_first_and_open_before_finished(
    rows: ProjectRows,
) -> None:
    draft = drafted(rows)

    order = general_order(draft.slices, draft.scores)

    assert sorted(order) == sorted(entity for group in draft.slices.values() for entity in group)
    assert all(draft.scores[group[0]] <= draft.scores[order[0]] for group in draft.slices.values() if group)
    for group in draft.slices.values():
        finished = [draft.scores[entity] < 10 for entity in order if entity in group]
        assert finished == sorted(finished)


@pytest.mark.promise("lines.monotone")
def test_kinds_take_turns_when_lines_are_admitted() -> None:
    slices = {"task": ["t1", "t2", "t3"], "goal": ["g1", "g2"], "risk": []}
    scores = {"t1": 100, "t2": 99, "t3": 98, "g1": 97, "g2": 20}

    assert general_order(slices, scores) == ["t1", "g1", "t2", "t3", "g2"]


@pytest.mark.promise("build.buckets")
def test_buckets_are_reached_by_name() -> None:
    found: Buckets = drafted(a_project(tasks=[a_task("t")])).buckets

    assert found.of("open") == {uid("t")}

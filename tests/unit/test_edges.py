"""What relations mean, and which spellings are one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import RELATIONS, a_goal, a_milestone, a_plan, a_project, a_task, an_edge, reading

from foreword.edges import canonical, waits

KINDS = ("project", "task", "goal", "plan", "milestone")


@pytest.mark.parametrize(
    ("said", "again"),
    [
        (("belongs_to_plan", "task", "plan"), ("has_task", "plan", "task")),
        (("depends_on", "task", "task"), ("blocks", "task", "task")),
        (("blocked_by", "task", "task"), ("blocks", "task", "task")),
        (("achieved_by", "goal", "task"), ("supports_goal", "task", "goal")),
        (("achieved_by", "goal", "goal"), ("supports_goal", "goal", "goal")),
        (("supports_goal", "goal", "plan"), ("supports_goal", "plan", "goal")),
        (("has_goal", "goal", "project"), ("has_goal", "project", "goal")),
        (("targets_milestone", "milestone", "task"), ("targets_milestone", "task", "milestone")),
        (("relates_to", "task", "goal"), ("relates_to", "goal", "task")),
    ],
)
@pytest.mark.promise("graph.once")
def test_a_relation_told_the_other_way_round_is_the_same(
    said: tuple[str, str, str], again: tuple[str, str, str]
) -> None:
    assert canonical(said[0], "a", said[1], "b", said[2]) == canonical(again[0], "b", again[1], "a", again[2])


@pytest.mark.promise("graph.once")
def test_supports_is_supports_goal() -> None:
    assert canonical("supports", "a", "task", "b", "goal") == ("supports_goal", "a", "b")


@pytest.mark.promise("graph.once")
def test_an_unknown_relation_keeps_its_name_and_direction() -> None:
    assert canonical("inspired_by", "b", "task", "a", "goal") == ("inspired_by", "b", "a")


@pytest.mark.promise("graph.once")
def test_two_tasks_that_block_each_other_are_two_relations() -> None:
    assert canonical("blocks", "a", "task", "b", "task") != canonical("blocks", "b", "task", "a", "task")


@given(st.sampled_from([*RELATIONS, "", "has_"]), st.sampled_from(KINDS), st.sampled_from(KINDS))
@pytest.mark.promise("graph.once")
def test_reading_what_was_read_changes_nothing(rel: str, src_kind: str, dst_kind: str) -> None:
    kind_of = {"a": src_kind, "b": dst_kind}

    name, src, dst = canonical(rel, "a", src_kind, "b", dst_kind)

    assert canonical(name, src, kind_of[src], dst, kind_of[dst]) == (name, src, dst)
    assert {src, dst} == {"a", "b"}


@pytest.mark.promise("build.buckets")
def test_who_waits_for_whom() -> None:
    found = waits([("blocks", "first", "second"), ("requires", "third", "first"), ("references", "a", "b")])

    assert found == [("second", "first"), ("third", "first")]


@pytest.mark.promise("graph.once")
def test_every_spelling_of_the_specification_means_what_it_says() -> None:
    rows = a_project(
        tasks=[a_task("t1"), a_task("t2")],
        goals=[a_goal("g")],
        plans=[a_plan("p")],
        milestones=[a_milestone("m")],
        edges=[
            an_edge("t1", "belongs_to_plan", "p"),
            an_edge("p", "has_task", "t1"),
            an_edge("t1", "depends_on", "t2"),
            an_edge("t1", "blocked_by", "t2"),
            an_edge("t2", "blocks", "t1"),
            an_edge("t1", "supports", "g"),
            an_edge("g", "achieved_by", "t1"),
            an_edge("t1", "targets_milestone", "m"),
        ],
    )
    kind_of = reading(rows).kind_of

    found = {canonical(rel, src, kind_of[src], dst, kind_of[dst]) for _, src, _, dst, _, rel in rows.edges}

    assert {rel for rel, _, _ in found} == {"has_task", "blocks", "supports_goal", "targets_milestone"}
    assert len(found) == 4

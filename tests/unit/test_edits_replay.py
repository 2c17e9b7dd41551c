"""The stream of edits that bundles are measured over: valid rows, the same for the same seed, most on few."""

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from strategies import TODAY, a_big_project, a_hostile_project, projects

from benchmarks.recall.edits import HOT, WARM, hot_set, prefix_tokens, replay
from foreword.kinds import KINDS
from foreword.rows import ProjectRows, Row, misfits

seeds = st.integers(0, 2**32)


def versions(rows: ProjectRows, *, edits: int, seed: int) -> list[ProjectRows]:
    return [rows, *(new for _, new in replay(rows, kinds=KINDS, as_of=TODAY, edits=edits, seed=seed))]


def by_id(rows: ProjectRows) -> dict[str, tuple[str, Row]]:
    return {row[0]: (kind, row) for kind, table in rows.entities.items() for row in table}


def touched(old: ProjectRows, new: ProjectRows) -> set[str]:
    """The entities there were whose row is another, or gone."""
    was, now = by_id(old), by_id(new)
    return {entity for entity in was if now.get(entity) != was[entity]}


@given(projects(), seeds)
def test_every_version_has_valid_light_rows(rows: ProjectRows, seed: int) -> None:
    for new in versions(rows, edits=25, seed=seed)[1:]:
        assert not misfits(new, KINDS)
        assert new.entities.keys() == rows.entities.keys()
        assert len(by_id(new)) == sum(map(len, new.entities.values()))
        assert (new.project_id, new.elsewhere, new.absent) == (rows.project_id, rows.elsewhere, rows.absent)
        for kind in KINDS.entities:
            for row in new.entities.get(kind.name, ()):
                assert isinstance(row, tuple)
                assert len(row) == 1 + len(kind.light)
                assert all(len(row[kind.at[f.name]] or "") <= f.cut + 1 for f in kind.light if f.cut)


@given(projects(), seeds)
def test_an_edit_changes_one_thing(rows: ProjectRows, seed: int) -> None:
    for old, new in pairwise(versions(rows, edits=25, seed=seed)):
        was, now = by_id(old), by_id(new)
        rows_changed = len({*was.items()} ^ {*now.items()})
        assert (was, old.edges, old.project) != (now, new.edges, new.project)
        assert rows_changed <= 2
        assert len(touched(old, new) | (now.keys() - was.keys())) <= 1


@given(projects(), seeds)
def test_the_same_seed_gives_the_same_edits(rows: ProjectRows, seed: int) -> None:
    first, second = (list(replay(rows, kinds=KINDS, as_of=TODAY, edits=12, seed=seed)) for _ in range(2))

    assert first == second


def test_the_rows_given_are_left_as_they_were() -> None:
    rows, same = a_hostile_project(3), a_hostile_project(3)

    versions(rows, edits=40, seed=1)

    assert rows == same


def test_four_in_five_edits_fall_on_one_in_five_entities() -> None:
    rows = a_big_project(1100, 1500)
    hot = hot_set(rows, kinds=KINDS, seed=5)
    edited = [
        entity
        for old, new in pairwise(versions(rows, edits=600, seed=5))
        for entity in touched(old, new) & {*by_id(rows)}
    ]

    assert len(hot) == 1100 * HOT
    assert len(edited) > 300
    assert abs(sum(entity in hot for entity in edited) / len(edited) - WARM) < 0.06


def test_the_hot_set_is_mostly_open_work() -> None:
    rows = a_big_project(1100, 0)
    found = by_id(rows)
    kinds = Counter(found[entity][0] for entity in hot_set(rows, kinds=KINDS, seed=1))

    assert kinds["task"] > kinds["goal"] > kinds["signal"]


def test_edited_rows_were_touched_on_the_day_and_in_order() -> None:
    at = KINDS.by_name["task"].at["updated_at"]
    rows = a_big_project(400, 400)
    times = [
        by_id(new)[entity][1][at]
        for old, new in pairwise(versions(rows, edits=200, seed=2))
        for entity in touched(old, new) & by_id(new).keys()
        if by_id(new)[entity][0] == "task"
    ]

    assert len(times) > 20
    assert times == sorted(times)
    assert {each[:10] for each in times} == {TODAY.isoformat()}


def test_every_kind_of_edit_happens() -> None:
    words = Counter(w for w, _ in replay(a_big_project(400, 900), kinds=KINDS, as_of=TODAY, edits=800, seed=9))

    assert {
        *("task state", "task due date", "task priority", "task renamed", "task deleted", "output state"),
        *("edge moved", "edge added", "edge removed", "new task", "new signal", "new decision", "new risk"),
        *("goal state", "plan state", "decision renamed", "next step"),
    } <= words.keys()


def test_what_is_done_has_a_day_on_which_it_was_done() -> None:
    task = KINDS.by_name["task"]
    for old, new in pairwise(versions(a_big_project(400, 0), edits=400, seed=4)):
        for entity in touched(old, new) & by_id(new).keys():
            (kind, was), (_, now) = by_id(old)[entity], by_id(new)[entity]
            if kind == "task" and was[task.at["state_key"]] != now[task.at["state_key"]]:
                done = now[task.at["completed_at"]]
                assert (done == now[task.at["updated_at"]]) is (now[task.at["state_key"]] == "done")
                assert (done is None) is (now[task.at["state_key"]] != "done")


def test_the_share_of_a_text_that_stays_is_counted_to_the_first_difference() -> None:
    text = "# project\nT1 one\nT2 two\n"

    assert prefix_tokens(text, text) == 1
    assert prefix_tokens("", text) == 0
    assert prefix_tokens(text, "") == 1
    assert prefix_tokens("x" + text, text) == 0
    assert 0.5 < prefix_tokens(text, "# project\nT1 one\nT2 three\n") < 1
    assert prefix_tokens(text, text, count=lambda _: 0) == 1


@given(st.text(), st.text(), st.text())
def test_a_share_is_a_share(head: str, one: str, other: str) -> None:
    assert 0 <= prefix_tokens(head + one, head + other) <= 1

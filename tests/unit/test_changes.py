"""Differences between bundles: what they say, and that folding them is the difference of the ends."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.changes import Difference, difference, facts_of, fold

fields = st.dictionaries(st.sampled_from(["title", "state_key", "due_at"]), st.sampled_from(["a", "b", 3, [1]]))
facts = st.dictionaries(
    st.sampled_from("TUVW"), fields.map(lambda found: {"handle": "T1", "kind": "tasks", **found}), max_size=4
)


def without_fate(found: Difference) -> Any:
    """Whether what has gone is deleted is not in the bundles."""
    gone = {entity: {k: v for k, v in was.items() if k != "deleted"} for entity, was in found.gone.items()}
    return found.added, gone, found.changed


@given(st.lists(facts, min_size=2, max_size=6))
@pytest.mark.promise("fresh.changes")
def test_folding_differences_gives_the_difference_of_the_ends(bundles: list[dict[str, dict[str, Any]]]) -> None:
    steps = [difference(old, new) for old, new in pairwise(bundles)]

    assert without_fate(fold(steps)) == without_fate(difference(bundles[0], bundles[-1]))


@given(facts)
@pytest.mark.promise("fresh.changes")
def test_of_what_is_the_same_nothing_changed(same: dict[str, dict[str, Any]]) -> None:
    assert not difference(same, same)
    assert not fold([])


def test_a_difference_says_what_came_what_went_and_what_changed_from_what_to_what() -> None:
    old = {
        "a": {"handle": "T1", "kind": "tasks", "title": "one", "state_key": "todo"},
        "b": {"handle": "T2", "kind": "tasks", "title": "two"},
        "c": {"handle": "T3", "kind": "tasks", "title": "three"},
    }
    new = {
        "a": {"handle": "T1", "kind": "tasks", "title": "one", "state_key": "done", "due_at": "2026-11-22"},
        "d": {"handle": "T4", "kind": "tasks", "title": "four"},
    }

    found = difference(old, new, exists=lambda entity: entity == "b")

    assert found.added == {"d": new["d"]}
    assert found.gone == {"b": {**old["b"], "deleted": False}, "c": {**old["c"], "deleted": True}}
    assert found.changed == {
        "a": {
            "handle": "T1",
            "kind": "tasks",
            "fields": {"due_at": [None, "2026-11-22"], "state_key": ["todo", "done"]},
        }
    }


def test_the_facts_of_a_bundle_are_its_header_and_its_slices() -> None:
    data = {
        "project_id": "p",
        "handles": {"p": "PRJ1", "t": "T1"},
        "header": {"id": "p", "name": "Pier", "entity_counts": {"tasks": 7}},
        "slices": {"tasks": [{"handle": "T1", "id": "t", "title": "nail"}], "goals": []},
    }

    assert facts_of(data) == {
        "p": {"handle": "PRJ1", "kind": "project", "name": "Pier", "count of tasks": 7},
        "t": {"handle": "T1", "kind": "tasks", "title": "nail"},
    }

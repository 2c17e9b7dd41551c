from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import a_goal, a_hostile_project, a_plan, a_project, a_row, a_task, an_edge, drafted, projects, uid

from foreword import tokens
from foreword.errors import UnknownEntity
from foreword.focus import FocusContent, FocusDraft, render_focus, select_focus
from foreword.handles import handle
from foreword.lines import fit, is_line
from foreword.rows import ProjectRows


def focused(rows: ProjectRows, entity: str, *, with_graph: bool = False) -> FocusContent:
    draft = select_focus(drafted(rows), entity)
    return render_focus(draft, handles_of(draft), tokens.count, with_graph=with_graph)


def handles_of(draft: FocusDraft) -> dict[str, str]:
    letters = {kind.name: kind.handle for kind in draft.base.kinds.all}
    return {entity: handle(letters[kind], number) for number, (kind, entity) in enumerate(draft.named, 1)}


def shown(content: FocusContent) -> list[tuple[Any, ...]]:
    return [(each["rel"], each["direction"], each["id"]) for each in content.data["relationships"]["shown"]]


def test_relationships_say_which_way_they_point() -> None:
    rows = a_project(
        tasks=[a_task("t"), a_task("u")],
        plans=[a_plan("p")],
        goals=[a_goal("g")],
        edges=[an_edge("t", "depends_on", "u"), an_edge("p", "has_task", "t"), an_edge("t", "supports_goal", "g")],
    )

    content = focused(rows, uid("t"))

    assert shown(content) == [
        ("blocks", "in", uid("u")),
        ("has_task", "in", uid("p")),
        ("supports_goal", "out", uid("g")),
    ]


def test_two_tasks_that_wait_for_each_other_are_related_both_ways() -> None:
    rows = a_project(
        tasks=[a_task("t"), a_task("u")], edges=[an_edge("t", "blocks", "u"), an_edge("u", "blocks", "t")]
    )

    content = focused(rows, uid("t"))

    assert shown(content) == [("blocks", "in", uid("u")), ("blocks", "out", uid("u"))]


def test_relationships_and_linked_entities_are_capped_and_counted() -> None:
    many = [f"u{n}" for n in range(100)]
    rows = a_project(
        tasks=[a_task("t"), *map(a_task, many)], edges=[an_edge("t", "references", each) for each in many]
    )

    content = focused(rows, uid("t"))

    assert len(content.data["relationships"]["shown"]) == 12
    assert content.data["relationships"]["by_relation"] == {"references": 100}
    assert len(content.data["linked"]["entities"]) == 30
    assert content.data["linked"]["total"] == 100


def test_no_relation_is_hidden_by_another() -> None:
    many = [f"u{n}" for n in range(80)]
    edges = [an_edge("t", "addresses", each) for each in many[:70]]
    edges += [an_edge("t", "supports_goal", each) for each in many[70:]]
    rows = a_project(tasks=[a_task("t"), *map(a_task, many[:70])], goals=list(map(a_goal, many[70:])), edges=edges)

    content = focused(rows, uid("t"))
    text = fit(content.lines, content.always, 1500).text

    assert "## relations: 80\n" in text
    assert 'relation "addresses" to 70: ' in text
    assert 'relation "supports_goal" to 10: ' in text


def test_the_snapshot_comes_only_when_asked_for() -> None:
    rows = a_project(tasks=[a_task("t")])

    without, with_it = focused(rows, uid("t")), focused(rows, uid("t"), with_graph=True)

    assert "graph" not in without.data
    assert with_it.data["graph"]["root_kind"] == "project"


@pytest.mark.parametrize("entity", [uid("nobody"), uid("project"), "no id at all"])
def test_what_is_no_live_entity_has_no_focus(entity: str) -> None:
    rows = a_project(tasks=[a_task("t")])

    with pytest.raises(UnknownEntity):
        focused(rows, rows.project_id if entity == uid("project") else entity)


@pytest.mark.promise("lines.budget", "lines.additive")
@given(rows=projects(), budget=st.integers(250, 3000))
def test_a_focus_text_is_lines_within_its_budget(rows: ProjectRows, budget: int) -> None:
    entities = [row[0] for table in rows.entities.values() for row in table if row[0] != rows.project_id]

    for entity in entities[:3]:
        content = focused(rows, entity)
        fitted = fit(content.lines, content.always, budget)

        assert fitted.tokens <= budget
        assert tokens.count(fitted.text) == fitted.tokens
        assert all(map(is_line, fitted.text.splitlines(keepends=True)))


@pytest.mark.promise("lines.budget")
def test_no_detail_of_an_entity_makes_its_focus_too_long() -> None:
    costly = "\U00012000" * 200  # a cuneiform sign is four tokens
    decision = a_row("decision", uid("d"), title=costly, outcome=costly, state_key=costly)
    rows = a_project(decisions=[decision], project={"name": costly})

    content = focused(rows, uid("d"))

    assert fit(content.lines, content.always, 250).tokens <= 250


@pytest.mark.promise("lines.budget")
@pytest.mark.parametrize("seed", range(4))
def test_hostile_texts_in_the_header_of_a_focus_fit_the_smallest_budget(seed: int) -> None:
    rows = a_hostile_project(seed)

    for table in rows.entities.values():
        content = focused(rows, table[0][0])

        assert fit(content.lines, content.always, 250).tokens <= 250

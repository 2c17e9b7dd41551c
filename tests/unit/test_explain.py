"""An explanation is the bundle's own: replayed it is the text, and its reasons add up."""

from random import Random

import pytest
from strategies import (
    TODAY,
    a_big_project,
    a_goal,
    a_hostile_project,
    a_milestone,
    a_project,
    a_row,
    a_task,
    an_edge,
    drafted,
    handles_of,
    rendered,
    uid,
)

from foreword.answers import answered
from foreword.bundle import lights_of
from foreword.errors import BadBudget
from foreword.explain import BUDGET, Explanation, as_json, explain, replay
from foreword.lines import fit
from foreword.page import page
from foreword.rows import ProjectRows
from foreword.tokens import count

BUDGETS = (250, 400, 800, 1500, 3000)


def explained(rows: ProjectRows, budget: int = 1500) -> Explanation:
    draft = drafted(rows)
    handles = handles_of(draft)
    return explain(draft, page(draft, lights_of(draft), handles, count), handles, budget)


PROJECTS = [a_hostile_project(seed) for seed in range(4)] + [a_big_project(300, 400)]


@pytest.mark.promise("explain.replay")
@pytest.mark.parametrize("rows", PROJECTS)
def test_a_replayed_explanation_is_the_text(rows: ProjectRows) -> None:
    content = rendered(rows)
    for budget in BUDGETS:
        explanation = explained(rows, budget)
        assert replay(explanation) == fit(content.lines, content.always, budget).text


@pytest.mark.promise("explain.replay")
@pytest.mark.parametrize("rows", PROJECTS)
def test_costs_scores_and_facts_add_up(rows: ProjectRows) -> None:
    explanation = explained(rows)
    answers = {each["question"]: each["at"] for each in rendered(rows).data["answers"]}
    for budget in BUDGETS:
        shown = [why for why in explanation.steps if why.total <= budget]
        assert sum(why.cost for why in shown) == count(replay(explanation, budget))
        for question in explanation.questions:
            gained = sum(why.facts.get(question.id, 0) for why in shown)
            assert gained == sum(at <= budget for at in answers[question.id])
    for why in explanation.steps:
        if why.entity is not None:
            assert sum(why.terms.values()) == why.score


@pytest.mark.promise("explain.left_out")
@pytest.mark.parametrize("rows", PROJECTS)
def test_every_entity_is_in_the_text_or_left_out_for_a_reason(rows: ProjectRows) -> None:
    everything = {row[0] for table in rows.entities.values() for row in table}
    for budget in BUDGETS:
        explanation = explained(rows, budget)
        shown = {why.entity for why in explanation.steps if why.entity and why.total <= budget}
        left = [each.entity for each in explanation.left_out]
        assert len(left) == len(set(left))
        assert shown | set(left) == everything
        assert not shown & set(left)
        assert all(each.reason and each.detail for each in explanation.left_out)


@pytest.mark.promise("explain.left_out")
def test_what_a_larger_budget_shows_says_from_where_on() -> None:
    explanation = explained(a_big_project(300, 400), 300)
    [left, *_] = [each for each in explanation.left_out if each.reason == BUDGET]
    [why, *_] = [why for why in explanation.steps if why.entity == left.entity]
    assert f"from {why.total} tokens on" in left.detail
    assert why.text in replay(explanation, why.total)
    assert why.text not in replay(explanation, why.total - 1)


@pytest.mark.promise("explain.left_out")
def test_reasons_tell_a_finished_one_from_one_that_nothing_links() -> None:
    many = [a_task(f"open{n}", state_key="in_progress", due_at="2026-01-01 00:00:00+00") for n in range(300)]
    done, adrift = a_task("done", state_key="done"), a_task("adrift", state_key="someday")
    rows = a_project(tasks=[*many, done, adrift], edges=[an_edge("project", "has_task", "done")])
    reasons = {each.entity: each.reason for each in explained(rows).left_out}
    assert reasons[uid("done")] == "finished"
    assert reasons[uid("adrift")] == "orphan"


@pytest.mark.promise("explain.replay")
def test_a_line_says_which_question_it_answers() -> None:
    late = a_task("late", state_key="todo", due_at="2026-11-01 00:00:00+00")
    explanation = explained(a_project(tasks=[late]))
    [first, *_] = [why for why in explanation.steps if why.entity == uid("late")]
    assert first.rule == "answers"
    assert first.facts["Q2"] == 1
    assert first.terms == {"state_key todo": 40, "overdue": 40}


@pytest.mark.promise("explain.replay")
def test_it_is_json() -> None:
    import orjson

    found = orjson.loads(orjson.dumps(as_json(explained(a_hostile_project(9)))))
    assert {"steps", "questions", "left_out", "always", "budget"} <= found.keys()
    assert found["left_out_total"] == len(found["left_out"])


def test_a_budget_too_small_is_refused() -> None:
    with pytest.raises(BadBudget, match="250"):
        explained(a_project(), 249)


@pytest.mark.promise("recall.answered")
def test_what_a_bundle_answers_can_be_read_from_it() -> None:
    rows = a_project(
        tasks=[a_task(f"t{n}", state_key="todo", due_at="2026-11-01 00:00:00+00") for n in range(400)],
        goals=[a_goal("g", state_key="active")],
    )
    data = rendered(rows).data
    overdue = next(each for each in answered(data, 3000) if each.question == "Q2")
    assert overdue.asks == "What is overdue?"
    assert overdue.facts == 401  # each task with its date, and how many there are
    assert 0 < overdue.present < 401
    assert overdue.missing == 401 - overdue.present
    idle = next(each for each in answered(data, 1500) if each.question == "Q4")
    assert (idle.present, idle.missing) == (2, 0)
    present = [sum(each.present for each in answered(data, budget)) for budget in range(250, 3001, 50)]
    assert present == sorted(present)


def test_a_bundle_of_another_layout_answers_nothing() -> None:
    assert answered({}, 1500) == []


def test_milestones_and_unknown_states_are_explained_as_they_are() -> None:
    rows = a_project(milestones=[a_milestone("m", state_key="dreamt of", due_at=f"{TODAY} 00:00:00+00")])
    [why] = [why for why in explained(rows).steps if why.entity == uid("m") and why.facts]
    assert why.facts == {"Q8": 1}
    assert "today" in why.terms


def test_order_does_not_depend_on_chance() -> None:
    rows = a_hostile_project(3)
    mixed = {kind: Random(1).sample(list(table), len(table)) for kind, table in rows.entities.items()}
    from dataclasses import replace

    assert as_json(explained(replace(rows, entities=mixed))) == as_json(explained(rows))


def test_a_row_of_a_requirement_has_a_score_of_its_priority() -> None:
    rows = a_project(requirements=[a_row("requirement", uid("q"), text="Light", priority=1)])
    [why, *_] = [why for why in explained(rows).steps if why.entity == uid("q")]
    assert why.terms == {"any other": 25, "priority 1": 20}

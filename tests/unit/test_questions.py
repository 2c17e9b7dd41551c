"""The catalogue of questions: which facts answer each, and from which total a text holds them."""

from dataclasses import replace
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parsed import keys_of
from rules import Fact, by_the_catalogue
from strategies import (
    PROJECT_ID,
    UTC,
    ZONES,
    a_big_project,
    a_goal,
    a_hostile_project,
    a_milestone,
    a_plan,
    a_project,
    a_risk,
    a_row,
    a_task,
    an_edge,
    drafted,
    handles_of,
    projects,
    rendered,
    shuffled,
    uid,
)

from foreword.bundle import lights_of
from foreword.kinds import KINDS, Registry
from foreword.lines import LARGEST_BUDGET, SMALLEST_BUDGET, fit
from foreword.page import page
from foreword.questions import ALL_CANDIDATES, Asked, candidates, exposure, thresholds
from foreword.rows import ProjectRows
from foreword.tokens import count


def questions_of(rows: ProjectRows, zone: ZoneInfo = UTC) -> dict[str, Asked]:
    """The catalogue as it is answered for a project, by name."""
    draft = drafted(rows, zone=zone)
    return {each.name: each for each in page(draft, lights_of(draft), handles_of(draft), count).questions}


def facts_of(rows: ProjectRows, name: str) -> set[Fact]:
    """The facts that a question requires; there are no ties."""
    asked = questions_of(rows)[name]
    assert (asked.places, list(asked.tied)) == (0, [])
    assert asked.size == len(asked.required) == len(set(asked.required))
    return set(asked.required)


def day(text: str) -> str:
    return f"{text} 00:00:00+00"


def a_decision(called: str, /, **cells: Any) -> tuple[Any, ...]:
    return a_row("decision", uid(called), **{"state_key": "made", **cells})


# ---- each question on its own


@pytest.mark.promise("recall.catalogue")
def test_what_is_blocked_is_each_blocked_task_and_whom_it_waits_for() -> None:
    rows = a_project(
        tasks=[
            a_task("by state", state_key="blocked"),
            a_task("waits"),
            a_task("first"),
            a_task("d", state_key="done"),
        ],
        goals=[a_goal("g")],
        edges=[
            an_edge("waits", "depends_on", "first"),
            an_edge("waits", "requires", "g"),
            an_edge("first", "depends_on", "d"),
            an_edge("g", "depends_on", "first"),
        ],
    )

    assert facts_of(rows, "Q1") == {
        (("task", "blocked"),),
        ((uid("by state"), "blocked"),),
        ((uid("waits"), "blocked"),),
        ((uid("waits"), uid("first")), (uid("first"), "")),
        ((uid("waits"), uid("g")), (uid("g"), "")),
    }


@pytest.mark.promise("recall.catalogue")
def test_what_is_overdue_is_each_open_task_with_its_day() -> None:
    rows = a_project(
        tasks=[
            a_task("late", due_at=day("2026-11-20")),
            a_task("today", due_at=day("2026-11-21")),
            a_task("done", due_at=day("2026-11-01"), state_key="done"),
        ],
        goals=[a_goal("g", target_date=day("2026-01-01"))],
    )

    assert facts_of(rows, "Q2") == {(("task", "overdue"),), ((uid("late"), "due_at"),)}


@pytest.mark.promise("recall.catalogue")
def test_the_top_risks_are_the_five_open_ones_with_the_highest_exposure() -> None:
    chances = {"a": "0.9", "b": "0.8", "c": "0.7", "d": "0.6", "e": "0.55", "f": "0.3", "g": None, "h": "NaN"}
    rows = a_project(
        risks=[
            *(a_risk(name, impact="critical", probability=chance) for name, chance in list(chances.items())[:6]),
            a_risk("g", impact="high", probability=None),
            a_risk("mitigated", impact="critical", probability="1", state_key="mitigated"),
            a_risk("none", probability="1"),
        ]
    )

    assert facts_of(rows, "Q3") == {
        (("risk", "open"),),
        *(((uid(name), part),) for name in "abcde" for part in ("impact", "probability")),
    }


@pytest.mark.promise("recall.catalogue")
def test_a_risk_has_no_facts_of_what_it_does_not_hold() -> None:
    rows = a_project(risks=[a_risk("r", impact="high"), a_risk("s", probability="NaN"), a_risk("t")])

    assert facts_of(rows, "Q3") == {(("risk", "open"),), ((uid("r"), "impact"),)}


@pytest.mark.promise("recall.catalogue", "recall.ties")
def test_of_risks_that_share_the_last_places_any_may_fill_them() -> None:
    rows = a_project(
        risks=[
            *(a_risk(f"top{n}", impact="critical", probability="1") for n in range(4)),
            *(a_risk(f"tied{n}", impact="high", probability=None if n else "0.5") for n in range(3)),
            a_risk("less", impact="low", probability="1"),
        ]
    )

    asked = questions_of(rows)["Q3"]

    assert asked.places == 1
    assert {fact[0][0] for fact in asked.required[1:]} == {uid(f"top{n}") for n in range(4)}
    assert sorted(map(sorted, asked.tied)) == sorted(
        sorted([((uid(f"tied{n}"), "impact"),), *([] if n else [((uid("tied0"), "probability"),)])])
        for n in range(3)
    )
    assert asked.size == 1 + 8 + 1


@pytest.mark.promise("recall.catalogue")
def test_goals_that_nothing_works_towards_are_open_and_have_neither_task_nor_plan() -> None:
    rows = a_project(
        goals=[
            a_goal("idle"),
            a_goal("draft", state_key="draft"),
            a_goal("served"),
            a_goal("over", state_key="achieved"),
        ],
        plans=[a_plan("p", state_key="completed")],
        risks=[a_risk("r")],
        edges=[an_edge("p", "references", "served"), an_edge("r", "threatens", "idle")],
    )

    assert facts_of(rows, "Q4") == {(("goal", "idle"),), ((uid("idle"), "idle"),), ((uid("draft"), "idle"),)}


@pytest.mark.promise("recall.catalogue")
def test_what_changed_is_what_was_touched_yesterday_or_today_with_its_state() -> None:
    rows = a_project(
        tasks=[
            a_task("today", updated_at="2026-11-21 10:00:00+00"),
            a_task("yesterday", updated_at="2026-11-20 00:00:01+00", state_key="done"),
            a_task("before", updated_at="2026-11-19 23:59:59+00"),
            a_task("stateless", updated_at="2026-11-21 10:00:00+00", state_key=None),
            a_task("blank", updated_at="2026-11-21 10:00:00+00", state_key=" "),
        ],
        insights=[a_row("insight", uid("i"), created_at="2026-11-21 09:00:00+00")],
        project={"updated_at": "2026-11-21 10:00:00+00"},
    )

    assert facts_of(rows, "Q5") == {
        (("", "changed"),),
        ((uid("today"), "changed"), (uid("today"), "state_key")),
        ((uid("yesterday"), "changed"), (uid("yesterday"), "state_key")),
        ((uid("stateless"), "changed"),),
        ((uid("blank"), "changed"),),
        ((uid("i"), "changed"),),
    }


@pytest.mark.promise("recall.catalogue", "recall.ties")
def test_what_is_waited_for_is_the_five_with_the_most_open_dependents() -> None:
    def waiting(name: str, dependents: int) -> list[Any]:
        return [an_edge(f"{name} {n}", "depends_on", name) for n in range(dependents)]

    names = {"a": 4, "b": 3, "c": 2, "d": 2, "e": 1, "f": 1}
    tasks = [a_task(name) for name in names] + [
        a_task(f"{name} {n}") for name, most in names.items() for n in range(most)
    ]
    over = [a_task("over", state_key="done"), a_task("over 0")]
    rows = a_project(tasks=[*tasks, *over], edges=[e for each in names.items() for e in waiting(*each)])

    asked = questions_of(rows)["Q6"]

    assert asked.required[0] == (("", "needed"),)
    assert set(asked.required[1:]) == {
        *(((uid(name), "needed_by"),) for name in "abcd"),
        *(((uid(f"{x} {n}"), uid(x)), (uid(x), "")) for x in "abcd" for n in range(names[x])),
    }
    assert asked.places == 1
    assert sorted(map(sorted, asked.tied)) == sorted(
        sorted([((uid(x), "needed_by"),), ((uid(f"{x} 0"), uid(x)), (uid(x), ""))]) for x in "ef"
    )


@pytest.mark.promise("recall.catalogue", "recall.ties")
def test_what_is_next_is_the_five_earliest_due_that_are_not_blocked() -> None:
    rows = a_project(
        tasks=[
            a_task("late", due_at=day("2026-11-01"), state_key=None),
            a_task("stuck", due_at=day("2026-11-02"), state_key="blocked"),
            a_task("done", due_at=day("2026-11-02"), state_key="done"),
            a_task("undated"),
            *(a_task(f"t{n}", due_at=day(f"2026-12-0{n}")) for n in range(1, 4)),
            *(a_task(f"tied{n}", due_at=f"2026-12-09 0{n}:00:00+00") for n in range(3)),
        ]
    )

    asked = questions_of(rows)["Q7"]

    assert set(asked.required) == {
        (("task", "ready"),),
        ((uid("late"), "due_at"),),
        *(((uid(f"t{n}"), part),) for n in range(1, 4) for part in ("due_at", "state_key")),
    }
    assert asked.places == 1
    assert sorted(map(sorted, asked.tied)) == sorted(
        sorted([((uid(f"tied{n}"), "due_at"),), ((uid(f"tied{n}"), "state_key"),)]) for n in range(3)
    )


@pytest.mark.promise("recall.catalogue")
def test_the_milestones_that_come_up_are_the_next_three_that_are_open() -> None:
    rows = a_project(
        milestones=[
            a_milestone("missed", due_at=day("2026-11-20")),
            a_milestone("done", due_at=day("2026-11-22"), state_key="completed"),
            a_milestone("undated"),
            *(a_milestone(f"m{n}", due_at=day(f"2026-11-2{n}")) for n in range(1, 6)),
        ]
    )

    assert facts_of(rows, "Q8") == {
        (("milestone", "upcoming"),),
        *(((uid(f"m{n}"), "due_at"),) for n in (1, 2, 3)),
    }


@pytest.mark.promise("recall.catalogue")
def test_how_far_goals_are_is_asked_of_open_ones_with_tasks() -> None:
    rows = a_project(
        goals=[a_goal("far"), a_goal("planned"), a_goal("idle"), a_goal("over", state_key="achieved")],
        plans=[a_plan("p")],
        tasks=[a_task("t"), a_task("u", state_key="done")],
        edges=[
            an_edge("t", "supports_goal", "far"),
            an_edge("p", "supports_goal", "planned"),
            an_edge("p", "has_task", "u"),
            an_edge("t", "supports_goal", "over"),
        ],
    )

    assert facts_of(rows, "Q9") == {
        (("goal", "measured"),),
        ((uid("far"), "progress"),),
        ((uid("planned"), "progress"),),
    }


@pytest.mark.promise("recall.catalogue", "recall.ties")
def test_what_was_decided_last_is_three_decisions_with_day_and_outcome() -> None:
    rows = a_project(
        decisions=[
            a_decision("last", decision_at="2026-11-20 10:00:00.5+00", outcome="yes"),
            a_decision("before", decision_at="2026-11-20 10:00:00+00", outcome=" "),
            a_decision("one", decision_at="2026-11-19 10:00:00+00"),
            a_decision("other", decision_at="2026-11-19 10:00:00+00", outcome="no"),
            a_decision("old", decision_at="2026-11-18 10:00:00+00", outcome="old"),
            a_decision("pending", state_key="pending", outcome="?"),
            a_decision("never", decision_at="infinity"),
        ]
    )

    asked = questions_of(rows)["Q10"]

    assert list(asked.required) == [
        (("decision", "happened"),),
        ((uid("last"), "decision_at"),),
        ((uid("last"), "outcome"),),
        ((uid("before"), "decision_at"),),
    ]
    assert asked.places == 1
    assert sorted(map(list, asked.tied), key=len) == [
        [((uid("one"), "decision_at"),)],
        [((uid("other"), "decision_at"),), ((uid("other"), "outcome"),)],
    ]


@pytest.mark.promise("recall.catalogue")
def test_where_the_project_stands_is_what_its_row_holds() -> None:
    whole = {
        "facet_stage": "build",
        "next_step_short": "Mend",
        "start_at": day("2026-01-01"),
        "end_at": "infinity",
    }

    assert facts_of(a_project(project=whole), "Q11") == {
        ((PROJECT_ID, part),) for part in ("state_key", "facet_stage", "next_step_short", "start_at")
    }
    assert "Q11" not in questions_of(a_project(project={"state_key": None}))


@pytest.mark.promise("recall.catalogue")
def test_what_is_not_connected_is_counted_for_every_kind_that_is_kept() -> None:
    rows = a_project(absent=("output", "signal"))

    assert facts_of(rows, "Q12") == {
        (("", "unlinked"),),
        *(
            ((kind.name, counted),)
            for kind in KINDS.entities
            if kind.name not in rows.absent
            for counted in ("total", "direct", "unlinked")
        ),
    }


@pytest.mark.promise("recall.closure")
def test_every_set_has_its_count_even_where_it_is_empty() -> None:
    counts = {name: each.required[0] for name, each in questions_of(a_project()).items()}

    assert counts == {
        "Q1": (("task", "blocked"),),
        "Q2": (("task", "overdue"),),
        "Q3": (("risk", "open"),),
        "Q4": (("goal", "idle"),),
        "Q5": (("", "changed"),),
        "Q6": (("", "needed"),),
        "Q7": (("task", "ready"),),
        "Q8": (("milestone", "upcoming"),),
        "Q9": (("goal", "measured"),),
        "Q10": (("decision", "happened"),),
        "Q11": ((PROJECT_ID, "state_key"),),
        "Q12": (("", "unlinked"),),
    }


@pytest.mark.parametrize(
    ("kind", "without"),
    [
        ("task", {"Q1", "Q2", "Q7"}),
        ("goal", {"Q4", "Q9"}),
        ("risk", {"Q3"}),
        ("milestone", {"Q8"}),
        ("decision", {"Q10"}),
        ("signal", set()),
    ],
)
@pytest.mark.promise("recall.catalogue")
def test_nothing_is_asked_of_a_kind_that_is_not_kept(kind: str, without: set[str]) -> None:
    every = questions_of(a_project()).keys()

    assert every - questions_of(a_project(absent=(kind,))).keys() == without


@pytest.mark.promise("recall.catalogue", "build.kind")
def test_a_registry_of_one_kind_is_asked_what_can_be_asked_of_it() -> None:
    only = Registry.of(KINDS.project, KINDS.by_name["document"])
    draft = drafted(a_project(kinds=only), kinds=only)

    assert [each.name for each in draft.questions] == ["Q5", "Q6", "Q11", "Q12"]


@pytest.mark.parametrize(
    ("impact", "probability", "expected"),
    [
        ("critical", "0.5", 2.0),
        ("low", None, 0.5),
        ("high", "NaN", 1.5),
        ("high", "7", 3.0),
        ("high", "-1", 0.0),
        (None, "1", 0.0),
        ("apocalyptic", "1", 0.0),
        ("medium", "no number", 1.0),
    ],
)
@pytest.mark.promise("recall.catalogue")
def test_exposure_is_impact_times_probability(
    impact: str | None, probability: str | None, expected: float
) -> None:
    assert exposure(impact, probability) == expected


# ---- any project


def comparable(required: Any, places: int, tied: Any) -> Any:
    return sorted(required), places, sorted(sorted(each) for each in tied)


@given(projects(), st.sampled_from(ZONES))
@settings(max_examples=200)
@pytest.mark.promise("recall.catalogue", "recall.ties")
def test_the_facts_of_every_question_are_what_the_catalogue_says(rows: ProjectRows, zone: ZoneInfo) -> None:
    expected = by_the_catalogue(rows, zone)

    found = questions_of(rows, zone)

    assert found.keys() == expected.keys()
    for name, asked in found.items():
        assert comparable(asked.required, asked.places, asked.tied) == comparable(*expected[name]), name
        assert len(set(asked.required)) == len(asked.required)


@given(projects(), st.integers(0, 99))
@pytest.mark.promise("recall.catalogue", "build.deterministic")
def test_the_order_of_rows_does_not_matter(rows: ProjectRows, seed: int) -> None:
    one, other = (drafted(each).questions for each in (rows, shuffled(rows, seed)))

    assert one == other


@pytest.mark.promise("recall.catalogue")
def test_every_question_has_its_first_entities_among_the_candidates() -> None:
    rows = a_big_project(9000, 3000, seed=3)
    draft = drafted(rows)

    chosen = candidates(draft.questions, draft.graph)

    assert chosen <= draft.near.keys()
    assert len(chosen) <= ALL_CANDIDATES
    for asked in draft.questions:
        entities = dict.fromkeys(i for fact in asked.required for i, _ in fact if i in draft.graph.kind_of)
        entities.pop(PROJECT_ID, None)
        assert set(list(entities)[: ALL_CANDIDATES // len(draft.questions)]) <= chosen


# ---- from which budget a text holds a fact


def present(asked: Asked, keys: set[tuple[str, str]]) -> int:
    """The facts of a question that are among the keys; ties are filled with the candidates of which most is."""
    candidates_said = sorted((sum(keys.issuperset(fact) for fact in each) for each in asked.tied), reverse=True)
    return sum(keys.issuperset(fact) for fact in asked.required) + sum(candidates_said[: asked.places])


def a_dated_project(seed: int) -> ProjectRows:
    """A project as people have them, of any size, with something to answer every question."""
    random = Random(seed)
    many = random.choice([3, 12, 60])

    def a_day() -> str:
        return f"2026-{random.choice((10, 11, 12))}-{random.randint(10, 28)} 10:00:00+00"

    def named(kind: str) -> list[str]:
        return [f"{kind}{n}" for n in range(random.randint(0, many))]

    def any_row(kind: str, called: str) -> tuple[Any, ...]:
        declared = KINDS.by_name[kind]
        cells: dict[str, Any] = {
            field.name: a_day() for field in declared.light if field.time and random.random() < 0.6
        }
        cells |= {"created_at": a_day(), declared.touched: a_day()}
        cells[declared.label] = " ".join(
            random.choices(("mend", "nets", "boat", "tar", "winter"), k=random.randint(1, 9))
        )
        if "state_key" in declared.at:
            cells["state_key"] = random.choice(("todo", "blocked", "done", "active", "in_progress", None))
        if kind == "risk":
            cells |= {
                "impact": random.choice(("low", "high", None)),
                "probability": random.choice(("0.2", "0.5", None)),
            }
        if kind == "decision":
            cells["outcome"] = random.choice((None, "Use tar. " * random.randint(1, 9)))
        return a_row(kind, uid(called), **cells)

    kinds = {kind.name: named(kind.name) for kind in KINDS.entities}
    ends = [*(name for names in kinds.values() for name in names), "project"]
    relations = ("depends_on", "supports_goal", "has_task", "references", "blocks")
    rows = a_project(
        project={"facet_stage": "build", "next_step_short": "Mend the nets", "end_at": day("2026-12-31")},
        edges=[
            an_edge(random.choice(ends), random.choice(relations), random.choice(ends))
            for _ in range(2 * len(ends))
        ],
    )
    return replace(rows, entities={kind: [any_row(kind, name) for name in names] for kind, names in kinds.items()})


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.promise("recall.thresholds")
def test_at_every_budget_as_many_facts_are_in_the_text_as_its_thresholds_say(seed: int) -> None:
    rows = a_dated_project(seed) if seed % 4 else a_hostile_project(seed, each=2 + seed, edges=60)
    content, questions = rendered(rows), questions_of(rows)
    answers = {each["question"]: each for each in content.data["answers"]}
    assert answers.keys() == questions.keys()
    text, keys, handles = "", set[tuple[str, str]](), content.data["handles"]
    outcomes = {i: light["outcome"] for i, light in lights_of(drafted(rows)).items() if "outcome" in light}

    for budget in range(SMALLEST_BUDGET, LARGEST_BUDGET + 1):
        fitted = fit(content.lines, content.always, budget)
        if fitted.text != text:
            text, keys = fitted.text, keys_of(fitted.text, handles, PROJECT_ID, outcomes)
            said = {name: present(asked, keys) for name, asked in questions.items()}
        assert said == {name: sum(at <= budget for at in each["at"]) for name, each in answers.items()}, budget


@given(projects())
@pytest.mark.promise("recall.thresholds")
def test_thresholds_rise_and_are_no_more_than_the_facts(rows: ProjectRows) -> None:
    for each in rendered(rows).data["answers"]:
        assert each["at"] == sorted(each["at"])
        assert len(each["at"]) <= each["facts"]
        assert each["asks"].endswith("?")


@pytest.mark.promise("recall.thresholds", "recall.ties")
def test_ties_are_filled_with_the_candidates_of_which_most_is_said() -> None:
    a, b, c = ([((name, part),) for part in ("x", "y")] for name in "abc")
    asked = Asked(name="Q", words="?", required=[(("n", "count"),)], places=1, tied=[a, b, c])
    shown = [
        (10, [("n", "count")]),
        (20, [("a", "x")]),
        (30, [("b", "x")]),
        (40, [("b", "y")]),
        (50, [("a", "y")]),
    ]

    assert asked.size == 3
    assert thresholds([asked], shown) == {"Q": [10, 20, 40]}


@pytest.mark.promise("recall.thresholds")
def test_a_fact_is_there_from_when_its_last_key_is_and_one_that_is_never_shown_is_not_listed() -> None:
    pair, never = (("a", "b"), ("b", "")), (("a", "c"), ("c", ""))
    asked = Asked(name="Q", words="?", required=[pair, never])

    assert thresholds([asked], [(10, [("a", "b"), ("a", "c")]), (30, [("b", "")]), (40, [("b", "")])]) == {
        "Q": [30]
    }

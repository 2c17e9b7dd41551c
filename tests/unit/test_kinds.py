"""The registry of kinds: what the specification lists, and what one more declaration does."""

from dataclasses import replace
from typing import Any

import pytest
from strategies import (
    PROJECT_ID,
    a_goal,
    a_project,
    a_risk,
    a_row,
    a_task,
    an_edge,
    drafted,
    handles_of,
    rendered,
    uid,
)

from foreword.derive import RULES
from foreword.errors import ForewordError
from foreword.kinds import KINDS, Column, Derived, Field, Kind, Registry, Score
from foreword.lines import fit
from foreword.scoring import ranked

LIGHT: dict[str, dict[str, int | None]] = {
    "project": {
        **dict.fromkeys(["name", "state_key", "type_key", "next_step_short", "start_at", "end_at", "updated_at"]),
        **dict.fromkeys(["facet_context", "facet_scale", "facet_stage", "created_at"]),
        "description": 150,
        "next_step_long": 200,
    },
    "task": {
        **dict.fromkeys(["title", "state_key", "priority", "type_key", "start_at", "due_at", "updated_at"]),
        **dict.fromkeys(["created_at", "completed_at"]),
        "description": 120,
    },
    "goal": {
        **dict.fromkeys(["name", "state_key", "type_key", "target_date", "completed_at", "created_at"]),
        "updated_at": None,
        "description": 120,
    },
    "plan": {
        **dict.fromkeys(["name", "state_key", "type_key", "created_at", "updated_at"]),
        "description": 120,
    },
    "milestone": {
        **dict.fromkeys(["title", "state_key", "type_key", "due_at", "completed_at", "created_at", "updated_at"]),
        "description": 120,
    },
    "risk": {
        **dict.fromkeys(["title", "state_key", "type_key", "impact", "probability", "created_at", "updated_at"]),
        "mitigated_at": None,
        "content": 120,
    },
    "decision": {
        **dict.fromkeys(["title", "state_key", "decision_at", "created_at", "updated_at"]),
        "outcome": 120,
        "rationale": 180,
        "description": 120,
    },
    "requirement": dict.fromkeys(["text", "priority", "created_at", "updated_at", "type_key"]),
    "document": {
        **dict.fromkeys(["title", "state_key", "type_key", "created_at", "updated_at"]),
        "description": 180,
        "content": 200,
    },
    "output": {
        **dict.fromkeys(["name", "state_key", "type_key", "created_at", "updated_at"]),
        "description": 160,
    },
    "signal": {**dict.fromkeys(["channel", "ts", "created_at"]), "payload_summary": 160},
    "insight": {**dict.fromkeys(["title", "created_at", "derived_from_signal_id"]), "summary": 160},
}
"""The light fields of the specification, with the lengths it cuts them to."""

DERIVED = {
    "task": {"plan_ids", "goal_ids", "output_ids", "dependency_count", "dependent_count"},
    "goal": {"progress_percent", "completed_tasks", "total_tasks"},
    "plan": {"task_count", "completed_task_count"},
    "output": {"linked_goal_ids", "linked_task_ids"},
}


@pytest.mark.parametrize("name", LIGHT)
@pytest.mark.promise("build.kind", "graph.schema")
def test_a_light_record_has_the_fields_and_lengths_of_the_specification(name: str) -> None:
    kind = KINDS.by_name[name]
    fields = {field.name: field.cut for field in kind.light}

    assert LIGHT[name].keys() <= fields.keys()
    assert {field: cut for field, cut in LIGHT[name].items() if cut} == {
        field: fields[field] for field, cut in LIGHT[name].items() if cut
    }
    assert DERIVED.get(name, set()) <= {derived.name for derived in kind.derived}


@pytest.mark.promise("build.kind")
def test_there_are_twelve_kinds_and_what_is_always_included_is_as_specified() -> None:
    assert [kind.name for kind in KINDS.all] == list(LIGHT)
    assert {kind.name for kind in KINDS.entities if kind.always} == {"goal", "document", "output"}


@pytest.mark.promise("build.kind")
def test_what_a_kind_refers_to_exists() -> None:
    for kind in KINDS.all:
        light = {field.name for field in kind.light}
        columns = {column.name for column in kind.columns_of()}
        assert {field.name for field in kind.light if not field.source} <= columns
        assert {kind.label, *([kind.due] if kind.due else [])} <= light
        assert {derived.rule for derived in kind.derived} <= RULES.keys()
        assert {derived.kind for derived in kind.derived if derived.rule == "links"} <= KINDS.by_name.keys()
        shown = light | {derived.name for derived in kind.derived} | {"progress"}
        assert {name for _, name in kind.line} <= shown


@pytest.mark.promise("build.kind")
def test_every_kind_scores_finished_below_ten() -> None:
    assert all(0 <= kind.score.finished < 10 for kind in KINDS.entities)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"name": "task"}, "share a name"),
        ({"plural": "tasks"}, "share a plural"),
        ({"table": "onto_tasks"}, "share a table"),
        ({"handle": "T"}, "share a handle"),
        ({"label": "nothing"}, "no light field"),
        ({"handle": "x"}, "capital letters"),
        ({"handle": "X1"}, "capital letters"),
        ({"handle": ""}, "capital letters"),
        ({"handle": "\u0394"}, "capital letters"),
    ],
)
@pytest.mark.promise("build.kind")
def test_a_kind_that_cannot_be_is_refused(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ForewordError, match=complaint):
        KINDS.extended(replace(EXPERIMENT, **change))


# ---- a thirteenth kind

EXPERIMENT = Kind(
    name="experiment",
    plural="experiments",
    table="onto_experiments",
    handle="E",
    label="question",
    columns=(
        Column(name="question", required=True),
        Column(name="state_key"),
        Column(name="ends_at", type="timestamptz"),
    ),
    light=(
        Field("question", 80),
        Field("state_key", 60),
        Field("ends_at", time=True),
        Field("updated_at", time=True),
        Field("created_at", time=True),
    ),
    derived=(Derived("risk_ids", "links", "risk"), Derived("waits_for", "waits_for")),
    line=(("{}", "state_key"), ("ends {}", "ends_at"), ("tests {}", "risk_ids")),
    shown=4,
    score=Score(by={"state_key": {"running": 70}}, bucket={"overdue": 40}),
    due="ends_at",
    finished=frozenset({"concluded"}),
    volatility=35,
    tally=(("open", "open"), ("overdue", "overdue")),
)
WITH_EXPERIMENTS = KINDS.extended(EXPERIMENT)


def an_experiment(called: str, /, **cells: Any) -> tuple[Any, ...]:
    return a_row("experiment", uid(called), kinds=WITH_EXPERIMENTS, **cells)


@pytest.fixture(name="rows")
def a_laboratory() -> Any:
    return a_project(
        kinds=WITH_EXPERIMENTS,
        experiments=[
            an_experiment("e1", question="Does it float?", state_key="running", ends_at="2026-11-01 00:00:00+00"),
            an_experiment("e2", question="Is it dry?", state_key="concluded", created_at="2026-01-02 00:00:00+00"),
            an_experiment("e3", question="Alone", created_at="2026-01-03 00:00:00+00"),
        ],
        risks=[a_risk("r")],
        tasks=[a_task("t")],
        goals=[a_goal("g")],
        edges=[
            an_edge("project", "has_experiment", "e1"),
            an_edge("e1", "has_experiment", "project"),
            an_edge("e1", "addresses", "r"),
            an_edge("e1", "depends_on", "t"),
            an_edge("e1", "relates_to", "e2"),
        ],
    )


@pytest.mark.promise("build.kind")
def test_a_thirteenth_kind_is_in_coverage_snapshot_and_header(rows: Any) -> None:
    data = rendered(rows, kinds=WITH_EXPERIMENTS).data

    assert data["coverage"]["kinds"]["experiments"] == {
        "total": 3,
        "direct": 1,
        "unlinked": 2,
        "reachable": 2,
        "orphan": 1,
    }
    assert data["coverage"]["edges"]["duplicate"] == 1
    nodes = {node["id"]: node for node in data["graph"]["nodes"]}
    assert nodes[uid("e1")]["name"] == "Does it float?"
    assert nodes[uid("e2")]["kind"] == "experiment"
    assert uid("e3") not in nodes
    assert data["header"]["entity_counts"]["experiments"] == 3


@pytest.mark.promise("build.kind", "build.derived")
def test_a_thirteenth_kind_is_in_the_slices_with_its_derived_fields(rows: Any) -> None:
    first, *others = rendered(rows, kinds=WITH_EXPERIMENTS).data["slices"]["experiments"]

    assert first == {
        "handle": "E1",
        "id": uid("e1"),
        "question": "Does it float?",
        "state_key": "running",
        "ends_at": "2026-11-01",
        "created_at": "2026-01-01",
        "risk_ids": [uid("r")],
        "waits_for": [uid("t")],
        "direct_edge": True,
    }
    assert [light["handle"] for light in others] == ["E3", "E2"]


@pytest.mark.promise("build.kind", "lines.order", "lines.counted")
def test_a_thirteenth_kind_is_in_the_text_in_its_place(rows: Any) -> None:
    content = rendered(rows, kinds=WITH_EXPERIMENTS)

    lines = fit(content.lines, content.always, 1500).text.splitlines()

    heading = lines.index("## experiments")
    assert lines[heading + 1] == 'E1 "Does it float?" running ends 2026-11-01 tests R1 waits for T1'
    assert lines[heading + 2 : heading + 4] == ['E2 "Is it dry?" concluded unlinked', 'E3 "Alone" unlinked']
    assert lines.index("## goals") < heading < lines.index("## risks")
    counts = "experiments: 3, direct: 1, unlinked: 2, open: 2, overdue: 1, concluded: 1, running: 1"
    assert lines.index("## counts") < lines.index(counts)


@pytest.mark.promise("build.kind", "graph.open-first")
def test_a_thirteenth_kind_scores_as_declared(rows: Any) -> None:
    found = drafted(rows, kinds=WITH_EXPERIMENTS).buckets

    scores = {entity: score for score, _, entity, _ in ranked(EXPERIMENT, rows.entities["experiment"], found)}

    assert scores == {uid("e1"): 110, uid("e2"): 5, uid("e3"): 30}


@pytest.mark.promise("build.kind", "graph.partition")
def test_a_thirteenth_kind_without_a_table_is_absent() -> None:
    rows = a_project(kinds=WITH_EXPERIMENTS, absent=("experiment",))

    content = rendered(rows, kinds=WITH_EXPERIMENTS)

    assert "experiments" not in content.data["coverage"]["kinds"]
    assert content.data["coverage"]["absent"] == ["experiment"]
    assert "\nnot kept here: experiments\n" in fit(content.lines, content.always, 300).text
    assert "\nexperiments: " not in fit(content.lines, content.always, 3000).text


@pytest.mark.promise("build.kind")
def test_a_registry_may_lack_every_kind_that_has_rules_of_its_own() -> None:
    only = Registry.of(KINDS.project, EXPERIMENT)
    rows = replace(a_project(kinds=only), entities={"experiment": [an_experiment("e1")]})

    draft = drafted(rows, kinds=only)

    assert handles_of(draft) == {PROJECT_ID: "PRJ1", uid("e1"): "E1"}
    assert rendered(rows, kinds=only).data["coverage"]["kinds"]["experiments"]["total"] == 1


@pytest.mark.parametrize(
    ("kind", "state", "finished"),
    [
        ("task", "done", True),
        ("task", "published", False),
        ("output", "published", True),
        ("document", "published", False),
        ("risk", "mitigated", True),
        ("risk", "occurred", False),
        ("milestone", "missed", False),
        ("project", "cancelled", True),
        ("task", "Done", False),
        ("task", None, False),
    ],
)
@pytest.mark.promise("build.buckets")
def test_which_states_are_finished(kind: str, state: str | None, finished: bool) -> None:  # noqa: FBT001 - a table
    assert KINDS.by_name[kind].is_finished(state) is finished

"""What a text says, read without knowing who wrote it, and what of it counts as present, absent or false."""

import json

import pytest
from strategies import FORGERIES, uid

from benchmarks.recall.facts import Fact, Need, Question
from benchmarks.recall.judge import Reading, mark, score
from benchmarks.recall.parser import normal, parse
from benchmarks.recall.truth import Truth
from foreword.text import quote

PROJECT, SHIP, SAIL, GOAL, RISK, TWIN = (uid(n) for n in ("project", "ship", "sail", "goal", "risk", "twin"))

TRUTH = Truth(
    project=PROJECT,
    names={
        "Net loft": frozenset([PROJECT]),
        "Ship the parser": frozenset([SHIP, TWIN]),
        "Mend the big brown mainsail": frozenset([SAIL]),
        "Open the doors": frozenset([GOAL]),
        "Rain": frozenset([RISK]),
    },
    values={
        PROJECT: {"state": "active", "stage": "execution", "start": "2026-01-02", "end": "2026-12-31"},
        SHIP: {"state": "in_progress", "due": "2026-11-20", "priority": "2"},
        SAIL: {"state": "todo", "needed by": "1"},
        GOAL: {"state": "active", "progress": "3/7"},
        RISK: {"state": "identified", "impact": "high", "probability": "0.30"},
        TWIN: {"state": "done"},
    },
    flagged={
        "blocked": frozenset([SHIP]),
        "idle": frozenset([GOAL]),
        "changed": frozenset([SAIL]),
        "unlinked": frozenset(),
    },
    waits=frozenset([(SHIP, SAIL)]),
    counts={("task", "total"): 3, ("task", "overdue"): 1, ("", "unlinked"): 0, ("goal", "idle"): 1},
)

TEXT = """# project "Net loft"
state active, stage execution, from 2026-01-02 to 2026-12-31
next step "Hang the door"
## goals
G1 "Open the doors" active no tasks or plans 3/7 done
## risks
R1 "Rain" identified impact high probability 0.3
## tasks
T1 "Ship the parser" in_progress blocked p2 due 2026-11-20 waits for T2
T2 "Mend the big brown mains…" todo changed needed by 1
## counts
unlinked: 0, changed since yesterday: 1
tasks: 3, overdue: 1
goals: 1, without tasks or plans: 1
as of 2026-11-21
"""


def fact(need: Need, entity: str, other: str = "", value: str = "") -> Fact:
    return Fact(need, entity, other, value)


PRESENT = [
    fact("state", SHIP, "", "in_progress"),
    fact("state", PROJECT, "", "active"),
    fact("word", PROJECT, "stage", "execution"),
    fact("date", PROJECT, "start", "2026-01-02"),
    fact("date", PROJECT, "end", "2026-12-31"),
    fact("text", PROJECT, "next step", "Hang the door"),
    fact("date", SHIP, "due", "2026-11-20"),
    fact("number", SHIP, "priority", "2"),
    fact("number", RISK, "probability", "0.30"),
    fact("word", RISK, "impact", "high"),
    fact("number", GOAL, "progress", "3/7"),
    fact("named", GOAL, "idle"),
    fact("named", SHIP, "blocked"),
    fact("named", RISK),
    fact("waits", SHIP, SAIL),
    fact("linked", SAIL, SHIP),
    fact("state", SAIL, "changed", "todo"),
    fact("count", "task", "overdue", "1"),
    fact("count", "task", "total", "3"),
    fact("count", "", "unlinked", "0"),
    fact("count", "", "changed", "1"),
    fact("count", "goal", "idle", "1"),
]
ABSENT = [
    fact("state", SHIP, "", "blocked by weather"),
    fact("state", SHIP, "changed", "in_progress"),
    fact("state", SAIL, "changed", "done"),
    fact("date", SHIP, "due", "2026-11-21"),
    fact("date", SHIP, "start", "2026-11-20"),
    fact("number", RISK, "impact", "0.3"),
    fact("named", RISK, "blocked"),
    fact("waits", SAIL, SHIP),
    fact("linked", SAIL, GOAL),
    fact("text", PROJECT, "next step", "Hang the door and paint it"),
    fact("count", "task", "overdue", "3"),
    fact("count", "goal", "overdue", "1"),
    fact("count", "task", "unlinked", "0"),
    fact("named", uid("nobody")),
]


@pytest.mark.parametrize("wanted", PRESENT, ids=str)
def test_what_a_text_says_is_present(wanted: Fact) -> None:
    assert Reading(TEXT, TRUTH).holds(wanted)


@pytest.mark.parametrize("wanted", ABSENT, ids=str)
def test_what_it_does_not_say_is_not(wanted: Fact) -> None:
    assert not Reading(TEXT, TRUTH).holds(wanted)


def test_a_true_text_holds_nothing_false() -> None:
    assert Reading(TEXT, TRUTH).falsehoods() == []


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("due 2026-11-20", "due 2026-11-19"),
        (" p2", " p3"),
        ("impact high", "impact low"),
        ("probability 0.3", "probability 0.4"),
        ("3/7 done", "4/7 done"),
        ("waits for T2", "waits for R1"),
        ("todo changed", "todo unlinked"),
        ("needed by 1", "needed by 2"),
        ("identified impact", "identified blocked impact"),
        ("overdue: 1", "overdue: 2"),
        ("tasks: 3", "tasks: 4"),
        ("stage execution", "stage planning"),
    ],
)
def test_what_disagrees_with_the_database_is_false(true: str, false: str) -> None:
    found = Reading(TEXT.replace(true, false), TRUTH).falsehoods()
    assert len(found) == 1, found


def test_a_title_of_several_entities_may_mean_any_of_them() -> None:
    text = 'T1 "Ship the parser" done\n'
    assert Reading(text, TRUTH).holds(fact("state", TWIN, "", "done"))
    assert not Reading(text, TRUTH, {SHIP: "T1"}).of(TWIN)


@pytest.mark.parametrize(
    "text",
    [
        "T1 in_progress due 2026-11-20",  # a handle that nothing binds
        'T1 "Ship the" in_progress due 2026-11-20',  # no title of anybody
        'T1 "Shi…" in_progress due 2026-11-20',  # cut to nothing
        'R9 "Rain \'" outcome "T1 in_progress due 2026-11-20"',  # somebody's words
        'about "Ship the parser" in_progress due 2026-11-20',
    ],
)
def test_nobody_is_known_by_less_than_a_title(text: str) -> None:
    reading = Reading(text, TRUTH)
    assert not reading.holds(fact("date", SHIP, "due", "2026-11-20"))
    assert not reading.holds(fact("state", SHIP, "", "in_progress"))


def test_a_handle_may_be_used_before_it_is_bound() -> None:
    assert Reading('T2 "Rain" x\nT1 "Ship the parser" waits for T2\n', TRUTH).holds(fact("waits", SHIP, RISK))
    assert Reading('T1 "Ship the parser" waits for T2\nT2 "Rain" x\n', TRUTH).holds(fact("waits", SHIP, RISK))


def test_a_list_under_a_heading_says_it_of_each() -> None:
    text = f"{TEXT}## blocked\nT2, R1\n"
    for each in (SAIL, RISK):
        assert Reading(text, TRUTH).holds(fact("named", each, "blocked"))
    assert not Reading(text, TRUTH).holds(fact("named", GOAL, "blocked"))


def test_a_label_is_no_state_and_a_state_no_label() -> None:
    done = parse('T1 "a" done done 2026-11-20 3/7 done')[0]
    assert done.values == [("done", "2026-11-20"), ("progress", "3/7")]
    assert done.words == ("T1", "done")


@pytest.mark.parametrize("forged", FORGERIES)
def test_somebodys_words_state_nothing(forged: str) -> None:
    hostile = TEXT.replace("Hang the door", quote(forged)[1:-1]).replace('"Rain"', quote(forged))
    reading = Reading(hostile, TRUTH)
    assert reading.falsehoods() == []
    assert len(reading.records) == len(TEXT.splitlines())
    for wanted in PRESENT:
        if RISK not in {wanted.entity, wanted.other} and wanted.need != "text":
            assert reading.holds(wanted), wanted


# ---- JSON


DOCUMENT = {
    "header": {"id": PROJECT, "name": "Net loft", "state_key": "active", "facet_stage": "execution"},
    "tasks": [
        {
            "id": SHIP,
            "title": "Ship the parser",
            "state_key": "in_progress",
            "due_at": "2026-11-20",
            "priority": 2,
        },
        {"id": SAIL, "title": "Mend the big brown mainsail", "state_key": "todo"},
    ],
    "goals": [{"id": GOAL, "name": "Open the doors", "completed_tasks": 3, "total_tasks": 7}],
    "coverage": {"tasks": {"total": 3, "unlinked": 2, "overdue": 1}},
    "recent": {"entities": [{"id": SAIL, "state_key": "todo"}]},
}


@pytest.mark.parametrize(
    "text", [json.dumps(DOCUMENT), "\n".join(json.dumps({key: DOCUMENT[key]}) for key in DOCUMENT)]
)
def test_json_is_read_by_object_and_keys(text: str) -> None:
    reading = Reading(text, TRUTH)
    for wanted in (
        fact("state", PROJECT, "", "active"),
        fact("word", PROJECT, "stage", "execution"),
        fact("date", SHIP, "due", "2026-11-20"),
        fact("number", SHIP, "priority", "2"),
        fact("number", GOAL, "progress", "3/7"),
        fact("state", SAIL, "changed", "todo"),
        fact("count", "task", "overdue", "1"),
        fact("count", "task", "total", "3"),
    ):
        assert reading.holds(wanted), wanted
    for absent in (fact("count", "", "unlinked", "2"), fact("state", SHIP, "changed", "in_progress")):
        assert not reading.holds(absent), absent
    assert reading.falsehoods() == []


def test_a_cut_document_says_nothing() -> None:
    reading = Reading(json.dumps(DOCUMENT)[:-1], TRUTH)
    assert not any(map(reading.holds, PRESENT))


# ---- scores


def question(*facts: Fact, places: int = 0, tied: tuple[tuple[Fact, ...], ...] = ()) -> Question:
    counted = [each for each in facts if each.need == "count"]
    return Question(name="Q", asks="?", required=facts, tied=(places, tied), counted=counted)


DUE, STATE = fact("date", SHIP, "due", "2026-11-20"), fact("state", SHIP, "", "in_progress")
NOT_THERE = fact("state", SHIP, "", "lost")
CLOSURE = fact("count", "task", "overdue", "1")


def test_tied_places_go_to_whom_the_text_says_most_of() -> None:
    asked = question(CLOSURE, places=1, tied=((NOT_THERE, DUE), (DUE, STATE), (NOT_THERE,)))
    assert asked.size == 2
    marked = mark(asked, Reading(TEXT, TRUTH))
    assert (marked.present, marked.required, marked.closed) == (3, 3, True)


def test_scores_are_shares_of_questions() -> None:
    whole, half = question(CLOSURE, DUE), question(CLOSURE, NOT_THERE)
    silent = question(fact("count", "task", "overdue", "7"), DUE)
    found = score(TEXT, [whole, half, silent], TRUTH)
    assert (found.recall, found.whole, found.silent, found.worst) == (2 / 3, 1 / 3, 1 / 3, 0.5)
    empty = score("", [whole, half, silent], TRUTH)
    assert (empty.recall, empty.whole, empty.silent, empty.false) == (0, 0, 1, [])


def test_texts_compare_without_what_does_not_show() -> None:
    assert normal(' a\u200b "b"\r\n c\u0301\t') == "a 'b' \u0107"

"""Light records, and how they read in a line."""

import pytest
from hypothesis import given
from strategies import UTC, a_goal, a_project, a_risk, a_row, a_task, an_edge, projects, rendered, uid, written

from foreword.dates import local_dates
from foreword.derive import Neighbourhood
from foreword.kinds import KINDS
from foreword.light import Said, label, parts_of, record
from foreword.rows import ProjectRows

NOBODY = Neighbourhood({}, set(), set(), set(), set(), ())


def line_of(rows: ProjectRows, handle: str) -> str:
    """The line of the entity with this handle."""
    return next(line for line in written(rows, 3000).text.splitlines() if line.startswith(f"{handle} "))


@pytest.mark.promise("graph.schema")
def test_a_record_holds_the_declared_fields_that_there_are_with_local_dates() -> None:
    row = a_task("t", due_at="2026-11-21 00:00:00+00", updated_at="2026-11-20 10:00:00+00", priority=2)

    assert record(KINDS.by_name["task"], row, local_dates(UTC)) == {
        "id": uid("t"),
        "title": "a task",
        "state_key": "todo",
        "priority": 2,
        "due_at": "2026-11-21",
        "updated_at": "2026-11-20",
        "created_at": "2026-01-01",
    }


@pytest.mark.promise("graph.schema")
def test_updated_at_is_there_only_where_it_differs() -> None:
    row = a_task("t", created_at="2026-11-20 10:00:00+00", updated_at="2026-11-20 23:00:00+00")

    assert "updated_at" not in record(KINDS.by_name["task"], row, local_dates(UTC))


@given(projects())
@pytest.mark.promise("text.grapheme", "graph.total")
def test_no_text_of_a_record_is_longer_than_declared(rows: ProjectRows) -> None:
    content = rendered(rows)

    for kind in KINDS.entities:
        for light in content.data["slices"].get(kind.plural, []):
            for field in kind.light:
                if field.cut is not None and field.name in light:
                    assert len(light[field.name]) <= field.cut


@pytest.mark.parametrize("title", [None, "", " ", "\n\u2028", "\x00", "\u202e\u200b"])
@pytest.mark.promise("graph.total")
def test_an_empty_title_is_stated(title: str | None) -> None:
    kind = KINDS.by_name["task"]

    assert label(kind, record(kind, a_task(title=title), local_dates(UTC))) == "(untitled)"


@pytest.mark.promise("lines.order")
def test_a_task_reads_from_state_to_links() -> None:
    rows = a_project(
        tasks=[
            a_task("t", title="Paint", state_key="blocked", priority=1, due_at="2026-11-20 00:00:00+00"),
            a_task("u", title="Buy paint", created_at="2026-01-02 09:00:00+00"),
        ],
        goals=[a_goal("g")],
        edges=[
            an_edge("project", "has_task", "t"),
            an_edge("t", "depends_on", "u"),
            an_edge("t", "supports_goal", "g"),
        ],
    )

    assert line_of(rows, "T1") == 'T1 "Paint" blocked p1 due 2026-11-20 goal G1 waits for T2'
    assert line_of(rows, "T2") == 'T2 "Buy paint" todo unlinked needed by 1'
    assert line_of(rows, "G1") == 'G1 "a goal" active unlinked 0/1 done'


@pytest.mark.promise("lines.counted")
def test_a_long_list_of_handles_says_how_many_more() -> None:
    rows = a_project(
        tasks=[a_task("t"), *(a_task(f"u{n}") for n in range(8))],
        edges=[an_edge("t", "depends_on", f"u{n}") for n in range(8)],
    )

    waiting = [line for line in written(rows, 3000).text.splitlines() if "waits for" in line]

    assert len(waiting) == 1
    assert len(waiting[0].split("waits for ")[1].split()) == 5 + len(["+3"])
    assert waiting[0].endswith(" +3")


@pytest.mark.parametrize(
    "state", ["3/4", "T7", "unlinked", "changed", "no tasks or plans", "²/³", "in progress", "2/"]
)
@pytest.mark.promise("lines.unforgeable")
def test_a_state_that_reads_like_ours_is_quoted(state: str) -> None:
    rows = a_project(tasks=[a_task(title="x", state_key=state)], edges=[an_edge("project", "has_task", "t")])

    assert line_of(rows, "T1") == f'T1 "x" "{state}"'


@pytest.mark.promise("graph.total")
def test_a_number_of_any_length_fits_its_line() -> None:
    rows = a_project(risks=[a_risk(title="x", impact="high", probability="0." + "3" * 300)])

    assert line_of(rows, "R1") == 'R1 "x" identified unlinked impact high probability 0.3333333333333333'


@pytest.mark.promise("lines.counted")
def test_a_decision_reads_with_its_outcome() -> None:
    row = a_row(
        "decision",
        uid("d"),
        title="Ramp",
        state_key="made",
        decision_at="2026-11-10 00:00:00+00",
        outcome='a "ramp"',
    )

    assert (
        line_of(a_project(decisions=[row]), "D1") == 'D1 "Ramp" made unlinked on 2026-11-10 outcome "a \'ramp\'"'
    )


@pytest.mark.parametrize(
    ("outcome", "characters", "enough"),
    [
        ("Use tar", 120, True),
        ("Use tar", 6, False),
        ("a b c d e f g h i j k l", 120, True),
        ("a b c d e f g h i j k l m n o", 120, True),
        ("a b c d e f g h i j k lacquer", 40, True),
        ("aa bb cc dd ee ff gg hh ii jj kk lacquer it", 40, False),
        ("aaa bbb ccc ddd eee fff ggg hhh iii jjj kkk lll mmm", 40, False),
        ('"Use" tar', 120, True),
        ("it was cut…", 120, False),
        ("a b c d e f g h i j k l m cut…", 120, True),
    ],
)
@pytest.mark.promise("recall.catalogue")
def test_of_an_outcome_the_first_twelve_words_or_all_are_enough(
    outcome: str,
    characters: int,
    enough: bool,  # noqa: FBT001 - a table
) -> None:
    kind = KINDS.by_name["decision"]
    light = record(kind, a_row("decision", uid("d"), outcome=outcome), local_dates(UTC))

    parts = parts_of(kind, light, Said(NOBODY), {}, (characters, 5))

    assert [part.enough for part in parts if part.name == "outcome"] == [enough]

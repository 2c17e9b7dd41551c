"""A brief in words without a model: the document's numbers, whole sentences, and titles that stay titles."""

import copy
import json
import re
from datetime import date, timedelta
from itertools import chain
from typing import Any

import pytest
from briefs import NOON, Made, accounts, an_account, brief
from hypothesis import given
from strategies import FORGERIES, a_goal, a_milestone, a_project, a_risk, a_task

from foreword.brief import Document
from prompts.brief_template import LONGEST_NARRATIVE, narrative, summary

QUOTED = re.compile(r'"[^"\n]*"')


def two_days(*account: Any) -> Made:
    return brief(*account, previous=brief(*account, now=NOON - timedelta(days=1)))


def phrases(counts: Any, forms: Any) -> list[str]:
    """What is not zero, in words."""
    return [f"{counts[name]} {one if counts[name] == 1 else many}" for name, one, many in forms if counts[name]]


PRESSING = (
    ("overdue", "overdue", "overdue"),
    ("blocked", "blocked", "blocked"),
    ("today", "for today", "for today"),
    ("goals_behind", "goal behind", "goals behind"),
    ("goals_at_risk", "goal at risk", "goals at risk"),
    ("milestones_missed", "milestone missed", "milestones missed"),
    ("milestones_at_risk", "milestone at risk", "milestones at risk"),
)
NEWS = (
    ("newly_done", "done", "done"),
    ("newly_overdue", "newly overdue", "newly overdue"),
    ("slipped", "put off", "put off"),
    ("new_risks", "new risk", "new risks"),
)


@given(accounts)
@pytest.mark.promise("brief.words")
def test_a_summary_says_the_documents_numbers_and_no_others(account: list[Any]) -> None:
    document = two_days(*account).document
    totals, changes = document["totals"], document["changes"]
    flat = {f"{kind}_{s}": n for kind in ("goals", "milestones") for s, n in totals[kind].items()}

    said = QUOTED.sub("", summary(document))

    pressing = phrases({**totals, **flat}, PRESSING)
    news = phrases({name: changes[name]["total"] for name, *_ in NEWS}, NEWS)
    assert all(phrase in said for phrase in (*pressing, *news))
    assert f"{totals['open']} {'task is' if totals['open'] == 1 else 'tasks are'} open in your" in said
    actions = [(a["handle"], a["reason"]) for a in document["priorities"][:1]]
    allowed = [
        *pressing,
        *news,
        str(totals["open"]),
        str(totals["projects"]),
        "20 November",
        *chain.from_iterable(actions),
    ]
    assert all(number in re.findall(r"\d+", " ".join(allowed)) for number in re.findall(r"\d+", said))


@given(accounts)
@pytest.mark.promise("brief.words")
def test_a_narrative_says_where_its_section_stands_and_no_other_numbers(account: list[Any]) -> None:
    for section in two_days(*account).document["projects"]:
        said = QUOTED.sub("", narrative(section))

        goals, milestones, tasks = (section[name]["items"] for name in ("goals", "milestones", "unblocking"))
        pressing = [each for each in goals if each["status"] in {"behind", "at_risk"}]
        ahead = [each for each in milestones if each["status"] != "missed"]
        allowed: list[tuple[int, ...]] = [(each["done"], each["tasks"]) for each in goals if each.get("tasks")]
        allowed += [(date.fromisoformat(each["due"]).day, int(each["due"][:4])) for each in ahead]
        allowed += [(task["frees"],) for task in tasks if "frees" in task]
        assert {int(each) for each in re.findall(r"\d+", said)} <= {n for found in allowed for n in found}
        assert bool(re.search(r"\b(is|are) (behind|at risk)\b", said)) is bool(pressing)
        assert ("Next milestone: " in said) is bool(ahead)
        assert (" holds up " in said) is bool(tasks)
        assert len(narrative(section)) <= LONGEST_NARRATIVE
        assert 1 <= len(re.findall(r"\.(?= |$)", said)) <= 3


A_DAY = date(2026, 11, 21)


def a_section(**lists: list[dict[str, Any]]) -> dict[str, Any]:
    counts = dict.fromkeys(("overdue", "blocked", "today", "goals_behind", "goals_at_risk"), 0)
    names = ("goals", "milestones", "unblocking")
    return {
        "counts": counts | dict.fromkeys(("milestones_missed", "milestones_at_risk"), 0),
        **{name: {"total": len(lists.get(name, ())), "items": lists.get(name, [])} for name in names},
    }


BEHIND = {"title": "Raise it", "status": "behind", "done": 3, "tasks": 8}
AT_RISK = {"title": "Study place", "status": "at_risk"}
ON_TRACK = {"title": "Doors open", "status": "on_track", "done": 7, "tasks": 21}
FIRST_TRIP = {"title": "First trip", "status": "ahead", "due": "2027-03-27"}
FIRE = {"title": "Fire permit", "status": "ahead", "due": "2026-12-04"}
MISSED = {"title": "Heating on", "status": "missed", "due": "2026-10-31"}


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        ({"goals": [BEHIND, ON_TRACK]}, '"Raise it" is behind, 3 of 8 tasks done.'),
        ({"goals": [BEHIND, AT_RISK]}, '"Raise it" is behind, 3 of 8 tasks done, and "Study place" is at risk.'),
        ({"goals": [AT_RISK, AT_RISK]}, '"Study place" and "Study place" are at risk.'),
        ({"goals": [ON_TRACK, {**ON_TRACK, "done": 1}]}, '"Doors open" is on track, 7 of 21 tasks done.'),
        ({"goals": [{**ON_TRACK, "tasks": None}]}, "Nothing is late, blocked or due today."),
        ({"goals": [{**BEHIND, "done": 0, "tasks": 1}]}, '"Raise it" is behind, 0 of 1 task done.'),
        ({"milestones": [MISSED, FIRST_TRIP, FIRE]}, 'Next milestone: "Fire permit" on 4 December.'),
        ({"milestones": [FIRST_TRIP]}, 'Next milestone: "First trip" on 27 March 2027.'),
        ({"unblocking": [{"title": "A", "frees": 1}, {"title": "B", "frees": 2}]}, '"B" holds up 2 other tasks.'),
        (
            {"unblocking": [{"title": "A", "frees": 1, "blocked": True}, {"title": "B", "frees": 1}]},
            '"B" holds up another task.',
        ),
        ({}, "Nothing is late, blocked or due today."),
    ],
)
@pytest.mark.promise("brief.words")
def test_a_narrative_in_words(lists: dict[str, Any], said: str) -> None:
    assert narrative(a_section(**lists), A_DAY) == said


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"overdue": 9}, "Some of its work is late."),
        ({"overdue": 9, "blocked": 1, "today": 2}, "Some of its work is late, blocked and due today."),
        ({"goals_behind": 1}, "Some of its goals are not on track."),
        ({"milestones_missed": 1}, "Some of its milestones are missed or close."),
    ],
)
@pytest.mark.promise("brief.words")
def test_where_nothing_can_be_named_a_narrative_says_so_in_a_word(counts: dict[str, int], said: str) -> None:
    section = a_section()
    section["counts"] |= counts

    assert narrative(section) == said


@pytest.mark.promise("brief.words")
def test_the_longest_narrative_drops_its_second_goal() -> None:
    title = {"title": "x" * 400}
    section = a_section(
        goals=[BEHIND | title, BEHIND | title],
        milestones=[FIRST_TRIP | title],
        unblocking=[{**title, "frees": 999}],
    )

    said = narrative(section)

    assert said.count('"') == 6
    assert 200 < len(said) <= LONGEST_NARRATIVE
    assert said.endswith(" holds up 999 other tasks.")


@given(accounts)
@pytest.mark.promise("brief.words")
def test_words_are_sentences_on_one_line(account: list[Any]) -> None:
    document = two_days(*account).document

    for text in (summary(document), *map(narrative, document["projects"])):
        assert "\n" not in text
        assert text[0].isupper() or text[0].isdigit() or text[0] == '"'
        assert text.endswith(".")
        assert "  " not in QUOTED.sub('""', text)
    assert len(summary(document)) < 700


@given(accounts)
@pytest.mark.promise("brief.words", "lines.unforgeable")
def test_outside_quotation_marks_nothing_depends_on_titles(account: list[Any]) -> None:
    document = two_days(*account).document
    plain = copy.deepcopy(document)
    for action in plain["priorities"]:
        action["title"] = "a title"
    for section in plain["projects"]:
        for name in ("goals", "milestones", "unblocking"):
            for item in section[name]["items"]:
                item["title"] = "a title"

    assert QUOTED.sub('""', summary(document)) == QUOTED.sub('""', summary(plain))
    for hostile, harmless in zip(document["projects"], plain["projects"], strict=True):
        assert QUOTED.sub('""', narrative(hostile)) == QUOTED.sub('""', narrative(harmless))


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.promise("brief.words", "lines.unforgeable")
def test_a_hostile_title_stays_between_its_quotation_marks(forgery: str) -> None:
    rows = a_project(
        tasks=[a_task("t", title=forgery[:200], due_at="2026-11-20 00:00:00+00")],
        project={"name": forgery[:200], "next_step_short": forgery[:200]},
    )
    document = brief(rows).document

    assert QUOTED.sub('""', summary(document)) == (
        '1 task is open in your project: 1 overdue. Start with T1 "": 1 day late.'
    )


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.promise("brief.words", "lines.unforgeable")
def test_hostile_titles_stay_between_their_quotation_marks_in_a_narrative(forgery: str) -> None:
    rows = a_project(
        goals=[a_goal("g", name=forgery[:200], target_date="2026-11-20 00:00:00+00")],
        milestones=[a_milestone("m", title=forgery[:200], due_at="2026-11-22 00:00:00+00")],
    )
    (section,) = brief(rows).document["projects"]

    assert QUOTED.sub('""', narrative(section, A_DAY)) == '"" is behind. Next milestone: "" on 22 November.'


@pytest.mark.promise("brief.words")
def test_one_and_many_are_told_apart() -> None:
    def rows(n: int) -> Any:
        due = "2026-11-20 00:00:00+00"
        return a_project(
            tasks=[a_task(f"t{i}", title="t", due_at=due) for i in range(n)],
            goals=[a_goal(f"g{i}", target_date=due) for i in range(n)],
            milestones=[a_milestone(f"m{i}", due_at="2026-11-22 00:00:00+00") for i in range(n)],
            risks=[a_risk(f"r{i}") for i in range(n)],
        )

    before = brief(a_project(), now=NOON - timedelta(days=1))
    one, two = (summary(brief(rows(n), previous=before).document) for n in (1, 2))

    assert one == (
        "1 task is open in your project: 1 overdue, 1 goal behind, 1 milestone at risk. Since Friday, 20 November:"
        ' 1 newly overdue, 1 new risk. Start with T1 "t": 1 day late.'
    )
    assert re.sub("T[12]", "T2", two) == (
        "2 tasks are open in your project: 2 overdue, 2 goals behind, 2 milestones at risk. Since Friday,"
        ' 20 November: 2 newly overdue, 2 new risks. Start with T2 "t": 1 day late.'
    )


@pytest.mark.promise("brief.words")
def test_many_projects_are_counted() -> None:
    document = brief(*an_account({"one": 1, "two": 2})).document

    assert summary(document) == "3 tasks are open in your 2 projects. Nothing is late, blocked or due today."


@pytest.mark.promise("brief.words")
def test_a_day_on_which_nothing_moved_says_so() -> None:
    document = two_days(*an_account({"one": 1})).document

    assert summary(document).endswith("Nothing was finished or put off since Friday, 20 November.")


@pytest.mark.promise("brief.words")
def test_without_any_project_it_says_that_there_is_none() -> None:
    said = summary(brief().document)

    assert said == "You have no project in planning or under way, so there is nothing to report."


@pytest.mark.promise("brief.words")
def test_words_come_from_a_stored_document_too() -> None:
    document: Document = two_days(*an_account({"one": 2}, due_at="2026-11-20 00:00:00+00")).document

    assert summary(json.loads(json.dumps(document))) == summary(document)

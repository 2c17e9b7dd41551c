"""The product's text, judged by the database: on the sample and on synthetic projects, hostile ones too."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.recall.builders import ours
from benchmarks.recall.facts import CATALOGUE, HELD_OUT, asked
from benchmarks.recall.judge import Reading, mark, score
from benchmarks.recall.measure import BUDGETS, measure, shuffled
from benchmarks.recall.stability import by_worth, kept_over
from benchmarks.recall.subjects import Rung, Subject, as_of_of, imported, rungs
from foreword.lines import fit
from foreword.tokens import count
from loaders.connection import Connection

HARBOUR = Path(__file__).parents[2] / "samples" / "harbour"
SMALL = (Rung(20), Rung(80, hostile=True), Rung(80, linked=0.0))


@pytest.fixture
def harbour(connection: Connection) -> dict[str, Subject]:
    found = imported(connection, HARBOUR, as_of_of(HARBOUR), held_out=False)
    return {subject.name.split(":")[0]: subject for subject in found}


@pytest.fixture
def ladder(connection: Connection) -> list[Subject]:
    return list(rungs(connection, SMALL))


def assert_honest(subject: Subject) -> None:
    """Nothing false, nothing over budget, the same again from rows in another order."""
    again = shuffled(subject.project)
    for budget in BUDGETS:
        text = ours(subject.project, budget)
        found = score(text, subject.asked, subject.truth)
        assert found.false == []
        assert count(text) <= budget
        assert text == ours(again, budget)
        # Where the project stands has no count, so that the smallest text may cut it in silence.
        uncounted = sum(not question.counted for question in subject.asked) / len(subject.asked)
        assert found.silent <= (uncounted if budget == BUDGETS[0] else 0)


def answers(subject: Subject, tokens: int) -> Mapping[str, tuple[int, int]]:
    """By question: the facts that the bundle says a text of so many tokens holds, and those of a whole answer."""
    found = subject.project.content.data["answers"]
    return {each["question"]: (sum(at <= tokens for at in each["at"]), each["facts"]) for each in found}


def assert_agrees(subject: Subject) -> None:
    """What the bundle says that it answers is what the judge finds in its text, by question."""
    content = subject.project.content
    for budget in (*BUDGETS, 333, 777, 2222):
        text = fit(content.lines, content.always, budget)
        # Titles may be borne by several, or lost when cut: here the question is not whom a reader takes them for.
        reading = Reading(text.text, subject.truth, subject.project.handles)
        marks = {m.name: (m.present, m.required) for m in (mark(q, reading) for q in subject.asked)}
        assert answers(subject, text.tokens) == marks


def test_the_sample_is_answered(harbour: dict[str, Subject]) -> None:
    library, boat = harbour["Net Loft Library"], harbour["Book boat to the islands"]
    for subject in (library, boat):
        assert len(subject.asked) == len(asked(CATALOGUE))
        assert_honest(subject)
        assert score(ours(subject.project, 1500), subject.asked, subject.truth).recall >= 0.95
    assert score(ours(library.project, 3000), library.asked, library.truth).whole == 1


def test_the_bundle_knows_what_it_answers(harbour: dict[str, Subject]) -> None:
    for subject in harbour.values():
        assert_agrees(subject)


def test_synthetic_projects_are_answered_honestly(ladder: list[Subject]) -> None:
    for subject in ladder:
        assert_honest(subject)
        assert_agrees(subject)


def test_the_scale_holds(harbour: dict[str, Subject]) -> None:
    subject = harbour["Net Loft Library"]
    found = measure(subject, budgets=(500, 1500))
    for at in found.at.values():
        assert at.scores.recall <= at.bound + 1e-6
        assert at.oracle <= at.bound + 1e-6
        assert not at.over
        assert not at.differs
        best = max(other[at.budget].recall for other in found.others.values())
        assert best < at.scores.recall
    assert found.t90 is not None
    reached = [
        score(ours(subject.project, b), subject.asked, subject.truth).recall for b in (found.t90 - 1, found.t90)
    ]
    assert reached[0] < 0.9 <= reached[1]


def test_questions_that_nobody_knows_can_be_asked(connection: Connection) -> None:
    for subject in imported(connection, HARBOUR, as_of_of(HARBOUR), held_out=True):
        assert len(subject.held_out) == len(asked(HELD_OUT))
        everything = "\n".join(subject.project.lines.values())
        assert score(everything, subject.held_out, subject.truth).false == []


def test_edits_keep_handles_and_lines(harbour: dict[str, Subject]) -> None:
    project = harbour["Book boat to the islands"].project
    kept = kept_over(project, edits=15)
    assert len(kept) == 15
    assert kept_over(shuffled(project), edits=15) == kept
    assert all(0 < each.ours <= 1 and 0 < each.by_worth <= 1 for each in kept)
    text, free = ours(project, 1500), by_worth(project, 1500)
    assert sorted(text.splitlines()) == sorted(free.splitlines())

"""What a prompt cache keeps of our text over a working day of edits, and what it would keep of the same lines in
the order of their worth.

Both texts hold the same lines, so the order of places costs no recall by construction: the other can only lose
what a line says by the heading that it stands under. ``recalls`` shows it on the rows before the first edit; after
an edit, the database is not asked again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from benchmarks.recall.builders import Project, ours
from benchmarks.recall.edits import prefix_tokens, replay
from benchmarks.recall.judge import score
from benchmarks.recall.subjects import Subject
from foreword.lines import DEFAULT_BUDGET, admitted
from foreword.rows import ProjectRows

LARGEST = 2000
"""Entities up to which a project's day is replayed: each edit is a build of the whole."""


@dataclass(frozen=True, slots=True)
class Kept:
    """After one edit of some kind: the share of our text that a cache keeps, and of the same lines by worth."""

    edit: str
    ours: float
    by_worth: float


def by_worth(project: Project, budget: int) -> str:
    """The lines of our text, each where it was first admitted: those worth most first."""
    content = project.content
    order: dict[int, str] = {}
    for line, _ in admitted(content.lines, content.always, budget):
        order[line.place] = line.text  # a line that says more stands where it said less
    return "".join(order.values())


def kept_over(project: Project, edits: int, seed: int = 1, budget: int = DEFAULT_BUDGET) -> list[Kept]:
    """Replay a day of ``edits`` edits. Whoever has a handle keeps it, as in the product."""
    found = []
    project = replace(project, rows=_in_order(project.rows))
    texts = ours(project, budget), by_worth(project, budget)
    for edit, rows in replay(project.rows, kinds=project.kinds, as_of=project.as_of, edits=edits, seed=seed):
        project = Project(rows, project.as_of, project.kinds, known=project.handles)
        now = ours(project, budget), by_worth(project, budget)
        found.append(Kept(edit, *(prefix_tokens(old, new) for old, new in zip(texts, now, strict=True))))
        texts = now
    return found


def _in_order(rows: ProjectRows) -> ProjectRows:
    """The rows by id: a database returns them in any order, and which of them an edit falls on depends on it."""
    return replace(
        rows,
        entities={kind: sorted(table, key=itemgetter(0)) for kind, table in rows.entities.items()},
        edges=sorted(rows.edges),
    )


def recalls(subject: Subject, budget: int = DEFAULT_BUDGET) -> tuple[float, float]:
    """Recall of our text, and of the same lines by worth."""
    ordered, free = (
        score(text, subject.asked, subject.truth).recall
        for text in (ours(subject.project, budget), by_worth(subject.project, budget))
    )
    return ordered, free


def fifth(shares: Sequence[float]) -> float:
    """The fifth percentile: what an edit that disturbs much leaves."""
    return sorted(shares)[len(shares) // 20]

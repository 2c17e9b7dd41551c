"""Measuring: our text and the yardsticks' at several budgets, on the scale of the oracle of the same project."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from benchmarks.recall.builders import ABLATIONS, OURS, YARDSTICKS, Builder, Project, ours
from benchmarks.recall.judge import Scores, score
from benchmarks.recall.oracle import Bound, Pieces, greedy, pieces_of
from benchmarks.recall.subjects import Subject
from foreword.lines import LARGEST_BUDGET, SMALLEST_BUDGET
from foreword.tokens import count

BUDGETS = (250, 500, 1000, 1500, 3000)

_OTHERS = {**YARDSTICKS, **ABLATIONS}

ENOUGH = 0.9
"""The recall that T90 asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """Our text at one budget, and what the oracle makes of the same.

    Attributes:
        scores: of our text. ``tokens``: what it counts.
        oracle, bound: recall of the clairvoyant greedy, and of its fractional relaxation.
        over: the text counts more than its budget.
        differs: rendered again from shuffled rows, it reads otherwise.
    """

    budget: int
    scores: Scores
    tokens: int
    oracle: float
    bound: float
    over: bool
    differs: bool

    @property
    def of_oracle(self) -> float:
        """Our share of what the clairvoyant greedy answers."""
        return self.scores.recall / self.oracle if self.oracle else 1.0

    @property
    def of_bound(self) -> float:
        """Our share of what no text can exceed."""
        return self.scores.recall / self.bound if self.bound else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One project.

    Attributes:
        entities, facts: how many it has, and how many answer the catalogue.
        at: by budget, our text.
        others: by builder and budget, scores of simpler texts: the yardsticks, the ablations.
        t90: the fewest tokens with ENOUGH recall; None where no budget has it.
    """

    name: str
    entities: int
    facts: int
    at: Mapping[int, At]
    others: Mapping[str, Mapping[int, Scores]]
    t90: int | None


def measure(subject: Subject, budgets: Sequence[int] = BUDGETS) -> Measured:
    """Measure one project."""
    project = subject.project
    pieces = pieces_of(subject.asked, subject.truth.titles, project.handles)
    bound, again = Bound(pieces), shuffled(project)
    return Measured(
        name=subject.name,
        entities=sum(map(len, project.rows.entities.values())),
        facts=sum(question.size for question in subject.asked),
        at={budget: _at(subject, budget, pieces, bound, again) for budget in budgets},
        others={
            name: {budget: _scores(subject, builder, budget) for budget in budgets}
            for name, builder in _OTHERS.items()
        },
        t90=fewest(subject),
    )


def _at(subject: Subject, budget: int, pieces: Pieces, bound: Bound, again: Project) -> At:
    text = ours(subject.project, budget)
    tokens = count(text)
    return At(
        budget=budget,
        scores=score(text, subject.asked, subject.truth),
        tokens=tokens,
        oracle=greedy(pieces, budget),
        bound=bound.at(budget),
        over=tokens > budget,
        differs=text != ours(again, budget),
    )


def _scores(subject: Subject, builder: Builder, budget: int) -> Scores:
    """The scores of a builder's text. A text that is larger than its budget is none."""
    text = builder(subject.project, budget)
    return score(text if count(text) <= budget else "", subject.asked, subject.truth)


def shuffled(project: Project, seed: int = 1) -> Project:
    """The same project as another run of the database might return it."""
    chance = Random(seed)
    rows = project.rows
    tables = [(name, chance.sample(table, len(table))) for name, table in rows.entities.items()]
    edges = chance.sample(rows.edges, len(rows.edges))
    mixed = replace(rows, entities=dict(chance.sample(tables, len(tables))), edges=edges)
    return replace(project, rows=mixed)


def fewest(subject: Subject) -> int | None:
    """T90. A larger budget never loses a line, so the budgets with enough recall are all above it."""
    budgets = range(SMALLEST_BUDGET, LARGEST_BUDGET + 1)
    place = bisect_left(
        budgets, True, key=lambda b: score(ours(subject.project, b), subject.asked, subject.truth).recall >= ENOUGH
    )
    return budgets[place] if place < len(budgets) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """Recall of question types that no builder knows, at one budget."""

    name: str
    budget: int
    ours: float
    others: Mapping[str, float]

    @property
    def best(self) -> tuple[str, float]:
        """The best of the yardsticks. An ablation is none."""
        return max(((name, self.others[name]) for name in YARDSTICKS), key=lambda found: found[1])


def measure_unseen(subject: Subject, budgets: Iterable[int] = (500, 1500, 3000)) -> list[Unseen]:
    """The held-out questions about one project."""
    held = replace(subject, asked=subject.held_out)
    return [
        Unseen(
            name=subject.name,
            budget=budget,
            ours=_scores(held, ours, budget).recall,
            others={name: _scores(held, builder, budget).recall for name, builder in _OTHERS.items()},
        )
        for budget in budgets
        if held.asked
    ]


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over projects, and where it lies with 95 % confidence."""

    mean: float
    low: float
    high: float


RESAMPLES = 2000


def mean_of(values: Sequence[float], seed: int = 1) -> Mean:
    """The mean of some projects, and the middle 95 % of the means of as many drawn from them at random."""
    chance, size = Random(seed), len(values)
    means = sorted(sum(chance.choices(values, k=size)) / size for _ in range(RESAMPLES))
    return Mean(sum(values) / size, means[RESAMPLES // 40], means[-1 - RESAMPLES // 40])


Curve = Mapping[str, Sequence[tuple[int, float]]]
"""By builder: (budget, mean recall over projects)."""


def curve_of(subjects: Sequence[Subject], budgets: Sequence[int]) -> Curve:
    """Recall against budget: ours, the yardsticks, the oracle, the bound."""
    found: dict[str, list[dict[int, float]]] = {}
    for subject in subjects:
        for name, recalls in _recalls(subject, budgets).items():
            found.setdefault(name, []).append(recalls)
    return {
        name: [(budget, sum(each[budget] for each in projects) / len(projects)) for budget in budgets]
        for name, projects in found.items()
    }


def _recalls(subject: Subject, budgets: Sequence[int]) -> dict[str, dict[int, float]]:
    pieces = pieces_of(subject.asked, subject.truth.titles, subject.project.handles)
    bound = Bound(pieces)
    builders = {OURS: ours, **_OTHERS}
    return {
        "bound": {budget: bound.at(budget) for budget in budgets},
        "oracle": {budget: greedy(pieces, budget) for budget in budgets},
        **{
            name: {budget: _scores(subject, builder, budget).recall for budget in budgets}
            for name, builder in builders.items()
        },
    }

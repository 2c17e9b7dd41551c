"""Why a bundle's text is what it is: for every line why it stands there, for every entity left out why it does
not.

Drawn from the same page that a build publishes, so that replaying an explanation gives the bundle's own text
(``replay``). Nothing of this is stored: it is worked out when somebody asks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from foreword.draft import Draft
from foreword.graph import MAX_DEPTH
from foreword.kinds import Kind
from foreword.light import label, record
from foreword.lines import LARGEST_BUDGET, SMALLEST_BUDGET, Line, admitted, check_budget, fit
from foreword.page import Page
from foreword.questions import thresholds
from foreword.rows import Row
from foreword.scoring import terms

BUDGET, CAP, FINISHED, UNLINKED, ORPHAN = "budget", "cap", "finished", "unlinked", "orphan"
"""Why an entity is left out: it comes later than the budget reaches; so many others of its kind matter more
that no budget shows it; and of those, it is finished, not linked to the project, or linked to nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """A line, and why it is admitted when it is.

    Attributes:
        place, heading, tokens, text: as in ``foreword.lines.Line``, the text without its end.
        is_heading: whether it is admitted only with the first line below it.
        cost: tokens that it adds to the text; ``total`` is what the text counts then.
        section: the plural of its kind, or project, or counts.
        entity, handle: whose line it is, if an entity's.
        rule: always, answers, view (``foreword.writer``).
        facts: by question, how many of its facts come to be in the text with this line.
        score, terms: how much its entity matters, and the points of which that is the sum.
    """

    place: int
    heading: int | None
    tokens: int
    text: str
    is_heading: bool
    cost: int
    total: int
    section: str
    entity: str | None
    handle: str | None
    rule: str
    facts: Mapping[str, int]
    score: int | None
    terms: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An entity of which the text has no line, and why not: a reason and its detail in words."""

    entity: str
    handle: str | None
    kind: str
    title: str
    reason: str
    detail: str
    score: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A question of the catalogue: of ``facts``, one more is in the text from each total in ``at`` on."""

    id: str
    asks: str
    facts: int
    at: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything about one bundle's text at one budget.

    Attributes:
        budget: of the text that is explained. The first ``always`` of ``steps`` are printed at any.
        steps: lines in order of admission, up to LARGEST_BUDGET.
        left_out: entities that the text at ``budget`` does not show, those that matter most first.
        questions: the catalogue.
    """

    budget: int
    always: int
    steps: Sequence[Why]
    left_out: Sequence[LeftOut]
    questions: Sequence[Answer]


def explain(draft: Draft, page: Page, handles: Mapping[str, str], budget: int) -> Explanation:
    """Explain the text of a page at a budget.

    Raises:
        BadBudget: ``budget`` is below SMALLEST_BUDGET.
    """
    check_budget(budget)
    steps = _steps(draft, page, handles)
    first = {why.entity: why.total for why in reversed(steps) if why.entity is not None}
    shown = {entity for entity, total in first.items() if total <= budget}
    return Explanation(
        budget=budget,
        always=page.always,
        steps=steps,
        left_out=_left_out(draft, handles, shown, first, budget),
        questions=[
            Answer(id=asked.name, asks=asked.words, facts=asked.size, at=page.answers[asked.name])
            for asked in page.questions
        ],
    )


def replay(explanation: Explanation, budget: int | None = None) -> str:
    """The text that an explanation explains; at another budget where one is given."""
    lines = [Line(why.place, why.heading, why.tokens, f"{why.text}\n") for why in explanation.steps]
    return fit(lines, explanation.always, budget or explanation.budget).text


def as_json(explanation: Explanation) -> dict[str, object]:
    """JSON-ready."""
    return {
        "budget": explanation.budget,
        "smallest": SMALLEST_BUDGET,
        "largest": LARGEST_BUDGET,
        "always": explanation.always,
        "steps": [asdict(why) for why in explanation.steps],
        "questions": [asdict(answer) for answer in explanation.questions],
        "left_out": [asdict(entity) for entity in explanation.left_out],
        "left_out_total": len(explanation.left_out),
    }


def _steps(draft: Draft, page: Page, handles: Mapping[str, str]) -> list[Why]:
    lines = page.lines
    totals = {id(line): total for line, total in admitted(lines, len(lines), 0)}
    # Which of the steps brings each fact: as thresholds, of steps instead of tokens.
    gained = thresholds(page.questions, ((n, step.keys) for n, step in enumerate(page.steps)))
    found, before = [], 0
    for number, step in enumerate(page.steps):
        line = step.line
        total = totals[id(line)]
        heading = line.heading == line.place
        entity = step.entity
        found.append(
            Why(
                place=line.place,
                heading=line.heading,
                tokens=line.tokens,
                text=line.text.removesuffix("\n"),
                is_heading=heading,
                # A heading is paid for with the line that needs it, which is the next.
                cost=0 if heading else total - before,
                total=total,
                section=_section(draft, line, entity),
                entity=entity,
                handle=handles.get(entity) if entity else None,
                rule=step.rule,
                facts={name: at.count(number) for name, at in gained.items() if number in at},
                score=draft.scores.get(entity) if entity else None,
                terms=_terms(draft, entity) if entity else {},
            )
        )
        before = before if heading else total
    return found


def _section(draft: Draft, line: Line, entity: str | None) -> str:
    if entity is not None:
        return draft.by_id[entity][0].plural
    if line.heading == line.place:
        return line.text.removeprefix("## ").strip()
    return "project" if line.place < 1 << 30 else "counts"


def _terms(draft: Draft, entity: str) -> dict[str, int]:
    kind, row = draft.by_id[entity]
    return terms(kind, row, draft.buckets)


def _left_out(
    draft: Draft, handles: Mapping[str, str], shown: set[str], first: Mapping[str, int], budget: int
) -> list[LeftOut]:
    found = []
    for kind in draft.kinds.entities:
        for row in draft.rows.entities.get(kind.name, ()):
            entity = row[0]
            if entity in shown:
                continue
            reason, detail = _reason(draft, kind, row, first.get(entity), budget)
            known = draft.by_id.get(entity, (kind, row))[1]
            found.append(
                LeftOut(
                    entity=entity,
                    handle=handles.get(entity),
                    kind=kind.name,
                    title=label(kind, record(kind, known, draft.local_date)),
                    reason=reason,
                    detail=detail,
                    score=sum(terms(kind, row, draft.buckets).values()),
                )
            )
    return sorted(found, key=lambda left: (-left.score, left.entity))


def _reason(draft: Draft, kind: Kind, row: Row, total: int | None, budget: int) -> tuple[str, str]:
    """Why a text of ``budget`` tokens has no line of a row; ``total`` is the budget from which it has one."""
    if total is not None:
        return BUDGET, f"in the text from {total} tokens on; this one has {budget}"
    links = ", linked to nothing" if row[0] not in draft.graph.linked else ""
    if "state_key" in kind.at and kind.is_finished(row[kind.at["state_key"]]):
        return FINISHED, f"{row[kind.at['state_key']]}, and no budget reaches that far{links}"
    if links:
        return ORPHAN, f"linked to nothing, and others of its kind matter more ({kind.plural} by score)"
    if row[0] not in draft.graph.direct:
        far = "" if row[0] in draft.graph.reachable else f", nor within {MAX_DEPTH} steps of it"
        return UNLINKED, f"not linked to the project{far}, and others of its kind matter more"
    return CAP, "others of its kind matter more: their lines take all that the largest budget holds"

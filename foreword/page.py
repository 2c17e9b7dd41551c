"""The text of a project's bundle: which lines there are, where they stand, which come first.

Sections run from what rarely changes to what often does; inside one, lines stand in handle order, so that an
edit disturbs as little of the text's beginning as possible. What every edit moves, the counts, stands at the end,
and the as-of date alone on the last line. The counts say how many there are of everything, whatever part of it
fits.

A line may be admitted with what is asked of it, and replaced later by itself with more in it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain

from foreword.draft import Draft
from foreword.kinds import Kind
from foreword.light import WAITS, Record, record
from foreword.lines import LARGEST_BUDGET, Line, admitted
from foreword.questions import MOST_TIED, Asked, Fact, Key, answerable, thresholds
from foreword.selection import Offer, by_worth, reserved, reserving
from foreword.sheets import BRIEF, Sheets, section_of
from foreword.standing import COUNTS, always, options, overview, owner
from foreword.text import clean
from foreword.tokens import Counter
from foreword.writer import ANSWERS, VIEW, Option, Step, Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Steps in order of rank; the first ``always`` are printed at any budget.

    Attributes:
        questions: the catalogue, as far as the rows hold answers.
        answers: by question, the totals of tokens from which one more of its facts is there.
    """

    steps: Sequence[Step]
    always: int
    overview: Line
    questions: Sequence[Asked]
    answers: Mapping[str, Sequence[int]]

    @property
    def lines(self) -> list[Line]:
        """The steps' lines."""
        return [step.line for step in self.steps]


def page(draft: Draft, lights: Mapping[str, Record], handles: Mapping[str, str], count: Counter) -> Page:
    """Every line that any budget up to LARGEST_BUDGET can show, counted."""
    write = Writer(count)
    project = record(draft.kinds.project, draft.rows.project, draft.local_date)
    questions = _answerable(draft, {**lights, draft.rows.project_id: project})
    first = always(draft, project, write)
    admission = _Admission(first, lambda kind: write.heading(section_of(kind, draft), kind.plural), draft)
    sheets = Sheets(draft, lights, handles, write)
    _admit(draft, questions, sheets, options(draft, project, handles, write), admission)
    return Page(
        steps=admission.steps,
        always=len(first),
        overview=overview(draft, project, handles[draft.rows.project_id], write),
        questions=questions,
        answers=thresholds(questions, reached(admission.steps)),
    )


def reached(steps: Sequence[Step]) -> Iterator[tuple[int, Sequence[Key]]]:
    """The total that the text counts once each step is there, and the keys that come with it."""
    keys = {id(step.line): step.keys for step in steps}
    for line, tokens in admitted([step.line for step in steps], len(steps), 0):
        yield tokens, keys[id(line)]


def _answerable(draft: Draft, lights: Mapping[str, Record]) -> list[Asked]:
    """The draft's questions, without facts that the rows turn out not to hold."""

    def has(key: Key) -> bool:
        entity, part = key
        light = lights.get(entity)
        return light is None or part not in draft.by_id[entity][0].at or bool(clean(str(light.get(part, ""))))

    return [answerable(question, has) for question in draft.questions]


class _Admission:
    """Steps in order of rank, each heading before what first needs it, until LARGEST_BUDGET is spent.

    Counting what no budget can show would be most of the work of a large project.
    """

    def __init__(self, first: Iterable[Step], heading: Callable[[Kind], Line], draft: Draft) -> None:
        self.steps: list[Step] = []
        self.keys: set[Key] = set()
        self._heading = heading
        self._draft = draft
        self._tokens: dict[int, int] = {}
        self.used = 0
        for step in first:
            self.add(step)

    @property
    def full(self) -> bool:
        """Whether no budget shows more."""
        return self.used > LARGEST_BUDGET

    def cost(self, line: Line) -> int:
        """Tokens that a line adds to what stands at its place."""
        return line.tokens - self.standing(line.place)

    def standing(self, place: int) -> int:
        """Tokens of the line that stands at a place, if there is one."""
        return self._tokens.get(place, 0)

    def add(self, step: Step) -> tuple[int, bool]:
        """Admit a step, if it says more than what stands at its place: the tokens it takes, and whether for a
        view.
        """
        line = step.line
        cost = self.cost(line)
        if cost <= 0:
            return 0, False
        self.keys.update(step.keys)
        if line.heading is not None and line.heading not in self._tokens:
            heading = self._heading(self._draft.by_id[str(step.entity)][0])
            self.steps.append(Step(heading, step.rule))
            self._tokens[line.heading] = heading.tokens
            cost += heading.tokens
        self.steps.append(step)
        self._tokens[line.place] = line.tokens
        self.used += cost
        return cost, step.rule == VIEW


def _admit(
    draft: Draft, questions: Sequence[Asked], sheets: Sheets, ours: Sequence[Option], admission: _Admission
) -> None:
    """Admit lines, those worth most per token first, until no budget shows more; then the rest of the view."""
    demand = _Demand.of(_weighted(questions, sheets.title, draft), draft, admission.keys)
    told = {option.name: option for option in ours}
    offers = [demand.offer(option, admission.cost) for option in ours]
    for entity in dict.fromkeys((*demand.parts, *draft.views)):
        if entity in draft.near:
            parts = demand.parts.get(entity)
            asked = 0 if parts is None else sheets.tokens(entity, parts)
            whole = sheets.tokens(entity, BRIEF | (parts or frozenset()))
            offers.append(demand.line(entity, asked, whole, draft.views.get(entity, 0.0)))

    def admit(item: tuple[str, bool]) -> tuple[int, bool]:
        """A line as asked, or whole. What answers a question does so whichever comes first."""
        name, whole = item
        asked = demand.parts.get(name)
        if name in told:
            place = told[name].whole.line.place
            rule = ANSWERS if told[name].asked is not None and not admission.standing(place) else VIEW
            step = told[name].admitted(whole=whole)
            return admission.add(step._replace(rule=rule if whole else ANSWERS))
        rule = VIEW if whole and (asked is None or admission.standing(sheets.place(name))) else ANSWERS
        return line(name, (asked or set()) | BRIEF if whole else asked, rule)

    def line(entity: str, parts: AbstractSet[str] | None, rule: str) -> tuple[int, bool]:
        if sheets.tokens(entity, parts) <= admission.standing(sheets.place(entity)):
            return 0, False  # most have been said by then: spares the making of their text
        return admission.add(sheets.step(entity, parts, rule))

    share = reserved(admission.used + sum(offer.asked for offer in offers))
    views = chain(draft.views, (name for name in told if name.startswith(COUNTS)))
    order = reserving(by_worth(offers), ((name, True) for name in views), share, admit, admission.used)
    rest = (line(entity, None, VIEW) for entity in draft.view)
    for _ in chain(order, rest):
        if admission.full:
            return


@dataclass(frozen=True, slots=True)
class _Demand:
    """What is asked of whom: parts by owner, weights of facts that one line answers, and of those that take
    two.
    """

    parts: dict[str, set[str]]
    alone: dict[str, float]
    pairs: dict[str, list[tuple[str, float]]]

    @classmethod
    def of(cls, facts: Iterable[tuple[Fact, float]], draft: Draft, have: set[Key]) -> "_Demand":
        """Sum up weighted facts, without those that are always there."""
        demand = cls({}, {}, {})
        near, known = draft.near.keys() | {draft.rows.project_id}, draft.graph.kind_of
        for fact, weight in facts:
            if have.issuperset(fact) or any(whose in known and whose not in near for whose, _ in fact):
                continue  # said already, or of somebody beyond the candidates
            owners = [whose if whose in draft.near else owner((whose, part)) for whose, part in fact]
            for name, (_, part) in zip(owners, fact, strict=True):
                # That a line lists another entity is its part WAITS.
                demand.parts.setdefault(name, set()).add(WAITS if part in draft.near else part)
            other = next((name for name in owners if name != owners[0]), None)
            if other is None:
                demand.alone[owners[0]] = demand.alone.get(owners[0], 0.0) + weight
            else:
                demand.pairs.setdefault(owners[0], []).append((other, weight))
        return demand

    def offer(self, option: Option, cost: Callable[[Line], int]) -> Offer:
        """What a line of ours costs, beyond what stands there, and is worth."""
        asked = cost(option.asked.line) if option.asked is not None else 0
        return self.line(option.name, asked, cost(option.whole.line), option.view)

    def line(self, name: str, asked: int, whole: int, view: float) -> Offer:
        """What a line is worth that costs ``asked`` tokens, or ``whole``."""
        return Offer(name, asked, whole, self.alone.get(name, 0.0), view, self.pairs.get(name, ()))


def _weighted(
    questions: Iterable[Asked], tokens: Callable[[str], int], draft: Draft
) -> Iterator[tuple[Fact, float]]:
    """Facts that a text should hold, each with its share of its question. Of those that share a top list's last
    places, the ones with the shortest lines.
    """
    for question in questions:
        weight = 1 / max(question.size, 1)
        tied = [facts for facts in question.tied[:MOST_TIED] if facts and facts[0][0][0] in draft.near]
        tied.sort(key=lambda facts: tokens(facts[0][0][0]))
        for facts in (question.required, *tied[: question.places]):
            for fact in facts:
                yield fact, weight

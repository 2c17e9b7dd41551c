"""The text of a project's bundle: which lines there are, where they stand, which come first.

Sections run from what rarely changes to what often does; inside one, lines stand in handle order, so that an
edit disturbs as little of the text's beginning as possible. What every edit moves, the counts, stands at the end,
and the as-of date alone on the last line. The counts say how many there are of everything, whatever part of it
fits.

A line may be admitted with what is asked of it, and replaced later by itself with more in it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from foreword.draft import Draft
from foreword.kinds import Kind
from foreword.light import WAITS, Record, record
from foreword.lines import LARGEST_BUDGET, Line
from foreword.questions import MOST_TIED, Asked, Fact, Key, answerable, asked_keys, thresholds
from foreword.selection import Offer, by_worth, reserved, reserving
from foreword.sheets import BRIEF, Form, Sheets, section_of
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
    asked = asked_keys(draft.questions)
    first = always(draft, project, asked, write)
    admission = _Admission(first, lambda kind: write.heading(section_of(kind, draft), kind.plural), draft)
    sheets = Sheets(draft, lights, handles, write)
    _admit(draft, questions, sheets, options(draft, project, asked, handles, write), admission)
    return Page(
        steps=admission.steps,
        always=len(first),
        overview=overview(draft, project, handles[draft.rows.project_id], write),
        questions=questions,
        answers=thresholds(questions, admission.reached),
    )


def _answerable(draft: Draft, lights: Mapping[str, Record]) -> list[Asked]:
    """The draft's questions, without facts that the rows turn out not to hold."""

    def has(fact: Fact) -> bool:
        if fact[0][0] not in lights:
            return True  # of nobody here, as most facts of a large project
        for entity, part in fact:
            light = lights.get(entity)
            if light is not None and part in draft.by_id[entity][0].at and not clean(str(light.get(part, ""))):
                return False
        return True

    return [answerable(question, has) for question in draft.questions]


class _Admission:
    """Steps in order of rank, each heading before what first needs it, until LARGEST_BUDGET is spent.

    Counting what no budget can show would be most of the work of a large project.

    Attributes:
        used: the tokens of the text that all of them make.
        reached: with each step, the total that the text then counts, and the keys that come with it.
    """

    def __init__(self, first: Iterable[Step], heading: Callable[[Kind], Line], draft: Draft) -> None:
        self.steps: list[Step] = []
        self.reached: list[tuple[int, Sequence[Key]]] = []
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
        if line.heading is not None and line.heading not in self._tokens:
            heading = self._heading(self._draft.by_id[str(step.entity)][0])
            self.steps.append(Step(heading, step.rule))
            self._tokens[line.heading] = heading.tokens
            cost += heading.tokens
        self.steps.append(step)
        self._tokens[line.place] = line.tokens
        self.used += cost
        self.reached.append((self.used, step.keys))
        return cost, step.rule == VIEW


class _Forms(NamedTuple):
    """An entity's line with what is asked of it, if anything is, and with what the general view shows, too."""

    asked: Form | None
    whole: Form

    @classmethod
    def of(cls, entity: str, parts: AbstractSet[str] | None, sheets: Sheets) -> "_Forms":
        """Both, of an entity of which ``parts`` are asked."""
        if parts is None:
            return cls(None, sheets.form(entity, BRIEF))
        return cls(sheets.form(entity, parts), sheets.form(entity, BRIEF | parts))


def _admit(
    draft: Draft, questions: Sequence[Asked], sheets: Sheets, ours: Sequence[Option], admission: _Admission
) -> None:
    """Admit lines, those worth most per token first, until no budget shows more; then the rest of the view."""
    have = {key for _, keys in admission.reached for key in keys}
    demand = _Demand.of(_weighted(questions, sheets.title, draft), draft, have)
    told = {option.name: option for option in ours}
    forms = {
        entity: _Forms.of(entity, demand.parts.get(entity), sheets)
        for entity in dict.fromkeys((*demand.parts, *draft.views))
        if entity in draft.near
    }
    offers = [demand.offer(option, admission.cost) for option in ours]
    for entity, (asked, whole) in forms.items():
        view = draft.views.get(entity, 0.0)
        offers.append(demand.line(entity, 0 if asked is None else asked.tokens, whole.tokens, view))

    def admit(item: tuple[str, bool]) -> tuple[int, bool]:
        """A line as asked, or whole. What answers a question does so whichever comes first."""
        name, whole = item
        if name in told:
            place = told[name].whole.line.place
            rule = ANSWERS if told[name].asked is not None and not admission.standing(place) else VIEW
            step = told[name].admitted(whole=whole)
            return admission.add(step._replace(rule=rule if whole else ANSWERS))
        asked, brief = forms[name]
        if asked is not None and not whole:
            return line(asked, ANSWERS)
        return line(brief, VIEW if asked is None or admission.standing(brief.place) else ANSWERS)

    def line(form: Form, rule: str) -> tuple[int, bool]:
        if form.tokens <= admission.standing(form.place):
            return 0, False  # most have been said by then: spares the making of their text
        return admission.add(form.step(rule))

    share = reserved(admission.used + sum(offer.asked for offer in offers))
    views = chain(draft.views, (name for name in told if name.startswith(COUNTS)))
    order = reserving(by_worth(offers), ((name, True) for name in views), share, admit, admission.used)
    rest = (line(sheets.form(entity, None), VIEW) for entity in draft.view)
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
        demand = cls(defaultdict(set), defaultdict(float), defaultdict(list))
        near = draft.near
        within = {*near, draft.rows.project_id, *draft.kinds.by_name, ""}
        for fact, weight in facts:
            if not within.issuperset([whose for whose, _ in fact]) or have.issuperset(fact):
                continue  # of somebody beyond the candidates, as most of a large project; or said already
            owners = [whose if whose in near else owner((whose, part)) for whose, part in fact]
            for name, (_, part) in zip(owners, fact, strict=True):
                # That a line lists another entity is its part WAITS.
                demand.parts[name].add(WAITS if part in near else part)
            other = next((name for name in owners if name != owners[0]), None)
            if other is None:
                demand.alone[owners[0]] += weight
            else:
                demand.pairs[owners[0]].append((other, weight))
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

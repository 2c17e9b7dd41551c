"""What people ask about a project: the catalogue that selection serves, and what answers each question.

An answer is facts; a fact is in a text when all its keys are. A key is (id, part): that the line of an entity is
there (``HERE``), that a part of it is (a light field, or one of ``foreword.light``), that it lists another entity
(the part is the other's id); or (kind, count), with no kind for what is counted over all of them. Everything is
drawn from the buckets, so that what a bundle answers and what a brief says are the same.

Pure: it knows rows and buckets, no text and no budget. Source: specification of recall, "Questions and their
facts".
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from math import isnan
from typing import Any, NamedTuple

from foreword.buckets import Buckets
from foreword.graph import Graph
from foreword.kinds import PROJECT, Registry
from foreword.rows import ProjectRows, Row
from foreword.text import clean

MOST_CANDIDATES, ALL_CANDIDATES = 40, 100
"""Entities considered for one question, and for all of them, the most important first. LARGEST_BUDGET holds
some 150 lines.
"""

Key = tuple[str, str]
Fact = tuple[Key, ...]

HERE = ""
"""The part of a line that names its entity."""

TOTAL, DIRECT, UNLINKED = "total", "direct", "unlinked"
"""Counts of a kind that coverage gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question about one project.

    Attributes:
        name, words: what it is called, and how a person puts it.
        required: facts that must all be there, the more important first. The count of the whole set is the first.
        places, tied: a top list's last places that several share: any of the candidates may fill one. A candidate
            is its facts.
    """

    name: str
    words: str
    required: Sequence[Fact]
    places: int = 0
    tied: Sequence[Sequence[Fact]] = ()

    @property
    def size(self) -> int:
        """The facts of a whole answer."""
        return len(self.required) + sum(sorted(map(len, self.tied))[: self.places])


class Standing(NamedTuple):
    """What the answers are drawn from. ``score`` says how much an entity matters, for the order of equals."""

    rows: ProjectRows
    graph: Graph
    buckets: Buckets
    kinds: Registry
    score: Callable[[str], int]

    def column(self, kind: str, name: str, ids: Iterable[str]) -> dict[str, Any]:
        """The cells of one column, by id."""
        wanted = frozenset(ids)
        declared = self.kinds.by_name.get(kind)
        if not wanted or declared is None or name not in declared.at:
            return {}
        at = declared.at[name]
        return {row[0]: row[at] for row in self.of(kind) if row[0] in wanted}

    def of(self, kind: str) -> Sequence[Row]:
        """The rows of a kind; none where the database has no table for it."""
        return self.rows.entities.get(kind, ())

    def has(self, kind: str) -> bool:
        """Whether the database keeps this kind."""
        return kind in self.kinds.by_name and kind not in self.rows.absent

    def among(self, kind: str, bucket: frozenset[str]) -> list[str]:
        """Ids of a bucket that are of ``kind``."""
        kind_of = self.graph.kind_of
        return [i for i in bucket if kind_of[i] == kind]

    def first(self, ids: Iterable[str]) -> list[str]:
        """The same ids, those first that matter most, as far as anybody looks."""
        return _first((-self.score(i), i) for i in ids)


def asked(standing: Standing) -> list[Asked]:
    """The catalogue, answered for one project. A question about a kind that the database does not keep is none."""
    return [question for rule in _RULES for question in rule(standing)]


def _blocked(s: Standing) -> Iterable[Asked]:
    if not s.has("task"):
        return
    facts: list[Fact] = [(("task", "blocked"),)]
    for task in s.first(s.buckets.blocked):
        facts.append(((task, "blocked"),))
        facts += [_pair(task, whom) for whom in s.buckets.waits_for.get(task, ())]
    yield Asked(name="Q1", words="What is blocked?", required=facts)


def _pair(who: str, whom: str) -> Fact:
    """That one waits for the other: listed in its line, and there to be looked up."""
    return (who, whom), (whom, HERE)


def _overdue(s: Standing) -> Iterable[Asked]:
    if not s.has("task"):
        return
    late = _first((s.buckets.due[i], -s.score(i), i) for i in s.among("task", s.buckets.overdue))
    yield Asked(
        name="Q2",
        words="What is overdue?",
        required=[(("task", "overdue"),), *(((task, "due_at"),) for task in late)],
    )


_IMPACT = {"low": 1, "medium": 2, "high": 3, "critical": 4}


def exposure(impact: object, probability: object, unknown: float = 0.5) -> float:
    """Impact times probability of a risk; what is not known counts as the middle, or as no impact."""
    try:
        chance = float(probability)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        chance = unknown
    points = _IMPACT.get(str(impact), 0) * (unknown if isnan(chance) else min(max(chance, 0.0), 1.0))
    return round(points, 9)  # three times 0.3 and once 0.9 are equals


def _risks(s: Standing) -> Iterable[Asked]:
    if not s.has("risk"):
        return
    live = list(s.buckets.open_of["risk"])
    impacts, chances = s.column("risk", "impact", live), s.column("risk", "probability", live)
    top = _top(s, live, 5, lambda i: -exposure(impacts.get(i), chances.get(i)))
    yield _asked(
        "Q3",
        "Which are the top risks?",
        ("risk", "open"),
        top,
        lambda i: [
            ((i, part),)
            for part, cells in (("impact", impacts), ("probability", chances))
            if cells.get(i) is not None
        ],
    )


def _idle(s: Standing) -> Iterable[Asked]:
    if not s.has("goal"):
        return
    facts: list[Fact] = [(("goal", "idle"),)]
    facts += [((goal, "idle"),) for goal in s.first(s.buckets.idle)]
    yield Asked(name="Q4", words="Which goals have nothing working towards them?", required=facts)


def _changed(s: Standing) -> Iterable[Asked]:
    facts: list[Fact] = [(("", "changed"),)]
    for kind in s.kinds.entities:
        ids = s.first(s.among(kind.name, s.buckets.changed))
        states = s.column(kind.name, "state_key", ids)
        for entity in ids:
            stated = ((entity, "state_key"),) if clean(str(states.get(entity) or "")) else ()
            facts.append(((entity, "changed"), *stated))
    yield Asked(name="Q5", words="What changed since yesterday?", required=facts)


def _waited_for(s: Standing) -> Iterable[Asked]:
    needed_by = s.buckets.needed_by
    yield _asked(
        "Q6",
        "What waits for what?",
        ("", "needed"),
        _top(s, list(needed_by), 5, lambda i: -len(needed_by[i])),
        lambda i: [((i, "needed_by"),), *(_pair(who, i) for who in needed_by[i])],
    )


def _next(s: Standing) -> Iterable[Asked]:
    if not s.has("task"):
        return
    top = _top(s, list(s.buckets.ready), 5, s.buckets.due.__getitem__)
    states = s.column("task", "state_key", chain(top.sure, top.tied))
    yield _asked(
        "Q7",
        "What is next?",
        ("task", "ready"),
        top,
        lambda i: [((i, "due_at"),), *([((i, "state_key"),)] if states.get(i) else [])],
    )


def _milestones(s: Standing) -> Iterable[Asked]:
    if not s.has("milestone"):
        return
    yield _asked(
        "Q8",
        "Which milestones come up?",
        ("milestone", "upcoming"),
        _top(s, list(s.buckets.upcoming), 3, s.buckets.due.__getitem__),
        lambda i: [((i, "due_at"),)],
    )


def _progress(s: Standing) -> Iterable[Asked]:
    if not s.has("goal"):
        return
    facts: list[Fact] = [(("goal", "measured"),)]
    facts += [((goal, "progress"),) for goal in s.first(s.buckets.measured)]
    yield Asked(name="Q9", words="How far are the goals?", required=facts)


def _decided(s: Standing) -> Iterable[Asked]:
    if not s.has("decision"):
        return
    dated = s.among("decision", s.buckets.happened)
    when = s.column("decision", "decision_at", dated)
    yield _asked(
        "Q10",
        "What was decided last?",
        ("decision", "happened"),
        _top(s, dated, 3, when.__getitem__, highest=True),
        lambda i: [((i, "decision_at"),), ((i, "outcome"),)],
    )


def _standing(s: Standing) -> Iterable[Asked]:
    project, at = s.rows.project, s.kinds.project.at
    parts = ("state_key", "facet_stage", "next_step_short", "start_at", "end_at")
    facts: list[Fact] = [((project[0], part),) for part in parts if part in at and project[at[part]]]
    if facts:
        yield Asked(name="Q11", words="Where does the project stand?", required=facts)


def _coverage(s: Standing) -> Iterable[Asked]:
    facts: list[Fact] = [(("", UNLINKED),)]
    facts += [
        ((kind.name, count),)
        for kind in s.kinds.entities
        if s.has(kind.name)
        for count in (TOTAL, DIRECT, UNLINKED)
    ]
    yield Asked(name="Q12", words="What is not connected?", required=facts)


class Top(NamedTuple):
    """The best few: those that are sure, and those that share the last places."""

    sure: Sequence[str]
    places: int
    tied: Sequence[str]


def _top(s: Standing, ids: Sequence[str], limit: int, key: Callable[[str], Any], *, highest: bool = False) -> Top:
    """The first ``limit`` of ``ids`` by ``key``, lowest or highest first."""
    keys = {i: key(i) for i in ids}
    last = (heapq.nlargest if highest else heapq.nsmallest)(limit, keys.values())[-1:]
    sure = [i for i in ids if last and (keys[i] > last[0] if highest else keys[i] < last[0])]
    tied = s.first(i for i in ids if keys[i] == last[0])
    sure = sorted(s.first(sure), key=keys.__getitem__, reverse=highest)
    if len(sure) + len(tied) <= limit:
        return Top([*sure, *tied], 0, ())
    return Top(sure, limit - len(sure), tied)


def _first(ordered: Iterable[tuple[Any, ...]]) -> list[str]:
    """The ids, each the last of what orders it, the first MOST_CANDIDATES in order: of hundreds nobody asks for
    the order of the rest.
    """
    every = list(ordered)
    if len(every) <= MOST_CANDIDATES:
        return [entity for *_, entity in sorted(every)]
    front = [entity for *_, entity in heapq.nsmallest(MOST_CANDIDATES, every)]
    return [*front, *sorted({each[-1] for each in every}.difference(front))]


def _asked(name: str, words: str, count: Key, top: Top, facts: Callable[[str], Sequence[Fact]]) -> Asked:
    return Asked(
        name=name,
        words=words,
        required=[(count,), *(fact for i in top.sure for fact in facts(i))],
        places=top.places,
        tied=[facts(i) for i in top.tied],
    )


_RULES: Sequence[Callable[[Standing], Iterable[Asked]]] = (
    _blocked,
    _overdue,
    _risks,
    _idle,
    _changed,
    _waited_for,
    _next,
    _milestones,
    _progress,
    _decided,
    _standing,
    _coverage,
)

MOST_TIED = 20
"""Of those that share a top list's last places, how many are considered."""


def candidates(questions: Iterable[Asked], graph: Graph) -> set[str]:
    """The entities whose lines answer something: the first of every question before the second of any, until there
    are more than LARGEST_BUDGET holds.
    """
    lists = [_first_of(question, graph) for question in questions]
    found: dict[str, None] = {}
    for entity in chain.from_iterable(zip_longest(*lists)):
        if len(found) >= ALL_CANDIDATES:
            break
        if entity is not None:
            found[entity] = None
    return set(found)


def _first_of(question: Asked, graph: Graph) -> list[str]:
    kind_of, chosen = graph.kind_of, dict[str, None]()
    for fact in chain(question.required, *question.tied[:MOST_TIED]):
        # The other of a pair is an entity like the one whose line names it.
        for entity, _ in fact:
            if kind_of.get(entity, PROJECT) != PROJECT:
                chosen[entity] = None
        if len(chosen) >= MOST_CANDIDATES:
            break
    return list(chosen)


def asked_keys(questions: Iterable[Asked]) -> frozenset[Key]:
    """The keys of all facts that must be there."""
    return frozenset(chain.from_iterable(chain.from_iterable(question.required for question in questions)))


def answerable(question: Asked, has: Callable[[Fact], bool]) -> Asked:
    """The question without the facts that the rows do not hold: a risk without a probability has none to state."""
    return Asked(
        name=question.name,
        words=question.words,
        required=list(filter(has, question.required)),
        places=question.places,
        tied=[list(filter(has, each)) for each in question.tied],
    )


def thresholds(questions: Iterable[Asked], shown: Iterable[tuple[int, Sequence[Key]]]) -> dict[str, list[int]]:
    """For each question, the totals of tokens from which one more of its facts is in the text, ascending.

    ``shown`` holds, in order of admission, the total that the text then counts and the keys that come with it. A
    fact that no budget shows is not in the list. Ties are filled with the candidates of which the text says most.
    """
    when: dict[Key, int] = {}
    for total, keys in shown:
        for key in keys:
            when.setdefault(key, total)
    return {question.name: _reached(question, when) for question in questions}


def _reached(question: Asked, when: Mapping[Key, int]) -> list[int]:
    reached = _all_at(question.required, when)
    candidates_at = [_all_at(each, when) for each in question.tied]
    best = 0
    for budget in sorted({at for each in candidates_at for at in each}):
        present = sorted((sum(at <= budget for at in each) for each in candidates_at), reverse=True)
        now = sum(present[: question.places])
        reached += [budget] * (now - best)
        best = now
    return sorted(reached)


def _all_at(facts: Sequence[Fact], when: Mapping[Key, int]) -> list[int]:
    """The totals from which each of the facts is there, of those that ever are."""
    return [at for fact in facts if (at := _at(fact, when)) is not None]


def _at(fact: Fact, when: Mapping[Key, int]) -> int | None:
    """The total from which all of a fact is there."""
    latest = 0
    for key in fact:
        at = when.get(key)
        if at is None:
            return None
        latest = max(latest, at)
    return latest

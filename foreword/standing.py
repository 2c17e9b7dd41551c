"""The lines that are no entity's: of the project itself, and of how many there are of everything.

Counts stand at the end of the text, because every edit moves some; what they name and the project's own name
do not depend on the budget.
"""

from collections.abc import Iterable, Mapping, Sequence

from foreword.draft import Draft
from foreword.kinds import Kind
from foreword.light import WIDTHS, Record
from foreword.lines import LONGEST_LINE, SMALLEST_BUDGET, Line, total
from foreword.questions import DIRECT, TOTAL, UNLINKED, Key
from foreword.selection import VIEW_WORTH
from foreword.sheets import SECTION
from foreword.text import LONGEST_WORD, clean, cut, quote, word
from foreword.writer import AFTER_TOKENS, ALWAYS, ANSWERS, VIEW, Option, Step, Writer

_HEAD, _COUNTS, _LAST = 0, 8000 * SECTION, 9000 * SECTION
_OVER_ALL = _COUNTS + 900
_MOST_STATES = 8

COUNTS = "counts "
"""How the names of those options begin that say how many there are of a kind."""

_TITLE_TOKENS = 36
_FACTS_TOKENS = 40
"""With these, some 150 of SMALLEST_BUDGET are left for the counts."""

_FIRST_FACTS = (("state", "state_key"), ("stage", "facet_stage"))
_FACTS = (
    ("state", "state_key"),
    ("type", "type_key"),
    ("stage", "facet_stage"),
    ("scale", "facet_scale"),
    ("context", "facet_context"),
)
_TEXTS = (("next step", "next_step_short"), ("about", "description"), ("then", "next_step_long"))


def always(draft: Draft, project: Record, asked: frozenset[Key], write: Writer) -> list[Step]:
    """What is printed at any budget, in SMALLEST_BUDGET tokens: name, state, the counts, the as-of date."""
    head = [
        Step(write.named(_HEAD, "# project ", str(project.get("name", "")), limit=_TITLE_TOKENS), ALWAYS),
        _facts_step(draft, project, write, ALWAYS, _FIRST_FACTS),
        Step(write.plain(_LAST, f"as of {draft.as_of.isoformat()}"), ALWAYS),
        Step(write.plain(_COUNTS, "## counts"), ALWAYS),
        Step(write.plain(_OVER_ALL, _over_all(draft)), ALWAYS, (("", UNLINKED), ("", "needed"), ("", "changed"))),
    ]
    return [*head, *_first_counts(draft, asked, write, SMALLEST_BUDGET - total(step.line for step in head))]


def options(
    draft: Draft, project: Record, asked: frozenset[Key], handles: Mapping[str, str], write: Writer
) -> list[Option]:
    """What may follow, for the price of its tokens. Named by what a key of its facts says (``owner``)."""
    texts = [
        Option(
            key, Step(line, ANSWERS, keys) if keys[0] in asked else None, Step(line, VIEW, keys), VIEW_WORTH / 8
        )
        for place, (name, key) in enumerate(_TEXTS, _HEAD + 2)
        if project.get(key)
        for line, keys in [
            (write.named(place, f"{name} ", str(project[key])), ((draft.rows.project_id, key),)),
        ]
    ]
    counts = [
        Option(
            owner((kind.name, TOTAL)),
            _count_step(draft, kind, write, ANSWERS, _tally(kind, asked), coverage=True),
            _count_step(draft, kind, write, VIEW, kind.tally, _by_state(draft, kind), coverage=True),
            VIEW_WORTH / 8,
        )
        for kind in _kept(draft)
    ]
    facts = Option("facts", None, _facts_step(draft, project, write, VIEW, _FACTS), VIEW_WORTH / 8)
    others = [Option(line.text, None, Step(line, VIEW), VIEW_WORTH / 8) for line in _others(draft, handles, write)]
    return [*texts, *counts, facts, *others]


def owner(key: Key) -> str:
    """The name of the option that has the fact's key: a kind's counts, or a field of the project."""
    whose, part = key
    return part if "-" in whose else f"{COUNTS}{whose}"


def overview(draft: Draft, project: Record, handle: str, write: Writer) -> Line:
    """The project's line in an actor's overview."""
    after = write.widest(lambda width: _standing(project, draft, width), AFTER_TOKENS)
    return write.named(0, f"{handle} ", str(project.get("name", "")), after)


def _standing(project: Record, draft: Draft, width: tuple[int, int]) -> str:
    """What an overview says of a project after its name."""
    parts = [word(str(project["state_key"]), min(width[0], LONGEST_WORD))] if project.get("state_key") else []
    if project.get("end_at"):
        parts.append(f"until {word(project['end_at'])}")
    sizes = draft.sizes.get("task", {})
    parts += [f"{sizes.get(name, 0)} {name}" for name in ("open", "overdue", "blocked")]
    text = " " + ", ".join(parts)
    if project.get("next_step_short"):
        text += f", next {quote(cut(clean(str(project['next_step_short'])), width[0]))}"
    return text


def _facts_step(draft: Draft, project: Record, write: Writer, rule: str, names: Sequence[tuple[str, str]]) -> Step:
    # As wide as all facts allow: none is cut shorter where more of them are there.
    widths = (width for width in WIDTHS if write.count(_facts(project, _FACTS, width)) <= _FACTS_TOKENS)
    text = _facts(project, names, next(widths, WIDTHS[-1]))
    parts = [part for part in ("state_key", "facet_stage", "start_at", "end_at") if project.get(part)]
    return Step(write.plain(_HEAD + 1, text), rule, tuple((draft.rows.project_id, part) for part in parts))


def _facts(project: Record, names: Sequence[tuple[str, str]], width: tuple[int, int]) -> str:
    """State, facets and timeline in one line; what is missing is said to be."""
    longest = min(width[0], LONGEST_WORD)
    facts = [f"{name} {word(str(project[key]), longest)}" for name, key in names if project.get(key)]
    span = f"from {word(project.get('start_at', 'unset'))} to {word(project.get('end_at', 'unset'))}"
    return ", ".join([*([] if project.get("state_key") else ["state unset"]), *facts, span])


def _kept(draft: Draft) -> list[Kind]:
    """The kinds that the database has."""
    return [kind for kind in draft.kinds.entities if kind.name not in draft.rows.absent]


def _tally(kind: Kind, asked: frozenset[Key]) -> list[tuple[str, str]]:
    """The buckets of a kind whose size answers a question."""
    return [(bucket, name) for bucket, name in kind.tally if (kind.name, bucket) in asked]


def _first_counts(draft: Draft, asked: frozenset[Key], write: Writer, limit: int) -> list[Step]:
    """Of every kind the total and the sizes that are asked, in ``limit`` tokens. Where numbers are so long, or
    kinds
    so many, that it does not fit: the totals, else one number.
    """
    kinds = _kept(draft)
    for keys in (asked, frozenset[Key]()):
        steps = [_count_step(draft, kind, write, ALWAYS, _tally(kind, keys)) for kind in kinds]
        if total(step.line for step in steps) <= limit:
            return steps
    entities = sum(len(rows) for rows in draft.rows.entities.values())
    return [Step(write.plain(_COUNTS + 1, f"{len(kinds)} kinds, {entities} entities", limit), ALWAYS)]


def _count_step(
    draft: Draft,
    kind: Kind,
    write: Writer,
    rule: str,
    tally: Sequence[tuple[str, str]],
    more: Iterable[str] = (),
    *,
    coverage: bool = False,
) -> Step:
    """``tasks: 85, direct: 30, unlinked: 55, open: 40, overdue: 9``: the closure of what is asked of a kind."""
    counts = draft.coverage[kind.plural]
    said = [(kind.plural, TOTAL, counts[TOTAL])]
    said += [(name, name, counts[name]) for name in (DIRECT, UNLINKED) if coverage]
    said += [(name, bucket, draft.sizes[kind.name][bucket]) for bucket, name in tally]
    text = ", ".join([*(f"{name}: {number}" for name, _, number in said), *more])
    line = write.plain(_COUNTS + 2 + draft.kinds.places[kind.name], text)
    return Step(line, rule, tuple((kind.name, counted) for _, counted, _ in said))


def _by_state(draft: Draft, kind: Kind) -> list[str]:
    """How many are in each state, but for those that read like a count of ours. A state that is no plain word is
    no label.
    """
    said = {name.replace(" ", "_") for _, name in kind.tally} | {DIRECT, UNLINKED}
    said |= {each.plural for each in draft.kinds.entities}
    states = sorted(draft.states.get(kind.name, {}).items())
    return [f"{state}: {n}" for state, n in states if state not in said and word(state) == state][:_MOST_STATES]


def _over_all(draft: Draft) -> str:
    found = draft.buckets
    unlinked = sum(counts[UNLINKED] for counts in draft.coverage.values())
    return f"unlinked: {unlinked}, waited for: {len(found.needed)}, changed since yesterday: {len(found.changed)}"


def _others(draft: Draft, handles: Mapping[str, str], write: Writer) -> list[Line]:
    """The context document, and what the counts leave out: kinds that the database does not keep, edges that lead
    nowhere.
    """
    lines = []
    if draft.context_document is not None:
        lines.append(write.plain(_HEAD + 6, f"context document {handles[draft.context_document]}"))
    absent = [draft.kinds.by_name[kind].plural for kind in draft.rows.absent]
    if absent:
        lines.append(write.plain(_OVER_ALL + 1, f"not kept here: {', '.join(absent)}", LONGEST_LINE))
    edges = (("dangling", draft.graph.dangling), ("foreign", draft.graph.foreign))
    told = ", ".join(f"{what} edges: {n}" for what, n in edges if n)
    if told:
        lines.append(write.plain(_OVER_ALL + 2, told))
    return lines

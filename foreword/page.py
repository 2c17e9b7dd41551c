"""The text of a project's bundle: which lines there are, where they stand, which come first.

Sections run from what rarely changes to what often does; inside one, lines stand in handle order, so that an
edit disturbs as little of the text's beginning as possible. The as-of date stands alone at the end. Every
list's heading says how many there are, whatever part of it fits.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from foreword.buckets import Buckets
from foreword.draft import Draft
from foreword.handles import number_of
from foreword.kinds import Kind
from foreword.light import WIDTHS, Record, after_label, label, record
from foreword.lines import LARGEST_BUDGET, LONGEST_LINE, SMALLEST_BUDGET, Line, shorten, total
from foreword.selection import admission_order
from foreword.text import LONGEST_WORD, clean, cut, quote, word
from foreword.tokens import Counter

_SECTION = 1 << 40
"""Places of a section: its heading first, then its lines by handle number."""

_HEAD, _CHANGED, _LAST = 0, 8000 * _SECTION, 9000 * _SECTION

_TITLE_TOKENS = 36
_FACTS_TOKENS = 40
"""With these, and counts below a million, some 100 of SMALLEST_BUDGET are left for the coverage line."""

AFTER_TOKENS = 54
"""Of what follows a title in its line, so that LONGEST_LINE leaves some words to the title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Lines in order of rank; the first ``always`` are printed at any budget."""

    lines: Sequence[Line]
    always: int
    overview: Line


def page(draft: Draft, lights: Mapping[str, Record], handles: Mapping[str, str], count: Counter) -> Page:
    """Every line that any budget up to LARGEST_BUDGET can show, counted."""
    project = record(draft.kinds.project, draft.rows.project, draft.local_date)
    write = Writer(count)
    name = str(project.get("name", ""))
    always = [
        write.named(_HEAD, "# project ", name, limit=_TITLE_TOKENS),
        write.plain(_HEAD + 1, write.widest(lambda width: _facts(project, width), _FACTS_TOKENS)),
        *_standing_headings(draft, write),
        write.plain(_LAST, f"as of {draft.as_of.isoformat()}"),
    ]
    always.append(_coverage(draft, write, SMALLEST_BUDGET - total(always)))
    early = [*_steps(project, draft, handles, write), *_changed(draft, handles, write)]
    entities = _entity_lines(draft, lights, handles, write)
    standing = write.widest(lambda width: _standing(project, draft, width), AFTER_TOKENS)
    overview = write.named(0, f"{handles[draft.rows.project_id]} ", name, standing)
    return Page(lines=[*always, *early, *entities], always=len(always), overview=overview)


class Writer:
    """Makes counted lines. ``limit`` None means the line is short by construction."""

    def __init__(self, count: Counter) -> None:
        self._count = count

    def named(
        self,
        place: int,
        before: str,
        name: str,
        after: str = "",
        limit: int = LONGEST_LINE,
        *,
        under: int | None = None,
    ) -> Line:
        """A line with somebody's words in it: quoted, and cut until the line counts ``limit`` tokens at most."""
        body = clean(name).replace('"', "'")
        written, tokens = shorten(f'{before}"', body, f'"{after}', limit, self._count)
        return Line(place, under, tokens, written)

    def plain(self, place: int, text: str, limit: int | None = None) -> Line:
        """A line of our own words; with ``limit``, cut to that many tokens."""
        written, tokens = shorten("", text, "", limit or LARGEST_BUDGET, self._count)
        return Line(place, None, tokens, written)

    def widest(self, form: Callable[[tuple[int, int]], str], limit: int) -> str:
        """``form`` at the first of WIDTHS with which it counts ``limit`` tokens at most, or at the narrowest."""
        text = ""
        for width in WIDTHS:
            text = form(width)
            # No token is shorter than a byte: most texts need no counting.
            if len(text.encode()) <= limit or self._count(text) <= limit:
                break
        return text

    def heading(self, place: int, text: str) -> Line:
        """The heading of the section that begins at ``place``."""
        written = f"## {text}\n"
        return Line(place, place, self._count(written), written)


def _facts(project: Record, width: tuple[int, int]) -> str:
    """State, facets and timeline in one line; what is missing is said to be."""
    longest = min(width[0], LONGEST_WORD)
    named = [
        ("state", "state_key"),
        ("type", "type_key"),
        ("stage", "facet_stage"),
        ("scale", "facet_scale"),
        ("context", "facet_context"),
    ]
    facts = [f"{name} {word(str(project[key]), longest)}" for name, key in named if project.get(key)]
    span = f"from {word(project.get('start_at', 'unset'))} to {word(project.get('end_at', 'unset'))}"
    return ", ".join([*(facts or ["state unset"]), span])


def _coverage(draft: Draft, write: Writer, limit: int) -> Line:
    """How much of each kind is linked, in ``limit`` tokens: what is always printed fits the smallest budget. Where
    counts are so long that they do not, those go that follow from others (direct is total less unlinked), then
    the unlinked ones, then kinds.
    """
    for columns in (("total", "direct", "unlinked"), ("total", "unlinked"), ("total",)):
        line = write.plain(_HEAD + 9, _coverage_of(draft, columns))
        if line.tokens <= limit:
            return line
    return write.plain(_HEAD + 9, _coverage_of(draft, ("total",)), limit)


def _coverage_of(draft: Draft, columns: Sequence[str]) -> str:
    kinds = ", ".join(
        f"{plural} {'/'.join(str(counts[column]) for column in columns)}" if counts["total"] else f"{plural} 0"
        for plural, counts in draft.coverage.items()
    )
    absent = "".join(f", {draft.kinds.by_name[kind].plural} not kept here" for kind in draft.rows.absent)
    graph = draft.graph
    broken = "".join(
        f", {n} {what} edges ignored"
        for what, n in (("dangling", graph.dangling), ("foreign", graph.foreign))
        if n
    )
    return f"{'/'.join(columns)}: {kinds}{absent}{broken}"


def _tally(kind: Kind, ids: Iterable[str], found: Buckets) -> str:
    """``tasks: 85 total, 40 open, 9 overdue, ...``: the closure of every set a reader would ask about."""
    members = frozenset(ids)
    parts = [f"{len(members & found.of(bucket))} {name}" for bucket, name in kind.tally]
    return f"{kind.plural}: {', '.join([f'{len(members)} total', *parts])}"


def _section_of(kind: Kind, draft: Draft) -> int:
    """The place of the kind's heading: by volatility, then in the order of the registry."""
    return (1000 + kind.volatility * 50 + draft.kinds.places[kind.name]) * _SECTION


def _headings(draft: Draft, write: Writer) -> dict[str, Line]:
    return {
        kind.name: write.heading(
            _section_of(kind, draft),
            _tally(kind, (row[0] for row in draft.rows.entities.get(kind.name, ())), draft.buckets),
        )
        for kind in draft.kinds.entities
        if kind.name not in draft.rows.absent
    }


def _standing_headings(draft: Draft, write: Writer) -> list[Line]:
    """What is printed even when nothing below it fits: how the tasks stand, and what changed."""
    lines = [write.plain(_CHANGED, f"## changed since {draft.since.isoformat()}: {len(draft.buckets.changed)}")]
    task = draft.kinds.by_name.get("task")
    if task is not None and task.name not in draft.rows.absent:
        ids = (row[0] for row in draft.rows.entities.get(task.name, ()))
        lines.append(write.plain(_section_of(task, draft), f"## {_tally(task, ids, draft.buckets)}"))
    return lines


def _steps(project: Record, draft: Draft, handles: Mapping[str, str], write: Writer) -> list[Line]:
    lines = []
    for number, (name, key) in enumerate(
        (("next step", "next_step_short"), ("then", "next_step_long"), ("about", "description")), 2
    ):
        if project.get(key):
            lines.append(write.named(_HEAD + number, f"{name} ", str(project[key])))
    if draft.context_document is not None:
        lines.append(write.plain(_HEAD + 5, f"context document {handles[draft.context_document]}"))
    return lines


def _changed(draft: Draft, handles: Mapping[str, str], write: Writer) -> list[Line]:
    if not draft.recent:
        return []
    named = " ".join(handles[i] for i in draft.recent)
    more = len(draft.buckets.changed) - len(draft.recent)
    return [write.plain(_CHANGED + 1, f"latest {named}" + (f" and {more} more" if more else ""))]


def _entity_lines(
    draft: Draft, lights: Mapping[str, Record], handles: Mapping[str, str], write: Writer
) -> list[Line]:
    """Lines of entities in order of admission, each heading before what needs it, up to LARGEST_BUDGET.

    Counting what no budget can show would be most of the work of a large project.
    """
    headings = _headings(draft, write)
    lines: list[Line] = []
    used = 0
    opened = {"task"}  # its heading is printed in any case
    for entity in admission_order(draft.slices, draft.scores):
        kind = draft.by_id[entity][0]
        if kind.name not in opened:
            opened.add(kind.name)
            lines.append(headings[kind.name])
            used += lines[-1].tokens
        lines.append(_entity_line(kind, entity, draft, lights[entity], handles, write))
        used += lines[-1].tokens
        if used > LARGEST_BUDGET:
            break
    return lines


def _entity_line(
    kind: Kind, entity: str, draft: Draft, light: Record, handles: Mapping[str, str], write: Writer
) -> Line:
    section, handle = _section_of(kind, draft), handles[entity]
    near, direct = draft.near[entity], entity in draft.graph.direct
    after = write.widest(
        lambda width: after_label(kind, light, near, handles, direct=direct, width=width), AFTER_TOKENS
    )
    number = number_of(handle)
    under = None if kind.name == "task" else section
    return write.named(section + number, f"{handle} ", label(kind, light), after, under=under)


def _standing(project: Record, draft: Draft, width: tuple[int, int]) -> str:
    """What an overview says of a project after its name."""
    parts = [word(str(project["state_key"]), min(width[0], LONGEST_WORD))] if project.get("state_key") else []
    if project.get("end_at"):
        parts.append(f"until {word(project['end_at'])}")
    tasks = {row[0] for row in draft.rows.entities.get("task", ())}
    found = draft.buckets
    for name, members in (("open", found.open), ("overdue", found.overdue), ("blocked", found.blocked)):
        parts.append(f"{len(tasks & members)} {name}")
    text = " " + ", ".join(parts)
    if project.get("next_step_short"):
        text += f", next {quote(cut(clean(str(project['next_step_short'])), width[0]))}"
    return text

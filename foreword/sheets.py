"""The lines of entities: each with the parts that are asked of it, or whole."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from foreword.derive import Neighbourhood
from foreword.draft import Draft
from foreword.handles import number_of
from foreword.kinds import Kind
from foreword.light import BLOCKED, Part, Record, Said, label, parts_of
from foreword.lines import LONGEST_LINE, Line
from foreword.questions import HERE, Key
from foreword.writer import Step, Writer

SECTION = 1 << 40
"""Places of a section: its heading first, then its lines by handle number."""


class _Sheet(NamedTuple):
    """An entity's line with all that it can say, counted: how it begins, its parts, and the whole of it."""

    entity: str
    place: int
    section: int
    base: str
    tokens: int
    whole: int
    parts: Sequence[tuple[Part, int]]


class Form(NamedTuple):
    """A line with some of its parts: where it would stand, what it would say, and count."""

    sheet: _Sheet
    parts: Sequence[tuple[Part, int]]
    tokens: int

    @property
    def place(self) -> int:
        """Where the line stands in the text."""
        return self.sheet.place

    def step(self, rule: str) -> Step:
        """The line in this form."""
        entity, place, section, base, *_ = self.sheet
        text = base + "".join([part.text for part, _ in self.parts]) + "\n"
        return Step(Line(place, section, self.tokens, text), rule, tuple(_keys(entity, self.parts)), entity)


class Sheets:
    """The lines of entities, made when they are first looked at."""

    def __init__(
        self, draft: Draft, lights: Mapping[str, Record], handles: Mapping[str, str], write: Writer
    ) -> None:
        self._draft = draft
        self._lights = lights
        self._handles = handles
        self._write = write
        self._letters = {kind.handle: place for place, kind in enumerate(draft.kinds.all)}
        self._made: dict[str, _Sheet] = {}

    def form(self, entity: str, wanted: AbstractSet[str] | None) -> Form:
        """The line with the entity's state and the parts ``wanted``; with all that it can say where None."""
        sheet = self._of(entity)
        chosen = sheet.parts
        if wanted is not None:
            chosen = [counted for counted in chosen if (name := counted[0].name) in wanted or name == _STATE]
        if len(chosen) == len(sheet.parts):
            return Form(sheet, sheet.parts, sheet.whole)
        return Form(sheet, chosen, self._tokens(sheet.base, sheet.tokens, chosen))

    def title(self, entity: str) -> int:
        """Tokens of the entity's title, where nothing else decides between lines."""
        return self._of(entity).tokens

    def _of(self, entity: str) -> _Sheet:
        found = self._made.get(entity)
        if found is None:
            found = self._made[entity] = self._make(entity)
        return found

    def _make(self, entity: str) -> _Sheet:
        draft, write, handles = self._draft, self._write, self._handles
        kind, light, handle = draft.by_id[entity][0], self._lights[entity], handles[entity]
        said, section = said_of(draft, entity, draft.near[entity]), section_of(kind, draft)
        parts = write.parts(lambda width: parts_of(kind, light, said, handles, width))
        # The title is cut to what the whole line leaves it, so that it is the same in a line that says less.
        limit = LONGEST_LINE - sum([tokens for _, tokens in parts]) - 1
        base, tokens = write.titled(f"{handle} ", label(kind, light), limit)
        whole = self._tokens(base, tokens, parts)
        return _Sheet(entity, section + self._order(handle), section, base, tokens, whole, parts)

    def _order(self, handle: str) -> int:
        """By number; of one number by the letters, which an entity keeps that becomes of another kind."""
        return number_of(handle) * len(self._letters) + self._letters[handle.rstrip("0123456789")]

    def _tokens(self, base: str, tokens: int, chosen: Sequence[tuple[Part, int]]) -> int:
        if not chosen:
            return self._write.count(f"{base}\n")
        # The end of a line may be one token with what it ends.
        for _, counted in chosen[:-1]:
            tokens += counted
        return tokens + self._write.count(f"{chosen[-1][0].text}\n")


_STATE = "state_key"

BRIEF = frozenset(
    {"priority", "due_at", "completed_at", "target_date", "progress", "impact", "probability", "decision_at", "ts"}
)
"""Parts of a line that the general view shows at first: when, how far, how bad. The rest follows where there
is room."""


def _keys(entity: str, parts: Iterable[tuple[Part, int]]) -> list[Key]:
    keys = [(entity, HERE)]
    for (name, text, lists, enough), _ in parts:
        if enough:
            keys.append((entity, name))
        if lists:
            keys += [(entity, other) for other in lists]
        if name == _STATE and text == " blocked":
            keys.append((entity, BLOCKED))
    return keys


def said_of(draft: Draft, entity: str, near: Neighbourhood) -> Said:
    """What a line can say of an entity beside its light record."""
    found = draft.buckets
    direct = entity in draft.graph.direct
    return Said(near, entity in found.blocked, entity in found.idle, entity in found.changed, direct)


def section_of(kind: Kind, draft: Draft) -> int:
    """The place of the kind's heading: by volatility, then in the order of the registry."""
    return (1000 + kind.volatility * 50 + draft.kinds.places[kind.name]) * SECTION

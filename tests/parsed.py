"""A bundle's text, read by a parser that knows the grammar only: quotation marks, our own words, handles, dates
and numbers. Nothing here calls what writes a text.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from foreword.kinds import KINDS
from foreword.text import clean

PLURALS = tuple(kind.plural for kind in KINDS.entities)

HANDLE = r"(?:PRJ|DOC|[TGPMRDQOSI])[1-9][0-9]*"
DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
WORD = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
VALUE = rf'(?:"[^"]*"|{WORD})'
HANDLES = rf"{HANDLE}(?: {HANDLE})*(?: \+[0-9]+)?"
LINKS = ("waits for", "plan", "goal", "task")
DATES = ("start", "due", "done", "target", "achieved", "on", "at", "created")
FLAGS = ("blocked", "no tasks or plans", "changed", "unlinked")
PARTS = {
    **{word: rf"{word} {HANDLES}" for word in LINKS},
    **{word: rf"{word} {DAY}" for word in DATES},
    **{word: rf"{word} {VALUE}" for word in ("impact", "probability", "outcome")},
    "progress": r"[0-9]+/[0-9]+ done",
    "needed by": r"needed by [0-9]+",
    **{flag: flag for flag in FLAGS},
    "priority": r'p(?:[0-9]+|"-[0-9]+")',
    "state": VALUE,
}
"""By name, the parts of an entity's line, in the order in which a reader tries them."""

ANY_PART = "|".join(PARTS.values())
COUNTED = rf"(?:[a-z0-9]+(?: [a-z0-9]+)*|{WORD}): [0-9]+"
FACT = rf"(?:type|stage|scale|context) {VALUE}"
FORMS = {
    "name": r'# project "[^"]*"',
    "facts": rf"state (?:unset|{VALUE})(?:, {FACT})*, from (?:{DAY}|unset) to (?:{DAY}|unset)",
    "step": r'(?:next step|then|about) "[^"]*"',
    "context": r"context document DOC[1-9][0-9]*",
    "heading": rf"## (?P<plural>{'|'.join(PLURALS)})",
    "counts": r"## counts",
    "count": rf"(?P<plural>{'|'.join(PLURALS)}): [0-9]+(?:, {COUNTED})*",
    "sum": r"[0-9]+ kinds, [0-9]+ entities",
    "over all": r"unlinked: [0-9]+, waited for: [0-9]+, changed since yesterday: [0-9]+",
    "absent": rf"not kept here: (?:{'|'.join(PLURALS)})(?:, (?:{'|'.join(PLURALS)}))*",
    "edges": r"(?:dangling edges: [0-9]+(?:, foreign edges: [0-9]+)?|foreign edges: [0-9]+)",
    "entity": rf'(?P<handle>{HANDLE}) "(?P<title>[^"]*)"(?P<parts>(?: (?:{ANY_PART}))*)',
    "as of": rf"as of {DAY}",
}


@dataclass(frozen=True)
class Said:
    """A line as a reader takes it: what it is, the section it stands in, and the parts of it that matter."""

    form: str
    line: str
    section: str
    groups: Mapping[str, str]

    @property
    def handle(self) -> str:
        return self.groups["handle"]

    @property
    def parts(self) -> dict[str, str]:
        """What follows an entity's title, by name."""
        return dict(parts_of(self.groups["parts"]))

    @property
    def links(self) -> dict[str, tuple[list[str], int]]:
        """For each kind of link, the handles and how many there are in all."""
        found = {}
        for word, text in self.parts.items():
            if word in LINKS:
                names = re.findall(HANDLE, text)
                more = re.search(r"\+([0-9]+)$", text)
                found[word] = (names, len(names) + int(more[1] if more else 0))
        return found

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of a line of counts, by label, which is there once."""
        pairs = [part.rsplit(": ", 1) for part in self.line.split(", ")]
        assert len({label for label, _ in pairs}) == len(pairs), self.line
        return {label: int(number) for label, number in pairs}


def parts_of(text: str) -> Iterator[tuple[str, str]]:
    """(name, text) of each part, from left to right."""
    at = 0
    names: set[str] = set()
    while at < len(text):
        for name, pattern in PARTS.items():
            if found := re.compile(rf" ({pattern})(?= |$)").match(text, at):
                # "blocked" is a state where no state was said yet: who reads it takes it for both.
                assert name not in names, text
                names.add(name)
                yield name, found[1]
                at = found.end()
                break
        else:
            raise AssertionError(text)


def parsed(text: str) -> list[Said]:
    """Every line of a text as exactly one of the forms, in its section; anything else is a forgery."""
    said = []
    section = ""
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        fits = {form: found for form, pattern in FORMS.items() if (found := re.fullmatch(pattern, line))}
        assert len(fits) == 1, (fits.keys(), line)
        ((form, found),) = fits.items()
        if form in {"heading", "counts", "as of"}:
            section = found.groupdict().get("plural") or form
        said.append(Said(form, line, section, found.groupdict()))
    return said


def outside_quotes(line: str) -> set[str]:
    """Handles that a line names in our own words."""
    return set(re.findall(rf"\b{HANDLE}\b", re.sub(r'"[^"]*"', '""', line)))


# ---- facts that a reader finds in a text, as (id, part) or (kind, count)

_PART_OF = {
    "start": "start_at",
    "due": "due_at",
    "target": "target_date",
    "on": "decision_at",
    "at": "ts",
    "created": "created_at",
    "done": "completed_at",
    "achieved": "completed_at",
    "needed by": "needed_by",
    "no tasks or plans": "idle",
    "state": "state_key",
}
_COUNT_OF = {
    **{name: name for name in ("direct", "unlinked", "open", "overdue", "blocked")},
    "ready and dated": "ready",
    "without tasks or plans": "idle",
    "with tasks": "measured",
    "upcoming": "upcoming",
    "decided": "happened",
}


def keys_of(
    text: str, handles: Mapping[str, str], project: str, outcomes: Mapping[str, str] = MappingProxyType({})
) -> set[tuple[str, str]]:
    """What a text says, for whoever knows whose the handles are (``handles``: by id). Of an outcome that is known,
    by id, the text says enough with its first twelve words, or all of them.
    """
    whose = {handle: entity for entity, handle in handles.items()}
    keys: set[tuple[str, str]] = set()
    for said in parsed(text):
        if said.form == "entity":
            entity = whose[said.handle]
            keys.update((entity, part) for part in _said_of(said, whose))
            if entity in outcomes and not _says_enough(said.parts.get("outcome", ""), outcomes[entity]):
                keys.discard((entity, "outcome"))
        elif said.form == "count":
            kind = next(kind.name for kind in KINDS.entities if kind.plural == said.groups["plural"])
            first, *_ = said.counts
            keys |= {(kind, "total" if label == first else _COUNT_OF.get(label, label)) for label in said.counts}
        elif said.form == "over all":
            keys |= {("", "unlinked"), ("", "needed"), ("", "changed")}
        elif said.form in {"facts", "step"}:
            keys |= {(project, part) for part in _said_of_the_project(said.line)}
    return keys


def _said_of(said: Said, whose: Mapping[str, str]) -> Iterator[str]:
    yield ""
    for name, text in said.parts.items():
        yield _PART_OF.get(name, name)
        if name == "waits for":
            yield from (whose[handle] for handle in re.findall(HANDLE, text))
        if name == "blocked":
            yield "state_key"


def _says_enough(said: str, outcome: str) -> bool:
    words = clean(outcome).replace('"', "'").split(" ")
    if len(words) <= 12 and words[-1].endswith("…"):
        return False  # it was longer
    return re.match(r'outcome "' + re.escape(" ".join(words[:12])) + '…?"', said) is not None


def _said_of_the_project(line: str) -> Iterator[str]:
    if found := re.match(r"next step ", line):
        yield "next_step_short"
    for name, part in (("state", "state_key"), ("stage", "facet_stage")):
        if re.search(rf"(?:^|, ){name} (?!unset)", line):
            yield part
    if found := re.search(rf"from ({DAY}|unset) to ({DAY}|unset)$", line):
        yield from (
            part for part, day in zip(("start_at", "end_at"), found.groups(), strict=True) if day != "unset"
        )

"""What people ask, and the facts that answer it: SQL over the full rows, nothing of the product's own code.

A question's file holds one statement. Each row it returns is one required fact:

    slot, of, need, entity, other, value

``need`` says what must stand in the text (``Need``); ``entity`` and ``other`` are ids, or a label; ``value`` is
text. Rows with the same ``of`` compete for ``slot`` places: the last place of a top list that is tied may be
filled by any of the tied. ``slot`` is null where every row is required.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal
from zoneinfo import available_timezones

from benchmarks.recall.parser import normal
from loaders.connection import Connection

Need = Literal["state", "date", "word", "number", "waits", "count", "text", "beginning", "named", "linked"]
"""What must be said of an entity.

state: its state. date: a date, under one of the labels that mean it. word, number: a value under a label. waits:
that it waits for the other. count: a number under a label, of a kind's or of the whole project's. text: a text.
beginning: a text's first FIRST_WORDS words. named: that it is there at all, in a place or with a word that says
what it is. linked: that it and the other are named together.
"""

FIRST_WORDS = 12


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that must be in the text. Fields as in a question's rows."""

    need: Need
    entity: str
    other: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about one project, and what answers it.

    Attributes:
        name: Q1 and so on.
        asks: in words.
        required: facts that must all be there.
        tied: (places, candidates) of a top list's last, tied places; a candidate is its facts.
        counted: of ``required``, counts; the first is the closure: how many there are of what was asked.
    """

    name: str
    asks: str
    required: Sequence[Fact]
    tied: tuple[int, Sequence[Sequence[Fact]]]
    counted: Sequence[Fact]

    @property
    def size(self) -> int:
        """The number of facts that a whole answer holds, at least."""
        places, candidates = self.tied
        return len(self.required) + sum(sorted(map(len, candidates))[:places])


HERE = Path(__file__).parent
CATALOGUE = HERE / "catalogue"
HELD_OUT = HERE / "held_out"


def asked(folder: Path) -> Mapping[str, tuple[str, str]]:
    """The questions of a folder: name to (in words, SQL). The first line of a file is the question."""
    found = {}
    for path in sorted(folder.glob("*.sql"), key=lambda p: (len(p.stem.split("-")[0]), p.stem)):
        first, _, rest = path.read_text().partition("\n")
        found[path.stem.partition("-")[0]] = (first.removeprefix("-- "), rest)
    return found


def questions(connection: Connection, project: str, as_of: date, folder: Path = CATALOGUE) -> list[Question]:
    """The questions of ``folder`` about a project, answered by the database, those that have nothing to answer
    left out.
    """
    with prepared(connection, project, as_of):
        answered = [
            _question(name, words, connection.execute(sql.encode()).fetchall())
            for name, (words, sql) in asked(folder).items()
        ]
    return [question for question in answered if question.size]


@contextmanager
def prepared(connection: Connection, project: str, as_of: date) -> Iterator[None]:
    """The tables of ``views.sql`` that questions share, for one project and date, gone afterwards.

    Tables and not views: each is asked a dozen times, and joins of views over thousands of rows take seconds.
    """
    with connection.transaction(force_rollback=True):
        named = connection.execute(
            "select props->>'timezone' from onto_projects where id = %s::uuid", [project]
        ).fetchall()
        zone = named[0][0] if named and named[0][0] in available_timezones() else "UTC"
        connection.execute(
            "create temporary table asked as select %s::uuid as project, %s::date as day, %s::text as zone",
            [project, as_of, zone],
        )
        for statement in filter(str.strip, (HERE / "views.sql").read_text().split(";\n")):
            connection.execute(statement.encode())
        yield


def _question(name: str, words: str, rows: Sequence[tuple[Any, ...]]) -> Question:
    required: list[Fact] = []
    contested: dict[str, list[Fact]] = {}
    places = 0
    for slot, of, need, entity, other, value in rows:
        fact = Fact(need, entity or "", other or "", _said(need, value or ""))
        if slot is None:
            required.append(fact)
        else:
            places = slot
            contested.setdefault(of, []).append(fact)
    counted = [fact for fact in required if fact.need == "count"]
    return Question(
        name=name, asks=words, required=required, tied=(places, list(contested.values())), counted=counted
    )


def _said(need: Need, value: str) -> str:
    return " ".join(normal(value).split()[:FIRST_WORDS]) if need == "beginning" else value

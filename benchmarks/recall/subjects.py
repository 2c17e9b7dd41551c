"""The projects that are measured: those of a directory, and synthetic ones; each with its questions and truth."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from benchmarks.recall import ladder
from benchmarks.recall.builders import Project
from benchmarks.recall.facts import HELD_OUT, Question, questions
from benchmarks.recall.truth import Truth, truth
from loaders.catalog import inspect
from loaders.connection import Connection
from loaders.jsonl import import_directory
from loaders.project import Statements, compile_statements, load_project


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A project, what is asked of it, and what is true. ``held_out`` is empty unless it was asked for."""

    name: str
    project: Project
    asked: Sequence[Question]
    held_out: Sequence[Question] = field(default_factory=tuple)
    truth: Truth


@dataclass(frozen=True, slots=True)
class Rung:
    """A synthetic project: tasks, the share of entities linked to its row, and whether its texts are hostile."""

    tasks: int
    linked: float = 0.3
    hostile: bool = False

    @property
    def name(self) -> str:
        """What distinguishes it."""
        linked = {0.0: ", no project edges", 1.0: ", all linked"}.get(self.linked, "")
        return f"{self.tasks} tasks{linked}{', hostile' if self.hostile else ''}"


LADDER = (
    *(Rung(tasks) for tasks in (20, 80, 300, 1200, 5000)),
    *(Rung(tasks, linked) for tasks in (80, 1200) for linked in (0.0, 1.0)),
    *(Rung(tasks, hostile=True) for tasks in (80, 1200)),
)


def imported(connection: Connection, data: Path, as_of: date, *, held_out: bool) -> Iterator[Subject]:
    """The live projects of a directory of JSONL files, by name."""
    catalog = inspect(connection)
    import_directory(connection, data, catalog)
    statements = compile_statements(catalog)
    found = connection.execute(
        "select id::text, name from onto_projects where deleted_at is null order by name, id"
    ).fetchall()
    for project, name in found:
        yield subject(connection, project, name, as_of, statements, held_out=held_out)


def rungs(
    connection: Connection, wanted: Sequence[Rung] = LADDER, seed: int = 7, *, held_out: bool = False
) -> Iterator[Subject]:
    """Synthetic projects."""
    statements = compile_statements(inspect(connection))
    for rung in wanted:
        project = ladder.create(connection, tasks=rung.tasks, linked=rung.linked, hostile=rung.hostile, seed=seed)
        yield subject(connection, project, rung.name, ladder.AS_OF, statements, held_out=held_out)


def subject(
    connection: Connection, project: str, name: str, as_of: date, statements: Statements, *, held_out: bool = False
) -> Subject:
    """One project, loaded as the product loads it, and answered by the database."""
    asked = questions(connection, project, as_of)
    held = questions(connection, project, as_of, HELD_OUT) if held_out else []
    return Subject(
        name=name,
        project=Project(load_project(connection, project, statements), as_of),
        asked=asked,
        held_out=held,
        truth=truth(connection, project, as_of, [*asked, *held]),
    )


NO_DATE = date(2026, 11, 21)
"""The as-of date where a directory names none."""


def as_of_of(data: Path) -> date:
    """The as-of date that a directory's manifest names, or the day of the commit that it was made from."""
    try:
        manifest = json.loads((data / "manifest.json").read_text())
    except OSError:
        return NO_DATE
    named = manifest.get("as_of") or manifest.get("source", {}).get("commit_date")
    return date.fromisoformat(str(named)[:10]) if named else NO_DATE

"""A project as the database has it: what every statement of a text is held against."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from benchmarks.recall.facts import Question, prepared
from benchmarks.recall.parser import COUNTS, LABELS, normal
from loaders.connection import Connection

LONGEST_TITLE = 200
"""Characters of a title that are enough to know it by; longer ones exist."""

UNTITLED = "(untitled)"
"""What has no title is called so."""

FLAGS = ("blocked", "idle", "changed", "unlinked")
"""What may be said of an entity in a word; each is a table of ``views.sql``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What is true of a project.

    Attributes:
        project: its id; ``names`` has it, too.
        names: normalised title to the ids that bear it.
        values: id to label to value.
        flagged: each of FLAGS to the ids of which it holds.
        waits: (who, whom), both open.
        counts: (kind or nothing, label) to number.
    """

    project: str
    names: Mapping[str, frozenset[str]]
    values: Mapping[str, Mapping[str, str]]
    flagged: Mapping[str, frozenset[str]]
    waits: frozenset[tuple[str, str]]
    counts: Mapping[tuple[str, str], int]

    @property
    def titles(self) -> dict[str, str]:
        """The title of each id, its longest form."""
        return {
            entity: name for name, ids in sorted(self.names.items(), key=lambda n: len(n[0])) for entity in ids
        }


def truth(connection: Connection, project: str, as_of: date, asked: Sequence[Question]) -> Truth:
    """Everything about a project that a text may state. The counts are those of the questions, and of states."""
    with prepared(connection, project, as_of):
        values = _values(connection, project)
        for entity, progress in connection.execute(_PROGRESS).fetchall():
            values[entity]["progress"] = progress
        waits = frozenset(connection.execute("select who::text, whom::text from waits").fetchall())
        for entity, number in connection.execute(_NEEDED_BY).fetchall():
            values[entity]["needed by"] = number
        return Truth(
            project=project,
            names=_names(connection.execute(_TITLES, [project]).fetchall()),
            values=values,
            flagged={flag: _ids(connection, flag) for flag in FLAGS},
            waits=waits,
            counts=dict(_counts(asked, connection.execute(_STATES).fetchall())),
        )


_TITLES = "select id::text, title from live union all select id::text, name from onto_projects where id = %s::uuid"
_PROGRESS = """
select whose::text, count(*) filter (where t.state in ('done', 'completed')) || '/' || count(*)
from work_task join live t on t.id = task group by whose
"""
_NEEDED_BY = "select whom::text, count(*)::text from waits group by whom"
_STATES = "select kind, state, count(*) from live where state is not null group by kind, state"

_COLUMNS: Mapping[str, Mapping[str, str]] = {
    "onto_projects": {"start": "start_at", "end": "end_at", "stage": "facet_stage"},
    "onto_tasks": {"due": "due_at", "start": "start_at", "done": "completed_at", "priority": "priority"},
    "onto_goals": {"target": "target_date", "done": "completed_at"},
    "onto_plans": {},
    "onto_milestones": {"due": "due_at", "done": "completed_at"},
    "onto_risks": {"impact": "impact", "probability": "probability", "done": "mitigated_at"},
    "onto_decisions": {"decided": "decision_at"},
    "onto_requirements": {"priority": "priority"},
    "onto_documents": {},
    "onto_outputs": {},
    "onto_signals": {"touched": "ts", "channel": "channel"},
    "onto_insights": {},
}
"""What has a value under a label, beside those that (nearly) every table has."""

_STATELESS = {"onto_requirements", "onto_signals", "onto_insights"}
_UNTOUCHED = {"onto_signals", "onto_insights"}
_DATES = frozenset({"due", "start", "end", "done", "target", "decided", "touched", "created"})


def _values(connection: Connection, project: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for table, own in _COLUMNS.items():
        labels = {**own, "created": "created_at", "type": "type_key"}
        labels |= {} if table in _STATELESS else {"state": "state_key"}
        labels |= {} if table in _UNTOUCHED else {"touched": "updated_at"}
        cells = ", ".join(
            f"pg_temp.local_day({column})::text" if label in _DATES else f"{column}::text"
            for label, column in labels.items()
        )
        owner = "id" if table == "onto_projects" else "project_id"
        query = f"select id::text, {cells} from {table} where {owner} = %s::uuid"
        for entity, *row in connection.execute(query.encode(), [project]).fetchall():
            found[entity] = {label: cell for label, cell in zip(labels, row, strict=True) if cell is not None}
    return found


def _names(rows: Iterable[tuple[str, str | None]]) -> dict[str, frozenset[str]]:
    names: dict[str, set[str]] = {}
    for entity, title in rows:
        name = normal(title or "") or UNTITLED
        for known in {name, name[:LONGEST_TITLE]}:
            names.setdefault(known, set()).add(entity)
    return {name: frozenset(ids) for name, ids in names.items()}


def _ids(connection: Connection, table: str) -> frozenset[str]:
    return frozenset(row[0] for row in connection.execute(f"select id::text from {table}".encode()).fetchall())


_TAKEN = frozenset({"open", "missed", "behind", "total", "direct", "overdue", *FLAGS, *LABELS, *COUNTS})
"""Words that say something else, or not only that, when they stand as a label: a number beside one is not known to
be that of a state which is called the same.
"""


def _counts(
    asked: Iterable[Question], states: Iterable[tuple[str, str, int]]
) -> Iterator[tuple[tuple[str, str], int]]:
    """Of each kind's states, and what the questions count, which goes before."""
    for kind, state, number in states:
        if state not in _TAKEN:
            yield (kind, state), number
    for question in asked:
        for fact in question.required:
            if fact.need == "count":
                yield (fact.entity, fact.other), int(fact.value)

"""Projects of any size for benchmarks: the mix of kinds and edges of a real public dataset, seeded."""

import json
import random
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from foreword.kinds import KINDS, Kind
from loaders.connection import Connection

Link = tuple[str, str, str, str, str]
"""(src_kind, src_id, rel, dst_kind, dst_id)."""

# Shares of kinds and states as in the dataset of Python enhancement proposals.
SHARE = {
    "task": 0.24,
    "goal": 0.07,
    "plan": 0.06,
    "milestone": 0.04,
    "risk": 0.08,
    "decision": 0.18,
    "requirement": 0.12,
    "document": 0.06,
    "output": 0.03,
    "signal": 0.10,
    "insight": 0.02,
}
STATES = {
    "task": ("done",) * 5 + ("todo",) * 3 + ("in_progress", "blocked"),
    "goal": ("achieved", "achieved", "abandoned", "draft", "active"),
    "plan": ("completed", "completed", "draft", "active"),
    "milestone": ("completed", "completed", "pending", "in_progress"),
    "risk": ("closed", "closed", "mitigated", "identified"),
    "decision": ("made", "made", "made", "deferred", "pending"),
    "document": ("published", "archived", "draft", "in_review"),
    "output": ("published", "draft", "in_progress", "review"),
}
_WORDS = (
    *("review", "ship", "measure", "document", "release", "migrate", "parser"),
    *("budget", "window", "harbour", "ledger", "index", "query"),
)
_EDGES_PER_ENTITY = 1.3
_DIRECT = 0.3


def create_project(connection: Connection, entities: int, seed: int = 1) -> str:
    """Insert a project of about ``entities`` entities and 1.3 times as many edges; its id."""
    chance = random.Random(seed * 1_000_003 + entities)
    project = new_id(chance)
    with connection.transaction():
        fill_project(connection, project, f"Synthetic project of {entities}", entities, chance)
    connection.execute("analyze")
    return project


def fill_project(
    connection: Connection,
    project: str,
    name: str,
    entities: int,
    chance: random.Random,
    owner: str | None = None,
) -> list[tuple[str, str]]:
    """Insert a project, its entities and edges; the entities' kinds and ids."""
    ids: list[tuple[str, str]] = []
    connection.execute(
        "insert into onto_projects"
        " (id, name, state_key, type_key, description, next_step_short, start_at, created_by)"
        " values (%s, %s, 'active', 'project.software', %s, 'Ship it', '2025-01-01Z', %s)",
        [project, name, words(chance, 30), owner],
    )
    for kind in KINDS.entities:
        amount = max(round(entities * SHARE[kind.name]), 1)
        born = [new_id(chance) for _ in range(amount)]
        ids += [(kind.name, each) for each in born]
        copy_rows(connection, kind, (_row(kind, each, project, chance) for each in born))
    copy_edges(connection, project, _random_edges(project, ids, chance), chance)
    return ids


def new_id(chance: random.Random) -> str:
    """A UUID."""
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))


def words(chance: random.Random, most: int) -> str:
    """Some words, three at least."""
    return " ".join(chance.choices(_WORDS, k=chance.randint(3, most)))


def _time(chance: random.Random) -> str:
    return f"2026-{chance.randint(1, 12):02}-{chance.randint(1, 28):02} {chance.randint(0, 23):02}:07:00+00"


def _row(kind: Kind, entity: str, project: str, chance: random.Random) -> dict[str, Any]:
    row: dict[str, Any] = {"id": entity, "project_id": project, "created_at": "2025-06-01 00:00:00+00"}
    for column in kind.columns_of():
        if column.name in row or column.name == "deleted_at":
            continue
        row[column.name] = _cell(kind, column.name, column.type, chance)
    return row


def _cell(kind: Kind, name: str, of_type: str, chance: random.Random) -> Any:
    if name == "state_key":
        return chance.choice(STATES[kind.name])
    if name == "impact":
        return chance.choice(("low", "medium", "medium", "high", "critical"))
    if name == kind.label or name in {"title", "name"}:
        return words(chance, 12)
    made = {
        "text": lambda: words(chance, 120) if name == "content" else words(chance, 40),
        "integer": lambda: chance.choice((None, 1, 2, 3, 4)),
        "numeric": lambda: chance.choice((None, 0.3, 0.6)),
        "timestamptz": lambda: _time(chance),
        "jsonb": lambda: json.dumps({"summary": words(chance, 30)}),
        "uuid": lambda: None,
    }
    return made[of_type]()  # type: ignore[no-untyped-call]


def copy_rows(connection: Connection, kind: Kind, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows of a kind: every column but deleted_at."""
    names = [column.name for column in kind.columns_of() if column.name != "deleted_at"]
    with connection.cursor().copy(f"copy {kind.table} ({', '.join(names)}) from stdin".encode()) as copy:
        for row in rows:
            copy.write_row([row[name] for name in names])


_RELATIONS = {
    ("task", "task"): "depends_on",
    ("task", "plan"): "belongs_to_plan",
    ("task", "goal"): "supports_goal",
    ("plan", "goal"): "supports_goal",
}


def _random_edges(project: str, ids: list[tuple[str, str]], chance: random.Random) -> Iterator[Link]:
    for kind, entity in ids:
        if chance.random() < _DIRECT:
            yield "project", project, f"has_{kind}", kind, entity
    for _ in range(round(len(ids) * (_EDGES_PER_ENTITY - _DIRECT))):
        (src_kind, src), (dst_kind, dst) = chance.choice(ids), chance.choice(ids)
        yield src_kind, src, _RELATIONS.get((src_kind, dst_kind), "references"), dst_kind, dst


def copy_edges(connection: Connection, project: str, links: Iterable[Link], chance: random.Random) -> None:
    """Insert the edges of a project."""
    columns = "id, project_id, src_kind, src_id, rel, dst_kind, dst_id"
    with connection.cursor().copy(f"copy onto_edges ({columns}) from stdin".encode()) as copy:
        for link in links:
            copy.write_row([new_id(chance), project, *link])

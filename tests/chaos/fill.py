"""The tables as they are when a run begins. From the seed alone."""

from random import Random
from typing import Any

from chaos.editors import TABLES, Connection
from chaos.edits import FOUND, Draw, again, nowhere, row, tick
from chaos.people import PROBED, Population, Project, uid
from psycopg.types.json import Jsonb

from foreword.kinds import KINDS, Kind
from loaders.tables import EDGES, MEMBERS


def fill(connection: Connection, people: Population) -> None:
    """The projects that are there at the start, each with its probes and some more rows."""
    draw = Draw(Random(f"{people.seed}/fill"), people)
    with connection.transaction():
        connection.execute(TABLES)
        for tenant, actors in enumerate(people.actors):
            for number, actor in enumerate(actors):
                name = f"actor {tenant}/{number}"
                connection.execute(
                    "insert into onto_actors (id, kind, name) values (%s, 'human', %s)", [actor, name]
                )
        for project in people.there:
            owner = people.actors[project.tenant][0]
            connection.execute(FOUND.encode(), {"project": project.id, "canary": project.canary, "owner": owner})
        for project in people.all:  # also rows of projects that are not there yet
            _settle(connection, project, draw)
        for spectator in people.spectators:
            _look_on(connection, spectator, draw)


def _settle(connection: Connection, project: Project, draw: Draw) -> None:
    for kind in PROBED:
        best = row(kind, project, draw) | {"id": project.probe(kind), "props": {"probe": True}, "payload": None}
        cells = {c.name: best[c.name] for c in kind.columns_of()}
        _insert(connection, kind, cells)
        statement = tick(kind, project)
        connection.execute(statement.sql.encode(), statement.parameters)
    for kind in KINDS.entities:
        for _ in range(draw.dice.randrange(3)):
            _insert(connection, kind, row(kind, project, draw))
    for actor in draw.dice.sample(draw.people.actors[project.tenant], 3):
        connection.execute(
            f"insert into {MEMBERS} (id, project_id, actor_id, role_key)"
            " values (gen_random_uuid(), %s, %s, 'editor')",
            [project.id, actor],
        )


def _look_on(connection: Connection, spectator: Project, draw: Draw) -> None:
    """Edges into rows of others that come and go, into other projects, and into nothing."""
    for number in range(30):
        other, kind = draw.dice.choice(draw.people.edited), draw.kind()
        src = spectator.probe(KINDS.by_name["goal"])
        end = draw.dice.choice((again(other, kind, draw.dice.randrange(3)), other.id, nowhere(number % 5)))
        connection.execute(
            f"insert into {EDGES} (id, project_id, src_kind, src_id, dst_kind, dst_id, rel)"
            " values (%s, %s, 'goal', %s, %s, %s, 'relates_to')".encode(),
            [
                uid("look", spectator.id, number),
                spectator.id,
                src,
                kind.name,
                end,
            ],
        )


def _insert(connection: Connection, kind: Kind, cells: dict[str, Any]) -> None:
    connection.execute(
        f"insert into {kind.table} select * from jsonb_populate_record(null::{kind.table}, %s)"
        " on conflict (id) do nothing".encode(),
        [Jsonb(cells)],
    )

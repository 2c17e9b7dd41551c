"""Handles in the database: looked up, and drawn for entities that are shown for the first time.

A number is drawn once and never used again: rows are never deleted, the next number is the highest ever plus
one. Drawing is safe under concurrency without a lock: whoever loses a number to another tries the next.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from psycopg import errors

from foreword.errors import BuildError
from foreword.handles import handle
from foreword.kinds import PROJECT, Registry
from loaders.connection import Connection, mapped

# The handles of given entities.
_LOOKUP = """
select entity_id, kind, number from fw_handles
where project_id = %(project)s::uuid and entity_id = any(%(ids)s::uuid[])
"""

# Numbers for entities without one, in the order given, after the highest of their kind.
_DRAW = """
insert into fw_handles (project_id, entity_id, kind, number)
select %(project)s::uuid, new.id, new.kind,
       case when new.kind = 'project' then nextval('fw_project_number')
            else new.place + coalesce((select max(h.number) from fw_handles h
                                       where h.project_id = %(project)s::uuid and h.kind = new.kind), 0) end
from (select id, kind, row_number() over (partition by kind order by place) as place
      from unnest(%(ids)s::uuid[], %(kinds)s::text[]) with ordinality as given(id, kind, place)) new
on conflict do nothing
"""

# Who bears a handle.
_BEARER = """
select entity_id from fw_handles where project_id = %(project)s::uuid and kind = %(kind)s and number = %(number)s
"""

_TRIES = 20


def handles_for(
    connection: Connection, project_id: str, named: Sequence[tuple[str, str]], kinds: Registry
) -> dict[str, str]:
    """The handle of every (kind, id) in ``named``, by id; drawn in that order where there is none yet.

    Raises:
        BuildError: the numbers could not be drawn.
    """
    with mapped(f"numbering entities of project {project_id}"):
        for _ in range(_TRIES):
            found = _lookup(connection, project_id, (entity for _, entity in named), kinds)
            missing = [(kind, entity) for kind, entity in named if entity not in found]
            if not missing:
                return found
            _draw(connection, project_id, missing)
    raise BuildError(f"project {project_id}: others kept drawing the same handles; try again")


def _draw(connection: Connection, project_id: str, missing: Sequence[tuple[str, str]]) -> None:
    asked = {
        "project": project_id,
        "ids": [entity for _, entity in missing],
        "kinds": [kind for kind, _ in missing],
    }
    with suppress(errors.DeadlockDetected):  # two drawers can want each other's numbers: that is a lost try
        connection.execute(_DRAW, asked)


def _lookup(connection: Connection, project_id: str, ids: Iterable[str], kinds: Registry) -> dict[str, str]:
    asked = {"project": project_id, "ids": "{" + ",".join(ids) + "}"}
    letters = {kind.name: kind.handle for kind in kinds.all}
    rows = connection.execute(_LOOKUP, asked, prepare=True).fetchall()
    return {entity: handle(letters[kind], number) for entity, kind, number in rows if kind in letters}


def bearer(connection: Connection, project_id: str, kind: str, number: int) -> str | None:
    """The id of the entity that bears a handle in a project, or None."""
    asked = {"project": project_id, "kind": kind, "number": number}
    with mapped(f"looking up a handle of project {project_id}"):
        row = connection.execute(_BEARER, asked, prepare=True).fetchone()
    return row[0] if row is not None else None


def project_of(connection: Connection, number: int) -> str | None:
    """The id of the project whose handle has this number, or None."""
    with mapped("looking up a project's handle"):
        row = connection.execute(
            "select project_id from fw_handles where kind = %s and number = %s", [PROJECT, number]
        ).fetchone()
    return row[0] if row is not None else None

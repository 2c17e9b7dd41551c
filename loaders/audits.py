"""Which bundles may be compared with a fresh build, and how many were, and were different."""

from collections.abc import Sequence

from foreword.stamp import SCHEMA
from loaders.connection import Connection, mapped

# Built, and nothing that a fresh build could see otherwise: no edit, no request, no end of its day.
_SETTLED = f"""
p.generation > 0 and p.entities >= 0 and p.error is null and p.parked_at is null and p.requested <= p.finished
and p.layout = {SCHEMA} and coalesce(p.valid_until > now(), true) and coalesce(p.refresh_at > now(), true)
and not exists (select from fw_changes c where c.project_id = p.project_id)
"""

_PICK = f"""
select project_id from fw_projects p where {_SETTLED} order by md5(p.project_id::text || %s) limit %s
"""  # noqa: S608

_GENERATION = f"select generation from fw_projects p where project_id = %s and {_SETTLED}"  # noqa: S608

# What other projects log says something of this one only when they are built (loaders.ledger): until then a fresh
# build may see an edge end where the bundle's does not, and the other way round.
_EXPECTS_ECHO = """
select exists (
  select from fw_changes c, unnest(c.row_ids) as edited(id)
    join onto_edges e on e.src_id = edited.id or e.dst_id = edited.id
  where e.project_id = %(project)s::uuid and c.project_id <> %(project)s::uuid)
"""

_RECORD = """
insert into fw_facts as f (name, value)
select * from unnest(array['audited', 'audit_mismatches'], %s::bigint[])
on conflict (name) do update set value = f.value + excluded.value
"""

_RESET = "update fw_facts set value = 0 where name in ('audited', 'audit_mismatches')"


def pick(connection: Connection, number: int, seed: str) -> list[str]:
    """Up to so many settled projects, by chance; the same ones for the same seed."""
    with mapped("picking projects"):
        return [row[0] for row in connection.execute(_PICK, [seed, number]).fetchall()]


def settled(connection: Connection, project_id: str) -> int | None:
    """The generation on record of a project whose bundle a fresh build must equal; None where it may differ."""
    with mapped(f"looking whether project {project_id} is settled"):
        row = connection.execute(_GENERATION, [project_id]).fetchone()
    return row[0] if row is not None else None


def expects_echo(connection: Connection, project_id: str) -> bool:
    """Whether something was edited elsewhere, and not built, where an edge of the project ends."""
    with mapped(f"looking what project {project_id} waits for"):
        return bool(connection.execute(_EXPECTS_ECHO, {"project": project_id}).fetchall()[0][0])


def record(connection: Connection, numbers: Sequence[int]) -> None:
    """Add to the numbers on record: (compared, different)."""
    with mapped("recording an audit"):
        connection.execute(_RECORD, [list(numbers)])


def reset(connection: Connection) -> None:
    """Begin to count anew."""
    with mapped("resetting the audit's numbers"):
        connection.execute(_RESET)

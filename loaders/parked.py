"""Projects that were given up after too many failures: which, why, and telling that nobody wants to hear of one.

A parked project is tried again when it is edited, or asked for. One that was dropped is parked like any other, but
since ever: it is counted apart and named only to who asks for it. The next edit takes it out of that state, and if
it fails again, it is parked as a new one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from loaders.connection import Connection, mapped
from loaders.subscriptions import moment

DROPPED = "-infinity"
"""When a dropped project was parked."""

_PARKED = f"""
select p.project_id, h.number, nullif(p.parked_at, '{DROPPED}'), p.attempts, p.error, p.built_at,
  (select count(*) from fw_changes c where c.project_id = p.project_id)
from fw_projects p left join fw_handles h on h.project_id = p.project_id and h.entity_id = p.project_id
where p.parked_at is not null and (%(all)s or p.parked_at <> '{DROPPED}')
order by p.parked_at desc, p.project_id limit %(limit)s
"""  # noqa: S608

_DROP = f"""
update fw_projects set parked_at = '{DROPPED}' where parked_at is not null and project_id = any(%s::uuid[])
returning project_id
"""  # noqa: S608


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """A project that was given up.

    Attributes:
        number: of its handle, None where it was never built.
        since: None where it was dropped.
        attempts: builds that failed in a row.
        error: the last one's.
        built_at: when the bundle that can still be read was built; None where there is none.
        edits: rows of the change log that no bundle has.
    """

    project_id: str
    number: int | None
    since: datetime | None
    attempts: int
    error: str | None
    built_at: datetime | None
    edits: int

    @property
    def dropped(self) -> bool:
        """Whether nobody wants to hear of it."""
        return self.since is None


def parked(connection: Connection, limit: int = 1000, *, dropped: bool = False) -> list[Parked]:
    """Parked projects, the latest first; with ``dropped`` those as well, at the end."""
    with mapped("listing parked projects"):
        rows = connection.execute(_PARKED, {"all": dropped, "limit": limit}).fetchall()
    return [
        Parked(
            project_id=row[0],
            number=row[1],
            since=moment(row[2]),
            attempts=row[3],
            error=row[4],
            built_at=moment(row[5]),
            edits=row[6],
        )
        for row in rows
    ]


def drop(connection: Connection, project_ids: Sequence[str]) -> list[str]:
    """Have those of the projects that are parked be named no more; which they were."""
    with mapped("dropping parked projects"):
        return [row[0] for row in connection.execute(_DROP, [list(project_ids)]).fetchall()]

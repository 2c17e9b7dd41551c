"""How the system stands, at a glance: so cheap that it may be asked every second."""

from dataclasses import dataclass

from foreword.kinds import KINDS
from loaders.connection import Connection, mapped

MOST = 1000
"""Dirty projects that are counted; where there are more, it is at least so many."""

_GLANCE = """
with recursive dirty as (
  (select project_id from fw_changes order by project_id limit 1)
  union all
  select next.project_id from dirty, lateral (
    select c.project_id from fw_changes c where c.project_id > dirty.project_id
    order by c.project_id limit 1) next),
counted as (select project_id from dirty limit %(most)s)
select
  (select count(*) from (
    select project_id from counted
    union (select project_id from fw_projects where requested > finished limit %(most)s)) waiting),
  building, parked, failing,
  (select count(*) from fw_briefs where state = 'pending'),
  (select count(*) from fw_briefs where state = 'generating'),
  coalesce((select value from fw_facts where name = 'paused'), 0)
from (
  select count(*) filter (where builder is not null) as building,
    count(*) filter (where parked_at <> '-infinity') as parked,
    count(*) filter (where error is not null and parked_at is null) as failing
  from fw_projects where builder is not null or error is not null or parked_at is not null) projects
"""

# Asked only where there is any. What is given up is worse than what is tried again, and more attempts than fewer.
_WORST = """
select p.project_id, h.number, p.attempts, left(p.error, 500) from (
  select project_id, attempts, error from fw_projects
  where error is not null and (parked_at is null or parked_at <> '-infinity')
  order by parked_at is null, attempts desc, project_id limit 1) p
left join fw_handles h on h.project_id = p.project_id and h.entity_id = p.project_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """A project that fails or was given up. ``handle`` is its id where it was never built."""

    handle: str
    attempts: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """Attributes:
    dirty: projects that were edited or asked for and are not built, at most about ``MOST``.
    building: builds that have begun and not ended; one that was killed is among them until it is found out.
    parked: projects that are not tried any more, those that were dropped apart.
    failing: whose last build failed, and which are tried again.
    worst: of those that are parked or failing; None where there is none.
    briefs_pending, briefs_generating: briefs not made yet, and under way.
    paused: the switch: 0, 1 the sweep, 2 everything.
    """

    dirty: int
    building: int
    parked: int
    failing: int
    worst: Worst | None
    briefs_pending: int
    briefs_generating: int
    paused: int


def glance(connection: Connection) -> Glance:
    """How the system stands now."""
    with mapped("looking how the system stands"):
        # Planned anew each time: a plan made while the log was empty would read all of it for each project.
        (row,) = connection.execute(_GLANCE, {"most": MOST}, prepare=False).fetchall()
        worst = connection.execute(_WORST).fetchone() if row[2] or row[3] else None
    return Glance(
        dirty=row[0],
        building=row[1],
        parked=row[2],
        failing=row[3],
        worst=_worst(*worst) if worst is not None else None,
        briefs_pending=row[4],
        briefs_generating=row[5],
        paused=row[6],
    )


def _worst(project: str, number: int | None, attempts: int, error: str) -> Worst:
    handle = project if number is None else f"{KINDS.project.handle}{number}"
    reason = error.removeprefix(f"project {project} cannot be built: ")  # there is one line for it
    return Worst(handle=handle, attempts=attempts, error=reason)

"""How the system stands, at a glance: so cheap that it may be asked every second."""

from dataclasses import dataclass

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
  (select count(*) from fw_projects where builder is not null),
  (select count(*) from fw_projects where parked_at is not null),
  (select count(*) from fw_briefs where state = 'pending'),
  (select count(*) from fw_briefs where state = 'generating'),
  coalesce((select value from fw_facts where name = 'paused'), 0)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """Attributes:
    dirty: projects that were edited or asked for and are not built, at most about ``MOST``.
    building: builds that have begun and not ended; one that was killed is among them until it is found out.
    parked: projects that are not tried any more.
    briefs_pending, briefs_generating: briefs not made yet, and under way.
    paused: the switch: 0, 1 the sweep, 2 everything.
    """

    dirty: int
    building: int
    parked: int
    briefs_pending: int
    briefs_generating: int
    paused: int


def glance(connection: Connection) -> Glance:
    """How the system stands now."""
    with mapped("looking how the system stands"):
        # Planned anew each time: a plan made while the log was empty would read all of it for each project.
        (row,) = connection.execute(_GLANCE, {"most": MOST}, prepare=False).fetchall()
    return Glance(
        dirty=row[0],
        building=row[1],
        parked=row[2],
        briefs_pending=row[3],
        briefs_generating=row[4],
        paused=row[5],
    )

"""How briefs stand, for operators: what waits, what is late and by how much, what failed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from loaders.connection import Connection, mapped
from loaders.subscriptions import moment

# Of the last day by when their rows were made: that is shortly before they were due, or when it was found that
# they had been.
_STATES = """
select state, count(*) from fw_briefs where created_at > now() - interval '1 day' group by state
"""

_LATENESS = """
select count(*), coalesce(percentile_disc(array[0.5, 0.95, 0.99, 1]) within group (
  order by extract(epoch from a.sent_at - b.due_at)::float8), '{}')
from fw_briefs b join fw_announcements a using (user_id, local_date)
where b.created_at > now() - interval '1 day' and a.channel = 'stream' and a.sent_at is not null
"""

_NOW = """
select
  (select count(*) from fw_briefs where state = 'pending'),
  (select count(*) from fw_briefs where state = 'generating'),
  late.count, late.greatest,
  (select min(next_run_at) from fw_subscriptions where active and error is null),
  subscriptions.active, subscriptions.paused, subscriptions.broken,
  (select count(*) from fw_announcements where sent_at is null and dead_at is null),
  (select coalesce(extract(epoch from now() - min(b.due_at))::float8, 0)
   from fw_announcements a join fw_briefs b using (user_id, local_date)
   where a.sent_at is null and a.dead_at is null and b.due_at <= now()),
  (select count(*) from fw_announcements where dead_at is not null),
  (select count(*) from fw_briefs where state = 'failed')
from (
  select count(*), coalesce(extract(epoch from now() - min(due_at))::float8, 0) as greatest
  from fw_briefs where state in ('pending', 'generating') and due_at <= now() and told_at is null) late,
  (select count(*) filter (where active and error is null) as active, count(*) filter (where not active) as paused,
     count(*) filter (where active and error is not null) as broken
   from fw_subscriptions) subscriptions
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Attributes:
    states: briefs of the last 24 hours, by state.
    pending, generating: at this moment.
    overdue: due and not ready; ``greatest_lateness`` of them in seconds.
    lateness: of those told in the last 24 hours, seconds by share: p50, p95, p99, most; empty where none was.
    next_due: the next run of a subscription.
    active, paused, broken: subscriptions.
    announcements_waiting: not told yet, those that are not due among them. ``longest_untold``: seconds for which
    the oldest of those that are due has waited.
    announcements_dead, briefs_dead: dead letters.
    """

    states: Mapping[str, int]
    pending: int
    generating: int
    overdue: int
    greatest_lateness: float
    lateness: Mapping[str, float]
    next_due: datetime | None
    active: int
    paused: int
    broken: int
    announcements_waiting: int
    longest_untold: float
    announcements_dead: int
    briefs_dead: int


def status(connection: Connection) -> Status:
    """How briefs stand, by the database's clock."""
    with mapped("looking how briefs stand"), connection.transaction():
        states: dict[str, int] = dict(connection.execute(_STATES).fetchall())
        ((_, shares),) = connection.execute(_LATENESS).fetchall()
        (row,) = connection.execute(_NOW).fetchall()
    return Status(
        states=states,
        pending=row[0],
        generating=row[1],
        overdue=row[2],
        greatest_lateness=row[3],
        lateness=dict(zip(("p50", "p95", "p99", "most"), shares, strict=False)),
        next_due=moment(row[4]),
        active=row[5],
        paused=row[6],
        broken=row[7],
        announcements_waiting=row[8],
        longest_untold=row[9],
        announcements_dead=row[10],
        briefs_dead=row[11],
    )

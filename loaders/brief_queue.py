"""Which briefs are next, fairly, and which are given up: what a relay does about briefs in the database.

Every statement stands for itself, as in ``loaders.claims``: a relay that dies between two has done no harm, and
two at once claim different briefs. How a generation begins and ends: ``loaders.briefs``.
"""

from dataclasses import dataclass
from datetime import date, datetime
from secrets import token_hex
from typing import NamedTuple

from loaders.briefs import (
    GIVEN_UP,
    LEASE_SECONDS,
    LONGEST_BACKOFF_SECONDS,
    MISSED,
    MOST_ATTEMPTS,
    OWED,
    UNDER_WAY,
    is_over,
)
from loaders.claims import EVERYTHING
from loaders.connection import Connection, mapped

MESSAGE_SECONDS = 3
"""For a message to reach a worker, doubled with each one up to a minute."""

DEATH_SECONDS = 0.5
"""After a session that ended in the middle of a generation, doubled with every attempt, until another begins."""

OWNERS = 100
"""Tenants looked at in one claim, from anywhere in their order: more than get a turn."""

OLDEST = 200
"""Overdue briefs looked at whoever they belong to, the longest overdue first."""

_OPEN = f"{UNDER_WAY} and quiet_until <= now() and attempts < {MOST_ATTEMPTS}"

# The tenants with briefs under way, a jump over the index for each.
_TENANTS = """
  (select tenant from fw_briefs where {under_way} and {within} order by tenant limit 1)
  union all
  select following.tenant from {name}, lateral (
    select tenant from fw_briefs where {under_way} and tenant > {name}.tenant and {within} order by tenant limit 1)
    following"""

# The tenant with the fewest messages under way comes first, whose briefs are overdue before others, so that
# nobody's thousands delay another's one. Without a tenant everybody is for himself. For every tenant no more is
# looked at than it could get.
_CLAIM = f"""
with recursive
later as ({_TENANTS.format(under_way=UNDER_WAY, within="tenant >= %(start)s", name="later")}),
earlier as ({_TENANTS.format(under_way=UNDER_WAY, within="tenant < %(start)s", name="earlier")}),
tenants as (
  select tenant from (
    (select tenant from later limit {OWNERS}) union all (select tenant from earlier limit {OWNERS})) either
  limit {OWNERS}),
candidates as (
  select each.* from tenants, lateral (
    select user_id, local_date, tenant, due_at from fw_briefs b where {_OPEN} and b.tenant = tenants.tenant
    order by quiet_until limit {{window}}) each
  union
  (select user_id, local_date, tenant, due_at from fw_briefs where {_OPEN} and tenant is null
   order by tenant, quiet_until limit {{window}})
  union
  (select user_id, local_date, tenant, due_at from fw_briefs where {_OPEN} and due_at <= now()
   order by due_at limit {OLDEST})),
sent as (
  select coalesce(tenant, user_id::text) as owner, count(*) as messages from fw_briefs
  where sends > 0 and state = 'pending' and quiet_until > now()
  group by 1),
placed as (
  select user_id, local_date,
    row_number() over (order by turn, overdue desc, due_at nulls first, user_id) as place
  from (
    select user_id, local_date, due_at, overdue,
      coalesce(messages, 0) + row_number() over (
        partition by owner order by overdue desc, due_at nulls first, user_id) as turn
    from (select *, coalesce(due_at <= now(), true) as overdue, coalesce(tenant, user_id::text) as owner
          from candidates) c
      left join sent using (owner)) turns),
chosen as (
  select b.user_id, b.local_date from placed join fw_briefs b using (user_id, local_date)
  where placed.place <= {{window}} - (select coalesce(sum(messages), 0) from sent) and {_OPEN}
    and not exists (select from fw_facts where name = 'paused' and value >= {EVERYTHING})
  order by b.user_id, b.local_date for update of b skip locked)
update fw_briefs b set state = 'pending', lease = null, sends = b.sends + 1,
  quiet_until = now() + least(power(2, least(b.sends, 10)) * interval '{MESSAGE_SECONDS} s', interval '1 min')
from chosen where b.user_id = chosen.user_id and b.local_date = chosen.local_date
returning b.user_id, b.local_date, b.sends
"""  # noqa: S608

# Who died in the middle took his session with him, and nobody waits for his lease to end. That it has ended is no
# proof that he is dead: his token still decides who may record anything.
_RELEASE = f"""
update fw_briefs b set quiet_until = d.until
from (select user_id, local_date, lease, now() + power(2, attempts - 1) * interval '{DEATH_SECONDS} s' as until
      from fw_briefs
      where state = 'generating' and quiet_until > now() + power(2, attempts - 1) * interval '{DEATH_SECONDS} s'
        and lease like '% %' and split_part(lease, ' ', 1) not in (
          select pid::text from pg_stat_activity where pid is not null)) d
where b.user_id = d.user_id and b.local_date = d.local_date and b.lease = d.lease and b.state = 'generating'
"""  # noqa: S608

_REAP = f"""
update fw_briefs b set state = {GIVEN_UP}, lease = null, sends = 0,
  reason = 'the generation ended {MOST_ATTEMPTS} times without a word: killed, out of memory, or out of time'
from (select user_id, local_date from fw_briefs
      where state = 'generating' and quiet_until <= now() and attempts >= {MOST_ATTEMPTS}
      order by user_id, local_date limit 1000 for update skip locked) d
where b.user_id = d.user_id and b.local_date = d.local_date
returning b.user_id, b.local_date
"""  # noqa: S608

# Dates that may be over somewhere: whether they are is for Python to say.
_DATES = f"""
select distinct zone, local_date, now() from fw_briefs
where {UNDER_WAY} and {OWED} and due_at <= now()
  and local_date < (now() at time zone 'UTC' + interval '14 hours')::date
"""  # noqa: S608

_MISS_ALL = f"""
update fw_briefs b set {MISSED}
from (select user_id, local_date from fw_briefs join unnest(%(zones)s::text[], %(dates)s::date[])
        as over(zone, local_date) using (zone, local_date)
      where {OWED} and due_at <= now() and (state = 'pending' or (state = 'generating' and quiet_until <= now()))
      order by user_id, local_date limit 1000 for update of fw_briefs skip locked) d
where b.user_id = d.user_id and b.local_date = d.local_date
"""  # noqa: S608

# Set by a clock that was put back since: no message, generation or back-off takes so long.
_WAKE = f"""
update fw_briefs set quiet_until = greatest(build_at, now())
where {UNDER_WAY} and quiet_until > build_at and quiet_until > now() + case
  when sends > 0 then interval '2 min' when state = 'generating' then interval '{2 * LEASE_SECONDS} s'
  else interval '{2 * LONGEST_BACKOFF_SECONDS} s' end
"""  # noqa: S608


class Claimed(NamedTuple):
    """A brief to be made. ``sends`` counts the messages since the last begin."""

    user_id: str
    local_date: date
    sends: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaped:
    """What was given up: (user, date) of dead letters; how many briefs were missed, as their date is over."""

    failed: tuple[tuple[str, date], ...]
    missed: int = 0


def claim(connection: Connection, window: int) -> list[Claimed]:
    """Claim briefs whose time to build has come, so that at most ``window`` messages are under way: (user, date).
    Nothing while everything is paused.
    """
    # The number stands in the text: with one that it does not know, the planner prepares for very many.
    statement = _CLAIM.format(window=int(window))
    with mapped("claiming briefs"):
        rows = connection.execute(statement.encode(), {"start": token_hex(4)}, prepare=True).fetchall()
    return [Claimed(user, date.fromisoformat(day), sends) for user, day, sends in rows]


def release(connection: Connection) -> tuple[tuple[str, date], ...]:
    """Let go of what a session that is gone had, and give up what dies again and again: (user, date) of at most
    1000. Cheap, to be done each second.
    """
    with mapped("giving up briefs"):
        connection.execute(_RELEASE)  # not prepared: a percent sign would be doubled
        failed = connection.execute(_REAP, prepare=True).fetchall()
    return tuple((user, date.fromisoformat(day)) for user, day in failed)


def reap(connection: Connection) -> Reaped:
    """``release``, and give up what nobody generated while its date lasted, at most 1000. Looks at all that waits:
    27 to 52 ms at 100,000.
    """
    failed = release(connection)
    with mapped("giving up briefs"):
        dates = connection.execute(_DATES, prepare=True).fetchall()
        over = [
            (zone, day)
            for zone, day, now in dates
            if is_over(zone, date.fromisoformat(day), datetime.fromisoformat(now))
        ]
        missed = 0
        if over:
            zones, days = (list(column) for column in zip(*over, strict=True))
            missed = connection.execute(_MISS_ALL, {"zones": zones, "dates": days}).rowcount
        connection.execute(_WAKE, prepare=True)
    return Reaped(failed=failed, missed=missed)

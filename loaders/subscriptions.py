"""Who gets a brief, and when: one row a user.

What a subscription may be is said in ``loaders.wanted``. The application may edit the rows by plain SQL:
a trigger takes back what was already made for the old time (migration 0005) and leaves the next run to the tick;
who edits through here has it computed at once. Decides nothing about briefs: ``loaders.tick`` does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import lru_cache
from typing import Any, NamedTuple

from foreword.errors import BadInput
from foreword.schedule import Occurrence, Rhythm, next_run, runs
from foreword.zones import zone_named
from loaders.connection import Connection, mapped
from loaders.wanted import Wanted

AT_ONCE = 5000
"""Rows of one statement; an import has many in one transaction."""

_COLUMNS = (
    "user_id, zone, at::text, weekday, active, channels, when_empty, tenant, last_visit_at,"
    " next_run_at, next_date, error"
)

# Only rows that differ are written. Whether somebody has paused is left as it is where nothing is said of it.
_SAVE = """
insert into fw_subscriptions as s (user_id, zone, at, weekday, active, channels, when_empty, tenant)
select user_id, zone, at, weekday, coalesce(%(active)s::bool, true), channels::text[], when_empty, tenant
from unnest(%(users)s::uuid[], %(zones)s::text[], %(times)s::time[], %(weekdays)s::smallint[],
  %(channels)s::text[], %(when_empty)s::text[], %(tenants)s::text[])
  as given(user_id, zone, at, weekday, channels, when_empty, tenant)
order by user_id
on conflict (user_id) do update set zone = excluded.zone, at = excluded.at, weekday = excluded.weekday,
  active = coalesce(%(active)s::bool, s.active), channels = excluded.channels, when_empty = excluded.when_empty,
  tenant = excluded.tenant, updated_at = now()
where (s.zone, s.at, s.weekday, s.active, s.channels, s.when_empty, s.tenant) is distinct from
  (excluded.zone, excluded.at, excluded.weekday, coalesce(%(active)s::bool, s.active), excluded.channels,
   excluded.when_empty, excluded.tenant)
"""

_SET_ACTIVE = """
update fw_subscriptions set active = %(active)s, updated_at = now()
where user_id = %(user)s and active <> %(active)s
"""

# By nothing but the key: right after a large import the planner believes that no row lacks a next run.
_LOOK = """
select user_id, zone, at::text, weekday, case when next_run_at is not null then next_date end, now(),
  active and error is null and coalesce(next_run_at <= now(), true)
from unnest(%(users)s::uuid[]) asked(user_id) join fw_subscriptions s using (user_id)
order by user_id for update of s
"""

_STORE = """
update fw_subscriptions s set next_run_at = v.next_run_at, next_date = v.next_date, error = v.error
from unnest(%(users)s::uuid[], %(runs)s::timestamptz[], %(dates)s::date[], %(errors)s::text[])
  as v(user_id, next_run_at, next_date, error)
where s.user_id = v.user_id
"""

_REMOVE = "delete from fw_subscriptions where user_id = %(user)s"

_GET = f"select {_COLUMNS} from fw_subscriptions where user_id = %(user)s"  # noqa: S608

_LIST = f"""
select {_COLUMNS} from fw_subscriptions
where user_id > coalesce(%(after)s::uuid, '00000000-0000-0000-0000-000000000000')
order by user_id limit %(limit)s
"""  # noqa: S608

# A visit in the future would hold off every pause until then.
_VISITED = """
update fw_subscriptions set
  last_visit_at = greatest(last_visit_at, least(coalesce(%(at)s::timestamptz, now()), now()))
where user_id = %(user)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription(Wanted):
    """One as it stands. Times are UTC.

    Attributes:
        last_visit_at: None where the application reports no visits.
        next_run_at, next_date: the next run; None where it is paused, broken, or not computed yet.
        error: why it cannot run, as a zone that is no more; an edit clears it.
    """

    last_visit_at: datetime | None
    next_run_at: datetime | None
    next_date: date | None
    error: str | None


class Run(NamedTuple):
    """What is to be stored of a subscription: its next run, or why it has none."""

    user_id: str
    next: Occurrence | None = None
    error: str | None = None


def save(connection: Connection, subscription: Wanted) -> Subscription:
    """Make it so, now. The next run is strictly later than now; what was made for another time is taken back.

    Raises:
        BadInput: no run is left before the calendar ends.
    """
    save_all(connection, [subscription])
    return get(connection, subscription.user_id)


def save_all(connection: Connection, subscriptions: Sequence[Wanted]) -> int:
    """``save`` for many, all or none, each user once; how many were new or different."""
    changed = 0
    with mapped("saving subscriptions"), connection.transaction():
        for active in (None, True, False):
            alike = [each for each in subscriptions if each.active is active]
            for first in range(0, len(alike), AT_ONCE):
                asked = {"active": active, **_arrays(alike[first : first + AT_ONCE])}
                changed += connection.execute(_SAVE, asked).rowcount
        compute(connection, [each.user_id for each in subscriptions])
    return changed


def pause(connection: Connection, user_id: str) -> Subscription:
    """No more briefs until ``resume``. What nobody was told of yet is taken back."""
    return _set_active(connection, user_id, active=False)


def resume(connection: Connection, user_id: str) -> Subscription:
    """Briefs again, from the next time on."""
    return _set_active(connection, user_id, active=True)


def remove(connection: Connection, user_id: str) -> bool:
    """Whether there was one. Briefs that were told stay readable, others are taken back."""
    with mapped("removing a subscription"):
        return connection.execute(_REMOVE, {"user": user_id}).rowcount > 0


def find(connection: Connection, user_id: str) -> Subscription | None:
    """A user's subscription, if there is one."""
    with mapped("looking for a subscription"):
        row = connection.execute(_GET, {"user": user_id}).fetchone()
    return _subscription(row) if row is not None else None


def get(connection: Connection, user_id: str) -> Subscription:
    """A user's subscription.

    Raises:
        BadInput: there is none.
    """
    found = find(connection, user_id)
    if found is None:
        raise BadInput(f"user {user_id} has no subscription; save one with a zone and a time of day")
    return found


def listed(connection: Connection, *, after: str | None = None, limit: int = 100) -> list[Subscription]:
    """A page of subscriptions in the order of their users; the next page is ``after`` the last of this one."""
    with mapped("listing subscriptions"):
        return [*map(_subscription, connection.execute(_LIST, {"after": after, "limit": limit}).fetchall())]


def visited(connection: Connection, user_id: str, at: datetime | None = None) -> bool:
    """Note that somebody was there, now or ``at``; whether there is a subscription. After an absence daily briefs
    go on with the next run. An earlier visit than the last changes nothing.
    """
    with mapped("noting a visit"):
        return connection.execute(_VISITED, {"user": user_id, "at": at}).rowcount > 0


@lru_cache(maxsize=10_000)
def rhythm_named(zone: str, at: str, weekday: int | None) -> Rhythm:
    """The rhythm of a subscription's columns.

    Raises:
        BadInput, ValueError: the zone is no more, or a column holds what it may not.
    """
    return Rhythm(zone=zone_named(zone), at=time.fromisoformat(at), weekday=weekday)


first_after = lru_cache(maxsize=10_000)(next_run)
"""``foreword.schedule.next_run``; many people share a rhythm."""


@lru_cache(maxsize=50_000)
def first_from(rhythm: Rhythm, day: date) -> Occurrence:
    """The first run on a local date, or later: what the rules give now for a date that was computed before.

    Raises:
        BadInput: the calendar ends before there is one.
    """
    run = next(runs(rhythm, day), None)
    if run is None:
        raise BadInput(f"no run at {rhythm.at} is left before the calendar ends, in the year 9999")
    return run


def compute(connection: Connection, user_ids: Sequence[str]) -> int:
    """Give a next run to those of the users who have none, inside the caller's transaction; how many.

    A run that is overdue stays, to be caught up with, unless the rule now gives a later time.
    """
    computed = 0
    for first in range(0, len(user_ids), AT_ONCE):
        asked = {"users": list(user_ids[first : first + AT_ONCE])}
        rows = connection.execute(_LOOK, asked, prepare=True).fetchall()
        found = [_computed(*row) for *row, wanting in rows if wanting]
        store(connection, found)
        computed += len(found)
    return computed


def _computed(user: str, zone: str, at: str, weekday: int | None, day: str | None, now: str) -> Run:
    try:
        rhythm, known = rhythm_named(zone, at, weekday), day_of(day)
        return Run(user, first_from(rhythm, known) if known else first_after(rhythm, datetime.fromisoformat(now)))
    except (BadInput, ValueError) as error:
        return Run(user, error=str(error))


def store(connection: Connection, found: Sequence[Run]) -> None:
    """Store next runs. Who has none and an error is not looked at again before an edit."""
    if not found:
        return
    columns: dict[str, list[Any]] = {
        "users": [each.user_id for each in found],
        "runs": [each.next.at if each.next else None for each in found],
        "dates": [each.next.date if each.next else None for each in found],
        "errors": [each.error for each in found],
    }
    connection.execute(_STORE, columns, prepare=True)


def moment(stored: str | None) -> datetime | None:
    """A time as PostgreSQL prints it; None for none, and for one that is infinite or beyond Python's calendar."""
    try:
        return datetime.fromisoformat(stored).astimezone(UTC) if stored else None
    except (ValueError, OverflowError):
        return None


def day_of(stored: str | None) -> date | None:
    """A date as PostgreSQL prints it; None as for ``moment``."""
    try:
        return date.fromisoformat(stored) if stored else None
    except ValueError:
        return None


def _set_active(connection: Connection, user_id: str, *, active: bool) -> Subscription:
    with mapped("pausing or resuming a subscription"), connection.transaction():
        connection.execute(_SET_ACTIVE, {"user": user_id, "active": active})
        compute(connection, [user_id])
    return get(connection, user_id)


def _arrays(subscriptions: Sequence[Wanted]) -> dict[str, list[Any]]:
    return {
        "users": [each.user_id for each in subscriptions],
        "zones": [each.zone for each in subscriptions],
        "times": [each.at for each in subscriptions],
        "weekdays": [each.weekday for each in subscriptions],
        "channels": [f"{{{','.join(each.channels)}}}" for each in subscriptions],
        "when_empty": [each.when_empty for each in subscriptions],
        "tenants": [each.tenant for each in subscriptions],
    }


def _subscription(row: tuple[Any, ...]) -> Subscription:
    return Subscription(
        user_id=row[0],
        zone=row[1],
        at=time.fromisoformat(row[2]),
        weekday=row[3],
        active=row[4],
        channels=tuple(row[5]),
        when_empty=row[6],
        tenant=row[7],
        last_visit_at=moment(row[8]),
        next_run_at=moment(row[9]),
        next_date=day_of(row[10]),
        error=row[11],
    )

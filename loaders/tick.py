"""What a tick does: of the subscriptions whose time has come, say which briefs there are to be, and when the next.

Idempotent: whoever ticks, however often and however many at once, there is one row per user and local date. What
is decided of a subscription and its next run are one transaction. Local times are computed here, in Python, and
instants are compared by the database's clock. Nothing is generated here: ``loaders.briefs``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple
from zlib import crc32

from foreword.cadence import DAILY_UNTIL, WEEKLY_UNTIL, decide
from foreword.dates import today
from foreword.errors import BadInput
from foreword.schedule import Occurrence, Rhythm
from loaders.connection import Connection, mapped
from loaders.subscriptions import Run, day_of, first_after, first_from, moment, rhythm_named, store

AHEAD = timedelta(minutes=15)
"""A brief is there when it is due: it is scheduled, and built, so much earlier."""

SPREAD = 0.8
"""The part of that over which builds begin, by a hash of the user: at 07:00 everybody wants his at once."""

MOST_RUNS = 400
"""Runs of one subscription looked at in a tick. Who was not looked at for years is caught up with in several."""

_DAY = timedelta(days=1)

# Whether there is anything to do: all that an idle tick costs.
_LOOK = """
select exists (select from fw_subscriptions where active and error is null and next_run_at is null)
  or (select next_run_at from fw_subscriptions where active and error is null
      order by next_run_at limit 1) <= now() + %(ahead)s
"""

# Rows that another tick, or an edit, holds are left to it.
_CLAIM = """
select user_id, zone, at::text, weekday, tenant, last_visit_at,
  (select b.local_date from fw_briefs b where b.user_id = s.user_id
     and (b.told_at is not null or (b.due_at is not null and b.state in ('pending', 'generating')))
   order by b.local_date desc limit 1),
  next_run_at, next_date, now()
from fw_subscriptions s where active and error is null and {due}
order by next_run_at limit %(limit)s for update of s skip locked
"""
_UNCOMPUTED = _CLAIM.format(due="next_run_at is null")
_DUE = _CLAIM.format(due="next_run_at <= now() + %(ahead)s")

# A brief that somebody asked for by hand becomes the scheduled one: what is being generated goes on, what was
# ready stays readable and is generated anew. Any other that is there already is the one brief of its date.
_RECORD = """
with given as (
  select * from unnest(%(users)s::uuid[], %(dates)s::date[], %(states)s::text[], %(kinds)s::text[],
    %(zones)s::text[], %(tenants)s::text[], %(due)s::timestamptz[], %(build)s::timestamptz[], %(reasons)s::text[])
    as g(user_id, local_date, state, kind, zone, tenant, due_at, build_at, reason)),
made as (
  insert into fw_briefs as b
    (user_id, local_date, state, kind, zone, tenant, due_at, build_at, quiet_until, reason)
  select user_id, local_date, state, kind, zone, tenant, due_at, build_at, build_at, reason
  from given order by user_id, local_date
  on conflict (user_id, local_date) do update set due_at = excluded.due_at, kind = excluded.kind,
    zone = excluded.zone, tenant = excluded.tenant, build_at = excluded.build_at,
    state = case when b.state = 'generating' then b.state else 'pending' end,
    attempts = case when b.state = 'generating' then b.attempts else 0 end,
    quiet_until = case when b.state = 'generating' then b.quiet_until else excluded.quiet_until end,
    sends = case when b.state = 'generating' then b.sends else 0 end
  where b.due_at is null and excluded.state = 'pending'
  returning case when state = 'generating' then 'pending' else state end as state)
select state, count(*) from made group by state
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked:
    """What a tick has done.

    Attributes:
        scheduled: briefs that are to be generated.
        missed: dates that passed while nothing ran.
        skipped: dates on which somebody who stays away is not written to.
        computed: next runs that were computed though none was due: after an edit, or a change of a zone's rules.
        broken: subscriptions that cannot run; each says why.
        more: whether another tick would have something to do at once.
    """

    scheduled: int = 0
    missed: int = 0
    skipped: int = 0
    computed: int = 0
    broken: int = 0
    more: bool = False


class _Due(NamedTuple):
    """A claimed subscription, in the order of its statement's columns; times as PostgreSQL prints them."""

    user_id: str
    zone: str
    at: str
    weekday: int | None
    tenant: str | None
    last_visit_at: str | None
    last_brief: str | None
    next_run_at: str | None
    next_date: str | None
    now: str


class _Brief(NamedTuple):
    """A brief's row, or a date without one."""

    user_id: str
    date: date
    state: str
    kind: str
    zone: str
    tenant: str | None
    due_at: datetime
    build_at: datetime
    reason: str | None


@dataclass(slots=True)
class _Decided:
    """What becomes of a subscription."""

    run: Run
    briefs: list[_Brief] = field(default_factory=list)
    again: bool = False


def tick(connection: Connection, *, limit: int = 1000, ahead: timedelta = AHEAD) -> Ticked:
    """Schedule what is due within ``ahead``, of at most ``limit`` subscriptions, in one short transaction."""
    with mapped("looking which briefs are due"):
        ((something,),) = connection.execute(_LOOK, {"ahead": ahead}, prepare=True).fetchall()
        if not something:
            return Ticked()
        with connection.transaction():
            rows = [_Due(*row) for row in _claimed(connection, limit, ahead)]
            decided = [_decided(row, ahead) for row in rows]
            counts = _record(connection, [*chain.from_iterable(each.briefs for each in decided)])
            store(connection, [each.run for each in decided])
    return Ticked(
        scheduled=counts.get("pending", 0),
        missed=counts.get("missed", 0),
        skipped=counts.get("skipped", 0),
        computed=sum(each.run.next is not None and not each.briefs for each in decided),
        broken=sum(each.run.next is None for each in decided),
        more=len(rows) >= limit or any(each.again for each in decided),
    )


def _claimed(connection: Connection, limit: int, ahead: timedelta) -> Iterator[tuple[Any, ...]]:
    """First those without a next run: an edit shows at once, however many are due."""
    found = connection.execute(_UNCOMPUTED, {"limit": limit}, prepare=True).fetchall()
    yield from found
    if len(found) < limit:
        asked = {"limit": limit - len(found), "ahead": ahead}
        yield from connection.execute(_DUE, asked, prepare=True).fetchall()


def _record(connection: Connection, briefs: Sequence[_Brief]) -> dict[str, int]:
    """Insert rows for briefs; how many came to be, by state."""
    if not briefs:
        return {}
    names = ("users", "dates", "states", "kinds", "zones", "tenants", "due", "build", "reasons")
    columns = dict(zip(names, map(list, zip(*briefs, strict=True)), strict=True))
    return dict(connection.execute(_RECORD, columns, prepare=True).fetchall())


def _decided(row: _Due, ahead: timedelta) -> _Decided:
    """What becomes of one subscription. One whose row is malformed holds up no other."""
    try:
        rhythm = rhythm_named(row.zone, row.at, row.weekday)
        now = datetime.fromisoformat(row.now)
        planned, day = moment(row.next_run_at), day_of(row.next_date)
        if planned is None or day is None:
            run, decided = first_after(rhythm, now), _Decided(Run(row.user_id))
        else:
            # By the rules of today, which may have changed since it was computed; then it may lie ahead again.
            run, decided = _walked(row, rhythm, first_from(rhythm, day), now, now + ahead)
        decided.run = decided.run._replace(next=run)
        decided.again = run.at <= now + ahead
    except (BadInput, ValueError, OverflowError) as error:
        return _Decided(Run(row.user_id, error=str(error)))
    return decided


def _walked(
    row: _Due, rhythm: Rhythm, run: Occurrence, now: datetime, horizon: datetime
) -> tuple[Occurrence, _Decided]:
    """Every run up to the horizon, each with what becomes of it; and the first beyond."""
    day, visit, last = today(now, rhythm.zone), moment(row.last_visit_at), day_of(row.last_brief)
    visited = today(visit, rhythm.zone) if visit else None
    goes_on = DAILY_UNTIL if rhythm.weekday is None else WEEKLY_UNTIL
    briefs: list[_Brief] = []
    while run.at <= horizon and len(briefs) < MOST_RUNS:
        decision = decide(run.date, visited, last, goes_on_until=goes_on)
        if not decision.kind:
            briefs.append(_passed(row, run, "skipped", decision.reason))
        elif run.date < day:
            reason = f"nothing ran between {_minute(run.at)} and {_minute(now)}"
            briefs.append(_passed(row, run, "missed", reason))
        else:
            build_at = max(now, run.at - (horizon - now) * (1 - SPREAD * _share(row.user_id)))
            briefs.append(
                _Brief(
                    row.user_id,
                    run.date,
                    "pending",
                    decision.kind,
                    row.zone,
                    row.tenant,
                    run.at,
                    build_at,
                    None,
                )
            )
            last = run.date
        run = first_from(rhythm, run.date + _DAY)
    return run, _Decided(Run(row.user_id), briefs)


def _passed(row: _Due, run: Occurrence, state: str, reason: str) -> _Brief:
    return _Brief(row.user_id, run.date, state, "daily", row.zone, row.tenant, run.at, run.at, reason)


def _share(user: str) -> float:
    """Of the user, between 0 and 1, evenly: the same every day."""
    return crc32(user.encode()) / 2**32


def _minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}Z"

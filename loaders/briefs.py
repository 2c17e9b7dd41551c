"""The generation of briefs in the database: who is next, leases, and how each one ends.

States: pending, generating, then ready, failed, skipped or missed. A lease is a token and a time: whoever comes
back after it finds that his token stands no more, and can record nothing. A message is only a wake-up: it may be
lost, doubled or late. A brief is *owed* that is scheduled (``due_at``) and was never finished for that
(``told_at``): one that somebody asked for by hand is told to nobody.

A pause of the sweep alone does not pause briefs: people wait for them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from foreword.dates import today
from foreword.errors import BadInput, BuildError
from foreword.zones import zone_named
from loaders.connection import Connection, mapped
from loaders.shelf import StoredBrief, stored
from loaders.subscriptions import moment

LEASE_SECONDS = 90
"""For a generation; longer than the hard limit of its task, so that two never work on one."""

BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 5, 600
"""After a failure, doubled with every attempt, a quarter more or less: eight attempts take ten minutes."""

MOST_ATTEMPTS = 8
"""Generations of a brief that may fail or die in a row, before it is a dead letter."""

_LEASE = "pg_backend_pid() || ' ' || gen_random_uuid()"
"""A lease: the session that has it, and what nobody else knows."""

UNDER_WAY = "state in ('pending', 'generating')"
OWED = "due_at is not null and told_at is null"

_BEGUN = f"""
returning b.user_id, b.local_date, b.lease, b.kind, b.zone, b.due_at, {OWED}, b.revision, now(),
  coalesce((select s.when_empty from fw_subscriptions s where s.user_id = b.user_id), 'brief')
"""  # noqa: S608

# Only what was claimed, or may be: a message that comes twice does not cut a back-off short.
_BEGIN = f"""
update fw_briefs b set state = 'generating', lease = {_LEASE}, attempts = attempts + 1, sends = 0,
  quiet_until = now() + interval '{LEASE_SECONDS} s'
where user_id = %(user)s and local_date = %(date)s and attempts < {MOST_ATTEMPTS}
  and ((state = 'pending' and sends > 0) or ({UNDER_WAY} and quiet_until <= now()))
{_BEGUN}
"""  # noqa: S608

# By hand: also what has failed, was skipped or missed, and is then told to nobody; what is ready only by force;
# what is being generated never.
_BEGIN_NOW = f"""
insert into fw_briefs as b
  (user_id, local_date, state, kind, zone, tenant, asked_at, build_at, quiet_until, attempts, lease)
select %(user)s, %(date)s, 'generating', 'asked', coalesce(%(zone)s, s.zone, 'UTC'), s.tenant, now(), now(),
  now() + interval '{LEASE_SECONDS} s', 1, {_LEASE}
from (select) one left join fw_subscriptions s on s.user_id = %(user)s
on conflict (user_id, local_date) do update set state = 'generating', asked_at = now(), lease = excluded.lease,
  quiet_until = excluded.quiet_until, sends = 0,
  attempts = case when b.{UNDER_WAY} then b.attempts + 1 else 1 end,
  kind = case when b.state in ('skipped', 'missed') then 'asked' else b.kind end,
  due_at = case when b.state in ('skipped', 'missed') then null else b.due_at end
where b.state in ('pending', 'failed', 'skipped', 'missed') or (b.state = 'generating' and b.quiet_until <= now())
  or (b.state = 'ready' and %(force)s)
{_BEGUN}
"""  # noqa: S608

_HELD = "user_id = %(user)s and local_date = %(date)s and lease = %(lease)s and state = 'generating'"

# Told once: only the generation that a brief was scheduled for leaves announcements. What the next brief is
# compared with is kept of this one and of the one before.
_FINISH = f"""
with held as (
  select user_id, local_date, due_at, {OWED} and %(tell)s as owed from fw_briefs where {_HELD} for update),
done as (
  update fw_briefs b set state = 'ready', revision = b.revision + 1, document = %(document)s, lines = %(lines)s,
    stamp = %(stamp)s, words = %(words)s, reason = %(reason)s, since = %(since)s,
    facts = case when b.told_at is not null and b.facts is not null then b.facts else %(facts)s end,
    generated_at = case when b.told_at is not null then b.generated_at else now() end,
    lease = null, sends = 0, quiet_until = '-infinity',
    told_at = case when held.owed then greatest(b.due_at, now()) else b.told_at end,
    due_at = case when b.told_at is null and not held.owed then null else b.due_at end
  from held where b.user_id = held.user_id and b.local_date = held.local_date
  returning b.user_id, b.local_date, b.revision),
told as (
  insert into fw_announcements (user_id, local_date, channel, not_before, revision)
  select user_id, local_date, channel, greatest(due_at, now()), revision
  from held join done using (user_id, local_date), unnest(%(channels)s::text[]) channel
  where owed
  on conflict do nothing),
forgotten as (
  update fw_briefs b set facts = null from done
  where b.user_id = done.user_id and b.facts is not null and b.local_date < (
    select max(p.local_date) from fw_briefs p
    where p.user_id = done.user_id and p.local_date < done.local_date and p.facts is not null))
select revision from done
"""  # noqa: S608

_SKIP = f"""
update fw_briefs set state = 'skipped', reason = %(reason)s, lease = null, sends = 0, quiet_until = '-infinity'
where {_HELD} returning state
"""  # noqa: S608

# What was ready, and is owed to nobody, stays ready: a regeneration that fails takes nothing away.
GIVEN_UP = f"case when revision > 0 and not ({OWED}) then 'ready' else 'failed' end"

_FAIL = f"""
update fw_briefs set reason = %(reason)s, lease = null, sends = 0,
  state = case when %(permanent)s or attempts >= {MOST_ATTEMPTS} then {GIVEN_UP} else 'pending' end,
  quiet_until = now() + least(power(2, attempts - 1) * interval '{BACKOFF_SECONDS} s',
    interval '{LONGEST_BACKOFF_SECONDS} s') * (0.75 + random() / 2)
where {_HELD} returning state
"""  # noqa: S608

_GIVE_BACK = f"""
update fw_briefs set state = 'pending', lease = null, sends = 0, attempts = attempts - 1,
  quiet_until = now() + interval '1 s' * (1 + random())
where {_HELD} returning state
"""  # noqa: S608

MISSED = """state = 'missed', lease = null, sends = 0, quiet_until = '-infinity',
  reason = 'not generated before ' || b.local_date || ' was over in ' || b.zone
    || coalesce(': ' || b.reason, '')"""

_MISS = f"update fw_briefs b set {MISSED} where {_HELD}"  # noqa: S608


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A generation that has begun, and holds the brief until its lease ends.

    Attributes:
        lease: the token; whoever has another can record nothing.
        kind: daily, return or asked.
        due_at: None where somebody asked by hand.
        owed: whether this generation is the one that the brief was scheduled for.
        over: whether the local date is over.
        revision: of what can be read now; 0 nothing.
        at: when it began, by the database's clock.
        when_empty: what somebody without a live project wants: brief or none.
    """

    user_id: str
    local_date: date
    lease: str
    kind: str
    zone: str
    due_at: datetime | None
    owed: bool
    over: bool
    revision: int
    at: datetime
    when_empty: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a generation has made.

    Attributes:
        document, lines: JSON-ready.
        stamp: what it was made from.
        words: model or template.
        facts: what the next brief is compared with.
        reason: why the words are the template's, if a model was asked.
        since: when the previous brief was generated.
    """

    document: Mapping[str, Any]
    lines: Sequence[Any]
    stamp: str
    words: str
    facts: bytes
    reason: str | None = None
    since: datetime | None = None


def begin(connection: Connection, user_id: str, local_date: date) -> Begun | None:
    """Begin a generation that was claimed. None where there is nothing to do, as for a message that came twice;
    and where the local date is over, which is put on record as missed.
    """
    asked = {"user": user_id, "date": local_date}
    with mapped(f"beginning the brief of {user_id} for {local_date}"):
        row = connection.execute(_BEGIN, asked, prepare=True).fetchone()
        begun = _begun(row) if row is not None else None
        if begun is not None and begun.owed and begun.over:
            connection.execute(_MISS, _held(begun))
            return None
    return begun


def begin_now(
    connection: Connection, user_id: str, local_date: date, *, force: bool, zone: str | None = None
) -> Begun | StoredBrief:
    """Begin a generation that somebody waits for; or what is there: ready (unless by force), or being generated by
    another. One that is scheduled and waits is begun, and is then the scheduled one.

    Args:
        connection: in autocommit mode.
        user_id: whose brief; a subscription is not needed.
        local_date: for which.
        force: generate again what is ready.
        zone: of a brief that is not there yet; None: the subscription's, else UTC.

    Raises:
        BadInput: there is no such zone.
    """
    asked = {"user": user_id, "date": local_date, "force": force, "zone": zone and zone_named(zone).key}
    for _ in range(3):  # what is there may be taken back between two looks
        with mapped(f"beginning the brief of {user_id} for {local_date}"):
            row = connection.execute(_BEGIN_NOW, asked, prepare=True).fetchone()
        if row is not None:
            return _begun(row)
        found = stored(connection, user_id, local_date)
        if found is not None:
            return found
    raise BuildError(f"the brief of {user_id} for {local_date} comes and goes: its schedule is edited; try again")


def finish(connection: Connection, begun: Begun, made: Made, channels: Sequence[str] = ("stream",)) -> int | None:
    """Put a finished brief on record, and have it told on ``channels`` if it was owed; its revision. None where
    the lease has ended: somebody else has it, or it was taken back.
    """
    asked = _held(begun) | {
        "document": Jsonb(made.document),
        "lines": Jsonb(made.lines),
        "stamp": made.stamp,
        "words": made.words,
        "facts": made.facts,
        "reason": made.reason,
        "since": made.since,
        "tell": not begun.over,
        "channels": list(channels),
    }
    with mapped(f"recording the brief of {begun.user_id} for {begun.local_date}"):
        row = connection.execute(_FINISH, asked, prepare=True).fetchone()
    return int(row[0]) if row is not None else None


def skip(connection: Connection, begun: Begun, reason: str) -> bool:
    """There is nothing to say, and nothing is what the user wants. Whether the lease still stood."""
    return _ended(connection, _SKIP, _held(begun) | {"reason": reason}) is not None


def fail(connection: Connection, begun: Begun, reason: str, *, permanent: bool) -> str | None:
    """Put a failure on record; the state that the brief is in now. None where the lease has ended.

    A permanent one is not tried again; another is, later and later, MOST_ATTEMPTS times. A regeneration of what
    was told already leaves that ready.
    """
    return _ended(connection, _FAIL, _held(begun) | {"reason": reason, "permanent": permanent})


def give_back(connection: Connection, begun: Begun) -> bool:
    """As if it had not been tried: a server is away. Whether the lease still stood."""
    return _ended(connection, _GIVE_BACK, _held(begun)) is not None


def _ended(connection: Connection, statement: str, asked: dict[str, Any]) -> str | None:
    with mapped(f"recording the end of the brief of {asked['user']} for {asked['date']}"):
        row = connection.execute(statement, asked, prepare=True).fetchone()
    return str(row[0]) if row is not None else None


def _held(begun: Begun) -> dict[str, Any]:
    return {"user": begun.user_id, "date": begun.local_date, "lease": begun.lease}


def _begun(row: tuple[Any, ...]) -> Begun:
    user, day, lease, kind, zone, due_at, owed, revision, now, when_empty = row
    local_date, at = date.fromisoformat(day), _instant(now)
    return Begun(
        user_id=user,
        local_date=local_date,
        lease=lease,
        kind=kind,
        zone=zone,
        due_at=moment(due_at),
        owed=owed,
        over=is_over(zone, local_date, at),
        revision=revision,
        at=at,
        when_empty=when_empty,
    )


def _instant(stored: str) -> datetime:
    return datetime.fromisoformat(stored).astimezone(UTC)


def is_over(zone: str, day: date, now: datetime) -> bool:
    """Whether a local date is over; in a zone that is no more, when it is everywhere."""
    try:
        return today(now, zone_named(zone)) > day
    except BadInput:
        return (now - timedelta(hours=12)).date() > day

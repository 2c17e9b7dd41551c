"""Telling that a brief is ready, once on each channel; and what could not be done: dead letters, and their replay.

An announcement is leased before it is sent and may be sent twice, if its sender dies in between: receivers tell by
its key (user, date, channel). Who sends is not known here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from loaders.briefs import is_over
from loaders.connection import Connection, mapped
from loaders.subscriptions import moment

STREAM, WEBHOOK = CHANNELS = ("stream", "webhook")

LEASE_SECONDS = 30
"""For one to be sent; longer than a webhook may take."""

STREAM_LEASE_SECONDS = 5
"""For one of the stream, which takes it twice and shows it once."""

MOST_ATTEMPTS = 10
"""Before an announcement is a dead letter, over a day: a minute apart, then thrice as long, up to six hours."""

_LATEST = "interval '12 hours'"
"""No announcement waits longer: what does was put off by a clock that went wrong."""

_WAITING = "sent_at is null and dead_at is null"

_DUE = f"""
with given_up as (
  update fw_announcements set dead_at = now(),
    error = coalesce(error, 'its sender died {MOST_ATTEMPTS} times before it could say what became of it')
  where {_WAITING} and not_before <= now() and attempts >= {MOST_ATTEMPTS})
update fw_announcements a set attempts = a.attempts + 1,
  not_before = now() + case a.channel when '{STREAM}' then interval '{STREAM_LEASE_SECONDS} s'
    else interval '{LEASE_SECONDS} s' end
from (select user_id, local_date, channel from fw_announcements
      where {_WAITING} and attempts < {MOST_ATTEMPTS} and channel = any(%(channels)s::text[])
        and (not_before <= now() or (attempts > 0 and not_before > now() + {_LATEST}))
      order by not_before limit %(limit)s for update skip locked) d
  join fw_briefs b using (user_id, local_date)
where a.user_id = d.user_id and a.local_date = d.local_date and a.channel = d.channel
returning a.user_id, a.local_date, a.channel, a.attempts, b.revision, b.kind, b.due_at, b.generated_at, b.zone,
  b.stamp, (select s.channels from fw_subscriptions s where s.user_id = a.user_id)
"""  # noqa: S608

_OF = "user_id = %(user)s and local_date = %(date)s and channel = %(channel)s"

_SENT = """
update fw_announcements a set sent_at = now(), dead_at = null, error = null, revision = told.revision
from unnest(%(users)s::uuid[], %(dates)s::date[], %(channels)s::text[], %(revisions)s::int[])
  as told(user_id, local_date, channel, revision)
where a.user_id = told.user_id and a.local_date = told.local_date and a.channel = told.channel
"""

# Only by who has it now: another may have sent it since.
_NOT_SENT = f"""
update fw_announcements set error = %(error)s, dead_at = case when attempts >= {MOST_ATTEMPTS} then now() end,
  not_before = now() + least(power(3, attempts - 1) * interval '1 min', interval '6 hours') * (0.9 + random() / 5)
where {_OF} and attempts = %(attempts)s and {_WAITING}
"""  # noqa: S608

_PUT_OFF = f"""
update fw_announcements set attempts = attempts - 1, not_before = now() + interval '1 s' * (1 + 2 * random())
where {_OF} and attempts = %(attempts)s and {_WAITING}
"""  # noqa: S608

_DEAD = """
select user_id, local_date, null, coalesce(generated_at, due_at, created_at) as at, attempts, reason
from fw_briefs where state = 'failed'
union all
select user_id, local_date, channel, dead_at, attempts, error from fw_announcements where dead_at is not null
order by at desc limit %(limit)s
"""

_LETTERS = """
with dead as (
  select user_id, local_date, null as channel, coalesce(generated_at, due_at, created_at) as at, attempts,
    reason as error from fw_briefs where state = 'failed' and user_id = %(user)s
  union all
  select user_id, local_date, channel, dead_at, attempts, error from fw_announcements
  where dead_at is not null and user_id = %(user)s)
select d.user_id, d.local_date, d.channel, d.at, d.attempts, d.error, b.state, b.kind, b.revision, b.zone,
  b.due_at, now()
from dead d join fw_briefs b using (user_id, local_date)
where d.local_date = coalesce(%(date)s::date, d.local_date) order by d.local_date desc, d.channel nulls first
"""

_FAILED = """
select user_id, local_date, zone, now() from fw_briefs
where state = 'failed' and user_id = coalesce(%(user)s::uuid, user_id)
  and local_date = coalesce(%(date)s::date, local_date)
order by user_id, local_date for update
"""

# One whose date is over is generated for who asks, and told to nobody.
_AGAIN = """
update fw_briefs b set state = 'pending', attempts = 0, sends = 0, quiet_until = now(),
  asked_at = case when over then now() else asked_at end, kind = case when over then 'asked' else kind end,
  due_at = case when over and told_at is null then null else due_at end
from unnest(%(users)s::uuid[], %(dates)s::date[], %(over)s::bool[]) as given(user_id, local_date, over)
where b.user_id = given.user_id and b.local_date = given.local_date
"""

_TELL_AGAIN = """
update fw_announcements set dead_at = null, attempts = 0, not_before = now()
where dead_at is not null and user_id = coalesce(%(user)s::uuid, user_id)
  and local_date = coalesce(%(date)s::date, local_date)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """What is to be told on a channel; its key for the receiver is (user, date, channel).

    Attributes:
        attempts: this one counted.
        revision, zone, stamp: of the brief as it is now.
        wanted: where the user wants to read it: chat, mail.
    """

    user_id: str
    local_date: date
    channel: str
    attempts: int
    revision: int
    kind: str
    due_at: datetime | None
    generated_at: datetime | None
    zone: str
    stamp: str | None
    wanted: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """What was given up: a brief, or on a ``channel`` its announcement. ``at`` is when, or when it was due."""

    user_id: str
    local_date: date
    channel: str | None
    at: datetime | None
    attempts: int
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter(DeadLetter):
    """A dead letter with the brief that it is of.

    Attributes:
        over: whether the brief's date is over where the user is.
    """

    state: str
    kind: str
    revision: int
    zone: str
    due_at: datetime | None
    over: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """How many are tried again."""

    briefs: int
    announcements: int


def due(connection: Connection, limit: int, channels: Sequence[str] = CHANNELS) -> list[Announcement]:
    """Lease what is to be told now on ``channels``. What is not said to be sent, or not, comes again after
    LEASE_SECONDS.
    """
    with mapped("looking what is to be announced"):
        rows = connection.execute(_DUE, {"limit": limit, "channels": list(channels)}, prepare=True).fetchall()
    return [
        Announcement(
            user_id=row[0],
            local_date=date.fromisoformat(row[1]),
            channel=row[2],
            attempts=row[3],
            revision=row[4],
            kind=row[5],
            due_at=moment(row[6]),
            generated_at=moment(row[7]),
            zone=row[8],
            stamp=row[9],
            wanted=tuple(row[10] or ()),
        )
        for row in rows
    ]


def sent(connection: Connection, *told: Announcement) -> None:
    """They were told. True also where another was quicker, or had given up."""
    columns: dict[str, list[Any]] = {
        "users": [each.user_id for each in told],
        "dates": [each.local_date for each in told],
        "channels": [each.channel for each in told],
        "revisions": [each.revision for each in told],
    }
    with mapped("recording announcements"):
        connection.execute(_SENT, columns, prepare=True)


def not_sent(connection: Connection, announcement: Announcement, error: str) -> None:
    """It was refused: again later, and later; after MOST_ATTEMPTS a dead letter."""
    _end(connection, _NOT_SENT, announcement, error=error)


def put_off(connection: Connection, announcement: Announcement) -> None:
    """As if it had not been tried: a server of ours is away. Again in a second or three."""
    _end(connection, _PUT_OFF, announcement)


def dead_letters(connection: Connection, limit: int = 100) -> list[DeadLetter]:
    """What was given up, the latest first."""
    with mapped("listing dead letters"):
        rows = connection.execute(_DEAD, {"limit": limit}).fetchall()
    return [
        DeadLetter(
            user_id=user,
            local_date=date.fromisoformat(day),
            channel=channel,
            at=moment(at),
            attempts=n,
            error=error,
        )
        for user, day, channel, at, n, error in rows
    ]


def letters_of(connection: Connection, user_id: str, local_date: date | None = None) -> list[Letter]:
    """A user's dead letters, of a date or of all, the latest first."""
    with mapped(f"looking at the dead letters of {user_id}"):
        rows = connection.execute(_LETTERS, {"user": user_id, "date": local_date}).fetchall()
    return [
        Letter(
            user_id=row[0],
            local_date=date.fromisoformat(row[1]),
            channel=row[2],
            at=moment(row[3]),
            attempts=row[4],
            error=row[5],
            state=row[6],
            kind=row[7],
            revision=row[8],
            zone=row[9],
            due_at=moment(row[10]),
            over=is_over(row[9], date.fromisoformat(row[1]), datetime.fromisoformat(row[11])),
        )
        for row in rows
    ]


def replay(connection: Connection, user_id: str | None = None, local_date: date | None = None) -> Replayed:
    """Try again what was given up: everything, or what is a user's, or a date's. A brief whose date is over is
    generated, and told to nobody.
    """
    asked = {"user": user_id, "date": local_date}
    with mapped("replaying dead letters"), connection.transaction():
        failed = connection.execute(_FAILED, asked).fetchall()
        columns: dict[str, list[Any]] = {
            "users": [user for user, *_ in failed],
            "dates": [day for _, day, *_ in failed],
            "over": [
                is_over(zone, date.fromisoformat(day), datetime.fromisoformat(now)) for _, day, zone, now in failed
            ],
        }
        briefs = connection.execute(_AGAIN, columns).rowcount
        announcements = connection.execute(_TELL_AGAIN, asked).rowcount
    return Replayed(briefs=briefs, announcements=announcements)


def _end(connection: Connection, statement: str, announcement: Announcement, **more: object) -> None:
    asked = {
        "user": announcement.user_id,
        "date": announcement.local_date,
        "channel": announcement.channel,
        "attempts": announcement.attempts,
    }
    with mapped(f"recording the announcement of {announcement.user_id} for {announcement.local_date}"):
        connection.execute(statement, asked | more, prepare=True)

"""Briefs as they are kept: one, a user's list, the one before, what models cost; and throwing old rows away.

What can be read is whatever was once ready (``revision`` above 0), also while it is generated anew. The states are
``loaders.briefs``'.
"""

from dataclasses import asdict, dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import orjson

from loaders.connection import Connection, mapped
from loaders.subscriptions import moment

PRUNED_AT_ONCE = 1000
"""Rows of a kind that one call throws away, so that none holds locks for long: a brief is some 30 kB."""

_HEAD = (
    "user_id, local_date, state, kind, zone, due_at, told_at, revision, attempts, reason, words, generated_at,"
    " created_at"
)

# What is not due yet is nobody's latest.
_LATEST = """
select max(local_date) from fw_briefs
where user_id = %(user)s and revision > 0 and coalesce(due_at <= now(), true)
"""

_STORED = f"""
select {_HEAD}, document, lines, stamp, since from fw_briefs
where user_id = %(user)s and local_date = coalesce(%(date)s::date, ({_LATEST}))
"""  # noqa: S608

_LIST = f"select {_HEAD} from fw_briefs where user_id = %(user)s order by local_date desc limit %(limit)s"  # noqa: S608

_PREVIOUS = """
select local_date, generated_at, facts, document -> 'priorities' from fw_briefs
where user_id = %(user)s and local_date < %(date)s and revision > 0
order by local_date desc limit 1
"""

_CALLED = """
insert into fw_model_calls
  (user_id, local_date, prompt, model, prompt_tokens, completion_tokens, cost, milliseconds, outcome)
values (%(user)s, %(date)s, %(prompt)s, %(model)s, %(prompt_tokens)s, %(completion_tokens)s, %(cost)s,
  %(milliseconds)s, %(outcome)s)
"""

# By age alone, so that an index finds what goes and nothing that stays is looked at.
_PRUNE = {
    "briefs": """
with old as (
  select user_id, local_date from fw_briefs
  where created_at < now() - %(days)s * interval '1 day' and state not in ('pending', 'generating')
  order by created_at limit %(limit)s for update skip locked),
told as (
  delete from fw_announcements a using old where (a.user_id, a.local_date) = (old.user_id, old.local_date))
delete from fw_briefs b using old where (b.user_id, b.local_date) = (old.user_id, old.local_date)""",
    "model_calls": """
delete from fw_model_calls where id in (
  select id from fw_model_calls where at < now() - %(days)s * interval '1 day'
  order by at limit %(limit)s for update skip locked)""",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A brief without its text.

    Attributes:
        due_at: None where somebody asked for it by hand.
        told_at: from when it could be told; None where it was not finished for its schedule.
        revision: how often it was generated; 0: there is nothing to read.
        attempts: generations that began for this revision, or since.
        reason: why it failed, was skipped or missed; or why its words are the template's.
        words: model or template.
    """

    user_id: str
    local_date: date
    state: str
    kind: str
    zone: str
    due_at: datetime | None
    told_at: datetime | None
    revision: int
    attempts: int
    reason: str | None
    words: str | None
    generated_at: datetime | None
    created_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBrief(Head):
    """A brief. Its text is that of ``revision``, and None where that is 0; ``since`` is when the one before was
    generated.
    """

    document: dict[str, Any] | None
    lines: list[Any] | None
    stamp: str | None
    since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Previous:
    """What a brief is compared with. ``facts`` are kept of the last two briefs only."""

    local_date: date
    generated_at: datetime | None
    facts: bytes | None
    priorities: list[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One request to a model, retries being calls of their own: what it cost, and what became of it.

    Attributes:
        prompt_tokens, completion_tokens: None where the server does not count them.
        cost: in the currency of the settings' prices; None where tokens or prices are unknown.
        ended: seconds since 1970.
    """

    prompt: str
    model: str
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: Decimal | None
    milliseconds: int
    outcome: str
    ended: float


def stored(connection: Connection, user_id: str, local_date: date | None) -> StoredBrief | None:
    """A user's brief for a date, in whatever state; or without a date the latest that can be read."""
    with mapped(f"reading a brief of {user_id}"):
        row = connection.execute(_STORED, {"user": user_id, "date": local_date}, prepare=True).fetchone()
    if row is None:
        return None
    document, lines, stamp, since = row[-4:]
    return StoredBrief(
        **_head(row),
        document=orjson.loads(document) if document else None,
        lines=orjson.loads(lines) if lines else None,
        stamp=stamp,
        since=moment(since),
    )


def latest(connection: Connection, user_id: str) -> date | None:
    """The date of a user's latest brief that can be read and is due."""
    with mapped(f"looking for the latest brief of {user_id}"):
        ((day,),) = connection.execute(_LATEST, {"user": user_id}, prepare=True).fetchall()
    return date.fromisoformat(day) if day is not None else None


def listed(connection: Connection, user_id: str, limit: int = 30) -> list[Head]:
    """A user's briefs, the latest first."""
    with mapped(f"listing the briefs of {user_id}"):
        rows = connection.execute(_LIST, {"user": user_id, "limit": limit}).fetchall()
    return [Head(**_head(row)) for row in rows]


def previous(connection: Connection, user_id: str, local_date: date) -> Previous | None:
    """The last brief before a date that can be read."""
    with mapped(f"reading the brief before {local_date} of {user_id}"):
        row = connection.execute(_PREVIOUS, {"user": user_id, "date": local_date}, prepare=True).fetchone()
    if row is None:
        return None
    day, generated_at, facts, priorities = row
    return Previous(
        local_date=date.fromisoformat(day),
        generated_at=moment(generated_at),
        facts=facts,
        priorities=orjson.loads(priorities) if priorities else [],
    )


def record_call(connection: Connection, user_id: str, local_date: date, call: ModelCall) -> None:
    """Put a call of a model for a brief on record."""
    with mapped("recording a call of a model"):
        connection.execute(_CALLED, {"user": user_id, "date": local_date, **asdict(call)})


def prune(connection: Connection, keep_days: int) -> dict[str, int]:
    """Throw away what is older: briefs whatever became of them, with their announcements, and calls of models. How
    many rows of each, at most PRUNED_AT_ONCE; call again while there are any. What is under way stays.
    """
    asked = {"days": keep_days, "limit": PRUNED_AT_ONCE}
    with mapped("throwing away old briefs"):
        return {what: connection.execute(statement, asked).rowcount for what, statement in _PRUNE.items()}


def _head(row: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "user_id": row[0],
        "local_date": date.fromisoformat(row[1]),
        "state": row[2],
        "kind": row[3],
        "zone": row[4],
        "due_at": moment(row[5]),
        "told_at": moment(row[6]),
        "revision": row[7],
        "attempts": row[8],
        "reason": row[9],
        "words": row[10],
        "generated_at": moment(row[11]),
        "created_at": moment(row[12]),
    }

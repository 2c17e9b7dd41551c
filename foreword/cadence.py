"""How often somebody who stays away is written to: daily, then seldom, by ranges of days since the last visit.

Ranges, and never "on day 4": a day on which nobody looked must not cost the brief that was due on it. What was
sent is known by the date of the last brief alone. Whether today's brief exists already is not asked here: a
unique key holds that. Source: specification of the brief, section 1.
"""

from dataclasses import dataclass
from datetime import date
from typing import Literal, NamedTuple

Kind = Literal["daily", "return", ""]
"""What to send: the daily brief, one that asks somebody back, or nothing."""


class Decision(NamedTuple):
    """What to send, and why in words: the reason is kept with what was sent, or was not."""

    kind: Kind
    reason: str


@dataclass(frozen=True, slots=True)
class _Range:
    """A range of days away that has briefs which ask somebody back; it ends where the next begins.

    Attributes:
        since: its first day.
        again: days from one brief to the next; None where the range has only one.
    """

    since: int
    again: int | None = None


DAILY_UNTIL = 2
"""Days away, a weekend for instance, for which the daily brief goes on; then it pauses."""

# The latest first: a day is of the first that has begun. Between the daily brief and these nothing is sent.
_RANGES = (_Range(60, again=90), _Range(14), _Range(4))


WEEKLY_UNTIL = 7
"""Likewise for who wants a weekly one: whoever reads every brief is away for a week between two."""


def decide(
    today: date, last_visit: date | None, last_brief: date | None, *, goes_on_until: int = DAILY_UNTIL
) -> Decision:
    """What somebody gets on ``today``, all three being local dates of theirs.

    Args:
        today: the date that the brief would be for.
        last_visit: None where visits are not known of: then daily, as nobody can be said to be away. A visit in
            the future (somebody flew west, or a clock was wrong) is a visit.
        last_brief: the date of the last brief that was sent, of any kind; one in the future was sent, too.
        goes_on_until: days away for which it goes on as ordered.
    """
    if last_visit is None:
        return Decision("daily", "no visits are known of")
    away = (today - last_visit).days
    if away <= goes_on_until:
        return Decision("daily", f"{away} days since the last visit" if away > 1 else "visited lately")
    begun = next((each for each in _RANGES if away >= each.since), None)
    if begun is None:
        return Decision("", f"{away} days since the last visit: briefs pause")
    if last_brief is not None and _answers(begun, last_brief, last_visit, today):
        return Decision("", f"{away} days since the last visit: the brief of {last_brief} was for that")
    return Decision("return", f"{away} days since the last visit")


def _answers(begun: _Range, last_brief: date, last_visit: date, today: date) -> bool:
    """Whether the last brief was one of this range, and no other is due yet."""
    if (last_brief - last_visit).days < begun.since:
        return False
    return begun.again is None or (today - last_brief).days < begun.again

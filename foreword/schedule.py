"""When a rhythm runs: at most once a local date, at a time of day on the wall of a zone.

Pure, and never of the host: neither its clock nor its zone is read. What the clocks of a zone do is Python's
(docs/adr/0008-dates.md); what becomes of a time that they skip or repeat is decided here, in ``instant``.
Who is due is decided by whoever asks; how often somebody who stays away is written to: ``cadence``.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import NamedTuple
from zoneinfo import ZoneInfo

from foreword.errors import BadInput

_LAST_DAY = date.max.toordinal()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """Every day, or one day of every week, at a time of day.

    Attributes:
        zone: on whose wall ``at`` is read.
        at: the time of day, without a zone of its own; to the microsecond.
        weekday: 0 is Monday, 6 Sunday; None is every day.

    Raises:
        BadInput: no such weekday, or ``at`` has a zone.
    """

    zone: ZoneInfo
    at: time
    weekday: int | None = None

    def __post_init__(self) -> None:
        if self.at.tzinfo is not None:
            raise BadInput(f"the time of day {self.at} has a zone of its own; leave it out, the rhythm has one")
        if self.weekday is not None and self.weekday not in range(7):
            raise BadInput(f"there is no weekday {self.weekday}; 0 is Monday, 6 is Sunday")


class Occurrence(NamedTuple):
    """One run: the local date that it is for, and its instant in UTC."""

    date: date
    at: datetime


def next_run(rhythm: Rhythm, after: datetime) -> Occurrence:
    """The first run strictly after the instant ``after``.

    Raises:
        BadInput: ``after`` has no zone, or the calendar (years 1 to 9999) ends before there is a run.
    """
    if after.utcoffset() is None:
        raise BadInput(f"{after} has no zone, so it is no instant; give it one, such as UTC")
    try:
        day = after.astimezone(rhythm.zone).date()
    except OverflowError:
        raise BadInput(f"{after} is beyond the calendar in {rhythm.zone.key}; years are 1 to 9999") from None
    # No run of an earlier date is later: times that come twice are run the first time, skipped ones on their date.
    for run in runs(rhythm, day):
        if run.at > after:
            return run
    raise _no_more(rhythm)


def following(rhythm: Rhythm, day: date) -> Occurrence:
    """The first run on a local date later than ``day``: after a change of zone, the way to one run a date.

    Raises:
        BadInput: the calendar ends before there is one.
    """
    for run in runs(rhythm, day):
        if run.date > day:
            return run
    raise _no_more(rhythm)


def runs(rhythm: Rhythm, first: date) -> Iterator[Occurrence]:
    """Every run on the local date ``first`` and later, in order, to the end of the calendar.

    A date that the zone leaves out has none: a weekly rhythm then runs again a week later, on its weekday.
    """
    begin, step = first.toordinal(), 1
    if rhythm.weekday is not None:
        begin, step = begin + (rhythm.weekday - first.weekday()) % 7, 7
    for ordinal in range(begin, _LAST_DAY + 1, step):
        day = date.fromordinal(ordinal)
        at = instant(day, rhythm.at, rhythm.zone)
        if at is not None:
            yield Occurrence(day, at)


def instant(day: date, at: time, zone: ZoneInfo) -> datetime | None:
    """When it is ``at`` on the local date ``day`` in ``zone``, in UTC.

    - A time that comes twice is meant the first time.
    - A skipped time is the first instant after the gap.
    - Where that is another date already (Nuuk's 23:00 to 24:00 in spring), it is as much before the time as the
      clock jumps: half past ten for half past eleven. The date must not go without, nor the next have two.
    - A date that the zone leaves out (Apia, 2011-12-30) has no instant: None. None, too, near the ends of the
      calendar, where the instant is before the year 1 or after 9999.
    """
    wall = datetime.combine(day, at, zone)
    first, second = wall.replace(fold=0), wall.replace(fold=1)
    try:
        # Of a time that comes twice the first is read with the larger offset, of a skipped one with the smaller.
        if first.utcoffset() >= second.utcoffset():  # type: ignore[operator]  # a ZoneInfo always has an offset
            return first.astimezone(UTC)
        return _skipped(first.astimezone(UTC), second.astimezone(UTC), wall, zone)
    except OverflowError:
        return None


def _skipped(later: datetime, earlier: datetime, wall: datetime, zone: ZoneInfo) -> datetime | None:
    """The instant of a skipped time: ``later`` by the offset before the gap, ``earlier`` by the one after it."""
    day = wall.date()
    end = _end_of_gap(earlier, later, zone)
    if end.astimezone(zone).date() == day:
        return end
    if wall.time() == time.min:  # its midnight is skipped, and all that follows: the date does not exist
        return None
    return earlier if earlier.astimezone(zone).date() == day else instant(day, time.min, zone)


def _end_of_gap(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The first instant after ``before`` that has another offset, not later than ``after``. Zones change on whole
    seconds.
    """

    def changed(second: int) -> bool:
        return datetime.fromtimestamp(second, zone).utcoffset() != offset

    offset = before.astimezone(zone).utcoffset()
    seconds = range(int(before.timestamp()), int(after.timestamp()) + 1)
    return datetime.fromtimestamp(seconds[bisect_left(seconds, True, key=changed)], UTC)


def _no_more(rhythm: Rhythm) -> BadInput:
    return BadInput(f"no run at {rhythm.at} in {rhythm.zone.key} is left: the calendar ends with the year 9999")

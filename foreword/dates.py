"""Local calendar dates. The one place where an instant becomes a date, for bundles and briefs alike.

Times arrive as PostgreSQL prints them in UTC (``2026-11-21 09:30:00+00``). A time of exactly 00:00 UTC is how
a date without a time is stored: it is that calendar date in every zone. Zones are Python's (zoneinfo, with
tzdata from PyPI), never the database's: the two disagree in repeated hours.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

LocalDate = Callable[[str | None], str | None]
"""A stored time to ``YYYY-MM-DD``, or None where there is none or it is beyond the calendar."""

_DATE_ONLY = frozenset({" 00:00:00+00", " 00:00:00", ""})


def local_dates(zone: ZoneInfo) -> LocalDate:
    """How stored times read in ``zone``.

    Infinite times, years before 1 or beyond 9999 and what is no time at all read as None: one malformed date
    costs one date, not the bundle. A time without an offset (an adopted ``date`` or ``timestamp`` column) is
    UTC, never the host's zone.
    """
    utc = zone.key in {"UTC", "Etc/UTC"}

    def local_date(stored: str | None) -> str | None:
        if stored is None or len(stored) < 10 or stored[4] != "-" or stored[-1] == "C":
            return None
        if utc or stored[10:] in _DATE_ONLY:
            return stored[:10]
        try:
            instant = datetime.fromisoformat(stored)
            return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).astimezone(zone).date().isoformat()
        except (ValueError, OverflowError):
            return None

    return local_date


def today(now: datetime, zone: ZoneInfo) -> date:
    """The calendar date of the instant ``now`` in ``zone``."""
    return now.astimezone(zone).date()


def next_midnight(day: date, zone: ZoneInfo) -> datetime:
    """The first instant after ``day`` in ``zone``, in UTC, also where midnight itself is skipped."""
    # fold=0 reads a midnight that is skipped (Santiago) with the offset before the gap: where the gap ends.
    return datetime.combine(day + timedelta(days=1), time(), tzinfo=zone).astimezone(UTC)

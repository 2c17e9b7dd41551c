"""When a rhythm runs.

Most of it is compared with an oracle that knows only what a wall shows at an instant: it asks a zone to turn UTC
into local time, never the reverse, and looks for the first instant that shows the date and at least the time.
"""

import io
import os
import struct
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from functools import cache
from itertools import accumulate, islice, pairwise
from pathlib import Path
from random import Random
from time import tzset
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.errors import BadInput
from foreword.schedule import Occurrence, Rhythm, following, instant, next_run, runs

ZONES = sorted(available_timezones())
DAY, SECOND, MICROSECOND = timedelta(days=1), timedelta(seconds=1), timedelta(microseconds=1)


def rhythm(zone: str, at: str, weekday: int | None = None) -> Rhythm:
    return Rhythm(zone=ZoneInfo(zone), at=time.fromisoformat(at), weekday=weekday)


def utc(written: str) -> datetime:
    return datetime.fromisoformat(written).replace(tzinfo=UTC)


# ---- the oracle. What a wall shows is written as if it were UTC, so that nothing in it can depend on a zone.


class Stretch(NamedTuple):
    """From a jump of the clock to the next: instants, the end not included, and how far the wall is from UTC."""

    start: datetime
    end: datetime
    offset: timedelta


def offset_at(zone: ZoneInfo, moment: datetime) -> timedelta:
    return moment.astimezone(zone).replace(tzinfo=UTC) - moment


def stretches(zone: ZoneInfo, first: datetime, last: datetime) -> list[Stretch]:
    """No zone jumps twice within a day and a half; each jump is on a whole second, which is found by halving."""
    found, start, offset, seen = [], first, offset_at(zone, first), first
    while seen < last:
        ahead = min(seen + timedelta(hours=36), last)
        if offset_at(zone, ahead) != offset:
            while ahead - seen > SECOND:
                middle = seen + (ahead - seen) // SECOND // 2 * SECOND
                seen, ahead = (middle, ahead) if offset_at(zone, middle) == offset else (seen, middle)
            found.append(Stretch(start, ahead, offset))
            start, offset = ahead, offset_at(zone, ahead)
        seen = ahead
    return [*found, Stretch(start, last, offset)]


class Walls:
    """What the wall of a zone shows, from stretch to stretch."""

    def __init__(self, known: Sequence[Stretch]) -> None:
        self.known = known
        self.jumps = tuple(pairwise(known))
        self.starts = [each.start for each in known]

    def first(self, since: datetime, until: datetime) -> datetime | None:
        """The first instant at which the wall shows ``since`` or later, but before ``until``."""
        near = slice(
            max(bisect_right(self.starts, since - 3 * DAY) - 1, 0), bisect_right(self.starts, until + 3 * DAY)
        )
        showing = (
            max(start, since - offset)
            for start, end, offset in self.known[near]
            if max(start + offset, since) < min(end + offset, until)
        )
        return min(showing, default=None)

    def run(self, day: date, at: time) -> datetime | None:
        """The instant of the run of a local date, if the date exists."""
        midnight, wanted = datetime.combine(day, time(), UTC), datetime.combine(day, at, UTC)
        begin, found = self.first(midnight, midnight + DAY), self.first(wanted, midnight + DAY)
        if found is not None or begin is None:
            return found
        jump = next(b.offset - a.offset for a, b in self.jumps if a.end + a.offset <= wanted < a.end + b.offset)
        return self.first(max(wanted - jump, midnight), midnight + DAY)

    def next_run(self, each: Rhythm, after: datetime) -> Occurrence:
        """Of the runs of all dates around ``after``, the first later one."""
        days = [after.date() + n * DAY for n in range(-3, 5 if each.weekday is None else 18)]
        of_weekday = [day for day in days if each.weekday in {None, day.weekday()}]
        found = ((self.run(day, each.at), day) for day in of_weekday)
        at, day = min((at, day) for at, day in found if at is not None and at > after)
        return Occurrence(day, at)


@cache
def walls(zone: str) -> Walls:
    return Walls(stretches(ZoneInfo(zone), utc("2019-12-01"), utc("2031-02-01")))


def any_time(random: Random) -> time:
    moment = utc("2020-01-01") + random.randrange(86_400) * SECOND
    return moment.replace(
        minute=random.choice([0, 30, moment.minute]), second=random.choice([0, moment.second])
    ).time()


def samples(random: Random, known: Walls) -> Iterator[tuple[datetime, time]]:
    """Instants from 2020 to 2030 and times of day, most of them where the clock jumps: the edges of what it skips
    or repeats, and what is between.
    """
    for _ in range(5):
        yield utc("2020-01-01") + random.random() * 3650 * DAY, any_time(random)
    for _ in range(12 if known.jumps else 0):
        before, after = random.choice(known.jumps)
        edges = (before.end + before.offset, before.end + after.offset)
        between = edges[0] + random.random() * (edges[1] - edges[0])
        wall = random.choice([*edges, edges[0] - MICROSECOND, edges[1] - MICROSECOND, between, between])
        yield before.end + random.uniform(-2.5, 1.5) * DAY, wall.time()


# ---- every zone


@pytest.mark.promise("schedule.right", "schedule.skipped", "schedule.repeated")
@pytest.mark.parametrize("part", range(6))
def test_the_next_run_is_the_first_instant_that_shows_the_date_and_the_time(part: int) -> None:
    for zone in ZONES[part::6]:
        random = Random(f"next run {zone}")
        for after, at in samples(random, walls(zone)):
            for weekday in (None, random.randrange(7)):
                each = Rhythm(zone=ZoneInfo(zone), at=at, weekday=weekday)

                found = next_run(each, after)

                assert found == walls(zone).next_run(each, after), (zone, after, each)
                assert found.at > after
                assert found.at.astimezone(each.zone).date() == found.date, (zone, after, each)


@pytest.mark.promise("schedule.once")
def test_one_run_follows_another_on_every_date_of_a_year_in_every_zone() -> None:
    for zone in ZONES:
        random = Random(f"a year {zone}")
        each = Rhythm(zone=ZoneInfo(zone), at=any_time(random))
        year = random.randrange(2020, 2030)
        run = next_run(each, datetime(year, 1, 1, tzinfo=UTC))
        for _ in range(365):
            later = next_run(each, run.at)

            assert later.at > run.at, (zone, each, run)
            assert later.date == run.date + DAY, (zone, each, run)
            run = later


@pytest.mark.promise("schedule.once")
def test_one_run_follows_another_on_every_date_where_clocks_jump() -> None:
    for zone in ZONES:
        random = Random(f"jumps {zone}")
        for before, after in walls(zone).jumps:
            wall = min(before.end + before.offset, before.end + after.offset) + random.random() * 2 * DAY / 24
            each = Rhythm(zone=ZoneInfo(zone), at=wall.time())

            found = list(islice(runs(each, before.end.date() - 3 * DAY), 7))

            assert [run.date for run in found] == [before.end.date() + n * DAY for n in range(-3, 4)]
            for run, later in pairwise(found):
                assert run.at < later.at, (zone, each)
                assert next_run(each, run.at) == following(each, run.date) == later, (zone, each)
                assert next_run(each, later.at - MICROSECOND) == later, (zone, each)


@pytest.mark.promise("schedule.right", "schedule.once")
@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime(1970, 1, 5), datetime(2037, 12, 1), timezones=st.just(UTC)),  # noqa: DTZ001  # bounds
    st.times(),
    st.none() | st.integers(0, 6),
)
def test_the_next_run_is_right_in_any_year(zone: str, after: datetime, at: time, weekday: int | None) -> None:
    each = Rhythm(zone=ZoneInfo(zone), at=at, weekday=weekday)
    known = Walls(stretches(each.zone, after - 10 * DAY, after + 30 * DAY))

    assert next_run(each, after) == known.next_run(each, after)


# ---- zones that do not exist, whose clocks jump by anything up to more than a day


def invented(offsets: Sequence[int], jumps: Sequence[int]) -> ZoneInfo:
    """A zone that is ``offsets[0]`` seconds from UTC until the instant ``jumps[0]``, and so on (RFC 8536)."""
    header = struct.pack(">4s16x6l", b"TZif", 0, 0, 0, len(jumps), len(offsets), 4)
    body = struct.pack(f">{len(jumps)}l{len(jumps)}B", *jumps, *range(1, len(offsets)))
    kinds = b"".join(struct.pack(">lBB", offset, 0, 0) for offset in offsets)
    return ZoneInfo.from_file(io.BytesIO(header + body + kinds + b"ODD\0"), key="Odd/Zone")


@st.composite
def odd_zones(draw: st.DrawFn) -> tuple[ZoneInfo, Walls]:
    offsets = draw(st.lists(st.integers(-14 * 3600, 14 * 3600), min_size=2, max_size=5))
    gaps = draw(
        st.lists(st.integers(5 * 86_400, 9 * 86_400), min_size=len(offsets) - 1, max_size=len(offsets) - 1)
    )
    jumps = list(accumulate(gaps, initial=946_684_800))[1:]
    ends = [utc("1999-01-01"), *(datetime.fromtimestamp(jump, UTC) for jump in jumps), utc("2001-01-01")]
    known = [Stretch(*each, timedelta(seconds=n)) for each, n in zip(pairwise(ends), offsets, strict=True)]
    return invented(offsets, jumps), Walls(known)


@pytest.mark.promise("schedule.right", "schedule.once", "schedule.skipped", "schedule.repeated")
@given(odd_zones(), st.times(), st.none() | st.integers(0, 6))
def test_whatever_the_clocks_of_a_zone_do(odd: tuple[ZoneInfo, Walls], at: time, weekday: int | None) -> None:
    zone, known = odd
    each = Rhythm(zone=zone, at=at, weekday=weekday)
    days = [date(1999, 12, 28) + n * DAY for n in range(50)]

    found = list(islice(runs(each, days[0]), 5 if weekday is not None else 40))

    wanted = [(day, known.run(day, at)) for day in days if weekday in {None, day.weekday()}]
    assert found == [run for run in wanted if run[1] is not None][: len(found)]
    assert all(run.at < later.at for run, later in pairwise(found))
    assert all(next_run(each, run.at) == later for run, later in pairwise(found))
    assert all(run.at.astimezone(zone).date() == run.date for run in found)


@pytest.mark.promise("schedule.skipped")
@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("11:59", "2000-01-11T11:59"),
        ("12:00", "2000-01-11T00:00"),  # a day earlier is the 10th, and two runs of it
        ("15:00", "2000-01-11T00:00"),
        ("23:59:30", "2000-01-11T00:00:30"),  # the clock jumps by a minute less than a day
    ],
)
def test_a_date_that_ends_at_noon_has_its_run_in_the_morning(at: str, expected: str) -> None:
    zone = invented([0, 86_340], [int(utc("2000-01-11T12:00").timestamp())])

    assert instant(date(2000, 1, 11), time.fromisoformat(at), zone) == utc(expected)


# ---- cases by name


@pytest.mark.parametrize(
    ("zone", "day", "at", "expected"),
    [
        ("Asia/Kathmandu", "2026-11-21", "09:00", "2026-11-21T03:15"),
        ("Africa/Monrovia", "1971-06-01", "09:00", "1971-06-01T09:44:30"),
        ("Pacific/Kiritimati", "2026-11-21", "00:00", "2026-11-20T10:00"),
        ("America/New_York", "2026-03-08", "01:59:59", "2026-03-08T06:59:59"),
        ("America/New_York", "2026-03-08", "03:00", "2026-03-08T07:00"),
        ("America/New_York", "2026-11-01", "00:59:59", "2026-11-01T04:59:59"),
        ("America/New_York", "2026-11-01", "02:00", "2026-11-01T07:00"),
        ("America/Santiago", "2026-09-06", "09:00", "2026-09-06T12:00"),
        ("America/Nuuk", "2026-03-28", "22:59:59", "2026-03-29T00:59:59"),
        ("America/Nuuk", "2026-03-29", "00:00", "2026-03-29T01:00"),
    ],
)
@pytest.mark.promise("schedule.right")
def test_a_time_that_comes_once(zone: str, day: str, at: str, expected: str) -> None:
    check(zone, day, at, expected)


@pytest.mark.parametrize(
    ("zone", "day", "at", "expected"),
    [
        ("America/New_York", "2026-03-08", "02:00", "2026-03-08T07:00"),
        ("America/New_York", "2026-03-08", "02:30", "2026-03-08T07:00"),
        ("America/New_York", "2026-03-08", "02:59:59.999999", "2026-03-08T07:00"),
        ("Europe/Berlin", "2026-03-29", "02:30", "2026-03-29T01:00"),
        ("Africa/Cairo", "2026-04-24", "00:00", "2026-04-23T22:00"),
        ("Africa/Cairo", "2026-04-24", "00:30", "2026-04-23T22:00"),
        ("America/Santiago", "2026-09-06", "00:00", "2026-09-06T04:00"),
        ("America/Santiago", "2026-09-06", "00:59", "2026-09-06T04:00"),
        ("Asia/Beirut", "2026-03-29", "00:15", "2026-03-28T22:00"),
        ("Australia/Lord_Howe", "2026-10-04", "02:15", "2026-10-03T15:30"),
        ("America/St_Johns", "2010-03-14", "00:30", "2010-03-14T03:31"),  # from 00:01 to 01:01
        ("Antarctica/Vostok", "1994-11-01", "03:00", "1994-11-01T00:00"),  # seven hours
        ("Africa/Monrovia", "1972-01-07", "00:44", "1972-01-07T00:44:30"),  # from 00:00 to 00:44:30
    ],
)
@pytest.mark.promise("schedule.skipped")
def test_a_skipped_time_is_the_first_instant_after_the_gap(zone: str, day: str, at: str, expected: str) -> None:
    check(zone, day, at, expected)


@pytest.mark.parametrize(
    ("zone", "day", "at", "expected"),
    [
        ("America/Nuuk", "2026-03-28", "23:00", "2026-03-29T00:00"),  # 22:00, an hour before midnight
        ("America/Nuuk", "2026-03-28", "23:30", "2026-03-29T00:30"),
        ("America/Scoresbysund", "2026-03-28", "23:59:59", "2026-03-29T00:59:59"),
        ("Asia/Dhaka", "2009-06-19", "23:15", "2009-06-19T16:15"),
        ("Asia/Pyongyang", "2018-05-04", "23:45", "2018-05-04T14:45"),  # half an hour: 23:15
        ("Asia/Singapore", "1981-12-31", "23:30", "1981-12-31T15:30"),
        ("Europe/Madrid", "1976-03-27", "23:00", "1976-03-27T21:00"),
    ],
)
@pytest.mark.promise("schedule.skipped")
def test_a_time_skipped_into_the_next_date_is_earlier_by_the_jump(
    zone: str, day: str, at: str, expected: str
) -> None:
    check(zone, day, at, expected)


@pytest.mark.parametrize(
    ("zone", "day", "at", "expected"),
    [
        ("America/New_York", "2026-11-01", "01:30", "2026-11-01T05:30"),  # PostgreSQL says 06:30
        ("America/New_York", "2026-11-01", "01:00", "2026-11-01T05:00"),
        ("America/New_York", "2026-11-01", "01:59:59", "2026-11-01T05:59:59"),
        ("Europe/Berlin", "2026-10-25", "02:30", "2026-10-25T00:30"),
        ("Europe/Dublin", "2026-10-25", "01:30", "2026-10-25T00:30"),  # winter is its summer time
        ("Africa/Cairo", "2026-10-29", "23:30", "2026-10-29T20:30"),
        ("America/Santiago", "2026-04-04", "23:30", "2026-04-05T02:30"),
        ("America/Havana", "2026-11-01", "00:30", "2026-11-01T04:30"),
        ("Australia/Lord_Howe", "2026-04-05", "01:45", "2026-04-04T14:45"),
        ("America/Nuuk", "2026-10-24", "23:30", "2026-10-25T00:30"),
        ("America/St_Johns", "2010-11-06", "23:30", "2010-11-07T02:00"),
        ("America/St_Johns", "2010-11-07", "00:00:30", "2010-11-07T02:30:30"),  # then it is the 6th again
        ("Antarctica/Casey", "2010-03-05", "01:00", "2010-03-04T14:00"),  # likewise, by three hours
    ],
)
@pytest.mark.promise("schedule.repeated")
def test_a_time_that_comes_twice_is_the_first(zone: str, day: str, at: str, expected: str) -> None:
    check(zone, day, at, expected)


def check(zone: str, day: str, at: str, expected: str) -> None:
    """That it is the run of its date, whatever is asked: and that no other run comes between."""
    each, wanted = rhythm(zone, at), Occurrence(date.fromisoformat(day), utc(expected))

    assert instant(wanted.date, each.at, each.zone) == wanted.at
    assert next_run(each, wanted.at - MICROSECOND) == wanted
    assert following(each, wanted.date - DAY) == wanted
    assert next_run(each, wanted.at).date == wanted.date + DAY


@pytest.mark.parametrize(
    ("zone", "missing"),
    [
        ("Pacific/Apia", "2011-12-30"),
        ("Pacific/Fakaofo", "2011-12-30"),
        ("Pacific/Kwajalein", "1993-08-21"),
        ("Pacific/Kiritimati", "1994-12-31"),
    ],
)
@pytest.mark.parametrize("at", ["00:00", "09:00", "23:59:59"])
@pytest.mark.promise("schedule.missing")
def test_a_date_that_does_not_exist_has_no_run(zone: str, missing: str, at: str) -> None:
    each, day = rhythm(zone, at), date.fromisoformat(missing)

    before = following(each, day - 2 * DAY)

    assert instant(day, each.at, each.zone) is None
    assert before.date == day - DAY
    assert next_run(each, before.at) == following(each, day - DAY) == following(each, day)
    assert next_run(each, before.at) == (day + DAY, before.at + DAY)


@pytest.mark.promise("schedule.missing")
def test_a_weekly_rhythm_leaves_out_the_week_whose_day_does_not_exist() -> None:
    friday = rhythm("Pacific/Apia", "09:00", weekday=4)

    assert [run.date for run in islice(runs(friday, date(2011, 12, 17)), 3)] == [
        date(2011, 12, 23),
        date(2012, 1, 6),
        date(2012, 1, 13),
    ]


@pytest.mark.promise("schedule.right")
@pytest.mark.parametrize("weekday", range(7))
def test_a_weekly_rhythm_runs_on_its_weekday(weekday: int) -> None:
    each = rhythm("Pacific/Kiritimati", "00:30", weekday)  # nearly always another day in UTC

    found = next_run(each, utc("2026-11-21T10:30"))

    assert found.date.weekday() == weekday
    assert found.date == following(each, date(2026, 11, 22)).date
    assert date(2026, 11, 23) <= found.date <= date(2026, 11, 29)


@pytest.mark.promise("schedule.once")
def test_somebody_who_flies_west_over_midnight_gets_one_brief_for_the_date() -> None:
    sent = next_run(rhythm("Asia/Tokyo", "00:30"), utc("2026-11-20T12:00"))
    landed = rhythm("America/Los_Angeles", "09:00")

    assert next_run(landed, sent.at + timedelta(hours=11)).date == sent.date
    assert following(landed, sent.date) == (date(2026, 11, 22), utc("2026-11-22T17:00"))


# ---- what is given


@pytest.mark.promise("schedule.right")
def test_an_instant_is_the_same_in_whatever_zone_it_is_written() -> None:
    each, after = rhythm("Europe/Berlin", "09:00"), utc("2026-11-21T08:00")

    for zone in (UTC, each.zone, ZoneInfo("Pacific/Kiritimati"), timezone(timedelta(hours=-12))):
        assert next_run(each, after.astimezone(zone)) == (date(2026, 11, 22), utc("2026-11-22T08:00"))


@pytest.mark.promise("schedule.right")
def test_a_time_marked_as_the_second_of_two_is_the_first_all_the_same() -> None:
    at = time(1, 30, fold=1)

    assert instant(date(2026, 11, 1), at, ZoneInfo("America/New_York")) == utc("2026-11-01T05:30")


@pytest.mark.promise("schedule.host")
def test_a_time_without_a_zone_is_no_instant() -> None:
    with pytest.raises(BadInput, match="2026-11-21 09:00:00 has no zone"):
        next_run(rhythm("UTC", "09:00"), datetime(2026, 11, 21, 9))  # noqa: DTZ001  # that is what is tried


@pytest.mark.parametrize("weekday", [-1, 7])
def test_there_are_seven_weekdays(weekday: int) -> None:
    with pytest.raises(BadInput, match=f"no weekday {weekday}"):
        rhythm("UTC", "09:00", weekday)


def test_a_time_of_day_has_no_zone_of_its_own() -> None:
    with pytest.raises(BadInput, match="has a zone of its own"):
        Rhythm(zone=ZoneInfo("UTC"), at=time(9, tzinfo=UTC))


# ---- the ends of the calendar


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York", "Etc/GMT+12", "Pacific/Kiritimati"])
@pytest.mark.parametrize("weekday", [None, 0, 4, 6])
def test_the_calendar_ends_with_an_error_that_says_so(zone: str, weekday: int | None) -> None:
    each = rhythm(zone, "23:00", weekday)
    *_, last = runs(each, date(9999, 12, 1))

    assert date(9999, 12, 24) <= last.date
    assert next_run(each, last.at - SECOND) == last
    with pytest.raises(BadInput, match=r"the calendar ends|years are 1 to 9999"):
        next_run(each, datetime.max.replace(tzinfo=UTC))
    with pytest.raises(BadInput, match="the calendar ends with the year 9999"):
        next_run(each, last.at)
    with pytest.raises(BadInput, match="the calendar ends with the year 9999"):
        following(each, date.max)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York", "Etc/GMT+12", "Pacific/Kiritimati"])
def test_the_calendar_begins_where_its_first_instant_is(zone: str) -> None:
    each = rhythm(zone, "01:00")
    first = next(runs(each, date.min))

    assert first.date <= date.min + DAY
    assert next_run(each, utc("0001-01-03")).date <= date(1, 1, 4)
    assert instant(date.min, time(), ZoneInfo("Asia/Tokyo")) is None


def test_an_instant_before_the_calendar_of_its_zone_is_refused() -> None:
    with pytest.raises(BadInput, match="years are 1 to 9999"):
        next_run(rhythm("America/New_York", "09:00"), utc("0001-01-01"))


# ---- the host

HOSTS = ("UTC", "Asia/Tokyo", "America/Los_Angeles", "Europe/Berlin", "America/Nuuk", "Australia/Lord_Howe")


def digest() -> str:
    """Runs where a host's own zone could show: its hours that are skipped and repeated, and its dates."""
    found = []
    for zone in HOSTS:
        for at in ("00:00", "02:15", "23:30"):
            for month in (3, 4, 10, 11):
                run = next_run(rhythm(zone, at), datetime(2026, month, 1, tzinfo=UTC))
                found += [run, *islice(runs(rhythm(zone, at), date(2026, month, 1)), 31)]
    return repr(found)


@pytest.mark.promise("schedule.host")
@pytest.mark.parametrize("host", HOSTS)
def test_the_zone_of_the_host_makes_no_difference(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = digest()

    with monkeypatch.context() as patch:
        patch.setenv("TZ", host)
        tzset()
        there = digest()
    tzset()

    assert there == here


@pytest.mark.promise("schedule.host")
@pytest.mark.parametrize("host", ["Asia/Tokyo", "America/Los_Angeles", ":/etc/localtime", "XXX+11:22"])
def test_a_process_on_another_host_says_the_same(host: str) -> None:
    program = (
        "from datetime import *; from zoneinfo import ZoneInfo; from itertools import islice\n"
        "from foreword.schedule import Rhythm, runs, next_run\n"
        "berlin = Rhythm(zone=ZoneInfo('Europe/Berlin'), at=time(2, 30))\n"
        "print([*islice(runs(berlin, date(2026, 3, 27)), 4),"
        " next_run(berlin, datetime(2026, 10, 25, 0, 30, tzinfo=UTC))])"
    )
    berlin = rhythm("Europe/Berlin", "02:30")
    expected = [*islice(runs(berlin, date(2026, 3, 27)), 4), next_run(berlin, utc("2026-10-25T00:30"))]

    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"TZ": host},
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout.strip() == repr(expected)

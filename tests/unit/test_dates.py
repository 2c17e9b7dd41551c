"""Local calendar dates."""

from datetime import UTC, date, datetime, time, timedelta
from time import tzset
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import ODD_TIMES, ZONES

from foreword.dates import local_dates, next_midnight, today

every_zone = pytest.mark.parametrize("zone", ZONES, ids=str)


@every_zone
@pytest.mark.promise("build.buckets")
def test_a_date_without_a_time_is_that_date_everywhere(zone: ZoneInfo) -> None:
    assert local_dates(zone)("2026-11-21 00:00:00+00") == "2026-11-21"


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("UTC", "2026-11-21"),
        ("America/New_York", "2026-11-20"),
        ("Pacific/Kiritimati", "2026-11-21"),
        ("Asia/Kathmandu", "2026-11-21"),
    ],
)
@pytest.mark.promise("build.buckets")
def test_an_instant_is_the_date_on_the_wall_of_its_zone(zone: str, day: str) -> None:
    assert local_dates(ZoneInfo(zone))("2026-11-21 04:59:59.5+00") == day


@every_zone
@pytest.mark.parametrize("stored", [time for time in ODD_TIMES if time is None or time[0] not in "09"])
def test_a_time_beyond_the_calendar_is_no_date(stored: str | None, zone: ZoneInfo) -> None:
    assert local_dates(zone)(stored) is None


@every_zone
@pytest.mark.parametrize("stored", ["0001-01-01 00:00:01+00", "9999-12-31 23:59:59+00"])
def test_the_ends_of_the_calendar_are_dates_where_they_exist(stored: str, zone: ZoneInfo) -> None:
    assert local_dates(zone)(stored) in {stored[:10], None}


@pytest.mark.parametrize("stored", ["2026-11-21", "2026-11-21 00:00:00"])
@every_zone
@pytest.mark.promise("build.deterministic")
def test_a_date_column_of_an_adopted_database_is_its_date_on_any_host(stored: str, zone: ZoneInfo) -> None:
    assert local_dates(zone)(stored) == "2026-11-21"


@pytest.mark.promise("build.deterministic")
@pytest.mark.parametrize("host", ["Asia/Tokyo", "America/Los_Angeles"])
def test_a_time_without_an_offset_is_utc_on_any_host(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", host)
        tzset()
        found = local_dates(ZoneInfo("America/New_York"))("2026-11-21 04:30:00")
    tzset()

    assert found == "2026-11-20"


@given(st.dates(date(1900, 1, 2), date(2100, 1, 1)), st.times(), st.sampled_from(ZONES))
@pytest.mark.promise("build.buckets")
def test_dates_are_those_of_zoneinfo(day: date, clock: time, zone: ZoneInfo) -> None:
    moment = datetime.combine(day, clock, UTC)
    expected = day if clock == time.min else moment.astimezone(zone).date()

    assert local_dates(zone)(f"{day} {clock}+00") == expected.isoformat()


def test_today_is_the_local_date() -> None:
    now = datetime(2026, 11, 21, 10, 30, tzinfo=UTC)

    assert today(now, ZoneInfo("Pacific/Kiritimati")) == date(2026, 11, 22)
    assert today(now, ZoneInfo("Pacific/Pago_Pago")) == date(2026, 11, 20)


@pytest.mark.parametrize(
    ("zone", "day", "first"),
    [
        ("UTC", date(2026, 11, 21), "2026-11-22T00:00:00+00:00"),
        ("America/New_York", date(2026, 10, 31), "2026-11-01T04:00:00+00:00"),
        ("America/Santiago", date(2026, 9, 5), "2026-09-06T04:00:00+00:00"),  # midnight is skipped
        ("Africa/Cairo", date(2026, 4, 23), "2026-04-23T22:00:00+00:00"),  # likewise
        ("America/Santiago", date(2026, 4, 4), "2026-04-05T04:00:00+00:00"),  # 23:00 comes twice
        ("America/Havana", date(2026, 10, 31), "2026-11-01T04:00:00+00:00"),  # midnight comes twice
        ("Australia/Lord_Howe", date(2026, 10, 3), "2026-10-03T13:30:00+00:00"),
        ("Pacific/Apia", date(2011, 12, 29), "2011-12-30T10:00:00+00:00"),  # the 30th does not exist
        ("Pacific/Kiritimati", date(2026, 11, 21), "2026-11-21T10:00:00+00:00"),
    ],
)
def test_a_day_ends_at_the_first_instant_of_the_next(zone: str, day: date, first: str) -> None:
    assert next_midnight(day, ZoneInfo(zone)).isoformat() == first


DAYS = st.dates(date(1975, 1, 1), date(2037, 1, 1))


@given(
    DAYS, st.sampled_from(["America/Santiago", "Africa/Cairo", "Asia/Beirut", "Pacific/Apia", "America/Sao_Paulo"])
)
def test_the_next_midnight_is_the_boundary_whatever_the_zone_does(day: date, zone: str) -> None:
    local = ZoneInfo(zone)

    first = next_midnight(day, local)

    assert first.astimezone(local).date() > day
    assert (first - timedelta(microseconds=1)).astimezone(local).date() <= day

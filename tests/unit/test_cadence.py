"""How often somebody who stays away is written to."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.cadence import Decision, decide

VISIT = date(2026, 1, 1)
DAY = timedelta(days=1)


def on_day(away: int, brief: int | None = None) -> str:
    """What is sent that many days after the visit, the last brief being of day ``brief``."""
    return decide(VISIT + away * DAY, VISIT, None if brief is None else VISIT + brief * DAY).kind


@pytest.mark.promise("cadence.ranges")
@pytest.mark.parametrize(
    ("away", "brief", "kind"),
    [
        (0, None, "daily"),
        (1, 0, "daily"),
        (2, 1, "daily"),
        (2, 2, "daily"),  # whether it exists already is not asked
        (3, 2, ""),
        (3, None, ""),
        (4, None, "return"),
        (4, 2, "return"),
        (4, 3, "return"),
        (4, 4, ""),
        (13, 2, "return"),
        (13, 4, ""),
        (13, 13, ""),
        (14, 13, "return"),
        (14, 4, "return"),
        (14, None, "return"),
        (14, 14, ""),
        (59, 14, ""),
        (59, 13, "return"),
        (60, 59, "return"),
        (60, 60, ""),
        (149, 60, ""),
        (150, 60, "return"),
        (150, 61, ""),
        (151, 61, "return"),
        (240, 150, "return"),
        (10_000, None, "return"),
    ],
)
def test_what_is_sent_depends_on_the_range_and_on_the_last_brief(away: int, brief: int | None, kind: str) -> None:
    assert on_day(away, brief) == kind


@pytest.mark.promise("cadence.ranges")
@given(st.dates(), st.none() | st.dates())
def test_where_visits_are_not_known_of_the_brief_is_daily(today: date, brief: date | None) -> None:
    assert decide(today, None, brief).kind == "daily"


def sent(ticks: Sequence[int], briefs: Sequence[int] = ()) -> Iterator[tuple[int, str]]:
    """(day, kind) of what is sent when somebody looks on these days after the visit only."""
    last = max(briefs, default=None)
    for away in ticks:
        kind = on_day(away, last)
        if kind:
            yield away, kind
            last = away


@pytest.mark.promise("cadence.ranges")
def test_an_absence_of_a_year_on_which_somebody_looks_every_day() -> None:
    daily = [(0, "daily"), (1, "daily"), (2, "daily")]

    assert list(sent(range(366))) == daily + [(day, "return") for day in (4, 14, 60, 150, 240, 330)]


TICKS = st.sets(st.integers(0, 20) | st.integers(0, 70) | st.integers(0, 500), max_size=120).map(sorted)


@pytest.mark.promise("cadence.missed")
@given(TICKS, st.lists(st.integers(-400, -1), max_size=2))
def test_no_range_has_more_than_its_briefs(ticks: list[int], briefs: list[int]) -> None:
    returns = [day for day, kind in sent(ticks, briefs) if kind == "return"]

    assert all(day >= 4 for day in returns)
    assert sum(4 <= day <= 13 for day in returns) <= 1
    assert sum(14 <= day <= 59 for day in returns) <= 1
    assert all(later - day >= 90 for day, later in pairwise(day for day in returns if day >= 60))


@pytest.mark.promise("cadence.missed")
@given(TICKS, st.lists(st.integers(-400, -1), max_size=2))
def test_a_missed_day_costs_no_brief(ticks: list[int], briefs: list[int]) -> None:
    kinds = dict(sent(ticks, briefs))

    assert [day for day in ticks if day <= 2] == [day for day, kind in kinds.items() if kind == "daily"]
    for first, last in ((4, 13), (14, 59)):
        assert [day for day in ticks if first <= day <= last][:1] == [day for day in kinds if first <= day <= last]
    due = 60
    for day in (day for day in ticks if day >= 60):
        assert (day in kinds) == (day >= due)
        due = day + 90 if day in kinds else due


@pytest.mark.promise("cadence.missed")
@given(st.integers(-500, 500), st.none() | st.integers(-500, 500))
def test_asked_again_on_the_same_day_nothing_more_asks_somebody_back(away: int, brief: int | None) -> None:
    if on_day(away, brief) == "return":
        assert on_day(away, away) == ""


@pytest.mark.promise("cadence.missed")
@given(st.integers(4, 500), st.integers(0, 500))
def test_a_clock_that_goes_back_sends_nothing_twice(brief: int, back: int) -> None:
    assert on_day(brief - back, brief) in {"", "daily"}
    assert (on_day(brief - back, brief) == "daily") == (brief - back <= 2)


@pytest.mark.promise("cadence.missed")
@given(st.integers(-4000, -1), st.none() | st.integers(-5000, 500))
def test_a_visit_in_the_future_is_a_visit(away: int, brief: int | None) -> None:
    assert on_day(away, brief) == "daily"


@pytest.mark.promise("cadence.missed")
@given(st.dates(), st.none() | st.dates(), st.none() | st.dates())
def test_any_dates_give_a_decision_and_its_reason(today: date, visit: date | None, brief: date | None) -> None:
    decision = decide(today, visit, brief)

    assert decision.kind in {"daily", "return", ""}
    assert decision.reason.isprintable()


@pytest.mark.promise("cadence.ranges")
@pytest.mark.parametrize(
    ("away", "brief", "decision"),
    [
        (-1, None, Decision("daily", "visited lately")),
        (2, None, Decision("daily", "2 days since the last visit")),
        (3, None, Decision("", "3 days since the last visit: briefs pause")),
        (5, 4, Decision("", "5 days since the last visit: the brief of 2026-01-05 was for that")),
        (14, 4, Decision("return", "14 days since the last visit")),
    ],
)
def test_a_decision_says_why(away: int, brief: int | None, decision: Decision) -> None:
    last = None if brief is None else VISIT + brief * DAY

    assert decide(VISIT + away * DAY, VISIT, last) == decision

"""The tick in a real PostgreSQL: one row per user and date, whoever ticks and however often; caught up or missed;
who stays away; and which brief is claimed next.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from threading import Event
from typing import Any

import pytest
from strategies import uid

from foreword.errors import ForewordError
from loaders import brief_queue, briefs, subscriptions
from loaders.brief_queue import claim, reap
from loaders.connection import Connection, connect
from loaders.shelf import stored
from loaders.tick import AHEAD, MOST_RUNS, Ticked, tick
from loaders.wanted import wanted

ANN, BEN = uid("ann"), uid("ben")
SOON = timedelta(minutes=10)
DAY = timedelta(days=1)
WINDOW = 8

Open = Callable[[], Connection]


@pytest.fixture
def opened(database_url: str) -> Iterator[Open]:
    """Opens one more connection."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(connect(database_url))


def now(connection: Connection) -> datetime:
    ((found,),) = connection.execute("select now()::text").fetchall()
    return datetime.fromisoformat(found)


def subscribe(connection: Connection, user: str = ANN, **fields: Any) -> subscriptions.Subscription:
    return subscriptions.save(connection, wanted({"user_id": user, "zone": "UTC"} | fields))


def noon_zone(connection: Connection) -> str:
    """A zone where it is around noon: no test of ours crosses a midnight there."""
    hours = 12 - now(connection).hour
    return f"Etc/GMT{-hours:+d}" if hours else "UTC"


def local(connection: Connection, zone: str) -> datetime:
    ((found,),) = connection.execute("select (now() at time zone %s)::text", [zone]).fetchall()
    return datetime.fromisoformat(found).replace(microsecond=0)


def many(connection: Connection, number: int, tenant: str | None = None, *, due: timedelta = SOON) -> None:
    """Subscriptions that are due so much later."""
    zone = noon_zone(connection)
    at = (local(connection, zone) + due).time()
    connection.execute(
        "insert into fw_subscriptions (user_id, zone, at, tenant)"
        " select gen_random_uuid(), %s, %s, %s from generate_series(1, %s)",
        [zone, at, tenant, number],
    )


def tick_all(connection: Connection, limit: int = 1000) -> Counter[str]:
    total: Counter[str] = Counter()
    while True:
        ticked = tick(connection, limit=limit)
        for name in ("scheduled", "missed", "skipped", "computed", "broken"):
            total[name] += getattr(ticked, name)
        if not ticked.more:
            return total


def rows(connection: Connection, user: str = ANN) -> list[tuple[date, str, str, str | None]]:
    found = connection.execute(
        "select local_date, state, kind, reason from fw_briefs where user_id = %s order by 1", [user]
    ).fetchall()
    return [(date.fromisoformat(day), *rest) for day, *rest in found]


def set_back(connection: Connection, days: int, zone: str) -> None:
    """As if nothing had run for so many days: the next run of everybody lies so far behind."""
    connection.execute(
        "update fw_subscriptions set next_date = (now() at time zone %(zone)s)::date - %(days)s::int,"
        " next_run_at = ((now() at time zone %(zone)s)::date - %(days)s::int + at) at time zone %(zone)s",
        {"zone": zone, "days": days},
    )


# ---- once


@pytest.mark.promise("brief.row")
def test_whoever_ticks_and_however_often_there_is_one_row_per_user_and_date(
    connection: Connection, opened: Open
) -> None:
    many(connection, 400)
    connections = [opened() for _ in range(4)]

    with ThreadPoolExecutor(4) as threads:
        totals = list(threads.map(lambda each: tick_all(each, limit=30), connections))
    set_back(connection, 0, noon_zone(connection))  # and once more, as if nothing had been stored
    again = tick_all(connection)

    assert sum(total["scheduled"] for total in totals) == 400
    assert again["scheduled"] == 0
    assert connection.execute("select count(*), count(distinct user_id) from fw_briefs").fetchall() == [(400, 400)]


@pytest.mark.promise("brief.row")
def test_ticks_that_are_killed_leave_nothing_half_done(connection: Connection, database_url: str) -> None:
    many(connection, 600)
    over = Event()
    killed, rest = 0, 0.01

    def ticking(_: int) -> None:
        while not over.is_set():
            try:
                with connect(database_url) as own:
                    own.execute("set application_name to 'ticking'")
                    while not over.is_set():
                        tick(own, limit=20)
            except ForewordError:
                continue

    with ThreadPoolExecutor(3) as threads:
        running = [threads.submit(ticking, number) for number in range(3)]
        while (
            connection.execute(
                "select count(*) from fw_subscriptions where next_run_at > now() + interval '1 h'"
            ).fetchall()[0][0]
            < 600
        ):
            killed += len(
                connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where application_name = 'ticking' order by random() limit 1"
                ).fetchall()
            )
            connection.execute("select pg_sleep(%s)", [rest])
            rest *= 1.02  # where a tick takes longer than this, none would ever end
        over.set()
        for each in running:
            each.result()

    half = connection.execute(
        "select count(*) from fw_subscriptions s left join fw_briefs b using (user_id)"
        " where b.user_id is null or s.next_date <= b.local_date"
    ).fetchall()
    assert killed > 0
    assert half == [(0,)]
    assert connection.execute("select count(*) from fw_briefs").fetchall() == [(600,)]


def test_builds_are_spread_by_user_the_same_every_day_and_none_is_late(connection: Connection) -> None:
    many(connection, 200, due=AHEAD)

    tick_all(connection)

    early = connection.execute(
        "select extract(epoch from due_at - build_at)::float8 from fw_briefs order by 1"
    ).fetchall()
    seconds = [each for (each,) in early]
    assert seconds[0] >= 0.2 * AHEAD.total_seconds() - 2
    assert seconds[-1] <= AHEAD.total_seconds()
    assert seconds[-1] - seconds[0] > 0.6 * AHEAD.total_seconds()


def test_an_idle_tick_does_nothing(connection: Connection) -> None:
    subscribe(connection, at=(now(connection) + timedelta(hours=3)).time().replace(microsecond=0))
    before = connection.execute("select xmin::text from fw_subscriptions").fetchall()

    assert tick(connection) == Ticked()
    assert connection.execute("select xmin::text from fw_subscriptions").fetchall() == before


# ---- late


@pytest.mark.promise("brief.late")
def test_a_run_is_caught_up_with_while_its_date_lasts(connection: Connection) -> None:
    zone = noon_zone(connection)
    many(connection, 3, due=-timedelta(hours=3))
    tick_all(connection)
    set_back(connection, 0, zone)

    total = tick_all(connection)

    assert (total["scheduled"], total["missed"]) == (3, 0)
    ((due, build),) = connection.execute(
        "select distinct due_at < now(), build_at <= now() from fw_briefs"
    ).fetchall()
    assert due
    assert build


@pytest.mark.promise("brief.late")
def test_dates_that_are_over_are_missed_one_by_one_with_the_reason(connection: Connection) -> None:
    zone = noon_zone(connection)
    at = (local(connection, zone) - timedelta(hours=1)).time()
    subscribe(connection, zone=zone, at=at)
    set_back(connection, 3, zone)

    total = tick_all(connection)

    today = local(connection, zone).date()
    found = rows(connection)
    assert (total["missed"], total["scheduled"]) == (3, 1)
    assert [day for day, *_ in found] == [today - n * DAY for n in (3, 2, 1, 0)]
    assert [state for _, state, *_ in found] == ["missed"] * 3 + ["pending"]
    assert "nothing ran between" in (found[0][3] or "")
    next_date = subscriptions.get(connection, ANN).next_date
    assert next_date == today + DAY


def test_whoever_was_forgotten_for_years_is_caught_up_with_in_several_ticks(connection: Connection) -> None:
    zone = noon_zone(connection)
    subscribe(connection, zone=zone, at=local(connection, zone).time())
    set_back(connection, MOST_RUNS + 50, zone)

    first = tick(connection)
    rest = tick_all(connection)

    assert (first.missed, first.more) == (MOST_RUNS, True)
    assert (rest["missed"], rest["scheduled"]) == (50, 1)


def test_weekly_runs_come_a_week_apart(connection: Connection) -> None:
    zone = noon_zone(connection)
    today = local(connection, zone).date()
    subscribe(connection, zone=zone, at=local(connection, zone).time(), weekday=today.weekday())
    set_back(connection, 14, zone)

    tick_all(connection)

    assert [day for day, *_ in rows(connection)] == [today - 14 * DAY, today - 7 * DAY, today]


@pytest.mark.promise("brief.late")
def test_what_was_not_generated_while_its_date_lasted_is_missed(connection: Connection) -> None:
    many(connection, 5)
    tick_all(connection)
    connection.execute(
        "update fw_briefs set local_date = local_date - 2, due_at = due_at - interval '2 days',"
        " quiet_until = now()"
    )
    claimed = claim(connection, 2)

    begun = [briefs.begin(connection, *each[:2]) for each in claimed]
    reaped = reap(connection)

    assert len(claimed) == 2
    assert begun == [None, None]
    assert reaped.missed == 3
    found = connection.execute(
        "select distinct state, reason like 'not generated before % was over %' from fw_briefs"
    )
    assert found.fetchall() == [("missed", True)]


def test_rules_that_changed_only_move_the_run_if_it_lies_ahead(connection: Connection) -> None:
    zone = noon_zone(connection)
    at = (local(connection, zone) + timedelta(hours=2)).time()
    right = subscribe(connection, zone=zone, at=at)
    connection.execute(
        "update fw_subscriptions set next_run_at = now() + interval '1 min'"
    )  # by the rules of before

    ticked = tick(connection)

    assert (ticked.computed, ticked.scheduled) == (1, 0)
    assert subscriptions.get(connection, ANN).next_run_at == right.next_run_at


# ---- by hand, and elsewhere


@pytest.mark.promise("brief.by-hand")
def test_a_brief_asked_for_by_hand_becomes_the_scheduled_one(connection: Connection) -> None:
    zone = noon_zone(connection)
    subscribe(connection, zone=zone, at=(local(connection, zone) + SOON).time())
    today = local(connection, zone).date()
    asked = briefs.begin_now(connection, ANN, today, force=False)
    assert isinstance(asked, briefs.Begun)
    briefs.finish(connection, asked, MADE)
    untold = connection.execute("select count(*) from fw_announcements").fetchall()

    ticked = tick(connection)

    readable = stored(connection, ANN, today)
    assert readable is not None
    assert (readable.state, readable.revision, readable.kind) == ("pending", 1, "daily")
    assert readable.document == {"schema": 1}
    assert (untold, ticked.scheduled) == ([(0,)], 1)
    again = begun(connection)
    assert briefs.finish(connection, again, MADE) == 2
    assert connection.execute("select channel from fw_announcements").fetchall() == [("stream",)]


@pytest.mark.promise("brief.by-hand")
def test_one_that_is_being_made_by_hand_is_not_made_twice(connection: Connection) -> None:
    zone = noon_zone(connection)
    subscribe(connection, zone=zone, at=(local(connection, zone) + SOON).time())
    today = local(connection, zone).date()
    asked = briefs.begin_now(connection, ANN, today, force=False)
    assert isinstance(asked, briefs.Begun)

    tick(connection)
    connection.execute("update fw_briefs set build_at = now()")

    assert claim(connection, WINDOW) == []
    assert briefs.finish(connection, asked, MADE) == 1
    assert connection.execute("select not_before = due_at from fw_announcements, fw_briefs").fetchall() == [
        (True,)
    ]


@pytest.mark.promise("brief.row")
def test_who_flies_west_over_midnight_gets_one_brief_for_the_date(connection: Connection) -> None:
    zone = noon_zone(connection)
    today = local(connection, zone).date()
    subscribe(connection, zone=zone, at=(local(connection, zone) - timedelta(minutes=1)).time())
    set_back(connection, 0, zone)
    tick(connection)
    briefs.finish(connection, begun(connection), MADE)
    west = next(name for name in ("Etc/GMT+12", "Pacific/Pago_Pago", "Etc/GMT+8", "UTC") if name != zone)
    soon = (local(connection, west) + SOON).time()

    moved = subscribe(connection, zone=west, at=soon)
    for _ in range(3):
        tick(connection)

    dates = [day for day, *_ in rows(connection)]
    assert len(dates) == len(set(dates))
    assert moved.next_date is not None
    assert dates == sorted({today, moved.next_date})
    assert connection.execute("select count(*) from fw_announcements").fetchall() == [(1,)]


# ---- who stays away


def away(connection: Connection, days: int, since_brief: int | None) -> tuple[str, str]:
    """(state, kind) of today's row of somebody who was last there, and last written to, so many days ago."""
    zone = noon_zone(connection)
    subscribe(connection, zone=zone, at=local(connection, zone).time())
    set_back(connection, 0, zone)
    connection.execute("update fw_subscriptions set last_visit_at = now() - %s * interval '1 day'", [days])
    told(connection, "(now() at time zone %s)::date - %s::int", zone, since_brief)
    tick(connection)
    *_, (_, state, kind, _) = rows(connection)
    return state, kind


def told(connection: Connection, day: str, *values: object) -> None:
    """A brief of a date, that the user was told of."""
    connection.execute(
        "insert into fw_briefs (user_id, local_date, state, kind, zone, due_at, told_at, build_at, revision)"
        f" select user_id, {day}, 'ready', 'daily', zone, now(), now(), now(), 1 from fw_subscriptions",
        values,
    )


@pytest.mark.parametrize(
    ("days", "since_brief", "outcome"),
    [
        (2, 1, ("pending", "daily")),
        (3, 1, ("skipped", "daily")),
        (5, 3, ("pending", "return")),
        (6, 1, ("skipped", "daily")),
        (20, 15, ("pending", "return")),
        (200, 91, ("pending", "return")),
        (200, 20, ("skipped", "daily")),
    ],
)
@pytest.mark.promise("brief.away")
def test_who_stays_away_is_written_to_less_and_less(
    connection: Connection, days: int, since_brief: int, outcome: tuple[str, str]
) -> None:
    assert away(connection, days, since_brief) == outcome


@pytest.mark.promise("brief.away")
def test_after_a_visit_daily_briefs_go_on(connection: Connection) -> None:
    zone = noon_zone(connection)
    subscribe(connection, zone=zone, at=local(connection, zone).time())
    subscriptions.visited(connection, ANN, now(connection) - 10 * DAY)
    told(connection, "current_date - 5")
    set_back(connection, 2, zone)
    connection.execute(
        "update fw_subscriptions set next_date = next_date + 1, next_run_at = next_run_at + interval '1 day'"
    )
    tick(connection)
    before = [(state, kind) for _, state, kind, _ in rows(connection)][1:]
    connection.execute("delete from fw_briefs")

    subscriptions.visited(connection, ANN)
    set_back(connection, 0, zone)
    tick(connection)

    assert set(before) == {("skipped", "daily")}
    assert [(state, kind) for _, state, kind, _ in rows(connection)] == [("pending", "daily")]


@pytest.mark.promise("brief.away")
def test_a_brief_that_was_taken_back_or_missed_was_not_sent(connection: Connection) -> None:
    zone = noon_zone(connection)
    subscribe(connection, zone=zone, at=local(connection, zone).time())
    subscriptions.visited(connection, ANN, now(connection) - 5 * DAY)
    outcomes = []
    for _ in range(2):
        set_back(connection, 0, zone)
        tick(connection)
        outcomes += [(state, kind) for _, state, kind, _ in rows(connection)]
        connection.execute("delete from fw_briefs")  # as an edit of the subscription does

    assert outcomes == [("pending", "return")] * 2


# ---- who is next


@pytest.mark.promise("brief.fair")
def test_a_tenant_s_thousands_do_not_delay_another_s_one(connection: Connection) -> None:
    many(connection, 5000, "bulk")
    tick_all(connection)
    many(connection, 1, "small")
    many(connection, 1)
    tick_all(connection)
    connection.execute(
        "update fw_briefs set quiet_until = now(), due_at = now() - interval '1 min' where tenant = 'bulk'"
    )
    connection.execute("update fw_briefs set quiet_until = now() where tenant is distinct from 'bulk'")

    with connection.transaction():  # in which now() stands still: no message is given up
        first = claim(connection, WINDOW)
        full = claim(connection, WINDOW)
        connection.execute(
            "update fw_briefs set sends = 0, state = 'ready' where sends > 0 and tenant is distinct from 'bulk'"
        )
        second = claim(connection, WINDOW)

    whose: dict[str, str | None] = dict(connection.execute("select user_id, tenant from fw_briefs").fetchall())
    assert Counter(whose[each.user_id] for each in first) == {"bulk": WINDOW - 2, "small": 1, None: 1}
    assert full == []
    assert {whose[each.user_id] for each in second} == {"bulk"}
    assert len(second) == 2


def test_of_one_tenant_s_the_overdue_come_first(connection: Connection) -> None:
    many(connection, 50, "one")
    tick_all(connection)
    connection.execute("update fw_briefs set quiet_until = now() - interval '1 h'")
    ((late,),) = connection.execute(
        "update fw_briefs set due_at = now() - interval '1 s', quiet_until = now()"
        " where user_id = (select max(user_id::text)::uuid from fw_briefs) returning user_id"
    ).fetchall()

    assert [each.user_id for each in claim(connection, 1)] == [late]


@pytest.mark.promise("brief.fair")
def test_very_many_tenants_all_get_their_turn(connection: Connection) -> None:
    many(connection, 3 * brief_queue.OWNERS)
    connection.execute("update fw_subscriptions set tenant = 'tenant of ' || user_id")
    tick_all(connection)
    connection.execute("update fw_briefs set quiet_until = now()")

    claimed: list[str] = []
    while found := claim(connection, 50):
        claimed += [each.user_id for each in found]
        connection.execute("update fw_briefs set sends = 0, state = 'ready' where sends > 0")

    assert len(claimed) == len(set(claimed)) == 3 * brief_queue.OWNERS


@pytest.mark.promise("brief.row")
def test_two_that_claim_at_once_claim_different_briefs(
    connection: Connection, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = f"interval '{brief_queue.MESSAGE_SECONDS} s'"
    assert lease in brief_queue._CLAIM
    longer = brief_queue._CLAIM.replace(lease, "interval '1 min'")  # none ends before the last has claimed
    monkeypatch.setattr(brief_queue, "_CLAIM", longer)
    many(connection, 40)
    tick_all(connection)
    connection.execute("update fw_briefs set quiet_until = now()")

    with ThreadPoolExecutor(4) as threads:
        found = [
            each for got in threads.map(lambda each: claim(each, 40), [opened() for _ in range(4)]) for each in got
        ]

    assert len(found) == len(set(found)) == 40


def test_a_message_that_is_lost_is_sent_again_later_and_later(connection: Connection) -> None:
    many(connection, 1)
    tick_all(connection)
    waits = []
    with connection.transaction():  # in which now() stands still, however slow the machine is
        for sends in range(1, 5):
            connection.execute("update fw_briefs set quiet_until = now()")
            assert [each.sends for each in claim(connection, WINDOW)] == [sends]
            assert claim(connection, WINDOW) == []
            ((wait,),) = connection.execute(
                "select extract(epoch from quiet_until - now())::float8 from fw_briefs"
            ).fetchall()
            waits.append(wait)

    assert waits == [brief_queue.MESSAGE_SECONDS * 2**n for n in range(4)]


def test_while_everything_is_paused_nothing_is_claimed(connection: Connection) -> None:
    many(connection, 1)
    tick_all(connection)
    connection.execute("update fw_briefs set quiet_until = now()")

    connection.execute("update fw_facts set value = 2 where name = 'paused'")
    paused = claim(connection, WINDOW)
    connection.execute("update fw_facts set value = 1 where name = 'paused'")

    assert paused == []
    assert len(claim(connection, WINDOW)) == 1


def test_a_clock_that_was_put_back_holds_nobody_up(connection: Connection) -> None:
    many(connection, 2)
    tick_all(connection)
    connection.execute("update fw_briefs set build_at = now(), sends = 1, quiet_until = now() + interval '10 h'")

    held = claim(connection, WINDOW)
    reap(connection)

    assert held == []
    assert len(claim(connection, WINDOW)) == 2


MADE = briefs.Made(document={"schema": 1}, lines=[], stamp="s", words="template", facts=b"f")


def begun(connection: Connection) -> briefs.Begun:
    """The generation of the one brief there is."""
    connection.execute("update fw_briefs set quiet_until = now()")
    ((user, day, _),) = claim(connection, WINDOW)
    found = briefs.begin(connection, user, day)
    assert found is not None
    assert found.at.tzinfo is UTC
    return found

"""Briefs in a real PostgreSQL: leases, ends, what stays readable, what is told and how often, dead letters."""

import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from threading import Event
from typing import Any

import pytest
from processes import eventually
from strategies import uid

from foreword.errors import BadInput
from loaders import announcements, briefs, shelf
from loaders.brief_queue import DEATH_SECONDS, claim, reap
from loaders.briefs import MOST_ATTEMPTS, Begun, Made
from loaders.claims import Term
from loaders.connection import Connection, connect
from loaders.lateness import status
from loaders.shelf import ModelCall, StoredBrief, listed, previous, prune, record_call, stored
from loaders.subscriptions import save
from loaders.wanted import wanted
from worker import heralds
from worker.settings import Settings
from worker.wiring import Services

ANN, BEN = uid("ann"), uid("ben")
DAY = timedelta(days=1)
WINDOW = 8
MADE = Made(
    document={"schema": 1, "priorities": [{"id": "x"}]}, lines=["l"], stamp="s", words="template", facts=b"f"
)

Open = Callable[[], Connection]


@pytest.fixture
def opened(database_url: str) -> Iterator[Open]:
    """Opens one more connection."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(connect(database_url))


@pytest.fixture
def today(connection: Connection) -> date:
    ((found,),) = connection.execute("select (now() at time zone 'Etc/GMT-14')::date").fetchall()
    return date.fromisoformat(found)


@pytest.fixture
def scheduled(connection: Connection, today: date) -> date:
    """Ann's brief of today, due a minute ago; the date."""
    schedule(connection, ANN, today)
    return today


def schedule(connection: Connection, user: str, day: date) -> None:
    connection.execute(
        "insert into fw_briefs (user_id, local_date, state, kind, zone, due_at, build_at)"
        " values (%s, %s, 'pending', 'daily', 'UTC', now() - interval '1 min', now() - interval '9 min')",
        [user, day],
    )


def begun(connection: Connection, day: date, user: str = ANN) -> Begun:
    connection.execute("update fw_briefs set quiet_until = now() where state = 'pending'")
    assert (user, day) in [each[:2] for each in claim(connection, WINDOW)]
    found = briefs.begin(connection, user, day)
    assert found is not None
    return found


def by_hand(connection: Connection, day: date, user: str = ANN, *, force: bool = False) -> Begun:
    found = briefs.begin_now(connection, user, day, force=force)
    assert isinstance(found, Begun)
    return found


def brief(connection: Connection, day: date, user: str = ANN) -> StoredBrief:
    found = stored(connection, user, day)
    assert found is not None
    return found


def pass_time(connection: Connection, seconds: float) -> None:
    """As if it were later: every lease, back-off and announcement is so much nearer."""
    connection.execute("update fw_briefs set quiet_until = quiet_until - %s * interval '1 s'", [seconds])
    connection.execute("update fw_announcements set not_before = not_before - %s * interval '1 s'", [seconds])


def told(connection: Connection) -> list[tuple[Any, ...]]:
    return connection.execute("select user_id, channel, revision from fw_announcements order by 1, 2").fetchall()


# ---- leases


@pytest.mark.promise("brief.lease")
def test_a_brief_is_begun_once_however_many_messages_come(
    connection: Connection, scheduled: date, opened: Open
) -> None:
    claim(connection, WINDOW)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda own: briefs.begin(own, ANN, scheduled), [opened() for _ in range(4)]))

    (one,) = [each for each in found if each is not None]
    assert (one.owed, one.over, one.revision, one.when_empty) == (True, False, 0, "brief")
    assert brief(connection, scheduled).attempts == 1
    assert briefs.begin(connection, BEN, scheduled) is None


@pytest.mark.promise("brief.lease")
def test_who_died_in_the_middle_is_not_waited_for_and_who_lives_is(
    connection: Connection, scheduled: date, opened: Open
) -> None:
    dying = opened()
    lost = begun(dying, scheduled)
    pass_time(connection, 5)
    reap(connection)
    living = claim(connection, WINDOW)

    dying.close()
    wait_for_end_of(connection, lost)
    reap(connection)
    reap(connection)  # that it looks often puts nothing off
    pass_time(connection, DEATH_SECONDS)

    assert living == []
    begun(connection, scheduled)
    assert brief(connection, scheduled).attempts == 2
    assert briefs.finish(connection, lost, MADE) is None


def wait_for_end_of(connection: Connection, lost: Begun) -> None:
    session = "select from pg_stat_activity where pid = %s"
    while connection.execute(session, [int(lost.lease.partition(" ")[0])]).rowcount:
        time.sleep(0.01)


@pytest.mark.promise("brief.lease")
def test_who_outlived_his_lease_can_record_nothing(connection: Connection, scheduled: date) -> None:
    zombie = begun(connection, scheduled)
    early = claim(connection, WINDOW)
    pass_time(connection, briefs.LEASE_SECONDS)
    again = begun(connection, scheduled)

    ends = [
        briefs.finish(connection, zombie, MADE),
        briefs.skip(connection, zombie, "no"),
        briefs.fail(connection, zombie, "no", permanent=True),
        briefs.give_back(connection, zombie),
    ]

    assert early == []
    assert ends == [None, False, None, False]
    assert (brief(connection, scheduled).state, brief(connection, scheduled).attempts) == ("generating", 2)
    assert briefs.finish(connection, again, MADE) == 1
    assert briefs.finish(connection, again, MADE) is None
    assert told(connection) == [(ANN, "stream", 1)]


def test_a_message_that_comes_late_does_not_cut_a_back_off_short(connection: Connection, scheduled: date) -> None:
    briefs.fail(connection, begun(connection, scheduled), "the model is away", permanent=False)

    assert briefs.begin(connection, ANN, scheduled) is None
    pass_time(connection, 10)
    assert briefs.begin(connection, ANN, scheduled) is not None


# ---- ends


def test_a_finished_brief_is_there_as_it_was_made(connection: Connection, scheduled: date) -> None:
    made = replace(MADE, document={"title": "50 % „off“ \\ 'x' {}"}, words="model", reason=None)

    assert briefs.finish(connection, begun(connection, scheduled), made, ["stream", "webhook"]) == 1

    found = brief(connection, scheduled)
    assert (found.state, found.words, found.document, found.lines) == ("ready", "model", made.document, ["l"])
    assert found.told_at is not None
    assert found.due_at is not None
    assert found.told_at > found.due_at
    assert told(connection) == [(ANN, "stream", 1), (ANN, "webhook", 1)]
    assert stored(connection, ANN, None) == found
    assert [each.local_date for each in listed(connection, ANN)] == [scheduled]
    assert stored(connection, BEN, None) is None


@pytest.mark.promise("brief.told")
def test_a_brief_that_is_ready_early_is_told_when_it_is_due(connection: Connection, scheduled: date) -> None:
    connection.execute("update fw_briefs set due_at = now() + interval '5 min'")

    briefs.finish(connection, begun(connection, scheduled), MADE)

    assert announcements.due(connection, 10) == []
    pass_time(connection, 301)
    assert len(announcements.due(connection, 10)) == 1


def test_one_that_is_skipped_says_why_and_is_told_to_nobody(connection: Connection, scheduled: date) -> None:
    assert briefs.skip(connection, begun(connection, scheduled), "no live project")

    found = brief(connection, scheduled)
    assert (found.state, found.reason, told(connection)) == ("skipped", "no live project", [])
    assert claim(connection, WINDOW) == []


@pytest.mark.promise("brief.dead")
def test_failures_back_off_and_end_in_a_dead_letter_that_can_be_replayed(
    connection: Connection, scheduled: date
) -> None:
    waits, states = [], []
    for _ in range(MOST_ATTEMPTS):
        with connection.transaction():  # in which now() stands still, however slow the machine is
            lost = begun(connection, scheduled)
            states.append(briefs.fail(connection, lost, "PostgreSQL is away", permanent=False))
            ((wait,),) = connection.execute(
                "select extract(epoch from quiet_until - now())::float8 from fw_briefs"
            ).fetchall()
        waits.append(wait)

    dead = announcements.dead_letters(connection)
    nothing = claim(connection, WINDOW)
    others = announcements.replay(connection, BEN)
    replayed = announcements.replay(connection, ANN, scheduled)

    assert states == ["pending"] * (MOST_ATTEMPTS - 1) + ["failed"]
    assert all(later > 1.1 * sooner for sooner, later in itertools.pairwise(waits))
    assert [(each.user_id, each.channel, each.attempts, each.error) for each in dead] == [
        (ANN, None, MOST_ATTEMPTS, "PostgreSQL is away")
    ]
    assert nothing == []
    assert (others.briefs, replayed.briefs) == (0, 1)
    again = begun(connection, scheduled)
    assert brief(connection, scheduled).attempts == 1
    assert briefs.finish(connection, again, MADE) == 1
    assert len(told(connection)) == 1
    assert announcements.dead_letters(connection) == []


def test_a_permanent_failure_is_not_tried_again(connection: Connection, scheduled: date) -> None:
    assert (
        briefs.fail(connection, begun(connection, scheduled), "there is no such actor", permanent=True) == "failed"
    )

    assert claim(connection, WINDOW) == []
    assert status(connection).briefs_dead == 1


def test_a_server_that_is_away_is_no_attempt(connection: Connection, scheduled: date) -> None:
    for _ in range(2 * MOST_ATTEMPTS):
        assert briefs.give_back(connection, begun(connection, scheduled))

    begun(connection, scheduled)
    assert brief(connection, scheduled).attempts == 1


@pytest.mark.promise("brief.dead")
def test_one_that_kills_its_worker_again_and_again_is_given_up(connection: Connection, scheduled: date) -> None:
    for _ in range(MOST_ATTEMPTS):
        assert reap(connection).failed == ()
        begun(connection, scheduled)
        pass_time(connection, briefs.LEASE_SECONDS)

    assert claim(connection, WINDOW) == []
    assert briefs.begin(connection, ANN, scheduled) is None
    assert reap(connection).failed == ((ANN, scheduled),)
    found = brief(connection, scheduled)
    assert found.state == "failed"
    assert "ended 8 times without a word" in (found.reason or "")


def test_replayed_when_its_date_is_over_it_is_made_and_told_to_nobody(connection: Connection, today: date) -> None:
    old = today - 3 * DAY
    schedule(connection, ANN, old)
    connection.execute("update fw_briefs set state = 'failed'")

    announcements.replay(connection)

    assert briefs.finish(connection, begun(connection, old), MADE) == 1
    assert told(connection) == []


# ---- by hand


@pytest.mark.promise("brief.by-hand")
def test_by_hand_there_is_one_generation_and_nobody_is_told(connection: Connection, today: date) -> None:
    first = by_hand(connection, today)
    second = briefs.begin_now(connection, ANN, today, force=True)
    briefs.finish(connection, first, MADE)
    third = briefs.begin_now(connection, ANN, today, force=False)

    assert (first.kind, first.owed, first.zone) == ("asked", False, "UTC")
    assert isinstance(second, StoredBrief)
    assert second.state == "generating"
    assert isinstance(third, StoredBrief)
    assert (third.state, third.revision, third.due_at) == ("ready", 1, None)
    assert told(connection) == []


@pytest.mark.promise("brief.told")
def test_by_force_it_is_made_anew_in_its_place_and_not_told_again(connection: Connection, scheduled: date) -> None:
    briefs.finish(connection, begun(connection, scheduled), MADE)
    again = by_hand(connection, scheduled, force=True)
    between = stored(connection, ANN, None)

    assert briefs.finish(connection, again, replace(MADE, document={"schema": 2})) == 2

    assert between is not None
    assert between.document == MADE.document
    assert brief(connection, scheduled).document == {"schema": 2}
    assert connection.execute("select count(*) from fw_briefs").fetchall() == [(1,)]
    assert told(connection) == [(ANN, "stream", 1)]
    assert announcements.due(connection, 1)[0].revision == 2


def test_a_regeneration_that_fails_takes_nothing_away(connection: Connection, scheduled: date) -> None:
    briefs.finish(connection, begun(connection, scheduled), MADE)

    ended = briefs.fail(connection, by_hand(connection, scheduled, force=True), "no", permanent=True)

    assert ended == "ready"
    assert brief(connection, scheduled).document == MADE.document


@pytest.mark.promise("brief.by-hand")
def test_by_hand_the_scheduled_one_is_begun_and_is_it_then(connection: Connection, scheduled: date) -> None:
    asked = by_hand(connection, scheduled)

    assert (asked.kind, asked.owed) == ("daily", True)
    assert claim(connection, WINDOW) == []
    assert briefs.finish(connection, asked, MADE) == 1
    assert told(connection) == [(ANN, "stream", 1)]


@pytest.mark.parametrize("state", ["skipped", "missed"])
def test_by_hand_also_what_was_not_to_be(connection: Connection, scheduled: date, state: str) -> None:
    connection.execute("update fw_briefs set state = %s", [state])

    assert briefs.finish(connection, by_hand(connection, scheduled), MADE) == 1

    assert brief(connection, scheduled).kind == "asked"
    assert told(connection) == []


def test_by_hand_in_the_zone_of_the_subscription_or_one_that_is_named(connection: Connection, today: date) -> None:
    save(connection, wanted({"user_id": ANN, "zone": "Asia/Tokyo", "when_empty": "none", "tenant": "acme"}))

    ann = by_hand(connection, today)
    ben = briefs.begin_now(connection, BEN, today, force=False, zone="Europe/Berlin")

    tenants = connection.execute("select tenant from fw_briefs order by user_id = %s", [ANN]).fetchall()
    assert (ann.zone, ann.when_empty, tenants) == ("Asia/Tokyo", "none", [(None,), ("acme",)])
    assert isinstance(ben, Begun)
    assert ben.zone == "Europe/Berlin"
    with pytest.raises(BadInput, match="did you mean Europe/Berlin"):
        briefs.begin_now(connection, BEN, today, force=False, zone="Europe/Berln")


# ---- what is kept


def test_facts_are_kept_of_the_last_two_briefs(connection: Connection, today: date) -> None:
    for days in (3, 2, 1, 0):
        briefs.finish(connection, by_hand(connection, today - days * DAY), replace(MADE, facts=bytes([days])))

    facts = connection.execute("select facts from fw_briefs order by local_date").fetchall()
    before = previous(connection, ANN, today)
    first = previous(connection, ANN, today - 3 * DAY)

    assert [each for (each,) in facts] == [None, None, b"\1", b"\0"]
    assert before is not None
    assert (before.local_date, before.facts, before.priorities) == (today - DAY, b"\1", [{"id": "x"}])
    assert before.generated_at is not None
    assert first is None


def test_what_is_old_is_thrown_away_but_nothing_that_is_under_way(connection: Connection, today: date) -> None:
    states = ("ready", "skipped", "missed", "failed", "pending", "generating")
    for number, state in enumerate(states):
        schedule(connection, uid(str(number)), today)
        connection.execute("update fw_briefs set state = %s where user_id = %s", [state, uid(str(number))])
    connection.execute(
        "insert into fw_announcements (user_id, local_date, channel, not_before, sent_at, revision)"
        " select user_id, local_date, 'stream', now(), now(), 1 from fw_briefs"
    )
    call = ModelCall(
        prompt="summary 1",
        model="m",
        prompt_tokens=1,
        completion_tokens=None,
        cost=Decimal("0.00012"),
        milliseconds=7,
        outcome="ok",
        ended=0.0,
    )
    record_call(connection, ANN, today, call)
    young = prune(connection, 30)
    connection.execute("update fw_briefs set created_at = created_at - interval '40 days'")
    connection.execute("update fw_model_calls set at = at - interval '40 days'")

    assert young == {"briefs": 0, "model_calls": 0}
    assert prune(connection, 30) == {"briefs": 4, "model_calls": 1}
    assert prune(connection, 30) == {"briefs": 0, "model_calls": 0}
    left = "select state, (select count(*) from fw_announcements) from fw_briefs order by 1"
    assert connection.execute(left).fetchall() == [("generating", 2), ("pending", 2)]


def test_the_leading_relay_throws_them_away_for_as_long_as_there_are_any(
    connection: Connection, database_url: str, today: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        schedule(connection, uid(str(number)), today)
    connection.execute("update fw_briefs set state = 'ready', created_at = created_at - interval '101 days'")
    monkeypatch.setattr(shelf, "PRUNED_AT_ONCE", 2)
    monkeypatch.setattr(heralds, "CHORES_SECONDS", 0.0)
    services, over = Services(database_url=database_url, redis_url="", broker_url=""), Event()
    dispatcher = heralds.Dispatcher(Settings(brief_days=100), services, over, lambda *_: None)
    dispatcher.term = Term(epoch=1, paused=0, started=0)

    dispatcher.start()
    try:
        gone = eventually(lambda: connection.execute("select 1 from fw_briefs").fetchall() == [])
    finally:
        over.set()
        dispatcher.join()

    assert gone


# ---- announcements


@pytest.fixture
def ready(connection: Connection, scheduled: date) -> date:
    briefs.finish(connection, begun(connection, scheduled), MADE)
    return scheduled


@pytest.mark.promise("brief.told")
def test_the_stream_waits_for_no_other_channel_and_not_long_for_who_died(
    connection: Connection, scheduled: date
) -> None:
    briefs.finish(connection, begun(connection, scheduled), MADE, ("stream", "webhook"))

    (webhook,) = announcements.due(connection, 10, ["webhook"])
    (stream,) = announcements.due(connection, 10, ["stream"])
    pass_time(connection, announcements.STREAM_LEASE_SECONDS)
    (again,) = announcements.due(connection, 10)

    assert (webhook.channel, stream.channel) == ("webhook", "stream")
    assert (again.channel, again.attempts) == ("stream", 2)


@pytest.mark.promise("brief.told")
def test_an_announcement_is_leased_and_sent_once(
    connection: Connection, ready: date, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = f"interval '{announcements.STREAM_LEASE_SECONDS} s'"
    assert lease in announcements._DUE
    longer = announcements._DUE.replace(lease, "interval '1 min'")  # it does not end before the last has looked
    monkeypatch.setattr(announcements, "_DUE", longer)
    with ThreadPoolExecutor(4) as threads:
        found = [
            each
            for got in threads.map(lambda own: announcements.due(own, 10), [opened() for _ in range(4)])
            for each in got
        ]
    (one,) = found
    announcements.sent(connection, one)
    pass_time(connection, 3600)

    assert (one.user_id, one.local_date, one.channel, one.revision) == (ANN, ready, "stream", 1)
    assert announcements.due(connection, 10) == []


def test_one_whose_sender_dies_is_sent_again_and_the_first_can_refuse_no_more(
    connection: Connection, ready: date
) -> None:
    (first,) = announcements.due(connection, 10)
    pass_time(connection, announcements.LEASE_SECONDS)
    (second,) = announcements.due(connection, 10)

    announcements.not_sent(connection, first, "late")
    refused = connection.execute("select error from fw_announcements").fetchall()
    announcements.sent(connection, second)

    assert refused == [(None,)]
    assert status(connection).announcements_waiting == 0


@pytest.mark.promise("brief.dead")
def test_one_that_is_refused_for_a_day_is_a_dead_letter_that_can_be_replayed(
    connection: Connection, ready: date
) -> None:
    waited = 0.0
    for _ in range(announcements.MOST_ATTEMPTS):
        (one,) = announcements.due(connection, 10)
        announcements.not_sent(connection, one, "HTTP 500")
        ((wait,),) = connection.execute(
            "select extract(epoch from not_before - now())::float8 from fw_announcements"
        ).fetchall()
        waited += wait if one.attempts < announcements.MOST_ATTEMPTS else 0
        pass_time(connection, wait + 1)
    nothing = announcements.due(connection, 10)
    (dead,) = announcements.dead_letters(connection)

    replayed = announcements.replay(connection)

    assert 0.85 < waited / 86_400 < 1.15
    assert nothing == []
    assert (dead.channel, dead.error, dead.attempts) == ("stream", "HTTP 500", 10)
    assert (replayed.briefs, replayed.announcements) == (0, 1)
    assert len(announcements.due(connection, 10)) == 1


def test_one_whose_senders_all_die_is_a_dead_letter(connection: Connection, ready: date) -> None:
    for _ in range(announcements.MOST_ATTEMPTS):
        assert len(announcements.due(connection, 10)) == 1
        pass_time(connection, announcements.LEASE_SECONDS)

    assert announcements.due(connection, 10) == []
    assert "died 10 times" in (announcements.dead_letters(connection)[0].error or "")


def test_one_that_is_put_off_was_not_tried(connection: Connection, ready: date) -> None:
    for _ in range(2 * announcements.MOST_ATTEMPTS):
        (one,) = announcements.due(connection, 10)
        announcements.put_off(connection, one)
        pass_time(connection, 4)

    assert announcements.due(connection, 10)[0].attempts == 1


def test_of_a_clock_that_was_put_back_no_announcement_suffers(connection: Connection, ready: date) -> None:
    announcements.due(connection, 10)
    pass_time(connection, -2 * 86_400)

    assert len(announcements.due(connection, 10)) == 1


# ---- how they stand


def test_the_status_counts_what_is_late_and_by_how_much(connection: Connection, today: date) -> None:
    for name in ("one", "two", "three"):
        schedule(connection, uid(name), today)
    briefs.finish(connection, begun(connection, today, uid("one")), MADE)
    connection.execute("update fw_briefs set due_at = now() - interval '1 h' where user_id = %s", [uid("two")])
    save(connection, wanted({"user_id": ANN, "zone": "UTC"}))
    save(connection, wanted({"user_id": BEN, "zone": "UTC", "active": "no"}))

    untold = status(connection)
    for each in announcements.due(connection, 10):
        announcements.sent(connection, each)
    found = status(connection)

    assert (dict(found.states), found.pending, found.overdue) == ({"ready": 1, "pending": 2}, 2, 2)
    assert 3590 < found.greatest_lateness < 3700
    assert (untold.lateness, untold.announcements_waiting) == ({}, 1)
    assert untold.longest_untold >= 60
    assert set(found.lateness) == {"p50", "p95", "p99", "most"}
    assert found.lateness["most"] >= 60
    assert (found.active, found.paused, found.broken, found.announcements_waiting) == (1, 1, 0, 0)
    assert found.next_due is not None

"""Subscriptions in a real PostgreSQL: what they may be, edits through us and by plain SQL, visits, imports."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
from strategies import uid

from foreword.errors import BadInput, BadRows
from loaders import brief_queue, briefs, subscriptions
from loaders.catalog import inspect
from loaders.connection import Connection
from loaders.enrolment import enrol
from loaders.shelf import stored
from loaders.tick import AHEAD, tick
from loaders.wanted import actor_named, wanted

ANN, BEN = uid("ann"), uid("ben")
SOON = timedelta(minutes=10)


@pytest.fixture(autouse=True)
def actors(connection: Connection) -> None:
    for name in ("ann", "ben"):
        connection.execute(
            "insert into onto_actors (id, kind, user_id, email) values (%s, 'human', %s, %s)",
            [uid(name), uid(f"user of {name}"), f"{name}@example.org"],
        )


def subscribe(connection: Connection, user: str = ANN, **fields: Any) -> subscriptions.Subscription:
    return subscriptions.save(connection, wanted({"user_id": user, "zone": "UTC"} | fields))


def now(connection: Connection) -> datetime:
    ((found,),) = connection.execute("select now()::text").fetchall()
    return datetime.fromisoformat(found)


def daily_in(connection: Connection, ahead: timedelta, user: str = ANN, **fields: Any) -> datetime:
    """Subscribe to what is due so much later; when that is."""
    at = (now(connection) + ahead).replace(microsecond=0)
    subscribe(connection, user, at=at.time(), **fields)
    return at


def rows(connection: Connection, user: str = ANN) -> list[tuple[Any, ...]]:
    return connection.execute(
        "select local_date, state, kind from fw_briefs where user_id = %s order by 1", [user]
    ).fetchall()


# ---- what one may be


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"zone": "Europe/Berln"}, "did you mean Europe/Berlin"),
        ({"zone": ""}, "needs zone; give one, such as Europe/Berlin"),
        ({"user_id": "ann"}, "is no UUID"),
        ({"at": "24:00"}, "is no time of day; write HH:MM"),
        ({"at": "nine"}, "is no time of day"),
        ({"at": "09:00+01"}, "is no time of day"),
        ({"weekday": "mondy"}, "did you mean 'monday'"),
        ({"weekday": 7}, "there is no weekday 7"),
        ({"channels": "chat fax"}, "there is no channel 'fax'"),
        ({"channels": 3}, "name some of chat, mail"),
        ({"when_empty": "nothing"}, "it is brief or none"),
        ({"active": "perhaps"}, "write true or false"),
        ({"zonee": "UTC"}, "did you mean 'zone'"),
        ({"tenant": "a\0"}, "NUL"),
    ],
)
@pytest.mark.promise("zones.named")
def test_what_cannot_be_meant_is_refused_with_what_there_is(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        wanted({"user_id": ANN, "zone": "UTC"} | fields)


def test_texts_are_read_as_people_write_them() -> None:
    found = wanted(
        {
            "user_id": ANN.upper(),
            "zone": "Europe/Berlin",
            "at": "7:30",
            "weekday": "Tue",
            "channels": "mail, chat",
            "tenant": "acme",
            "active": "no",
        }
    )

    assert (found.user_id, found.at, found.weekday) == (ANN, time(7, 30), 1)
    assert (found.channels, found.tenant, found.active) == (("chat", "mail"), "acme", False)
    assert wanted({"user_id": ANN, "zone": "UTC", "weekday": "daily"}).weekday is None
    assert wanted({"user_id": ANN, "zone": "UTC"}).at == time(9)


def test_the_database_refuses_what_we_refuse(connection: Connection) -> None:
    for columns in ("at = '24:00'", "weekday = 7", "channels = '{fax}'", "when_empty = 'perhaps'"):
        subscribe(connection)
        with pytest.raises(Exception, match="_known"):
            connection.execute(f"update fw_subscriptions set {columns}".encode())


def test_an_actor_is_named_by_id_user_or_address(connection: Connection) -> None:
    catalog = inspect(connection)
    connection.execute(
        "insert into onto_actors (id, kind, email) values (gen_random_uuid(), 'human', 'BEN@example.org')"
    )

    found = [
        actor_named(connection, catalog, text)
        for text in (ANN, ANN.upper(), uid("user of ann"), " Ann@Example.org ")
    ]

    assert found == [ANN] * 4
    with pytest.raises(BadInput, match=r"2 actors have the email 'ben@example\.org'"):
        actor_named(connection, catalog, "ben@example.org")
    for nobody in ("carl@example.org", uid("carl"), "ann", "a'b%s"):
        with pytest.raises(BadInput, match="there is no live actor"):
            actor_named(connection, catalog, nobody)


def test_without_a_table_of_actors_a_user_is_a_uuid(connection: Connection) -> None:
    connection.execute("drop table onto_actors cascade")
    catalog = inspect(connection)

    assert actor_named(connection, catalog, ANN) == ANN
    with pytest.raises(BadInput, match=r"is no UUID"):
        actor_named(connection, catalog, "ann@example.org")


def test_a_deleted_actor_is_nobody(connection: Connection) -> None:
    connection.execute("alter table onto_actors add deleted_at timestamptz")
    connection.execute("update onto_actors set deleted_at = now() where id = %s", [ANN])

    with pytest.raises(BadInput, match="there is no live actor"):
        actor_named(connection, inspect(connection), "ann@example.org")


# ---- saving


def test_a_saved_subscription_has_its_next_run_at_once_strictly_later(connection: Connection) -> None:
    at = now(connection)
    daily = subscribe(connection, at=at.time().replace(microsecond=0))
    weekly = subscribe(connection, BEN, zone="Asia/Tokyo", weekday=2)

    assert daily.next_run_at is not None
    assert at < daily.next_run_at <= at + timedelta(days=1)
    assert daily.next_date == daily.next_run_at.date()
    assert weekly.next_date is not None
    assert weekly.next_date.weekday() == 2
    assert subscriptions.listed(connection) == sorted([daily, weekly], key=lambda each: each.user_id)
    assert [each.user_id for each in subscriptions.listed(connection, limit=1)] == [min(ANN, BEN)]
    assert [each.user_id for each in subscriptions.listed(connection, after=min(ANN, BEN))] == [max(ANN, BEN)]


def test_saving_the_same_again_changes_nothing(connection: Connection) -> None:
    first = subscribe(connection)
    before = connection.execute("select xmin::text from fw_subscriptions").fetchall()

    assert subscribe(connection) == first
    assert connection.execute("select xmin::text from fw_subscriptions").fetchall() == before


def test_who_has_paused_gets_nothing_until_he_resumes(connection: Connection) -> None:
    daily_in(connection, SOON)

    paused = subscriptions.pause(connection, ANN)
    nothing = tick(connection)
    again = subscribe(connection, when_empty="none")  # says nothing of it
    resumed = subscriptions.resume(connection, ANN)

    assert (paused.active, paused.next_run_at, nothing.scheduled) == (False, None, 0)
    assert not again.active
    assert resumed.active
    assert resumed.next_run_at is not None
    with pytest.raises(BadInput, match="has no subscription"):
        subscriptions.resume(connection, BEN)


# ---- edits


EDITS: dict[str, Callable[[Connection, time], object]] = {
    "ours": lambda connection, at: subscribe(connection, at=at),
    "plain SQL": lambda connection, at: connection.execute("update fw_subscriptions set at = %s", [at]),
}


@pytest.mark.parametrize("how", EDITS)
@pytest.mark.parametrize("state", ["pending", "generating", "ready"])
@pytest.mark.promise("brief.edit")
def test_an_edit_takes_back_what_nobody_was_told_of_and_moves_the_next_run(
    connection: Connection, how: str, state: str
) -> None:
    due = daily_in(connection, SOON)
    tick(connection)
    begun = None
    if state != "pending":
        begun = _begun(connection)
        if state == "ready":
            assert briefs.finish(connection, begun, MADE) == 1
    later = (due + timedelta(minutes=3)).time()

    EDITS[how](connection, later)
    gone = rows(connection)
    told = connection.execute("select * from fw_announcements").fetchall()
    late = briefs.finish(connection, begun, MADE) if begun else None
    tick(connection)
    tick(connection)

    assert (gone, told, late) == ([], [], None)
    if due.date() == (due + timedelta(minutes=3)).date():
        ((found,),) = connection.execute("select due_at::time from fw_briefs").fetchall()
        assert found == later


@pytest.mark.promise("brief.edit")
def test_an_edit_by_sql_has_the_next_run_computed_by_the_next_tick(connection: Connection) -> None:
    before = subscribe(connection)

    connection.execute("update fw_subscriptions set zone = 'Asia/Tokyo'")
    between = subscriptions.get(connection, ANN)
    ticked = tick(connection)

    after = subscriptions.get(connection, ANN)
    assert between.next_run_at is None
    assert ticked.computed == 1
    assert after.next_run_at not in (None, before.next_run_at)
    assert tick(connection) == type(ticked)()


def test_an_edit_of_anything_else_moves_nothing(connection: Connection) -> None:
    daily_in(connection, SOON)
    tick(connection)
    before = subscriptions.get(connection, ANN).next_run_at

    connection.execute("update fw_subscriptions set tenant = 'acme', channels = '{mail}', at = at, zone = zone")

    assert subscriptions.get(connection, ANN).next_run_at == before
    assert [state for _, state, _ in rows(connection)] == ["pending"]


def test_a_row_inserted_by_sql_is_scheduled(connection: Connection) -> None:
    connection.execute(
        "insert into fw_subscriptions (user_id, zone, at)"
        " values (%s, 'UTC', (now() at time zone 'UTC')::time(0) + %s)",
        [ANN, SOON],
    )

    first = tick(connection)
    second = tick(connection)

    assert (first.computed, first.more) == (1, True)
    assert second.scheduled == 1


def test_what_is_due_already_is_not_taken_back_by_an_edit_but_by_a_removal(connection: Connection) -> None:
    daily_in(connection, SOON)
    tick(connection)
    connection.execute("update fw_briefs set due_at = now() - interval '1 min'")

    subscribe(connection, at="03:03")
    kept = rows(connection)
    subscriptions.remove(connection, ANN)

    assert [state for _, state, _ in kept] == ["pending"]
    assert rows(connection) == []
    assert not subscriptions.remove(connection, ANN)


def test_a_run_that_is_overdue_is_not_lost_by_an_edit(connection: Connection) -> None:
    """Nothing ran at nine; at five past, nine becomes one minute past."""
    at = now(connection) - timedelta(minutes=5)
    subscribe(connection, at=at.time().replace(microsecond=0))
    connection.execute("update fw_subscriptions set next_run_at = %s, next_date = %s", [at, at.date()])

    saved = subscribe(connection, at=(at + timedelta(minutes=1)).time().replace(microsecond=0))
    ticked = tick(connection)

    assert saved.next_run_at is not None
    assert saved.next_run_at < now(connection)
    assert ticked.scheduled + ticked.missed >= 1
    assert rows(connection)[0][0] == at.date().isoformat()


def test_briefs_that_were_told_stay_readable_after_a_removal(connection: Connection) -> None:
    daily_in(connection, SOON)
    tick(connection)
    begun = _begun(connection)
    connection.execute("update fw_briefs set due_at = now() - interval '1 min'")
    briefs.finish(connection, begun, MADE)

    connection.execute("delete from fw_subscriptions")

    found = stored(connection, ANN, None)
    assert found is not None
    assert found.document == {"schema": 1}
    assert connection.execute("select * from fw_announcements").fetchall() == []


def test_what_somebody_asked_for_by_hand_stays_when_its_schedule_moves(connection: Connection) -> None:
    due = daily_in(connection, SOON)
    asked = briefs.begin_now(connection, ANN, due.date(), force=False)
    assert isinstance(asked, briefs.Begun)
    briefs.finish(connection, asked, MADE)
    tick(connection)
    adopted = rows(connection)

    subscribe(connection, at="03:03")

    assert adopted == [(due.date().isoformat(), "pending", "daily")]
    assert rows(connection) == [(due.date().isoformat(), "ready", "asked")]


# ---- visits


def test_a_visit_is_never_in_the_future_and_never_goes_back(connection: Connection) -> None:
    subscribe(connection)
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)

    assert subscriptions.visited(connection, ANN, long_ago)
    first = subscriptions.get(connection, ANN).last_visit_at
    subscriptions.visited(connection, ANN, datetime(2999, 1, 1, tzinfo=UTC))
    second = subscriptions.get(connection, ANN).last_visit_at
    subscriptions.visited(connection, ANN, long_ago)

    assert first == long_ago
    assert second is not None
    assert second <= now(connection)
    assert subscriptions.get(connection, ANN).last_visit_at == second
    assert not subscriptions.visited(connection, BEN)


# ---- a row that is malformed


@pytest.mark.parametrize(
    "columns",
    ["zone = 'Mars/Olympus'", "next_run_at = '-infinity'", "last_visit_at = 'infinity'"],
)
@pytest.mark.promise("brief.broken")
def test_a_malformed_row_holds_up_no_other(connection: Connection, columns: str) -> None:
    daily_in(connection, SOON)
    daily_in(connection, SOON, BEN)
    connection.execute(f"update fw_subscriptions set {columns} where user_id = '{ANN}'".encode())

    for _ in range(3):
        tick(connection)

    assert len(rows(connection, BEN)) == 1
    assert tick(connection).more is False
    if "zone" in columns:
        assert "Mars/Olympus" in (subscriptions.get(connection, ANN).error or "")
        subscribe(connection)
        assert subscriptions.get(connection, ANN).error is None
    else:
        assert len(rows(connection)) == 1


# ---- import


@pytest.mark.promise("brief.enrol")
def test_a_file_is_imported_all_or_nothing_and_every_bad_row_is_named(
    connection: Connection, tmp_path: Path
) -> None:
    catalog, file = inspect(connection), tmp_path / "people.jsonl"
    lines = [
        {"user": "ann@example.org", "zone": "Europe/Berlin", "at": "07:30"},
        {"user": "carl@example.org", "zone": "UTC"},
        {"user": BEN, "zone": "Europe/Berln"},
        {"user": ANN, "zone": "UTC"},
        {"zone": "UTC"},
        [],
    ]
    file.write_text("\n".join(map(json.dumps, lines)) + "\nnonsense\n")

    with pytest.raises(BadRows, match="6 bad rows, so nothing was imported") as raised:
        enrol(connection, catalog, file)
    before = subscriptions.listed(connection)
    done = enrol(connection, catalog, file, skip_bad=True)

    assert before == []
    assert [line for _, line, _ in raised.value.places] == [2, 3, 4, 5, 6, 7]
    assert (done.rows, done.changed, done.skipped) == (1, 1, raised.value.places)
    assert [each.at for each in subscriptions.listed(connection)] == [time(7, 30)]
    assert subscriptions.get(connection, ANN).next_run_at is not None


def test_a_csv_file_says_the_same(connection: Connection, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text(
        "\ufeffuser,zone,at,weekday,channels,tenant\n"
        'ann@example.org,Europe/Berlin,08:00,fri,"chat,mail",acme\n'
        f"{BEN},UTC,,,,\n"
    )

    first = enrol(connection, inspect(connection), file)
    again = enrol(connection, inspect(connection), file)

    assert (first.rows, first.changed, again.changed) == (2, 2, 0)
    ann, ben = (subscriptions.get(connection, user) for user in (ANN, BEN))
    assert (ann.weekday, ann.channels, ann.tenant) == (4, ("chat", "mail"), "acme")
    assert (ben.at, ben.weekday, ben.tenant) == (time(9), None, None)


def test_a_file_that_is_none_is_refused(connection: Connection, tmp_path: Path) -> None:
    catalog = inspect(connection)
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "b.csv").write_bytes(b"user,zone\n\xff,UTC\n")

    for name, message in (("a.txt", "neither .jsonl nor .csv"), ("b.csv", "not UTF-8"), ("c.csv", "cannot read")):
        with pytest.raises(BadInput, match=message):
            enrol(connection, catalog, tmp_path / name)


def test_an_import_leaves_who_has_paused_alone(connection: Connection, tmp_path: Path) -> None:
    file = tmp_path / "people.jsonl"
    file.write_text(json.dumps({"user": ANN, "zone": "UTC"}))
    enrol(connection, inspect(connection), file)
    subscriptions.pause(connection, ANN)
    file.write_text(json.dumps({"user": ANN, "zone": "Asia/Tokyo"}))

    enrol(connection, inspect(connection), file)

    assert not subscriptions.get(connection, ANN).active


MADE = briefs.Made(document={"schema": 1}, lines=[], stamp="s", words="template", facts=b"f")


def _begun(connection: Connection) -> briefs.Begun:
    """The generation of the one brief there is."""
    connection.execute("update fw_briefs set quiet_until = now()")
    ((user, day, _),) = brief_queue.claim(connection, 4)
    begun = briefs.begin(connection, user, day)
    assert begun is not None
    assert isinstance(day, date)
    assert AHEAD > SOON
    return begun

"""Making and announcing briefs over a real PostgreSQL and a real Redis: whole, twice, interrupted, while parts
fail or go away.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from slow import too_slow
from strategies import uid

from foreword import keys
from foreword.digest import DONE_NOW, OPEN, SLIPPED
from foreword.errors import BadInput, BuildError, SchemaError, Unavailable
from foreword.reader import Reader
from loaders import announcements, brief_queue, briefs, shelf, subscriptions
from loaders.briefs import MOST_ATTEMPTS, Begun
from loaders.catalog import inspect
from loaders.connection import Connection, connect
from loaders.jsonl import import_directory
from loaders.project import load_project
from loaders.shelf import StoredBrief
from loaders.wanted import wanted
from tasks.announce import announce
from tasks.brief import DATED_DAYS, copy_brief, finish_brief, make_brief
from tasks.tools import Refused, Tools
from worker.servers import Addresses
from worker.settings import Settings
from worker.wiring import JobStore, tools_over

HARBOUR = Path(__file__).parents[2] / "samples" / "harbour"
LIBRARY, BOAT = "a8e1bf1f-2157-5c0b-a103-3b8fa71a9b3b", "8b7e4cad-0a07-5b44-8dc5-f5e96d8984ed"
IDRIS, ASTA = "a7af32f0-f494-5c31-afaa-1331553955cc", "d3e203a5-d5ea-50e8-811a-37dc1dbcb303"
DAY, BEFORE = date(2026, 11, 21), date(2026, 11, 20)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()

Open = Callable[[], Tools]


@pytest.fixture(scope="module")
def template(servers: Addresses, migrated: str, encoding: None) -> str:
    """The name of a database that holds the sample."""
    with connect(servers.database_url) as admin:
        admin.execute(f"create database fw_harbour template {migrated}".encode())
    with connect(servers.database_url.replace("/foreword?", "/fw_harbour?")) as connection:
        import_directory(connection, HARBOUR, inspect(connection))
    return "fw_harbour"


@pytest.fixture
def database_url(request: pytest.FixtureRequest, new_url: Callable[[], str], shared_url: str) -> str:
    """One database for all tests of this module but those that alter more than briefs: they have their own."""
    if "alters" in request.fixturenames:
        return new_url()
    with connect(shared_url) as connection:
        connection.execute("delete from fw_announcements; delete from fw_briefs; delete from fw_subscriptions")
    return shared_url


@pytest.fixture
def opened(database_url: str, redis_client: "redis.Redis") -> Iterator[Open]:
    """Opens the tools of one more worker."""
    with ExitStack() as stack:

        def one() -> Tools:
            return tools_over(Settings(), stack.enter_context(connect(database_url)), redis_client)

        yield one


@pytest.fixture
def tools(opened: Open) -> Tools:
    return opened()


@pytest.fixture
def application(connection: Connection) -> Connection:
    """A connection of the application, or of whoever looks on."""
    return connection


@pytest.fixture
def reader(redis_client: "redis.Redis") -> Reader:
    return Reader(redis_client, clock=lambda: NOON, asks=False)


@pytest.fixture
def today(application: Connection) -> date:
    """A date that is over nowhere."""
    ((found,),) = application.execute("select (now() at time zone 'Etc/GMT-14')::date").fetchall()
    return date.fromisoformat(found)


@pytest.fixture
def down() -> Iterator[JobStore]:
    """A Redis that does not answer."""
    with redis.Redis(port=1, retry=Retry(NoBackoff(), 0)) as client:
        yield JobStore(client)


def schedule(connection: Connection, day: date, user: str = IDRIS, *, due: str = "-1 min") -> None:
    connection.execute(
        "insert into fw_briefs (user_id, local_date, state, kind, zone, due_at, build_at)"
        " values (%s, %s, 'pending', 'daily', 'UTC', now() + %s::interval, now() - interval '9 min')",
        [user, day, due],
    )


def pass_time(connection: Connection, seconds: float) -> None:
    """As if it were later: every lease, back-off and announcement is so much nearer."""
    connection.execute("update fw_briefs set quiet_until = quiet_until - %s * interval '1 s'", [seconds])
    connection.execute("update fw_announcements set not_before = not_before - %s * interval '1 s'", [seconds])


def made(tools: Tools, day: date, user: str = IDRIS) -> int | None:
    """Make a brief that was claimed."""
    assert (user, day) in [each[:2] for each in brief_queue.claim(tools.connection, 32)]
    return make_brief(user, day, tools)


def by_hand(
    tools: Tools, day: date, user: str = IDRIS, *, zone: str = "UTC", force: bool = False
) -> dict[str, Any]:
    """The document of a brief that is made at once."""
    begun = briefs.begin_now(tools.connection, user, day, force=force, zone=zone)
    assert isinstance(begun, Begun)
    assert finish_brief(begun, tools) == begun.revision + 1
    document = stored(tools.connection, day, user).document
    assert document is not None
    return document


def stored(connection: Connection, day: date, user: str = IDRIS) -> StoredBrief:
    found = shelf.stored(connection, user, day)
    assert found is not None
    return found


def titles(listed: dict[str, Any]) -> set[str]:
    return {item["title"] for item in listed["items"]}


def meanwhile(monkeypatch: pytest.MonkeyPatch, project: str, happens: Callable[[], object]) -> None:
    """Have something happen once, right before a project is loaded."""
    pending = [happens]

    def load(connection: Connection, name: str, statements: Any) -> Any:
        if name == project and pending:
            pending.pop()()
        return load_project(connection, name, statements)

    monkeypatch.setattr("tasks.brief.load_project", load)


# ---- the whole way


@pytest.mark.promise("brief.told", "brief.lease")
def test_a_brief_is_kept_in_postgresql_and_its_copy_in_redis_is_equal(
    tools: Tools, today: date, reader: Reader
) -> None:
    schedule(tools.connection, today)

    revision = made(tools, today)

    kept = stored(tools.connection, today)
    assert (revision, kept.state, kept.revision, kept.kind, kept.words) == (1, "ready", 1, "daily", "template")
    assert kept.document is not None
    assert kept.document["totals"]["projects"] == 2
    assert kept.document["name"] == "Idris Okonjo"
    for copy in (reader.brief(IDRIS), reader.brief(IDRIS, today)):
        assert copy.status == "fresh"
        assert copy.data == kept.document
        assert kept.stamp == f"{copy.line}\n"
        assert copy.tokens == tools.count(copy.text) <= tools.budget
    assert tools.connection.execute("select channel, revision from fw_announcements").fetchall() == [("stream", 1)]


@pytest.mark.promise("brief.lease", "brief.row")
def test_a_message_that_comes_twice_makes_one_brief(
    tools: Tools, opened: Open, today: date, reader: Reader
) -> None:
    schedule(tools.connection, today)

    revisions = [made(tools, today), make_brief(IDRIS, today, tools), make_brief(IDRIS, today, opened())]

    assert revisions == [1, None, None]
    assert tools.connection.execute("select count(*), max(revision) from fw_briefs").fetchall() == [(1, 1)]
    assert make_brief(ASTA, today, tools) is None


@pytest.mark.promise("brief.facts")
def test_its_numbers_are_those_of_the_sample(tools: Tools) -> None:
    document = by_hand(tools, DAY, ASTA)

    totals = document["totals"]
    assert (totals["overdue"], totals["today"], totals["upcoming"], totals["blocked"]) == (9, 3, 13, 20)
    assert [section["id"] for section in document["projects"]] == [LIBRARY]
    assert len(document["priorities"]) == 5


@pytest.mark.usefixtures("alters")
@pytest.mark.promise("brief.facts")
def test_in_a_zone_to_the_west_the_day_is_that_zones(
    tools: Tools, application: Connection, reader: Reader
) -> None:
    application.execute(
        "update onto_tasks set due_at = '2026-11-22 05:00+00' where id = (select min(id::text)::uuid"
        f" from onto_tasks where project_id = '{BOAT}' and deleted_at is null and state_key = 'todo')"
    )
    west = "America/Los_Angeles"

    document = by_hand(tools, DAY, zone=west)

    copy = reader.brief(IDRIS, DAY)
    (title,) = application.execute("select title from onto_tasks where due_at = '2026-11-22 05:00+00'").fetchall()[
        0
    ]
    assert title in titles(document["today"])
    assert (document["zone"], copy.stamp and copy.stamp.zone) == (west, west)
    assert copy.stamp is not None
    assert copy.stamp.valid_until == datetime(2026, 11, 22, 8, tzinfo=UTC).timestamp()
    assert f"brief of {DAY}, {west}" in copy.text


# ---- a lease that is lost


@pytest.mark.promise("brief.lease")
def test_a_brief_that_is_taken_back_meanwhile_leaves_nothing(
    tools: Tools,
    application: Connection,
    today: date,
    redis_client: "redis.Redis",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schedule(tools.connection, today)
    meanwhile(monkeypatch, LIBRARY, lambda: application.execute("delete from fw_briefs"))

    assert made(tools, today) is None
    assert shelf.stored(application, IDRIS, today) is None
    assert redis_client.keys("*") == []
    assert application.execute("select from fw_announcements").fetchall() == []


@pytest.mark.promise("brief.lease")
def test_who_outlived_his_lease_neither_records_nor_copies(
    tools: Tools, opened: Open, today: date, redis_client: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule(tools.connection, today)
    other, another = opened(), []

    def paused() -> None:
        pass_time(other.connection, briefs.LEASE_SECONDS)
        another.append(briefs.begin(other.connection, IDRIS, today))

    meanwhile(monkeypatch, LIBRARY, paused)

    late = made(tools, today)
    copied = redis_client.keys("*")
    (begun,) = another
    assert begun is not None
    revision = finish_brief(begun, other)

    assert (late, revision) == (None, 1)
    assert copied == []
    assert stored(tools.connection, today).state == "ready"


@pytest.mark.promise("brief.lease")
def test_who_is_interrupted_gives_the_brief_back_at_once(
    tools: Tools, today: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    meanwhile(monkeypatch, LIBRARY, interrupt)

    with pytest.raises(KeyboardInterrupt):
        by_hand(tools, today)

    assert (stored(tools.connection, today).state, stored(tools.connection, today).attempts) == ("pending", 0)
    assert by_hand(tools, today)["totals"]["projects"] == 2


# ---- what goes away while a brief is made


@pytest.mark.usefixtures("alters")
@pytest.mark.promise("brief.document")
@pytest.mark.parametrize(
    "happens",
    [
        f"update onto_projects set deleted_at = now() where id = '{BOAT}'",
        f"delete from onto_projects where id = '{BOAT}'",
        f"update onto_projects set state_key = 'paused' where id = '{BOAT}'",
        f"update onto_project_members set removed_at = now() where project_id = '{BOAT}' and actor_id = '{IDRIS}'",
    ],
    ids=["deleted", "gone", "paused", "left"],
)
def test_a_project_that_goes_away_meanwhile_is_named_and_told_nothing_of(
    tools: Tools, application: Connection, monkeypatch: pytest.MonkeyPatch, happens: str
) -> None:
    meanwhile(monkeypatch, BOAT, lambda: application.execute(happens.encode()))

    document = by_hand(tools, DAY)

    assert document["gone"] == ["Book boat to the islands"]
    assert document["totals"]["projects"] == 1
    assert BOAT not in str(document)


@pytest.mark.promise("brief.dead")
def test_the_brief_of_somebody_who_is_no_more_fails_for_good(tools: Tools, today: date) -> None:
    schedule(tools.connection, today, uid("nobody"))

    with pytest.raises(BadInput, match=f"{uid('nobody')} any more") as gone:
        made(tools, today, uid("nobody"))

    (letter,) = announcements.dead_letters(tools.connection)
    assert (letter.user_id, letter.channel, letter.attempts) == (uid("nobody"), None, 1)
    assert letter.error == str(gone.value)
    assert brief_queue.claim(tools.connection, 32) == []


# ---- nothing to say


@pytest.fixture
def idle(alters: None, application: Connection) -> str:
    """Somebody without a project in hand."""
    user = uid("idle")
    application.execute("insert into onto_actors (id, kind, name) values (%s, 'human', 'Ann')", [user])
    return user


@pytest.mark.promise("brief.document")
def test_an_empty_account_gets_a_short_honest_brief(tools: Tools, today: date, idle: str, reader: Reader) -> None:
    schedule(tools.connection, today, idle)

    assert made(tools, today, idle) == 1

    copy = reader.brief(idle)
    assert copy.data["totals"]["projects"] == 0
    assert copy.data["summary"]["text"]
    assert copy.text


@pytest.mark.promise("brief.document")
def test_or_none_where_that_is_preferred_but_one_by_hand(
    tools: Tools, today: date, idle: str, reader: Reader
) -> None:
    subscriptions.save(tools.connection, wanted({"user_id": idle, "zone": "UTC", "when_empty": "none"}))
    schedule(tools.connection, today, idle)

    assert made(tools, today, idle) is None

    found = stored(tools.connection, today, idle)
    assert (found.state, found.reason) == ("skipped", "no project in planning or active")
    assert tools.connection.execute("select from fw_announcements").fetchall() == []
    assert not reader.brief(idle)
    assert by_hand(tools, today, idle)["totals"]["projects"] == 0
    assert tools.connection.execute("select from fw_announcements").fetchall() == []


# ---- queries that fail


@pytest.mark.usefixtures("alters")
@pytest.mark.promise("brief.dead")
def test_a_table_that_was_altered_fails_the_brief_visibly_and_it_is_tried_again(
    tools: Tools, opened: Open, application: Connection, today: date, redis_client: "redis.Redis"
) -> None:
    schedule(tools.connection, today)
    application.execute("alter table onto_tasks rename column due_at to due")

    with pytest.raises(SchemaError):
        made(tools, today)
    failed = stored(application, today)
    copied = redis_client.keys("*")
    application.execute("alter table onto_tasks rename column due to due_at")
    pass_time(application, 60)

    assert (failed.state, failed.attempts, copied) == ("pending", 1, [])
    assert failed.reason is not None
    assert "due_at" in failed.reason
    assert made(opened(), today) == 1


@pytest.mark.promise("brief.dead")
def test_a_query_that_takes_too_long_fails_a_brief_until_it_is_a_dead_letter_that_is_replayed(
    tools: Tools, application: Connection, today: date
) -> None:
    schedule(tools.connection, today)

    with too_slow(application, "onto_tasks"):
        for _ in range(MOST_ATTEMPTS):
            with pytest.raises(BuildError, match="statement timeout"):
                made(tools, today)
            waits = brief_queue.claim(application, 32)
            pass_time(application, 900)
    failed = stored(application, today)
    replayed = announcements.replay(application)

    assert waits == []
    assert (failed.state, failed.attempts, failed.revision) == ("failed", MOST_ATTEMPTS, 0)
    assert "statement timeout" in (failed.reason or "")
    assert replayed.briefs == 1
    assert made(tools, today) == 1
    assert application.execute("select channel from fw_announcements").fetchall() == [("stream",)]


@pytest.mark.promise("brief.dead")
def test_a_database_that_goes_away_costs_no_attempt(tools: Tools, application: Connection, today: date) -> None:
    schedule(tools.connection, today)
    brief_queue.claim(application, 32)
    begun = briefs.begin(application, IDRIS, today)
    assert begun is not None
    application.execute("select pg_terminate_backend(%s)", [tools.connection.info.backend_pid])

    with pytest.raises(Unavailable):
        finish_brief(begun, tools)

    assert tools.connection.closed
    assert stored(application, today).state == "generating"  # until its lease ends


@pytest.mark.promise("brief.lease")
def test_whoever_lost_the_connection_and_tries_again_at_once_has_the_lease_still(
    opened: Open, application: Connection, today: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = opened(), opened()
    schedule(application, today)
    brief_queue.claim(application, 32)
    lost = first.connection.info.backend_pid
    meanwhile(monkeypatch, LIBRARY, lambda: application.execute("select pg_terminate_backend(%s)", [lost]))
    held: list[Begun] = []

    with pytest.raises(Unavailable):
        make_brief(IDRIS, today, first, held)
    revision = make_brief(IDRIS, today, second, held)

    assert first.connection.closed
    assert (revision, stored(application, today).state, stored(application, today).attempts) == (1, "ready", 1)


@pytest.mark.promise("brief.lease")
def test_whoever_gave_it_back_holds_nothing(
    tools: Tools, application: Connection, today: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule(application, today)
    brief_queue.claim(application, 32)

    def away() -> None:
        raise Unavailable("a server is away")

    meanwhile(monkeypatch, LIBRARY, away)
    held: list[Begun] = []

    with pytest.raises(Unavailable):
        make_brief(IDRIS, today, tools, held)

    assert held == []
    assert make_brief(IDRIS, today, tools, held) is None  # not before its back-off is over
    assert stored(application, today).state == "pending"


@pytest.mark.usefixtures("alters")
@pytest.mark.promise("brief.one-line")
def test_a_date_that_is_none_costs_one_line(tools: Tools, application: Connection) -> None:
    whole = by_hand(tools, DAY, ASTA)["totals"]
    application.execute(
        "update onto_tasks set due_at = 'infinity' where id ="
        f" (select id from onto_tasks where project_id = '{LIBRARY}' and deleted_at is null and state_key = 'todo'"
        " and due_at < '2026-11-20' order by id limit 1)"
    )

    totals = by_hand(tools, DAY, ASTA, force=True)["totals"]

    assert totals["overdue"] == whole["overdue"] - 1
    assert (totals["tasks"], totals["today"]) == (whole["tasks"], whole["today"])


# ---- what is new


@pytest.mark.usefixtures("alters")
@pytest.mark.promise("brief.difference")
def test_the_difference_to_the_day_before_and_what_became_of_its_priorities(
    tools: Tools, application: Connection
) -> None:
    first = by_hand(tools, BEFORE, ASTA)["priorities"]
    done, slipped, *rest = first
    application.execute(
        "update onto_tasks set state_key = 'done', completed_at = '2026-11-21 08:00+00' where id = %s",
        [done["id"]],
    )
    application.execute("update onto_tasks set due_at = '2026-12-24 00:00+00' where id = %s", [slipped["id"]])
    application.execute(
        "insert into onto_risks (id, project_id, title, state_key) values (%s, %s, 'Ice', 'identified')",
        [uid("ice"), LIBRARY],
    )

    document = by_hand(tools, DAY, ASTA)

    changes = document["changes"]
    became = {action["id"]: action["became"] for action in changes["priorities"]}
    assert (document["since"], changes["since"]) == (BEFORE.isoformat(), BEFORE.isoformat())
    assert became == {done["id"]: DONE_NOW, slipped["id"]: SLIPPED, **{action["id"]: OPEN for action in rest}}
    assert done["title"] in titles(changes["newly_done"])
    assert done["title"] in titles(document["wins"])
    assert titles(changes["slipped"]) == {slipped["title"]}
    assert titles(changes["new_risks"]) == {"Ice"}
    assert {item["due"] for item in changes["newly_overdue"]["items"]} <= {"2026-11-20"}


@pytest.mark.usefixtures("alters")
@pytest.mark.promise("brief.difference")
def test_a_brief_made_late_by_hand_takes_nothing_from_the_next_one(tools: Tools, application: Connection) -> None:
    """Made now for a day that is over: what was done since that day's end is still to be told."""
    task = by_hand(tools, BEFORE, ASTA)["priorities"][0]
    application.execute(
        "update onto_tasks set state_key = 'done', completed_at = '2026-11-21 06:00+00' where id = %s",
        [task["id"]],
    )

    again = by_hand(tools, BEFORE, ASTA, force=True)
    document = by_hand(tools, DAY, ASTA)

    assert again["date"] == BEFORE.isoformat()
    assert document["window_from"] == "2026-11-21T00:00:00+00:00"
    assert task["id"] in {item["id"] for item in document["projects"][0]["done"]["items"]}


@pytest.mark.promise("brief.known")
@pytest.mark.parametrize("facts", ["'garbage'", "null"])
def test_damaged_facts_of_the_day_before_cost_the_comparison_only(
    tools: Tools, application: Connection, facts: str
) -> None:
    first = by_hand(tools, BEFORE, ASTA)["priorities"]
    application.execute(f"update fw_briefs set facts = {facts}".encode())

    document = by_hand(tools, DAY, ASTA)

    assert document["since"] == BEFORE.isoformat()
    assert document["changes"]["newly_overdue"]["total"] == 0
    assert [action["id"] for action in document["changes"]["priorities"]] == [action["id"] for action in first]


# ---- copies in Redis


@pytest.mark.promise("brief.told")
def test_without_redis_a_brief_is_ready_all_the_same_and_copied_when_it_is_announced(
    tools: Tools, today: date, down: JobStore, reader: Reader
) -> None:
    schedule(tools.connection, today)

    revision = made(replace(tools, store=down), today)
    missing = reader.brief(IDRIS)
    announced = announce(tools)

    assert (revision, stored(tools.connection, today).state) == (1, "ready")
    assert not missing
    assert announced == 1
    assert reader.brief(IDRIS).data == stored(tools.connection, today).document
    assert [event["id"] for _, event in reader.ready()] == [f"{IDRIS}:{today}"]


@pytest.mark.promise("fresh.reconciled")
def test_a_copy_that_is_missed_is_made_again_as_it_was(
    tools: Tools, reader: Reader, redis_client: "redis.Redis"
) -> None:
    by_hand(tools, DAY)
    before = reader.brief(IDRIS, DAY)
    redis_client.flushall()

    copied = copy_brief(stored(tools.connection, DAY), tools)

    assert copied
    assert reader.brief(IDRIS, DAY) == before
    assert reader.brief(IDRIS) == before


def test_the_copy_of_a_date_goes_when_nobody_has_that_date_and_the_latest_stays(
    tools: Tools, redis_client: "redis.Redis"
) -> None:
    by_hand(tools, DAY)

    kept = {key: redis_client.ttl(key) for key in (keys.brief(IDRIS, str(DAY)), keys.brief(IDRIS))}

    of_the_date, latest = kept.values()
    assert 0 < of_the_date <= DATED_DAYS * 86_400 < latest <= tools.ttl


@pytest.mark.promise("store.fence")
@pytest.mark.parametrize("emptied", [False, True])
def test_an_older_brief_never_takes_the_place_of_the_latest(
    tools: Tools, reader: Reader, redis_client: "redis.Redis", *, emptied: bool
) -> None:
    by_hand(tools, BEFORE)
    by_hand(tools, DAY)
    if emptied:
        redis_client.flushall()

    copy_brief(stored(tools.connection, BEFORE), tools)
    copied = reader.brief(IDRIS).data
    by_hand(tools, BEFORE, force=True)
    made_again = reader.brief(IDRIS).data

    assert reader.brief(IDRIS, BEFORE).data["date"] == BEFORE.isoformat()
    for latest in (copied, made_again):
        assert latest.get("date") in ({DAY.isoformat(), None} if emptied else {DAY.isoformat()})


def test_what_was_never_ready_cannot_be_copied(tools: Tools, today: date, redis_client: "redis.Redis") -> None:
    schedule(tools.connection, today)

    assert not copy_brief(stored(tools.connection, today), tools)
    assert redis_client.keys("*") == []


# ---- announcing


@pytest.fixture
def ready(tools: Tools, today: date) -> date:
    """Idris's brief of today, ready and due."""
    schedule(tools.connection, today)
    made(tools, today)
    return today


def of_announcements(connection: Connection) -> list[tuple[Any, ...]]:
    return connection.execute(
        "select channel, attempts, sent_at is not null, dead_at is not null, error from fw_announcements"
        " order by user_id, channel"
    ).fetchall()


@pytest.mark.promise("brief.told")
def test_an_event_says_whose_brief_is_ready(tools: Tools, ready: date, reader: Reader) -> None:
    subscriptions.save(tools.connection, wanted({"user_id": IDRIS, "zone": "UTC", "channels": "mail chat"}))

    announced = [announce(tools), announce(tools)]

    ((_, event),) = reader.ready()
    assert announced == [1, 0]
    assert event["id"] == f"{IDRIS}:{ready}"
    assert (event["user"], event["date"], event["zone"]) == (IDRIS, ready.isoformat(), "UTC")
    assert (event["kind"], event["revision"], event["channels"]) == ("daily", "1", "chat mail")
    assert datetime.fromisoformat(event["due"]) < datetime.now(UTC) + timedelta(minutes=1)
    assert of_announcements(tools.connection) == [("stream", 1, True, False, None)]


@pytest.mark.promise("brief.told")
def test_who_dies_before_it_is_on_record_tells_again_and_the_stream_has_it_once(
    tools: Tools, ready: date, reader: Reader, redis_client: "redis.Redis"
) -> None:
    for _ in range(3):
        announce(tools)
        tools.connection.execute("update fw_announcements set sent_at = null, not_before = now()")
    once = reader.ready()

    redis_client.delete(keys.told(f"{IDRIS}:{ready}"))
    announce(tools)

    assert len(once) == 1
    assert {event["id"] for _, event in reader.ready()} == {f"{IDRIS}:{ready}"}  # its receiver can tell


@pytest.mark.promise("brief.told")
def test_nobody_is_told_before_the_time_or_of_what_was_asked_for_by_hand(
    tools: Tools, today: date, reader: Reader
) -> None:
    schedule(tools.connection, today, due="5 min")
    made(tools, today)
    by_hand(tools, today, ASTA)

    early = announce(tools)
    pass_time(tools.connection, 300)
    due = announce(tools)

    assert (early, due) == (0, 1)
    assert [event["user"] for _, event in reader.ready()] == [IDRIS]


@pytest.mark.promise("brief.told")
def test_a_revision_by_force_replaces_the_copy_and_is_not_told_again(
    tools: Tools, ready: date, reader: Reader
) -> None:
    announce(tools)

    by_hand(tools, ready, force=True)

    assert announce(tools) == 0
    assert len(reader.ready()) == 1
    assert stored(tools.connection, ready).stamp == f"{reader.brief(IDRIS).line}\n"
    assert stored(tools.connection, ready).revision == 2


@pytest.mark.promise("brief.told")
def test_while_redis_is_away_announcements_wait_and_cost_no_attempt(
    tools: Tools, ready: date, down: JobStore, reader: Reader
) -> None:
    with tools.connection.transaction():  # in which now() stands still, however slow the machine is
        assert announce(replace(tools, store=down)) == 1
        waiting = of_announcements(tools.connection)
        at_once = announce(tools)
    pass_time(tools.connection, 5)

    assert waiting == [("stream", 0, False, False, None)]
    assert at_once == 0
    assert announce(tools) == 1
    assert len(reader.ready()) == 1


@pytest.mark.promise("brief.told", "brief.dead")
def test_a_webhook_is_told_beside_the_stream_and_neither_waits_for_the_other(
    tools: Tools, today: date, reader: Reader
) -> None:
    told: list[tuple[str, Any]] = []

    def refuse(name: str, event: Any) -> None:
        assert len(reader.ready()) == 1
        told.append((name, event))
        if len(told) == 1:
            raise Refused("the receiver answered 503")

    both = replace(tools, webhook=refuse)
    schedule(tools.connection, today)
    made(both, today)

    announce(both)
    first = of_announcements(tools.connection)
    pass_time(tools.connection, 120)
    announce(both)

    assert first == [("stream", 1, True, False, None), ("webhook", 1, False, False, "the receiver answered 503")]
    assert of_announcements(tools.connection)[1] == ("webhook", 2, True, False, None)
    (one, event), (other, again) = told
    assert one == other == f"{IDRIS}:{today}"
    assert event == again
    document = stored(tools.connection, today).document
    assert document is not None
    assert event["summary"] == document["summary"]["text"]
    assert event["markdown"].startswith("#")
    assert event["html"].lstrip().startswith("<!doctype html")
    assert (event["user"], event["revision"]) == (IDRIS, 1)


@pytest.mark.promise("brief.told", "brief.dead")
def test_one_that_cannot_be_told_holds_up_no_other(
    tools: Tools, ready: date, reader: Reader, redis_client: "redis.Redis"
) -> None:
    schedule(tools.connection, ready, ASTA)
    made(tools, ready, ASTA)
    tools.connection.execute("update fw_briefs set lines = '[7]' where user_id = %s", [IDRIS])
    redis_client.flushdb()  # else nothing would have to be copied

    announce(tools)

    assert [event["user"] for _, event in reader.ready()] == [ASTA]
    told, untold = sorted(of_announcements(tools.connection), key=lambda each: not each[2])
    assert told == ("stream", 1, True, False, None)
    assert untold[:4] == ("stream", 1, False, False)
    assert untold[4]


@pytest.mark.promise("brief.dead")
def test_without_its_webhook_what_is_left_to_tell_ends_as_a_dead_letter(tools: Tools, today: date) -> None:
    schedule(tools.connection, today)
    made(replace(tools, webhook=lambda _name, _event: None), today)

    for _ in range(announcements.MOST_ATTEMPTS):
        announce(tools)
        pass_time(tools.connection, 12 * 3600)

    (letter,) = announcements.dead_letters(tools.connection)
    assert (letter.channel, letter.attempts) == ("webhook", announcements.MOST_ATTEMPTS)
    assert letter.error == "no webhook is configured any more"
    assert announcements.replay(tools.connection).announcements == 1

"""The ledger in a real PostgreSQL: turns, requests, answers, and workers that die or fail in between."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from strategies import uid

from foreword.errors import BuildError, SchemaError, Unavailable
from loaders import ledger
from loaders.connection import Connection, connect
from loaders.ledger import Published, Turn
from worker.servers import Addresses

PROJECT, OTHER = uid("project"), uid("other project")


@pytest.fixture(scope="module")
def shared_url(servers: Addresses, migrated: str) -> str:
    with connect(servers.database_url) as admin:
        admin.execute(f"create database fw_ledger template {migrated}".encode())
    return servers.database_url.replace("/foreword?", "/fw_ledger?")


@pytest.fixture
def database_url(shared_url: str) -> str:
    """One database, with an empty ledger, for all tests of this module: what they alter they restore."""
    with connect(shared_url) as connection:
        connection.execute("delete from fw_projects; delete from fw_changes")
    return shared_url


@pytest.fixture
def other(database_url: str) -> Iterator[Connection]:
    """Another worker's connection."""
    with connect(database_url) as connection:
        yield connection


@pytest.fixture
def watcher(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as connection:
        yield connection


def until_blocked(watcher: Connection, waiting: Connection) -> None:
    """Return when the session waits for a lock."""
    pid = waiting.info.backend_pid
    while not watcher.execute("select pg_blocking_pids(%s)", [pid]).fetchall()[0][0]:
        pass


def state(connection: Connection, project: str = PROJECT) -> dict[str, Any]:
    cursor = connection.execute(
        "select to_jsonb(p) - 'built_at' from fw_projects p where project_id = %s", [project]
    )
    found: dict[str, Any] = json.loads(cursor.fetchall()[0][0])
    return found


def built(connection: Connection, project: str = PROJECT, snapshot: str = "1:1:") -> Turn:
    """One whole build."""
    with ledger.turn(connection, project) as turn:
        ledger.finish(connection, project, turn, Published(snapshot=snapshot, entities=5))
    return turn


def asked(connection: Connection, project: str = PROJECT) -> dict[str, int]:
    return ledger.request_builds(connection, [project])


# ---- turns


def test_builds_of_one_project_take_turns(connection: Connection, other: Connection, watcher: Connection) -> None:
    with ThreadPoolExecutor(1) as thread:
        with ledger.turn(connection, PROJECT) as first:
            second = thread.submit(built, other, snapshot="2:2:")
            until_blocked(watcher, other)
            ledger.finish(connection, PROJECT, first, Published(snapshot="1:1:", entities=5))
        after = second.result()

    assert after.generation > first.generation
    assert state(watcher)["snapshot"] == "2:2:"


def test_builds_of_different_projects_do_not_wait(connection: Connection, other: Connection) -> None:
    with ledger.turn(connection, PROJECT) as one, ledger.turn(other, OTHER) as another:
        assert another.generation > one.generation


def test_a_turn_sees_what_it_waited_for(connection: Connection, other: Connection, watcher: Connection) -> None:
    asked(watcher)

    with ThreadPoolExecutor(1) as thread:
        with ledger.turn(connection, PROJECT) as first:
            second = thread.submit(built, other)
            until_blocked(watcher, other)
            ledger.finish(connection, PROJECT, first, Published(snapshot="1:1:", entities=5))
        after = second.result()

    assert (first.asked, after.asked) == (True, False)


def test_a_turn_sees_what_it_waited_for_whatever_the_database_s_defaults_are(
    database_url: str, watcher: Connection
) -> None:
    name = watcher.info.dbname
    watcher.execute(f"alter database {name} set default_transaction_isolation = 'serializable'".encode())
    try:
        with connect(database_url) as connection, connect(database_url) as other:
            test_a_turn_sees_what_it_waited_for(connection, other, watcher)
    finally:
        watcher.execute(f"alter database {name} reset default_transaction_isolation".encode())


def test_a_turn_that_is_not_free_is_not_waited_for(connection: Connection, other: Connection) -> None:
    asked(connection)
    with ledger.turn(connection, PROJECT), ledger.turn_if_due(other, PROJECT) as busy:
        assert busy is None

    with ledger.turn_if_due(other, PROJECT) as free, ledger.turn_if_due(connection, PROJECT) as busy:
        assert free is not None
        assert busy is None
    assert built(connection).generation > free.generation


def test_a_message_that_finds_nothing_to_do_leaves_no_trace(connection: Connection, other: Connection) -> None:
    built(connection)
    before = state(connection)

    with ledger.turn_if_due(other, PROJECT) as nothing:
        assert nothing is None

    assert state(connection) == before
    assert built(connection).generation == before["generation"] + 1


def test_who_did_not_get_a_turn_does_not_end_another_s(connection: Connection, other: Connection) -> None:
    warnings: list[str | None] = []
    other.add_notice_handler(lambda notice: warnings.append(notice.message_primary))

    with ledger.turn(connection, PROJECT):
        for _ in range(2):
            with ledger.turn_if_due(other, PROJECT) as busy:
                assert busy is None

    assert warnings == []


def test_generations_rise_over_all_projects_and_failures(connection: Connection, other: Connection) -> None:
    generations = []
    for worker, project in [(connection, PROJECT), (other, OTHER), (other, PROJECT), (connection, PROJECT)]:
        with ledger.turn(worker, project) as turn:
            generations.append(turn.generation)
        generations.append(built(worker, project).generation)

    assert generations == sorted(set(generations))


def test_a_killed_worker_leaves_its_turn_to_others(
    connection: Connection, other: Connection, watcher: Connection
) -> None:
    with ThreadPoolExecutor(1) as thread, ledger.turn(connection, PROJECT) as first:
        second = thread.submit(built, other)
        until_blocked(watcher, other)
        watcher.execute("select pg_terminate_backend(%s, 10000)", [connection.info.backend_pid])

        after = second.result()

    assert after.generation > first.generation
    assert connection.closed


def test_a_turn_that_ends_in_an_error_is_over(connection: Connection, other: Connection) -> None:
    with pytest.raises(ZeroDivisionError), ledger.turn(connection, PROJECT):
        _ = 1 // 0

    assert built(other).generation
    assert connection.info.transaction_status == TransactionStatus.IDLE


def test_a_turn_that_ends_in_a_broken_transaction_is_over(connection: Connection, other: Connection) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable), ledger.turn(connection, PROJECT):
        connection.execute("begin; select * from nowhere")

    assert built(other).generation
    assert connection.closed


def test_a_turn_that_cannot_begin_holds_nobody_up(connection: Connection, other: Connection) -> None:
    connection.execute("alter table fw_facts rename to gone")
    try:
        with (
            pytest.raises(SchemaError, match=f"beginning a build of project {PROJECT}"),
            ledger.turn(connection, PROJECT),
        ):
            pass
    finally:
        other.execute("alter table gone rename to fw_facts")

    assert not connection.closed
    assert built(other).generation
    assert built(connection).generation


def test_who_waits_too_long_for_a_turn_is_told_so_and_may_try_again(
    connection: Connection, other: Connection
) -> None:
    other.execute("set lock_timeout to '20ms'")
    warnings: list[str | None] = []
    other.add_notice_handler(lambda notice: warnings.append(notice.message_primary))

    with (
        ledger.turn(connection, PROJECT),
        pytest.raises(BuildError, match=f"project {PROJECT}: another build holds its lock; try again later"),
        ledger.turn(other, PROJECT),
    ):
        pass

    assert built(other).generation
    assert warnings == []


def test_a_lost_connection_is_unavailable(connection: Connection, watcher: Connection) -> None:
    watcher.execute("select pg_terminate_backend(%s, 10000)", [connection.info.backend_pid])

    with pytest.raises(Unavailable, match="beginning a build"), ledger.turn(connection, PROJECT):
        pass


def test_a_build_leaves_no_warning_in_the_server_s_log(connection: Connection) -> None:
    warnings: list[str | None] = []
    connection.add_notice_handler(lambda notice: warnings.append(notice.message_primary))

    built(connection)

    assert warnings == []


def test_only_the_record_of_a_build_does_not_wait_for_the_disk(connection: Connection) -> None:
    built(connection)

    assert connection.execute("show synchronous_commit").fetchall() == [("on",)]


# ---- what is recorded


def test_an_older_build_never_lowers_the_record(connection: Connection) -> None:
    request = asked(connection)[PROJECT]
    with ledger.turn(connection, PROJECT) as older:
        pass
    newer = built(connection, snapshot="9:9:")

    ledger.finish(connection, PROJECT, older, Published(snapshot="1:1:", entities=5))

    found = state(connection)
    assert (found["finished"], found["error"]) == (request, None)
    assert (found["generation"], found["snapshot"]) == (newer.generation, "9:9:")


def test_a_failure_is_recorded_and_the_last_good_build_stays_on_record(connection: Connection) -> None:
    good = built(connection, snapshot="5:5:")
    request = asked(connection)[PROJECT]

    with ledger.turn(connection, PROJECT) as bad:
        ledger.fail(connection, PROJECT, bad, "no " * 1000)

    found = state(connection)
    assert found["error"] == ("no " * 1000)[:2000]
    assert (found["generation"], found["snapshot"], found["finished"]) == (good.generation, "5:5:", request)
    built(connection)
    assert state(connection)["error"] is None


def test_the_first_build_may_fail(connection: Connection) -> None:
    with ledger.turn(connection, PROJECT) as turn:
        ledger.fail(connection, PROJECT, turn, "no")

    found = state(connection)
    assert (found["error"], found["generation"], found["snapshot"]) == ("no", 0, "")


def test_a_turn_knows_the_size_of_the_last_good_build(connection: Connection) -> None:
    with ledger.turn(connection, PROJECT) as first:
        ledger.finish(connection, PROJECT, first, Published(snapshot="1:1:", entities=1500))
    with ledger.turn(connection, PROJECT) as bad:
        ledger.fail(connection, PROJECT, bad, "no")

    with ledger.turn(connection, PROJECT) as turn:
        assert (first.entities, turn.entities) == (0, 1500)


def test_an_older_failure_does_not_spoil_a_newer_build(connection: Connection) -> None:
    request = asked(connection)
    with ledger.turn(connection, PROJECT) as older:
        pass
    built(connection)

    ledger.fail(connection, PROJECT, older, "too late")

    assert ledger.answers(connection, request) == {PROJECT: None}


def test_a_project_that_is_gone_is_not_listed_until_it_is_built_again(connection: Connection) -> None:
    built(connection)
    request = asked(connection)
    listed = ledger.unburied(connection)

    with ledger.turn(connection, PROJECT) as turn:
        ledger.finish(connection, PROJECT, turn, Published(snapshot="1:1:", entities=ledger.GONE))

    assert listed == [PROJECT]
    assert ledger.unburied(connection) == []
    assert ledger.answers(connection, request) == {PROJECT: None}
    built(connection)
    assert ledger.unburied(connection) == [PROJECT]


def test_an_older_burial_does_not_undo_a_newer_build(connection: Connection) -> None:
    with ledger.turn(connection, PROJECT) as older:
        pass
    newer = built(connection)

    ledger.finish(connection, PROJECT, older, Published(snapshot="1:1:", entities=ledger.GONE))

    assert state(connection)["generation"] == newer.generation
    assert ledger.unburied(connection) == [PROJECT]


def test_a_turn_tells_a_project_that_nobody_ever_asked_for(connection: Connection) -> None:
    with ledger.turn(connection, PROJECT) as before:
        asked(connection)

    with ledger.turn(connection, PROJECT) as after:
        assert (before.known, after.known) == (False, True)


# ---- requests and answers


def test_requests_are_numbered_over_all_projects(connection: Connection, other: Connection) -> None:
    first, second = ledger.request_builds(connection, [PROJECT, OTHER]), asked(other)

    assert len({*first.values(), *second.values()}) == 3
    assert max(first.values()) < second[PROJECT]


def test_who_asks_twice_in_one_breath_asks_once(connection: Connection) -> None:
    request = ledger.request_builds(connection, [PROJECT, OTHER, PROJECT])

    assert request.keys() == {PROJECT, OTHER}
    assert state(connection)["requested"] == request[PROJECT]


def test_a_request_waits_until_a_build_has_seen_it(connection: Connection) -> None:
    before = ledger.asked(connection, PROJECT)
    asked(connection)
    waiting = ledger.asked(connection, PROJECT)
    built(connection)

    assert (before, waiting, ledger.asked(connection, PROJECT)) == (False, True, False)


def test_the_newest_place_in_the_order_is_the_last_that_was_drawn(connection: Connection) -> None:
    with ledger.turn(connection, PROJECT) as turn:
        assert ledger.newest(connection) == (turn.epoch, turn.generation)


def test_nothing_asked_is_nothing_answered(connection: Connection) -> None:
    assert ledger.request_builds(connection, []) == {}
    assert ledger.answers(connection, {}) == {}
    assert ledger.answers(connection, {PROJECT: 1}) == {}


def test_answers_are_those_of_requests_that_a_build_has_seen(connection: Connection) -> None:
    waiting = ledger.request_builds(connection, [PROJECT, OTHER])
    before = ledger.answers(connection, waiting)

    built(connection)

    assert before == {}
    assert ledger.answers(connection, waiting) == {PROJECT: None}
    with ledger.turn(connection, OTHER) as turn:
        ledger.fail(connection, OTHER, turn, "it will not")
    assert ledger.answers(connection, waiting) == {PROJECT: None, OTHER: "it will not"}


def test_a_request_during_a_build_is_not_answered_by_it(connection: Connection, other: Connection) -> None:
    before = asked(other)
    with ledger.turn(connection, PROJECT) as turn:
        during = asked(other)
        ledger.finish(connection, PROJECT, turn, Published(snapshot="1:1:", entities=5))

    assert ledger.answers(connection, before) == {PROJECT: None}
    assert ledger.answers(connection, during) == {}
    with ledger.turn(connection, PROJECT) as again:
        assert again.asked
        ledger.finish(connection, PROJECT, again, Published(snapshot="2:2:", entities=5))
    assert ledger.answers(connection, during) == {PROJECT: None}
    with ledger.turn(connection, PROJECT) as idle:
        assert not idle.asked


def test_a_request_overtaken_by_a_later_one_does_not_undo_it(
    connection: Connection, other: Connection, watcher: Connection
) -> None:
    asked(connection)
    connection.execute("begin")
    connection.execute("select 1 from fw_projects for update")

    with ThreadPoolExecutor(1) as thread:
        earlier = thread.submit(asked, other)  # has drawn its number and waits for the row
        until_blocked(watcher, other)
        later = asked(connection)
        connection.execute("commit")
        answered = earlier.result()

    built(connection)
    assert ledger.answers(watcher, later) == ledger.answers(watcher, answered) == {PROJECT: None}


def test_those_who_ask_for_the_same_projects_do_not_lock_each_other_out(database_url: str) -> None:
    ids = sorted(uid(str(n)) for n in range(40))

    def ask(order: int) -> int:
        with connect(database_url) as connection:
            return max(max(ledger.request_builds(connection, ids[::order]).values()) for _ in range(10))

    with ThreadPoolExecutor(4) as threads:
        numbers = [*threads.map(ask, [1, -1, 1, -1])]

    with ExitStack() as stack, connect(database_url) as connection:
        turns = [stack.enter_context(ledger.turn(connection, i)) for i in ids]
        assert max(turn.request for turn in turns) == max(numbers)
        assert all(turn.asked for turn in turns)


def test_an_epoch_is_part_of_every_turn(connection: Connection) -> None:
    connection.execute("update fw_facts set value = 7 where name = 'epoch'")
    with ledger.turn(connection, PROJECT) as turn:
        connection.execute("update fw_facts set value = 1 where name = 'epoch'")

    assert turn.epoch == 7


def test_what_is_no_uuid_is_refused(connection: Connection) -> None:
    with pytest.raises(BuildError, match="asking for builds: invalid input syntax for type uuid"):
        ledger.request_builds(connection, ["nonsense"])

    with (
        pytest.raises(BuildError, match="invalid input syntax for type uuid"),
        ledger.turn(connection, "nonsense"),
    ):
        pass

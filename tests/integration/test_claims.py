"""What relays and builders do to each other through the database: claims, leases, parking, taking over, and what a
build may forget.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Any

import psycopg
import pytest
import redis
from processes import PATIENCE, eventually
from slow import too_slow
from strategies import uid

import foreword
from foreword import TRUSTED, Reader, codec, keys
from foreword.errors import BuildError, Unavailable
from foreword.memory import MemoryStore
from foreword.stamp import SCHEMA
from foreword.store import RedisStore
from loaders import claims, ledger
from loaders.catalog import inspect
from loaders.claims import EDITS, LEASE_SECONDS, SWEEP, Claim, compile_claims
from loaders.connection import Connection, connect
from loaders.glance import glance
from loaders.ledger import MOST_ATTEMPTS, Published
from loaders.project import compile_statements
from tasks.project import rebuild_project
from tasks.tools import Tools
from worker.settings import Settings
from worker.wiring import tools_over

A, B, C = uid("a"), uid("b"), uid("c")
WINDOW = 16

Open = Callable[[], Connection]


@pytest.fixture
def opened(database_url: str) -> Iterator[Open]:
    """Opens one more connection."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(connect(database_url))


@pytest.fixture
def relay(opened: Open) -> Connection:
    return opened()


@pytest.fixture
def application(opened: Open) -> Connection:
    """The application's connection; three projects, all built, and nothing in the log."""
    connection = opened()
    for project in (A, B, C):
        connection.execute("insert into onto_projects (id, name) values (%s, 'p')", [project])
    settle(connection)
    return connection


@pytest.fixture
def tools(opened: Open, redis_client: "redis.Redis") -> Tools:
    return tools_over(Settings(), opened(), redis_client)


def settle(connection: Connection) -> None:
    """As if all were built long ago."""
    claim(connection)
    connection.execute("delete from fw_changes")
    connection.execute(
        "update fw_projects set finished = requested, sends = 0, attempts = 0, quiet_until = '-infinity',"
        " pace = 0, generation = greatest(generation, 1), layout = %s",
        [SCHEMA],
    )
    connection.execute("select setval('fw_generation', 100)")


def edit(connection: Connection, project: str = A) -> None:
    connection.execute("update onto_projects set name = name || '!' where id = %s", [project])


def claim(connection: Connection, lane: str = EDITS, window: int = WINDOW) -> list[Claim]:
    found = claims.dirty(connection) if lane == EDITS else []
    return claims.claim(connection, compile_claims(inspect(connection)), lane, window, found)


def state(connection: Connection, project: str, *columns: str) -> Any:
    row = connection.execute(
        f"select {', '.join(columns)} from fw_projects where project_id = %s".encode(), [project]
    )
    found = row.fetchall()[0]
    return found[0] if len(columns) == 1 else found


def pass_time(connection: Connection, seconds: float) -> None:
    """As if it were later: every time on record is so much earlier."""
    connection.execute(
        "update fw_projects set quiet_until = quiet_until - %(s)s * interval '1 s', begun_at = begun_at - %(s)s *"
        " interval '1 s', refresh_at = refresh_at - %(s)s * interval '1 s', valid_until = valid_until - %(s)s *"
        " interval '1 s' where quiet_until > '-infinity'",
        {"s": seconds},
    )
    connection.execute("update fw_changes set at = at - %s * interval '1 s'", [seconds])
    connection.execute("update fw_leader set until = until - %s * interval '1 s'", [seconds])


def stopped(relay: Connection) -> AbstractContextManager[Any]:
    """The clock of a relay stands still for a block, however slow the machine is: no lease of its own ends. Others
    see what it claims at the end.
    """
    return relay.transaction()  # whose now() is its begin


def log(connection: Connection, project: str = A) -> int:
    found: int = connection.execute("select count(*) from fw_changes where project_id = %s", [project]).fetchall()[
        0
    ][0]
    return found


# ---- claims


@pytest.mark.promise("fresh.covered")
def test_the_first_edit_of_a_quiet_project_is_claimed_at_once_and_only_once(
    application: Connection, relay: Connection
) -> None:
    edit(application)

    with stopped(relay):
        assert claim(relay) == [Claim(A, 1, 0)]
        assert claim(relay) == []


@pytest.mark.promise("fresh.lost-messages")
def test_a_message_that_nobody_begins_is_claimed_again_when_its_lease_ends(
    application: Connection, relay: Connection
) -> None:
    edit(application)
    claim(relay)

    pass_time(relay, LEASE_SECONDS)

    assert claim(relay) == [Claim(A, 2, 0)]


def test_a_project_that_is_seen_for_the_first_time_is_claimed_in_the_next_round(
    application: Connection, relay: Connection
) -> None:
    application.execute(
        "insert into onto_projects (id, name, created_by) values (%s, 'new', %s)", [uid("n"), uid("u")]
    )

    assert claim(relay) == []
    assert claim(relay) == [Claim(uid("n"), 1, 0)]
    assert state(relay, uid("n"), "tenant") == uid("u")


WITHIN_THE_PAUSE = """
select min(c.at) < p.quiet_until from fw_projects p join fw_changes c using (project_id)
where project_id = %s group by p.quiet_until
"""


def slower(pace: int, pressed: bool) -> int:  # noqa: FBT001 - as accumulate calls it
    """The next pause, where the edit came within the last one or not."""
    first, longest = claims.PACE_MILLISECONDS, claims.SLOWEST_MILLISECONDS
    return min(max(2 * pace, first), longest) if pressed else first


@pytest.mark.promise("fresh.covered")
def test_edits_that_keep_coming_make_fewer_and_fewer_builds_but_the_last_is_covered(
    application: Connection, relay: Connection, tools: Tools
) -> None:
    # Real time passes as well, on a busy machine as much again: how many builds there may be depends on it.
    pressed, paces, seconds = list[bool](), list[int](), 0.05 * 60
    begun = time.monotonic()
    for _ in range(60):  # an edit every 50 ms
        edit(application)
        within = relay.execute(WITHIN_THE_PAUSE, [A]).fetchall() == [(True,)]
        if claim(relay):
            rebuild_project(A, tools, if_due=True)
            pressed.append(within)
            paces.append(state(relay, A, "pace"))
        pass_time(relay, 0.05)
    seconds += time.monotonic() - begun
    edit(application)
    left = log(relay)
    pass_time(relay, 1.5)
    last = claim(relay)
    rebuild_project(A, tools, if_due=True)

    assert paces == list(itertools.accumulate(pressed, slower, initial=0))[1:]
    assert sum(paces[:-1]) <= 1000 * seconds  # each pause was waited for
    assert left > 0
    assert last == [Claim(A, 1, 0)]
    assert log(relay) == 0
    pass_time(relay, 2)  # nothing came within the pause
    edit(application)
    claim(relay)
    assert state(relay, A, "pace") == claims.PACE_MILLISECONDS


@pytest.mark.promise("fresh.fair")
def test_a_tenant_s_bulk_does_not_delay_another_s_edit(application: Connection, relay: Connection) -> None:
    application.execute(
        "insert into onto_projects (id, name, created_by) select gen_random_uuid(), 'bulk', %s"
        " from generate_series(1, 300)",
        [uid("bulk")],
    )
    claim(relay)
    with stopped(relay):
        first = claim(relay)
        edit(application, B)
        begun = first[0].project_id
        relay.execute("update fw_projects set sends = 0 where project_id = %s", [begun])

        second = claim(relay)

    assert len(first) == WINDOW
    assert [each.project_id for each in second] == [B]


@pytest.mark.promise("fresh.fair")
def test_no_more_messages_are_under_way_than_the_window_holds(application: Connection, relay: Connection) -> None:
    for project in (A, B, C):
        edit(application, project)

    with stopped(relay):
        claimed = [len(claim(relay, window=2)) for _ in range(3)]
        relay.execute("update fw_projects set sends = 0 where project_id = %s", [A])
        more = claim(relay, window=2)

    assert claimed == [2, 0, 0]
    assert len(more) <= 1


@pytest.mark.promise("fresh.leader")
def test_two_relays_that_lead_at_once_claim_different_projects(
    application: Connection, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "LEASE_SECONDS", PATIENCE)  # none ends before the last has claimed
    for project in (A, B, C):
        edit(application, project)
    relays = [opened() for _ in range(4)]

    with ThreadPoolExecutor(4) as threads:
        found = [each.project_id for got in threads.map(claim, relays) for each in got]

    assert sorted(found) == sorted([A, B, C])


@pytest.mark.promise("fresh.covered")
@pytest.mark.parametrize("ahead", ["2099-01-01", "infinity"])
def test_a_clock_that_was_put_back_holds_nobody_up(application: Connection, relay: Connection, ahead: str) -> None:
    edit(application)
    relay.execute("update fw_projects set quiet_until = %s", [ahead])

    assert claim(relay) == [Claim(A, 1, 0)]


# ---- builds


@pytest.mark.promise("fresh.kept")
def test_a_build_forgets_what_its_snapshot_saw_and_nothing_else(
    application: Connection, relay: Connection, tools: Tools, opened: Open
) -> None:
    late = opened()
    late.execute("begin")
    late.execute("insert into onto_tasks (id, project_id, title) values (%s, %s, 'late')", [uid("late"), A])
    edit(application)  # with a later id, committed earlier

    rebuild_project(A, tools, if_due=True)
    late.execute("commit")

    assert log(relay) == 1
    rebuild_project(A, tools, if_due=True)
    assert log(relay) == 0


class Refusing(MemoryStore):
    """A cache where something newer stands."""

    def publish(self, *_: Any, **__: Any) -> bool:
        return False


@pytest.mark.promise("fresh.kept")
def test_a_build_that_is_refused_forgets_nothing_and_does_not_count(
    application: Connection, relay: Connection, tools: Tools
) -> None:
    edit(application)

    built = rebuild_project(A, replace(tools, store=Refusing()), if_due=True)

    assert built is not None
    assert not built.published
    assert log(relay) == 1
    assert state(relay, A, "attempts", "builder", "generation") == (0, None, 1)


@pytest.mark.promise("fresh.kept")
def test_an_edit_during_a_build_is_covered_by_the_next(
    application: Connection, relay: Connection, tools: Tools, redis_client: "redis.Redis"
) -> None:
    class Late(RedisStore):
        def publish(self, *args: Any, **more: Any) -> bool:
            edit(application)
            return super().publish(*args, **more)

    edit(application)
    claim(relay)
    rebuild_project(A, replace(tools, store=Late(redis_client)), if_due=True)

    assert log(relay) == 1
    pass_time(relay, 1)
    assert claim(relay) == [Claim(A, 1, 0)]


@pytest.mark.promise("fresh.kept", "fresh.recorded")
def test_what_other_projects_edges_end_at_is_an_edit_of_theirs(
    application: Connection, relay: Connection, tools: Tools, redis_client: "redis.Redis"
) -> None:
    reader = Reader(redis_client)
    application.execute(
        "insert into onto_edges (id, project_id, src_kind, src_id, dst_kind, dst_id, rel)"
        " values (%s, %s, 'project', %s, 'task', %s, 'has_task')",
        [uid("edge"), B, B, uid("far")],
    )
    rebuild_project(B, tools)

    def ignored() -> Any:
        edges = reader.bundle(B, actor=TRUSTED).data["coverage"]["edges"]
        return edges["dangling"], edges["foreign"]

    before = ignored()
    application.execute("insert into onto_tasks (id, project_id, title) values (%s, %s, 'far')", [uid("far"), A])
    rebuild_project(A, tools, if_due=True)
    echoed = log(relay, B)
    rebuild_project(B, tools, if_due=True)

    assert (before, echoed, log(relay, B), ignored()) == ((1, 0), 1, 0, (0, 1))


PAUSED = (
    "extract(epoch from quiet_until - clock_timestamp())::float8",
    "extract(epoch from quiet_until - begun_at)::float8",
)
"""For how long a project whose build has just failed is left alone: at least and at most."""


@pytest.mark.promise("fresh.parked")
def test_a_project_that_keeps_failing_backs_off_is_parked_with_its_reason_and_comes_back(
    application: Connection, relay: Connection, tools: Tools
) -> None:
    application.execute("alter table onto_tasks drop constraint onto_tasks_priority_range")
    application.execute("alter table onto_tasks alter priority type text using priority::text")
    application.execute(
        "insert into onto_tasks (id, project_id, title, priority) values (%s, %s, 'bad', 'high')", [uid("bad"), A]
    )
    pauses: list[tuple[float, float]] = []
    for attempt in range(MOST_ATTEMPTS):
        assert claim(relay) == [Claim(A, 1, attempt)]
        with pytest.raises(BuildError):
            rebuild_project(A, tools, if_due=True)
        pauses.append(state(relay, A, *PAUSED))
        pass_time(relay, 60)

    assert claim(relay) == []
    assert state(relay, A, "parked_at is not null")
    assert "priority is 'high'" in state(relay, A, "error")
    for attempt, (at_least, at_most) in enumerate(pauses):
        assert at_least <= min(0.5 * 2**attempt, 60) <= at_most
    edit(application, B)
    assert claim(relay) == [Claim(B, 1, 0)]  # others go on
    relay.execute("delete from fw_changes where project_id = %s", [B])

    edit(application)  # one attempt more
    assert claim(relay) == [Claim(A, 1, MOST_ATTEMPTS - 1)]
    with pytest.raises(BuildError):
        rebuild_project(A, tools, if_due=True)
    assert claim(relay) == []

    application.execute("update onto_tasks set priority = '3'")
    application.execute("alter table onto_tasks alter priority type integer using priority::integer")
    ledger.request_builds(application, [A])  # a command, which waits for no pause
    assert claim(relay) == [Claim(A, 1, 0)]
    tools = replace(tools, statements=compile_statements(inspect(tools.connection)))
    rebuild_project(A, tools, if_due=True)
    assert state(relay, A, "parked_at", "error", "attempts") == (None, None, 0)


@pytest.mark.promise("fresh.parked")
def test_a_project_whose_builds_die_is_parked_as_well(
    application: Connection, relay: Connection, opened: Open
) -> None:
    edit(application)
    for attempt in range(MOST_ATTEMPTS):
        assert claim(relay) == [Claim(A, 1, attempt)]
        victim = opened()
        with pytest.raises(Unavailable), ledger.turn_if_due(victim, A) as turn:  # noqa: PT012
            assert turn is not None
            assert claim(relay) == []  # it is being built
            relay.execute("select pg_terminate_backend(%s, 10000)", [victim.info.backend_pid])
            ledger.finish(victim, A, turn, Published(snapshot="1:1:", entities=1))
        pass_time(relay, 3600)

    assert claims.park(relay) == [A]
    assert claim(relay) == []
    assert "ended 8 times without a word" in state(relay, A, "error")


@pytest.mark.promise("fresh.parked")
def test_servers_that_do_not_answer_park_nobody(application: Connection, relay: Connection, tools: Tools) -> None:
    class Down(MemoryStore):
        def publish(self, *_: Any, **__: Any) -> bool:
            raise Unavailable("no Redis")

    edit(application)
    for _ in range(2 * MOST_ATTEMPTS):
        for last in (False, True):
            with pytest.raises(Unavailable):
                rebuild_project(A, replace(tools, store=Down()), if_due=True, last_try=last)
        pass_time(relay, 60)

    assert state(relay, A, "attempts", "parked_at") == (0, None)
    assert claim(relay) == [Claim(A, 1, 0)]


@pytest.mark.promise("fresh.lost-messages")
def test_a_builder_that_hangs_is_taken_over_when_its_lease_ends_and_can_record_nothing(
    application: Connection, relay: Connection, opened: Open, tools: Tools
) -> None:
    edit(application)
    claim(relay)
    zombie = opened()
    with pytest.raises(Unavailable), ledger.turn_if_due(zombie, A) as turn:  # noqa: PT012
        assert turn is not None
        early = claims.take_over(relay)
        pass_time(relay, claims.BUILD_SECONDS + 1)
        late = claims.take_over(relay)
        held = b"select from pg_locks where locktype = 'advisory' and pid = %s"
        assert eventually(lambda: not relay.execute(held, [zombie.info.backend_pid]).fetchall())
        edit(application)
        pass_time(relay, 60)
        again = claim(relay)
        rebuild_project(A, tools, if_due=True)
        edit(application)
        ledger.finish(zombie, A, turn, Published(snapshot="1:99999999999:", entities=1))

    assert (early, late) == ([], [A])
    assert [each.project_id for each in again] == [A]
    assert log(relay) == 1


# ---- who leads, and the switch


@pytest.mark.promise("fresh.leader")
def test_one_relay_leads_until_it_is_silent_or_resigns(connection: Connection) -> None:
    tick = 0.001  # by which the clock goes on, where it would have

    with stopped(connection):
        first = claims.lead(connection, "one")
        assert first is not None
        assert claims.lead(connection, "two") is None
        assert claims.lead(connection, "one") == first
        pass_time(connection, claims.LEADER_SECONDS + tick)
        assert claims.lead(connection, "two") == first
        assert claims.lead(connection, "one") is None
        claims.resign(connection, "one")  # not its to give
        assert claims.lead(connection, "one") is None
        claims.resign(connection, "two")
        pass_time(connection, tick)
        assert claims.lead(connection, "one") == first
        connection.execute("update fw_leader set until = now() + interval '1 day'")  # the clock was put back
        assert claims.lead(connection, "two") == first


# ---- what is to be built though nobody edits


@pytest.mark.promise("fresh.calendar")
def test_a_bundle_is_built_again_when_its_day_is_over(
    application: Connection, relay: Connection, tools: Tools
) -> None:
    edit(application)
    rebuild_project(A, tools, if_due=True)
    today = claim(relay, SWEEP)
    day = state(relay, A, "extract(epoch from valid_until - built_at)")
    spread = state(relay, A, "extract(epoch from refresh_at - valid_until)")

    pass_time(relay, float(day) + 301)

    assert today == []
    assert 0 < float(day) <= 86_400
    assert 0 < float(spread) <= 301
    assert [each.project_id for each in claim(relay, SWEEP)] == [A]
    assert rebuild_project(A, tools, if_due=True) is not None
    assert claim(relay, SWEEP) == []


@pytest.mark.promise("fresh.reconciled")
def test_projects_from_before_the_triggers_and_of_an_earlier_layout_are_found(
    application: Connection, relay: Connection
) -> None:
    statements = compile_claims(inspect(relay))
    relay.execute("delete from fw_projects where project_id = %s", [A])
    relay.execute("update fw_projects set layout = 0 where project_id = %s", [B])

    found = claims.find_unbuilt(relay, statements) + claims.find_earlier(relay)

    assert found == 2
    assert sorted(each.project_id for each in claim(relay, SWEEP)) == sorted([A, B])
    assert claims.find_unbuilt(relay, statements) + claims.find_earlier(relay) == 0


@pytest.mark.promise("fresh.reconciled")
def test_what_is_not_in_this_redis_is_due_again(
    application: Connection, relay: Connection, tools: Tools, redis_client: "redis.Redis"
) -> None:
    redis_client.hset(keys.MARKER, keys.VALUE, "1.one")
    for project in (A, B):
        edit(application, project)
        rebuild_project(project, tools, if_due=True)
    relay.execute("update fw_projects set generation = 0 where project_id = %s", [C])
    same = claims.unverified(relay, "1.one")

    found = claims.unverified(relay, "two")
    there = [(project, generation, project == A) for project, generation in found]
    claims.verified(relay, "two", there)

    assert same == []
    assert {project for project, _ in found} == {A, B}
    assert [each.project_id for each in claim(relay, SWEEP)] == [B]
    assert claims.unverified(relay, "two") == []


@pytest.mark.promise("fresh.reconciled")
def test_a_build_during_which_the_epoch_changed_is_compared_anew(
    application: Connection, relay: Connection, tools: Tools, redis_client: "redis.Redis"
) -> None:
    redis_client.hset(keys.MARKER, keys.VALUE, "2.one")  # the relay was faster
    edit(application, A)
    rebuild_project(A, tools, if_due=True)

    assert A in {project for project, _ in claims.unverified(relay, "2.one")}


def test_a_build_that_ends_during_the_comparison_is_compared_anew(
    application: Connection, relay: Connection, tools: Tools
) -> None:
    edit(application)
    rebuild_project(A, tools, if_due=True)
    found = [(p, g, True) for p, g in claims.unverified(relay, "two") if p == A]
    edit(application)
    rebuild_project(A, tools, if_due=True)

    claims.verified(relay, "two", found)

    assert A in {project for project, _ in claims.unverified(relay, "two")}


@pytest.mark.promise("fresh.single-flight")
def test_wishes_are_granted_once_and_only_where_they_are_true(
    application: Connection, relay: Connection, tools: Tools
) -> None:
    edit(application)
    rebuild_project(A, tools, if_due=True)
    statements = compile_claims(inspect(relay))
    generation = state(relay, A, "generation")

    def wish(project: str, stored: int) -> int:
        return claims.wish(relay, statements, [project], lambda _: [stored])

    nothing = [wish(A, generation), wish(uid("nobody"), 0)]
    missing = [wish(A, 0) for _ in range(5)]
    claim(relay)
    rebuild_project(A, tools, if_due=True)
    relay.execute("update fw_projects set valid_until = now()")
    stale = [wish(A, state(relay, A, "generation")) for _ in range(5)]

    assert nothing == [0, 0]
    assert missing == [1, 0, 0, 0, 0]
    assert stale == [1, 0, 0, 0, 0]


@pytest.mark.promise("fresh.single-flight")
def test_a_wish_during_whose_look_the_build_ends_is_not_granted(
    application: Connection, relay: Connection, tools: Tools
) -> None:
    edit(application)
    rebuild_project(A, tools)
    edit(application)

    def meanwhile(_: Any) -> list[int]:
        rebuild_project(A, tools, if_due=True)
        return [0]  # as it stood before

    assert claims.wish(relay, compile_claims(inspect(relay)), [A], meanwhile) == 0


# ---- reading


@pytest.mark.promise("fresh.demanded")
def test_a_demand_is_fresh_only_with_the_edit_else_flagged(
    application: Connection, tools: Tools, redis_client: "redis.Redis"
) -> None:
    reader = Reader(redis_client)
    edit(application)
    rebuild_project(A, tools)
    with application.transaction():
        edit(application)
        token = foreword.token(application)

    without = reader.project(A, actor=TRUSTED)
    late = [
        reader.project(A, actor=TRUSTED, at_least=token),
        reader.project(A, actor=TRUSTED, at_least=token, wait=0.05, budget=300),
        reader.bundle(A, actor=TRUSTED, at_least=token, wait=0.05),
    ]
    missing = reader.project(B, actor=TRUSTED, at_least=token)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(reader.project, A, actor=TRUSTED, at_least=token, wait=PATIENCE)
        rebuild_project(A, tools)
        found = waiting.result()

    assert without.status == "fresh"
    assert [each.status for each in late] == ["stale"] * 3
    assert all(late)
    assert missing.status == "missing"
    assert found.status == "fresh"
    assert "p!!" in found.text


@pytest.mark.promise("fresh.demanded")
def test_who_demands_the_edit_that_lets_him_in_waits_for_it(
    application: Connection, tools: Tools, redis_client: "redis.Redis"
) -> None:
    rebuild_project(A, tools)
    reader, actor = Reader(redis_client), uid("actor")
    with application.transaction():
        application.execute(
            "insert into onto_project_members (id, project_id, actor_id, role_key) values (%s, %s, %s, 'viewer')",
            [uid("m"), A, actor],
        )
        token = foreword.token(application)

    with pytest.raises(foreword.NotAMember):
        reader.project(A, actor=actor, at_least=token)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(reader.project, A, actor=actor, at_least=token, wait=PATIENCE)
        rebuild_project(A, tools)
        assert waiting.result().status == "fresh"


@pytest.mark.promise("fresh.demanded")
def test_who_demands_a_deletion_learns_of_it(
    application: Connection, tools: Tools, redis_client: "redis.Redis"
) -> None:
    reader = Reader(redis_client)
    rebuild_project(A, tools)
    with application.transaction():
        application.execute("delete from onto_projects where id = %s", [A])
        token = foreword.token(application)
    rebuild_project(A, tools, if_due=True)

    found = reader.project(A, actor=TRUSTED, at_least=token, wait=PATIENCE)

    assert (found.status, found.stamp.gone if found.stamp else None, found.version) == ("missing", True, "")
    assert redis_client.smembers(keys.WANTED) == set()


@pytest.mark.promise("fresh.changes")
def test_a_chat_is_told_what_changed_since_it_looked(
    application: Connection, tools: Tools, redis_client: "redis.Redis"
) -> None:
    reader = Reader(redis_client)
    for name in ("one", "two"):
        application.execute(
            "insert into onto_tasks (id, project_id, title) values (%s, %s, %s)", [uid(name), A, name]
        )
    rebuild_project(A, tools)
    seen = reader.project(A, actor=TRUSTED).version
    for statement in (
        "update onto_tasks set state_key = 'blocked' where title = 'one'",
        "delete from onto_tasks where title = 'two'",
        f"insert into onto_tasks (id, project_id, title) values ('{uid('three')}', '{A}', 'three')",
    ):
        application.execute(statement.encode())
        rebuild_project(A, tools)

    found = reader.changes(A, since=seen, actor=TRUSTED)
    again = reader.changes(A, since=found.version, actor=TRUSTED)

    assert found.status == again.status == "ok"
    assert found.version == reader.project(A, actor=TRUSTED).version
    assert found.changed[uid("one")]["fields"]["state_key"] == [None, "blocked"]
    assert found.changed[uid("one")]["handle"] == "T1"
    assert found.gone[uid("two")]["deleted"] is True
    assert found.added[uid("three")]["title"] == "three"
    assert found
    assert not again
    redis_client.delete(keys.changes(A))
    assert reader.changes(A, since=seen, actor=TRUSTED).status == "too old"
    assert reader.changes(A, since="1:999999", actor=TRUSTED).status == "too old"
    assert reader.changes(B, since=seen, actor=TRUSTED).status == "missing"
    with pytest.raises(foreword.NotAMember):
        reader.changes(A, since=seen, actor=uid("stranger"))
    with pytest.raises(foreword.BadInput, match="is no version"):
        reader.changes(A, since="yesterday", actor=TRUSTED)


def test_the_stamp_in_redis_is_what_the_record_says(
    application: Connection, relay: Connection, tools: Tools, redis_client: "redis.Redis"
) -> None:
    rebuild_project(A, tools)
    stamp = codec.decode_stamp(redis_client.hget(keys.project(A), keys.META))

    assert stamp is not None
    assert state(relay, A, "generation", "snapshot") == (stamp.generation, stamp.snapshot)


def test_tokens_need_the_migration(empty_database: str) -> None:
    with psycopg.connect(empty_database) as connection, pytest.raises(psycopg.errors.UndefinedFunction):
        foreword.token(connection)


# ---- what a review found


@pytest.mark.promise("fresh.lost-messages")
def test_messages_that_came_late_do_not_fill_the_window_for_ever(
    application: Connection, relay: Connection
) -> None:
    application.execute(
        "insert into onto_projects (id, name) select gen_random_uuid(), 'late' from generate_series(1, 20)"
    )
    claim(relay)
    relay.execute("delete from fw_changes; update fw_projects set sends = 1, lane = 'edits', quiet_until = now()")
    edit(application)

    assert [each.project_id for each in claim(relay)] == [A]


@pytest.mark.promise("fresh.lost-messages")
def test_every_end_of_a_build_ends_its_messages(application: Connection, relay: Connection, tools: Tools) -> None:
    ends: list[Callable[[ledger.Turn], object]] = [
        lambda turn: ledger.finish(tools.connection, A, turn, Published(snapshot="1:1:", entities=1)),
        lambda turn: ledger.fail(tools.connection, A, turn, "no"),
        lambda _: ledger.excuse(tools.connection, A),
    ]
    for end in ends:
        with ledger.turn(tools.connection, A) as turn:
            relay.execute("update fw_projects set sends = 3")
            end(turn)
        assert state(relay, A, "sends", "builder") == (0, None)


def read_whole(table: str, *connections: Connection) -> int:
    """How often a table was read from one end to the other, by all of them."""
    for connection in connections:  # each tells of itself, at its leisure if not asked
        connection.execute("select pg_stat_force_next_flush()")
    connection.execute("select pg_stat_clear_snapshot()")
    return int(
        connection.execute("select seq_scan from pg_stat_user_tables where relname = %s", [table]).fetchall()[0][0]
    )


def test_a_burst_after_a_night_is_not_looked_at_by_the_plans_of_the_night(
    application: Connection, relay: Connection, tools: Tools
) -> None:
    application.execute("vacuum fw_changes")  # while it is empty
    edit(application)
    for _ in range(3):  # plans are made and kept
        claims.dirty(relay)
        glance(relay)
        rebuild_project(A, tools, if_due=True)
    application.execute(
        "insert into fw_changes (project_id, table_name, op, rows)"
        " select gen_random_uuid(), 'onto_tasks', 'U', 1 from generate_series(1, 3000)"
    )
    edit(application)
    before = read_whole("fw_changes", application, relay, tools.connection)

    claims.dirty(relay)
    glance(relay)
    rebuild_project(A, tools, if_due=True)

    assert read_whole("fw_changes", application, relay, tools.connection) == before


ROWS_READ = """
select coalesce(sum(seq_tup_read), 0) + coalesce((select sum(idx_tup_read) from pg_stat_user_indexes
  where relname in ('fw_projects', 'fw_changes')), 0)
from pg_stat_user_tables where relname in ('fw_projects', 'fw_changes')
"""


def rows_read(connection: Connection, *others: Connection) -> int:
    """Rows and entries of indexes that all of them have read in our two tables, one by one or in a whole scan."""
    for each in (connection, *others):  # each tells of itself, at its leisure if not asked
        each.execute("select pg_stat_force_next_flush()")
    connection.execute("select pg_stat_clear_snapshot()")
    return int(connection.execute(ROWS_READ).fetchall()[0][0])


def have(connection: Connection, *, projects: int, parked: int) -> None:
    """Projects that were built, and of them some whose builds failed, with an edit that the last one saw."""
    connection.execute(
        "insert into fw_projects (project_id, generation, layout, tried) select gen_random_uuid(), 1, %s, ''"
        " from generate_series(1, %s)",
        [SCHEMA, projects],
    )
    connection.execute(
        "insert into fw_changes (project_id, table_name, op, rows) select project_id, 'onto_tasks', 'U', 1"
        " from (select project_id from fw_projects where tried = '' limit %s) few",
        [parked],
    )
    connection.execute(
        "update fw_projects set parked_at = now(), tried = pg_current_snapshot()::text"
        " where project_id in (select project_id from fw_changes)"
    )


@pytest.mark.promise("fresh.fair")
def test_a_claim_costs_by_what_is_dirty_also_by_a_plan_of_an_empty_database(
    application: Connection, relay: Connection
) -> None:
    relay.execute("delete from fw_projects")
    relay.execute("vacuum analyze fw_projects, fw_changes")
    for _ in range(3):  # plans are made and kept
        assert claim(relay) == []
    have(application, projects=4000, parked=500)
    claim(relay)
    before = rows_read(relay, application)

    assert claim(relay) == []

    assert (
        rows_read(relay, application) - before < 8 * 500
    )  # looks at each, and no more: the others are eight times as many


@pytest.mark.promise("fresh.parked", "fresh.fair")
def test_what_a_parked_project_has_in_the_log_is_not_gone_through_again_and_again(
    application: Connection, relay: Connection
) -> None:
    have(application, projects=1, parked=1)
    application.execute("insert into fw_changes select c.* from fw_changes c, generate_series(1, 2000)")
    application.execute("update fw_projects set tried = pg_current_snapshot()::text where parked_at is not null")
    claim(relay)
    before = rows_read(relay, application)

    assert claim(relay) == []

    assert rows_read(relay, application) - before < 100


@pytest.mark.promise("fresh.parked")
def test_a_parked_project_comes_back_for_an_edit_that_was_open_when_its_last_build_began(
    application: Connection, relay: Connection, opened: Open
) -> None:
    late = opened()
    late.execute("begin")
    edit(late)
    edit(application, B)  # later, and committed
    relay.execute(
        "update fw_projects set parked_at = now(), tried = pg_current_snapshot()::text where project_id = any(%s)",
        [[A, B]],
    )

    parked = claim(relay)
    late.execute("commit")

    assert parked == []
    assert [each.project_id for each in claim(relay)] == [A]


@pytest.mark.promise("fresh.fair")
def test_very_many_dirty_projects_are_gone_through_page_by_page(
    application: Connection, relay: Connection
) -> None:
    application.execute(
        "insert into onto_projects (id, name) select gen_random_uuid(), 'many' from generate_series(1, %s)",
        [claims.PAGE + 50],
    )
    application.execute("insert into onto_projects (id, name) values (%s, 'the first of all')", [claims.FIRST])
    edit(application)
    edit(application)

    first = claims.dirty(relay)
    second = claims.dirty(relay, first[-1][0])

    projects = [project for project, _ in [*first, *second[1:]]]
    everything = relay.execute("select distinct project_id from fw_changes order by 1").fetchall()
    assert len(first) == claims.PAGE
    assert projects == [row[0] for row in everything]


@pytest.mark.promise("fresh.parked")
def test_a_statement_that_takes_too_long_counts_as_the_project_s_failure(
    application: Connection, tools: Tools, relay: Connection
) -> None:
    edit(application)

    with too_slow(application, "onto_risks"), pytest.raises(BuildError, match="statement timeout"):
        rebuild_project(A, tools, if_due=True)

    assert state(relay, A, "attempts") == 1


@pytest.mark.promise("fresh.single-flight")
def test_a_project_whose_first_build_failed_may_be_wished_for_again(
    application: Connection, relay: Connection, tools: Tools
) -> None:
    statements = compile_claims(inspect(relay))
    relay.execute("delete from fw_projects")
    claims.wish(relay, statements, [A], lambda _: [0])
    with ledger.turn(tools.connection, A) as turn:
        ledger.fail(tools.connection, A, turn, "no room")

    assert claims.wish(relay, statements, [A], lambda _: [0]) == 1


@pytest.mark.promise("fresh.calendar")
def test_what_comes_due_during_a_build_is_still_due_after_it(
    application: Connection, relay: Connection, tools: Tools
) -> None:
    with ledger.turn(tools.connection, A) as turn:
        relay.execute("update fw_projects set refresh_at = clock_timestamp() where project_id = %s", [A])
        relay.execute("select pg_sleep(0.01)")
        ledger.finish(tools.connection, A, turn, Published(snapshot="1:1:", entities=1, refresh_in=3600))
    pass_time(relay, 1)

    assert [each.project_id for each in claim(relay, SWEEP)] == [A]


@pytest.mark.promise("build.broken-row")
@pytest.mark.parametrize("damage", [b"{}", b"[]", b"\xff", b'{"project_id": 1, "header": [], "slices": 3}'])
def test_a_damaged_bundle_is_replaced(
    application: Connection, tools: Tools, redis_client: "redis.Redis", damage: bytes
) -> None:
    rebuild_project(A, tools)
    redis_client.hset(keys.project(A), keys.DATA, damage)

    rebuild_project(A, tools)

    assert Reader(redis_client).bundle(A, actor=TRUSTED)


@pytest.mark.promise("reader.stale")
def test_who_cannot_ask_still_reads(application: Connection, tools: Tools, redis_client: "redis.Redis") -> None:
    rebuild_project(A, tools)
    redis_client.set(keys.WANTED, "no set: whoever asks fails")

    assert Reader(redis_client, clock=lambda: 10.0**10).project(A, actor=TRUSTED).status == "stale"

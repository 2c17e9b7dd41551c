"""Edits become bundles through real processes: relays, workers, and what happens when one of them is not there."""

import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest
import redis
from acceptance.system import System, until_a_pause_is_obeyed
from processes import Running, eventually
from strategies import uid

import foreword
from foreword import TRUSTED, Reader, codec, keys
from foreword.reader import Context
from worker.servers import Addresses

WAIT = 60.0


@pytest.fixture(scope="module")
def fresh(servers: Addresses, migrated: str, bytecode: object) -> Iterator[System]:
    """A system whose clock is today's."""
    with System.over(servers, migrated, bytecode) as system:  # type: ignore[arg-type]
        system.commands.environment.pop("FOREWORD_AS_OF")  # type: ignore[attr-defined]
        yield system


@pytest.fixture(scope="module")
def worker(fresh: System) -> Iterator[Running]:
    """A worker for the tests that want one."""
    with fresh.worker() as running:
        yield running


@pytest.fixture(autouse=True)
def project(fresh: System) -> str:
    """A project of its own for each test, and a Redis and a log without any other."""
    fresh.redis.flushall()
    fresh.connection.execute("delete from onto_tasks; delete from onto_projects")
    fresh.connection.execute("delete from fw_changes; delete from fw_projects; delete from fw_leader")
    fresh.connection.execute("update fw_facts set value = 0 where name = 'paused'")
    name = uid("project of a test")
    fresh.connection.execute("insert into onto_projects (id, name) values (%s, 'Pier')", [name])
    return name


@contextmanager
def relay(system: System, *options: str) -> Iterator[Running]:
    """A relay that leads, or follows one; told to end at the end."""
    with system.commands.start("relay", *options) as running:
        assert running.says("relay_"), running.err
        yield running
        if running.process.poll() is None:
            assert running.tell(signal.SIGTERM).code == 143, running.err


def edited(system: System, project: str, title: str) -> str:
    """Add a task; the token."""
    with psycopg.connect(system.services.database_url) as connection:
        connection.execute(
            "insert into onto_tasks (id, project_id, title) values (gen_random_uuid(), %s, %s)", [project, title]
        )
        return foreword.token(connection)


def read(system: System, project: str, token: str, seconds: float = WAIT) -> Context:
    return Reader(system.redis, asks=False).project(project, actor=TRUSTED, at_least=token, wait=seconds)


def settled(system: System) -> int:
    """Generations when nothing is left to be built."""
    nothing = "select count(*) from fw_changes union all select count(*) from fw_projects"
    nothing += " where attempts > 0 or sends > 0 or requested > finished"
    assert eventually(lambda: compared(system))
    assert eventually(lambda: system.connection.execute(nothing).fetchall() == [(0,), (0,)])
    assert eventually(lambda: compared(system))
    return generations(system)


def compared(system: System) -> bool:
    """Whether the relay has looked for every bundle in Redis, and none is due."""
    marker = codec.decode_line(system.redis.hget(keys.MARKER, keys.VALUE))
    late = "select count(*) from fw_projects where generation > 0 and (incarnation <> %s or refresh_at <= now())"
    return bool(marker) and system.connection.execute(late.encode(), [marker]).fetchall() == [(0,)]


def generations(system: System) -> int:
    found: int = system.connection.execute("select last_value from fw_generation").fetchall()[0][0]
    return found


# ---- without a worker


@pytest.mark.promise("fresh.lost-messages")
def test_with_every_message_lost_the_relay_builds_itself(fresh: System, project: str) -> None:
    with relay(fresh):  # nobody serves the queue
        found = read(fresh, project, edited(fresh, project, "alone"))

    assert found.status == "fresh"
    assert "alone" in found.text


@pytest.mark.promise("fresh.lost-messages")
@pytest.mark.parametrize("inline", [True, False])
def test_without_a_broker_everything_is_built(fresh: System, project: str, *, inline: bool) -> None:
    options = ["--inline"] if inline else []
    with fresh.commands.start("relay", *options, FOREWORD_BROKER_URL="redis://127.0.0.1:1/0") as running:
        found = read(fresh, project, edited(fresh, project, "inline"))
        ended = running.tell(signal.SIGTERM)

    assert found.status == "fresh"
    assert ended.code == 143


@pytest.mark.promise("loader.tenant", "worker.forks")
def test_a_relay_leaves_nothing_running_however_it_ends(fresh: System, project: str) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        with fresh.commands.start("relay") as running:
            assert running.says("relay_leads")
            running.tell(number)
        assert eventually(lambda: not fresh.commands.left())
        fresh.connection.execute("update fw_leader set until = now()")


# ---- with one


@pytest.mark.promise("fresh.demanded", "fresh.covered")
def test_an_edit_is_readable_through_relay_and_worker(fresh: System, worker: Running, project: str) -> None:
    with relay(fresh):
        for number in range(5):
            found = read(fresh, project, edited(fresh, project, f"nail number {number}"))
            assert found.status == "fresh"
            assert f"nail number {number}" in found.text


@pytest.mark.promise("fresh.lost-messages")
def test_messages_that_double_or_name_nobody_do_no_harm(fresh: System, worker: Running, project: str) -> None:
    with relay(fresh):
        read(fresh, project, edited(fresh, project, "one"))
        before = settled(fresh)
        app = fresh.app()
        for _ in range(20):
            app.send_task("foreword.rebuild_project", [project], queue="edits")
            app.send_task("foreword.rebuild_project", [uid("nobody")], queue="edits")
        assert eventually(lambda: not redis.Redis.from_url(fresh.services.broker_url).llen("edits"))
        app.close()
        found = read(fresh, project, edited(fresh, project, "two"))

    assert found.status == "fresh"
    assert generations(fresh) == before + 1
    assert fresh.connection.execute("select count(*) from fw_projects").fetchall() == [(1,)]


@pytest.mark.promise("fresh.leader")
def test_when_the_leading_relay_is_killed_another_leads(fresh: System, project: str) -> None:
    with relay(fresh) as first, relay(fresh) as second:
        read(fresh, project, edited(fresh, project, "under the first"))
        first.process.kill()
        found = read(fresh, project, edited(fresh, project, "under the second"))
        assert second.says("relay_leads")

    assert found.status == "fresh"


@pytest.mark.promise("fresh.leader")
def test_when_the_leading_relay_hangs_another_leads_and_it_follows_when_it_wakes(
    fresh: System, project: str
) -> None:
    with relay(fresh) as first, relay(fresh) as second:
        read(fresh, project, edited(fresh, project, "under the first"))
        first.process.send_signal(signal.SIGSTOP)
        found = read(fresh, project, edited(fresh, project, "under the second"))
        first.process.send_signal(signal.SIGCONT)
        assert second.says("relay_leads")
        assert first.says("relay_follows")

    assert found.status == "fresh"


@pytest.mark.promise("fresh.single-flight")
def test_a_thousand_readers_of_a_missing_bundle_cause_one_build(
    fresh: System, worker: Running, project: str
) -> None:
    with relay(fresh):
        read(fresh, project, edited(fresh, project, "there"))
        before = settled(fresh)
        fresh.redis.delete(keys.project(project))

        def one(_: int) -> bool:
            with redis.Redis.from_url(fresh.services.redis_url) as client:
                return bool(Reader(client).project(project, actor=TRUSTED))

        with ThreadPoolExecutor(16) as threads:
            list(threads.map(one, range(1000)))
        assert eventually(lambda: Reader(fresh.redis).project(project, actor=TRUSTED))
        token = edited(fresh, project, "and an edit, to know that nothing else is on its way")
        read(fresh, project, token)

    assert generations(fresh) == before + 2


@pytest.mark.promise("fresh.reconciled")
def test_an_emptied_redis_is_filled_again_without_an_edit(fresh: System, worker: Running, project: str) -> None:
    with relay(fresh) as running:
        read(fresh, project, edited(fresh, project, "there"))
        assert eventually(lambda: fresh.redis.exists(keys.MARKER))
        first = "".join(running.err)
        fresh.redis.flushall()

        assert eventually(lambda: Reader(fresh.redis, asks=False).project(project, actor=TRUSTED))
        assert eventually(lambda: fresh.redis.hexists(keys.MARKER, keys.VALUE))
        assert eventually(lambda: not fresh.redis.hexists(keys.MARKER, keys.FILLING))
        assert running.says('"event":"bundles_missing"'), running.err
    assert "redis_is_new" not in first  # where nothing was published, nothing is lost
    assert "redis_is_new" in "".join(running.err)


@pytest.mark.promise("fresh.reconciled")
def test_after_a_restore_everything_is_built_again_in_a_new_epoch(fresh: System, project: str) -> None:
    commands = fresh.commands
    with relay(fresh, "--inline"):
        before = read(fresh, project, edited(fresh, project, "before")).stamp
        unasked, said = commands.run("restored"), commands.run("restored", "--yes", "--json")

        def again() -> bool:
            found = Reader(fresh.redis, asks=False).project(project, actor=TRUSTED).stamp
            return found is not None and found.epoch == json.loads(said.out)["epoch"]

        assert eventually(again)
        assert read(fresh, project, edited(fresh, project, "after")).status == "fresh"

    assert before is not None
    assert (unasked.code, "say --yes" in unasked.err) == (2, True)
    assert json.loads(said.out)["epoch"] > before.epoch


@pytest.mark.promise("fresh.calendar")
def test_a_bundle_whose_day_is_over_is_built_again_without_an_edit(
    fresh: System, worker: Running, project: str
) -> None:
    with relay(fresh):
        read(fresh, project, edited(fresh, project, "there"))
        settled(fresh)  # also what the relay, which is new, has found to be built
        seen = Reader(fresh.redis).project(project, actor=TRUSTED)
        fresh.connection.execute("update fw_projects set refresh_at = now()")

        def later() -> bool:
            return Reader(fresh.redis).project(project, actor=TRUSTED).version != seen.version

        assert eventually(later)


@pytest.mark.promise("fresh.switch")
def test_building_is_paused_and_resumed(fresh: System, project: str) -> None:
    with relay(fresh):
        read(fresh, project, edited(fresh, project, "before"))
        settled(fresh)
        paused = fresh.commands.run("pause")
        until_a_pause_is_obeyed(fresh.connection)
        token = edited(fresh, project, "during")
        during = read(fresh, project, token, 3)
        resumed = fresh.commands.run("resume")
        after = read(fresh, project, token)

    assert (paused.code, resumed.code) == (0, 0)
    assert "paused: everything" in paused.out
    assert (during.status, after.status) == ("stale", "fresh")


@pytest.mark.promise("fresh.single-flight")
def test_a_focus_bundle_that_is_missed_is_built(fresh: System, worker: Running, project: str) -> None:
    with relay(fresh):
        read(fresh, project, edited(fresh, project, "nail"))
        reader = Reader(fresh.redis)
        (task,) = reader.bundle(project, actor=TRUSTED).data["slices"]["tasks"]

        assert eventually(lambda: reader.focus(project, task["handle"], actor=TRUSTED).status == "fresh")

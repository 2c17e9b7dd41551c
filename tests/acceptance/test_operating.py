"""What an operator is told and can do: good states, and bad ones really provoked."""

import json
import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import psycopg
import pytest
import redis
from acceptance.system import System, Tell, is_waited, until_a_pause_is_obeyed
from processes import CHECKOUT, Ended, Running, eventually

from foreword import keys
from loaders.ledger import MOST_ATTEMPTS
from loaders.migrate import newest
from worker import checkup

SAMPLE = CHECKOUT / "samples" / "harbour"
LIBRARY = "a8e1bf1f-2157-5c0b-a103-3b8fa71a9b3b"
SECRET = "s3cret"
HOUR = 3600.0


@pytest.fixture(scope="module")
def sample(system: System) -> System:
    """The sample, imported and built without any worker."""
    for arguments in (["import", str(SAMPLE)], ["rebuild", "--all", "--inline"]):
        done = system.commands.run(*arguments)
        assert done.code == 0, done.err
    return system


def once_well(tell: Tell, *arguments: str) -> Ended:
    """What a command says when all is well: on a machine that stops for seconds it is not at every moment."""
    told = []

    def well() -> bool:
        told.append(tell(*arguments))
        return told[-1].code == 0

    assert eventually(well), told[-1]
    return told[-1]


def asked(tell: Tell, *arguments: str, **variables: str) -> Any:
    told = tell(*arguments, "--json", **variables)
    assert told.out, told.err
    return json.loads(told.out)


# ---- status, and the health of processes, with all of them there


@pytest.fixture(scope="module")
def manned(sample: System) -> Iterator[dict[str, Running]]:
    """A relay, a worker and a beat."""
    with ExitStack() as stack:
        found = {
            "relay": stack.enter_context(sample.commands.start("relay", FOREWORD_AUDIT_SECONDS="0.5")),
            "beat": stack.enter_context(sample.commands.start("beat")),
            "worker": stack.enter_context(sample.worker("--concurrency", "1")),
        }
        yield found
        for role in ("relay", "beat"):
            found[role].process.send_signal(signal.SIGCONT)
            assert found[role].tell(signal.SIGTERM).code in {0, 143}, found[role].err


@pytest.fixture
def quiet(sample: System, manned: dict[str, Running]) -> System:
    """Nothing waits, nobody leads, nobody was seen."""
    sample.redis.delete("fw:alive")
    sample.connection.execute("delete from fw_leader; delete from fw_changes; delete from fw_briefs")
    sample.connection.execute("delete from fw_facts where name in ('ticked', 'audited', 'audit_mismatches')")
    sample.connection.execute("update fw_facts set value = 0 where name = 'paused'")
    return sample


@pytest.mark.promise("status.true", "doctor.says", "health.loop")
def test_where_all_is_well_it_is_said(sample: System, manned: dict[str, Running], tell: Tell) -> None:
    once_well(tell, "health", "--role", "beat")  # it has sent its first tick
    status, doctor = once_well(tell, "status"), once_well(tell, "doctor")
    found = json.loads(once_well(tell, "status", "--json").out)
    probes = [sample.commands.run("health", "--role", role) for role in manned]

    assert "nothing is wrong" in status.out
    assert (found["well"], found["wrong"]) == (True, [])
    assert {(each["role"], each["pid"]) for each in found["processes"]} == {
        (role, running.process.pid) for role, running in manned.items()
    }
    assert f"{manned['relay'].process.pid}, for " in status.out
    assert found["queues"] == {"edits": 0, "briefs": 0, "sweep": 0}
    assert found["database"]["built"] == 2
    assert {line.split()[0] for line in doctor.out.splitlines() if not line.startswith(" ")} <= {"ok", "warn"}
    assert [probe.code for probe in probes] == [0, 0, 0]
    once_well(tell, "health", "--role", "system")


@pytest.mark.promise("health.loop")
def test_who_hangs_is_not_well_and_is_again_when_it_goes_on(manned: dict[str, Running], tell: Tell) -> None:
    relay = manned["relay"].process
    relay.send_signal(signal.SIGSTOP)

    assert eventually(lambda: tell("health", "--role", "relay", "--seconds", "1").code == 1)
    told = tell("health", "--role", "relay", "--seconds", "1")
    others = tell("health", "--role", "beat", "--seconds", "20")
    relay.send_signal(signal.SIGCONT)

    assert f"relay-{relay.pid}: its main loop has not turned for" in told.err
    assert others.code == 0
    assert eventually(lambda: tell("health", "--role", "relay", "--seconds", "5").code == 0)


@pytest.mark.promise("health.loop")
def test_a_worker_is_well_again_when_its_broker_is_back(
    sample: System, manned: dict[str, Running], tell: Tell
) -> None:
    sign = Path(asked_place(sample)) / f"worker-{manned['worker'].process.pid}"
    with redis.Redis.from_url(sample.services.broker_url) as broker:
        for client in broker.client_list():  # every connection is lost
            if client["id"] != str(broker.client_id()):
                broker.client_kill_filter(_id=client["id"])
    assert eventually(sign.exists)
    sign.unlink()

    assert eventually(sign.exists)
    assert eventually(lambda: tell("health", "--role", "worker", "--seconds", "5").code == 0)


def asked_place(system: System) -> Path:
    """Where processes of the system leave signs of life."""
    return system.commands.home / ".local" / "share" / "foreword" / "health"


# ---- status where something is wrong


@pytest.mark.promise("status.true")
def test_nobody_there_is_said_with_what_to_do(quiet: System, manned: dict[str, Running], tell: Tell) -> None:
    with unmanned(quiet, manned):
        told, found = tell("status"), asked(tell, "status")

    assert told.code == 1
    assert "no relay leads: nothing that is edited is built; run `python -m worker relay`" in told.out
    assert "no worker was seen lately" in told.out
    assert found["database"]["leader"] is None
    assert len(found["wrong"]) == 2


@contextmanager
def unmanned(system: System, manned: dict[str, Running], led_for: int = -1) -> Iterator[None]:
    """As if the processes of the module were not there, and nobody led; or somebody who does nothing did."""
    worker = psutil.Process(manned["worker"].process.pid)  # it would tell of itself in between
    with psycopg.connect(system.services.database_url) as holding, stopped(worker):

        def held() -> bool:
            """Whether nobody leads, and nobody can change that: a relay may have come in between."""
            holding.rollback()
            system.connection.execute(
                "insert into fw_leader values (true, 'nobody', now() + %(led)s * interval '1 s')"
                " on conflict (one) do update set relay = excluded.relay, until = excluded.until",
                {"led": led_for},
            )
            leads = "select until < now() + interval '2 s' from fw_leader where relay = 'nobody' for update"
            return holding.execute(leads).fetchall() == [(led_for < 2,)]

        assert eventually(held)
        assert eventually(lambda: is_waited(system.connection))  # the relay: it claims nothing now
        system.redis.delete("fw:alive")
        yield
        holding.rollback()
    system.connection.execute("delete from fw_leader")


@contextmanager
def stopped(process: psutil.Process) -> Iterator[None]:
    process.suspend()
    try:
        assert eventually(lambda: process.status() == psutil.STATUS_STOPPED)
        yield
    finally:
        process.resume()


@pytest.mark.promise("status.true")
def test_a_pause_an_old_edit_and_a_dead_letter_are_named(
    quiet: System, manned: dict[str, Running], tell: Tell
) -> None:
    with unmanned(quiet, manned):  # a relay obeys within a second, and goes on at once
        assert tell("pause").out == "paused: everything; `python -m worker resume` goes on\n"
        quiet.connection.execute("update onto_tasks set title = title where project_id = %s", [LIBRARY])
        quiet.connection.execute("update fw_changes set at = at - interval '200 s'")
        paused = tell("status").out
        dead(quiet)
        assert tell("resume").code == 0
        going_on = asked(tell, "status")

    assert "everything is paused; `python -m worker resume` goes on" in paused
    assert "oldest edit without a bundle: 3 min" in paused
    assert going_on["database"]["lag"] > 150
    assert any("the oldest edit that no bundle has is 3 min old" in line for line in going_on["wrong"])
    assert any(line.startswith("2 dead letters") for line in going_on["wrong"])


@pytest.mark.promise("status.true", "cli.down")
@pytest.mark.parametrize("command", ["status", "doctor"])
def test_servers_that_do_not_answer_are_told_apart(sample: System, tell: Tell, command: str) -> None:
    database = tell(command, FOREWORD_DATABASE_URL=f"postgresql://me:{SECRET}@127.0.0.1:9/x")
    cache = tell(command, FOREWORD_REDIS_URL=f"redis://:{SECRET}@127.0.0.1:9/0")

    assert (database.code, cache.code) == (3, 3)
    assert "PostgreSQL does not answer" in database.out + database.err
    assert "Redis does not answer" in cache.out + cache.err
    assert SECRET not in "".join([*map(str, (database, cache))])


def test_status_goes_on_until_it_is_ended(sample: System) -> None:
    with sample.commands.start("status", "--watch", "0.2", "--json") as running:
        assert eventually(lambda: len(running.out) >= 3), running.err
        ended = running.tell(signal.SIGINT)

    assert ended.code == 130
    assert all("well" in json.loads(line) for line in ended.out.splitlines())


# ---- the switch


@pytest.mark.promise("fresh.switch")
def test_the_switch_never_starts_what_it_should_stop(quiet: System, tell: Tell) -> None:
    steps = [
        ("pause bulk", 0, 1),
        ("pause all", 0, 2),
        ("pause bulk", 0, 2),
        ("resume bulk", 1, 2),
        ("resume", 0, 0),
        ("pause bulk", 0, 1),
        ("resume bulk", 0, 0),
        ("resume bulk", 0, 0),
    ]
    for command, code, value in steps:
        told = tell(*command.split())

        ((stands,),) = quiet.connection.execute("select value from fw_facts where name = 'paused'").fetchall()
        assert (told.code, stands) == (code, value), command


# ---- health of the whole


@pytest.mark.promise("health.progress")
def test_the_whole_is_well_while_what_waits_gets_done(
    quiet: System, manned: dict[str, Running], tell: Tell
) -> None:
    def health() -> tuple[int, list[str]]:
        told = tell("health", "--role", "system", "--json")
        return told.code, json.loads(told.out)["says"]

    with unmanned(quiet, manned):
        assert health() == (1, ["no relay leads"])
    with unmanned(quiet, manned, led_for=60):
        quiet.connection.execute("update onto_tasks set title = title where project_id = %s", [LIBRARY])
        quiet.connection.execute("update fw_changes set at = at - interval '200 s'")
        quiet.connection.execute("update fw_projects set built_at = now()")
        going_on = health()
        quiet.connection.execute("update fw_projects set built_at = now() - interval '300 s'")
        stuck = health()
        assert tell("pause").code == 0
        paused = health()
        assert tell("resume").code == 0
        quiet.connection.execute("delete from fw_changes")
        idle = health()

    assert (going_on[0], stuck[0], paused[0], idle[0]) == (0, 1, 0, 0)
    said = re.search(r"no build ended well for (\d+) s", stuck[1][0])
    assert said is not None
    assert int(said[1]) >= 300


# ---- parked projects


@pytest.mark.promise("parked.says", "parked.drop")
def test_a_parked_project_is_named_with_its_reason_muted_and_tried_again(quiet: System, tell: Tell) -> None:
    assert tell("pause").code == 0
    until_a_pause_is_obeyed(quiet.connection)  # else the relay's tries would be counted, too
    quiet.connection.execute("alter table onto_tasks drop constraint onto_tasks_priority_range")
    quiet.connection.execute("alter table onto_tasks alter priority type text using priority::text")
    quiet.connection.execute("update onto_tasks set priority = 'high' where project_id = %s", [LIBRARY])
    try:
        assert tell("rebuild", LIBRARY, "--inline").code == 1
        failing, shown = tell("status").out, asked(tell, "projects", "--failing")
        for _ in range(MOST_ATTEMPTS - 1):
            assert tell("rebuild", LIBRARY, "--inline").code == 1
        listed, status = asked(tell, "parked", "list"), tell("status")
        nobody = tell("parked", "drop", LIBRARY)
        dropped = tell("parked", "drop", LIBRARY, "--yes")
        after, all_ = asked(tell, "parked", "list"), asked(tell, "parked", "list", "--dropped")
        muted = asked(tell, "status")
    finally:
        quiet.connection.execute("update onto_tasks set priority = '3' where priority = 'high'")
        quiet.connection.execute("alter table onto_tasks alter priority type integer using priority::integer")
        quiet.connection.execute(
            "alter table onto_tasks add constraint onto_tasks_priority_range check (priority between 1 and 5)"
        )
    retried = tell("parked", "retry", LIBRARY)
    unparked = tell("parked", "retry", LIBRARY)
    built = tell("rebuild", LIBRARY, "--inline")

    assert "projects failing, tried again: 1; `python -m worker projects --failing` says why" in failing
    assert [(each["id"], each["bundle"]) for each in shown] == [(LIBRARY, "failing")]
    assert [each["project_id"] for each in listed] == [LIBRARY]
    assert "priority is 'high'" in listed[0]["error"]
    assert listed[0]["since"]
    assert listed[0]["handle"].startswith("PRJ")
    assert "projects parked: 1; `python -m worker parked list` says why" in status.out
    assert (nobody.code, dropped.code) == (2, 0)
    assert "There is nobody to ask: say --yes" in nobody.err
    assert after == []
    assert [(each["project_id"], each["dropped"]) for each in all_] == [(LIBRARY, True)]
    assert (muted["database"]["parked"], muted["database"]["dropped"]) == (0, 1)
    assert not any("parked" in line for line in muted["wrong"])
    assert (retried.code, retried.out) == (0, "trying 1 again\n")
    assert unparked.code == 2
    assert "is not parked" in unparked.err
    assert (built.code, built.out) == (0, "rebuilt 1 of 1 projects\n")
    assert asked(tell, "projects", "--failing") == []


# ---- dead letters


def dead(system: System) -> str:
    """A brief and an announcement that were given up; whose."""
    ((actor,),) = system.connection.execute("select id from onto_actors order by id limit 1").fetchall()
    for day, state, revision in (("2026-11-20", "failed", 0), ("2026-11-19", "ready", 2)):
        system.connection.execute(
            "insert into fw_briefs (user_id, local_date, state, kind, zone, due_at, build_at, attempts, reason,"
            " revision) values (%s, %s, %s, 'daily', 'UTC', %s, now(), 5, 'it did not fit', %s)",
            [actor, day, state, f"{day} 09:00Z", revision],
        )
    system.connection.execute(
        "insert into fw_announcements"
        " (user_id, local_date, channel, not_before, attempts, dead_at, error, revision)"
        " values (%s, '2026-11-19', 'webhook', now(), 10, now(), 'status 500', 2)",
        [actor],
    )
    return str(actor)


@pytest.mark.promise("brief.dead")
def test_a_dead_letter_is_shown_with_what_replaying_would_do(quiet: System, tell: Tell) -> None:
    quiet.connection.execute("delete from fw_announcements")
    user = dead(quiet)

    letters = asked(tell, "dead-letters", "show", user)
    shown = tell("dead-letters", "show", user, "--date", "2026-11-19").out
    none = tell("dead-letters", "show", user, "--date", "2026-11-01")

    assert [(each["channel"], each["attempts"], each["error"]) for each in letters] == [
        (None, 5, "it did not fit"),
        ("webhook", 10, "status 500"),
    ]
    assert letters[0]["replay"] == "makes the brief for whoever asks, and tells nobody: its date is over"
    assert "replaying     tells revision 2 on the channel webhook, at once" in shown
    assert "it did not fit" not in shown
    assert (none.code, none.out) == (0, "none\n")
    quiet.connection.execute("delete from fw_briefs")


# ---- the doctor


def found_by(tell: Tell, check: str, **variables: str) -> dict[str, str]:
    found: list[dict[str, str]] = asked(tell, "doctor", **variables)["checks"]
    return next(each for each in found if each["check"] == check)


@pytest.mark.promise("doctor.says")
def test_a_table_without_triggers_is_named(sample: System, tell: Tell) -> None:
    sample.connection.execute("drop trigger fw_update on onto_risks")
    try:
        found, code = found_by(tell, "triggers"), tell("doctor").code
    finally:
        assert tell("migrate").code == 0

    assert (found["verdict"], found["what"]) == ("fail", "edits of onto_risks are not seen")
    assert "run `python -m worker migrate`" in found["remedy"]
    assert code == 1
    assert found_by(tell, "triggers")["verdict"] == "ok"


@pytest.mark.promise("doctor.says")
def test_a_missing_index_is_named_with_the_statement_that_makes_it(sample: System, tell: Tell) -> None:
    sample.connection.execute("drop index onto_risks_live")
    try:
        found = found_by(tell, "indexes")
        sample.connection.execute(found["remedy"].replace("concurrently ", "onto_risks_live ").encode())
    finally:
        sample.connection.execute(
            "create index if not exists onto_risks_live on onto_risks (project_id) where deleted_at is null"
        )

    assert found["verdict"] == "warn"
    assert found["remedy"] == "create index concurrently on onto_risks (project_id);"
    assert found_by(tell, "indexes")["verdict"] == "ok"


@pytest.mark.promise("doctor.says")
def test_a_database_behind_is_named(sample: System, tell: Tell, empty_database: str) -> None:
    sample.connection.execute("update fw_alembic_version set version_num = '0003'")
    try:
        behind = found_by(tell, "migrations")
    finally:
        sample.connection.execute("update fw_alembic_version set version_num = %s", [newest()])
    told = tell("doctor", FOREWORD_DATABASE_URL=empty_database)

    assert behind["verdict"] == "fail"
    assert behind["remedy"] == "run `python -m worker migrate`"
    assert told.code == 1
    assert "Traceback" not in told.err


@pytest.mark.promise("doctor.says")
def test_rights_that_a_role_lacks_are_named_with_the_grant(sample: System, tell: Tell) -> None:
    sample.connection.execute("create role lowly login")
    try:
        sample.connection.execute("grant select on all tables in schema public to lowly")
        sample.connection.execute("grant usage on all sequences in schema public to lowly")
        sample.connection.execute("grant insert, update, delete on all tables in schema public to lowly")
        sample.connection.execute("revoke select on onto_tasks from lowly")
        sample.connection.execute("revoke delete on fw_changes from lowly")
        url = sample.services.database_url.replace("postgresql://postgres@", "postgresql://lowly@")
        assert "lowly" in url
        found = found_by(tell, "rights", FOREWORD_DATABASE_URL=url)
        ending = found_by(tell, "ending sessions", FOREWORD_DATABASE_URL=url)
    finally:
        sample.connection.execute("drop owned by lowly; drop role lowly")

    assert found["verdict"] == "fail"
    assert found["what"] == "our role lacks SELECT on onto_tasks, DELETE on fw_changes"
    assert "grant SELECT on onto_tasks to lowly;" in found["remedy"]
    assert (ending["verdict"], ending["what"]) == ("warn", "sessions of postgres could not be ended")


@pytest.mark.promise("doctor.says")
def test_a_broker_that_evicts_and_a_cache_that_fills_up_are_named(sample: System, tell: Tell) -> None:
    kept = sample.redis.config_get("maxmemory*")
    try:
        sample.redis.config_set("maxmemory", "200mb")
        full = found_by(tell, "cache policy")
        sample.redis.config_set("maxmemory-policy", "allkeys-lfu")
        evicts, status = found_by(tell, "broker policy"), tell("status").out
    finally:
        for name in ("maxmemory", "maxmemory-policy"):
            sample.redis.config_set(name, kept[name] or "")

    assert (full["verdict"], full["what"]) == ("warn", "noeviction: once it is full, nothing is published")
    assert evicts["verdict"] == "fail"
    assert "CONFIG SET maxmemory-policy noeviction" in evicts["remedy"]
    assert "the broker may evict queues (maxmemory-policy allkeys-lfu)" in status


@pytest.mark.promise("doctor.says", "status.true")
def test_a_redis_that_tells_nothing_of_itself_is_no_fault(sample: System, tell: Tell) -> None:
    rights: dict[str, Any] = {"keys": ["*"], "categories": ["+@all"], "commands": ["-info", "-time", "-config"]}
    sample.redis.acl_setuser("modest", enabled=True, passwords=[f"+{SECRET}"], **rights)
    try:
        urls = {
            name: url.replace("unix://", f"unix://modest:{SECRET}@")
            for name, url in (
                ("FOREWORD_REDIS_URL", sample.services.redis_url),
                ("FOREWORD_BROKER_URL", sample.services.broker_url),
            )
        }
        status, doctor = tell("status", **urls), asked(tell, "doctor", **urls)
    finally:
        sample.redis.acl_deluser("modest")

    assert "tells nothing of itself" in status.out
    verdicts = {each["check"]: each["verdict"] for each in doctor["checks"]}
    assert (verdicts["broker policy"], verdicts["cache policy"]) == ("warn", "warn")
    assert (verdicts["redis versions"], verdicts["clocks"], verdicts["round trip"]) == ("ok", "ok", "ok")


@pytest.mark.promise("doctor.says")
def test_a_clock_that_is_wrong_is_named(sample: System, tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(time=lambda: time.time() - HOUR, perf_counter=time.perf_counter)
    monkeypatch.setattr(checkup, "time", clock)

    began = time.monotonic()
    found = found_by(tell, "clocks")
    took = time.monotonic() - began

    assert (found["verdict"], found["remedy"]) == ("fail", "run NTP on every host")
    leads = dict(re.findall(r"(PostgreSQL|the cache|the broker) ([+-][\d.]+) s", found["what"]))
    assert leads.keys() == {"PostgreSQL", "the cache", "the broker"}
    assert max(abs(float(lead) - HOUR) for lead in leads.values()) <= took


@pytest.mark.promise("doctor.says")
def test_a_slow_answer_is_not_taken_for_a_wrong_clock() -> None:
    right = checkup.lead(lambda: answered(after=0.2, lead=0))
    wrong = checkup.lead(lambda: answered(after=0.2, lead=HOUR))

    grain = 0.001  # of a float of this size, and more
    assert right.doubt >= 0.1 - grain
    assert right.at_least <= grain
    assert HOUR - 2 * wrong.doubt - grain <= wrong.at_least < HOUR


def answered(*, after: float, lead: float) -> float:
    """What a server says whose clock is ahead, when its answer is long on its way."""
    said = time.time() + lead
    time.sleep(after)
    return said


@pytest.mark.promise("doctor.says")
def test_the_doctor_tells_no_secret(sample: System, tell: Tell) -> None:
    variables = {"FOREWORD_MODEL_KEY": SECRET, "FOREWORD_MODEL_URL": f"http://127.0.0.1:9/{SECRET}/v1"}
    told = tell("doctor", "--json", FOREWORD_MODEL_NAME="x", FOREWORD_MODEL_KEY=variables["FOREWORD_MODEL_KEY"])

    assert SECRET not in told.out + told.err
    assert json.loads(told.out)["settings"]["model_key"] == "***"
    assert json.loads(told.out)["settings"]["database_url"] == "***"


@pytest.mark.promise("doctor.says")
def test_nobody_there_fails_and_a_place_that_cannot_be_written_to(
    quiet: System, manned: dict[str, Running], tell: Tell, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with unmanned(quiet, manned):
        told = asked(tell, "doctor", FOREWORD_HEALTH_DIR=str(tmp_path / "file"))

    failed = {each["check"]: each["remedy"] for each in told["checks"] if each["verdict"] == "fail"}
    assert failed.keys() == {"leader", "worker", "health files"}
    assert failed["leader"] == "run `python -m worker relay`"
    assert "FOREWORD_HEALTH_DIR" in failed["health files"]
    assert quiet.redis.keys("fw:*:doctor*") == []


# ---- audits


@pytest.mark.promise("audit.different")
def test_a_bundle_that_is_not_what_it_should_be_is_found_by_hand_and_by_the_relay(
    quiet: System, manned: dict[str, Running], tell: Tell
) -> None:
    assert tell("rebuild", "--all", "--inline").code == 0
    well = asked(tell, "audit")
    quiet.redis.hset(keys.project(LIBRARY), keys.LINES, "x")
    found = manned["relay"].says("bundle_different")
    wrong = tell("audit", "--seed", "1")
    status = asked(tell, "status")
    rebuilt = tell("rebuild", LIBRARY, "--inline")
    unasked = tell("audit", "--reset")
    reset = tell("audit", "--reset", "--yes")

    assert (well["same"], well["different"], well["projects"]) == (2, 0, [])
    assert (wrong.code, found) == (1, True)
    assert f"different: {LIBRARY}: lines differs: at 0: stored b'x'" in wrong.err
    assert status["database"]["mismatches"] >= 1
    assert any("were not what a fresh build gives" in line for line in status["wrong"])
    assert (rebuilt.code, unasked.code, reset.code) == (0, 2, 0)

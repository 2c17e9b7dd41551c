"""What real workers and relays say of themselves: their logs, their metrics, and never a secret."""

import json
import os
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import psutil
import pytest
import redis
from acceptance.system import System
from processes import Running, eventually
from prometheus_client.parser import text_string_to_metric_families
from strategies import uid

import foreword
from foreword import TRUSTED
from worker.events import COMMON, EVENTS
from worker.metrics import METRICS

PIER, QUAY = uid("pier"), uid("quay")
SECRET = "n0b0dy-shall-read-this"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A relay and a worker with two processes that serve metrics."""

    system: System
    relay: Running
    worker: Running

    def metric(self, of: Running, name: str, **labels: str) -> float:
        found = {sample: value for sample, value in scraped(of).items() if sample[0] == name}
        return sum(value for (_, have), value in found.items() if labels.items() <= dict(have).items())


@pytest.fixture(scope="module")
def watched(system: System) -> Iterator[Watched]:
    """Both with two projects that are built."""
    with ExitStack() as stack:
        relay = stack.enter_context(system.commands.start("relay", FOREWORD_METRICS_PORT="0"))
        worker = stack.enter_context(system.worker("--concurrency", "2", "--metrics-port", "0"))
        assert relay.says("metrics_served"), relay.err
        assert worker.says("metrics_served"), worker.err
        for project in (PIER, QUAY):
            system.connection.execute("insert into onto_projects (id, name) values (%s, 'Pier')", [project])
        assert eventually(lambda: not dirty(system))
        yield Watched(system=system, relay=relay, worker=worker)
        relay.tell(signal.SIGTERM)


def events(of: Running) -> list[dict[str, Any]]:
    return [json.loads(line) for line in "".join(of.err).splitlines()]


def scraped(of: Running) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample, by name and labels."""
    port = next(event["port"] for event in events(of) if event["event"] == "metrics_served")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return {(s.name, frozenset(s.labels.items())): s.value for f in families for s in f.samples}


def dirty(system: System) -> int:
    statement = "select (select count(*) from fw_changes) + (select count(*) from fw_projects where sends > 0)"
    found: int = system.connection.execute(statement).fetchall()[0][0]
    return found


def edit(system: System, project: str) -> str:
    """Edit, and wait for the bundle; the token."""
    with system.connection.transaction():
        system.connection.execute(
            "insert into onto_tasks (id, project_id, title) values (gen_random_uuid(), %s, 'nail')", [project]
        )
        token = foreword.token(system.connection)
    read = system.reader.project(project, actor=TRUSTED, at_least=token, wait=60)
    assert read.status == "fresh"
    assert eventually(lambda: not dirty(system))
    return token


def builds(watched: Watched) -> float:
    """Counted by everybody."""
    return sum(
        watched.metric(of, "foreword_builds_total", result="published") for of in (watched.relay, watched.worker)
    )


# ---- metrics


@pytest.mark.promise("metrics.served")
def test_every_metric_on_record_is_served_and_no_other(watched: Watched) -> None:
    names = {name for name, row in METRICS.items() if row.who == "relay and workers"}
    assert eventually(lambda: watched.metric(watched.relay, "foreword_postgres_up") == 1)

    def served(of: Running) -> set[str]:
        endings = ("_bucket", "_count", "_sum")
        found = {name for name, _ in scraped(of)}
        return {next((n.removesuffix(e) for e in endings if n.removesuffix(e) in METRICS), n) for n in found}

    assert served(watched.relay) == set(METRICS)
    assert served(watched.worker) == names


@pytest.mark.promise("metrics.served")
def test_the_numbers_are_those_of_what_has_happened(watched: Watched) -> None:
    system, before = watched.system, builds(watched)
    for project in (PIER, QUAY, PIER):
        edit(system, project)

    generation = system.connection.execute("select max(generation) from fw_projects").fetchall()[0][0]
    assert eventually(lambda: builds(watched) >= before + 3)
    assert builds(watched) <= generation
    counted = watched.metric(watched.worker, "foreword_build_seconds_count", stage="total")
    seconds = watched.metric(watched.worker, "foreword_build_seconds_sum", stage="total")
    assert 0 < seconds < counted * 60
    assert watched.metric(watched.worker, "foreword_bundle_tokens_sum") >= 3
    assert 0 < watched.metric(watched.worker, "foreword_bundle_utilisation_ratio_sum") <= counted
    assert abs(watched.metric(watched.relay, "foreword_process_start_time_seconds") - time.time()) < 600
    assert watched.metric(watched.relay, "foreword_relay_leads") == 1
    assert watched.metric(watched.relay, "foreword_redis_up", server="cache") == 1
    assert watched.metric(watched.relay, "foreword_parked_projects") == 0


@pytest.mark.promise("metrics.processes")
def test_counts_of_a_workers_processes_add_up_and_outlive_one_that_is_killed(watched: Watched) -> None:
    edit(watched.system, PIER)
    before = builds(watched)
    children = psutil.Process(watched.worker.process.pid).children()
    assert len(children) == 2
    for child in children:
        child.kill()
    edit(watched.system, PIER)

    assert eventually(lambda: builds(watched) >= before + 1)
    assert eventually(lambda: len(psutil.Process(watched.worker.process.pid).children()) == 2)


@pytest.mark.promise("metrics.served")
def test_what_waits_is_seen_with_its_age(watched: Watched) -> None:
    system = watched.system
    app = system.app()
    for child in psutil.Process(watched.worker.process.pid).children(recursive=True):
        child.suspend()
    watched.worker.process.send_signal(signal.SIGSTOP)
    try:
        for _ in range(3):
            app.send_task("foreword.rebuild_project", [PIER], queue="sweep")
        # One may be the worker's own: it asks each second, and one who was stopped between two questions has none.
        with redis.Redis.from_url(system.services.broker_url) as broker:
            waiting = broker.llen("sweep")
        assert waiting in {2, 3}
        assert eventually(lambda: watched.metric(watched.relay, "foreword_queue_depth", queue="sweep") == waiting)
        age = watched.metric(watched.relay, "foreword_queue_oldest_seconds", queue="sweep")
    finally:
        watched.worker.process.send_signal(signal.SIGCONT)
        for child in psutil.Process(watched.worker.process.pid).children(recursive=True):
            child.resume()
        app.close()

    assert 0 <= age < 60
    assert watched.metric(watched.relay, "foreword_queue_depth", queue="edits") == 0


@pytest.mark.promise("metrics.closed")
def test_without_a_port_nothing_listens_and_it_listens_on_this_machine_only(watched: Watched) -> None:
    def listening(of: Running) -> set[str]:
        found = psutil.Process(of.process.pid).net_connections("tcp")
        return {each.laddr.ip for each in found if each.status == psutil.CONN_LISTEN}

    with watched.system.commands.start("relay") as other:
        assert other.says("relay_follows")
        assert listening(other) == set()
        other.tell(signal.SIGTERM)
    assert listening(watched.relay) == listening(watched.worker) == {"127.0.0.1"}


# ---- events


@pytest.mark.promise("events.json", "events.known")
def test_a_log_is_lines_of_events_that_are_on_record(watched: Watched) -> None:
    edit(watched.system, QUAY)
    said = events(watched.relay) + events(watched.worker)

    assert {"process_started", "metrics_served", "relay_leads", "build_published"} <= {e["event"] for e in said}
    for event in said:
        row = EVENTS[event["event"]]
        assert event.keys() <= COMMON.keys() | set(row.fields)
        assert event["level"] == row.level or event["event"] == "library_said"


@pytest.mark.promise("events.correlated")
def test_an_edit_is_followed_through_the_log_to_the_reader(watched: Watched) -> None:
    epoch, transaction = edit(watched.system, PIER).split(":")

    def answering() -> list[dict[str, Any]]:
        return [
            event
            for event in events(watched.worker) + events(watched.relay)
            if event["event"] == "build_published"
            and event["project"] == PIER
            and event.get("first_txid", 0) <= int(transaction) <= event.get("last_txid", 0)
        ]

    assert eventually(answering)
    (event,) = answering()
    stamp = watched.system.reader.project(PIER, actor=TRUSTED).stamp
    assert stamp is not None
    assert event["correlation"] == f"{PIER}:{stamp.generation}"
    assert stamp.version == f"{epoch}:{event['generation']}"
    assert event["waited"] >= 0


def test_an_explicit_format_holds_for_the_last_words_too(system: System) -> None:
    gone = system.settings.database_url
    assert gone is not None
    variables = {"FOREWORD_DATABASE_URL": f"postgresql://u:{SECRET}@127.0.0.1:1/x"}
    as_json = system.commands.run("relay", FOREWORD_LOG_FORMAT="json", **variables)
    as_it_comes = system.commands.run("relay", **variables)

    assert json.loads(as_json.err)["event"] == "process_failed"
    assert as_it_comes.err.startswith("error: PostgreSQL does not answer")
    assert as_json.code == as_it_comes.code == 3
    assert SECRET not in as_json.err + as_it_comes.err


# ---- secrets


@pytest.mark.promise("events.secrets")
def test_no_password_is_in_the_logs_of_processes_that_are_thrown_out_by_every_server(system: System) -> None:
    everything: dict[str, Any] = {"keys": ["*"], "channels": ["*"], "categories": ["+@all"]}
    role = f"fw_keeper_{os.getpid()}"
    system.connection.execute(f"create role {role} superuser login password '{SECRET}'".encode())
    system.redis.acl_setuser("keeper", enabled=True, passwords=[f"+{SECRET}"], **everything)
    services = system.services
    urls = {
        "FOREWORD_REDIS_URL": services.redis_url.replace("unix://", f"unix://keeper:{SECRET}@"),
        "FOREWORD_BROKER_URL": services.broker_url.replace("unix://", f"unix://keeper:{SECRET}@"),
        "FOREWORD_DATABASE_URL": services.database_url.replace("//postgres@", f"//{role}:{SECRET}@"),
    }
    assert all(SECRET in url for url in urls.values()), services
    try:
        with ExitStack() as stack:
            relay = stack.enter_context(system.commands.start("relay", "--loglevel", "DEBUG", **urls))
            worker = stack.enter_context(
                system.commands.start("work", "--concurrency", "1", "--loglevel", "DEBUG", **urls)
            )
            assert worker.says("ready."), worker.err
            assert relay.says("relay_"), relay.err
            _throw_out(system, role)
            assert relay.says("relay_interrupted"), relay.err
            assert relay.says("redis_does_not_answer"), relay.err
            assert worker.says("onnection to broker lost"), worker.err
            system.redis.acl_setuser("keeper", enabled=True, passwords=[f"+{SECRET}"], **everything)
            system.connection.execute(f"alter role {role} login".encode())
            assert relay.says('"what":"relay"'), relay.err  # and it is over
            ends = [relay.tell(signal.SIGTERM), worker.tell(signal.SIGTERM)]
    finally:
        system.redis.acl_deluser("keeper")
        system.connection.execute(f"alter role {role} nologin".encode())
        system.connection.execute(f"drop role {role}".encode())

    interrupted = [line for line in ends[0].err.splitlines() if "relay_interrupted" in line]
    assert len(interrupted) < 5  # of one a second
    said = "".join(end.out + end.err for end in ends)
    assert "library_said" in said
    assert SECRET not in said
    for line in "".join(end.err for end in ends).splitlines():
        json.loads(line)


def _throw_out(system: System, role: str) -> None:
    system.redis.acl_deluser("keeper")  # which closes its connections
    system.connection.execute(f"alter role {role} nologin".encode())
    system.connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = %s", [role])

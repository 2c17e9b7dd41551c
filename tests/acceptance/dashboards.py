"""Dashboards and alerts in a real Prometheus, beside real processes to which all happens that is alerted on.

Not collected with the suite, for no wheel brings a Prometheus: ``make dashboards`` wants one on PATH. The suite
checks the same queries by a parser (``tests/house/test_watching.py``).
"""

import json
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import redis
import yaml
from acceptance.system import System, until_a_pause_is_obeyed
from processes import CHECKOUT, Running, eventually
from watching import DASHBOARDS, DEPLOY, dashboard, rules

from foreword import keys
from worker.app import SENT
from worker.servers import Addresses

SAMPLE = CHECKOUT / "samples" / "harbour"
LIBRARY = "a8e1bf1f-2157-5c0b-a103-3b8fa71a9b3b"
IDRIS = "a7af32f0-f494-5c31-afaa-1331553955cc"

LONG = 180.0
"""Seconds for an alert to come, or to go: a look each five seconds, a scrape and an evaluation each second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    """One that scrapes our processes and knows our rules."""

    url: str
    began: float

    def asks(self, path: str, **parameters: str) -> Any:
        """What its API answers."""
        address = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(address, timeout=30) as answer:
            told = json.load(answer)
        assert told["status"] == "success", told
        return told["data"]

    def rules(self) -> dict[str, dict[str, Any]]:
        return {rule["name"]: rule for group in self.asks("rules")["groups"] for rule in group["rules"]}

    def raises(self, alert: str) -> bool:
        """Whether what an alert waits for is so; it fires when it has been for long enough."""
        return self.rules()[alert]["state"] in {"pending", "firing"}

    def calms(self, alert: str) -> bool:
        return not self.raises(alert)

    def series(self, query: str) -> list[Any]:
        """What a panel shows of all that happened."""
        now = time.time()
        step = str(max((now - self.began) / 1000, 1.0))
        found: list[Any] = self.asks("query_range", query=query, start=str(self.began), end=str(now), step=step)[
            "result"
        ]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Who is on stage."""

    system: System
    servers: Addresses
    prometheus: Prometheus
    ports: dict[str, str]
    relay: Running
    edits: Running
    beat: Running

    def sql(self, *statements: str) -> None:
        for statement in statements:
            self.system.connection.execute(statement.encode())

    def runs(self, *arguments: str) -> None:
        done = self.system.commands.run(*arguments)
        assert done.code == 0, done.err


def free_port() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def configured(ports: dict[str, str], directory: Path) -> Path:
    """The configuration that is deployed, but for who is scraped and how often."""
    deployed = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    (job,) = deployed["scrape_configs"]
    targets = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {"service": service}} for service, port in ports.items()
    ]
    mine = {
        **deployed,
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(DEPLOY / "prometheus" / "rules.yml")],
        "scrape_configs": [{"job_name": job["job_name"], "static_configs": targets}],
    }
    path = directory / "prometheus.yml"
    path.write_text(yaml.safe_dump(mine), encoding="utf-8")
    return path


@contextmanager
def scraping(ports: dict[str, str], directory: Path) -> Iterator[Prometheus]:
    binary, port = shutil.which("prometheus"), free_port()
    assert binary is not None, "no `prometheus` on PATH: install one (Debian's package has that name)"
    command = [
        binary,
        f"--config.file={configured(ports, directory)}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            one = Prometheus(url=f"http://127.0.0.1:{port}", began=time.time())
            assert eventually(lambda: answers(f"{one.url}/-/ready")), (directory / "log").read_text()
            yield one
        finally:
            process.terminate()
            process.wait(30)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


@pytest.fixture(scope="module")
def scene(system: System, servers: Addresses, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """The sample, built and edited; a model that nobody answers for; nobody serves the sweep."""
    ports = {service: free_port() for service in ("relay", "edits", "briefs")}
    model = {"FOREWORD_MODEL_URL": "http://127.0.0.1:9/v1", "FOREWORD_MODEL_NAME": "nobody"}
    prices = {"FOREWORD_MODEL_PRICE_IN": "1", "FOREWORD_MODEL_PRICE_OUT": "1"}
    with ExitStack() as stack:
        start = system.commands.start
        relay = stack.enter_context(
            start("relay", FOREWORD_METRICS_PORT=ports["relay"], FOREWORD_AUDIT_SECONDS="1")
        )
        workers = {}
        for service in ("edits", "briefs"):
            options = ["--queue", service, "--concurrency", "1", "--metrics-port", ports[service]]
            workers[service] = running = stack.enter_context(start("work", *options, **model, **prices))
            assert running.says("metrics_served"), running.err
        beat = stack.enter_context(start("beat"))
        assert relay.says("relay_leads"), relay.err
        prometheus = stack.enter_context(scraping(ports, tmp_path_factory.mktemp("prometheus")))
        assert system.commands.run("import", str(SAMPLE)).code == 0
        yield Scene(
            system=system,
            servers=servers,
            prometheus=prometheus,
            ports=ports,
            relay=relay,
            edits=workers["edits"],
            beat=beat,
        )
        for process in (relay, beat, *workers.values()):
            process.process.terminate()


# ---- what happens, by the alert that it raises. Each is undone at its end, and then the alert goes.


@contextmanager
def all_paused(scene: Scene) -> Iterator[None]:
    """Nothing raises an alert by that."""
    scene.runs("pause", "all")
    until_a_pause_is_obeyed(scene.system.connection)
    try:
        yield
    finally:
        scene.runs("resume")


@contextmanager
def nobody_builds(scene: Scene) -> Iterator[None]:
    """An edit of two minutes ago."""
    with all_paused(scene):
        scene.sql(
            f"update onto_projects set name = 'Library' where id = '{LIBRARY}'",
            "update fw_changes set at = at - interval '2 minutes'",
        )
        yield


@contextmanager
def nobody_looks_who_is_due(scene: Scene) -> Iterator[None]:
    with all_paused(scene):
        scene.beat.process.send_signal(signal.SIGSTOP)
        scene.sql("update fw_facts set value = value - 120 where name = 'ticked'")
        try:
            yield
        finally:
            scene.beat.process.send_signal(signal.SIGCONT)


@contextmanager
def nobody_makes_a_brief(scene: Scene) -> Iterator[None]:
    """One that was due ten minutes ago."""
    with all_paused(scene):
        scene.sql(brief("pending"))
        try:
            yield
        finally:
            scene.sql("delete from fw_briefs")


@contextmanager
def a_brief_fails(scene: Scene) -> Iterator[None]:
    scene.sql(brief("failed"))
    try:
        yield
    finally:
        scene.sql("delete from fw_briefs")


@contextmanager
def nobody_takes_an_announcement(scene: Scene) -> Iterator[None]:
    scene.sql(
        brief("ready"),
        "insert into fw_announcements (user_id, local_date, channel, not_before, dead_at, revision)"
        " select user_id, local_date, 'webhook', now(), now(), 1 from fw_briefs",
    )
    try:
        yield
    finally:
        scene.sql("delete from fw_announcements", "delete from fw_briefs")


def brief(state: str) -> str:
    return (
        "insert into fw_briefs (user_id, local_date, state, kind, zone, due_at, build_at)"
        f" values ('{IDRIS}', '2026-11-01', '{state}', 'daily', 'UTC', now() - interval '10 minutes', now())"
    )


@contextmanager
def nobody_answers_for_the_model(scene: Scene) -> Iterator[None]:
    """A real brief, worded by the template after all."""
    soon = datetime.now(UTC) + timedelta(seconds=20)
    scene.runs("subscriptions", "add", IDRIS, "--zone", "UTC", "--daily", "--at", f"{soon:%H:%M:%S}")
    try:
        yield
    finally:
        scene.runs("subscriptions", "remove", IDRIS)


@contextmanager
def a_project_cannot_be_built(scene: Scene) -> Iterator[None]:
    """A column is of another type than the loader expects: eight attempts, then it is parked."""
    scene.sql(
        "alter table onto_tasks drop constraint if exists onto_tasks_priority_range, alter priority type text",
        f"update onto_tasks set title = 'Forty bays' where project_id = '{LIBRARY}'",
    )
    try:
        yield
    finally:
        scene.sql("alter table onto_tasks alter priority type integer using priority::integer")
        scene.runs("rebuild", LIBRARY)


@contextmanager
def a_bundle_is_wrong(scene: Scene) -> Iterator[None]:
    scene.system.redis.hset(keys.project(LIBRARY), keys.LINES, "x")
    try:
        yield
    finally:
        scene.runs("rebuild", LIBRARY)
        scene.runs("audit", "--reset", "--yes")


@contextmanager
def nobody_serves_a_queue(scene: Scene) -> Iterator[None]:
    """A message of two minutes ago."""
    message = json.dumps({"headers": {SENT: time.time() - 120}})
    with redis.Redis.from_url(scene.system.services.broker_url) as broker:
        broker.lpush("sweep", message)
        try:
            yield
        finally:
            broker.delete("sweep")


@contextmanager
def redis_hangs(scene: Scene) -> Iterator[None]:
    server = psutil.Process(scene.system.redis.info("server")["process_id"])
    server.suspend()
    try:
        yield
    finally:
        server.resume()


@contextmanager
def postgres_lets_nobody_in(scene: Scene) -> Iterator[None]:
    name = scene.system.connection.info.dbname
    with psycopg.connect(scene.servers.database_url, autocommit=True) as admin:
        admin.execute(f'alter database "{name}" allow_connections false'.encode())
        admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name])
        try:
            yield
        finally:
            admin.execute(f'alter database "{name}" allow_connections true'.encode())


@contextmanager
def a_process_starts_over_and_over(scene: Scene) -> Iterator[None]:
    """Five times; the last one runs on until the end."""
    scene.edits.process.kill()
    with ExitStack() as stack:
        for number in range(5):
            again = stack.enter_context(
                scene.system.commands.start("work", "--queue", "edits", "--metrics-port", scene.ports["edits"])
            )
            assert again.says("metrics_served"), again.err
            assert eventually(lambda number=number: starts(scene) > number)  # type: ignore[misc]
            if number < 4:
                again.process.kill()
        try:
            yield
        finally:
            again.process.terminate()


def starts(scene: Scene) -> int:
    """Processes of edits that were scraped, but for the first."""
    query = f'changes(foreword_process_start_time_seconds{{service="edits"}}[{int(LONG)}s])'
    found = scene.prometheus.asks("query", query=query)["result"]
    return int(float(found[0]["value"][1])) if found else 0


@contextmanager
def the_relay_ends(scene: Scene) -> Iterator[None]:
    """Nobody relays, and a process is down."""
    scene.relay.process.terminate()
    yield


Happening = Callable[[Scene], AbstractContextManager[None]]

HAPPENINGS: dict[Happening, tuple[str, ...]] = {
    nobody_builds: ("EditsNotFresh",),
    nobody_looks_who_is_due: ("NobodyTicks",),
    nobody_makes_a_brief: ("BriefsOverdue",),
    a_brief_fails: ("BriefsFail",),
    nobody_takes_an_announcement: ("DeadLetters",),
    nobody_answers_for_the_model: ("ModelFails",),
    a_bundle_is_wrong: ("AuditMismatch",),
    nobody_serves_a_queue: ("QueueStuck",),
    redis_hangs: ("RedisDown",),
    a_project_cannot_be_built: ("BuildsFail", "ProjectsParked"),
    postgres_lets_nobody_in: ("PostgresDown",),
    the_relay_ends: ("NobodyRelays", "ProcessesDown"),
    a_process_starts_over_and_over: ("ProcessesRestart",),
}
"""What alerts it raises; in an order in which none spoils the next."""

STAY = {"ModelFails", "BuildsFail", "ProcessesRestart", "NobodyRelays", "ProcessesDown"}
"""About the last minutes, or not undone."""


def test_every_alert_has_something_that_raises_it() -> None:
    assert {rule["alert"] for rule in rules()} == {alert for alerts in HAPPENINGS.values() for alert in alerts}


def test_nothing_is_raised_while_all_is_well(scene: Scene) -> None:
    every = scene.ports.keys()
    assert eventually(
        lambda: {each["labels"]["service"] for each in scene.prometheus.asks("targets")["activeTargets"]} == every
    )
    assert eventually(lambda: scene.prometheus.series("sum(foreword_relay_leads) == 1"), LONG)
    time.sleep(10)  # so that it can be said of more than a moment

    found = scene.prometheus.rules()

    assert {name: rule["lastError"] for name, rule in found.items() if rule["health"] != "ok"} == {}
    assert [name for name, rule in found.items() if rule["state"] != "inactive"] == []


@pytest.mark.parametrize("happening", HAPPENINGS, ids=lambda each: each.__name__)
def test_alerts_are_raised_by_what_they_are_about_and_go_when_that_is_over(
    scene: Scene, happening: Happening
) -> None:
    before = {alert: scene.prometheus.raises(alert) for alert in HAPPENINGS[happening]}
    with happening(scene):
        raised = {
            alert: eventually(partial(scene.prometheus.raises, alert), LONG) for alert in HAPPENINGS[happening]
        }
    left = [
        alert
        for alert in HAPPENINGS[happening]
        if alert not in STAY and not eventually(partial(scene.prometheus.calms, alert), LONG)
    ]

    assert not any(before.values()), before
    assert all(raised.values()), raised
    assert left == []


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_panel_has_shown_something(scene: Scene, path: Path) -> None:
    expressions = [target["expr"] for panel in dashboard(path)["panels"] for target in panel.get("targets", [])]

    shown = {expression: len(scene.prometheus.series(expression)) for expression in expressions}

    assert [expression for expression, series in shown.items() if not series] == []

"""Flower as an operator meets it: behind a password, with our workers and tasks, and nothing to be done there."""

import base64
import json
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from acceptance.system import System
from browser import Browser, Page
from celery.worker.control import Panel
from flower.inspector import Inspector  # type: ignore[import-untyped]
from processes import CHECKOUT, Running, eventually

from loaders import ledger
from loaders.claims import EDITS
from worker.app import REBUILD
from worker.inspection import LOOKS

SAMPLE = CHECKOUT / "samples" / "harbour"
LIBRARY = "a8e1bf1f-2157-5c0b-a103-3b8fa71a9b3b"
WIDE = 1600


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A Flower that runs, and the worker that it shows."""

    url: str
    password: str
    worker: str
    running: Running
    system: System
    data: Path

    def headers(self, password: str | None = None) -> dict[str, str]:
        login = f"foreword:{self.password if password is None else password}"
        return {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}

    def ask(self, path: str, method: str = "GET", headers: dict[str, str] | None = None) -> tuple[int, str]:
        """Status and body."""
        data = b"" if method != "GET" else None
        asked = urllib.request.Request(self.url + path, data=data, headers=headers or {}, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()


@pytest.fixture(scope="module")
def shown(system: System) -> Iterator[Shown]:
    data = system.commands.home / "data"
    assert system.commands.run("import", str(SAMPLE)).code == 0
    with (
        system.commands.start("flower", "--port", "0", FOREWORD_DATA_DIR=str(data)) as flower,
        system.worker("--concurrency", "1", "--queue", EDITS) as worker,
    ):
        assert flower.says("Flower is on "), flower.err
        found = re.search(r"http://127\.0\.0\.1:\d+", "".join(flower.out))
        assert found is not None
        password = (data / "flower.password").read_text(encoding="utf-8").strip()
        name = f"foreword-{EDITS}-{worker.process.pid}@{socket.gethostname()}"
        url = found[0]
        one = Shown(url=url, password=password, worker=name, running=worker, system=system, data=data)
        assert eventually(lambda: name in one.ask("/workers?json=1", headers=one.headers())[1])
        asked = ledger.request_builds(system.connection, [LIBRARY])
        system.app().send_task(REBUILD, args=[LIBRARY], queue=EDITS, retry=False)
        assert eventually(lambda: ledger.answers(system.connection, asked) == {LIBRARY: None})
        assert eventually(lambda: "SUCCESS" in one.ask("/api/tasks", headers=one.headers())[1])
        yield one
        flower.process.terminate()
        ended = flower.ended()
        assert (ended.code, "Traceback" in ended.err) == (143, False), ended.err
        assert password not in ended.out + ended.err


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser.started() as one:
        yield one


def looks_like_a_page(page: Page, path: Path) -> None:
    """Its screenshot is one of that size, and not of one colour."""
    png = page.screenshot(path)
    assert png.startswith(b"\x89PNG\r\n")
    assert int.from_bytes(png[16:20], "big") == WIDE
    assert len(png) > 20_000


def rows(page: Page) -> dict[str, dict[str, str]]:
    """What the table of a page shows, by what the first column says."""
    found = page.run(
        "(() => { const text = cell => cell.textContent.replace(/\\s+/g, ' ').trim();"
        " const names = [...document.querySelectorAll('thead tr')][0];"
        " return [...document.querySelectorAll('tbody tr')].map(row => [...row.cells].map((cell, place) =>"
        " [text(names.cells[place]), text(cell)])) })()"
    )
    return {row[0][1]: dict(row) for row in found if len(row) > 1}


@pytest.mark.promise("flower.shows")
def test_a_browser_shows_our_workers(shown: Shown, browser: Browser, tmp_path: Path) -> None:
    with browser.page(f"{shown.url}/workers", headers=shown.headers(), width=WIDE) as page:
        assert eventually(lambda: shown.worker in rows(page)), page.text("body")
        row = rows(page)[shown.worker]
        looks_like_a_page(page, tmp_path / "workers.png")

        assert (row["Status"], row["Failed"]) == ("Online", "0")
        assert int(row["Processed"]) == int(row["Succeeded"]) >= 1
        assert all(asked.startswith((shown.url, "data:")) for asked in page.requests)
        assert page.errors == []


@pytest.mark.promise("flower.shows")
def test_a_browser_shows_a_task_that_was_done(shown: Shown, browser: Browser, tmp_path: Path) -> None:
    with browser.page(f"{shown.url}/tasks", headers=shown.headers(), width=WIDE) as page:
        assert eventually(lambda: REBUILD in rows(page)), page.text("body")
        row = rows(page)[REBUILD]
        looks_like_a_page(page, tmp_path / "tasks.png")

    assert (row["State"], row["Worker"]) == ("SUCCESS", shown.worker)
    assert LIBRARY in row["args"]


@pytest.mark.promise("flower.shows")
def test_a_worker_is_shown_without_a_button_that_does_anything(shown: Shown, browser: Browser) -> None:
    with browser.page(f"{shown.url}/worker/{shown.worker}", headers=shown.headers(), width=WIDE) as page:
        text = page.text("body")
        html = page.run("document.documentElement.outerHTML")

    assert shown.worker in text
    assert "Shut Down" not in html
    assert "Shutdown" not in text
    assert "worker-pool-grow" not in html
    assert str(shown.system.services.database_url) not in html


@pytest.mark.promise("flower.closed")
def test_without_the_password_nothing_is_shown(shown: Shown) -> None:
    paths = {pattern for pattern in every_path(shown) if pattern != "/healthcheck"}

    assert len(paths) > 20
    for path in sorted(paths | {"/metrics", "/static/js/flower.js", "/login", "/nothing"}):
        for headers in ({}, shown.headers("wrong"), shown.headers(""), {"Authorization": "Basic !"}):
            for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
                status, body = shown.ask(path, method, headers)
                assert (status, shown.worker in body) == (401, False), (path, method)
    assert shown.ask("/healthcheck") == (200, "OK")


@pytest.mark.promise("flower.read-only")
def test_nothing_can_be_done_even_with_the_password(shown: Shown) -> None:
    for path in sorted(every_path(shown) - {"/tasks/datatable"}):
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            assert shown.ask(path, method, shown.headers())[0] == 403, (path, method)
    status, _ = shown.ask(f"/api/worker/shutdown/{shown.worker}", "POST", shown.headers())

    assert status == 403
    assert shown.worker in shown.ask("/workers?json=1", headers=shown.headers())[1]


def test_flower_looks_at_no_more_than_workers_let_it() -> None:
    assert set(Inspector.inspect_methods) == LOOKS - {"ping", "heartbeat"}


DOING: dict[str, dict[str, Any]] = {
    "revoke": {"task_id": LIBRARY, "terminate": True},
    "terminate": {"signal": "KILL", "task_id": [LIBRARY]},
    "rate_limit": {"task_name": REBUILD, "rate_limit": "1/h"},
    "time_limit": {"task_name": REBUILD, "soft": 1, "hard": 1},
    "cancel_consumer": {"queue": EDITS},
    "add_consumer": {"queue": "others"},
    "hello": {"from_node": "worker@nowhere", "revoked": [LIBRARY]},
    "autoscale": {"max": 9, "min": 9},
    "\u001b[31mfine, all is well": {},
}


@pytest.mark.promise("secure.looked-at")
def test_whoever_writes_to_the_broker_makes_a_worker_do_nothing(shown: Shown) -> None:
    app = shown.system.app()
    with app.connection_for_write() as connection:

        def told(command: str, arguments: dict[str, Any] | None = None) -> Any:
            to: dict[str, Any] = {"destination": [shown.worker], "limit": 1, "timeout": 20, "reply": True}
            replies = app.control.broadcast(command, arguments=arguments, connection=connection, **to)
            return replies[0][shown.worker] if replies else None

        def looks() -> dict[str, Any]:
            found = {each: told(each) for each in sorted(LOOKS)}
            return found | {"stats": {name: found["stats"][name] for name in ("pool", "broker")}}

        before = looks()
        commands = (Panel.data.keys() | DOING.keys()) - LOOKS
        refused = {command: told(command, DOING.get(command)) for command in sorted(commands)}

        assert len(commands) > 20
        assert [each for each, reply in refused.items() if "only looked at" not in str(reply)] == []
        assert looks() == before
        assert before["ping"] == {"ok": "pong"}
        assert (before["revoked"], before["stats"]["pool"]["max-concurrency"]) == ([], 1)
        assert before["stats"]["broker"] == {}  # where it is holds how one gets in
        assert [each["name"] for each in before["active_queues"]] == [EDITS]

    def said() -> set[str]:
        return {json.loads(line)["command"] for line in [*shown.running.err] if "command_refused" in line}

    assert eventually(lambda: said() == (commands & Panel.data.keys()) | {"unknown"}), said()
    assert ("Traceback" in "".join(shown.running.err), "all is well" in "".join(shown.running.err)) == (False,) * 2


def test_the_lengths_of_queues_are_those_of_the_brokers_database(shown: Shown) -> None:
    # The broker is database 1 of a unix socket; Flower by itself asks database 0.
    shown.system.app().send_task(REBUILD, args=[LIBRARY], queue="sweep", retry=False)

    status, body = shown.ask("/api/queues/length", headers=shown.headers())

    assert status == 200
    assert {"name": "sweep", "messages": 1} in json.loads(body)["active_queues"]
    assert "sweep" in shown.ask("/broker", headers=shown.headers())[1]


def test_what_it_has_seen_is_kept(system: System, tmp_path: Path) -> None:
    options = ("flower", "--port", "0")
    variables = {"FOREWORD_DATA_DIR": str(tmp_path), "FOREWORD_FLOWER_PASSWORD": "correct horse battery"}
    with system.commands.start(*options, **variables) as flower:
        assert flower.says("the password in FOREWORD_FLOWER_PASSWORD")
        flower.process.terminate()
        assert flower.ended().code == 143

    assert not (tmp_path / "flower.password").exists()
    assert [each for each in tmp_path.glob("flower.state*") if each.stat().st_size]


def every_path(shown: Shown) -> set[str]:
    """A path for each of Flower's own handlers, by the table that it has."""
    from flower.urls import handlers  # type: ignore[import-untyped]

    patterns = [each.regex.pattern if hasattr(each, "regex") else each[0] for each in handlers]
    return {
        re.sub(r"\(\.[+*]\)", shown.worker, pattern).rstrip("$?")
        for pattern in patterns
        if pattern.startswith("/")
    }

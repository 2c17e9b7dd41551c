"""Deploying while it runs: a version that raises the layout beside one that does not."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from acceptance.system import System
from processes import CHECKOUT, Running, eventually
from strategies import uid

import foreword
from foreword import TRUSTED, Reader
from foreword.stamp import SCHEMA
from worker.servers import Addresses

NEXT = {"PYTHONPATH": f"{Path(__file__).parent / 'next_version'}:{CHECKOUT}"}
"""The environment of a process of the next version."""

PROJECTS = [uid(f"pier {n}") for n in range(4)]

EDITOR = Path(__file__).parent / "next_version" / "editor.py"

BOUND = 30.0
"""Seconds from an edit to a bundle that holds it, whatever is restarted meanwhile: docs/operations.md."""


@pytest.fixture
def fresh(servers: Addresses, migrated: str, bytecode: Path) -> Iterator[System]:
    """A system whose clock is today's, with a few projects."""
    with System.over(servers, migrated, bytecode) as system:
        system.commands.environment.pop("FOREWORD_AS_OF")  # type: ignore[attr-defined]
        for project in PROJECTS:
            system.connection.execute("insert into onto_projects (id, name) values (%s, 'Pier')", [project])
        yield system


def edited(system: System, project: str, title: str) -> str:
    """Add a task; the token."""
    with psycopg.connect(system.services.database_url) as connection:
        connection.execute(
            "insert into onto_tasks (id, project_id, title) values (gen_random_uuid(), %s, %s)", [project, title]
        )
        return foreword.token(connection)


def shown(system: System, project: str, version: dict[str, str]) -> dict[str, Any]:
    """The bundle as the reader of a version has it, in a process of its own."""
    done = system.commands.run("show", project, "--json", **version)
    found: dict[str, Any] = json.loads(done.out) if done.code == 0 else {"status": "missing", "err": done.err}
    return found


def titles(bundle: dict[str, Any]) -> set[str]:
    return {task["title"] for task in bundle.get("slices", {}).get("tasks", [])}


class Chat(threading.Thread):
    """A chat of the old version, which reads project after project all the time; what it found."""

    def __init__(self, system: System) -> None:
        super().__init__()
        self.over = threading.Event()
        self.found: list[str] = []
        self._reader = Reader(system.redis, asks=False)

    def run(self) -> None:
        while not self.over.wait(0.01):
            for project in PROJECTS[:2]:
                context = self._reader.project(project, actor=TRUSTED)
                self.found.append(context.status if context.text else "nothing")


@contextmanager
def chatting(system: System) -> Iterator[Chat]:
    chat = Chat(system)
    chat.start()
    try:
        yield chat
    finally:
        chat.over.set()
        chat.join()


@contextmanager
def editing(system: System) -> Iterator[dict[str, Any]]:
    """Edits other projects for the length of a block, beside readers of the next version; then what they saw."""
    urls = system.services.database_url, system.services.redis_url
    found: dict[str, Any] = {}
    with subprocess.Popen(
        [sys.executable, EDITOR, str(BOUND), *urls, *PROJECTS[2:]],
        env={**system.commands.environment, **NEXT},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield found
        finally:
            said, _ = process.communicate("over\n", timeout=2 * BOUND)
        found |= json.loads(said)


@pytest.mark.promise("upgrade.layout")
@pytest.mark.promise("upgrade.rolling")
def test_a_version_that_raises_the_layout_takes_over_beside_the_one_before(fresh: System) -> None:
    commands, project = fresh.commands, PROJECTS[0]
    old_reader = Reader(fresh.redis, asks=False)
    with ExitStack() as stack, ExitStack() as people:  # who go before anything ends
        worker, relay = (stack.enter_context(commands.start(name)) for name in ("work", "relay"))
        first = edited(fresh, project, "of the old version")
        assert old_reader.project(project, actor=TRUSTED, at_least=first, wait=BOUND).status == "fresh"
        assert eventually(lambda: old_reader.project(PROJECTS[1], actor=TRUSTED).status == "fresh")

        # New readers come first, and show what the old builders build.
        assert shown(fresh, project, NEXT)["status"] == "fresh"
        assert titles(shown(fresh, project, NEXT)) == {"of the old version"}
        edits = people.enter_context(editing(fresh))
        chat = people.enter_context(chatting(fresh))

        # Then relays and workers, side by side with the old worker.
        new_relay = stack.enter_context(commands.start("relay", **NEXT))
        stack.enter_context(commands.start("work", **NEXT))
        assert relay.tell(signal.SIGTERM).code == 143, relay.err
        assert new_relay.says("relay_leads"), new_relay.err
        layouts = "select count(*) from fw_projects where layout <= %s and project_id = any(%s)"
        assert eventually(lambda: fresh.connection.execute(layouts, [SCHEMA, PROJECTS[:2]]).fetchall() == [(0,)])

        # Who reads the old layout only is told that it is old; who reads both has the new one, edits included.
        assert old_reader.project(project, actor=TRUSTED).status == "stale"
        edited(fresh, project, "of both")
        assert eventually(lambda: titles(shown(fresh, project, NEXT)) == {"of the old version", "of both"})
        assert shown(fresh, project, NEXT)["status"] == "fresh"
        assert worker.tell(signal.SIGTERM).code in {0, 143}
        ended: list[Running] = [worker, relay]
    assert all(process.process.poll() is not None for process in ended)
    assert edits["late"] == []
    assert len(edits["waits"]) >= 10
    assert set(chat.found) == {"fresh", "stale"}

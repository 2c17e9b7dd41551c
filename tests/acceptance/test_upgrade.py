"""Deploying while it runs: processes restarted one after the other, and a version that raises the layout beside
one that does not.
"""

import json
import signal
import threading
import time
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
from worker.servers import Addresses

NEXT = {"PYTHONPATH": f"{Path(__file__).parent / 'next_version'}:{CHECKOUT}"}
"""The environment of a process of the next version."""

PROJECTS = [uid(f"pier {n}") for n in range(4)]

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


class Editor(threading.Thread):
    """Edits project after project, and waits each time until a reader has the edit."""

    def __init__(self, system: System) -> None:
        super().__init__()
        self.over = threading.Event()
        self.waits: list[float] = []
        self.late: list[str] = []
        self._system = system

    def run(self) -> None:
        reader = Reader(self._system.redis)
        number = 0
        while not self.over.is_set():
            number += 1
            project = PROJECTS[number % len(PROJECTS)]
            token = edited(self._system, project, f"edit {number}")
            begun = time.monotonic()
            found = reader.project(project, actor=TRUSTED, at_least=token, wait=BOUND)
            self.waits.append(time.monotonic() - begun)
            if found.status != "fresh":
                self.late.append(f"edit {number}: {found.status}")


@contextmanager
def editing(system: System) -> Iterator[Editor]:
    editor = Editor(system)
    editor.start()
    try:
        yield editor
    finally:
        editor.over.set()
        editor.join(2 * BOUND)


@pytest.mark.promise("upgrade.rolling")
def test_each_process_restarted_in_turn_loses_no_edit(fresh: System) -> None:
    with ExitStack() as first, ExitStack() as second:
        old = [first.enter_context(fresh.commands.start(*command)) for command in (["work"], ["relay"], ["relay"])]
        assert eventually(lambda: Reader(fresh.redis).project(PROJECTS[0], actor=TRUSTED).status == "fresh")
        with editing(fresh) as editor:
            for number, process in enumerate(old):
                command = ["work"] if number == 0 else ["relay"]
                second.enter_context(fresh.commands.start(*command))
                seen = len(editor.waits)
                assert process.tell(signal.SIGTERM).code in {0, 143}, process.err
                assert eventually(lambda seen=seen: len(editor.waits) > seen + 2)  # type: ignore[misc]

    assert editor.late == []
    assert len(editor.waits) > len(old)


def shown(system: System, project: str, version: dict[str, str]) -> dict[str, Any]:
    """The bundle as the reader of a version has it, in a process of its own."""
    done = system.commands.run("show", project, "--json", **version)
    found: dict[str, Any] = json.loads(done.out) if done.code == 0 else {"status": "missing", "err": done.err}
    return found


def titles(bundle: dict[str, Any]) -> set[str]:
    return {task["title"] for task in bundle.get("slices", {}).get("tasks", [])}


@pytest.mark.promise("upgrade.layout")
def test_a_version_that_raises_the_layout_takes_over_beside_the_one_before(fresh: System) -> None:
    commands, project = fresh.commands, PROJECTS[0]
    old_reader = Reader(fresh.redis, asks=False)
    with ExitStack() as stack:
        worker, relay = (stack.enter_context(commands.start(name)) for name in ("work", "relay"))
        first = edited(fresh, project, "of the old version")
        assert old_reader.project(project, actor=TRUSTED, at_least=first, wait=BOUND).status == "fresh"

        # New readers come first, and show what the old builders build.
        assert shown(fresh, project, NEXT)["status"] == "fresh"
        assert titles(shown(fresh, project, NEXT)) == {"of the old version"}

        # Then relays and workers, side by side with the old worker.
        new_relay = stack.enter_context(commands.start("relay", **NEXT))
        stack.enter_context(commands.start("work", **NEXT))
        assert relay.tell(signal.SIGTERM).code == 143, relay.err
        assert new_relay.says("relay_leads"), new_relay.err
        layouts = "select count(*) from fw_projects where layout <> 3"
        assert eventually(lambda: fresh.connection.execute(layouts).fetchall() == [(0,)])

        # Who reads the old layout only is told that it is old; who reads both has the new one, edits included.
        assert old_reader.project(project, actor=TRUSTED).status == "stale"
        edited(fresh, project, "of both")
        assert eventually(lambda: titles(shown(fresh, project, NEXT)) == {"of the old version", "of both"})
        assert shown(fresh, project, NEXT)["status"] == "fresh"
        assert worker.tell(signal.SIGTERM).code in {0, 143}
        ended: list[Running] = [worker, relay]
    assert all(process.process.poll() is not None for process in ended)

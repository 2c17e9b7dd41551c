"""Processes that hang for real, in their main loop: they end themselves, say where, and leave nobody behind."""

import json
from contextlib import ExitStack

import pytest
from acceptance.system import System
from processes import eventually

from loaders.connection import Connection, connect
from worker import watchdog
from worker.servers import Addresses
from worker.watchdog import EXIT_CODE, answers

# The command line, whose main loop turns once and then hangs; from then on it is taken for hung at once.
HANGS = """
import sys, time
from worker import cli, pulse, watchdog

beat = pulse.Pulse.beat

def hang(self):
    beat(self)
    watchdog.ODD_SECONDS = watchdog.HUNG_SECONDS = 0.5
    time.sleep(3600)

pulse.Pulse.beat, watchdog.LOOK_SECONDS = hang, 0.1
sys.exit(cli.main(sys.argv[1:]))
"""

ROLES = {
    "relay": ["relay", "--inline"],
    "worker": ["work", "--concurrency", "1"],
    "beat": ["beat"],
    "flower": ["flower", "--port", "0"],
}


@pytest.mark.promise("health.watchdog")
def test_a_process_that_hangs_ends_itself_with_its_children_and_says_where(system: System) -> None:
    with ExitStack() as stack:
        running = {
            role: stack.enter_context(system.commands.python("-c", HANGS, *command, FOREWORD_LOG_FORMAT="json"))
            for role, command in ROLES.items()
        }
        ended = {role: each.ended() for role, each in running.items()}
        assert eventually(lambda: not system.commands.left()), system.commands.left()

    for role, each in ended.items():
        assert each.code == EXIT_CODE, each.err
        said = [json.loads(line) for line in each.err.splitlines()]
        (hung,) = [event for event in said if event["event"] == "process_hung"]
        assert hung["role"] == role
        assert "in hang" in hung["stack"]


@pytest.mark.promise("health.watchdog")
def test_a_server_answers_or_does_not(system: System, servers: Addresses) -> None:
    urls = [system.commands.environment[f"FOREWORD_{name}_URL"] for name in ("DATABASE", "REDIS")]

    assert all(map(answers, [*urls, servers.database_url, servers.redis_url]))
    assert not answers("postgresql://nobody@/nothing?host=/nowhere")
    assert not answers("postgresql://nobody@127.0.0.1:1/nothing")
    assert not answers("unix:///nowhere.sock")
    assert not answers("redis://127.0.0.1:1/0")


@pytest.mark.promise("health.watchdog")
def test_one_that_ends_while_it_is_asked_does_not_answer(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(url: str, **_: int) -> Connection:
        connection = connect(url)
        system.connection.execute("select pg_terminate_backend(%s, 10000)", [connection.info.backend_pid])
        return connection

    monkeypatch.setattr(watchdog, "connect", cut)

    assert not answers(system.commands.environment["FOREWORD_DATABASE_URL"])

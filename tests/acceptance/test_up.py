"""``up`` as a user sees it: what it starts and shows, what it starts again, and how it ends."""

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from acceptance.system import held, is_waited
from processes import CHECKOUT, PATIENCE, Commands, Running, arguments, eventually, runs
from rich.console import Console

from worker import crew
from worker.app import create_app
from worker.commands.up import duration, processes, shares
from worker.events import UP
from worker.lookout import Seen
from worker.servers import embedded
from worker.settings import from_environment
from worker.supervisor import Kept, Part, State
from worker.wiring import services

SAMPLE = CHECKOUT / "samples" / "harbour"
QUEUES = ("edits", "briefs", "sweep")


@pytest.fixture(scope="module")
def data(commands: Commands) -> Path:
    return commands.home / "data"


@pytest.fixture(scope="module")
def running(commands: Commands, data: Path) -> Iterator[Running]:
    """One that runs until a test kills it, the last one here."""
    with commands.start("--data-dir", str(data), "up", "--flower-port", "0") as started:
        assert started.says("next, in another terminal"), started.err
        yield started


def test_up_says_what_runs_where(running: Running, data: Path) -> None:
    said = "".join(running.out)

    begins = f"preparing servers in {data}\nstarting edits, briefs, sweep, relay, beat, flower\n"
    assert "".join(running.err).startswith(begins)
    assert said.startswith("foreword is up; Ctrl-C stops it\n")
    for name in ("PostgreSQL", "Redis", "broker", "data"):
        assert re.search(rf"^  {name} +\S*{data}", said, re.MULTILINE)
    for name in (*QUEUES, "relay", "beat", "flower"):
        assert f"{name}.log" in said
        assert (data / f"{name}.log").exists()
    assert re.search(
        rf"^  Flower +http://127.0.0.1:\d+ user foreword, password in {data}/flower.password$", said, re.MULTILINE
    )


def roles(data: Path) -> set[str]:
    """Of those that have left a sign of life."""
    return {path.name.partition("-")[0] for path in (data / "health").iterdir()}


def test_each_queue_has_a_worker_and_nobody_shows_a_password(running: Running, data: Path) -> None:
    password = (data / "flower.password").read_text(encoding="utf-8").strip()

    for queue in QUEUES:
        worker = running.child("work", "--queue", queue)
        assert worker is not None
        assert len(worker.children()) >= 1
    assert all(running.child(name) for name in ("relay", "beat", "flower"))
    assert eventually(lambda: roles(data) == {"worker", "relay", "beat", "flower"})
    assert len(password) >= 20
    assert (data / "flower.password").stat().st_mode & 0o777 == 0o600
    assert not any(password in word for each in running.children for word in arguments(each))
    assert not any(password in log.read_text(errors="replace") for log in data.glob("*.log"))


@pytest.mark.promise("worker.interrupt")
def test_a_worker_that_was_killed_is_started_again(running: Running, data: Path) -> None:
    killed = running.child("work", "--queue", "edits")
    assert killed is not None
    forked = killed.children()
    killed.kill()

    assert running.says("the edits worker was ended by SIGKILL; starting it again in 1 s")
    assert eventually(lambda: (another := running.child("work", "--queue", "edits")) and another.pid != killed.pid)
    settings = from_environment({"FOREWORD_DATA_DIR": str(data)})
    with services(settings) as found:
        app, another = create_app(settings, found), running.child("work", "--queue", "edits")
        assert another is not None
        assert eventually(lambda: any(f"-{another.pid}@" in name for name in crew.answering(app, 0.2)), PATIENCE)
    assert eventually(lambda: not any(runs(each) for each in forked))


def test_a_redis_that_was_killed_is_started_again(running: Running, data: Path) -> None:
    (server,) = [each for each in running.children if "redis-server" in "".join(arguments(each)[:1])]

    def is_another() -> bool:
        try:
            with redis.Redis.from_url(f"unix://{data}/run/redis.sock") as client:
                return int(client.info("server")["process_id"]) != server.pid
        except redis.ConnectionError:
            return False

    server.kill()

    assert eventually(is_another), running.out
    assert running.says("Redis does not answer")
    assert running.says("Redis answers again")


@pytest.mark.promise("up.killed")
def test_an_up_that_was_killed_leaves_nothing_running(running: Running, commands: Commands) -> None:
    family = running.children
    running.process.kill()

    assert len(family) > 8
    assert eventually(lambda: not any(runs(each) for each in family))
    assert eventually(lambda: not commands.left())


@pytest.mark.promise("worker.interrupt", "servers.clean-stop")
def test_ctrl_c_stops_everything_in_order_and_each_event_is_a_line_of_json(commands: Commands, data: Path) -> None:
    with commands.start("--data-dir", str(data), "up", "--no-flower", "--json") as running:
        assert running.says('"event":"up"')
        family = running.children
        running.process.send_signal(signal.SIGINT)
        ended = running.ended()

    events = [json.loads(line) for line in ended.out.splitlines()]
    stopped = [each["process"] for each in events if each["event"] == "stopped"]
    assert (ended.code, ended.err) == (130, "interrupted; nothing half done is left\n")
    assert stopped[:2] == ["beat", "relay"]
    assert sorted(stopped[2:]) == sorted(QUEUES)
    assert [each["process"] for each in events if each["event"] == "started"] == [*QUEUES, "relay", "beat"]
    assert all(each["at"] and each["text"] and each["level"] == UP[each["event"]].level for each in events)
    assert not any(runs(each) for each in family)
    assert not commands.left()


@pytest.mark.promise("worker.interrupt")
def test_an_up_that_is_told_to_end_while_it_starts_leaves_nothing(commands: Commands, data: Path) -> None:
    with commands.start("--data-dir", str(data), "up", "--no-flower") as running:
        assert running.says("starting edits")
        ended = running.tell(signal.SIGTERM)

    assert ended.code == 143, ended.err
    assert "Traceback" not in ended.err
    assert not commands.left()


@pytest.mark.promise("worker.interrupt")
def test_a_second_ctrl_c_does_not_wait_for_builds(commands: Commands, data: Path) -> None:
    options = ["--data-dir", str(data)]
    with embedded(data) as addresses:
        assert commands.run(*options, "migrate").code == 0
        with (
            held(addresses.database_url) as looking,
            commands.start(*options, "up", "--no-flower") as running,
        ):
            assert running.says("foreword is up")
            looking.execute("insert into onto_projects (id, name) values (gen_random_uuid(), 'Held')")
            assert eventually(lambda: is_waited(looking))
            family = running.children
            running.process.send_signal(signal.SIGINT)
            assert running.says("stopping the relay")

            ended = running.tell(signal.SIGINT)

            assert not any(runs(each) for each in family)

    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    assert not commands.left()


def test_a_terminal_shows_one_screen_and_its_end_is_the_systems(commands: Commands, data: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "worker", "--data-dir", str(data), "up", "--no-flower"],
        cwd=CHECKOUT,
        env={**commands.environment, "TERM": "xterm", "COLUMNS": "140", "LINES": "40"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        shown = seen(ours, "1 dirty|0 dirty")
        shown += seen(ours, r"edits +\d+ +\S*running")
        shown += "" if "foreword is up" in shown else seen(ours, "foreword is up")
        process.send_signal(signal.SIGHUP)
        shown += seen(ours, "nothing half done is left")
        code = process.wait(PATIENCE)
    finally:
        process.kill()
        os.close(ours)

    assert code == 129
    for words in ("last word", "PostgreSQL answers", "Redis answers", "queues", "briefs", "foreword is up"):
        assert words in shown
    assert re.search(r"\d MB", shown)
    assert not commands.left()


def seen(terminal: int, pattern: str) -> str:
    """What a terminal shows until it shows this, without what colours it."""
    raw, deadline = b"", time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                raw += os.read(terminal, 65_536)
            except OSError:  # nobody writes any more
                deadline = 0.0
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", raw.decode("utf-8", "replace"))
        if re.search(pattern, plain):
            return plain
    raise AssertionError(f"{pattern} was not shown: {plain[-2000:]}")


def kept(data: Path, name: str, state: State, **more: Any) -> Kept:
    part = Part(
        name=name,
        called=name,
        arguments=("relay",),
        settings=from_environment({"FOREWORD_DATA_DIR": str(data)}),
        grace=1,
        rank=0,
        role="relay",
    )
    mine = subprocess.Popen([sys.executable, "-c", ""])  # any that has a pid
    mine.wait()
    return Kept(part, data / f"{name}.log", state=state, process=mine, **more)


def shown(*rows: Kept) -> list[str]:
    console = Console(file=io.StringIO(), width=110)
    console.print(processes(list(rows), Seen()))
    assert isinstance(console.file, io.StringIO)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()]


@pytest.mark.promise("up.hangs")
def test_the_screen_shows_for_how_long_a_process_is_silent(tmp_path: Path) -> None:
    rows = shown(
        kept(tmp_path, "relay", State.RUNNING, begun=time.monotonic() - 7200),
        kept(tmp_path, "beat", State.SILENT, silence=95.0),
        kept(tmp_path, "edits", State.ENDING, silence=62.0),
    )

    assert [row.split()[2:4] for row in rows[1:]] == [
        ["running", "2h00m"],
        ["silent", "1m35s"],
        ["ending", "1m02s"],
    ]


def test_a_last_word_has_its_age(tmp_path: Path) -> None:
    ago = {"relay": timedelta(hours=1, minutes=2), "beat": timedelta(seconds=1)}
    for name, age in ago.items():
        line = {"timestamp": (datetime.now(UTC) - age).isoformat(), "event": "goes_on", "what": "redis"}
        (tmp_path / f"{name}.log").write_text(f"{json.dumps(line)}\nnot an event\n", encoding="utf-8")

    rows = shown(*(kept(tmp_path, name, State.RUNNING) for name in (*ago, "edits")))

    assert rows[1].endswith(" 1h02m goes_on redis")
    assert re.search(r" \d+s goes_on redis$", rows[2])
    assert rows[3].endswith(" 0")


def test_edits_have_most_processes_and_nobody_has_none() -> None:
    for number in range(1, 65):
        found = shares(number)

        assert list(found) == list(QUEUES)
        assert min(found.values()) >= 1
        assert found["edits"] == number
        assert found["edits"] >= found["briefs"] == found["sweep"]


def test_a_duration_is_read_at_a_glance() -> None:
    told = [duration(seconds) for seconds in (0, 59.9, 61, 3600, 11_400, 180_000)]

    assert told == ["0s", "59s", "1m01s", "1h00m", "3h10m", "2d02h"]

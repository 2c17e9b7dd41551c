"""The demo: the whole way once, in front of somebody who sees it for the first time.

All that runs it is in this file: its servers are in the checkout, and two at once would disturb each other.
"""

import json
import re
import shutil
import signal
from pathlib import Path

import pytest
from processes import CHECKOUT, Commands, Ended

from foreword import tokens
from foreword.lines import DEFAULT_BUDGET
from worker.commands.demo import HOME

SAMPLE = CHECKOUT / "samples" / "harbour"
GONE = "00000000-0000-4000-8000-000000000000"
LIBRARY = "a8e1bf1f-2157-5c0b-a103-3b8fa71a9b3b"
STEPS = ("start the servers", "create the tables", "import", "start a worker", "rebuild through Celery", "read")

SHOWN = re.compile(r"\nwhat a chat reads of .*, as member .*\n((?:.+\n)*)\n(\d+) tokens of (\d+), read in")


@pytest.fixture(scope="module")
def demos(commands: Commands) -> tuple[Ended, Ended]:
    """A demo on the sample, and another one that was begun in the middle of it."""
    with commands.start("demo") as first:
        assert first.says("importing: ")
        first.process.send_signal(signal.SIGSTOP)  # so that it is not at its end before the other begins
        try:
            second = commands.run("demo")
        finally:
            first.process.send_signal(signal.SIGCONT)
        return first.ended(), second


@pytest.mark.promise("worker.path")
def test_the_demo_shows_a_chats_text_and_its_exact_count(demos: tuple[Ended, Ended]) -> None:
    done, _ = demos

    assert done.code == 0, done.err
    shown = re.search(
        r"\nwhat a chat reads of .*, as member .*\n((?:.+\n)*)\n(\d+) tokens of (\d+), read in", done.out
    )
    assert shown is not None, done.out
    assert shown[1].startswith('# project "Net Loft Library: open the harbour library"\n')
    assert shown[1].endswith("as of 2026-11-21\n")
    assert tokens.count(shown[1]) == int(shown[2]) <= int(shown[3]) == DEFAULT_BUDGET


@pytest.mark.promise("worker.path")
def test_the_demo_shows_coverage_and_time_and_where_to_go(demos: tuple[Ended, Ended]) -> None:
    done, _ = demos
    lines = [line.split() for line in done.out.splitlines()]

    assert "coverage of Net Loft Library: open the harbour library" in done.out
    assert "coverage of Book boat to the islands" in done.out
    assert ["tasks", "85", "39", "46"] in [line[:4] for line in lines]
    assert "642 rows imported, 2 projects rebuilt" in done.out
    for step in STEPS:
        assert re.search(rf"^ {step} +\d+\.\d\d s", done.out, re.MULTILINE), step
    assert "nothing is left running" in done.out
    for further in ("projects", r"show PRJ\d --budget 500", r"show PRJ\d --focus T1"):
        assert re.search(rf"python -m worker --data-dir .foreword/demo {further}\n", done.out), further
    assert "\x1b" not in done.out


@pytest.mark.promise("worker.path")
def test_what_the_demo_says_to_do_next_works(demos: tuple[Ended, Ended], commands: Commands) -> None:
    hints = re.findall(r"python -m worker (.*)", demos[0].out)

    told = [commands.run(*hint.split()) for hint in hints]

    assert [each.code for each in told] == [0] * 3, told
    assert not commands.left(HOME)


@pytest.mark.promise("cli.errors")
def test_a_second_demo_at_once_is_refused(demos: tuple[Ended, Ended]) -> None:
    _, second = demos

    assert (second.code, second.out) == (1, "")
    assert second.err == "error: another demo runs in this checkout; wait for its end\n"


@pytest.mark.promise("loader.manifest", "worker.interrupt")
def test_a_manifest_that_disagrees_fails_the_demo(commands: Commands, tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path, dirs_exist_ok=True)
    counts = {"task": {"total": 85, "direct": 39, "unlinked": 46}, "goal": {"total": 9, "direct": 7}}
    manifest = {"as_of": "2026-11-21", "projects": {LIBRARY: {"by_kind": counts}}}
    projects = [json.loads(line) for line in (tmp_path / "onto_projects.jsonl").read_text().splitlines()]
    gone = {**projects[0], "id": GONE, "deleted_at": "2026-11-20T00:00:00Z"}
    lines = "".join(json.dumps(row) + "\n" for row in (*projects, gone))
    (tmp_path / "onto_projects.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    # Whatever else the user has set, the demo uses servers of its own.
    elsewhere = {
        "FOREWORD_DATABASE_URL": "postgresql://127.0.0.1:1/x",
        "FOREWORD_REDIS_URL": "redis://127.0.0.1:1",
    }

    done = commands.run("demo", "--data", str(tmp_path), FOREWORD_BUDGET="500", **elsewhere)

    assert done.code == 1
    failures = [line for line in done.err.splitlines() if line.startswith("failed: ")]
    assert failures == [f"failed: {LIBRARY} goal: total is 8, the manifest says 9"]
    assert " tokens of 500, read in" in done.out
    assert "643 rows imported, 2 projects rebuilt" in done.out  # the deleted one is no project to show
    assert "Look further" not in done.out
    assert not commands.left(HOME)


@pytest.mark.promise("worker.interrupt")
@pytest.mark.parametrize(
    ("number", "says", "code"),
    [(signal.SIGINT, "rebuilding: 50 %", 130), (signal.SIGTERM, "importing: 20 %", 143)],
)
def test_a_demo_that_is_told_to_end_leaves_nothing_running(
    commands: Commands, number: signal.Signals, says: str, code: int
) -> None:
    with commands.start("demo") as running:
        assert running.says(says)

        ended = running.tell(number)

    assert ended.code == code, ended.err
    assert "Traceback" not in ended.err
    assert not commands.left(HOME)

"""The supervisor by itself: what it says of children that die, and signals that are only noted."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import CHECKOUT, eventually

from worker import parent
from worker.settings import from_environment
from worker.supervisor import Event, Part, Signals, State, Supervisor, ending

LOST = """
import os, signal, sys, time
from worker import cli
cli._listen()
class Garbage:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):
            pass
try:
    Garbage()
    time.sleep(30)
except KeyboardInterrupt as stopped:
    print(type(stopped).__name__)
"""


def part(data: Path, *arguments: str) -> Part:
    settings = from_environment({"FOREWORD_DATA_DIR": str(data)})
    return Part(name="odd", called="the odd one", arguments=arguments, settings=settings, grace=5, rank=0)


@pytest.mark.promise("up.says")
def test_a_child_that_dies_at_its_start_is_started_again_and_its_log_is_said(tmp_path: Path) -> None:
    told: list[Event] = []
    supervisor = Supervisor([part(tmp_path, "no-such-command")], told.append)

    def died(times: int) -> bool:
        supervisor.look()
        return [each.name for each in told].count("ended") >= times

    assert eventually(lambda: died(2))
    ends = [each for each in told if each.name == "ended"]
    assert [each.facts["again_in_seconds"] for each in ends] == [1.0, 2.0]
    for each in ends:
        assert each.facts["code"] == 2
        assert each.text.startswith("the odd one ended with 2; starting it again in ")
        assert "No such command 'no-such-command'" in each.text
    assert supervisor.kept[0].state == State.RESTING
    with Signals.noted() as signals:
        supervisor.stop(signals)  # nothing runs


def test_a_signal_that_is_noted_interrupts_nothing_but_the_wait() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Signals.noted() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        begun = time.monotonic()
        signals.wait(30)
        signals.wait(0)
        waited = time.monotonic() - begun

    assert sorted(signals.asked) == [signal.SIGINT, signal.SIGTERM]
    assert waited < 20
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.promise("worker.interrupt")
def test_a_signal_that_strikes_in_a_finalizer_is_not_lost() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOST], capture_output=True, text=True, cwd=CHECKOUT, timeout=60, check=False
    )

    assert (done.stdout, done.stderr) == ("Ended\n", "")


@pytest.mark.promise("up.killed")
def test_a_child_ends_with_the_parent_that_was_killed() -> None:
    script = (
        "import os, subprocess, sys\n"
        f"environment = {{**os.environ, {parent.VARIABLE!r}: str(os.getpid())}}\n"
        "code = 'import os, time; from worker.parent import follow_parent;"
        " print(follow_parent(os.environ), flush=True); time.sleep(60)'\n"
        "child = subprocess.Popen([sys.executable, '-c', code], env=environment)\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=CHECKOUT
    ) as process:
        assert process.stdout is not None
        said = sorted(process.stdout.readline().strip() for _ in range(2))
        process.kill()

    assert said[1] == "True"
    assert eventually(lambda: gone(int(said[0])), 20)


def test_a_child_whose_parent_is_gone_does_not_begin() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "worker", "--version"],
        env={**os.environ, parent.VARIABLE: "1" if os.getpid() != 1 else "2"},
        capture_output=True,
        cwd=CHECKOUT,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (143, b"", b"")


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_how_a_process_ended_is_said_in_words() -> None:
    assert [ending(code) for code in (0, 3, -9)] == ["ended with 0", "ended with 3", "was ended by SIGKILL"]

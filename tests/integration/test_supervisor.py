"""The supervisor by itself: what it says of children that die or hang, and signals that are only noted."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from processes import CHECKOUT, eventually

from worker import parent
from worker.pulse import Pulse
from worker.settings import Settings, from_environment
from worker.supervisor import HUNG_SECONDS, Event, Kept, Part, Signals, State, Supervisor, ending

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


TURNS = """
import os, sys, time
from pathlib import Path
file = Path(sys.argv[1]) / f"{sys.argv[2]}-{os.getpid()}"
while True:
    file.touch()
    time.sleep(0.005)
"""
"""Leaves a sign of life whenever it turns, sooner than ``Pulse`` does."""


class Watched:
    """A supervisor of children that turn, by a clock that goes on when the test says so."""

    def __init__(self, data: Path) -> None:
        self.told: list[Event] = []
        self.now = 0.0
        parts = [
            Part(
                name=role,
                called=f"the {role}",
                arguments=(role,),
                settings=settings(data),
                grace=5,
                rank=0,
                role=role,
            )
            for role in ("relay", "beat")
        ]
        parts[0].settings.health.mkdir()
        self.supervisor = Supervisor(parts, self.told.append, start=turning, clock=lambda: self.now)
        self.relay, self.beat = self.supervisor.kept
        self.supervisor.look()
        assert eventually(lambda: all(each.part.sign(each.pid or 0) for each in self.supervisor.kept))

    def pass_(self, seconds: float, *heard: Kept, servers_answer: bool = True) -> None:
        """Look again and again for so long, each time when those that turn have turned again."""
        until = self.now + seconds
        while self.now < until:
            for each in heard:
                turned(each)
            self.now += 0.9
            self.supervisor.look(servers_answer=servers_answer)

    def names(self, kept: Kept) -> list[str]:
        """What was said of it, but for its first start."""
        return [each.name for each in self.told if each.facts["process"] == kept.part.name][1:]


def turned(kept: Kept) -> None:
    """Wait until it has turned again."""
    before = kept.part.sign(kept.pid or 0)
    assert eventually(lambda: kept.part.sign(kept.pid or 0) != before)


def settings(data: Path) -> Settings:
    return from_environment({"FOREWORD_DATA_DIR": str(data)})


def turning(settings: Settings, log: Path, arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
    del log
    command = [sys.executable, "-S", "-c", TURNS, str(settings.health), *arguments]
    return subprocess.Popen(command, start_new_session=True)


def mute(settings: Settings, log: Path, arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
    del settings, log, arguments
    return subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=True)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """Two that run and are ready."""
    one = Watched(tmp_path)
    for kept in one.supervisor.kept:
        kept.ready_pid = kept.pid or 0
    one.pass_(1, *one.supervisor.kept)
    yield one
    for kept in one.supervisor.kept:
        if kept.process is not None:
            kept.process.kill()
            kept.process.wait()


def stopped(kept: Kept) -> None:
    assert kept.pid is not None
    os.kill(kept.pid, signal.SIGSTOP)
    assert eventually(lambda: state_of(kept.pid or 0) == "T")


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]


@pytest.mark.promise("up.hangs")
def test_a_child_that_hangs_is_said_to_be_silent_and_heard_again_when_it_turns(watched: Watched) -> None:
    stopped(watched.relay)
    watched.pass_(19, watched.beat)
    early = watched.names(watched.relay)
    watched.pass_(3, watched.beat)
    silent = watched.relay.state
    os.kill(watched.relay.pid or 0, signal.SIGCONT)
    watched.pass_(2, watched.relay, watched.beat)

    assert early == ["ready"]
    assert silent == State.SILENT
    assert watched.names(watched.relay) == ["ready", "silent", "heard"]
    assert watched.relay.state == State.RUNNING
    said = {each.name: each.text for each in watched.told}
    assert said["silent"] == "the relay has been silent for 21 s: its main loop does not turn"
    assert said["heard"].startswith("the relay is heard again, after 2")
    assert watched.names(watched.beat) == ["ready"]


@pytest.mark.promise("up.hangs")
def test_a_child_that_hangs_for_long_is_told_to_end_then_killed_and_started_again(watched: Watched) -> None:
    stopped(watched.relay)
    first = watched.relay.pid
    watched.pass_(HUNG_SECONDS + 2, watched.beat)
    ending = watched.relay.state
    watched.pass_(watched.relay.part.grace + 2, watched.beat)

    def again() -> bool:
        watched.supervisor.look()
        return watched.relay.pid not in {None, first}

    assert ending == State.ENDING
    assert eventually(again)
    assert watched.names(watched.relay) == ["ready", "silent", "hung", "killed", "ended", "started"]
    assert watched.relay.restarts == 1
    assert watched.names(watched.beat) == ["ready"]


@pytest.mark.promise("up.hangs")
def test_nobody_is_ended_for_a_silence_that_is_not_his_own(watched: Watched) -> None:
    stopped(watched.relay)
    watched.now += 3600  # the supervisor was stopped itself, or the machine slept
    watched.supervisor.look()
    watched.pass_(200, servers_answer=False)
    asleep = watched.names(watched.relay), watched.names(watched.beat)
    stopped(watched.beat)
    watched.pass_(200)  # all at once: the disk takes nothing
    nobody = watched.names(watched.relay), watched.names(watched.beat)
    watched.supervisor._start = mute  # and one that begins anew cannot leave a sign either
    os.kill(watched.beat.pid or 0, signal.SIGKILL)
    assert eventually(lambda: watched.supervisor.look() and watched.beat.restarts > 0)
    watched.pass_(10)

    assert asleep == (["ready"], ["ready"])
    assert nobody == (["ready", "silent"], ["ready", "silent"])
    assert watched.names(watched.relay) == ["ready", "silent"]


@pytest.mark.promise("up.hangs")
def test_a_child_that_hangs_at_its_start_has_as_long_again(watched: Watched) -> None:
    stopped(watched.relay)
    (watched.relay.part.settings.health / f"relay-{watched.relay.pid}").unlink()
    watched.relay.state = State.STARTING
    watched.relay.ready_pid = 0
    watched.pass_(HUNG_SECONDS + 10, watched.beat)
    patient = watched.names(watched.relay)
    watched.pass_(60, watched.beat)

    assert patient == ["ready"]
    assert "hung" in watched.names(watched.relay)


def test_what_is_waited_for_is_what_processes_leave(tmp_path: Path) -> None:
    one = Part(name="x", called="", arguments=(), settings=settings(tmp_path), grace=0, rank=0, role="relay")
    before = one.sign(os.getpid())
    Pulse("relay", one.settings.health).beat()

    assert before == 0
    assert one.sign(os.getpid()) > 0


def test_a_signal_that_is_noted_interrupts_nothing_but_the_wait() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Signals.noted() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        signals.wait(3600)  # longer than any test may take
        signals.wait(0)

    assert sorted(signals.asked) == [signal.SIGINT, signal.SIGTERM]
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
    assert eventually(lambda: gone(int(said[0])))


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

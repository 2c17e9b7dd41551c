"""Signs of life: who turns is well, who hangs is not, who is gone is not missed; who hears nothing is found."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from worker import health
from worker.pulse import Deaf, Pulse
from worker.settings import Settings

GONE = 2**31 - 1
"""The id of a process that is not: no system counts so far, so that nobody is given it meanwhile."""


def left(where: Path, role: str, pid: int, seconds: float, now: float | None = None) -> Path:
    """A sign of life of so long ago."""
    file = where / f"{role}-{pid}"
    file.touch()
    os.utime(file, ((time.time() if now is None else now) - seconds,) * 2)
    return file


@pytest.mark.promise("health.loop")
def test_a_loop_that_turns_is_well_and_one_that_hangs_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    Pulse("relay", tmp_path / "new").beat()
    left(tmp_path, "beat", os.getpid(), 40, now)
    monkeypatch.setattr(health, "time", SimpleNamespace(time=lambda: now))

    assert health.judged(tmp_path / "new", "relay")[0]
    assert health.judged(tmp_path, "beat") == (
        False,
        [f"beat-{os.getpid()}: its main loop has not turned for 40 s"],
    )
    assert health.judged(tmp_path, "beat", 60)[0]


@pytest.mark.promise("health.loop")
def test_nobody_there_is_not_well(tmp_path: Path) -> None:
    left(tmp_path, "worker", GONE, 1)

    assert health.judged(tmp_path, "worker") == (False, [f"no worker has left a sign of life in {tmp_path}"])
    assert not health.judged(tmp_path / "nowhere")[0]


def test_who_ends_in_order_leaves_nothing_and_who_was_killed_is_cleared_away(tmp_path: Path) -> None:
    old, foreign = left(tmp_path, "relay", GONE, 1), tmp_path / "notes-1"
    foreign.touch()

    pulse = Pulse("worker", tmp_path)
    pulse.beat()
    pulse.end()

    assert not old.exists()
    assert list(tmp_path.iterdir()) == [foreign]


def test_a_place_that_cannot_be_written_to_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    pulse = Pulse("relay", tmp_path / "file")
    pulse.beat()
    pulse.end()

    assert not health.judged(tmp_path / "file", "relay")[0]


@pytest.mark.promise("health.progress")
def test_a_process_that_does_none_of_the_work_that_waits_leaves_no_sign(tmp_path: Path) -> None:
    Pulse("worker", tmp_path, stalled=lambda: True).beat()

    assert list(tmp_path.iterdir()) == []


Step = tuple[float, int, int, bool]
"""(clock, messages that wait, messages accepted so far, whether it is deaf)"""

HEARS: dict[str, list[Step]] = {
    "idle for long": [(0, 0, 0, False), (500, 0, 0, False)],
    "deaf": [(0, 3, 7, False), (60, 3, 7, False), (121, 4, 7, True)],
    "busy": [(0, 3, 7, False), (100, 3, 8, False), (200, 3, 9, False)],
    "deaf, then not": [(0, 3, 7, False), (121, 3, 7, True), (122, 3, 8, False)],
    "what waits is taken by others": [(0, 3, 7, False), (100, 0, 7, False), (200, 3, 7, False)],
}


@pytest.mark.promise("health.progress")
@pytest.mark.parametrize("steps", HEARS.values(), ids=HEARS.keys())
def test_a_worker_is_deaf_when_it_takes_nothing_of_what_waits(steps: list[Step]) -> None:
    current: Iterator[Step] = iter(steps)
    now: list[Step] = []
    deaf = Deaf(lambda: now[-1][1], lambda: now[-1][2], 120, clock=lambda: now[-1][0])

    for step in current:
        now.append(step)
        assert deaf() is step[3], step


def test_probes_and_processes_agree_on_the_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    for given in ({}, {"data_dir": "~/data"}, {"data_dir": "x", "health_dir": str(tmp_path)}):
        environment = {f"FOREWORD_{name.upper()}": value for name, value in given.items()}

        assert health.directory(environment) == Settings.model_validate(given).health


@pytest.mark.parametrize(
    ("arguments", "quick"),
    [
        (["health"], True),
        (["health", "--role", "relay"], True),
        (["health", "--role", "system"], False),
        (["health", "--help"], False),
        (["health", "--role", "relais"], False),
        (["projects"], False),
        ([], False),
    ],
)
def test_only_what_a_probe_asks_is_answered_without_the_command_line(
    *, arguments: list[str], quick: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = health.quick(arguments, {"FOREWORD_HEALTH_DIR": str(tmp_path)})

    assert answer == (1 if quick else None)
    assert bool(capsys.readouterr().err) is quick


@pytest.mark.promise("health.cheap")
def test_a_probe_loads_nothing_but_the_standard_library(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom worker import health\n"
        "health.quick(['health'], {'FOREWORD_HEALTH_DIR': sys.argv[1]})\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names))"
    )
    bare = [sys.executable, "-S", "-E", "-c", code, str(tmp_path)]
    done = subprocess.run(bare, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "['__main__', 'worker']" or done.stdout.strip() == "['worker']"

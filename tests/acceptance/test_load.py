"""A short slice of the load (``make load`` is the whole): a small account against the real system, edited and read
while its processes are restarted in turn, with briefs due meanwhile; then silence, and an audit of every bundle.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import Commands

from benchmarks.load.report import BOUND_SECONDS, outcome, show
from benchmarks.load.run import Options, run
from benchmarks.load.system import running


@pytest.fixture
def home(commands: Commands) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="load-", dir=commands.home) as directory:
        yield Path(directory)


@pytest.mark.timeout(300)
@pytest.mark.promise("upgrade.rolling")
def test_each_process_restarted_in_turn_under_load_loses_nothing_and_nobody_waits_for_long(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    restarted = ("edits", "relay", "briefs")
    options = Options(
        home=home, seed=3, seconds=8, projects=40, users=30, edits=15, reads=20, restart=restarted, ramp=False
    )

    with running(home, "--no-flower") as system:
        found = outcome(run(options, system))

    assert found.wrong == []
    assert set(found.restarts) == set(restarted)
    assert found.restarting_lag.number > 50
    assert found.lag.worst < BOUND_SECONDS
    assert found.briefs_told == found.briefs_due == 30
    assert found.audit["same"] >= 36
    show(found)
    assert "everything held" in capsys.readouterr().out

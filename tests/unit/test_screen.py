"""What is piped: progress, how far and how much longer; tables without filling."""

import time
from collections.abc import Iterator

import pytest

from worker.screen import bar, console, table


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still; the last entry is the time."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[-1])
    return now


def said(capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    return iter(capsys.readouterr().err.splitlines())


@pytest.mark.promise("cli.progress")
def test_a_sweep_says_how_much_longer_it_takes(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with bar("rebuilding", 1000) as advance:
        for second in range(1000):
            clock.append(second + 1.0)
            advance(1)

    lines = list(said(capsys))
    assert lines[:3] == [
        "rebuilding: 6 %, about 0:15:40 left",
        "rebuilding: 10 %, about 0:15:00 left",
        "rebuilding: 16 %, about 0:14:00 left",
    ]
    assert lines[-1] == "rebuilding: 100 %"
    assert len(lines) == 20


@pytest.mark.promise("cli.progress")
def test_what_is_quick_says_its_tenths_only(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with bar("importing", 5) as advance:
        for _ in range(5):
            advance(1)

    assert list(said(capsys)) == [f"importing: {percent} %" for percent in (20, 40, 60, 80, 100)]


def test_piped_lines_end_where_their_words_do_and_are_never_folded(capsys: pytest.CaptureFixture[str]) -> None:
    long = "much " * 100
    console().print(table(("name", "says"), [("a", "x"), ("bb", long), ("c", None)]))

    lines = capsys.readouterr().out.splitlines()
    assert lines == [" name  says", " a     x", f" bb    {long.rstrip()}", " c"]

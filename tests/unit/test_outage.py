"""An outage in few words: how many lines it takes, and that its end is said."""

import pytest

from worker import events
from worker.outage import Outage


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def lines(outage: Outage, clock: Clock, seconds: int) -> list[tuple[int, int]]:
    """(when, how often it had failed since the line before), failing once a second."""
    found = []
    for _ in range(seconds):
        if times := outage.failed(OSError()):
            found.append((int(clock.now), times))
        clock.now += 1
    return found


@pytest.mark.promise("events.outage")
def test_an_outage_is_said_when_it_begins_and_then_less_and_less_often() -> None:
    clock = Clock()

    found = lines(Outage("relay", clock), clock, 300)

    assert found == [(0, 1), (10, 10), (40, 30), (100, 60), (220, 120)]


@pytest.mark.promise("events.outage")
def test_it_is_over_when_it_went_well_for_a_while_and_the_next_one_is_another(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(events._now, "least", 0)
    clock = Clock()
    outage = Outage("relay", clock)
    outage.went()
    lines(outage, clock, 5)
    outage.went()
    clock.now += 1
    flickers = outage.failed(OSError())
    clock.now += 4
    outage.went()
    early = capfd.readouterr().err
    clock.now += 3
    outage.went()
    outage.went()

    said = capfd.readouterr().err
    assert (flickers, early) == (0, "")
    assert said.count("goes_on") == 1
    assert all(words in said for words in ("relay", "6.0", "6"))
    assert outage.failed(OSError()) == 1


@pytest.mark.promise("events.outage")
def test_another_kind_of_error_is_said_at_once_and_only_once() -> None:
    clock = Clock()
    outage = Outage("relay", clock)
    lines(outage, clock, 12)

    said = [outage.failed(error) for error in (OSError(), ValueError(), OSError(), ValueError())]

    assert said == [0, 3, 0, 0]


@pytest.mark.promise("events.outage")
def test_an_outage_lasts_until_its_last_failure_whenever_it_is_known_to_be_over(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(events._now, "least", 0)
    clock = Clock()
    outage = Outage("dispatcher", clock)
    lines(outage, clock, 3)
    clock.now += 259_200  # days in which another relay led
    outage.went()
    clock.now += 3
    outage.went()

    said = capfd.readouterr().err
    assert "2.0" in said
    assert "2592" not in said

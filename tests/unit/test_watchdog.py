"""When a process is taken for one that hangs, by a clock of the test's."""

from pathlib import Path

import pytest

from worker.app import create_app
from worker.beating import beating_scheduler
from worker.settings import from_environment
from worker.watchdog import GAP_SECONDS, HUNG_SECONDS, LOOK_SECONDS, ODD_SECONDS, Watchdog
from worker.wiring import Services


class Loop:
    """A main loop, the servers that it waits for, and the time."""

    def __init__(self) -> None:
        self.turned, self.now, self.served = 0.0, 1000.0, True
        self.dog = Watchdog(lambda: self.turned, lambda: self.served, lambda: self.now)

    def hangs_within(self, seconds: float, *, turns: bool = False) -> bool:
        """Whether any look within so many seconds says so."""
        for _ in range(int(seconds / LOOK_SECONDS)):
            self.now += LOOK_SECONDS
            self.turned += turns
            if self.dog.hangs():
                return True
        return False


@pytest.mark.promise("health.watchdog")
def test_a_loop_that_turns_does_not_hang_and_one_that_stops_does() -> None:
    loop = Loop()

    assert not loop.hangs_within(10 * HUNG_SECONDS, turns=True)
    assert not loop.hangs_within(HUNG_SECONDS - LOOK_SECONDS)
    assert loop.hangs_within(LOOK_SECONDS)


@pytest.mark.promise("health.watchdog")
def test_one_that_never_turned_hangs_too() -> None:
    assert Loop().hangs_within(HUNG_SECONDS)


@pytest.mark.promise("health.watchdog")
@pytest.mark.parametrize("outage", [ODD_SECONDS, HUNG_SECONDS - LOOK_SECONDS, 10 * HUNG_SECONDS])
def test_who_waits_for_a_server_does_not_hang_and_has_time_from_its_return(outage: float) -> None:
    loop = Loop()
    loop.served = False
    assert not loop.hangs_within(outage)

    loop.served = True

    assert not loop.hangs_within(HUNG_SECONDS - ODD_SECONDS - LOOK_SECONDS)
    assert loop.hangs_within(ODD_SECONDS + LOOK_SECONDS)


@pytest.mark.promise("health.watchdog")
def test_who_stood_still_altogether_has_not_been_silent_for_as_long() -> None:
    loop = Loop()
    loop.now += 3600

    assert not loop.dog.hangs()
    assert loop.dog.silence == GAP_SECONDS


@pytest.mark.promise("health.watchdog")
def test_a_beat_that_nobody_takes_a_tick_of_waits_and_does_not_hang(tmp_path: Path) -> None:
    nowhere = "redis://127.0.0.1:1/0"
    settings = from_environment({"FOREWORD_DATA_DIR": str(tmp_path)})
    found = Services(database_url="", redis_url=nowhere, broker_url=nowhere)
    rounds: list[None] = []
    kind, pulse = beating_scheduler(settings, found, lambda: rounds.append(None))
    scheduler = kind(app=create_app(settings, found), lazy=True)
    scheduler.setup_schedule()

    scheduler.tick()
    first = pulse.waited
    for entry in scheduler.schedule.values():
        scheduler.apply_entry(entry)

    assert (rounds, first) == ([None], 0.0)
    assert (pulse.turned, pulse.waited > 0) == (0.0, True)

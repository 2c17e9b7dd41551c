"""When a process is taken for one that hangs, by a clock of the test's."""

import pytest

from worker.watchdog import GAP_SECONDS, HUNG_SECONDS, LOOK_SECONDS, ODD_SECONDS, Watchdog


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

"""A short slice of the storm (``make storm`` is the whole): all briefs are due within seconds, over two beats,
two relays and two workers, while processes are killed and messages come twice or never.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from acceptance.system import System
from storm.harness import run
from storm.people import NOTHING, READY, SKIPPED, Circle
from storm.strikes import KILLED, plan
from storm.world import Options

from foreword.zones import zone_named

SEED = 4


@pytest.fixture
def options(bytecode: Path) -> Iterator[Options]:
    home = Path(tempfile.mkdtemp(prefix="fw-s-", dir="/tmp"))
    yield Options(
        seed=SEED,
        subscriptions=250,
        seconds=6,
        lead=4,
        calm=2,
        projects=16,
        kills=len(KILLED),
        doubled=60,
        purges=2,
        sample=40,
        home=home,
        bytecode=str(bytecode),
    )
    with suppress(OSError):
        home.rmdir()  # a run that was violated stays


@pytest.mark.timeout(600)
@pytest.mark.promise("brief.storm")
def test_whoever_dies_everybody_has_one_brief_a_date_told_once_and_not_before_it_is_due(
    options: Options, system: System
) -> None:
    outcome = run(options, system.services)

    assert outcome.violations == []
    assert outcome.briefs > 200
    assert outcome.struck["double"] * outcome.struck["purge"] > 0
    assert sum(outcome.struck[name] for name in outcome.struck if name in KILLED) >= 5
    assert min(outcome.late.number, outcome.edits.number) > 5


# ---- the storm itself


def test_a_seed_gives_the_same_people_and_the_same_strikes() -> None:
    begin = datetime(2026, 11, 22, 9, tzinfo=UTC)

    def people(seed: int) -> list[object]:
        return [*Circle.of(seed, 20).people(100, begin, 60)]

    assert people(SEED) == people(SEED)
    assert people(SEED) != people(SEED + 1)
    assert plan(SEED, 60, 9, 50, 3) == plan(SEED, 60, 9, 50, 3)
    assert plan(SEED, 60, 9, 50, 3) != plan(SEED + 1, 60, 9, 50, 3)
    assert {strike.what for strike in plan(SEED, 60, 8, 10, 1)} == {*KILLED, "double", "purge"}


def test_everybody_is_due_within_the_window_at_home_and_some_are_not_to_be_written_to() -> None:
    begin, seconds = datetime(2026, 11, 22, 9, tzinfo=UTC), 60.0

    people = [*Circle.of(SEED, 50).people(1000, begin, seconds)]

    states = Counter(person.becomes for person in people)
    assert min(states[READY], states[SKIPPED], states[NOTHING]) > 10
    assert len({person.zone for person in people}) > 100
    for person in people:
        local = person.due.astimezone(zone_named(person.zone))
        assert (local.date(), local.time()) == (person.day, person.at)
        if person.becomes:
            assert begin <= person.due <= begin + timedelta(seconds=seconds)

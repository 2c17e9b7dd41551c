"""What ``up`` finds out from the side: servers that answer and take nothing, and when projects are news."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import pytest
import redis

from loaders.glance import Glance, Worst
from worker import wiring
from worker.lookout import Lookout
from worker.settings import Settings
from worker.supervisor import Event
from worker.wiring import Services

NOWHERE = Services(database_url="", redis_url="", broker_url="")


@contextmanager
def full(client: "redis.Redis") -> Iterator[None]:
    client.config_set("maxmemory", 1)
    try:
        yield
    finally:
        client.config_set("maxmemory", 0)


@pytest.mark.promise("up.hangs")
def test_a_redis_that_takes_nothing_is_not_taken_for_one_that_answers(redis_client: "redis.Redis") -> None:
    before = wiring.takes(redis_client)
    with full(redis_client):
        pinged, takes = redis_client.ping(), wiring.takes(redis_client)

    assert (before, pinged, takes) == (True, True, False)


def said(*looks: tuple[int, int]) -> list[str]:
    """What is said while so many projects (fail, are parked)."""
    told: list[Event] = []
    one = Lookout(Settings(), NOWHERE, cast("Any", None), [], {}, told.append)
    for failing, parked in looks:
        one._note_projects(glance(failing, parked))
    return [each.text.splitlines()[0].partition(";")[0] for each in told]


def glance(failing: int, parked: int) -> Glance:
    return Glance(
        dirty=0,
        building=0,
        parked=parked,
        failing=failing,
        worst=Worst(handle="PRJ1", attempts=2, error="why") if failing or parked else None,
        briefs_pending=0,
        briefs_generating=0,
        paused=0,
    )


OVER = "no project fails any more"


@pytest.mark.promise("up.names-failing")
@pytest.mark.parametrize(
    ("looks", "says"),
    [
        ([(0, 0), (0, 0)], []),
        ([(1, 0), (1, 0), (0, 0), (0, 0)], ["projects failing, tried again: 1", OVER]),
        ([(1, 0), (0, 1), (0, 1)], ["projects failing, tried again: 1", "parked: 1"]),
        ([(0, 1), (1, 1), (0, 1), (1, 1)], ["parked: 1", "projects failing, tried again: 1, parked: 1"]),
        ([(0, 1), (500, 1)], ["parked: 1", "projects failing, tried again: 500, parked: 1"]),
        ([(4, 0), (7, 0), (8, 0)], ["projects failing, tried again: 4", "projects failing, tried again: 8"]),
    ],
)
def test_projects_are_news_when_twice_as_many_fail_or_are_given_up(
    looks: Sequence[tuple[int, int]], says: list[str]
) -> None:
    assert said(*looks) == says

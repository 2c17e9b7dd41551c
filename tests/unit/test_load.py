"""The judgements of a load: what grows, what bound, and that whatever should not have been is said."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from strategies import uid

from benchmarks.load.account import LARGEST, SMALLEST, Account, size, skewed
from benchmarks.load.judge import MIB, Step, bound, growth, lives, slope
from benchmarks.load.people import Followed, Seen
from benchmarks.load.report import outcome, stored_growths
from benchmarks.load.run import Options, Record
from benchmarks.load.stock import BROKER, OTHER, Stock, kind_of
from benchmarks.load.watch import Process, Sample, recycled
from benchmarks.spread import Spread
from foreword import keys

SECONDS, SAMPLES = 1800.0, 180


def series(of: Callable[[float], float]) -> list[tuple[float, float]]:
    """Of a run; the function's argument goes from 0 to 1."""
    return [(SECONDS * n / SAMPLES, of(n / SAMPLES)) for n in range(SAMPLES)]


def noisy(of: Callable[[float], float]) -> list[tuple[float, float]]:
    dice = random.Random(1)
    return [(at, value + dice.gauss(0, MIB)) for at, value in series(of)]


HELD: dict[str, Callable[[float], float]] = {
    "level": lambda _: 80 * MIB,
    "warms up in the first half": lambda at: 80 * MIB + min(at, 0.4) * 500 * MIB,
    "a sawtooth": lambda at: 80 * MIB + (at * 24 % 1) * 20 * MIB,
    "rises by less than a tenth": lambda at: 400 * MIB + at * 60 * MIB,
    "a spike": lambda at: (900 if 0.8 < at < 0.82 else 80) * MIB,
    "falls": lambda at: (200 - 100 * at) * MIB,
}


@pytest.mark.parametrize("name", HELD)
def test_what_stays_within_bounds_does_not_grow(name: str) -> None:
    assert growth("memory", name, noisy(HELD[name])) is None


@pytest.mark.parametrize("leak", [20, 40, 200])
def test_what_goes_on_rising_grows(leak: int) -> None:
    found = growth("memory", "a process", noisy(lambda at: 80 * MIB + at * leak * MIB))

    assert found is not None
    assert found.end - found.begin == pytest.approx(leak * MIB / 2, rel=0.1)


def test_a_leak_of_a_connection_every_few_minutes_is_found() -> None:
    assert growth("connections", "postgresql", series(lambda at: 10 + at * 12 // 1)) is not None
    assert growth("connections", "postgresql", series(lambda at: 10 + (at > 0.7) * 3)) is None


def test_who_lived_too_shortly_is_not_judged() -> None:
    assert growth("memory", "a child", [(n, n * 100 * MIB) for n in range(100)]) is None


def test_a_slope_is_that_of_the_line() -> None:
    assert slope([(n, 3.0 * n + 1) for n in range(20)]) == pytest.approx(3.0)
    assert slope([]) == 0.0


def test_a_spread_is_of_the_values_themselves() -> None:
    found = Spread.of([0.5, *(n / 100 for n in range(100, 200))])

    assert (found.number, found.worst) == (101, 1.99)
    assert (found.p50, found.p95, found.p99) == (1.49, 1.94, 1.98)
    assert Spread.of([]) == Spread(number=0)


# ---- what bound


def step(**changes: Any) -> Step:
    """One that holds."""
    whole: dict[str, Any] = {
        "asked": 100.0,
        "done": 100.0,
        "p50": 0.1,
        "p99": 0.5,
        "behind": 10,
        "cores": {"edits": 0.5, "relay": 0.3},
        "others": 0.0,
        "of": 2,
        "busiest": ("edits (process 7)", 0.4),
    }
    return Step(**(whole | changes))


def test_a_step_holds_where_everything_was_done_and_little_is_behind() -> None:
    assert step().holds
    assert not step(done=80.0).holds
    assert not step(behind=250).holds


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cores": {"edits": 1.2, "postgresql": 0.7}}, "the machine's processors: 1.90 of 2 cores were busy"),
        (
            {"others": 1.1},
            "the machine's processors: 1.90 of 2 cores were busy, of them what is none of ours 1.10",
        ),
        ({"busiest": ("relay (process 9, main)", 0.93)}, "one process, relay (process 9, main): 0.93 of its core"),
        ({}, "waiting: 0.80 of 2 cores were busy"),
    ],
)
def test_what_bound_is_named(changes: dict[str, Any], says: str) -> None:
    assert bound(step(**changes)).startswith(says)


# ---- children, whose lives are short


def lived(number: int, of: Callable[[float], float]) -> list[list[tuple[float, float]]]:
    """(age, bytes) of lives that were looked at four times each, some of them of half as many seconds."""
    dice = random.Random(1)
    found = []
    for life in range(number):
        seconds = LIFE if life % 2 else LIFE / 2
        shares = sorted(dice.random() for _ in range(4))
        found.append([(seconds * share, of(share) + dice.gauss(0, MIB)) for share in [*shares, 1.0]])
    return found


def test_children_that_warm_up_do_not_grow() -> None:
    found = lives("edits", lived(50, lambda share: (30 + 20 * min(share, 0.4)) * MIB))

    assert not found.grows
    assert found.number == 50
    assert LIFE / 2 <= found.seconds <= LIFE


@pytest.mark.parametrize("leak", [20, 40])
def test_a_leak_that_recycling_hides_is_found(leak: int) -> None:
    found = lives("edits", lived(50, lambda share: (30 + leak * share) * MIB))

    assert found.grows
    assert found.grew == pytest.approx(leak * MIB / 2, rel=0.15)


def test_of_few_lives_nothing_is_known() -> None:
    assert not lives("edits", lived(4, lambda share: (30 + 100 * share) * MIB)).grows
    assert not lives("edits", []).grows


def test_only_children_that_their_worker_has_replaced_have_lived_a_life() -> None:
    families = [
        (process(1, 1), process(5, 2, age=1, main=False)),
        (process(1, 1), process(6, 2, age=2, main=False)),
        (process(1, 1),),  # 2 has ended
        (process(1, 1), process(7, 3, age=1, main=False)),  # and has a successor
        (process(1, 1),),  # 3 ends, and its worker
        (process(1, 4), process(8, 5, age=1, main=False)),
        (process(1, 4), process(9, 5, age=2, main=False)),  # 5 lives
    ]
    found = [
        replace(sample, processes={"edits": family})
        for sample, family in zip(samples(LEVEL), families, strict=False)
    ]

    assert recycled(found, "edits") == [[(1, 5.0), (2, 6.0)]]


# ---- Redis


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (keys.project(uid("p")), "bundles"),
        (keys.changes(uid("p")), "differences"),
        (keys.focus(uid("p"), "T12"), "focus bundles"),
        (keys.brief(uid("u"), "2026-11-22"), "briefs"),
        (keys.brief(uid("u")), "briefs"),
        (keys.projects_of(uid("u")), "overviews"),
        (keys.told("e"), "announcements"),
        (keys.READY, "announcements"),
        (keys.MARKER, OTHER),
        (keys.previous(keys.project(uid("p"))), OTHER),
        ("edits", BROKER),
        ("_kombu.binding.edits", BROKER),
    ],
)
def test_every_key_is_of_a_kind(key: str, kind: str) -> None:
    assert kind_of(key) == kind


def test_what_people_make_may_grow_in_redis() -> None:
    assert [*stored_growths(stocks())] == []


# ---- the account


def test_sizes_are_mixed_and_within_bounds() -> None:
    dice = random.Random(1)
    sizes = sorted(size(dice) for _ in range(5000))

    assert SMALLEST <= sizes[0] < 10
    assert 30 < sizes[2500] < 50
    assert 500 < sizes[-10] <= LARGEST


def test_the_hottest_project_gets_a_large_part_of_the_edits() -> None:
    weights = skewed(3000)

    assert weights[0] / weights[-1] == pytest.approx(0.17, abs=0.03)


def test_a_seed_gives_the_same_account() -> None:
    assert Account.of(1, 50, 20) == Account.of(1, 50, 20)
    assert Account.of(1, 50, 20) != Account.of(2, 50, 20)


# ---- what should not have been


def process(unique: float, pid: int = 7, *, age: float = 0.0, main: bool = True) -> Process:
    return Process(pid=pid, main=main, age=age, unique=int(unique), share=int(unique), files=20, cpu=1.0)


def samples(
    memory: Sequence[tuple[float, float]], sessions: Callable[[float], float] = lambda _: 9
) -> list[Sample]:
    return [
        Sample(
            at=at,
            machine=at,
            processes={"relay": (process(unique),)},
            waits={"lag": 0.0},
            connections={"postgresql": int(sessions(at / SECONDS)), "redis": 40},
            stored=MIB,
        )
        for at, unique in memory
    ]


LEVEL = series(HELD["level"])

LIFE = 60.0
"""Seconds after which a worker replaces a child."""


def workers(of: Callable[[float], float]) -> list[Sample]:
    """A worker that recycles its one child; the function's argument is the share of its life."""
    return [
        replace(
            sample,
            processes={
                "edits": (
                    process(80 * MIB),
                    process(of(at % LIFE / LIFE), 8 + int(at // LIFE), age=at % LIFE, main=False),
                )
            },
        )
        for sample, at in ((sample, sample.at) for sample in samples(LEVEL))
    ]


def stocks(**changes: Callable[[float], float]) -> list[tuple[float, Stock]]:
    """What stands in Redis; ``changes`` are bytes of a kind, or ``endless`` or ``beside``."""
    of: dict[str, Callable[[float], float]] = {
        "bundles": lambda at: (40 + 100 * at) * MIB,
        "differences": lambda at: 500 * at * MIB,
        "broker": lambda at: (2 + at * 40 % 3) * 2**10,
        "other": lambda _: 4000,
        "endless": lambda at: 1500 + at * 7 % 3,
        "beside": lambda at: (2 + at) * MIB,
    } | changes
    return [
        (
            SECONDS * n / 30,
            Stock(
                numbers=dict.fromkeys(of.keys() - {"endless", "beside"}, 10),
                bytes={kind: of[kind](n / 30) for kind in of.keys() - {"endless", "beside"}},
                endless=int(of["endless"](n / 30)),
                beside=of["beside"](n / 30),
            ),
        )
        for n in range(30)
    ]


def record(**changes: Any) -> Record:
    """A run in which everything held."""
    options = Options(home=Path("/nowhere"), seed=1, seconds=SECONDS, projects=10, users=2, edits=1, reads=1)
    edits = [Followed("p", f"t{n}", float(n), 0.1) for n in range(100)]
    whole: dict[str, Any] = {
        "options": options,
        "began": 0.0,
        "ended": SECONDS,
        "seen": Seen(edits=edits, took=[(1.0, 0.01)] * 100),
        "samples": samples(LEVEL),
        "stocks": stocks(),
        "restarts": {"relay": 2.0},
        "due": 2,
        "told": 2,
        "late": [0.1, 0.2],
        "drained": 1.0,
        "audit": {"same": 10, "different": 0, "missing": 0, "skipped": 0},
        "live": 10,
    }
    return Record(**(whole | changes))


def test_a_run_in_which_everything_held_has_nothing_wrong() -> None:
    assert outcome(record()).wrong == []


def lost() -> Seen:
    return Seen(edits=[Followed("p", "t", 1.0, 0.1), Followed("q", "u", 2.0)], took=[(1.0, 0.01)] * 2)


WRONG: dict[str, dict[str, Any]] = {
    "1 edits never became readable": {"seen": lost()},
    "an edit took 31.0 s": {"seen": Seen(edits=[Followed("p", "t", 1.0, 31.0)], took=[(1.0, 0.01)])},
    "nothing was edited": {"seen": Seen()},
    "things still waited": {"drained": None},
    "1 briefs were told of 2": {"told": 1},
    "a brief was told 500 s after": {"late": [500.0, 0.1]},
    "chat 1: NotAMember": {
        "seen": Seen(edits=record().seen.edits, took=[(1.0, 0.1)] * 100, failures=["chat 1: NotAMember"])
    },
    "not planned: the relay": {"died": ["the relay was ended by SIGKILL"]},
    f"nobody looked at the processes for {SECONDS:.0f} s": {"samples": ()},
    f"nobody looked at Redis for {SECONDS:.0f} s": {"stocks": ()},
    "the audit found 1 bundles different": {"audit": {"same": 9, "different": 1, "missing": 0}},
    "the audit found 0 bundles different, 2 missing": {"audit": {"same": 9, "different": 0, "missing": 2}},
    "only 3 of 10 bundles": {"audit": {"same": 3, "different": 0, "missing": 0}},
    "memory of relay": {"samples": samples(series(lambda at: (80 + 60 * at) * MIB))},
    "connections of postgresql": {"samples": samples(LEVEL, lambda at: 9 + 20 * at)},
    "memory of children of edits grew by 10.0 MiB": {"samples": workers(lambda at: (60 + 24 * at) * MIB)},
    "KiB of broker keys in Redis": {"stocks": stocks(broker=lambda at: (4 + 1000 * at) * 2**10)},
    "KiB of other keys in Redis": {"stocks": stocks(other=lambda at: 4000 + MIB * at)},
    "keys of Redis that never expire": {"stocks": stocks(endless=lambda at: 200 + 100 * at)},
    "MiB of Redis beside its keys": {"stocks": stocks(beside=lambda at: (2 + 40 * at) * MIB)},
}


@pytest.mark.parametrize("says", WRONG)
def test_whatever_should_not_have_been_is_said(says: str) -> None:
    (found,) = outcome(record(**WRONG[says])).wrong

    assert found.startswith(says)

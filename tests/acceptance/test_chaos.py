"""A short slice of the torture test (``make chaos`` is the whole), and what it hits by chance, brought about on
purpose. What is asserted of time is the bound that the torture test states.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from chaos.check import BOUND_SECONDS, quiescent_after
from chaos.edits import OPERATIONS, transactions
from chaos.faults import FAULTS, plan
from chaos.harness import await_first_bundles, run
from chaos.journal import visible
from chaos.people import Population
from chaos.provoke import POISON, broker_restarted_in_flight, ids_given_again, killed_in_the_middle, poisoned
from chaos.world import Options, World, made, peopled

from foreword import keys
from foreword.freshness import contains
from foreword.stamp import Stamp
from tasks.audit import difference

SEED, SECONDS = 6, 10.0


@pytest.fixture
def options(bytecode: Path) -> Iterator[Options]:
    home = Path(tempfile.mkdtemp(prefix="fw-c-", dir="/tmp"))  # short, for sockets
    yield Options(seed=SEED, seconds=SECONDS, projects=10, home=home, bytecode=str(bytecode))
    with suppress(OSError):
        home.rmdir()  # a run that was violated stays


@contextmanager
def running(options: Options) -> Iterator[World]:
    """A world with every project built once."""
    with made(options) as world, peopled(world):
        world.unwanted = True
        await_first_bundles(world)
        yield world


@pytest.mark.timeout(600)
@pytest.mark.promise("fresh.chaos")
def test_whatever_dies_every_edit_arrives_and_nothing_old_is_called_fresh(options: Options) -> None:
    outcome = run(options)

    assert outcome.violations == []
    assert outcome.quiescent_after is not None
    assert outcome.quiescent_after < BOUND_SECONDS
    assert sum(outcome.faults.values()) >= 5
    assert min(outcome.edits, outcome.builds, outcome.judged, outcome.demands["answered"]) >= 10


@pytest.mark.timeout(600)
@pytest.mark.promise("fresh.chaos", "fresh.lost-messages")
def test_edits_arrive_and_are_not_promised_before_whatever_dies_in_their_build(
    options: Options,
) -> None:
    with running(options) as world:
        killed = killed_in_the_middle(world)
        restarted = broker_restarted_in_flight(world)
        again = ids_given_again(world)
        quiet, troubles = quiescent_after(world, since=world.journal.clock())

    assert None not in [*killed, *restarted]
    assert [told for told in again if told[0] == "fresh" and told[1] != told[2]] == []
    assert troubles == {}
    assert quiet is not None


@pytest.mark.timeout(600)
@pytest.mark.promise("fresh.chaos", "fresh.parked")
def test_a_project_that_kills_its_builders_is_parked_and_others_go_on(options: Options) -> None:
    with running(replace(options, sabotage=POISON)) as world:
        parked, seconds = poisoned(world)

    assert parked == [world.people.projects[0].id]
    assert None not in seconds


# ---- the torture test itself


def test_a_seed_gives_the_same_faults_and_the_same_edits() -> None:
    people = Population.of(SEED, 5)

    def drawn(editor: str) -> list[str]:
        script = transactions(SEED, editor, people, 10.0)
        return [repr(next(script)) for _ in range(50)]

    assert plan(SEED, 60) == plan(SEED, 60)
    assert plan(SEED, 60) != plan(SEED + 1, 60)
    assert drawn("editor-0") == drawn("editor-0")
    assert drawn("editor-0") != drawn("editor-1")


def test_every_fault_and_every_operation_is_drawn_sooner_or_later() -> None:
    script = transactions(SEED, "editor-0", Population.of(SEED, 5), 10.0)

    drawn = {step.operation for _ in range(4000) for step in next(script).steps}

    assert drawn == {operation.name for operation in OPERATIONS}
    assert {planned.fault.name for planned in plan(SEED, 3600)} == {fault.name for fault in FAULTS}


@pytest.mark.parametrize(
    ("snapshot", "transaction"), [("5:9:6,8", n) for n in range(3, 12)] + [("5:5:", 4), ("5:5:", 5), ("5:5:", 6)]
)
def test_the_harness_and_the_product_read_snapshots_alike(snapshot: str, transaction: int) -> None:
    assert visible(snapshot, transaction) is contains(1, snapshot, f"1:{transaction}")


def test_a_bundle_that_differs_in_one_byte_is_found() -> None:
    line = Stamp(epoch=1, generation=1, snapshot="1:1:").line().encode()
    fields = {keys.META: line, keys.TEXT: line + b"text", keys.DATA: b"{}", "m:someone": b"viewer"}

    assert difference(fields, {**fields, keys.META: b"", keys.TEXT: b"\ntext"}) == ""
    assert "text differs" in difference(fields, {**fields, keys.TEXT: b"\ntext."})
    assert "m:someone differs" in difference(fields, {k: v for k, v in fields.items() if k != "m:someone"})
    assert "is readable" in difference(fields, None)
    assert "is missing" in difference({}, fields)

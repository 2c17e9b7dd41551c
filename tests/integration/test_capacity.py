"""Measuring costs works on real servers: everything, little of each."""

import tempfile
from pathlib import Path

import pytest

from benchmarks.capacity.costs import ENTITIES, load, save
from benchmarks.capacity.measure import Effort, measure
from benchmarks.capacity.model import Account, size
from worker.servers import embedded

LITTLE = Effort(
    sizes=(20, ENTITIES),
    accounts=(1,),
    seconds=0.05,
    ledgers=(100, 200),
    dirty=(0, 16),
    rest=0.5,
    load=1.0,
    rate=10.0,
    projects=4,
)


@pytest.mark.promise("capacity.measured")
def test_costs_are_measured_and_sized_by(tmp_path: Path, encoding: None) -> None:
    # Servers of its own: it leaves a ledger of projects that nobody wants.
    with tempfile.TemporaryDirectory(prefix="fw-test-") as home, embedded(Path(home)) as servers:
        measured = measure(servers, LITTLE)
    save(measured, tmp_path / "costs.json")
    found = size(load(tmp_path / "costs.json"), Account())

    assert [each.entities for each in measured.rebuilds] == [20, ENTITIES]
    assert all(each.cpu.python > 0 and each.cpu.postgres > 0 and each.redis > 0 for each in measured.rebuilds)
    assert {each.role for each in measured.processes} >= {"relay", "worker", "worker's child", "beat"}
    assert min(measured.edit.logged_wal, measured.edit.plain_wal) > 0
    assert measured.build.total > 0
    assert all(value >= 0 for value in (*found.cores.values(), *found.cache.values(), *found.storage.values()))

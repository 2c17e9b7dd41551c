"""``make bench``: every question on one pair of servers, in one run.

make bench ARGS="--entities 100 1000 --repeat 40"
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

import redis

from benchmarks import brief, freshness, reading
from benchmarks.rebuild import Measured, measure_apart, yardstick
from benchmarks.synthetic import create_project
from loaders.connection import connect
from loaders.migrate import migrate
from worker.screen import console, heading, table
from worker.servers import Addresses, embedded

AIMS = {100: 3.0, 1000: 1.75, 10_000: 1.35, 100_000: 1.4}
"""Rebuild to raw fetch, loading everything."""

YARDSTICK_AIM = 1.3
"""Our rebuild to the yardstick's, from 1,000 entities up."""

_STAGES = ("load", "select", "handles", "render", "publish")
_FULL = ("entities", "raw ms", *_STAGES, "total ms", "ratio", "aim", "peak MiB")
_COMPARED = ("entities", "ours ms", "yardstick ms", "ours/yardstick", "aim", "its ratio to raw")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--entities", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--repeat", type=int, default=25)
    parser.add_argument("--only", choices=["building", "briefs", "freshness"], help="one part of the questions")
    parser.add_argument("--edits", type=int, default=200, help="edits whose way is followed")
    asked = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="fw-bench-"))
    try:
        with embedded(home) as servers:
            migrate(servers.database_url)
            if asked.only in {None, "building"}:
                _run(servers, asked.entities, asked.repeat)
            if asked.only in {None, "briefs"}:
                _run_briefs(servers)
            if asked.only in {None, "freshness"}:
                _run_freshness(servers, asked.edits)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _run(servers: Addresses, sizes: list[int], repeat: int) -> None:
    rows, comparisons = [], []
    project = ""
    for entities in sizes:
        with connect(servers.database_url) as connection:
            project = create_project(connection, entities)
        rounds = max(repeat * 1000 // max(entities, 1000), 7)
        floor = yardstick(servers.database_url, servers.redis_url, project, rounds)
        ours = measure_apart(servers.database_url, servers.redis_url, project, entities, rounds)
        rows.append(_row(ours))
        if floor is not None:
            comparisons.append(_comparison(ours, floor))
    screen = console()
    heading("full rebuild against the raw fetch of the same rows")
    screen.print(table(_FULL, rows, right=_FULL))
    if comparisons:
        heading("against the yardstick, mode full")
        screen.print(table(_COMPARED, comparisons, right=_COMPARED))
    with redis.Redis.from_url(servers.redis_url) as client:
        found = reading.ratios(client, project)
    read = tuple(found)
    heading("reading, against a GET of the same bytes")
    screen.print(table(read, [[f"{v:.2f}" for v in found.values()]], right=read))


_BRIEFS = ("projects", "tasks", "brief ms", "a project's share/alone", "brief/bundles")


def _run_briefs(servers: Addresses) -> None:
    with connect(servers.database_url) as connection:
        found = brief.costs(connection)
    heading("briefs without loading: what a project takes, and the bundles of the same projects")
    rows = [(x.projects, x.tasks, f"{x.brief:.1f}", f"{x.per_project:.2f}", f"{x.to_bundles:.2f}") for x in found]
    console().print(table(_BRIEFS, rows, right=_BRIEFS))


KEPT_AIM = 0.85
"""Of the write throughput without our triggers."""

_LATENCY = ("situation", "edits", "p50 ms", "p99 ms", "worst ms", "never in 30 s")
_WRITES = ("writers", "rows a statement", "statements/s without", "with triggers", "kept", "aim")


def _run_freshness(servers: Addresses, edits: int) -> None:
    screen = console()
    heading("edit commit to readable bundle (aims: p50 60, p99 250, worst 2000)")
    latencies = freshness.latencies(servers, edits, load_seconds=30.0)
    rows = [(x.name, x.edits, f"{x.p50:.0f}", f"{x.p99:.0f}", f"{x.worst:.0f}", x.late) for x in latencies]
    screen.print(table(_LATENCY, rows, right=_LATENCY[1:]))
    edits, took, builds = freshness.builds_in_a_burst(servers)
    screen.print(f"a burst of {edits} edits of one project in {took:.1f} s: {builds} builds")
    heading("what logging edits costs the application, alternating in one run")
    writes = freshness.throughput(servers)
    shown = [
        (x.writers, x.rows, f"{x.without:.0f}", f"{x.with_triggers:.0f}", f"{x.kept:.2f}", KEPT_AIM)
        for x in writes
    ]
    screen.print(table(_WRITES, shown, right=_WRITES))


def _row(ours: Measured) -> list[str]:
    aim = AIMS.get(ours.entities)
    return [
        str(ours.entities),
        f"{ours.raw:.2f}",
        *(f"{ours.parts[stage]:.2f}" for stage in _STAGES),
        f"{ours.total:.2f}",
        f"{ours.ratio:.2f}",
        f"{aim:.2f}" if aim else "",
        f"{ours.peak_mib:.0f}",
    ]


def _comparison(ours: Measured, floor: dict[str, Any]) -> list[str]:
    total = _median(floor["total"])
    return [
        str(ours.entities),
        f"{ours.total:.2f}",
        f"{total:.2f}",
        f"{ours.total / total:.2f}",
        f"{YARDSTICK_AIM:.2f}",
        f"{_median(floor['ratio']):.2f}",
    ]


def _median(found: Any) -> float:
    """The yardstick prints numbers, or objects of them."""
    return float(found["p50"] if isinstance(found, dict) else found)


if __name__ == "__main__":
    main()

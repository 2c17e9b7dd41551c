"""The sample project is what its README says: the defects of real data, on purpose."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

SAMPLE = Path(__file__).parents[2] / "samples" / "harbour"


def rows(table: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SAMPLE / f"{table}.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.promise("house.sample")
def test_the_main_project_has_150_to_300_live_entities() -> None:
    projects = rows("onto_projects")
    tables = [path.stem for path in SAMPLE.glob("onto_*.jsonl")]

    live = Counter(
        row["project_id"]
        for table in tables
        if table not in {"onto_projects", "onto_edges", "onto_actors", "onto_project_members"}
        for row in rows(table)
        if row.get("deleted_at") is None
    )

    assert 150 <= max(live.values()) <= 300
    assert len(projects) == len(live)


@pytest.mark.promise("house.sample")
def test_the_sample_holds_the_defects_of_real_data() -> None:
    edges = rows("onto_edges")
    tasks = {task["id"]: task for task in rows("onto_tasks")}

    triples = Counter((e["src_id"], e["dst_id"], e["rel"]) for e in edges)
    states = {task["state_key"] for task in tasks.values()}
    titles = [task["title"] for task in tasks.values()]

    assert max(triples.values()) > 1, "a duplicate edge"
    assert any(e["src_id"] == e["dst_id"] for e in edges), "a self loop"
    assert states - {"todo", "in_progress", "blocked", "done"}, "an unknown state"
    assert any("\n" in title for title in titles), "a title of two lines"
    assert any(not title.isascii() for title in titles), "a title that is not Latin"

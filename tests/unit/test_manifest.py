"""A dataset's manifest: read where there is one, refused where it is none, compared with what was built."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from foreword.errors import BadInput
from foreword.kinds import KINDS
from worker.manifest import Manifest, differences, read_manifest

PROJECT = "a8e1bf1f-2157-5c0b-a103-3b8fa71a9b3b"
COUNTS = {"total": 5, "direct": 2, "unlinked": 3}


def written(directory: Path, content: Any) -> Manifest:
    (directory / "manifest.json").write_text(json.dumps(content), encoding="utf-8")
    return read_manifest(directory)


@pytest.mark.promise("loader.manifest")
def test_a_dataset_without_a_manifest_says_nothing(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) == Manifest()


@pytest.mark.promise("loader.manifest")
def test_a_manifest_says_its_day_and_counts_and_may_say_more(tmp_path: Path) -> None:
    by_kind = {"task": COUNTS | {"depth2": 1}}

    found = written(
        tmp_path,
        {
            "name": "x",
            "as_of": "2026-11-21",
            "projects": {PROJECT: {"name": "y", "by_kind": by_kind}, "other": {}},
        },
    )

    assert found == Manifest(as_of=date(2026, 11, 21), by_kind={PROJECT: by_kind})


@pytest.mark.promise("loader.manifest")
@pytest.mark.parametrize(
    ("content", "day"),
    [
        ({}, None),
        ({"source": {}}, None),
        ({"source": {"commit_date": "2026-08-22T18:00:15Z"}}, date(2026, 8, 22)),
        ({"as_of": "2026-01-01", "source": {"commit_date": "2026-08-22"}}, date(2026, 1, 1)),
        ({"as_of": None, "source": None}, None),
    ],
)
def test_the_day_is_the_one_named_or_that_of_the_source(tmp_path: Path, content: Any, day: date | None) -> None:
    assert written(tmp_path, content).as_of == day


@pytest.mark.promise("loader.manifest", "cli.errors")
@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([], "Input should be an object"),
        (None, "Input should be an object"),
        ({"as_of": "yesterday"}, "as_of: "),
        ({"as_of": 5}, "as_of: "),
        ({"source": {"commit_date": "long ago"}}, "Invalid isoformat string"),
        ({"source": "here"}, "source: "),
        ({"projects": []}, "projects: "),
        ({"projects": {PROJECT: 5}}, f"projects.{PROJECT}: "),
        ({"projects": {PROJECT: {"by_kind": {"task": 5}}}}, f"projects.{PROJECT}.by_kind.task: "),
        ({"projects": {PROJECT: {"by_kind": {"task": {"total": "5"}}}}}, ".by_kind.task.total: "),
    ],
)
def test_what_is_no_manifest_is_refused_with_its_place(tmp_path: Path, content: Any, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        written(tmp_path, content)

    assert str(refused.value).startswith(f"{tmp_path}/manifest.json is no manifest: ")
    assert says in str(refused.value)


@pytest.mark.promise("cli.errors")
@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"as_of": "\xff"}'])
def test_what_is_no_json_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(content)

    with pytest.raises(BadInput, match="is no manifest: Invalid JSON"):
        read_manifest(tmp_path)


@pytest.mark.promise("cli.errors")
def test_a_manifest_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").mkdir()

    with pytest.raises(BadInput, match=r"is no manifest: .*Is a directory"):
        read_manifest(tmp_path)


def compared(manifest: dict[str, dict[str, int]], built: dict[str, dict[str, int]]) -> list[str]:
    return differences(Manifest(by_kind={PROJECT: manifest}), {PROJECT: built}, KINDS)


@pytest.mark.promise("loader.manifest")
def test_equal_counts_are_no_difference() -> None:
    assert compared({"task": COUNTS | {"depth2": 9}}, {"tasks": COUNTS | {"reachable": 4}, "goals": COUNTS}) == []


@pytest.mark.promise("loader.manifest")
@pytest.mark.parametrize("count", COUNTS)
def test_a_count_that_differs_is_said(count: str) -> None:
    found = compared({"task": COUNTS}, {"tasks": COUNTS | {count: 9}})

    assert found == [f"{PROJECT} task: {count} is 9, the manifest says {COUNTS[count]}"]


@pytest.mark.promise("loader.manifest")
def test_what_was_not_built_at_all_differs() -> None:
    absent_kind = compared({"goal": {"total": 1}, "dream": {"total": 2}}, {"tasks": COUNTS})
    absent_project = differences(Manifest(by_kind={PROJECT: {"task": {"total": 5}}}), {}, KINDS)

    assert absent_kind == [
        f"{PROJECT} goal: total is None, the manifest says 1",
        f"{PROJECT} dream: total is None, the manifest says 2",
    ]
    assert absent_project == [f"{PROJECT} task: total is None, the manifest says 5"]

"""A dataset's own account of itself: the day it is about, and what an independent count found in it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from foreword.errors import BadInput
from foreword.kinds import Registry

_COUNTS = ("total", "direct", "unlinked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What is known of a dataset beside its rows. ``by_kind``: per project and kind, total, direct, unlinked."""

    as_of: date | None = None
    by_kind: Mapping[str, Mapping[str, Mapping[str, int]]]


def read_manifest(directory: Path) -> Manifest:
    """The manifest in ``directory``; an empty one where there is none.

    Raises:
        BadInput: there is one and it cannot be read.
    """
    path = directory / "manifest.json"
    if not path.exists():
        return Manifest(by_kind={})
    try:
        found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        day = found.get("as_of") or found.get("source", {}).get("commit_date", "")[:10]
        projects = found.get("projects", {})
        return Manifest(
            as_of=date.fromisoformat(day) if day else None,
            by_kind={project: each.get("by_kind", {}) for project, each in projects.items()},
        )
    except (ValueError, AttributeError, OSError) as error:
        raise BadInput(f"{path} is no manifest: {error}") from error


def differences(
    manifest: Manifest, coverage: Mapping[str, Mapping[str, Mapping[str, int]]], kinds: Registry
) -> list[str]:
    """Where the coverage of bundles (by project, by plural kind) and the manifest's counts disagree, in words."""
    found = []
    for project, by_kind in manifest.by_kind.items():
        for kind, expected in by_kind.items():
            built = coverage.get(project, {}).get(kinds.by_name[kind].plural, {})
            found += [
                f"{project} {kind}: {count} is {built.get(count)}, the manifest says {expected[count]}"
                for count in _COUNTS
                if count in expected and built.get(count) != expected[count]
            ]
    return found

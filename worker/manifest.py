"""A dataset's own account of itself: the day it is about, and what an independent count found in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from foreword.errors import BadInput
from foreword.kinds import Registry

_COUNTS = ("total", "direct", "unlinked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What is known of a dataset beside its rows. ``by_kind``: per project and kind, total, direct, unlinked."""

    as_of: date | None = None
    by_kind: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)


class _Part(BaseModel):
    """A part of the file. Other things may stand there too: a manifest is somebody's description of a dataset."""

    model_config = ConfigDict(extra="ignore", strict=True)


class _Source(_Part):
    commit_date: str | None = None


class _Project(_Part):
    by_kind: dict[str, dict[str, int]] = {}


class _File(_Part):
    as_of: date | None = None
    source: _Source | None = None
    projects: dict[str, _Project] = {}

    def day(self) -> date | None:
        """The day it is about: the one it names, else that of what it was made from."""
        made = self.source.commit_date if self.source else None
        return self.as_of or (date.fromisoformat(made[:10]) if made else None)


def read_manifest(directory: Path) -> Manifest:
    """The manifest in ``directory``; an empty one where there is none.

    Raises:
        BadInput: there is one and it cannot be read.
    """
    path = directory / "manifest.json"
    try:
        found = _File.model_validate_json(path.read_bytes())
        return Manifest(
            as_of=found.day(),
            by_kind={project: each.by_kind for project, each in found.projects.items() if each.by_kind},
        )
    except FileNotFoundError:
        return Manifest()
    except ValidationError as error:
        raise BadInput(f"{path} is no manifest: {_first(error)}") from error
    except (ValueError, OSError) as error:
        raise BadInput(f"{path} is no manifest: {error}") from error


def _first(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    place = ".".join(map(str, fault["loc"]))
    return f"{place}: {fault['msg']}" if place else fault["msg"]


def differences(
    manifest: Manifest, coverage: Mapping[str, Mapping[str, Mapping[str, int]]], kinds: Registry
) -> list[str]:
    """Where the coverage of bundles (by project, by plural kind) and the manifest's counts disagree, in words."""
    found = []
    for project, by_kind in manifest.by_kind.items():
        for kind, expected in by_kind.items():
            plural = kinds.by_name[kind].plural if kind in kinds.by_name else kind
            built = coverage.get(project, {}).get(plural, {})
            found += [
                f"{project} {kind}: {count} is {built.get(count)}, the manifest says {expected[count]}"
                for count in _COUNTS
                if count in expected and built.get(count) != expected[count]
            ]
    return found

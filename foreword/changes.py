"""What changed between two bundles, as facts: so that a long chat is brought up to date without sending it the
whole context again.

A builder stores the difference between its bundle and the one before (``difference``); a reader folds those since
the version that its chat has seen (``fold``). Folding two differences gives the difference of the ends.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Facts = Mapping[str, Mapping[str, Any]]
"""By entity, what a bundle says of it: ``handle``, ``kind`` (in the plural, or project), the fields of its light
record."""

HANDLE, KIND = "handle", "kind"
PROJECT = "project"


@dataclass(frozen=True, slots=True)
class Difference:
    """What one bundle says and another did not. Every key is an entity's id.

    Attributes:
        added: what is shown now and was not, whole.
        gone: what was shown and is not any more, as it was; ``deleted`` is True where the entity is gone as well,
            and False where it is only no longer among those that matter most.
        changed: of what is shown in both, by field (old value, new value); None where there is none.
    """

    added: dict[str, dict[str, Any]] = field(default_factory=dict)
    gone: dict[str, dict[str, Any]] = field(default_factory=dict)
    changed: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.gone or self.changed)


def facts_of(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The facts of a structured bundle (``Context.data``): the project's header and everything in its slices."""
    header = {k: v for k, v in data["header"].items() if k not in {"id", "entity_counts"}}
    counts = {f"count of {plural}": n for plural, n in data["header"].get("entity_counts", {}).items()}
    project = {HANDLE: data["handles"].get(data["project_id"], ""), KIND: PROJECT, **header, **counts}
    shown = {
        light["id"]: {KIND: plural, **{k: v for k, v in light.items() if k != "id"}}
        for plural, lights in data["slices"].items()
        for light in lights
    }
    return {data["project_id"]: project, **shown}


def difference(old: Facts, new: Facts, exists: Callable[[str], bool] = lambda _: False) -> Difference:
    """What ``new`` says and ``old`` did not. ``exists``: whether an entity is still there, shown or not."""
    found = Difference()
    for entity in new.keys() - old.keys():
        found.added[entity] = dict(new[entity])
    for entity in old.keys() - new.keys():
        found.gone[entity] = {**old[entity], "deleted": not exists(entity)}
    for entity in old.keys() & new.keys():
        changed = _fields(old[entity], new[entity])
        if changed:
            found.changed[entity] = _named(new[entity], changed)
    return found


def _fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    if old == new:
        return {}
    return {
        name: [old.get(name), new.get(name)]
        for name in sorted(old.keys() | new.keys())
        if name not in {HANDLE, KIND, "deleted"} and old.get(name) != new.get(name)
    }


def _named(record: Mapping[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    return {HANDLE: record.get(HANDLE), KIND: record.get(KIND), "fields": changed}


def fold(steps: Iterable[Difference]) -> Difference:
    """The difference between the ends of successive differences."""
    whole = Difference()
    for step in steps:
        for entity, record in step.gone.items():
            _leave(whole, entity, record)
        for entity, change in step.changed.items():
            _change(whole, entity, change)
        for entity, record in step.added.items():
            _come(whole, entity, record)
    return whole


def _leave(whole: Difference, entity: str, record: Mapping[str, Any]) -> None:
    if whole.added.pop(entity, None) is None:
        before = whole.changed.pop(entity, {"fields": {}})["fields"]
        was = {**record, **{name: old for name, (old, _) in before.items()}}
        whole.gone[entity] = {name: value for name, value in was.items() if value is not None}


def _change(whole: Difference, entity: str, change: Mapping[str, Any]) -> None:
    if entity in whole.added:
        now = {**whole.added[entity], **{name: new for name, (_, new) in change["fields"].items()}}
        whole.added[entity] = {name: value for name, value in now.items() if value is not None}
        return
    before = whole.changed.get(entity, {"fields": {}})["fields"]
    fields = {**before}
    for name, (old, new) in change["fields"].items():
        first = before[name][0] if name in before else old
        fields[name] = [first, new]
    _keep(whole, entity, change, {name: pair for name, pair in fields.items() if pair[0] != pair[1]})


def _come(whole: Difference, entity: str, record: Mapping[str, Any]) -> None:
    was = whole.gone.pop(entity, None)
    if was is None:
        whole.added[entity] = dict(record)
    else:
        _keep(whole, entity, record, _fields(was, record))


def _keep(whole: Difference, entity: str, record: Mapping[str, Any], fields: dict[str, Any]) -> None:
    whole.changed.pop(entity, None)
    if fields:
        whole.changed[entity] = _named(record, dict(sorted(fields.items())))

"""What happens to a project in a working day: a seeded stream of edits over the loader's rows, and how much of a
text a prompt cache keeps from one version to the next.

Most edits fall on few entities: a fixed hot set, most of it open work. Values in, values out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from random import Random
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo, available_timezones

from foreword.edges import Edge
from foreword.kinds import Kind, Registry
from foreword.rows import ProjectRows, Row
from foreword.tokens import Counter, encoding
from foreword.tokens import count as count_tokens

HOT = 0.2
"""The share of the entities that are hot."""

WARM = 0.8
"""The share of the edits that fall on them."""

_BEGINS, _ENDS = time(8), time(18)
"""Local working hours."""

_A_LIFETIME = timedelta(days=20_000)
"""Dates further away than this are mistakes; whoever moves them corrects them."""

_Edited = tuple[str, ProjectRows]

_NEXT: Mapping[str, Mapping[str, Mapping[str, int]]] = {
    "task": {
        "todo": {"in_progress": 6, "done": 2, "blocked": 1},
        "in_progress": {"done": 6, "blocked": 2, "todo": 1},
        "blocked": {"in_progress": 3, "todo": 1},
        "done": {"in_progress": 1, "todo": 1},
    },
    "goal": {
        "draft": {"active": 1},
        "active": {"achieved": 3, "abandoned": 1},
        "achieved": {"active": 1},
        "abandoned": {"draft": 1},
    },
    "plan": {"draft": {"active": 1}, "active": {"completed": 3, "draft": 1}, "completed": {"active": 1}},
    "milestone": {
        "pending": {"in_progress": 3, "missed": 1},
        "in_progress": {"completed": 3, "missed": 1},
        "missed": {"completed": 1},
        "completed": {"in_progress": 1},
    },
    "risk": {
        "identified": {"mitigated": 3, "closed": 2, "occurred": 1},
        "mitigated": {"closed": 1},
        "occurred": {"mitigated": 1, "closed": 1},
        "closed": {"identified": 1},
    },
    "decision": {
        "pending": {"made": 3, "deferred": 1},
        "deferred": {"pending": 2, "made": 1},
        "made": {"reversed": 1},
        "reversed": {"pending": 1},
    },
    "document": {
        "draft": {"in_review": 1},
        "in_review": {"ready": 2, "draft": 1},
        "review": {"ready": 2, "draft": 1},
        "ready": {"published": 1},
        "published": {"archived": 1, "draft": 1},
        "archived": {"published": 1},
    },
    "output": {
        "draft": {"in_progress": 1},
        "in_progress": {"review": 1},
        "review": {"published": 2, "in_progress": 1},
        "published": {"draft": 1},
    },
}
"""What may follow a state, and how often."""

_STAMPED = {
    "completed_at": {"done", "completed", "achieved"},
    "mitigated_at": {"mitigated"},
    "decision_at": {"made"},
}
"""The states that a time is the beginning of."""

_SETTLED = {"made", "reversed", "published"}
"""States that end nothing and yet are seldom left."""

_VERBS = ("Review", "Ship", "Measure", "Document", "Migrate", "Repair", "Agree on", "Retire")
_THINGS = ("the parser", "the harbour ledger", "old indexes", "release notes", "the budget", "slow queries")
_ENDINGS = (" (phase 2)", ", revised", " for the pilot", " again")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """What one edit may know.

    Attributes:
        now: the time of the edit, as PostgreSQL prints it.
        warm: whether the edit falls on a hot entity.
    """

    kinds: Registry
    chance: Random
    as_of: date
    now: str
    hot: frozenset[str]
    warm: bool


_Move = Callable[[ProjectRows, _Scene], _Edited | None]
"""An edit; None where the project, or its warm or cold part, has nothing to make it on."""


def replay(
    rows: ProjectRows, *, kinds: Registry, as_of: date, edits: int, seed: int
) -> Iterator[tuple[str, ProjectRows]]:
    """The project after each of ``edits`` edits of one working day, and what kind of edit it was.

    Ends early only where nothing can be edited at all. ``seed`` and the rows decide everything.
    """
    hot = hot_set(rows, kinds=kinds, seed=seed)
    chance = Random(f"edits {rows.project_id} {seed}")
    for now in _moments(as_of, _zone(rows, kinds), edits):
        warm = chance.random() < WARM
        scene = _Scene(kinds=kinds, chance=chance, as_of=as_of, now=now, hot=hot, warm=warm)
        found = _edited(rows, scene)
        if found is None:
            return
        rows = found[1]
        yield found


def hot_set(rows: ProjectRows, *, kinds: Registry, seed: int) -> frozenset[str]:
    """The entities on which most edits of a replay fall: a fifth of all, most of them open work."""
    chance = Random(f"hot {rows.project_id} {seed}")
    drawn = [
        (chance.random() ** (1 / _attention(kind, row)), row[0])
        for kind in kinds.entities
        for row in rows.entities.get(kind.name, ())
    ]
    return frozenset(entity for _, entity in sorted(drawn, reverse=True)[: -int(-len(drawn) * HOT // 1)])


def prefix_tokens(before: str, after: str, count: Counter = count_tokens) -> float:
    """The share of the tokens of ``after`` that a prompt cache keeps from ``before``: those of the lines that are
    the same from the beginning, and those at the beginning of the first line that differs.
    """
    head = before[: before.rfind("\n", 0, _shared(before, after)) + 1]
    old, new = (encoding().encode_ordinary(text[len(head) :].partition("\n")[0]) for text in (before, after))
    total = count(after)
    return min((count(head) + _shared(old, new)) / total, 1.0) if total else 1.0


def _shared(one: Sequence[object], other: Sequence[object]) -> int:
    """How many items two sequences have in common from the beginning."""
    most = min(len(one), len(other))
    return next((n for n in range(most) if one[n] != other[n]), most)


def _moments(as_of: date, zone: ZoneInfo, edits: int) -> Iterator[str]:
    """Advancing times of one local day, none of them midnight in UTC: that would be a date without a time."""
    begins, ends = (datetime.combine(as_of, clock, zone).astimezone(UTC) for clock in (_BEGINS, _ENDS))
    for number in range(1, edits + 1):
        at = (begins + (ends - begins) * number / (edits + 1)).replace(microsecond=0)
        at += timedelta(seconds=at.time() == time(0))
        yield f"{at:%Y-%m-%d %H:%M:%S}+00"


def _zone(rows: ProjectRows, kinds: Registry) -> ZoneInfo:
    name = rows.project[kinds.project.at["timezone"]] if "timezone" in kinds.project.at else None
    return ZoneInfo(name if name in available_timezones() else "UTC")


# ---- choosing


def _edited(rows: ProjectRows, scene: _Scene) -> _Edited | None:
    """One edit: the move drawn, else another change of what there is, else something new."""
    drawn = scene.chance.choices(list(_MOVES), list(_MOVES.values()))[0]
    changes = [move for move in _MOVES if move not in _BIRTHS]
    scene.chance.shuffle(changes)
    cooler = replace(scene, warm=not scene.warm)
    tries = [
        (drawn, scene),
        *((move, scene) for move in changes),
        *((move, cooler) for move in changes),
        *((move, scene) for move in _BIRTHS),
    ]
    return next((found for move, where in tries if (found := move(rows, where)) is not None), None)


def _state(kind: Kind, row: Row) -> str | None:
    state: str | None = row[kind.at["state_key"]] if "state_key" in kind.at else None
    return state


def _edits_itself(kind: Kind) -> bool:
    """Whether rows of a kind change: what keeps no time of its last change is written once."""
    return "updated_at" in kind.at


def _attention(kind: Kind, row: Row) -> float:
    """How much people do about an entity."""
    if not _edits_itself(kind):
        return 0.1
    state = _state(kind, row)
    if "state_key" not in kind.at or kind.is_finished(state) or state in _SETTLED:
        return 1.0
    return 12.0 if kind.name == "task" else 6.0


def _pick(
    rows: ProjectRows, scene: _Scene, fits: Callable[[Kind, Row], bool], names: Sequence[str] = ()
) -> tuple[Kind, Row] | None:
    """An entity that fits, hot or not as the scene says, rather an open one."""
    found = [
        (kind, row)
        for kind in scene.kinds.entities
        if not names or kind.name in names
        for row in rows.entities.get(kind.name, ())
        if (row[0] in scene.hot) == scene.warm and fits(kind, row)
    ]
    weights = [_attention(kind, row) for kind, row in found]
    return scene.chance.choices(found, weights)[0] if found else None


def _any_of(rows: ProjectRows, name: str, scene: _Scene, *, but: str = "") -> str | None:
    """The id of some entity of a kind."""
    ids = [row[0] for row in rows.entities.get(name, ()) if row[0] != but]
    return scene.chance.choice(ids) if ids else None


# ---- changing rows


def _with(rows: ProjectRows, kind: Kind, old: Row, new: Row | None) -> ProjectRows:
    """The project with a row replaced, or gone."""
    table = (new if row[0] == old[0] else row for row in rows.entities[kind.name])
    return replace(rows, entities={**rows.entities, kind.name: [row for row in table if row is not None]})


def _changed(rows: ProjectRows, kind: Kind, row: Row, cells: Mapping[str, Any], scene: _Scene) -> ProjectRows:
    return _with(rows, kind, row, _set(kind, row, {"updated_at": scene.now, **cells}))


def _set(kind: Kind, row: Row, cells: Mapping[str, Any]) -> Row:
    """The row with other cells, text cut as the loader cuts it: to one character more than is shown."""
    cuts = {field.name: field.cut for field in kind.light}
    new = list(row)
    for name, cell in cells.items():
        if name in kind.at:
            cut = cuts[name]
            new[kind.at[name]] = cell if cut is None or cell is None else cell[: cut + 1]
    return tuple(new)


def _move_state(rows: ProjectRows, scene: _Scene) -> _Edited | None:
    found = _pick(rows, scene, lambda kind, row: _state(kind, row) in _NEXT[kind.name], tuple(_NEXT))
    if found is None:
        return None
    kind, row = found
    following = _NEXT[kind.name][str(_state(kind, row))]
    state = scene.chance.choices(list(following), list(following.values()))[0]
    return f"{kind.name} state", _changed(rows, kind, row, _entering(kind, state, scene.now), scene)


def _entering(kind: Kind, state: str, now: str) -> dict[str, Any]:
    """The cells of an entity that enters a state: when it was done goes with its being done."""
    stamps = {name: now for name, states in _STAMPED.items() if state in states}
    cleared = ("completed_at", "mitigated_at") if not kind.is_finished(state) else ()
    return {"state_key": state, **dict.fromkeys(cleared), **stamps}


def _slip(rows: ProjectRows, scene: _Scene) -> _Edited | None:
    found = _pick(rows, scene, lambda kind, row: bool(kind.due) and not kind.is_finished(_state(kind, row)))
    if found is None:
        return None
    kind, row = found
    due = row[kind.at[kind.due]]
    later = {kind.due: _later(due, scene)}
    return f"{kind.name} due date", _changed(rows, kind, row, later, scene)


def _later(due: str | None, scene: _Scene) -> str:
    """A new date for what was due: most slip, from today if they are late; some are pulled in."""
    try:
        day, clock = date.fromisoformat((due or "")[:10]), time.fromisoformat((due or "")[11:19])
    except ValueError:
        day, clock = scene.as_of, time(0)
    if abs(day - scene.as_of) > _A_LIFETIME:
        day = scene.as_of
    if scene.chance.random() < 0.15:
        new = day - timedelta(days=scene.chance.randint(1, 3))
    else:
        new = max(day, scene.as_of) + timedelta(days=scene.chance.choice((1, 2, 3, 5, 7, 7, 14, 30)))
    return f"{new.isoformat()} {clock.isoformat('seconds')}+00"


def _reprioritise(rows: ProjectRows, scene: _Scene) -> _Edited | None:
    found = _pick(rows, scene, lambda kind, _: "priority" in kind.at and _edits_itself(kind))
    if found is None:
        return None
    kind, row = found
    priority = scene.chance.choice([n for n in (1, 2, 3, 4, 5) if n != row[kind.at["priority"]]])
    return f"{kind.name} priority", _changed(rows, kind, row, {"priority": priority}, scene)


def _rename(rows: ProjectRows, scene: _Scene) -> _Edited | None:
    found = _pick(rows, scene, lambda kind, _: _edits_itself(kind))
    if found is None:
        return None
    kind, row = found
    old, chance = row[kind.at[kind.label]] or "", scene.chance
    kept = old[:150] + chance.choice(_ENDINGS)
    title = kept if chance.random() < 0.7 else _title(chance)
    return f"{kind.name} renamed", _changed(rows, kind, row, {kind.label: title}, scene)


def _delete(rows: ProjectRows, scene: _Scene) -> _Edited | None:
    """An entity goes; its edges go with it, or stay and lead nowhere."""
    found = _pick(rows, scene, lambda *_: True)
    if found is None:
        return None
    kind, row = found
    kept = rows.edges if scene.chance.random() < 0.5 else [e for e in rows.edges if row[0] not in (e[1], e[3])]
    return f"{kind.name} deleted", replace(_with(rows, kind, row, None), edges=kept)


def _next_step(rows: ProjectRows, scene: _Scene) -> _Edited | None:
    kind = scene.kinds.project
    if "next_step_short" not in kind.at:
        return None
    cells = {"next_step_short": _title(scene.chance), "updated_at": scene.now}
    return "next step", replace(rows, project=_set(kind, rows.project, cells))


# ---- changing edges


def _relink(rows: ProjectRows, scene: _Scene) -> _Edited | None:
    found = _pick(rows, scene, lambda kind, _: _edits_itself(kind))
    if found is None:
        return None
    kind, row = found
    mine = [edge for edge in rows.edges if row[0] in (edge[1], edge[3])]
    how = scene.chance.choice(("moved", "added", "removed")) if mine else "added"
    if how == "added":
        added = _link(rows, kind, row[0], scene)
        return ("edge added", replace(rows, edges=[*rows.edges, added])) if added else None
    edge = scene.chance.choice(mine)
    if how == "removed":
        return "edge removed", replace(rows, edges=[e for e in rows.edges if e != edge])
    moved = _moved(rows, edge, row[0], scene)
    return ("edge moved", replace(rows, edges=[moved if e == edge else e for e in rows.edges])) if moved else None


def _moved(rows: ProjectRows, edge: Edge, entity: str, scene: _Scene) -> Edge | None:
    """The edge with its other end at another entity of the same kind."""
    ident, src, src_kind, dst, dst_kind, rel = edge
    other, its_kind = (dst, dst_kind) if src == entity else (src, src_kind)
    new = _any_of(rows, its_kind, scene, but=other)
    if new is None or new == entity:
        return None
    return (
        (ident, src, src_kind, new, dst_kind, rel) if src == entity else (ident, new, src_kind, dst, dst_kind, rel)
    )


def _link(rows: ProjectRows, kind: Kind, entity: str, scene: _Scene) -> Edge | None:
    """A new edge of an entity: to its plan, its goal, another task, or its project where projects have edges."""
    name, has = kind.name, f"has_{kind.name}"
    plan, goal, task = (_any_of(rows, other, scene, but=entity) for other in ("plan", "goal", "task"))
    root = rows.project_id if any(rows.project_id in (e[1], e[3]) for e in rows.edges) else None
    ways = [*_way(root, scene.kinds.project.name, entity, name, has)]
    if name == "task":
        ways += _way(entity, name, plan, "plan", "belongs_to_plan") + _way(
            entity, name, task, "task", "depends_on"
        )
    elif name != "plan":
        ways += _way(plan, "plan", entity, name, has)
    if name in _TOWARDS_GOALS:
        ways += _way(entity, name, goal, "goal", _TOWARDS_GOALS[name])
    return (_new_id(scene.chance), *scene.chance.choice(ways)) if ways else None


_TOWARDS_GOALS = {"plan": "supports_goal", "task": "supports_goal", "risk": "threatens"}


def _way(
    src: str | None, src_kind: str, dst: str | None, dst_kind: str, rel: str
) -> list[tuple[str, str, str, str, str]]:
    """The ends and the relation of a possible edge, if it has both ends."""
    return [(src, src_kind, dst, dst_kind, rel)] if src and dst else []


# ---- new rows


def _add_task(rows: ProjectRows, scene: _Scene) -> _Edited | None:
    chance = scene.chance
    due = scene.as_of + timedelta(days=chance.randint(0, 30))
    return _add(
        rows,
        "task",
        {
            "title": _title(chance),
            "state_key": chance.choice(("todo", "todo", "in_progress")),
            "priority": chance.choice((None, 1, 2, 3, 4)),
            "type_key": "task.execute",
            "due_at": chance.choice((None, f"{due} 00:00:00+00", f"{due} 16:00:00+00")),
        },
        scene,
    )


def _add_signal(rows: ProjectRows, scene: _Scene) -> _Edited | None:
    channel = scene.chance.choice(("commit", "mail", "chat", "call"))
    said = f"{_title(scene.chance)}, says {scene.chance.choice(('a customer', 'the team', 'the press'))}"
    return _add(rows, "signal", {"channel": channel, "ts": scene.now, "payload_summary": said}, scene)


def _add_decision(rows: ProjectRows, scene: _Scene) -> _Edited | None:
    made = scene.chance.random() < 0.7
    cells = {
        "title": _title(scene.chance),
        "state_key": "made" if made else "pending",
        "decision_at": scene.now if made else None,
        "outcome": f"We will: {_title(scene.chance)}" if made else None,
    }
    return _add(rows, "decision", cells, scene)


def _add_risk(rows: ProjectRows, scene: _Scene) -> _Edited | None:
    cells = {
        "title": f"{_title(scene.chance)} too late",
        "state_key": "identified",
        "impact": scene.chance.choice(("low", "medium", "high", "critical")),
        "probability": scene.chance.choice((None, "0.2", "0.5", "0.75")),
    }
    return _add(rows, "risk", cells, scene)


def _add(rows: ProjectRows, name: str, cells: Mapping[str, Any], scene: _Scene) -> _Edited | None:
    """A new entity, most of the time with an edge; None where the database does not keep its kind."""
    if name not in rows.entities:
        return None
    kind = scene.kinds.by_name[name]
    times = {"created_at": scene.now, "updated_at": scene.now}
    row = _set(kind, (_new_id(scene.chance), *(None for _ in kind.light)), {**times, **cells})
    edge = _link(rows, kind, row[0], scene) if scene.chance.random() < 0.8 else None
    grown = {**rows.entities, name: [*rows.entities[name], row]}
    return f"new {name}", replace(rows, entities=grown, edges=[*rows.edges, edge] if edge else rows.edges)


def _title(chance: Random) -> str:
    return f"{chance.choice(_VERBS)} {chance.choice(_THINGS)} {chance.randint(2, 99)}"


def _new_id(chance: Random) -> str:
    return str(UUID(int=chance.getrandbits(128), version=4))


_BIRTHS: tuple[_Move, ...] = (_add_task, _add_signal, _add_decision, _add_risk)

_MOVES: Mapping[_Move, int] = {
    _move_state: 36,
    _slip: 15,
    _reprioritise: 8,
    _rename: 7,
    _relink: 10,
    _delete: 4,
    _next_step: 1,
    _add_task: 9,
    _add_signal: 5,
    _add_decision: 3,
    _add_risk: 2,
}
"""What happens, and how often."""

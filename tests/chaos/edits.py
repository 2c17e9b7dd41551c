"""Random edits: a declared table of what applications do to the tables, and transactions drawn from it.

Drawn from the seed alone: which operation on which project with which words, in which order, held open how long,
ended how. What a statement finds in the database when its turn comes is a matter of timing, of course: rows are
picked by their place among those that are there.

Statements return (project, kind, tick) of what they changed; kind and tick are null but for ticks.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Literal

from chaos.people import PROBED, ZONES, Population, Project, entity_id, uid, words
from psycopg.types.json import Jsonb

from foreword.kinds import KINDS, PROJECT, Kind
from loaders.tables import EDGES, MEMBERS

NO_PROBE = "not coalesce(props ? 'probe', false)"
"""Edits other than ticks leave probes alone, so that a tick is never lost."""

MOST_OF_A_KIND = 5
"""Live rows beside the probe, before more are inserted: fewer than a bundle shows of any kind."""

MOST_EDGES = 40
MOST_MEMBERS = 8

STATES = (
    "todo",
    "in_progress",
    "blocked",
    "done",
    "draft",
    "active",
    "completed",
    "published",
    "odd\nstate",
    None,
)
RELATIONS = (
    "has_task",
    "depends_on",
    "blocks",
    "belongs_to_plan",
    "supports_goal",
    "has_context_document",
    "relates_to",
    "mitigates",
    "produces",
    "rel of nobody",
)
_KEYS = frozenset({"state_key", "type_key", "facet_context", "facet_scale", "facet_stage"})
_EPOCH = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """SQL and its parameters; or rows to COPY in, of a project that is known."""

    sql: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[tuple[Any, ...], ...] = ()
    project: str = ""


@dataclass(frozen=True, slots=True)
class Draw:
    """What an operation is drawn from."""

    dice: Random
    people: Population

    def project(self) -> Project:
        """Mostly one that was there at the start."""
        return self.dice.choice(self.people.projects if self.dice.random() < 0.95 else self.people.edited)

    def kind(self) -> Kind:
        """Any kind of entity."""
        return self.dice.choice(KINDS.entities)

    def place(self) -> int:
        """Of a row among its like."""
        return self.dice.randrange(MOST_OF_A_KIND + 1)

    def actor(self, project: Project) -> str:
        """Somebody of the project's tenant."""
        return self.dice.choice(self.people.actors[project.tenant])

    def time(self) -> str | None:
        """Within some weeks, or none."""
        if self.dice.random() < 0.3:
            return None
        return (_EPOCH + timedelta(hours=self.dice.randrange(-500, 500))).isoformat()

    def maybe_words(self, project: Project) -> str | None:
        """A text, or none."""
        return words(project, self.dice) if self.dice.random() < 0.4 else None


Write = Callable[[Draw], list[Statement]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What an application does in one go, and how often beside the others."""

    name: str
    weight: float
    write: Write


# ---- rows


def row(kind: Kind, project: Project, draw: Draw) -> dict[str, Any]:
    """A new row of a kind, with every column."""
    cells = {column.name: _cell(column.name, column.type, kind, project, draw) for column in kind.columns_of()}
    return cells | {"id": entity_id(project, draw.dice), "project_id": project.id}


def _cell(name: str, type_: str, kind: Kind, project: Project, draw: Draw) -> Any:
    """A value for a column: by its name where that means something, else by its type."""
    if name == kind.label:
        return words(project, draw.dice)
    drawn = _BY_NAME.get(name) or _BY_TYPE[type_]
    return drawn(project, draw)


def _one_of(*values: Any) -> Callable[[Project, Draw], Any]:
    return lambda _, draw: draw.dice.choice(values)


_BY_NAME: dict[str, Callable[[Project, Draw], Any]] = {
    "state_key": _one_of(*STATES),
    **dict.fromkeys(sorted(_KEYS - {"state_key"}), _one_of("one", "two", None)),
    "impact": _one_of("low", "medium", "high", "critical", None),
    "payload": lambda project, draw: {draw.dice.choice(("summary", "summary", "raw")): words(project, draw.dice)},
    "props": lambda project, draw: {"summary": words(project, draw.dice)} if draw.dice.random() < 0.3 else {},
    "deleted_at": _one_of(None),
    **dict.fromkeys(("created_at", "updated_at", "ts"), lambda _, draw: draw.time() or _EPOCH.isoformat()),
}
_BY_TYPE: dict[str, Callable[[Project, Draw], Any]] = {
    "timestamptz": lambda _, draw: draw.time(),
    "integer": _one_of(1, 2, 3, 4, 5, None),
    "numeric": _one_of("0.1", "0.55", "1", None),
    "uuid": lambda project, draw: draw.actor(project),
    "text": lambda project, draw: draw.maybe_words(project),
}


def _live(kind: Kind) -> str:
    return "deleted_at is null" if kind.deletable else "true"


def _pick(kind: Kind, which: str = "true", project: str = "project", place: str = "place") -> str:
    """One of a project's rows that are no probes, by its place."""
    return (
        f"(select id from {kind.table} where project_id = %({project})s and {which} and {NO_PROBE}"
        f" order by id offset %({place})s limit 1)"
    )


_RETURNING = "returning project_id::text, null::text, null::bigint"


def _on_row(kind: Kind, change: str, draw: Draw, which: str = "true", **parameters: Any) -> Statement:
    """A change of one row of some project."""
    project = draw.project()
    sql = f"{change} where id = {_pick(kind, which)} and project_id = %(project)s and {NO_PROBE} {_RETURNING}"
    return Statement(sql=sql, parameters={"project": project.id, "place": draw.place(), **parameters})


def _label(kind: Kind, text: str) -> tuple[str, str]:
    """(column, value) that names an entity: what its label is made of."""
    if kind.name == "signal":
        return "payload", f"jsonb_build_object('summary', {text}::text)"
    return kind.label, f"{text}::text"


def again(project: Project, kind: Kind, number: int) -> str:
    """The id of one of the few rows that come and go again and again."""
    return uid("again", project.id, kind.name, number)


def nowhere(number: int) -> str:
    """An id that edges end in and no row has."""
    return uid("nowhere", number)


# ---- ticks


def tick(kind: Kind, project: Project) -> Statement:
    """A probe's title with a new number. The number is part of what is set, and not of a FROM, because only so is
    it drawn again when the statement had to wait for the row.
    """
    column, value = _label(kind, f"%(canary)s || ' tick{kind.name}' || nextval('chaos_tick') || 'q'")
    owner = "id::text" if kind.name == PROJECT else "project_id::text"
    sql = (
        f"update {kind.table} set {column} = {value} where id = %(probe)s"
        f" returning {owner}, '{kind.name}', substring({column}::text from 'tick[a-z]+(\\d+)q')::bigint"
    )
    return Statement(sql=sql, parameters={"canary": project.canary, "probe": project.probe(kind)})


def _ticks(draw: Draw) -> list[Statement]:
    kind = draw.dice.choice((KINDS.project, *PROBED, *PROBED))
    return [tick(kind, draw.project())]


# ---- rows come, change and go


def _insert_rows(kind: Kind, project: Project, rows: list[dict[str, Any]], conflict: str) -> Statement:
    sql = (
        f"insert into {kind.table} as t select r.* from jsonb_populate_recordset(null::{kind.table}, %(rows)s) r"
        f" where (select count(*) from {kind.table} where project_id = %(project)s and {_live(kind)}) <= %(most)s"
        f" on conflict (id) {conflict} returning t.project_id::text, null::text, null::bigint"
    )
    return Statement(sql=sql, parameters={"rows": Jsonb(rows), "project": project.id, "most": MOST_OF_A_KIND})


def _insert(draw: Draw) -> list[Statement]:
    kind, project = draw.kind(), draw.project()
    rows = [row(kind, project, draw) for _ in range(draw.dice.choice((1, 1, 2)))]
    return [_insert_rows(kind, project, rows, "do nothing")]


def _upsert(draw: Draw) -> list[Statement]:
    """Fires the triggers of an insert and of an update."""
    kind, project = draw.kind(), draw.project()
    rows = [
        row(kind, project, draw) | {"id": again(project, kind, n)}
        for n in sorted({draw.dice.randrange(3) for _ in range(2)})
    ]
    column, _ = _label(kind, "''")
    back = ", deleted_at = null" if kind.deletable else ""
    conflict = f"do update set {column} = excluded.{column}{back} where t.project_id = excluded.project_id"
    return [_insert_rows(kind, project, rows, conflict)]


def _copy(draw: Draw) -> list[Statement]:
    kind, project = draw.kind(), draw.project()
    rows = [row(kind, project, draw) for _ in range(draw.dice.choice((1, 2, 3)))]
    for each in rows:
        each["id"] = uid("copied", draw.dice.getrandbits(100))
    columns = tuple(rows[0])
    cells = tuple(tuple(_jsonb(each[column]) for column in columns) for each in rows)
    sql = f"copy {kind.table} ({', '.join(columns)}) from stdin"
    return [Statement(sql=sql, rows=cells, project=project.id)]


def _jsonb(cell: Any) -> Any:
    return Jsonb(cell) if isinstance(cell, dict) else cell


def _retitle(draw: Draw) -> list[Statement]:
    kind, project = draw.kind(), draw.project()
    column, value = _label(kind, "%(text)s")
    sql = (
        f"update {kind.table} set {column} = {value} where id = {_pick(kind)} and project_id = %(project)s"
        f" and {NO_PROBE} {_RETURNING}"
    )
    text = words(project, draw.dice)
    return [Statement(sql=sql, parameters={"text": text, "project": project.id, "place": draw.place()})]


def _restate(draw: Draw) -> list[Statement]:
    """Any column that is not a title: states, times, numbers, texts."""
    kind, project = draw.kind(), draw.project()
    fixed = {"id", "project_id", "created_by", "deleted_at", "props", "payload", kind.label}
    columns = [column for column in kind.columns_of() if column.name not in fixed]
    column = draw.dice.choice(columns)
    cell = _cell(column.name, column.type, kind, project, draw)
    cell = "a needed text" if cell is None and column.required else cell
    sql = (
        f"update {kind.table} set {column.name} = %(cell)s where id = {_pick(kind)} and project_id = %(project)s"
        f" and {NO_PROBE} {_RETURNING}"
    )
    return [Statement(sql=sql, parameters={"cell": cell, "project": project.id, "place": draw.place()})]


def _restate_many(draw: Draw) -> list[Statement]:
    """One statement over many rows of several projects."""
    kind = draw.kind()
    projects = [draw.project().id for _ in range(draw.dice.choice((1, 2, 3)))]
    change = "created_at = created_at - interval '1 day'"
    if kind.deletable:
        change = "updated_at = now(), type_key = %(key)s"
    which = f"project_id = any(%(projects)s::uuid[]) and {NO_PROBE}"
    sql = f"update {kind.table} set {change} where {which} {_RETURNING}"
    return [Statement(sql=sql, parameters={"key": draw.dice.choice(("one", "two")), "projects": projects})]


def _touch(draw: Draw) -> list[Statement]:
    """An update that changes nothing: may or may not be told of, so that nobody waits for it."""
    kind = draw.kind()
    sql = f"update {kind.table} set created_by = created_by where id = {_pick(kind)}"
    return [Statement(sql=sql, parameters={"project": draw.project().id, "place": draw.place()})]


def _deletable(draw: Draw) -> Kind:
    return draw.dice.choice([kind for kind in KINDS.entities if kind.deletable])


def _soft_delete(draw: Draw) -> list[Statement]:
    kind = _deletable(draw)
    return [_on_row(kind, f"update {kind.table} set deleted_at = now()", draw, "deleted_at is null")]


def _undelete(draw: Draw) -> list[Statement]:
    kind = _deletable(draw)
    return [_on_row(kind, f"update {kind.table} set deleted_at = null", draw, "deleted_at is not null")]


def _delete(draw: Draw) -> list[Statement]:
    kind = draw.kind()
    return [_on_row(kind, f"delete from {kind.table}", draw)]


def _delete_many(draw: Draw) -> list[Statement]:
    kind = draw.kind()
    which = "state_key = 'done'" if any(c.name == "state_key" for c in kind.columns_of()) else "type_key = 'one'"
    projects = [draw.project().id, draw.project().id]
    which = f"{which} and project_id = any(%(projects)s::uuid[]) and {NO_PROBE}"
    sql = f"delete from {kind.table} where {which} {_RETURNING}"
    return [Statement(sql=sql, parameters={"projects": projects})]


def _move(draw: Draw) -> list[Statement]:
    """A row goes to another project, with texts of its new home."""
    kind, project = draw.kind(), draw.project()
    to = draw.people.neighbour(project, draw.dice)
    column, value = _label(kind, "%(text)s")
    texts = [
        c.name
        for c in kind.columns_of()
        if c.type == "text" and c.name != kind.label and not c.one_of and c.name not in _KEYS
    ]
    changes = [f"{column} = {value}", "project_id = %(to)s", "props = '{}'", *(f"{t} = null" for t in texts)]
    sql = (
        f"with moved as (update {kind.table} set {', '.join(changes)} where id = {_pick(kind)}"
        f" and project_id = %(project)s and {NO_PROBE} returning 1)"
        " select p, null::text, null::bigint from moved, (values (%(project)s::text), (%(to)s::text)) v(p)"
    )
    parameters = {"project": project.id, "to": to.id, "place": draw.place(), "text": words(to, draw.dice)}
    return [Statement(sql=sql, parameters=parameters)]


def _renumber(draw: Draw) -> list[Statement]:
    """A row gets another id, as merges of records do."""
    kind = draw.kind()
    fresh = uid("renumbered", draw.dice.getrandbits(100))
    return [_on_row(kind, f"update {kind.table} set id = %(fresh)s", draw, fresh=fresh)]


def _reborn(draw: Draw) -> list[Statement]:
    """Deleted and inserted again under the same id, in one transaction."""
    kind, project = draw.kind(), draw.project()
    picked = again(project, kind, draw.dice.randrange(3))
    gone = f"delete from {kind.table} where id = %(id)s and project_id = %(project)s {_RETURNING}"
    return [
        Statement(sql=gone, parameters={"id": picked, "project": project.id}),
        _insert_rows(kind, project, [row(kind, project, draw) | {"id": picked}], "do nothing"),
    ]


def _truncate(draw: Draw) -> list[Statement]:
    return [Statement(sql=f"truncate {draw.dice.choice(('onto_insights', EDGES))}")]


def _stray(draw: Draw) -> list[Statement]:
    """A row of a project that there is not, and may never be. Nobody waits for its bundle."""
    kind, project = draw.kind(), draw.dice.choice(draw.people.spare)
    statement = _insert_rows(kind, project, [row(kind, project, draw)], "do nothing")
    return [Statement(sql=statement.sql.partition(" returning")[0], parameters=statement.parameters)]


# ---- edges


_ENDS = (*["inside"] * 3, *["root"] * 2, "foreign", "abroad", "nowhere")


def _link(draw: Draw) -> list[Statement]:
    """Within the project, to the project itself, into another project, to another project, or into nothing."""
    project, src, dst = draw.project(), draw.kind(), draw.kind()
    ends = {
        "inside": (_pick(dst, place="place2"), dst.name, project),
        "root": ("(select %(project)s::uuid)", PROJECT, project),
        "foreign": (
            _pick(dst, project="other", place="place2"),
            dst.name,
            draw.people.neighbour(project, draw.dice),
        ),
        "abroad": ("(select %(other)s::uuid)", PROJECT, draw.people.neighbour(project, draw.dice)),
        "nowhere": ("(select %(nowhere)s::uuid)", dst.name, project),
    }
    end, name, other = ends[draw.dice.choice(_ENDS)]
    sql = (
        f"insert into {EDGES} (id, project_id, src_kind, src_id, dst_kind, dst_id, rel)"
        f" select %(id)s, %(project)s, %(src_kind)s, a.id, %(dst_kind)s, b.id, %(rel)s"
        f" from {_pick(src)} a(id), {end} b(id)"
        f" where (select count(*) from {EDGES} where project_id = %(project)s) < {MOST_EDGES} {_RETURNING}"
    )
    parameters = {
        "id": uid("edge", draw.dice.getrandbits(100)),
        "project": project.id,
        "other": other.id,
        "place": draw.place(),
        "place2": draw.place(),
        "nowhere": nowhere(draw.dice.randrange(5)),
        "src_kind": src.name,
        "dst_kind": name,
        "rel": draw.dice.choice(RELATIONS),
    }
    return [Statement(sql=sql, parameters=parameters)]


def _on_link(draw: Draw, table: str, change: str, most: int, **parameters: Any) -> list[Statement]:
    picked = f"(select id from {table} where project_id = %(project)s order by id offset %(place)s limit 1)"
    sql = f"{change} where id = {picked} and project_id = %(project)s {_RETURNING}"
    place = draw.dice.randrange(most)
    return [Statement(sql=sql, parameters={"project": draw.project().id, "place": place, **parameters})]


def _unlink(draw: Draw) -> list[Statement]:
    return _on_link(draw, EDGES, f"delete from {EDGES}", MOST_EDGES // 4)


def _relink(draw: Draw) -> list[Statement]:
    return _on_link(
        draw, EDGES, f"update {EDGES} set rel = %(rel)s", MOST_EDGES // 4, rel=draw.dice.choice(RELATIONS)
    )


# ---- people


def _join(draw: Draw) -> list[Statement]:
    project = draw.project()
    sql = (
        f"insert into {MEMBERS} (id, project_id, actor_id, role_key)"
        f" select %(id)s, %(project)s, %(actor)s, %(role)s"
        f" where (select count(*) from {MEMBERS} where project_id = %(project)s) < {MOST_MEMBERS} {_RETURNING}"
    )
    parameters = {
        "id": uid("member", draw.dice.getrandbits(100)),
        "project": project.id,
        "actor": draw.actor(project),
        "role": draw.dice.choice(("owner", "editor", "viewer")),
    }
    return [Statement(sql=sql, parameters=parameters)]


def _leave(draw: Draw) -> list[Statement]:
    change = draw.dice.choice(
        (
            f"update {MEMBERS} set removed_at = now()",
            f"update {MEMBERS} set removed_at = null",
            f"update {MEMBERS} set role_key = 'viewer'",
            f"delete from {MEMBERS}",
        )
    )
    return _on_link(draw, MEMBERS, change, MOST_MEMBERS)


def _rename_actor(draw: Draw) -> list[Statement]:
    """No bundle shows actors."""
    actor = draw.actor(draw.project())
    return [Statement(sql="update onto_actors set name = name || '.' where id = %(a)s", parameters={"a": actor})]


# ---- projects

_OF_PROJECT = "where id = %(project)s returning id::text, null::text, null::bigint"


def _on_project(draw: Draw, change: str, **parameters: Any) -> list[Statement]:
    return [
        Statement(
            sql=f"update onto_projects set {change} {_OF_PROJECT}",
            parameters={"project": draw.project().id, **parameters},
        )
    ]


def _rezone(draw: Draw) -> list[Statement]:
    change = "props = coalesce(props, '{}') || jsonb_build_object('timezone', %(zone)s::text)"
    return _on_project(draw, change, zone=draw.dice.choice(ZONES))


def _describe(draw: Draw) -> list[Statement]:
    project = draw.project()
    column = draw.dice.choice(("description", "next_step_short", "next_step_long", "facet_stage"))
    sql = f"update onto_projects set {column} = %(text)s, state_key = %(state)s {_OF_PROJECT}"
    parameters = {"project": project.id, "text": draw.maybe_words(project), "state": draw.dice.choice(STATES)}
    return [Statement(sql=sql, parameters=parameters)]


def _close(draw: Draw) -> list[Statement]:
    return _on_project(draw, "deleted_at = now()")


def _reopen(draw: Draw) -> list[Statement]:
    """Of all that are closed, so that most are open most of the time."""
    sql = (
        "update onto_projects set deleted_at = null where deleted_at is not null"
        " returning id::text, null::text, null::bigint"
    )
    return [Statement(sql=sql)]


def _raze(draw: Draw) -> list[Statement]:
    return [
        Statement(sql=f"delete from onto_projects {_OF_PROJECT}", parameters={"project": draw.project().id}),
    ]


FOUND = """
insert into onto_projects (id, name, created_by, props) values (%(project)s, %(canary)s, %(owner)s, '{}')
on conflict (id) do nothing returning id::text, null::text, null::bigint
"""


def _found(draw: Draw) -> list[Statement]:
    """A project, new or once deleted: all that are missing are candidates. Ticked at once, under the new row's
    lock, so that its ticks go on from those it had before it was deleted.
    """
    project = draw.dice.choice(draw.people.edited)
    owner = draw.people.actors[project.tenant][0]
    parameters = {"project": project.id, "canary": project.canary, "owner": owner}
    return [Statement(sql=FOUND, parameters=parameters), tick(KINDS.project, project)]


OPERATIONS: tuple[Operation, ...] = (
    Operation(name="tick", weight=32, write=_ticks),
    Operation(name="insert", weight=13, write=_insert),
    Operation(name="upsert", weight=4, write=_upsert),
    Operation(name="copy", weight=3, write=_copy),
    Operation(name="retitle", weight=10, write=_retitle),
    Operation(name="restate", weight=14, write=_restate),
    Operation(name="restate-many", weight=4, write=_restate_many),
    Operation(name="touch", weight=2, write=_touch),
    Operation(name="soft-delete", weight=5, write=_soft_delete),
    Operation(name="undelete", weight=3, write=_undelete),
    Operation(name="delete", weight=4, write=_delete),
    Operation(name="delete-many", weight=2, write=_delete_many),
    Operation(name="move", weight=4, write=_move),
    Operation(name="renumber", weight=1, write=_renumber),
    Operation(name="reborn", weight=1, write=_reborn),
    Operation(name="truncate", weight=0.1, write=_truncate),
    Operation(name="stray", weight=0.4, write=_stray),
    Operation(name="link", weight=9, write=_link),
    Operation(name="unlink", weight=3, write=_unlink),
    Operation(name="relink", weight=2, write=_relink),
    Operation(name="join", weight=3, write=_join),
    Operation(name="leave", weight=2, write=_leave),
    Operation(name="rename-actor", weight=0.5, write=_rename_actor),
    Operation(name="rezone", weight=1, write=_rezone),
    Operation(name="describe", weight=4, write=_describe),
    Operation(name="close", weight=0.8, write=_close),
    Operation(name="reopen", weight=1.6, write=_reopen),
    Operation(name="raze", weight=0.2, write=_raze),
    Operation(name="found", weight=0.8, write=_found),
)
"""All that is done to the tables."""

# ---- transactions

Ending = Literal["commit", "rollback", "abandon"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An operation. ``undone``: inside a savepoint that is rolled back; ``nested``: inside one that is kept."""

    operation: str
    statements: list[Statement]
    nested: bool = False
    undone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """Attributes:
    pause: seconds before it begins.
    hold: seconds that it stays open before its end, while others commit.
    isolation: its level.
    """

    steps: tuple[Step, ...]
    ending: Ending
    pause: float
    hold: float
    isolation: str


_LEVELS = ("read committed",) * 18 + ("repeatable read", "serializable")


def transactions(seed: int, editor: str, people: Population, rate: float) -> Iterator[Transaction]:
    """The transactions of an editor, for ever, about ``rate`` a second where none is held."""
    draw = Draw(Random(f"{seed}/{editor}"), people)
    while True:
        yield _transaction(draw, rate)


def _transaction(draw: Draw, rate: float) -> Transaction:
    dice = draw.dice
    size = dice.choices((1, 2, 3, 5), (70, 20, 7, 3))[0]
    return Transaction(
        steps=tuple(_step(draw) for _ in range(size)),
        ending=dice.choices(("commit", "rollback", "abandon"), (90, 8, 2))[0],
        pause=dice.expovariate(rate),
        hold=dice.uniform(0.1, 2.5) if dice.random() < 0.06 else 0.0,
        isolation=dice.choice(_LEVELS),
    )


_WEIGHTS = [operation.weight for operation in OPERATIONS]


def _step(draw: Draw) -> Step:
    operation = draw.dice.choices(OPERATIONS, _WEIGHTS)[0]
    chance = draw.dice.random()
    return Step(
        operation=operation.name,
        statements=operation.write(draw),
        nested=chance < 0.12,
        undone=chance < 0.05,
    )

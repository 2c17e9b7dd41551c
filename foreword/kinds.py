"""The registry of kinds: everything that depends on the kind of an entity, once per kind.

To add a kind, or a column to a light record, edit one declaration here. Derived from it: the tables and
their migration, the loader's statements, truncation, light records, scores, coverage, what is always included,
how a line reads, and the validation of imported rows. Light fields and truncation lengths are those of the
context enrichment specification ("Entity Field Specifications").

This module declares; it computes nothing about rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from foreword.errors import ForewordError

FINISHED = frozenset(
    {"done", "completed", "achieved", "abandoned", "cancelled", "closed", "mitigated", "archived"}
)
"""States in which nothing more is to be done, for every kind. Unknown states count as open."""

BEST, LATEST, HAPPENED = "best", "latest", "happened"
"""Views of a kind: the best scored, the latest touched where all score alike, those that came about last."""

LONGEST_LABEL = 200
"""Characters of a title that travel. Longer ones exist in production and are cut like any text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of an application's table.

    ``type`` is one of uuid, text, integer, numeric, timestamptz, jsonb. ``one_of`` and ``between`` become
    check constraints of the embedded schema and rules of the import.
    """

    name: str
    type: str = "text"
    required: bool = False
    one_of: tuple[str, ...] = ()
    between: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a light record: a column, cut to ``cut`` characters, or the SQL expression ``source``.

    ``time`` fields are shown as local calendar dates, ``number`` fields as numbers.
    """

    name: str
    cut: int | None = None
    source: str = ""
    time: bool = False
    number: bool = False


@dataclass(frozen=True, slots=True)
class Derived:
    """A field computed from edges by a rule of ``foreword.derive``; ``kind`` is the other end's, if any."""

    name: str
    rule: str
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How much an open entity matters, in points. A finished one gets ``finished`` and nothing else.

    ``by`` adds points by the value of a column, ``otherwise`` where the value is not listed; ``priority`` is
    added for each step above the lowest priority (5); ``bucket`` adds points for membership in a bucket of
    ``foreword.buckets``; ``probability`` multiplies a 0..1 column (unknown counts as 0.5). Open entities score
    20 or more, finished ones less than 10, so a finished one never displaces an open one.
    """

    by: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    otherwise: int = 30
    priority: int = 0
    probability: int = 0
    bucket: Mapping[str, int] = field(default_factory=dict)
    finished: int = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """One kind of entity.

    Attributes:
        name, plural: as written in JSON and text.
        table: its table in PostgreSQL.
        handle: the letters its handles begin with (``T`` makes T1, T2, ...).
        label: the column that names an entity.
        columns: its own columns; the common ones are added (``columns_of``).
        light, derived: the light record's fields, in order, after ``id``.
        line: how its line reads after handle and title: (format, field), skipped where the field is empty. What
            every kind's line can say (that it is blocked, waits, changed) is ``foreword.light``'s.
        always: included by project_id alone, linked or not.
        shown: entities of this kind in the bundle's slices at most.
        due: the column that can be late, if any; ``due_except``: open states for which it is not.
        happened: the column that says when it came about: a decision made, a task done. One asks for the latest.
        finished: states of this kind alone that end it, beside FINISHED.
        touched: the column that says when it last changed; kinds without updated_at name another.
        deletable: the table has deleted_at.
        volatility: where its section stands in the text: what rarely changes comes first (0), so that a prompt
            cache keeps the beginning.
        tally: the buckets whose sizes are always said, as (bucket, how it reads).
        views: what the general view shows of it, beside what answers the catalogue: BEST, LATEST, HAPPENED, or the
            best of a bucket.
        at: the position of each light field in a row; ``id`` is at 0. Derived.
    """

    name: str
    plural: str
    table: str
    handle: str
    label: str
    columns: tuple[Column, ...]
    light: tuple[Field, ...]
    derived: tuple[Derived, ...] = ()
    line: tuple[tuple[str, str], ...] = ()
    always: bool = False
    shown: int = 10
    score: Score = Score()
    due: str = ""
    due_except: frozenset[str] = frozenset()
    happened: str = ""
    finished: frozenset[str] = frozenset()
    touched: str = "updated_at"
    deletable: bool = True
    volatility: int = 50
    tally: tuple[tuple[str, str], ...] = ()
    views: tuple[str, ...] = (BEST,)
    at: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", {light.name: place for place, light in enumerate(self.light, 1)})

    def columns_of(self) -> tuple[Column, ...]:
        """Every column of the table, common ones included."""
        common = _COMMON if self.name == PROJECT else (_COMMON[0], _PROJECT_ID, *_COMMON[1:])
        absent = {"updated_at", "deleted_at"} if not self.deletable else set()
        own = {column.name for column in self.columns}
        return (
            *(c for c in common if c.name not in absent and c.name not in own),
            *self.columns,
        )

    @property
    def ranking(self) -> frozenset[str]:
        """The light fields that decide what is shown; the others are needed of what is shown only."""
        weights = {"priority": self.score.priority, "probability": self.score.probability}
        weighty = {name for name, weight in weights.items() if weight}
        return frozenset(
            {"state_key", "start_at", self.due, self.happened, self.touched, *self.score.by, *weighty}
            & self.at.keys()
        )

    def is_finished(self, state: str | None) -> bool:
        """Whether an entity of this kind in ``state`` needs no more work. Unknown states are open."""
        return state in FINISHED or state in self.finished


PROJECT = "project"

_PROJECT_ID = Column(name="project_id", type="uuid", required=True)
_COMMON = (
    Column(name="id", type="uuid", required=True),
    Column(name="type_key"),
    Column(name="props", type="jsonb"),
    Column(name="created_by", type="uuid"),
    Column(name="created_at", type="timestamptz", required=True),
    Column(name="updated_at", type="timestamptz", required=True),
    Column(name="deleted_at", type="timestamptz"),
)

_STATE = Column(name="state_key")
_DESCRIPTION = Column(name="description")


def _time(name: str) -> Column:
    return Column(name=name, type="timestamptz")


def _date(name: str) -> Field:
    return Field(name, time=True)


def _label(name: str) -> Field:
    return Field(name, LONGEST_LABEL)


def _short(name: str) -> Field:
    # Keys and states are words, but nothing in the database holds them to that.
    return Field(name, 60)


_OPEN = (("open", "open"),)
_DUE = {"overdue": 40, "today": 35, "ahead": 25}

_PROJECT = Kind(
    name=PROJECT,
    views=(),
    plural="projects",
    table="onto_projects",
    handle="PRJ",
    label="name",
    columns=(
        Column(name="name", required=True),
        _DESCRIPTION,
        _STATE,
        Column(name="facet_context"),
        Column(name="facet_scale"),
        Column(name="facet_stage"),
        _time("start_at"),
        _time("end_at"),
        Column(name="next_step_short"),
        Column(name="next_step_long"),
    ),
    light=(
        _label("name"),
        _short("state_key"),
        _short("type_key"),
        Field("description", 150),
        Field("next_step_short", LONGEST_LABEL),
        Field("next_step_long", 200),
        _date("start_at"),
        _date("end_at"),
        _short("facet_context"),
        _short("facet_scale"),
        _short("facet_stage"),
        _date("updated_at"),
        _date("created_at"),
        Field("timezone", 60, "props->>'timezone'"),
    ),
)

_TASK = Kind(
    name="task",
    views=(HAPPENED, "in_progress"),
    tally=(
        *_OPEN,
        ("overdue", "overdue"),
        ("today", "due today"),
        ("soon", "due in 7 days"),
        ("blocked", "blocked"),
        ("ready", "ready and dated"),
        ("in_progress", "in progress"),
        ("unblocking", "unblocking others"),
    ),
    volatility=90,
    plural="tasks",
    table="onto_tasks",
    handle="T",
    label="title",
    columns=(
        Column(name="title", required=True),
        _DESCRIPTION,
        _STATE,
        Column(name="priority", type="integer", between=(1, 5)),
        _time("start_at"),
        _time("due_at"),
        _time("completed_at"),
        Column(name="facet_scale"),
    ),
    light=(
        _label("title"),
        _short("state_key"),
        Field("priority"),
        _short("type_key"),
        _date("start_at"),
        _date("due_at"),
        _date("updated_at"),
        _date("created_at"),
        _date("completed_at"),
        Field("description", 120),
    ),
    derived=(
        Derived("plan_ids", "links", "plan"),
        Derived("goal_ids", "links", "goal"),
        Derived("output_ids", "links", "output"),
        Derived("dependency_count", "dependency_count"),
        Derived("dependent_count", "dependent_count"),
        Derived("waits_for", "waits_for"),
    ),
    line=(
        ("{}", "state_key"),
        ("p{}", "priority"),
        ("start {}", "start_at"),
        ("due {}", "due_at"),
        ("done {}", "completed_at"),
        ("plan {}", "plan_ids"),
        ("goal {}", "goal_ids"),
    ),
    shown=25,
    score=Score(
        by={"state_key": {"blocked": 60, "in_progress": 60, "todo": 40}},
        otherwise=40,
        priority=5,
        bucket={**_DUE, "blocked": 30, "unblocking": 20},
    ),
    due="due_at",
    happened="completed_at",
)

_GOAL = Kind(
    name="goal",
    tally=(
        *_OPEN,
        ("overdue", "behind"),
        ("at_risk", "at risk"),
        ("idle", "without tasks or plans"),
        ("measured", "with tasks"),
    ),
    volatility=10,
    plural="goals",
    table="onto_goals",
    handle="G",
    label="name",
    columns=(
        Column(name="name", required=True),
        Column(name="goal"),
        _DESCRIPTION,
        _STATE,
        _time("target_date"),
        _time("completed_at"),
    ),
    light=(
        _label("name"),
        _short("state_key"),
        _short("type_key"),
        _date("target_date"),
        _date("completed_at"),
        _date("created_at"),
        _date("updated_at"),
        Field("description", 120),
    ),
    derived=(
        Derived("progress_percent", "progress_percent", "goal"),
        Derived("completed_tasks", "completed_tasks", "goal"),
        Derived("total_tasks", "total_tasks", "goal"),
    ),
    line=(
        ("{}", "state_key"),
        ("target {}", "target_date"),
        ("achieved {}", "completed_at"),
        ("{} done", "progress"),
    ),
    always=True,
    shown=15,
    score=Score(by={"state_key": {"active": 90, "draft": 45}}, otherwise=50, bucket=_DUE),
    due="target_date",
    due_except=frozenset({"draft"}),
    happened="completed_at",
)

_PLAN = Kind(
    name="plan",
    tally=_OPEN,
    volatility=30,
    plural="plans",
    table="onto_plans",
    handle="P",
    label="name",
    columns=(Column(name="name", required=True), Column(name="plan"), _DESCRIPTION, _STATE),
    light=(
        _label("name"),
        _short("state_key"),
        _short("type_key"),
        _date("created_at"),
        _date("updated_at"),
        Field("description", 120),
    ),
    derived=(
        Derived("task_count", "total_tasks", "plan"),
        Derived("completed_task_count", "completed_tasks", "plan"),
    ),
    line=(("{}", "state_key"), ("{} done", "progress")),
    score=Score(by={"state_key": {"active": 65, "draft": 40}}, otherwise=40),
)

_MILESTONE = Kind(
    name="milestone",
    views=(),
    tally=(*_OPEN, ("overdue", "missed"), ("at_risk", "at risk"), ("upcoming", "upcoming")),
    volatility=40,
    plural="milestones",
    table="onto_milestones",
    handle="M",
    label="title",
    columns=(
        Column(name="title", required=True),
        Column(name="milestone"),
        _DESCRIPTION,
        _STATE,
        _time("due_at"),
        _time("completed_at"),
    ),
    light=(
        _label("title"),
        _short("state_key"),
        _short("type_key"),
        _date("due_at"),
        _date("completed_at"),
        _date("created_at"),
        _date("updated_at"),
        Field("description", 120),
    ),
    line=(("{}", "state_key"), ("due {}", "due_at"), ("done {}", "completed_at")),
    score=Score(by={"state_key": {"missed": 70, "in_progress": 70, "pending": 55}}, otherwise=50, bucket=_DUE),
    due="due_at",
    happened="completed_at",
)

_RISK = Kind(
    name="risk",
    views=(),
    tally=_OPEN,
    volatility=80,
    plural="risks",
    table="onto_risks",
    handle="R",
    label="title",
    columns=(
        Column(name="title", required=True),
        Column(name="content"),
        _STATE,
        Column(name="impact", one_of=("low", "medium", "high", "critical")),
        Column(name="probability", type="numeric", between=(0, 1)),
        _time("mitigated_at"),
    ),
    light=(
        _label("title"),
        _short("state_key"),
        _short("type_key"),
        _short("impact"),
        Field("probability", number=True),
        _date("created_at"),
        _date("updated_at"),
        _date("mitigated_at"),
        Field("content", 120),
    ),
    line=(("{}", "state_key"), ("impact {}", "impact"), ("probability {}", "probability")),
    score=Score(
        by={"impact": {"critical": 75, "high": 60, "medium": 30, "low": 15}, "state_key": {"occurred": 20}},
        otherwise=0,
        probability=20,
    ),
)

_DECISION = Kind(
    name="decision",
    tally=(("happened", "decided"),),
    happened="decision_at",
    volatility=70,
    plural="decisions",
    table="onto_decisions",
    handle="D",
    label="title",
    columns=(
        Column(name="title", required=True),
        _DESCRIPTION,
        Column(name="rationale"),
        Column(name="outcome"),
        _time("decision_at"),
        _STATE,
    ),
    light=(
        _label("title"),
        _short("state_key"),
        _date("decision_at"),
        _date("created_at"),
        _date("updated_at"),
        Field("outcome", 120),
        Field("rationale", 180),
        Field("description", 120),
    ),
    line=(("{}", "state_key"), ("on {}", "decision_at"), ("outcome {}", "outcome")),
    score=Score(by={"state_key": {"pending": 65, "made": 35, "deferred": 30}}, otherwise=35),
)

_REQUIREMENT = Kind(
    name="requirement",
    volatility=20,
    plural="requirements",
    table="onto_requirements",
    handle="Q",
    label="text",
    columns=(
        Column(name="text", required=True),
        Column(name="priority", type="integer", between=(1, 5)),
    ),
    light=(
        _label("text"),
        Field("priority"),
        _date("created_at"),
        _date("updated_at"),
        _short("type_key"),
    ),
    line=(("p{}", "priority"),),
    score=Score(otherwise=25, priority=5),
)

_DOCUMENT = Kind(
    name="document",
    volatility=50,
    plural="documents",
    table="onto_documents",
    handle="DOC",
    label="title",
    columns=(Column(name="title", required=True), _DESCRIPTION, Column(name="content"), _STATE),
    light=(
        _label("title"),
        _short("state_key"),
        _short("type_key"),
        _date("created_at"),
        _date("updated_at"),
        Field("description", 180),
        Field("content", 200),
    ),
    line=(("{}", "state_key"),),
    always=True,
    score=Score(
        by={"state_key": {"in_review": 50, "review": 50, "ready": 45, "published": 40, "draft": 35}},
        otherwise=35,
    ),
)

_OUTPUT = Kind(
    name="output",
    tally=_OPEN,
    volatility=60,
    plural="outputs",
    table="onto_outputs",
    handle="O",
    label="name",
    columns=(Column(name="name", required=True), _DESCRIPTION, _STATE),
    light=(
        _label("name"),
        _short("state_key"),
        _short("type_key"),
        _date("created_at"),
        _date("updated_at"),
        Field("description", 160),
    ),
    derived=(
        Derived("linked_goal_ids", "links", "goal"),
        Derived("linked_task_ids", "links", "task"),
    ),
    line=(("{}", "state_key"), ("goal {}", "linked_goal_ids"), ("task {}", "linked_task_ids")),
    always=True,
    score=Score(by={"state_key": {"in_progress": 55, "review": 55, "draft": 40}}, otherwise=35, finished=9),
    finished=frozenset({"published"}),
)

_SIGNAL = Kind(
    name="signal",
    views=(LATEST,),
    volatility=85,
    plural="signals",
    table="onto_signals",
    handle="S",
    label="payload_summary",
    columns=(
        Column(name="channel"),
        Column(name="ts", type="timestamptz", required=True),
        Column(name="payload", type="jsonb"),
    ),
    light=(
        _short("channel"),
        _date("ts"),
        _date("created_at"),
        Field("payload_summary", 160, "coalesce(payload->>'summary', payload::text)"),
    ),
    line=(("{}", "channel"), ("at {}", "ts")),
    shown=8,
    score=Score(otherwise=20),
    touched="ts",
    deletable=False,
)

_INSIGHT = Kind(
    name="insight",
    views=(LATEST,),
    volatility=75,
    plural="insights",
    table="onto_insights",
    handle="I",
    label="title",
    columns=(
        Column(name="title", required=True),
        Column(name="derived_from_signal_id", type="uuid"),
    ),
    light=(
        _label("title"),
        _date("created_at"),
        Field("derived_from_signal_id"),
        Field("summary", 160, "props->>'summary'"),
    ),
    line=(("created {}", "created_at"),),
    shown=8,
    score=Score(otherwise=28),
    touched="created_at",
    deletable=False,
)


@dataclass(frozen=True, slots=True)
class Registry:
    """The kinds a system knows: the project's, and every entity's in the order in which they are listed.

    ``by_name`` and ``places`` (in that order, the project first) follow from them.
    """

    project: Kind
    entities: tuple[Kind, ...]
    by_name: Mapping[str, Kind]
    places: Mapping[str, int]

    @classmethod
    def of(cls, project: Kind, *entities: Kind) -> "Registry":
        """A checked registry.

        Raises:
            ForewordError: two kinds share a name, plural, table or handle, or a label is no light field.
        """
        kinds = (project, *entities)
        for what in ("name", "plural", "table", "handle"):
            values = [getattr(kind, what) for kind in kinds]
            if len(set(values)) != len(values):
                raise ForewordError(f"two kinds share a {what}: {sorted(values)}")
        for kind in kinds:
            if kind.label not in {f.name for f in kind.light}:
                raise ForewordError(f"kind {kind.name}: its label {kind.label!r} is no light field")
            if not kind.handle.isalpha() or not kind.handle.isupper() or not kind.handle.isascii():
                raise ForewordError(f"kind {kind.name}: a handle is capital letters, not {kind.handle!r}")
        return cls(
            project,
            entities,
            MappingProxyType({kind.name: kind for kind in kinds}),
            MappingProxyType({kind.name: place for place, kind in enumerate(kinds)}),
        )

    def extended(self, *more: Kind) -> "Registry":
        """This registry and further kinds after its own."""
        return Registry.of(self.project, *self.entities, *more)

    @property
    def all(self) -> tuple[Kind, ...]:
        """The project's kind, then the entities'."""
        return (self.project, *self.entities)


KINDS = Registry.of(
    _PROJECT,
    _TASK,
    _GOAL,
    _PLAN,
    _MILESTONE,
    _RISK,
    _DECISION,
    _REQUIREMENT,
    _DOCUMENT,
    _OUTPUT,
    _SIGNAL,
    _INSIGHT,
)
"""The twelve kinds of the specification."""

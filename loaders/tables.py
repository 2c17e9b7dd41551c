"""The tables as SQLAlchemy metadata: the application's, derived from the registry of kinds, and our own.

Metadata only; no statement is run here. Migrations are written out by hand and a test compares them with this.
"""

from typing import Any

from sqlalchemy import (
    ARRAY,
    CHAR,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    PrimaryKeyConstraint,
    Sequence,
    SmallInteger,
    Table,
    Text,
    Time,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.types import UserDefinedType

from foreword.kinds import KINDS, PROJECT, Kind, Registry
from foreword.kinds import Column as Declared

_TYPES: dict[str, Any] = {
    "uuid": lambda: Uuid(as_uuid=False),
    "text": Text,
    "integer": Integer,
    "numeric": Numeric,
    "timestamptz": lambda: DateTime(timezone=True),
    "jsonb": JSONB,
}

EDGES = "onto_edges"
ACTORS = "onto_actors"
MEMBERS = "onto_project_members"

# The tables that are no kind, in the words of the registry, so that import and schema treat them alike.
LINKING: dict[str, tuple[Declared, ...]] = {
    EDGES: (
        Declared(name="id", type="uuid", required=True),
        Declared(name="project_id", type="uuid", required=True),
        Declared(name="src_kind", required=True),
        Declared(name="src_id", type="uuid", required=True),
        Declared(name="dst_kind", required=True),
        Declared(name="dst_id", type="uuid", required=True),
        Declared(name="rel", required=True),
        Declared(name="props", type="jsonb"),
        Declared(name="created_at", type="timestamptz", required=True),
    ),
    ACTORS: (
        Declared(name="id", type="uuid", required=True),
        Declared(name="kind", required=True, one_of=("human", "agent")),
        Declared(name="user_id", type="uuid"),
        Declared(name="name"),
        Declared(name="email"),
    ),
    MEMBERS: (
        Declared(name="id", type="uuid", required=True),
        Declared(name="project_id", type="uuid", required=True),
        Declared(name="actor_id", type="uuid", required=True),
        Declared(name="role_key", required=True, one_of=("owner", "editor", "viewer")),
        Declared(name="removed_at", type="timestamptz"),
    ),
}


def ontology(kinds: Registry = KINDS) -> MetaData:
    """The application's tables: one per kind, then edges, actors and members."""
    metadata = MetaData()
    for kind in kinds.all:
        _entity_table(metadata, kind)
    for name, columns in LINKING.items():
        Table(name, metadata, *map(_column, columns), *_checks(name, columns))
    edges, members = metadata.tables[EDGES], metadata.tables[MEMBERS]
    for column in ("project_id", "src_id", "dst_id"):
        Index(f"{EDGES}_{column}", edges.c[column])
    for column in ("project_id", "actor_id"):
        Index(f"{MEMBERS}_{column}", members.c[column])
    return metadata


def _entity_table(metadata: MetaData, kind: Kind) -> None:
    columns = kind.columns_of()
    table = Table(kind.table, metadata, *map(_column, columns), *_checks(kind.table, columns))
    if kind.name != PROJECT:
        live = text("deleted_at is null") if kind.deletable else None
        Index(f"{kind.table}_live", table.c.project_id, postgresql_where=live)


def _column(declared: Declared) -> Column[Any]:
    return Column(
        declared.name,
        _TYPES[declared.type](),
        primary_key=declared.name == "id",
        nullable=not declared.required,
        server_default=_default(declared),
    )


def _default(declared: Declared) -> Any:
    if declared.name == "props":
        return text("'{}'::jsonb")
    return func.now() if declared.name in {"created_at", "updated_at"} else None


def _checks(table: str, columns: tuple[Declared, ...]) -> list[CheckConstraint]:
    checks = []
    for column in columns:
        if column.one_of:
            listed = ", ".join(f"'{value}'" for value in column.one_of)
            checks.append(CheckConstraint(f"{column.name} in ({listed})", name=f"{table}_{column.name}_known"))
        if column.between:
            low, high = column.between
            checks.append(
                CheckConstraint(f"{column.name} between {low} and {high}", name=f"{table}_{column.name}_range")
            )
    return checks


class Xid8(UserDefinedType[str]):
    """A transaction id that never wraps around."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """The type's name."""
        return "xid8"


ischema_names["xid8"] = Xid8  # for who compares a database with this metadata


OWN = MetaData()
"""Foreword's own tables. They refer to the application's rows by id and never by foreign key: the application
deletes what it likes."""

GENERATION = Sequence("fw_generation", metadata=OWN)
"""Orders publications; drawn under the project's lock."""

REQUEST = Sequence("fw_request", metadata=OWN)
"""Numbers requests for a build, so that one can be told from the next."""

PROJECT_NUMBER = Sequence("fw_project_number", metadata=OWN)
"""Handles of projects are unique everywhere; those of entities inside their project."""

facts = Table(
    "fw_facts",
    OWN,
    Column("name", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
    comment="Single numbers: epoch rises when the database was restored to an earlier time.",
)

handles = Table(
    "fw_handles",
    OWN,
    Column("project_id", Uuid(as_uuid=False), nullable=False),
    Column("entity_id", Uuid(as_uuid=False), nullable=False),
    Column("kind", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    PrimaryKeyConstraint("project_id", "entity_id"),
    UniqueConstraint("project_id", "kind", "number"),
    comment="Short names of entities. Rows are never deleted: a number is never used again.",
)

projects = Table(
    "fw_projects",
    OWN,
    Column("project_id", Uuid(as_uuid=False), primary_key=True),
    Column("requested", BigInteger, nullable=False, server_default=text("0")),
    Column("finished", BigInteger, nullable=False, server_default=text("0")),
    Column("generation", BigInteger, nullable=False, server_default=text("0")),
    Column("snapshot", Text, nullable=False, server_default=text("''")),
    Column("entities", Integer, nullable=False, server_default=text("0")),
    Column("built_at", DateTime(timezone=True)),
    Column("error", Text),
    # Who pays for it, so that nobody's bulk delays another's edit.
    Column("tenant", Text),
    # The message under way: its queue, and how many were sent since a build began.
    Column("lane", Text, nullable=False, server_default=text("''")),
    Column("sends", Integer, nullable=False, server_default=text("0")),
    # The build under way, or the last: how many began since the last good one, what it could see, its session.
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("tried", Text, nullable=False, server_default=text("''")),
    Column("builder", Integer),
    Column("begun_at", DateTime(timezone=True)),
    # When it may be claimed again: a lease, a pause between builds, a back-off.
    Column("quiet_until", DateTime(timezone=True), nullable=False, server_default=text("'-infinity'")),
    Column("pace", Integer, nullable=False, server_default=text("0")),
    Column("parked_at", DateTime(timezone=True)),
    # Until when its dates are true, and when it is to be built again though nobody edits it.
    Column("valid_until", DateTime(timezone=True)),
    Column("refresh_at", DateTime(timezone=True)),
    # The Redis that it was published to, and in which layout.
    Column("incarnation", Text, nullable=False, server_default=text("''")),
    Column("layout", Integer, nullable=False, server_default=text("0")),
    comment="One row per project: the last request, the last request answered, the last build, its error.",
)
Index(
    "fw_projects_busy",
    projects.c.project_id,
    postgresql_where=text("requested > finished or sends > 0 or attempts > 0"),
)
Index("fw_projects_refresh_at", projects.c.refresh_at)
Index("fw_projects_incarnation", projects.c.incarnation)
Index("fw_projects_layout", projects.c.layout)

changes = Table(
    "fw_changes",
    OWN,
    Column("project_id", Uuid(as_uuid=False), nullable=False),
    Column("txid", Xid8, nullable=False, server_default=text("pg_current_xact_id()")),
    Column("at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")),
    Column("table_name", Text, nullable=False),
    # Inserted, updated, deleted, truncated; echo: rows that edges of this project end at came or went elsewhere.
    Column(
        "op",
        CHAR(1),
        CheckConstraint("op in ('I', 'U', 'D', 'T', 'E')", name="fw_changes_op_known"),
        nullable=False,
    ),
    # 0 where rows left for another project, or nobody counted.
    Column("rows", BigInteger, nullable=False),
    Column("row_ids", ARRAY(Uuid(as_uuid=False))),
    comment="What bundles do not hold yet: a row per edited project and statement, written inside the edit.",
)
Index("fw_changes_project_id", changes.c.project_id, changes.c.txid)

leader = Table(
    "fw_leader",
    OWN,
    Column(
        "one",
        Boolean,
        CheckConstraint("one", name="fw_leader_single"),
        server_default=text("true"),
        nullable=False,
    ),
    Column("relay", Text, nullable=False),
    Column("until", DateTime(timezone=True), nullable=False),
    PrimaryKeyConstraint("one"),
    comment="The relay that leads, and until when. An economy: two that lead at once do no harm.",
)

_CREATED: dict[str, Any] = {"nullable": False, "server_default": text("now()")}

subscriptions = Table(
    "fw_subscriptions",
    OWN,
    Column("user_id", Uuid(as_uuid=False), primary_key=True),
    # On whose wall, when, and on which day of the week (0 is Monday) or every day.
    Column("zone", Text, nullable=False),
    Column("at", Time, nullable=False, server_default=text("'09:00:00'")),
    Column("weekday", SmallInteger),
    Column("active", Boolean, nullable=False, server_default=text("true")),
    Column("channels", ARRAY(Text), nullable=False, server_default=text("'{chat}'")),
    Column("when_empty", Text, nullable=False, server_default=text("'brief'")),
    Column("tenant", Text),
    Column("last_visit_at", DateTime(timezone=True)),
    # The next run, an instant and the local date it is for. Null: to be computed, or there is an error.
    Column("next_run_at", DateTime(timezone=True)),
    Column("next_date", Date),
    Column("error", Text),
    Column("created_at", DateTime(timezone=True), **_CREATED),
    Column("updated_at", DateTime(timezone=True), **_CREATED),
    CheckConstraint("at < '24:00:00'", name="fw_subscriptions_at_known"),
    CheckConstraint("weekday between 0 and 6", name="fw_subscriptions_weekday_known"),
    CheckConstraint("channels <@ array['chat', 'mail']", name="fw_subscriptions_channels_known"),
    CheckConstraint("when_empty in ('brief', 'none')", name="fw_subscriptions_when_empty_known"),
    comment="Who gets a brief, and when. May be edited by plain SQL: a trigger has the next run computed anew.",
)
Index(
    "fw_subscriptions_next_run_at",
    subscriptions.c.next_run_at,
    postgresql_where=text("active and error is null"),
)

_UNDER_WAY = text("state in ('pending', 'generating')")

briefs = Table(
    "fw_briefs",
    OWN,
    Column("user_id", Uuid(as_uuid=False), nullable=False),
    Column("local_date", Date, nullable=False),
    Column("state", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("zone", Text, nullable=False),
    Column("tenant", Text),
    # When it is to be told. Null: somebody asked for it by hand, and nobody else is told.
    Column("due_at", DateTime(timezone=True)),
    # From when it could be told: when it was due, or finished if that was later. Null: it never could.
    Column("told_at", DateTime(timezone=True)),
    # When somebody asked for it by hand, and may have read it.
    Column("asked_at", DateTime(timezone=True)),
    Column("build_at", DateTime(timezone=True), nullable=False),
    # When it may be claimed: the time to build, a lease, a back-off.
    Column("quiet_until", DateTime(timezone=True), nullable=False, server_default=text("'-infinity'")),
    # Messages since a generation began; generations that began since the last good one.
    Column("sends", Integer, nullable=False, server_default=text("0")),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("lease", Text),
    Column("revision", Integer, nullable=False, server_default=text("0")),
    Column("reason", Text),
    Column("words", Text),
    Column("document", JSONB),
    Column("lines", JSONB),
    Column("stamp", Text),
    # What the next brief is compared with; kept of the last two only.
    Column("facts", LargeBinary),
    Column("since", DateTime(timezone=True)),
    Column("generated_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), **_CREATED),
    PrimaryKeyConstraint("user_id", "local_date"),
    CheckConstraint(
        "state in ('pending', 'generating', 'ready', 'failed', 'skipped', 'missed')", name="fw_briefs_state_known"
    ),
    CheckConstraint("kind in ('daily', 'return', 'asked')", name="fw_briefs_kind_known"),
    comment="One row per user and local date: whether there is a brief, and what it says.",
)
Index("fw_briefs_claim", briefs.c.tenant, briefs.c.quiet_until, postgresql_where=_UNDER_WAY)
Index("fw_briefs_due_at", briefs.c.due_at, postgresql_where=_UNDER_WAY)
Index("fw_briefs_sent", briefs.c.tenant, postgresql_where=text("sends > 0"))
Index("fw_briefs_generating", briefs.c.quiet_until, postgresql_where=text("state = 'generating'"))
Index("fw_briefs_failed", briefs.c.user_id, postgresql_where=text("state = 'failed'"))
Index("fw_briefs_created_at", briefs.c.created_at)

announcements = Table(
    "fw_announcements",
    OWN,
    Column("user_id", Uuid(as_uuid=False), nullable=False),
    Column("local_date", Date, nullable=False),
    Column("channel", Text, nullable=False),
    Column("not_before", DateTime(timezone=True), nullable=False),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("sent_at", DateTime(timezone=True)),
    Column("dead_at", DateTime(timezone=True)),
    Column("error", Text),
    Column("revision", Integer, nullable=False),
    PrimaryKeyConstraint("user_id", "local_date", "channel"),
    CheckConstraint("channel in ('stream', 'webhook')", name="fw_announcements_channel_known"),
    comment="That a brief is ready is told once on each channel: what is still to be told, and what was.",
)
Index(
    "fw_announcements_waiting",
    announcements.c.not_before,
    postgresql_where=text("sent_at is null and dead_at is null"),
)
Index("fw_announcements_dead", announcements.c.dead_at, postgresql_where=text("dead_at is not null"))

model_calls = Table(
    "fw_model_calls",
    OWN,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("user_id", Uuid(as_uuid=False), nullable=False),
    Column("local_date", Date, nullable=False),
    Column("at", DateTime(timezone=True), **_CREATED),
    Column("prompt", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("prompt_tokens", Integer),
    Column("completion_tokens", Integer),
    Column("cost", Numeric),
    Column("milliseconds", Integer, nullable=False),
    Column("outcome", Text, nullable=False),
    comment="What was asked of a model for briefs, what it cost, and what became of it.",
)
Index("fw_model_calls_at", model_calls.c.at)

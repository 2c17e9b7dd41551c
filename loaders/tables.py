"""The tables as SQLAlchemy metadata: the application's, derived from the registry of kinds, and our own.

Metadata only; no statement is run here. Migrations are written out by hand and a test compares them with this.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Index,
    Integer,
    MetaData,
    Numeric,
    PrimaryKeyConstraint,
    Sequence,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

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
    comment="One row per project: the last request, the last request answered, the last build, its error.",
)

"""What the connected database has: which kinds have a table, which tables can archive. Asked once, when a
process starts, so that a missing table is known and no query fails to find it out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from foreword.errors import SchemaError
from foreword.kinds import KINDS, Kind, Registry
from loaders.connection import Connection, mapped
from loaders.tables import EDGES, LINKING, MEMBERS

_LINKING_READ = {
    EDGES: {"id", "project_id", "src_kind", "src_id", "dst_kind", "dst_id", "rel"},
    MEMBERS: {"project_id", "actor_id", "role_key", "removed_at"},
}
"""What the loader's statements name of the tables that are no kind."""

_COLUMNS = """
select c.relname, array_agg(a.attname::text)
from pg_class c join pg_attribute a on a.attrelid = c.oid
where c.oid = any(select to_regclass(name) from unnest(%s::text[]) name) and a.attnum > 0 and not a.attisdropped
group by c.relname
"""

_INDEXED = """
select c.relname, a.attname::text
from pg_index i join pg_class c on c.oid = i.indrelid
  join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
where i.indisvalid and c.oid = any(select to_regclass(name) from unnest(%s::text[]) name)
"""

# Tables with row-level security for this role, and whether it is let see every row all the same: by a policy that
# asks for nothing, with none beside it that forbids.
_POLICIES = """
with applied as (
  select p.polrelid, p.polpermissive, pg_get_expr(p.polqual, p.polrelid) as condition from pg_policy p
  where p.polcmd in ('*', 'r')
    and (0 = any(p.polroles) or exists (select from unnest(p.polroles) role where pg_has_role(role, 'usage'))))
select c.relname,
  exists (select from applied a where a.polrelid = c.oid and a.polpermissive and a.condition = 'true')
  and not exists (select from applied a where a.polrelid = c.oid and not a.polpermissive)
from pg_class c
where c.oid = any(select to_regclass(name) from unnest(%s::text[]) name) and row_security_active(c.oid)
order by c.relname
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """The tables that are there.

    Attributes:
        kinds: the registry they were compared with.
        columns: the columns of every table found.
        absent: kinds without a table.
        missing_indexes: (table, column) that the loader reads by and nothing indexes.
    """

    kinds: Registry
    columns: Mapping[str, frozenset[str]]
    absent: tuple[str, ...]
    missing_indexes: tuple[tuple[str, str], ...]

    def has(self, table: str) -> bool:
        """Whether the database has this table."""
        return table in self.columns

    @property
    def present(self) -> tuple[Kind, ...]:
        """The kinds of entities that have a table."""
        return tuple(kind for kind in self.kinds.entities if kind.name not in self.absent)

    @property
    def has_members(self) -> bool:
        """Whether membership is kept in this database."""
        return self.has(MEMBERS)

    def live(self, table: str, alias: str = "") -> str:
        """The SQL condition of a live row: not deleted, and not archived where there is such a thing."""
        dot = f"{alias}." if alias else ""
        found = [f"{dot}{c} is null" for c in ("deleted_at", "archived_at") if c in self.columns[table]]
        return " and ".join(found) or "true"


def inspect(connection: Connection, kinds: Registry = KINDS) -> Catalog:
    """Look at the database.

    Raises:
        SchemaError: there is no table of projects or edges, a table lacks a column that the loader reads, or hides
            rows from us.
    """
    tables = [kind.table for kind in kinds.all] + [*LINKING]
    with mapped("looking at the database's tables"):
        columns = {name: frozenset(names) for name, names in connection.execute(_COLUMNS, [tables]).fetchall()}
        indexed = set(connection.execute(_INDEXED, [tables]).fetchall())
    _see_all_rows(connection, tables)
    for table in (kinds.project.table, EDGES):
        if table not in columns:
            raise SchemaError(f"the database has no table {table}; run `python -m worker migrate`")
    read = {kind.table: _read(kind) for kind in kinds.all} | _LINKING_READ
    lacking = [f"{t}.{name}" for t in read if t in columns for name in sorted(read[t] - columns[t])]
    if lacking:
        raise SchemaError(f"the database lacks {', '.join(lacking)}; the loader reads them (foreword/kinds.py)")
    wanted = [
        *((kind.table, "id") for kind in kinds.all),
        *((table, "project_id") for table in read if table != kinds.project.table),
    ]
    return Catalog(
        kinds=kinds,
        columns=columns,
        absent=tuple(kind.name for kind in kinds.entities if kind.table not in columns),
        missing_indexes=tuple(w for w in wanted if w[0] in columns and w not in indexed),
    )


def _see_all_rows(connection: Connection, tables: list[str]) -> None:
    """See to it that no row is missing because a policy hides it: half a bundle looks like a whole one, and a
    project that cannot be seen like one that was deleted. The session refuses such queries (``connect``), also
    those that policies come to concern later; but where policies let this role see everything, it may.
    """
    with mapped("looking at the database's policies"):
        found = connection.execute(_POLICIES, [tables]).fetchall()
        hiding = [table for table, open_to_us in found if not open_to_us]
        if hiding:
            ((role,),) = connection.execute("select quote_ident(current_user)").fetchall()
            raise SchemaError(
                f"row-level security hides rows of {', '.join(hiding)} from the role {role}: bundles would lack"
                f" them in silence; `alter role {role} bypassrls`, or give each table a policy"
                f" `for select to {role} using (true)` (docs/threats.md)"
            )
        if found:
            connection.execute("set row_security to on")


def _read(kind: Kind) -> set[str]:
    """The columns that the loader's statements name: those of the light record, and the keys."""
    declared = {column.name for column in kind.columns_of()}
    light = " ".join(re.sub(r"'[^']*'", "", field.source) or field.name for field in kind.light)
    return declared & {"id", "project_id", *re.findall(r"\w+", light)}

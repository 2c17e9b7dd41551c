"""What our role may do, and what of the database a doctor looks at: rights, the revision, sessions of others."""

from loaders.connection import Connection, mapped
from loaders.watch import TABLES

# What is done with each: the application's tables are read, ours are written, but for the history of migrations.
# No function of ours is called by this role: triggers run theirs as their owner, fw_token() is the application's.
_LACKING = r"""
with needed (thing, kind, rights, ours) as (
  select oid, relkind, array['SELECT'], false
  from unnest(%(read)s::text[]) name join pg_class on oid = to_regclass(name)
  union all
  select oid, relkind, case when relkind = 'S' then array['USAGE'] when relname = 'fw_alembic_version'
    then array['SELECT'] else array['SELECT', 'INSERT', 'UPDATE', 'DELETE'] end, true
  from pg_class
  where relname like 'fw\_%%' and relkind in ('r', 'S') and relnamespace = current_schema::regnamespace
)
select thing::regclass::text, string_agg(name, ', ' order by place)
from needed, unnest(rights) with ordinality as one (name, place)
where not case kind when 'S' then has_sequence_privilege(thing, name) else has_table_privilege(thing, name) end
group by thing, ours order by ours, 1
"""

_DEPLOYED = "select from pg_roles where rolname = 'foreword_worker' and pg_has_role(oid, 'USAGE')"

# A role may end its own sessions, and those of roles that it is a member of.
_FOREIGN = """
select distinct usename from pg_stat_activity
where application_name like 'foreword%' and datname = current_database() and usename <> current_user
  and not pg_has_role(usename, 'MEMBER')
  and not pg_has_role('pg_signal_backend', 'MEMBER')
"""

_REVISION = "select version_num from fw_alembic_version"


def lacking(connection: Connection) -> list[tuple[str, str]]:
    """(table or sequence, rights) that our role does not have and needs."""
    with mapped("looking at our rights"):
        return connection.execute(_LACKING, {"read": list(TABLES)}).fetchall()


def deployed(connection: Connection) -> bool:
    """Whether our role has its rights from deploy/postgres/roles.sql."""
    with mapped("looking at our role"):
        return connection.execute(_DEPLOYED).fetchone() is not None


def beyond_us(connection: Connection) -> list[str]:
    """Roles with sessions of ours that we could not end, if one of them hangs."""
    with mapped("looking at other sessions"):
        return [row[0] for row in connection.execute(_FOREIGN).fetchall()]


def revision(connection: Connection) -> str:
    """The migration that the database is at.

    Raises:
        SchemaError: none ever ran.
    """
    with mapped("looking at the database's revision"):
        row = connection.execute(_REVISION).fetchone()
    return row[0] if row is not None else ""

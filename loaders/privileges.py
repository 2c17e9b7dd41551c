"""What our role may do, and what of the database a doctor looks at: rights, the revision, sessions of others."""

from loaders.connection import Connection, mapped
from loaders.watch import TABLES

READ, WRITE = ("SELECT",), ("SELECT", "INSERT", "UPDATE", "DELETE")

_TABLES = """
select to_regclass(name)::text, right_name
from unnest(%s::text[]) name, unnest(%s::text[]) right_name
where to_regclass(name) is not null and not has_table_privilege(to_regclass(name), right_name)
order by 1, 2
"""
_OWN = r"""
select c.relname, c.relkind = 'S' from pg_class c
where c.relname like 'fw\_%' and c.relkind in ('r', 'S') and c.relnamespace = current_schema::regnamespace
"""
_SEQUENCES = "select name from unnest(%s::text[]) name where not has_sequence_privilege(name, 'USAGE')"

# A role may end its own sessions, and those of roles that it is a member of.
_FOREIGN = """
select distinct usename from pg_stat_activity
where application_name like 'foreword%' and datname = current_database() and usename <> current_user
  and not pg_has_role(usename, 'MEMBER')
  and not pg_has_role('pg_signal_backend', 'MEMBER')
"""

_REVISION = "select version_num from fw_alembic_version"


def lacking(connection: Connection) -> list[tuple[str, str]]:
    """(table or sequence, right) that our role does not have and needs: to read the application's tables, and to
    write ours, but for the history of migrations.
    """
    with mapped("looking at our rights"):
        own = connection.execute(_OWN).fetchall()
        tables = [name for name, sequence in own if not sequence and name != "fw_alembic_version"]
        sequences = [name for name, sequence in own if sequence]
        return [
            *connection.execute(_TABLES, [list(TABLES), list(READ)]).fetchall(),
            *connection.execute(_TABLES, [tables, list(WRITE)]).fetchall(),
            *((name, "USAGE") for (name,) in connection.execute(_SEQUENCES, [sequences]).fetchall()),
        ]


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

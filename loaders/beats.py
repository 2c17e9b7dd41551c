"""When it was last looked who is due: for whoever looks when nobody does, and for operators."""

from loaders.connection import Connection, mapped

_NOTE = """
insert into fw_facts (name, value) values ('ticked', extract(epoch from clock_timestamp())::bigint)
on conflict (name) do update set value = excluded.value
"""

_SINCE = "select extract(epoch from clock_timestamp())::bigint - value from fw_facts where name = 'ticked'"


def note_tick(connection: Connection) -> None:
    """It was looked, now."""
    with mapped("noting a tick"):
        connection.execute(_NOTE, prepare=True)


def since_tick(connection: Connection) -> float:
    """Seconds since it was looked; infinite where it never was, or by the clock will only be."""
    with mapped("looking when the last tick was"):
        row = connection.execute(_SINCE, prepare=True).fetchone()
    return float(row[0]) if row is not None and row[0] >= 0 else float("inf")

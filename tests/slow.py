"""A table that takes too long to read, as PostgreSQL says so; at once, so that no other statement does, too."""

from collections.abc import Iterator
from contextlib import contextmanager

from loaders.connection import Connection

# Stable, so that it is asked once, also of a table without rows.
_TAKES_TOO_LONG = """
create function takes_too_long() returns bool stable language plpgsql as $$
  begin
    raise query_canceled using message = 'canceling statement due to statement timeout';
  end $$;
alter table {table} rename to {table}_below;
create view {table} as select * from {table}_below where takes_too_long()
"""

_AS_BEFORE = "drop view {table}; drop function takes_too_long; alter table {table}_below rename to {table}"


@contextmanager
def too_slow(connection: Connection, table: str) -> Iterator[None]:
    """Whoever reads the table within the block runs out of the time that a statement may take."""
    connection.execute(_TAKES_TOO_LONG.format(table=table).encode())
    try:
        yield
    finally:
        connection.execute(_AS_BEFORE.format(table=table).encode())

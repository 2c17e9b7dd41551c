"""Putting the triggers of the change log on the application's tables, and taking them off, while it is at work.

A trigger needs a lock that waits for every transaction that writes to the table, and whoever comes after waits
behind it. So the lock is waited for a fraction of a second only, again and again.
"""

import time

from psycopg import errors
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from foreword.errors import Unavailable
from foreword.kinds import KINDS
from loaders.connection import Connection as Loader
from loaders.connection import mapped
from loaders.tables import LINKING

LOCK_MILLISECONDS = 200
"""How long writers may have to stand behind us."""

# Tables of ours without all their triggers, as an application may add a table later.
_UNWATCHED = """
select to_regclass(name)::text from unnest(:names ::text[]) name
where to_regclass(name) is not null and
  (select count(*) from pg_trigger where tgrelid = to_regclass(name) and tgenabled = 'A'
     and tgname in ('fw_insert', 'fw_update', 'fw_delete', 'fw_truncate')) < 4
"""
_WATCHED = """
select distinct t.tgrelid::regclass::text from pg_trigger t
where t.tgname in ('fw_insert', 'fw_update', 'fw_delete', 'fw_truncate')
"""

TABLES = (*(kind.table for kind in KINDS.all), *LINKING)


def watch(connection: Connection, patience: float, tables: tuple[str, ...] = TABLES) -> list[str]:
    """Put triggers on those of ``tables`` that exist and have none; which got some. Some can have none
    (``unwatched``).

    ``connection`` is in autocommit mode: each table is a transaction of its own.

    Raises:
        Unavailable: a table was written to without a pause for ``patience`` seconds; those before it are watched.
    """
    unwatched = connection.execute(text(_UNWATCHED), {"names": list(tables)}).scalars().all()
    return [table for table in unwatched if not _alter(connection, "fw_watch", table, patience)]


def unwatched(connection: Loader) -> list[str]:
    """Tables of ours that have no triggers, such as views."""
    with mapped("looking for triggers"):
        asked = _UNWATCHED.replace(":names ::text[]", "%s::text[]")
        return [row[0] for row in connection.execute(asked, [list(TABLES)]).fetchall()]


def unwatch(connection: Connection, patience: float) -> None:
    """Take every trigger off. Raises: as ``watch``."""
    for table in connection.execute(text(_WATCHED)).scalars().all():
        _alter(connection, "fw_unwatch", table, patience)


def _alter(connection: Connection, function: str, table: str, patience: float) -> object:
    deadline = time.monotonic() + patience
    before = connection.execute(text("show lock_timeout")).scalar_one()
    connection.execute(text(f"set lock_timeout to '{LOCK_MILLISECONDS}ms'"))
    try:
        while True:
            try:
                return connection.execute(text(f"select {function}(:name ::regclass)"), {"name": table}).scalar()
            except OperationalError as error:
                if not isinstance(error.orig, errors.LockNotAvailable | errors.DeadlockDetected):
                    raise
                if time.monotonic() > deadline:
                    raise Unavailable(
                        f"migrating: {table} was written to without a pause for {patience:g} s; is a"
                        " transaction of the application left open? What was done stays, run it again"
                    ) from error
                time.sleep(LOCK_MILLISECONDS / 1000)
    finally:
        connection.execute(text("select set_config('lock_timeout', :before, false)"), {"before": before})

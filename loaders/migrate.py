"""Bringing a database up to date: our tables, and the application's where it has none."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from psycopg import errors
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool

from foreword.errors import SchemaError, Unavailable
from loaders.connection import CONNECT_SECONDS
from loaders.watch import unwatch, watch

_SCRIPTS = Path(__file__).parent / "migrations"
_LOCK = 0x464F5245

LOCK_SECONDS = 10
"""A migration that cannot get a table's lock gives up instead of queueing every reader behind itself."""


_PATIENCE = 6
"""Times that, for a moment in which nobody writes to a table that is to be watched."""


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    return config


def newest() -> str:
    """The revision this code wants."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None  # noqa: S101 - there are migrations
    return head


def migrate(database_url: str, *, lock_seconds: float = LOCK_SECONDS) -> str:
    """Run what has not been run, one migration at a time under a lock; the revision reached. Tables of the
    application that have come since are watched as well.

    Raises:
        Unavailable: the database does not answer, or a lock could not be had.
        SchemaError: a migration was refused; those before it stay, it itself left nothing.
    """
    patience = _PATIENCE * lock_seconds
    with _alone(database_url, lock_seconds) as (connection, config):
        command.upgrade(config, "head")
        connection.commit()
        watching = connection.execution_options(isolation_level="AUTOCOMMIT")
        if watch(watching, patience):  # what was edited before is in no log
            watching.execute(text("update fw_projects set refresh_at = now() where entities >= 0"))
    return newest()


def stop_watching(database_url: str, *, lock_seconds: float = LOCK_SECONDS) -> None:
    """Take the triggers off the application's tables, as for good: bundles are then as old as their last rebuild.
    Migrating puts them on again.

    Raises: as ``migrate``.
    """
    with _alone(database_url, lock_seconds) as (connection, _):
        unwatch(connection.execution_options(isolation_level="AUTOCOMMIT"), _PATIENCE * lock_seconds)


@contextmanager
def _alone(database_url: str, lock_seconds: float) -> Iterator[tuple[Connection, Config]]:
    """A connection for Alembic, under the lock of migrations."""
    engine = create_engine("postgresql+psycopg://", creator=lambda: _connect(database_url), poolclass=NullPool)
    config = _config()
    try:
        with engine.connect() as connection:
            connection.execute(text(f"set lock_timeout to '{round(lock_seconds * 1000)}ms'"))
            connection.execute(text("select pg_advisory_lock(:key)"), {"key": _LOCK})
            connection.commit()
            config.attributes["connection"] = connection
            config.attributes["patience"] = _PATIENCE * lock_seconds
            yield connection, config
    except OperationalError as error:
        if isinstance(error.orig, errors.LockNotAvailable):
            raise Unavailable(
                f"migrating: somebody else held a lock for {lock_seconds:g} s (another migration, or a transaction"
                " of the application); try again when it has ended"
            ) from error
        raise Unavailable(f"migrating: PostgreSQL: {_said(error)}") from error
    except DBAPIError as error:
        raise SchemaError(f"migrating: {_said(error)}; the failed step left nothing") from error
    finally:
        engine.dispose()


def _connect(database_url: str) -> psycopg.Connection:
    """By libpq's rules, as everywhere else, not SQLAlchemy's: several hosts, a conninfo string."""
    return psycopg.connect(database_url, connect_timeout=CONNECT_SECONDS, client_encoding="utf8")


def _said(error: DBAPIError) -> str:
    return str(error.orig).strip().splitlines()[0]

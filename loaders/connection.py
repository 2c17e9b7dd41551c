"""Connections to PostgreSQL as the loaders want them, and the mapping of its errors to ours.

Times come in UTC, and what is not text or an integer comes as PostgreSQL prints it: a light row is shown, not
computed with, and default loaders cost almost three times as much on large projects.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors
from psycopg.types.string import TextLoader

from foreword.errors import BuildError, ForewordError, SchemaError, Unavailable

Connection = psycopg.Connection[tuple[Any, ...]]

CONNECT_SECONDS = 10
"""To give up on a server that does not answer."""

STATEMENT_SECONDS = 45
"""A statement of a build that takes longer fails by itself, and not by the time limit of its task (50 s), which
would strike in the middle of a conversation with the server. Imports have no such limit.
"""

_ALIVE: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""A half-open connection would wait for ever; this one is found dead after half a minute."""

_AS_TEXT = ("uuid", "timestamptz", "timestamp", "date", "numeric", "json", "jsonb")

# A database may have other defaults; to compile a plan (jit) takes longer than any of our statements. Under
# repeatable read a build that waited for its lock would see what was there before the wait. The server, too, has
# to find out that we are dead, also in the middle of a statement (where its system can tell): our locks go with
# our session. Rows that a policy hides would be missing in silence: with row security off, a query that would lose
# some is refused instead (and ``loaders.catalog`` says so sooner).
_SESSION = """
set timezone to 'UTC'; set datestyle to 'ISO, YMD'; set lock_timeout to '30s';
set default_transaction_isolation to 'read committed'; set synchronous_commit to 'on';
set idle_in_transaction_session_timeout to '5min'; set plan_cache_mode to force_generic_plan;
set jit to off; set row_security to off;
set tcp_keepalives_idle to 10; set tcp_keepalives_interval to 5; set tcp_keepalives_count to 3;
do $$ begin
  perform set_config('client_connection_check_interval', '1s', false);
exception when others then null; end $$
"""


def connect(url: str, *, statement_seconds: int = STATEMENT_SECONDS) -> Connection:
    """A connection in autocommit mode. ``statement_seconds`` 0: statements may take as long as they like.

    Raises:
        Unavailable: nothing answers, or it is no PostgreSQL, or it refuses.
    """
    try:
        connection = psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            application_name="foreword",
            client_encoding="utf8",  # else an SQL_ASCII database gives bytes where text is meant
            **_ALIVE,
        )
        for name in _AS_TEXT:
            connection.adapters.register_loader(name, TextLoader)
        connection.prepared_max = 200
        connection.execute(_SESSION)
        connection.execute(f"set statement_timeout to '{int(statement_seconds)}s'".encode())
    except psycopg.Error as error:
        raise Unavailable(
            f"PostgreSQL does not answer: {_first_line(error)}; "
            "is the server running, and FOREWORD_DATABASE_URL right?"
        ) from error
    return connection


@contextmanager
def pipeline(connection: Connection) -> Iterator[None]:
    """Statements in one round trip; fetch after it.

    Whoever is interrupted inside, by a signal or by the time limit of a task, leaves answers on the way that
    nobody will fetch, for which the next question would wait for ever: the session is closed. And whoever is
    interrupted, is: the pipeline's end then fails, too, which is no error of the database and does not take the
    interruption's place.
    """
    outside, asked = sys.exception(), False
    try:
        with connection.pipeline(), _closed_on_interruption(connection):
            yield
            asked = True
    except psycopg.Error as error:
        within = error.__context__
        if not asked or within is None or within is outside or isinstance(within, psycopg.Error):
            raise
        connection.close()
        raise within from None
    except BaseException:
        connection.close()
        raise


@contextmanager
def _closed_on_interruption(connection: Connection) -> Iterator[None]:
    try:
        yield
    except psycopg.Error:
        raise
    except BaseException:
        connection.close()
        raise


# The change log is empty at night and holds a burst in the morning. A plan that was made by the statistics of an
# empty table reads all of it for each project: 12,000 projects took 2.5 s to look at instead of 6 ms.
_BY_INDEX = "select set_config('enable_seqscan', 'off', true)"


@contextmanager
def by_index(connection: Connection) -> Iterator[None]:
    """A pipeline, in one transaction, whose statements are planned to go by indexes. Fetch after it."""
    with pipeline(connection):
        connection.execute(_BY_INDEX, prepare=True)
        yield


@contextmanager
def mapped(what: str) -> Iterator[None]:
    """Errors of the database inside become ours: what was being done, what went wrong, what to do next.

    Raises:
        Unavailable: the connection was lost, or the server has no room left.
        SchemaError: a table or column is missing, or was altered since a statement was prepared for it; or our
            role may not what it has to.
        BuildError: any other refusal of the database.
    """
    try:
        yield
    except ForewordError:
        raise
    except (errors.DiskFull, errors.OutOfMemory, errors.ConfigurationLimitExceeded) as error:
        raise Unavailable(f"{what}: PostgreSQL has no room: {_first_line(error)}; nothing was changed") from error
    except (errors.UndefinedTable, errors.UndefinedColumn) as error:
        raise SchemaError(f"{what}: {_first_line(error)}; run `python -m worker migrate`") from error
    except errors.FeatureNotSupported as error:  # "cached plan must not change result type"
        raise SchemaError(f"{what}: a table was altered meanwhile: {_first_line(error)}; try again") from error
    except errors.InsufficientPrivilege as error:  # of the role and no project's fault: nothing is parked for it
        rights = "run deploy/postgres/roles.sql after every migration; of policies docs/threats.md tells"
        raise SchemaError(f"{what}: {_first_line(error)}; {rights}") from error
    except errors.QueryCanceled as error:  # the server is well, what was asked of it is too much
        raise BuildError(f"{what}: {_first_line(error)}") from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise Unavailable(f"{what}: PostgreSQL: {_first_line(error)}") from error
    except psycopg.Error as error:
        raise BuildError(f"{what}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """The server's message without its context lines, and never the connection string."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__

"""Whether a bundle holds an edit: a pure function of its snapshot and the token of the edit's transaction.

A token is taken inside the transaction that writes, and stands for all that it writes, before and after::

    with psycopg.connect(...) as connection:
        connection.execute("update onto_tasks ...")
        token = foreword.token(connection)

Sequences and timestamps cannot do this: transactions commit in another order than they drew them in. What a
snapshot can see is what PostgreSQL itself goes by.
"""

import re
from functools import lru_cache
from typing import Any

from foreword.errors import BadInput

_TOKEN = re.compile(r"([0-9]{1,19}):([0-9]{1,20})", re.ASCII)
_SQL = "select fw_token()"


def token(connection: Any) -> str:
    """The token of the transaction that ``connection`` is in: a psycopg connection or cursor, or a SQLAlchemy
    Connection or Session. Outside a transaction it stands for nothing but itself.

    Raises: what the connection raises; the function ``fw_token`` comes with ``python -m worker migrate``.
    """
    return _checked(_executed(connection).fetchone()[0])


async def token_async(connection: Any) -> str:
    """``token`` for psycopg's AsyncConnection, SQLAlchemy's AsyncConnection and AsyncSession, and asyncpg."""
    if hasattr(connection, "fetchval"):
        return _checked(await connection.fetchval(_SQL))
    if hasattr(connection, "sync_session"):
        connection = await connection.connection()
    if hasattr(connection, "exec_driver_sql"):
        return _checked((await connection.exec_driver_sql(_SQL)).fetchone()[0])
    return _checked((await (await connection.execute(_SQL)).fetchone())[0])


def _executed(connection: Any) -> Any:
    if hasattr(connection, "get_bind"):  # a Session's connection is that of its transaction
        connection = connection.connection()
    execute = getattr(connection, "exec_driver_sql", None) or connection.execute
    found = execute(_SQL)
    return connection if found is None else found  # a DB-API cursor gives its rows itself


def _checked(written: Any) -> str:
    parse_token(written)
    return str(written)


@lru_cache(maxsize=1024)
def parse_token(token: str) -> tuple[int, int]:
    """(epoch, transaction id) of a token.

    Raises:
        BadInput: it is none.
    """
    found = _TOKEN.fullmatch(str(token))
    if found is None:
        raise BadInput(f"{token!r} is no token; foreword.token(connection) gives one")
    return int(found[1]), int(found[2])


def capped(snapshot: str, transaction: int) -> str:
    """``snapshot`` as if it had been taken right after ``transaction`` got its id: later ids count as running.

    PostgreSQL gives an id away again that left no trace on its disk before a crash, as one that was rolled back
    may have. A snapshot that claims such an id would claim the edit that gets it next. So a bundle claims nothing
    beyond a transaction whose commit was waited for, and with it everything before.
    """
    oldest, following, running = snapshot.split(":")
    end = min(int(following), transaction + 1)
    listed = [each for each in running.split(",") if each and int(each) < end]
    return f"{min(int(oldest), end)}:{end}:{','.join(listed)}"


def contains(epoch: int, snapshot: str, token: str) -> bool:
    """Whether what was loaded under ``snapshot`` (``pg_snapshot`` as text) of ``epoch`` holds everything that the
    token's transaction wrote. True also for one that was rolled back: there is nothing to wait for.

    False for tokens of another epoch: the database was restored in between, and nobody can tell.
    """
    written_in, transaction = parse_token(token)
    parts = snapshot.split(":")
    if written_in != epoch or len(parts) != 3:  # oldest running, next, those running
        return False
    if transaction < int(parts[0]):
        return True
    return transaction < int(parts[1]) and str(transaction) not in parts[2].split(",")

"""The application: threads that run transactions against the tables, whatever happens to the server."""

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg
from chaos.edits import Statement, Step, Transaction
from chaos.journal import Edit, Journal, Tick
from chaos.watch import Findings, guarded

TABLES = """
create table if not exists chaos_edits (number bigint primary key);
create sequence if not exists chaos_tick;
"""
"""What the harness keeps in the database: which of its edits are committed, and numbers for ticks."""

Connection = psycopg.Connection[tuple[Any, ...]]
TokenOf = Callable[[Connection], str]

_SERVER_DIED = {"57", "08"}
"""Classes of errors that say where a server was when it was shot, and nothing about what it did there."""

LOCK_SECONDS = 8
"""An edit waits for another edit of the same row so long and then gives up, as applications do."""


@dataclass
class Losses:
    """Edits that came to nothing, by reason; and the reasons that are ours and not the application's."""

    reasons: Counter[str] = field(default_factory=Counter)
    ours: list[str] = field(default_factory=list)

    def blame(self, error: psycopg.Error) -> None:
        """Count it. An edit that failed or waited because of a table of ours is a violation: nothing of Foreword
        may make the application wait or fail.
        """
        self.reasons[type(error).__name__] += 1
        told = " ".join(filter(None, (str(error), error.diag.context, error.diag.message_detail)))
        if "fw_" in told and error.sqlstate is not None and error.sqlstate[:2] not in _SERVER_DIED:
            self.ours.append(f"{type(error).__name__}: {told[:1000]}")


class Abandoned(Exception):
    """The connection was thrown away in the middle of a transaction, on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What all editors share."""

    url: str
    journal: Journal
    losses: Losses
    findings: Findings
    stop: threading.Event
    token_of: TokenOf
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))


class Editor:
    """One writer of the application: a connection and an endless list of transactions."""

    def __init__(self, name: str, script: Iterator[Transaction], desk: Desk) -> None:
        self._name, self._script = name, script
        self._url, self._stop, self._token_of = desk.url, desk.stop, desk.token_of
        self._journal, self._losses, self._numbers = desk.journal, desk.losses, desk.numbers
        self._connection: Connection | None = None
        self.thread = guarded(name, self._run, desk.findings)

    def _run(self) -> None:
        for transaction in self._script:
            if self._stop.wait(transaction.pause):
                break
            try:
                self._execute(self._connected(), transaction)
            except Abandoned:
                self._close()
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                self._losses.blame(error)
                self._after(error)
            except psycopg.Error as error:
                self._losses.blame(error)
                self._undo()
        self._close()

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(
                self._url, autocommit=True, connect_timeout=5, application_name=self._name
            )
            self._connection.execute(f"set lock_timeout = '{LOCK_SECONDS}s'".encode())
            self._connection.execute("set statement_timeout = '30s'")
        return self._connection

    def _after(self, error: psycopg.Error) -> None:
        """Deadlocks and locks that take too long are operational errors too, on a connection that lives."""
        if self._connection is not None and not self._connection.closed and error.sqlstate is not None:
            self._undo()
        if self._connection is None or self._connection.closed:
            self._close()
            self._stop.wait(0.2)

    def _undo(self) -> None:
        try:
            if self._connection is not None:
                self._connection.execute("rollback")
        except psycopg.Error:
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
        self._connection = None

    # ---- one transaction

    def _execute(self, connection: Connection, transaction: Transaction) -> None:
        number = next(self._numbers)
        connection.execute(f"begin isolation level {transaction.isolation}".encode())
        connection.execute("insert into chaos_edits values (%s)", [number])
        token = self._token_of(connection)
        touched = [(step, found) for step in transaction.steps for found in self._step(connection, step)]
        if transaction.hold:
            self._stop.wait(transaction.hold)
        kept = [found for step, found in touched if not step.undone]
        edit = Edit(
            number=number,
            editor=self._name,
            token=token,
            projects=frozenset(project for project, _, _ in kept if project),
            ticks=tuple(Tick(project=p, kind=k, number=n) for p, k, n in kept if k is not None),
            operations=tuple(step.operation for step in transaction.steps if not step.undone),
        )
        self._end(connection, transaction, edit)

    def _end(self, connection: Connection, transaction: Transaction, edit: Edit) -> None:
        if transaction.ending == "abandon":
            self._journal.settle(edit, committed=False)
            raise Abandoned
        if transaction.ending == "rollback":
            connection.execute("rollback")
            self._journal.settle(edit, committed=False)
            return
        self._journal.note(edit)
        try:
            connection.execute("commit")
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if error.sqlstate is not None and not connection.closed:  # refused: a serialization failure
                self._journal.settle(edit, committed=False)
            else:
                edit.doubted = True  # the resolver asks
            raise
        except psycopg.Error:
            self._journal.settle(edit, committed=False)
            raise
        self._journal.settle(edit, committed=True)

    def _step(self, connection: Connection, step: Step) -> list[tuple[str, str | None, int]]:
        if not (step.nested or step.undone):
            return self._statements(connection, step)
        connection.execute("savepoint nested")
        found = self._statements(connection, step)
        connection.execute("rollback to savepoint nested" if step.undone else "release savepoint nested")
        return found

    def _statements(self, connection: Connection, step: Step) -> list[tuple[str, str | None, int]]:
        return [found for statement in step.statements for found in _run(connection, statement)]


def _run(connection: Connection, statement: Statement) -> list[tuple[str, str | None, int]]:
    if statement.rows:
        with connection.cursor() as cursor, cursor.copy(statement.sql.encode()) as copy:
            for row in statement.rows:
                copy.write_row(row)
        return [(statement.project, None, 0)]
    cursor = connection.execute(statement.sql.encode(), statement.parameters)
    return [(p, k, n) for p, k, n in cursor.fetchall()] if cursor.description else []


class Resolver:
    """Settles edits whose commit was cut off, as soon as the server answers again.

    An edit is noted just before its commit, so one that is being committed now is in doubt as well, and to ask too
    early would settle it wrongly. So only those are asked for whose editor has given up, which ``doubted`` tells.
    """

    def __init__(self, url: str, journal: Journal, stop: threading.Event, findings: Findings) -> None:
        self._url, self._journal, self._stop = url, journal, stop
        self.thread = guarded("resolver", self._run, findings)

    def _run(self) -> None:
        while not self._stop.wait(0.5):
            self.once()

    def once(self) -> None:
        """One round; nothing where the server does not answer."""
        doubts = [edit for edit in self._journal.doubts() if edit.doubted]
        if not doubts:
            return
        with suppress(psycopg.Error), psycopg.connect(self._url, autocommit=True, connect_timeout=5) as connection:
            rows = connection.execute(
                "select number from chaos_edits where number = any(%s)", [[edit.number for edit in doubts]]
            ).fetchall()
            committed = {row[0] for row in rows}
            for edit in doubts:
                self._journal.settle(edit, committed=edit.number in committed, doubted=True)

"""What commands print: tables, bars and JSON. Handsome in a terminal, plain lines when piped.

Progress goes to standard error and results to standard output, so that results can be piped.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
import orjson
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

Advance = Callable[[int], None]


def console() -> Console:
    """Standard output; as wide as it needs when it is no terminal, so that piped lines are never folded."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 200)


def heading(text: str) -> None:
    """A line that sets off what follows."""
    click.echo(f"\n{click.style(text, bold=True)}")


def say(message: str) -> None:
    """A word on standard error about what is going on."""
    click.echo(message, err=True)


def print_json(value: Any) -> None:
    """JSON for scripts, two spaces deep."""
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str))


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, right: Sequence[str] = ()) -> Table:
    """A table; columns in ``right`` hold numbers."""
    made = Table(header_style="bold", box=None)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", no_wrap=column in right)
    for row in rows:
        made.add_row(*(("" if cell is None else str(cell)) for cell in row))
    return made


@contextmanager
def bar(what: str, total: int, *, counted: bool = True) -> Iterator[Advance]:
    """A progress bar in a terminal; a line at every tenth otherwise. Yields a function that advances it."""
    if sys.stderr.isatty():
        amount = MofNCompleteColumn() if counted else TaskProgressColumn()
        columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True)) as progress:
            task = progress.add_task(what, total=total)
            yield lambda n: progress.advance(task, n)
        return
    yield _Tenths(what, total).advance


class _Tenths:
    """Progress as plain lines, eleven at most."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total = what, max(total, 1)
        self._done = self._said = 0

    def advance(self, amount: int) -> None:
        self._done += amount
        tenth = 10 * self._done // self._total
        if tenth > self._said:
            self._said = tenth
            say(f"{self._what}: {min(tenth, 10) * 10} %")

"""What commands print: tables, bars and JSON. Handsome in a terminal, plain lines when piped.

Progress goes to standard error and results to standard output, so that results can be piped.
"""

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import IO, Any, TextIO, cast

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
    TimeRemainingColumn,
)
from rich.table import Table

Advance = Callable[[int], None]


def loglevel(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option of commands that run for long."""
    return click.option(
        "--loglevel",
        type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]),
        help="How much is logged; by default our events from INFO on, and what went wrong of libraries.",
    )(command)


WIDEST = 10_000
"""Of a piped line: whatever it holds, it is not folded."""


def console() -> Console:
    """Standard output. When it is no terminal, lines are never folded, and end where their words do."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=WIDEST, file=cast("IO[str]", _Trimmed(sys.stdout)))


class _Trimmed:
    """A stream to which lines are written whole: without the spaces that fill a table's last column."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(_FILLING.sub("", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_FILLING = re.compile(r"[ ]+$", re.MULTILINE)


def heading(text: str) -> None:
    """A line that sets off what follows."""
    click.echo(f"\n{click.style(text, bold=True)}")


def say(message: str) -> None:
    """A word on standard error about what is going on."""
    click.echo(message, err=True)


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something that cannot be taken back, unless ``yes``.

    Raises:
        UsageError: there is nobody to ask.
        Abort: the answer was no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{question} There is nobody to ask: say --yes")
    click.confirm(question, abort=True, err=True)


def print_json(value: Any, *, indented: bool = True) -> None:
    """JSON for scripts, two spaces deep or a line."""
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2 if indented else None, default=str))


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
    """A progress bar in a terminal; a line at every tenth otherwise, and one a minute where that takes longer.
    Both say how long the rest will take. Yields a function that advances it.
    """
    if sys.stderr.isatty():
        amount = MofNCompleteColumn() if counted else TaskProgressColumn()
        times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        columns = (TextColumn("{task.description}"), BarColumn(), amount, *times)
        with Progress(*columns, console=Console(stderr=True)) as progress:
            task = progress.add_task(what, total=total)
            yield lambda n: progress.advance(task, n)
        return
    yield _Tenths(what, total).advance


SAID_SECONDS = 60.0
"""Between plain lines at most, so that a sweep of hours is seen to go on."""


class _Tenths:
    """Progress as plain lines: what is done, and by the pace so far what is left."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total = what, max(total, 1)
        self._done = self._said = 0
        self._began = self._spoke = time.monotonic()

    def advance(self, amount: int) -> None:
        self._done += amount
        tenth, now = min(10 * self._done // self._total, 10), time.monotonic()
        if tenth > self._said:
            self._say(10 * tenth, now)
        elif now - self._spoke >= SAID_SECONDS:
            self._say(100 * self._done // self._total, now)
        self._said = tenth

    def _say(self, percent: int, now: float) -> None:
        self._spoke = now
        say(f"{self._what}: {percent} %{self._left(now)}")

    def _left(self, now: float) -> str:
        """About how much longer; nothing where that is no news."""
        left = (now - self._began) / max(self._done, 1) * (self._total - self._done)
        if left < 1:
            return ""
        return f", about {timedelta(seconds=round(left))} left"

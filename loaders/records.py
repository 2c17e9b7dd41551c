"""Files of JSON lines as rows of a table: the models, made from the registry's columns, and why a line fits none.

A line is checked whole here, so that what reaches PostgreSQL is what PostgreSQL takes. Numbers keep every digit
that was written; what is JSON in the database travels as the text it was. Nothing here knows of a connection,
or of any row but the one in hand.
"""

import json
import re
from codecs import BOM_UTF8
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from difflib import get_close_matches
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import (
    AfterValidator,
    AllowInfNan,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    Strict,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic_core import ErrorDetails

from foreword.errors import BadInput
from foreword.kinds import Column

LONGEST_LINE = 64 * 2**20
"""Bytes of a line. One is held whole while it is read, so something must bound it; PostgreSQL ends at 1 GB."""

PROGRESS_BYTES = 2**18
"""Bytes between reports of progress: some hundred for a bar to move by, at a cost nobody sees."""

LARGEST_EXPONENT = 9999
"""Of a number, either way. PostgreSQL's numeric ends at 131,072 digits before the point and 16,383 after it."""

FAULTS_SHOWN = 3
"""Of one line. A line with more is usually meant for another table."""

_INTEGER = (-(2**31), 2**31 - 1)
_ISO = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)")
_HUGE = re.compile(r"[eE][+-]?0*\d{5}")
_PREFIX = re.compile(r"^(Value error, |Invalid JSON: )")
_SPACE = re.compile(r"[ \t\r\n]*")
_TO_VALUE = re.compile(r"[ \t\r\n]*:[ \t\r\n]*")
_TO_NEXT = re.compile(r"[ \t\r\n]*,?[ \t\r\n]*")

_REASONS = defaultdict(
    lambda: "column {column}: {message}, not {value}",
    json_invalid="is no valid JSON: {message}",
    model_type="is no JSON object",
    extra_forbidden="unknown column {column}{meant}",
    missing="column {column} is required and missing",
    null="column {column} must not be null",
    none_required="column {column}: the database's table does not have it, so it must be null",
)
"""What is wrong with a line, by pydantic's word for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads the lines of one table's file.

    Attributes:
        columns: those that a row is written to, in the order of its values.
        known: every column a line may name. One that the database's table lacks may only be null.
        model: the pydantic model of a line.
        values: of a row of the model, those of ``columns``.
        exact: places in ``columns`` of numbers and JSON, whose text counts; numbers with their own checks.
    """

    columns: tuple[str, ...]
    known: tuple[str, ...]
    model: type[BaseModel]
    values: Callable[[BaseModel], tuple[Any, ...]]
    exact: tuple[tuple[int, TypeAdapter[Decimal] | None], ...]

    @classmethod
    def of(cls, table: str, declared: Sequence[Column], present: Collection[str]) -> "Reader":
        """The reader for ``table`` as it is ``declared``, in a database where it has the columns ``present``."""
        if "archived_at" in present:  # the one column that a table may have and no declaration names
            declared = [*(c for c in declared if c.name != "archived_at"), _ARCHIVED]
        written = [column for column in declared if column.name in present]
        # Fields go by number and columns are their aliases: a column may be called copy or json.
        fields: Any = {f"c{n}": _field(column, present) for n, column in enumerate(declared)}
        return cls(
            columns=tuple(column.name for column in written),
            known=tuple(column.name for column in declared),
            model=create_model(table, __config__=ConfigDict(extra="forbid"), **fields),
            values=attrgetter(*(f"c{n}" for n, column in enumerate(declared) if column in written)),
            exact=tuple(
                (n, TypeAdapter(_type(column)) if column.type == "numeric" else None)
                for n, column in enumerate(written)
                if column.type in {"numeric", "jsonb"}
            ),
        )

    def read(self, line: bytes) -> list[Any]:
        """The values of ``columns`` on a line.

        Raises:
            BadInput: the line is no row of the table; the message is the reason alone.
        """
        if len(line) > LONGEST_LINE:
            raise BadInput(f"is longer than {LONGEST_LINE:,} bytes")
        try:
            text = line.decode().rstrip("\r\n")
            values = list(self.values(self.model.model_validate_json(text)))
            if "\\u0000" in text:
                self._refuse_nul(values)
            return self._as_written(values, text)
        except UnicodeDecodeError as error:
            raise BadInput(f"is not UTF-8: {error.reason} at byte {error.start + 1}") from error
        except ValidationError as error:
            raise BadInput(self._reasons(error)) from error

    def _refuse_nul(self, values: list[Any]) -> None:
        for column, value in zip(self.columns, values, strict=True):
            if _holds_nul(value):
                raise BadInput(f"column {column!r} holds the character NUL (\\u0000), which PostgreSQL cannot")

    def _as_written(self, values: list[Any], text: str) -> list[Any]:
        """``values`` with JSON as its text and numbers to their last digit; a parsed float has lost some."""
        members: dict[str, str] | None = None
        for at, number in self.exact:
            value = values[at]
            if value is None or value == {}:
                values[at] = None if value is None else "{}"
                continue
            members = members or _members(text)
            written = members[self.columns[at]]
            if number is None:
                values[at] = written
            elif not written.startswith('"'):
                values[at] = self._exactly(number, self.columns[at], written)
        return values

    def _exactly(self, number: TypeAdapter[Decimal], column: str, written: str) -> Decimal:
        try:
            return number.validate_python(Decimal(written))
        except ValidationError as error:
            raise BadInput(self._reasons(error, column)) from error

    def _reasons(self, error: ValidationError, column: str = "") -> str:
        faults = error.errors(include_url=False)
        more = f"; and {len(faults) - FAULTS_SHOWN} more" if len(faults) > FAULTS_SHOWN else ""
        return "; ".join(self._reason(fault, column) for fault in faults[:FAULTS_SHOWN]) + more

    def _reason(self, fault: ErrorDetails, column: str) -> str:
        column = str(fault["loc"][0]) if fault["loc"] else column
        null = fault["input"] is None and bool(column)
        return _REASONS["null" if null else fault["type"]].format(
            column=_shown(column),
            message=_PREFIX.sub("", fault["msg"]).replace("at line 1 column", "at column"),
            value=_shown(fault["input"]),
            meant=did_you_mean(column, self.known) or f"; the table has {', '.join(self.known)}",
        )


def read_rows(
    path: Path, reader: Reader, refused: Callable[[int, str], None], heard: Callable[[int], None]
) -> Iterator[tuple[int, list[Any]]]:
    """The good rows of a file with their line numbers. Bad ones go to ``refused``, bytes read to ``heard``, the
    sum of which is the size of the file.

    Raises:
        BadInput: the file cannot be read.
    """
    unheard = 0
    for number, size, line in read_lines(path):
        unheard += size
        if unheard >= PROGRESS_BYTES:
            heard(unheard)
            unheard = 0
        if line.strip() or len(line) > LONGEST_LINE:  # of which the end is not here
            try:
                values = reader.read(line)
            except BadInput as error:
                refused(number, str(error))
            else:
                yield number, values
    if unheard:
        heard(unheard)


def read_lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """The lines of a file as (number, bytes read, line). Of one that is too long only a beginning, which still is.

    Raises:
        BadInput: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(partial(file.readline, LONGEST_LINE + 1), b""), 1):
                size, rest = len(line), line
                while len(rest) > LONGEST_LINE and not rest.endswith(b"\n"):
                    rest = file.readline(LONGEST_LINE + 1)
                    size += len(rest)
                yield number, size, line.removeprefix(BOM_UTF8) if number == 1 else line
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error


def _field(column: Column, present: Collection[str]) -> tuple[Any, Any]:
    if column.name not in present:
        return None, Field(default=None, alias=column.name)
    if column.required:
        return _type(column), Field(alias=column.name)
    return _type(column) | None, Field(default=None, alias=column.name)


def _type(column: Column) -> Any:
    """What a column takes, as a pydantic type."""
    if column.one_of:
        return Literal[column.one_of]
    if column.type in {"integer", "numeric"}:
        low, high = column.between or (_INTEGER if column.type == "integer" else (None, None))
        return Annotated[_TYPES[column.type], Field(ge=low, le=high)]
    return _TYPES[column.type]


def _moment(value: object) -> datetime:
    """A time with its zone, in UTC. PostgreSQL would read one without as the session's."""
    if not isinstance(value, str) or not _ISO.fullmatch(value):
        raise ValueError("should be a time with its zone, such as 2026-01-01T00:00:00Z")
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except OverflowError:
        raise ValueError("should be between the years 1 and 9999 in UTC") from None


def _holdable(value: Decimal) -> Decimal:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or max(abs(exponent), abs(value.adjusted())) > LARGEST_EXPONENT:
        raise ValueError(f"should have an exponent of at most {LARGEST_EXPONENT}")
    return value


def _not_null(value: object) -> object:
    if value is None:
        raise ValueError("must not be null")
    return value


def _holds_nul(value: object) -> bool:
    if isinstance(value, dict):
        return any(_holds_nul(key) or _holds_nul(inner) for key, inner in value.items())
    if isinstance(value, list):
        return any(map(_holds_nul, value))
    return isinstance(value, str) and "\0" in value


def _members(text: str) -> dict[str, str]:
    """The members of a JSON object, each value as it is written. ``text`` is known to be an object.

    Raises:
        BadInput: a number in it is none, or is more than PostgreSQL can hold.
    """
    members, at = {}, _SPACE.match(text, text.index("{") + 1).end()  # type: ignore[union-attr] # matches nothing too
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        start = _TO_VALUE.match(text, at).end()  # type: ignore[union-attr] # an object: the colon is there
        _, end = _DECODER.raw_decode(text, start)
        members[key] = text[start:end]
        at = _TO_NEXT.match(text, end).end()  # type: ignore[union-attr] # matches nothing too
    return members


def _number(text: str) -> str:
    if len(text) > LARGEST_EXPONENT or _HUGE.search(text):
        raise BadInput(f"the number {_shown(text)} is more than PostgreSQL can hold")
    return text


def _no_number(name: str) -> None:
    raise BadInput(f"is no valid JSON: {name} is no number")


_TYPES: dict[str, Any] = {
    "uuid": UUID,
    "text": Annotated[str, Strict()],
    "integer": Annotated[int, Strict()],
    "numeric": Annotated[Decimal, AllowInfNan(False), AfterValidator(_holdable)],
    "timestamptz": Annotated[datetime, PlainValidator(_moment)],
    "jsonb": Annotated[Any, PlainValidator(_not_null)],
}

_ARCHIVED = Column(name="archived_at", type="timestamptz")

_DECODER = json.JSONDecoder(parse_float=_number, parse_int=str, parse_constant=_no_number)


def did_you_mean(name: str, known: Collection[str]) -> str:
    """The end of a sentence about a wrong name: which of ``known`` was probably meant, or nothing."""
    close = get_close_matches(name, known, n=1)
    return f", did you mean {close[0]!r}?" if close else ""


def _shown(value: object) -> str:
    text = str(value) if isinstance(value, Decimal) else repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"

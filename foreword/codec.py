"""Bundles to the fields that are published, and back. JSON, UTF-8, sorted nowhere: order is the builder's.

The encoder is the caller's (orjson in the worker), the decoder is the standard library's, which a chat process
has anyway. Nothing a decoder meets makes it raise: what it cannot read is a miss.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from foreword import keys
from foreword.bundle import Content
from foreword.changes import Difference, Facts, facts_of
from foreword.lines import Fitted, Line, fit, printed
from foreword.stamp import Stamp

Dumps = Callable[[Any], bytes]
Loads = Callable[[bytes | str], Any]
Fields = dict[str, bytes]


def dumps(value: Any) -> bytes:
    """Compact JSON in UTF-8, as orjson writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict).encode()


def encode(
    content: Content,
    stamp: Stamp,
    text: Fitted,
    members: Iterable[tuple[str, str]] = (),
    dumps: Dumps = dumps,
) -> Fields:
    """The fields of a bundle's hash. ``members`` are (actor id, role)."""
    head = {
        "line": content.overview.text,
        "tokens": content.overview.tokens,
        "relevance": content.relevance,
        "header": content.data["header"],
    }
    return {
        **encode_text(content.lines, content.always, content.data, stamp, text, dumps),
        keys.HEAD: dumps(head),
        **{keys.member(actor): role.encode() for actor, role in members},
    }


def encode_text(
    lines: Iterable[Line],
    always: int,
    data: Mapping[str, Any],
    stamp: Stamp,
    text: Fitted,
    dumps: Dumps = dumps,
) -> Fields:
    """The fields that a text is read from, at any budget, and the structured form of it."""
    counted = [[line.place, line.heading, line.tokens, line.text] for line in lines]
    return {
        keys.META: stamp.line().encode(),
        keys.TEXT: (stamp.line() + text.text).encode(),
        keys.LINES: dumps([always, counted]),
        keys.DATA: dumps(data),
    }


def tombstone(stamp: Stamp) -> Fields:
    """The fields of a deleted project."""
    line = stamp.line().encode()
    return {keys.META: line, keys.TEXT: line}


def _loads(raw: bytes | str | None, loads: Loads = json.loads) -> Any:
    if raw is None:
        return None
    try:
        return loads(raw)
    except (ValueError, RecursionError):
        return None


def _decoded(raw: bytes | str | None) -> str | None:
    """Text, whatever the client's decoding; None for what is not UTF-8."""
    try:
        return raw.decode() if isinstance(raw, bytes) else raw
    except UnicodeDecodeError:
        return None


def decode_stamp(raw: bytes | str | None) -> Stamp | None:
    """The stamp, or None where there is none that this version understands."""
    line = _decoded(raw)
    return None if line is None else Stamp.parse(line)


def decode_text(raw: bytes | str | None) -> tuple[str, str]:
    """The stamp's line and the text, which share one field: reading both costs what a GET costs."""
    line, _, text = (_decoded(raw) or "").partition("\n")
    return line, text


def decode_line(raw: bytes | str | None) -> str:
    """The stamp's line alone; empty where there is none."""
    return (_decoded(raw) or "").rstrip("\n")


def decode_lines(raw: bytes | str | None, budget: int) -> Fitted | None:
    """The text at another budget, from lines counted when the bundle was built."""
    found = _counted(raw)
    return None if found is None else fit(*found, budget)


def decode_printed(raw: bytes | str | None, *budgets: int) -> list[list[Line]] | None:
    """The lines that are printed at each of the budgets, in the order of the text."""
    found = _counted(raw)
    return None if found is None else [printed(*found, budget) for budget in budgets]


def _counted(raw: bytes | str | None) -> tuple[list[Line], int] | None:
    match _loads(raw):
        case [int(always), [*lines]] if all(map(_is_line, lines)):
            return [Line(*line) for line in lines], always
    return None


def _is_line(stored: Any) -> bool:
    match stored:
        case [int(), int() | None, int(), str()]:
            return True
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A project's part in an actor's overview: its counted line, its place there, its header."""

    line: str
    tokens: int
    relevance: int
    header: Mapping[str, Any]


def decode_head(raw: bytes | str | None) -> Head | None:
    """What an overview needs of a project; its header has an id."""
    match _loads(raw):
        case {
            "line": str(line),
            "tokens": int(tokens),
            "relevance": int(relevance),
            "header": {"id": str()} as header,
        }:
            return Head(line=line, tokens=tokens, relevance=relevance, header=header)
    return None


def decode_facts(raw: bytes | str | None, loads: Loads = json.loads) -> Facts | None:
    """The facts of a structured bundle; None where it is damaged, or of a layout that has none."""
    found = decode_data(raw, loads)
    try:
        return None if found is None else facts_of(found)
    except (KeyError, TypeError, AttributeError, ValueError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A stored difference between two successive versions."""

    since: str
    version: str
    difference: Difference


LONGEST_NEWS = 16_384
"""Bytes of a stored difference at most: after a larger one the whole is the shorter thing to read."""


def encode_news(step: Step, dumps: Dumps = dumps) -> bytes | None:
    """A difference to be kept; None where it is too large for that."""
    found = step.difference
    written = dumps(
        {"since": step.since, "version": step.version}
        | {"added": found.added, "gone": found.gone, "changed": found.changed}
    )
    return written if len(written) <= LONGEST_NEWS else None


def decode_news(raw: bytes | str | None) -> Step | None:
    """A stored difference."""
    match _loads(raw):
        case {
            "since": str(since),
            "version": str(version),
            "added": dict(added),
            "gone": dict(gone),
            "changed": dict(changed),
        }:
            return Step(since=since, version=version, difference=Difference(added, gone, changed))
    return None


def is_version(text: str) -> bool:
    """Whether ``text`` may be a bundle's version."""
    epoch, _, generation = str(text).partition(":")
    return epoch.isdecimal() and generation.isdecimal()


def decode_data(raw: bytes | str | None, loads: Loads = json.loads) -> Mapping[str, Any] | None:
    """The structured bundle."""
    found = _loads(raw, loads)
    return found if isinstance(found, dict) else None

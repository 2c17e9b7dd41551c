"""Bundles to the fields that are published, and back. JSON, UTF-8, sorted nowhere: order is the builder's.

The encoder is the caller's (orjson in the worker), the decoder is the standard library's, which a chat process
has anyway. Nothing a decoder meets makes it raise: what it cannot read is a miss.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from foreword import keys
from foreword.bundle import Content
from foreword.lines import Fitted, Line, fit
from foreword.stamp import Stamp

Dumps = Callable[[Any], bytes]
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
    lines = [[line.place, line.heading, line.tokens, line.text] for line in content.lines]
    head = {
        "line": content.overview.text,
        "tokens": content.overview.tokens,
        "relevance": content.relevance,
        "header": content.data["header"],
    }
    return {
        keys.META: dumps(stamp.as_json()),
        keys.TEXT: text.text.encode(),
        keys.LINES: dumps([content.always, lines]),
        keys.DATA: dumps(content.data),
        keys.HEAD: dumps(head),
        **{keys.member(actor): role.encode() for actor, role in members},
    }


def tombstone(stamp: Stamp, dumps: Dumps = dumps) -> Fields:
    """The fields of a deleted project."""
    return {keys.META: dumps(stamp.as_json())}


def _loads(raw: bytes | str | None) -> Any:
    if raw is None:
        return None
    try:
        return json.loads(raw)
    except ValueError:
        return None


def decode_stamp(raw: bytes | str | None) -> Stamp | None:
    """The stamp, or None where there is none that this version understands."""
    found = _loads(raw)
    return Stamp.from_json(found) if isinstance(found, dict) else None


def decode_text(raw: bytes | str | None) -> str | None:
    """The text as str, whatever the client's decoding."""
    return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw


def decode_lines(raw: bytes | str | None, budget: int) -> Fitted | None:
    """The text at another budget, from lines counted when the bundle was built."""
    found = _loads(raw)
    try:
        always, lines = found
        return fit([Line(*line) for line in lines], always, budget)
    except (TypeError, ValueError):
        return None


def decode_data(raw: bytes | str | None) -> Mapping[str, Any] | None:
    """The structured bundle."""
    found = _loads(raw)
    return found if isinstance(found, dict) else None

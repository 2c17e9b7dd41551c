"""Subscriptions from a file: JSON lines, or CSV with a header; a hundred thousand in seconds, all or none.

A row has the fields of ``loaders.wanted``, but names its ``user`` by an actor's id, its user_id or e-mail address.
"""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from foreword.errors import BadInput, BadRows
from loaders.catalog import Catalog
from loaders.connection import Connection
from loaders.subscriptions import save_all
from loaders.wanted import Wanted, actors_named, wanted

PLACES_SHOWN = 5
"""Bad rows in an error's message. All are in its ``places``."""

_NOBODY = "00000000-0000-0000-0000-000000000000"
"""Stands for the user while the rest of a row is checked."""

Place = tuple[str, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """What an import did: rows imported, those that were new or different, bad rows left out as (file, line,
    reason).
    """

    rows: int
    changed: int
    skipped: tuple[Place, ...]


def enrol(connection: Connection, catalog: Catalog, path: Path, *, skip_bad: bool = False) -> Enrolled:
    """Import the subscriptions of a ``.jsonl`` or ``.csv`` file. With ``skip_bad`` bad rows are listed and
    left out.

    Raises:
        BadRows: rows that cannot be meant; ``places`` has each. Nothing was imported.
        BadInput: the file cannot be read, or is neither.
    """
    read, places = _read(path)
    actors = actors_named(connection, catalog, [who for _, who, _ in read])
    found: dict[str, Wanted] = {}
    for line, who, row in read:
        actor = actors[who]
        if isinstance(actor, BadInput):
            places.append((path.name, line, str(actor)))
        elif actor in found:
            places.append((path.name, line, f"user {who!r} is also that of an earlier line"))
        else:
            found[actor] = replace(row, user_id=actor)
    if places and not skip_bad:
        raise _bad_rows(places)
    changed = save_all(connection, list(found.values()))
    return Enrolled(rows=len(found), changed=changed, skipped=tuple(sorted(places)))


def _read(path: Path) -> tuple[list[tuple[int, str, Wanted]], list[Place]]:
    """The good rows as (line, who, what), and the bad ones. Of all of them one is usually like many others."""
    good: list[tuple[int, str, Wanted]] = []
    bad: list[Place] = []
    known: dict[tuple[str, ...], Wanted] = {}
    for line, row in _rows(path):
        try:
            who, fields = _who(row)
            key = tuple(f"{name}={value!r}" for name, value in fields.items())
            if key not in known:
                known[key] = wanted({**fields, "user_id": _NOBODY})
            good.append((line, who, known[key]))
        except BadInput as error:
            bad.append((path.name, line, str(error)))
    return good, bad


def _who(row: Mapping[str, object] | BadInput) -> tuple[str, dict[str, object]]:
    if isinstance(row, BadInput):
        raise row
    who = str(row.get("user") or "").strip()
    if not who or "\0" in who:
        raise BadInput("a row needs user: an actor's id, its user_id, or its e-mail address")
    return who, {name: value for name, value in row.items() if name != "user"}


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, object] | BadInput]]:
    readers = {".jsonl": _json_lines, ".csv": _csv}
    if path.suffix not in readers:
        raise BadInput(f"{path} is neither .jsonl nor .csv; name it after what it is")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from readers[path.suffix](file)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8: {error.reason} at byte {error.start + 1}") from error
    except csv.Error as error:
        raise BadInput(f"{path} is no CSV: {error}") from error


def _json_lines(lines: Iterator[str]) -> Iterator[tuple[int, Mapping[str, object] | BadInput]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield number, BadInput(f"is no valid JSON: {error}")
            continue
        yield number, found if isinstance(found, dict) else BadInput("is no JSON object")


def _csv(lines: Iterator[str]) -> Iterator[tuple[int, Mapping[str, object] | BadInput]]:
    reader = csv.DictReader(lines)
    for row in reader:
        if None in row:
            yield reader.line_num, BadInput("has more cells than the header")
        else:
            yield reader.line_num, row


def _bad_rows(places: Sequence[Place]) -> BadRows:
    places = sorted(places)
    shown = [f"{file}:{line}: {reason}" for file, line, reason in places[:PLACES_SHOWN]]
    more = [f"and {len(places) - PLACES_SHOWN} more"] if len(places) > PLACES_SHOWN else []
    listed = "\n  ".join([*shown, *more])
    advice = "so nothing was imported; correct them, or skip bad rows"
    return BadRows(f"{len(places)} bad row{'s' * (len(places) != 1)}, {advice}:\n  {listed}", tuple(places))

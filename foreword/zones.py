"""Names of time zones: which are accepted, and what is said of those that are not.

A zone is what the IANA database calls one, spelt as it is spelt there. Refused are names that mean something else
on another host (``localtime``), that mean no place yet (``Factory``), and copies of the database under another
count of seconds (``posix/...``, ``right/...``). When a time of day comes in a zone: ``schedule``.
"""

import difflib
import re
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from foreword.errors import BadInput
from foreword.text import cut

LONGEST_NAME = 64
"""Characters of a name that are compared with others and quoted; the longest zone has 32."""

# Another zone on the next host, or a placeholder for one that nobody configured.
_NO_PLACE = frozenset({"localtime", "posixrules", "Factory"})
_OFFSET = re.compile(r"\s*(?:UTC|GMT|Z)?\s*[+\u2212-]\s*\d[\d:.]*\s*", re.IGNORECASE)
_COPY = re.compile(r"(?:posix|right)/")
_ALIKE = 0.75
"""How much alike spellings must be: "Europe" is not meant to be Europe/Rome."""

_ABBREVIATION = 4
"""Characters up to which no other spelling is guessed at: PST is spelt like MST, and is another time."""


def zone_named(name: str) -> ZoneInfo:
    """The zone called exactly ``name``. The same object for the same name.

    Raises:
        BadInput: there is none; the message names the nearest, if one is near.
    """
    if name in _names():
        return _zone(name)
    raise BadInput(f"there is no time zone {cut(name, LONGEST_NAME)!r}{_hint(name)}")


@cache
def _names() -> frozenset[str]:
    """Read once: a directory is walked for it."""
    return frozenset(available_timezones()) - _NO_PLACE


@cache  # ZoneInfo itself keeps eight, then reads the file again; there are only as many as names
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _hint(name: str) -> str:
    if name in _NO_PLACE:
        return " that is the same everywhere: name a place, such as Europe/Berlin"
    if _OFFSET.fullmatch(name):
        return ": an offset knows no summer time, name a place, such as Europe/Berlin"
    near = _nearest(name) if len(name) <= LONGEST_NAME else None
    return f"; did you mean {near}?" if near else ": a name is written like Europe/Berlin"


def _nearest(name: str) -> str | None:
    """The zone that was probably meant: but for case, spaces or its continent the same, else spelt much alike."""
    meant, spellings = _folded(_COPY.sub("", name.strip())), _spellings()
    if len(meant) <= _ABBREVIATION:
        return spellings.get(meant)
    near = difflib.get_close_matches(meant, spellings, n=1, cutoff=_ALIKE)
    return spellings[near[0]] if near else None


def _folded(name: str) -> str:
    return "_".join(name.casefold().split())


@cache
def _spellings() -> dict[str, str]:
    """Every zone by its name and by the last part of it: somebody who writes Berlin means Europe/Berlin."""
    whole = {_folded(name): name for name in sorted(_names())}
    return {written.rpartition("/")[2]: name for written, name in whole.items()} | whole

"""Handles: the short stable names of entities inside their project, such as ``T12``.

A UUID costs about 23 tokens, a handle 2. An entity gets its handle the first time anything shows it, stored,
never reused, stable for ever (docs/adr/0005). This module reads and writes the notation; numbers are drawn by
the loaders.
"""

import re
from uuid import UUID

from foreword.errors import BadInput, UnknownEntity
from foreword.kinds import Registry

_HANDLE = re.compile(r"([A-Z]+)([1-9][0-9]{0,17})", re.ASCII)

_CANONICAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)


def handle(letters: str, number: int) -> str:
    """``T`` and 12 to ``T12``."""
    return f"{letters}{number}"


def number_of(handle: str) -> int:
    """12 of ``T12``. The letters need not be those of the entity's kind: who is converted keeps the handle."""
    return int(handle.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))


def parse_handle(text: str, kinds: Registry) -> tuple[str, int] | None:
    """(kind, number) of a handle, or None when ``text`` is none of any kind. Case does not matter."""
    found = _HANDLE.fullmatch(text.strip().upper())
    if found is None:
        return None
    for kind in kinds.all:
        if kind.handle == found[1]:
            return kind.name, int(found[2])
    return None


def parse_reference(text: str, kinds: Registry) -> tuple[str, int] | str:
    """What a tool was given for an entity: (kind, number) of a handle, or a canonical UUID.

    Raises:
        UnknownEntity: it is neither.
    """
    found = parse_handle(text, kinds)
    if found is not None:
        return found
    try:
        return str(UUID(text))
    except ValueError:
        letters = ", ".join(f"{kind.handle}1" for kind in kinds.entities[:3])
        raise UnknownEntity(
            f"{text!r} is neither a handle (like {letters}) nor a UUID; handles stand first in the bundle's lines"
        ) from None


def reference_of(text: str) -> str:
    """An entity as a tool was given it, in canonical form: a UUID, or a handle in capital letters.

    Raises:
        BadInput: it is neither. Whether the handle is anybody's is not known here.
    """
    shouted = str(text).strip().upper()
    return shouted if _HANDLE.fullmatch(shouted) else uuid_of(text, "entity")


def uuid_of(text: str, what: str) -> str:
    """``text`` as a canonical UUID. Only canonical UUIDs ever become part of a Redis key.

    Raises:
        BadInput: it is none.
    """
    written = str(text)
    if _CANONICAL.fullmatch(written):  # four times faster than UUID(), on every read
        return written
    try:
        return str(UUID(written))
    except ValueError:
        raise BadInput(f"{text!r} is no UUID; a {what} id is one") from None

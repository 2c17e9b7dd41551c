"""What a bundle says about itself: which edits it holds, which build made it, until when its dates are true."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

SCHEMA = 1
"""Version of the published layout. Part of every key; a reader takes any other version for a miss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """The metadata published with every bundle.

    Attributes:
        epoch, generation: the order of publications. The epoch rises when the database was restored to an
            earlier time; the generation is drawn under the project's lock.
        snapshot: the ``pg_snapshot`` of the database that the bundle was built from.
        as_of, zone: the calendar date, and the zone, for which its dates are true.
        valid_until: seconds since 1970 (UTC) at which they stop being true.
        built: seconds since 1970 (UTC) when it was built, by the builder's clock. For people, not for logic.
        budget, tokens: the budget of the text, and its exact count.
        gone: the project was deleted; there is nothing but this stamp.
    """

    epoch: int
    generation: int
    snapshot: str = ""
    as_of: str = ""
    zone: str = "UTC"
    valid_until: float = 0.0
    built: float = 0.0
    budget: int = 0
    tokens: int = 0
    gone: bool = False

    @property
    def fence(self) -> tuple[int, int]:
        """What orders publications."""
        return self.epoch, self.generation

    def as_json(self) -> dict[str, Any]:
        """JSON-ready, with the schema version."""
        return {"v": SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Stamp | None":
        """The stamp in ``data``, or None when it is of another version. Unknown fields are ignored."""
        if data.get("v") != SCHEMA:
            return None
        try:
            return cls(**{name: data[name] for name in cls.__slots__ if name in data})
        except TypeError:
            return None

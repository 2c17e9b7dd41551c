"""What a bundle says about itself: which edits it holds, which build made it, until when its dates are true."""

from dataclasses import dataclass

SCHEMA = 2
"""Version of the published layout. Part of every key; a reader knows this one and the one before, and takes any
other for a miss."""


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

    @property
    def version(self) -> str:
        """The fence as text: which bundle this is, for ``Reader.changes``."""
        return f"{self.epoch}:{self.generation}"

    def line(self) -> str:
        """One line, its newline included: the schema version, what ``glance`` needs, then the other fields."""
        first = [SCHEMA, int(self.gone), self.valid_until, self.tokens]
        then = [self.epoch, self.generation, self.budget, self.built]
        texts = [self.as_of or _NONE, self.zone or _NONE, self.snapshot or _NONE]
        return " ".join(map(str, [*first, *then, *texts])) + "\n"

    @classmethod
    def parse(cls, line: str) -> "Stamp | None":
        """The stamp in ``line``, or None when it is of another version or damaged. Further words are ignored."""
        words = line.split()
        if len(words) < _WORDS or words[0] not in _VERSIONS:
            return None
        try:
            gone, tokens, epoch, generation, budget = (int(words[i]) for i in (1, 3, 4, 5, 6))
            valid_until, built = float(words[2]), float(words[7])
        except ValueError:
            return None
        as_of, zone, snapshot = ("" if word == _NONE else word for word in words[8:11])
        return cls(
            epoch=epoch,
            generation=generation,
            snapshot=snapshot,
            as_of=as_of,
            zone=zone,
            valid_until=valid_until,
            built=built,
            budget=budget,
            tokens=tokens,
            gone=bool(gone),
        )


def glance(line: str) -> tuple[float, int] | None:
    """(valid_until, tokens) of a stamp's line, or None where there is nothing to show: another version, damage,
    a deleted project. All that most reads need, at a tenth of the price of the whole stamp.
    """
    words = line.split(" ", 4)
    if len(words) < 5 or words[0] not in _VERSIONS or words[1] != "0":
        return None
    try:
        return float(words[2]), int(words[3])
    except ValueError:
        return None


_NONE = "-"
_VERSIONS = frozenset({str(SCHEMA), str(SCHEMA - 1)})
_WORDS = 11

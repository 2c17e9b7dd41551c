"""What jobs report as soon as it is done, to whoever writes logs, counts and traces; jobs know none of these."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from loaders.ledger import Held
from loaders.shelf import ModelCall

PUBLISHED, REFUSED, BURIED, FAILED, PUT_OFF = "published", "refused", "buried", "failed", "put_off"
"""What may become of a build: it stands in Redis; a newer one stood there; the project is gone, and a tombstone
stands there; it failed for a reason of its project; or for one that is not."""

MADE, SKIPPED = "made", "skipped"
"""What else may become of a brief."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """A build has ended.

    Attributes:
        began: seconds since 1970, by the builder's clock.
        steps: (stage, milliseconds) in their order; a stage may come twice.
        tokens, budget: of the text that was published.
        held: the edits that it answered.
        error: why it failed.
        attempts: that failed in a row; from MOST_ATTEMPTS on it is parked.
    """

    project: str
    epoch: int
    generation: int
    result: str
    began: float
    steps: Sequence[tuple[str, float]] = ()
    tokens: int = 0
    budget: int = 0
    held: Held | None = None
    error: Exception | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefReport:
    """The making of a brief has ended. ``words`` is who has written its summary: model or template."""

    user: str
    date: date
    result: str
    began: float
    milliseconds: float
    revision: int | None = None
    words: str = ""
    tokens: int = 0
    error: Exception | None = None


Report = BuildReport | BriefReport | ModelCall
Note = Callable[[Report], None]


def unnoted(report: Report) -> None:
    """Who listens to no report."""
    del report

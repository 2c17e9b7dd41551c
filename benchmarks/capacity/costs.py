"""What was measured: plain values, kept as a file of JSON. Processor time is in milliseconds, memory in bytes.

Time is processor time and not the wall's: other work on the machine disturbs it least, and it is what is paid for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

ENTITIES = 100
"""Of the projects of briefs, of focus bundles, and of those that the real processes build."""

SHIPPED = Path(__file__).with_name("measured.json")
"""From a machine of two cores, servers on unix sockets, everything in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """Milliseconds of processor time for one of something: in our process, in PostgreSQL's session, in Redis."""

    python: float
    postgres: float
    redis: float

    @property
    def total(self) -> float:
        """Of all three: also how long it takes where nothing else runs, for one waits for the other."""
        return self.python + self.postgres + self.redis


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """A rebuild after one edit of a project of ``entities``, and what the project then holds.

    Attributes:
        redis: bytes of its bundle with three members, as MEMORY USAGE counts them.
        news: bytes of one difference in its list of changes, of which there are up to NEWS_KEPT.
        focus: bytes of one focus bundle, which is there under two names.
        handles: rows of fw_handles.
        wal: bytes of write-ahead log, median.
    """

    entities: int
    cpu: Cpu
    redis: float
    news: float
    focus: float
    handles: float
    wal: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """A brief of a user with so many projects of ENTITIES entities, in the words of templates.

    Attributes:
        redis: bytes of one copy; one a date and one more of the latest.
        row: bytes of its row in PostgreSQL with the facts that the next brief is compared with; ``kept`` without,
            as all but the last two are kept.
    """

    projects: int
    cpu: Cpu
    redis: float
    row: float
    kept: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """An UPDATE of one row, committed: milliseconds and bytes of write-ahead log without our triggers, and with.
    ``row``: bytes that it leaves in the change log until it is built.
    """

    plain: float
    logged: float
    plain_wal: float
    logged_wal: float
    row: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One look of the leading relay at both lanes, which finds both windows free and fills them, while so many
    projects are dirty. Milliseconds.
    """

    dirty: int
    python: float
    postgres: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Chores:
    """What the relay does now and then and what grows with the ledger, of so many projects: milliseconds of
    PostgreSQL for the chores of each second, those of each half minute, and one look for metrics.
    """

    projects: int
    second: float
    half_minute: float
    look: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process at rest, of many if they are alike: the share of a core that it takes, its resident memory, and
    the part of that which no other process shares.
    """

    role: str
    share: float
    resident: float
    own: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """What the real processes spent on each build (or brief) of ENTITIES entities, over what they spend at rest:
    milliseconds of the relay, of the worker's main process, of all children that build, of every process of
    PostgreSQL but the editing session, and of Redis, which is the broker too. To be compared with the parts.
    """

    relay: float
    worker: float
    children: float
    postgres: float
    redis: float

    @property
    def total(self) -> float:
        """Of all."""
        return self.relay + self.worker + self.children + self.postgres + self.redis


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Everything that was measured, in one run.

    Attributes:
        machine: where, and with what.
        focus: a focus bundle of a project of a hundred entities.
        message: sent by the relay, and taken off the broker again.
        read: of a text by a chat process; ``read_bytes`` is what comes over the wire.
        verify: a project compared with an emptied Redis, by the relay.
        ledger: bytes of a project's row in fw_projects, with its indexes; ``handle`` of one in fw_handles.
        member: bytes of one project in the set of an actor's projects.
        build, brief: with the real processes; ``background`` is what PostgreSQL's own processes (checkpointer, log
            writer, vacuum) spent then, as a share of what sessions spent.
    """

    machine: str
    rebuilds: Sequence[Rebuild]
    focus: Cpu
    briefs: Sequence[Brief]
    edit: Edit
    message: Cpu
    read: Cpu
    read_bytes: float
    rounds: Sequence[Round]
    chores: Sequence[Chores]
    verify: Cpu
    ledger: float
    handle: float
    member: float
    processes: Sequence[Process]
    build: Whole
    brief: Whole
    background: float

    def process(self, role: str) -> Process:
        """The process of a role."""
        return next(each for each in self.processes if each.role == role)


_COSTS = TypeAdapter(Costs)


def load(path: Path = SHIPPED) -> Costs:
    """The costs in a file.

    Raises:
        ValueError: it is no file of costs.
    """
    try:
        return _COSTS.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise ValueError(f"{path} is no measurement: {error}; --measure --save makes one") from error


def save(costs: Costs, path: Path) -> None:
    """Write costs to a file, numbers to four digits: more are noise."""
    path.write_bytes(orjson.dumps(_rounded(_COSTS.dump_python(costs)), option=orjson.OPT_INDENT_2) + b"\n")


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return value

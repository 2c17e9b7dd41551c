"""Who and what there is in a run: tenants, projects, actors, and the words by which their rows are told apart.

Every text of a project begins with its *canary*, which no other project's text holds: found in another's bundle,
it is a leak. Every project has one *probe* of each kind, a row whose title is a *tick*: a number from a sequence,
drawn again under the row's lock by every edit of the probe. So of two ticks of one probe the later commit has the
greater, and a bundle must show at least the greatest that its stamp claims.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from uuid import UUID, uuid5

from foreword.kinds import KINDS, PROJECT, Kind

_ROOM = UUID("6f7a3c1e-0000-4000-8000-c0ffee000000")

UNPROBED = frozenset({"insight"})
"""Kinds without a probe: their table may be truncated, and with it a probe would go."""

PROBED = tuple(kind for kind in KINDS.entities if kind.name not in UNPROBED)

ZONES = ("UTC", "America/New_York", "Pacific/Kiritimati", "Asia/Kathmandu", "Mars/Olympus", "../../etc/passwd", "")
"""For props.timezone, some of them no zones."""

SPECTATORS = 4

HOSTILE = (
    "plain words",
    "line one\nline two\r\n## projects: 99",
    '# project "other"',
    "T1 and G2, waits for T9999",
    "{{braces}} %s %(x)s {0} \\ \\u0000 \\x00",
    "fw:1:{00000000-0000-0000-0000-000000000000}:project",
    "as of 1999-01-01",
    "\u202eright to left\u202c \u200bzero width\u200b",
    "e\u0301\u0302\u0303 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f3f4\U000e0067\U000e007f",
    "<|endoftext|> </s> [INST]",
    "'; drop table onto_tasks; --",
    "\"quoted\" 'twice' `thrice`",
    "x" * 400,
    "\t\v\f\x1b[31m red \x7f",
    "1 0 99999999999.0 12 9 9 9 9.0 - UTC 1:1:",
    "\u00a0\u2028\u2029",
)
"""What people, and others, write into texts. None of it looks like a canary or a tick."""

_CANARY = re.compile(rb"canary(\d{3})x")
_TICK = re.compile(rb"tick([a-z]+)(\d+)q")


def uid(*parts: object) -> str:
    """A UUID that these words always give."""
    return str(uuid5(_ROOM, "/".join(map(str, parts))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project, there or not."""

    number: int
    id: str
    tenant: int

    @property
    def canary(self) -> str:
        """The word that its texts begin with."""
        return f"canary{self.number:03}x"

    def probe(self, kind: Kind) -> str:
        """The id of its probe of a kind; the project is its own of its own kind."""
        return self.id if kind.name == PROJECT else uid("probe", self.id, kind.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """Attributes:
    projects: those that are there at the start.
    spare: those that may be founded in the course of a run; rows may belong to them before.
    spectators: those that nobody edits. Their edges end in other projects, so what they show changes all the same;
        and nothing but the product brings back their bundles.
    actors: people, by tenant.
    """

    seed: int
    projects: tuple[Project, ...]
    spare: tuple[Project, ...]
    spectators: tuple[Project, ...]
    actors: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, seed: int, projects: int, tenants: int = 3) -> "Population":
        """A fifth of the projects on top are spare."""
        edited = projects + max(projects // 5, 1)
        every = [
            Project(number=n, id=_project_id(seed, n), tenant=n % tenants) for n in range(edited + SPECTATORS)
        ]
        actors = tuple(tuple(uid(seed, "actor", t, n) for n in range(6)) for t in range(tenants))
        return cls(
            seed=seed,
            projects=tuple(every[:projects]),
            spare=tuple(every[projects:edited]),
            spectators=tuple(every[edited:]),
            actors=actors,
        )

    @property
    def edited(self) -> tuple[Project, ...]:
        """Those that are there or may be, and are edited."""
        return self.projects + self.spare

    @property
    def there(self) -> tuple[Project, ...]:
        """Those that are there at the start."""
        return self.projects + self.spectators

    @property
    def all(self) -> tuple[Project, ...]:
        """Every one."""
        return self.projects + self.spare + self.spectators

    def neighbour(self, of: Project, dice: Random) -> Project:
        """Another project of the same tenant, or the same where there is none."""
        others = [p for p in self.edited if p.tenant == of.tenant and p is not of]
        return dice.choice(others) if others else of


def _project_id(seed: int, number: int) -> str:
    """Two of them are ids that a careless comparison takes for none or for all."""
    odd = {0: "00000000-0000-0000-0000-000000000000", 1: "ffffffff-ffff-ffff-ffff-ffffffffffff"}
    return odd.get(number) or uid(seed, "project", number)


def entity_id(project: Project, dice: Random) -> str:
    """An id for a new row, now and then a hostile one: the project's own, or one that other tables have too."""
    chance = dice.random()
    if chance < 0.01:
        return project.id
    if chance < 0.04:
        return uid("shared", project.id, dice.randrange(3))
    return str(UUID(int=dice.getrandbits(128), version=4))


def words(project: Project, dice: Random) -> str:
    """A text of a project: its canary, then something plain or hostile, and a word that is nowhere else."""
    return f"{project.canary} {dice.choice(HOSTILE)} w{dice.getrandbits(40):x}"


def canaries(raw: bytes) -> set[int]:
    """Numbers of the projects whose words are in there."""
    return {int(found) for found in _CANARY.findall(raw)}


def ticks(raw: bytes) -> Iterator[tuple[str, int]]:
    """(kind, tick) of each that is shown there."""
    return ((kind.decode(), int(n)) for kind, n in _TICK.findall(raw))

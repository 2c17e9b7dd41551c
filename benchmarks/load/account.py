"""The account: projects of mixed sizes, people who share them, and when their briefs are due. All from a seed.

Sizes are log-normal around forty entities: most projects are small, and most entities are in large ones. Which of
them are hot has nothing to do with their size.
"""

import math
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any
from zoneinfo import ZoneInfo

from benchmarks.synthetic import fill_project, new_id
from loaders.connection import Connection
from loaders.subscriptions import compute
from loaders.tables import ACTORS, MEMBERS

MEDIAN, SIGMA, SMALLEST, LARGEST = 40, 1.2, 5, 5000
"""Entities of a project."""

SKEW = 1.1
"""The exponent of Zipf's law: for edits, for reading, and for how many projects a tenant has."""

PROJECTS_A_TENANT, PROJECTS_A_USER = 8, 5

HOURS, ON_THE_HOUR = (0.2, 0.5, 0.8), 0.6
"""Moments of the run at which so many people have their hour; the others have theirs anywhere."""

ZONES = (
    "America/Los_Angeles",
    "America/New_York",
    "America/Sao_Paulo",
    "Europe/London",
    "Europe/Berlin",
    "Africa/Nairobi",
    "Asia/Kolkata",
    "Asia/Tokyo",
    "Australia/Sydney",
)


@dataclass(slots=True)
class Project:
    """A project, and what is known of its rows: ids by kind. Editors change both as they edit."""

    id: str
    owner: str
    entities: int
    ids: dict[str, list[str]] = field(default_factory=dict)
    gone: bool = False


@dataclass(frozen=True, slots=True)
class User:
    """Somebody, and the projects that they are a member of."""

    id: str
    projects: tuple[Project, ...]


@dataclass(slots=True)
class Account:
    """Everything that was there at first; ``projects`` grows, the hottest come first."""

    projects: list[Project]
    users: Sequence[User]

    @classmethod
    def of(cls, seed: int, projects: int, users: int) -> "Account":
        """The same for the same seed."""
        dice = random.Random(f"{seed}/account")
        tenants = [new_id(dice) for _ in range(max(projects // PROJECTS_A_TENANT, 1))]
        shares = skewed(len(tenants))
        made = [
            Project(new_id(dice), dice.choices(tenants, cum_weights=shares)[0], size(dice))
            for _ in range(projects)
        ]
        often = skewed(projects)
        people = []
        for _ in range(users):
            few = dice.choices(made, cum_weights=often, k=dice.randint(1, 2 * PROJECTS_A_USER - 1))
            people.append(User(new_id(dice), tuple({project.id: project for project in few}.values())))
        return cls(made, people)


def skewed(number: int) -> list[float]:
    """Cumulative weights of Zipf's law, for ``random.choices``."""
    return [*accumulate(1 / place**SKEW for place in range(1, number + 1))]


def size(dice: random.Random) -> int:
    """Entities of a project."""
    return min(max(round(dice.lognormvariate(math.log(MEDIAN), SIGMA)), SMALLEST), LARGEST)


def fill(connection: Connection, account: Account, seed: int, advance: Callable[[int], object]) -> None:
    """Insert everything but the subscriptions, a project a transaction, as an application would."""
    dice = random.Random(f"{seed}/fill")
    _copy(connection, f"{ACTORS} (id, kind, name)", [(u.id, "human", f"user {u.id[:8]}") for u in account.users])
    members = defaultdict(list)
    for user in account.users:
        for project in user.projects:
            members[project.id].append(user.id)
    for number, project in enumerate(account.projects):
        with connection.transaction():
            name = f"Project {number} of {project.owner[:4]}"
            for kind, entity in fill_project(connection, project.id, name, project.entities, dice, project.owner):
                project.ids.setdefault(kind, []).append(entity)
            rows = [(new_id(dice), project.id, user, "editor") for user in members[project.id]]
            _copy(connection, f"{MEMBERS} (id, project_id, actor_id, role_key)", rows)
        advance(1)
    connection.execute("analyze")


def subscribe(connection: Connection, account: Account, seed: int, seconds: float) -> int:
    """Give everybody a brief a day, at an hour that comes within the next ``seconds``; how many are to come."""
    dice = random.Random(f"{seed}/hours")
    begin = datetime.now(UTC) + timedelta(seconds=1)  # until the hours stand there
    rows = []
    for user in account.users:
        share = dice.choice(HOURS) if dice.random() < ON_THE_HOUR else dice.uniform(0.05, 0.95)
        zone = dice.choice(ZONES)
        due = (begin + timedelta(seconds=share * seconds)).replace(microsecond=0).astimezone(ZoneInfo(zone))
        rows.append((user.id, zone, due.time(), user.projects[0].owner))
    with connection.transaction():
        _copy(connection, "fw_subscriptions (user_id, zone, at, tenant)", rows)
        compute(connection, [user.id for user in account.users])
    until = begin + timedelta(seconds=seconds)
    return int(
        connection.execute("select count(*) from fw_subscriptions where next_run_at < %s", [until]).fetchall()[0][
            0
        ]
    )


def _copy(connection: Connection, into: str, rows: Sequence[Sequence[Any]]) -> None:
    with connection.cursor().copy(f"copy {into} from stdin".encode()) as copy:
        for row in rows:
            copy.write_row(row)

"""Who gets a brief in a run, and when: people over many zones, whose local times all fall into one short window.

From a seed and an instant alone. Beside those who get one there are people who must not: paused, of another
weekday, later today, away for three days, without a project and content with nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cache
from importlib import resources
from random import Random
from uuid import UUID
from zoneinfo import ZoneInfo, available_timezones

from chaos.people import Project, uid

from foreword.zones import zone_named

READY, SKIPPED, NOTHING = "ready", "skipped", ""
"""What is to become of somebody's brief; NOTHING: there is no row."""

_APART = timedelta(hours=4)
"""From whom no brief is due in the run: far beyond what is scheduled ahead."""

_MIDNIGHT = timedelta(hours=1)
"""A run does not come so near to the end of anybody's day."""

_HERD = 0.2
"""The share of people who want theirs at one and the same second."""

_ALONE = 0.1
"""The share of people without a tenant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Attributes:
    at, weekday, zone: the rhythm.
    day, due: the local date and the instant of their brief, if there is to be one.
    becomes: READY, SKIPPED or NOTHING.
    away: days since the last visit; None where none was reported.
    projects: numbers of those that they are a member of.
    """

    id: str
    tenant: str | None
    zone: str
    at: time
    weekday: int | None
    day: date
    due: datetime
    becomes: str = READY
    active: bool = True
    when_empty: str = "brief"
    away: int | None = None
    projects: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Circle:
    """The projects of a run, and their tenants: a few large ones, many small."""

    seed: int
    projects: tuple[Project, ...]
    tenants: int

    @classmethod
    def of(cls, seed: int, projects: int) -> "Circle":
        """The tenants' numbers of projects differ as widely as can be."""
        dice = Random(f"{seed}/circle")
        tenants = max(projects // 8, 2)
        shares = [1 / (n + 1) for n in range(tenants)]
        drawn = [*range(tenants), *dice.choices(range(tenants), shares, k=max(projects - tenants, 0))]
        every = tuple(
            Project(number=n, id=uid(seed, "storm", n), tenant=drawn[n]) for n in range(max(projects, tenants))
        )
        return cls(seed=seed, projects=every, tenants=tenants)

    def owner(self, tenant: int) -> str:
        """Who created a tenant's projects."""
        return uid(self.seed, "owner", tenant)

    def people(self, number: int, begin: datetime, seconds: float) -> Iterator[Person]:
        """People whose briefs are due within so many seconds from ``begin``."""
        dice = Random(f"{self.seed}/people")
        own = {t: [p.number for p in self.projects if p.tenant == t] for t in range(self.tenants)}
        zones = zones_by_day(begin, begin + timedelta(seconds=seconds))
        for count in range(number):
            at = 0.5 if dice.random() < _HERD else dice.random()
            due = (begin + timedelta(seconds=round(at * seconds))).replace(microsecond=0)
            tenant = self.projects[dice.randrange(len(self.projects))].tenant
            few = min(dice.choice((1, 1, 2, 3)), len(own[tenant]))
            yield _person(
                str(UUID(int=dice.getrandbits(128), version=4)),
                due,
                dice.choice(zones),
                None if dice.random() < _ALONE else f"tenant {tenant}",
                frozenset(dice.sample(own[tenant], few)),
                _FATES.get(count % 50, "") if count >= 5 else "",
            )


_FATES = {
    7: "weekly",
    17: "weekly",
    11: "paused",
    23: "other weekday",
    29: "later",
    31: "away",
    37: "back",
    41: "empty",
}
_FATES |= {43: "content"}


def _person(
    user: str, due: datetime, zone: str, tenant: str | None, projects: frozenset[int], fate: str
) -> Person:
    if fate == "later":
        due += _APART
    local = due.astimezone(zone_named(zone))
    weekday = {"weekly": local.weekday(), "other weekday": (local.weekday() + 3) % 7}.get(fate)
    nothing = fate in {"paused", "other weekday", "later"}
    return Person(
        id=user,
        tenant=tenant,
        zone=zone,
        at=local.time(),
        weekday=weekday,
        day=local.date(),
        due=due,
        becomes=NOTHING if nothing else SKIPPED if fate in {"away", "content"} else READY,
        active=fate != "paused",
        when_empty="none" if fate == "content" else "brief",
        away={"away": 3, "back": 5}.get(fate),
        projects=frozenset() if fate in {"empty", "content"} else projects,
    )


def zones_by_day(begin: datetime, end: datetime) -> list[str]:
    """Zones in which the same date lasts for long before and after, by the same rule, here and in the product."""
    return [
        name
        for name in _places()
        if _day(name, begin - _MIDNIGHT) == _day(name, end + _APART + _MIDNIGHT)
        and _offset(name, begin - timedelta(days=2)) == _offset(name, end + timedelta(days=2))
        and begin.astimezone(_locked(name)).utcoffset() == _offset(name, begin)
    ]


@cache
def _places() -> tuple[str, ...]:
    return tuple(name for name in sorted(available_timezones()) if name[:1].isupper() and "/" in name)


@cache
def _locked(zone: str) -> ZoneInfo:
    """The zone by the locked database, which the product's processes use whatever the host has."""
    with resources.files("tzdata").joinpath("zoneinfo", *zone.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=zone)


def _day(zone: str, at: datetime) -> date:
    return at.astimezone(zone_named(zone)).date()


def _offset(zone: str, at: datetime) -> timedelta | None:
    return at.astimezone(zone_named(zone)).utcoffset()

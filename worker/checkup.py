"""What a ``doctor`` looks at: a table of checks, each a small function that says how one prerequisite stands and,
where it is not met, what to do.
"""

import shutil
import sys
import time
import zoneinfo
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import uuid4

import redis
from pydantic import SecretStr

from foreword import keys, tokens
from foreword.errors import ForewordError, Unavailable
from foreword.store import RedisStore
from loaders import privileges
from loaders.catalog import inspect
from loaders.condition import Condition, clock, condition
from loaders.connection import Connection, connect
from loaders.migrate import newest
from loaders.watch import unwatched
from worker.pulse import seen
from worker.settings import PREFIX, Settings
from worker.wiring import Services, redis_client, redis_errors

LEAST_PYTHON, LEAST_POSTGRES, LEAST_REDIS = (3, 11), 14, (6, 2)
"""PostgreSQL 14 replaces triggers; Redis 6.2 is the oldest that the suite runs on."""

CLOCK_SECONDS, WRONG_CLOCK_SECONDS = 1.0, 10.0
"""Bundles are stamped by the builders' clocks, and leases of seconds are compared by PostgreSQL's alone."""

LEAST_DISK, LITTLE_DISK = 200 * 2**20, 2 * 2**30

SAMPLE, SAMPLE_TOKENS = 'T12 "Überprüfung → 検査 🚢" todo due 2026-11-21\n', 23


class Verdict(StrEnum):
    """Of a check."""

    OK = "ok"
    WARN = "warn"  # it works, and will not always
    FAIL = "fail"
    SKIP = "skip"  # what it needs is not there


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """How a prerequisite stands: what was found, and the remedy where it is not well."""

    check: str
    verdict: Verdict
    what: str
    remedy: str = ""


Found = tuple[Verdict, str] | tuple[Verdict, str, str]

OK, WARN, FAIL = Verdict.OK, Verdict.WARN, Verdict.FAIL


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """What is looked at; None for a server that does not answer."""

    settings: Settings
    services: Services
    connection: Connection | None
    cache: "redis.Redis | None"
    broker: "redis.Redis | None"

    @property
    def database(self) -> Connection:
        """PostgreSQL, by a check that needs it."""
        assert self.connection is not None  # noqa: S101 - else the check is skipped
        return self.connection

    def redis(self, role: str) -> "redis.Redis":
        """Likewise the cache or the broker."""
        client = self.cache if role == CACHE else self.broker
        assert client is not None  # noqa: S101
        return client


DATABASE, CACHE, BROKER = "connection", "cache", "broker"
"""What a check needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One prerequisite."""

    name: str
    run: Callable[[Patient], Found]
    needs: tuple[str, ...] = ()


@contextmanager
def patient(settings: Settings, services: Services) -> Iterator[tuple[Patient, list[Finding]]]:
    """Connect to what answers; and the findings about that."""
    findings: list[Finding] = []
    with ExitStack() as stack:

        def reached(what: str, name: str, reach: Callable[[], Any], remedy: str) -> Any:
            try:
                opened = stack.enter_context(closing(reach()))
            except ForewordError as error:
                findings.append(Finding(check=what, verdict=FAIL, what=str(error), remedy=remedy))
                return None
            findings.append(Finding(check=what, verdict=OK, what=_place(name, opened)))
            return opened

        right = "start the server, or set {} to where it answers"
        yield (
            Patient(
                settings=settings,
                services=services,
                connection=reached(
                    "postgresql",
                    DATABASE,
                    lambda: connect(services.database_url),
                    right.format("FOREWORD_DATABASE_URL"),
                ),
                cache=reached(
                    "redis cache",
                    CACHE,
                    lambda: redis_client(services.redis_url),
                    right.format("FOREWORD_REDIS_URL"),
                ),
                broker=reached(
                    "redis broker",
                    BROKER,
                    lambda: redis_client(services.broker_url),
                    right.format("FOREWORD_BROKER_URL"),
                ),
            ),
            findings,
        )


def _place(name: str, opened: Any) -> str:
    """Where it answers, without any secret."""
    if name == DATABASE:
        info = opened.info
        return f"answers as {info.user} on {info.host or 'localhost'}, database {info.dbname}"
    given = opened.connection_pool.connection_kwargs
    where = given.get("path") or f"{given.get('host')}:{given.get('port', 6379)}"
    return f"answers on {where}, database {given.get('db', 0)}"


def examine(one: Patient) -> Iterator[Finding]:
    """Run every check, whatever the others found."""
    for check in CHECKS:
        missing = [need for need in check.needs if getattr(one, need) is None]
        if missing:
            said = f"{' and '.join(missing)} does not answer"
            yield Finding(check=check.name, verdict=Verdict.SKIP, what=f"not looked at: {said}")
            continue
        try:
            verdict, what, *remedy = check.run(one)
        except ForewordError as error:
            verdict, what, remedy = FAIL, str(error), []
        yield Finding(check=check.name, verdict=verdict, what=what, remedy="".join(remedy))


# ---- versions


def _python(_: Patient) -> Found:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < LEAST_PYTHON:
        return FAIL, found, "run it with Python 3.11 or later"
    return OK, found


def _postgres_version(one: Patient) -> Found:
    version = one.database.info.server_version
    found = f"{version // 10_000}.{version % 10_000}"
    if version // 10_000 < LEAST_POSTGRES:
        return FAIL, found, f"upgrade PostgreSQL to {LEAST_POSTGRES} or later"
    return OK, found


def _redis_versions(one: Patient) -> Found:
    found = [_info(one.redis(role), "server").get("redis_version") for role in (CACHE, BROKER)]
    old = [each for each in found if each and tuple(map(int, each.split(".")[:2])) < LEAST_REDIS]
    said = f"cache {found[0] or 'does not tell'}, broker {found[1] or 'does not tell'}"
    return (FAIL, said, "upgrade Redis to 6.2 or later") if old else (OK, said)


def _info(client: "redis.Redis", section: str) -> dict[str, Any]:
    """What it tells of itself: nothing to a user who may not ask."""
    with redis_errors("asking Redis how it is"), suppress(redis.ResponseError):
        found: dict[str, Any] = client.info(section)
        return found
    return {}


# ---- the database


def _migrations(one: Patient) -> Found:
    at, wanted = privileges.revision(one.database), newest()
    if at == wanted:
        return OK, f"at revision {at}"
    if at > wanted:
        return WARN, f"at revision {at}, newer than this code's {wanted}", "deploy the code that migrated it"
    return FAIL, f"at revision {at or 'none'}, this code wants {wanted}", "run `python -m worker migrate`"


def _triggers(one: Patient) -> Found:
    blind = unwatched(one.database)
    if not blind:
        return OK, "on every table"
    remedy = "run `python -m worker migrate`; a view, or a table without project_id, cannot be watched"
    return FAIL, f"edits of {', '.join(blind)} are not seen", remedy


def _tables(one: Patient) -> Found:
    catalog = inspect(one.database)
    said = f"{len(catalog.present)} kinds"
    if not catalog.absent:
        return OK, said
    return OK, f"{said}; absent: {', '.join(catalog.absent)}"


def _indexes(one: Patient) -> Found:
    missing = inspect(one.database).missing_indexes
    if not missing:
        return OK, "on every column that is read by"
    statements = " ".join(f"create index concurrently on {table} ({column});" for table, column in missing)
    return WARN, f"{len(missing)} are missing: builds read whole tables", statements


def _rights(one: Patient) -> Found:
    lacking = privileges.lacking(one.database)
    if not lacking:
        return OK, "to read onto_* and to write fw_*"
    named = ", ".join(f"{rights} on {name}" for name, rights in lacking[:8])
    more = f" and more on {len(lacking) - 8} others" if len(lacking) > 8 else ""
    remedy = "run deploy/postgres/roles.sql again, as after every migration"
    if not privileges.deployed(one.database):
        grants = (f"grant {rights} on {name} to {one.database.info.user};" for name, rights in lacking[:3])
        remedy = f"as its owner: {' '.join(grants)}"
    return FAIL, f"our role lacks {named}{more}", remedy


def _ending(one: Patient) -> Found:
    beyond = privileges.beyond_us(one.database)
    if not beyond:
        return OK, "of builders that hang"
    roles = ", ".join(beyond)
    return WARN, f"sessions of {roles} could not be ended", "run workers and relays as one role"


# ---- Redis


def _broker_policy(one: Patient) -> Found:
    policy, limit = _policy(one.redis(BROKER))
    if policy == "noeviction":
        return OK, policy
    remedy = "CONFIG SET maxmemory-policy noeviction, and in its file; or name another in FOREWORD_BROKER_URL"
    if not policy:
        return WARN, "the server does not tell", "make sure that it is noeviction"
    if not limit:
        return WARN, f"{policy}, without a limit of memory so far", remedy
    return FAIL, f"{policy}: it drops whole queues in silence", remedy


def _cache_policy(one: Patient) -> Found:
    policy, limit = _policy(one.redis(CACHE))
    if not policy:
        return WARN, "the server does not tell", "a cache of its own may evict, as by allkeys-lfu"
    if not limit:
        return OK, f"{policy}, without a limit of memory"
    if policy == "noeviction":
        return (
            WARN,
            f"{policy}: once it is full, nothing is published",
            "give the cache a server of its own that evicts",
        )
    return OK, f"{policy}, limit {limit // 2**20} MiB"


def _policy(client: "redis.Redis") -> tuple[str, int]:
    info = _info(client, "memory")
    return str(info.get("maxmemory_policy", "")), int(info.get("maxmemory", 0))


def _round_trip(one: Patient) -> Found:
    client = one.redis(CACHE)
    key = keys.project(str(uuid4()))
    began = time.perf_counter()
    with redis_errors("publishing a probe"):
        store = RedisStore(client)
        try:
            if not store.publish(key, (1, 1), {keys.TEXT: b"probe"}, 60):
                return FAIL, "a publication was refused", "look at Redis's log"
            if store.read(key, [keys.TEXT]) != [b"probe"]:
                return FAIL, "what was published could not be read", "is it a replica, or a proxy between?"
            if store.publish(key, (1, 1), {keys.TEXT: b"late"}, 60):
                return FAIL, "an older build is not refused", "is there a Redis with Lua?"
        finally:
            client.delete(key)
    return OK, f"published, read and refused in {(time.perf_counter() - began) * 1000:.1f} ms"


# ---- this machine


@dataclass(frozen=True, slots=True)
class Lead:
    """By how much another clock is before this host's, and how wrong that may be; both in seconds."""

    seconds: float
    doubt: float

    @property
    def at_least(self) -> float:
        """How far the clocks are apart for certain, before or behind."""
        return max(0.0, abs(self.seconds) - self.doubt)


def lead(ask: Callable[[], float]) -> Lead:
    """What a server's answer says of its clock: a slow answer says little, and is not taken for a wrong clock.

    The server read its clock somewhere between question and answer; the middle is at most half of that off.
    """
    before = time.time()
    said = ask()
    after = time.time()
    return Lead(said - (before + after) / 2, (after - before) / 2)


def _clocks(one: Patient) -> Found:
    def redis_time(role: str) -> float:
        seconds, micros = one.redis(role).time()
        return float(seconds) + float(micros) / 1e6

    leads = {"PostgreSQL": lead(lambda: clock(one.database))}
    for role in (CACHE, BROKER):
        with redis_errors("asking for the time"), suppress(redis.ResponseError):  # who may not ask, does not
            leads[f"the {role}"] = lead(lambda role=role: redis_time(role))  # type: ignore[misc]
    worst = max(each.at_least for each in leads.values())
    if worst <= CLOCK_SECONDS:
        return OK, f"within {CLOCK_SECONDS:.0f} s of this host's"
    verdict = WARN if worst <= WRONG_CLOCK_SECONDS else FAIL
    said = ", ".join(f"{name} {each.seconds:+.2f} s" for name, each in leads.items())
    return verdict, f"beside this host's: {said}", "run NTP on every host"


def _tokenizer(_: Patient) -> Found:
    counted = tokens.count(SAMPLE)
    if counted != SAMPLE_TOKENS:
        return FAIL, f"counts {counted} tokens where there are {SAMPLE_TOKENS}", "install the locked requirements"
    return OK, f"{tokens.ENCODING}, exact"


def _zones(_: Patient) -> Found:
    try:
        version = metadata.version("tzdata")
    except metadata.PackageNotFoundError:
        return FAIL, "the package tzdata is missing", "install the locked requirements"
    if zoneinfo.TZPATH:
        return WARN, f"tzdata {version}, but zones come from {zoneinfo.TZPATH[0]}", "run `python -m worker`"
    return OK, f"{len(zoneinfo.available_timezones())}, from the package tzdata {version}"


def _disk(one: Patient) -> Found:
    place = one.settings.data_dir
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    said = f"{free / 2**30:.1f} GiB free for {one.settings.data_dir}"
    own = one.settings.database_url is None or one.settings.redis_url is None
    if not own:
        return OK, f"{said}; no server of ours keeps data there"
    if free >= LITTLE_DISK:
        return OK, said
    return (WARN if free >= LEAST_DISK else FAIL), said, "make room, or choose another FOREWORD_DATA_DIR"


def _health_directory(one: Patient) -> Found:
    place: Path = one.settings.health
    probe = place / f"probe-{uuid4()}"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe.touch()
    except OSError as error:
        remedy = "set FOREWORD_HEALTH_DIR to a directory that this user may write to, as a tmpfs"
        return FAIL, f"{place}: {error.strerror}", remedy
    finally:
        with suppress(OSError):
            probe.unlink()
    return OK, str(place)


def _settings(one: Patient) -> Found:
    given = sorted(one.settings.model_fields_set)
    named = ", ".join(f"{PREFIX}{name.upper()}={masked(getattr(one.settings, name))}" for name in given)
    return OK, named or "all by default"


def masked(value: object) -> str:
    """A setting that may be shown."""
    return "***" if isinstance(value, SecretStr) else str(value)


# ---- who is there


def _leader(one: Patient) -> Found:
    led = _condition(one)
    if led.leader is None:
        return FAIL, "no relay leads: nothing that is edited is built", "run `python -m worker relay`"
    return OK, f"a relay leads, and says so within {led.led_for or 0:.1f} s"


def _worker(one: Patient) -> Found:
    with redis_errors("asking who is there"):
        here = [each for each in seen(one.redis(CACHE)) if each.here and each.role == "worker"]
    if not here:
        return FAIL, "no worker was seen lately", "run `python -m worker work`"
    return OK, f"{len(here)} seen, the last {min(each.ago for each in here):.0f} s ago"


def _condition(one: Patient) -> Condition:
    return condition(one.database)


CHECKS = (
    Check(name="python", run=_python),
    Check(name="settings", run=_settings),
    Check(name="tokenizer", run=_tokenizer),
    Check(name="time zones", run=_zones),
    Check(name="disk", run=_disk),
    Check(name="health files", run=_health_directory),
    Check(name="postgresql version", run=_postgres_version, needs=(DATABASE,)),
    Check(name="redis versions", run=_redis_versions, needs=(CACHE, BROKER)),
    Check(name="migrations", run=_migrations, needs=(DATABASE,)),
    Check(name="tables", run=_tables, needs=(DATABASE,)),
    Check(name="triggers", run=_triggers, needs=(DATABASE,)),
    Check(name="indexes", run=_indexes, needs=(DATABASE,)),
    Check(name="rights", run=_rights, needs=(DATABASE,)),
    Check(name="ending sessions", run=_ending, needs=(DATABASE,)),
    Check(name="broker policy", run=_broker_policy, needs=(BROKER,)),
    Check(name="cache policy", run=_cache_policy, needs=(CACHE,)),
    Check(name="round trip", run=_round_trip, needs=(CACHE,)),
    Check(name="clocks", run=_clocks, needs=(DATABASE, CACHE, BROKER)),
    Check(name="leader", run=_leader, needs=(DATABASE,)),
    Check(name="worker", run=_worker, needs=(CACHE,)),
)
"""In the order in which one would look."""


def exit_code(findings: list[Finding]) -> int:
    """1 where something fails; 3 where a server does not answer."""
    if any(each.verdict is Verdict.SKIP for each in findings):
        return Unavailable.exit_code
    return ForewordError.exit_code if any(each.verdict is FAIL for each in findings) else 0

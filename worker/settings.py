"""Settings: one frozen, validated object, made once from the environment at the start of a command.

Nothing else reads the environment, and nothing reads it at import. A name that does not exist is an error that
says what was meant, because a misspelt setting is a default in disguise.
"""

import difflib
import os
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import platformdirs
import redis
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError

from foreword.errors import BadSettings
from foreword.lines import DEFAULT_BUDGET, LARGEST_BUDGET, SMALLEST_BUDGET
from tasks.tools import BUNDLE_DAYS

PREFIX = "FOREWORD_"


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        near = difflib.get_close_matches(name, available_timezones(), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"there is no time zone {name!r}{hint}") from None
    return name


def _url(read: Callable[[str], Any], *schemes: str) -> AfterValidator:
    """A URL that ``read`` can read, which raises where it cannot. What it says then is not passed on: it quotes
    what it stumbled over, which is often a part of the password.
    """

    def check(url: SecretStr) -> SecretStr:
        written = url.get_secret_value()
        if written.partition("://")[0] not in schemes:
            raise ValueError(f"a URL beginning {' or '.join(f'{s}://' for s in schemes)} is wanted")
        try:
            read(written)
        except (ValueError, TypeError, ProgrammingError):
            raise ValueError(
                "the URL cannot be read; special characters of a password are written as %XX, a port is a number"
            ) from None
        return url

    return AfterValidator(check)


def _read_postgres(url: str) -> None:
    """As libpq reads it, and its ports, which libpq looks at only when it connects."""
    for port in str(conninfo_to_dict(url).get("port", "")).split(","):
        int(port or 0)


def _read_redis(url: str) -> None:
    """As redis-py reads it; a connection is made, but not connected, to know that its options exist."""
    if urlsplit(url).scheme == "unix" and not urlsplit(url).path:
        raise ValueError("no path of a socket")
    redis.ConnectionPool.from_url(url).make_connection()


PostgresUrl = Annotated[SecretStr, _url(_read_postgres, "postgresql", "postgres")]
RedisUrl = Annotated[SecretStr, _url(_read_redis, "redis", "rediss", "unix")]


def _directory(path: Path) -> Path:
    """The same place for child processes, wherever they run."""
    try:
        return path.expanduser().absolute()
    except RuntimeError as error:  # ~somebody whom nobody knows
        raise ValueError(f"{path}: {error}") from None


Directory = Annotated[Path, AfterValidator(_directory)]


class Settings(BaseModel):
    """Every setting, its default and the reason for it. The environment variable is FOREWORD_ and the name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    database_url: PostgresUrl | None = Field(
        None, description="PostgreSQL; without it an embedded server is started in data_dir"
    )
    redis_url: RedisUrl | None = Field(
        None, description="Redis for bundles; without it an embedded server is started in data_dir"
    )
    broker_url: RedisUrl | None = Field(
        None, description="Redis for Celery; by default the one of redis_url. It must not evict keys"
    )
    data_dir: Directory = Field(
        default_factory=lambda: platformdirs.user_data_path("foreword"),
        description="where the embedded servers keep their data",
    )
    zone: Annotated[str, AfterValidator(_zone)] = Field(
        "UTC", description="time zone of projects that name none in props.timezone"
    )
    budget: int = Field(
        DEFAULT_BUDGET,
        ge=SMALLEST_BUDGET,
        le=LARGEST_BUDGET,
        description="tokens of a published text; a chat's initial context is about this much",
    )
    bundle_days: int = Field(
        BUNDLE_DAYS, ge=1, description="days until a bundle that nobody rebuilds may be collected"
    )
    concurrency: int = Field(
        default_factory=lambda: max(os.cpu_count() or 1, 1),
        ge=1,
        le=256,
        description="worker processes; a rebuild is bound by the database and one core, so one a core",
    )
    as_of: date | None = Field(
        None, description="a fixed as-of date, for datasets with a date of their own; by default today"
    )


def from_environment(environment: Mapping[str, str]) -> Settings:
    """The settings in ``environment``.

    Raises:
        BadSettings: an unknown name, or a value that cannot be; every mistake is listed.
    """
    given = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(PREFIX) and value != ""
    }
    known = set(Settings.model_fields)
    problems = [_unknown(name, known) for name in sorted(given.keys() - known)]
    try:
        settings = Settings.model_validate({name: given[name] for name in given.keys() & known})
    except ValidationError as error:
        problems += [
            f"{PREFIX}{str(e['loc'][0]).upper()}: {e['msg'].removeprefix('Value error, ')}" for e in error.errors()
        ]
    if problems:
        raise BadSettings("; ".join(problems))
    return settings


def to_environment(settings: Settings) -> dict[str, str]:
    """The variables from which ``from_environment`` makes these settings again, secrets included: what a child
    process is told.
    """
    given = ((name, value) for name, value in settings if value is not None)
    return {
        f"{PREFIX}{name.upper()}": value.get_secret_value() if isinstance(value, SecretStr) else str(value)
        for name, value in given
    }


def child_environment(settings: Settings) -> dict[str, str]:
    """The environment of a child process: these settings and no others."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    return inherited | to_environment(settings)


def _unknown(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {PREFIX}{near[0].upper()}?" if near else f"there are {', '.join(sorted(known))}"
    return f"unknown setting {PREFIX}{name.upper()}, {hint}"

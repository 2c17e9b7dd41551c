"""Settings: one frozen, validated object, made once from the environment at the start of a command.

Nothing else reads the environment, and nothing reads it at import. A name that does not exist is an error that
says what was meant, because a misspelt setting is a default in disguise.
"""

import difflib
import os
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import platformdirs
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


def _url(*schemes: str) -> AfterValidator:
    def check(url: SecretStr) -> SecretStr:
        scheme = urlsplit(url.get_secret_value()).scheme
        if scheme not in schemes:
            raise ValueError(
                f"a URL beginning {' or '.join(f'{s}://' for s in schemes)} is wanted, not {scheme!r}"
            )
        return url

    return AfterValidator(check)


PostgresUrl = Annotated[SecretStr, _url("postgresql", "postgres")]
RedisUrl = Annotated[SecretStr, _url("redis", "rediss", "unix")]


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
    data_dir: Path = Field(
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
        problems += [f"{PREFIX}{str(e['loc'][0]).upper()}: {e['msg']}" for e in error.errors()]
    if problems:
        raise BadSettings("; ".join(problems))
    return settings


def _unknown(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {PREFIX}{near[0].upper()}?" if near else f"there are {', '.join(sorted(known))}"
    return f"unknown setting {PREFIX}{name.upper()}, {hint}"

"""Settings: one frozen, validated object, made once from the environment at the start of a command.

Nothing else reads the environment, and nothing reads it at import. A name that does not exist is an error that
says what was meant, because a misspelt setting is a default in disguise.
"""

import difflib
import os
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

import platformdirs
import redis
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from foreword.errors import BadInput, BadSettings
from foreword.lines import DEFAULT_BUDGET, LARGEST_BUDGET, SMALLEST_BUDGET
from foreword.zones import zone_named
from tasks.tools import BUNDLE_DAYS
from worker.health import below
from worker.webhook import key_of

PREFIX = "FOREWORD_"

_FILE = "_file"
"""A variable of a setting's name and this holds the path of a file with the value: a secret that a container is
given. So it is in nobody's environment, and in no ``docker inspect``.
"""

_LONGEST_FILE = 10_000
SHORTEST_PASSWORD = 12


def _zone(name: str) -> str:
    try:
        return zone_named(name).key
    except BadInput as error:  # pydantic collects ValueErrors
        raise ValueError(str(error)) from None


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


VERIFIED: Mapping[str, object] = {"ssl_cert_reqs": "required", "ssl_check_hostname": True}
"""Options of a Redis behind TLS that nobody turns off: who need not prove its name could be anybody."""

_TLS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")


def redis_options(url: str) -> dict[str, Any]:
    """What a URL of redis-py's says, read as it reads it."""
    return redis.ConnectionPool.from_url(url).connection_kwargs


def _provable(url: SecretStr) -> SecretStr:
    options = redis_options(url.get_secret_value())
    lax = [name for name, strict in VERIFIED.items() if options.get(name, strict) != strict]
    if lax:
        raise ValueError(
            f"{' and '.join(lax)} would let anybody pass for the server: leave it out, and name who signed its"
            " certificate: rediss://...?ssl_ca_certs=/path/ca.pem"
        )
    for name in _TLS_FILES:
        try:
            Path(options.get(name, os.devnull)).read_bytes()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "that is no path"
            raise ValueError(f"{name}={options[name]} cannot be read: {why}") from None
    return url


PostgresUrl = Annotated[SecretStr, _url(_read_postgres, "postgresql", "postgres")]
RedisUrl = Annotated[SecretStr, _url(_read_redis, "redis", "rediss", "unix"), AfterValidator(_provable)]


def _endpoint(url: str) -> str:
    """Nothing of a secret may stand in it: it is shown, and written into logs by others."""
    wanted = "the base of an OpenAI-compatible endpoint is wanted, such as https://api.openai.com/v1"
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  # reading it is what refuses one that is no number
    except ValueError:
        raise ValueError(wanted) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(wanted)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError(f"{wanted}; a key belongs in {PREFIX}MODEL_KEY, and nothing behind a ? or # is sent")
    return url


def _key(key: SecretStr) -> SecretStr:
    """What can stand in a header: anything else would fail at each call, and be quoted by whoever raises it."""
    written = key.get_secret_value()
    if not written.isascii() or not written.isprintable() or " " in written:
        raise ValueError("a key is printable ASCII without spaces or line breaks")
    return key


def _web_address(url: SecretStr) -> SecretStr:
    """May hold a token, as many receivers want it."""
    written = url.get_secret_value()
    try:
        parts = urlsplit(written)  # which drops line breaks in silence
        known = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        known = known and written.isprintable() and " " not in written
    except ValueError:
        known = False
    if not known:
        raise ValueError("a web address beginning http:// or https:// is wanted")
    return url


def _password(secret: SecretStr) -> SecretStr:
    """Flower shows everybody's ids, so it is to be no short one; and HTTP's basic scheme is to carry it."""
    written = secret.get_secret_value()
    if len(written) < SHORTEST_PASSWORD or not written.isprintable():
        raise ValueError(f"at least {SHORTEST_PASSWORD} printable characters are wanted")
    return secret


def _signing(secret: SecretStr) -> SecretStr:
    try:
        key_of(secret.get_secret_value())
    except BadSettings as error:  # pydantic collects ValueErrors
        raise ValueError(str(error)) from None
    return secret


WebAddress = Annotated[SecretStr, AfterValidator(_web_address)]
WebhookUrl = WebAddress
WebhookSecret = Annotated[SecretStr, AfterValidator(_signing)]
FlowerPassword = Annotated[SecretStr, AfterValidator(_password)]
Endpoint = Annotated[str, AfterValidator(_endpoint)]
Key = Annotated[SecretStr, AfterValidator(_key)]
Price = Annotated[Decimal, Field(ge=0, allow_inf_nan=False)]


def _directory(path: Path) -> Path:
    """The same place for child processes, wherever they run."""
    try:
        return path.expanduser().absolute()
    except RuntimeError as error:  # ~somebody whom nobody knows
        raise ValueError(f"{path}: {error}") from None


Directory = Annotated[Path, AfterValidator(_directory)]


WINDOW = 16
"""Enough that eight processes never wait."""

BRIEF_DAYS, LEAST_BRIEF_DAYS = 365, 100
"""A year. Who stays away is written to every 90 days, counted from the last brief: that must be there still."""


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
    health_dir: Directory | None = Field(
        None, description="where processes leave signs of life for probes; by default health in data_dir"
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
    brief_days: int = Field(
        BRIEF_DAYS,
        ge=LEAST_BRIEF_DAYS,
        description="days that briefs, and what models cost for them, are kept in PostgreSQL",
    )
    audit_seconds: float = Field(
        60,
        ge=0,
        allow_inf_nan=False,
        description="between bundles that the relay compares with a fresh build while nothing waits; 0: never",
    )
    concurrency: int = Field(
        default_factory=lambda: max(os.cpu_count() or 1, 1),
        ge=1,
        le=256,
        description="worker processes; a rebuild is bound by the database and one core, so one a core",
    )
    window: int = Field(
        WINDOW,
        ge=4,
        le=4096,
        description="messages for edits that are sent and not begun, at most; about twice the workers' processes",
    )
    as_of: date | None = Field(
        None, description="a fixed as-of date, for datasets with a date of their own; by default today"
    )
    model_url: Endpoint | None = Field(
        None,
        description="an OpenAI-compatible endpoint, up to its /v1, that words briefs; by default templates do",
    )
    model_key: Key | None = Field(None, description="the endpoint's key; local ones want none")
    model_name: str | None = Field(None, description="the model to ask; needed where model_url is set")
    model_seconds: float = Field(
        20,
        gt=0,
        le=50,
        allow_inf_nan=False,
        description="deadline of one call, retries included; a task is ended after a minute",
    )
    model_price_in: Price | None = Field(
        None, description="price of a million prompt tokens, in any currency; without it no cost is recorded"
    )
    model_price_out: Price | None = Field(None, description="price of a million completion tokens, likewise")
    webhook_url: WebhookUrl | None = Field(
        None, description="where to POST that a brief is ready, signed; by default it is only in Redis's stream"
    )
    webhook_secret: WebhookSecret | None = Field(
        None, description="signs what is posted: whsec_ and the base64 of 24 bytes or more"
    )
    log_format: Literal["json", "text"] | None = Field(
        None, description="how events are logged; by default text on a terminal and JSON anywhere else"
    )
    metrics_port: int | None = Field(
        None,
        ge=0,
        le=65_535,
        description="where a relay or worker serves Prometheus's /metrics; by default nowhere, 0 is any free port",
    )
    metrics_host: str = Field("127.0.0.1", description="the address that it is served on")
    traces_url: WebAddress | None = Field(
        None,
        description="where to send OpenTelemetry spans: OTLP over HTTP, up to its /v1/traces; off by default",
    )
    flower_password: FlowerPassword | None = Field(
        None, description="Flower's, whose user is foreword; by default made once, in flower.password in data_dir"
    )

    @property
    def health(self) -> Path:
        """Where processes leave signs of life."""
        return self.health_dir or below(self.data_dir)

    @model_validator(mode="after")
    def _together(self) -> Self:
        """An unsigned announcement could come from anybody."""
        if (self.webhook_url is None) != (self.webhook_secret is None):
            raise ValueError(f"{PREFIX}WEBHOOK_URL and {PREFIX}WEBHOOK_SECRET go together: set both, or neither")
        return self


def from_environment(environment: Mapping[str, str]) -> Settings:
    """The settings in ``environment``, and in the files that it names (``FOREWORD_REDIS_URL_FILE``), of which the
    line break at the end is no part.

    Raises:
        BadSettings: an unknown name, or a value that cannot be; every mistake is listed.
    """
    given = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(PREFIX) and value != ""
    }
    known = set(Settings.model_fields)
    problems = _read_files(given, known)
    problems += [_unknown(name, known) for name in sorted(given.keys() - known)]
    try:
        settings = Settings.model_validate({name: given[name] for name in given.keys() & known})
    except ValidationError as error:
        problems += [
            ": ".join(
                [
                    *(f"{PREFIX}{str(name).upper()}" for name in e["loc"][:1]),
                    e["msg"].removeprefix("Value error, "),
                ]
            )
            for e in error.errors()
        ]
    if problems:
        raise BadSettings("; ".join(problems))
    return settings


def _read_files(given: dict[str, str], known: set[str]) -> list[str]:
    """Put into ``given`` what stands in the files that it names; what is wrong with them."""
    problems = []
    for name in sorted(given):
        setting = name.removesuffix(_FILE)
        if name in known or setting == name or setting not in known:
            continue
        path, variable = given.pop(name), f"{PREFIX}{name.upper()}"
        if setting in given:
            problems.append(f"{variable} and {PREFIX}{setting.upper()} are both set: leave one of them out")
            continue
        try:
            with Path(path).open(encoding="utf-8") as file:
                value = file.read(_LONGEST_FILE + 1).removesuffix("\n")
        except (OSError, ValueError) as error:  # a ValueError is a NUL in the path, or no UTF-8
            why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
            problems.append(f"{variable}: {path} cannot be read: {why}; may this user read it?")
            continue
        if 0 < len(value) <= _LONGEST_FILE:
            given[setting] = value
        else:
            problems.append(f"{variable}: {path} is empty, or longer than {_LONGEST_FILE} characters")
    return problems


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

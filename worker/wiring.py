"""Wiring: from settings and running servers to connections and tools. Errors of the clients become ours here."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit
from zoneinfo import ZoneInfo

import orjson
import redis
from kombu.exceptions import OperationalError
from redis.exceptions import NoPermissionError

from foreword.errors import BadSettings, Unavailable
from foreword.ports import News, Raw
from foreword.store import RedisStore
from loaders.catalog import inspect
from loaders.connection import Connection, connect
from loaders.project import compile_statements
from tasks.tools import Tools, Webhook
from worker.model import model_of
from worker.servers import embedded
from worker.settings import VERIFIED, Settings, redis_options
from worker.webhook import webhook

CACHE_DB, BROKER_DB = 0, 1
"""Of the embedded Redis. In production they are better two servers: a cache may evict, a broker must not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Where PostgreSQL and Redis answer."""

    database_url: str
    redis_url: str
    broker_url: str


@contextmanager
def services(settings: Settings) -> Iterator[Services]:
    """The servers that the settings name, or embedded ones for those they do not; those are stopped at the end
    unless another command still uses them.

    Raises:
        ServerError: an embedded server cannot start.
    """
    with embedded(
        settings.data_dir, postgres=settings.database_url is None, redis=settings.redis_url is None
    ) as own:
        redis_url = settings.redis_url.get_secret_value() if settings.redis_url else own.redis_url
        broker = settings.broker_url.get_secret_value() if settings.broker_url else redis_url
        if settings.broker_url is None and settings.redis_url is None:
            broker = redis_url.replace(f"db={CACHE_DB}", f"db={BROKER_DB}")
        database = settings.database_url.get_secret_value() if settings.database_url else own.database_url
        yield Services(database_url=database, redis_url=redis_url, broker_url=broker)


def redis_client(url: str) -> "redis.Redis":
    """A client with time-outs: without them a half-open connection waits for ever.

    Raises:
        Unavailable: nothing answers, or it is no Redis.
    """
    keepalive = {} if url.startswith("unix:") else {"socket_keepalive": True}
    client = redis.Redis.from_url(
        url, socket_timeout=10, socket_connect_timeout=5, health_check_interval=10, **keepalive
    )
    with redis_errors("connecting"):
        client.ping()
    return client


@contextmanager
def redis_errors(what: str) -> Iterator[None]:
    """Errors of redis-py inside, and kombu's of the broker, become ours.

    Raises:
        Unavailable: Redis does not answer, or refuses.
    """
    try:
        yield
    except (redis.ConnectionError, redis.TimeoutError, redis.InvalidResponse, OperationalError) as error:
        raise Unavailable(
            f"{what}: Redis does not answer: {_first_line(error)}; is the server running, and FOREWORD_REDIS_URL"
            " (and FOREWORD_BROKER_URL, where it is set) right?"
        ) from error
    except redis.RedisError as error:
        raise Unavailable(f"{what}: Redis refuses: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


PROBE = "fw:probe"


def probe(client: "redis.Redis") -> None:
    """Write something: a Redis that is full, or a replica, answers and takes nothing.

    Raises:
        redis.RedisError: it does not answer, or takes nothing.
    """
    with suppress(NoPermissionError):  # who may not write this, does not know
        client.set(PROBE, "", ex=60)


def takes(client: "redis.Redis") -> bool:
    """Whether a Redis answers, and takes something."""
    try:
        probe(client)
    except (redis.RedisError, OSError):
        return False
    return True


def check_broker(url: str) -> None:
    """Have it said before any work begins that the broker is down, or may evict: then it drops whole queues in
    silence.

    Raises:
        Unavailable: nothing answers.
        BadSettings: the broker has a memory limit and a policy other than noeviction.
    """
    with redis_client(url) as client, redis_errors("checking the broker"):
        try:
            found = client.info("memory")  # CONFIG says the same, and is kept from most
        except redis.ResponseError:
            return
    policy, limit = found.get("maxmemory_policy", "noeviction"), str(found.get("maxmemory", "0"))
    if limit != "0" and policy != "noeviction":
        raise BadSettings(
            f"the broker evicts keys (maxmemory-policy {policy}): it would drop queues silently; "
            "set it to noeviction or name another server in FOREWORD_BROKER_URL"
        )


class JobStore(RedisStore):
    """The store of builders. A build that Redis refuses is a build that failed, and is answered as one."""

    def publish(
        self,
        key: str,
        fence: tuple[int, int],
        fields: Mapping[str, bytes],
        ttl: int,
        news: News | None = None,
    ) -> bool:
        """See ``Store.publish``; raises Unavailable."""
        with redis_errors("publishing"):
            return super().publish(key, fence, fields, ttl, news)

    def read(self, key: str, fields: Sequence[str]) -> list[Raw]:
        """See ``Store.read``; raises Unavailable."""
        with redis_errors("reading"):
            return super().read(key, fields)

    def read_many(self, wanted: Sequence[tuple[str, Sequence[str]]]) -> list[list[Raw]]:
        """See ``Store.read_many``; raises Unavailable."""
        with redis_errors("reading"):
            return super().read_many(wanted)

    def outdate(self, key: str) -> None:
        """See ``Store.outdate``; raises Unavailable."""
        with redis_errors("publishing"):
            super().outdate(key)

    def tell(self, name: str, event: Mapping[str, str], ttl: int) -> bool:
        """See ``Store.tell``; raises Unavailable."""
        with redis_errors("announcing"):
            return super().tell(name, event, ttl)

    def add_to_sets(self, keys: Iterable[str], member: str) -> None:
        """See ``Store.add_to_sets``; raises Unavailable."""
        with redis_errors("publishing"):
            super().add_to_sets(keys, member)


def stored_in(client: "redis.Redis") -> Callable[[str], Mapping[str, bytes]]:
    """Reads a whole hash, for audits; raises Unavailable."""

    def read(key: str) -> Mapping[str, bytes]:
        with redis_errors("reading"):
            found: Any = client.hgetall(key)
        return {name.decode("utf-8", "replace"): value for name, value in found.items()}

    return read


def kombu_url(url: str) -> str:
    """redis-py's URL as kombu wants it: the database in the path, sockets spelt differently, options left out
    (ours stand in the settings of ``worker.app``, those about TLS are ``kombu_tls``).
    """
    parts = urlsplit(url)
    database = parse_qs(parts.query).get("db", [parts.path.strip("/") or "0"])[0]
    if parts.scheme != "unix":
        return urlunsplit((parts.scheme, parts.netloc, f"/{database}", "", ""))
    database = parse_qs(parts.query).get("db", ["0"])[0]
    credentials = f"{parts.username or ''}:{parts.password}@" if parts.password else ""
    return f"redis+socket://{credentials}{parts.path}?virtual_host={database}"


def kombu_tls(url: str) -> dict[str, Any] | None:
    """What redis-py's URL says about TLS, for Celery's broker, which by itself verifies nothing; None without."""
    if not url.startswith("rediss:"):
        return None
    return {name: value for name, value in redis_options(url).items() if name.startswith("ssl_")} | dict(VERIFIED)


@contextmanager
def tools(settings: Settings, services: Services) -> Iterator[Tools]:
    """Open the tools of one process: a database connection, a Redis client, compiled statements.

    Raises:
        Unavailable, SchemaError: a server does not answer, or the database is not migrated.
    """
    # Closing, and not psycopg's own block: that would commit first, which a broken connection cannot.
    with ExitStack() as stack:
        connection = stack.enter_context(closing(connect(services.database_url)))
        client = stack.enter_context(redis_client(services.redis_url))
        model = model_of(settings)
        yield replace(
            tools_over(settings, connection, client),
            model=stack.enter_context(model) if model is not None else None,
            webhook=stack.enter_context(webhook_of(settings)),
        )


def webhook_of(settings: Settings) -> AbstractContextManager[Webhook | None]:
    """The receiver of announcements, for the length of a block; None where the settings name none."""
    if settings.webhook_url is None or settings.webhook_secret is None:
        return nullcontext()
    return webhook(settings.webhook_url.get_secret_value(), settings.webhook_secret.get_secret_value())


def tools_over(settings: Settings, connection: Connection, client: "redis.Redis") -> Tools:
    """Tools over connections that somebody else opened and will close."""
    return Tools(
        connection=connection,
        statements=compile_statements(inspect(connection)),
        store=JobStore(client),
        zone=ZoneInfo(settings.zone),
        budget=settings.budget,
        ttl=settings.bundle_days * 86_400,
        as_of=settings.as_of,
        dumps=orjson.dumps,
        loads=orjson.loads,
    )

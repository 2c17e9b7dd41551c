"""Real servers for every test that wants them: one pair for the run, a fresh database and an empty Redis each."""

import shutil
import signal
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest
import redis
from hypothesis import HealthCheck, settings

from foreword import tokens
from loaders.connection import Connection, connect
from loaders.migrate import migrate
from worker.servers import Addresses, embedded

settings.register_profile(
    "suite",
    deadline=None,  # no test asserts on time
    max_examples=60,
    derandomize=True,  # a red run is red again
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("suite")

_number = count(1)


def pytest_configure() -> None:
    """Told to end, as by ``timeout`` or a CI that has waited for long enough, it cleans up as on Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def encoding() -> None:
    """Load the tokenizer once."""
    tokens.encoding()


@pytest.fixture(scope="session")
def servers() -> Iterator[Addresses]:
    """The embedded PostgreSQL and Redis, in a directory of their own, gone afterwards."""
    home = Path(tempfile.mkdtemp(prefix="fw-test-"))
    try:
        with embedded(home) as addresses:
            yield addresses
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def migrated(servers: Addresses) -> str:
    """The name of a migrated database that others are copied from."""
    with psycopg.connect(servers.database_url, autocommit=True) as admin:
        admin.execute("create database fw_template")
    migrate(_named(servers, "fw_template"))
    return "fw_template"


@pytest.fixture
def empty_database(servers: Addresses) -> Iterator[str]:
    """The URL of a database without any table."""
    yield from _database(servers, "template0")


@pytest.fixture
def database_url(servers: Addresses, migrated: str) -> Iterator[str]:
    """The URL of a fresh, migrated database."""
    yield from _database(servers, migrated)


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    """A loader's connection to the fresh database."""
    with connect(database_url) as connection:
        yield connection


@pytest.fixture
def redis_url(servers: Addresses) -> str:
    """The URL of the empty Redis."""
    with redis.Redis.from_url(servers.redis_url) as client:
        client.flushall()
    return servers.redis_url


@pytest.fixture
def redis_client(redis_url: str) -> Iterator["redis.Redis"]:
    """A chat process's client of the empty Redis."""
    with redis.Redis.from_url(redis_url) as client:
        yield client


def _database(servers: Addresses, template: str) -> Iterator[str]:
    name = f"fw_{next(_number)}"
    with psycopg.connect(servers.database_url, autocommit=True) as admin:
        admin.execute(f'create database "{name}" template "{template}"'.encode())
        yield _named(servers, name)
        admin.execute(f'drop database "{name}" with (force)'.encode())


def _named(servers: Addresses, name: str) -> str:
    return servers.database_url.replace("/foreword?", f"/{name}?")

"""A system as a user sets it up: a database, a Redis, and commands that know both by their environment."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import psycopg
import pytest
import redis
from celery import Celery

from loaders.connection import connect
from processes import Commands, Running, eventually
from worker import crew
from worker.app import create_app
from worker.servers import Addresses
from worker.settings import Settings, from_environment
from worker.wiring import Services

_number = count(1)

AS_OF = "2026-11-21"
"""The day that the sample is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One database and one Redis, and who uses them."""

    commands: Commands
    services: Services
    settings: Settings

    @property
    def database_url(self) -> str:
        return self.services.database_url

    @property
    def app(self) -> Celery:
        return create_app(self.settings, self.services)

    @contextmanager
    def worker(self, *options: str, **variables: str) -> Iterator[Running]:
        """A worker that answers, told to end at the end."""
        broker = variables.get("FOREWORD_BROKER_URL", self.services.broker_url)
        app = create_app(
            self.settings,
            Services(database_url=self.database_url, redis_url=self.services.redis_url, broker_url=broker),
        )
        with self.commands.start("work", *options, **variables) as running:
            ready = eventually(lambda: crew.answers(app, 0.1) or running.process.poll() is not None)
            assert ready, running.err
            assert running.process.poll() is None, running.err
            yield running
            running.process.terminate()
            assert running.ended().code == 0, running.err


@pytest.fixture(scope="session")
def bytecode() -> Iterator[Path]:
    """Compiled modules of all commands of the run: compiling anew costs each of them a second."""
    directory = Path(tempfile.mkdtemp(prefix="fw-pyc-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def home() -> Iterator[Path]:
    """Where a user with embedded servers lives. The path is short, for sockets."""
    yield from _home()


@pytest.fixture
def commands(home: Path, bytecode: Path) -> Iterator[Commands]:
    """Commands of a user who has set nothing but the place of the embedded servers' data; nothing is left."""
    yield from _nothing_left(Commands.at(home, bytecode, FOREWORD_DATA_DIR=str(home / "data")), home)


@pytest.fixture(scope="module")
def system(servers: Addresses, migrated: str, bytecode: Path) -> Iterator[System]:
    """An empty system on the run's servers, for one module."""
    name = f"fw_system_{next(_number)}"
    with psycopg.connect(servers.database_url, autocommit=True) as admin:
        admin.execute(f'create database "{name}" template "{migrated}"'.encode())
    with redis.Redis.from_url(servers.redis_url) as client:
        client.flushall()
    variables = {
        "FOREWORD_DATABASE_URL": servers.database_url.replace("/foreword?", f"/{name}?"),
        "FOREWORD_REDIS_URL": servers.redis_url,
        "FOREWORD_BROKER_URL": servers.redis_url.replace("db=0", "db=1"),
        "FOREWORD_AS_OF": AS_OF,
    }
    home = _home()
    place = next(home)
    left = _nothing_left(Commands.at(place, bytecode, FOREWORD_DATA_DIR=str(place / "data"), **variables), place)
    try:
        yield System(
            commands=next(left),
            services=Services(
                database_url=variables["FOREWORD_DATABASE_URL"],
                redis_url=variables["FOREWORD_REDIS_URL"],
                broker_url=variables["FOREWORD_BROKER_URL"],
            ),
            settings=from_environment(variables),
        )
    finally:
        next(left, None)
        next(home, None)
        with psycopg.connect(servers.database_url, autocommit=True) as admin:
            admin.execute(f'drop database "{name}" with (force)'.encode())


def _home() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="fw-a-", dir="/tmp"))
    yield place
    shutil.rmtree(place, ignore_errors=True)


def _nothing_left(commands: Commands, place: Path) -> Iterator[Commands]:
    yield commands
    gone = eventually(lambda: not commands.left(place), 5)
    left = commands.left(place)
    commands.kill_left(place)
    assert gone, left

"""A system as a user sets it up: a database, a Redis, and commands that know both by their environment."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import redis
from celery import Celery
from processes import Commands, Ended, Running, eventually

from foreword.reader import Reader
from loaders.claims import LEADER_SECONDS
from loaders.connection import Connection, connect
from worker import crew
from worker.app import create_app
from worker.servers import Addresses
from worker.settings import Settings, from_environment
from worker.wiring import Services

Tell = Callable[..., Ended]
"""Runs a command in this process."""

_number = count(1)

WAITING = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"

AS_OF = "2026-11-21"
"""The day that the sample is about."""

NOON = 1795262400.0
"""Noon of that day, UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One database and one Redis, and who uses them."""

    commands: Commands
    settings: Settings
    services: Services
    connection: Connection
    redis: "redis.Redis"

    @property
    def reader(self) -> Reader:
        """A chat process's reader on the day that the sample is about."""
        return Reader(self.redis, clock=lambda: NOON)

    def app(self, broker_url: str = "") -> Celery:
        """A client of the broker, or of another."""
        services = Services(
            database_url=self.services.database_url,
            redis_url=self.services.redis_url,
            broker_url=broker_url or self.services.broker_url,
        )
        return create_app(self.settings, services)

    @contextmanager
    def worker(self, *options: str, broker_url: str = "") -> Iterator[Running]:
        """A worker that answers; told to end at the end."""
        app = self.app(broker_url)
        variables = {"FOREWORD_BROKER_URL": broker_url} if broker_url else {}
        with self.commands.start("work", *options, **variables) as running:
            eventually(lambda: crew.answers(app, 0.1) or running.process.poll() is not None)
            assert running.process.poll() is None, running.err
            yield running
            running.process.terminate()
            assert running.ended().code == 0, running.err

    @classmethod
    @contextmanager
    def over(cls, servers: Addresses, migrated: str, bytecode: Path) -> "Iterator[System]":
        """An empty one on these servers, gone afterwards. ``migrated`` is the database to copy."""
        with (
            _database(servers, migrated) as database_url,
            redis.Redis.from_url(servers.redis_url) as client,
            connect(database_url) as connection,
        ):
            client.flushall()
            services = Services(
                database_url=database_url,
                redis_url=servers.redis_url,
                broker_url=servers.redis_url.replace("db=0", "db=1"),
            )
            variables = {
                "FOREWORD_DATABASE_URL": services.database_url,
                "FOREWORD_REDIS_URL": services.redis_url,
                "FOREWORD_BROKER_URL": services.broker_url,
                "FOREWORD_AS_OF": AS_OF,
            }
            with Commands.somewhere(bytecode, **variables) as commands:
                yield cls(
                    commands=commands,
                    settings=from_environment(variables),
                    services=services,
                    connection=connection,
                    redis=client,
                )


@contextmanager
def _database(servers: Addresses, template: str) -> Iterator[str]:
    name = f"fw_system_{next(_number)}"
    with psycopg.connect(servers.database_url, autocommit=True) as admin:
        admin.execute(f'create database "{name}" template "{template}"'.encode())
        try:
            yield servers.database_url.replace("/foreword?", f"/{name}?")
        finally:
            admin.execute(f'drop database "{name}" with (force)'.encode())


@contextmanager
def held(database_url: str, mode: str = "access exclusive") -> Iterator["psycopg.Connection[Any]"]:
    """Tasks cannot be written until the block ends, or read. Yields a connection to look around with."""
    with (
        psycopg.connect(database_url, autocommit=True) as looking,
        psycopg.connect(database_url) as holding,
    ):
        holding.execute(f"lock table onto_tasks in {mode} mode".encode())
        yield looking
        holding.rollback()


def until_a_pause_is_obeyed(connection: Connection) -> None:
    """Return when the relay that leads has looked what is paused: it does when it says that it leads."""
    ((now,),) = connection.execute("select clock_timestamp()").fetchall()
    looked = "select until > %s::timestamptz + %s * interval '1 s' from fw_leader"
    assert eventually(lambda: connection.execute(looked, [now, LEADER_SECONDS]).fetchall() == [(True,)])


def is_waited(looking: "psycopg.Connection[Any]") -> bool:
    return looking.execute(WAITING).fetchone() != (0,)

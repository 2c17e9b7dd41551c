"""What a relay tells of the database, the broker and itself: looked up every few seconds, by a thread of its own.

A scrape is answered from what was last seen, in milliseconds, whatever hangs; and looking takes at most a tenth of
the time, however large the database is.
"""

import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

import redis
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from foreword.errors import ForewordError
from loaders.condition import condition
from loaders.connection import Connection, connect
from loaders.lateness import status
from worker.app import SENT
from worker.events import emit
from worker.metrics import METRICS, families
from worker.wiring import Services

LOOK_SECONDS, LONGEST_SECONDS = 5.0, 60.0
SHARE = 10
"""Looking takes at most one part in so many of the time; but nobody rests for hours since PostgreSQL hung once."""

STATEMENT_SECONDS = 10
REDIS_SECONDS = 1.0
HANGS_SECONDS = 20.0
"""After which a look hangs, and what was seen before it is not told any more."""

Values = dict[str, float | Mapping[str, float]]

QUEUES = METRICS["foreword_queue_depth"].labels["queue"]


class Gauges(threading.Thread, Collector):
    """Of one relay. ``leads`` tells whether it does."""

    def __init__(self, services: Services, leads: Callable[[], bool], *, broker: bool = True) -> None:
        super().__init__(name="gauges", daemon=True)
        self._services, self._leads = services, leads
        self._servers = {"cache": services.redis_url} | ({"broker": services.broker_url} if broker else {})
        self._seen: Values = {}
        self._looking_since = math.inf
        self._told = False

    def collect(self) -> Iterable[Metric]:
        """What was last seen. Where PostgreSQL hangs, it is down, and nothing else is known."""
        known = self._seen
        if time.monotonic() - self._looking_since > HANGS_SECONDS:
            known = {"foreword_postgres_up": 0.0}
        return families({"foreword_relay_leads": float(self._leads()), **known})

    def run(self) -> None:
        """Look for ever."""
        with ExitStack() as stack:
            clients = {
                name: stack.enter_context(
                    redis.Redis.from_url(url, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS)
                )
                for name, url in self._servers.items()
            }
            connection: Connection | None = None
            while True:
                self._looking_since = began = time.monotonic()
                found, connection = self._database(connection)
                self._seen = found | _redis(clients)
                self._looking_since = math.inf
                time.sleep(min(max(LOOK_SECONDS, SHARE * (time.monotonic() - began)), LONGEST_SECONDS))

    def _database(self, connection: Connection | None) -> tuple[Values, Connection | None]:
        """What is to be known from PostgreSQL, over this connection or a new one."""
        try:
            if connection is None or connection.closed:
                connection = connect(self._services.database_url, statement_seconds=STATEMENT_SECONDS)
            found = in_database(connection)
        except ForewordError as error:
            if not self._told:
                emit("gauges_unavailable", error=str(error))
            self._told = True
            if connection is not None:
                connection.close()
            return {"foreword_postgres_up": 0.0}, None
        self._told = False
        return found | {"foreword_postgres_up": 1.0}, connection


def in_database(connection: Connection) -> Values:
    """The gauges that PostgreSQL knows.

    Raises:
        BuildError, SchemaError, Unavailable: it does not say.
    """
    whole, briefs = condition(connection), status(connection)
    shares = {"p50": "0.5", "p95": "0.95", "p99": "0.99", "most": "1"}
    return {
        "foreword_freshness_lag_seconds": max(whole.lag, 0.0),
        "foreword_dirty_projects": whole.dirty,
        "foreword_parked_projects": whole.parked,
        "foreword_audit_mismatches": whole.mismatches,
        "foreword_audited_total": whole.audited,
        "foreword_briefs": {
            state: briefs.states.get(state, 0) for state in METRICS["foreword_briefs"].labels["state"]
        },
        "foreword_brief_lateness_seconds": {
            quantile: briefs.lateness.get(share, math.nan) for share, quantile in shares.items()
        },
        "foreword_brief_overdue": briefs.overdue,
        "foreword_brief_overdue_seconds": max(briefs.greatest_lateness, 0.0),
        "foreword_tick_age_seconds": max(whole.ticked, 0.0) if whole.ticked is not None else math.inf,
        "foreword_announcements": {"waiting": briefs.announcements_waiting, "dead": briefs.announcements_dead},
    }


def _redis(clients: Mapping[str, "redis.Redis"]) -> Values:
    up: dict[str, float] = {}
    found: Values = {"foreword_redis_up": up}
    for name, client in clients.items():
        try:
            if name == "broker":
                found |= queues(client)
            else:
                client.ping()
            up[name] = 1.0
        except (redis.RedisError, OSError):
            up[name] = 0.0
    return found


def queues(client: "redis.Redis") -> Values:
    """How many messages wait, and since when the oldest does: by the sender's clock, which it is marked with.

    Raises:
        redis.RedisError: the broker does not answer.
    """
    with client.pipeline(transaction=False) as pipe:
        for name in QUEUES:
            pipe.llen(name)
            pipe.lindex(name, -1)  # new ones come in at the other end
        answers: list[Any] = pipe.execute()
    depths, oldest = answers[::2], answers[1::2]
    return {
        "foreword_queue_depth": dict(zip(QUEUES, map(float, depths), strict=True)),
        "foreword_queue_oldest_seconds": {name: _age(raw) for name, raw in zip(QUEUES, oldest, strict=True)},
    }


def _age(raw: bytes | None) -> float:
    """Seconds since a message was sent; 0 where there is none, or one that does not say."""
    try:
        sent = json.loads(raw or b"{}")["headers"][SENT]
        return max(time.time() - float(sent), 0.0)
    except (ValueError, KeyError, TypeError):
        return 0.0

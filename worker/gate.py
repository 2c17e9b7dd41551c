"""Flower behind a gate: nothing answers without the password but the health check, and nothing but reading is let
through, whatever a handler of Flower's asks for or forgets.

Flower's own read-only mode refuses what changes anything and hides its buttons; but its metrics are open to
everybody, and each handler asks for the password by itself. The gate stands before all of them. It also answers
how long the queues are, which Flower on a unix socket asks the wrong database.
"""

import hmac
import logging
import time
from base64 import b64decode
from collections.abc import Iterable
from typing import Any

import redis.asyncio
from celery.events import EventReceiver
from flower.api.tasks import GetQueueLengths  # type: ignore[import-untyped]
from flower.app import Flower  # type: ignore[import-untyped]
from flower.events import Events  # type: ignore[import-untyped]
from flower.options import default_options  # type: ignore[import-untyped]
from flower.urls import settings as flower_settings  # type: ignore[import-untyped]
from flower.views.broker import BrokerView  # type: ignore[import-untyped]
from tornado.httputil import HTTPMessageDelegate, HTTPServerRequest
from tornado.ioloop import IOLoop
from tornado.web import RequestHandler

from worker.outage import Outage

library = logging.getLogger("flower.events")

OPEN = "/healthcheck"
READING = {"GET", "HEAD"}
TABLE = "/tasks/datatable"
"""What is read with a POST."""

QUEUES_SECONDS = 2.0
AGAIN_SECONDS = 5.0
"""Until a broker that does not answer is listened to again."""


class Guarded(Flower):  # type: ignore[misc]  # Flower has no types
    """Flower, refusing what is not let through. ``login`` is user:password."""

    def __init__(self, login: str, broker_url: str, **given: Any) -> None:
        super().__init__(**given)
        self._login = login.encode()
        self.add_handlers(
            r".*",
            [
                (r"/broker", _Broker, {"broker_url": broker_url}),
                (r"/api/queues/length", _Lengths, {"broker_url": broker_url}),
            ],
        )

    def find_handler(self, request: HTTPServerRequest, **more: Any) -> HTTPMessageDelegate:
        """Where every request comes through, before anything of Flower's sees it."""
        status = self._status(request)
        if status is None:
            found: HTTPMessageDelegate = super().find_handler(request, **more)
            return found
        refused: HTTPMessageDelegate = self.get_handler_delegate(request, _Refused, {"status": status})
        return refused

    def _status(self, request: HTTPServerRequest) -> int | None:
        """With which to refuse it; None where it may pass."""
        reads = request.method in READING
        if reads and request.path == OPEN:
            return None
        if not self._knows(request.headers.get("Authorization", "")):
            return 401
        return None if reads or (request.method, request.path) == ("POST", TABLE) else 403

    def _knows(self, header: str) -> bool:
        scheme, _, encoded = header.partition(" ")
        try:
            given = b64decode(encoded.strip(), validate=True)
        except ValueError:
            return False
        return scheme.lower() == "basic" and hmac.compare_digest(given, self._login)


class _Events(Events):  # type: ignore[misc]
    """Flower's listener. Its own waits twice as long after each failure, without end: after an hour without a
    broker it would stay blind for another.
    """

    def run(self) -> None:
        """Listen."""
        outage = Outage("flower")

        def heard(event: dict[str, Any]) -> None:
            outage.went()
            self.on_event(event)

        while True:
            try:
                with self.capp.connection() as connection:
                    receiver = EventReceiver(connection, handlers={"*": heard}, app=self.capp)
                    receiver.capture(limit=None, timeout=None, wakeup=True)
            except Exception as error:  # noqa: BLE001 - whatever the broker's client raises: listen again
                if times := outage.failed(error):
                    library.warning("not listening to workers, %d times: %s", times, error)
                time.sleep(AGAIN_SECONDS)


class _Refused(RequestHandler):
    """Says no, to any method, and nothing else."""

    def initialize(self, status: int) -> None:
        self._status = status

    def check_xsrf_cookie(self) -> None:
        """It is refused anyway."""

    def prepare(self) -> None:
        self.set_status(self._status)
        self.set_header("Content-Type", "text/plain; charset=UTF-8")
        if self._status == 401:
            self.set_header("WWW-Authenticate", 'Basic realm="Foreword", charset="UTF-8"')
            self.finish("The user is foreword; the password is where the operator keeps it.\n")
        else:
            self.finish("Here is nothing to be done, only to be seen.\n")


class _Queues:
    """The lengths of queues, at the broker's URL as it is. Flower drops the database of a unix socket."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def queues(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """As Flower's brokers have it; raises RedisError."""
        listed = list(names)
        client = redis.asyncio.Redis.from_url(
            self._url, socket_timeout=QUEUES_SECONDS, socket_connect_timeout=QUEUES_SECONDS
        )
        async with client, client.pipeline(transaction=False) as pipe:
            for name in listed:
                pipe.llen(name)
            lengths = await pipe.execute()
        return [{"name": name, "messages": length} for name, length in zip(listed, lengths, strict=True)]


class _OurBroker:
    """A part of handlers that ask how long the queues are."""

    capp: Any

    def initialize(self, broker_url: str) -> None:
        self._broker_url = broker_url

    def get_broker(self) -> _Queues:
        """Ours."""
        return _Queues(self._broker_url)

    def get_active_queue_names(self) -> list[str]:
        """All of ours, also those that no worker takes from: they matter most."""
        return sorted(queue.name for queue in self.capp.conf.task_queues)


class _Broker(_OurBroker, BrokerView):  # type: ignore[misc]
    pass


class _Lengths(_OurBroker, GetQueueLengths):  # type: ignore[misc]
    pass


def guarded(app: Any, broker_url: str, login: str, options: dict[str, Any]) -> Guarded:
    """Flower over a Celery application with these options, on the running loop; nothing is opened yet."""
    for name, value in options.items():
        setattr(default_options, name, value)
    default_options.basic_auth = [login]
    loop = IOLoop.current()
    events = _Events(
        app,
        loop,
        db=default_options.db,
        persistent=default_options.persistent,
        state_save_interval=default_options.state_save_interval,
        enable_events=default_options.enable_events,
        max_workers_in_memory=default_options.max_workers,
        max_tasks_in_memory=default_options.max_tasks,
    )
    return Guarded(
        login, broker_url, options=default_options, capp=app, events=events, io_loop=loop, **flower_settings
    )

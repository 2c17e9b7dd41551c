"""Delivering events to a real HTTP server that checks signatures by the book, or does what receivers do."""

import base64
import hashlib
import hmac
import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import redis
from processes import PATIENCE, eventually
from strategies import uid

from foreword.errors import BadSettings
from loaders import announcements, brief_queue
from loaders.catalog import inspect
from loaders.connection import Connection
from loaders.project import compile_statements
from tasks.announce import announce
from tasks.brief import make_brief
from tasks.tools import Refused, Tools
from worker.breaker import Breaker
from worker.settings import from_environment
from worker.webhook import Receiver, key_of, webhook
from worker.wiring import JobStore, webhook_of

KEY = b"thirty-two bytes of a secret key"
SECRET = "whsec_" + base64.b64encode(KEY).decode()
TOKEN = "t0ken-in-the-url"
EVENT = {"id": "ann:2026-11-21", "user": "ann", "due": "2026-11-21T09:00:00+00:00", "summary": "Ünderneath"}
SOON = 0.2
"""A deadline in seconds that tests wait for."""

Behaviour = Callable[["Handler"], None]


@dataclass(slots=True)
class Got:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes
    connection: tuple[str, int]


@dataclass(slots=True)
class Script:
    """What the server does, in order; the last goes on."""

    url: str
    behaviours: list[Behaviour] = field(default_factory=list)
    got: list[Got] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def does(self, *behaviours: Behaviour) -> None:
        self.behaviours[:] = behaviours


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Script

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.script.got.append(Got(self.path, headers, body, self.client_address))
        behaviours = self.script.behaviours
        with suppress(ConnectionError):
            (behaviours.pop(0) if len(behaviours) > 1 else behaviours[0])(self)

    do_GET = do_POST  # noqa: N815  # a redirect that is followed would come so

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002  # the library's name
        """Say nothing."""


def answers(status: int, body: bytes = b"thanks", **headers: str) -> Behaviour:
    def behave(handler: Handler) -> None:
        handler.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return behave


def stalls(handler: Handler) -> None:
    handler.script.ended.wait()
    handler.close_connection = True


def trickles(first: bytes, piece: bytes) -> Behaviour:
    """Something now and then, for ever: no step takes long, but there is no end."""

    def behave(handler: Handler) -> None:
        handler.wfile.write(first)
        while not handler.script.ended.wait(0.02):
            handler.wfile.write(piece)

    return behave


def floods(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    handler.close_connection = True
    while not handler.script.ended.is_set():
        handler.wfile.write(b"x" * 65_536)


def hangs_up(handler: Handler) -> None:
    handler.close_connection = True


@contextmanager
def serving() -> Iterator[Script]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    script = Script(f"http://127.0.0.1:{server.server_port}/hook?token={TOKEN}")
    server.RequestHandlerClass = type("Scripted", (Handler,), {"script": script})
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield script
    finally:
        script.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def server() -> Iterator[Script]:
    with serving() as script:
        script.does(answers(200))
        yield script


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def receiver(server: Script, clock: Clock) -> Iterator[Receiver]:
    one = Receiver(server.url, KEY, breaker=Breaker(clock))
    yield one
    one.close()


def verified(got: Got, key: bytes = KEY) -> dict[str, Any]:
    """The event in a request, checked as the specification says: over what came, not over what it means."""
    signed = b".".join([got.headers["webhook-id"].encode(), got.headers["webhook-timestamp"].encode(), got.body])
    expected = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    assert f"v1,{expected}" in got.headers["webhook-signature"].split(" ")
    event: dict[str, Any] = json.loads(got.body)
    return event


# ---- what is delivered


@pytest.mark.promise("brief.told")
def test_what_comes_is_signed_as_the_specification_says(server: Script) -> None:
    with webhook(server.url, SECRET) as deliver:
        deliver("ann:2026-11-21", EVENT)

    (got,) = server.got
    event = verified(got)
    sent = datetime.fromtimestamp(int(got.headers["webhook-timestamp"]), UTC)
    assert (event["type"], event["data"]) == ("brief.ready", EVENT)
    assert datetime.fromisoformat(event["timestamp"]) == sent
    assert abs((datetime.now(UTC) - sent).total_seconds()) < 300  # as receivers demand it
    assert got.headers["webhook-id"] == "ann:2026-11-21"
    assert got.headers["content-type"] == "application/json"
    assert got.path == f"/hook?token={TOKEN}"


@pytest.mark.promise("brief.told")
def test_a_signature_holds_for_nothing_else(server: Script, receiver: Receiver) -> None:
    receiver.deliver("ann:2026-11-21", EVENT)

    (got,) = server.got
    for other in (
        replace(got, body=got.body.replace(b"ann", b"ben")),
        replace(got, headers=got.headers | {"webhook-id": "ben:2026-11-21"}),
        replace(got, headers=got.headers | {"webhook-timestamp": "1"}),
    ):
        with pytest.raises(AssertionError):
            verified(other)
    with pytest.raises(AssertionError):
        verified(got, KEY[1:])


@pytest.mark.promise("brief.told")
@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_any_success_is_one_and_the_connection_is_used_again(
    server: Script, receiver: Receiver, status: int
) -> None:
    server.does(answers(status, b"" if status == 204 else b"thanks"))

    for name in ("one", "two", "three"):
        receiver.deliver(name, EVENT)

    assert [got.headers["webhook-id"] for got in server.got] == ["one", "two", "three"]
    assert len({got.connection for got in server.got}) == 1


# ---- what receivers do


@pytest.mark.promise("brief.told")
@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 404, 410, 413, 429, 500, 503])
def test_any_other_answer_is_a_refusal_and_no_redirect_is_followed(
    server: Script, receiver: Receiver, status: int
) -> None:
    elsewhere = server.url.replace("hook", "elsewhere")
    server.does(answers(status, location=elsewhere))

    with pytest.raises(Refused, match=f"the receiver answered {status}$"):
        receiver.deliver("one", EVENT)

    assert [got.path for got in server.got] == [f"/hook?token={TOKEN}"]


@pytest.mark.promise("brief.told")
@pytest.mark.parametrize(
    "behaviour",
    [
        stalls,
        trickles(b"", b"H"),
        trickles(b"HTTP/1.1 200 OK\r\n", b"x-more: x\r\n"),
        trickles(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"),
        hangs_up,
        trickles(b"SSH-2.0-OpenSSH\r\n", b"\r\n"),
    ],
    ids=["stall", "trickle", "headers", "continue", "hang up", "ssh"],
)
def test_without_an_answer_in_time_it_is_a_refusal(server: Script, receiver: Receiver, behaviour: Any) -> None:
    server.does(behaviour)
    receiver.seconds = SOON

    with pytest.raises(Refused, match=r"the receiver did not answer: [A-Z]\w+$"):
        receiver.deliver("one", EVENT)


@pytest.mark.promise("brief.told")
def test_after_an_answer_that_never_came_the_next_one_does(server: Script, receiver: Receiver) -> None:
    server.does(answers(200), stalls, answers(200))
    receiver.deliver("none", EVENT)  # so that there is a connection, on which the next goes out at once
    receiver.seconds = 1.0  # enough to be asked
    with pytest.raises(Refused):
        receiver.deliver("one", EVENT)
    assert eventually(lambda: len(server.got) == 2)  # the server, too, may be slow

    receiver.seconds = PATIENCE
    receiver.deliver("one", EVENT)

    _, first, second = server.got
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == "one"
    assert verified(first)["data"] == verified(second)["data"]


@pytest.mark.promise("brief.told")
@pytest.mark.parametrize(
    "behaviour",
    [floods, trickles(b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n", b"x"), answers(200, b"x" * 1_000_000)],
    ids=["flood", "trickle", "large"],
)
def test_what_a_receiver_says_besides_is_not_waited_for(
    server: Script, receiver: Receiver, behaviour: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.webhook.DRAIN_SECONDS", SOON)
    server.does(behaviour)

    receiver.deliver("one", EVENT)

    assert len(server.got) == 1


@pytest.mark.promise("brief.told")
@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", f"http://{'a' * 64}.invalid/", "http://.:80/", "http://[::1"]
)
def test_an_address_where_nobody_is_is_a_refusal(url: str) -> None:
    with webhook(url, SECRET) as deliver, pytest.raises(Refused, match="the receiver did not answer"):
        deliver("one", EVENT)


@pytest.mark.promise("brief.told")
def test_a_receiver_that_is_down_is_left_alone_for_a_minute(
    server: Script, receiver: Receiver, clock: Clock
) -> None:
    server.does(answers(500))
    for _ in range(3):
        with pytest.raises(Refused, match="answered 500"):
            receiver.deliver("one", EVENT)

    with pytest.raises(Refused, match="is left alone for 60 s: it failed 3 times in a row"):
        receiver.deliver("two", EVENT)
    clock.now = 61
    server.does(answers(200))
    receiver.deliver("two", EVENT)

    assert len(server.got) == 4


@pytest.mark.promise("brief.told")
def test_one_that_refuses_an_event_is_not_down(server: Script, receiver: Receiver) -> None:
    server.does(answers(413))
    for name in "abcd":
        with pytest.raises(Refused, match="answered 413"):
            receiver.deliver(name, EVENT)

    assert len(server.got) == 4


# ---- the whole way


@pytest.fixture
def tools(connection: Connection, redis_client: "redis.Redis", receiver: Receiver) -> Tools:
    connection.execute("insert into onto_actors (id, kind, name) values (%s, 'human', 'Ann')", [uid("ann")])
    return Tools(
        connection=connection,
        statements=compile_statements(inspect(connection)),
        store=JobStore(redis_client),
        zone=ZoneInfo("UTC"),
        webhook=receiver.deliver,
    )


@pytest.fixture
def ready(tools: Tools) -> date:
    """Ann's brief, ready and due."""
    own = tools.connection
    own.execute(
        "insert into fw_briefs (user_id, local_date, state, kind, zone, due_at, build_at)"
        " values (%s, (now() at time zone 'Etc/GMT-14')::date, 'pending', 'daily', 'UTC', now(), now())",
        [uid("ann")],
    )
    ((user, day, _),) = brief_queue.claim(own, 8)
    assert make_brief(user, day, tools) == 1
    return day


def pass_time(tools: Tools, clock: Clock, hours: float) -> None:
    moved = "update fw_announcements set not_before = not_before - %s * interval '1 hour'"
    tools.connection.execute(moved, [hours])
    clock.now += hours * 3600


@pytest.mark.promise("brief.told", "brief.dead")
def test_it_is_tried_for_a_day_then_a_dead_letter_and_replayed_it_is_delivered(
    server: Script, tools: Tools, clock: Clock, ready: date
) -> None:
    server.does(answers(500), hangs_up, answers(302, location="/"), answers(503))
    for _ in range(announcements.MOST_ATTEMPTS + 2):
        announce(tools)
        pass_time(tools, clock, 11)
    (letter,) = announcements.dead_letters(tools.connection)
    tried = len(server.got)
    server.does(answers(200))

    replayed = announcements.replay(tools.connection, uid("ann"), ready)
    announced = [announce(tools), announce(tools)]

    assert (letter.channel, letter.attempts, tried) == ("webhook", 10, 10)
    assert letter.error == "the receiver answered 503"
    assert (replayed.announcements, announced) == (1, [1, 0])
    assert announcements.dead_letters(tools.connection) == []
    assert {got.headers["webhook-id"] for got in server.got} == {f"{uid('ann')}:{ready}"}
    events = [verified(got)["data"] for got in server.got]
    assert all(event == events[0] for event in events)
    assert (events[0]["date"], events[0]["revision"]) == (ready.isoformat(), 1)
    assert events[0]["html"]


# ---- secrets


@pytest.mark.promise("cli.settings")
def test_no_secret_is_logged_quoted_or_shown(
    server: Script, tools: Tools, receiver: Receiver, ready: date, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    settings = from_environment({"FOREWORD_WEBHOOK_URL": server.url, "FOREWORD_WEBHOOK_SECRET": SECRET})
    server.does(answers(200), answers(500), hangs_up, answers(302, location=server.url))
    said: list[str] = [repr(settings), str(settings), repr(receiver), settings.model_dump_json()]

    announce(tools)
    for _ in range(3):
        with pytest.raises(Refused) as refused:
            receiver.deliver("one", EVENT)
        said.append(str(refused.value))
    with webhook_of(settings) as deliver:
        assert deliver is not None
        said.append(repr(deliver))

    errors = str(tools.connection.execute("select error from fw_announcements").fetchall())
    for text in (*said, caplog.text, errors):
        for secret in (SECRET, SECRET[6:], repr(KEY)[2:-1], TOKEN):
            assert secret not in text


@pytest.mark.promise("cli.settings")
@pytest.mark.parametrize(
    "secret", ["", "whsec_", "s3cret", "whsec_s3cret", "whsec_" + base64.b64encode(KEY[:23]).decode(), "whsec_ü"]
)
def test_a_secret_that_is_none_is_refused_and_not_quoted(secret: str) -> None:
    with pytest.raises(BadSettings, match="whsec_ and the base64 of 24 bytes or more") as refused:
        key_of(secret)

    assert secret[6:] == "" or secret[6:] not in str(refused.value)
    assert key_of(SECRET) == key_of(SECRET.removeprefix("whsec_")) == KEY


@pytest.mark.promise("cli.settings")
def test_without_an_address_nothing_is_told_outside() -> None:
    with webhook_of(from_environment({})) as deliver:
        assert deliver is None

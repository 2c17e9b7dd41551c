"""An OpenAI-compatible endpoint that does as it is told: a real HTTP server, each answer of which is scripted.

It keeps every request that it was sent. A behaviour is a function of the handler and the request; the last one of
the script answers all further requests.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"prompt_tokens": 1200, "completion_tokens": 80, "total_tokens": 1280}

Behaviour = Callable[["Handler", Mapping[str, Any]], None]


@dataclass(slots=True)
class Asked:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass(slots=True)
class Script:
    """What the server does, in order, and what it was asked."""

    url: str
    behaviours: list[Behaviour] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def does(self, *behaviours: Behaviour) -> None:
        self.behaviours[:] = behaviours

    def next(self) -> Behaviour:
        return self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]


class Handler(BaseHTTPRequestHandler):
    """Speaks POST /v1/chat/completions."""

    protocol_version = "HTTP/1.1"
    script: Script

    def handle(self) -> None:
        with suppress(ConnectionError):  # whoever asked has gone
            super().handle()

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.script.asked.append(Asked(self.path, headers, body))
        with suppress(ConnectionError):
            self.script.next()(self, body)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002  # the library's name
        """Say nothing."""

    def answer(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def begin_stream(self, kind: str = "text/event-stream") -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, data: Any) -> None:
        written = data if isinstance(data, str) else json.dumps(data)
        self.wfile.write(f"data: {written}\n\n".encode())
        self.wfile.flush()


def chunk(text: str, finish: str | None = None) -> dict[str, Any]:
    return {
        "id": "1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": finish}],
    }


def streams(text: str, usage: Mapping[str, Any] | None = USAGE, finish: str = "stop") -> Behaviour:
    """A whole answer, a few characters at a time."""

    def behave(handler: Handler, _body: Mapping[str, Any]) -> None:
        handler.begin_stream()
        for at in range(0, len(text), 7):
            handler.event(chunk(text[at : at + 7]))
        handler.event(chunk("", finish))
        if usage is not None:
            handler.event({**chunk(""), "choices": [], "usage": usage})
        handler.event("[DONE]")

    return behave


def answers(text: str, usage: Mapping[str, Any] | None = USAGE) -> Behaviour:
    """A whole answer at once, as servers give it that do not stream."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return says(200, {**body, "usage": usage} if usage is not None else body)


def says(status: int, body: Any, **headers: str) -> Behaviour:
    """Any status and body; bytes as they are, all else as JSON."""
    written = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = headers.pop("kind", "application/json")
    return lambda handler, _body: handler.answer(status, written, kind, **headers)


def fails(status: int, message: str = "no", **headers: str) -> Behaviour:
    """An error as OpenAI words it."""
    return says(status, {"error": {"message": message, "type": "t", "code": None}}, **headers)


def events(*data: Any) -> Behaviour:
    """A stream of these events, and its end."""

    def behave(handler: Handler, _body: Mapping[str, Any]) -> None:
        handler.begin_stream()
        for each in data:
            handler.event(each)

    return behave


def stalls(*first: Any) -> Behaviour:
    """Nothing more after ``first``, with the connection open, until the test ends."""

    def behave(handler: Handler, _body: Mapping[str, Any]) -> None:
        if first:
            handler.begin_stream()
            for each in first:
                handler.event(each)
        handler.script.ended.wait()
        handler.close_connection = True

    return behave


def trickles(handler: Handler, _body: Mapping[str, Any]) -> None:
    """A word now and then, for ever."""
    handler.begin_stream()
    while not handler.script.ended.wait(0.02):
        handler.event(chunk("a "))


def drops(*first: Any) -> Behaviour:
    """Hangs up in the middle of a chunk of the transfer."""

    def behave(handler: Handler, _body: Mapping[str, Any]) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        for each in first:
            written = f"data: {json.dumps(each)}\n\n".encode()
            handler.wfile.write(f"{len(written):x}\r\n".encode() + written + b"\r\n")
        handler.wfile.write(b"ff\r\nda")
        handler.wfile.flush()
        handler.close_connection = True

    return behave


def hangs_up(handler: Handler, _body: Mapping[str, Any]) -> None:
    """Not a byte of an answer."""
    handler.close_connection = True


def floods(kind: str = "text/event-stream", status: int = 200) -> Behaviour:
    """One line without an end, until the other side has enough."""

    def behave(handler: Handler, _body: Mapping[str, Any]) -> None:
        handler.send_response(status)
        handler.send_header("content-type", kind)
        handler.end_headers()
        handler.close_connection = True
        while not handler.script.ended.is_set():
            handler.wfile.write(b"x" * 65_536)

    return behave


@contextmanager
def model_server() -> Iterator[Script]:
    """A server on a free port of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    script = Script(f"http://127.0.0.1:{server.server_port}/v1")
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

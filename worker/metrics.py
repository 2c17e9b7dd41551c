"""Metrics: a table of what is counted, one registry per main process, and how its children's counts get there.

A child sends what it counts up a pipe, and its main process adds it up. So children that are forked, replaced or
killed are one series; nothing is kept on disk; and what a child counted before it died is not lost.
"""

import fcntl
import json
import math
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from socketserver import TCPServer
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from loaders.claims import EDITS, SWEEP
from tasks.reports import BURIED, FAILED, PUBLISHED, PUT_OFF, REFUSED
from worker.events import emit
from worker.settings import Settings

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
EVERYBODY, THE_RELAY = "relay and workers", "relay"

SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
TOKENS = (250.0, 500.0, 1000.0, 1500.0, 2000.0, 3000.0, 4000.0, 6000.0, 8000.0, 16_000.0)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)

_STAGES = ("load", "select", "handles", "render", "publish", "total")
_STATES = ("pending", "generating", "ready", "skipped", "missed", "failed")
_QUEUES = (EDITS, "briefs", SWEEP)
_OUTCOMES = (
    *("ok", "cut", "late", "busy", "failing", "unreachable", "dropped", "garbled", "refused", "denied"),
    "other",
)


@dataclass(frozen=True, slots=True)
class Row:
    """A metric: what kind, who has it, what it means, and every value that each of its labels may have."""

    kind: str
    who: str
    meaning: str
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    buckets: tuple[float, ...] = ()


METRICS: Mapping[str, Row] = {
    # ---- counted where it happens
    "foreword_builds_total": Row(
        COUNTER,
        EVERYBODY,
        "Builds that ended, by what became of them.",
        {"result": (PUBLISHED, REFUSED, BURIED, FAILED, PUT_OFF)},
    ),
    "foreword_build_seconds": Row(
        HISTOGRAM, EVERYBODY, "Duration of published builds, by stage.", {"stage": _STAGES}, SECONDS
    ),
    "foreword_publish_refused_total": Row(
        COUNTER, EVERYBODY, "Publications that the fence refused: a newer bundle was there."
    ),
    "foreword_bundle_tokens": Row(HISTOGRAM, EVERYBODY, "Tokens of published texts.", buckets=TOKENS),
    "foreword_bundle_utilisation_ratio": Row(
        HISTOGRAM, EVERYBODY, "Tokens of published texts, as a share of their budget.", buckets=SHARES
    ),
    "foreword_model_calls_total": Row(
        COUNTER, EVERYBODY, "Calls of the model, by outcome.", {"outcome": _OUTCOMES}
    ),
    "foreword_model_tokens_total": Row(
        COUNTER, EVERYBODY, "Tokens that the model's endpoint counted.", {"direction": ("prompt", "completion")}
    ),
    "foreword_model_cost_total": Row(
        COUNTER, EVERYBODY, "What the model's calls cost, in the currency of the prices that were set."
    ),
    "foreword_process_start_time_seconds": Row(
        GAUGE, EVERYBODY, "When the main process started, seconds since 1970."
    ),
    # ---- looked up by the relay, every few seconds
    "foreword_freshness_lag_seconds": Row(
        GAUGE, THE_RELAY, "Age of the oldest edit that no bundle holds; 0 where all do. Parked projects apart."
    ),
    "foreword_dirty_projects": Row(GAUGE, THE_RELAY, "Projects with such an edit."),
    "foreword_parked_projects": Row(GAUGE, THE_RELAY, "Projects that are left alone after too many failures."),
    "foreword_queue_depth": Row(GAUGE, THE_RELAY, "Messages that no worker took yet.", {"queue": _QUEUES}),
    "foreword_queue_oldest_seconds": Row(
        GAUGE, THE_RELAY, "Age of the oldest of them; 0 where there is none.", {"queue": _QUEUES}
    ),
    "foreword_audit_mismatches": Row(
        GAUGE, THE_RELAY, "Bundles that differed from a fresh build of the same edits, over all audits."
    ),
    "foreword_audited_total": Row(COUNTER, THE_RELAY, "Bundles that were compared with a fresh build."),
    "foreword_briefs": Row(GAUGE, THE_RELAY, "Briefs of the last 24 hours, by state.", {"state": _STATES}),
    "foreword_brief_lateness_seconds": Row(
        GAUGE,
        THE_RELAY,
        "From when a brief was due until it could be told, by quantile over 24 hours; NaN where none was.",
        {"quantile": ("0.5", "0.95", "0.99", "1")},
    ),
    "foreword_brief_overdue": Row(GAUGE, THE_RELAY, "Briefs that are due and not made."),
    "foreword_brief_overdue_seconds": Row(
        GAUGE, THE_RELAY, "For how long the longest of them has been due; 0 where there is none."
    ),
    "foreword_announcements": Row(
        GAUGE, THE_RELAY, "Announcements that wait, and dead letters.", {"state": ("waiting", "dead")}
    ),
    "foreword_relay_leads": Row(GAUGE, THE_RELAY, "1 where this relay leads. One does."),
    "foreword_tick_age_seconds": Row(
        GAUGE, THE_RELAY, "Since it was last looked who is due for a brief; +Inf where it never was."
    ),
    "foreword_redis_up": Row(
        GAUGE, THE_RELAY, "1 where Redis answers within a second.", {"server": ("cache", "broker")}
    ),
    "foreword_postgres_up": Row(GAUGE, THE_RELAY, "1 where PostgreSQL answered when it was last looked."),
}
"""Every metric there is; docs/telemetry.md shows this table, and a test compares it with what is served. No label
holds what grows: no project, no person."""

COUNTED = {name: row for name, row in METRICS.items() if row.who == EVERYBODY}

Change = tuple[str, Sequence[str], float]
"""(metric, values of its labels, by how much a counter rises, what a histogram observes, what a gauge is)."""

_MADE: dict[str, Any] = {COUNTER: Counter, GAUGE: Gauge, HISTOGRAM: Histogram}
_DO = {COUNTER: "inc", GAUGE: "set", HISTOGRAM: "observe"}


class Metrics:
    """The registry of a main process, and of what its children tell."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, of when it began: the process's start tells
        self.registry = CollectorRegistry()
        self._made: dict[str, Any] = {}
        for name, row in COUNTED.items():
            more = {"buckets": row.buckets} if row.buckets else {}
            made = _MADE[row.kind](name, row.meaning, list(row.labels), registry=self.registry, **more)
            for values in product(*row.labels.values()) if row.labels else ():
                made.labels(*values)  # there from the start: a series that appears at 1 has no rate
            self._made[name] = made
        self._made["foreword_process_start_time_seconds"].set(time.time())

    def add(self, changes: Iterable[Change]) -> None:
        """Count. What is not on record is left out: a child may be of another version."""
        for name, labels, value in changes:
            row = COUNTED.get(name)
            if row is None or not _is_on_record(row, labels) or not math.isfinite(value):
                continue
            made = self._made[name].labels(*labels) if labels else self._made[name]
            getattr(made, _DO[row.kind])(value)


def _is_on_record(row: Row, labels: Sequence[str]) -> bool:
    """So that no series comes about that nobody thought of."""
    known = row.labels.values()
    return len(labels) == len(known) and all(value in values for value, values in zip(labels, known, strict=True))


def families(found: Mapping[str, float | Mapping[str, float]]) -> Iterable[Metric]:
    """Values of the relay's gauges, by name, or by name and value of the label."""
    for name, value in found.items():
        row = METRICS[name]
        made = (CounterMetricFamily if row.kind == COUNTER else GaugeMetricFamily)(
            name, row.meaning, labels=list(row.labels)
        )
        for label, each in value.items() if isinstance(value, Mapping) else [("", value)]:
            made.add_metric([label] if label else [], each)
        yield made


# ---- the pipe

PIPE_BYTES = 2**20
LINE_BYTES = 4096
"""What the kernel takes from many writers without mixing it (PIPE_BUF)."""

MOST_WAITING = 1000


class Pipe:
    """From children to their main process: a line of JSON for each report."""

    def __init__(self) -> None:
        self._out, self.descriptor = os.pipe()
        os.set_blocking(self.descriptor, False)  # no build waits for its own count
        with suppress(OSError, AttributeError):
            fcntl.fcntl(self.descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def listen(self, metrics: Metrics) -> None:
        """Add up in a thread what comes."""
        threading.Thread(target=self._run, args=[metrics], name="counts", daemon=True).start()

    def _run(self, metrics: Metrics) -> None:
        left = b""
        while heard := os.read(self._out, 65_536):
            *lines, left = (left + heard).split(b"\n")
            for line in lines:
                with suppress(ValueError, TypeError):
                    metrics.add(json.loads(line))


class Sender:
    """A child's end of the pipe. What does not fit waits for the next time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._waiting: deque[bytes] = deque(maxlen=MOST_WAITING)

    def __call__(self, changes: Sequence[Change]) -> None:
        """Have them counted."""
        line = json.dumps(changes, separators=(",", ":")).encode() + b"\n"
        if len(line) <= LINE_BYTES:
            self._waiting.append(line)
        with suppress(OSError):  # full, or nobody is there any more
            while self._waiting:
                os.write(self._descriptor, self._waiting[0])
                self._waiting.popleft()


# ---- serving

REQUEST_SECONDS = 5.0
AT_ONCE = 8
"""Requests at once, each of no more than a line and a few headers: who asks for more is hung up on."""


class _Handler(BaseHTTPRequestHandler):
    """``GET /metrics`` and nothing else, a request a connection."""

    timeout = REQUEST_SECONDS
    server: "_Server"

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404)
            return
        body = generate_latest(self.server.registry)
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Scrapes are not worth a line."""

    def version_string(self) -> str:
        return "foreword"


class _Server(ThreadingHTTPServer):
    """At most AT_ONCE requests at once."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, host: str, port: int, registry: CollectorRegistry) -> None:
        self._free = threading.BoundedSemaphore(AT_ONCE)
        self.registry = registry
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Without asking a name server who we are, as the standard library does."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "foreword", self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who asked has gone."""


def serve(settings: Settings, registry: CollectorRegistry) -> None:
    """Serve a registry in a thread, if the settings say where. Where that cannot be, work goes on without."""
    port, host = settings.metrics_port, settings.metrics_host
    if port is None:
        return
    try:
        server = _Server(host, port, registry)
    except OSError as error:
        emit("metrics_not_served", host=host, port=port, error=str(error))
        return
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    emit("metrics_served", host=host, port=server.server_address[1])

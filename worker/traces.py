"""Spans of builds and briefs for OpenTelemetry: off by default, and then nothing of it is loaded.

Spans are made when their work has ended, from its report: nothing is carried through the jobs. What the
application traces is unknown here, and what joins both is the edit's transaction: every build is linked to the
trace of its oldest edit, whose id follows from the token that ``fw_token()`` gave the application (``trace_of``).
"""

import os
import threading
from collections.abc import Sequence
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import foreword
from foreword.errors import BadSettings
from loaders.shelf import ModelCall
from tasks.reports import BriefReport, BuildReport, Report
from worker.events import OURS
from worker.settings import Settings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import SpanContext

CLOSE_SECONDS = 2.0
"""For the last spans to be sent when a process ends."""

SEND_SECONDS = 5


def trace_of(epoch: int, transaction: int) -> int:
    """The id of an edit's trace: the first 16 bytes of the SHA-256 of ``foreword edit EPOCH:TRANSACTION``, of its
    token, that is. Anybody who has the token can link to it.
    """
    return int.from_bytes(sha256(f"foreword edit {epoch}:{transaction}".encode()).digest()[:16])


class Traces:
    """Makes spans of reports. Opened in each process at its first report: exporters do not survive a fork."""

    def __init__(self, url: str, processor: "SpanProcessor | None" = None) -> None:
        self._url, self._processor = url, processor
        self._opened: tuple[int, Any, Any] | None = None
        self._calls: list[ModelCall] = []

    def note(self, report: Report) -> None:
        """Make the spans of what has ended. A model's calls wait until the brief has that they were for."""
        if isinstance(report, BuildReport):
            self._build(report)
        elif isinstance(report, ModelCall):
            self._calls.append(report)
        else:
            self._brief(report)

    def _build(self, report: BuildReport) -> None:
        """Spans of a build and its stages; and of its way from the oldest edit on, in a trace of that edit."""
        end = report.began + sum(each for _, each in report.steps) / 1000
        named = {
            "foreword.project": report.project,
            "foreword.generation": report.generation,
            "foreword.correlation": f"{report.project}:{report.generation}",
            "foreword.result": report.result,
        }
        links = []
        if report.held is not None:
            held = report.held
            edit = {
                "foreword.edits": held.edits,
                "foreword.first_txid": held.first,
                "foreword.last_txid": held.last,
                "foreword.token": f"{report.epoch}:{held.first}",
                "foreword.waited_seconds": held.waited,
            }
            # By the database's clock, which may differ from ours: the span is as long as the edit waited.
            way = self._span(
                "edit to bundle",
                held.at,
                held.at + held.waited,
                named | edit,
                trace=trace_of(report.epoch, held.first),
            )
            links.append((way, edit))
        top = self._span("build", report.began, end, named, links=links, error=report.error)
        begun = report.began
        for stage, milliseconds in report.steps:
            self._span(stage, begun, begun + milliseconds / 1000, {}, parent=top)
            begun += milliseconds / 1000

    def _brief(self, report: BriefReport) -> None:
        """Spans of a brief and of the model's calls for it."""
        calls, self._calls = self._calls, []
        named = {
            "foreword.user": report.user,
            "foreword.date": report.date.isoformat(),
            "foreword.result": report.result,
        }
        end = report.began + report.milliseconds / 1000
        top = self._span("brief", report.began, end, named, error=report.error)
        for call in calls:
            of = {"foreword.outcome": call.outcome, "foreword.prompt": call.prompt, "foreword.model": call.model}
            self._span("model", call.ended - call.milliseconds / 1000, call.ended, of, parent=top)

    def close(self) -> None:
        """Send what is left, for CLOSE_SECONDS at most."""
        if self._opened is not None and self._opened[0] == os.getpid():
            # In a thread: the library waits for its collector, and we do not.
            last = threading.Thread(target=self._opened[1].shutdown, name="last spans", daemon=True)
            last.start()
            last.join(CLOSE_SECONDS)
            self._opened = None

    def _span(  # noqa: PLR0913 - as many as a span has
        self,
        name: str,
        begun: float,
        ended: float,
        attributes: dict[str, Any],
        *,
        parent: "SpanContext | None" = None,
        links: Sequence[tuple["SpanContext", dict[str, Any]]] = (),
        trace: int | None = None,
        error: Exception | None = None,
    ) -> "SpanContext":
        from opentelemetry import trace as api
        from opentelemetry.context import Context

        tracer, ids = self._tracer()
        ids.next = trace
        around = api.set_span_in_context(api.NonRecordingSpan(parent)) if parent is not None else Context()
        span = tracer.start_span(
            name,
            context=around,
            start_time=_nanoseconds(begun),
            attributes=attributes,
            links=[api.Link(*link) for link in links],
        )
        if error is not None:
            span.set_status(api.StatusCode.ERROR, str(error))
        span.end(_nanoseconds(max(ended, begun)))
        context: SpanContext = span.get_span_context()
        return context

    def _tracer(self) -> tuple[Any, Any]:
        if self._opened is None or self._opened[0] != os.getpid():
            provider, ids = _provider(self._url, self._processor)
            self._opened = (os.getpid(), provider, (provider.get_tracer(OURS, foreword.__version__), ids))
        tracer: tuple[Any, Any] = self._opened[2]
        return tracer


def _provider(url: str, processor: "SpanProcessor | None") -> tuple[Any, Any]:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    class Ids(RandomIdGenerator):
        """Random, but for the trace of an edit."""

        next: int | None = None

        def generate_trace_id(self) -> int:
            wanted, self.next = self.next, None
            return wanted or super().generate_trace_id()

    ids = Ids()
    resource = Resource({"service.name": "foreword", "service.version": foreword.__version__})
    provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, id_generator=ids, shutdown_on_exit=False)
    if processor is None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        processor = BatchSpanProcessor(OTLPSpanExporter(endpoint=url, timeout=SEND_SECONDS))
    provider.add_span_processor(processor)
    return provider, ids


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)


def traces_of(settings: Settings) -> Traces | None:
    """The traces of the settings, or None where they are off. Nothing is sent yet.

    Raises:
        BadSettings: the packages that send them are missing.
    """
    if settings.traces_url is None:
        return None
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter") is None:
        raise BadSettings(
            "FOREWORD_TRACES_URL is set, but OpenTelemetry is not installed: install the dependency group"
            ' "traces" of pyproject.toml (uv pip install --group traces), or unset it'
        )
    return Traces(settings.traces_url.get_secret_value())

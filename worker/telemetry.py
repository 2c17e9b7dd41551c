"""What becomes of the reports of jobs: events, counts and spans."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import click
from prometheus_client.core import Metric

from loaders.ledger import MOST_ATTEMPTS
from loaders.shelf import ModelCall
from tasks.reports import (
    BURIED,
    FAILED,
    MADE,
    PUBLISHED,
    PUT_OFF,
    REFUSED,
    SKIPPED,
    BriefReport,
    BuildReport,
    Report,
)
from worker.events import emit
from worker.metrics import METRICS, Change, Metrics, Pipe, Sender, serve
from worker.settings import Settings
from worker.traces import Traces, traces_of

Count = Callable[[Sequence[Change]], None]


class Gauges(Protocol):
    """What is looked up, and not counted (``worker.gauges``)."""

    def start(self) -> None:
        """Begin to look."""

    def collect(self) -> Iterable[Metric]:
        """What was seen."""


def metrics_port(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option of commands that serve metrics."""
    return click.option(
        "--metrics-port",
        type=click.IntRange(0, 65_535),
        help="Instead of FOREWORD_METRICS_PORT, where several processes share that.",
    )(command)


def at_port(settings: Settings, port: int | None) -> Settings:
    """The settings, with another port for metrics where one is given."""
    return settings if port is None else settings.model_copy(update={"metrics_port": port})


class Telemetry:
    """Of one process, and of those forked from it.

    Attributes:
        told: the error that the last report was about: it need not be told again.
    """

    def __init__(self, settings: Settings, count: Count | None = None, traces: Traces | None = None) -> None:
        self._settings = settings
        self._count = count
        self._traces = traces or traces_of(settings)
        self._pipe: Pipe | None = None
        self.told: BaseException | None = None

    def before_fork(self) -> None:
        """A main process is about to have children, which count into its pipe. Without a place to serve metrics,
        nobody counts.
        """
        if self._settings.metrics_port is not None:
            self._pipe = Pipe()
            self._count = Sender(self._pipe.descriptor)

    @property
    def counts(self) -> int | None:
        """The descriptor into which children count, if anybody does."""
        return self._pipe.descriptor if self._pipe is not None else None

    def serve(self, gauges: Callable[[], Gauges] | None = None) -> None:
        """Add up and serve, in threads of a main process whose first children are forked; with what ``gauges``
        looks up, where it is a relay.
        """
        if self._pipe is None:
            return
        metrics = Metrics()
        self._pipe.listen(metrics)
        if gauges is not None:
            looking = gauges()
            looking.start()
            metrics.registry.register(looking)
        serve(self._settings, metrics.registry)

    def close(self) -> None:
        """Send what is left to be sent."""
        if self._traces is not None:
            self._traces.close()

    def note(self, report: Report) -> None:
        """Hear of what a job did."""
        if isinstance(report, BuildReport):
            self.told = report.error
            _TOLD[report.result](report)
        elif isinstance(report, ModelCall):
            _tell_call(report)
        else:
            self.told = report.error
            _BRIEF_TOLD[report.result](report)
        if self._count is not None:
            self._count(list(changes(report)))
        if self._traces is not None:
            self._traces.note(report)


# ---- counts


def changes(report: Report) -> Iterator[Change]:
    """What a report adds to the counts."""
    if isinstance(report, BuildReport):
        yield "foreword_builds_total", [report.result], 1
        if report.result == REFUSED:
            yield "foreword_publish_refused_total", [], 1
        if report.result == PUBLISHED:
            stages = _stages(report)
            for stage, milliseconds in (*stages.items(), ("total", sum(stages.values()))):
                yield "foreword_build_seconds", [stage], round(milliseconds / 1000, 6)
            yield "foreword_bundle_tokens", [], report.tokens
            yield "foreword_bundle_utilisation_ratio", [], round(report.tokens / max(report.budget, 1), 4)
    elif isinstance(report, ModelCall):
        known = METRICS["foreword_model_calls_total"].labels["outcome"]
        yield "foreword_model_calls_total", [report.outcome if report.outcome in known else "other"], 1
        yield "foreword_model_tokens_total", ["prompt"], report.prompt_tokens or 0
        yield "foreword_model_tokens_total", ["completion"], report.completion_tokens or 0
        yield "foreword_model_cost_total", [], float(report.cost or 0)


def _stages(report: BuildReport) -> dict[str, float]:
    found: dict[str, float] = {}
    for stage, milliseconds in report.steps:
        found[stage] = found.get(stage, 0.0) + milliseconds
    return found


# ---- events


def _tell_published(report: BuildReport) -> None:
    stages, held = _stages(report), report.held
    emit(
        "build_published",
        project=report.project,
        epoch=report.epoch,
        generation=report.generation,
        milliseconds=round(sum(stages.values()), 1),
        stages={stage: round(each, 1) for stage, each in stages.items()},
        tokens=report.tokens,
        budget=report.budget,
        edits=held.edits if held else 0,
        first_txid=held.first if held else None,
        last_txid=held.last if held else None,
        waited=round(held.waited, 3) if held else None,
    )


def _tell_refused(report: BuildReport) -> None:
    emit(
        "build_refused",
        project=report.project,
        epoch=report.epoch,
        generation=report.generation,
        milliseconds=round(sum(_stages(report).values()), 1),
    )


def _tell_buried(report: BuildReport) -> None:
    held = report.held
    emit(
        "project_buried",
        project=report.project,
        epoch=report.epoch,
        generation=report.generation,
        edits=held.edits if held else 0,
        first_txid=held.first if held else None,
        last_txid=held.last if held else None,
        waited=round(held.waited, 3) if held else None,
    )


def _tell_failed(report: BuildReport) -> None:
    error = _said(report.error)
    emit(
        "build_failed",
        project=report.project,
        epoch=report.epoch,
        generation=report.generation,
        error=error,
        attempts=report.attempts,
    )
    if report.attempts >= MOST_ATTEMPTS:
        emit("project_parked", project=report.project)


def _tell_put_off(report: BuildReport) -> None:
    error = _said(report.error)
    emit("build_put_off", project=report.project, epoch=report.epoch, generation=report.generation, error=error)


def _tell_made(report: BriefReport) -> None:
    emit(
        "brief_made",
        user=report.user,
        date=report.date,
        revision=report.revision,
        words=report.words,
        tokens=report.tokens,
        milliseconds=round(report.milliseconds, 1),
    )


def _tell_skipped(report: BriefReport) -> None:
    emit("brief_skipped", user=report.user, date=report.date)


def _tell_not_made(report: BriefReport) -> None:
    emit("brief_not_made", user=report.user, date=report.date, error=_said(report.error))


def _tell_call(report: ModelCall) -> None:
    emit(
        "model_called",
        outcome=report.outcome,
        prompt=report.prompt,
        model=report.model,
        prompt_tokens=report.prompt_tokens,
        completion_tokens=report.completion_tokens,
        milliseconds=report.milliseconds,
    )


def _said(error: BaseException | None) -> str:
    return (str(error) or type(error).__name__) if error is not None else ""


_TOLD: Mapping[str, Callable[[BuildReport], None]] = {
    PUBLISHED: _tell_published,
    REFUSED: _tell_refused,
    BURIED: _tell_buried,
    FAILED: _tell_failed,
    PUT_OFF: _tell_put_off,
}
_BRIEF_TOLD: Mapping[str, Callable[[BriefReport], None]] = {
    MADE: _tell_made,
    SKIPPED: _tell_skipped,
    FAILED: _tell_not_made,
    PUT_OFF: _tell_not_made,
}

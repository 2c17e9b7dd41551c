"""What builds and briefs report of themselves, and the spans that are made of it, over real servers."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Any

import psycopg
import pytest
import redis
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from strategies import uid

import foreword
from foreword.errors import BuildError, Unavailable
from foreword.reader import TRUSTED, Reader
from foreword.store import RedisStore
from loaders import briefs
from loaders.connection import Connection
from loaders.ledger import MOST_ATTEMPTS
from loaders.shelf import ModelCall
from tasks.brief import finish_brief
from tasks.project import rebuild_project
from tasks.reports import BriefReport, BuildReport, Report
from tasks.tools import Tools
from worker import telemetry
from worker.settings import Settings
from worker.telemetry import Telemetry
from worker.traces import Traces, trace_of
from worker.wiring import tools_over

PROJECT, USER = uid("project"), uid("user")
DAY = date(2026, 11, 21)
STAGES = ["load", "select", "load", "handles", "render", "publish"]


@pytest.fixture
def reports() -> list[Report]:
    return []


@pytest.fixture
def tools(connection: Connection, redis_client: "redis.Redis", reports: list[Report]) -> Tools:
    """A worker's tools, and a project with a task."""
    connection.execute("insert into onto_projects (id, name, state_key) values (%s, 'Pier', 'active')", [PROJECT])
    add_task(connection, "first")
    return replace(tools_over(Settings(as_of=DAY), connection, redis_client), note=reports.append)


def add_task(connection: Connection, title: str) -> None:
    connection.execute(
        "insert into onto_tasks (id, project_id, title, state_key) values (gen_random_uuid(), %s, %s, 'todo')",
        [PROJECT, title],
    )


def only(reports: list[Report]) -> BuildReport:
    (report,) = reports
    assert isinstance(report, BuildReport)
    return report


# ---- builds


@pytest.mark.promise("events.correlated")
def test_an_edit_is_followed_from_its_token_to_what_the_reader_has(
    tools: Tools, reports: list[Report], database_url: str, redis_client: "redis.Redis"
) -> None:
    rebuild_project(PROJECT, tools)
    reports.clear()
    with psycopg.connect(database_url) as application:
        application.execute("update onto_tasks set title = 'renamed'")
        token = foreword.token(application)
    time.sleep(0.05)

    rebuild_project(PROJECT, tools, if_due=True)

    report = only(reports)
    assert report.held is not None
    assert f"{report.epoch}:{report.held.first}" == token
    assert (report.held.edits, report.held.last) == (1, report.held.first)
    assert 0.05 <= report.held.waited < 60
    assert abs(report.held.at - time.time()) < 60
    context = Reader(redis_client).project(PROJECT, actor=TRUSTED)
    assert context.stamp is not None
    assert context.stamp.version == f"{report.epoch}:{report.generation}"
    assert report.tokens == context.stamp.tokens


def test_a_build_of_many_edits_names_the_first_and_the_last_of_them(tools: Tools, reports: list[Report]) -> None:
    rebuild_project(PROJECT, tools)
    reports.clear()
    edits = []
    for number in range(5):
        with tools.connection.transaction():
            add_task(tools.connection, f"task {number}")
            edits.append(int(foreword.token(tools.connection).partition(":")[2]))

    rebuild_project(PROJECT, tools, if_due=True)

    held = only(reports).held
    assert held is not None
    assert (held.edits, held.first, held.last) == (5, edits[0], edits[-1])


def test_a_build_that_was_asked_for_answers_no_edit(tools: Tools, reports: list[Report]) -> None:
    rebuild_project(PROJECT, tools)
    reports.clear()

    rebuild_project(PROJECT, tools)

    assert only(reports).held is None
    assert [stage for stage, _ in only(reports).steps] == STAGES


def test_what_a_build_comes_to_is_reported_whatever_it_is(
    tools: Tools, reports: list[Report], redis_client: "redis.Redis"
) -> None:
    class Refusing(RedisStore):
        def publish(self, *_: Any, **__: Any) -> bool:
            return False

    class Gone(RedisStore):
        def publish(self, *_: Any, **__: Any) -> bool:
            raise Unavailable("Redis is away")

    rebuild_project(PROJECT, tools)
    rebuild_project(PROJECT, replace(tools, store=Refusing(redis_client)))
    with pytest.raises(Unavailable):
        rebuild_project(PROJECT, replace(tools, store=Gone(redis_client)))
    with pytest.raises(BuildError):
        rebuild_project(PROJECT, replace(tools, count=lambda _: 1 // 0))
    tools.connection.execute("delete from onto_tasks; delete from onto_projects")
    rebuild_project(PROJECT, tools)

    assert [report.result for report in reports if isinstance(report, BuildReport)] == [
        "published",
        "refused",
        "put_off",
        "failed",
        "buried",
    ]
    assert [str(report.error) for report in reports if isinstance(report, BuildReport)][2] == "Redis is away"


# ---- briefs


def made_brief(tools: Tools) -> None:
    begun = briefs.begin_now(tools.connection, USER, DAY, force=True, zone="UTC")
    assert isinstance(begun, briefs.Begun)
    finish_brief(begun, tools)


@pytest.fixture
def member(tools: Tools) -> None:
    tools.connection.execute("insert into onto_actors (id, name, kind) values (%s, 'Asta', 'human')", [USER])
    tools.connection.execute(
        "insert into onto_project_members (id, project_id, actor_id, role_key) values (%s, %s, %s, 'owner')",
        [uid("membership"), PROJECT, USER],
    )


CALLED = ModelCall(
    prompt="",
    model="m",
    prompt_tokens=10,
    completion_tokens=3,
    cost=None,
    milliseconds=7,
    outcome="ok",
    ended=0.0,
)


class Writer:
    """A model that answers, and says so."""

    def asker(self, prompt: str, record: Callable[[ModelCall], None], **_: object) -> Callable[..., str]:
        def ask(_: object) -> str:
            record(replace(CALLED, prompt=prompt))
            return "All is well."

        return ask


def test_a_brief_reports_itself_and_each_call_of_the_model(
    tools: Tools, reports: list[Report], member: None
) -> None:
    made_brief(replace(tools, model=Writer()))

    *calls, brief = reports
    assert isinstance(brief, BriefReport)
    assert (brief.user, brief.date, brief.result, brief.revision) == (USER, DAY, "made", 1)
    assert calls
    assert all(isinstance(call, ModelCall) and call.prompt_tokens == 10 for call in calls)


def test_a_brief_that_fails_says_why(tools: Tools, reports: list[Report], member: None) -> None:
    with pytest.raises(ZeroDivisionError):
        made_brief(replace(tools, count=lambda _: 1 // 0))

    (report,) = reports
    assert isinstance(report, BriefReport)
    assert report.result == "failed"
    assert isinstance(report.error, ZeroDivisionError)


@pytest.mark.promise("events.known")
def test_the_log_says_how_often_a_build_failed_and_when_its_project_is_parked(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[tuple[str, Any]] = []
    monkeypatch.setattr(telemetry, "emit", lambda name, **fields: said.append((name, fields.get("attempts"))))
    failing = replace(tools, count=lambda _: 1 // 0, note=Telemetry(Settings()).note)

    for _ in range(MOST_ATTEMPTS):
        with pytest.raises(BuildError):
            rebuild_project(PROJECT, failing)

    failed = [("build_failed", number) for number in range(1, MOST_ATTEMPTS + 1)]
    assert said == [*failed, ("project_parked", None)]


# ---- spans


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def traced(tools: Tools, spans: InMemorySpanExporter) -> Iterator[Tools]:
    """Tools of a worker that is traced."""
    telemetry = Telemetry(Settings(), traces=Traces("", SimpleSpanProcessor(spans)))
    yield replace(tools, note=telemetry.note)
    telemetry.close()


def named(spans: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans.get_finished_spans()}


@pytest.mark.promise("traces.linked")
def test_the_trace_of_an_edit_is_found_by_its_token_and_linked_to_its_build(
    traced: Tools, spans: InMemorySpanExporter, database_url: str
) -> None:
    rebuild_project(PROJECT, traced)
    spans.clear()
    with psycopg.connect(database_url) as application:
        application.execute("update onto_tasks set title = 'renamed'")
        token = foreword.token(application)

    rebuild_project(PROJECT, traced, if_due=True)

    found = named(spans)
    way, build = found["edit to bundle"], found["build"]
    wanted = sha256(f"foreword edit {token}".encode()).hexdigest()[:32]
    assert way.context is not None
    assert f"{way.context.trace_id:032x}" == wanted
    (link,) = build.links
    assert link.context.trace_id == way.context.trace_id
    assert link.attributes is not None
    assert link.attributes["foreword.token"] == token
    assert build.attributes is not None
    assert str(build.attributes["foreword.correlation"]).startswith(f"{PROJECT}:")


@pytest.mark.promise("traces.linked")
def test_the_stages_of_a_build_are_spans_within_it(traced: Tools, spans: InMemorySpanExporter) -> None:
    rebuild_project(PROJECT, traced)

    build = named(spans)["build"]
    stages = [s for s in spans.get_finished_spans() if s.parent is not None and s.parent == build.context]
    assert [stage.name for stage in stages] == STAGES
    assert stages[0].start_time == build.start_time
    assert all(s.end_time <= build.end_time + 1000 for s in stages)  # type: ignore[operator]
    edge = datetime.fromtimestamp((build.start_time or 0) / 1e9, UTC)
    assert abs((datetime.now(UTC) - edge).total_seconds()) < 60


def test_calls_of_a_model_are_spans_within_their_brief(
    traced: Tools, spans: InMemorySpanExporter, member: None
) -> None:
    made_brief(replace(traced, model=Writer()))

    brief = named(spans)["brief"]
    calls = [span for span in spans.get_finished_spans() if span.name == "model"]
    assert calls
    assert all(call.parent == brief.context for call in calls)


def test_a_failed_build_is_an_error_in_its_trace(traced: Tools, spans: InMemorySpanExporter) -> None:
    with pytest.raises(BuildError):
        rebuild_project(PROJECT, replace(traced, count=lambda _: 1 // 0))

    assert not named(spans)["build"].status.is_ok
    assert "edit to bundle" not in named(spans)


def test_builds_of_one_edit_of_two_projects_are_in_one_trace() -> None:
    assert trace_of(1, 774) == trace_of(1, 774) != trace_of(2, 774)

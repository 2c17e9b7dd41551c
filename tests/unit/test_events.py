"""Events: how they read, that only those on record can be said, and that no secret is."""

import json
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from worker import events
from worker.events import Redaction, emit, secrets_of
from worker.settings import Settings

PASSWORD = "p%40ss-w0rd"
SETTINGS = Settings(
    log_format="json",
    database_url=SecretStr(f"postgresql://keeper:{PASSWORD}@db/foreword"),
    redis_url=SecretStr("redis://cache:6379/0?password=in-the-query"),
    model_key=SecretStr("sk-model-key"),
    webhook_url=SecretStr("https://hooks.example/in/T0KEN-of-a-path"),
    webhook_secret=SecretStr("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
)


Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines(capfd: pytest.CaptureFixture[str]) -> Iterator[Lines]:
    """What a worker with secrets has said."""
    root, state = logging.getLogger(), {name: getattr(events._now, name) for name in events._State.__slots__}
    handlers, level = root.handlers, root.level
    events.begin("worker", SETTINGS, None)
    yield lambda: [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    logging.captureWarnings(capture=False)
    root.handlers = handlers
    root.setLevel(level)
    logging.getLogger("foreword").setLevel(logging.NOTSET)
    for name, value in state.items():
        setattr(events._now, name, value)


@pytest.mark.promise("events.known")
def test_an_event_that_is_not_on_record_cannot_be_said(lines: Lines) -> None:
    with pytest.raises(KeyError):
        emit("something_happened")
    with pytest.raises(TypeError, match="project_parked has no field colour"):
        emit("project_parked", project="p", colour="red")

    assert lines() == []


@pytest.mark.promise("events.json")
def test_a_line_is_an_object_with_what_all_events_have(lines: Lines) -> None:
    emit("build_refused", project="p", epoch=1, generation=7, milliseconds=None)

    (said,) = lines()
    assert said.pop("timestamp").endswith("Z")
    assert said.pop("pid") > 0
    assert said.pop("version")
    assert said == {
        "level": "info",
        "event": "build_refused",
        "role": "worker",
        "correlation": "p:7",
        "project": "p",
        "epoch": 1,
        "generation": 7,
    }


@pytest.mark.promise("events.json")
def test_what_a_library_logs_is_a_line_of_the_same_shape(lines: Lines) -> None:
    try:
        int("line one\nline two")
    except ValueError:
        logging.getLogger("kombu.connection").exception("connection to %s lost", "broker")
    logging.getLogger("kombu.connection").info("too quiet by default")

    (said,) = lines()
    assert (said["event"], said["level"], said["logger"]) == ("library_said", "error", "kombu.connection")
    assert said["message"] == "connection to broker lost"
    assert "\nValueError: invalid literal" in said["exception"]


@pytest.mark.promise("events.known")
def test_what_a_room_below_logs_is_an_event_with_its_fields(lines: Lines) -> None:
    logging.getLogger("foreword.announce").error("not_announced user=%s date=%s channel=%s", "u", "d", "webhook")

    (said,) = lines()
    assert (said["event"], said["user"], said["date"], said["channel"]) == ("not_announced", "u", "d", "webhook")


def test_what_json_has_no_word_for_is_said_all_the_same(lines: Lines) -> None:
    emit("relay_interrupted", error="half a character \udce9")
    emit("builder_ended", code=2**70)

    assert [(each["event"], each.get("error"), each.get("code")) for each in lines()] == [
        ("relay_interrupted", "half a character \udce9", None),
        ("builder_ended", None, 2**70),
    ]


def test_a_level_leaves_out_what_is_less_grave(lines: Lines) -> None:
    events.begin("worker", SETTINGS, "ERROR")
    emit("relay_leads")
    emit("redis_does_not_answer", error="refused")
    emit("brief_failed", user="u", date="d")

    assert [each["event"] for each in lines()] == ["brief_failed"]


def test_a_terminal_is_told_in_words(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(events, "_now", events._State())
    events.begin("relay", Settings(log_format="text"), None)
    logging.captureWarnings(capture=False)
    emit("project_parked", project="p")
    logging.getLogger().handlers = []

    said = capfd.readouterr().err
    assert "project_parked" in said
    assert "project=p" in said
    assert not said.startswith("{")


@pytest.mark.promise("events.secrets")
@pytest.mark.parametrize(
    "secret",
    [
        PASSWORD,
        "p@ss-w0rd",
        "in-the-query",
        "sk-model-key",
        "T0KEN-of-a-path",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    ],
)
def test_no_secret_of_the_settings_is_said_by_anybody(lines: Lines, secret: str) -> None:
    emit("relay_interrupted", error=f"no route to keeper:{secret}@db")
    logging.getLogger("kombu").warning("cannot connect to %s", f"https://hooks.example/in/{secret}")
    try:
        {"": ""}[secret]
    except KeyError:
        logging.getLogger("celery").exception("failed")

    said = lines()
    assert len(said) == 3
    assert secret not in json.dumps(said)


@pytest.mark.promise("events.secrets")
def test_the_password_of_any_url_is_hidden() -> None:
    hide = Redaction(secrets_of(SETTINGS))

    assert hide("at redis://other:s3cr3t@cache:6379/0, port 1") == "at redis://other:***@cache:6379/0, port 1"
    assert hide("redis://:s3cr3t@cache") == "redis://:***@cache"
    assert hide("see https://example.org/a:b@c") == "see https://example.org/a:b@c"


def test_a_closed_standard_error_is_no_reason_to_stop(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed:
        def fileno(self) -> int:
            return 99_999

    monkeypatch.setattr(sys, "stderr", Closed())
    emit("relay_leads")

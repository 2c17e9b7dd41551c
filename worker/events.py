"""Events: what a process that runs for long says on standard error, a line each, by names that are on record.

A line is JSON, or words where a terminal reads it. What libraries log goes the same way, as ``library_said``.
Nothing that the settings hold as a secret leaves here, whoever has written it into a message.
"""

import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import click
import orjson
from pydantic import SecretStr

import foreword
from worker.settings import Settings

DEBUG, INFO, WARNING, ERROR = "debug", "info", "warning", "error"


@dataclass(frozen=True, slots=True)
class Event:
    """What an event means, how grave it is, and which fields it has besides COMMON ones. Each may be absent."""

    level: str
    meaning: str
    fields: tuple[str, ...] = ()


COMMON = {
    "timestamp": "when, UTC, to the microsecond",
    "level": "`debug`, `info`, `warning` or `error`",
    "event": "one of the names below",
    "role": "`worker`, `relay`, `builder` (a child of a relay), `beat` or `flower`",
    "pid": "of the process",
    "version": "of Foreword",
    "correlation": "`project:generation`, where the event is about one build",
}

_BUILD = ("project", "epoch", "generation")

EVENTS: Mapping[str, Event] = {
    # ---- processes
    "process_started": Event(INFO, "The process has found its servers and begins.", ("python",)),
    "process_ended": Event(INFO, "It was told to end, and has.", ("reason",)),
    "process_failed": Event(ERROR, "It cannot go on; whoever supervises it starts it again.", ("error",)),
    "process_hung": Event(
        ERROR,
        "It has left no sign of life for `seconds` while all servers answered; `stack` is where its main thread"
        " is. It ends, with exit code 70; whoever supervises it starts it again.",
        ("seconds", "stack"),
    ),
    "metrics_served": Event(INFO, "Metrics are served.", ("host", "port")),
    "metrics_not_served": Event(
        ERROR, "They cannot be; work goes on without. Is the port taken?", ("host", "port", "error")
    ),
    "gauges_unavailable": Event(
        WARNING, "The relay cannot look into the database for its gauges; said once.", ("error",)
    ),
    "library_said": Event(INFO, "What a library logs, at its own level.", ("logger", "message", "exception")),
    # ---- builds
    "build_published": Event(
        INFO,
        "A build was published. It took `milliseconds`, by stage in `stages`; it answers `edits` rows of the"
        " change log, of transactions from `first_txid` to `last_txid`, the oldest `waited` seconds ago.",
        (*_BUILD, "milliseconds", "stages", "tokens", "budget", "edits", "first_txid", "last_txid", "waited"),
    ),
    "build_refused": Event(INFO, "The fence refused a build: a newer one was there.", (*_BUILD, "milliseconds")),
    "project_buried": Event(
        INFO,
        "A project is gone; its bundle was replaced by a tombstone.",
        (*_BUILD, "edits", "first_txid", "last_txid", "waited"),
    ),
    "build_put_off": Event(
        WARNING, "A build was given up for a reason that is not the project's; tried again.", (*_BUILD, "error")
    ),
    "build_failed": Event(
        ERROR,
        "A build failed for a reason of its project, the `attempts`-th in a row; the old bundle stays. Tried"
        " again, later and later, then parked.",
        (*_BUILD, "error", "attempts"),
    ),
    "build_taken_over": Event(
        WARNING, "A builder held a project beyond its lease; its session is ended.", ("project",)
    ),
    "project_parked": Event(
        ERROR, "Builds of a project keep failing or dying; left alone until it is edited or retried.", ("project",)
    ),
    "projects_to_be_built": Event(
        WARNING, "Projects were found that were never built, or in an earlier layout.", ("found",)
    ),
    "tables_not_watched": Event(
        WARNING, "Edits of these tables are not seen: run `python -m worker migrate`.", ("tables",)
    ),
    "bundle_different": Event(
        ERROR,
        "An audit found a bundle that is not what a fresh build gives: a fault of ours.",
        ("project", "error"),
    ),
    # ---- other jobs
    "job_failed": Event(ERROR, "A job failed, and is on record where it has one.", ("job", "about", "error")),
    "job_unavailable": Event(
        ERROR, "A server did not answer a job, twice; the job comes again.", ("job", "about", "error", "times")
    ),
    "brief_made": Event(
        INFO, "A brief is made and kept.", ("user", "date", "revision", "words", "tokens", "milliseconds")
    ),
    "brief_skipped": Event(INFO, "There was nothing that a brief could be about.", ("user", "date")),
    "brief_not_made": Event(WARNING, "A brief could not be made; tried again.", ("user", "date", "error")),
    "brief_failed": Event(ERROR, "A brief is given up: a dead letter.", ("user", "date")),
    "briefs_missed": Event(ERROR, "Briefs could not be made before their date was over.", ("number",)),
    "not_announced": Event(
        ERROR,
        "An announcement stumbled over a fault of ours; tried again.",
        ("user", "date", "channel", "exception"),
    ),
    "model_called": Event(
        DEBUG,
        "A model was asked for words.",
        ("outcome", "prompt", "model", "prompt_tokens", "completion_tokens", "milliseconds"),
    ),
    "command_refused": Event(
        WARNING,
        "Somebody asked a worker over the broker for more than a look; nothing was done. Said once a command.",
        ("command",),
    ),
    "not_a_record": Event(ERROR, "A builder was sent something that names nothing.", ("error",)),
    # ---- the relay
    "relay_leads": Event(INFO, "This relay leads from now on."),
    "relay_follows": Event(INFO, "Another relay leads."),
    "relay_interrupted": Event(WARNING, "PostgreSQL was lost; the relay begins anew.", ("error", "times")),
    "thread_interrupted": Event(
        WARNING, "A server was lost to a thread; it begins anew.", ("thread", "error", "times")
    ),
    "thread_failed": Event(
        ERROR, "A fault of ours ended a round of a thread; it begins anew.", ("thread", "exception")
    ),
    "broker_does_not_answer": Event(
        WARNING, "The broker was down at the start; until it answers, builders build.", ("error",)
    ),
    "builder_ended": Event(WARNING, "A builder of the relay's ended; another is started.", ("code",)),
    "message_not_sent": Event(
        WARNING,
        "The broker took no message. A relay's lease ends, and a builder builds; a beat's tick comes again.",
        ("job", "error", "times"),
    ),
    "redis_does_not_answer": Event(
        WARNING,
        "Redis does not answer, or takes nothing; nothing is claimed until it does.",
        ("error", "times"),
    ),
    "redis_is_new": Event(
        WARNING,
        "Redis, which had bundles of ours, lacks our marker: emptied, or another one. What is missing is built"
        " again.",
        ("marker",),
    ),
    "redis_compared": Event(
        INFO,
        "What was published was compared with what stands in Redis, since that, or PostgreSQL, started or failed"
        " over, or a new epoch began: all is there.",
        ("bundles",),
    ),
    "bundles_missing": Event(
        WARNING,
        "The same, and bundles are missing, or are older ones; they are built again.",
        ("bundles", "missing"),
    ),
    # ---- any of them
    "goes_on": Event(
        INFO,
        "An outage is over: of the `relay`, its `sender`, its `redis` or another thread of it, a `job`, the `beat`"
        " or `flower`. From its first failure to its last were `seconds`; it was met `times`. Said when known.",
        ("what", "seconds", "times"),
    ),
}
"""Every event there is; docs/telemetry.md shows this table, and a test compares them.

`times`, of what is interrupted: how often it was since the line before. An outage is said when it begins, then
less and less often, and when it is over (``worker.outage``).
"""

_PROCESS = ("process", "pid", "restarts")

UP: Mapping[str, Event] = {
    "preparing": Event(INFO, "Servers of ours are started or joined."),
    "starting": Event(INFO, "Processes are started."),
    "up": Event(INFO, "All processes are ready; besides these, a field for each place that is of interest."),
    "started": Event(INFO, "A process was started.", _PROCESS),
    "ready": Event(INFO, "It does its work.", _PROCESS),
    "ended": Event(
        WARNING,
        "It ended by itself, or was ended, with `code`; it is started again, later and later. `said`: the end of"
        " its log, where that may explain it.",
        (*_PROCESS, "code", "lived_seconds", "again_in_seconds", "log", "said"),
    ),
    "silent": Event(WARNING, "It runs, and its main loop has not turned for `seconds`.", (*_PROCESS, "seconds")),
    "heard": Event(INFO, "A silent process is heard again, after `seconds`.", (*_PROCESS, "seconds")),
    "hung": Event(
        ERROR,
        "A process has been silent for `seconds` while all servers answered: it is told to end, and killed if it"
        " does not within its grace; then it is started again.",
        (*_PROCESS, "seconds"),
    ),
    "killed": Event(WARNING, "It did not end within its grace, or is not waited for.", _PROCESS),
    "stopping": Event(INFO, "It is told to end, with everything.", _PROCESS),
    "stopped": Event(INFO, "It has.", (*_PROCESS, "code")),
    "server_silent": Event(WARNING, "A server does not answer; one of ours is started again.", ("server",)),
    "server_answers": Event(INFO, "It answers again.", ("server",)),
    "server_not_started": Event(ERROR, "One of ours cannot be started."),
    "look_failed": Event(ERROR, "A fault of ours: looking at the servers failed. Said once."),
    "projects_fail": Event(
        WARNING, "Builds of projects fail, or were given up; the worst of them.", ("failing", "parked", "worst")
    ),
    "no_project_fails": Event(INFO, "None does any more."),
}
"""What `up --json` says on standard output, each with `at`, `level`, `event` and `text`; without --json only the
text of what is no routine.
"""

_STDLIB = {DEBUG: logging.DEBUG, INFO: logging.INFO, WARNING: logging.WARNING, ERROR: logging.ERROR}

OURS = "foreword"
"""The rooms below log under this name: "event key=value", as stdlib records."""


def emit(event: str, /, **fields: Any) -> None:
    """Say that something happened. Fields that are None are left out.

    Raises:
        KeyError, TypeError: an event, or a field of it, that is not on record.
    """
    row = EVENTS[event]
    if not fields.keys() <= set(row.fields):
        raise TypeError(f"{event} has no field {', '.join(sorted(fields.keys() - set(row.fields)))}")
    _say(event, row.level, fields)


def _say(event: str, level: str, fields: Mapping[str, Any]) -> None:
    if _STDLIB[level] >= _now.least:
        _logger().msg(event, level=level, **{name: value for name, value in fields.items() if value is not None})


# ---- how it is said


@dataclass(slots=True)
class _State:
    """Of this process, and of those forked from it."""

    role: str = "command"
    least: int = logging.WARNING
    as_json: bool = False
    chosen: bool = False  # JSON by a setting
    begun: bool = False
    started: bool = False
    redact: "Redaction | None" = None
    logger: Any = None


_now = _State()


def chosen_format() -> str:
    """How this process logs: json or text."""
    return "json" if _now.as_json else "text"


def begin(role: str, settings: Settings, level: str | None) -> None:
    """Log in this process, as ``role``. ``level`` None: our events from INFO on, of libraries from WARNING on."""
    _now.role = role
    _now.least = logging.getLevelName(level or "INFO")
    _now.chosen = settings.log_format == "json"
    _now.as_json = _now.chosen or (settings.log_format is None and not sys.stderr.isatty())
    _now.redact = Redaction(secrets_of(settings))
    _now.begun, _now.logger = True, None
    root = logging.getLogger()
    root.handlers = [_Handler()]
    root.setLevel(level or "WARNING")
    logging.getLogger(OURS).setLevel(_now.least)
    logging.captureWarnings(capture=True)
    pool = logging.getLogger("multiprocessing")  # of Celery's pool, which keeps it from the root
    pool.handlers, pool.propagate = root.handlers, False


def started() -> None:
    """The process has what it needs."""
    _now.started = True
    emit("process_started", python=sys.version.split()[0])


def last(event: str, message: str) -> None:
    """A process's last word: an event where it logs, a line of plain text where it is a command, or one that did
    not come to begin and was not told to speak JSON.
    """
    if _now.begun and (_now.started or _now.chosen):
        emit(event, **{EVENTS[event].fields[0]: message})
    else:
        click.echo(f"error: {message}" if EVENTS[event].level == ERROR else message, err=True)


def _logger() -> Any:
    """Built once, and by processes that log: loading it takes 40 ms. Its processors look at the state."""
    if _now.logger is None:
        import structlog

        _now.logger = structlog.wrap_logger(
            _Writer(),
            processors=[_with_common, _redacted, _json if _now.as_json else _words()],
            wrapper_class=structlog.BoundLogger,
        )
    return _now.logger


class _Writer:
    """Writes each line at once and whole: processes that share standard error do not mix their lines."""

    def msg(self, line: bytes) -> None:
        try:
            descriptor = sys.stderr.fileno()
        except (OSError, ValueError, AttributeError):  # captured, or closed
            print(line.decode("utf-8", "replace"), end="", file=sys.stderr)
            return
        try:
            os.write(descriptor, line)
        except OSError:  # nobody reads, or the disk is full: no reason to stop working
            return


Fields = MutableMapping[str, Any]


def _with_common(_: Any, __: str, said: Fields) -> Fields:
    common: Fields = {
        "timestamp": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "level": said.pop("level"),
        "event": said.pop("event"),
        "role": _now.role,
        "pid": os.getpid(),
        "version": foreword.__version__,
    }
    if "project" in said and "generation" in said:
        common["correlation"] = f"{said['project']}:{said['generation']}"
    common.update(said)
    return common


def _redacted(_: Any, __: str, said: Fields) -> Fields:
    redact = _now.redact
    if redact is not None:
        for name in said.keys() - COMMON.keys():
            if isinstance(said[name], str):
                said[name] = redact(said[name])
    return said


def _json(_: Any, __: str, said: Fields) -> bytes:
    try:
        return orjson.dumps(said, default=str, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # half a character, a number of a hundred digits: to say it is no reason to stop working
        return json.dumps(said, default=str, skipkeys=True).encode() + b"\n"


def _words() -> Callable[[Any, str, Fields], bytes]:
    from structlog.dev import ConsoleRenderer

    render = ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=24, sort_keys=False)
    return lambda logger, name, said: (render(logger, name, said) + "\n").encode("utf-8", "replace")


class _Handler(logging.Handler):
    """What libraries log, and the rooms below, as events."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            level = record.levelname.lower()
            _say(*_read(record, level if level in _STDLIB else ERROR))
        except Exception:  # noqa: BLE001 - logging never breaks work
            self.handleError(record)


def _read(record: logging.LogRecord, level: str) -> tuple[str, str, dict[str, Any]]:
    """(event, level, fields) of a record: of "event key=%s" by a room of ours, or whatever else as it stands."""
    exception = _TRACE.formatException(record.exc_info) if record.exc_info else None
    event = str(record.msg).partition(" ")[0]
    if record.name.partition(".")[0] == OURS and event in EVENTS:
        names = _FIELD.findall(str(record.msg))
        given = record.args if isinstance(record.args, tuple) else ()
        fields = dict(zip(names, map(str, given), strict=False)) | {"exception": exception}
        return event, EVENTS[event].level, fields
    said = {"logger": record.name, "message": record.getMessage(), "exception": exception}
    return "library_said", level, said


_FIELD = re.compile(r"(\w+)=%")
_TRACE = logging.Formatter()


# ---- what is never said

SHORTEST = 4
"""Characters of a secret from which it is looked for: what is shorter would blank out half of every line."""

HIDDEN = "***"


class Redaction:
    """Takes secrets out of texts."""

    def __init__(self, secrets: Iterable[str]) -> None:
        spelt = {form for secret in secrets for form in (secret, quote(secret, safe=""), unquote(secret))}
        kept = sorted((form for form in spelt if len(form) >= SHORTEST), key=len, reverse=True)
        self._secrets = tuple(kept)

    def __call__(self, text: str) -> str:
        """The text without secrets, and without the password of any URL."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        return _CREDENTIALS.sub(rf"\1{HIDDEN}@", text) if "://" in text else text


_CREDENTIALS = re.compile(r"(://[^/\s:@]*:)[^/\s@]+@")
"""A password in any URL, also in one that we were never told of."""


def secrets_of(settings: Settings) -> list[str]:
    """What the settings hold as a secret: of URLs the password, of web addresses also what is behind the host."""
    found = []
    for name, value in settings:
        if isinstance(value, SecretStr):
            found += _secrets_in(name, value.get_secret_value())
    return found


def _secrets_in(name: str, written: str) -> list[str]:
    if "://" not in written:
        return [written]
    parts = urlsplit(written)
    asked = parse_qsl(parts.query)
    found = [value for name, value in asked if "password" in name]
    if name in _ALL_SECRET:
        pieces = [*parts.path.split("/"), *(value for _, value in asked)]
        found += [written, *(piece for piece in pieces if len(piece) >= _TOKEN)]
    return [*filter(None, [parts.password, *found])]


_ALL_SECRET = {"webhook_url", "traces_url"}
_TOKEN = 12
"""Characters of a piece of a web address from which it may be a token."""

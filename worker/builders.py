"""Builders of a relay's own: child processes that build without Celery what no worker began to build.

They share one pipe of records of a fixed length, which the kernel hands out whole, so whoever is free takes the
next. The relay's death is the pipe's end, and theirs. A build that kills its process kills one of them and not the
relay; it is started again.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date
from functools import partial

from foreword.errors import BadInput, ForewordError
from foreword.handles import uuid_of
from loaders.briefs import Begun
from tasks.audit import Outcome, audit_project
from tasks.brief import make_brief
from tasks.project import rebuild_project
from worker.app import BRIEF, HARD_SECONDS, REBUILD
from worker.events import chosen_format, emit
from worker.process import Process
from worker.settings import Settings, child_environment
from worker.telemetry import Telemetry
from worker.wiring import Services, redis_client, stored_in

NO_DATE = "-" * 10
AUDIT = "audit-----"
"""In the place of a date: the project's bundle is to be compared with a fresh build."""

RECORD = 48
"""Bytes of a record: a canonical UUID, of a project or of the user whose brief of a date it is, a space, the date,
and a newline.
"""

RESTART_SECONDS = 1.0
STOP_SECONDS = 5.0


class Builders:
    """The child processes and the pipe to them."""

    def __init__(
        self,
        settings: Settings,
        checkout: str,
        number: int,
        *,
        counts: int | None = None,
        level: str | None = None,
    ) -> None:
        # What it says stands in the relay's log, also when it cannot even start.
        said = settings.model_copy(update={"log_format": chosen_format()})
        self._environment = child_environment(said)
        self._checkout = checkout
        self._counts = [counts] if counts is not None else []
        self._command = [sys.executable, "-m", "worker", "build"]
        self._command += [f"--counts={counts}"] if counts is not None else []
        self._command += [f"--loglevel={level}"] if level is not None else []
        self._out, self._in = os.pipe()
        os.set_blocking(self._in, False)
        self._children: list[subprocess.Popen[bytes] | None] = [None] * number
        self._started = [0.0] * number

    def keep(self) -> None:
        """Start those that do not run."""
        for place, child in enumerate(self._children):
            if child is not None and child.poll() is None:
                continue
            if time.monotonic() - self._started[place] < RESTART_SECONDS and self._started[place]:
                continue
            if child is not None:
                emit("builder_ended", code=child.returncode)
            self._started[place] = time.monotonic()
            self._children[place] = subprocess.Popen(
                self._command,
                cwd=self._checkout,
                env=self._environment,
                stdin=self._out,
                pass_fds=self._counts,
                start_new_session=True,  # Ctrl-C reaches it only through us
            )

    def build(self, project_id: str) -> bool:
        """Have a project built; False where too many wait already."""
        return self._write(project_id, NO_DATE)

    def make(self, user: str, day: date) -> bool:
        """Have a brief made; False as for ``build``."""
        return self._write(user, day.isoformat())

    def audit(self, project_id: str) -> bool:
        """Have a project's bundle audited; False as for ``build``."""
        return self._write(project_id, AUDIT)

    def _write(self, name: str, day: str) -> bool:
        try:
            os.write(self._in, f"{name} {day}\n".encode())
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Let them finish what they are building."""
        os.close(self._in)
        os.close(self._out)
        deadline = time.monotonic() + STOP_SECONDS
        for child in self._children:
            if child is None:
                continue
            try:
                child.wait(max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


@contextmanager
def builders(
    settings: Settings, checkout: str, number: int, *, counts: int | None = None, level: str | None = None
) -> Iterator[Builders]:
    """Builders for the length of a block, that count into the descriptor ``counts`` and log from ``level`` on."""
    opened = Builders(settings, checkout, number, counts=counts, level=level)
    try:
        yield opened
    finally:
        opened.close()


def build_from(pipe: int, settings: Settings, services: Services, telemetry: Telemetry) -> None:
    """Build the projects, and make the briefs, whose names come through a pipe, until its end. What fails is on
    record. What takes longer than a task may ends the process.
    """
    process = Process(settings, services, telemetry)
    try:
        for name, day in _records(pipe):
            signal.alarm(HARD_SECONDS)  # ends the process: whatever hangs in it, another is started
            with suppress(ForewordError):
                if day is None:
                    process.run(partial(_build, name, process), REBUILD, name)
                elif day == AUDIT:
                    process.run(partial(_compare, name, process), "audit", name)
                elif isinstance(day, date):
                    process.run(partial(_make, name, day, process, []), BRIEF, f"{name} {day}")
            signal.alarm(0)
    finally:
        process.close()
        telemetry.close()


def _build(project: str, process: Process, last: bool) -> object:  # noqa: FBT001 - it is a Job
    return rebuild_project(project, process.tools(), if_due=True, last_try=last)


def _make(user: str, day: date, process: Process, held: list[Begun], _: bool) -> object:  # noqa: FBT001 - it is a Job
    return make_brief(user, day, process.tools(), held)


def _compare(project: str, process: Process, _: bool) -> None:  # noqa: FBT001 - it is a Job
    own = process.tools()
    with redis_client(process.services.redis_url) as client:
        found = audit_project(project, own, stored_in(client))
    if found.outcome is Outcome.DIFFERENT:
        emit("bundle_different", project=project, error=found.says)


_DAYS: Mapping[str, str | None] = {NO_DATE: None, AUDIT: AUDIT}


def _records(pipe: int) -> Iterator[tuple[str, date | str | None]]:
    while record := os.read(pipe, RECORD):
        name, _, day = record.decode("ascii", "replace").strip().partition(" ")
        try:
            yield uuid_of(name, "project or user"), _DAYS[day] if day in _DAYS else date.fromisoformat(day)
        except (BadInput, ValueError) as error:
            emit("not_a_record", error=str(error))

"""What one worker process holds: its own connections, opened on first use, never inherited.

An engine or connection used before a fork hands one child another child's rows, with no error. So nothing is
opened in the parent, and a child that finds something opened by another process forgets it unclosed: closing
would end the parent's session.
"""

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from foreword.errors import ForewordError, SchemaError, Unavailable
from tasks.tools import Tools
from worker.events import emit
from worker.outage import Outage
from worker.settings import Settings
from worker.telemetry import Telemetry
from worker.wiring import Services, tools

Job = Callable[[bool], object]
"""A job to run; told whether this is the last try."""


class Process:
    """The tools of the current process."""

    def __init__(self, settings: Settings, services: Services, telemetry: Telemetry | None = None) -> None:
        self.settings = settings
        self.services = services
        self.telemetry = telemetry or Telemetry(settings)
        self._opened: tuple[int, ExitStack, Tools] | None = None
        self._inherited: list[object] = []
        self._outage = Outage("job")

    def tools(self) -> Tools:
        """This process's tools, opened now if need be, or again where the connection was lost.

        Raises:
            Unavailable, SchemaError: see ``worker.wiring.tools``.
        """
        self.forget()
        if self._opened is not None and self._opened[2].connection.closed:
            self.close()
        if self._opened is None:
            stack = ExitStack()
            opened = stack.enter_context(tools(self.settings, self.services))
            self._opened = (os.getpid(), stack, replace(opened, note=self.telemetry.note))
        return self._opened[2]

    def forget(self) -> None:
        """Let go, without closing, of what another process opened."""
        if self._opened is not None and self._opened[0] != os.getpid():
            self._inherited.append(self._opened)  # kept referenced: collecting it would close it
            self._opened = None

    def close(self) -> None:
        """Close what this process opened."""
        self.forget()
        if self._opened is not None:
            stack = self._opened[1]
            self._opened = None
            stack.close()

    def run(self, job: Job, name: str, about: str | None = None) -> None:
        """Run a job. An expected error is recorded by the job and logged in one line; a connection that may be
        broken, or left in the middle of something, is opened anew next time. ``about`` is what the job works on.
        """
        try:
            self._over_live_connections(job)
            self._outage.went()
        except Unavailable as error:
            self.close()
            if times := self._outage.failed(error):
                emit("job_unavailable", job=name, about=about, error=str(error), times=times)
            raise
        except ForewordError as error:
            if error is not self.telemetry.told:
                emit("job_failed", job=name, about=about, error=str(error))
            raise
        except Exception:  # a bug, or the time limit, which strikes anywhere
            self.close()
            raise

    def _over_live_connections(self, job: Job) -> None:
        """A server that restarted, or a table that came or went, while nobody looked is found out by the first job
        after it: that one is begun anew, over new connections and with a new look at the tables.
        """
        try:
            job(False)
        except (Unavailable, SchemaError):
            self.close()
            job(True)

"""What one worker process holds: its own connections, opened on first use, never inherited.

An engine or connection used before a fork hands one child another child's rows, with no error. So nothing is
opened in the parent, and a child that finds something opened by another process forgets it unclosed: closing
would end the parent's session.
"""

import os
from contextlib import ExitStack

from tasks.tools import Tools
from worker.settings import Settings
from worker.wiring import Services, tools


class Process:
    """The tools of the current process."""

    def __init__(self, settings: Settings, services: Services) -> None:
        self.settings = settings
        self.services = services
        self._opened: tuple[int, ExitStack, Tools] | None = None
        self._inherited: list[object] = []

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
            self._opened = (os.getpid(), stack, opened)
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

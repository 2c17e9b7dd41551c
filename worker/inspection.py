"""Celery's remote control, of which only looking is left: whoever may write to the broker could otherwise end
workers, stop tasks, shrink pools and turn away queues, for Celery asks nobody's name.
"""

from functools import cache
from typing import Any

from celery.app.control import Control
from kombu import pidbox

from worker.events import emit

LOOKS = frozenset(
    {
        *("ping", "stats", "active_queues", "registered", "scheduled", "active", "reserved", "revoked", "conf"),
        "heartbeat",
    }
)
"""What we and Flower ask workers, and Flower's call to say that they are there. Not ``hello``: it takes the
sender's word for which tasks are revoked.
"""


class _Node(pidbox.Node):
    """The end of the channel in a worker. It listens to no argument: nobody's look needs one."""

    def handle(self, method: object, _: object = None) -> Any:
        """The answer."""
        handlers = self.handlers or {}
        name = str(method)
        if name in LOOKS:
            found = handlers[name](self.state)
            # Celery takes out the broker's password, but not a key's, nor one that a socket's URL holds.
            return found | {"broker": {}} if name == "stats" else found
        _refuse(name if name in handlers else "unknown")
        return {"error": "workers of Foreword are only looked at"}


@cache
def _refuse(command: str) -> None:
    """Said once for each in a process: others' tools on the same broker ask again and again."""
    emit("command_refused", command=command)


class _Mailbox(pidbox.Mailbox):
    node_cls = _Node


class Inspection(Control):
    """Of our application: its workers answer looks; as a client it is Celery's own."""

    Mailbox = _Mailbox

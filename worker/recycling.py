"""Replacing a worker's children as soon as they have ended.

Celery recycles a child after so many tasks. It looks for its end once, when the child closes its descriptors, a
moment before the kernel says that it is dead. Where that look comes too soon, the next one is up to five seconds
later (celery/celery#9588), and a worker of one child takes nothing until then, every 500 builds. So we look more
often. To be dropped when that issue is closed.
"""

from typing import Any

from celery import Celery, bootsteps

LOOK_SECONDS = 0.1
"""Between looks at a worker's children, some microseconds each."""


class Replacing(bootsteps.StartStopStep):
    """Has a worker look after its pool."""

    requires = ("celery.worker.components:Timer", "celery.worker.components:Pool")

    def start(self, parent: Any) -> None:
        """When the pool is there."""
        parent.timer.call_repeatedly(LOOK_SECONDS, parent.pool.maintain_pool)


def replace_soon(app: Celery) -> None:
    """Have the worker of ``app`` replace its children at once."""
    app.steps["worker"].add(Replacing)

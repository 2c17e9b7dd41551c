"""The Celery application: queues, settings with their reasons, and the jobs of ``tasks`` under their names.

A message holds ids only and is a wake-up call: it may be lost, doubled or late, because what is to be done
stands in PostgreSQL (``loaders.ledger``). Facts about Celery 5.7 on Redis behind these settings: docs/adr/0003.
"""

import gc
import time
from datetime import date
from typing import Any

from celery import Celery
from celery.signals import (
    before_task_publish,
    setup_logging,
    worker_init,
    worker_process_init,
    worker_process_shutdown,
    worker_ready,
)
from kombu import Exchange, Queue

from foreword import tokens
from foreword.errors import ForewordError
from foreword.handles import uuid_of
from loaders.briefs import Begun
from loaders.claims import EDITS, SWEEP
from tasks.brief import make_brief
from tasks.focus import build_focus
from tasks.project import rebuild_project
from tasks.schedule import schedule
from worker.inspection import Inspection
from worker.process import Process
from worker.settings import Settings
from worker.telemetry import Telemetry
from worker.wiring import Services, kombu_tls, kombu_url

BRIEFS = "briefs"
"""Queues: someone waits; people at their hour; bulk."""

REBUILD, FOCUS = "foreword.rebuild_project", "foreword.build_focus"
BRIEF, TICK = "foreword.make_brief", "foreword.tick"
"""Names of the jobs."""

TICK_SECONDS = 5.0
"""Between ticks of a beat. Any number of beats may run: a tick finds nothing to do, or does it once."""

SENT = "foreword_sent"
"""Header of a message: when it was sent, seconds since 1970. What waits longest in a queue is known by it."""

NODE = "foreword"
"""How the names of our workers begin: what tells them from the application's own on the same broker."""

HARD_SECONDS, SOFT_SECONDS, VISIBILITY_SECONDS = 60, 50, 180
"""A build of 100,000 entities takes a second or two."""

SETTINGS: dict[str, Any] = {
    "task_serializer": "json",  # pickle would let whoever writes to the broker run code here
    "accept_content": ["json"],
    "task_ignore_result": True,  # results stand in PostgreSQL
    "enable_utc": True,
    "timezone": "UTC",
    "task_acks_late": False,  # the ledger repeats what is lost; late acks make 5.7 exit on a Redis restart
    # A build takes as long as its project is large: a worker takes no message before it has a free process.
    "worker_prefetch_multiplier": 1,
    "worker_disable_prefetch": True,
    "task_time_limit": HARD_SECONDS,
    "task_soft_time_limit": SOFT_SECONDS,
    "worker_soft_shutdown_timeout": 20.0,
    "worker_max_tasks_per_child": 500,  # bounds whatever leaks
    "worker_max_memory_per_child": 1_500_000,  # KiB; the tokenizer is 86 MB of it, a huge project the rest
    "worker_cancel_long_running_tasks_on_connection_loss": True,  # of late acks only; else it warns at each loss
    "broker_connection_retry_on_startup": True,
    "broker_connection_max_retries": None,  # a worker outlives its broker's restart, however long
    "broker_transport_options": {
        "visibility_timeout": VISIBILITY_SECONDS,
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "socket_timeout": 10,
        "socket_connect_timeout": 2,
        "socket_keepalive": True,
        "health_check_interval": 10,
    },
    "event_queue_ttl": 5,  # event and control queues leak on Redis without these
    "event_queue_expires": 60,
    "control_queue_expires": 60,
    "worker_send_task_events": True,  # for Flower
    "task_default_queue": EDITS,
    "task_queues": [Queue(name, Exchange(name), routing_key=name) for name in (EDITS, BRIEFS, SWEEP)],
    "task_create_missing_queues": False,  # a misspelt queue is an error, not a message that nobody reads
    "worker_hijack_root_logger": False,
    # No entry per person: the tick asks the database who is due. One that no worker took in time is not needed.
    "beat_schedule": {
        "tick": {"task": TICK, "schedule": TICK_SECONDS, "options": {"queue": BRIEFS, "expires": 60}}
    },
}


def create_app(settings: Settings, services: Services) -> Celery:
    """The application. Opens no connection: those are made in each process, after the fork."""
    app = Celery("foreword", broker=kombu_url(services.broker_url), control=Inspection, set_as_current=False)
    app.conf.update(SETTINGS, broker_use_ssl=kombu_tls(services.broker_url))
    _register(app, Process(settings, services, Telemetry(settings)))
    return app


@before_task_publish.connect(weak=False)
def _sent(headers: dict[str, Any] | None = None, **_: Any) -> None:
    if headers is not None:
        headers[SENT] = round(time.time(), 3)


@setup_logging.connect(weak=False)
def _logged(**_: Any) -> None:
    """Celery sets up no logging of its own: ``worker.events`` has."""


def _register(app: Celery, process: Process) -> None:
    # Unknown arguments are ignored, so that old and new processes can share a queue. Our own errors are logged by
    # ``Process.run`` in one line, and not again by Celery with a traceback.
    @app.task(name=REBUILD, throws=(ForewordError,))
    def rebuild(project_id: str, **_: Any) -> None:
        project = uuid_of(project_id, "project")
        process.run(
            lambda last: rebuild_project(project, process.tools(), if_due=True, last_try=last), REBUILD, project
        )

    @app.task(name=FOCUS, throws=(ForewordError,))
    def focus(project_id: str, reference: str, *, with_graph: bool = False, **_: Any) -> None:
        project = uuid_of(project_id, "project")
        process.run(
            lambda _: build_focus(project, reference, process.tools(), with_graph=with_graph), FOCUS, project
        )

    @app.task(name=BRIEF, throws=(ForewordError,))
    def brief(user_id: str, local_date: str, **_: Any) -> None:
        user, day = uuid_of(user_id, "user"), date.fromisoformat(local_date)
        held: list[Begun] = []
        process.run(lambda _: make_brief(user, day, process.tools(), held), BRIEF, f"{user} {day}")

    @app.task(name=TICK, throws=(ForewordError,))
    def ticked(**_: Any) -> None:
        process.run(lambda _: schedule(process.tools().connection), TICK)

    del rebuild, focus, brief, ticked

    @worker_init.connect(weak=False)
    def _before_fork(**_: Any) -> None:
        """Load once what all children share: the tokenizer's 86 MB stay shared pages if nothing collects them."""
        process.telemetry.before_fork()
        tokens.encoding()
        gc.freeze()

    @worker_ready.connect(weak=False)
    def _forked(**_: Any) -> None:
        process.telemetry.serve()

    @worker_process_init.connect(weak=False)
    def _after_fork(**_: Any) -> None:
        process.forget()

    @worker_process_shutdown.connect(weak=False)
    def _at_exit(**_: Any) -> None:
        process.close()
        process.telemetry.close()

"""``work``: one Celery worker in the foreground."""

import os
import signal
import sys

import click
from celery import Celery
from celery.apps.worker import Worker

from foreword.errors import ForewordError
from loaders.claims import EDITS, SWEEP
from worker import events
from worker.app import BRIEFS, NODE, create_app
from worker.beating import beat_in_worker
from worker.crew import ENDING
from worker.recycling import replace_soon
from worker.screen import loglevel
from worker.settings import Settings
from worker.telemetry import at_port, metrics_port
from worker.wiring import check_broker, services, tools


@click.command(short_help="Run a Celery worker")
@click.option(
    "--queue", "queues", multiple=True, type=click.Choice([EDITS, BRIEFS, SWEEP]), help="Only these queues."
)
@click.option("--concurrency", type=click.IntRange(1, 256), help="Processes; by default one a core.")
@loglevel
@metrics_port
@click.pass_obj
def work(
    settings: Settings,
    queues: tuple[str, ...],
    concurrency: int | None,
    loglevel: str | None,
    metrics_port: int | None,
) -> int:
    """Run a Celery worker until it is told to end (SIGTERM finishes what is under way)."""
    settings = at_port(settings, metrics_port)
    events.begin("worker", settings, loglevel)
    with services(settings) as found:
        with tools(settings, found):
            pass  # a database that is not migrated, or a dead server, is said now and not in every task
        check_broker(found.broker_url)
        app = create_app(settings, found)
        beat_in_worker(app, settings, found, queues or (EDITS, BRIEFS, SWEEP))
        replace_soon(app)
        events.started()
        arguments = [
            *([] if sys.stdout.isatty() else ["--quiet"]),  # no banner in a log
            "worker",
            f"--hostname={'-'.join([NODE, *queues, str(os.getpid())])}@%h",  # in Flower, what it serves
            f"--queues={','.join(queues or (EDITS, BRIEFS, SWEEP))}",
            f"--concurrency={concurrency or settings.concurrency}",
            f"--loglevel={loglevel or 'WARNING'}",
            "--without-gossip",  # both leak on Redis and serve nothing here
            "--without-mingle",
        ]
        before = _hold_signals(app)
        try:
            app.worker_main(arguments)
        except SystemExit as stopped:
            if stopped.code not in (0, None):
                raise ForewordError(f"the worker ended with {stopped.code}") from stopped
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        events.emit("process_ended", reason="told to end")
    return 0


def _hold_signals(app: Celery) -> set[int | signal.Signals]:
    """Have what tells to end wait until Celery listens to it: while a worker is made it would strike anywhere, and
    what it interrupts may hang, or end as a failure. Children are forked when it waits no more. Celery restarts on
    SIGHUP, by a command line that it cannot know; a closed terminal is meant as an end. What waited before.
    """
    hangup = signal.getsignal(signal.SIGHUP)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())

    class Listening(Worker):
        def on_start(self) -> None:
            super().on_start()
            ended = signal.getsignal(signal.SIGTERM)
            signal.signal(signal.SIGHUP, hangup if hangup == signal.SIG_IGN else ended)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    vars(app)["Worker"] = app.subclass_with_self(Listening)  # a cached property
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    return before

"""``work``: one Celery worker in the foreground."""

import os
import signal
from typing import Any

import click
from celery.signals import worker_ready

from foreword.errors import ForewordError
from loaders.claims import EDITS, SWEEP
from worker.app import BRIEFS, NODE, create_app
from worker.settings import Settings
from worker.wiring import check_broker, services, tools


@click.command(short_help="Run a Celery worker")
@click.option(
    "--queue", "queues", multiple=True, type=click.Choice([EDITS, BRIEFS, SWEEP]), help="Only these queues."
)
@click.option("--concurrency", type=click.IntRange(1, 256), help="Processes; by default one a core.")
@click.option(
    "--loglevel",
    default="WARNING",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]),
    help="How much is logged; by default what went wrong.",
)
@click.pass_obj
def work(settings: Settings, queues: tuple[str, ...], concurrency: int | None, loglevel: str) -> int:
    """Run a Celery worker until it is told to end (SIGTERM finishes what is under way)."""
    with services(settings) as found:
        with tools(settings, found):
            pass  # a database that is not migrated, or a dead server, is said now and not in every task
        check_broker(found.broker_url)
        app = create_app(settings, found)
        _end_with_the_terminal()
        arguments = [
            "worker",
            f"--hostname={NODE}-{os.getpid()}@%h",
            f"--queues={','.join(queues or (EDITS, BRIEFS, SWEEP))}",
            f"--concurrency={concurrency or settings.concurrency}",
            f"--loglevel={loglevel}",
            "--without-gossip",  # both leak on Redis and serve nothing here
            "--without-mingle",
        ]
        try:
            app.worker_main(arguments)
        except SystemExit as stopped:
            if stopped.code not in (0, None):
                raise ForewordError(f"the worker ended with {stopped.code}") from stopped
    return 0


def _end_with_the_terminal() -> None:
    """Celery restarts on SIGHUP, by a command line that it cannot know. A closed terminal is meant as an end; it
    waits until Celery has its handlers.
    """
    before = signal.getsignal(signal.SIGHUP)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})

    @worker_ready.connect(weak=False)
    def _listen(**_: Any) -> None:
        ended = signal.getsignal(signal.SIGTERM)
        signal.signal(signal.SIGHUP, before if before == signal.SIG_IGN else ended)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})

    del _listen

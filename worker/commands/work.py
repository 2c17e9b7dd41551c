"""``work``: one Celery worker in the foreground."""

import click

from foreword.errors import ForewordError
from worker.app import BRIEFS, EDITS, SWEEP, create_app
from worker.settings import Settings
from worker.wiring import check_broker, services, tools


@click.command(short_help="Run a Celery worker")
@click.option(
    "--queue", "queues", multiple=True, type=click.Choice([EDITS, BRIEFS, SWEEP]), help="Only these queues."
)
@click.option("--concurrency", type=click.IntRange(1, 256), help="Processes; by default one a core.")
@click.option("--loglevel", default="WARNING", type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]))
@click.pass_obj
def work(settings: Settings, queues: tuple[str, ...], concurrency: int | None, loglevel: str) -> int:
    """Run a Celery worker until it is told to end (SIGTERM finishes what is under way)."""
    with services(settings) as found:
        with tools(settings, found):
            pass  # a database that is not migrated, or a dead server, is said now and not in every task
        check_broker(found.broker_url)
        app = create_app(settings, found)
        arguments = [
            "worker",
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

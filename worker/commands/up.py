"""``up``: the whole system in the foreground: servers, migrations, a worker that is kept alive."""

import itertools
import threading
import time

import click

from loaders.migrate import migrate
from worker import crew
from worker.app import create_app
from worker.screen import say
from worker.settings import Settings
from worker.wiring import Services, check_broker, redis_client, services

LOOK_SECONDS = 1.0
PAUSES = (1.0, 2.0, 5.0, 15.0, 30.0)
"""Between restarts of a worker that keeps dying; the last one for ever. One that lived longer than that begins
anew."""


@click.command(short_help="Run everything in the foreground")
@click.pass_obj
def up(settings: Settings) -> None:
    """Run everything on this machine until Ctrl-C, then stop it in order."""
    with services(settings) as found:
        migrate(found.database_url)
        redis_client(found.redis_url).close()
        check_broker(found.broker_url)
        _keep_working(settings, found)


def _keep_working(settings: Settings, found: Services) -> None:
    """A worker, and another one when it ends, for ever."""
    log = settings.data_dir / "worker.log"
    pause = threading.Event()  # an interruptible wait; nobody sets it
    app = create_app(settings, found)
    deaths = 0
    for life in itertools.count():
        begun = time.monotonic()
        with crew.child(settings, log) as worker:
            if life == 0:
                say("starting a worker")
                crew.wait_until_ready(app, worker, log)
                _announce(settings, found)
            while worker.poll() is None:
                pause.wait(LOOK_SECONDS)
        deaths = 1 if time.monotonic() - begun > PAUSES[-1] else deaths + 1
        rest = PAUSES[min(deaths, len(PAUSES)) - 1]
        say(f"the worker ended with {worker.returncode}; starting it again in {rest:.0f} s, see {log}")
        pause.wait(rest)


def _announce(settings: Settings, found: Services) -> None:
    click.echo("foreword is up; Ctrl-C stops it")
    for name, shown in (
        ("PostgreSQL", settings.database_url or found.database_url),
        ("Redis", settings.redis_url or found.redis_url),
        ("broker", settings.broker_url or (settings.redis_url or found.broker_url)),
        ("data", settings.data_dir),
        ("worker log", settings.data_dir / "worker.log"),
    ):
        click.echo(f"  {name:<10} {shown}")
    click.echo("next, in another terminal: python -m worker import DIR && python -m worker rebuild --all")

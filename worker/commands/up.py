"""``up``: the whole system in the foreground: servers, migrations, and a worker, a relay and a beat that are kept
alive.
"""

import subprocess
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

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


@dataclass(slots=True)
class _Kept:
    """A child process that is started again when it ends."""

    command: str
    log: Path
    process: "subprocess.Popen[bytes] | None" = None
    stack: ExitStack = field(default_factory=ExitStack)
    deaths: int = 0
    begun: float = 0.0
    rests_until: float = 0.0


def _keep_working(settings: Settings, found: Services) -> None:
    """A worker, a relay and a beat, and others when they end, for ever."""
    app = create_app(settings, found)
    pause = threading.Event()  # an interruptible wait; nobody sets it
    crews = [_Kept(command, settings.data_dir / f"{name}.log") for command, name in crew.NAMES.items()]
    worker = crews[0]
    with ExitStack() as stack:
        for kept in crews:
            stack.push(kept.stack.__exit__)
        say("starting a worker, a relay and a beat")
        for kept in crews:
            _begin(settings, kept)
        assert worker.process is not None  # noqa: S101 - just begun
        crew.wait_until_ready(app, worker.process, worker.log)
        _announce(settings, found)
        while True:
            for kept in crews:
                _look_after(settings, kept)
            pause.wait(LOOK_SECONDS)


def _begin(settings: Settings, kept: _Kept) -> None:
    kept.begun = time.monotonic()
    kept.process = kept.stack.enter_context(crew.child(settings, kept.log, kept.command))


def _look_after(settings: Settings, kept: _Kept) -> None:
    """Start it again when it has ended, after a rest that grows when it keeps ending."""
    now = time.monotonic()
    if kept.process is None:
        if now >= kept.rests_until:
            _begin(settings, kept)
        return
    if kept.process.poll() is None:
        return
    kept.deaths = 1 if now - kept.begun > PAUSES[-1] else kept.deaths + 1
    rest = PAUSES[min(kept.deaths, len(PAUSES)) - 1]
    code, kept.process = kept.process.returncode, None
    kept.stack.close()
    kept.rests_until = now + rest
    say(f"the {crew.NAMES[kept.command]} ended with {code}; starting it again in {rest:.0f} s, see {kept.log}")


def _announce(settings: Settings, found: Services) -> None:
    click.echo("foreword is up; Ctrl-C stops it")
    for name, shown in (
        ("PostgreSQL", settings.database_url or found.database_url),
        ("Redis", settings.redis_url or found.redis_url),
        ("broker", settings.broker_url or (settings.redis_url or found.broker_url)),
        ("data", settings.data_dir),
        ("logs", ", ".join([str(settings.data_dir / "worker.log"), "relay.log", "beat.log"])),
    ):
        click.echo(f"  {name:<10} {shown}")
    click.echo(
        "next, in another terminal: python -m worker import DIR; what is imported or edited is built at once"
    )

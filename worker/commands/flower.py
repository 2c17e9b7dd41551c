"""``flower``: workers and tasks in a browser, behind a password, and only to be read (``worker.gate``)."""

import asyncio
import os
import secrets
import signal
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from foreword.errors import BadSettings, ForewordError, ServerError
from worker import events
from worker.app import create_app
from worker.crew import ENDING
from worker.pulse import TOUCH_SECONDS, Pulse
from worker.settings import PREFIX, Settings
from worker.watchdog import watch
from worker.wiring import Services, check_broker, services

ADDRESS, PORT, USER = "127.0.0.1", 5555, "foreword"

PASSWORD_FILE = "flower.password"  # noqa: S105 - a name
PASSWORD_BYTES = 18

DATABASE = "flower.state"
"""What it has seen, in the data directory. A pickle: whoever can write it can run code here, as with all in there.
"""

OPTIONS: dict[str, Any] = {
    "read_only": True,
    "enable_events": False,  # workers send events anyway, and every look at them would be a broadcast
    "persistent": True,
    "state_save_interval": 60_000,  # milliseconds
    "max_tasks": 10_000,  # saving them takes a tenth of a second
    "purge_offline_workers": 600,  # seconds; every restart has another name
    "tasks_columns": "name,uuid,args,state,received,started,runtime,worker",
}


@click.command(short_help="Show workers and tasks in a browser")
@click.option("--address", default=ADDRESS, show_default=True, help="Where it listens; by default only here.")
@click.option(
    "--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), help="0: any that is free."
)
@click.pass_obj
def flower(settings: Settings, address: str, port: int) -> None:
    """Show workers, queues and tasks in a browser, read-only, until told to end. The user is foreword; the
    password is in flower.password in the data directory, or FOREWORD_FLOWER_PASSWORD.

    It speaks plain HTTP: on other addresses than this machine's own, put a proxy that speaks TLS before it.
    """
    _check_installed()
    events.begin("flower", settings, None)
    with services(settings) as found:
        check_broker(found.broker_url)
        login = f"{USER}:{password(settings)}"
        before = {number: signal.getsignal(number) for number in ENDING}
        told = asyncio.run(_serve(settings, found, (address, port), login))
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.raise_signal(told)  # now that nothing is open any more, it ends us as it ends any command


def password(settings: Settings) -> str:
    """The password: of the settings, else of the file in the data directory, which is made if need be.

    Raises:
        ServerError: the file cannot be written, or read.
    """
    if settings.flower_password is not None:
        return settings.flower_password.get_secret_value()
    path = settings.data_dir / PASSWORD_FILE
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make(path)
        found = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise ServerError(f"{path}: {error}; mend it, or set {PREFIX}FLOWER_PASSWORD") from error
    if not found:
        raise BadSettings(f"{path} is empty: remove it, and another is made, or write a password into it")
    return found


def _make(path: Path) -> None:
    """Whole before it has its name, and only where there is none: two may make one at once."""
    if path.exists():
        return
    half = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(f"{secrets.token_urlsafe(PASSWORD_BYTES)}\n")
        with suppress(FileExistsError):
            os.link(half, path)
    finally:
        half.unlink(missing_ok=True)


def password_place(settings: Settings) -> str:
    """Where the password is found."""
    if settings.flower_password is not None:
        return f"{PREFIX}FLOWER_PASSWORD"
    return str(settings.data_dir / PASSWORD_FILE)


def _check_installed() -> None:
    if find_spec("flower") is None:
        raise ForewordError("Flower is not installed: pip install -r requirements/flower.txt")


async def _serve(settings: Settings, found: Services, place: tuple[str, int], login: str) -> int:
    """Serve until told to end; the signal that told."""
    from tornado.httpserver import HTTPServer
    from tornado.netutil import bind_sockets

    from worker.gate import guarded

    told: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            asyncio.get_running_loop().add_signal_handler(number, _note, told, number)
    options = OPTIONS | {"db": str(settings.data_dir / DATABASE)}
    application = guarded(create_app(settings, found), found.broker_url, login, options)
    try:
        sockets = bind_sockets(place[1], address=place[0])
    except OSError as error:
        raise ForewordError(f"Flower cannot listen on {place[0]}:{place[1]}: {error.strerror}") from error
    server = HTTPServer(application)
    server.add_sockets(sockets)
    host = f"[{place[0]}]" if ":" in place[0] else place[0]
    where = f"http://{host}:{sockets[0].getsockname()[1]}"
    click.echo(f"Flower is on {where}; the user is {USER}, the password in {password_place(settings)}")
    events.started()
    application.events.start()
    pulse = Pulse("flower", settings.health)
    watch(pulse, [found.broker_url])
    _beat(pulse)
    try:
        return await told
    finally:
        pulse.end()
        server.stop()
        application.events.stop()  # which saves what it has seen
        application.executor.shutdown(wait=False, cancel_futures=True)


def _beat(pulse: Pulse) -> None:
    """Leave signs of life as long as the loop turns."""
    pulse.beat()
    asyncio.get_running_loop().call_later(TOUCH_SECONDS, _beat, pulse)


def _note(told: "asyncio.Future[int]", number: int) -> None:
    if not told.done():
        told.set_result(number)

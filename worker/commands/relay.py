"""``relay``: see to it that what is edited is built. ``build``: a child of it. ``pause`` and ``resume``: its
switch.
"""

import logging
import sys

import click

from foreword.errors import Unavailable
from loaders.connection import connect, mapped
from worker.app import create_app
from worker.builders import build_from, builders
from worker.crew import CHECKOUT
from worker.relay import Relay
from worker.screen import say
from worker.settings import Settings
from worker.wiring import check_broker, redis_client, services, tools

_SWITCH = "update fw_facts set value = %s where name = 'paused'"


@click.command(short_help="Have edited projects built")
@click.option("--inline", is_flag=True, help="Build in child processes, without Celery or a broker.")
@click.option("--builders", "number", default=1, type=click.IntRange(1, 64), help="Child processes that build.")
@click.option(
    "--loglevel",
    default="WARNING",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]),
    help="How much is logged; by default who leads, and what went wrong.",
)
@click.pass_obj
def relay(settings: Settings, *, inline: bool, number: int, loglevel: str) -> None:
    """Watch the change log and send what was edited to the workers, until told to end.

    Several may run, on any machines; one leads, and another takes its place within seconds. What no worker begins
    within a second is built by a child process of the relay.
    """
    _log_to_stderr(loglevel)
    with services(settings) as found:
        with tools(settings, found):
            pass  # a database that is not migrated, or a dead server, is said now
        if not inline:
            _warn_of(found.broker_url)
        app = None if inline else create_app(settings, found)
        with builders(settings, str(CHECKOUT), number) as own:
            Relay(settings, found, app, own).run()


def _warn_of(broker_url: str) -> None:
    """A broker that is down costs a second an edit, and is no reason not to start; one that evicts is."""
    try:
        check_broker(broker_url)
    except Unavailable as error:
        say(f"{error}; until it answers, the relay's own children build")


@click.command(short_help="Build what standard input names")
@click.pass_obj
def build(settings: Settings) -> None:
    """Build the projects whose UUIDs come on standard input, a line each, until its end; those where there is
    something to do. What a relay starts to build without Celery.
    """
    _log_to_stderr("WARNING")
    with services(settings) as found:
        redis_client(found.redis_url).close()
        build_from(sys.stdin.fileno(), settings, found)


@click.command(short_help="Stop building for a while")
@click.option("--sweep", is_flag=True, help="Only what nobody waits for.")
@click.pass_obj
def pause(settings: Settings, *, sweep: bool) -> None:
    """Have the relays claim nothing, within a second, until `resume`. Edits go on and wait in the change log."""
    _switch(settings, 1 if sweep else 2)
    click.echo("paused: the sweep" if sweep else "paused: everything; `python -m worker resume` goes on")


@click.command(short_help="Go on building")
@click.pass_obj
def resume(settings: Settings) -> None:
    """End a `pause`."""
    _switch(settings, 0)
    click.echo("resumed")


def _switch(settings: Settings, value: int) -> None:
    with services(settings) as found, connect(found.database_url) as connection, mapped("switching"):
        connection.execute(_SWITCH, [value])


def _log_to_stderr(level: str) -> None:
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)

"""``relay``: see to it that what is edited is built. ``build``: a child of it. ``pause`` and ``resume``: its
switch.
"""

import sys

import click

from foreword.errors import Unavailable
from loaders.claims import EVERYTHING, THE_SWEEP
from loaders.connection import connect, mapped
from worker import events
from worker.app import create_app
from worker.builders import build_from, builders
from worker.crew import CHECKOUT
from worker.events import emit
from worker.gauges import Gauges
from worker.metrics import Sender
from worker.relay import Relay
from worker.screen import loglevel, say
from worker.settings import Settings
from worker.telemetry import Telemetry, at_port, metrics_port
from worker.watchdog import watch
from worker.wiring import check_broker, redis_client, services, tools

# Pausing never starts anything, and going on with the bulk not the rest.
_PAUSE = "update fw_facts set value = greatest(value, %s) where name = 'paused' returning value"
_RESUME = """
update fw_facts set value = case when value > %s then value else 0 end where name = 'paused' returning value
"""

BULK, ALL = "bulk", "all"
_WHAT = {BULK: THE_SWEEP, ALL: EVERYTHING}
_SAID = {THE_SWEEP: "the bulk", EVERYTHING: "everything"}


@click.command(short_help="Have edited projects built")
@click.option("--inline", is_flag=True, help="Build in child processes, without Celery or a broker.")
@click.option("--builders", "number", default=1, type=click.IntRange(1, 64), help="Child processes that build.")
@loglevel
@metrics_port
@click.pass_obj
def relay(
    settings: Settings, *, inline: bool, number: int, loglevel: str | None, metrics_port: int | None
) -> None:
    """Watch the change log and send what was edited to the workers, until told to end.

    Several may run, on any machines; one leads, and another takes its place within seconds. What no worker begins
    within a second is built by a child process of the relay.
    """
    settings = at_port(settings, metrics_port)
    events.begin("relay", settings, loglevel)
    with services(settings) as found:
        with tools(settings, found):
            pass  # a database that is not migrated, or a dead server, is said now
        events.started()
        if not inline:
            _warn_of(found.broker_url)
        app = None if inline else create_app(settings, found)
        telemetry = Telemetry(settings)
        telemetry.before_fork()
        with builders(settings, str(CHECKOUT), number, counts=telemetry.counts, level=loglevel) as own:
            leading = Relay(settings, found, app, own)
            telemetry.serve(lambda: Gauges(found, lambda: leading.leads, broker=not inline))
            watch(leading.pulse, [found.database_url, found.redis_url, *([] if inline else [found.broker_url])])
            leading.run()


def _warn_of(broker_url: str) -> None:
    """A broker that is down costs a second an edit, and is no reason not to start; one that evicts is."""
    try:
        check_broker(broker_url)
    except Unavailable as error:
        emit("broker_does_not_answer", error=str(error))


@click.command(short_help="Build what standard input names")
@click.option("--counts", type=int, hidden=True, help="The descriptor of a pipe to count into.")
@loglevel
@click.pass_obj
def build(settings: Settings, *, counts: int | None, loglevel: str | None) -> None:
    """Build the projects whose UUIDs come on standard input, a line each, until its end; those where there is
    something to do. What a relay starts to build without Celery.
    """
    events.begin("builder", settings, loglevel)
    telemetry = Telemetry(settings, Sender(counts) if counts is not None else None)
    with services(settings) as found:
        redis_client(found.redis_url).close()
        build_from(sys.stdin.fileno(), settings, found, telemetry)


@click.command(short_help="Stop building for a while")
@click.argument("what", type=click.Choice([BULK, ALL]), default=ALL)
@click.pass_obj
def pause(settings: Settings, *, what: str) -> None:
    """Have the relays claim nothing, within a second, until `resume`: nothing at all (briefs neither), or nothing
    of the bulk that nobody waits for. Edits go on and wait in the change log. `rebuild` and `brief` still build.
    """
    paused = _switch(settings, _PAUSE, what)
    click.echo(f"paused: {_SAID[paused]}; `python -m worker resume` goes on")


@click.command(short_help="Go on building")
@click.argument("what", type=click.Choice([BULK, ALL]), default=ALL)
@click.pass_obj
def resume(settings: Settings, *, what: str) -> int:
    """End a `pause`: of all, or, where no more than that was paused, of the bulk."""
    if _switch(settings, _RESUME, what):
        say("everything is paused, not only the bulk; `python -m worker resume` goes on with all of it")
        return 1
    click.echo("resumed")
    return 0


def _switch(settings: Settings, statement: str, what: str) -> int:
    """How the switch stands then."""
    with services(settings) as found, connect(found.database_url) as connection, mapped("switching"):
        return int(connection.execute(statement, [_WHAT[what]]).fetchall()[0][0])

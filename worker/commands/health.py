"""``health``: for probes. Of the processes on this machine by what their main loops touch; of the whole by what
was finished while there was work.
"""

import click

from loaders.claims import EVERYTHING
from loaders.condition import Condition, condition
from loaders.connection import connect
from worker.health import ROLES, SECONDS, judged
from worker.screen import print_json, say
from worker.settings import Settings
from worker.wiring import services

SYSTEM = "system"

PROGRESS_SECONDS = 60.0
"""Within which work that waits must move."""


@click.command(short_help="Whether processes are well, for probes")
@click.option(
    "--role", type=click.Choice([*ROLES, SYSTEM]), help="Only these processes; or the whole, by its progress."
)
@click.option(
    "--seconds",
    type=click.FloatRange(1, 3600),
    help=f"Patience; by default {SECONDS:.0f} with a main loop, {PROGRESS_SECONDS:.0f} with progress.",
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.pass_obj
def health(settings: Settings, *, role: str | None, seconds: float | None, as_json: bool) -> int:
    """Whether the processes on this machine are well: exit code 0, or 1.

    Of a worker, a relay, a beat or Flower: whether its main loop turns, by the age of a file in the health
    directory, which is cheap enough to be asked every ten seconds. A worker's turns only while it has its broker,
    and not while it takes nothing of what waits; a beat's only when it could send a tick.

    With --role system: whether edits are built. Nobody leading is not well, nor is an old edit while nothing was
    finished lately; a pause is well. Exit code 3 where PostgreSQL does not answer.
    """
    if role == SYSTEM:
        with services(settings) as found, connect(found.database_url) as connection:
            now = condition(connection)
        lines = unwell(now, seconds or PROGRESS_SECONDS)
        well, lines = not lines, lines or [_going(now)]
    else:
        well, lines = judged(settings.health, role or "", seconds or SECONDS)
    if as_json:
        print_json({"well": well, "says": lines})
    else:
        for line in lines:
            (click.echo if well else say)(line)
    return 0 if well else 1


def _going(now: Condition) -> str:
    """What a system that is well does."""
    if now.paused >= EVERYTHING:
        return f"everything is paused; edited projects that wait: {now.dirty}"
    return "all that is edited is built" if not now.dirty else f"edited projects being built: {now.dirty}"


def unwell(now: Condition, seconds: float) -> list[str]:
    """Why edits are not built: nobody has them built, or nothing is finished though there is work. A backlog that
    shrinks is none of that, and neither is a pause.
    """
    if now.paused >= EVERYTHING:
        return []
    lines = [] if now.leader is not None else ["no relay leads"]
    finished = now.last_built if now.last_built is not None else float("inf")
    if now.lag > seconds and finished > seconds:
        lines.append(f"an edit has waited for {now.lag:.0f} s, and no build ended well for {finished:.0f} s")
    return lines

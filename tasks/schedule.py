"""Schedule the briefs that are due: what a beat's message asks for, however often it comes."""

from loaders.beats import note_tick
from loaders.connection import Connection
from loaders.tick import tick

MOST_TICKS = 20
"""In one job, of a thousand subscriptions each: a job has a time limit, and the next tick goes on."""


def schedule(connection: Connection) -> int:
    """Schedule what is due; how many briefs.

    Raises:
        BuildError, SchemaError, Unavailable: what was not scheduled is the next time.
    """
    scheduled = 0
    for _ in range(MOST_TICKS):
        ticked = tick(connection)
        scheduled += ticked.scheduled
        if not ticked.more:
            break
    note_tick(connection)
    return scheduled

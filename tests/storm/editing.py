"""The application meanwhile: people who edit, and look when what they wrote can be read."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from chaos.watch import guarded
from storm.fill import TASKS, task_id
from storm.world import World

import foreword
from foreword.reader import TRUSTED, Reader

WAIT_SECONDS = 60.0
"""For an edit to be readable, whatever died. Beyond it is a violation."""


@contextmanager
def edited(world: World, name: str) -> Iterator[list[float]]:
    """Edits for the length of a block; the seconds that each took until it was readable."""
    found: list[float] = []
    over = threading.Event()
    options = world.options
    pause = options.editors / options.rate if options.rate else 0.0

    def run(number: int) -> None:
        dice = Random(f"{options.seed}/{name}/{number}")
        over.wait(dice.random() * pause)
        with world.cache() as client, world.plain() as connection:
            reader = Reader(client)
            due = time.monotonic()
            while not over.is_set():
                project = dice.choice(world.circle.projects)
                connection.execute(
                    "update onto_tasks set title = %s where id = %s",
                    [f"{project.canary} {dice.getrandbits(40):x}", task_id(project, dice.randrange(TASKS))],
                )
                token = foreword.token(connection)
                connection.commit()
                begun = time.monotonic()
                context = reader.project(project.id, actor=TRUSTED, at_least=token, wait=WAIT_SECONDS)
                found.append(time.monotonic() - begun)
                if context.status != "fresh":
                    world.findings.add("edits", f"{token} of {project.id} was not readable in {WAIT_SECONDS} s")
                due = max(due + pause, time.monotonic() - pause)
                over.wait(max(due - time.monotonic(), 0))

    threads = [guarded(f"editor-{n}", lambda n=n: run(n), world.findings) for n in range(options.editors)]  # type: ignore[misc]
    if options.rate:
        for thread in threads:
            thread.start()
    try:
        yield found
    finally:
        over.set()
        for thread in threads:
            if thread.is_alive():
                thread.join()

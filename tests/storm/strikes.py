"""What befalls a storm: processes are killed, messages come twice or never. When and whom is the seed's; how it
turns out is the machine's.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from random import Random

import kombu.exceptions
import psutil
import redis
from chaos.watch import guarded
from storm.world import World

from worker.app import BRIEF, BRIEFS

KILLED = ("child", "child", "worker", "family", "relay", "relay", "builder", "beat")
"""Who is killed, in this order first, then by chance: a storm of eight kills has one of each at least."""

_DOUBLED_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class Strike:
    """One of them, so many seconds into the storm."""

    at: float
    what: str
    dice: int


def plan(seed: int, seconds: float, kills: int, doubled: int, purges: int) -> list[Strike]:
    """Everything that is to happen, in order."""
    dice = Random(f"{seed}/strikes")
    whats = [KILLED[n] if n < len(KILLED) else dice.choice(KILLED) for n in range(kills)]
    dice.shuffle(whats)
    whats += ["double"] * -(-doubled // _DOUBLED_AT_ONCE) + ["purge"] * purges
    return sorted(
        (Strike(dice.uniform(0, seconds), what, dice.getrandbits(32)) for what in whats), key=lambda s: s.at
    )


@contextmanager
def striking(world: World, planned: Sequence[Strike]) -> Iterator[threading.Event]:
    """Strikes for the length of a block; yields what is set when the last has struck."""
    over, done = threading.Event(), threading.Event()

    def run() -> None:
        begun = time.monotonic()
        for strike in planned:
            if over.wait(max(begun + strike.at - time.monotonic(), 0)):
                break
            if _STRIKES[strike.what](world, Random(strike.dice)):
                world.struck[strike.what] += 1
        done.set()

    thread = guarded("strikes", run, world.findings)
    thread.start()
    try:
        yield done
    finally:
        over.set()
        thread.join()


def _kill_head(role: str) -> Callable[[World, Random], bool]:
    """A main process; what it forked lives on without it for a while."""

    def strike(world: World, dice: Random) -> bool:
        members = world.crew.of(role)
        if not members:
            return False
        member = dice.choice(members)
        world.crew.bereave(member.children)
        member.shot = True
        member.send(signal.SIGKILL)
        return True

    return strike


def _kill_family(world: World, dice: Random) -> bool:
    """A worker with its children, as when a machine is gone."""
    members = world.crew.of("worker")
    if not members:
        return False
    member = dice.choice(members)
    children = member.children
    member.shot = True
    member.send(signal.SIGKILL)
    for child in children:
        with suppress(psutil.Error):
            child.kill()
    return True


def _kill_child(role: str) -> Callable[[World, Random], bool]:
    def strike(world: World, dice: Random) -> bool:
        children = [child for member in world.crew.of(role) for child in member.children]
        with suppress(psutil.Error):
            if children:
                dice.choice(children).kill()
                return True
        return False

    return strike


def _double(world: World, dice: Random) -> bool:
    """Wake-up calls that nobody asked for, each twice, for whoever it may be."""
    with suppress(kombu.exceptions.OperationalError), world.app() as app:
        for person in dice.choices(world.people, k=_DOUBLED_AT_ONCE):
            for _ in range(2):
                app.send_task(BRIEF, args=[person.id, person.day.isoformat()], queue=BRIEFS, retry=False)
        return True
    return False


def _purge(world: World, _: Random) -> bool:
    """Every message that waits is lost."""
    with suppress(redis.RedisError), world.broker() as broker:
        broker.delete(BRIEFS)
        return True
    return False


_STRIKES: dict[str, Callable[[World, Random], bool]] = {
    "worker": _kill_head("worker"),
    "family": _kill_family,
    "child": _kill_child("worker"),
    "relay": _kill_head("relay"),
    "builder": _kill_child("relay"),
    "beat": _kill_head("beat"),
    "double": _double,
    "purge": _purge,
}

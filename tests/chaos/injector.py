"""Who strikes: every planned fault at its time, each in a thread of its own, for they last and overlap."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from random import Random

import psutil
import psycopg
import redis
from chaos.faults import Missed, Planned
from chaos.world import Struck, World


class Injector:
    """Strikes as planned."""

    def __init__(self, world: World, planned: Sequence[Planned]) -> None:
        self._world, self._planned = world, planned
        self._busy: set[str] = set()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self.broken: list[str] = []

    @contextmanager
    def striking(self) -> Iterator["Injector"]:
        """Faults for the length of a block; at its end everything is undone."""
        main = threading.Thread(target=self._run, name="injector", daemon=True)
        main.start()
        try:
            yield self
        finally:
            self._world.healing.set()
            main.join()
            for thread in self._threads:
                thread.join()

    def _run(self) -> None:
        begun = time.monotonic()
        for planned in self._planned:
            if self._world.healing.wait(max(begun + planned.at - time.monotonic(), 0)):
                return
            thread = threading.Thread(target=self.strike, args=[planned], name=planned.fault.name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def strike(self, planned: Planned) -> None:
        """Strike, and return when it is over."""
        fault, world = planned.fault, self._world
        if not self._take(fault.what):
            world.missed[fault.name] += 1
            return
        struck = Struck(fault.name, time.monotonic())
        try:
            with fault.strike(world, Random(planned.dice)):
                world.struck.append(struck)
                world.healing.wait(planned.lasts)
        except (Missed, psycopg.Error, redis.RedisError, psutil.Error, OSError):
            if struck not in world.struck:
                world.missed[fault.name] += 1
        except Exception as error:  # noqa: BLE001 - a harness that breaks must say so, and not seem to pass
            self.broken.append(f"{fault.name}: {type(error).__name__}: {error}")
        finally:
            struck.ended = time.monotonic()
            self._give(fault.what)

    def _take(self, what: str) -> bool:
        with self._lock:
            if what and what in self._busy:
                return False
            self._busy.add(what)
            return True

    def _give(self, what: str) -> None:
        with self._lock:
            self._busy.discard(what)


def healed(world: World) -> None:
    """After the faults: whatever stands still goes on, whatever is cut is joined, every server is up."""
    for server in (world.postgres, world.cache, world.broker):
        _resume(server.family())
        if not server.program.ready():
            server.start()
    for member in world.crew.members:
        for link in member.ways.all:
            link.heal()
    _resume(_ours(world))


def _resume(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.resume()


def _ours(world: World) -> list[psutil.Process]:
    return [process for m in world.crew.members for process in [m.head, *m.children] if process is not None]

"""A network to be cut: TCP proxies that pass, delay, hold back, go deaf and reset.

All proxies of a run live on one event loop in a thread of their own; what is asked of them is done there.
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER that makes a close a reset."""

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Trap:
    """What happens to the next piece towards a server that holds ``word``, once.

    Attributes:
        hold: seconds that it is held back, while other connections pass.
        deliver: whether it arrives at all; else its connection is reset.
        answered: whether its answer does; else the connection is reset when the server has it.
        then: called when it springs, in a thread of its own.
    """

    word: bytes
    hold: float = 0.0
    deliver: bool = True
    answered: bool = True
    then: Callable[[], object] = bool
    sprung: threading.Event = field(default_factory=threading.Event)


class Link:
    """One proxied way to a server. ``up`` is towards it, ``down`` are its answers."""

    def __init__(self, loop: asyncio.AbstractEventLoop, port: int) -> None:
        self._loop, self.target = loop, port
        self.port = 0
        self._up, self._down = asyncio.Event(), asyncio.Event()
        self._up.set()
        self._down.set()
        self._lag = 0.0
        self._refuses = False
        self._trap: Trap | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    # ---- what faults ask for, from any thread

    def cut(self) -> None:
        """Reset every connection."""
        self._ask(self._reset_all)

    def refuse(self) -> None:
        """Reset every connection, and every new one."""
        self._ask(lambda: self._set(refuses=True))
        self.cut()

    def slow(self, seconds: float) -> None:
        """Every piece takes so much longer, each way."""
        self._ask(lambda: self._set(lag=seconds))

    def hold(self, *, up: bool = True, down: bool = True) -> None:
        """Forward nothing; what is sent meanwhile arrives when it is healed, as after a partition."""
        self._ask(lambda: self._gate(up=not up, down=not down))

    def arm(self, trap: Trap | None) -> None:
        """Set a trap, or take it away."""
        self._trap = trap

    def heal(self) -> None:
        """Pass again."""
        self._ask(lambda: self._gate(up=True, down=True))
        self._ask(lambda: self._set(lag=0.0, refuses=False))

    # ---- on the loop

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Reset what is open, and listen no more."""
        assert self._server is not None
        self._server.close()
        self._reset_all()
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ask(self, what: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(what)

    def _set(self, *, lag: float | None = None, refuses: bool | None = None) -> None:
        self._lag = self._lag if lag is None else lag
        self._refuses = self._refuses if refuses is None else refuses

    def _gate(self, *, up: bool, down: bool) -> None:
        for gate, opened in ((self._up, up), (self._down, down)):
            if opened:
                gate.set()
            else:
                gate.clear()

    def _reset_all(self) -> None:
        for writer in [*self._writers]:
            _reset(writer)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            _reset(writer)
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            with suppress(OSError, asyncio.CancelledError):
                await self._carry(reader, writer)
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._up.wait()
        there_reader, there = await asyncio.open_connection("127.0.0.1", self.target)
        self._writers.add(there)
        ways = [
            asyncio.ensure_future(self._pump(reader, there, self._up, trapped=writer)),
            asyncio.ensure_future(self._pump(there_reader, writer, self._down)),
        ]
        try:
            # Either side's end is the end: PostgreSQL and Redis use no half-closed connections.
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._writers.discard(there)
            there.transport.abort()

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        gate: asyncio.Event,
        *,
        trapped: asyncio.StreamWriter | None = None,
    ) -> None:
        """Carry one direction; ``trapped``, whom it comes from, where traps are set for it."""
        while piece := await reader.read(_CHUNK):
            if self._lag:
                await asyncio.sleep(self._lag)
            await gate.wait()
            trap = self._sprung(piece) if trapped is not None else None
            if trap is not None:
                await asyncio.sleep(trap.hold)
                if not trap.deliver:
                    break
            writer.write(piece)
            await writer.drain()
            if trap is not None and not trap.answered and trapped is not None:
                _reset(trapped)
        await gate.wait()  # an end is news as well
        writer.close()
        await writer.wait_closed()  # with what was said last

    def _sprung(self, piece: bytes) -> Trap | None:
        trap = self._trap
        if trap is None or trap.word not in piece:
            return None
        self._trap = None
        trap.sprung.set()
        self._loop.run_in_executor(None, trap.then)
        return trap


def _reset(writer: asyncio.StreamWriter) -> None:
    one: Any = writer.get_extra_info("socket")
    if one is not None:
        with suppress(OSError):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


class Network:
    """The proxies of a run, on a loop in a thread. A context: at its end every connection is reset."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="network", daemon=True)
        self.links: list[Link] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for link in self.links:
            self._wait(link.close())
        self._wait(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def link(self, port: int) -> Link:
        """A new way to the server on this port."""
        link = Link(self._loop, port)
        self._wait(link.open())
        self.links.append(link)
        return link

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _wait(self, coroutine: Any) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

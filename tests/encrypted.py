"""A Redis behind TLS: those of our wheels know none, so it ends just before the real one."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trustme import CA

HOST = "localhost"


def signed(by: CA, host: str = HOST) -> ssl.SSLContext:
    """Of a server with this name, which in its turn wants a certificate by the same hand."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.verify_mode = ssl.CERT_REQUIRED
    by.issue_cert(host).configure_cert(context)
    by.configure_trust(context)
    return context


@contextmanager
def behind(context: ssl.SSLContext, server: Path) -> Iterator[int]:
    """The port on which the server of a unix socket speaks TLS, for the length of a block."""
    loop = asyncio.new_event_loop()
    carrying: set[asyncio.Task[None]] = set()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        carrying.add(task)
        there_reader, there = await asyncio.open_unix_connection(server)
        ways = [asyncio.ensure_future(_pump(*way)) for way in ((reader, there), (there_reader, writer))]
        with suppress(asyncio.CancelledError):
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        there.transport.abort()
        writer.transport.abort()
        carrying.discard(task)

    async def end() -> None:
        listening.close()
        for task in carrying:
            task.cancel()
        await asyncio.gather(*carrying)

    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        starting = asyncio.start_server(carry, "127.0.0.1", 0, ssl=context)
        listening = asyncio.run_coroutine_threadsafe(starting, loop).result()
        try:
            yield int(listening.sockets[0].getsockname()[1])
        finally:
            asyncio.run_coroutine_threadsafe(end(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()

"""Telling a web address that a brief is ready, signed as the Standard Webhooks specification says.

Headers ``webhook-id`` (the event's, the same whenever it is sent again), ``webhook-timestamp`` (seconds since
1970) and ``webhook-signature`` (``v1,`` and the base64 of HMAC-SHA256 over ``id.timestamp.body``): receivers check
them with any library of that specification.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import logging
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx2
import orjson

from foreword.errors import BadSettings
from tasks.tools import Refused, Webhook
from worker.breaker import Breaker

SECONDS = 10.0
"""For the receiver to answer: it takes the event and works on it later."""

LARGEST_ANSWER, DRAIN_SECONDS = 65_536, 1.0
"""Bytes that are read of an answer, and for how long: its status is all that is of interest."""

TYPE = "brief.ready"

BUSY = 429

PREFIX = "whsec_"


def key_of(secret: str) -> bytes:
    """The key in a secret: what follows ``whsec_`` is base64.

    Raises:
        BadSettings: it is no such secret. The message does not quote it.
    """
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) < _LEAST_BYTES:
        raise BadSettings(
            f"a webhook's secret is {PREFIX} and the base64 of {_LEAST_BYTES} bytes or more;"
            " `openssl rand -base64 32` prints such bytes"
        )
    return key


_LEAST_BYTES = 24


def signature(key: bytes, name: str, timestamp: int, body: bytes) -> str:
    """The header's value."""
    signed = hmac.new(key, f"{name}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


@dataclass(slots=True)
class Receiver:
    """A web address that takes events. Connections are opened for the first one, and kept for the others; one that
    is down is left alone for a while.
    """

    url: str = field(repr=False)  # may hold a token
    key: bytes = field(repr=False)
    seconds: float = SECONDS
    breaker: Breaker = field(default_factory=Breaker)
    _opened: "tuple[asyncio.Runner, httpx2.AsyncClient] | None" = field(default=None, repr=False)

    def deliver(self, name: str, event: Mapping[str, Any]) -> None:
        """Deliver an event under its id.

        Raises:
            Refused: it was not taken.
        """
        left = self.breaker.left()
        if left:
            raise Refused(
                f"the receiver is left alone for {left:.0f} s: it failed {self.breaker.most} times in a row"
            )
        now = datetime.now(UTC)
        at = int(now.timestamp())
        body = orjson.dumps({"type": TYPE, "timestamp": now.isoformat(timespec="seconds"), "data": event})
        headers = {
            "content-type": "application/json",
            "user-agent": "foreword",
            "webhook-id": name,
            "webhook-timestamp": str(at),
            "webhook-signature": signature(self.key, name, at, body),
        }
        runner, client = self._opened = self._opened or _opened()
        try:
            status = runner.run(_posted(client, self.url, body, headers, self.seconds))
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            self.breaker.note(answered=False)
            raise Refused(f"the receiver did not answer: {type(error).__name__}") from error
        except BaseException:  # from outside: half a request must not wake up in the next one
            self.close()
            raise
        self.breaker.note(answered=status < 500 and status != BUSY)
        if not 200 <= status < 300:
            raise Refused(f"the receiver answered {status}")

    def close(self) -> None:
        """Close connections. Delivering again opens new ones."""
        opened, self._opened = self._opened, None
        if opened is not None:
            runner, client = opened
            with runner:
                runner.run(client.aclose())


def _opened() -> "tuple[asyncio.Runner, httpx2.AsyncClient]":
    for name in ("httpx2", "httpcore2"):  # they log addresses, with the token in it
        logging.getLogger(name).setLevel(logging.WARNING)
    # No time-out of the client's own: each is for a step, and who trickles never ends.
    return asyncio.Runner(), httpx2.AsyncClient(timeout=None, follow_redirects=False)


async def _posted(
    client: "httpx2.AsyncClient", url: str, body: bytes, headers: Mapping[str, str], seconds: float
) -> int:
    """The status of the answer, within ``seconds``. The rest of it is read so that the connection can be used
    again, if it is short.
    """
    async with asyncio.timeout(seconds):
        request = client.build_request("POST", url, content=body, headers=headers)
        answer = await client.send(request, stream=True)
    try:
        with suppress(httpx2.HTTPError, TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                left = LARGEST_ANSWER
                async for piece in answer.aiter_raw():
                    left -= len(piece)
                    if left <= 0:
                        break
    finally:
        await answer.aclose()
    return answer.status_code


@contextmanager
def webhook(url: str, secret: str) -> Iterator[Webhook]:
    """Deliver events to ``url``, for the length of a block.

    Raises:
        BadSettings: the secret is none.
    """
    with closing(Receiver(url, key_of(secret))) as receiver:
        yield receiver.deliver

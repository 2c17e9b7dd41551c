"""Telling a web address that a brief is ready, signed as the Standard Webhooks specification says.

Headers ``webhook-id`` (the event's, the same whenever it is sent again), ``webhook-timestamp`` (seconds since
1970) and ``webhook-signature`` (``v1,`` and the base64 of HMAC-SHA256 over ``id.timestamp.body``): receivers check
them with any library of that specification.
"""

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2
import orjson

from foreword.errors import BadSettings
from tasks.tools import Refused, Webhook

SECONDS = 10.0
"""For the receiver to answer: it takes the event and works on it later."""

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


@contextmanager
def webhook(url: str, secret: str) -> Iterator[Webhook]:
    """Deliver events to ``url``, over connections that are kept for the length of a block.

    Raises:
        BadSettings: the secret is none.
    """
    key = key_of(secret)
    with httpx2.Client(timeout=SECONDS, follow_redirects=False) as client:

        def deliver(name: str, event: Mapping[str, Any]) -> None:
            now = int(time.time())
            body = orjson.dumps({"type": "brief.ready", "timestamp": now, "data": event})
            headers = {
                "content-type": "application/json",
                "webhook-id": name,
                "webhook-timestamp": str(now),
                "webhook-signature": signature(key, name, now, body),
            }
            try:
                with client.stream("POST", url, content=body, headers=headers) as answer:
                    if not answer.is_success:  # what it says is not read: it may say anything, at any length
                        raise Refused(f"the receiver answered {answer.status_code}")
            except httpx2.HTTPError as error:
                raise Refused(f"the receiver did not answer: {type(error).__name__}") from error

        yield deliver

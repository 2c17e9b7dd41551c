"""What a job works with. Opened by the composition root, one set per process, never shared across a fork."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from foreword.codec import Dumps, Loads, dumps
from foreword.dates import today
from foreword.errors import ForewordError
from foreword.kinds import Registry
from foreword.lines import DEFAULT_BUDGET
from foreword.ports import Store
from foreword.tokens import Counter, count
from loaders.connection import Connection
from loaders.project import Statements
from loaders.shelf import ModelCall
from prompts.words import Ask
from tasks.reports import Note, unnoted

BUNDLE_DAYS = 30
"""After which an unread, unbuilt bundle may be collected. Nothing depends on it."""


class Model(Protocol):
    """Something that writes."""

    def asker(
        self, prompt: str, record: Callable[[ModelCall], None], *, deadline: Callable[[], float] | None = None
    ) -> Ask:
        """A function that puts messages to it, each time within as many seconds as ``deadline`` then says. Every
        call is recorded.
        """


Webhook = Callable[[str, Mapping[str, Any]], None]
"""Delivers an event under its id; raises Refused where it was not taken."""


class Refused(ForewordError):
    """A receiver did not take an event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Attributes:
    connection, statements: the database, and the loader's SQL compiled for it.
    store: where bundles are published.
    zone: the zone of projects that name none.
    budget: tokens of the published text.
    ttl: seconds until a bundle may be collected.
    as_of: a fixed as-of date instead of the clock's, for datasets with a date of their own.
    model: writes the words of briefs, if there is one.
    webhook: tells somebody outside that a brief is ready, if there is somebody.
    note: hears of every build, brief and call of a model that has ended.
    count, dumps, loads, now: the tokenizer, JSON's encoder and decoder, the clock.
    """

    connection: Connection
    statements: Statements
    store: Store
    zone: ZoneInfo
    budget: int = DEFAULT_BUDGET
    ttl: int = BUNDLE_DAYS * 86_400
    as_of: date | None = None
    count: Counter = count
    dumps: Dumps = dumps
    loads: Loads = json.loads
    now: Callable[[], float] = time.time
    model: Model | None = None
    webhook: Webhook | None = None
    note: Note = unnoted

    @property
    def channels(self) -> tuple[str, ...]:
        """On which it is told that a brief is ready."""
        return ("stream", "webhook") if self.webhook is not None else ("stream",)

    @property
    def kinds(self) -> Registry:
        """The kinds that the database was inspected for."""
        return self.statements.catalog.kinds

    def today(self, zone: ZoneInfo) -> date:
        """The as-of date in a zone."""
        return self.as_of or today(datetime.fromtimestamp(self.now(), UTC), zone)

"""What holds at every moment, not only in the end: an edit stands in the log or in the bundle.

A build forgets log rows after it has published, never before. So whoever looks first into the database and then
into Redis finds every committed edit in the one or the other, and no build on record that Redis does not have.
Random faults seldom strike between two steps of a build; this look sees the wrong order without any fault.
"""

import threading
from collections import defaultdict
from contextlib import suppress
from typing import Any

import psycopg
import redis
from chaos.journal import Edit, Journal, visible
from chaos.people import Population
from chaos.watch import Era, Findings, guarded

from foreword import codec, keys
from foreword.stamp import Stamp

LOOK_SECONDS = 0.03

_LOGGED = "select project_id::text, txid::text::bigint from fw_changes"
_RECORDED = "select project_id::text, generation from fw_projects"

_Connection = psycopg.Connection[tuple[Any, ...]]


class Auditor:
    """Compares edits, log and bundles, again and again."""

    def __init__(
        self,
        urls: tuple[str, str],
        people: Population,
        journal: Journal,
        findings: Findings,
        era: Era,
        stop: threading.Event,
    ) -> None:
        database, cache = urls
        self._url = database
        self._client = redis.Redis.from_url(cache, socket_timeout=3, socket_connect_timeout=2)
        self._people, self._journal, self._findings, self._era = people, journal, findings, era
        self._stop = stop
        self._whole: dict[str, int] = {}  # the era in which a project's bundle was last as recorded, or newer
        self.looks = 0
        self.thread = guarded("auditor", self._run, findings)

    def _run(self) -> None:
        while not self._stop.wait(0.2):
            with (
                suppress(psycopg.Error, redis.RedisError, OSError),
                psycopg.connect(
                    self._url, autocommit=True, connect_timeout=5, application_name="auditor"
                ) as connection,
            ):
                while not self._stop.wait(LOOK_SECONDS):
                    self._look(connection)
        self._client.close()

    def _look(self, connection: _Connection) -> None:
        era, waiting = self._era.number, self._journal.waiting()
        logged: dict[str, set[int]] = defaultdict(set)
        # Before the log: what a build forgets there is on record here, or will be.
        recorded: dict[str, int] = dict(connection.execute(_RECORDED).fetchall())
        for project, transaction in connection.execute(_LOGGED):
            logged[project].add(transaction)
        stamps = self._stamps()
        if era % 2 or era != self._era.number:
            return
        self.looks += 1
        for project, stamp in stamps.items():
            if stamp is not None and stamp.generation >= recorded.get(project, 0):
                self._whole[project] = era
            elif self._whole.get(project) == era:
                self._findings.add(
                    "cache-first", f"{project}: generation {recorded.get(project)} on record, Redis has {stamp}"
                )
            if stamp is not None and self._whole.get(project) == era:
                self._compare(stamp, waiting.get(project, ()), project, logged[project])

    def _stamps(self) -> dict[str, Stamp | None]:
        with self._client.pipeline(transaction=False) as pipe:
            for project in self._people.all:
                pipe.hget(keys.project(project.id), keys.META)
            found = pipe.execute()
        return {p.id: codec.decode_stamp(raw) for p, raw in zip(self._people.all, found, strict=True)}

    def _compare(self, stamp: Stamp, waiting: "list[Edit] | tuple[()]", project: str, logged: set[int]) -> None:
        for edit in waiting:
            if edit.transaction not in logged and not visible(stamp.snapshot, edit.transaction):
                self._findings.add(
                    "log-or-bundle",
                    f"{project}: edit {edit.number} ({edit.token}; {', '.join(edit.operations)}) is in neither;"
                    f" the bundle is generation {stamp.generation}, {stamp.snapshot}",
                )

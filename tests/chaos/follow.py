"""A long chat: it has read a bundle, and keeps up with what changes (``Reader.changes``) instead of reading again.

What it has put together must be what the bundle of that version says. "Too old" is an answer; a gap is not.
"""

import threading
from collections.abc import Mapping
from random import Random
from typing import Any

import redis
from chaos.people import Population
from chaos.watch import Findings, guarded

from foreword.changes import HANDLE, KIND, facts_of
from foreword.reader import TRUSTED, Changes, Context, Reader

Facts = dict[str, dict[str, Any]]


class Follower:
    """Follows one project after the other, each for a few versions."""

    def __init__(self, url: str, people: Population, findings: Findings, stop: threading.Event) -> None:
        self._client = redis.Redis.from_url(url, socket_timeout=5, socket_connect_timeout=2)
        self._reader = Reader(self._client, asks=False)  # or it would bring back what is missing
        self._people, self._findings, self._stop = people, findings, stop
        self._dice = Random(people.seed)
        self.followed = 0
        self.too_old = 0
        self.thread = guarded("follower", self._run, findings)

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            try:
                self._follow(self._dice.choice(self._people.projects).id)
            except (redis.RedisError, OSError):
                self._stop.wait(0.2)
        self._client.close()

    def _follow(self, project: str) -> None:
        seen = self._reader.bundle(project, actor=TRUSTED)
        if not seen or self._stop.wait(self._dice.uniform(0.2, 3)):
            return
        news = self._reader.changes(project, since=seen.version, actor=TRUSTED)
        now = self._reader.bundle(project, actor=TRUSTED)
        if news.status == "ok" and now.version == news.version:
            self.followed += 1
            self._compare(project, seen, news, now)
        self.too_old += news.status == "too old"

    def _compare(self, project: str, seen: Context, news: Changes, now: Context) -> None:
        told, shown = applied(_told(seen.data), news), _told(now.data)
        wrong = sorted(e for e in told.keys() | shown.keys() if told.get(e) != shown.get(e))
        if wrong:
            one, way = wrong[0], f"{project} from {seen.version} to {now.version}"
            self._findings.add("changes", f"{way}: {one}: told {told.get(one)}, is {shown.get(one)}")


def _told(data: Mapping[str, Any]) -> Facts:
    """Without what names an entity: an id that goes from one table to another keeps its name in a difference."""
    facts = facts_of(data)
    return {e: {k: v for k, v in f.items() if v is not None and k not in {HANDLE, KIND}} for e, f in facts.items()}


def applied(facts: Facts, news: Changes) -> Facts:
    """Facts brought up to date, by the plain meaning of a difference."""
    found = {entity: dict(record) for entity, record in facts.items() if entity not in news.gone}
    for entity, record in news.added.items():
        found[entity] = {k: v for k, v in record.items() if v is not None and k not in {HANDLE, KIND}}
    for entity, change in news.changed.items():
        for name, (_, new) in change["fields"].items():
            found[entity].pop(name, None)
            if new is not None:
                found[entity][name] = new
    return found

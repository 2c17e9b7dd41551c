"""The relay: turns dirty projects into wake-up calls. Many may run, one leads; which one matters to nobody.

Polling is the correctness. Three things that may hang are kept out of the loop's way, each in a thread of its own:
the broker (``_Sender``), Redis (``_Watch``), and building itself (``worker.builders``, which takes what was sent
and never begun). What the loop claims stands in the database, so that nothing here has to be remembered.
"""

import queue
import secrets
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from datetime import date
from functools import partial
from typing import Any

import redis
from celery import Celery

from foreword import codec, keys
from foreword.errors import BadInput, ForewordError
from foreword.handles import reference_of, uuid_of
from foreword.store import WANT
from loaders import claims
from loaders.announcements import STREAM, WEBHOOK
from loaders.catalog import inspect
from loaders.claims import EDITS, EVERYTHING, LEADER_SECONDS, SWEEP, THE_SWEEP, Claim, Term
from loaders.connection import Connection, connect
from loaders.watch import unwatched
from worker.app import BRIEF, BRIEFS, FOCUS, REBUILD
from worker.auditor import Auditor
from worker.builders import Builders
from worker.events import emit
from worker.heralds import WINDOW as BRIEFS_WINDOW
from worker.heralds import Dispatcher, Herald
from worker.outage import Outage
from worker.pulse import Pulse
from worker.settings import Settings
from worker.wiring import Services, probe

POLL_SECONDS, REST_SECONDS = 0.03, 1.0
"""An idle look costs a quarter of a millisecond. Looking does not take more than half of the time; but after one
that PostgreSQL held up for minutes nobody rests for minutes.
"""

FOLLOW_SECONDS = 0.5
"""Between looks whether the leader is still there."""

LEAVE_SECONDS = 2
"""For a last statement, of a relay that was told to end."""

CHORES_SECONDS = 1.0
UNBUILT_SECONDS = 30.0
RECONNECT_SECONDS = (0.1, 0.2, 0.5, 1.0)

WISH_SECONDS = 0.1
WISHES = 200
FOCUS_AT_ONCE = 4
"""Focus bundles sent for in one look; who is not among them wishes again."""

RECORDED_SECONDS = 0.2
"""Until a build that was published is on record, if its builder is well."""

MARKER_SECONDS = 1.0
REDIS_SECONDS = 1.0
"""For Redis to answer the relay. While it does not, nothing is claimed: it could not be published."""


def windows(edits: int) -> Mapping[str, int]:
    """Messages under way and not begun, by lane: enough that workers never wait, and so few that a new edit never
    waits behind many.
    """
    return {EDITS: edits, SWEEP: max(edits // 4, 1)}


class Relay:
    """One relay. ``app`` None: every build is done by the builders, without Celery."""

    def __init__(self, settings: Settings, services: Services, app: Celery | None, builders: Builders) -> None:
        self._services = services
        self._builders = builders
        self._name = secrets.token_hex(8)
        self._over = threading.Event()
        self._windows = windows(settings.window)
        self._sender = _Sender(app, sum(self._windows.values())) if app is not None else None
        self._dispatcher = Dispatcher(settings, services, self._over, self._have_made)
        self._herald = Herald(settings, services, self._over, STREAM)
        self._courier = Herald(settings, services, self._over, WEBHOOK) if settings.webhook_url else None
        self._auditor = Auditor(services, self._over, settings.audit_seconds, builders.audit)
        self.pulse = Pulse("relay", settings.health, name=self._name)
        self._watch = _Watch(services, self._over, self._sender, self._herald, self.pulse)
        self._term: Term | None = None
        self._role = ""
        self._from = claims.FIRST
        self._outage = Outage("relay")

    def run(self) -> None:
        """Relay until interrupted, over as many connections as it takes."""
        led = [self._watch, self._dispatcher, self._herald, self._auditor]
        threads = [*led, *filter(None, [self._courier, self._sender])]
        try:
            for thread in threads:
                thread.start()
            failures = 0
            while True:
                self.pulse.beat()
                began = time.monotonic()
                try:
                    with closing(connect(self._services.database_url)) as connection:
                        self._relay(connection)
                except ForewordError as error:
                    self._resigned()
                    if times := self._outage.failed(error):
                        emit("relay_interrupted", error=str(error), times=times)
                failures = 0 if time.monotonic() - began > LEADER_SECONDS else failures + 1
                self._over.wait(RECONNECT_SECONDS[min(failures, len(RECONNECT_SECONDS) - 1)])
        finally:
            self._over.set()
            self._leave()
            if self._sender is not None:
                self._sender.stop()
            self.pulse.end()
            for thread in threads:
                thread.join(REDIS_SECONDS + 1)

    def _relay(self, connection: Connection) -> None:
        statements = claims.compile_claims(inspect(connection))
        chores = _Chores(connection, statements)
        led = 0.0
        try:
            while True:
                self.pulse.beat()
                if self._watch.redis_answers:  # they do not start without, and have nothing to do
                    self._builders.keep()
                began = time.monotonic()
                if began - led >= FOLLOW_SECONDS:
                    self._look_who_leads(connection)
                    led = began
                if self._term is None:
                    self._over.wait(FOLLOW_SECONDS)
                    continue
                chores.do()
                if self._watch.redis_answers:
                    self._round(connection, statements, self._term)
                self._over.wait(min(max(POLL_SECONDS, time.monotonic() - began), REST_SECONDS))
        except ForewordError:
            if not connection.closed:
                with suppress(ForewordError):
                    claims.resign(connection, self._name)
            raise
        finally:
            self._resigned()

    def _leave(self) -> None:
        """Let another lead at once. Over a session of its own: the relay's was interrupted in the middle of
        something, and whoever asked anything of it might wait for ever.
        """
        with (
            suppress(ForewordError),
            closing(connect(self._services.database_url, statement_seconds=LEAVE_SECONDS)) as connection,
        ):
            claims.resign(connection, self._name)

    def _look_who_leads(self, connection: Connection) -> None:
        self._serve(claims.lead(connection, self._name))
        self._outage.went()
        role = "leads" if self._term else "follows"
        if role != self._role:
            emit("relay_leads") if self._term else emit("relay_follows")
            self._role = role

    @property
    def leads(self) -> bool:
        """Whether this relay is the one that does."""
        return self._term is not None

    def _resigned(self) -> None:
        self._serve(None)

    def _serve(self, term: Term | None) -> None:
        if self._courier is not None:
            self._courier.term = term
        self._term = self._watch.term = self._dispatcher.term = self._herald.term = self._auditor.term = term

    def _round(self, connection: Connection, statements: claims.Statements, term: Term) -> None:
        """Claim what is due. The sweep goes on beside the edits, and as fast as they leave room for it."""
        if term.paused >= EVERYTHING:
            return
        found = claims.dirty(connection, self._from)
        self._from = found[-1][0] if len(found) >= claims.PAGE else claims.FIRST
        taken = claims.claim(connection, statements, EDITS, self._windows[EDITS], found)
        if term.paused < THE_SWEEP and len(taken) < self._windows[EDITS]:
            swept = claims.claim(connection, statements, SWEEP, self._windows[SWEEP], [])
        else:
            swept = []
        for lane, claimed in ((EDITS, taken), (SWEEP, swept)):
            for claim in claimed:
                self._have_built(claim, lane)

    def _have_built(self, claim: Claim, lane: str) -> None:
        """What was sent and not begun was lost, or waits behind others: the builders take it. Their pipe is full
        only if they hang, and then it is claimed again.
        """
        sender = self._sender if claim.sends == 1 else None
        if sender is None or not sender.send(REBUILD, [claim.project_id], lane):
            self._builders.build(claim.project_id)

    def _have_made(self, user: str, day: date, by_a_worker: bool) -> None:  # noqa: FBT001 - it is a Send
        """Likewise of a brief."""
        sender = self._sender if by_a_worker else None
        if sender is None or not sender.send(BRIEF, [user, day.isoformat()], BRIEFS):
            self._builders.make(user, day)


class _Chores:
    """What is to be done now and then."""

    def __init__(self, connection: Connection, statements: claims.Statements) -> None:
        self._connection = connection
        self._statements = statements
        self._done = self._found = 0.0

    def do(self) -> None:
        now = time.monotonic()
        if now - self._done < CHORES_SECONDS:
            return
        self._done = now
        for project in claims.take_over(self._connection):
            emit("build_taken_over", project=project)
        for project in claims.park(self._connection):
            emit("project_parked", project=project)
        claims.find_earlier(self._connection)
        if not self._found or now - self._found >= UNBUILT_SECONDS:
            self._found = now
            if found := claims.find_unbuilt(self._connection, self._statements):
                emit("projects_to_be_built", found=found)
            if blind := unwatched(self._connection):
                emit("tables_not_watched", tables=" ".join(blind))


class _Sender(threading.Thread):
    """Sends messages, however long the broker takes. What it cannot send is not lost: nobody will begin it."""

    def __init__(self, app: Celery, window: int) -> None:
        super().__init__(name="sender", daemon=True)
        self._app = app
        self._outage = Outage("sender")
        self._queue: queue.Queue[tuple[str, list[str], str] | None] = queue.Queue(2 * (window + BRIEFS_WINDOW))

    def send(self, job: str, arguments: list[str], lane: str) -> bool:
        """Have a message sent; False where the broker takes none."""
        try:
            self._queue.put_nowait((job, arguments, lane))
        except queue.Full:
            return False
        return True

    def stop(self) -> None:
        with suppress(queue.Full):
            self._queue.put_nowait(None)

    def run(self) -> None:
        while (message := self._queue.get()) is not None:
            job, arguments, lane = message
            try:
                self._app.send_task(job, args=arguments, queue=lane, retry=False)
                self._outage.went()
            except Exception as error:  # noqa: BLE001 - whatever the broker's client raises: the lease ends
                if times := self._outage.failed(error):
                    emit("message_not_sent", job=job, error=_first_line(error), times=times)


class _Watch(threading.Thread):
    """Watches Redis: whether it answers, whether it is the one that was published to, and what readers miss."""

    def __init__(
        self,
        services: Services,
        stop: threading.Event,
        sender: _Sender | None,
        herald: Herald,
        pulse: Pulse,
    ) -> None:
        super().__init__(name="watch", daemon=True)
        self._pulse = pulse
        self._herald = herald
        self.redis_answers = False
        self.term: Term | None = None
        self._services = services
        self._over = stop
        self._sender = sender
        self._interrupted, self._silence = Outage(self.name), Outage("redis")

    def run(self) -> None:
        while not self._over.is_set():
            try:
                with self._client() as client, closing(connect(self._services.database_url)) as connection:
                    self._look(client, connection)
            except ForewordError as error:
                if times := self._interrupted.failed(error):
                    emit("thread_interrupted", thread=self.name, error=str(error), times=times)
                self._over.wait(RECONNECT_SECONDS[-1])
            except Exception:  # noqa: BLE001 - whatever it is, it is looked again
                self.redis_answers = False
                emit("thread_failed", thread=self.name, exception=traceback.format_exc())
                self._over.wait(RECONNECT_SECONDS[-1])

    def _client(self) -> "redis.Redis":
        return redis.Redis.from_url(
            self._services.redis_url, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS
        )

    def _look(self, client: "redis.Redis", connection: Connection) -> None:
        """Look again and again, over one session of PostgreSQL, through whatever Redis does."""
        statements = claims.compile_claims(inspect(connection))
        # Our session is new: PostgreSQL may have crashed meanwhile, whose start does not tell.
        anew, looked = True, 0.0
        while not self._over.is_set():
            try:
                if time.monotonic() - looked >= MARKER_SECONDS:
                    probe(client)
                    client.script_load(WANT)  # so that readers, who may load none, can wish
                    self.redis_answers = True
                    looked = time.monotonic()
                    self._pulse.tell(client)
                    if self.term is not None:
                        _verify(client, connection, self.term, anew=anew)
                        anew = False
                if self.term is not None and self.redis_answers:
                    self._grant(client, connection, statements, self.term.epoch)
                self._interrupted.went()
                self._silence.went()
            except (redis.RedisError, OSError) as error:
                if times := self._silence.failed(error):
                    emit("redis_does_not_answer", error=_first_line(error), times=times)
                self.redis_answers = False
            self._over.wait(WISH_SECONDS)

    def _grant(
        self, client: "redis.Redis", connection: Connection, statements: claims.Statements, epoch: int
    ) -> None:
        """Ask for what readers miss. A wish that is lost on the way is wished again."""
        found: Any = client.spop(keys.WANTED, WISHES)
        for user, day in filter(None, map(_brief_wish, found)):
            self._herald.copy(user, day)
        wishes = {wish for raw in found if (wish := _wish(raw)) is not None}
        if not wishes:
            return
        projects = sorted({project for project, _ in wishes})
        claims.wish(connection, statements, projects, partial(_generations, client, epoch=epoch))
        focus = [[project, reference] for project, reference in sorted(wishes) if reference]
        if self._sender is not None:
            for arguments in focus[:FOCUS_AT_ONCE]:
                self._sender.send(FOCUS, arguments, EDITS)


def _brief_wish(raw: Any) -> tuple[str, date | None] | None:
    """(user, date or None for the latest) of a member of WANTED that asks for a brief."""
    what, _, wished = _said(raw)
    user, _, day = wished.partition(" ")
    try:
        return (uuid_of(user, "user"), date.fromisoformat(day) if day else None) if what == keys.BRIEF else None
    except (BadInput, ValueError):
        return None


def _said(raw: Any) -> tuple[str, str, str]:
    return (raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)).partition(" ")


def _wish(raw: Any) -> tuple[str, str] | None:
    """(project, reference or nothing) of a member of WANTED; None for what no reader of ours has put there."""
    project, _, reference = _said(raw)
    try:
        return uuid_of(project, "project"), reference_of(reference) if reference else ""
    except BadInput:
        return None


def _generations(client: "redis.Redis", projects: Sequence[str], epoch: int | None = None) -> list[int]:
    """The generations that stand in Redis, 0 where there is none, or none of the epoch."""
    with client.pipeline(transaction=False) as pipe:
        for project in projects:
            pipe.hget(keys.project(project), keys.META)
        stamps = map(codec.decode_stamp, pipe.execute())
        return [stamp.generation if stamp is not None and epoch in {None, stamp.epoch} else 0 for stamp in stamps]


def _verify(client: "redis.Redis", connection: Connection, term: Term, *, anew: bool) -> None:
    """Compare what was published to another Redis, in another epoch, or before PostgreSQL started, with what
    stands in this one. The marker is read before the comparison, and goes on record with its outcome.
    """
    found, marker = _marker(client, term, anew=anew)
    bundles = missing = 0
    waited = False
    while rows := claims.unverified(connection, marker):
        stored = _generations(client, [project for project, _ in rows], term.epoch)
        waited = not waited and any(there > known for (_, known), there in zip(rows, stored, strict=True))
        if waited:
            time.sleep(RECORDED_SECONDS)  # published, and on record in a moment; else another database's
            continue
        compared = [(*row, row[1] == there) for row, there in zip(rows, stored, strict=True)]
        claims.verified(connection, marker, compared)
        lacks = sum(not there for *_, there in compared)
        if lacks and not (found or missing):  # one that is empty is no news where nothing was published to it
            emit("redis_is_new", marker=marker)
        bundles, missing = bundles + len(rows), missing + lacks
    if missing or (bundles and (anew or not _is_of_now(found, marker))):
        _tell_compared(bundles, missing)
    if client.hexists(keys.MARKER, keys.FILLING) and not claims.due_again(connection):
        client.hdel(keys.MARKER, keys.FILLING)


def _tell_compared(bundles: int, missing: int) -> None:
    if missing:
        emit("bundles_missing", bundles=bundles, missing=missing)
    else:
        emit("redis_compared", bundles=bundles)


def _marker(client: "redis.Redis", term: Term, *, anew: bool) -> tuple[str, str]:
    """The marker of Redis as it was found, empty where there is none, and as it is now: a new one where it is gone
    or of another time, or is wanted ``anew``.
    """
    servers = client.info("server").get("run_id", ""), client.info("replication").get("master_replid", "")
    of_now = ".".join(map(str, [term.epoch, term.started, *servers, ""]))
    found = codec.decode_line(client.hget(keys.MARKER, keys.VALUE))
    known = found.startswith(of_now)
    if known and not anew:
        return found, found
    marker = of_now + secrets.token_hex(8)
    if not known:  # in this order: who sees the new marker sees that it is not all there
        client.hset(keys.MARKER, keys.FILLING, 1)
    client.hset(keys.MARKER, keys.VALUE, marker)
    return found, marker


def _is_of_now(found: str, marker: str) -> bool:
    """Whether two markers differ in nothing but what makes each one new."""
    return found.rpartition(".")[0] == marker.rpartition(".")[0]


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]

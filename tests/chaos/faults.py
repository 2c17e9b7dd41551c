"""What strikes: a declared table of faults, a plan drawn from the seed, and how each is done to a world.

A fault is a context: what it does on entering, it undoes on leaving. The plan says when, which, for how long, and
has dice for whom it strikes; who is there to be struck then is a matter of timing.
"""

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import psutil
import psycopg
import redis
from chaos.proxy import Trap

if TYPE_CHECKING:
    from chaos.crew import Wired
    from chaos.proxy import Link
    from chaos.servers import Server
    from chaos.world import World

Strike = Callable[["World", Random], AbstractContextManager[None]]


class Missed(Exception):
    """There was nobody to strike, or somebody else strikes there already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Attributes:
    name: as it is asked for and counted.
    weight: how often beside the others.
    lasts: seconds, from and to.
    what: where it strikes; two faults do not strike one server at once. Empty: anywhere.
    strike: how.
    """

    name: str
    weight: float
    lasts: tuple[float, float]
    strike: Strike
    what: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A fault at its time: seconds from the beginning, and seconds that it lasts."""

    at: float
    fault: Fault
    lasts: float
    dice: int


# ---- processes


def _member(world: "World", dice: Random, *roles: str) -> "Wired":
    running = [member for role in roles for member in world.crew.of(role)]
    if not running:
        raise Missed
    return dice.choice(running)


def _killed(*roles: str) -> Strike:
    """SIGKILL to a main process. Its children live on without it for a while."""

    @contextmanager
    def strike(world: "World", dice: Random) -> Iterator[None]:
        member = _member(world, dice, *roles)
        world.crew.bereave(member.children)
        member.shot = True
        member.send(signal.SIGKILL)
        yield

    return strike


def _told(*roles: str) -> Strike:
    """SIGTERM: it may finish what it does."""

    @contextmanager
    def strike(world: "World", dice: Random) -> Iterator[None]:
        member = _member(world, dice, *roles)
        world.crew.bereave(member.children)
        member.shot = True
        member.send(signal.SIGTERM)
        yield

    return strike


def _child(world: "World", dice: Random) -> psutil.Process:
    """Of workers, and the builders of relays."""
    children = [
        child for role in ("worker", "relay") for member in world.crew.of(role) for child in member.children
    ]
    if not children:
        raise Missed
    return dice.choice(children)


@contextmanager
def _child_killed(world: "World", dice: Random) -> Iterator[None]:
    with suppress(psutil.Error):
        _child(world, dice).kill()
    yield


@contextmanager
def _stopped(processes: list[psutil.Process]) -> Iterator[None]:
    """SIGSTOP, and later SIGCONT: the best writer of late things."""
    for process in processes:
        with suppress(psutil.Error):
            process.suspend()
    try:
        yield
    finally:
        for process in processes:
            with suppress(psutil.Error):
                process.resume()


def _child_stopped(world: "World", dice: Random) -> AbstractContextManager[None]:
    return _stopped([_child(world, dice)])


def _head_stopped(*roles: str) -> Strike:
    def strike(world: "World", dice: Random) -> AbstractContextManager[None]:
        head = _member(world, dice, *roles).head
        return _stopped([head] if head else [])

    return strike


def _all_stopped(world: "World", dice: Random) -> AbstractContextManager[None]:
    """A whole worker, as when its machine swaps."""
    member = _member(world, dice, "worker")
    return _stopped([process for process in [member.head, *member.children] if process is not None])


# ---- servers


@contextmanager
def _down(server: "Server", number: signal.Signals, *, family: bool = False) -> Iterator[None]:
    """Ended by a signal, and started again."""
    server.end(number, family=family)
    try:
        yield
    finally:
        server.start()


def _postgres_immediate(world: "World", dice: Random) -> AbstractContextManager[None]:
    """Immediate shutdown: no checkpoint, recovery at the next start."""
    del dice
    return _down(world.postgres, signal.SIGQUIT)


def _postgres_killed(world: "World", dice: Random) -> AbstractContextManager[None]:
    """SIGKILL to the postmaster, and now and then to every backend with it."""
    return _down(world.postgres, signal.SIGKILL, family=dice.random() < 0.5)


@contextmanager
def _backend_killed(world: "World", dice: Random) -> Iterator[None]:
    """SIGKILL to one backend: the server throws out everybody and recovers, without being started anew."""
    with psycopg.connect(world.database_url, autocommit=True, connect_timeout=5) as connection:
        rows = connection.execute(
            "select pid from pg_stat_activity where application_name like 'foreword%' order by pid"
        ).fetchall()
    if not rows:
        raise Missed
    with suppress(psutil.Error):
        psutil.Process(dice.choice(rows)[0]).kill()
    yield


@contextmanager
def _backends_ended(world: "World", dice: Random) -> Iterator[None]:
    """An operator ends sessions of the product."""
    with psycopg.connect(world.database_url, autocommit=True, connect_timeout=5) as connection:
        connection.execute(
            "select pg_terminate_backend(pid) from (select pid from pg_stat_activity"
            " where application_name like 'foreword%%' and pid <> pg_backend_pid() order by pid limit %s) some",
            [dice.choice((1, 2, 100))],
        )
    yield


def _postgres_hung(world: "World", dice: Random) -> AbstractContextManager[None]:
    del dice
    return _stopped(world.postgres.family())


@contextmanager
def _cache_killed(world: "World", dice: Random) -> Iterator[None]:
    """A cache with a log comes back as it was; one without comes back empty."""
    del dice
    with world.emptied(really=not world.lasting), _down(world.cache, signal.SIGKILL):
        yield


@contextmanager
def _cache_told(world: "World", dice: Random) -> Iterator[None]:
    del dice
    with world.emptied(really=not world.lasting), _down(world.cache, signal.SIGTERM):
        yield


@contextmanager
def _cache_emptied(world: "World", dice: Random) -> Iterator[None]:
    del dice
    with world.emptied(), redis.Redis.from_url(world.cache_url, socket_timeout=5) as client:
        client.flushall()
    yield


@contextmanager
def _cache_put_back(world: "World", dice: Random) -> Iterator[None]:
    """A fail-over to a replica that lacks the last seconds: the same keys, an earlier time, another server."""
    if not world.lasting:
        raise Missed
    copy = world.home / "replica"
    shutil.rmtree(copy, ignore_errors=True)
    world.cache.keep_files(copy)
    world.healing.wait(dice.uniform(0.5, 3.0))
    with world.emptied():
        world.cache.end(signal.SIGKILL)
        world.cache.put_files(copy)
        world.cache.start()
    yield


@contextmanager
def _cache_full(world: "World", dice: Random) -> Iterator[None]:
    """Redis takes no writes, and answers reads."""
    del dice
    with redis.Redis.from_url(world.cache_url, socket_timeout=5) as client:
        client.config_set("maxmemory", 1)
        try:
            yield
        finally:
            client.config_set("maxmemory", 0)


def _cache_hung(world: "World", dice: Random) -> AbstractContextManager[None]:
    del dice
    return _stopped(world.cache.family())


def _broker_killed(world: "World", dice: Random) -> AbstractContextManager[None]:
    return _down(world.broker, dice.choice((signal.SIGKILL, signal.SIGTERM)))


def _broker_hung(world: "World", dice: Random) -> AbstractContextManager[None]:
    del dice
    return _stopped(world.broker.family())


@contextmanager
def _broker_emptied(world: "World", dice: Random) -> Iterator[None]:
    del dice
    with redis.Redis.from_url(world.broker_url, socket_timeout=5) as client:
        client.flushall()
    yield


QUEUES = ("edits", "sweep", "briefs")


@contextmanager
def _tampered(world: "World", tamper: Callable[["redis.Redis", str], bool]) -> Iterator[None]:
    """Lay hands on messages for as long as it lasts. Queues are mostly empty, so this looks again and again."""
    hits = 0
    with redis.Redis.from_url(world.broker_url, socket_timeout=5) as client:
        for _ in range(400):
            hits += sum(tamper(client, queue) for queue in QUEUES)
            if world.healing.wait(0.005):
                break
    world.tampered += hits
    yield


def _dropped(world: "World", dice: Random) -> AbstractContextManager[None]:
    """Messages vanish from the queues."""

    def drop(client: "redis.Redis", queue: str) -> bool:
        return dice.random() < 0.7 and client.rpop(queue) is not None

    return _tampered(world, drop)


def _doubled(world: "World", dice: Random) -> AbstractContextManager[None]:
    """Messages come twice, the second time maybe much later."""
    kept: list[tuple[str, bytes]] = []

    def double(client: "redis.Redis", queue: str) -> bool:
        if kept and dice.random() < 0.2:
            late, old = kept.pop(dice.randrange(len(kept)))
            client.lpush(late, old)
            return True
        message: bytes | None = client.lindex(queue, 0)  # type: ignore[assignment]
        if message is None or dice.random() < 0.6:
            return False
        kept.append((queue, message))
        client.lpush(queue, message)
        return True

    return _tampered(world, double)


# ---- the network


def _links(world: "World", dice: Random) -> list["Link"]:
    """One process' way to one server; all its ways; or everybody's to one server."""
    members = world.crew.members
    which = dice.randrange(3)
    match dice.choice(("one", "one", "process", "server")):
        case "one":
            return [dice.choice(members).ways.all[which]]
        case "process":
            return [*dice.choice(members).ways.all]
    return [member.ways.all[which] for member in members]


def _link(disturb: Callable[["Link", Random], None], *, then: Callable[["Link"], None] | None = None) -> Strike:
    @contextmanager
    def strike(world: "World", dice: Random) -> Iterator[None]:
        links = _links(world, dice)
        for link in links:
            disturb(link, dice)
        try:
            yield
        finally:
            for link in links:
                if then is not None:
                    then(link)
                link.heal()

    return strike


# ---- the moment of publication


PUBLICATION = b"EVALSHA"
"""What a builder's publication begins with, and little else that it says to the cache."""

TRAP_SECONDS = 3.0
"""For somebody to publish."""


def spring(
    world: "World",
    make: Callable[["Wired"], Trap],
    begin: Callable[[], object] = bool,
    seconds: float = TRAP_SECONDS,
) -> None:
    """Wait for the next publication of any process, to which its trap does something at that very moment.
    ``begin`` is done when the traps are set: an edit, say, whose publication is waited for.
    """
    traps = [(member.ways.cache, make(member)) for member in world.crew.members]
    for link, trap in traps:
        link.arm(trap)
    try:
        begin()
        begun = time.monotonic()
        while not any(trap.sprung.is_set() for _, trap in traps):
            if world.healing.wait(0.005) or time.monotonic() - begun > seconds:
                raise Missed
    finally:
        for link, _ in traps:
            link.arm(None)


def _trap(make: Callable[["Wired", Random], Trap]) -> Strike:
    @contextmanager
    def strike(world: "World", dice: Random) -> Iterator[None]:
        spring(world, lambda member: make(member, dice))
        yield

    return strike


def _lost(_: "Wired", __: Random) -> Trap:
    """It never arrives."""
    return Trap(word=PUBLICATION, deliver=False)


def _unanswered(_: "Wired", __: Random) -> Trap:
    """It arrives, and its builder does not hear of it."""
    return Trap(word=PUBLICATION, answered=False)


def _zombie(member: "Wired", dice: Random) -> Trap:
    """It is under way for seconds; its session in PostgreSQL, and with it the lock, is lost at once. So others
    build what is newer before it arrives.
    """
    return Trap(word=PUBLICATION, hold=dice.uniform(2, 9), then=member.ways.postgres.cut)


def _builders_die(member: "Wired", dice: Random) -> Trap:
    """Builders die while it is under way: it arrives, or not."""

    def kill() -> None:
        for child in member.children:
            with suppress(psutil.Error):
                child.kill()

    return Trap(word=PUBLICATION, hold=0.2, deliver=dice.random() < 0.5, then=kill)


@contextmanager
def _postgres_crashes(world: "World", dice: Random) -> Iterator[None]:
    """PostgreSQL crashes while it is under way."""
    del dice
    spring(world, lambda _: Trap(word=PUBLICATION, hold=0.5))
    with _down(world.postgres, signal.SIGQUIT):
        yield


FAULTS: tuple[Fault, ...] = (
    Fault(name="child-kill", weight=6, lasts=(0, 0), strike=_child_killed),
    Fault(name="child-stop", weight=5, lasts=(0.5, 5), strike=_child_stopped),
    Fault(name="child-stop-long", weight=1, lasts=(21, 26), strike=_child_stopped),
    Fault(name="worker-kill", weight=4, lasts=(0, 0), strike=_killed("worker")),
    Fault(name="worker-term", weight=2, lasts=(0, 0), strike=_told("worker")),
    Fault(name="worker-stop", weight=2, lasts=(0.5, 6), strike=_head_stopped("worker")),
    Fault(name="worker-swap", weight=2, lasts=(0.5, 6), strike=_all_stopped),
    Fault(name="relay-kill", weight=5, lasts=(0, 0), strike=_killed("relay")),
    Fault(name="relay-term", weight=2, lasts=(0, 0), strike=_told("relay")),
    Fault(name="relay-stop", weight=4, lasts=(0.5, 6), strike=_head_stopped("relay")),
    Fault(name="postgres-immediate", weight=2, lasts=(0, 1.5), strike=_postgres_immediate, what="postgres"),
    Fault(name="postgres-kill", weight=2, lasts=(0, 1.5), strike=_postgres_killed, what="postgres"),
    Fault(name="backend-kill", weight=1.5, lasts=(0, 0), strike=_backend_killed, what="postgres"),
    Fault(name="backends-end", weight=3, lasts=(0, 0), strike=_backends_ended),
    Fault(name="postgres-hang", weight=1.5, lasts=(0.5, 4), strike=_postgres_hung, what="postgres"),
    Fault(name="cache-kill", weight=3, lasts=(0, 2), strike=_cache_killed, what="cache"),
    Fault(name="cache-term", weight=1, lasts=(0, 1), strike=_cache_told, what="cache"),
    Fault(name="cache-empty", weight=3, lasts=(0, 0), strike=_cache_emptied, what="cache"),
    Fault(name="cache-failover", weight=2, lasts=(0, 0), strike=_cache_put_back, what="cache"),
    Fault(name="cache-full", weight=1.5, lasts=(0.5, 4), strike=_cache_full, what="cache"),
    Fault(name="cache-hang", weight=2, lasts=(0.5, 5), strike=_cache_hung, what="cache"),
    Fault(name="broker-kill", weight=3, lasts=(0, 3), strike=_broker_killed, what="broker"),
    Fault(name="broker-empty", weight=2, lasts=(0, 0), strike=_broker_emptied, what="broker"),
    Fault(name="broker-hang", weight=2, lasts=(0.5, 5), strike=_broker_hung, what="broker"),
    Fault(name="drop", weight=5, lasts=(0, 0), strike=_dropped),
    Fault(name="double", weight=5, lasts=(0, 0), strike=_doubled),
    Fault(name="net-cut", weight=4, lasts=(0, 0), strike=_link(lambda link, _: link.cut())),
    Fault(name="net-refuse", weight=2, lasts=(0.2, 3), strike=_link(lambda link, _: link.refuse())),
    Fault(
        name="net-slow",
        weight=3,
        lasts=(1, 6),
        strike=_link(lambda link, dice: link.slow(dice.uniform(0.01, 0.2))),
    ),
    Fault(name="net-hold", weight=3, lasts=(0.5, 7), strike=_link(lambda link, _: link.hold())),
    Fault(
        name="net-hold-cut",
        weight=2,
        lasts=(0.5, 7),
        strike=_link(lambda link, _: link.hold(), then=lambda link: link.cut()),
    ),
    Fault(
        name="net-deaf",
        weight=3,
        lasts=(0.2, 4),
        strike=_link(lambda link, _: link.hold(up=False), then=lambda link: link.cut()),
    ),
    Fault(name="publish-zombie", weight=8, lasts=(0, 0), strike=_trap(_zombie), what="trap"),
    Fault(name="publish-kill", weight=3, lasts=(0, 0), strike=_trap(_builders_die), what="trap"),
    Fault(name="publish-lost", weight=4, lasts=(0, 0), strike=_trap(_lost), what="trap"),
    Fault(name="publish-deaf", weight=3, lasts=(0, 0), strike=_trap(_unanswered), what="trap"),
    Fault(name="publish-crash", weight=1.5, lasts=(0, 1), strike=_postgres_crashes, what="postgres"),
)
"""Every fault. ``net-deaf``: what is said arrives, its answer never does."""

BY_NAME = {fault.name: fault for fault in FAULTS}

STORM_SECONDS, CALM_SECONDS = 12.0, 6.0
"""Faults come in storms, so that there are edits without a fault near them to compare with."""

BETWEEN_SECONDS = (0.2, 1.6)
"""From one fault to the next in a storm."""


PARTING = ("cache-empty", "cache-failover", "cache-kill", "postgres-immediate", "broker-empty", "relay-kill")
"""One of them strikes when the last edit is done: so nothing but the product itself brings back what it took."""


def parting(seed: int, names: tuple[str, ...] = tuple(BY_NAME)) -> Planned | None:
    """The last fault of a run, from its seed; every second time the cache loses everything that it can."""
    dice = Random(f"{seed}/parting")
    possible = [name for name in PARTING if name in names]
    losses = possible[:2] if dice.random() < 0.5 else possible
    fault = BY_NAME[dice.choice(losses)] if losses else None
    if fault is None:
        return None
    return Planned(at=0, fault=fault, lasts=dice.uniform(*fault.lasts), dice=dice.getrandbits(32))


def plan(seed: int, seconds: float, names: tuple[str, ...] = tuple(BY_NAME)) -> list[Planned]:
    """The faults of a run, from its seed."""
    dice = Random(f"{seed}/faults")
    faults = [BY_NAME[name] for name in names]
    weights = [fault.weight for fault in faults]
    found = []
    at = dice.uniform(*BETWEEN_SECONDS)
    while faults and at < seconds:
        fault = dice.choices(faults, weights)[0]
        found.append(Planned(at=at, fault=fault, lasts=dice.uniform(*fault.lasts), dice=dice.getrandbits(32)))
        at += dice.uniform(*BETWEEN_SECONDS)
        if at % (STORM_SECONDS + CALM_SECONDS) > STORM_SECONDS:
            at = (at // (STORM_SECONDS + CALM_SECONDS) + 1) * (STORM_SECONDS + CALM_SECONDS)
    return found

"""``status``: how the whole stands, on one screen or as JSON."""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

import click
import redis
from rich.live import Live
from rich.table import Table

from foreword.errors import ForewordError
from loaders import lateness
from loaders.claims import EDITS, EVERYTHING, SWEEP, THE_SWEEP
from loaders.condition import Condition, condition
from loaders.connection import Connection, connect
from worker.app import BRIEFS, TICK_SECONDS
from worker.pulse import Seen, seen
from worker.screen import console, print_json, say, table
from worker.settings import Settings
from worker.wiring import Services, redis_client, redis_errors, services

LAG_SECONDS = 60.0
"""Older unbuilt edits are something wrong: they take a second, and a few while something breaks."""

LATE_SECONDS = 900.0
TICKED_SECONDS = 60.0

QUEUES = (EDITS, BRIEFS, SWEEP)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisStands:
    """How a Redis stands; None for what it does not tell us.

    Attributes:
        roles: what it is used for: cache, broker, or both.
        maximum: 0 where it has no limit of memory. Both are in bytes.
    """

    roles: tuple[str, ...]
    version: str | None
    used: int | None
    maximum: int | None
    policy: str | None
    evicted: int | None
    connected: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How the whole stands, and what is wrong with it, a line each."""

    wrong: list[str]
    database: Condition
    briefs: lateness.Status
    queues: Mapping[str, int]
    processes: list[Seen]
    redis: list[RedisStands]


@click.command(short_help="How the whole stands")
@click.option(
    "--watch", type=click.FloatRange(0.2, 3600), metavar="SECONDS", help="Again and again, until Ctrl-C."
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON; with --watch a line each time.")
@click.pass_obj
def status(settings: Settings, *, watch: float | None, as_json: bool) -> int:
    """How the whole stands: how old the oldest edit is that no bundle has, what waits and where, who leads and
    works, briefs, Redis and PostgreSQL; and what is wrong, with what to do.

    Exit code 0 where all is well, 1 where something is wrong, 3 where PostgreSQL or Redis does not answer.
    """
    with services(settings) as found:
        if watch is not None:
            _watch(found, watch, as_json=as_json)
        with _opened(found) as looking:
            stands = looked(*looking)
    if as_json:
        print_json(_plain(stands))
    else:
        _print(stands)
    return 1 if stands.wrong else 0


_Looking = tuple[Connection, "redis.Redis", "redis.Redis"]


@contextmanager
def _opened(found: Services) -> Iterator[_Looking]:
    with (
        closing(connect(found.database_url)) as connection,
        redis_client(found.redis_url) as cache,
        redis_client(found.broker_url) as broker,
    ):
        yield connection, cache, broker


def looked(connection: Connection, cache: "redis.Redis", broker: "redis.Redis") -> Status:
    """How the whole stands now.

    Raises:
        SchemaError, Unavailable: the database is not migrated, or a server does not answer.
    """
    database, briefs = condition(connection), lateness.status(connection)
    with redis_errors("looking at Redis"):
        with broker.pipeline(transaction=False) as pipe:
            for queue in QUEUES:
                pipe.llen(queue)
            queues = dict(zip(QUEUES, pipe.execute(), strict=True))
        processes = seen(cache)
    servers = _servers(cache, broker)
    stands = Status(wrong=[], database=database, briefs=briefs, queues=queues, processes=processes, redis=servers)
    stands.wrong.extend(line for says in WRONG if (line := says(stands)))
    return stands


def _servers(cache: "redis.Redis", broker: "redis.Redis") -> list[RedisStands]:
    told = {"cache": _info(cache), "broker": _info(broker)}
    run = {role: info.get("run_id") for role, info in told.items()}
    if run["cache"] is not None and run["cache"] == run["broker"]:
        return [_stands(("cache", "broker"), told["cache"])]
    return [_stands((role,), info) for role, info in told.items()]


def _info(client: "redis.Redis") -> dict[str, Any]:
    """What it tells of itself; a managed one may keep it to itself."""
    with redis_errors("asking Redis how it is"), suppress(redis.ResponseError):
        found: dict[str, Any] = client.info()
        return found
    return {}


def _stands(roles: tuple[str, ...], info: Mapping[str, Any]) -> RedisStands:
    return RedisStands(
        roles=roles,
        version=info.get("redis_version"),
        used=info.get("used_memory"),
        maximum=info.get("maxmemory"),
        policy=info.get("maxmemory_policy"),
        evicted=info.get("evicted_keys"),
        connected=info.get("connected_clients"),
    )


# ---- what is wrong: each says it with what to do, or says nothing


def _leaderless(stands: Status) -> str:
    if stands.database.leader is not None:
        return ""
    return "no relay leads: nothing that is edited is built; run `python -m worker relay`"


def _lagging(stands: Status) -> str:
    lag, paused = stands.database.lag, stands.database.paused >= EVERYTHING
    if lag < LAG_SECONDS or paused:
        return ""
    return (
        f"the oldest edit that no bundle has is {_span(lag)} old; `python -m worker projects --failing` names what"
        " fails, `python -m worker doctor` what is missing"
    )


def _paused(stands: Status) -> str:
    what = {0: "", THE_SWEEP: "the bulk", EVERYTHING: "everything"}.get(stands.database.paused, "something")
    return f"{what} is paused; `python -m worker resume` goes on" if what else ""


def _parked(stands: Status) -> str:
    if not stands.database.parked:
        return ""
    return f"projects parked: {stands.database.parked}; `python -m worker parked list` says why"


def _failing(stands: Status) -> str:
    failing = stands.database.failing
    if not failing:
        return ""
    return f"projects failing, tried again: {failing}; `python -m worker projects --failing` says why"


def _workerless(stands: Status) -> str:
    served = {str(q) for each in stands.processes if each.here for q in each.more.get("queues", ())}
    if not served:
        return "no worker was seen lately: the relays' own children build; run `python -m worker work`"
    unserved = [queue for queue in QUEUES if queue not in served]
    if not unserved:
        return ""
    named = " ".join(f"--queue {queue}" for queue in unserved)
    return f"no worker serves the queues {', '.join(unserved)}; run `python -m worker work {named}`"


def _unticked(stands: Status) -> str:
    ticked = stands.database.ticked
    if ticked is None or ticked < TICKED_SECONDS:
        return ""
    return f"nobody looked for {_span(ticked)} which briefs are due; run `python -m worker beat`, or a relay"


def _late(stands: Status) -> str:
    if stands.briefs.greatest_lateness < LATE_SECONDS:
        return ""
    return (
        f"{stands.briefs.overdue} briefs are late, by up to {_span(stands.briefs.greatest_lateness)};"
        " `python -m worker briefs status`"
    )


def _dead(stands: Status) -> str:
    dead = stands.briefs.briefs_dead + stands.briefs.announcements_dead
    return f"{dead} dead letters; `python -m worker dead-letters list`" if dead else ""


def _different(stands: Status) -> str:
    if not stands.database.mismatches:
        return ""
    return (
        f"{stands.database.mismatches} bundles were not what a fresh build gives: a fault of ours; keep the"
        " relay's log, rebuild them, and when it is understood, `python -m worker audit --reset`"
    )


def _evicting(stands: Status) -> str:
    broker = next(each for each in stands.redis if "broker" in each.roles)
    if not broker.maximum or broker.policy in {None, "noeviction"}:
        return ""
    return f"the broker may evict queues (maxmemory-policy {broker.policy}); set it to noeviction"


WRONG = (
    _leaderless,
    _lagging,
    _paused,
    _failing,
    _parked,
    _workerless,
    _unticked,
    _late,
    _dead,
    _different,
    _evicting,
)


# ---- as JSON, and for people


def _plain(stands: Status) -> dict[str, Any]:
    return {**asdict(stands), "briefs": asdict(stands.briefs), "well": not stands.wrong}


def _watch(found: Services, seconds: float, *, as_json: bool) -> None:
    """Until interrupted, through whatever the servers do."""
    screen = console()
    with Live(console=screen, auto_refresh=False) if screen.is_terminal and not as_json else _lines() as live:
        while True:
            try:
                with _opened(found) as looking:
                    while True:
                        stands = looked(*looking)
                        if as_json:
                            print_json(_plain(stands), indented=False)
                        elif live is not None:
                            live.update(_shown(stands), refresh=True)
                        else:
                            click.echo(f"---- {time.strftime('%H:%M:%S')}")
                            _print(stands)
                        time.sleep(seconds)
            except ForewordError as error:
                say(f"error: {error}")
                time.sleep(max(seconds, 1.0))


@contextmanager
def _lines() -> Iterator[None]:
    yield None


def _print(stands: Status) -> None:
    console().print(_shown(stands))


def _shown(stands: Status) -> Table:
    made = table(("", ""), [])
    made.show_header = False
    for name, said in _rows(stands):
        made.add_row(name, said, style="bold red" if name == "wrong" else None)
    return made


def _rows(stands: Status) -> Iterator[tuple[str, str]]:
    database, briefs = stands.database, stands.briefs
    yield "freshness", f"oldest edit without a bundle: {_span(database.lag) if database.dirty else 'none'}"
    yield (
        "projects",
        f"{database.built} built, {database.dirty} dirty, {database.asked} asked for, {database.sent} sent,"
        f" {database.building} building, {database.failing} failing, {database.parked} parked"
        + (f" ({database.dropped} more dropped)" if database.dropped else ""),
    )
    built = f"; last build {_span(database.last_built)} ago" if database.last_built is not None else ""
    yield "log", f"{database.log_rows} rows; sweep {database.sweep} projects{built}"
    yield "queues", ", ".join(f"{queue} {waiting}" for queue, waiting in stands.queues.items())
    yield "leader", _leader(stands)
    for each in stands.processes:
        queues = each.more.get("queues", "")
        serves = f", queues {' '.join(queues)}" if queues else ""
        silent = "" if each.here else ", silent"
        yield each.role, f"{each.host} {each.pid}{serves}, seen {each.ago:.0f} s ago{silent}"
    ticked = "never" if database.ticked is None else f"{_span(max(database.ticked, 0))} ago"
    yield "last tick", f"{ticked}, every {TICK_SECONDS:.0f} s"
    lateness_99 = f", p99 {_span(briefs.lateness['p99'])} late" if briefs.lateness else ""
    states = ", ".join(f"{n} {state}" for state, n in sorted(briefs.states.items())) or "none"
    yield "briefs", f"last 24 h: {states}{lateness_99}; due and not ready {briefs.overdue}"
    yield "dead letters", f"{briefs.briefs_dead} briefs, {briefs.announcements_dead} announcements"
    yield "audit", f"{database.audited} bundles compared, {database.mismatches} different"
    for server in stands.redis:
        yield f"redis {'+'.join(server.roles)}", _redis(server)
    connections = f"{database.connections} of {database.most_connections} connections"
    sizes = _bytes(sum(database.sizes.values()))
    oldest = _span(database.oldest_transaction)
    yield (
        "postgresql",
        f"{database.version}, {connections}, oldest transaction {oldest}, our tables {sizes}",
    )
    for line in stands.wrong:
        yield "wrong", line
    if not stands.wrong:
        yield "well", "nothing is wrong"


def _leader(stands: Status) -> str:
    database = stands.database
    if database.leader is None:
        return "nobody"
    named = (f"{p.host} {p.pid}" for p in stands.processes if p.more.get("name") == database.leader)
    return f"relay {next(named, database.leader)}, for {database.led_for or 0:.1f} s more"


def _redis(server: RedisStands) -> str:
    if server.version is None:
        return "tells nothing of itself"
    limit = f"of {_bytes(server.maximum)}" if server.maximum else "without a limit"
    return (
        f"{server.version}, {_bytes(server.used or 0)} {limit}, {server.policy}, {server.evicted} evicted,"
        f" {server.connected} connected"
    )


def _span(seconds: float) -> str:
    for name, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.1f} s"


def _bytes(number: float) -> str:
    for name in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {name}"
        number /= 1024
    return f"{number:.1f} TiB"

"""A world to be shaken: servers, network, the product's processes, the application, and those who look on.

Everything is started here and ended here, in order, however the run ends. Everything of it lies in one directory
and carries one mark.
"""

import os
import shutil
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from uuid import uuid4

import psycopg
from chaos.audit import Auditor
from chaos.crew import CHECKOUT, MARK, Crew, Ways, Wired, command
from chaos.editors import Connection, Desk, Editor, Losses, Resolver
from chaos.edits import transactions
from chaos.fill import fill
from chaos.follow import Follower
from chaos.journal import Journal
from chaos.people import Population
from chaos.proxy import Network
from chaos.servers import Server, TcpPostgres, TcpRedis
from chaos.watch import ASKS, Asker, Demands, Era, Findings, Watcher

import foreword
from worker.programs import Account


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a run is to be."""

    seed: int
    seconds: float
    projects: int = 24
    workers: int = 2
    relays: int = 2
    concurrency: int = 2
    editors: int = 4
    rate: float = 10.0
    askers: int = 3
    share: float = 0.2
    sabotage: str = ""
    bytecode: str = ""  # where compiled modules are kept; by default beside the sources
    home: Path = Path("/tmp/chaos")

    @property
    def lasting(self) -> bool:
        """Whether the cache keeps a log: by the seed, every second one."""
        return self.seed % 2 == 0


@dataclass(slots=True)
class Struck:
    """A fault that struck: from when until when (monotonic)."""

    name: str
    begun: float
    ended: float = 0.0


@dataclass
class World:
    """Everything of a run."""

    options: Options
    home: Path
    mark: str
    postgres: Server
    cache: Server
    broker: Server
    people: Population
    journal: Journal = field(default_factory=Journal)
    findings: Findings = field(default_factory=Findings)
    losses: Losses = field(default_factory=Losses)
    era: Era = field(default_factory=Era)
    healing: threading.Event = field(default_factory=threading.Event)
    struck: list[Struck] = field(default_factory=list)
    missed: Counter[str] = field(default_factory=Counter)
    tampered: int = 0
    unwanted: bool = False  # whether its directory goes at the end
    crew: Crew[Wired] = field(init=False)
    watcher: Watcher = field(init=False)
    demands: Demands = field(init=False)
    follower: Follower = field(init=False)

    @property
    def lasting(self) -> bool:
        """Whether the cache keeps a log."""
        return self.options.lasting

    @property
    def database_url(self) -> str:
        """Around the proxies."""
        return self.postgres.program.url

    @property
    def cache_url(self) -> str:
        """Around the proxies."""
        return self.cache.program.url

    @property
    def broker_url(self) -> str:
        """Around the proxies."""
        return self.broker.program.url

    @contextmanager
    def emptied(self, *, really: bool = True) -> Iterator[None]:
        """The cache may lose bundles inside, or come back with old ones. Not where it is known to keep them."""
        if really:
            self.era.turn()
        try:
            yield
        finally:
            if really:
                self.era.turn()

    def connect(self) -> Connection:
        """A connection of who checks."""
        return psycopg.connect(self.database_url, autocommit=True, connect_timeout=5, application_name="checker")


# ---- building it


@contextmanager
def made(options: Options) -> Iterator[World]:
    """A world whose servers run and whose tables are filled, with nothing of the product running yet."""
    options.home.mkdir(parents=True, exist_ok=True)
    mark = str(uuid4())
    home = options.home / f"{options.seed}-{mark[:6]}"
    home.mkdir(mode=0o755)
    run = home / "run"
    programs = (
        TcpPostgres(home, run, f"chaos-{mark}"),
        TcpRedis(home / "cache", run, f"chaos-{mark}", lasting=options.lasting),
        TcpRedis(home / "broker", run, f"chaos-{mark}", lasting=options.seed % 3 != 0),
    )
    for program in programs:
        program.room.parent.mkdir(exist_ok=True)
        program.socket = program.room / "redis.sock" if program.name == "redis-server" else program.socket
    account = Account.able_to_enter([home, *(program.binary for program in programs)])
    servers = [Server(program, account) for program in programs]
    world = World(
        options=options,
        home=home,
        mark=mark,
        postgres=servers[0],
        cache=servers[1],
        broker=servers[2],
        people=Population.of(options.seed, options.projects),
    )
    world.journal.file = home / "edits.jsonl"
    with ExitStack() as stack:
        stack.callback(_tidy, world)
        for server in servers:
            stack.callback(server.stop)
            server.prepare()
            server.start()
        _migrate(world)
        with world.connect() as connection:
            fill(connection, world.people)
        yield world


def _tidy(world: World) -> None:
    if world.unwanted:
        shutil.rmtree(world.home, ignore_errors=True)


def _environment(world: World) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    compiled = {"PYTHONPYCACHEPREFIX": world.options.bytecode} if world.options.bytecode else {}
    return {**kept, **compiled, "HOME": str(world.home), "LANG": "C.UTF-8", MARK: world.mark}


def _migrate(world: World) -> None:
    where = {
        "FOREWORD_DATABASE_URL": world.database_url,
        "FOREWORD_REDIS_URL": world.cache_url,
        "FOREWORD_DATA_DIR": str(world.home / "data"),
    }
    done = subprocess.run(
        command("migrate"),
        cwd=CHECKOUT,
        env=_environment(world) | where,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode:
        raise RuntimeError(f"migrate ended with {done.returncode}: {done.stdout}{done.stderr}")


# ---- the product, the application, and those who look on


@contextmanager
def peopled(world: World) -> Iterator[World]:
    """The product runs, and somebody watches."""
    options = world.options
    stop = threading.Event()
    with Network() as network, ExitStack() as stack:
        names = [f"worker-{n}" for n in range(options.workers)] + [f"relay-{n}" for n in range(options.relays)]
        members = [_member(world, network, name) for name in names]
        world.crew = stack.enter_context(Crew(members, world.mark).running())
        world.demands = Demands(share=options.share)
        world.watcher = Watcher(world.cache_url, world.people, world.journal, world.findings, world.era, stop)
        world.follower = Follower(world.cache_url, world.people, world.findings, stop)
        urls = (world.database_url, world.cache_url)
        auditor = Auditor(urls, world.people, world.journal, world.findings, world.era, stop)
        threads = [
            auditor.thread,
            world.watcher.thread,
            world.follower.thread,
            Resolver(world.database_url, world.journal, stop, world.findings).thread,
            *(_asker(world, number, stop).thread for number in range(options.askers)),
        ]
        stack.callback(_join, stop, threads)
        for thread in threads:
            thread.start()
        yield world


def _asker(world: World, number: int, stop: threading.Event) -> Asker:
    """The first has what it misses built; the others must get it without."""
    how = ASKS[number % len(ASKS)]
    name, asks = f"asker-{number}", number == 0
    return Asker(name, world.cache_url, world.demands, world.findings, stop, asks=asks, how=how)


def _member(world: World, network: Network, name: str) -> Wired:
    options = world.options
    links = [network.link(server.program.port) for server in (world.postgres, world.cache, world.broker)]  # type: ignore[attr-defined]
    ways = Ways(*links)
    verb = "work" if name.startswith("worker") else "relay"
    environment = _environment(world) | ways.environment(world.home / "data", options.concurrency)
    log = world.home / f"{name}.log"
    return Wired(name, command(verb, sabotage=options.sabotage), ways, environment, log)


@contextmanager
def edited(world: World) -> Iterator[None]:
    """The application edits for the length of a block; at its end every edit is settled that can be."""
    options = world.options
    stop = threading.Event()
    dice = Random(f"{options.seed}/demands")
    world.journal.on_commit = lambda edit: world.demands.offer(edit, dice)
    desk = Desk(
        url=world.database_url,
        journal=world.journal,
        losses=world.losses,
        findings=world.findings,
        stop=stop,
        token_of=foreword.token,
    )
    names = [f"editor-{n}" for n in range(options.editors)]
    editors = [
        Editor(name, transactions(options.seed, name, world.people, options.rate), desk).thread for name in names
    ]
    try:
        for thread in editors:
            thread.start()
        yield
    finally:
        _join(stop, editors)


def _join(stop: threading.Event, threads: Sequence[threading.Thread]) -> None:
    stop.set()
    for thread in threads:
        if thread.is_alive():
            thread.join(60)


def interruptible() -> None:
    """SIGTERM ends a run as Ctrl-C does: everything is stopped in order."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)

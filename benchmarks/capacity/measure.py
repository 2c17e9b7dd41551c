"""What do a rebuild, a brief, an edit, a read, a look of the relay cost, and what do they leave behind?

On real servers, in one process, one thing after another, each until it has taken some seconds of processor
time. Everything is seeded. What the processes around them cost: ``processes``.
"""

import gc
import platform
import random
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import redis

from benchmarks.capacity.costs import ENTITIES, Brief, Chores, Costs, Cpu, Edit, Rebuild, Round
from benchmarks.capacity.processes import measure_processes, spent
from benchmarks.synthetic import create_project, new_id
from foreword import keys, tokens
from foreword.reader import Reader
from loaders import briefs, claims
from loaders.briefs import Begun
from loaders.catalog import inspect
from loaders.claims import EDITS, SWEEP
from loaders.condition import condition
from loaders.connection import Connection, connect
from loaders.migrate import migrate
from loaders.watch import unwatched
from tasks.brief import finish_brief
from tasks.focus import build_focus
from tasks.project import rebuild_project
from tasks.tools import Tools
from worker.app import REBUILD, create_app
from worker.relay import windows
from worker.screen import bar
from worker.servers import Addresses
from worker.settings import WINDOW, Settings
from worker.wiring import Services, tools

MEMBERS = 3
BRIEF_COPIES = 50
HANDLES = 10_000
WARM = 8
"""Rounds before it counts: connections, statements, caches."""

FEWEST = 5
"""Rounds that count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured.

    Attributes:
        sizes: entities of the projects that are rebuilt; ENTITIES is one of them.
        accounts: projects of the users whose briefs are made.
        seconds: of processor time for each figure.
        ledgers: projects in the ledger while the relay looks at it.
        dirty: projects with edits in the log while it does.
        rest, load: seconds that real processes are watched at rest, and while they are at work.
        rate: edits a second that they have to do with then.
        projects: as many projects they are of, and so many briefs are made. They stay, for PostgreSQL reads small
            tables whole, and not as it reads an account's.
    """

    sizes: Sequence[int] = (20, ENTITIES, 1_000, 10_000)
    accounts: Sequence[int] = (1, 10, 50)
    seconds: float = 3.0
    ledgers: Sequence[int] = (10_000, 100_000)
    dirty: Sequence[int] = (0, 16, 200, claims.PAGE)
    rest: float = 15.0
    load: float = 25.0
    rate: float = 20.0
    projects: int = 300


def measure(servers: Addresses, effort: Effort) -> Costs:
    """Everything, on servers with nothing in them that is of use to anybody."""
    migrate(servers.database_url)
    services = Services(
        database_url=servers.database_url,
        redis_url=servers.redis_url,
        broker_url=servers.redis_url.replace("db=0", "db=1"),
    )
    settings = Settings()
    tokens.encoding()
    gc.freeze()  # as a worker does after it has started
    with ExitStack() as stack:
        own = stack.enter_context(tools(settings, services))
        application = stack.enter_context(connect(servers.database_url, statement_seconds=0))
        client = stack.enter_context(redis.Redis.from_url(servers.redis_url))
        bench = _Bench(own, application, client, effort.seconds)
        projects = _projects(bench, effort.projects)
        # First, so that PostgreSQL has nothing to clear away that others left.
        seen = measure_processes(
            services, application, projects, rest=effort.rest, load=effort.load, rate=effort.rate
        )
        rebuilds, focus = _rebuilds(bench, effort)
        made = _briefs(bench, effort)
        edit = _edit(bench)
        read, read_bytes = _read(bench)
        message = _message(bench, settings, services)
        ledger = _ledger(bench, effort)
        machine = _machine(application, client)
    return Costs(
        machine=machine,
        rebuilds=rebuilds,
        focus=focus,
        briefs=made,
        edit=edit,
        message=message,
        read=read,
        read_bytes=read_bytes,
        processes=seen.processes,
        build=seen.build,
        brief=seen.brief,
        background=seen.background,
        **ledger,
    )


class _Bench:
    """A builder's tools, the application's connection, and clocks of the processors."""

    def __init__(self, own: Tools, application: Connection, client: "redis.Redis", seconds: float) -> None:
        self.own, self.application, self.client = own, application, client
        self.seconds = seconds
        self.chance, self._seeds = random.Random(1), count(1)
        self._session = psutil.Process(own.connection.info.backend_pid)
        self._redis = psutil.Process(client.info("server")["process_id"])

    def cost(self, call: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> Cpu:
        """What a call costs on average. What ``prepare`` costs us is left out; it has to use the application's
        connection, and nothing of Redis.
        """
        for _ in range(WARM):
            prepare()
            call()
        python, times = 0.0, 0
        before = self._servers()
        while True:
            prepare()
            gc.collect()
            began = time.process_time()
            call()
            python += time.process_time() - began
            times += 1
            servers = [b - a for a, b in zip(before, self._servers(), strict=True)]
            if python + sum(servers) > self.seconds and times >= FEWEST:
                break
        postgres, cache = (1000 * each / times for each in servers)
        return Cpu(python=1000 * python / times, postgres=postgres, redis=cache)

    def project(self, entities: int = ENTITIES) -> str:
        """A project like no other."""
        return create_project(self.application, entities, next(self._seeds))

    def many(self, call: Callable[[], object], at_once: int = 100) -> Cpu:
        """Like ``cost``, of something so short that looking at the clock each time would count."""
        found = self.cost(lambda: [call() for _ in range(at_once)])
        return Cpu(python=found.python / at_once, postgres=found.postgres / at_once, redis=found.redis / at_once)

    def ours(self, sql: str, *asked: Any) -> list[tuple[Any, ...]]:
        """Run a statement of the application's."""
        cursor = self.application.execute(sql.encode(), asked)
        return cursor.fetchall() if cursor.description else []

    def number(self, sql: str, *asked: Any) -> float:
        """The one number that a statement of the application's answers."""
        return float(self.ours(sql, *asked)[0][0])

    def wal(self) -> int:
        """How far the write-ahead log is."""
        return int(self.number("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"))

    def memory(self, pattern: str) -> float:
        """Bytes of all keys that match."""
        return float(sum(self.client.memory_usage(key, samples=0) or 0 for key in self.client.scan_iter(pattern)))

    def _servers(self) -> tuple[float, float]:
        return spent(self._session), spent(self._redis)


# ---- builds


def _rebuilds(bench: _Bench, effort: Effort) -> tuple[list[Rebuild], Cpu]:
    found, focus = [], Cpu(python=0, postgres=0, redis=0)
    with bar("rebuilds", len(effort.sizes)) as advance:
        for entities in effort.sizes:
            project = bench.project(entities)
            _join(bench, project, [new_id(bench.chance) for _ in range(MEMBERS)])
            found.append(_rebuild(bench, project, entities))
            if entities == ENTITIES:
                focus = bench.cost(_focus(bench, project))
            advance(1)
    return found, focus


def _rebuild(bench: _Bench, project: str, entities: int) -> Rebuild:
    edit = _editing(bench, project)
    logs: list[int] = []

    def prepare() -> None:
        edit()
        logs.append(bench.wal())

    def build() -> None:
        assert rebuild_project(project, bench.own, if_due=True) is not None
        logs.append(bench.wal())

    prepare()
    build()
    for _ in range(WARM):
        edit()
    bench.ours("vacuum (analyze)")  # of a log that holds edits: one that holds an import makes other plans
    logs.clear()
    cpu = bench.cost(build, prepare)
    listed = keys.changes(project)
    news = (bench.client.memory_usage(listed, samples=0) or 0) / max(bench.client.llen(listed), 1)
    bundle = float(bench.client.memory_usage(keys.project(project), samples=0) or 0)
    _focus(bench, project)()
    names = f"fw:*{{{project}}}:focus:*"
    return Rebuild(
        entities=entities,
        cpu=cpu,
        redis=bundle,
        news=news,
        focus=bench.memory(names) / 2,
        handles=bench.number("select count(*) from fw_handles where project_id = %s", project),
        wal=statistics.median(b - a for a, b in zip(logs[::2], logs[1::2], strict=True)),
    )


def _focus(bench: _Bench, project: str) -> Callable[[], object]:
    """A function that builds the focus bundle of a task of a project."""
    ((task,),) = bench.ours("select id from onto_tasks where project_id = %s order by id limit 1", project)
    return lambda: build_focus(project, task, bench.own)


def _editing(bench: _Bench, project: str) -> Callable[[], None]:
    """A function that edits a task of a project."""
    tasks = [row[0] for row in bench.ours("select id from onto_tasks where project_id = %s", project)]

    def edit() -> None:
        title = f"edited {bench.chance.getrandbits(64):x}"
        bench.ours("update onto_tasks set title = %s where id = %s", title, bench.chance.choice(tasks))

    return edit


def _join(bench: _Bench, project: str, actors: Sequence[str]) -> None:
    for actor in actors:
        bench.ours(
            "insert into onto_actors (id, kind, name) values (%s, 'human', 'A. User') on conflict do nothing",
            actor,
        )
        bench.ours(
            "insert into onto_project_members (id, project_id, actor_id, role_key)"
            " values (gen_random_uuid(), %s, %s, 'editor')",
            project,
            actor,
        )


def _projects(bench: _Bench, number: int) -> list[str]:
    """Projects of ENTITIES entities, each with a user of its own."""
    made = [bench.project() for _ in range(number)]
    for project in made:
        _join(bench, project, [new_id(bench.chance)])
    return made


# ---- briefs


def _briefs(bench: _Bench, effort: Effort) -> list[Brief]:
    user = new_id(bench.chance)
    projects = [bench.project() for _ in range(max(effort.accounts))]
    found = []
    with bar("briefs", len(effort.accounts)) as advance:
        for joined, size in enumerate(effort.accounts):
            for project in projects[effort.accounts[joined - 1] if joined else 0 : size]:
                _join(bench, project, [user])
            found.append(_brief(bench, user, size))
            advance(1)
    return found


def _brief(bench: _Bench, user: str, projects: int) -> Brief:
    today = datetime.now(UTC).date()

    def make(day: date = today) -> None:
        begun = briefs.begin_now(bench.own.connection, user, day, force=True, zone="UTC")
        assert isinstance(begun, Begun)
        assert finish_brief(begun, bench.own) is not None

    make(today - timedelta(days=1))  # so that there is one to compare with
    cpu = bench.cost(make)
    row = _brief_row(bench, user)
    bench.ours("update fw_briefs set facts = null")
    kept = _brief_row(bench, user)
    copy = float(bench.client.memory_usage(keys.brief(user, today.isoformat()), samples=0) or 0)
    return Brief(projects=projects, cpu=cpu, redis=copy, row=row, kept=kept)


def _brief_row(bench: _Bench, user: str) -> float:
    """Bytes of its row, from what copies of it take."""
    before = _size(bench, "fw_briefs")
    bench.ours(
        "insert into fw_briefs"
        " select (jsonb_populate_record(b, jsonb_build_object('user_id', gen_random_uuid()))).*"
        f" from fw_briefs b, generate_series(1, {BRIEF_COPIES}) where (user_id, local_date) ="
        " (select user_id, max(local_date) from fw_briefs where user_id = %s group by 1)",
        user,
    )
    taken = _size(bench, "fw_briefs") - before
    bench.ours("delete from fw_briefs where user_id <> %s", user)
    return taken / BRIEF_COPIES


def _size(bench: _Bench, name: str) -> float:
    bench.ours(f"vacuum (full, analyze) {name}")
    return bench.number("select pg_total_relation_size(%s::regclass)", name)


# ---- edits, reads, messages


def _edit(bench: _Bench) -> Edit:
    """Of the application's session, with triggers and without, alternating."""
    edit = _editing(bench, bench.project())
    session = psutil.Process(bench.application.info.backend_pid)
    cost: dict[bool, list[float]] = {False: [], True: []}
    wal: dict[bool, list[float]] = {False: [], True: []}
    row = 0.0
    rounds, times = 4, max(int(bench.seconds * 700), 20)
    with bar("edits", 2 * rounds) as advance:
        for logged in (False, True) * rounds:
            bench.ours(f"alter table onto_tasks {'enable always' if logged else 'disable'} trigger fw_update")
            bench.ours("truncate fw_changes")
            bench.ours("vacuum onto_tasks")
            bench.ours(
                "checkpoint"
            )  # the first change of a page after one is logged as the whole page: alike in both
            began, written = spent(session), bench.wal()
            for _ in range(times):
                edit()
            cost[logged].append(1000 * (spent(session) - began) / times)
            wal[logged].append((bench.wal() - written) / times)
            if logged:
                row = bench.number("select pg_total_relation_size('fw_changes')") / times
            advance(1)
    return Edit(
        plain=statistics.median(cost[False]),
        logged=statistics.median(cost[True]),
        plain_wal=statistics.median(wal[False]),
        logged_wal=statistics.median(wal[True]),
        row=row,
    )


def _read(bench: _Bench) -> tuple[Cpu, float]:
    project = bench.project()
    user = new_id(bench.chance)
    _join(bench, project, [user])
    rebuild_project(project, bench.own)
    reader = Reader(bench.client)
    found = reader.project(project, actor=user)
    return bench.many(lambda: reader.project(project, actor=user)), float(len(found.text.encode()))


def _message(bench: _Bench, settings: Settings, services: Services) -> Cpu:
    app = create_app(settings, services)
    name = new_id(bench.chance)
    found = bench.many(lambda: app.send_task(REBUILD, args=[name], queue=SWEEP, retry=False))
    with redis.Redis.from_url(services.broker_url) as broker:
        broker.flushdb()
    app.close()
    return found


# ---- the relay's looks


def _ledger(bench: _Bench, effort: Effort) -> dict[str, Any]:
    """What a ledger takes, and what it costs to look at it."""
    statements = claims.compile_claims(inspect(bench.own.connection))
    chores: list[Chores] = []
    with bar("the ledger", len(effort.ledgers) + len(effort.dirty) + 1) as advance:
        for projects in effort.ledgers:
            _fill(bench, projects)
            chores.append(_chores(bench, statements, projects))
            advance(1)
        ledger = _size(bench, "fw_projects") / effort.ledgers[-1]
        rounds = []
        for dirty in effort.dirty:
            rounds.append(_round(bench, statements, dirty))
            advance(1)
        verify = _verify(bench)
        advance(1)
    return {
        "rounds": rounds,
        "chores": chores,
        "verify": verify,
        "ledger": ledger,
        "handle": _handle(bench),
        "member": _member(bench),
    }


def _fill(bench: _Bench, projects: int) -> None:
    """Built projects up to a number, of a thousand tenants, to be built again some time today."""
    there = int(bench.number("select count(*) from fw_projects"))
    bench.ours(
        "insert into onto_projects (id, name, state_key) select gen_random_uuid(), 'project ' || n, 'active'"
        f" from generate_series({there + 1}, {projects}) n"
    )
    bench.ours(
        "insert into fw_projects select (jsonb_populate_record(p, jsonb_build_object('project_id', o.id,"
        " 'tenant', md5((random() * 1000)::int::text), 'refresh_at', now() + random() * interval '1 day'))).*"
        " from onto_projects o, fw_projects p"
        " where p.project_id = (select project_id from fw_projects where generation > 0 limit 1)"
        " and not exists (select from fw_projects f where f.project_id = o.id)"
    )
    bench.ours("truncate fw_changes")
    bench.ours("vacuum analyze fw_projects, onto_projects, fw_changes")


def _chores(bench: _Bench, statements: claims.Statements, projects: int) -> Chores:
    connection = bench.own.connection

    def second() -> None:
        claims.lead(connection, "bench")
        claims.lead(connection, "bench")
        claims.take_over(connection)
        claims.park(connection)
        claims.find_earlier(connection)

    def half_minute() -> None:
        claims.find_unbuilt(connection, statements)
        unwatched(connection)

    found = [bench.cost(each).postgres for each in (second, half_minute, lambda: condition(connection))]
    claims.resign(connection, "bench")
    return Chores(projects=projects, second=found[0], half_minute=found[1], look=found[2])


def _round(bench: _Bench, statements: claims.Statements, dirty: int) -> Round:
    """Dirty projects by the log, and as many as the sweep finds at most due by the calendar."""
    bench.ours("truncate fw_changes")
    bench.ours("update fw_projects set refresh_at = now() + interval '1 day' where refresh_at <= now()")
    bench.ours(
        "insert into fw_changes (project_id, table_name, op, rows) select project_id, 'onto_tasks', 'U', 1"
        " from fw_projects order by md5(project_id::text) limit %s",
        dirty,
    )
    bench.ours(
        "update fw_projects set refresh_at = now() where project_id in"
        " (select project_id from fw_projects order by project_id limit 500)"
    )
    bench.ours("vacuum analyze fw_projects, fw_changes")
    connection, most = bench.own.connection, windows(WINDOW)

    def look() -> None:
        found = claims.dirty(connection)
        taken = claims.claim(connection, statements, EDITS, most[EDITS], found)
        swept = claims.claim(connection, statements, SWEEP, most[SWEEP], [])
        assert (len(taken), len(swept)) == (min(dirty, most[EDITS]), most[SWEEP])

    cpu = bench.cost(look, lambda: bench.ours(_BEGUN))
    return Round(dirty=dirty, python=cpu.python, postgres=cpu.postgres)


# As if builders had begun and ended all that was sent.
_BEGUN = "update fw_projects set sends = 0, quiet_until = '-infinity' where sends > 0"


def _verify(bench: _Bench) -> Cpu:
    """A page of the ledger compared with a Redis that has nothing."""
    connection, client = bench.own.connection, bench.client
    pages = iter(range(1_000_000))
    seen = 1

    def page() -> None:
        nonlocal seen
        rows = claims.unverified(connection, f"another {next(pages):06}")
        with client.pipeline(transaction=False) as pipe:
            for project, _ in rows:
                pipe.hget(keys.project(project), keys.META)
            pipe.execute()
        claims.verified(connection, "another", [(*row, False) for row in rows])
        seen = len(rows)

    found = bench.cost(page)
    return Cpu(python=found.python / seen, postgres=found.postgres / seen, redis=found.redis / seen)


def _handle(bench: _Bench) -> float:
    bench.ours(
        "insert into fw_handles select gen_random_uuid(), gen_random_uuid(), 'task', n"
        f" from generate_series(1, {HANDLES}) n"
    )
    return _size(bench, "fw_handles") / bench.number("select count(*) from fw_handles")


def _member(bench: _Bench) -> float:
    key = keys.projects_of(new_id(bench.chance))
    bench.client.sadd(key, *(new_id(bench.chance) for _ in range(10)))
    return (bench.client.memory_usage(key, samples=0) or 0) / 10


# ---- where


def _machine(application: Connection, client: "redis.Redis") -> str:
    ((postgres,),) = application.execute("show server_version").fetchall()
    return (
        f"{psutil.cpu_count()} cores ({_processor()}), Python {platform.python_version()}, PostgreSQL {postgres},"
        f" Redis {client.info('server')['redis_version']}, unix sockets"
    )


def _processor() -> str:
    with suppress(OSError):
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next((line.partition(":")[2].strip() for line in told if line.startswith("model name")), "")
    return platform.machine()

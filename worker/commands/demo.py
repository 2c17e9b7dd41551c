"""``demo``: the whole way once, on real sample data, with real servers and a real worker, and what came of it."""

import fcntl
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import psycopg

import foreword
from foreword.errors import BadInput, ForewordError
from foreword.freshness import contains
from foreword.kinds import KINDS
from foreword.reader import TRUSTED, Actor, Context, Reader
from loaders.catalog import inspect
from loaders.connection import connect
from loaders.jsonl import Imported
from loaders.migrate import migrate
from loaders.tables import MEMBERS
from prompts.brief_markdown import markdown
from worker.app import create_app
from worker.commands.briefs import kept_brief
from worker.commands.imports import import_files
from worker.commands.rebuild import rebuild_projects
from worker.crew import CHECKOUT, RELAY, child, own_worker
from worker.manifest import Manifest, differences, read_manifest
from worker.references import live_projects
from worker.screen import console, heading, say, table
from worker.settings import Settings
from worker.wiring import Services, redis_client, redis_errors, services, tools

SAMPLE = CHECKOUT / "samples" / "harbour"
HOME = CHECKOUT / ".foreword" / "demo"


@click.command(short_help="The whole way once, on sample data")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=SAMPLE,
    help="A directory of JSONL files; by default the sample.",
)
@click.pass_obj
def demo(settings: Settings, *, data: Path) -> int:
    """Import sample data, rebuild every project through Celery, read it back as a chat process would.

    Uses servers of its own in .foreword/demo of the checkout, starts with an empty database each time, and
    leaves nothing running.
    """
    if not data.is_dir():
        raise BadInput(f"there is no directory {data}; name one with <table>.jsonl files")
    manifest = read_manifest(data)
    own = settings.model_copy(
        update={
            "data_dir": HOME,
            "database_url": None,
            "redis_url": None,
            "broker_url": None,
            "as_of": settings.as_of or manifest.as_of,
        }
    )
    steps = _Steps()
    with _alone(), steps.timed("start the servers", services(own)) as found:
        with steps.timed("create the tables"):
            _start_empty(found)
        with steps.timed("import"):
            imported = import_files(found, data)
        projects = _live(found)
        with steps.timed("start a worker", own_worker(own, create_app(own, found))):
            with steps.timed("rebuild through Celery"):
                outcomes = rebuild_projects(own, found, projects)
            with child(own, own.data_dir / "relay.log", RELAY), steps.timed(f"start a relay, {EDITS + 1} edits"):
                fresh = _edit_and_read(found, projects)
        with steps.timed("read"):
            contexts = _read(own, found, projects)
        with steps.timed("make a brief"):
            brief = _brief(own, found)
        shown = _show(own, found, imported, contexts)
        if fresh is not None:
            click.echo(f"an edit was readable {fresh:.0f} ms after its commit")
        steps.show()
        if brief is not None:
            heading(f"what {brief['name'] or brief['user']} reads in the morning")
            click.echo(markdown(brief), nl=False)
    problems = [f"{project}: {error}" for project, error in outcomes.items() if error is not None]
    problems += [f"{project}: no bundle to read" for project, context in contexts.items() if not context]
    problems += _disagreements(manifest, contexts)
    problems += [] if fresh is not None or not projects else ["an edit was not readable after its commit"]
    return _verdict(problems, shown)


class _Steps:
    """How long each step took."""

    def __init__(self) -> None:
        self._taken: list[tuple[str, str]] = []

    @contextmanager
    def timed(self, name: str, inside: Any = None) -> Iterator[Any]:
        """Time a block, or only the entering of ``inside``."""
        begun = time.monotonic()
        if inside is None:
            yield None
            self._add(name, begun)
            return
        with inside as entered:
            self._add(name, begun)
            yield entered

    def _add(self, name: str, begun: float) -> None:
        self._taken.append((name, f"{time.monotonic() - begun:.2f} s"))

    def show(self) -> None:
        heading("how long it took")
        console().print(table(("step", "time"), self._taken, right=("time",)))


@contextmanager
def _alone() -> Iterator[None]:
    """Two demos at once would empty each other's database."""
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / "demo.lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ForewordError("another demo runs in this checkout; wait for its end") from None
        yield


def _start_empty(found: Services) -> None:
    """The demo's own database, made anew, and its own Redis, emptied."""
    name = "foreword"
    with psycopg.connect(found.database_url.replace(f"/{name}?", "/postgres?"), autocommit=True) as admin:
        admin.execute(f"drop database if exists {name} with (force)".encode())
        admin.execute(f"create database {name}".encode())
    for url in (found.redis_url, found.broker_url):
        with redis_client(url) as client, redis_errors("emptying the demo's Redis"):
            client.flushdb()
    migrate(found.database_url)


def _live(found: Services) -> list[str]:
    """What was imported, without projects that are deleted."""
    with connect(found.database_url) as connection:
        return live_projects(connection, inspect(connection))


EDITS = 5


def _edit_and_read(found: Services, projects: Sequence[str]) -> float | None:
    """Touch a project a few times; the median of the milliseconds until a bundle that holds the edit can be read.
    The first waits for the relay.
    """
    taken = []
    with psycopg.connect(found.database_url) as connection, redis_client(found.redis_url) as client:
        for project in [*projects[:1]] * (EDITS + 1):
            connection.execute("update onto_projects set name = name where id = %s", [project])
            token = foreword.token(connection)
            connection.commit()
            begun = time.perf_counter()
            context = Reader(client).project(project, actor=TRUSTED, at_least=token, wait=20)
            if context.stamp is None or not contains(context.stamp.epoch, context.stamp.snapshot, token):
                return None
            taken.append((time.perf_counter() - begun) * 1000)
            time.sleep(0.3)  # longer than a build is held back for others to come along
    return statistics.median(taken[1:]) if taken else None


def _read(own: Settings, found: Services, projects: Sequence[str]) -> dict[str, Context]:
    """Every project's bundle, with the clock of the day that the data is about."""
    noon = None if own.as_of is None else datetime(own.as_of.year, own.as_of.month, own.as_of.day, 12, tzinfo=UTC)
    with redis_client(found.redis_url) as client, redis_errors("reading"):
        reader = Reader(client, clock=time.time if noon is None else noon.timestamp)
        return {project: reader.bundle(project, actor=TRUSTED) for project in projects}


def _show(own: Settings, found: Services, imported: Imported, contexts: Mapping[str, Context]) -> str:
    """The largest project as its first member reads it, and everybody's coverage; the handle of the one shown."""
    built = sorted((p for p in contexts if contexts[p]), key=lambda p: -_entities(contexts[p]))
    if not built:
        return ""
    project, context = built[0], contexts[built[0]]
    actor = _some_member(found, project)
    with redis_client(found.redis_url) as client:
        reader = Reader(client)
        reader.project(project, actor=actor)  # the first use of a connection opens it
        asked = time.perf_counter()
        reader.project(project, actor=actor)
        micros = (time.perf_counter() - asked) * 1e6
    who = "as an operator" if actor is TRUSTED else f"as member {actor}"
    heading(f"what a chat reads of project {project}, {who}")
    click.echo(context.text, nl=False)
    heading(f"{context.tokens} tokens of {own.budget}, read in {micros:.0f} µs")
    for each in built[:12]:
        _print_coverage(contexts[each])
    rows = sum(imported.rows.values())
    click.echo(f"\n{rows} rows imported, {len(built)} projects rebuilt")
    handle: str = context.data["handles"].get(project, project)
    return handle


def _brief(own: Settings, found: Services) -> Mapping[str, Any] | None:
    """The brief of whoever is a member of most projects, on the day that the data is about."""
    with tools(own, found) as opened:
        most = "group by 1 order by count(*) desc, 1 limit 1"
        row = opened.connection.execute(
            f"select actor_id from {MEMBERS} where removed_at is null {most}"  # noqa: S608
        ).fetchone()
        if row is None:
            return None
        return kept_brief(row[0], opened.today(opened.zone), own.zone, opened).document


def _entities(context: Context) -> int:
    counts = context.data.get("coverage", {}).get("kinds", {})
    return sum(each["total"] for each in counts.values())


def _some_member(found: Services, project: str) -> Actor:
    with connect(found.database_url) as connection:
        row = connection.execute(
            "select actor_id from onto_project_members where project_id = %s and removed_at is null order by 1",
            [project],
        ).fetchone()
    return row[0] if row is not None else TRUSTED


_COLUMNS = ("total", "direct", "unlinked", "reachable", "orphan")


def _print_coverage(context: Context) -> None:
    found = context.data["coverage"]
    rows = [(kind, *(counts[c] for c in _COLUMNS)) for kind, counts in found["kinds"].items()]
    heading(f"coverage of {context.data['header']['name']}")
    console().print(table(("kind", *_COLUMNS), rows, right=_COLUMNS))
    click.echo("edges: " + ", ".join(f"{n} {what.replace('_', ' ')}" for what, n in found["edges"].items()))


def _disagreements(manifest: Manifest, contexts: Mapping[str, Context]) -> list[str]:
    if not manifest.by_kind:
        return []
    coverage = {project: context.data["coverage"]["kinds"] for project, context in contexts.items() if context}
    found = differences(manifest, coverage, KINDS)
    if not found:
        click.echo(f"the coverage of {len(manifest.by_kind)} projects equals the dataset's own count")
    return found


def _verdict(problems: list[str], shown: str) -> int:
    for problem in problems:
        say(f"failed: {problem}")
    if problems:
        return ForewordError.exit_code
    here = HOME.relative_to(Path.cwd()) if HOME.is_relative_to(Path.cwd()) else HOME
    command = f"python -m worker --data-dir {here}"
    click.echo("\nnothing is left running. Look further:")
    click.echo(f"  .venv/bin/{command} projects")
    if shown:
        click.echo(f"  .venv/bin/{command} show {shown} --budget 500")
        click.echo(f"  .venv/bin/{command} show {shown} --focus T1")
    click.echo("  docs/reading.md: reading bundles from your own chat process")
    return 0

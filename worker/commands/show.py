"""``show``: what a chat process would read of a project, or the whole form behind it."""

from dataclasses import asdict

import click
import orjson

from foreword.errors import ForewordError
from foreword.lines import LARGEST_BUDGET, SMALLEST_BUDGET, check_budget
from foreword.reader import TRUSTED, Actor, Context, Reader
from foreword.stamp import Stamp
from loaders.catalog import inspect
from loaders.connection import connect
from loaders.entity import full_graph, load_entity, resolve
from prompts.render import project_context
from tasks.focus import build_focus
from worker.references import project_ids
from worker.screen import print_json, say
from worker.settings import Settings
from worker.wiring import Services, redis_client, redis_errors, services, tools


@click.command(short_help="Show what a chat reads of a project")
@click.argument("project")
@click.option("--focus", metavar="ENTITY", help="The focus bundle of an entity, by handle or UUID.")
@click.option(
    "--budget",
    type=int,
    metavar="N",
    help=f"Tokens of the text, from {SMALLEST_BUDGET} up; it has lines for {LARGEST_BUDGET}.",
)
@click.option("--text", "form", flag_value="text", default="text", help="The text for a prompt (default).")
@click.option("--prompt", "form", flag_value="prompt", help="The text in its frame for a system prompt.")
@click.option("--json", "form", flag_value="json", help="The structured bundle with its stamp.")
@click.option("--graph", "form", flag_value="graph", help="The graph snapshot.")
@click.option(
    "--full",
    "form",
    flag_value="full",
    help="The whole graph in pages, a JSON line each; with --focus the whole row.",
)
@click.option("--actor", metavar="UUID", help="Read as this actor; by default as an operator, unchecked.")
@click.pass_obj
def show(
    settings: Settings, project: str, focus: str | None, budget: int | None, form: str, actor: str | None
) -> None:
    """Show what a chat process reads of PROJECT (a UUID or a handle)."""
    if budget is not None:
        check_budget(budget)
        if form not in {"text", "prompt"}:
            raise click.UsageError("--budget goes with the text, not with --json, --graph or --full")
    reading: Actor = actor or TRUSTED
    with services(settings) as found:
        project_id, entity = _resolved(found, project, focus)
        if form == "full":
            if actor is not None:  # the whole form comes from the database, where nobody asks who is a member
                _there(_read(found, project_id, actor, None, structured=False), project_id)
            _print_full(found, project_id, entity)
            return
        if entity is not None:
            context = _focused(settings, found, (project_id, entity), reading, budget, graph=form == "graph")
        else:
            context = _read(found, project_id, reading, budget, structured=form in {"json", "graph"})
    _print(context, form, project_id)


def _resolved(found: Services, project: str, focus: str | None) -> tuple[str, str | None]:
    with connect(found.database_url) as connection:
        catalog = inspect(connection)
        project_id = project_ids(connection, [project], catalog)[0]
        return project_id, resolve(connection, project_id, focus, catalog)[1] if focus else None


def _read(found: Services, project_id: str, actor: Actor, budget: int | None, *, structured: bool) -> Context:
    with redis_client(found.redis_url) as client, redis_errors("reading"):
        reader = Reader(client)
        if structured:
            return reader.bundle(project_id, actor=actor)
        return reader.project(project_id, actor=actor, budget=budget)


def _focused(
    settings: Settings,
    found: Services,
    place: tuple[str, str],
    actor: Actor,
    budget: int | None,
    *,
    graph: bool,
) -> Context:
    """The focus bundle, built now if it is missing or behind its project."""
    with redis_client(found.redis_url) as client, redis_errors("reading"):
        reader = Reader(client)
        context = reader.focus(*place, actor=actor, budget=budget)
        if context.status == "fresh" and not graph:
            return context
        with tools(settings, found) as opened:
            build_focus(*place, opened, with_graph=graph)
        return reader.focus(*place, actor=actor, budget=budget)


def _there(context: Context, project_id: str) -> Stamp:
    if not context or context.stamp is None:
        raise ForewordError(
            f"project {project_id} has no bundle yet; build it with `python -m worker rebuild {project_id}`"
        )
    return context.stamp


def _print(context: Context, form: str, project_id: str) -> None:
    stamp = _there(context, project_id)
    if form == "json":
        print_json({"status": context.status, "stamp": asdict(stamp), **context.data})
    elif form == "graph":
        print_json(context.data["graph"])
    else:
        click.echo(project_context(context.text) if form == "prompt" else context.text, nl=False)
        status = "fresh" if context.status == "fresh" else f"stale: its dates are of {stamp.as_of}, rebuild it"
        say(f"{context.tokens} tokens, generation {stamp.generation}, {status}")


def _print_full(found: Services, project_id: str, entity: str | None) -> None:
    with connect(found.database_url, statement_seconds=0) as connection:
        catalog = inspect(connection)
        if entity is not None:
            print_json(load_entity(connection, project_id, entity, catalog))
            return
        for page in full_graph(connection, project_id, catalog):
            click.echo(orjson.dumps(page))

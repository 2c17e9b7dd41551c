"""``rebuild``: have projects built by the workers, or here, and follow them to their end."""

from collections.abc import Sequence

import click

from foreword.errors import BuildError, ForewordError
from loaders.catalog import inspect
from loaders.connection import connect
from tasks.project import rebuild_project
from worker import dispatch
from worker.app import create_app
from worker.crew import some_worker
from worker.references import buildable_projects, project_ids
from worker.screen import Advance, bar, print_json, say
from worker.settings import Settings
from worker.wiring import Services, check_broker, redis_client, services, tools

Outcomes = dict[str, str | None]


@click.command(short_help="Rebuild bundles and follow them")
@click.argument("projects", nargs=-1, metavar="[PROJECT]...")
@click.option("--all", "every", is_flag=True, help="Every live project, as a trickle.")
@click.option("--inline", is_flag=True, help="Build in this process, without Celery (when the broker is down).")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome of each as JSON.")
@click.pass_obj
def rebuild(settings: Settings, *, projects: tuple[str, ...], every: bool, inline: bool, as_json: bool) -> int:
    """Rebuild the bundles of PROJECTs (UUIDs or handles), and wait until each is published or has failed.

    Without any worker running, one is started for this command when the servers are embedded.
    """
    if every == bool(projects):
        raise click.UsageError("name projects, or say --all")
    with services(settings) as found, connect(found.database_url) as connection:
        catalog = inspect(connection)
        wanted = buildable_projects(connection, catalog) if every else project_ids(connection, projects, catalog)
        outcomes = rebuild_projects(settings, found, wanted, inline=inline)
    failed = {project: error for project, error in outcomes.items() if error is not None}
    if as_json:
        print_json({"rebuilt": [p for p in outcomes if p not in failed], "failed": failed})
    else:
        click.echo(f"rebuilt {len(outcomes) - len(failed)} of {len(outcomes)} projects")
        for project, error in failed.items():
            say(f"failed: {project}: {error}")
    return BuildError.exit_code if failed else 0


def rebuild_projects(
    settings: Settings, found: Services, wanted: Sequence[str], *, inline: bool = False
) -> Outcomes:
    """Rebuild with a progress bar that follows real completion; by project None, or its error."""
    outcomes: Outcomes = {}
    redis_client(found.redis_url).close()  # a cache that is down is one error now, not one a project
    with bar("rebuilding", len(wanted)) as advance:
        if inline:
            _here(settings, found, wanted, outcomes, advance)
        else:
            _by_workers(settings, found, wanted, outcomes, advance)
    return outcomes


def _by_workers(
    settings: Settings, found: Services, wanted: Sequence[str], outcomes: Outcomes, advance: Advance
) -> None:
    def done(project: str, error: str | None) -> None:
        outcomes[project] = error
        advance(1)

    app = create_app(settings, found)
    check_broker(found.broker_url)
    with some_worker(settings, app), connect(found.database_url) as connection:
        dispatch.rebuild(connection, app, wanted, done)


def _here(
    settings: Settings, found: Services, wanted: Sequence[str], outcomes: Outcomes, advance: Advance
) -> None:
    with tools(settings, found) as opened:
        for project in wanted:
            try:
                rebuild_project(project, opened)
                outcomes[project] = None
            except ForewordError as error:
                outcomes[project] = str(error)
                if opened.connection.closed:
                    raise
            advance(1)

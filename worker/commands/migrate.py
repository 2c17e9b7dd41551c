"""``migrate``: bring the database up to date and say what was found in it."""

import click

from loaders.catalog import inspect
from loaders.connection import connect
from loaders.migrate import migrate as run_migrations
from loaders.migrate import stop_watching as take_triggers_off
from loaders.watch import unwatched
from worker.screen import print_json, say
from worker.settings import Settings
from worker.wiring import services


@click.command(short_help="Create or update Foreword's tables")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
@click.option("--stop-watching", is_flag=True, help="Take the triggers off the onto_* tables instead.")
@click.pass_obj
def migrate(settings: Settings, *, as_json: bool, stop_watching: bool) -> None:
    """Create or update Foreword's tables.

    The application's onto_* tables are created only in a database that has none; existing ones are adopted as
    they are: they get triggers that log what is edited, and nothing else. Kinds without a table are reported, and
    so are indexes that the loader misses and tables that cannot be watched.
    """
    with services(settings) as found:
        if stop_watching:
            take_triggers_off(found.database_url)
            click.echo("edits are not watched any more; `python -m worker migrate` watches them again")
            return
        revision = run_migrations(found.database_url)
        with connect(found.database_url) as connection:
            catalog, blind = inspect(connection), unwatched(connection)
    if as_json:
        print_json(
            {
                "revision": revision,
                "absent": catalog.absent,
                "missing_indexes": catalog.missing_indexes,
                "unwatched": blind,
            }
        )
        return
    click.echo(f"the database is at revision {revision}, with {len(catalog.present)} kinds of entities")
    for kind in catalog.absent:
        say(f"absent kind: {kind}: there is no table {catalog.kinds.by_name[kind].table}")
    for table, column in catalog.missing_indexes:
        say(f"missing index: create index concurrently on {table} ({column});")
    for table in blind:
        say(f"not watched: {table}: edits of it are in no bundle until something else of the project is edited")

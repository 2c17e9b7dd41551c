"""``migrate``: bring the database up to date and say what was found in it."""

import click

from loaders.catalog import inspect
from loaders.connection import connect
from loaders.migrate import migrate as run_migrations
from worker.screen import print_json, say
from worker.settings import Settings
from worker.wiring import services


@click.command(short_help="Create or update Foreword's tables")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
@click.pass_obj
def migrate(settings: Settings, *, as_json: bool) -> None:
    """Create or update Foreword's tables.

    The application's onto_* tables are created only in a database that has none; existing ones are adopted as
    they are and never altered. Kinds without a table are reported, and so are indexes that the loader misses.
    """
    with services(settings) as found:
        revision = run_migrations(found.database_url)
        with connect(found.database_url) as connection:
            catalog = inspect(connection)
    if as_json:
        print_json({"revision": revision, "absent": catalog.absent, "missing_indexes": catalog.missing_indexes})
        return
    click.echo(f"the database is at revision {revision}, with {len(catalog.present)} kinds of entities")
    for kind in catalog.absent:
        say(f"absent kind: {kind}: there is no table {catalog.kinds.by_name[kind].table}")
    for table, column in catalog.missing_indexes:
        say(f"missing index: create index concurrently on {table} ({column});")

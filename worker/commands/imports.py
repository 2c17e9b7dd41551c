"""``import``: rows from JSONL files, all or nothing."""

from pathlib import Path

import click

from loaders.catalog import inspect
from loaders.connection import connect
from loaders.jsonl import Imported, files_of, import_directory
from loaders.migrate import migrate
from worker.screen import bar, console, print_json, say, table
from worker.settings import Settings
from worker.wiring import Services, services


@click.command(name="import", short_help="Import JSONL files, all or nothing")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--skip-bad", is_flag=True, help="Import what is good and list every row that is not.")
@click.option("--json", "as_json", is_flag=True, help="Print what was imported as JSON.")
@click.pass_obj
def import_(settings: Settings, *, directory: Path, skip_bad: bool, as_json: bool) -> None:
    """Import the <table>.jsonl files of DIRECTORY.

    One JSON object a line, one transaction for all of them: a bad row is named by file and line, and nothing
    is imported. Importing again updates what differs. A relay has what is new or different built at once; without
    one, `python -m worker rebuild --all` does.
    """
    with services(settings) as found:
        if settings.database_url is None:
            migrate(found.database_url)
        done = import_files(found, directory, skip_bad=skip_bad)
    for file, line, reason in done.skipped:
        say(f"skipped {file}:{line}: {reason}")
    if as_json:
        print_json({"rows": dict(done.rows), "changed": dict(done.changed), "skipped": done.skipped})
        return
    rows = [(name, n, done.changed[name]) for name, n in done.rows.items()]
    console().print(table(("table", "rows", "new or changed"), rows, right=("rows", "new or changed")))
    click.echo(f"{sum(done.rows.values())} rows, {len(done.projects)} projects, {len(done.skipped)} skipped")


def import_files(found: Services, directory: Path, *, skip_bad: bool = False) -> Imported:
    """Import with a progress bar over the files' bytes."""
    with connect(found.database_url, statement_seconds=0) as connection:
        catalog = inspect(connection)
        total = sum(size for _, _, size in files_of(directory, catalog))
        with bar("importing", total, counted=False) as advance:
            return import_directory(
                connection,
                directory,
                catalog,
                skip_bad=skip_bad,
                progress=lambda _, read: advance(read),
            )

"""``restored``: what to say after the database went back in time."""

import click

from loaders.connection import connect
from loaders.restored import begin_anew
from worker.screen import confirm, print_json
from worker.settings import Settings
from worker.wiring import services


@click.command(short_help="Say that the database went back in time")
@click.option("--yes", is_flag=True, help="Do not ask first.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.pass_obj
def restored(settings: Settings, *, yes: bool, as_json: bool) -> None:
    """Say that the database went back in time: that it was restored from a backup, or is a replica that lacked
    commits.

    Begins a new epoch: every bundle is built again, edits first, also of parked projects. From then on nobody is
    told that a bundle holds an edit which the database has lost. Bundles stay readable meanwhile. Best before
    relays and workers start.
    """
    with services(settings) as found, connect(found.database_url, statement_seconds=0) as connection:
        confirm("begin a new epoch, and have everything built again?", yes=yes)
        epoch = begin_anew(connection)
    if as_json:
        print_json({"epoch": epoch})
        return
    click.echo(f"epoch {epoch} has begun: a relay has everything built again, see `python -m worker status`")

"""``parked``: projects that were given up after too many failures: which and why, trying them again, or not
hearing of them any more.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

import click

from foreword.errors import BadInput
from foreword.kinds import KINDS
from loaders import ledger
from loaders.catalog import inspect
from loaders.connection import Connection, connect
from loaders.parked import Parked, drop, parked
from worker.references import project_ids
from worker.screen import confirm, console, print_json, table
from worker.settings import Settings
from worker.wiring import services

EVERY = 100_000


@click.group("parked", short_help="Projects that were given up")
def parked_() -> None:
    """Projects whose builds failed so often in a row that they are not tried any more. What was built before can
    be read all the while. An edit, or a request, has one tried again.
    """


@parked_.command("list")
@click.option("--dropped", is_flag=True, help="Also those that were dropped.")
@click.option("--limit", default=100, type=click.IntRange(1, EVERY), show_default=True, help="At most so many.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.pass_obj
def list_(settings: Settings, *, dropped: bool, limit: int, as_json: bool) -> None:
    """List parked projects, the latest first: since when, the error, and how many edits wait."""
    with services(settings) as found, connect(found.database_url) as connection:
        listed = parked(connection, limit, dropped=dropped)
    if as_json:
        print_json([asdict(each) | {"handle": _handle(each), "dropped": each.dropped} for each in listed])
        return
    if not listed:
        click.echo("none")
        return
    rows = [
        (e.project_id, _handle(e), _minute(e.since, "dropped"), e.attempts, _minute(e.built_at, "never"), e.edits)
        for e in listed
    ]
    fields = ("project", "handle", "parked (UTC)", "attempts", "bundle of (UTC)", "edits")
    screen = console()
    screen.print(table(fields, rows, right=("attempts", "edits")))
    for each in listed:  # whole, for they name the row to mend
        screen.print(f"{_handle(each) or each.project_id}: {each.error}", soft_wrap=True, markup=False)


def _minute(at: datetime | None, none: str) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}" if at is not None else none


@parked_.command(short_help="Have PROJECTs tried again")
@click.argument("projects", nargs=-1, metavar="[PROJECT]...")
@click.option("--all", "every", is_flag=True, help="All that are parked, but for those that were dropped.")
@click.pass_obj
def retry(settings: Settings, *, projects: tuple[str, ...], every: bool) -> None:
    """Have PROJECTs (UUIDs or handles) tried again, as often as before they were parked. The relay that leads has
    them built at once; `rebuild PROJECT` would wait for it and say how it ended.
    """
    with services(settings) as found, connect(found.database_url) as connection:
        wanted = _wanted(connection, projects, every=every)
        ledger.request_builds(connection, wanted)
    click.echo(f"trying {len(wanted)} again")


@parked_.command("drop", short_help="Hear no more of PROJECTs; they stay parked")
@click.argument("projects", nargs=-1, metavar="[PROJECT]...")
@click.option("--all", "every", is_flag=True, help="All that are parked.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def drop_(settings: Settings, *, projects: tuple[str, ...], every: bool, yes: bool) -> None:
    """Hear no more of PROJECTs that are parked: they stay so, and are neither listed nor counted among them.

    Nothing is deleted: readers keep the bundle that they have, which tells its age, and the next edit, `parked
    retry` or `rebuild` tries the project again. If it fails again, it is parked and named again.
    """
    with services(settings) as found, connect(found.database_url) as connection:
        wanted = _wanted(connection, projects, every=every)
        if wanted:
            confirm(f"stop telling of {len(wanted)} parked projects?", yes=yes)
        dropped = drop(connection, wanted)
    click.echo(f"dropped {len(dropped)}")


def _wanted(connection: Connection, projects: Sequence[str], *, every: bool) -> list[str]:
    """The ids of the parked projects that are meant.

    Raises:
        BadInput: one of them is not parked; nothing was done.
    """
    if every == bool(projects):
        raise click.UsageError("name projects, or say --all")
    known = {each.project_id for each in parked(connection, EVERY, dropped=not every)}
    if every:
        return sorted(known)
    wanted = project_ids(connection, projects, inspect(connection))
    for project in wanted:
        if project not in known:
            raise BadInput(
                f"project {project} is not parked; `python -m worker parked list` names those that are,"
                " `python -m worker rebuild PROJECT` builds any at once"
            )
    return wanted


def _handle(each: Parked) -> str | None:
    return f"{KINDS.project.handle}{each.number}" if each.number is not None else None

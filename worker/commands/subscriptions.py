"""``subscriptions``: who gets a brief, and when."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import time
from pathlib import Path
from typing import Any

import click
import orjson

from loaders import subscriptions as stored
from loaders.catalog import Catalog, inspect
from loaders.connection import Connection, connect
from loaders.enrolment import enrol
from loaders.subscriptions import Subscription
from loaders.wanted import CHANNELS, WEEKDAYS, WHEN_EMPTY, actor_named, wanted
from worker.screen import console, print_json, say, table
from worker.settings import Settings
from worker.wiring import services

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")


@click.group(short_help="Say who gets a brief, and when")
def subscriptions() -> None:
    """Say who gets a daily brief, and when. USER is an actor's id, its user_id, or its e-mail address."""


@subscriptions.command()
@click.argument("user")
@click.option("--zone", help="Time zone of the IANA database, such as Europe/Berlin; a new one needs it.")
@click.option("--at", metavar="HH:MM", help="Local time of day; of a new one 09:00.")
@click.option("--weekly", "weekday", metavar="DAY", help=f"Only on this day: {', '.join(WEEKDAYS)}.")
@click.option("--daily", "weekday", flag_value="daily", help="Every day, as a new one is.")
@click.option("--channel", "channels", multiple=True, help=f"Where it goes: {' and '.join(CHANNELS)}.")
@click.option(
    "--when-empty", help=f"Without a project in hand: {' or '.join(WHEN_EMPTY)}; of a new one the first."
)
@click.option("--tenant", help="Who shares a place in the queue; by default everybody has his own.")
@AS_JSON
@click.pass_obj
def add(settings: Settings, /, user: str, *, as_json: bool, channels: tuple[str, ...], **fields: Any) -> None:
    """Give USER a brief, or change it: what is not named stays as it is. What was made for another time and not
    told is taken back.
    """
    named = {**fields, "channels": list(channels)}
    given = {name: value for name, value in named.items() if value}
    with _database(settings) as (connection, catalog):
        actor = actor_named(connection, catalog, user)
        made = stored.save(connection, wanted({**_as_it_is(connection, actor), **given, "user_id": actor}))
    _show([made], as_json=as_json)


def _as_it_is(connection: Connection, actor: str) -> dict[str, object]:
    """What a subscription says now, in the words of ``loaders.wanted``; nothing where there is none."""
    found = stored.find(connection, actor)
    if found is None:
        return {}
    kept = ("zone", "at", "channels", "when_empty", "tenant")
    weekday = "daily" if found.weekday is None else WEEKDAYS[found.weekday]
    return {"weekday": weekday, **{name: getattr(found, name) for name in kept}}


@subscriptions.command("list")
@click.option("--user", help="Only this one.")
@AS_JSON
@click.pass_obj
def list_(settings: Settings, *, user: str | None, as_json: bool) -> None:
    """List subscriptions, with the next run of each, and why those cannot run that cannot."""
    with _database(settings) as (connection, catalog):
        if user is not None:
            _show([stored.get(connection, actor_named(connection, catalog, user))], as_json=as_json)
        elif as_json:
            _print_all(connection)
        else:
            _show([*_pages(connection, MOST_SHOWN)], as_json=False)


@subscriptions.command()
@click.argument("user")
@AS_JSON
@click.pass_obj
def pause(settings: Settings, user: str, *, as_json: bool) -> None:
    """Send USER no briefs until `resume`."""
    _change(settings, user, stored.pause, as_json=as_json)


@subscriptions.command()
@click.argument("user")
@AS_JSON
@click.pass_obj
def resume(settings: Settings, user: str, *, as_json: bool) -> None:
    """Send USER briefs again, from the next time on."""
    _change(settings, user, stored.resume, as_json=as_json)


@subscriptions.command()
@click.argument("user")
@click.pass_obj
def remove(settings: Settings, user: str) -> None:
    """Forget USER's subscription. Briefs that were told stay readable."""
    with _database(settings) as (connection, catalog):
        gone = stored.remove(connection, actor_named(connection, catalog, user))
    click.echo("removed" if gone else "there was none")


@subscriptions.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--skip-bad", is_flag=True, help="Import what is good and list every row that is not.")
@AS_JSON
@click.pass_obj
def import_(settings: Settings, *, file: Path, skip_bad: bool, as_json: bool) -> None:
    """Import subscriptions from FILE, JSON lines or CSV, all or nothing.

    Fields: user and zone; and if you like at, weekday, channels, when_empty, tenant, active.
    """
    with _database(settings) as (connection, catalog):
        done = enrol(connection, catalog, file, skip_bad=skip_bad)
    for name, line, reason in done.skipped:
        say(f"skipped {name}:{line}: {reason}")
    if as_json:
        print_json(asdict(done))
    else:
        click.echo(f"{done.rows} subscriptions, {done.changed} new or changed, {len(done.skipped)} skipped")


@contextmanager
def _database(settings: Settings) -> Iterator[tuple[Connection, Catalog]]:
    with services(settings) as found, connect(found.database_url, statement_seconds=0) as connection:
        yield connection, inspect(connection)


def _change(
    settings: Settings, user: str, change: Callable[[Connection, str], Subscription], *, as_json: bool
) -> None:
    with _database(settings) as (connection, catalog):
        found = change(connection, actor_named(connection, catalog, user))
    _show([found], as_json=as_json)


MOST_SHOWN = 1000
"""Rows of the table for people; JSON has all."""


def _pages(connection: Connection, most: int | None = None) -> Iterator[Subscription]:
    page = stored.listed(connection)
    seen = 0
    while page:
        yield from page
        seen += len(page)
        if most is not None and seen >= most:
            say(f"the first {seen}; --json lists all, --user one")
            return
        page = stored.listed(connection, after=page[-1].user_id)


def _print_all(connection: Connection) -> None:
    """All of them as a JSON array, a line each, as they come: there may be very many."""
    click.echo("[", nl=False)
    for number, each in enumerate(_pages(connection)):
        click.echo(
            (",\n" if number else "\n").encode() + orjson.dumps(_plain(asdict(each)), default=str), nl=False
        )
    click.echo("\n]")


def _show(found: list[Subscription], *, as_json: bool) -> None:
    if as_json:
        print_json([_plain(asdict(each)) for each in found])
        return
    rows = [
        (
            each.user_id,
            each.zone,
            f"{each.at:%H:%M}" if not each.at.second else f"{each.at:%H:%M:%S}",
            "daily" if each.weekday is None else WEEKDAYS[each.weekday],
            "broken" if each.error else "active" if each.active else "paused",
            f"{each.next_run_at:%Y-%m-%d %H:%M}Z" if each.next_run_at and each.active else "",
            each.error,
        )
        for each in found
    ]
    console().print(table(("user", "zone", "at", "when", "state", "next run", "error"), rows))
    if not found:
        click.echo("nobody yet; `python -m worker subscriptions add USER --zone ZONE`")


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A time of day as text; the rest JSON knows."""
    return {name: value.isoformat() if isinstance(value, time) else value for name, value in fields.items()}

"""``brief``: a person's brief of a day, as they get it. ``briefs``: how all of them stand. ``beat``: have them
scheduled. ``dead-letters``: what was given up.
"""

import signal
import time
from dataclasses import asdict, replace
from datetime import date, datetime
from functools import partial
from typing import Any

import click

from foreword.brief import ASKED
from foreword.dates import today
from foreword.errors import BadInput, BuildError, ForewordError
from foreword.lines import Line, fit
from foreword.zones import zone_named
from loaders import announcements, briefs, shelf
from loaders import subscriptions as enrolled
from loaders.briefs import Begun
from loaders.connection import connect, mapped
from loaders.lateness import status as stand
from loaders.shelf import StoredBrief
from loaders.wanted import actor_named
from prompts.brief_html import html
from prompts.brief_markdown import markdown
from tasks.brief import finish_brief, write_brief
from tasks.tools import Tools
from worker import events
from worker.app import create_app
from worker.beating import beating_scheduler
from worker.crew import ENDING
from worker.screen import console, heading, loglevel, print_json, say, table
from worker.settings import Settings
from worker.watchdog import watch
from worker.wiring import check_broker, services, tools

WAIT_SECONDS, LOOK_SECONDS = 120.0, 0.2
"""For a brief that somebody else is making: longer than his lease."""

EARLIEST = date(1970, 1, 1)


@click.command(short_help="Show or make a person's brief")
@click.argument("user")
@click.option(
    "--date", "day", type=click.DateTime(["%Y-%m-%d"]), help="A local date; by default the user's today."
)
@click.option(
    "--markdown", "form", flag_value="markdown", default="markdown", help="As a person reads it (default)."
)
@click.option("--html", "form", flag_value="html", help="For a mail: one page, nothing is fetched.")
@click.option("--json", "form", flag_value="json", help="The structured document.")
@click.option("--text", "form", flag_value="text", help="For a chat: lines, counted.")
@click.option("--force", is_flag=True, help="Make it again where there is one: its revision rises.")
@click.option("--dry-run", is_flag=True, help="Make it and keep nothing.")
@click.pass_obj
def brief(settings: Settings, user: str, day: datetime | None, form: str, *, force: bool, dry_run: bool) -> None:
    """Show USER's brief of a date; make it first where there is none. USER is an actor's id, its user_id, or its
    e-mail address.

    What is made by hand is told to nobody, and the scheduled one comes all the same, at its hour.
    """
    with services(settings) as found, tools(settings, found) as own:
        actor = actor_named(own.connection, own.statements.catalog, user)
        zone = _zone(actor, own)
        local = day.date() if day else own.today(zone_named(zone))
        _check_date(local, zone, own)
        if dry_run:
            alone = replace(own, model=None)  # who is asked is paid, and that is recorded
            made = write_brief(actor, local, alone, kind=ASKED, zone=zone, now=_now(own))
            _print(made.document, fit(made.lines, made.always, own.budget).text, form)
            say("nothing was kept")
            return
        kept = kept_brief(actor, local, zone, own, force=force)
        assert kept.document is not None and kept.lines is not None  # noqa: PT018, S101 - it can be read
        always, lines = kept.lines
        _print(kept.document, fit([Line(*line) for line in lines], always, own.budget).text, form)
        say(f"brief of {kept.local_date}, revision {kept.revision}, words by {kept.words}")


def _zone(actor: str, own: Tools) -> str:
    """The subscription's zone; without one, that of the settings."""
    subscription = enrolled.find(own.connection, actor)
    return subscription.zone if subscription is not None else own.zone.key


def _now(own: Tools) -> datetime:
    with mapped("asking for the time"):
        return datetime.fromisoformat(own.connection.execute("select now()").fetchall()[0][0])


def _check_date(day: date, zone: str, own: Tools) -> None:
    if day < EARLIEST:
        raise BadInput(f"there are no briefs of dates before {EARLIEST}")
    present = own.as_of or today(_now(own), zone_named(zone))
    if day > present:
        raise BadInput(f"{day} has not begun in {zone}, where it is {present}; its brief is made on the day")


def kept_brief(actor: str, day: date, zone: str, own: Tools, *, force: bool = False) -> StoredBrief:
    """The brief that can be read, made now if need be. One that somebody else makes is waited for.

    Raises:
        ForewordError: it could not be made.
    """
    deadline, waits = time.monotonic() + WAIT_SECONDS, False
    while time.monotonic() < deadline:
        found = briefs.begin_now(own.connection, actor, day, force=force, zone=zone)
        if isinstance(found, Begun):
            finish_brief(found, own)
            force = False
        elif found.state == "ready" and not force:
            return found
        elif found.state in {"skipped", "failed"}:
            raise ForewordError(f"the brief of {day} was {found.state}: {found.reason}")
        elif not waits:
            waits = True
            say(f"the brief of {day} is being made by another; waiting for it")
        time.sleep(LOOK_SECONDS)
    raise BuildError(f"the brief of {day} is being made by another for {WAIT_SECONDS:.0f} s; look at the workers")


def _print(document: dict[str, Any], text: str, form: str) -> None:
    if form == "json":
        print_json(document)
    else:
        said = {"markdown": lambda: markdown(document), "html": lambda: html(document), "text": lambda: text}[
            form
        ]()
        click.echo(said, nl=not said.endswith("\n"))


@click.group("briefs", short_help="How briefs stand")
def briefs_() -> None:
    """How briefs stand."""


@briefs_.command()
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.pass_obj
def status(settings: Settings, *, as_json: bool) -> None:
    """How briefs stand: what waits, what is late and by how much, what failed, who comes next."""
    with services(settings) as found, connect(found.database_url) as connection:
        stands = stand(connection)
    if as_json:
        print_json(asdict(stands))
        return
    rows: list[tuple[str, Any]] = [(f"{state}, last 24 h", n) for state, n in sorted(stands.states.items())]
    rows += [(f"lateness {share}, s", f"{seconds:.1f}") for share, seconds in stands.lateness.items()]
    named = (
        ("waiting to be made", stands.pending),
        ("being made", stands.generating),
        ("due and not ready", stands.overdue),
        ("the longest for, s", f"{stands.greatest_lateness:.0f}"),
        ("next due", f"{stands.next_due:%Y-%m-%d %H:%M:%S}Z" if stands.next_due else "nobody"),
        ("subscriptions", f"{stands.active} active, {stands.paused} paused, {stands.broken} broken"),
        ("announcements waiting", stands.announcements_waiting),
        ("dead letters", stands.briefs_dead + stands.announcements_dead),
    )
    console().print(table(("what", "number"), [*rows, *named], right=("number",)))


@briefs_.command("list")
@click.argument("user")
@click.option("--limit", default=30, type=click.IntRange(1, 1000), show_default=True, help="At most so many.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.pass_obj
def list_(settings: Settings, user: str, *, limit: int, as_json: bool) -> None:
    """USER's briefs, the latest first: which there are, and why there is none where there is none."""
    with services(settings) as found, tools(settings, found) as own:
        actor = actor_named(own.connection, own.statements.catalog, user)
        heads = shelf.listed(own.connection, actor, limit)
    if as_json:
        print_json([asdict(head) for head in heads])
        return
    fields = ("local_date", "state", "kind", "revision", "words", "due_at", "told_at", "reason")
    console().print(table(fields, [[getattr(head, name) for name in fields] for head in heads]))


@click.command(short_help="Have briefs scheduled")
@loglevel
@click.pass_obj
def beat(settings: Settings, *, loglevel: str | None) -> None:
    """Send a tick to the workers every few seconds, until told to end: look who is due.

    Any number of beats may run. Without one the relay ticks.
    """
    import celery.app.amqp  # noqa: F401

    events.begin("beat", settings, loglevel)
    with services(settings) as found:
        check_broker(found.broker_url)
        events.started()
        app = create_app(settings, found)
        # What tells to end waits for the first round: until then Celery loads modules, also when it is told to
        # end, and one that is half loaded is an error. What sending takes is loaded above.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        listen = partial(signal.pthread_sigmask, signal.SIG_SETMASK, before)
        scheduler, pulse = beating_scheduler(settings, found, listen)
        watch(pulse, [found.broker_url])
        try:
            # Nothing is remembered between runs: the database knows who is due.
            app.Beat(
                scheduler=scheduler,  # type: ignore[arg-type]  # a class is taken as its name is
                loglevel=loglevel or "WARNING",
                quiet=True,
                working_directory=None,
            ).run()
        finally:
            listen()
            pulse.end()
        events.emit("process_ended", reason="told to end")


@click.group("dead-letters", short_help="What was given up, and trying it again")
def dead_letters() -> None:
    """Briefs and announcements that were tried often enough, and trying them again."""


@dead_letters.command("list")
@click.option("--limit", default=100, type=click.IntRange(1, 10_000), show_default=True, help="At most so many.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.pass_obj
def list_dead(settings: Settings, *, limit: int, as_json: bool) -> None:
    """List what was given up, the latest first, with the last error."""
    with services(settings) as found, connect(found.database_url) as connection:
        letters = announcements.dead_letters(connection, limit)
    if as_json:
        print_json([asdict(letter) for letter in letters])
        return
    rows = [
        (each.user_id, each.local_date, each.channel or "brief", each.attempts, each.at, each.error)
        for each in letters
    ]
    console().print(table(("user", "date", "what", "attempts", "when", "error"), rows, right=("attempts",)))
    if not letters:
        click.echo("none")


@dead_letters.command("show")
@click.argument("user")
@click.option("--date", "day", type=click.DateTime(["%Y-%m-%d"]), help="Only of this local date.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.pass_obj
def show_dead(settings: Settings, user: str, *, day: datetime | None, as_json: bool) -> None:
    """Show what of USER's was given up: how often it was tried, the last error, how its brief stands, and what
    `replay` would do.
    """
    with services(settings) as found, tools(settings, found) as own:
        actor = actor_named(own.connection, own.statements.catalog, user)
        letters = announcements.letters_of(own.connection, actor, day.date() if day else None)
    if as_json:
        print_json([asdict(letter) | {"replay": _replayed(letter)} for letter in letters])
        return
    if not letters:
        click.echo("none")
    for letter in letters:
        heading(f"{letter.channel or 'brief'} of {letter.local_date} in {letter.zone}")
        rows = (
            ("given up", letter.at),
            ("tried", f"{letter.attempts} times"),
            ("last error", letter.error),
            ("the brief is", f"{letter.state}, revision {letter.revision}, {letter.kind}"),
            ("due", letter.due_at or "asked for by hand"),
            ("replaying", _replayed(letter)),
        )
        for name, said in rows:
            click.echo(f"  {name:<13} {said}")


def _replayed(letter: announcements.Letter) -> str:
    """What trying it again would do."""
    if letter.channel is not None:
        return f"tells revision {letter.revision} on the channel {letter.channel}, at once"
    if letter.over:
        return "makes the brief for whoever asks, and tells nobody: its date is over"
    if letter.due_at is None:
        return "makes the brief for whoever asked"
    return "makes the brief and tells that it is ready"


@dead_letters.command()
@click.argument("user", required=False)
@click.option("--date", "day", type=click.DateTime(["%Y-%m-%d"]), help="Only of this local date.")
@click.option("--all", "every", is_flag=True, help="Everybody's.")
@click.pass_obj
def replay(settings: Settings, user: str | None, day: datetime | None, *, every: bool) -> None:
    """Try again what was given up: USER's, or with --all everybody's. A brief whose date is over is made, and told
    to nobody.
    """
    if every == bool(user):
        raise click.UsageError("name a user, or say --all")
    with services(settings) as found, tools(settings, found) as own:
        actor = actor_named(own.connection, own.statements.catalog, user) if user else None
        done = announcements.replay(own.connection, actor, day.date() if day else None)
    click.echo(f"trying again {done.briefs} briefs and {done.announcements} announcements")

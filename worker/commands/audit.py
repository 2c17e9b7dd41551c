"""``audit``: compare bundles with fresh builds."""

import secrets
from collections import Counter
from contextlib import closing
from dataclasses import asdict

import click

from foreword.errors import ForewordError
from loaders import audits
from loaders.connection import connect
from tasks.audit import Audited, Outcome, audit_project
from worker.screen import bar, confirm, print_json, say
from worker.settings import Settings
from worker.wiring import Services, redis_client, services, stored_in, tools


@click.command(short_help="Compare bundles with fresh builds")
@click.option(
    "--projects",
    "number",
    default=20,
    type=click.IntRange(1, 1_000_000),
    show_default=True,
    help="How many, by chance, of those where nothing waits.",
)
@click.option("--seed", help="The same projects as last time; by default others each time.")
@click.option("--reset", is_flag=True, help="Instead set the numbers on record to 0.")
@click.option("--yes", is_flag=True, help="Do not ask before a reset.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.pass_obj
def audit(settings: Settings, *, number: int, seed: str | None, reset: bool, yes: bool, as_json: bool) -> int:
    """Compare bundles, byte for byte but for their stamps, with what a build would give now.

    Nothing is changed but two numbers on record: how many were compared, and how many were different, which must
    stay 0. What is different twice, a second apart, with nothing edited or built meanwhile, is a fault: exit code
    1. The relay that leads compares one a minute while nothing waits.
    """
    with services(settings) as found:
        if reset:
            return _reset(found, yes=yes)
        seed = seed or secrets.token_hex(4)
        done = _audit(settings, found, number, seed)
    counted = Counter(each.outcome for each in done)
    different = [each for each in done if each.outcome is Outcome.DIFFERENT]
    if as_json:
        numbers = {str(outcome): counted[outcome] for outcome in Outcome}
        print_json({"seed": seed, **numbers, "projects": [asdict(each) for each in done if each.says]})
    else:
        click.echo(
            f"{counted[Outcome.SAME]} of {len(done)} bundles are what a fresh build gives, {len(different)} are"
            f" different, {counted[Outcome.MISSING]} missing, {counted[Outcome.SKIPPED]} skipped; seed {seed}"
        )
        for each in done:
            if each.says:
                say(f"{each.outcome}: {each.project_id}: {each.says}")
    return ForewordError.exit_code if different else 0


def _audit(settings: Settings, found: Services, number: int, seed: str) -> list[Audited]:
    with tools(settings, found) as own, redis_client(found.redis_url) as client:
        picked = audits.pick(own.connection, number, seed)
        done = []
        with bar("comparing", len(picked)) as advance:
            for project in picked:
                done.append(audit_project(project, own, stored_in(client)))
                advance(1)
        return done


def _reset(found: Services, *, yes: bool) -> int:
    confirm("forget how many bundles were different?", yes=yes)
    with closing(connect(found.database_url)) as connection:
        audits.reset(connection)
    click.echo("reset")
    return 0

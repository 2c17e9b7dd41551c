"""``doctor``: every prerequisite, how it stands, and what to do."""

from dataclasses import asdict

import click

from worker.checkup import Finding, Verdict, examine, exit_code, masked, patient
from worker.screen import print_json
from worker.settings import Settings
from worker.wiring import services

COLOURS = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.FAIL: "red", Verdict.SKIP: "yellow"}


@click.command(short_help="Check every prerequisite")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON, with all settings in force.")
@click.pass_obj
def doctor(settings: Settings, *, as_json: bool) -> int:
    """Check every prerequisite, and say what to do about those that are not met.

    Exit code 0 where none fails, 1 where one does, 3 where PostgreSQL or Redis does not answer. Nothing is
    changed but a probe in Redis, which is deleted at once.
    """
    with services(settings) as found, patient(settings, found) as (one, findings):
        for finding in findings:
            _say(finding, as_json=as_json)
        for finding in examine(one):
            findings.append(finding)
            _say(finding, as_json=as_json)
    if as_json:
        in_force = {name: None if value is None else masked(value) for name, value in settings}
        print_json({"checks": [asdict(each) for each in findings], "settings": in_force})
    return exit_code(findings)


def _say(finding: Finding, *, as_json: bool) -> None:
    """At once: a check may take a while."""
    if as_json:
        return
    verdict = click.style(f"{finding.verdict:<4}", fg=COLOURS[finding.verdict])
    click.echo(f"{verdict}  {finding.check:<19} {finding.what}")
    if finding.remedy:
        click.echo(f"      {'':<19} → {finding.remedy}")

"""The command line: one group, one command a file, one place where errors become messages and exit codes.

Exit codes: 0 done, 1 failed, 2 bad input (nothing was changed), 3 PostgreSQL or Redis does not answer,
130 interrupted, 143 told to end.
"""

import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

import foreword
from foreword.errors import ForewordError
from worker.commands.demo import demo
from worker.commands.imports import import_
from worker.commands.migrate import migrate
from worker.commands.projects import projects
from worker.commands.rebuild import rebuild
from worker.commands.show import show
from worker.commands.up import up
from worker.commands.work import work
from worker.settings import PREFIX, Settings, from_environment


def _settings_help() -> str:
    rows = [(f"{PREFIX}{name.upper()}", field.description or "") for name, field in Settings.model_fields.items()]
    return "\n".join(["\b", "Settings (environment variables):", *(f"  {n:<24} {d}" for n, d in rows)])


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog=_settings_help(),
)
@click.option("--data-dir", type=click.Path(file_okay=False), help="Where embedded servers keep their data.")
@click.version_option(foreword.__version__, prog_name="foreword")
@click.pass_context
def cli(context: click.Context, data_dir: str | None) -> None:
    """Foreword prepares what a chat agent must know before the first message.

    With nothing configured, commands start their own PostgreSQL and Redis and stop them again; commands that
    run at once share them.
    """
    environment = dict(os.environ)
    if data_dir is not None:
        environment[f"{PREFIX}DATA_DIR"] = data_dir
    context.obj = from_environment(environment)


for command in (up, demo, migrate, import_, projects, rebuild, show, work):
    cli.add_command(command)


def main(arguments: Sequence[str]) -> int:
    """Run a command; its exit code."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        result = cli.main(list(arguments), prog_name="python -m worker", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted; nothing half done is left", err=True)
        return 130
    except ForewordError as error:
        click.echo(f"error: {error}", err=True)
        return error.exit_code
    except BrokenPipeError:
        # Whoever read our output has enough (a pager, head): not an error, and nothing more to print.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return result if isinstance(result, int) else 0


def _terminated(_signal: int, _frame: object) -> NoReturn:
    """SIGTERM ends a command as Ctrl-C does: in order."""
    raise SystemExit(143)

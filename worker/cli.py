"""The command line: one group, one command a file, one place where errors become messages and exit codes.

Exit codes: 0 done, 1 failed, 2 bad input (nothing was changed), 3 PostgreSQL or Redis does not answer,
130 interrupted, 143 told to end, 129 the terminal was closed.
"""

import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

import click

import foreword
from foreword.errors import ForewordError
from worker.commands.audit import audit
from worker.commands.briefs import beat, brief, briefs_, dead_letters
from worker.commands.demo import demo
from worker.commands.doctor import doctor
from worker.commands.explain import explain_, inspect_
from worker.commands.flower import flower
from worker.commands.health import health
from worker.commands.imports import import_
from worker.commands.migrate import migrate
from worker.commands.parked import parked_
from worker.commands.projects import projects
from worker.commands.rebuild import rebuild
from worker.commands.relay import build, pause, relay, resume
from worker.commands.restored import restored
from worker.commands.show import show
from worker.commands.status import status
from worker.commands.subscriptions import subscriptions
from worker.commands.up import up
from worker.commands.work import work
from worker.crew import ENDING
from worker.events import last
from worker.settings import PREFIX, Settings, from_environment

AGAIN_SECONDS = 0.05
"""Until a signal that was lost is sent again."""


def _settings_help() -> str:
    rows = [(f"{PREFIX}{name.upper()}", field.description or "") for name, field in Settings.model_fields.items()]
    return "\n".join(
        [
            "\b",
            "Settings (environment variables; NAME_FILE names a file that holds the value):",
            *(f"  {n:<24} {d}" for n, d in rows),
        ]
    )


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


for command in (
    up,
    demo,
    migrate,
    import_,
    projects,
    rebuild,
    show,
    explain_,
    inspect_,
    brief,
    briefs_,
    subscriptions,
    dead_letters,
    status,
    doctor,
    health,
    parked_,
    audit,
    work,
    relay,
    beat,
    flower,
    pause,
    resume,
    restored,
    build,
):
    cli.add_command(command)


def main(arguments: Sequence[str]) -> int:
    """Run a command; its exit code."""
    _listen()
    logging.getLogger("psycopg").addHandler(logging.NullHandler())  # what it ignores is nobody's concern here
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a title that a terminal cannot show is no reason to end
    try:
        return _run(arguments)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as stopped:
        last("process_ended", "interrupted; nothing half done is left")
        # Celery's own command line makes an Abort of what came before Celery listened to signals itself.
        return next((e.exit_code for e in (stopped, stopped.__cause__) if isinstance(e, Ended)), 130)
    except ForewordError as error:
        last("process_failed", str(error))
        return error.exit_code
    except OSError as error:
        return _unwritten(error)


def _run(arguments: Sequence[str]) -> int:
    # Not cli.main: it answers for what is answered for above.
    try:
        with cli.make_context("python -m worker", list(arguments)) as context:
            result = cli.invoke(context)
        sys.stdout.flush()  # a full disk is found out here, and not on the way out
    except click.exceptions.Exit as left:
        return left.exit_code
    return result if isinstance(result, int) else 0


def _unwritten(error: OSError) -> int:
    """Standard output that takes no more: whoever read it has enough (a pager, head), or a full disk."""
    with suppress(OSError):  # no such thing where it is captured
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still in the buffer
    if isinstance(error, BrokenPipeError):
        return 0
    last("process_failed", str(error))
    return ForewordError.exit_code


class Ended(KeyboardInterrupt):
    """Told to end. A kind of KeyboardInterrupt, because libraries know how to be interrupted by one: psycopg
    cancels what the server is doing.
    """

    exit_code = 0


def _found_again(lost: "sys.UnraisableHookArgs") -> None:
    """A signal's exception that was raised where Python has to swallow it, in a finalizer or in a callback of a
    weak reference: the signal is sent once more, when that is over.
    """
    if isinstance(lost.exc_value, (KeyboardInterrupt, SystemExit)):
        number = lost.exc_value.exit_code - 128 if isinstance(lost.exc_value, Ended) else signal.SIGINT
        threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), number)).start()
    else:
        sys.__unraisablehook__(lost)


def _listen() -> None:
    """What ends a process ends a command in order, as Ctrl-C does: SIGTERM, and the terminal that is closed."""
    sys.unraisablehook = _found_again
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)  # whoever started us may have held them back meanwhile
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, _ended)


def _ended(number: int, _frame: object) -> NoReturn:
    ended = Ended()
    ended.exit_code = 128 + number
    raise ended

"""``make load``: what ``benchmarks.load`` is, from a command line.

make load ARGS="--seconds 1800 --projects 3000"
"""

import argparse
import shutil
import signal
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import benchmarks.load
from benchmarks.load import report
from benchmarks.load.run import Options, run
from benchmarks.load.system import running
from foreword.errors import ForewordError
from worker.screen import print_json, say


def main() -> int:
    """0: everything held; 1: something did not; 130: interrupted."""
    asked = _parser().parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    home = Path(tempfile.mkdtemp(prefix="fw-load-", dir=asked.dir))
    options = Options(
        home=home,
        seed=asked.seed,
        seconds=asked.seconds,
        projects=asked.projects,
        users=asked.users,
        edits=asked.edits,
        reads=asked.reads,
        restart=() if asked.no_restart else None,
        ramp=not asked.no_ramp,
    )
    held = False
    try:
        with running(home) as system:
            found = report.outcome(run(options, system))
        if asked.json:
            print_json(asdict(found))
        else:
            report.show(found)
        held = not found.wrong
    except KeyboardInterrupt:
        say("interrupted; nothing is left running")
        held = True  # or rather, nobody wants to know
        return 130
    except ForewordError as error:
        say(f"it came to no end: {error}")
    finally:
        if held and not asked.keep:
            shutil.rmtree(home, ignore_errors=True)
        else:
            say(f"kept: {home}")
    return 0 if held else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.load",
        description=benchmarks.load.__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--seconds", type=float, default=300.0, help="of the steady part, in which every brief is due")
    add("--projects", type=int, default=2000, help="in the account at first")
    add("--users", type=int, default=1000, help="people, each with a brief a day")
    add("--edits", type=float, default=40.0, help="a second on average; three times as many now and then")
    add("--reads", type=float, default=50.0, help="a second")
    add("--seed", type=int, default=1, help="gives the same account, people and edits")
    add("--no-restart", action="store_true", help="let every process run to the end")
    add("--no-ramp", action="store_true", help="do not look for what binds first")
    add("--keep", action="store_true", help="keep data and logs, also where everything held")
    add("--dir", type=Path, default=Path("/tmp"), help="where data and logs are kept meanwhile")
    add("--json", action="store_true", help="print as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""The storm: ``.venv/bin/python tests/storm/run.py --help``. What it is: ``storm.command``."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def run() -> int:
    """The exit code. The rooms and the tests are importable, this directory is not: see ``chaos.run``."""
    sys.path[:1] = [str(TESTS.parent), str(TESTS)]
    from storm.command import main

    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())

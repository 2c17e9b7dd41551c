"""The torture test: ``.venv/bin/python tests/chaos/run.py --help``. What it is: ``chaos.command``."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def run() -> int:
    """The exit code. The rooms and the tests are importable first; this directory itself is not a place to import
    from: its modules would hide others of the same name.
    """
    sys.path[:1] = [str(TESTS.parent), str(TESTS)]
    from chaos.command import main

    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())

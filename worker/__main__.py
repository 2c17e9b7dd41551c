"""``python -m worker``: the command line."""

import os
import sys
import zoneinfo

from worker.health import quick
from worker.parent import follow_parent

zoneinfo.reset_tzpath(to=())  # zones come from the locked tzdata, not from the host (docs/adr/0008)


def run() -> int:
    """The exit code; also of a Ctrl-C while everything is still being imported, which takes most of a second."""
    try:
        if (code := quick(sys.argv[1:], os.environ)) is not None:
            return code
        if not follow_parent(os.environ):
            return 143
        from worker.cli import main

        return main(sys.argv[1:])
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(run())

"""``python -m worker``: the command line."""

import sys
import zoneinfo

zoneinfo.reset_tzpath(to=())  # zones come from the locked tzdata, not from the host (docs/adr/0008)


def run() -> int:
    """The exit code; also of a Ctrl-C while everything is still being imported, which takes most of a second."""
    try:
        from worker.cli import main

        return main(sys.argv[1:])
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(run())

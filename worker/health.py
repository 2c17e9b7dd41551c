"""``health`` of processes on this machine, by the age of the files that their main loops touch
(``worker.pulse``).

Standard library only, and read by ``worker.__main__`` before anything else: a probe asks every ten seconds, and
the rest of the command line takes a second to import. A shell does as well::

    find "$FOREWORD_HEALTH_DIR" -name 'worker-*' -newermt '-30 seconds' | grep -q .
"""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

ROLES = ("worker", "relay", "beat", "flower")
SECONDS = 30.0
"""A loop that has not turned for so long is not well. The slowest, the beat's, turns every five seconds."""


def directory(environment: Mapping[str, str]) -> Path:
    """The health directory: as ``worker.settings`` has it."""
    if named := environment.get("FOREWORD_HEALTH_DIR"):
        return Path(named).expanduser().absolute()
    if data := environment.get("FOREWORD_DATA_DIR"):
        return below(Path(data).expanduser().absolute())
    import platformdirs

    return below(platformdirs.user_data_path("foreword"))


def below(data_dir: Path) -> Path:
    """The default, where embedded servers keep their data."""
    return data_dir / "health"


def alive(pid: int) -> bool:
    """Whether there is such a process on this machine."""
    with suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
    return True


def ages(where: Path, role: str = "") -> dict[str, float]:
    """Seconds since the loops of the processes that live turned, by file name; of one role, or of all."""
    found = {}
    with suppress(OSError):
        for file in sorted(where.iterdir()):
            named, _, pid = file.name.rpartition("-")
            if named in ROLES and role in {"", named} and pid.isdecimal() and alive(int(pid)):
                with suppress(OSError):
                    found[file.name] = max(time.time() - file.stat().st_mtime, 0.0)
    return found


def clear(where: Path) -> None:
    """Remove the files of processes that are no more."""
    for file in where.iterdir():
        named, _, pid = file.name.rpartition("-")
        if named in ROLES and pid.isdecimal() and not alive(int(pid)):
            file.unlink(missing_ok=True)


def judged(where: Path, role: str = "", seconds: float = SECONDS) -> tuple[bool, list[str]]:
    """Whether all are well, and a line on each that is; or on what is not."""
    found = ages(where, role)
    late = {name: age for name, age in found.items() if age > seconds}
    if not found:
        return False, [f"no {role or 'process'} has left a sign of life in {where}"]
    if late:
        return False, [f"{name}: its main loop has not turned for {age:.0f} s" for name, age in late.items()]
    return True, [f"{name}: turned {age:.1f} s ago" for name, age in found.items()]


def quick(arguments: Sequence[str], environment: Mapping[str, str]) -> int | None:
    """The exit code of ``health [--role ROLE]``; None for whatever else is asked: the command line's."""
    match arguments:
        case ["health"]:
            role = ""
        case ["health", "--role", role] if role in ROLES:
            pass
        case _:
            return None
    well, lines = judged(directory(environment), role)
    print("\n".join(lines), file=sys.stdout if well else sys.stderr)
    return 0 if well else 1

"""The real system as a user starts it: ``python -m worker up`` as a process, with servers of its own."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil

from foreword.errors import ForewordError
from worker.parent import VARIABLE as PARENT
from worker.wiring import Services

CHECKOUT = Path(__file__).parents[2]

START_SECONDS, END_SECONDS = 120.0, 120.0

SERVERS = {"postgres": "postgresql", "redis-server": "redis"}
"""What the servers' programs are called here."""


@dataclass(slots=True)
class System:
    """What runs. ``events`` grows as ``up`` tells of them."""

    home: Path
    process: "subprocess.Popen[str]"
    services: Services = field(init=False)
    events: list[dict[str, Any]] = field(default_factory=list)

    def told(self, name: str, process: str = "", since: int = 0) -> bool:
        """Whether an event of this name was told, of a part if one is named, since so many events."""
        return any(
            event["event"] == name and (not process or event.get("process") == process)
            for event in self.events[since:]
        )

    def processes(self) -> dict[str, list[psutil.Process]]:
        """All processes of a part or a server, the main one first."""
        found = {}
        for name, pid in self.parts().items():
            with suppress(psutil.NoSuchProcess):
                found[name] = _family(psutil.Process(pid))
        for process in psutil.process_iter():
            if name := self._server(process):
                found[name] = _family(process)
        return found

    def parts(self) -> dict[str, int]:
        """What ``up`` keeps, and the process that each is at the moment."""
        return {event["process"]: event["pid"] for event in self.events if event["event"] == "started"}

    def _server(self, process: psutil.Process) -> str:
        """Which of the servers this is the main process of."""
        with suppress(psutil.Error):
            words = process.cmdline()
            program = Path(words[0]).name if words else ""
            if any(word.startswith(f"{self.home}/") for word in words):
                return SERVERS.get(program, "")
        return ""

    def restart(self, part: str) -> float:
        """Tell a part's main process to end, and wait for its successor; the seconds that it took.

        Raises:
            ForewordError: no successor became ready.
        """
        since, began = len(self.events), time.monotonic()
        os.kill(self.parts()[part], signal.SIGTERM)
        if not _eventually(lambda: self.told("ready", part, since), START_SECONDS):
            raise ForewordError(
                f"{part} did not come back within {START_SECONDS:.0f} s: see {self.home}/{part}.log"
            )
        return time.monotonic() - began


def _family(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return [process, *process.children(recursive=True)]
    return []


def environment() -> dict[str, str]:
    """Ours without settings: those of the system are its own."""
    return {name: value for name, value in os.environ.items() if not name.startswith("FOREWORD_")}


@contextmanager
def running(home: Path, *options: str) -> Iterator[System]:
    """The system for the length of a block, with its data in ``home`` and more ``options`` of ``up``; stopped in
    order afterwards.

    Raises:
        ForewordError: it did not start.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "worker", "--data-dir", str(home), "up", "--json", "--flower-port", "0", *options],
        cwd=CHECKOUT,
        env={**environment(), PARENT: str(os.getpid())},  # so that it ends with us, however we end
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,  # an interruption reaches it only through us
    )
    one = System(home, process)
    assert process.stdout is not None
    listener = threading.Thread(target=_listen, args=(process.stdout, one.events), daemon=True)
    listener.start()
    try:
        _eventually(lambda: one.told("up") or process.poll() is not None, START_SECONDS)
        if not one.told("up"):
            raise ForewordError(
                f"the system did not start: {[event['text'] for event in one.events[-3:]]}; see {home}"
            )
        places = next(event for event in one.events if event["event"] == "up")
        one.services = Services(
            database_url=places["PostgreSQL"], redis_url=places["Redis"], broker_url=places["broker"]
        )
        yield one
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        finally:
            listener.join(END_SECONDS)


def _listen(lines: IO[str], events: list[dict[str, Any]]) -> None:
    with lines:
        events.extend(map(json.loads, lines))


def _eventually(condition: Any, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True

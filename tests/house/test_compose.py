"""What can be known of the compose file without an engine: its services' commands exist, their settings too, and
the rules that production depends on are in it.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from worker.app import HARD_SECONDS
from worker.cli import cli
from worker.settings import Settings

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text(encoding="utf-8"))[
        "services"
    ]
    return found


def ours(services: dict[str, Any]) -> dict[str, Any]:
    return {name: service for name, service in services.items() if service["image"] == "foreword"}


def test_every_command_of_ours_parses(services: dict[str, Any]) -> None:
    for service in ours(services).values():
        name, *arguments = service["command"]

        command = cli.get_command(None, name)  # type: ignore[arg-type]

        assert command is not None, name
        command.make_context(name, list(arguments))


def test_every_setting_exists(services: dict[str, Any]) -> None:
    named = {name for service in ours(services).values() for name in service["environment"]}

    assert {name.removeprefix("FOREWORD_").lower() for name in named} <= set(Settings.model_fields)


def test_the_broker_never_evicts(services: dict[str, Any]) -> None:
    command = services["broker"]["command"]

    assert command[command.index("--maxmemory-policy") + 1] == "noeviction"
    assert command[command.index("--appendonly") + 1] == "yes"


def test_workers_get_longer_to_stop_than_a_task_may_take(services: dict[str, Any]) -> None:
    graces = {int(service["stop_grace_period"].rstrip("s")) for service in ours(services).values()}

    assert min(graces) > HARD_SECONDS

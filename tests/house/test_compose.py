"""What can be known of the deployment's files without an engine: they are well formed, the commands and settings
in them exist, and the rules that production depends on are kept. That the services work together is seen in
tests/acceptance/test_deployed.py; docs/deploy.md says what remains untried.
"""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from access import make_secrets
from check_jsonschema.builtin_schemas import get_builtin_schema  # type: ignore[import-untyped]

from worker.app import HARD_SECONDS
from worker.cli import cli
from worker.settings import Settings

CHECKOUT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
COMPOSE = CHECKOUT / "docker-compose.yml"
ONE_SHOTS = {"migrate", "grants", "operator"}

Services = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> Services:
    found: Services = compose["services"]
    return found


def ours(services: Services) -> Services:
    return {name: service for name, service in services.items() if service["image"] == "foreword"}


def long_lived(services: Services) -> Services:
    return {name: service for name, service in services.items() if name not in ONE_SHOTS}


def run(*command: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(list(map(str, command)), cwd=CHECKOUT, capture_output=True, text=True, check=False)


# ---- the compose file


@pytest.mark.promise("deploy.files")
def test_the_file_is_what_its_specification_says(compose: dict[str, Any]) -> None:
    schema = get_builtin_schema("vendor.compose-spec")
    validator = jsonschema.validators.validator_for(schema)(schema)

    assert [error.message for error in validator.iter_errors(compose)] == []
    assert list(validator.iter_errors({"services": {"x": {"imagine": "x"}}}))


@pytest.mark.promise("deploy.files")
def test_every_command_of_ours_parses(services: Services) -> None:
    for name, service in ours(services).items():
        context = cli.make_context("worker", list(service["command"]), resilient_parsing=True)
        command, arguments = context._protected_args[0], context.args

        assert command in cli.commands, name
        cli.commands[command].make_context(command, list(arguments))


@pytest.mark.promise("deploy.files")
def test_every_setting_exists(services: Services) -> None:
    named = {name for service in ours(services).values() for name in service["environment"]}

    assert {name.removeprefix("FOREWORD_").removesuffix("_FILE").lower() for name in named} <= set(
        Settings.model_fields
    )


@pytest.mark.promise("deploy.secrets")
def test_no_secret_is_in_an_environment_or_on_a_command_line(services: Services) -> None:
    for name, service in services.items():
        environment = service.get("environment", {})
        said = [f"{key}={value}" for key, value in environment.items()] + service.get("command", [])

        assert not [each for each in said if re.search(r"://[^/ ]*:[^/ ]*@", str(each))], name
        assert not [
            key for key in environment if re.search("PASSWORD|SECRET|KEY", key) and not key.endswith("_FILE")
        ], name


@pytest.mark.promise("deploy.secrets")
def test_every_service_has_the_secrets_that_it_names_and_no_others(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        told = [str(value) for value in service.get("environment", {}).values()]
        named = set(re.findall(r"/run/secrets/([\w.]+)", " ".join([*told, *map(str, service.get("command", []))])))
        if name == "postgres":
            named.add("passwords.sql")  # named by its script

        assert set(service.get("secrets", [])) == named, name
        assert named <= compose["secrets"].keys(), name


@pytest.mark.promise("deploy.secrets")
def test_secrets_are_made_once_and_are_those_that_the_file_names(compose: dict[str, Any], tmp_path: Path) -> None:
    directory = tmp_path / "secrets"
    make_secrets().make(directory)
    first = {path.name: path.read_text() for path in directory.iterdir()}

    make_secrets().make(directory)

    assert {path.name: path.read_text() for path in directory.iterdir()} == first
    assert {Path(secret["file"]).name for secret in compose["secrets"].values()} <= first.keys()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    passwords = [first[name] for name in make_secrets().PASSWORDS]
    assert len(set(passwords)) == len(passwords)
    assert not [password for password in passwords if password in first["cache.acl"] + first["broker.acl"]]
    assert "@" not in first["cache.acl"].replace("+@", "").replace("-@", "")


def test_git_and_the_image_leave_the_secrets_out() -> None:
    assert run("git", "check-ignore", "deploy/secrets/x").returncode == 0
    allowed = (CHECKOUT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert allowed[1] == "*"
    assert not [line for line in allowed if line.startswith("!") and "secrets" in line]


@pytest.mark.promise("deploy.hardened")
def test_every_container_is_confined(services: Services) -> None:
    for name, service in services.items():
        limits = service["deploy"]["resources"]["limits"]

        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert {"cpus", "memory", "pids"} <= limits.keys(), name
        assert "privileged" not in service, name


@pytest.mark.promise("deploy.hardened")
def test_nothing_is_published_but_on_this_machine_and_the_servers_have_no_way_out(
    compose: dict[str, Any], services: Services
) -> None:
    published = [port for service in services.values() for port in service.get("ports", [])]

    assert [port for port in published if not port.startswith("127.0.0.1:")] == []
    assert compose["networks"]["backend"]["internal"] is True
    for server in ("postgres", "broker", "cache", "prometheus"):
        assert services[server]["networks"] == ["backend"]


@pytest.mark.promise("deploy.files")
def test_what_runs_for_long_is_probed_and_started_again(services: Services) -> None:
    for name, service in long_lived(services).items():
        assert service["restart"] == "unless-stopped", name
        assert service["healthcheck"]["test"][0].startswith("CMD"), name


@pytest.mark.promise("deploy.files")
def test_probes_of_ours_are_commands_that_exist(services: Services) -> None:
    for name, service in ours(long_lived(services)).items():
        _, python, *rest = service["healthcheck"]["test"]
        assert python == "/app/.venv/bin/python", name
        if rest[:2] == ["-m", "worker"]:
            cli.commands[rest[2]].make_context(rest[2], rest[3:])
            assert service["environment"]["FOREWORD_HEALTH_DIR"].startswith("/tmp/"), name


def test_the_broker_never_evicts_and_the_cache_may(services: Services) -> None:
    broker, cache = (services[name]["command"] for name in ("broker", "cache"))

    assert broker[broker.index("--maxmemory-policy") + 1] == "noeviction"
    assert broker[broker.index("--appendonly") + 1] == "yes"
    assert cache[cache.index("--maxmemory-policy") + 1] == "allkeys-lfu"


def test_workers_get_longer_to_stop_than_a_task_may_take(services: Services) -> None:
    graces = {int(service["stop_grace_period"].rstrip("s")) for service in ours(services).values()}

    assert min(graces) > HARD_SECONDS


def test_every_queue_has_a_worker_and_relays_are_two(services: Services) -> None:
    served = [service["command"][2] for service in services.values() if service.get("command", [""])[0] == "work"]

    assert sorted(served) == ["briefs", "edits", "sweep"]
    assert services["relay"]["deploy"]["replicas"] == 2


def test_what_files_are_mounted_are_there(services: Services) -> None:
    mounted = [volume.split(":")[0] for service in services.values() for volume in service.get("volumes", [])]

    assert [path for path in mounted if path.startswith("./") and not (CHECKOUT / path).exists()] == []


# ---- the image


@pytest.mark.promise("deploy.image")
def test_the_image_is_written_as_its_linter_wants() -> None:
    linted = run(BIN / "hadolint", "--failure-threshold", "info", "Dockerfile")

    assert linted.returncode == 0, linted.stdout


@pytest.mark.promise("deploy.image")
def test_the_image_runs_as_nobody_by_an_exec_form_and_holds_every_room() -> None:
    lines = (CHECKOUT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    last = max(number for number, line in enumerate(lines) if line.startswith("FROM "))
    final = lines[last:]

    assert 'ENTRYPOINT ["/app/.venv/bin/python", "-m", "worker"]' in final
    assert [line for line in final if line.startswith("USER ")] == ["USER 10001:10001"]
    assert [line for line in final if line.startswith("COPY ")] == ["COPY --from=build /app /app"]
    copied = {line.split()[1] for line in lines if line.startswith("COPY ")}
    assert {"foreword", "loaders", "prompts", "tasks", "worker", "requirements"} <= copied
    ignored = (CHECKOUT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {f"!{path}" for path in copied if not path.startswith("--")} <= set(ignored)


@pytest.mark.promise("deploy.image")
@pytest.mark.parametrize("script", sorted((CHECKOUT / "deploy").rglob("*.sh")), ids=lambda path: path.name)
def test_every_script_parses_and_may_be_run(script: Path) -> None:
    parsed = run("sh", "-n", script)

    assert parsed.returncode == 0, parsed.stderr
    assert os.access(script, os.X_OK)

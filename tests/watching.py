"""Dashboards and alerts as they are deployed, and the queries in them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

CHECKOUT = Path(__file__).parents[1]
DEPLOY = CHECKOUT / "deploy"
DASHBOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((DEPLOY / "prometheus" / "rules.yml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def queries() -> Iterator[tuple[str, str]]:
    """(where it stands, the query)."""
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for path in DASHBOARDS:
        for panel in dashboard(path)["panels"]:
            for target in panel.get("targets", []):
                yield f"{panel['title']}: {target['legendFormat']}", target["expr"]

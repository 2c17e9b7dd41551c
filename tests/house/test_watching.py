"""Dashboards and alerts as files: every query parses, asks for metrics that exist, by labels and values that they
have, and every alert says what is so and where to read what to do. ``promtool`` says more, where it is at hand.
"""

import re
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml
from watching import CHECKOUT, DASHBOARDS, DEPLOY, dashboard, queries, rules

from worker.metrics import HISTOGRAM, METRICS

PROMETHEUS_OWN = {"up": {"job", "service", "instance"}}
TARGET = {"job", "service", "instance"}
"""Labels that scraping adds."""

SECONDS = re.compile(r"\d+[smh]$")


def selectors(expression: Any) -> list[Any]:
    found: list[Any] = []

    def collect(node: Any) -> None:
        if isinstance(node, promql.VectorSelector):
            found.append(node)

    promql.walk(expression, pre_visit=collect)
    return found


def series() -> dict[str, dict[str, tuple[str, ...] | None]]:
    """Every name that can be asked for, and the values of its labels."""
    found: dict[str, dict[str, tuple[str, ...] | None]] = {
        name: dict.fromkeys(labels) for name, labels in PROMETHEUS_OWN.items()
    }
    for name, row in METRICS.items():
        labels = {**row.labels, **dict.fromkeys(TARGET)}
        if row.kind == HISTOGRAM:
            found |= {f"{name}_bucket": {**labels, "le": None}, f"{name}_sum": labels, f"{name}_count": labels}
        else:
            found[name] = labels
    return found


@pytest.mark.promise("deploy.watch")
@pytest.mark.parametrize(("where", "query"), list(queries()), ids=lambda each: each[:30])
def test_every_query_parses_and_asks_for_what_there_is(where: str, query: str) -> None:
    known = series()

    for selector in selectors(promql.parse(query)):
        assert selector.name in known, where
        for matcher in selector.matchers.matchers:
            values = known[selector.name].get(matcher.name, ())
            assert matcher.name in known[selector.name], f"{where}: {matcher}"
            if values is not None:
                assert set(re.split(r"\|", matcher.value)) <= set(values), f"{where}: {matcher}"


@pytest.mark.promise("deploy.watch")
@pytest.mark.parametrize(("where", "query"), list(queries()), ids=lambda each: each[:30])
def test_every_query_groups_by_labels_that_there_are(where: str, query: str) -> None:
    expression = promql.parse(query)
    has = {label for selector in selectors(expression) for label in series()[selector.name]}

    assert set(" ".join(re.findall(r"by \(([^)]*)\)", query)).replace(",", " ").split()) <= has, where


@pytest.mark.promise("deploy.watch")
def test_every_alert_says_what_is_so_for_how_long_and_where_to_read_on() -> None:
    guide = (CHECKOUT / "docs" / "operations.md").read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", guide, re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}

    for rule in rules():
        said, name = rule["annotations"], rule["alert"]
        page, _, anchor = said["runbook"].partition("#")
        assert said["summary"], name
        assert SECONDS.match(rule["for"]), name
        assert rule["labels"]["severity"] in {"page", "ticket"}, name
        assert (CHECKOUT / page).exists(), name
        assert anchor in anchors, name
    assert len({rule["alert"] for rule in rules()}) == len(rules())


@pytest.mark.promise("deploy.watch")
def test_every_metric_is_shown_or_alerted_on() -> None:
    asked = {selector.name for _, query in queries() for selector in selectors(promql.parse(query))}

    shown = {re.sub("_(bucket|sum|count)$", "", name) for name in asked}
    assert sorted(METRICS.keys() - shown) == []


@pytest.mark.promise("deploy.watch")
@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_can_be_loaded(path: Path) -> None:
    board = dashboard(path)
    panels = board["panels"]
    sources = yaml.safe_load((DEPLOY / "grafana" / "provisioning" / "datasources" / "prometheus.yml").read_text())
    known = {source["uid"] for source in sources["datasources"]}

    assert board["uid"] == path.stem
    assert board["title"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        assert panel["type"] in {"row", "stat", "timeseries"}
        for target in panel.get("targets", []):
            assert target["datasource"]["uid"] in known
        references = [target["refId"] for target in panel.get("targets", [])]
        assert len(set(references)) == len(references)
    taken = [
        (p["gridPos"]["x"] + x, p["gridPos"]["y"] + y)
        for p in panels
        for x in range(p["gridPos"]["w"])
        for y in range(p["gridPos"]["h"])
    ]
    assert len(set(taken)) == len(taken), "panels overlap"


def test_prometheus_scrapes_every_service_that_serves_metrics() -> None:
    compose = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    configuration = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    (job,) = configuration["scrape_configs"]
    (found,) = job["dns_sd_configs"]

    serving = {
        name for name, service in compose.items() if "FOREWORD_METRICS_PORT" in (service.get("environment") or {})
    }
    assert set(found["names"]) == serving
    assert configuration["rule_files"] == ["rules.yml"]
    assert {str(found["port"])} == {compose[name]["environment"]["FOREWORD_METRICS_PORT"] for name in serving}

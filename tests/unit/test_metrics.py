"""Counting across processes, and serving what was counted."""

import json
import math
import os
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from decimal import Decimal

import pytest
from processes import eventually
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from loaders.shelf import ModelCall
from tasks.reports import BuildReport
from worker import metrics as module
from worker.gauges import _age
from worker.metrics import AT_ONCE, METRICS, Metrics, Pipe, Sender, families
from worker.settings import Settings
from worker.telemetry import changes

BUILT = BuildReport(
    project="p",
    epoch=1,
    generation=2,
    result="published",
    began=0.0,
    steps=[("load", 10.0), ("select", 1.0), ("load", 5.0), ("publish", 4.0)],
    tokens=750,
    budget=1500,
)


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


@pytest.mark.promise("metrics.processes")
def test_counts_of_processes_add_up_and_one_that_is_killed_keeps_its_own() -> None:
    pipe, metrics = Pipe(), Metrics()
    children = []
    for number in (3, 4):
        if (child := os.fork()) == 0:
            send = Sender(pipe.descriptor)
            for _ in range(number):
                send(list(changes(BUILT)))
            os.kill(os.getpid(), 9)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    pipe.listen(metrics)

    assert eventually(lambda: value(metrics, "foreword_builds_total", result="published") == 7)
    assert eventually(lambda: value(metrics, "foreword_bundle_utilisation_ratio_sum") == 3.5)
    assert value(metrics, "foreword_build_seconds_sum", stage="load") == pytest.approx(0.105)
    assert value(metrics, "foreword_build_seconds_sum", stage="total") == pytest.approx(0.14)
    assert value(metrics, "foreword_bundle_tokens_sum") == 7 * 750


@pytest.mark.promise("metrics.processes")
def test_a_child_does_not_wait_for_a_main_process_that_hangs_and_sends_it_later() -> None:
    pipe, metrics = Pipe(), Metrics()
    send = Sender(pipe.descriptor)
    sent = 0
    while not send._waiting:
        send(list(changes(BUILT)))
        sent += 1
    pipe.listen(metrics)
    assert eventually(lambda: (value(metrics, "foreword_builds_total", result="published") or 0) >= sent - 1)
    send(list(changes(BUILT)))

    assert eventually(lambda: value(metrics, "foreword_builds_total", result="published") == sent + 1)


def test_what_cannot_be_read_or_is_not_on_record_is_not_counted() -> None:
    pipe, metrics = Pipe(), Metrics()
    before = generate_latest(metrics.registry)
    junk = [
        b"nonsense\n",
        b"[[1, 2]]\n",
        json.dumps([["foreword_of_tomorrow", [], 1], ["foreword_builds_total", ["exploded"], 1]]).encode() + b"\n",
        json.dumps([["foreword_builds_total", [], 1], ["foreword_model_cost_total", [], math.nan]]).encode()
        + b"\n",
    ]
    for line in junk:
        os.write(pipe.descriptor, line)
    pipe.listen(metrics)
    Sender(pipe.descriptor)([("foreword_publish_refused_total", [], 1)])

    assert eventually(lambda: value(metrics, "foreword_publish_refused_total") == 1)
    after = generate_latest(metrics.registry)
    assert after == before.replace(b"foreword_publish_refused_total 0.0", b"foreword_publish_refused_total 1.0")


def test_a_call_of_a_model_counts_its_outcome_its_tokens_and_its_cost() -> None:
    metrics = Metrics()
    for outcome in ("ok", "confused"):
        metrics.add(
            changes(
                ModelCall(
                    outcome=outcome,
                    prompt="summary",
                    model="m",
                    prompt_tokens=100,
                    completion_tokens=None,
                    cost=Decimal("0.5"),
                    milliseconds=3,
                    ended=0.0,
                )
            )
        )

    assert value(metrics, "foreword_model_calls_total", outcome="ok") == 1
    assert value(metrics, "foreword_model_calls_total", outcome="other") == 1
    assert value(metrics, "foreword_model_tokens_total", direction="prompt") == 200
    assert value(metrics, "foreword_model_cost_total") == 1.0


def test_gauges_read_as_they_were_seen() -> None:
    found = {
        made.name: made for made in families({"foreword_redis_up": {"cache": 1.0}, "foreword_audited_total": 7})
    }

    assert [(s.labels, s.value) for s in found["foreword_redis_up"].samples] == [({"server": "cache"}, 1.0)]
    assert [(s.name, s.value) for s in found["foreword_audited"].samples] == [("foreword_audited_total", 7)]


@pytest.mark.parametrize(
    ("raw", "seconds"),
    [(None, 0.0), (b"{", 0.0), (b"{}", 0.0), (b'{"headers": {"foreword_sent": "soon"}}', 0.0)],
)
def test_a_message_that_does_not_say_when_it_was_sent_has_no_age(raw: bytes | None, seconds: float) -> None:
    assert _age(raw) == seconds


def test_a_message_is_as_old_as_it_says() -> None:
    sent = time.time() - 60

    age = _age(json.dumps({"headers": {"foreword_sent": sent}}).encode())

    assert 60 <= age <= time.time() - sent


# ---- serving


@pytest.fixture
def server() -> Iterator[module._Server]:
    made = module._Server("127.0.0.1", 0, Metrics().registry)
    thread = threading.Thread(target=made.serve_forever, args=[0.02], daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()


def get(server: module._Server, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_address[1]}{path}", timeout=10) as answer:
        return str(answer.read().decode())


def test_metrics_are_served_with_every_label_from_the_start(server: module._Server) -> None:
    served = {family.name for family in text_string_to_metric_families(get(server, "/metrics"))}

    assert served == {name.removesuffix("_total") for name in module.COUNTED}


@pytest.mark.promise("metrics.closed")
@pytest.mark.parametrize("path", ["/", "/metrics/x", "/../etc/passwd", "/debug"])
def test_nothing_else_is_served(server: module._Server, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(server, path)

    assert refused.value.code == 404
    refused.value.close()


@pytest.mark.promise("metrics.closed")
def test_who_holds_many_connections_keeps_nobody_out_for_ever(
    server: module._Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module._Handler, "timeout", 0.3)
    idle = [socket.create_connection(("127.0.0.1", server.server_address[1])) for _ in range(AT_ONCE + 5)]
    try:
        assert eventually(lambda: _answers(server))
    finally:
        for each in idle:
            each.close()


def _answers(server: module._Server) -> bool:
    try:
        return "foreword_builds_total" in get(server, "/metrics")
    except OSError:
        return False


def test_a_port_that_is_taken_is_no_reason_not_to_work(
    server: module._Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    monkeypatch.setattr(module, "emit", lambda event, **fields: said.append((event, fields["port"])))
    port = server.server_address[1]
    module.serve(Settings(metrics_port=port), server.registry)

    assert said == [("metrics_not_served", port)]


def test_every_metric_is_named_after_us_and_counters_end_as_counters_do() -> None:
    assert all(name.startswith("foreword_") for name in METRICS)
    assert {name for name, row in METRICS.items() if row.kind == "counter"} == {
        name for name in METRICS if name.endswith("_total")
    }

"""Redis behind TLS, for the cache and for Celery's broker: it proves its name, or nobody speaks to it."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from acceptance.system import System
from celery import Celery
from encrypted import HOST, behind, signed
from processes import CHECKOUT, eventually
from trustme import CA

from foreword.errors import Unavailable
from foreword.reader import TRUSTED
from loaders import ledger
from loaders.catalog import inspect
from loaders.claims import EDITS
from loaders.jsonl import import_directory
from worker.app import REBUILD, create_app
from worker.settings import from_environment
from worker.wiring import redis_client, redis_errors

SAMPLE = CHECKOUT / "samples" / "harbour"
LIBRARY = "a8e1bf1f-2157-5c0b-a103-3b8fa71a9b3b"

Url = Callable[..., str]
"""Of the Redis that has ``name`` in its certificate: (database, who signed it, its name)."""


@pytest.fixture(scope="module")
def url(system: System) -> Iterator[Url]:
    ours, others = CA(), CA()
    server = Path(urlsplit(system.services.redis_url).path)
    with tempfile.TemporaryDirectory() as home, ExitStack() as stack:
        mine = ours.issue_cert("worker.example")
        mine.private_key_and_cert_chain_pem.write_to_path(f"{home}/mine.pem")
        ours.cert_pem.write_to_path(f"{home}/ours.pem")
        others.cert_pem.write_to_path(f"{home}/others.pem")
        ports = {name: stack.enter_context(behind(signed(ours, name), server)) for name in (HOST, "elsewhere")}

        def found(database: int, authority: str = "ours", name: str = HOST) -> str:
            given = f"ssl_ca_certs={home}/{authority}.pem" if authority else ""
            return (
                f"rediss://{HOST}:{ports[name]}/{database}?{given}"
                f"&ssl_certfile={home}/mine.pem&ssl_keyfile={home}/mine.pem"
            )

        yield found


@pytest.mark.promise("secure.tls")
def test_messages_and_bundles_go_their_way_over_tls(system: System, url: Url) -> None:
    variables = {"FOREWORD_REDIS_URL": url(0), "FOREWORD_BROKER_URL": url(1)}
    commands = replace(system.commands, environment={**system.commands.environment, **variables})
    services = replace(system.services, redis_url=url(0), broker_url=url(1))
    encrypted = replace(
        system, commands=commands, services=services, settings=from_environment(commands.environment)
    )
    import_directory(system.connection, SAMPLE, inspect(system.connection))
    asked = ledger.request_builds(system.connection, [LIBRARY])
    with encrypted.worker("--concurrency", "1"):
        encrypted.app().send_task(REBUILD, args=[LIBRARY], queue=EDITS, retry=False)

        assert eventually(lambda: ledger.answers(system.connection, asked) == {LIBRARY: None})
    assert system.reader.project(LIBRARY, actor=TRUSTED).status == "fresh"


IMPOSTORS = [("others", HOST), ("", HOST), ("ours", "elsewhere")]


@pytest.mark.promise("secure.tls")
@pytest.mark.parametrize(("authority", "name"), IMPOSTORS)
def test_a_server_that_cannot_prove_its_name_is_refused(
    system: System, url: Url, authority: str, name: str
) -> None:
    wrong = url(1, authority, name)

    with pytest.raises(Unavailable, match="certificate verify failed"):
        redis_client(wrong)
    with pytest.raises(Unavailable, match="certificate verify failed"):
        connect(create_app(system.settings, replace(system.services, broker_url=wrong)))


def connect(app: Celery) -> None:
    with redis_errors("connecting"), app.connection_for_write() as connection:
        connection.ensure_connection(max_retries=1, interval_start=0)

"""What the relay compares in Redis with what is on record, at the moment when a build has published."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import redis
from strategies import uid

from loaders import claims
from loaders.connection import Connection, connect
from tasks.project import rebuild_project
from tasks.tools import Tools
from worker import relay
from worker.settings import Settings
from worker.wiring import tools_over

PROJECT = uid("project")


@pytest.fixture
def tools(database_url: str, redis_client: "redis.Redis") -> Iterator[Tools]:
    """A builder's, and a project whose bundle was published before, and by a build that is not on record yet."""
    with connect(database_url) as connection:
        connection.execute(
            b"insert into onto_projects (id, name, created_at, updated_at) values (%s, 'Pier', now(), now())",
            [PROJECT],
        )
        tools = tools_over(Settings(), connection, redis_client)
        rebuild_project(PROJECT, tools)
        recorded = on_record(connection)
        rebuild_project(PROJECT, tools)
        record(connection, recorded)
        yield tools


def on_record(connection: Connection) -> int:
    found: int = connection.execute("select generation from fw_projects").fetchall()[0][0]
    return found


def record(connection: Connection, generation: int) -> None:
    connection.execute("update fw_projects set generation = %s, incarnation = ''", [generation])


def verified(tools: Tools, client: "redis.Redis", monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The events of a look by a relay that leads."""
    said: list[str] = []
    monkeypatch.setattr(relay, "emit", lambda event, **_: said.append(event))
    term = claims.lead(tools.connection, "relay")
    assert term is not None
    relay._verify(client, tools.connection, term, anew=True)
    return said


@pytest.mark.promise("fresh.reconciled")
def test_a_bundle_that_is_not_on_record_yet_is_not_missing(
    tools: Tools, redis_client: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = on_record(tools.connection) + 1

    def sleep(_: float) -> None:
        record(tools.connection, newest)

    monkeypatch.setattr(relay, "time", SimpleNamespace(sleep=sleep))
    said = verified(tools, redis_client, monkeypatch)

    assert said == ["redis_compared"]
    assert not claims.due_again(tools.connection)


@pytest.mark.promise("fresh.reconciled")
def test_one_that_never_is_on_record_is_another_databases(
    tools: Tools, redis_client: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    said = verified(tools, redis_client, monkeypatch)

    assert said == ["redis_is_new", "bundles_missing"]
    assert claims.due_again(tools.connection)

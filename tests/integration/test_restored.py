"""A database restored into a new server, where transaction ids begin anew."""

import pytest
import redis
from strategies import uid

import foreword
from foreword import TRUSTED, Reader
from foreword.reader import Context
from loaders import claims
from loaders.catalog import inspect
from loaders.claims import SWEEP
from loaders.condition import condition
from loaders.connection import Connection
from loaders.restored import begin_anew
from tasks.project import rebuild_project
from tasks.tools import Tools
from worker.settings import Settings
from worker.wiring import tools_over

PROJECT = uid("restored")

AS_IN_A_BACKUP = """
update fw_changes set txid = '1000000000';
update fw_projects set tried = '999999998:999999999:', parked_at = now()
"""
"""Ids that the old server gave and this one never will."""


@pytest.fixture
def tools(connection: Connection, redis_client: "redis.Redis") -> Tools:
    return tools_over(Settings(), connection, redis_client)


@pytest.fixture
def restored(connection: Connection, tools: Tools) -> Connection:
    """A project that was built, and parked when it was edited; then came the backup."""
    connection.execute("insert into onto_projects (id, name) values (%s, 'Quay')", [PROJECT])
    rebuild_project(PROJECT, tools)
    connection.execute("update onto_projects set name = 'Pier' where id = %s", [PROJECT])
    connection.execute(AS_IN_A_BACKUP.encode())
    return connection


def read(redis_client: "redis.Redis", token: str) -> Context:
    return Reader(redis_client, asks=False).project(PROJECT, actor=TRUSTED, at_least=token)


def test_without_it_a_build_leaves_the_log_as_it_was(restored: Connection, tools: Tools) -> None:
    rebuild_project(PROJECT, tools)

    assert condition(restored).log_rows == 1


def test_with_it_a_build_empties_the_log_and_no_token_from_before_is_held(
    restored: Connection, tools: Tools, redis_client: "redis.Redis"
) -> None:
    ((before,),) = restored.execute("select fw_token()").fetchall()

    begin_anew(restored)
    with restored.transaction():
        restored.execute("update onto_projects set name = 'Mole' where id = %s", [PROJECT])
        after = foreword.token(restored)
    rebuild_project(PROJECT, tools)

    assert condition(restored).log_rows == 0
    assert read(redis_client, before).status == "stale"
    assert read(redis_client, after).status == "fresh"


def test_with_it_a_parked_project_is_built_again_without_an_edit(restored: Connection, tools: Tools) -> None:
    statements = claims.compile_claims(inspect(restored))

    before = claims.claim(restored, statements, SWEEP, 4, [])
    begin_anew(restored)
    claimed = claims.claim(restored, statements, SWEEP, 4, [])

    assert (before, [each.project_id for each in claimed]) == ([], [PROJECT])
    assert rebuild_project(PROJECT, tools, if_due=True) is not None


def test_a_backup_that_is_restored_twice_gives_two_epochs(connection: Connection) -> None:
    first = begin_anew(connection)
    connection.execute("update fw_facts set value = 1 where name = 'epoch'")
    connection.execute("select pg_sleep(1.1)")

    assert begin_anew(connection) > first

"""How the whole stands, by PostgreSQL: what waits, what was given up; dropping a project only mutes it."""

import pytest
from strategies import uid

from foreword.stamp import SCHEMA
from loaders import claims, ledger
from loaders.catalog import inspect
from loaders.claims import EDITS, compile_claims
from loaders.condition import condition
from loaders.connection import Connection, connect
from loaders.parked import drop, parked

A, B, C = uid("a"), uid("b"), uid("c")


@pytest.fixture
def projects(connection: Connection) -> Connection:
    """Three built projects and nothing in the log."""
    for project in (A, B, C):
        connection.execute("insert into onto_projects (id, name) values (%s, 'p')", [project])
        connection.execute(
            "insert into fw_projects (project_id, generation, entities, built_at, layout)"
            " values (%s, 1, 1, now() - interval '10 s', %s)",
            [project, SCHEMA],
        )
    connection.execute("delete from fw_changes")
    return connection


def edit(connection: Connection, project: str, ago: int = 0) -> None:
    connection.execute("update onto_projects set name = name || '!' where id = %s", [project])
    connection.execute("update fw_changes set at = at - %s * interval '1 s' where project_id = %s", [ago, project])


def seconds_since(connection: Connection, moment: str) -> float:
    found: float = connection.execute(
        f"select extract(epoch from now() - ({moment}))::float8".encode()
    ).fetchall()[0][0]
    return found


def park(connection: Connection, project: str) -> None:
    connection.execute(
        "update fw_projects set parked_at = now(), attempts = 8, error = 'a bad row',"
        " tried = pg_current_snapshot()::text where project_id = %s",
        [project],
    )


@pytest.mark.promise("status.true")
def test_all_is_built(projects: Connection) -> None:
    newest = "select max(built_at) from fw_projects"

    before = seconds_since(projects, newest)
    found = condition(projects)
    after = seconds_since(projects, newest)

    assert (found.built, found.dirty, found.log_rows, found.lag) == (3, 0, 0, 0)
    assert (found.leader, found.led_for, found.ticked) == (None, None, None)
    assert found.last_built is not None
    assert 10 <= before <= found.last_built <= after
    assert {"fw_projects", "fw_changes", "fw_briefs"} <= found.sizes.keys()


@pytest.mark.promise("status.true")
def test_the_lag_is_the_age_of_the_oldest_edit_that_can_be_built(projects: Connection) -> None:
    edit(projects, A, 100)
    edit(projects, B, 20)
    edit(projects, C, 3000)
    edit(projects, C)
    park(projects, C)

    of_a = f"select at from fw_changes where project_id = '{A}'"

    before = seconds_since(projects, of_a)
    found = condition(projects)
    after = seconds_since(projects, of_a)

    assert 100 <= before <= found.lag <= after
    assert (found.dirty, found.log_rows, found.parked) == (2, 4, 1)


@pytest.mark.promise("status.true")
def test_what_is_asked_for_failing_sent_building_and_to_be_swept_is_told_apart(
    projects: Connection, database_url: str
) -> None:
    ledger.request_builds(projects, [A])
    projects.execute("update fw_projects set error = 'once' where project_id = %s", [B])
    projects.execute("update fw_projects set refresh_at = now() where project_id <> %s", [A])
    claims.lead(projects, "one")
    claims.claim(projects, compile_claims(inspect(projects)), EDITS, 16, [])
    for name in ("fw_leader set until = until", "fw_projects set quiet_until = quiet_until"):  # lest they run out
        projects.execute(f"update {name} + interval '1 min'".encode())
    sent = condition(projects)
    with connect(database_url) as other, ledger.turn(other, A):
        building = condition(projects)

    assert (sent.asked, sent.failing, sent.sweep, sent.sent, sent.building) == (1, 1, 2, 1, 0)
    assert (building.sent, building.building) == (0, 1)
    assert (sent.leader, bool(sent.led_for)) == ("one", True)


@pytest.mark.promise("status.true")
def test_the_oldest_transaction_is_somebody_elses(projects: Connection, database_url: str) -> None:
    with connect(database_url) as other, other.transaction():
        other.execute("select 1")
        projects.execute("select pg_sleep(0.2)")

        assert condition(projects).oldest_transaction > 0.1


@pytest.mark.promise("parked.drop")
def test_a_dropped_project_is_counted_apart_and_an_edit_brings_it_back(projects: Connection) -> None:
    edit(projects, A)
    park(projects, A)
    park(projects, B)

    dropped = drop(projects, [A, C])  # C is not parked

    assert dropped == [A]
    assert [each.project_id for each in parked(projects)] == [B]
    assert [(e.project_id, e.dropped, e.edits, e.error) for e in parked(projects, dropped=True)] == [
        (B, False, 0, "a bad row"),
        (A, True, 1, "a bad row"),
    ]
    found = condition(projects)
    assert (found.parked, found.dropped, found.failing, found.dirty) == (1, 1, 0, 0)

    statements = compile_claims(inspect(projects))
    assert claims.claim(projects, statements, EDITS, 16, claims.dirty(projects)) == []
    edit(projects, A)
    (claimed,) = claims.claim(projects, statements, EDITS, 16, claims.dirty(projects))
    assert claimed.project_id == A
    assert condition(projects).dropped == 0


@pytest.mark.promise("parked.drop")
def test_a_dropped_project_is_built_when_it_is_asked_for(projects: Connection) -> None:
    park(projects, A)
    drop(projects, [A])

    ledger.request_builds(projects, [A])

    assert parked(projects, dropped=True) == []
    assert condition(projects).asked == 1

"""Audits on real servers: what differs from a fresh build is found, and what only moves is not taken for it."""

from collections.abc import Callable
from typing import Any

import pytest
import redis
from strategies import uid

from foreword import keys
from loaders import audits
from loaders.condition import condition
from loaders.connection import Connection, connect
from tasks.audit import Audited, Outcome, audit_project
from tasks.project import rebuild_project
from tasks.tools import Tools
from worker.settings import Settings
from worker.wiring import stored_in, tools_over

A, B = uid("a"), uid("b")

Audit = Callable[..., Audited]


@pytest.fixture
def tools(connection: Connection, redis_client: "redis.Redis") -> Tools:
    return tools_over(Settings(), connection, redis_client)


@pytest.fixture
def audit(database_url: str, tools: Tools, redis_client: "redis.Redis") -> Any:
    """Two projects, built; an edge leads from the first to a task of the second. Yields a function that audits the
    first, and does something between its two looks.
    """
    with connect(database_url) as application:
        for project in (A, B):
            application.execute("insert into onto_projects (id, name) values (%s, 'p')", [project])
            application.execute(
                "insert into onto_tasks (id, project_id, title) values (%s, %s, 'Nail')", [uid(project), project]
            )
        application.execute(
            "insert into onto_edges (id, project_id, src_kind, src_id, dst_kind, dst_id, rel)"
            " values (%s, %s, 'task', %s, 'task', %s, 'depends_on')",
            [uid("edge"), A, uid(A), uid(B)],
        )
    for project in (A, B, A):
        rebuild_project(project, tools)

    def run(between: Callable[[], object] = lambda: None) -> Audited:
        return audit_project(A, tools, stored_in(redis_client), wait=lambda _: between())

    return run


def numbers(connection: Connection) -> tuple[int, int]:
    """(compared, different) on record."""
    found = condition(connection)
    return found.audited, found.mismatches


@pytest.mark.promise("audit.same")
def test_a_bundle_that_is_as_it_should_be_is_counted(audit: Audit, connection: Connection) -> None:
    assert audit().outcome is Outcome.SAME
    assert audits.pick(connection, 5, "x") == audits.pick(connection, 5, "x")
    assert set(audits.pick(connection, 5, "x")) == {A, B}
    assert numbers(connection) == (1, 0)


FAULTS: dict[str, tuple[str, str]] = {
    "a changed text": ("text", "text differs: at 0: stored"),
    "changed data": ("data", "data differs"),
    "a member too many": ("m:somebody", "m:somebody differs"),
}


@pytest.mark.promise("audit.different")
@pytest.mark.parametrize(("field", "says"), FAULTS.values(), ids=FAULTS.keys())
def test_a_bundle_that_is_different_is_found_counted_and_left_as_it_is(
    audit: Audit, connection: Connection, redis_client: "redis.Redis", field: str, says: str
) -> None:
    stamp = bytes(redis_client.hget(keys.project(A), keys.TEXT) or b"").partition(b"\n")[0]  # type: ignore[arg-type]
    redis_client.hset(keys.project(A), field, stamp + b"\nx")

    found = audit()

    assert found.outcome is Outcome.DIFFERENT
    assert says in found.says
    assert numbers(connection) == (1, 1)
    assert bytes(redis_client.hget(keys.project(A), field) or b"").endswith(b"\nx")  # type: ignore[arg-type]
    audits.reset(connection)
    assert numbers(connection) == (0, 0)


@pytest.mark.promise("audit.different")
def test_a_bundle_older_than_what_is_on_record_is_different(
    audit: Audit, connection: Connection, tools: Tools, redis_client: "redis.Redis"
) -> None:
    kept: Any = redis_client.dump(keys.project(A))
    connection.execute("update onto_tasks set title = 'Screw' where id = %s", [uid(A)])
    rebuild_project(A, tools)
    redis_client.restore(keys.project(A), 0, kept, replace=True)  # as a replica that was behind

    found = audit()

    assert found.outcome is Outcome.DIFFERENT
    assert "on record is" in found.says


@pytest.mark.promise("audit.different")
def test_what_is_missing_is_no_lie(audit: Audit, connection: Connection, redis_client: "redis.Redis") -> None:
    redis_client.delete(keys.project(A))

    assert audit().outcome is Outcome.MISSING
    assert numbers(connection) == (0, 0)


@pytest.mark.promise("audit.moving")
def test_what_is_edited_is_not_compared_and_once_it_is_built_it_is(
    audit: Audit, connection: Connection, tools: Tools
) -> None:
    connection.execute("update onto_tasks set title = 'Screw' where id = %s", [uid(A)])

    first, second = audit(), audit(lambda: rebuild_project(A, tools))

    assert (first.outcome, second.outcome) == (Outcome.SKIPPED, Outcome.SAME)
    assert numbers(connection) == (1, 0)


@pytest.mark.promise("audit.moving")
def test_an_edit_elsewhere_that_an_edge_ends_at_is_waited_for(
    audit: Audit, connection: Connection, tools: Tools
) -> None:
    connection.execute("update onto_tasks set deleted_at = now() where id = %s", [uid(B)])
    connection.execute("delete from onto_tasks where id = %s", [uid(B)])  # the edge leads into nothing now

    before = audit()
    rebuild_project(B, tools)
    echoed = audit()
    rebuild_project(A, tools)

    assert before.says == "what one of its edges ends at was edited"
    assert (before.outcome, echoed.outcome, audit().outcome) == (
        Outcome.SKIPPED,
        Outcome.SKIPPED,
        Outcome.SAME,
    )


@pytest.mark.promise("audit.moving")
def test_a_bundle_of_another_budget_is_not_compared(
    audit: Audit, tools: Tools, redis_client: "redis.Redis"
) -> None:
    other = audit_project(
        A,
        Tools(
            **{name: getattr(tools, name) for name in ("connection", "statements", "store", "zone")}, budget=900
        ),
        stored_in(redis_client),
        wait=bool,
    )

    assert other.outcome is Outcome.SKIPPED
    assert audit().outcome is Outcome.SAME

"""A look at the running system: which projects fail, without a question that grows, and a server that hangs."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from strategies import uid

from foreword.errors import Unavailable
from loaders.connection import Connection, connect
from loaders.glance import Glance, Worst, glance
from worker.lookout import cut_after, failing

A, B, C = uid("a"), uid("b"), uid("c")


@pytest.fixture
def three(connection: Connection) -> Connection:
    """Three built projects, of which nothing waits."""
    connection.execute(
        "insert into fw_projects (project_id, generation, entities) select id, 1, 1 from unnest(%s::uuid[]) id",
        [[A, B, C]],
    )
    connection.execute(
        "insert into fw_handles (project_id, entity_id, kind, number) values (%s, %s, 'project', 7)", [B, B]
    )
    return connection


def fail(connection: Connection, project: str, attempts: int, parked: str | None = None) -> None:
    connection.execute(
        "update fw_projects set attempts = %s, error = 'a bad row', parked_at = %s where project_id = %s",
        [attempts, parked, project],
    )


def line(connection: Connection) -> str:
    return failing(glance(connection))


@pytest.mark.promise("up.names-failing")
def test_the_worst_of_what_fails_is_named_in_one_line(three: Connection) -> None:
    nothing = line(three)
    fail(three, A, 2)
    first = line(three)
    fail(three, B, 3)
    more = line(three)
    fail(three, A, 8, "now")
    parked = line(three)
    fail(three, A, 8, "-infinity")  # dropped: nobody wants to hear of it
    dropped = line(three)

    assert nothing == ""
    assert first == f"projects failing, tried again: 1; {A}, 2 attempts: a bad row"
    assert more == "projects failing, tried again: 2; PRJ7, 3 attempts: a bad row"
    assert parked == f"projects failing, tried again: 1, parked: 1; {A}, 8 attempts: a bad row"
    assert dropped == "projects failing, tried again: 1; PRJ7, 3 attempts: a bad row"


def test_one_attempt_is_one() -> None:
    worst = Worst(handle="PRJ1", attempts=1, error="no")
    seen = Glance(
        dirty=0, building=0, parked=0, failing=1, worst=worst, briefs_pending=0, briefs_generating=0, paused=0
    )

    assert failing(seen) == "projects failing, tried again: 1; PRJ1, 1 attempt: no"


@pytest.mark.promise("up.hangs")
def test_a_server_that_hangs_does_not_hold_up_who_looks(database_url: str, connection: Connection) -> None:
    with connect(database_url) as looking:
        with hanging(looking), pytest.raises(Unavailable), cut_after(looking, 0.2):
            glance(looking)

        assert looking.closed
    assert glance(connection).paused == 0


@contextmanager
def hanging(session: Connection) -> Iterator[None]:
    """The server's end of a session is stopped within the block."""
    (row,) = session.execute("select pg_backend_pid()").fetchall()
    os.kill(row[0], signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(row[0], signal.SIGCONT)


def test_a_look_in_time_cuts_nothing_and_leaves_no_thread(connection: Connection) -> None:
    before = threading.active_count()
    for _ in range(3):
        with cut_after(connection, 30):
            glance(connection)

    assert threading.active_count() == before
    assert not connection.closed

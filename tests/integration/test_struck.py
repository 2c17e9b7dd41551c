"""Work over a session of PostgreSQL that is interrupted at any point."""

import os
import subprocess
import sys

import pytest
from processes import CHECKOUT, PATIENCE
from strategies import uid

from loaders.connection import connect


@pytest.mark.promise("worker.interrupt")
@pytest.mark.parametrize("work", ["claim", "build"])
def test_an_interruption_is_no_error_of_the_database_and_what_is_asked_next_does_not_wait(
    database_url: str, redis_url: str, work: str
) -> None:
    with connect(database_url) as application:
        application.execute(
            b"insert into onto_projects (id, name, created_at, updated_at) values (%s, 'Pier', now(), now())",
            [uid("project")],
        )

    done = subprocess.run(
        [sys.executable, CHECKOUT / "tests" / "struck.py", work, database_url, redis_url],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("100 strikes"), done.stdout

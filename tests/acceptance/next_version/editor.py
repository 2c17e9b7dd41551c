"""Somebody who edits project after project, and waits each time until a reader of this version has the edit.

``editor.py BOUND DATABASE REDIS PROJECT...``: until something comes by standard input, and EDITS times at least.
Then says, in JSON, the seconds that each edit took (``waits``) and what was not there within BOUND seconds
(``late``).
"""

import json
import select
import sys
import time
from itertools import cycle

import psycopg
import redis

import foreword
from foreword import TRUSTED, Reader

EDITS = 10
"""Enough to have met what it is about."""


def main(bound: str, database: str, cache: str, *projects: str) -> None:
    """Edit and wait."""
    waits: list[float] = []
    late: list[str] = []
    with redis.Redis.from_url(cache) as client, psycopg.connect(database) as connection:
        reader = Reader(client)
        for project in cycle(projects):
            if len(waits) >= EDITS and select.select([sys.stdin], [], [], 0)[0]:
                break
            connection.execute(
                "insert into onto_tasks (id, project_id, title) values (gen_random_uuid(), %s, %s)",
                [project, f"edit {len(waits)}"],
            )
            token = foreword.token(connection)
            connection.commit()
            begun = time.monotonic()
            found = reader.project(project, actor=TRUSTED, at_least=token, wait=float(bound))
            waits.append(time.monotonic() - begun)
            if found.status != "fresh":
                late.append(f"edit {len(waits)}: {found.status}")
    json.dump({"waits": waits, "late": late}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])

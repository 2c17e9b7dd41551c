"""``python sabotaged.py NAME work``: ``python -m worker work`` with one thing broken, see ``storm.sabotage``.

As in ``chaos.sabotaged``: patches from outside, and one that does not fit the product is an error at the start.
"""

import os
import random
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path[:1] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from chaos.sabotaged import put, run, without  # noqa: E402 - from where the line above says

_SELDOM = 0.3


def _harsh_telling() -> None:
    from loaders import announcements

    sent = announcements.sent

    def deadly(*given: Any) -> None:
        if random.random() < _SELDOM:
            os.kill(os.getpid(), signal.SIGKILL)
        sent(*given)

    put(announcements, sent=deadly)


def _told_twice() -> None:
    from foreword import store

    _harsh_telling()
    put(store, TELL=without(store.TELL, "then return 0", "then redis.call('PING')"))


def _harsh_ticks() -> None:
    from loaders import tick

    put(tick, store=lambda *_: None, MOST_RUNS=1)


def _no_key() -> None:
    from loaders import tick

    _harsh_ticks()
    head, middle, tail = tick._RECORD.partition("  on conflict")
    put(tick, _RECORD=head + without(middle + tail, (middle + tail).partition("  returning")[0]))


def _message_begins() -> None:
    from loaders import briefs

    begins = f"and ((state = 'pending' and sends > 0) or ({briefs.UNDER_WAY} and quiet_until <= now()))"
    put(briefs, _BEGIN=without(briefs._BEGIN, begins))


def _harsh_lease() -> None:
    from loaders import briefs

    put(briefs, _BEGIN=without(briefs._BEGIN, "interval '90 s'", "interval '0 s'"))


def _no_lease() -> None:
    from loaders import briefs

    _harsh_lease()
    held = "and lease = %(lease)s and state = 'generating'"
    put(briefs, _FINISH=without(briefs._FINISH, held))


def _told_early() -> None:
    from loaders import briefs

    put(briefs, _FINISH=without(briefs._FINISH, "channel, greatest(due_at, now())", "channel, now()"))


def _no_resend() -> None:
    from loaders import brief_queue

    once = without(brief_queue._OPEN, "quiet_until", "sends = 0 and quiet_until")
    put(brief_queue, _CLAIM=without(brief_queue._CLAIM, brief_queue._OPEN, once))


def _anybody() -> None:
    """Whose a project is is looked at twice."""
    from tasks import brief

    listed, load = vars(brief)["projects_in_hand"], vars(brief)["load_project"]

    def others(connection: Any, catalog: Any, user: str) -> Any:
        found = {*listed(connection, catalog, user)}
        return sorted({*found, *connection.execute("select id, name from onto_projects order by id limit 1")})

    def theirs(connection: Any, project: str, statements: Any) -> Any:
        rows = load(connection, project, statements)
        everybody = connection.execute("select distinct actor_id, 'viewer' from onto_project_members").fetchall()
        return replace(rows, members=tuple(everybody))

    put(brief, projects_in_hand=others, load_project=theirs)


def _miscounted() -> None:
    from tasks import brief

    compose = vars(brief)["compose"]

    def wrong(*given: Any) -> Any:
        document: dict[str, Any] = dict(compose(*given))
        if random.random() < 0.2:
            document["totals"] = {**document["totals"], "open": document["totals"]["open"] + 1}
        return document

    put(brief, compose=wrong)


def _no_copy() -> None:
    from tasks import announce, brief

    put(brief, _copy=lambda *_: None)
    put(announce, copy_brief=lambda *_: True)


SABOTEURS: dict[str, Callable[[], None]] = {
    "harsh-telling": _harsh_telling,
    "told-twice": _told_twice,
    "harsh-ticks": _harsh_ticks,
    "no-key": _no_key,
    "message-begins": _message_begins,
    "harsh-lease": _harsh_lease,
    "no-lease": _no_lease,
    "told-early": _told_early,
    "no-resend": _no_resend,
    "anybody": _anybody,
    "miscounted": _miscounted,
    "no-copy": _no_copy,
}


if __name__ == "__main__":
    sys.exit(run(SABOTEURS, __file__))

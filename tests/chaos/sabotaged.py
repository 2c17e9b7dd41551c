"""``python sabotaged.py NAME work``: ``python -m worker work`` with one thing broken, see ``chaos.sabotage``.

Patches from outside, in this process only and in what it forks or starts; the product's files stay as they are. A
patch that does not fit the product any more is an error at the start, and not a sabotage that does nothing.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

CHECKOUT = Path(__file__).parents[2]


_POISON = "poison"  # as in chaos.provoke


def without(text: str, part: str, instead: str = "") -> str:
    if part not in text:
        raise SystemExit(f"the sabotage does not fit: there is no {part!r}")
    return text.replace(part, instead)


def put(module: ModuleType, **names: object) -> None:
    vars(module).update(names)


def _no_fence() -> None:
    from foreword import store

    put(store, PUBLISH=without(store.PUBLISH, "if stored then", "if false then"))


def _version_after_content() -> None:
    from loaders import project

    _stamp_not_capped()

    load = project._load

    def late(connection: Any, *rest: Any) -> Any:
        rows = load(connection, *rest)
        return replace(rows, snapshot=connection.execute(project._SNAPSHOT).fetchone()[0])

    put(project, _load=late, _BEGIN="begin isolation level read committed read only")


def _stamp_not_capped() -> None:
    from tasks import project

    put(project, capped=lambda snapshot, _: snapshot)


def _ledger_before_cache() -> None:
    from foreword import codec, keys
    from loaders import ledger
    from tasks import project

    publish = project._publish

    def after(content: Any, stamp: Any, text: Any, draft: Any, tools: Any) -> Any:
        ((raw,),) = tools.store.read_many([(keys.MARKER, [keys.VALUE])])
        row = tools.connection.execute(
            "select requested from fw_projects where project_id = %s", [draft.rows.project_id]
        ).fetchone()
        turn = ledger.Turn(
            epoch=stamp.epoch, generation=stamp.generation, request=row[0], asked=True, entities=0, known=True
        )
        published = project._on_record(draft, stamp, codec.decode_line(raw), tools)
        ledger.finish(tools.connection, draft.rows.project_id, turn, published)
        return publish(content, stamp, text, draft, tools)

    put(project, _publish=after)


def _delete_all_rows() -> None:
    from loaders import ledger

    seen = "and pg_visible_in_snapshot(txid, %(snapshot)s::pg_snapshot)"
    put(ledger, _FINISH=without(ledger._FINISH, seen))


def _no_echoes() -> None:
    from loaders import ledger

    told = "from held where table_name <> 'onto_edges'"
    put(ledger, _FINISH=without(ledger._FINISH, told, "from held where false"))


def _no_marker() -> None:
    from worker import relay

    put(relay, _verify=lambda *_, **__: None)


def _foreign_rows() -> None:
    from loaders import project

    live = project._live_rows

    def more(kind: Any, *rest: Any) -> str:
        smallest = f" or {kind.table}.id = (select min(id::text)::uuid from {kind.table})"
        return live(kind, *rest) + (smallest if kind.name == "goal" else "")

    put(project, _live_rows=more)


def _finish_when_refused() -> None:
    from tasks import project

    publish = project._publish
    put(project, _publish=lambda *given: (publish(*given)[0], True))


def _no_resend() -> None:
    from loaders import claims

    due = "where not (p.quiet_until > now()"
    put(claims, _CLAIM=without(claims._CLAIM, due, due.replace("where", "where p.sends = 0 and")))


def _poison() -> None:
    """No sabotage but a provocation: a build that kills its process, and fewer tries, lest it take minutes."""
    from loaders import ledger

    put(ledger, MOST_ATTEMPTS=4)  # before loaders.claims reads it
    from tasks import project

    draft_of = project.draft_of

    def deadly(rows: Any, tools: Any) -> Any:
        if _POISON in str(rows.project):
            os.kill(os.getpid(), signal.SIGKILL)
        return draft_of(rows, tools)

    put(project, draft_of=deadly)


SABOTEURS: dict[str, Callable[[], None]] = {
    "no-fence": _no_fence,
    "version-after-content": _version_after_content,
    "stamp-not-capped": _stamp_not_capped,
    "ledger-before-cache": _ledger_before_cache,
    "delete-all-rows": _delete_all_rows,
    "no-echoes": _no_echoes,
    "no-marker": _no_marker,
    "foreign-rows": _foreign_rows,
    "finish-when-refused": _finish_when_refused,
    "no-resend": _no_resend,
    "poison": _poison,
}


def _in_children(name: str, script: str) -> None:
    """Builders of a relay are started as commands of their own."""
    from worker import builders

    class Shim:
        TimeoutExpired = subprocess.TimeoutExpired

        @staticmethod
        def Popen(command: list[str], **options: Any) -> "subprocess.Popen[bytes]":  # noqa: N802 - stands for it
            return subprocess.Popen([sys.executable, script, name, *command[3:]], **options)

    put(builders, subprocess=Shim)


def run(saboteurs: Mapping[str, Callable[[], None]] = SABOTEURS, script: str = __file__) -> int:
    """The exit code of the command."""
    name, sys.argv[:2] = sys.argv[1], ["worker"]
    sys.path[:1] = [str(CHECKOUT), str(CHECKOUT / "tests")]
    saboteurs[name]()
    _in_children(name, script)
    from worker.__main__ import run as command

    return command()


if __name__ == "__main__":
    sys.exit(run())

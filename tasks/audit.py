"""Compare stored bundles with fresh builds: what was lost, late, doubled or overtaken on the way shows here, and
nothing that the builder itself gets wrong.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from foreword import codec, keys
from foreword.bundle import render
from foreword.errors import UnknownProject
from foreword.lines import fit
from foreword.stamp import Stamp
from loaders import audits
from tasks.project import drafted
from tasks.tools import Tools

Fields = Mapping[str, bytes]

Stored = Callable[[str], Fields]
"""The whole hash that Redis holds under a key; empty where there is none."""

COMPARED = (keys.TEXT, keys.LINES, keys.DATA, keys.HEAD)
"""And the members. Other fields hold nothing but which build it was."""

AGAIN_SECONDS = 1.0
"""Before what differs, or moves, is looked at a second time."""


class Outcome(StrEnum):
    """Of comparing a bundle with a fresh build."""

    SAME = "same"
    DIFFERENT = "different"
    MISSING = "missing"  # as where the cache evicts: a miss is no lie
    SKIPPED = "skipped"  # it was edited or built meanwhile, or by other settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """A comparison: in what a bundle differs, or why it was not compared."""

    project_id: str
    outcome: Outcome
    says: str = ""


def audit_project(
    project_id: str, tools: Tools, stored: Stored, *, wait: Callable[[float], object] = time.sleep
) -> Audited:
    """Compare a project's bundle, and again a second later what was not the same; what is on record then counts.

    Raises:
        BuildError, SchemaError, Unavailable: there is no fresh build to compare with.
    """
    found = _compare(project_id, tools, stored)
    if found.outcome is not Outcome.SAME:
        wait(AGAIN_SECONDS)
        found = _compare(project_id, tools, stored)
    compared = found.outcome in {Outcome.SAME, Outcome.DIFFERENT}
    audits.record(tools.connection, (int(compared), int(found.outcome is Outcome.DIFFERENT)))
    return found


def _compare(project_id: str, tools: Tools, stored: Stored) -> Audited:
    """The bundle is read between two looks at the ledger, and so is the fresh build: an edit that only one of them
    holds is in the log, or has raised the generation.
    """

    def outcome(of: Outcome, says: str = "") -> Audited:
        return Audited(project_id=project_id, outcome=of, says=says)

    generation = audits.settled(tools.connection, project_id)
    if generation is None:
        return outcome(Outcome.SKIPPED, "it was edited, or is to be built again")
    fields = stored(keys.project(project_id))
    fresh = fresh_fields(project_id, tools)
    if audits.settled(tools.connection, project_id) != generation:
        return outcome(Outcome.SKIPPED, "it was edited or built meanwhile")
    found, says = _judged(fields, fresh, generation, tools)
    if found is Outcome.DIFFERENT and audits.expects_echo(tools.connection, project_id):
        return outcome(Outcome.SKIPPED, "what one of its edges ends at was edited")
    return outcome(found, says)


def _judged(fields: Fields, fresh: Fields | None, generation: int, tools: Tools) -> tuple[Outcome, str]:
    stamp = codec.decode_stamp(fields.get(keys.META))
    if stamp is None:
        return Outcome.MISSING, "Redis has no bundle"
    if stamp.generation > generation:
        return Outcome.SKIPPED, "a build is about to end"
    if stamp.budget != tools.budget:
        return Outcome.SKIPPED, f"it was built with a budget of {stamp.budget} tokens"
    wrong = difference(fields, fresh)
    if stamp.generation < generation:
        wrong = f"is of generation {stamp.generation}, on record is {generation}; {wrong}".removesuffix("; ")
    return (Outcome.DIFFERENT if wrong else Outcome.SAME), wrong


def fresh_fields(project_id: str, tools: Tools) -> Fields | None:
    """The fields of a project's bundle as it would be built now, but for its stamp; None where there is no such
    live project. Publishes nothing.

    Raises:
        BuildError, SchemaError, Unavailable: it could not be built.
    """
    try:
        draft, handles = drafted(project_id, tools)
    except UnknownProject:
        return None
    content = render(draft, handles, tools.count)
    text = fit(content.lines, content.always, tools.budget)
    return codec.encode(content, Stamp(epoch=0, generation=0), text, draft.rows.members, tools.dumps)


def difference(stored: Fields, built: Fields | None) -> str:
    """In what a stored bundle differs from a fresh one; empty where it does not."""
    stamp = codec.decode_stamp(stored.get(keys.META))
    if built is None:
        return "" if stamp is None or stamp.gone else f"is readable, but the project is gone: {stamp}"
    if stamp is None:
        return "is missing"
    if stamp.gone:
        return "is a tombstone, but the project is there"
    named = {name for name in {*stored, *built} if name in COMPARED or name.startswith(keys.member(""))}
    different = [name for name in sorted(named) if _body(name, stored) != _body(name, built)]
    return "; ".join(f"{name} differs: {_excerpt(_body(name, stored), _body(name, built))}" for name in different)


def _body(name: str, fields: Fields) -> bytes | None:
    """Without the stamp's line."""
    raw = fields.get(name)
    return raw.partition(b"\n")[2] if raw is not None and name == keys.TEXT else raw


def _excerpt(stored: bytes | None, built: bytes | None) -> str:
    """Around the first difference."""
    if stored is None or built is None:
        return f"stored {stored!r:.80}, fresh {built!r:.80}"
    at = next(
        (n for n, (a, b) in enumerate(zip(stored, built, strict=False)) if a != b), min(len(stored), len(built))
    )
    begin = max(at - 40, 0)
    return f"at {at}: stored {stored[begin : at + 60]!r}, fresh {built[begin : at + 60]!r}"

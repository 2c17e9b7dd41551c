"""Rebuild one project's bundle: lock, load from one snapshot, build, publish behind the fence, record.

The order is the protocol: cache first, then the ledger, so that a death at any line only repeats work.
"""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from foreword import codec, keys
from foreword.bundle import Content, render
from foreword.draft import Draft, completed, select
from foreword.errors import BuildError, ForewordError, SchemaError, Unavailable, UnknownProject
from foreword.lines import Fitted, fit
from foreword.rows import ProjectRows, misfits
from foreword.stamp import Stamp
from loaders import ledger
from loaders.handles import handles_for
from loaders.ledger import Turn
from loaders.project import load_chosen, survey_project, whole_project
from tasks.tools import Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a rebuild did.

    Attributes:
        stamp: of the bundle built.
        published: False when a newer bundle was already there.
        milliseconds: by stage: load, select, handles, render, publish.
    """

    stamp: Stamp
    published: bool
    milliseconds: dict[str, float]


def rebuild_project(
    project_id: str, tools: Tools, *, if_asked: bool = False, last_try: bool = True
) -> Built | None:
    """Build and publish a project's bundle; a tombstone where the project is gone.

    ``if_asked``: only if a request is waiting, and again for one that comes meanwhile; None when there is none, or
    when another process is building the project, which then looks for requests itself. ``last_try`` False: what a
    new connection may mend is raised without being recorded as the build's answer.

    Raises:
        UnknownProject: there is no such live project, and there never was a request for it.
        BuildError, SchemaError, Unavailable: nothing was published; the old bundle stays.
    """
    if not if_asked:
        with ledger.turn(tools.connection, project_id) as turn:
            return _recorded(project_id, tools, turn, last_try=last_try)
    built = None
    while True:
        with ledger.turn_if_free(tools.connection, project_id) as free:
            if free is None or not free.asked:
                return built
            built = _recorded(project_id, tools, free, last_try=last_try)
        if not ledger.asked(tools.connection, project_id):
            return built


def _recorded(project_id: str, tools: Tools, turn: Turn, *, last_try: bool) -> Built:
    """The build; where it fails, who waits for it is told, and need not wait on."""
    try:
        with _no_collection():  # around the call, so that the rows are gone when collecting begins again
            return _rebuild_again(project_id, tools, turn)
    except UnknownProject:
        if not turn.known:
            raise
        return _bury(project_id, tools, turn)
    except Exception as error:
        mendable = isinstance(error, Unavailable | SchemaError) and not last_try
        if not mendable and not tools.connection.closed:
            ledger.fail(tools.connection, project_id, turn, _said(error))
        raise


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, ForewordError) else f"{type(error).__name__}: {error}"


def _rebuild_again(project_id: str, tools: Tools, turn: Turn) -> Built:
    """Once more where the schema did not fit: a table may have been altered since the statements were prepared,
    and a load that fails forgets them.
    """
    try:
        return _rebuild(project_id, tools, turn)
    except SchemaError:
        return _rebuild(project_id, tools, turn)


SURVEY_FROM = 1500
"""Entities at the last build from which a project is surveyed first: below, a second round of small statements
costs more than the text that it spares (measured: whole 11.2 ms, surveyed 12.6 at 1,000; 18.4 and 15.6 at 2,000).
"""


def _rebuild(project_id: str, tools: Tools, turn: Turn) -> Built:
    clock = _Stages()
    draft = _select(project_id, tools, clock, survey=turn.entities >= SURVEY_FROM)
    handles = handles_for(tools.connection, project_id, draft.named, tools.kinds)
    clock.lap("handles")
    with named_misfits(draft.rows, tools):
        content = render(draft, handles, tools.count)
    text = fit(content.lines, content.always, tools.budget)
    stamp = stamp_of(draft, turn, tools, text)
    clock.lap("render")
    published = _publish(content, stamp, text, draft.rows, tools)
    if not published:
        _refuse_foreign_order(project_id, tools)
    entities = sum(map(len, draft.rows.entities.values()))
    ledger.finish(tools.connection, project_id, turn, draft.rows.snapshot, entities)
    clock.lap("publish")
    return Built(stamp=stamp, published=published, milliseconds=clock.laps)


def _select(project_id: str, tools: Tools, clock: "_Stages", *, survey: bool) -> Draft:
    """Load and select: everything light at once, or first what decides, then the light rows of what is shown."""
    opened = survey_project if survey else whole_project
    with opened(tools.connection, project_id, tools.statements) as rows:
        clock.lap("load")
        draft = draft_of(rows, tools)
        clock.lap("select")
        if survey:
            draft = completed(draft, load_chosen(tools.connection, _chosen(draft), tools.statements))
    clock.lap("load")
    return draft


def _chosen(draft: Draft) -> dict[str, list[str]]:
    """What the draft shows, by kind, without the project itself."""
    chosen: dict[str, list[str]] = {}
    for entity, (kind, _) in draft.by_id.items():
        if entity != draft.rows.project_id:
            chosen.setdefault(kind.name, []).append(entity)
    return chosen


def draft_of(rows: ProjectRows, tools: Tools) -> Draft:
    """What the project's bundle shows today, in its own zone."""
    zone = zone_of(rows, tools)
    with named_misfits(rows, tools):
        return select(rows, as_of=tools.today(zone), zone=zone, kinds=tools.kinds)


def zone_of(rows: ProjectRows, tools: Tools) -> ZoneInfo:
    """The zone that the project names in props.timezone, if there is such a zone; else the default."""
    at = next((i for i, field in enumerate(tools.kinds.project.light, 1) if field.name == "timezone"), None)
    named = rows.project[at] if at is not None else None
    try:
        return ZoneInfo(named) if named else tools.zone
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a path, a directory, a name nobody knows
        return tools.zone


def stamp_of(draft: Draft, turn: Turn, tools: Tools, text: Fitted) -> Stamp:
    """The metadata of a bundle about to be published."""
    return Stamp(
        epoch=turn.epoch,
        generation=turn.generation,
        snapshot=draft.rows.snapshot,
        as_of=draft.as_of.isoformat(),
        zone=draft.zone.key,
        valid_until=draft.valid_until.timestamp(),
        built=tools.now(),
        budget=tools.budget,
        tokens=text.tokens,
    )


def _publish(content: Content, stamp: Stamp, text: Fitted, rows: ProjectRows, tools: Tools) -> bool:
    fields = codec.encode(content, stamp, text, rows.members, tools.dumps)
    published = tools.store.publish(keys.project(rows.project_id), stamp.fence, fields, tools.ttl)
    if rows.members:
        # Hints for overviews: membership itself is in the bundle, so adding late or twice does no harm.
        tools.store.add_to_sets([keys.projects_of(actor) for actor, _ in rows.members], rows.project_id)
    return published


def _refuse_foreign_order(project_id: str, tools: Tools) -> None:
    """A refused publication is well where a newer build of this database stands there. Where what stands there is
    newer than anything this database ever gave away, every build would be refused from now on.

    Raises:
        BuildError: the database is younger than its cache.
    """
    stored = codec.decode_stamp(tools.store.read(keys.project(project_id), [keys.META])[0])
    if stored is not None and stored.fence > ledger.newest(tools.connection):
        raise BuildError(
            f"project {project_id}: Redis holds generation {stored.generation} of epoch {stored.epoch}, newer than"
            " any of this database, which was restored or made anew; raise its epoch as docs/operations.md says"
        )


def _bury(project_id: str, tools: Tools, turn: Turn) -> Built:
    """Replace the bundle of a project that is gone, so that no late build can bring it back. Also where none is
    stored: a first build may be on its way.
    """
    stamp = Stamp(epoch=turn.epoch, generation=turn.generation, built=tools.now(), gone=True)
    published = tools.store.publish(keys.project(project_id), stamp.fence, codec.tombstone(stamp), tools.ttl)
    ledger.bury(tools.connection, project_id, turn)
    return Built(stamp=stamp, published=published, milliseconds={})


@contextmanager
def named_misfits(rows: ProjectRows, tools: Tools) -> Iterator[None]:
    """A build that stumbles over a row says which one."""
    try:
        yield
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        found = misfits(rows, tools.kinds)
        cause = "; ".join(found[:3]) or f"{type(error).__name__}: {error}"
        raise BuildError(f"project {rows.project_id} cannot be built: {cause}") from error


@contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage collection while a project's rows pile up: nothing of them is garbage yet."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Stages:
    """Milliseconds between laps."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = self.laps.get(name, 0.0) + (now - self._last) * 1000
        self._last = now

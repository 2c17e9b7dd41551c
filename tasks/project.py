"""Rebuild one project's bundle: lock, load from one snapshot, build, publish behind the fence, record.

The order is the protocol: cache first, then the ledger, so that a death at any line only repeats work.
"""

import gc
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from zoneinfo import ZoneInfo

from foreword import codec, keys
from foreword.bundle import Content, render
from foreword.changes import difference, facts_of
from foreword.draft import Draft, completed, select
from foreword.errors import BadInput, BuildError, ForewordError, SchemaError, Unavailable
from foreword.freshness import capped
from foreword.lines import Fitted, fit
from foreword.ports import News, Raw
from foreword.rows import ProjectRows, misfits
from foreword.stamp import Stamp
from foreword.zones import zone_named
from loaders import ledger
from loaders.handles import handles_for
from loaders.ledger import Held, Published, Turn
from loaders.project import NotThere, load_chosen, survey_project, whole_project
from tasks.reports import BURIED, FAILED, PUBLISHED, PUT_OFF, REFUSED, BuildReport
from tasks.tools import Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a rebuild did.

    Attributes:
        stamp: of the bundle built.
        published: False when a newer bundle was already there.
        milliseconds: by stage: load, select, handles, render, publish.
        steps: the same in their order, where a stage may come twice.
        held: the edits that it answered.
    """

    stamp: Stamp
    published: bool
    milliseconds: dict[str, float]
    steps: Sequence[tuple[str, float]] = ()
    held: Held | None = None


def rebuild_project(project_id: str, tools: Tools, *, if_due: bool = False, last_try: bool = True) -> Built | None:
    """Build and publish a project's bundle; a tombstone where the project is gone.

    ``if_due``: only if something was edited, or asked for, or has to be built again by now; None when nothing
    was, or when another process is building the project, whose relay then looks again. ``last_try`` False: what a
    new connection may mend is raised without being recorded as the build's answer.

    Raises:
        UnknownProject: there is no such live project, and there never was a request for it.
        BuildError, SchemaError, Unavailable: nothing was published; the old bundle stays.
    """
    if not if_due:
        with ledger.turn(tools.connection, project_id) as turn:
            return _recorded(project_id, tools, turn, last_try=last_try)
    built = None
    while True:
        with ledger.turn_if_due(tools.connection, project_id) as due:
            if due is None:
                return built
            built = _recorded(project_id, tools, due, last_try=last_try)
        if not ledger.asked(tools.connection, project_id):  # edits wait for the relay, which lets them pile up
            return built


def _recorded(project_id: str, tools: Tools, turn: Turn, *, last_try: bool) -> Built:
    """The build; where it fails, who waits for it is told, and need not wait on."""
    began = time.time()
    try:
        built = _rebuild_or_bury(project_id, tools, turn)
    except NotThere:
        ledger.forget(tools.connection, project_id)
        raise
    except Exception as error:
        excused, attempts = isinstance(error, Unavailable | SchemaError), 0
        if not tools.connection.closed:
            attempts = _record_failure(project_id, tools, turn, error, excused=excused, last_try=last_try)
        tools.note(_failed(project_id, turn, began, error, excused=excused, attempts=attempts))
        raise
    tools.note(_ended(project_id, turn, began, built))
    return built


def _ended(project_id: str, turn: Turn, began: float, built: Built) -> BuildReport:
    result = PUBLISHED if built.published else REFUSED
    return BuildReport(
        project=project_id,
        epoch=turn.epoch,
        generation=turn.generation,
        result=BURIED if built.published and built.stamp.gone else result,
        began=began,
        steps=built.steps,
        tokens=built.stamp.tokens,
        budget=built.stamp.budget,
        held=built.held,
    )


def _failed(
    project_id: str, turn: Turn, began: float, error: Exception, *, excused: bool, attempts: int
) -> BuildReport:
    return BuildReport(
        project=project_id,
        epoch=turn.epoch,
        generation=turn.generation,
        result=PUT_OFF if excused else FAILED,
        began=began,
        error=error,
        attempts=attempts,
    )


def _record_failure(
    project_id: str, tools: Tools, turn: Turn, error: Exception, *, excused: bool, last_try: bool
) -> int:
    """A server that does not answer, or a schema in the middle of its migration, says nothing about the project,
    and does not count towards parking it. How many attempts failed in a row.
    """
    if excused and not last_try:
        ledger.excuse(tools.connection, project_id)
        return 0
    return ledger.fail(tools.connection, project_id, turn, _said(error), excused=excused)


def _rebuild_or_bury(project_id: str, tools: Tools, turn: Turn) -> Built:
    try:
        with _no_collection():  # around the call, so that the rows are gone when collecting begins again
            return _rebuild_again(project_id, tools, turn)
    except NotThere as gone:
        if not turn.known:
            raise
        return _bury(project_id, tools, turn, capped(gone.snapshot, turn.transaction))


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
    marker, published = _publish(content, stamp, text, draft, tools)
    held = None
    if published:
        held = ledger.finish(tools.connection, project_id, turn, _on_record(draft, stamp, marker, tools))
    else:
        _refuse_foreign_order(project_id, tools)
        ledger.excuse(tools.connection, project_id)
    clock.lap("publish")
    return Built(stamp=stamp, published=published, milliseconds=clock.by_stage(), steps=clock.steps, held=held)


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


def drafted(project_id: str, tools: Tools) -> tuple[Draft, dict[str, str]]:
    """What a build of the project would show now, and the handles for it. Publishes nothing.

    Raises:
        UnknownProject: there is no such live project.
        BuildError, SchemaError, Unavailable: it could not be built.
    """
    draft = _select(project_id, tools, _Stages(), survey=False)
    return draft, handles_for(tools.connection, project_id, draft.named, tools.kinds)


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
    with suppress(BadInput):
        return zone_named(named) if named else tools.zone
    return tools.zone


def stamp_of(draft: Draft, turn: Turn, tools: Tools, text: Fitted) -> Stamp:
    """The metadata of a bundle about to be published."""
    return Stamp(
        epoch=turn.epoch,
        generation=turn.generation,
        snapshot=capped(draft.rows.snapshot, turn.transaction),
        as_of=draft.as_of.isoformat(),
        zone=draft.zone.key,
        valid_until=draft.valid_until.timestamp(),
        built=tools.now(),
        budget=tools.budget,
        tokens=text.tokens,
    )


def _publish(content: Content, stamp: Stamp, text: Fitted, draft: Draft, tools: Tools) -> tuple[str, bool]:
    """The marker that Redis had before, and whether it took the bundle."""
    project_id = draft.rows.project_id
    key = keys.project(project_id)
    before = keys.previous(key)
    (raw, data), (marker,), (earlier,) = tools.store.read_many(
        [(key, [keys.META, keys.DATA]), (keys.MARKER, [keys.VALUE]), (before, [keys.META])]
    )
    fields = codec.encode(content, stamp, text, draft.rows.members, tools.dumps)
    news = _news(raw, data, content, stamp, draft, tools)
    published = tools.store.publish(key, stamp.fence, fields, tools.ttl, news)
    if published and earlier is not None:  # readers that know only the earlier layout are told that it is old
        tools.store.outdate(before)
    if draft.rows.members:
        # Hints for overviews: membership itself is in the bundle, so adding late or twice does no harm.
        tools.store.add_to_sets([keys.projects_of(actor) for actor, _ in draft.rows.members], project_id)
    return codec.decode_line(marker), published


def _news(raw: Raw, data: Raw, content: Content, stamp: Stamp, draft: Draft, tools: Tools) -> News:
    """What readers of the bundle that stands there have to be told about the new one."""
    before, old = codec.decode_stamp(raw), codec.decode_facts(data, tools.loads)
    key, entry = keys.changes(draft.rows.project_id), None
    if before is not None and old is not None:
        found = difference(old, facts_of(content.data), _exists(draft))
        step = codec.Step(since=before.version, version=stamp.version, difference=found)
        entry = codec.encode_news(step, tools.dumps)
    return News(key=key, since=before.version if before is not None else "", entry=entry)


def _exists(draft: Draft) -> Callable[[str], bool]:
    """Whether an entity is in the project, shown or not; looked up only if something has gone."""

    @cache
    def ids() -> frozenset[str]:
        return frozenset(row[0] for rows in draft.rows.entities.values() for row in rows)

    return lambda entity: entity in ids()


SPREAD_SECONDS = 300
"""Within which projects whose day is over are built again; one that is read meanwhile, at once."""


def _on_record(draft: Draft, stamp: Stamp, marker: str, tools: Tools) -> Published:
    aged = tools.ttl * _BEFORE_COLLECTED
    left = max(stamp.valid_until - tools.now(), 0.0)  # of the day, which may have ended during the build
    spread = zlib.crc32(draft.rows.project_id.encode()) % SPREAD_SECONDS if left else 0
    for_ever = tools.as_of is not None
    return Published(
        snapshot=stamp.snapshot,
        entities=sum(map(len, draft.rows.entities.values())),
        # The epoch may have changed during the build: then it is compared again.
        marker=marker if marker.startswith(f"{stamp.epoch}.") else "",
        valid_for=None if for_ever else left,
        refresh_in=aged if for_ever else min(left + spread + 1, aged),
    )


_BEFORE_COLLECTED = 0.8
"""Of the time after which a bundle may be collected: by then it is built again."""


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
            " any of this database, which was restored or made anew: say `python -m worker restored`"
        )


def _bury(project_id: str, tools: Tools, turn: Turn, snapshot: str) -> Built:
    """Replace the bundle of a project that is gone, so that no late build can bring it back. Also where none is
    stored: a first build may be on its way.
    """
    stamp = Stamp(epoch=turn.epoch, generation=turn.generation, snapshot=snapshot, built=tools.now(), gone=True)
    key, news = keys.project(project_id), News(key=keys.changes(project_id), since="", entry=None)
    before = keys.previous(key)
    (marker,), (earlier,) = tools.store.read_many([(keys.MARKER, [keys.VALUE]), (before, [keys.META])])
    published = tools.store.publish(key, stamp.fence, codec.tombstone(stamp), tools.ttl, news)
    if earlier is not None:
        tools.store.publish(before, stamp.fence, codec.tombstone(stamp), tools.ttl)
    held = None
    if published:
        buried = Published(snapshot=snapshot, entities=ledger.GONE, marker=codec.decode_line(marker))
        held = ledger.finish(tools.connection, project_id, turn, buried)
    else:
        ledger.excuse(tools.connection, project_id)
    return Built(stamp=stamp, published=published, milliseconds={}, held=held)


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
    """Milliseconds between laps, in their order."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, float]] = []
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.steps.append((name, (now - self._last) * 1000))
        self._last = now

    def by_stage(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for name, milliseconds in self.steps:
            found[name] = found.get(name, 0.0) + milliseconds
        return found

"""Make one person's brief of a day: under a lease, project by project, kept in PostgreSQL, copied to Redis.

PostgreSQL first: what stands there is the brief, and Redis holds a copy that can be made again (``copy_brief``). A
death at any line leaves a lease that ends, and another begins anew.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from foreword import codec, keys
from foreword.brief import About, Document, Part, compose, known, pack, part, unpack, window_of, worded
from foreword.brief_lines import brief_lines
from foreword.dates import next_midnight
from foreword.digest import Before, digest
from foreword.draft import in_order_of_creation
from foreword.errors import BadInput, ForewordError, Unavailable
from foreword.lines import DEFAULT_BUDGET, Line, fit
from foreword.stamp import Stamp
from foreword.zones import zone_named
from loaders import briefs, ledger, shelf
from loaders.briefs import Begun, Made
from loaders.handles import handles_for
from loaders.members import IN_HAND, name_of, projects_in_hand
from loaders.project import NotThere, load_project
from loaders.shelf import ModelCall, StoredBrief
from prompts import brief_template, words
from prompts.words import Words
from tasks.project import named_misfits
from tasks.reports import FAILED, MADE, PUT_OFF, SKIPPED, BriefReport
from tasks.tools import Tools

NARRATED = 5
"""Projects whose narrative a model writes; the others' is the template's."""

WRITING_SECONDS = 30.0
"""For all words of a brief. What a model has not written by then, the template has."""


DATED_DAYS = 2
"""That Redis keeps the copy of a date's brief: while it is that date anywhere. The latest stays as long as bundles
do; an older one that somebody asks for is copied again.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """A brief as it was made. ``known`` is what the next one compares with."""

    document: Document
    lines: Sequence[Line]
    always: int
    known: Before
    since: datetime | None


def make_brief(user: str, day: date, tools: Tools, held: list[Begun] | None = None) -> int | None:
    """Make a brief whose turn has come; its revision. None where there is nothing to do: the message came twice,
    another has it, or it was taken back. ``held`` gets what was begun where the connection was lost, and nothing
    could be put on record: whoever tries again at once has the lease still.

    Raises:
        BuildError, SchemaError, Unavailable: it is on record, and is tried again.
    """
    begun = held[-1] if held else briefs.begin(tools.connection, user, day)
    if begun is None:
        return None
    try:
        return finish_brief(begun, tools)
    except Exception:
        if held is not None and tools.connection.closed:
            held.append(begun)
        raise


def finish_brief(begun: Begun, tools: Tools) -> int | None:
    """Make the brief that was begun, and put its end on record, whatever it is. Returns and raises: as
    ``make_brief``.
    """
    began = time.time()
    try:
        return _finished(begun, tools, began)
    except Exception as error:
        result = PUT_OFF if isinstance(error, Unavailable) else FAILED
        tools.note(_report(begun, began, result, error=error))
        raise


def _report(begun: Begun, began: float, result: str, **more: Any) -> BriefReport:
    return BriefReport(
        user=begun.user_id,
        date=begun.local_date,
        result=result,
        began=began,
        milliseconds=1000 * (time.time() - began),
        **more,
    )


def _finished(begun: Begun, tools: Tools, began: float) -> int | None:
    connection = tools.connection
    try:
        made = write_brief(begun.user_id, begun.local_date, tools, kind=begun.kind, zone=begun.zone, now=begun.at)
        if not made.document["totals"]["projects"] and begun.when_empty == "none" and begun.owed:
            briefs.skip(connection, begun, "no project in planning or active")
            tools.note(_report(begun, began, SKIPPED))
            return None
        stamp = _stamp(made, begun, tools)
        revision = briefs.finish(connection, begun, _recorded(made, stamp), tools.channels)
    except BadInput as error:  # trying again would not help
        briefs.fail(connection, begun, str(error), permanent=True)
        raise
    except Unavailable:
        if not connection.closed:
            briefs.give_back(connection, begun)
        raise
    except Exception as error:  # also a table that was altered: who tries again looks at it anew
        if not connection.closed:
            said = str(error) if isinstance(error, ForewordError) else f"{type(error).__name__}: {error}"
            briefs.fail(connection, begun, said, permanent=False)
        raise
    except BaseException:  # interrupted: nobody is to wait for the lease's end
        with suppress(ForewordError):
            briefs.give_back(connection, begun)
        raise
    if revision is not None:
        # The brief is made; who announces it copies it again, and so does who misses it.
        with suppress(Unavailable):
            early = begun.due_at is not None and begun.due_at > begun.at
            latest = not early and (not begun.over or _is_latest(begun.user_id, begun.local_date, tools))
            _copy(begun.user_id, begun.local_date, stamp, made, tools, latest=latest)
        by = made.document["summary"]["words"]
        tools.note(_report(begun, began, MADE, revision=revision, words=by, tokens=stamp.tokens))
    return revision


def write_brief(user: str, day: date, tools: Tools, *, kind: str, zone: str, now: datetime) -> Brief:
    """What the brief would say now. Stores nothing but handles, and calls of a model.

    Raises:
        BadInput: there is no such user.
        BuildError, SchemaError, Unavailable: a query failed; a part of a brief is no brief.
    """
    connection, place = tools.connection, zone_named(zone)
    name = name_of(connection, tools.statements.catalog, user)
    previous = shelf.previous(connection, user, day)
    before = _before(previous)
    # Of a day that is over, what is known of it; of one that has not begun, what is known now.
    moment = min(now, next_midnight(day, place))
    told_until = _told_until(previous, place)
    window = window_of(moment, day, told_until, before.date if before else None)
    about = About(user=user, name=name, date=day, zone=place.key, kind=kind, window=window, before=before)
    parts, gone = [], []
    for project, called in projects_in_hand(connection, tools.statements.catalog, user):
        found = _part(project, about, place, tools)
        (gone.append(called) if found is None else parts.append(found))
    document = _in_words(compose(about, parts, gone), tools)
    lines, always = brief_lines(document, tools.count)
    return Brief(
        document=document,
        lines=lines,
        always=always,
        known=known(document, parts),
        since=previous.generated_at if previous else None,
    )


def _before(previous: shelf.Previous | None) -> Before | None:
    """What the previous brief knew. What it left unreadable is a pity, and no reason to have no brief."""
    if previous is None:
        return None
    with suppress(BadInput):
        if previous.facts is not None:
            return unpack(previous.facts)
    return Before(date=previous.local_date, priorities=tuple(previous.priorities))


def _told_until(previous: shelf.Previous | None, zone: ZoneInfo) -> datetime | None:
    """Until when the previous brief has told what was done: when it was made, but its day's end if that was later,
    as of one that was made by hand for a day that was over.
    """
    if previous is None or previous.generated_at is None:
        return None
    return min(previous.generated_at, next_midnight(previous.local_date, zone))


def _part(project: str, about: About, zone: ZoneInfo, tools: Tools) -> Part | None:
    """A project's part, from one snapshot of it. None where it went away since it was listed, left the states that
    a brief is about, or the user left it.
    """
    try:
        rows = load_project(tools.connection, project, tools.statements)
    except NotThere:
        return None
    kinds = tools.kinds
    if tools.statements.catalog.has_members and about.user not in dict(rows.members):
        return None
    if rows.project[kinds.project.at["state_key"]] not in IN_HAND:
        return None
    with named_misfits(rows, tools):
        found = digest(rows, as_of=about.date, zone=zone, window=about.window, before=about.before, kinds=kinds)
    return part(found, handles_for(tools.connection, project, in_order_of_creation(found.named), kinds))


# ---- words


def _in_words(document: Document, tools: Tools) -> Document:
    """The document with its summary and narratives: the template's, or a model's where there is one."""
    day = date.fromisoformat(document["date"])
    plain = {
        section["id"]: Words(brief_template.narrative(section, day), "template")
        for section in document["projects"]
    }
    summary = Words(brief_template.summary(document), "template")
    if tools.model is not None and document["totals"]["projects"]:
        summary, plain = _by_model(document, summary, plain, tools)
    return worded(document, _json(summary), {project: _json(words) for project, words in plain.items()})


def _by_model(
    document: Document, summary: Words, narratives: dict[str, Words], tools: Tools
) -> tuple[Words, dict[str, Words]]:
    until = time.monotonic() + WRITING_SECONDS
    of = document["user"], date.fromisoformat(document["date"])

    def left() -> float:
        return until - time.monotonic()

    def record(call: ModelCall) -> None:
        tools.note(call)
        shelf.record_call(tools.connection, *of, call)

    def written(prompt: str, messages: Any, check: Callable[[str], list[str]], template: str) -> Words:
        if left() <= 0 or tools.model is None:
            return Words(template, "template", f"no time was left after {WRITING_SECONDS:.0f} s")
        return words.write(tools.model.asker(prompt, record, deadline=left), messages, check, template)

    facts = words.facts_for_summary(document)
    summary = written(
        words.SUMMARY,
        words.messages_for_summary(document),
        lambda text: words.problems(text, facts, words.LONGEST_SUMMARY),
        summary.text,
    )
    for section in document["projects"][:NARRATED]:
        of_project = words.facts_for_project(section, document)
        narratives[section["id"]] = written(
            words.PROJECT,
            words.messages_for_project(section, document),
            lambda text, facts=of_project: words.problems(text, facts, words.LONGEST_NARRATIVE),  # type: ignore[misc]
            narratives[section["id"]].text,
        )
    return summary, narratives


def _json(said: Words) -> Mapping[str, Any]:
    return {"text": said.text, "words": said.words, "why": said.why}


# ---- keeping it


def _stamp(made: Brief, begun: Begun, tools: Tools) -> Stamp:
    """Which brief it is. Briefs of a date are ordered by a number of the database, dates by themselves."""
    day, zone = begun.local_date, zone_named(begun.zone)
    epoch, generation = ledger.draw(tools.connection)
    text = fit(made.lines, made.always, _budget(tools))
    return Stamp(
        epoch=epoch * _DAYS + day.toordinal(),
        generation=generation,
        as_of=day.isoformat(),
        zone=zone.key,
        valid_until=next_midnight(day, zone).timestamp(),
        built=begun.at.timestamp(),
        budget=text.budget,
        tokens=text.tokens,
    )


_DAYS = 10**7
"""More than the calendar has: a database that was restored begins anew above all dates."""


def _budget(tools: Tools) -> int:
    """Tokens of a chat's brief at most: the specification's, also where bundles may be larger."""
    return min(tools.budget, DEFAULT_BUDGET)


def _recorded(made: Brief, stamp: Stamp) -> Made:
    summary = made.document["summary"]
    return Made(
        document=made.document,
        lines=[made.always, [list(line) for line in made.lines]],
        stamp=stamp.line(),
        words=summary["words"],
        facts=pack(made.known),
        reason=summary["why"],
        since=made.since,
    )


def copy_brief(found: StoredBrief, tools: Tools) -> bool:
    """Copy a brief that can be read from PostgreSQL to Redis; whether there was one to copy.

    Raises:
        Unavailable: Redis does not answer.
    """
    stamp = Stamp.parse(found.stamp or "")
    if stamp is None or not found.document or not found.lines:
        return False
    always, stored = found.lines
    lines = [Line(*line) for line in stored]
    made = Brief(
        document=found.document, lines=lines, always=always, known=Before(date=found.local_date), since=found.since
    )
    latest = _is_latest(found.user_id, found.local_date, tools)  # what is not due yet is not
    _copy(found.user_id, found.local_date, stamp, made, tools, latest=latest)
    return True


def _is_latest(user: str, day: date, tools: Tools) -> bool:
    """Whether it is the latest that is due. Redis knows only until it is emptied."""
    return shelf.latest(tools.connection, user) == day


def _copy(user: str, day: date, stamp: Stamp, made: Brief, tools: Tools, *, latest: bool) -> None:
    text = fit(made.lines, made.always, _budget(tools))
    fields = codec.encode_text(made.lines, made.always, made.document, stamp, text, tools.dumps)
    tools.store.publish(keys.brief(user, day.isoformat()), stamp.fence, fields, DATED_DAYS * 86_400)
    if latest:
        tools.store.publish(keys.brief(user), stamp.fence, fields, tools.ttl)

"""What a chat process imports: connection, project, actor in; a context out, in one round trip.

Misses and staleness are values, because they are ordinary. Not being a member is an error, because going on
would be a leak. The two readers share everything but the await. Nothing here is imported but the standard
library; the client is the chat's own.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Final, Literal

from foreword import codec, keys
from foreword.changes import Difference, fold
from foreword.errors import BadInput, NotAMember
from foreword.freshness import contains, parse_token
from foreword.handles import reference_of, uuid_of
from foreword.layouts import AsyncLayouts, Layouts
from foreword.lines import DEFAULT_BUDGET, LARGEST_BUDGET, Line, check_budget, fit
from foreword.ports import Raw, Store
from foreword.stamp import Stamp, glance
from foreword.steady import Steady, base_budget, begun, continued
from foreword.store import AsyncRedisReads, RedisStore

Clock = Callable[[], float]
Status = Literal["fresh", "stale", "missing"]


class Trusted:
    """The type of TRUSTED."""

    __slots__ = ()


TRUSTED: Final = Trusted()
"""In place of an actor: the caller has checked who asks (an operator's command, a job). Never a default."""

Actor = str | Trusted


@dataclass(frozen=True, slots=True)
class Context:
    """What a reader found. True when there is something to show.

    Attributes:
        status: ``fresh``; ``stale``, whole and consistent but no longer true of today (see ``stamp``), or without
            the edit that was demanded; ``missing``, not built yet, deleted, or of a version this reader does not
            know.
        text: lines for a prompt, at most ``budget`` tokens.
        tokens: the exact count of ``text`` (o200k_base).
        line: the stamp as it was stored; ``stamp`` reads it.
        data: the structured bundle where it was asked for.
        steady: of ``Reader.steady``, what the next one continues.
    """

    status: Status
    text: str = ""
    tokens: int = 0
    line: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    steady: Steady | None = None

    def __bool__(self) -> bool:
        return self.status != "missing"

    @property
    def stamp(self) -> Stamp | None:
        """Which edits it holds, which build made it, until when its dates are true; None when missing, but for a
        deleted project, which is ``gone``.
        """
        return Stamp.parse(self.line)

    @property
    def version(self) -> str:
        """Which bundle this is, for ``Reader.changes``; empty when missing."""
        stamp = self.stamp
        return stamp.version if stamp is not None and not stamp.gone else ""


_MISSING: Final = Context("missing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes(Difference):
    """What changed since a version. True when something did.

    Attributes:
        status: ``ok``; ``too old`` when the differences since then are not kept any more, or never were: read the
            whole; ``missing`` as in ``Context``.
        since, version: from where to where; ``version`` is what to ask from next time.
    """

    status: Literal["ok", "too old", "missing"]
    since: str = ""
    version: str = ""


Question = tuple[str, list[str]]


# ---- what to ask, and what the answers mean: shared by both readers


def _ask(key: str, parts: Sequence[str], actor: Actor) -> Question:
    fields = [*parts]
    if not isinstance(actor, Trusted):
        fields.append(keys.member(uuid_of(actor, "actor")))
    return key, fields


def _ask_project(project_id: str, actor: Actor, budget: int | None) -> Question:
    return _ask(keys.project(uuid_of(project_id, "project")), _text_parts(budget), actor)


def _text_parts(budget: int | None) -> list[str]:
    """The text with its stamp; or the stamp, and the lines from which a text of another budget is cut."""
    return [keys.TEXT] if budget is None else [keys.META, keys.LINES]


def _admit(role: Raw, actor: Actor, what: str) -> None:
    if not isinstance(actor, Trusted) and role is None:
        raise NotAMember(f"actor {actor} is no member of {what}")


def _status(valid_until: float, now: float) -> Status:
    return "fresh" if now < valid_until else "stale"


def _project(answer: Sequence[Raw], project_id: str, actor: Actor, budget: int | None, now: float) -> Context:
    if budget is None:
        line, text = codec.decode_text(answer[0])
    else:
        line, text = codec.decode_line(answer[0]), ""
    seen = glance(line)
    if seen is None:
        return _missing(line)
    _admit(answer[-1], actor, f"project {project_id}")
    valid_until, tokens = seen
    if budget is not None:
        fitted = codec.decode_lines(answer[1], budget)
        if fitted is None:
            return _MISSING
        text, tokens = fitted.text, fitted.tokens
    return Context(_status(valid_until, now), text, tokens, line)


def _steady(
    answer: Sequence[Raw], project_id: str, actor: Actor, previous: Context | None, budget: int, now: float
) -> Context:
    """The text that continues the previous one's, or a fresh one where there is none or its budget is full."""
    first = base_budget(budget)
    found = _project(answer, project_id, actor, first, now)
    lines = codec.decode_printed(answer[1], first, LARGEST_BUDGET) if found else None
    if lines is None:
        return found
    fresh, every = lines
    of = uuid_of(project_id, "project")
    before = previous.steady if previous is not None else None
    text = continued(before, fresh, every, budget) if before is not None and before.of == of else None
    text = text or begun(of, fresh, every)
    return replace(found, text=text.text, tokens=text.tokens, steady=text)


def _missing(line: str) -> Context:
    """Of a deleted project the stamp is kept."""
    stamp = Stamp.parse(line)
    return Context("missing", line=line) if stamp is not None and stamp.gone else _MISSING


def _with_data(found: Context, raw: Raw) -> Context:
    data = codec.decode_data(raw)
    if not found:
        return found
    return replace(found, data=data) if data is not None else _MISSING


_PAUSES: Final = (*[0.004] * 25, 0.02)
"""Seconds between looks for an edit that was demanded; the last for ever."""


def _pauses(wait: float) -> Iterator[float]:
    """Seconds to sleep between looks, until ``wait`` seconds are over."""
    deadline = time.monotonic() + wait
    look = 0
    while (left := deadline - time.monotonic()) > 0:
        yield min(_PAUSES[min(look, len(_PAUSES) - 1)], left)
        look += 1


def _holds(answer: Sequence[Raw], at_least: str | None, now: float) -> bool:
    """Whether a stored text or stamp is of a bundle with that edit; without a demand, of one that is fresh."""
    stamp = Stamp.parse(codec.decode_text(answer[0])[0])
    if stamp is None or at_least is None:
        return stamp is not None and (stamp.gone or now < stamp.valid_until)
    return contains(stamp.epoch, stamp.snapshot, at_least)


def _late(found: Context) -> Context:
    """Without the edit that was demanded nothing is fresh."""
    return replace(found, status="stale") if found else found


def _wishes(found: Context, project_id: str, reference: str = "") -> list[str]:
    """What to ask for: what is missing or stale, unless it was deleted."""
    if found.status == "fresh" or (found.line and not found):
        return []
    return [f"{uuid_of(project_id, 'project')} {reference}".strip()]


_MOST_WISHES: Final = 100
"""Asked for by one overview."""


def _wishes_of(projects: Sequence[str], answers: Sequence[Sequence[Raw]], now: float) -> list[str]:
    """Projects of an overview whose bundle is missing or stale."""
    stamps = [(project, codec.decode_stamp(meta)) for project, (meta, *_) in zip(projects, answers, strict=False)]
    wanted = [p for p, stamp in stamps if stamp is None or (not stamp.gone and stamp.valid_until <= now)]
    return wanted[:_MOST_WISHES]


def _ask_changes(project_id: str, actor: Actor, since: str) -> tuple[str, list[str], str]:
    if not codec.is_version(since):
        raise BadInput(f"{since!r} is no version of a bundle; context.version is one")
    project = uuid_of(project_id, "project")
    return *_ask(keys.project(project), [keys.META], actor), keys.changes(project)


def _changes(answer: Sequence[Raw], listed: Sequence[Raw], project_id: str, actor: Actor, since: str) -> Changes:
    """Fold what was kept since a version; it must lead without a gap to the bundle that stands there."""
    stamp = codec.decode_stamp(answer[0])
    if stamp is None or stamp.gone:
        return Changes(status="missing", since=since)
    _admit(answer[-1], actor, f"project {project_id}")
    steps: list[Difference] = []
    at = since
    for raw in reversed(listed) if since != stamp.version else ():
        news = codec.decode_news(raw)
        if news is None or news.version != (stamp.version if not steps else at):
            break
        steps.append(news.difference)
        at = news.since
        if at == since:
            break
    if at != since or (since != stamp.version and not steps):
        return Changes(status="too old", since=since, version=stamp.version)
    whole = fold(reversed(steps))
    return Changes(
        status="ok",
        since=since,
        version=stamp.version,
        added=whole.added,
        gone=whole.gone,
        changed=whole.changed,
    )


def _ask_focus(project_id: str, entity: str, actor: Actor, budget: int | None) -> list[Question]:
    project, reference = uuid_of(project_id, "project"), reference_of(entity)
    return [
        _ask(keys.project(project), [keys.META], actor),
        (keys.focus(project, reference), [*_text_parts(budget), keys.DATA]),
    ]


def _focus(
    answers: Sequence[Sequence[Raw]], project_id: str, actor: Actor, budget: int | None, now: float
) -> Context:
    """A focus bundle counts as stale as soon as its project has a newer bundle."""
    project = codec.decode_stamp(answers[0][0])
    if project is None or project.gone:
        return _MISSING
    _admit(answers[0][-1], actor, f"project {project_id}")
    found = _with_data(_project(answers[1], project_id, TRUSTED, budget, now), answers[1][-1])
    behind = found.stamp is not None and found.stamp.fence < project.fence
    return replace(found, status="stale") if behind else found


Day = date | str | None


def _ask_brief(user: str, day: Day, budget: int | None) -> Question:
    return keys.brief(uuid_of(user, "user"), _day(day)), [*_text_parts(budget), keys.DATA]


_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _day(day: Day) -> str:
    """An ISO date; empty for the latest. Python's own reading takes much else for one (``20261121.0``)."""
    if day is None:
        return ""
    try:
        return date.fromisoformat(str(day) if _DATE.fullmatch(str(day)) else "").isoformat()
    except ValueError:
        raise BadInput(f"{day!r} is no date; 2026-11-21 is one") from None


_PLACE: Final = re.compile(r"[0-9]{1,19}-[0-9]{1,19}")


def _ask_ready(after: str, most: int) -> tuple[str, int]:
    """A place in the stream of announcements, and how many after it."""
    if not _PLACE.fullmatch(str(after)):
        raise BadInput(f"{after!r} is no place among announcements; 0-0 is before the first")
    if most < 1:
        raise BadInput(f"{most} announcements cannot be asked for; one is the least")
    return after, most


def _brief(answer: Sequence[Raw], budget: int | None, now: float) -> Context:
    return _with_data(_project(answer, "", TRUSTED, budget, now), answer[-1])


def _brief_wishes(found: Context, user: str, day: Day) -> list[str]:
    """A brief that is not there is looked up in the database; one of an earlier day is what it is."""
    return [] if found else [f"{keys.BRIEF} {uuid_of(user, 'user')} {_day(day)}".strip()]


def _ask_overview(project_ids: Sequence[str], actor: str) -> list[Question]:
    """The projects, and whether there may be more of them that nobody knows of yet."""
    filling: Question = (keys.MARKER, [keys.FILLING])
    return [*(_ask(keys.project(i), [keys.META, keys.HEAD], actor) for i in project_ids), filling]


_HEADING_TOKENS: Final = 5
"""Of ``## projects: N`` and its newline without N. Every group of up to three digits is one token."""


def _overview(answers: Sequence[Sequence[Raw]], budget: int, now: float) -> Context:
    """Compose an actor's overview from the counted lines of its projects: exact without a tokenizer."""
    found: list[tuple[codec.Head, Stamp]] = []
    *projects, (filling,) = answers
    lost = sum(meta is None for meta, *_ in projects)
    for meta, raw, role in projects:
        stamp, head = codec.decode_stamp(meta), codec.decode_head(raw)
        if stamp is not None and not stamp.gone and head is not None and role is not None:
            found.append((head, stamp))
    found.sort(key=lambda each: (-each[0].relevance, each[0].header["id"]))
    total = str(len(found))
    heading = Line(0, None, _HEADING_TOKENS + -(-len(total) // 3), f"## projects: {total}\n")
    lines = [Line(n, None, head.tokens, head.line) for n, (head, _) in enumerate(found, 1)]
    fitted = fit([heading, *lines], 1, budget)
    oldest = min((stamp for _, stamp in found), key=lambda stamp: stamp.valid_until, default=None)
    return Context(
        status="missing"
        if oldest is None
        else "stale"
        if lost or filling is not None
        else _status(oldest.valid_until, now),
        text=fitted.text if found else "",
        tokens=fitted.tokens if found else 0,
        line="" if oldest is None else oldest.line(),
        data={"projects": [head.header for head, _ in found], "not_built": lost},
    )


class Reader:
    """Reads published bundles through a redis-py client.

    Every method raises NotAMember when the actor may not read, BadInput for an id that is no UUID or a budget
    below the smallest, and lets the client's own errors pass.

    What is missing or stale is asked for: one more round trip, and one rebuild however many readers ask.
    ``asks=False`` for a client that may only read.
    """

    def __init__(self, client: Any, *, clock: Clock = time.time, asks: bool = True) -> None:
        self._store = Layouts(RedisStore(client))
        self._clock = clock
        self._asks = asks

    @classmethod
    def over(cls, store: Store, *, clock: Clock = time.time, asks: bool = True) -> "Reader":
        """A reader over another implementation of the port, such as ``foreword.memory.MemoryStore``."""
        reader = cls.__new__(cls)
        reader._store, reader._clock, reader._asks = Layouts(store), clock, asks  # noqa: SLF001 - its own class
        return reader

    def project(
        self,
        project_id: str,
        *,
        actor: Actor,
        budget: int | None = None,
        at_least: str | None = None,
        wait: float = 0.0,
    ) -> Context:
        """A project's text: at the budget it was built for, or at another, from 250 up (it has lines for 3000).

        ``at_least``, a token of ``foreword.token``, demands that edit: what comes after at most ``wait`` seconds
        is fresh only if it holds it, else it is the best there is, and ``stale``. ``wait`` alone waits for what
        is missing or stale.
        """
        if budget is not None:
            check_budget(budget)
        answer, late = self._demanded(_ask_project(project_id, actor, budget), project_id, at_least, wait)
        found = _project(answer, project_id, actor, budget, self._clock())
        self._ask_for(_wishes(found, project_id))
        return _late(found) if late else found

    def steady(
        self, project_id: str, *, actor: Actor, previous: Context | None = None, budget: int = DEFAULT_BUDGET
    ) -> Context:
        """A project's text that keeps its beginning, for a chat whose provider caches what prompts begin with: the
        text of ``previous``, what this gave the chat before, and behind it what has changed since. Fresh where
        there is no previous one, or no room left; a fresh one takes 70 % of ``budget``.
        """
        check_budget(budget)
        answer = self._store.read(*_ask_project(project_id, actor, budget))
        found = _steady(answer, project_id, actor, previous, budget, self._clock())
        self._ask_for(_wishes(found, project_id))
        return found

    def bundle(self, project_id: str, *, actor: Actor, at_least: str | None = None, wait: float = 0.0) -> Context:
        """A project's text and its structured bundle: header, snapshot, slices, coverage, recent changes.

        ``at_least`` and ``wait`` as for ``project``.
        """
        key = keys.project(uuid_of(project_id, "project"))
        answer, late = self._demanded(_ask(key, [keys.TEXT, keys.DATA], actor), project_id, at_least, wait)
        found = _with_data(_project(answer, project_id, actor, None, self._clock()), answer[1])
        self._ask_for(_wishes(found, project_id))
        return _late(found) if late else found

    def focus(self, project_id: str, entity: str, *, actor: Actor, budget: int | None = None) -> Context:
        """The focus bundle of an entity, by handle or UUID: it, its relationships, what it is linked to."""
        if budget is not None:
            check_budget(budget)
        answers = self._store.read_many(_ask_focus(project_id, entity, actor, budget))
        found = _focus(answers, project_id, actor, budget, self._clock())
        self._ask_for(_wishes(found, project_id, reference_of(entity)))
        return found

    def overview(self, actor: str, *, budget: int = 1500) -> Context:
        """All projects an actor may read, most relevant first. Two round trips.

        Stale when a project that may be the actor's has no bundle just now (``data["not_built"]`` counts them),
        and as long as a Redis that was emptied is filled again.
        """
        check_budget(budget)
        key = keys.projects_of(uuid_of(actor, "actor"))
        projects = sorted(self._store.set_members(key))
        answers = self._store.read_many(_ask_overview(projects, actor))
        now = self._clock()
        self._ask_for(_wishes_of(projects, answers, now))
        return _overview(answers, budget, now)

    def brief(self, user: str, day: Day = None, *, budget: int | None = None) -> Context:
        """A user's brief of a local date, or the latest: its text, and the structured document in ``data``.

        Whoever calls has made sure that it is this user who asks. Stale once the user's day is over. What is
        missing is fetched from the database for the next reader, if it was ever made.
        """
        if budget is not None:
            check_budget(budget)
        found = _brief(self._store.read(*_ask_brief(user, day, budget)), budget, self._clock())
        self._ask_for(_brief_wishes(found, user, day))
        return found

    def ready(self, after: str = "0-0", *, most: int = 100) -> list[tuple[str, Mapping[str, str]]]:
        """Announcements of briefs that are ready and due, oldest first, each with its place: what to ask ``after``
        next time. For whoever delivers them. Each brief is announced once; ``id`` names it.
        """
        return self._store.told(*_ask_ready(after, most))

    def changes(self, project_id: str, *, since: str, actor: Actor) -> Changes:
        """What a project's bundle says now and did not say in version ``since`` (``Context.version``).

        The last 200 differences are kept, for a day after the last.
        """
        answer, listed = self._store.read_with_list(*_ask_changes(project_id, actor, since))
        return _changes(answer, listed, project_id, actor, since)

    def _demanded(
        self, question: Question, project_id: str, at_least: str | None, wait: float
    ) -> tuple[list[Raw], bool]:
        """The answer as soon as it is what is waited for, and whether a demand is not met when time is up."""
        if at_least is not None:
            parse_token(at_least)
        answer = self._store.read(*question)
        if wait <= 0:
            return answer, at_least is not None and not _holds(answer, at_least, 0.0)
        if not _holds(answer, None, self._clock()):
            self._ask_for([uuid_of(project_id, "project")])
        for pause in _pauses(wait):
            if _holds(answer, at_least, self._clock()):
                break
            time.sleep(pause)
            answer = self._store.read(*question)
        return answer, at_least is not None and not _holds(answer, at_least, 0.0)

    def _ask_for(self, wishes: Sequence[str]) -> None:
        if wishes and self._asks:
            with suppress(Exception):  # what was read is worth more than that it could not be asked for better
                self._store.want(wishes)


class AsyncReader:
    """``Reader`` for redis.asyncio clients: the same names, meanings and errors, awaited."""

    def __init__(self, client: Any, *, clock: Clock = time.time, asks: bool = True) -> None:
        self._store = AsyncLayouts(AsyncRedisReads(client))
        self._clock = clock
        self._asks = asks

    async def project(
        self,
        project_id: str,
        *,
        actor: Actor,
        budget: int | None = None,
        at_least: str | None = None,
        wait: float = 0.0,
    ) -> Context:
        """See ``Reader.project``."""
        if budget is not None:
            check_budget(budget)
        answer, late = await self._demanded(_ask_project(project_id, actor, budget), project_id, at_least, wait)
        found = _project(answer, project_id, actor, budget, self._clock())
        await self._ask_for(_wishes(found, project_id))
        return _late(found) if late else found

    async def steady(
        self, project_id: str, *, actor: Actor, previous: Context | None = None, budget: int = DEFAULT_BUDGET
    ) -> Context:
        """See ``Reader.steady``."""
        check_budget(budget)
        answer = await self._store.read(*_ask_project(project_id, actor, budget))
        found = _steady(answer, project_id, actor, previous, budget, self._clock())
        await self._ask_for(_wishes(found, project_id))
        return found

    async def bundle(
        self, project_id: str, *, actor: Actor, at_least: str | None = None, wait: float = 0.0
    ) -> Context:
        """See ``Reader.bundle``."""
        key = keys.project(uuid_of(project_id, "project"))
        answer, late = await self._demanded(_ask(key, [keys.TEXT, keys.DATA], actor), project_id, at_least, wait)
        found = _with_data(_project(answer, project_id, actor, None, self._clock()), answer[1])
        await self._ask_for(_wishes(found, project_id))
        return _late(found) if late else found

    async def focus(self, project_id: str, entity: str, *, actor: Actor, budget: int | None = None) -> Context:
        """See ``Reader.focus``."""
        if budget is not None:
            check_budget(budget)
        answers = await self._store.read_many(_ask_focus(project_id, entity, actor, budget))
        found = _focus(answers, project_id, actor, budget, self._clock())
        await self._ask_for(_wishes(found, project_id, reference_of(entity)))
        return found

    async def overview(self, actor: str, *, budget: int = 1500) -> Context:
        """See ``Reader.overview``."""
        check_budget(budget)
        key = keys.projects_of(uuid_of(actor, "actor"))
        projects = sorted(await self._store.set_members(key))
        answers = await self._store.read_many(_ask_overview(projects, actor))
        now = self._clock()
        await self._ask_for(_wishes_of(projects, answers, now))
        return _overview(answers, budget, now)

    async def brief(self, user: str, day: Day = None, *, budget: int | None = None) -> Context:
        """See ``Reader.brief``."""
        if budget is not None:
            check_budget(budget)
        found = _brief(await self._store.read(*_ask_brief(user, day, budget)), budget, self._clock())
        await self._ask_for(_brief_wishes(found, user, day))
        return found

    async def ready(self, after: str = "0-0", *, most: int = 100) -> list[tuple[str, Mapping[str, str]]]:
        """See ``Reader.ready``."""
        return await self._store.told(*_ask_ready(after, most))

    async def changes(self, project_id: str, *, since: str, actor: Actor) -> Changes:
        """See ``Reader.changes``."""
        answer, listed = await self._store.read_with_list(*_ask_changes(project_id, actor, since))
        return _changes(answer, listed, project_id, actor, since)

    async def _demanded(
        self, question: Question, project_id: str, at_least: str | None, wait: float
    ) -> tuple[list[Raw], bool]:
        """See ``Reader``."""
        if at_least is not None:
            parse_token(at_least)
        answer = await self._store.read(*question)
        if wait <= 0:
            return answer, at_least is not None and not _holds(answer, at_least, 0.0)
        import asyncio  # whoever awaits has it already; the others do not pay for it

        if not _holds(answer, None, self._clock()):
            await self._ask_for([uuid_of(project_id, "project")])
        for pause in _pauses(wait):
            if _holds(answer, at_least, self._clock()):
                break
            await asyncio.sleep(pause)
            answer = await self._store.read(*question)
        return answer, at_least is not None and not _holds(answer, at_least, 0.0)

    async def _ask_for(self, wishes: Sequence[str]) -> None:
        """See ``Reader``."""
        if wishes and self._asks:
            with suppress(Exception):
                await self._store.want(wishes)

"""What a chat process imports: connection, project, actor in; a context out, in one round trip.

Misses and staleness are values, because they are ordinary. Not being a member is an error, because going on
would be a leak. The two readers share everything but the await. Nothing here is imported but the standard
library; the client is the chat's own.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from foreword import codec, keys
from foreword.errors import NotAMember
from foreword.handles import reference_of, uuid_of
from foreword.lines import Line, check_budget, fit
from foreword.ports import Raw, Store
from foreword.stamp import Stamp, glance
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
        status: ``fresh``; ``stale``, whole and consistent but no longer true of today (see ``stamp``);
            ``missing``, not built yet, deleted, or of a version this reader does not know.
        text: lines for a prompt, at most ``budget`` tokens.
        tokens: the exact count of ``text`` (o200k_base).
        line: the stamp as it was stored; ``stamp`` reads it.
        data: the structured bundle where it was asked for.
    """

    status: Status
    text: str = ""
    tokens: int = 0
    line: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.status != "missing"

    @property
    def stamp(self) -> Stamp | None:
        """Which edits it holds, which build made it, until when its dates are true; None when missing."""
        return Stamp.parse(self.line)


_MISSING: Final = Context("missing")

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
        return _MISSING
    _admit(answer[-1], actor, f"project {project_id}")
    valid_until, tokens = seen
    if budget is not None:
        fitted = codec.decode_lines(answer[1], budget)
        if fitted is None:
            return _MISSING
        text, tokens = fitted.text, fitted.tokens
    return Context(_status(valid_until, now), text, tokens, line)


def _with_data(found: Context, raw: Raw) -> Context:
    data = codec.decode_data(raw)
    return replace(found, data=data) if found and data is not None else _MISSING


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


def _ask_overview(project_ids: Sequence[str], actor: str) -> list[Question]:
    return [_ask(keys.project(i), [keys.META, keys.HEAD], actor) for i in project_ids]


_HEADING_TOKENS: Final = 5
"""Of ``## projects: N`` and its newline without N. Every group of up to three digits is one token."""


def _overview(answers: Sequence[Sequence[Raw]], budget: int, now: float) -> Context:
    """Compose an actor's overview from the counted lines of its projects: exact without a tokenizer."""
    found: list[tuple[codec.Head, Stamp]] = []
    lost = sum(meta is None for meta, *_ in answers)
    for meta, raw, role in answers:
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
        status="missing" if oldest is None else "stale" if lost else _status(oldest.valid_until, now),
        text=fitted.text if found else "",
        tokens=fitted.tokens if found else 0,
        line="" if oldest is None else oldest.line(),
        data={"projects": [head.header for head, _ in found], "not_built": lost},
    )


class Reader:
    """Reads published bundles through a redis-py client.

    Every method raises NotAMember when the actor may not read, BadInput for an id that is no UUID or a budget
    below the smallest, and lets the client's own errors pass.
    """

    def __init__(self, client: Any, *, clock: Clock = time.time) -> None:
        self._store: Store = RedisStore(client)
        self._clock = clock

    @classmethod
    def over(cls, store: Store, *, clock: Clock = time.time) -> "Reader":
        """A reader over another implementation of the port, such as ``foreword.memory.MemoryStore``."""
        reader = cls.__new__(cls)
        reader._store, reader._clock = store, clock  # noqa: SLF001 - its own class
        return reader

    def project(self, project_id: str, *, actor: Actor, budget: int | None = None) -> Context:
        """A project's text: at the budget it was built for, or at another, from 250 up (it has lines for 3000)."""
        if budget is not None:
            check_budget(budget)
        answer = self._store.read(*_ask_project(project_id, actor, budget))
        return _project(answer, project_id, actor, budget, self._clock())

    def bundle(self, project_id: str, *, actor: Actor) -> Context:
        """A project's text and its structured bundle: header, snapshot, slices, coverage, recent changes."""
        key = keys.project(uuid_of(project_id, "project"))
        answer = self._store.read(*_ask(key, [keys.TEXT, keys.DATA], actor))
        return _with_data(_project(answer, project_id, actor, None, self._clock()), answer[1])

    def focus(self, project_id: str, entity: str, *, actor: Actor, budget: int | None = None) -> Context:
        """The focus bundle of an entity, by handle or UUID: it, its relationships, what it is linked to."""
        if budget is not None:
            check_budget(budget)
        answers = self._store.read_many(_ask_focus(project_id, entity, actor, budget))
        return _focus(answers, project_id, actor, budget, self._clock())

    def overview(self, actor: str, *, budget: int = 1500) -> Context:
        """All projects an actor may read, most relevant first. Two round trips.

        Stale when a project that may be the actor's has no bundle just now; ``data["not_built"]`` counts them.
        """
        check_budget(budget)
        key = keys.projects_of(uuid_of(actor, "actor"))
        wanted = _ask_overview(sorted(self._store.set_members(key)), actor)
        answers = self._store.read_many(wanted) if wanted else []
        return _overview(answers, budget, self._clock())


class AsyncReader:
    """``Reader`` for redis.asyncio clients: the same names, meanings and errors, awaited."""

    def __init__(self, client: Any, *, clock: Clock = time.time) -> None:
        self._store = AsyncRedisReads(client)
        self._clock = clock

    async def project(self, project_id: str, *, actor: Actor, budget: int | None = None) -> Context:
        """See ``Reader.project``."""
        if budget is not None:
            check_budget(budget)
        answer = await self._store.read(*_ask_project(project_id, actor, budget))
        return _project(answer, project_id, actor, budget, self._clock())

    async def bundle(self, project_id: str, *, actor: Actor) -> Context:
        """See ``Reader.bundle``."""
        key = keys.project(uuid_of(project_id, "project"))
        answer = await self._store.read(*_ask(key, [keys.TEXT, keys.DATA], actor))
        return _with_data(_project(answer, project_id, actor, None, self._clock()), answer[1])

    async def focus(self, project_id: str, entity: str, *, actor: Actor, budget: int | None = None) -> Context:
        """See ``Reader.focus``."""
        if budget is not None:
            check_budget(budget)
        answers = await self._store.read_many(_ask_focus(project_id, entity, actor, budget))
        return _focus(answers, project_id, actor, budget, self._clock())

    async def overview(self, actor: str, *, budget: int = 1500) -> Context:
        """See ``Reader.overview``."""
        check_budget(budget)
        key = keys.projects_of(uuid_of(actor, "actor"))
        wanted = _ask_overview(sorted(await self._store.set_members(key)), actor)
        answers = await self._store.read_many(wanted) if wanted else []
        return _overview(answers, budget, self._clock())

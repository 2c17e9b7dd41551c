"""A model behind an OpenAI-compatible endpoint (OpenRouter, vLLM, Ollama, Azure's /openai/v1), asked or not: every
way in which it can fail is one error with a short reason, within one deadline.

The client library is an extra and loaded at the first question. It is used for the protocol alone: its retries,
time-outs, redirects, telemetry headers and the variables that it reads from the environment are switched off,
because a deadline that holds while bytes trickle, a record of every call and a bound on memory are ours to keep.
No exception of its own leaves this module, since what a server says may quote the key.
"""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pydantic import SecretStr

from foreword.errors import BadSettings
from loaders.shelf import ModelCall
from prompts.words import Ask, Message, ModelUnavailable
from worker.breaker import Breaker
from worker.settings import Settings

if TYPE_CHECKING:
    import httpx2
    import openai

LONGEST_ANSWER = 4_000
"""Characters after which an answer is cut off: several times what is ever asked for."""

LARGEST_BODY = 4 * 2**20
"""Bytes of an answer that are read. Thinking models stream a thousand times what they say in the end."""

MOST_TOKENS, MOST_THINKING = 400, 4_000
"""Tokens that an answer may cost; where a server counts a model's thinking as well, thinking included."""

MOST_TRIES = 4
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 8.0

OK, CUT, LATE, BUSY, FAILING, UNREACHABLE, DROPPED, GARBLED, REFUSED, DENIED = (
    *("ok", "cut", "late", "busy", "failing", "unreachable", "dropped", "garbled", "refused", "denied"),
)
OUTCOMES = {
    OK: "a whole answer",
    CUT: "an answer that was cut off for its length",
    LATE: "no whole answer by the deadline",
    BUSY: "the endpoint is rate limited",
    FAILING: "the endpoint failed",
    UNREACHABLE: "the endpoint cannot be reached",
    DROPPED: "the endpoint broke off its answer",
    GARBLED: "the endpoint's answer cannot be read",
    REFUSED: "the endpoint refuses this request",
    DENIED: "the endpoint refuses every request: FOREWORD_MODEL_URL, _KEY or _NAME is wrong",
}
"""What became of a call, as it is recorded, and how it reads."""

_AGAIN = frozenset({BUSY, FAILING, UNREACHABLE, DROPPED})
_DENIALS = frozenset({401, 403, 404, 405}) | frozenset(range(300, 400))  # a redirect is not followed
_PASSING = frozenset({408, 409, 425})


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's text and what it cost. Tokens are None where the server does not count them."""

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None
    milliseconds: int


@dataclass(slots=True)
class _Heard:
    """What has come of an answer so far: it is looked at also when the deadline ends it."""

    text: str = ""
    finished: bool = False
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    status: int = 0
    pause: float = 0.0
    complaint: str = ""

    def add(self, piece: Any) -> None:
        """A chunk of a stream, or a whole answer: read as far as it has the shape of one."""
        choice = next(iter(_list(_get(piece, "choices"))), None)
        said = _get(_get(choice, "delta") or _get(choice, "message"), "content")
        self.text += said if isinstance(said, str) else ""
        self.finished = self.finished or bool(_get(choice, "finish_reason"))
        usage = _get(piece, "usage")
        if usage is not None:
            self.prompt_tokens = _tokens(_get(usage, "prompt_tokens"))
            self.completion_tokens = _tokens(_get(usage, "completion_tokens"))

    @property
    def counted(self) -> bool:
        """Whether nothing more is to come."""
        return self.finished and self.completion_tokens is not None


@dataclass(slots=True)
class Model:
    """One model of one endpoint, for one process and thread: it keeps an event loop, connections and a breaker.

    Make it after forking, close it (or use it in ``with``) at the end.
    """

    url: str
    name: str
    key: SecretStr | None = None
    seconds: float = 20.0
    price_in: Decimal | None = None
    price_out: Decimal | None = None
    breaker: Breaker = field(default_factory=Breaker)
    _wants: dict[str, Any] = field(
        default_factory=lambda: {"max_tokens": MOST_TOKENS, "stream_options": {"include_usage": True}}, repr=False
    )
    _runner: "asyncio.Runner | None" = field(default=None, repr=False)
    _client: "openai.AsyncOpenAI | None" = field(default=None, repr=False)

    def asker(
        self, prompt: str, record: Callable[[ModelCall], None], *, deadline: Callable[[], float] | None = None
    ) -> Ask:
        """``ask`` as ``prompts.words.write`` wants it; ``deadline`` is asked for before each question."""
        return lambda messages: (
            self.ask(messages, prompt=prompt, record=record, deadline=deadline and deadline()).text
        )

    def ask(
        self,
        messages: Sequence[Message],
        *,
        prompt: str,
        record: Callable[[ModelCall], None],
        deadline: float | None = None,
    ) -> Reply:
        """The model's answer to ``messages``, cut off after LONGEST_ANSWER characters.

        ``deadline`` is in seconds from now, retries and pauses included; the settings' is never exceeded.
        ``record`` is given every call as soon as it has ended, one of OUTCOMES in it; what it raises passes on.

        Raises:
            ModelUnavailable: no answer, or none by the deadline, or too many failed lately to try.
        """
        left = self.breaker.left()
        if left:
            raise ModelUnavailable(f"left alone for {left:.0f} s: it failed {self.breaker.most} times in a row")
        until = time.monotonic() + min(self.seconds if deadline is None else deadline, self.seconds)
        outcome, reply = self._tried(messages, prompt, record, until)
        if outcome != REFUSED:  # the endpoint works: another request may be to its taste
            self.breaker.note(answered=reply is not None)
        if reply is None:
            raise ModelUnavailable(OUTCOMES[outcome])
        return reply

    def _tried(
        self, messages: Sequence[Message], prompt: str, record: Callable[[ModelCall], None], until: float
    ) -> tuple[str, Reply | None]:
        outcome = LATE
        for attempt in range(MOST_TRIES):
            begun = time.monotonic()
            if begun >= until:
                break
            heard, outcome = self._run(self._once(messages, until - begun))
            milliseconds = round(1000 * (time.monotonic() - begun))
            counted = heard.prompt_tokens, heard.completion_tokens
            record(
                ModelCall(
                    prompt=prompt,
                    model=self.name,
                    prompt_tokens=heard.prompt_tokens,
                    completion_tokens=heard.completion_tokens,
                    cost=self._cost(*counted),
                    milliseconds=milliseconds,
                    outcome=outcome,
                    ended=time.time(),
                )
            )
            if outcome in {OK, CUT}:
                return outcome, Reply(heard.text[:LONGEST_ANSWER], *counted, milliseconds)
            if outcome == REFUSED and self._yielded(heard):
                continue
            # Half of the pause is chance, so that processes that failed together do not return together.
            pause = min(_FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311
            pause = max(pause, heard.pause)
            if outcome not in _AGAIN or attempt + 1 == MOST_TRIES or time.monotonic() + pause >= until:
                break
            time.sleep(pause)
        return outcome, None

    def _yielded(self, heard: _Heard) -> bool:
        """Whether the server complains of a parameter that can be done without; it is not sent again."""
        if "max_completion_tokens" in heard.complaint and self._wants.pop("max_tokens", None):
            self._wants["max_completion_tokens"] = MOST_THINKING
            return True
        return "stream_options" in heard.complaint and bool(self._wants.pop("stream_options", None))

    def _cost(self, prompt_tokens: int | None, completion_tokens: int | None) -> Decimal | None:
        if prompt_tokens is None or completion_tokens is None or self.price_in is None or self.price_out is None:
            return None
        return (prompt_tokens * self.price_in + completion_tokens * self.price_out) / 1_000_000

    # ---- one request

    async def _once(self, messages: Sequence[Message], seconds: float) -> tuple[_Heard, str]:
        import httpx2
        import openai

        heard = _Heard()
        outcome = ""
        try:
            async with asyncio.timeout(seconds):
                await self._listen(messages, heard)
        except TimeoutError:
            outcome = LATE
        except openai.APIStatusError as error:
            outcome = _of_status(error, heard)
        except openai.APIConnectionError:
            outcome = DROPPED if heard.status else UNREACHABLE
        except (openai.APIError, httpx2.HTTPError, httpx2.StreamError):
            outcome = DROPPED  # an error in the middle of a stream
        except (ValueError, RecursionError):  # no JSON, no UTF-8
            outcome = GARBLED
        await asyncio.sleep(0)  # generators that were left half-way are closed by the loop
        if len(heard.text) > LONGEST_ANSWER:
            return heard, CUT
        # A whole answer stays one when the server is slow to hang up.
        return heard, OK if heard.finished and outcome in {"", LATE, DROPPED} else outcome or DROPPED

    async def _listen(self, messages: Sequence[Message], heard: _Heard) -> None:
        stream: Any = await self._connected().chat.completions.create(
            model=self.name,
            messages=list(messages),  # type: ignore[arg-type]  # dicts are what they are
            stream=True,
            **self._wants,
        )
        heard.status = stream.response.status_code
        try:
            if "event-stream" not in stream.response.headers.get("content-type", ""):
                body = json.loads(await stream.response.aread())  # a server that does not stream
                if not _list(_get(body, "choices")):
                    raise ValueError("no answer of a chat")
                heard.add(body)
                heard.finished = True
                return
            async for chunk in stream:
                heard.add(chunk)
                if heard.counted or len(heard.text) > LONGEST_ANSWER:
                    return
        finally:
            await stream.close()

    def _connected(self) -> "openai.AsyncOpenAI":
        if self._client is None:
            import httpx2
            import openai

            async def ours_alone(request: "httpx2.Request") -> None:
                for name in set(request.headers) - _HEADERS:
                    del request.headers[name]
                request.headers.update({"accept-encoding": "identity", "user-agent": "foreword"})
                if self.key is not None:
                    request.headers["authorization"] = f"Bearer {self.key.get_secret_value()}"

            http = httpx2.AsyncClient(
                timeout=None,  # one deadline holds over all of it
                follow_redirects=False,
                event_hooks={"request": [ours_alone], "response": [_bounded]},
            )
            self._client = openai.AsyncOpenAI(
                api_key="unused", base_url=self.url, max_retries=0, timeout=None, http_client=http
            )
        return self._client

    # ---- the loop

    def _run(self, work: Any) -> tuple[_Heard, str]:
        """``work`` in the loop of this model. What breaks in from outside (a task's time limit) ends the loop:
        half a request must not wake up in the next question.
        """
        if self._runner is None:
            self._runner = asyncio.Runner()
        try:
            done: tuple[_Heard, str] = self._runner.run(work)
        except BaseException:
            self.close()
            raise
        return done

    def close(self) -> None:
        """Close connections and the loop. Asking again opens new ones."""
        runner, client, self._runner, self._client = self._runner, self._client, None, None
        if runner is not None:
            with runner:
                if client is not None:
                    runner.run(client.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def model_of(settings: Settings) -> Model | None:
    """The model of the settings, or None where none is configured. Nothing is asked yet.

    Raises:
        BadSettings: it lacks a name, or the package that speaks to it.
    """
    if settings.model_url is None:
        return None
    if settings.model_name is None:
        raise BadSettings("FOREWORD_MODEL_URL is set, but not which model to ask: set FOREWORD_MODEL_NAME")
    if find_spec("openai") is None:
        raise BadSettings(
            "FOREWORD_MODEL_URL is set, but the package openai is not installed: install the dependency group"
            ' "model" of pyproject.toml (uv pip install --group model), or unset it; briefs are complete without'
        )
    return Model(
        url=settings.model_url,
        name=settings.model_name,
        key=settings.model_key,
        seconds=settings.model_seconds,
        price_in=settings.model_price_in,
        price_out=settings.model_price_out,
    )


_HEADERS = frozenset({"host", "accept", "accept-encoding", "connection", "content-length", "content-type"})
"""What is kept of what the library sends: it adds the platform, versions and what OPENAI_* variables say."""


async def _bounded(response: "httpx2.Response") -> None:
    """Have ``response`` read as it is sent, and only its first LARGEST_BODY bytes."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, whole: httpx2.AsyncByteStream) -> None:
            self._whole = whole

        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = LARGEST_BODY
            async for piece in self._whole:
                yield piece[:left]
                left -= len(piece)
                if left <= 0:
                    return

        async def aclose(self) -> None:
            await self._whole.aclose()

    # A megabyte can be a gigabyte compressed, and nobody was asked to compress.
    response.headers.pop("content-encoding", None)
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = Bounded(response.stream)


def _of_status(error: "openai.APIStatusError", heard: _Heard) -> str:
    heard.status = error.status_code
    heard.complaint = f"{error.message} {error.body}".lower()[:2_000]
    heard.pause = retry_after(error.response.headers, datetime.now(UTC))
    if heard.status == 429:
        return BUSY
    if heard.status in _PASSING or heard.status >= 500:
        return FAILING
    return DENIED if heard.status in _DENIALS else REFUSED


def retry_after(headers: Mapping[str, str], now: datetime) -> float:
    """Seconds to wait as the server has it, in seconds or as a date (RFC 9110, 10.2.3); 0 where it says none."""
    said = headers.get("retry-after", "")
    try:
        seconds = float(said)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(said) - now).total_seconds()
        except (ValueError, TypeError):
            return 0.0
    return max(seconds, 0.0) if seconds < float("inf") else 0.0


def _get(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _list(thing: Any) -> list[Any]:
    return thing if isinstance(thing, list) else []


def _tokens(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**31 else None

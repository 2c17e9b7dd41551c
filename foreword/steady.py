"""A text that keeps its beginning: what a chat was given before, and behind it what has changed since.

A provider's prompt cache keeps what two prompts begin with alike. A bundle's text puts what rarely changes
first, but an edit may touch its first line. Who reads one project again and again may rather keep the text
that it has: lines of entities that changed are appended, and a later line replaces an earlier one of the same
handle; the counts that differ stand at the end. When the budget is full, the text is fresh again. Exact
without a tokenizer, because lines are counted when they are built.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from foreword.lines import SMALLEST_BUDGET, Line

_SINCE = Line(0, None, 12, "## since then: a later line replaces an earlier one\n")
_GONE, _GONE_TOKENS = "no longer listed here:", 6

SHARE = 0.7
"""Of the budget for the text that is to be continued; the rest is for what follows."""


class Steady(NamedTuple):
    """A text that is continued: how it begins, the lines appended since, the counts that differ by now.

    ``of`` is the project's id. ``tokens`` is the count of the whole, or a little more where it names entities
    that are gone. ``known`` is the last line of everything that the bundle had one of, printed or not: what is
    compared with.
    """

    of: str
    base: str
    tokens_of_base: int
    appended: str = ""
    tokens_of_appended: int = 0
    closing: str = ""
    tokens: int = 0
    known: Mapping[str, str] = MappingProxyType({})

    @property
    def text(self) -> str:
        """The whole text."""
        return self.base + self.appended + self.closing


def begun(of: str, fresh: Sequence[Line], every: Sequence[Line]) -> Steady:
    """A steady text that begins with the lines that a bundle prints at ``base_budget``. ``every``: see
    ``continued``.
    """
    tokens = sum(line.tokens for line in fresh)
    known = {name: line.text.rstrip("\n") for name, line in _now(fresh, every).items()}
    return Steady(of, "".join(line.text for line in fresh), tokens, tokens=tokens, known=known)


def _now(fresh: Sequence[Line], every: Sequence[Line]) -> dict[str, Line]:
    return {_subject(line.text): line for line in (*every, *fresh) if not _heading(line.text)}


def base_budget(budget: int) -> int:
    """The budget of the text that a steady one begins with."""
    return max(round(budget * SHARE), SMALLEST_BUDGET)


def continued(previous: Steady, fresh: Sequence[Line], every: Sequence[Line], budget: int) -> Steady | None:
    """``previous`` with what has changed since, in ``budget`` tokens; None where that is too much, and a fresh
    text is
    to be begun. ``fresh`` holds the lines that the bundle prints now at ``base_budget``, ``every`` those at
    its largest.
    """
    based = _latest(previous.base.splitlines())
    told = based | _latest(previous.appended.splitlines())
    now = _now(fresh, every)
    news = [line for line in now.values() if _is_news(line.text.rstrip("\n"), previous.known)]
    closing = [
        line
        for name, line in _now(fresh, ()).items()
        if not _is_handle(name) and name in based and not _same(based[name], line.text.rstrip("\n"))
    ]
    gone = [name for name, line in told.items() if _is_handle(name) and line and name not in now]
    appended, tokens = previous.appended, previous.tokens_of_appended
    if not appended and (news or gone or closing):
        appended, tokens = _SINCE.text, _SINCE.tokens
    if gone:
        appended += f"{_GONE} {' '.join(gone)}\n"
        tokens += _GONE_TOKENS + sum(map(_most_tokens, gone))
    appended += "".join(line.text for line in news)
    tokens += sum(line.tokens for line in news)
    total = previous.tokens_of_base + tokens + sum(line.tokens for line in closing)
    if total > budget:
        return None
    written = "".join(line.text for line in closing)
    known = {**previous.known, **{name: line.text.rstrip("\n") for name, line in now.items()}}
    return Steady(previous.of, previous.base, previous.tokens_of_base, appended, tokens, written, total, known)


def _is_news(line: str, known: Mapping[str, str]) -> bool:
    """Whether a line of an entity says something else than was told of it; of one that was not mentioned,
    whether it
    has just changed. That others come and go by what they are worth is no news.
    """
    name = _subject(line)
    if not _is_handle(name):
        return False
    if name in known:
        return not _same(known[name], line)
    return " changed" in line.rpartition('"')[2]


def _same(one: str, other: str) -> bool:
    """Whether two lines of one thing agree: one may say more than the other, between what both say."""
    between = ", " if _SAYS_NUMBER.match(one) else " "
    shorter, longer = sorted((one.split(between), other.split(between)), key=len)
    rest = iter(longer)
    return all(said in rest for said in shorter)


_SAYS_NUMBER = re.compile(r"[a-z]+: [0-9]")
"""A line of counts: label and number belong together."""


def _latest(lines: Iterable[str]) -> dict[str, str]:
    """What a text says last of each subject; nothing of those that it says are no longer listed."""
    latest: dict[str, str] = {}
    for line in lines:
        if line.startswith(_GONE):
            latest.update(dict.fromkeys(line.removeprefix(_GONE).split(), ""))
        elif not _heading(line):
            latest[_subject(line)] = line
    return latest


def _heading(line: str) -> bool:
    return line.startswith("## ")


def _subject(line: str) -> str:
    """What a line is about: a handle, or the word of ours that it begins with."""
    return line.split(" ", 1)[0].rstrip("\n")


def _is_handle(name: str) -> bool:
    return name[:1].isupper() and name[-1:].isdigit()


def _most_tokens(name: str) -> int:
    """No token is shorter than a byte, and digits go three to one."""
    letters = name.rstrip("0123456789")
    return 1 + len(letters) + -(-(len(name) - len(letters)) // 3)

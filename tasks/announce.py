"""Tell that briefs are ready and due: once on each channel, and as often as it takes.

What is told is an event; its id names the brief, so that whoever hears it twice can tell.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from foreword import codec, keys
from foreword.errors import Unavailable
from foreword.stamp import Stamp
from loaders import announcements, shelf
from loaders.announcements import STREAM, Announcement
from loaders.shelf import StoredBrief
from prompts.brief_html import html
from prompts.brief_markdown import markdown
from tasks.brief import copy_brief
from tasks.tools import Refused, Tools

log = logging.getLogger("foreword.announce")

AT_ONCE = 50

TOLD_SECONDS = 7 * 86_400
"""For which the stream remembers what was told; nothing is told again after so long."""


def announce(tools: Tools, most: int = AT_ONCE, channels: Sequence[str] = announcements.CHANNELS) -> int:
    """Tell what is due on ``channels``; how many were. What cannot be told now is told later.

    Raises:
        Unavailable: PostgreSQL does not answer.
    """
    due = announcements.due(tools.connection, most, channels)
    stream = [each for each in due if each.channel == STREAM]
    _announce(stream, _copied(stream, tools), tools)
    for each in due:
        if each.channel != STREAM:  # a receiver may take its time: each is on record before the next
            _announce([each], [False], tools)
    return len(due)


def _announce(due: Sequence[Announcement], copied: Sequence[bool], tools: Tools) -> None:
    """Who dies before they are on record leaves them to be told again, which the stream knows by its marks, and a
    receiver by their ids.
    """
    told = []
    for each, is_copied in zip(due, copied, strict=True):
        try:
            _tell(each, tools, copied=is_copied)
        except Unavailable:
            if tools.connection.closed:
                raise
            announcements.put_off(tools.connection, each)
        except Exception as error:
            if tools.connection.closed:
                raise
            if not isinstance(error, Refused):  # whatever is wrong with one, the others are told
                log.exception(
                    "not_announced user=%s date=%s channel=%s", each.user_id, each.local_date, each.channel
                )
            announcements.not_sent(tools.connection, each, str(error) or type(error).__name__)
        else:
            told.append(each)
    if told:
        announcements.sent(tools.connection, *told)


def _copied(due: Sequence[Announcement], tools: Tools) -> list[bool]:
    """Of each whether Redis has it already, also as the latest."""
    where = [
        key
        for each in due
        for key in (keys.brief(each.user_id, each.local_date.isoformat()), keys.brief(each.user_id))
    ]
    try:
        found = [
            codec.decode_stamp(raw) for (raw,) in tools.store.read_many([(key, [keys.META]) for key in where])
        ]
    except Unavailable:  # whoever tells finds out
        return [False] * len(due)
    stamps = [Stamp.parse(each.stamp or "") for each in due]
    return [
        stamp is not None and dated == latest == stamp
        for stamp, dated, latest in zip(stamps, found[::2], found[1::2], strict=True)
    ]


def _tell(each: Announcement, tools: Tools, *, copied: bool) -> None:
    event = _event(each)
    if each.channel == STREAM:
        if not copied:
            copy_brief(_stored(each, tools), tools)  # who hears of it finds it
        tools.store.tell(event["id"], {name: str(value) for name, value in event.items()}, TOLD_SECONDS)
    elif tools.webhook is None:
        raise Refused("no webhook is configured any more")
    else:
        document = _stored(each, tools).document or {}
        content = {"summary": document["summary"]["text"]}
        content |= {"markdown": markdown(document), "html": html(document)}
        tools.webhook(event["id"], {**event, **content})


def _stored(each: Announcement, tools: Tools) -> StoredBrief:
    found = shelf.stored(tools.connection, each.user_id, each.local_date)
    if found is None or found.document is None:
        raise Refused("there is no such brief any more")
    return found


def _event(each: Announcement) -> Mapping[str, Any]:
    return {
        "id": f"{each.user_id}:{each.local_date}",
        "user": each.user_id,
        "date": each.local_date.isoformat(),
        "zone": each.zone,
        "kind": each.kind,
        "revision": each.revision,
        "due": each.due_at.isoformat() if each.due_at else "",
        "channels": " ".join(each.wanted),
    }

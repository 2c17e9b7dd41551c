"""Tell that briefs are ready and due: once on each channel, and as often as it takes.

What is told is an event; its id names the brief, so that whoever hears it twice can tell.
"""

from collections.abc import Mapping
from typing import Any

from foreword.errors import Unavailable
from loaders import announcements, shelf, subscriptions
from loaders.announcements import Announcement
from loaders.shelf import StoredBrief
from prompts.brief_html import html
from prompts.brief_markdown import markdown
from tasks.brief import copy_brief
from tasks.tools import Refused, Tools

AT_ONCE = 50

TOLD_SECONDS = 7 * 86_400
"""For which the stream remembers what was told; nothing is told again after so long."""


def announce(tools: Tools, most: int = AT_ONCE) -> int:
    """Tell what is due; how many were. What cannot be told now is told later.

    Raises:
        Unavailable: PostgreSQL does not answer.
    """
    due = announcements.due(tools.connection, most)
    for each in due:
        _announce(each, tools)
    return len(due)


def _announce(each: Announcement, tools: Tools) -> None:
    try:
        _tell(each, tools)
    except Unavailable:
        if tools.connection.closed:
            raise
        announcements.put_off(tools.connection, each)
    except Refused as refused:
        announcements.not_sent(tools.connection, each, str(refused))
    else:
        announcements.sent(tools.connection, each)


def _tell(each: Announcement, tools: Tools) -> None:
    found = shelf.stored(tools.connection, each.user_id, each.local_date)
    if found is None or found.document is None:
        raise Refused("there is no such brief any more")
    event = _event(found, tools)
    if each.channel == "stream":
        copy_brief(found, tools)  # who hears of it finds it
        tools.store.tell(event["id"], {name: str(value) for name, value in event.items()}, TOLD_SECONDS)
    elif tools.webhook is None:
        raise Refused("no webhook is configured any more")
    else:
        content = {"summary": found.document["summary"]["text"]}
        content |= {"markdown": markdown(found.document), "html": html(found.document)}
        tools.webhook(event["id"], {**event, **content})


def _event(found: StoredBrief, tools: Tools) -> Mapping[str, Any]:
    subscription = subscriptions.find(tools.connection, found.user_id)
    return {
        "id": f"{found.user_id}:{found.local_date}",
        "user": found.user_id,
        "date": found.local_date.isoformat(),
        "zone": found.zone,
        "kind": found.kind,
        "revision": found.revision,
        "due": found.due_at.isoformat() if found.due_at else "",
        "channels": " ".join(subscription.channels) if subscription is not None else "",
    }

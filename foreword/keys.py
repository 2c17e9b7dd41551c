"""Names of what is published in Redis. Every key begins ``fw:``, holds the schema version, and has the id of
its project (or actor) in a hash tag, so that all of one project shares a cluster slot.

Ids are canonical UUIDs and handles by the time they get here (``foreword.handles``), so no id can reach into
another's keys.
"""

from foreword.stamp import SCHEMA

TEXT, META, LINES, DATA, HEAD, FENCE = "text", "meta", "lines", "data", "head", "fence"
"""Fields of a bundle's hash. The text has a field of its own: reading it costs what a GET costs."""

MARKER = f"fw:{SCHEMA}:marker"
"""A hash of one field that never expires. When it is gone, or another, Redis is not the one that was published
to."""

VALUE, FILLING = "value", "filling"
"""Fields of the marker: what it is; and that not everything is here yet that a former Redis held."""

WANTED = f"fw:{SCHEMA}:wanted"
"""The set of what readers missed: project ids, ``id reference`` of focus bundles, and ``brief user date``."""

BRIEF = "brief"
"""How what is wanted begins where it is a brief."""

READY = f"fw:{SCHEMA}:{{ready}}:briefs"
"""The stream of briefs that are ready and due: an event each."""


def told(event: str) -> str:
    """Set with the event of that name, so that it is in the stream once."""
    return f"fw:{SCHEMA}:{{ready}}:told:{event}"


def previous(key: str) -> str:
    """The key of the same thing in the layout before this one."""
    return f"{_BEFORE}{key.removeprefix(_NOW)}"


_NOW, _BEFORE = f"fw:{SCHEMA}:", f"fw:{SCHEMA - 1}:"


def project(project_id: str) -> str:
    """The hash of a project's bundle."""
    return f"fw:{SCHEMA}:{{{project_id}}}:project"


def changes(project_id: str) -> str:
    """The list of differences between successive bundles of a project, oldest first."""
    return f"fw:{SCHEMA}:{{{project_id}}}:changes"


def focus(project_id: str, reference: str) -> str:
    """The hash of a focus bundle, by the entity's UUID or its handle: it is published under both."""
    return f"fw:{SCHEMA}:{{{project_id}}}:focus:{reference}"


def brief(user_id: str, day: str = "") -> str:
    """The hash of a user's brief of a local date (``YYYY-MM-DD``); without one, of the latest."""
    return f"fw:{SCHEMA}:{{{user_id}}}:brief:{day or 'latest'}"


def projects_of(actor_id: str) -> str:
    """The set of projects that may be an actor's. A hint: membership is decided by the project's own hash."""
    return f"fw:{SCHEMA}:{{{actor_id}}}:projects"


def member(actor_id: str) -> str:
    """The field of a project's hash that makes an actor a member; its value is the role."""
    return f"m:{actor_id}"

"""Foreword prepares what a chat agent must know before the first message.

A chat process needs this much::

    reader = foreword.Reader(redis_client)
    context = reader.project(project_id, actor=actor_id)
    if context:
        prompt = context.text        # exactly context.tokens tokens

Everything else in this package is for whoever builds bundles. It opens no connection and imports the standard
library only; tiktoken is loaded when something is counted.
"""

from foreword.answers import Answered, answered
from foreword.errors import (
    BadBudget,
    BadInput,
    BuildError,
    ForewordError,
    NotAMember,
    UnknownEntity,
    UnknownProject,
)
from foreword.freshness import token, token_async
from foreword.reader import TRUSTED, AsyncReader, Changes, Context, Reader
from foreword.stamp import Stamp

__version__ = "0.1.0"

__all__ = [
    "TRUSTED",
    "Answered",
    "AsyncReader",
    "BadBudget",
    "BadInput",
    "BuildError",
    "Changes",
    "Context",
    "ForewordError",
    "NotAMember",
    "Reader",
    "Stamp",
    "UnknownEntity",
    "UnknownProject",
    "answered",
    "token",
    "token_async",
]

"""Exact token counts. The only module that loads tiktoken, and only when something is counted.

The rank table ships with the package, so counting needs no network and no cache directory. The additive
rule that budgets rest on: under the line grammar of ``foreword.lines`` the count of a text is the sum of
the counts of its lines, because no encoding splits or joins across ``\\n`` followed by a character that is
neither white space nor ``/``.
"""

import base64
import gzip
import hashlib
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from foreword.errors import ForewordError

if TYPE_CHECKING:
    import tiktoken

ENCODING = "o200k_base"
_TABLE_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"

# The pre-tokenizer of o200k_base as tiktoken publishes it (tiktoken_ext/openai_public.py); a test compares
# our encoding with tiktoken's own.
_PATTERN = "|".join(  # noqa: FLY002 - one alternative a line
    (
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""\p{N}{1,3}""",
        r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""",
        r"""\s*[\r\n]+""",
        r"""\s+(?!\S)""",
        r"""\s+""",
    )
)

Counter = Callable[[str], int]


@cache
def encoding() -> "tiktoken.Encoding":
    """The o200k_base encoding. Costs about 0.4 s and 86 MB once: call it before forking."""
    import tiktoken

    packed = files("foreword").joinpath("data", f"{ENCODING}.tiktoken.gz").read_bytes()
    table = gzip.decompress(packed)
    if hashlib.sha256(table).hexdigest() != _TABLE_SHA256:
        raise ForewordError(f"the rank table {ENCODING} is damaged; reinstall foreword")
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, table.splitlines())}
    return tiktoken.Encoding(
        name=ENCODING,
        pat_str=_PATTERN,
        mergeable_ranks=ranks,
        special_tokens={"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    )


@lru_cache(maxsize=65_536)
def count(text: str) -> int:
    """The number of tokens of ``text``. Special-token look-alikes count as the plain text they are.

    Remembered, because a rebuild after an edit counts the same lines but for a few: about 15 MB when full.
    """
    return len(encoding().encode_ordinary(text))

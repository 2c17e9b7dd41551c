"""Other people's text, made safe for one line: cut, cleaned, quoted. Nothing here knows kinds or budgets.

Three promises hold whatever the text is: it cannot end its line, it cannot leave its quotation marks, and
cutting never splits what a reader sees as one character (Unicode TR 29 grapheme clusters).
"""

import re
import unicodedata
from functools import lru_cache

ELLIPSIS = "…"

_JOINERS = frozenset("\u200c\u200d")
# Format characters are dropped (direction overrides and tag characters can hide or forge text), except the
# two joiners that Persian, Indic scripts and emoji families are written with.
_DROPPED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_EXTENDING = frozenset({"Mn", "Me", "Mc"})
# Characters that this Python does not know yet may be marks to whoever reads the text.
_JOINING = _EXTENDING | {"Cf", "Cn"}


def clean(text: str) -> str:
    """Fold ``text`` to one line: NFC, single spaces, no control or format characters.

    The result holds no line break, no leading or trailing white space and no double white space.
    """
    # Printable text holds no control, format or separator character but the plain space.
    if text.isprintable() and (text.isascii() or unicodedata.is_normalized("NFC", text)):
        return " ".join(text.split()) if "  " in text or text[:1] == " " or text[-1:] == " " else text
    folded = " ".join(text.split())
    kept = "".join(c for c in folded if c in _JOINERS or unicodedata.category(c) not in _DROPPED)
    return " ".join(unicodedata.normalize("NFC", kept).split())


def quote(text: str) -> str:
    """``text`` cleaned, between double quotation marks that it cannot close.

    A quotation mark inside becomes an apostrophe: between two marks everything is somebody's words, and
    outside them nothing is. That is what keeps a title from forging a handle, a state or a section.
    """
    return '"' + clean(text).replace('"', "'") + '"'


def cut(text: str, limit: int) -> str:
    """At most ``limit`` characters of ``text``, ending in ``…`` when something was cut.

    Cuts between grapheme clusters only, so it may return fewer characters than ``limit``.
    """
    if len(text) <= limit:
        return text
    end = max(limit - 1, 0)
    # White space before the cut goes, too, but never out of the cluster that it may belong to.
    while end > 0 and (text[end - 1].isspace() or not _boundary(text, end)):
        end -= 1
    return text[:end] + ELLIPSIS


def _boundary(text: str, at: int) -> bool:
    """Whether cutting before ``text[at]`` is safe. Errs on the side of no: a false no only cuts earlier."""
    before, after = text[at - 1], text[at]
    if before < "\u0300" and after < "\u0300":
        return not (before == "\r" and after == "\n")
    return not (_joins_back(after) or _joins_forward(before) or _conjoined(text, at))


def _joins_back(char: str) -> bool:
    """Whether ``char`` may belong to the cluster before it."""
    return (
        char in _JOINERS
        or unicodedata.category(char) in _JOINING
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or "\U0001f1e6" <= char <= "\U0001f1ff"  # half a flag
        or "\u1160" <= char <= "\u11ff"  # Hangul vowels and finals
        or "\ud7b0" <= char <= "\ud7fb"
        or "\uff9e" <= char <= "\uff9f"  # half-width voicing marks
        or char in "\u0e33\u0eb3"  # Thai and Lao AM
        or char in "\U00016d63\U00016d67\U00016d68\U00016d69\U00016d6a"  # Kirat Rai vowels
    )


def _joins_forward(char: str) -> bool:
    """Whether ``char`` may hold on to the one after it."""
    return (
        char in _JOINERS
        or unicodedata.category(char) in {"Cf", "Cn"}  # prepended signs
        or "\u1100" <= char <= "\u115f"  # Hangul initials
        or "\ua960" <= char <= "\ua97c"
        or char in _PREPENDED
    )


def _conjoined(text: str, at: int) -> bool:
    """Whether the marks before ``text[at]`` hold a virama, which joins consonants into one cluster."""
    while at > 0 and (text[at - 1] in _JOINERS or unicodedata.category(text[at - 1]) in _EXTENDING):
        at -= 1
        if unicodedata.combining(text[at]) == 9:
            return True
    return False


# Grapheme_Cluster_Break=Prepend outside category Cf.
_PREPENDED = frozenset(
    "\u0d4e\U000111c2\U000111c3\U000113d1\U0001193f\U00011941\U00011a3a\U00011d46\U00011f02"
    + "".join(map(chr, range(0x11A84, 0x11A8A)))
)

_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", re.ASCII)
_LIKE_HANDLE = re.compile(r"(?<![A-Za-z0-9_])[A-Z]+[0-9]+(?![A-Za-z0-9_])", re.ASCII)
LONGEST_WORD = 40
UNLINKED, CHANGED = "unlinked", "changed"
"""Words of ours that say something standing alone: a state that reads so is quoted."""


@lru_cache(maxsize=4096)  # states, keys and dates recur in every build
def word(text: str, longest: int = LONGEST_WORD) -> str:
    """A state, key or number outside quotation marks: as it is when it is one plain word that holds nothing
    like a handle, quoted and cut to ``longest`` characters otherwise. Databases hold anything in such columns.
    """
    plain = len(text) <= longest and _WORD.fullmatch(text) and not _LIKE_HANDLE.search(text)
    if plain and text not in {UNLINKED, CHANGED}:
        return text
    return quote(cut(clean(text), longest))

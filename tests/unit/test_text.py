"""Other people's text on one line: cleaned, quoted, cut."""

import unicodedata

import pytest
import regex  # type: ignore[import-untyped]  # it has no types; an oracle needs none
from hypothesis import given
from hypothesis import strategies as st
from strategies import texts

from foreword.text import ELLIPSIS, clean, cut, quote, word

GCB = ("Extend", "SpacingMark", "ZWJ", "Prepend", "L", "V", "T", "Regional_Indicator")
JOINING = regex.compile("[" + "".join(rf"\p{{GCB={name}}}" for name in GCB) + "]")
INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def boundaries(text: str) -> set[int]:
    """Where a reader sees one character end, by the regex module's reading of Unicode TR 29."""
    ends, at = {0}, 0
    for cluster in regex.findall(r"\X", text):
        at += len(cluster)
        ends.add(at)
    return ends


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("", ""),
        ("  plain\t words \n", "plain words"),
        ("two\r\nlines", "two lines"),
        ("a\u2028b\u2029c\u0085d\x0be\x1cf", "a b c d e f"),
        ("\u00a0\u3000wide\u2003spaces\u202f", "wide spaces"),
        ("bell\x07 and escape\x1b[31m", "bell and escape[31m"),
        ("\u202eright to left\u202c", "right to left"),
        ("e\u0301", "\u00e9"),
        ("a \x00 b", "a b"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"),
        ("\U0001f468\u200d\U0001f469", "\U0001f468\u200d\U0001f469"),
    ],
)
@pytest.mark.promise("lines.unforgeable")
def test_text_is_folded_to_one_clean_line(written: str, read: str) -> None:
    assert clean(written) == read


@given(texts)
@pytest.mark.promise("lines.unforgeable")
def test_clean_text_has_no_break_no_control_and_no_loose_space(text: str) -> None:
    cleaned = clean(text)

    assert len(cleaned.splitlines()) <= 1
    assert cleaned == " ".join(cleaned.split())
    assert unicodedata.is_normalized("NFC", cleaned)
    assert not {unicodedata.category(c) for c in cleaned if c not in "\u200c\u200d"} & INVISIBLE


@given(texts)
@pytest.mark.promise("lines.unforgeable")
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(texts)
@pytest.mark.promise("lines.unforgeable")
def test_quoted_text_cannot_leave_its_quotation_marks(text: str) -> None:
    quoted = quote(text)

    assert quoted[0] == quoted[-1] == '"'
    assert '"' not in quoted[1:-1]
    assert unicodedata.is_normalized("NFC", quoted)


@given(texts, st.integers(1, 60))
@pytest.mark.promise("text.grapheme")
def test_a_cut_is_short_enough_shows_itself_and_never_splits_a_cluster(text: str, limit: int) -> None:
    shown = cut(text, limit)

    if len(text) <= limit:
        assert shown == text
    else:
        assert len(shown) <= limit
        assert shown.endswith(ELLIPSIS)
        assert text.startswith(shown[:-1])
        assert len(shown) - 1 in boundaries(text)


@pytest.mark.promise("text.grapheme")
def test_no_character_of_unicode_is_cut_off_what_it_belongs_to() -> None:
    joining = [chr(code) for code in range(0x110000) if JOINING.match(chr(code))]
    split = []

    for char in joining:
        text = f"a {char}\u0915\u094d{char}\u0937"
        ends = boundaries(text)
        split += [(text, limit) for limit in range(1, len(text)) if len(cut(text, limit)) - 1 not in ends]

    assert split == []


@pytest.mark.promise("text.grapheme")
def test_a_cut_drops_the_white_space_before_it() -> None:
    assert cut("one two three", 8) == "one two…"
    assert cut("one two three", 9) == "one two…"


@pytest.mark.promise("text.grapheme")
@pytest.mark.parametrize(
    "cluster",
    [
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\U0001f1e9\U0001f1ea",
        "\U0001f44d\U0001f3fd",
        "\u0915\u094d\u0937",
        "\u1112\u1161\u11ab",
        "g\u0308",
        "\r\n",
    ],
)
def test_a_cluster_is_kept_whole_or_left_out(cluster: str) -> None:
    text = f"ab{cluster}cd"

    shown = {cut(text, limit).removesuffix(ELLIPSIS) for limit in range(2, len(text))}

    assert shown <= {"", "a", "ab", f"ab{cluster}".rstrip(), f"ab{cluster}c"}


@pytest.mark.parametrize(
    "plain", ["todo", "in_progress", "project.creative.book", "p-1", "0.75", "2026-11-21", "12"]
)
def test_a_plain_word_stays_as_it_is(plain: str) -> None:
    assert word(plain) == plain


@pytest.mark.parametrize(
    "odd",
    ["", "T7", "PRJ1", "v2.T7", "T7-T8", "in progress", "-1", "/etc", '"', "unlinked", "\u0394", "x" * 41, "a\nb"],
)
@pytest.mark.promise("lines.unforgeable")
def test_what_could_be_taken_for_ours_is_quoted(odd: str) -> None:
    shown = word(odd)

    assert shown[0] == shown[-1] == '"'
    assert len(shown) <= 42


@given(texts)
@pytest.mark.promise("lines.unforgeable")
def test_a_word_is_quoted_or_holds_nothing_like_a_handle(text: str) -> None:
    shown = word(text)

    assert shown == quote(shown[1:-1]) or regex.fullmatch(r"[\w.+-]+", shown, regex.ASCII)
    assert shown[0] == '"' or not regex.search(r"\b[A-Z]+[0-9]+\b", shown)

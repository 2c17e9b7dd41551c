"""Bundles to published fields and back; what is damaged is a miss."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import projects, rendered, texts

from foreword import codec, keys
from foreword.lines import fit
from foreword.rows import ProjectRows
from foreword.stamp import SCHEMA, Stamp, glance

counters = st.integers(0, 2**62)
moments = st.floats(0, 2**40, allow_nan=False)
stamps = st.builds(
    Stamp,
    epoch=counters,
    generation=counters,
    snapshot=st.sampled_from(["", "10:20:", "10:20:10,14,15"]),
    as_of=st.sampled_from(["", "2026-11-21"]),
    zone=st.sampled_from(["UTC", "America/Argentina/Buenos_Aires", "Etc/GMT+12"]),
    valid_until=moments,
    built=moments,
    budget=st.integers(0, 10**6),
    tokens=st.integers(0, 10**6),
    gone=st.booleans(),
)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=12,
)
almost_lines = st.lists(
    st.lists(
        st.none() | st.integers(-3, 3) | st.booleans() | st.just("x\n") | st.just(1.5), min_size=3, max_size=5
    ),
    max_size=4,
)
damaged = st.one_of(
    st.binary(max_size=30),
    anything.map(lambda value: json.dumps(value).encode()),
    st.tuples(st.none() | st.integers(-2, 9) | st.just("3"), almost_lines).map(
        lambda value: json.dumps(value).encode()
    ),
    st.sampled_from(
        [b"", b"{", b"[" * 100_000, b'{"a":' * 50_000, b"\xff\xfe", b"NaN", b"1e999", b"null", b"1 0 1 1\n"]
    ),
    st.lists(
        st.sampled_from(["1", "0", "-", "x", "1e9", "nan", "inf", "99999999999999999999", "\u0661"]), max_size=14
    ).map(lambda words: (" ".join(words) + "\ntext\n").encode()),
)


@given(projects(), stamps, st.integers(250, 4000))
@pytest.mark.promise("store.version", "lines.budget")
def test_a_bundle_reads_back_as_it_was(rows: ProjectRows, stamp: Stamp, budget: int) -> None:
    content = rendered(rows)
    fitted = fit(content.lines, content.always, 1500)

    fields = codec.encode(content, stamp, fitted, rows.members)

    assert codec.decode_stamp(fields[keys.META]) == stamp
    line, text = codec.decode_text(fields[keys.TEXT])
    assert (Stamp.parse(line), text) == (stamp, fitted.text)
    assert codec.decode_lines(fields[keys.LINES], budget) == fit(content.lines, content.always, budget)
    assert codec.decode_data(fields[keys.DATA]) == json.loads(json.dumps(content.data, default=dict))
    head = codec.decode_head(fields[keys.HEAD])
    assert head is not None
    assert (head.line, head.tokens) == (content.overview.text, content.overview.tokens)
    assert (head.relevance, head.header) == (content.relevance, content.data["header"])
    assert {actor: fields[keys.member(actor)].decode() for actor, _ in rows.members} == dict(rows.members)


@given(projects())
@pytest.mark.promise("build.deterministic")
def test_our_json_is_orjsons_to_the_byte(rows: ProjectRows) -> None:
    data = rendered(rows).data

    assert codec.dumps(data) == orjson.dumps(data, default=dict)


@given(projects(), stamps)
@pytest.mark.promise("reader.twins")
def test_clients_that_decode_and_those_that_do_not_read_the_same(rows: ProjectRows, stamp: Stamp) -> None:
    content = rendered(rows)
    fields = codec.encode(content, stamp, fit(content.lines, content.always, 1500))

    for raw, text in ((raw, raw.decode()) for raw in fields.values()):
        assert codec.decode_stamp(raw) == codec.decode_stamp(text)
        assert codec.decode_text(raw) == codec.decode_text(text)
        assert codec.decode_line(raw) == codec.decode_line(text)
        assert codec.decode_lines(raw, 700) == codec.decode_lines(text, 700)
        assert codec.decode_data(raw) == codec.decode_data(text)
        assert codec.decode_head(raw) == codec.decode_head(text)


@given(damaged)
@pytest.mark.promise("store.version")
def test_nothing_that_is_stored_makes_a_decoder_raise(raw: bytes) -> None:
    stamp, line = codec.decode_stamp(raw), codec.decode_line(raw)

    assert stamp is None or isinstance(stamp, Stamp)
    assert glance(line) is None or raw.startswith(b"1 0 ")
    assert isinstance(codec.decode_text(raw), tuple)
    codec.decode_lines(raw, 500)
    codec.decode_data(raw)
    codec.decode_head(raw)


@given(st.text(st.characters(exclude_categories=["Cs"])))
@pytest.mark.promise("store.version")
def test_no_text_makes_a_decoder_raise_either(raw: str) -> None:
    for decode in (codec.decode_stamp, codec.decode_text, codec.decode_data, codec.decode_head):
        decode(raw)


@given(stamps)
@pytest.mark.promise("reader.stale")
def test_a_glance_at_a_stamp_sees_what_the_whole_stamp_says(stamp: Stamp) -> None:
    seen = glance(stamp.line().rstrip("\n"))

    assert seen == (None if stamp.gone else (stamp.valid_until, stamp.tokens))


@given(stamps)
@pytest.mark.promise("store.version")
def test_a_stamp_of_another_version_is_none_and_one_with_more_words_is_read(stamp: Stamp) -> None:
    _, _, rest = stamp.line().partition(" ")

    for other in (SCHEMA - 2, SCHEMA + 1):
        assert Stamp.parse(f"{other} {rest}") is None
        assert glance(f"{other} {rest}") is None
    assert Stamp.parse(f"{SCHEMA - 1} {rest}") == stamp
    assert Stamp.parse(stamp.line().rstrip("\n") + " more words\n") == stamp


@given(stamps)
@pytest.mark.promise("store.fence")
def test_a_tombstone_is_a_stamp_and_nothing_else(stamp: Stamp) -> None:
    fields = codec.tombstone(stamp)

    assert fields.keys() == {keys.META, keys.TEXT}
    assert codec.decode_stamp(fields[keys.META]) == stamp
    assert codec.decode_text(fields[keys.TEXT]) == (stamp.line().rstrip("\n"), "")


@pytest.mark.parametrize(
    "head",
    [
        {},
        {"line": 1, "tokens": 1, "relevance": 1, "header": {"id": "x"}},
        {"line": "x", "tokens": "1", "relevance": 1, "header": {"id": "x"}},
        {"line": "x", "tokens": 1, "relevance": None, "header": {"id": "x"}},
        {"line": "x", "tokens": 1, "relevance": 1, "header": {}},
        {"line": "x", "tokens": 1, "relevance": 1, "header": {"id": 7}},
        {"line": "x", "tokens": 1, "relevance": 1, "header": []},
        [],
    ],
)
@pytest.mark.promise("store.version")
def test_a_head_that_lacks_something_is_none(head: Any) -> None:
    assert codec.decode_head(json.dumps(head)) is None


@pytest.mark.promise("store.version")
def test_keys_begin_alike_hold_the_version_and_tag_their_owner() -> None:
    found = [keys.project("P"), keys.focus("P", "E"), keys.projects_of("A")]

    assert found == [f"fw:{SCHEMA}:{{{of}" for of in ("P}:project", "P}:focus:E", "A}:projects")]

"""Counting: exact, offline, and additive over lines."""

import base64
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from strategies import FORGERIES, a_text, projects, rendered, texts
from tiktoken_ext import openai_public  # type: ignore[import-untyped]  # a namespace package without types

import foreword
from foreword import tokens
from foreword.errors import ForewordError
from foreword.lines import is_line
from foreword.rows import ProjectRows
from foreword.text import clean, quote

ROOT = Path(__file__).parents[2]
O200K_IN_TIKTOKENS_CACHE = "fb374d419588a4632f3f557e76b4b70aebbca790"

NO_NETWORK = """
import socket
def refused(*_, **__): raise AssertionError("the network was asked for")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refused
"""
OURS = (
    NO_NETWORK
    + """
import json, sys
from foreword import tokens
print(json.dumps([tokens.encoding().encode_ordinary(t) for t in json.load(sys.stdin)]))
"""
)
TIKTOKENS = (
    NO_NETWORK
    + """
import json, sys, tiktoken
print(json.dumps([tiktoken.get_encoding("o200k_base").encode_ordinary(t) for t in json.load(sys.stdin)]))
"""
)


def run(script: str, texts: list[str], **environment: str) -> list[list[int]]:
    clean_of_caches = {k: v for k, v in os.environ.items() if not k.endswith("_CACHE_DIR")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(texts),
        env={**clean_of_caches, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[list[int]] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def cl100k() -> tiktoken.Encoding:
    """cl100k_base as tiktoken publishes it, its table from our test data."""
    published = openai_public.cl100k_base.__code__.co_consts
    pattern = next(const for const in published if isinstance(const, str) and r"\p{N}{1,3}" in const)
    table = gzip.decompress((ROOT / "tests/data/cl100k_base.tiktoken.gz").read_bytes())
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, table.splitlines())}
    return tiktoken.Encoding("cl100k_base", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


@pytest.mark.promise("lines.offline")
def test_our_encoding_is_tiktokens_own_with_no_network(tmp_path: Path) -> None:
    packed = Path(foreword.__file__).parent / "data/o200k_base.tiktoken.gz"
    (tmp_path / O200K_IN_TIKTOKENS_CACHE).write_bytes(gzip.decompress(packed.read_bytes()))
    random = Random(1)
    hostile = [*FORGERIES, *(a_text(random) for _ in range(500)), *(quote(a_text(random)) for _ in range(500))]

    ours, theirs = run(OURS, hostile), run(TIKTOKENS, hostile, TIKTOKEN_CACHE_DIR=str(tmp_path))

    assert ours == theirs


@pytest.mark.promise("lines.offline")
def test_a_special_token_in_a_text_counts_as_the_text_it_is() -> None:
    assert tokens.count("<|endoftext|>") > 1


@pytest.mark.promise("lines.offline")
def test_a_damaged_table_is_an_error_not_a_wrong_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_TABLE_SHA256", "0" * 64)

    with pytest.raises(ForewordError, match="reinstall foreword"):
        tokens.encoding.__wrapped__()


@given(st.lists(texts, min_size=2, max_size=12))
@pytest.mark.promise("lines.additive")
def test_the_count_of_a_text_is_the_sum_of_its_lines(cl100k: tiktoken.Encoding, written: list[str]) -> None:
    lines = [line for line in (f"{clean(text)}\n" for text in written) if is_line(line)]
    lines += [f"T{n} {quote(text)} {clean(text)[-9:]}\n" for n, text in enumerate(written)]

    for encoding in (tokens.encoding(), cl100k):
        counts = [len(encoding.encode_ordinary(line)) for line in lines]
        assert sum(counts) == len(encoding.encode_ordinary("".join(lines)))


@given(rows=projects(), seed=st.integers(0, 99))
@pytest.mark.promise("lines.additive")
def test_the_lines_of_a_bundle_add_up_in_any_order(
    cl100k: tiktoken.Encoding, rows: ProjectRows, seed: int
) -> None:
    content = rendered(rows)
    lines = [line.text for line in (*content.lines, content.overview)]

    Random(seed).shuffle(lines)

    assert all(map(is_line, lines))
    for encoding in (tokens.encoding(), cl100k):
        counts = [len(encoding.encode_ordinary(line)) for line in lines]
        assert sum(counts) == len(encoding.encode_ordinary("".join(lines)))


@given(rows=projects())
@pytest.mark.promise("lines.additive", "lines.budget")
def test_every_line_of_a_bundle_carries_its_exact_count(rows: ProjectRows) -> None:
    content = rendered(rows)

    for line in (*content.lines, content.overview):
        assert line.tokens == tokens.count(line.text)

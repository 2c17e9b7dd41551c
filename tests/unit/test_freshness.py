"""Whether a snapshot contains a transaction, against the definition; and what is no token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.errors import BadInput
from foreword.freshness import capped, contains, parse_token

transactions = st.integers(3, 60)


@given(
    running=st.sets(transactions, max_size=8),
    following=st.integers(3, 64),
    asked=transactions,
    epoch=st.integers(1, 3),
)
@pytest.mark.promise("fresh.exact")
def test_a_snapshot_contains_what_had_ended_when_it_was_taken(
    running: set[int], following: int, asked: int, epoch: int
) -> None:
    listed = sorted(each for each in running if each < following)
    oldest = min(listed, default=following)
    snapshot = f"{oldest}:{following}:{','.join(map(str, listed))}"

    ended = asked < following and asked not in listed

    assert contains(epoch, snapshot, f"{epoch}:{asked}") is ended
    assert not contains(epoch, snapshot, f"{epoch + 1}:{asked}")


@pytest.mark.parametrize("snapshot", ["", "gone", "5", "5:9", "-"])
@pytest.mark.promise("fresh.exact")
def test_what_is_no_snapshot_contains_nothing(snapshot: str) -> None:
    assert not contains(1, snapshot, "1:1")


def test_ids_beyond_32_bits_are_compared_as_numbers() -> None:
    assert contains(1, "9999999999:10000000000:", "1:9999999998")
    assert not contains(1, "9999999999:10000000000:9999999999", "1:9999999999")


@pytest.mark.parametrize(
    "token", ["", "1", "1:", ":1", "1:x", "1:2:3", "1:2 ", " 1:2", "1:-2", "\u0661:\u0662", "1:" + "9" * 30]
)
@pytest.mark.promise("fresh.exact")
def test_what_is_no_token_is_an_error(token: str) -> None:
    with pytest.raises(BadInput, match="is no token"):
        parse_token(token)


@given(
    running=st.sets(transactions, max_size=8),
    following=st.integers(3, 64),
    asked=transactions,
    on_disk=transactions,
)
@pytest.mark.promise("fresh.exact")
def test_a_capped_snapshot_claims_what_it_saw_up_to_there_and_nothing_beyond(
    running: set[int], following: int, asked: int, on_disk: int
) -> None:
    listed = sorted(each for each in running if each < following)
    snapshot = f"{min(listed, default=following)}:{following}:{','.join(map(str, listed))}"

    found = contains(1, capped(snapshot, on_disk), f"1:{asked}")

    assert found is (asked <= on_disk and contains(1, snapshot, f"1:{asked}"))

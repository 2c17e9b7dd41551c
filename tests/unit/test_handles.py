"""Handles and ids as tools are given them."""

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import texts

from foreword.errors import BadInput, UnknownEntity
from foreword.handles import handle, parse_handle, parse_reference, uuid_of
from foreword.kinds import KINDS

KIND_NAMES = [kind.name for kind in KINDS.all]


@given(st.sampled_from(KIND_NAMES), st.integers(1, 10**18 - 1))
@pytest.mark.promise("handles.either")
def test_a_handle_reads_back_as_what_it_was_made_of(kind: str, number: int) -> None:
    written = handle(KINDS.by_name[kind].handle, number)

    assert parse_handle(written, KINDS) == (kind, number)
    assert parse_reference(f" {written.lower()} ", KINDS) == (kind, number)


@pytest.mark.parametrize(
    "none", ["", "T", "7", "T0", "T07", "T-7", "T7.", "X7", "TT7", "T7 T8", "T\u0667", "T" + "1" * 19]
)
@pytest.mark.promise("handles.either")
def test_what_is_no_handle_is_none(none: str) -> None:
    assert parse_handle(none, KINDS) is None


@given(st.uuids())
@pytest.mark.promise("handles.either")
def test_a_uuid_is_taken_in_any_spelling(entity: UUID) -> None:
    spellings = [str(entity), str(entity).upper(), entity.hex, f"{{{entity}}}", entity.urn]

    assert {parse_reference(spelling, KINDS) for spelling in spellings} == {str(entity)}
    assert {uuid_of(spelling, "entity") for spelling in spellings} == {str(entity)}


@given(texts)
@pytest.mark.promise("handles.either")
def test_anything_else_is_a_clear_error(text: str) -> None:
    with pytest.raises(UnknownEntity, match="neither a handle"):
        parse_reference(f"?{text}", KINDS)


@given(texts)
def test_an_id_is_a_canonical_uuid_or_refused(text: str) -> None:
    try:
        found = uuid_of(text, "project")
    except BadInput as error:
        assert "is no UUID" in str(error)  # noqa: PT017 - either is right, which one depends on the text
    else:
        assert found == str(UUID(found))


def test_an_id_that_is_no_text_is_refused() -> None:
    with pytest.raises(BadInput, match="actor id"):
        uuid_of(None, "actor")  # type: ignore[arg-type]
    assert uuid_of(uuid := uuid4(), "actor") == str(uuid)  # type: ignore[arg-type]

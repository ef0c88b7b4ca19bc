"""Tests of how long data is shortened."""

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.lib.shortening import shorten, size_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=2000),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=40), inner),
    max_leaves=30,
)


@given(st.dictionaries(st.text(max_size=40), JSON), st.integers(2, 5000))
def test_long_data_is_shortened_to_fit_and_short_data_unchanged(
    data: dict[str, object], limit: int
) -> None:
    short = shorten(data, limit)
    assert size_of(short) <= limit
    assert list(short) == list(data)[: len(short)]
    if size_of(data) <= limit:
        assert short == data

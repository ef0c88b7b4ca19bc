"""Sources of visitors, and patches of long data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.leads.operations.changes import merge
from chalicelib.lib.shortening import shorten, size_of
from chalicelib.lib.sources import source_of

PAGE = "https://bakery.example/order?token=secret#top"

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=2000),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=40), inner),
    max_leaves=30,
)


@pytest.mark.parametrize(
    ("page", "referrer", "campaign", "name"),
    [
        (PAGE, None, {}, "direct"),
        (PAGE, "https://www.bakery.example/", {}, "direct"),
        (PAGE, "https://www.example.org/search?q=bread", {}, "example.org"),
        (PAGE, "https://example.org/", {"source": "Newsletter "}, "newsletter"),
        (PAGE, "not a url", {"source": "\u202e\t"}, "direct"),
        (None, "http://[broken", {}, "direct"),
        (PAGE, None, {"source": "Spring 2027-03-01"}, "spring 2027-03-01"),
        (PAGE, None, {"source": "ada@example.com"}, "direct"),
        (PAGE, "https://example.org/", {"source": "Ada +7 (916) 111-00-01"}, "example.org"),
    ],
)
def test_a_lead_counts_under_its_campaign_or_else_under_its_referring_host(
    page: str | None, referrer: str | None, campaign: dict[str, str], name: str
) -> None:
    assert source_of(page, referrer, campaign)["name"] == name


def test_query_and_fragment_of_a_page_are_not_stored() -> None:
    source = source_of(PAGE, "https://example.org/private/path", {"term": "rye"})
    assert source == {
        "name": "example.org",
        "page": "https://bakery.example/order",
        "referrer": "example.org",
        "campaign": {"term": "rye"},
    }


@given(st.dictionaries(st.text(max_size=40), JSON), st.integers(2, 5000))
def test_long_data_is_shortened_to_fit_and_short_data_unchanged(
    data: dict[str, object], limit: int
) -> None:
    short = shorten(data, limit)
    assert size_of(short) <= limit
    assert list(short) == list(data)[: len(short)]
    if size_of(data) <= limit:
        assert short == data


@pytest.mark.parametrize(
    ("target", "patch", "merged"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_patches_merge_as_rfc_7396_shows(target: object, patch: object, merged: object) -> None:
    assert merge(target, patch) == merged

"""Sources of visitors."""

import pytest

from chalicelib.lib.sources import source_of

PAGE = "https://bakery.example/order?token=secret#top"


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
    assert source_of(page, referrer=referrer, campaign=campaign)["name"] == name


def test_query_and_fragment_of_a_page_are_not_stored() -> None:
    source = source_of(PAGE, referrer="https://example.org/private/path", campaign={"term": "rye"})
    assert source == {
        "name": "example.org",
        "page": "https://bakery.example/order",
        "referrer": "example.org",
        "campaign": {"term": "rye"},
    }

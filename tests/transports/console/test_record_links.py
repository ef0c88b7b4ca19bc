"""Links from pages to the records that other pages show."""

from types import SimpleNamespace
from typing import Any

import pytest

from chalicelib.transports.console.record_links import links


def request(*refused: str) -> Any:
    membership = SimpleNamespace(path="/console/w/bakery", may=lambda name: name not in refused)
    return SimpleNamespace(current_membership=membership)


@pytest.mark.parametrize(
    ("kind", "within", "path"),
    [
        ("agent", None, "/bots/1"),
        ("export", None, "/exports/1"),
        ("form", None, "/forms/1"),
        ("knowledge", "2", "/bots/2/knowledge"),
        ("knowledge", None, None),
        ("lead", None, "/leads/1"),
        ("page", "2", "/sites/2/pages/1"),
        ("resource", None, "/staff/1"),
        ("site", None, "/sites/1"),
        ("booking_page", None, None),
        ("category", None, None),
    ],
)
def test_a_record_has_the_page_that_shows_it(
    kind: str, within: str | None, path: str | None
) -> None:
    expected = path and f"/console/w/bakery{path}"
    assert links(request())(kind, "1", within) == expected


def test_a_page_that_the_user_may_not_open_is_not_linked() -> None:
    assert links(request("get_product"))("product", "1") is None

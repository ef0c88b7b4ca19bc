"""Large lists are read through the index that serves their sort, filter or search.

A complete run fails if a function's IAM policy allows an index that no test has read
(``tests/support/policy_check.py``). These tests therefore read each list through the API.
"""

from typing import Any

import pytest

from chalicelib.engine.connection import connection
from chalicelib.engine.listing import queries
from tests.conftest import Api
from tests.factories.examples import Things

EVENT = "provide-client-params.dynamodb.Query"


@pytest.mark.parametrize(
    ("path", "index"),
    [
        ("/api/products/list?status=all&sort=sortOrder", "by_o1"),
        ("/api/products/list?status=all&sort=price", "by_o2"),
        ("/api/products/list?status=all&sort=name", "by_o3"),
        ("/api/products/list?status=active&sort=sortOrder", "by_o4"),
        ("/api/services/list?status=active&sort=sortOrder", "by_o4"),
        ("/api/bookings/list?sort=startAtDesc", "by_o1"),
        ("/api/bookings/list?sort=createdAtDesc", "by_o2"),
        ("/api/bookings/list?status=confirmed&sort=startAtAsc", "by_o3"),
        ("/api/forms/collection-list?status=new", "by_o1"),
        ("/api/products/list?q=loaf", "by_row"),
    ],
)
def test_large_lists_are_read_along_their_index(
    path: str, index: str, api: Api, things: Things, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "SMALL_ROWS", 0)
    read: list[str | None] = []

    def note(params: dict[str, Any], **_: object) -> None:
        read.append(params.get("IndexName"))

    events = connection().client.meta.events
    events.register(EVENT, note)
    try:
        api.get(path)
    finally:
        events.unregister(EVENT, note)
    assert index in read

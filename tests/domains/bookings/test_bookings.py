"""Lists of bookings, compared with a naive model."""

import random
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.domains.bookings.store.bookings import BOOKINGS, STATUSES, BookingRow
from chalicelib.engine.listing import queries
from chalicelib.engine.listing.query import Query
from tests.domains.bookings.conftest import BEGUN, WORKSPACE
from tests.support.effort import slow_but_for

pytestmark = pytest.mark.store


@pytest.fixture(params=[False, True], ids=["small", "large"])
def _sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        monkeypatch.setattr(queries, "SMALL_ROWS", 3)
        monkeypatch.setattr(queries, "CONSISTENT_ROWS", 8)
        monkeypatch.setattr(queries, "FETCHED_SKIP", 2)


def expected(rows: list[BookingRow], query: Query) -> list[str]:
    matches = rows
    for name, value in query.filters.items():
        matches = [row for row in matches if value is None or getattr(row, name) == value]
    first, last = query.ranges.get("starts_at", (None, None))
    matches = [row for row in matches if first is None or row.starts_at >= first]
    matches = [row for row in matches if last is None or row.starts_at <= last]
    if query.search:
        matches = [
            row
            for row in matches
            if any(
                query.search in text
                for text in (
                    row.client_name.lower().replace("ё", "е"),
                    row.client_phone,
                    row.phone_digits,
                )
            )
        ]
    keys = {
        "startAt": lambda row: (row.starts_at, row.id),
        "createdAt": lambda row: (row.id,),
    }
    return [row.id for row in sorted(matches, key=keys[query.sort], reverse=query.descending)]


@pytest.mark.usefixtures("_sizes")
@pytest.mark.parametrize("seed", slow_but_for([8], range(8, 11)))
def test_pages_match_a_naive_model(rows: list[BookingRow], seed: int) -> None:
    dice = random.Random(seed)
    charged: list[int] = []
    for _ in range(30):
        first, last = (
            dice.choice([None, BEGUN + timedelta(hours=dice.randrange(-5, 24 * 21))])
            for _ in range(2)
        )
        filters: dict[str, Any] = {
            "status": dice.choice([None, None, *STATUSES]),
            "service_id": dice.choice([None, None, "s1", "none"]),
            "resource_id": dice.choice([None, None, "r1", "r2"]),
            "client_id": dice.choice([None, None, None, "c1"]),
        }
        for page in (1, 2, 3):
            query = Query(
                page=page,
                size=dice.choice([3, 7]),
                sort=dice.choice(["startAt", "createdAt"]),
                descending=dice.random() < 0.5,
                filters=filters,
                ranges={"starts_at": (first, last)},
                search=dice.choice([None, None, "елкина", "4951234567", "8495123"]),
                charge=charged.append,
            )
            listing = BOOKINGS.page(WORKSPACE, query)
            ids = expected(rows, query)
            part = ids[query.offset : query.offset + query.size]
            assert ([row.id for row in listing.records], listing.total) == (part, len(ids)), query

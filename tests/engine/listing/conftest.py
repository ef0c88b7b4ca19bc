"""Products, thresholds and page sizes for tests of the list engine."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from chalicelib.domains.catalog.store.products import PRODUCTS, ProductRow
from chalicelib.engine.listing import queries, text_search
from chalicelib.engine.listing.query import Query, ResultPage

SMALL_ROWS = 6
FETCHED_SKIP = 3
WORKSPACE = "w"


@pytest.fixture(autouse=True)
def _low_thresholds(monkeypatch: pytest.MonkeyPatch, database: None) -> Iterator[None]:
    """Use both plans, and all their variants, with only a few rows."""
    monkeypatch.setattr(queries, "SMALL_ROWS", SMALL_ROWS)
    monkeypatch.setattr(queries, "CONSISTENT_ROWS", 12)
    monkeypatch.setattr(queries, "FETCHED_SKIP", FETCHED_SKIP)
    monkeypatch.setattr(queries, "ROWS_A_RECORD", 2)
    monkeypatch.setattr(text_search, "FETCHED_TEXTS", 2)
    monkeypatch.setattr(queries, "ROWS_A_QUERY", 1)
    inline_bytes_before = PRODUCTS.inline_bytes
    object.__setattr__(PRODUCTS, "inline_bytes", 95)
    yield
    object.__setattr__(PRODUCTS, "inline_bytes", inline_bytes_before)


START_TIME = datetime(2027, 1, 1, tzinfo=UTC)


def page(sort: str = "sortOrder", **options: Any) -> ResultPage[ProductRow]:
    return PRODUCTS.page(WORKSPACE, Query(**{"page": 1, "size": 20, "sort": sort, **options}))

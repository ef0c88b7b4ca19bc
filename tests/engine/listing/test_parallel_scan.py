"""A parallel scan of a large partition returns each entry once."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from chalicelib.core import clock, retry
from chalicelib.core.ids import first_id_at
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.catalog.store.products import PRODUCTS
from chalicelib.domains.leads.store.leads import LEADS
from chalicelib.engine.listing import parallel_scan, queries
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.query import Query
from chalicelib.engine.reading import Partition
from chalicelib.engine.unit import UnitOfWork
from infra.bench.dynamodb.usage import metering
from infra.local.seed import FIRST_MADE_AT, seed
from tests.engine.listing.conftest import START_TIME, WORKSPACE, page
from tests.engine.listing.test_listing_by_model import limit_query_pages

ROWS = 64
PAGE_ROWS = 4

Spread = Callable[[int], float]
SPREADS: dict[str, Spread] = {
    "evenly": lambda number: number * 3600,
    "at once": lambda number: number / 1000,
    "at the same time": lambda _: 0,
    "at once, then for a year": lambda n: n / 1000 if n < ROWS - 9 else n * 500_000,
    "for a year, then at once": lambda n: n * 500_000 if n < 9 else 4_500_000 + n / 1000,
    "in three bursts": lambda n: (n % 3) * 9_000_000 + n / 1000,
}


@pytest.fixture
def spread_ids(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the ids of products whose times of creation are spread as the parameter says."""
    monkeypatch.setattr(queries, "CONSISTENT_ROWS", 12)
    ids = []
    for start in range(0, ROWS, 16):
        unit = UnitOfWork(WORKSPACE, "test")
        for number in range(start, start + 16):
            moment = START_TIME + timedelta(seconds=SPREADS[request.param](number))
            with clock.using(lambda moment=moment: moment):
                product = PRODUCTS.new(
                    WORKSPACE,
                    name=f"Loaf {number}",
                    price=number,
                    sort_order=number,
                    status="active",
                )
            unit.create(product)
            ids.append(product.id)
        unit.commit()
    return ids


@pytest.fixture
def requests() -> Iterator[list[int]]:
    """Limit the pages of DynamoDB, and count the requests."""
    with limit_query_pages(PAGE_ROWS), metering() as usage:
        yield usage.requests


@pytest.mark.parametrize("spread_ids", SPREADS, indirect=True)
def test_a_search_finds_each_entry_once_in_few_requests(
    spread_ids: list[str], requests: list[Any]
) -> None:
    page_found = page("createdAt", search="loaf", size=100)
    assert [product.id for product in page_found.records] == sorted(spread_ids)
    assert page_found.total == ROWS
    assert page_found.cost.round_trips == len(requests)
    assert len(requests) <= 4 * ROWS / PAGE_ROWS


@pytest.mark.parametrize("spread_ids", ["evenly", "at once, then for a year"], indirect=True)
@pytest.mark.parametrize(("first", "last"), [(5, 50), (5, None), (None, 50), (70, 80)])
def test_bounds_on_the_time_of_creation_limit_the_ranges(
    spread_ids: list[str], first: int | None, last: int | None
) -> None:
    bounds = [
        None if number is None else START_TIME + timedelta(hours=number) for number in (first, last)
    ]
    lowest, highest = (bound and first_id_at(bound)[:10] for bound in bounds)
    expected_ids = {
        record
        for record in spread_ids
        if (lowest or "") <= record[:10] and (highest is None or record[:10] <= highest)
    }
    with limit_query_pages(PAGE_ROWS):
        page_found = page("name", search="loaf", size=100, ranges={"created_at": tuple(bounds)})
    assert {product.id for product in page_found.records} == expected_ids
    assert page_found.total == len(expected_ids)


@pytest.mark.parametrize("spread_ids", ["evenly"], indirect=True)
def test_records_that_exist_throughout_a_search_are_found_once_while_others_come_and_go(
    spread_ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the requests of a search, a record is created and another one deleted."""
    chance = random.Random(1)
    going = chance.sample(spread_ids, 20)
    read = Partition.query

    def change() -> None:
        unit = UnitOfWork(WORKSPACE, "test")
        unit.create(PRODUCTS.new(WORKSPACE, name="Loaf", price=1, sort_order=1, status="active"))
        if going:
            product = PRODUCTS.find(WORKSPACE, record_id=going.pop())
            assert product is not None
            unit.soft_delete(product, until=clock.now())
        unit.commit()

    def query(partition: Partition, **options: Any) -> Any:
        if options.get("index_name") == "by_row" and chance.random() < 0.5:
            change()
        return read(partition, **options)

    stay = set(spread_ids) - set(going)
    monkeypatch.setattr(Partition, "query", query)
    with limit_query_pages(PAGE_ROWS):
        page_found = page("createdAt", search="loaf", size=100)
    ids = [product.id for product in page_found.records]
    assert ids == sorted(set(ids))
    assert stay <= set(ids)


@pytest.mark.parametrize("spread_ids", ["evenly"], indirect=True)
def test_a_scan_pauses_rather_than_exceed_what_a_partition_serves(
    spread_ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, pauses = Partition.query, []
    monkeypatch.setattr(retry, "sleep", pauses.append)
    monkeypatch.setattr(parallel_scan, "time", SimpleNamespace(monotonic=lambda: 0.0))

    def query(partition: Partition, **options: Any) -> Any:
        partition.cost.units += 128
        return read(partition, **options)

    monkeypatch.setattr(Partition, "query", query)
    with limit_query_pages(PAGE_ROWS):
        page("createdAt", search="loaf")
        assert pauses == []
        monkeypatch.setattr(parallel_scan, "UNITS_AT_ONCE", 1_000)
        page_found = page("createdAt", search="loaf", size=100)
    assert 0.2 < max(pauses) < 2
    assert len(page_found.records) == len(spread_ids)


@pytest.mark.parametrize("spread_ids", ["evenly"], indirect=True)
def test_a_search_reads_several_ranges_at_the_same_time(spread_ids: list[str]) -> None:
    assert len(spread_ids) == ROWS
    with limit_query_pages(PAGE_ROWS), metering(0.1) as usage:
        page("createdAt", search="loaf 7")
    assert usage.waves <= ROWS / PAGE_ROWS / 2
    assert parallel_scan.RANGES >= 4


@pytest.mark.parametrize("noun", [BOOKINGS, LEADS], ids=["along a number", "in order of creation"])
@pytest.mark.parametrize("partition", [{}, {"status": ["confirmed", "new"]}], ids=["all", "some"])
def test_ranges_side_by_side_give_the_pages_of_one_scan(
    database: None, noun: Listing[Any], partition: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    list(seed(WORKSPACE, noun=f"{noun.noun.lower()}s", count=80))
    queried = Query(page=2, size=7, sort="createdAt", filters=partition, search="a")
    pages = []
    for rows in (10**6, 12):
        monkeypatch.setattr(queries, "CONSISTENT_ROWS", rows)
        with limit_query_pages(PAGE_ROWS):
            page_found = noun.page(WORKSPACE, queried)
        pages.append(([record.id for record in page_found.records], page_found.total))
    assert pages[0] == pages[1]
    assert len(pages[0][0]) == 7
    indexed = replace(queried, page=1, ranges={"starts_at": (FIRST_MADE_AT, None)}, search=None)
    if noun is BOOKINGS:
        assert noun.page(WORKSPACE, indexed).total > 12

"""Scans of large partitions in ranges: each entry once, however keys are spread over time."""

import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.core.ids import first_id_at
from chalicelib.domains.catalog.store.products import PRODUCTS
from chalicelib.engine.listing import parallel_scan, queries
from chalicelib.engine.reading import Partition
from chalicelib.engine.unit import UnitOfWork
from infra.bench.dynamodb_usage import metering
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
def seeded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
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


@pytest.mark.parametrize("seeded", SPREADS, indirect=True)
def test_a_search_finds_each_entry_once_in_few_requests(
    seeded: list[str], requests: list[Any]
) -> None:
    found = page("createdAt", search="loaf", size=100)
    assert [product.id for product in found.records] == sorted(seeded)
    assert found.total == ROWS
    assert found.cost.round_trips == len(requests)
    assert len(requests) <= 4 * ROWS / PAGE_ROWS


@pytest.mark.parametrize("seeded", ["evenly", "at once, then for a year"], indirect=True)
@pytest.mark.parametrize(("first", "last"), [(5, 50), (5, None), (None, 50), (70, 80)])
def test_bounds_on_the_time_of_creation_limit_the_ranges(
    seeded: list[str], first: int | None, last: int | None
) -> None:
    bounds = [
        None if number is None else START_TIME + timedelta(hours=number) for number in (first, last)
    ]
    lowest, highest = (bound and first_id_at(bound)[:10] for bound in bounds)
    wanted = {
        each
        for each in seeded
        if (lowest or "") <= each[:10] and (highest is None or each[:10] <= highest)
    }
    with limit_query_pages(PAGE_ROWS):
        found = page("name", search="loaf", size=100, ranges={"created_at": tuple(bounds)})
    assert {product.id for product in found.records} == wanted
    assert found.total == len(wanted)


@pytest.mark.parametrize("seeded", ["evenly"], indirect=True)
def test_records_that_exist_throughout_a_search_are_found_once_while_others_come_and_go(
    seeded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the requests of a search, a record is created and another one deleted."""
    chance = random.Random(1)
    going = chance.sample(seeded, 20)
    read = Partition.query

    def change() -> None:
        unit = UnitOfWork(WORKSPACE, "test")
        unit.create(PRODUCTS.new(WORKSPACE, name="Loaf", price=1, sort_order=1, status="active"))
        if going:
            product = PRODUCTS.find(WORKSPACE, going.pop())
            assert product is not None
            unit.soft_delete(product, until=clock.now())
        unit.commit()

    def query(partition: Partition, **options: Any) -> Any:
        if options.get("index_name") == "by_row" and chance.random() < 0.5:
            change()
        return read(partition, **options)

    stay = set(seeded) - set(going)
    monkeypatch.setattr(Partition, "query", query)
    with limit_query_pages(PAGE_ROWS):
        found = page("createdAt", search="loaf", size=100)
    ids = [product.id for product in found.records]
    assert ids == sorted(set(ids))
    assert stay <= set(ids)


@pytest.mark.parametrize("seeded", ["evenly"], indirect=True)
def test_a_search_reads_several_ranges_at_the_same_time(seeded: list[str]) -> None:
    assert len(seeded) == ROWS
    with limit_query_pages(PAGE_ROWS), metering(0.02) as usage:
        page("createdAt", search="loaf 7")
    assert usage.waves <= ROWS / PAGE_ROWS / 2
    assert parallel_scan.RANGES >= 4

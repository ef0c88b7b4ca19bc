"""Cost of lists at 1,000, 10,000 and 100,000 products, compared with reading the whole partition.

The naive reading fetches every record of the partition, then filters, sorts and counts in Python.
Both methods must find the same records.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from chalicelib.core.text import matches_search, search_fold
from chalicelib.core.wire.list_names import UPDATED_AT
from chalicelib.domains.catalog.store.products import PRODUCTS, ProductRow
from chalicelib.engine.listing import parallel_scan
from chalicelib.engine.listing.queries import CONSISTENT_ROWS
from chalicelib.engine.listing.query import Query
from chalicelib.engine.reading import Cost, Partition
from infra.bench.dynamodb import database
from infra.bench.dynamodb.usage import DatabaseUsage, metering
from infra.local.seed import SMALL_CATEGORY, category_id

COUNTS = (1_000, 10_000, 100_000)
LATENCY_MS = 5
"""Delay of each request, as in the same region of AWS. Assumed, not measured."""


def section() -> str:
    """Measure and return this section of the page."""
    with database.seeded("products", COUNTS):
        tables = [_table(count) for count in COUNTS]
        ranges = list(_ranges(COUNTS[-1]))
    return "\n".join(
        [
            "## Lists, on DynamoDB Local",
            "",
            "Read units, round trips and time of one page of 20 products of about 1.7 KB each. The",
            "naive reading fetches the whole partition, then filters and sorts it in Python. Both",
            "find the same records. A REST or tool call adds a unit and a round trip for the key.",
            "DynamoDB Local ends a page of a Query after about 500 rows. DynamoDB itself continues",
            "to a megabyte, which is about 5,000 rows of the compact index. There, a full scan",
            "takes the same units and a tenth of these round trips.",
            "",
            *tables,
            f"### Full scans of {COUNTS[-1]:,} products, in ranges side by side",
            "",
            "The same lists, read one page after another and in ranges side by side (ADR 52), with",
            f"a delay of {LATENCY_MS} ms for each request, as on AWS. Requests side by side are a",
            "wave. DynamoDB Local needs CPU time for each page, on the same processors, so the",
            "ratio of the waves is what DynamoDB itself comes close to.",
            "",
            "| list | ranges | units | round trips | waves | time | of the waves | of the time |",
            "|---|---|---|---|---|---|---|---|",
            *ranges,
            "",
        ]
    )


def _queries(count: int) -> dict[str, Query]:
    first = Query(page=1, size=20, sort="sortOrder")
    deep = min(500, count // 20)
    ten = [category_id(number) for number in range(10)]
    return {
        "page 1 by sortOrder": first,
        "page 1 by createdAt": replace(first, sort="createdAt", descending=True),
        "page 1 by price": replace(first, sort="price"),
        "page 1 by name": replace(first, sort="name"),
        "page 1 by updatedAt": replace(first, sort=UPDATED_AT),
        "page 1, one status": replace(first, filters={"status": "inactive"}),
        "page 1, one category": replace(first, filters={"category_id": category_id(7)}),
        "page 1, one small category": replace(
            first, filters={"category_id": category_id(SMALL_CATEGORY)}
        ),
        "page 1, ten categories": replace(first, filters={"category_id": ten}),
        "page 1, ten categories by price": replace(
            first, sort="price", filters={"category_id": ten}
        ),
        "page 1, price range": replace(first, ranges={"price": (100_000, 200_000)}),
        "page 1, price range by price": replace(
            first, sort="price", ranges={"price": (100_000, 200_000)}
        ),
        "page 1, narrow price range": replace(first, ranges={"price": (100_000, 110_000)}),
        f"page {deep} by price": replace(first, sort="price", page=deep),
        f"page {deep} by createdAt": replace(first, sort="createdAt", page=deep),
        "search in names": replace(first, search="ёлка 77"),
        "page past the end (the total)": replace(first, page=10**6),
    }


def _ranges(count: int) -> Iterator[str]:
    """Yield the table rows about full scans, by one range and by several at a time."""
    for label in ("search in names", "page 1, price range"):
        one, several = (_scan(count, _queries(count)[label], n) for n in (1, parallel_scan.RANGES))
        for ranges, (usage, seconds) in ((1, one), (parallel_scan.RANGES, several)):
            waves, time_taken = usage.waves / one[0].waves, seconds / one[1]
            yield (
                f"| {label} | {ranges} | {usage.units:,.0f} | {usage.round_trips} | {usage.waves} "
                f"| {seconds:.1f} s | {waves:.0%} | {time_taken:.0%} |"
            )


def _scan(count: int, query: Query, ranges: int) -> tuple[DatabaseUsage, float]:
    """Read a page by so many ranges at a time, and return the usage and the seconds."""
    as_usual, parallel_scan.RANGES = parallel_scan.RANGES, ranges
    try:
        with metering(LATENCY_MS / 1000) as usage:
            started = time.perf_counter()
            PRODUCTS.page(database.workspace(count), query)
            return usage, time.perf_counter() - started
    finally:
        parallel_scan.RANGES = as_usual


def _table(count: int) -> str:
    started = time.perf_counter()
    everything, naive = _read_all(count)
    reading_ms = (time.perf_counter() - started) * 1000
    lines = [
        f"### {count:,} products; the naive reading takes {naive.units:,.0f} units",
        "",
        "| list | plan | units | % of naive units | round trips | % of naive time |",
        "|---|---|---|---|---|---|",
    ]
    for label, query in _queries(count).items():
        started = time.perf_counter()
        page = PRODUCTS.page(database.workspace(count), query)
        ms = (time.perf_counter() - started) * 1000
        page_contents = ([record.id for record in page.records], page.total)
        if page_contents != _select(everything, query):
            msg = f"the list engine and the naive reading differ: {label} of {count}"
            raise RuntimeError(msg)
        units, round_trips = page.cost.units, page.cost.round_trips
        lines.append(
            f"| {label} | {page.plan} | {units:,.0f} | {units / naive.units:.2%} | {round_trips} "
            f"| {ms / reading_ms:.2%} |"
        )
    return "\n".join([*lines, ""])


def _read_all(count: int) -> tuple[list[ProductRow], Cost]:
    """Read the whole partition with the same consistency as the engine."""
    cost = Cost()
    partition = Partition(PRODUCTS.partition(database.workspace(count)), cost)
    items = partition.items(consistent_read=count <= CONSISTENT_ROWS)
    return [ProductRow.from_raw_data(item) for item in items], cost


def _select(products: list[ProductRow], query: Query) -> tuple[list[str], int]:
    """Filter and sort in Python, and return the ids of the page and the number of matches."""
    for name, value in query.filters.items():
        values = {value} if isinstance(value, str) else set(value or ())
        products = [p for p in products if getattr(p, name) in values]
    for name, (minimum, maximum) in query.ranges.items():
        products = [
            p for p in products if (minimum or 0) <= getattr(p, name) <= (maximum or 10**12)
        ]
    if query.search:
        products = [p for p in products if matches_search((p.name, p.sku or ""), query.search)]
    keys: dict[str, Callable[[ProductRow], object]] = {
        "sortOrder": lambda p: p.sort_order,
        "createdAt": lambda p: p.id,
        "price": lambda p: p.price,
        "name": lambda p: search_fold(p.name),
        UPDATED_AT: lambda p: p.updated_at,
    }
    key = keys[query.sort]
    matches = sorted(products, key=lambda p: (key(p), p.id), reverse=query.descending)
    return [p.id for p in matches[query.offset : query.offset + query.size]], len(matches)

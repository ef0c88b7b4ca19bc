"""What lists cost at 1,000, 10,000 and 100,000 products, beside reading the table whole.

The naive reading asks for every record of the partition, then filters, sorts and counts in Python:
what an application does that has no indexes for its lists. Both must find the same records.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from chalicelib.core.text import fold
from chalicelib.store.listing import CONSISTENT_ROWS, Query
from chalicelib.store.products import PRODUCTS, ProductRow
from chalicelib.store.reading import Cost, Partition
from infra.bench import database

Found = tuple[list[str], int]


def section() -> str:
    """Measure, and return the page's section."""
    with database.seeded():
        tables = [_table(count) for count in database.COUNTS]
    return "\n".join(
        [
            "## Lists, on DynamoDB Local",
            "",
            "Read units and round trips of one page of 20 products of about 1.7 KB, for the list",
            "engine and for a naive reading of the whole partition, which finds the same records.",
            "A REST or tool call adds one unit and one round trip for the key.",
            "",
            *tables,
        ]
    )


def _queries(count: int) -> dict[str, Query]:

    first = Query(page=1, size=20, sort="sortOrder")
    deep = min(500, count // 20)
    return {
        "page 1 by sortOrder": first,
        "page 1 by createdAt": replace(first, sort="createdAt", descending=True),
        "page 1 by price": replace(first, sort="price"),
        "page 1 by name": replace(first, sort="name"),
        "page 1, one status": replace(first, filters={"status": "inactive"}),
        "page 1, one category": replace(first, filters={"category_id": "seeded-category-07"}),
        "page 1, price range": replace(first, ranges={"price": (100_000, 200_000)}),
        f"page {deep} by price": replace(first, sort="price", page=deep),
        f"page {deep} by createdAt": replace(first, sort="createdAt", page=deep),
        "search in names": replace(first, search="ёлка 77"),
        "page past the end (the total)": replace(first, page=10**6),
    }


def _table(count: int) -> str:
    lines = [
        f"### {count:,} products",
        "",
        "| list | plan | units | round trips | ms | naive: units | round trips | ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for label, query in _queries(count).items():
        plan, *ours = _timed(partial(_ours, count, query))
        _, *naive = _timed(partial(_naive, count, query))
        if ours[0] != naive[0]:
            msg = f"the list engine and the naive reading differ: {label} of {count}"
            raise RuntimeError(msg)
        cells = [label, plan, *ours[1:], *naive[1:]]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join([*lines, ""])


def _timed(read: Callable[[], tuple[str, Found, Cost]]) -> tuple[str, Found, float, int, int]:
    """Return the plan, what was found, units, round trips and milliseconds of one reading."""
    started = time.perf_counter()
    plan, found, cost = read()
    ms = round((time.perf_counter() - started) * 1000)
    return plan, found, cost.units, cost.round_trips, ms


def _ours(count: int, query: Query) -> tuple[str, Found, Cost]:

    page = PRODUCTS.page(database.workspace(count), query)
    return page.plan, ([record.id for record in page.records], page.total), page.cost


def _naive(count: int, query: Query) -> tuple[str, Found, Cost]:
    """Read the whole partition as consistently as the engine, then filter and sort."""
    cost = Cost()
    partition = Partition(PRODUCTS.partition(database.workspace(count)), cost)
    items = partition.items(consistent_read=count <= CONSISTENT_ROWS)
    products = [ProductRow.from_raw_data(item) for item in items]
    for name, value in query.filters.items():
        products = [p for p in products if getattr(p, name) == value]
    for name, (least, most) in query.ranges.items():
        products = [p for p in products if (least or 0) <= getattr(p, name) <= (most or 10**12)]
    if query.search:
        wanted = fold(query.search)
        products = [p for p in products if wanted in fold(p.name) or wanted in fold(p.sku or "")]
    keys: dict[str, Callable[[ProductRow], object]] = {
        "sortOrder": lambda p: p.sort_order,
        "createdAt": lambda p: p.id,
        "price": lambda p: p.price,
        "name": lambda p: fold(p.name),
    }
    key = keys[query.sort]
    products.sort(key=lambda p: (key(p), p.id), reverse=query.descending)
    page = products[query.offset : query.offset + query.size]
    return "naive", ([p.id for p in page], len(products)), cost

"""Compare lists of products with a simple model in Python.

The list engine must return the pages, totals and sort order of the model, whether it scans an
index or all rows.
"""

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from chalicelib.core import clock
from chalicelib.core.text import fold
from chalicelib.core.wire.list_names import UPDATED_AT
from chalicelib.domains.catalog.store.products import PRODUCTS
from chalicelib.engine.connection import connection
from chalicelib.engine.listing import counters
from chalicelib.engine.listing.query import Query
from chalicelib.engine.tables import ContentRow
from chalicelib.engine.unit import UnitOfWork
from tests.engine.listing.conftest import FETCHED_SKIP, SMALL_ROWS, START_TIME
from tests.support.effort import examples

pytestmark = pytest.mark.store


@contextlib.contextmanager
def limit_query_pages(rows: int | None) -> Iterator[None]:
    """End every page of a DynamoDB Query after ``rows`` rows, as DynamoDB does after a megabyte.

    Rows are counted before DynamoDB filters them. ``None`` sets no limit.
    """
    if rows is None:
        yield
        return

    def limit(params: dict[str, Any], **_: Any) -> None:
        params["Limit"] = min(rows, params.get("Limit", rows))

    events = connection().client.meta.events
    events.register("provide-client-params.dynamodb.Query", limit)
    try:
        yield
    finally:
        events.unregister("provide-client-params.dynamodb.Query", limit)


NAMES = st.one_of(
    st.sampled_from(["Ёлка", "елка", "ель", "Straße", "STRASSE", "a", "A b", "a\tb", "ab", "饼"]),
    st.text("abЁеß 1", min_size=1, max_size=12).filter(str.strip),
    st.builds(lambda head, end: head * 30 + end, st.sampled_from("aё饼"), st.sampled_from("xyz")),
)
PRODUCT_FIELDS = {
    "name": NAMES,
    "price": st.one_of(st.integers(0, 3), st.integers(0, 10**11)),
    "sku": st.one_of(st.none(), st.text("AB-1", min_size=1, max_size=4)),
    "category_id": st.one_of(st.none(), st.sampled_from(["c1", "c2"])),
    "status": st.sampled_from(["active", "inactive"]),
    "sort_order": st.one_of(st.integers(-3, 3), st.integers(-(10**15), 10**15)),
}
PAGE_ROWS = st.sampled_from([None, None, 2, 5])
TIME_BOUNDS = st.integers(0, 20).map(lambda n: START_TIME + timedelta(milliseconds=n))
CREATION_BOUNDS = st.one_of(st.none(), TIME_BOUNDS)
PRICE_BOUNDS = st.one_of(st.none(), st.integers(0, 4))


def model_key(sort: str, product: dict[str, Any]) -> tuple[Any, ...]:
    name = fold(product["name"]).replace("\t", " ")
    sort_values = {
        "createdAt": (),
        "sortOrder": product["sort_order"],
        "price": product["price"],
        "updatedAt": product["updated_at"],
    }
    return (sort_values.get(sort, name), product["id"])


def model_matches(product: dict[str, Any], search: str) -> bool:
    if not any(map(str.isalnum, search)):
        return any(search in fold(text) for text in (product["name"], product["sku"] or ""))
    needle, *texts = (
        fold(text).replace("-", " ").split()
        for text in (search, product["name"], product["sku"] or "")
    )
    return any(" ".join(needle) in " ".join(words) for words in texts) or all(
        any(word.startswith(part) for word in itertools.chain(*texts)) for part in needle
    )


def model_list(products: list[dict[str, Any]], query: Query) -> list[str]:
    """Return the ids of all matching products in order. All pages together must list these ids."""
    matches = [p for p in products if query.ids is None or p["id"] in query.ids]
    for name, filter_value in query.filters.items():
        if filter_value is not None:
            values = {filter_value} if isinstance(filter_value, str) else filter_value
            matches = [p for p in matches if p[name] in values]
    for name, lookup_value in query.lookups.items():
        if lookup_value is not None:
            matches = [p for p in matches if fold(p[name] or "") == fold(lookup_value)]
    times = query.ranges.get("created_at", (None, None))
    matches = [p for p in matches if times[0] is None or p["created_at"] >= times[0]]
    matches = [p for p in matches if times[1] is None or p["created_at"] <= times[1]]
    for name, (lowest, highest) in query.ranges.items():
        if name == "created_at":
            continue
        matches = [p for p in matches if lowest is None or p[name] >= lowest]
        matches = [p for p in matches if highest is None or p[name] <= highest]
    if query.search:
        matches = [p for p in matches if model_matches(p, query.search)]
    matches = sorted(matches, key=lambda p: model_key(query.sort, p), reverse=query.descending)
    return [p["id"] for p in matches]


PAGE_PARAMETERS = {
    "size": st.integers(1, 5),
    "sort": st.sampled_from(list(PRODUCTS.sorts)),
    "descending": st.booleans(),
}
INDEXED_SORTS = st.sampled_from([sort for sort in PRODUCTS.sorts if sort != UPDATED_AT])
ANY_QUERY = st.builds(
    partial(Query, page=1),
    **PAGE_PARAMETERS,
    filters=st.fixed_dictionaries(
        {},
        optional={
            "status": st.sampled_from([None, "active", "inactive", "unknown"]),
            "category_id": st.sampled_from(["c1", "c2", "foreign"])
            | st.sets(st.sampled_from(["c1", "c2", "c3", "foreign"])),
        },
    ),
    lookups=st.fixed_dictionaries(
        {}, optional={"sku": st.sampled_from([None, None, None, "a0", "B1", "none"])}
    ),
    ranges=st.fixed_dictionaries(
        {},
        optional={
            "price": st.tuples(PRICE_BOUNDS, PRICE_BOUNDS),
            "created_at": st.tuples(CREATION_BOUNDS, CREATION_BOUNDS),
            "updated_at": st.tuples(TIME_BOUNDS, st.none()),
        },
    ),
    search=st.sampled_from(
        [None, "", "ЕЛ", "ss", "a", "B-", "zz", "1", "y", "a\tb", "1 ё", "b a", "-", "--", "%"]
    ),
)
INDEXED_QUERY = (
    st.builds(partial(Query, page=1), **PAGE_PARAMETERS | {"sort": INDEXED_SORTS})
    | st.builds(
        partial(Query, page=1, sort="price"),
        size=PAGE_PARAMETERS["size"],
        descending=PAGE_PARAMETERS["descending"],
        ranges=st.fixed_dictionaries(
            {"price": st.tuples(st.integers(0, 2), st.integers(2, 10**10))}
        ),
    )
    | st.builds(
        partial(Query, page=1, sort="sortOrder"),
        size=PAGE_PARAMETERS["size"],
        descending=PAGE_PARAMETERS["descending"],
        filters=st.fixed_dictionaries(
            {"status": st.sampled_from(["active", "inactive", "unknown"])}
        ),
    )
)
CATEGORIES_QUERY = st.builds(
    partial(Query, page=1),
    **PAGE_PARAMETERS,
    filters=st.fixed_dictionaries(
        {"category_id": st.sets(st.sampled_from(["c1", "c2", "c3"]))},
        optional={"status": st.sampled_from(["active", "inactive"])},
    ),
    ranges=st.just({}) | st.fixed_dictionaries({"price": st.tuples(PRICE_BOUNDS, PRICE_BOUNDS)}),
)


class ProductListMachine(RuleBasedStateMachine):
    """Makes random writes and compares random lists with the model, past the last page too."""

    numbers = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        self.workspace = f"w{next(self.numbers)}"
        self.model: dict[str, dict[str, Any]] = {}
        self.moment = START_TIME
        self._time = clock.using(lambda: self.moment)
        self._time.__enter__()

    def teardown(self) -> None:
        self._time.__exit__(None, None, None)

    @initialize(created=st.lists(st.fixed_dictionaries(PRODUCT_FIELDS), min_size=5, max_size=9))
    def create_first_products(self, created: list[dict[str, Any]]) -> None:
        self.create(created)

    @rule(created=st.lists(st.fixed_dictionaries(PRODUCT_FIELDS), min_size=3, max_size=8))
    def create(self, created: list[dict[str, Any]]) -> None:
        unit = UnitOfWork(self.workspace, "test")
        for values in map(self._make_sku_unique, created):
            self.moment += timedelta(milliseconds=1)
            product = PRODUCTS.new(self.workspace, **values)
            unit.create(product)
            times = {"created_at": self.moment, "updated_at": self.moment}
            self.model[product.id] = {"id": product.id, **times, **values}
        unit.commit()

    def _make_sku_unique(self, values: dict[str, Any]) -> dict[str, Any]:
        sku = values.get("sku")
        return values | ({"sku": f"{sku}{next(self.numbers)}"} if sku else {})

    @rule(data=st.data(), values=st.fixed_dictionaries({}, optional=PRODUCT_FIELDS))
    def update(self, data: st.DataObject, values: dict[str, Any]) -> None:
        if self.model:
            record_id = data.draw(st.sampled_from(sorted(self.model)))
            values = self._make_sku_unique(values)
            unit = UnitOfWork(self.workspace, "test")
            product = PRODUCTS.find(self.workspace, record_id=record_id)
            for name, value in values.items():
                setattr(product, name, value)
            unit.save(product)
            unit.commit()
            self.model[record_id] |= {**values, "updated_at": self.moment}

    @rule(data=st.data())
    def forget_an_update_time(self, data: st.DataObject) -> None:
        """The row is then as an earlier release wrote it."""
        if self.model:
            record_id = data.draw(st.sampled_from(sorted(self.model)))
            row = ContentRow(PRODUCTS.partition(self.workspace), record_id)
            row.update([ContentRow.y2.remove()])

    @rule(data=st.data(), count=st.integers(1, 5))
    def delete(self, data: st.DataObject, count: int) -> None:
        for _ in range(min(count, len(self.model))):
            self._delete(data.draw(st.sampled_from(sorted(self.model))))

    def _delete(self, record_id: str) -> None:
        unit = UnitOfWork(self.workspace, "test")
        unit.soft_delete(PRODUCTS.find(self.workspace, record_id=record_id), until=clock.now())
        unit.commit()
        del self.model[record_id]

    @rule(queries=st.lists(ANY_QUERY, min_size=2, max_size=3), rows=PAGE_ROWS)
    def any_list_matches_the_model(self, queries: list[Query], rows: int | None) -> None:
        for query in queries:
            self._compare(query, rows)

    @rule(query=ANY_QUERY, data=st.data())
    def lists_of_given_ids_match_the_model(self, query: Query, data: st.DataObject) -> None:
        chosen_ids = data.draw(st.sets(st.sampled_from([*sorted(self.model), "foreign"])))
        plans = set(self._compare(replace(query, ids=chosen_ids), None).values())
        assert plans <= {"look-up", "range scan"}

    @rule(queries=st.lists(CATEGORIES_QUERY, min_size=2, max_size=3), rows=PAGE_ROWS)
    def lists_of_several_categories_match_the_model(
        self, queries: list[Query], rows: int | None
    ) -> None:
        for query in queries:
            self._compare(query, rows)

    @rule(queries=st.lists(INDEXED_QUERY, min_size=2, max_size=3), rows=PAGE_ROWS)
    def lists_that_an_index_covers_match_the_model_and_large_ones_use_it(
        self, queries: list[Query], rows: int | None
    ) -> None:
        for query in queries:
            for number, plan in self._compare(query, rows).items():
                assert plan in self._plans_of(query, query.size * (number - 1), rows)

    def _plans_of(self, query: Query, offset: int, rows: int | None) -> set[str]:
        """Return the possible plans of a page of a list whose order an index serves.

        A near page of a range reads the first entries with the counters, and needs no index if
        these are all entries. Pages of ``rows`` rows may end that first read early.
        """
        if offset > FETCHED_SKIP:
            return {"index scan" if len(self.model) > SMALL_ROWS else "full scan"}
        if not query.ranges or len(self.model) > SMALL_ROWS + 1:
            return {"index scan"}
        return {"full scan"} if rows is None else {"full scan", "index scan"}

    def _compare(self, query: Query, rows: int | None) -> dict[int, str]:
        """Compare the first page, a middle one and one past the last. Return the plan of each."""
        expected = model_list(list(self.model.values()), query)
        last = max(1, -(-len(expected) // query.size))
        plans = {}
        with limit_query_pages(rows):
            for number in {1, (1 + last) // 2, last + 1}:
                page = PRODUCTS.page(self.workspace, replace(query, page=number))
                start = (number - 1) * query.size
                assert [p.id for p in page.records] == expected[start : start + query.size], query
                assert page.total == len(expected)
                plans[number] = page.plan
        return plans

    @invariant()
    def counters_match_the_model(self) -> None:
        statuses = [p["status"] for p in self.model.values()]
        categories = [p["category_id"] for p in self.model.values()]
        expected = {"total": len(self.model)} | {
            f"status:{status}": statuses.count(status) for status in statuses
        }
        assert counters.read(self.workspace, noun="PRODUCT") == ({} if not statuses else expected)
        assert counters.read_facet(self.workspace, noun="PRODUCT", facet="category_id") == {
            f"category_id:{c}": categories.count(c) for c in categories if c
        }


@pytest.mark.timeout(1800)
def test_every_page_total_sort_filter_and_search_matches_the_model() -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        ProductListMachine,
        settings=examples(20, stateful_step_count=10),
    )

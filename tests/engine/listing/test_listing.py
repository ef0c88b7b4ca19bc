"""Plans, declarations, faults and costs of the list engine."""

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from chalicelib.core import clock, retry
from chalicelib.core.errors import UnavailableError
from chalicelib.core.ids import first_id_at
from chalicelib.core.wire.list_names import UPDATED_AT
from chalicelib.domains.catalog.store.products import PRODUCTS, ProductRow
from chalicelib.domains.leads.store.leads import LEADS
from chalicelib.engine import connection as engine_connection
from chalicelib.engine import tables
from chalicelib.engine.connection import ATTEMPTS, connection
from chalicelib.engine.listing import counters, index_entries, queries
from chalicelib.engine.listing.declaration import SortIndex
from chalicelib.engine.listing.query import Query
from chalicelib.engine.reading import Cost, Partition
from chalicelib.engine.tables import ContentRow
from chalicelib.engine.unit import UnitOfWork
from infra.bench.dynamodb.usage import metering
from infra.local.seed import FIRST_MADE_AT, seed
from tests.conftest import run_concurrently
from tests.engine.listing.conftest import SMALL_ROWS, START_TIME, WORKSPACE, page

pytestmark = pytest.mark.store


@dataclass
class Shop:
    """The products of a workspace."""

    ids: list[str] = field(default_factory=list)

    def add(self, count: int, **values: Any) -> "Shop":
        """Create products, ninety in one unit of work."""
        for start in range(0, count, 45):
            unit = UnitOfWork(WORKSPACE, "test")
            for number in range(start, min(start + 45, count)):
                product = PRODUCTS.new(
                    WORKSPACE,
                    **{
                        "name": f"product {number:05}",
                        "price": number,
                        "status": "active",
                        "sort_order": number,
                        **values,
                    },
                )
                self.ids.append(product.id)
                unit.create(product)
            unit.commit()
        return self


LONG_AGO = START_TIME - timedelta(days=10_000)


class TestPlans:
    @pytest.mark.parametrize(
        ("options", "plan"),
        [
            ({"sort": "sortOrder"}, "index scan"),
            ({"sort": "createdAt", "descending": True}, "index scan"),
            ({"sort": "name"}, "index scan"),
            ({"sort": "price", "page": 3, "size": 4}, "index scan"),
            ({"sort": "sortOrder", "filters": {"status": "active"}}, "index scan"),
            ({"sort": "sortOrder", "filters": {"status": None}}, "index scan"),
            ({"sort": "price", "filters": {"status": "active"}}, "full scan"),
            ({"sort": "price", "ranges": {"price": (1, None)}}, "index scan"),
            ({"sort": "name", "ranges": {"price": (1, 2)}}, "range scan"),
            ({"sort": "name", "ranges": {"price": (0, None)}}, "full scan"),
            ({"sort": "createdAt", "ranges": {"created_at": (LONG_AGO, None)}}, "index scan"),
            ({"sort": "createdAt", "filters": {"category_id": "c"}}, "index scan"),
            ({"sort": "sortOrder", "filters": {"category_id": "c"}}, "full scan"),
            ({"sort": "price", "ranges": {"price": (None, None)}}, "index scan"),
            ({"sort": "price", "search": "product"}, "full scan"),
            ({"sort": "price", "search": ""}, "index scan"),
        ],
    )
    def test_a_large_collection_is_read_along_an_index_that_fits(
        self, options: dict[str, Any], plan: str
    ) -> None:
        Shop().add(SMALL_ROWS + 2)
        assert page(**options).plan == plan

    @pytest.mark.parametrize(
        ("options", "plan"),
        [
            ({"sort": "sortOrder"}, "index scan"),
            ({"sort": "sortOrder", "search": "product"}, "full scan"),
            ({"sort": "price", "ranges": {"price": (1, None)}}, "full scan"),
            ({"sort": "price", "filters": {"status": "active"}}, "full scan"),
        ],
    )
    def test_a_small_collection_is_read_whole_unless_an_index_serves_the_order(
        self, options: dict[str, Any], plan: str
    ) -> None:
        Shop().add(SMALL_ROWS)
        assert page(**options).plan == plan

    @pytest.mark.parametrize(
        ("options", "waves"),
        [
            ({"sort": "sortOrder"}, 2),
            ({"sort": "createdAt"}, 1),
            ({"sort": "sortOrder", "filters": {"status": "active"}}, 2),
            ({"sort": "createdAt", "filters": {"category_id": "c"}}, 2),
            ({"sort": "name", "search": "product"}, 2),
            ({"sort": "name", "filters": {"category_id": {"c", "d"}}}, 2),
        ],
    )
    def test_counters_are_read_beside_the_entries(
        self, options: dict[str, Any], waves: int
    ) -> None:
        Shop().add(SMALL_ROWS, category_id="c")
        with metering(0.1) as usage:
            page(**options)
        assert usage.waves == waves, usage.calls

    @pytest.mark.parametrize("sort", ["createdAt", "name"])
    @pytest.mark.parametrize("filters", [{}, {"category_id": "c"}])
    def test_a_scan_of_a_small_collection_is_bounded_by_the_creation_time(
        self, sort: str, filters: dict[str, str]
    ) -> None:
        shop = Shop()
        with clock.using(lambda: START_TIME):
            shop.add(2, category_id="c")
        with clock.using(lambda: START_TIME + timedelta(days=1)):
            shop.add(3, category_id="c")
        bounds = (START_TIME + timedelta(hours=1), None)
        page_found = page(sort, filters=filters, ranges={"created_at": bounds})
        assert (page_found.plan, page_found.total) == ("full scan", 3)
        assert {record.id for record in page_found.records} == set(shop.ids[2:])

    def test_a_range_filter_compares_long_texts_to_their_end(self) -> None:
        shop = Shop().add(SMALL_ROWS + 6, price=9)
        shop.add(1, price=1, name="long " * 30 + "needle", sku=None)
        shop.add(1, price=1, name="short", sku=None)
        page_found = page(sort="name", search="NEEDLE", ranges={"price": (1, 2)})
        assert (page_found.plan, page_found.total) == ("range scan", 1)
        assert [record.id for record in page_found.records] == [shop.ids[-2]]

    def test_reads_are_consistent_up_to_the_limit_and_pages_beyond_it_match(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        reads: list[tuple[str | None, bool]] = []

        def note(params: dict[str, Any], **_: Any) -> None:
            reads.append((params.get("IndexName"), params.get("ConsistentRead", False)))

        Shop().add(13)
        events = connection().client.meta.events
        events.register("provide-client-params.dynamodb.Query", note)
        try:
            page(search="product")
            page(page=2, size=5)
            beside = {(None, True), ("by_row", True)}  # The counters, and the first entries.
            walked = [(None, True), ("by_o1", False), ("by_o1", True)]
            assert set(reads[:2]) == beside
            assert reads[-3:] == walked
            assert set(reads[2:-3]) == {("by_row", True), ("by_row", False)}
            assert reads.count(("by_row", True)) == 3, "also the first and the last key"
            reads.clear()
            monkeypatch.setattr(queries, "CONSISTENT_ROWS", 13)
            page(search="product")
            assert (set(reads[:2]), reads[2:]) == (beside, [("by_row", True)])
        finally:
            events.unregister("provide-client-params.dynamodb.Query", note)

    def test_the_chosen_plan_is_logged_with_its_cost(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        Shop().add(SMALL_ROWS + 1)
        with caplog.at_level("DEBUG", logger="chalicelib.engine.listing.listing"):
            page()
        record = caplog.records[-1].__dict__
        assert (record["noun"], record["plan"], record["roundTrips"]) == (
            "PRODUCT",
            "index scan",
            3,
        )
        assert record["units"] > 0

    def test_a_page_far_beyond_the_end_costs_one_round_trip(self) -> None:
        Shop().add(SMALL_ROWS + 1)
        page_found = page(page=10**9, size=100)
        assert (page_found.records, page_found.total, page_found.cost.round_trips) == (
            [],
            SMALL_ROWS + 1,
            1,
        )

    def test_several_categories_cost_their_own_rows_and_the_page(self) -> None:
        shop = Shop().add(SMALL_ROWS + 1, category_id="a").add(SMALL_ROWS, category_id="b").add(3)
        some: dict[str, Any] = {"filters": {"category_id": {"a", "b", "none"}}}
        first = page("price", size=2, **some)
        assert first.plan == "full scan"
        assert [product.price for product in first.records] == [0, 0]
        last = page("price", size=2, page=7, descending=True, **some)
        assert ([product.price for product in last.records], last.total) == (
            [0],
            2 * SMALL_ROWS + 1,
        )
        assert page("createdAt", size=2, **some).plan == "index scan"
        everywhere = page("createdAt", filters={"category_id": {"a", "b"}}, size=100)
        assert [product.id for product in everywhere.records] == shop.ids[: 2 * SMALL_ROWS + 1]

    def test_many_small_categories_are_filtered_from_the_whole_collection(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(9):
            Shop().add(1, category_id=f"c{number}")
        some = {"category_id": {f"c{number}" for number in range(8)}}
        page_found = page("price", filters=some)
        assert (page_found.total, page_found.plan, page_found.cost.round_trips) == (
            8,
            "full scan",
            4,
        )
        monkeypatch.setattr(queries, "ROWS_A_QUERY", 0)
        merged = page("price", filters=some)
        assert merged.cost.round_trips == 11
        assert [p.id for p in merged.records] == [p.id for p in page_found.records]

    def test_a_lookup_reads_its_row_and_the_record(self) -> None:
        Shop().add(SMALL_ROWS + 1)
        Shop().add(1, sku="Ёж-1", status="inactive")
        page_found = page(lookups={"sku": "еЖ-1"})
        assert (page_found.plan, page_found.total, page_found.cost.round_trips) == ("look-up", 1, 2)
        assert page(lookups={"sku": "еЖ-1"}, filters={"status": "active"}).total == 0


class TestDeclarations:
    @pytest.mark.parametrize(
        ("wrong", "why"),
        [
            ({"facets": ("category_id", "sku", "barcode", "name")}, "more than three facets"),
            ({"facets": ("colour",), "counted": (), "partitioned": ()}, "it has not"),
            ({"counted": ("sku",), "partitioned": ()}, "that are no facets"),
            ({"numbers": ("price",)}, "numbers that there are not"),
            ({"indexes": (SortIndex("colour"),)}, "by what is no sort"),
            ({"indexes": (SortIndex("price", partition_by="sku"),)}, "by what is not counted"),
            ({"indexes": (SortIndex("price"),) * 5}, "more than four indexes"),
            ({"parent": "category_id"}, "which know no parent"),
            ({"inline_bytes": 500}, "names longer than an entry holds"),
        ],
    )
    def test_a_declaration_that_would_make_wrong_pages_is_refused(
        self, wrong: dict[str, Any], why: str
    ) -> None:
        with pytest.raises(ValueError, match=why):
            replace(PRODUCTS, **({"inline_bytes": 1400} | wrong))

    @pytest.mark.parametrize(
        "options",
        [
            {"filters": {"colour": "red"}},
            {"filters": {"colour": ["red", "blue"]}},
            {"lookups": {"name": "x"}},
            {"ranges": {"stock": (1, 2)}},
            {"present": {"sku": True}},
            {"parent": "c"},
            {"sort": "colour"},
        ],
    )
    def test_an_undeclared_filter_or_sort_is_an_error(self, options: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match="the listing of PRODUCT knows no"):
            page(**options)


@pytest.mark.parametrize(
    "small",
    [0, pytest.param(10**6, marks=pytest.mark.slow)],
    ids=["index scan", "full scan"],
)
class TestConcurrentWrites:
    def test_unchanged_records_are_listed_once_and_in_order(
        self, small: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queries, "SMALL_ROWS", small)
        monkeypatch.setattr(queries, "CONSISTENT_ROWS", 10**6)
        still = Shop().add(30).ids
        counts: list[int] = []

        def write(number: int) -> None:
            for turn in range(4):
                unit = UnitOfWork(WORKSPACE, "test")
                product = PRODUCTS.new(
                    WORKSPACE,
                    name=f"z{number}",
                    price=10**6 + turn,
                    status="active" if turn % 2 else "inactive",
                    sort_order=10**6 + number,
                )
                unit.create(product)
                unit.commit()
                if turn % 2:
                    unit = UnitOfWork(WORKSPACE, "test")
                    product = PRODUCTS.find(WORKSPACE, record_id=product.id)
                    product.name, product.price = f"y{number}", 10**7
                    unit.save(product)
                    unit.commit()
                if turn == 3:
                    unit = UnitOfWork(WORKSPACE, "test")
                    product = PRODUCTS.find(WORKSPACE, record_id=product.id)
                    unit.soft_delete(product, until=clock.now())
                    unit.commit()
            counts.append(number)

        def read(_: int) -> None:
            while len(counts) < 20:
                for sort in ("sortOrder", "name", "price"):
                    pages = [page(sort, page=n, size=7) for n in (1, 2, 3, 4, 5)]
                    ids = [record.id for one in pages for record in one.records]
                    assert ids[:30] == still
                    assert all(30 <= one.total <= 110 for one in pages)

        run_concurrently(21, lambda number: write(number) if number < 20 else read(number))
        assert page().total == 30 + 20 * 3
        everything = [record.id for n in (1, 2, 3, 4, 5) for record in page(page=n).records]
        assert len(everything) == len(set(everything)) == 90
        assert counters.read(WORKSPACE, noun="PRODUCT")["total"] == 90


def test_a_sort_key_fits_the_table_whatever_the_name() -> None:
    row = PRODUCTS.new(WORKSPACE, name="\U0001f9ff" * 255, price=0, status="active", sort_order=0)
    row.status = "s" * 64
    PRODUCTS.set_index_keys(row)
    assert max(len(key.encode()) for key in (row.o1, row.o2, row.o3, row.o4, row.r)) <= 1024
    assert index_entries.NAME_BYTES < 1024 - 64


@contextlib.contextmanager
def unprocessed(keep: Callable[[int], bool]) -> Iterator[list[int]]:
    """Let DynamoDB process only the keys in ``keep`` of a BatchGetItem."""
    sizes: list[int] = []

    def leave(parsed: dict[str, Any], **_: Any) -> None:
        for table, items in parsed["Responses"].items():
            sizes.append(len(items))
            served = [item for number, item in enumerate(items) if keep(number)]
            unserved = [item for item in items if item not in served]
            keys = [{"pk": item["pk"], "sk": item["sk"]} for item in unserved]
            parsed["Responses"][table] = served
            if keys:
                parsed["UnprocessedKeys"] = {table: {"Keys": keys}}

    events = connection().client.meta.events
    events.register("after-call.dynamodb.BatchGetItem", leave)
    try:
        yield sizes
    finally:
        events.unregister("after-call.dynamodb.BatchGetItem", leave)


class TestFaults:
    def test_unprocessed_keys_are_requested_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        slept: list[float] = []
        monkeypatch.setattr(retry, "sleep", slept.append)
        ids = Shop().add(20).ids
        with unprocessed(keep=lambda number: number < 8) as sizes:
            page_found = page()
        assert [record.id for record in page_found.records] == ids
        assert sizes == [20, 12, 4]
        assert len(slept) == 2

    def test_keys_that_stay_unprocessed_are_a_503_and_never_a_shorter_page(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retry, "sleep", lambda _: None)
        Shop().add(20)
        with unprocessed(keep=lambda _: False) as sizes, pytest.raises(UnavailableError):
            page()
        assert len(sizes) == retry.MAX_ATTEMPTS

    @pytest.mark.parametrize("operation", ["Query", "BatchGetItem"])
    @pytest.mark.parametrize("options", [{"sort": "price"}, {"search": "p"}, {"sort": "createdAt"}])
    @pytest.mark.parametrize("failing_call", [0, 1, 2])
    def test_a_failed_read_is_a_503_or_makes_no_difference(
        self,
        operation: str,
        options: dict[str, Any],
        failing_call: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        code = "ProvisionedThroughputExceededException"
        error = ClientError({"Error": {"Code": code, "Message": "slow down"}}, operation)
        monkeypatch.setattr(retry, "sleep", lambda _: None)
        ids = Shop().add(20).ids
        calls, failed = itertools.count(), Counter[bytes]()

        def fail(params: dict[str, Any], **_: Any) -> None:
            if next(calls) >= failing_call:
                failed[params["body"]] += 1
                raise error

        events = connection().client.meta.events
        events.register_first(f"before-call.dynamodb.{operation}", fail)
        try:
            record_ids = [record.id for record in page(**options).records]
        except UnavailableError:
            assert set(failed.values()) == {ATTEMPTS}, "each read that failed was tried three times"
            assert next(calls) == failing_call + ATTEMPTS * len(failed)
            assert len(failed) <= 2, "the reads that run side by side"
        else:
            assert record_ids == ids
            assert not failed
            assert next(calls) <= failing_call
        finally:
            events.unregister(f"before-call.dynamodb.{operation}", fail)

    def test_more_than_a_hundred_records_are_fetched_in_parallel_and_in_order(self) -> None:
        ids = Shop().add(250).ids
        cost = Cost()
        wanted_ids = [*reversed(ids), "unknown"]
        assert [p.id for p in PRODUCTS.fetch(WORKSPACE, wanted_ids, cost)] == ids[::-1]
        assert cost.round_trips == 3


def test_a_process_may_begin_with_a_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    unused = connection.__wrapped__()
    for module in (tables, engine_connection):
        monkeypatch.setattr(module, "connection", lambda: unused)
    for row in (ContentRow, ProductRow):
        monkeypatch.setattr(row, "_connection", None)
    assert PRODUCTS.fetch(WORKSPACE, ["unknown"]) == []


class TestCosts:
    """Read units, which only DynamoDB Local reports correctly. ``make bench`` uses 100,000 rows."""

    def test_page_one_costs_the_same_at_any_size_and_a_search_a_ninth_of_a_scan(
        self, is_dynamodb_local: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not is_dynamodb_local:
            pytest.skip("moto's units mean nothing")
        monkeypatch.undo()
        costs = {}
        # The order of changes has no index: docs/lists.md says what it costs.
        sorts = PRODUCTS.sorts.keys() - {UPDATED_AT}
        for count in (600, 2400):
            sum(seed(f"w{count}", noun="products", count=count))
            for sort in sorts:
                cost = PRODUCTS.page(f"w{count}", Query(1, 20, sort)).cost
                assert cost.units <= 24
                assert cost.round_trips <= 3
                costs[count, sort] = cost
            page_found = PRODUCTS.page(f"w{count}", Query(1, 20, "price", search="no such name"))
            full_cost = Cost()
            list(Partition(PRODUCTS.partition(f"w{count}"), full_cost).items(consistent_read=True))
            assert page_found.cost.units <= full_cost.units / 9
        for sort in sorts:
            assert costs[600, sort].units == pytest.approx(costs[2400, sort].units, abs=1)


@pytest.mark.store
@pytest.mark.parametrize("descending", [True, False])
def test_records_between_two_dates_are_counted_along_their_index(
    database: None, monkeypatch: pytest.MonkeyPatch, descending: bool
) -> None:
    """Leads have an index of keys only, in the order of creation, and the table's own keys."""
    monkeypatch.setattr(queries, "SMALL_ROWS", 5)
    list(seed("w", noun="leads", count=40))
    entries = sorted(LEADS.entries("w"), key=lambda entry: entry.id, reverse=descending)
    first, last = (FIRST_MADE_AT + timedelta(minutes=n) for n in (35, 265))
    expected_ids = [
        entry.id for entry in entries if first_id_at(first) <= entry.id < first_id_at(last)
    ]
    assert 20 < len(expected_ids) < 30
    for number, between in itertools.product((1, 2, 3, 9), (True, False)):
        query = Query(
            page=number,
            size=7,
            sort="createdAt",
            descending=descending,
            ranges={"created_at": (first, last)} if between else {},
        )
        page_found = LEADS.page("w", query)
        expected = expected_ids if between else [entry.id for entry in entries]
        assert page_found.plan == "index scan"
        assert page_found.total == len(expected)
        assert [row.id for row in page_found.records] == expected[(number - 1) * 7 :][:7]

"""A product's stock, increased and decreased by concurrent calls."""

from collections import Counter
from typing import Any

import pytest

from chalicelib.core import retry
from chalicelib.core.ids import new_id
from chalicelib.domains.catalog.flows import stock as stock_changes
from chalicelib.domains.catalog.store.products import PRODUCTS
from chalicelib.engine.listing import counters
from tests.conftest import Answer, Api, Owner, run_concurrently
from tests.factories.products import (
    BULK,
    CREATE,
    REORDER,
    UPDATE,
    create,
    create_category,
    list_products,
    names,
    read,
    update,
)
from tests.support.warned import warned


class TestStockDelta:
    def test_a_delta_adds_and_subtracts(self, api: Api) -> None:
        product = create(api, stock=5)
        assert update(api, product, stockDelta=-5)["stock"] == 0
        assert update(api, product, stockDelta=7)["stock"] == 7
        assert update(api, product, stockDelta=0)["stock"] == 7
        assert read(api, product)["stock"] == 7

    def test_a_delta_combines_with_other_changes(self, api: Api) -> None:
        product = create(api, stock=5)
        updated_product = update(api, product, stockDelta=-2, price=9)
        assert (updated_product["stock"], updated_product["price"]) == (3, 9)
        assert read(api, product) == updated_product

    @pytest.mark.parametrize("more", [{}, {"price": 9}])
    def test_a_stock_below_zero_is_409_with_the_current_stock(self, more: Any, api: Api) -> None:
        product = create(api, stock=5)
        answer = api.call_refused("POST", UPDATE, {"id": product["id"], "stockDelta": -6, **more})
        assert (answer.status, answer.data["code"]) == (409, "insufficient_stock")
        assert answer.data["stock"] == 5
        assert read(api, product) == product

    @pytest.mark.parametrize("more", [{}, {"price": 9}])
    def test_a_stock_above_the_limit_is_409(self, more: Any, api: Api) -> None:
        product = create(api, stock=10**9)
        body = {"id": product["id"], "stockDelta": 1, **more}
        answer = api.call_refused("POST", UPDATE, body)
        assert (answer.status, answer.data["key"]) == (409, "stock_too_large")
        assert read(api, product) == product

    def test_a_delta_of_an_untracked_stock_is_409(self, api: Api) -> None:
        product = create(api)
        answer = api.call_refused("POST", UPDATE, {"id": product["id"], "stockDelta": 1})
        assert (answer.status, answer.data["code"]) == (409, "conflict")
        assert answer.data["key"] == "stock_not_tracked"


def statuses(answers: list[Answer]) -> Counter[tuple[int, str | None]]:
    return Counter((a.status, a.data.get("code")) for a in answers)


@pytest.mark.store
class TestConcurrency:
    @pytest.mark.slow
    def test_fifty_concurrent_sales_end_exactly_at_zero_stock(self, api: Api) -> None:
        product = create(api, stock=30)
        body = {"id": product["id"], "stockDelta": -1}
        answers = run_concurrently(50, lambda _: api.call("POST", UPDATE, body))
        assert statuses(answers) == {(200, None): 30, (409, "insufficient_stock"): 20}
        assert read(api, product)["stock"] == 0
        reply = [a.data for a in answers if a.status == 200 and "warnings" not in a.data]
        assert len({data["product"]["stock"] for data in reply}) == len(reply)

    def test_concurrent_sales_without_an_expected_stock_are_exact(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stock_changes, "MAX_EXACT_ATTEMPTS", 0)
        product = create(api, stock=30)
        deltas = [-1, 2] * 25

        def act(number: int) -> Answer:
            return api.call("POST", UPDATE, {"id": product["id"], "stockDelta": deltas[number]})

        answers = run_concurrently(50, act)
        assert statuses(answers) == {(200, None): 50}
        assert read(api, product)["stock"] == 30 + sum(deltas)
        changed = [{"code": "stock_changed", "id": product["id"]}]
        assert all(warned(answer.data) == changed for answer in answers)

    def test_a_stock_change_is_not_lost_by_other_concurrent_changes(self, api: Api) -> None:
        product = create(api, stock=100)

        def act(number: int) -> Answer:
            change = {"stockDelta": -1} if number % 2 else {"name": f"Name {number}"}
            return api.call("POST", UPDATE, {"id": product["id"], **change})

        assert statuses(run_concurrently(16, act)) == {(200, None): 16}
        assert read(api, product)["stock"] == 92

    def test_of_many_claims_on_one_sku_one_wins(self, api: Api) -> None:
        body = {"name": "x", "price": 1, "sku": "S"}
        answers = run_concurrently(20, lambda _: api.call("POST", CREATE, body))
        assert statuses(answers) == {(200, None): 1, (409, "sku_taken"): 19}

    def test_concurrent_reorders_of_different_products_are_serialised(self, api: Api) -> None:
        ids = [create(api, str(number))["id"] for number in range(13)]
        groups = [ids[start : start + 3] for start in range(0, 12, 3)]
        answers = run_concurrently(4, lambda n: api.call("POST", REORDER, {"ids": groups[n]}))
        assert statuses(answers) == {(200, None): 4}
        order = [product["id"] for product in list_products(api)]
        assert order[12] == ids[12]
        assert sorted(order[start : start + 3] for start in range(0, 12, 3)) == sorted(groups)

    def test_concurrent_bulk_changes_keep_the_counters_exact(self, api: Api, owner: Owner) -> None:
        ids = [create(api, str(number))["id"] for number in range(30)]

        def act(number: int) -> Answer:
            action = ("activate", "deactivate")[number % 2]
            return api.call("POST", BULK, {"ids": ids, "action": action})

        answers = run_concurrently(6, act)
        assert {a.data["summary"]["failed"] for a in answers} == {0}
        states = Counter(f"status:{product['status']}" for product in list_products(api))
        assert counters.read(owner.workspace.id, noun="PRODUCT") == states | {"total": 30}

    def test_a_bulk_call_repeated_concurrently_under_one_key_runs_once(self, api: Api) -> None:
        ids = [create(api, str(number), 100)["id"] for number in range(30)]
        body = {"ids": ids, "action": "changePricePercent", "value": 10}
        answers = run_concurrently(
            6, lambda _: api.call("POST", BULK, body, {"Idempotency-Key": "k"})
        )
        assert {answer.status for answer in answers} == {200}
        assert len({answer.body for answer in answers}) == 1
        assert {product["price"] for product in list_products(api)} == {110}

    def test_items_that_keep_conflicting_until_the_deadline_are_503(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retry, "sleep", lambda _: None)
        product = create(api)
        fetch = PRODUCTS.fetch

        def stale(self: Any, workspace_id: str, ids: Any, *more: Any) -> Any:
            products = fetch(workspace_id, ids)
            update(api, product, name=f"Name {new_id()}")
            return products

        monkeypatch.setattr(type(PRODUCTS), "fetch", stale)
        answer = api.post(BULK, {"ids": [product["id"]], "action": "setPrice", "value": 7})
        assert [result["status"] for result in answer["results"]] == [503]


class TestFilteringByStock:
    @pytest.fixture
    def stocked_category(self, api: Api) -> str:
        category = create_category(api)
        for name, stock in (("none", 0), ("one", 1), ("five", 5), ("untracked", None)):
            create(api, name=name, stock=stock, categoryId=category)
        return category

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ({"inStock": "true"}, "five one untracked"),
            ({"inStock": "false"}, "none"),
            ({"maxStock": 1}, "none one"),
            ({"maxStock": 1, "inStock": "true"}, "one"),
            ({"maxStock": 0, "inStock": "true"}, ""),
            ({"maxStock": 3, "inStock": "false"}, "none"),
        ],
    )
    def test_the_stock_filter_lists_matching_products(
        self, query: dict[str, Any], expected: str, api: Api, stocked_category: str
    ) -> None:
        assert names(api, sort="name", **query) == expected
        assert names(api, sort="name", categoryId=stocked_category, **query) == expected

    def test_the_stock_filter_reflects_every_way_of_changing_the_stock(
        self, api: Api, stocked_category: str
    ) -> None:
        (one,) = list_products(api, maxStock=1, inStock="true")
        update(api, one, stockDelta=-1)
        for query in ({}, {"categoryId": stocked_category}):
            assert names(api, sort="name", inStock="false", **query) == "none one"
        update(api, one, stockDelta=7, price=9)
        update(api, one, stockDelta=1)
        for query in ({}, {"categoryId": stocked_category}):
            assert names(api, sort="name", maxStock=8, inStock="true", **query) == "five one"
            assert "one" not in names(api, maxStock=7, **query).split()
        update(api, one, stock=None)
        for query in ({}, {"categoryId": stocked_category}):
            assert "one" not in names(api, maxStock=10**9, **query).split()
            assert "one" in names(api, inStock="true", **query).split()

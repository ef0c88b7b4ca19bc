"""Tests of reordering and changing many products in one call."""

import itertools
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.errors import UnavailableError
from chalicelib.core.ids import new_id
from chalicelib.domains.catalog.store.products import PRODUCTS
from chalicelib.engine import jobs
from chalicelib.engine.listing import counters
from chalicelib.engine.unit import UnitOfWork
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, all_rows
from tests.factories.products import (
    BULK,
    EAN,
    REORDER,
    create,
    create_category,
    create_many,
    list_products,
    names,
    read,
    refusal,
    refused_field,
)
from tests.support.effort import examples
from tests.support.warned import warned


class TestReorderProducts:
    def test_the_listed_products_come_first_and_the_rest_keep_their_order(self, api: Api) -> None:
        ids = {name: create(api, name)["id"] for name in "ABCDE"}
        answer = api.post(REORDER, {"ids": [ids["D"], ids["B"]]})
        assert names(api) == "D B A C E"
        assert [place["id"] for place in answer["products"]] == [ids["D"], ids["B"]]
        orders = {product["id"]: product["sortOrder"] for product in list_products(api)}
        assert all(orders[place["id"]] == place["sortOrder"] for place in answer["products"])

    def test_only_moved_products_are_rewritten(self, api: Api) -> None:
        ids = [create(api, name)["id"] for name in "ABCDE"]
        products_before = {p["id"]: p for p in list_products(api)}
        api.post(REORDER, {"ids": [ids[1], ids[2], ids[0], ids[3], ids[4]]})
        assert names(api) == "B C A D E"
        assert [p["name"] for p in list_products(api) if p != products_before[p["id"]]] == ["A"]

    def test_reordering_products_already_in_order_writes_nothing(self, api: Api) -> None:
        ids = [create(api, name)["id"] for name in "ABC"]
        rows_before = all_rows()
        api.post(REORDER, {"ids": ids[:2]})
        assert all_rows().keys() == rows_before.keys()

    def test_the_runner_finishes_a_reorder_too_large_for_a_transaction(
        self, time: Time, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bread = create_category(api)
        ids = create_many(owner, 60, category_id=bread)
        with monkeypatch.context() as killed:
            killed.setattr(jobs, "attempt", lambda *_: False)
            api.post(REORDER, {"ids": ids[::-1]})
        assert run_jobs()["late-entries"] == 1
        assert [p["id"] for p in list_products(api, categoryId=bread, size=60)] == ids[::-1]

    def test_reordering_a_category_leaves_other_products_alone(self, api: Api) -> None:
        bread = create_category(api)
        ids = {
            name: create(api, name, categoryId=bread if name in "BDF" else None)["id"]
            for name in "ABCDEF"
        }
        api.post(REORDER, {"ids": [ids["F"], ids["D"]], "categoryId": bread})
        assert names(api, categoryId=bread) == "F D B"
        assert [n for n in names(api).split() if n in "ACE"] == ["A", "C", "E"]

    @pytest.mark.parametrize("price", [1, 10**11])
    def test_products_come_first_in_their_category_at_any_price(self, price: int, api: Api) -> None:
        create(api, "outside", price)
        bread = create_category(api)
        ids = {name: create(api, name, price, categoryId=bread)["id"] for name in "ABC"}
        orders = []
        for first in ("C", "B", "A", "BC"):
            api.post(REORDER, {"ids": [ids[name] for name in first], "categoryId": bread})
            orders.append(names(api, categoryId=bread))
        assert orders == ["C A B", "B C A", "A B C", "B C A"]

    def test_only_products_of_the_category_are_accepted(self, api: Api) -> None:
        bread = create_category(api)
        inside, outside = create(api, categoryId=bread)["id"], create(api)["id"]
        body = {"ids": [inside, outside], "categoryId": bread}
        answer = api.call_refused("POST", REORDER, body)
        assert answer.status == 404
        assert outside in answer.data["message"]
        assert inside not in answer.data["message"]
        assert refusal(api, REORDER, {"ids": [inside], "categoryId": new_id()})[0] == 404

    def test_reordering_ninety_products_fits_a_transaction(self, api: Api, owner: Owner) -> None:
        bread = create_category(api)
        ids = create_many(owner, 90, category_id=bread)[::-1]
        api.post(REORDER, {"ids": ids, "categoryId": bread})
        assert [product["id"] for product in list_products(api)] == ids

    @pytest.mark.slow
    def test_moving_ninety_long_products_does_not_write_their_descriptions(
        self, api: Api, owner: Owner
    ) -> None:
        ids = create_many(owner, 90, description="ー" * 20_000)[::-1]
        api.post(REORDER, {"ids": ids})
        products = PRODUCTS.fetch(owner.workspace.id, ids)
        assert [product.id for product in sorted(products, key=lambda p: p.sort_order)] == ids
        assert {product.description for product in products} == {"ー" * 20_000}

    def test_a_reorder_without_room_before_the_first_product_is_409(
        self, api: Api, owner: Owner
    ) -> None:
        lowest, other = create(api, "A"), create(api, "B")
        unit = UnitOfWork(owner.workspace.id, "test")
        product = PRODUCTS.find(owner.workspace.id, record_id=lowest["id"])
        assert product is not None
        product.sort_order = -(2**52)
        unit.save(product)
        unit.commit()
        assert refusal(api, REORDER, {"ids": [other["id"]]}) == (409, "conflict")

    @examples(20)
    @given(moves=st.lists(st.tuples(st.permutations(range(6)), st.integers(1, 6)), max_size=5))
    def test_any_sequence_of_reorders_matches_a_plain_list(
        self, moves: list[tuple[list[int], int]], new_owner: Any
    ) -> None:
        owner = new_owner()
        api, model = owner.api(), create_many(owner, 6, sort_order=lambda number: number // 2)
        first = list(model)
        for order, count in moves:
            ids = [first[number] for number in order[:count]]
            api.post(REORDER, {"ids": ids})
            model = ids + [product for product in model if product not in ids]
            assert [product["id"] for product in list_products(api)] == model


def outcomes(answer: Any) -> list[tuple[int, str]]:
    return [(result["status"], result["message"].split(".")[0]) for result in answer["results"]]


class TestBulkProducts:
    @pytest.fixture
    def products(self, api: Api) -> list[Any]:
        """Three products. The last one is inactive."""
        return [
            create(api, "A", 105, stock=1),
            create(api, "B", 15, sku="B"),
            create(api, "C", 0, status="inactive"),
        ]

    def bulk(self, api: Api, products: list[Any], action: str, **more: Any) -> Any:
        ids = [product["id"] for product in products]
        return api.post(BULK, {"ids": ids, "action": action, **more})

    @pytest.mark.parametrize(
        ("action", "more", "field", "new"),
        [
            ("activate", {}, "status", ["active"] * 3),
            ("deactivate", {}, "status", ["inactive"] * 3),
            ("setPrice", {"value": 7}, "price", [7, 7, 7]),
            ("changePricePercent", {"value": -10}, "price", [95, 14, 0]),
            ("changePricePercent", {"value": 12.5}, "price", [118, 17, 0]),
            ("changePricePercent", {"value": -100}, "price", [0, 0, 0]),
            ("changePricePercent", {"value": 1000}, "price", [1155, 165, 0]),
            ("setStock", {"value": 4}, "stock", [4, 4, 4]),
            ("setStock", {"value": None}, "stock", [None, None, None]),
        ],
    )
    def test_the_action_is_applied_to_each_product(
        self, action: str, more: Any, field: str, new: Any, api: Api, products: list[Any]
    ) -> None:
        old = [product[field] for product in products]
        answer = self.bulk(api, products, action, **more)
        words = ["unchanged" if b == a else "changed" for b, a in zip(old, new, strict=True)]
        assert outcomes(answer) == [(200, word) for word in words]
        assert [result["before"] for result in answer["results"]] == old
        assert [result["after"] for result in answer["results"]] == new
        assert answer["summary"] == {"ok": 3, "failed": 0}
        assert [product[field] for product in list_products(api)] == new

    def test_a_bulk_action_moves_products_into_and_out_of_a_category(
        self, api: Api, products: list[Any]
    ) -> None:
        bread = create_category(api)
        self.bulk(api, products, "setCategory", value=bread)
        assert names(api, categoryId=bread) == "A B C"
        self.bulk(api, products[:1], "setCategory", value=None)
        assert names(api, categoryId=bread) == "B C"

    def test_an_unknown_or_foreign_id_fails_alone(
        self, api: Api, products: list[Any], new_owner: Any
    ) -> None:
        strange = [create(new_owner().api()), {"id": new_id()}]
        answer = self.bulk(api, [products[0], *strange, products[1]], "setPrice", value=7)
        missing = (404, "No product has this id in the workspace")
        assert outcomes(answer) == [(200, "changed"), missing, missing, (200, "changed")]
        assert answer["summary"] == {"ok": 2, "failed": 2}
        assert answer["status"] is True

    def test_a_price_above_the_limit_fails_alone(self, api: Api, products: list[Any]) -> None:
        dear = create(api, "D", 10**11)
        answer = self.bulk(api, [dear, products[0]], "changePricePercent", value=1)
        assert [result["status"] for result in answer["results"]] == [400, 200]
        assert "100,000,000,000" in answer["results"][0]["message"]
        assert [result["after"] for result in answer["results"]] == [None, 106]
        assert read(api, dear) == dear

    def test_products_are_deleted_when_confirmed(self, api: Api, products: list[Any]) -> None:
        body = {"ids": [product["id"] for product in products], "action": "delete"}
        assert refusal(api, BULK, body) == (400, "confirmation_required")
        assert len(list_products(api)) == 3
        answer = api.post(BULK, body | {"confirm": True})
        assert outcomes(answer) == [(200, "deleted")] * 3
        assert list_products(api) == []
        create(api, sku="b")

    @pytest.mark.parametrize(
        ("action", "value", "done_message", "would"),
        [
            ("delete", None, "deleted", "would be deleted"),
            ("setPrice", 15, "changed", "would change"),
            ("changePricePercent", 10, "changed", "would change"),
            ("deactivate", None, "changed", "would change"),
        ],
    )
    def test_a_dry_run_changes_nothing_and_reports_the_changes(
        self, action: str, value: Any, done_message: str, would: str, api: Api, products: list[Any]
    ) -> None:
        more = {"confirm": True} | ({} if value is None else {"value": value})
        both = [*products, {"id": new_id()}]
        rows_before = all_rows()
        dry = self.bulk(api, both, action, **more, dryRun=True)
        assert all_rows() == rows_before
        real = self.bulk(api, both, action, **more)
        assert {result["message"] for result in real["results"][:3]} <= {done_message, "unchanged"}
        codes = [result["code"] for result in real["results"]]
        assert codes == [*(result["message"] for result in real["results"][:3]), "not_found"]
        for one, other in zip(dry["results"], real["results"], strict=True):
            assert one["message"] == {done_message: would}.get(other["message"], other["message"])
            assert one | {"message": ""} == other | {"message": ""}

    def test_a_deletion_names_the_deleted_products(self, api: Api, products: list[Any]) -> None:
        dry = self.bulk(api, products, "delete", dryRun=True)["results"]
        assert [(row["before"], row["after"]) for row in dry] == [(name, None) for name in "ABC"]

    @pytest.mark.parametrize(
        ("action", "value"),
        [
            ("setPrice", None),
            ("setPrice", -1),
            ("setPrice", 1.5),
            ("setPrice", "7"),
            ("setPrice", 10**11 + 1),
            ("setStock", -1),
            ("setStock", "1"),
            ("setCategory", 5),
            ("setCategory", ""),
            ("changePricePercent", "10%"),
            ("changePricePercent", None),
            ("changePricePercent", 1000.01),
            ("changePricePercent", -100.01),
            ("changePricePercent", True),
        ],
    )
    def test_a_value_of_the_wrong_type_for_the_action_is_refused(
        self, action: str, value: Any, api: Api, products: list[Any]
    ) -> None:
        body = {"ids": [products[0]["id"]], "action": action, "value": value}
        assert refused_field(api, BULK, body)["field"] == "value"
        assert read(api, products[0]) == products[0]

    @pytest.mark.parametrize(
        "action", ["setPrice", "setStock", "setCategory", "changePricePercent"]
    )
    def test_an_action_without_its_required_value_is_refused(
        self, action: str, api: Api, products: list[Any]
    ) -> None:
        error = refused_field(api, BULK, {"ids": [products[0]["id"]], "action": action})
        assert error == {"field": "value", "message": "is required", "key": "required"}

    def test_a_value_without_effect_is_a_warning(self, api: Api, products: list[Any]) -> None:
        answer = self.bulk(api, products, "activate", value=1)
        assert warned(answer) == [{"code": "field_ignored", "field": "value"}]

    def test_an_id_that_is_not_valid_fails_alone(self, api: Api, products: list[Any]) -> None:
        ids = [products[0]["id"], "", "x" * 70, 5, products[1]["id"]]
        for dry in (True, False):
            body = {"ids": ids, "action": "setPrice", "value": 7, "dryRun": dry}
            answer = api.post(BULK, body)
            assert [result["status"] for result in answer["results"]] == [200, 400, 400, 400, 200]
            assert [result["id"] for result in answer["results"]] == [
                products[0]["id"],
                "",
                "x" * 64,
                "",
                products[1]["id"],
            ]
            keys = [result["key"] for result in answer["results"]]
            assert keys == [None, "too_short", "too_long", "invalid_type", None]
            assert answer["summary"] == {"ok": 2, "failed": 3}
        assert [read(api, product)["price"] for product in products[:2]] == [7, 7]

    def test_a_hundred_products_are_deleted_in_one_call(self, api: Api, owner: Owner) -> None:
        product_ids = hundred(owner)
        body = {"ids": product_ids, "action": "delete", "confirm": True}
        assert api.post(BULK, body)["summary"] == {"ok": 100, "failed": 0}
        assert counters.read(owner.workspace.id, noun="PRODUCT") == {}

    def test_a_failure_midway_is_reported_and_the_rest_is_done(
        self, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        product_ids = hundred(owner)
        commit, commits = UnitOfWork.commit, itertools.count()

        def fail_once(unit: UnitOfWork, *args: Any) -> None:
            if next(commits) == 1:
                raise UnavailableError
            commit(unit, *args)

        monkeypatch.setattr(UnitOfWork, "commit", fail_once)
        answer = api.post(BULK, {"ids": product_ids, "action": "setPrice", "value": 7})
        assert [r["status"] for r in answer["results"]] == [200] * 15 + [503] * 15 + [200] * 70
        assert answer["summary"] == {"ok": 85, "failed": 15}

    @pytest.mark.slow
    def test_a_call_that_died_continues_under_its_key(
        self, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Prices are raised once, even if the first call stopped in between."""
        product_ids = hundred(owner)
        body = {"ids": product_ids, "action": "changePricePercent", "value": 10}
        commit, commits = UnitOfWork.commit, itertools.count()

        def die(unit: UnitOfWork, *args: Any) -> None:
            if next(commits) == 3:
                raise KeyboardInterrupt
            commit(unit, *args)

        with monkeypatch.context() as dying:
            dying.setattr(UnitOfWork, "commit", die)
            with pytest.raises(KeyboardInterrupt):
                api.call("POST", BULK, body, {"Idempotency-Key": "k"})
        assert Counter(p["price"] for p in list_products(api)) == {110: 45, 100: 55}
        other = api.call_refused("POST", BULK, body | {"value": 20}, **{"Idempotency-Key": "k"})
        assert (other.status, other.data["code"]) == (409, "idempotency_mismatch")
        assert Counter(p["price"] for p in list_products(api)) == {110: 45, 100: 55}
        answer = api.post(BULK, body, key="k")
        assert answer["summary"] == {"ok": 100, "failed": 0}
        assert {p["price"] for p in list_products(api)} == {110}
        assert api.post(BULK, body, key="k") == answer
        assert {p["price"] for p in list_products(api)} == {110}


def hundred(owner: Owner) -> list[str]:
    """Create a hundred products with SKU and barcode, so that each writes the most items."""
    return create_many(owner, 100, sku=lambda number: f"S{number}", barcode=EAN)

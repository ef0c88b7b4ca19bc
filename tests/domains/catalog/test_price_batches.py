"""Prices of many records change by a rule, each once from the price that was seen."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.wire.money import MAX_KOPECKS
from chalicelib.domains.catalog.rules.price_changes import PriceRule
from tests.conftest import Api

PRODUCTS, SERVICES = "/api/products/change-prices", "/api/services/change-prices"


def make(api: Api, *prices: int) -> list[str]:
    return [
        api.post("/api/products/create", {"name": f"P{number}", "price": price})["product"]["id"]
        for number, price in enumerate(prices)
    ]


def price_of(api: Api, product_id: str) -> int:
    price: int = api.get(f"/api/products/{product_id}")["product"]["price"]
    return price


def seen(ids: list[str], *prices: int) -> list[dict[str, Any]]:
    return [{"id": i, "price": price} for i, price in zip(ids, prices, strict=True)]


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        (PriceRule(percent=10), 995, 1095),  # 1094.5: a half is rounded up
        (PriceRule(percent=0.1), 995, 996),
        (PriceRule(percent=-100), 995, 0),
        (PriceRule(percent=5, step=5_000), 149_000, 155_000),
        (PriceRule(percent=5, step=5_000, rounding="down"), 149_000, 155_000),
        (PriceRule(percent=5, step=5_000, rounding="up"), 149_000, 160_000),
        (PriceRule(amount=-500), 300, 0),
        (PriceRule(amount=-500, step=700, rounding="up"), 300, 0),
        (PriceRule(amount=250, step=1_000), 250, 1_000),
    ],
)
def test_a_rule_computes_exactly_and_rounds_once(rule: PriceRule, before: int, after: int) -> None:
    assert rule.apply(before) == after


@given(
    price=st.integers(0, MAX_KOPECKS),
    hundredths=st.integers(-10_000, 100_000),
    step=st.integers(1, 10**6),
    rounding=st.sampled_from(["nearest", "up", "down"]),
)
def test_a_new_price_is_a_multiple_at_most_one_step_from_the_exact_one(
    price: int, hundredths: int, step: int, rounding: Any
) -> None:
    new = PriceRule(percent=hundredths / 100, step=step, rounding=rounding).apply(price)
    exact = price * (10_000 + hundredths)  # ten thousandths
    assert new >= 0
    assert new % step == 0
    distance, whole = 10_000 * new - exact, 10_000 * step
    low, high = {
        "nearest": (-whole // 2, whole // 2),
        "up": (0, whole - 1),
        "down": (1 - whole, 0),
    }[rounding]
    assert low <= distance <= high


def test_a_dry_run_returns_old_and_new_prices_and_changes_nothing(api: Api) -> None:
    ids = make(api, 10_000, 0)
    items = [{"id": product_id} for product_id in ids]
    answer = api.post(PRODUCTS, {"items": items, "percent": 10, "dryRun": True})
    assert [(r["code"], r["before"], r["after"]) for r in answer["results"]] == [
        ("changed", 10_000, 11_000),
        ("unchanged", 0, 0),
    ]
    assert price_of(api, ids[0]) == 10_000


def test_a_call_that_is_sent_twice_raises_no_price_twice(api: Api) -> None:
    ids = make(api, 10_000, 20_000)
    body = {"items": seen(ids, 10_000, 20_000), "percent": 10}
    assert api.post(PRODUCTS, body)["summary"] == {"ok": 2, "failed": 0}
    again = api.post(PRODUCTS, body)
    assert [(r["status"], r["code"], r["before"]) for r in again["results"]] == [
        (409, "price_changed", 11_000),
        (409, "price_changed", 22_000),
    ]
    assert [price_of(api, product_id) for product_id in ids] == [11_000, 22_000]


def test_a_price_that_was_changed_meanwhile_is_refused_alone(api: Api) -> None:
    ids = make(api, 10_000, 20_000)
    api.post("/api/products/update", {"id": ids[0], "price": 50_000})
    answer = api.post(PRODUCTS, {"items": seen(ids, 10_000, 20_000), "amount": -5_000})
    assert [r["code"] for r in answer["results"]] == ["price_changed", "changed"]
    assert [price_of(api, product_id) for product_id in ids] == [50_000, 15_000]


def test_a_price_above_the_limit_and_an_unknown_record_fail_alone(api: Api) -> None:
    ids = [*make(api, MAX_KOPECKS, 10_000), "nothing"]
    answer = api.post(PRODUCTS, {"items": seen(ids, MAX_KOPECKS, 10_000, 5), "percent": 1})
    assert [(r["status"], r["code"]) for r in answer["results"]] == [
        (400, "validation_error"),
        (200, "changed"),
        (404, "not_found"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"percent": 10, "amount": 5},
        {},
        {"percent": -101},
        {"percent": 10, "roundTo": 0},
        {"percent": 10, "items": [{"id": "ID"}]},
        {"percent": 10, "items": [{"id": "ID", "price": 1}, {"id": "ID", "price": 1}]},
    ],
)
def test_a_rule_without_one_change_or_without_seen_prices_is_refused(
    change: dict[str, Any], api: Api
) -> None:
    (product_id,) = make(api, 10_000)
    body = {"items": [{"id": product_id, "price": 10_000}], **change}
    assert api.call_refused("POST", PRODUCTS, body).status == 400
    assert price_of(api, product_id) == 10_000


def test_prices_of_more_records_than_one_transaction_has_change(api: Api) -> None:
    ids = make(api, *[10_000] * 17)
    answer = api.post(PRODUCTS, {"items": seen(ids, *[10_000] * 17), "percent": 1})
    assert answer["summary"] == {"ok": 17, "failed": 0}
    assert {price_of(api, product_id) for product_id in ids} == {10_100}


def test_prices_of_services_change_as_those_of_products(api: Api) -> None:
    made = api.post("/api/services/create", {"name": "Cut", "durationMin": 60, "price": 149_000})
    service_id = made["service"]["id"]
    items = [{"id": service_id, "price": 149_000}]
    body = {"items": items, "percent": 5, "roundTo": 5_000, "rounding": "up"}
    (outcome,) = api.post(SERVICES, body)["results"]
    assert (outcome["before"], outcome["after"]) == (149_000, 160_000)
    assert api.get(f"/api/services/{service_id}")["service"]["price"] == 160_000

"""Orders in submissions of forms."""

import json
from typing import Any

import pytest

from chalicelib.core.errors import ValidationError
from tests.conftest import Api
from tests.factories.examples import submit
from tests.factories.forms import new_form

ORDER_FORM = {"title": "Заказ", "fields": [{"name": "phone", "label": "Телефон", "type": "phone"}]}


def product(api: Api, **fields: Any) -> str:
    body = {"name": "Rye", "price": 9900} | fields
    product_id: str = api.post("/api/products/create", body)["product"]["id"]
    return product_id


def lead(api: Api, lead_id: str) -> Any:
    return api.get(f"/api/forms/collection/{lead_id}")["lead"]


def leads(api: Api) -> Any:
    return api.get("/api/forms/collection-list")["collections"]


class TestOrderSubmission:
    def test_names_and_prices_come_from_the_catalogue(self, api: Api) -> None:
        form, rye = new_form(api, **ORDER_FORM), product(api)
        line = {"productId": rye, "quantity": 3, "name": "Gold", "price": 1}
        lead_id = submit(form, phone="8 916 123-45-67", items=[line])
        api.post("/api/products/update", {"id": rye, "price": 1, "name": "New"})
        (item,) = lead(api, lead_id)["data"]["items"]
        assert item == {"productId": rye, "name": "Rye", "quantity": 3, "price": 9900}

    def test_order_lines_are_accepted_as_json_text_from_a_form_without_script(
        self, api: Api
    ) -> None:
        form, rye = new_form(api, **ORDER_FORM), product(api)
        lines = json.dumps([{"productId": rye, "quantity": "2"}, {"productId": rye}])
        items = lead(api, submit(form, items=lines))["data"]["items"]
        assert [item["quantity"] for item in items] == [2, 1]

    @pytest.mark.parametrize(
        ("items", "field"),
        [
            ("rye", "items"),
            ({"productId": "x"}, "items"),
            (["x"], "items"),
            ([{"productId": "x"}], "items.0.productId"),
            ([{"quantity": 1}], "items.0.productId"),
            ([{"productId": 5}], "items.0.productId"),
            ([{"productId": ["x"]}], "items.0.productId"),
            ([{"productId": "{rye}", "quantity": 0}], "items.0.quantity"),
            ([{"productId": "{rye}", "quantity": -1}], "items.0.quantity"),
            ([{"productId": "{rye}", "quantity": 1.5}], "items.0.quantity"),
            ([{"productId": "{rye}", "quantity": True}], "items.0.quantity"),
            ([{"productId": "{rye}"}, {"productId": "{off}"}], "items.1.productId"),
            ([{"productId": "{rye}"}] * 51, "items"),
        ],
    )
    def test_an_invalid_order_is_refused(self, items: Any, field: str, api: Api) -> None:
        rye, off = product(api), product(api, status="inactive")
        sent_items = json.loads(json.dumps(items).replace("{rye}", rye).replace("{off}", off))
        with pytest.raises(ValidationError) as caught:
            submit(new_form(api, **ORDER_FORM), items=sent_items)
        (error,) = caught.value.errors
        assert error.field == field
        assert leads(api) == []

    def test_products_of_another_workspace_cannot_be_ordered(
        self, api: Api, new_owner: Any
    ) -> None:
        theirs = product(new_owner().api())
        with pytest.raises(ValidationError):
            submit(new_form(api, **ORDER_FORM), items=[{"productId": theirs}])

"""Orders that a bot proposes in a chat, and the form that takes them."""

from typing import Any

import pytest

from tests.conftest import Api
from tests.factories.chat import (
    Bot,
    ask,
)
from tests.factories.proposals import (
    ADA,
    ASKED,
    END,
    FEATURES,
    call,
    card,
    decide,
    path,
    proposed,
    refuse_decision,
)
from tests.transports.chat.endpoint.conftest import Script

pytestmark = [
    pytest.mark.store,
    pytest.mark.usefixtures("database", "model_takes_tools", "all_capabilities", "monday"),
]


@pytest.fixture
def order_form(api: Api, bot: Bot) -> str:
    fields = [
        {"name": "name", "label": "Your name", "type": "text", "required": True},
        {"name": "phone", "label": "Phone", "type": "phone", "required": True},
        {"name": "address", "label": "Address", "type": "textarea", "required": True},
        {"name": "note", "label": "Note", "type": "text"},
        {"name": "agree", "label": "I agree to the terms.", "type": "consent", "required": True},
    ]
    form_id: str = api.post("/api/forms/create", {"title": "Order", "fields": fields})["form"]["id"]
    api.call("PUT", f"/api/agents/{bot.id}", {"orderFormId": form_id})
    return form_id


def form_of_orders(api: Api, bot: Bot, *fields: dict[str, Any]) -> None:
    form_id = api.post("/api/forms/create", {"title": "Order", "fields": [*fields]})["form"]["id"]
    api.call("PUT", f"/api/agents/{bot.id}", {"orderFormId": form_id})


class TestOrders:
    def test_a_visitor_confirms_an_order(
        self, bot: Bot, api: Api, order_form: str, script: Script
    ) -> None:
        for name, price in (("Rye bread", 12_000), ("Wheat rolls", 4_000)):
            api.post("/api/products/create", {"name": name, "price": price})
        items = [{"product": "rye", "quantity": 2}, {"product": "Wheat rolls"}]
        reply = proposed(script, bot, call("propose_order", items=items, **ADA))
        shown_card = card(reply)
        assert [detail["label"] for detail in shown_card["details"]] == [
            *("Rye bread", "Wheat rolls", "Total", "Your name", "Phone"),
        ]
        assert "280" in shown_card["details"][2]["value"]
        assert [field["name"] for field in shown_card["fields"]] == ["address"]
        assert shown_card["consent"]["text"] == "I agree to the terms."
        assert refuse_decision(api, reply).status == 400
        decision = decide(api, reply, values={"address": "Nevsky 1", "note": "ignored"})
        lead = api.get(f"/api/forms/collection/{decision['orderId']}")["lead"]
        assert [(line["name"], line["quantity"]) for line in lead["data"]["items"]] == [
            ("Rye bread", 2),
            ("Wheat rolls", 1),
        ]
        assert lead["data"]["address"] == "Nevsky 1"
        assert lead["data"]["agree"]["label"] == "I agree to the terms."
        assert "note" not in lead["data"]
        assert decide(api, reply) == decision

    @pytest.mark.parametrize(
        ("currency", "line", "total"),
        [
            ("GBP", "2 × £12.50", "£25"),
            ("JPY", "2 × ¥1,250", "¥2,500"),
            ("KWD", "2 × KWD\u00a01.250", "KWD\u00a02.500"),
        ],
    )
    def test_the_card_of_an_order_has_prices_in_the_workspaces_currency(
        self,
        currency: str,
        line: str,
        total: str,
        bot: Bot,
        api: Api,
        order_form: str,
        script: Script,
    ) -> None:
        api.post("/api/workspace/update", {"currency": currency})
        api.post("/api/products/create", {"name": "Rye bread", "price": 1_250})
        items = [{"product": "rye", "quantity": 2}]
        reply = proposed(script, bot, call("propose_order", items=items, **ADA))
        shown = {detail["label"]: detail["value"] for detail in card(reply)["details"]}
        assert (shown["Rye bread"], shown["Total"]) == (line, total)
        decision = decide(api, reply, values={"address": "Nevsky 1"})
        lead = api.get(f"/api/forms/collection/{decision['orderId']}")["lead"]
        assert [item["price"] for item in lead["data"]["items"]] == [1_250]

    @pytest.mark.parametrize("is_known", [True, False])
    def test_an_order_names_only_a_client_that_its_dialog_created(
        self, is_known: bool, bot: Bot, api: Api, order_form: str, script: Script
    ) -> None:
        api.post("/api/products/create", {"name": "Rye", "price": 12_000})
        if is_known:
            ask(bot, "Call me at +7 495 123-45-67")
        reply = proposed(script, bot, call("propose_order", items=[{"product": "rye"}], **ADA))
        decide(api, reply, values={"address": "Nevsky 1"})
        (client,) = api.get("/api/clients/list")["clients"]
        assert client["name"] == (None if is_known else "Ada Lovelace")

    def test_a_changed_price_is_not_ordered(
        self, bot: Bot, api: Api, order_form: str, script: Script
    ) -> None:
        product = api.post("/api/products/create", {"name": "Rye", "price": 12_000})["product"]
        reply = proposed(script, bot, call("propose_order", items=[{"product": "rye"}], **ADA))
        api.post("/api/products/update", {"id": product["id"], "price": 13_000})
        assert refuse_decision(api, reply, values={"address": "x"}).data["code"] == "changed"
        assert api.get("/api/forms/collection-list")["total"] == 1, "only the lead of the contact"

    def test_an_order_in_a_form_that_was_deleted_has_ended(
        self, bot: Bot, api: Api, order_form: str, script: Script
    ) -> None:
        api.post("/api/products/create", {"name": "Rye", "price": 12_000})
        reply = proposed(script, bot, call("propose_order", items=[{"product": "rye"}], **ADA))
        api.post("/api/forms/delete", {"id": order_form})
        answer = refuse_decision(api, reply, values={"address": "x"})
        assert (answer.status, answer.data["code"]) == (409, "action_ended")

    @pytest.mark.parametrize("wrong", [{"product": "granite"}, {"product": "rye", "quantity": 3}])
    def test_what_is_not_sold_or_not_in_stock_is_not_proposed(
        self, wrong: dict[str, Any], bot: Bot, api: Api, order_form: str, script: Script
    ) -> None:
        api.post("/api/products/create", {"name": "Rye", "price": 12_000, "stock": 2})
        reply = proposed(script, bot, call("propose_order", items=[wrong], **ADA))
        assert all(event["type"] != "action" for event in reply.events)

    @pytest.mark.parametrize(
        ("stock", "stock_for_model"),
        [(37, "Fewer than 900 of Rye are in stock."), (0, "None of Rye are in stock.")],
    )
    def test_a_model_does_not_learn_the_exact_stock(
        self, stock: int, stock_for_model: str, bot: Bot, api: Api, order_form: str, script: Script
    ) -> None:
        api.post("/api/products/create", {"name": "Rye", "price": 12_000, "stock": stock})
        order = call("propose_order", items=[{"product": "rye", "quantity": 900}], **ADA)
        model = script(order, END, "Sorry.", END)
        ask(bot, ASKED, features=FEATURES)
        result = model.inputs[-1][-1].results[0]
        assert (result.is_error, result.content) == (True, stock_for_model)
        assert "37" not in str(model.inputs)

    def test_the_name_is_only_taken_over_into_a_text_with_this_name(
        self, bot: Bot, api: Api, script: Script
    ) -> None:
        api.post("/api/products/create", {"name": "Rye", "price": 12_000})
        city = {"name": "city", "label": "City", "type": "text", "required": True}
        choice = {"label": "Call me", "type": "select", "options": ["Sir"], "required": True}
        for kind, card_fields in (({"type": "text"}, ["city"]), (choice, ["city", "name"])):
            form_of_orders(api, bot, city, {"name": "name", **kind})
            order = call("propose_order", items=[{"product": "rye"}], **ADA)
            assert [
                field["name"] for field in card(proposed(script, bot, order))["fields"]
            ] == card_fields

    def test_a_phone_with_an_extension_is_taken_over(
        self, bot: Bot, api: Api, script: Script
    ) -> None:
        api.post("/api/products/create", {"name": "Rye", "price": 0})
        form_of_orders(api, bot, {"name": "phone", "type": "phone", "required": True})
        phone = "+7 495 123-45-67 ext. 12"
        order = call("propose_order", items=[{"product": "rye"}], phone=phone)
        reply = proposed(script, bot, order, question=f"My phone is {phone}.")
        assert card(reply)["fields"] == []
        lead = api.get(f"/api/forms/collection/{decide(api, reply)['orderId']}")["lead"]
        assert lead["phone"] == "+74951234567;ext=12"

    def test_every_field_that_a_visitor_can_see_is_on_the_card(
        self, bot: Bot, api: Api, script: Script
    ) -> None:
        api.post("/api/products/create", {"name": "Rye", "price": 12_000})
        values = {"box": "on", "size": "S", "number": "3", "day": "2026-12-01", "more": "a\nb"}
        kinds = ("checkbox", "select", "number", "date", "textarea")
        fields = [
            {"name": name, "type": kind, "required": True}
            | ({"options": ["S", "M"]} if kind == "select" else {})
            for name, kind in zip(values, kinds, strict=True)
        ]
        form_of_orders(api, bot, *fields, {"name": "campaign", "type": "hidden"})
        order = call("propose_order", items=[{"product": "rye"}], **ADA)
        reply = proposed(script, bot, order)
        assert [field["type"] for field in card(reply)["fields"]] == [*kinds]
        errors = refuse_decision(api, reply).data["errors"]
        assert {error["field"] for error in errors} == {*values}
        assert decide(api, reply, values=values)["state"] == "done"

    def test_a_form_that_a_visitor_cannot_fill_in_is_not_proposed(
        self, bot: Bot, api: Api, script: Script
    ) -> None:
        api.post("/api/products/create", {"name": "Rye", "price": 12_000})
        form_of_orders(api, bot, {"name": "campaign", "type": "hidden", "required": True})
        reply = proposed(script, bot, call("propose_order", items=[{"product": "rye"}], **ADA))
        assert all(event["type"] != "action" for event in reply.events)

    def test_more_pieces_than_an_order_may_have_are_not_proposed(
        self, bot: Bot, api: Api, order_form: str, script: Script
    ) -> None:
        api.post("/api/products/create", {"name": "Rye", "price": 12_000})
        items = [{"product": "rye", "quantity": 1_000}] * 11
        reply = proposed(script, bot, call("propose_order", items=items, **ADA))
        assert all(event["type"] != "action" for event in reply.events)

    def test_equal_orders_on_two_cards_are_two_orders(
        self, bot: Bot, api: Api, order_form: str, script: Script
    ) -> None:
        api.post("/api/products/create", {"name": "Rye", "price": 12_000})
        order = call("propose_order", items=[{"product": "rye"}], **ADA)
        first = proposed(script, bot, order)
        values = {"address": "Nevsky 1"}
        order_ids = [decide(api, first, values=values)["orderId"]]
        next_reply = ask(bot, "The same again!", sessionId=first.session, features=FEATURES)
        body = {"sessionId": first.session, "decision": "confirm", "values": values}
        order_ids.append(api.post(path(next_reply), body)["orderId"])
        assert len({*order_ids}) == 2

    def test_without_a_form_no_order_is_proposed(self, bot: Bot, api: Api, script: Script) -> None:
        api.post("/api/products/create", {"name": "Rye", "price": 12_000})
        reply = proposed(script, bot, call("propose_order", items=[{"product": "rye"}]))
        assert all(event["type"] != "action" for event in reply.events)

"""Actions that a bot proposes in a chat, and the visitor's decision on them."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Event
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.domains.chat.flows import dialogs
from chalicelib.domains.chat.store import chat_sessions, proposals
from chalicelib.domains.chat.store.proposals import ProposalId
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways import llm
from chalicelib.gateways.llm import ProviderUsage
from chalicelib.gateways.llm.messages import ToolCall
from tests.conftest import Answer, Api, Time, all_rows, as_operator, run_concurrently
from tests.factories.chat import (
    Bot,
    ChatReply,
    answer_to,
    ask,
    new_key,
    read_events,
    transcript,
)
from tests.factories.examples import request_to
from tests.support.patience import PATIENCE
from tests.transports.chat.endpoint.conftest import Script

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database", "model_takes_tools")]

END = ProviderUsage(10, 5)
ASKED = "I am Ada Lovelace, +7 495 123-45-67. Book me a haircut on Friday at ten."
FEATURES = ["actions"]


@pytest.fixture
def model_takes_tools(priced: None, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = llm.resolve("x")._replace(takes_tools=True)
    monkeypatch.setattr(llm, "resolve", lambda _: spec)


@pytest.fixture(autouse=True)
def _monday(time: Time) -> None:
    time.now = datetime(2026, 11, 23, 9, tzinfo=UTC)


@pytest.fixture
def bot(bot: Bot) -> Bot:
    bot.change(capabilities=["catalog", "slots", "booking", "order", "handover"])
    return bot


@pytest.fixture
def haircut(api: Api) -> str:
    """A haircut of an hour with Anna, who works on Fridays from 10 to 13 in Moscow."""
    anna = api.post("/api/resources/create", {"name": "Anna", "type": "master"})["resource"]["id"]
    rules = [{"weekday": "fri", "start": "10:00", "end": "13:00"}]
    api.post("/api/resources/set-availability", {"resourceId": anna, "rules": rules})
    service = {"name": "Haircut", "price": 150_050, "durationMin": 60, "resourceIds": [anna]}
    made: str = api.post("/api/services/create", service)["service"]["id"]
    return made


@pytest.fixture
def order_form(api: Api, bot: Bot) -> str:
    fields = [
        {"name": "name", "label": "Your name", "type": "text", "required": True},
        {"name": "phone", "label": "Phone", "type": "phone", "required": True},
        {"name": "address", "label": "Address", "type": "textarea", "required": True},
        {"name": "note", "label": "Note", "type": "text"},
        {"name": "agree", "label": "I agree to the terms.", "type": "consent", "required": True},
    ]
    made: str = api.post("/api/forms/create", {"title": "Order", "fields": fields})["form"]["id"]
    api.call("PUT", f"/api/agents/{bot.id}", {"orderFormId": made})
    return made


def form_of_orders(api: Api, bot: Bot, *fields: dict[str, Any]) -> None:
    made = api.post("/api/forms/create", {"title": "Order", "fields": [*fields]})["form"]["id"]
    api.call("PUT", f"/api/agents/{bot.id}", {"orderFormId": made})


def call(name: str, /, **arguments: Any) -> ToolCall:
    return ToolCall("1", name, json.dumps(arguments))


FIND = call("find_free_times", service="haircut", firstDay="2026-11-27", lastDay="2026-11-27")


def book(**person: str) -> ToolCall:
    return call("propose_booking", slotId="1", **person)


ADA = {"name": "Ada Lovelace", "phone": "84951234567"}


def proposed(script: Script, bot: Bot, *calls: ToolCall, asked: str = ASKED) -> ChatReply:
    """Have a model call tools, and return the reply with the last card."""
    script(*[step for each in calls for step in (each, END)], "Please confirm.", END)
    return ask(bot, asked, features=FEATURES)


def card(reply: ChatReply) -> dict[str, Any]:
    (found,) = [event for event in reply.events if event["type"] == "action"]
    return found


def decide(api: Api, reply: ChatReply, decision: str = "confirm", **more: Any) -> Any:
    return api.post(path(reply), {"sessionId": reply.session, "decision": decision, **more})


def refused(api: Api, reply: ChatReply, decision: str = "confirm", **more: Any) -> Answer:
    body = {"sessionId": reply.session, "decision": decision, **more}
    return api.refused("POST", path(reply), body)


def path(reply: ChatReply) -> str:
    return f"/api/agents/public/actions/{card(reply)['id']}"


def actions(api: Api, bot: Bot) -> list[dict[str, Any]]:
    (dialog, *_) = api.get(f"/api/agents/dialogs?agentId={bot.id}")["dialogs"]
    found: list[dict[str, Any]] = api.get(f"/api/agents/dialog?id={dialog['id']}")["actions"]
    return found


def bookings(api: Api) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get("/api/bookings/list")["bookings"]
    return found


class TestBookings:
    def test_a_visitor_confirms_a_card_and_has_a_booking(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        api.call("PUT", f"/api/agents/{bot.id}", {"privacyUrl": "https://example.com/privacy"})
        reply = proposed(script, bot, FIND, book(**ADA))
        shown = card(reply)
        assert shown["title"] == "Book: Haircut"
        assert {each["label"]: each["value"] for each in shown["details"]} == {
            "When": "Friday, 27 November 2026, 10:00 (Europe/Moscow)",
            "With": "Anna",
            "Duration": "60 min",
            "Price": "1,500.50\u00a0₽".replace("\u00a0", shown["details"][3]["value"][-2]),
            "Name": "Ada Lovelace",
            "Phone": "+74951234567",
        }
        assert shown["fields"] == []
        assert shown["consent"]["url"] == "https://example.com/privacy"
        assert shown["expiresAt"] == "2026-11-23T09:15:00.000Z"
        assert bookings(api) == []
        done = decide(api, reply)
        assert done["state"] == "done"
        assert done["message"].startswith("You are booked: Haircut, Friday, 27 November")
        assert done["cancelToken"]
        (made,) = bookings(api)
        assert made["id"] == done["booking"]["id"]
        assert (made["source"], made["client"]["name"]) == ("chat", "Ada Lovelace")
        assert made["client"]["phone"] == "+74951234567"
        assert [each["state"] for each in actions(api, bot)] == ["done"]
        stats = api.get(f"/api/agents/stats?agentId={bot.id}")["actions"]
        assert stats == {"toolCalls": 2, "confirmed": 1, "handovers": 0}
        calls = transcript(api, bot)[-1]["toolCalls"]
        assert [each["name"] for each in calls] == ["find_free_times", "propose_booking"]

    def test_a_client_without_the_feature_gets_neither_cards_nor_tools_for_them(
        self, bot: Bot, haircut: str, script: Script
    ) -> None:
        model = script(FIND, END, book(**ADA), END, "No.", END)
        reply = ask(bot, ASKED)
        assert {event["type"] for event in reply.events} == {"start", "chunk", "done"}
        assert "propose_booking" not in model.offered[0]
        assert model.asked[2][-1].results[0].is_error

    def test_the_card_asks_for_what_the_visitor_has_not_written(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        invented = book(name="Grace", phone="+74957654321", email="grace@example.com")
        reply = proposed(script, bot, FIND, invented, asked="A haircut, please.")
        assert [each["name"] for each in card(reply)["fields"]] == ["name", "contact"]
        assert "Grace" not in json.dumps(card(reply))
        wrong = refused(api, reply, values={"name": "Ada", "contact": "nothing"})
        assert (wrong.status, bookings(api)) == (400, [])
        assert refused(api, reply).status == 400
        decide(api, reply, values={"name": "Ada", "contact": "ada@example.com"})
        (made,) = bookings(api)
        assert (made["client"]["name"], made["client"]["email"]) == ("Ada", "ada@example.com")

    @pytest.mark.parametrize(
        ("values", "field"),
        [
            ({"name": "Ada", "contact": "nothing"}, "contact"),
            ({"name": "Ada", "contact": "ada@"}, "contact"),
            ({"name": "Ada"}, "contact"),
            ({"name": "", "contact": "ada@example.com"}, "name"),
            ({"contact": "ada@example.com"}, "name"),
        ],
    )
    def test_an_error_names_the_field_of_the_card(
        self, values: dict[str, str], field: str, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(), asked="A haircut, please.")
        wrong = refused(api, reply, values=values)
        assert [each["field"] for each in wrong.data["errors"]] == [field]
        assert wrong.data["message"].startswith(f"{field}: ")

    def test_values_on_the_card_do_not_replace_what_it_shows(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        decide(api, reply, values={"name": "Mallory", "contact": "m@example.com"})
        (made,) = bookings(api)
        assert (made["client"]["name"], made["client"]["email"]) == ("Ada Lovelace", None)

    def test_a_repeated_decision_returns_the_first_result(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        first = decide(api, reply)
        assert decide(api, reply) == first
        assert decide(api, reply, "cancel") == first
        assert len(bookings(api)) == 1

    def test_concurrent_confirmations_book_once(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        results = run_concurrently(4, lambda _: decide(api, reply))
        assert all(each == results[0] for each in results)
        assert len(bookings(api)) == 1

    def test_a_declined_action_is_not_carried_out(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        declined = decide(api, reply, "cancel")
        assert decide(api, reply) == declined
        assert (declined["state"], bookings(api)) == ("cancelled", [])

    def test_a_slot_that_is_sold_meanwhile_is_refused_with_alternatives(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        visitor = {"name": "Grace", "email": "grace@example.com"}
        start = "2026-11-27T10:00:00+03:00"
        api.post(
            "/api/public/bookings", {"serviceId": haircut, "startAt": start, "client": visitor}
        )
        sold = refused(api, reply)
        assert (sold.status, sold.data["code"]) == (409, "slot_unavailable")
        assert sold.data["alternatives"]
        assert refused(api, reply).data["code"] == "action_ended"
        assert [each["state"] for each in actions(api, bot)] == ["failed"]
        assert len(bookings(api)) == 1

    @pytest.mark.parametrize(
        "change", [{"price": 1}, {"durationMin": 30}, {"requirePayment": True}]
    )
    def test_a_changed_service_is_not_booked(
        self, change: dict[str, int], bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        api.post("/api/services/update", {"id": haircut, **change})
        assert refused(api, reply).data["code"] == "changed"
        assert bookings(api) == []

    @pytest.mark.parametrize("noun", ["services", "resources"])
    def test_what_was_deleted_meanwhile_ends_the_action(
        self, noun: str, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        (gone,) = api.get(f"/api/{noun}/list")[noun]
        api.post(f"/api/{noun}/delete", {"id": gone["id"], "force": True})
        answer = refused(api, reply)
        assert (answer.status, answer.data["code"]) == (409, "action_ended")

    def test_a_service_with_payment_is_not_proposed(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        api.post("/api/services/update", {"id": haircut, "requirePayment": True})
        reply = proposed(script, bot, FIND, book(**ADA))
        assert all(event["type"] != "action" for event in reply.events)

    def test_a_time_that_was_not_named_is_not_proposed(
        self, bot: Bot, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, call("propose_booking", slotId="9"))
        assert all(event["type"] != "action" for event in reply.events)


class TestLifetime:
    def test_a_proposal_ends_after_a_quarter_of_an_hour(
        self, bot: Bot, api: Api, haircut: str, script: Script, time: Time
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        time.pass_by(minutes=15)
        ended = refused(api, reply)
        assert (ended.status, ended.data["code"]) == (409, "action_ended")
        assert [each["state"] for each in actions(api, bot)] == ["expired"]

    def test_a_newer_proposal_replaces_the_open_one(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        first = proposed(script, bot, FIND, book(**ADA))
        script(call("propose_booking", slotId="2", **ADA), END, "Or this?", END)
        second = ask(bot, "The second one.", sessionId=first.session, features=FEATURES)
        assert "11:00" in json.dumps(card(second))
        assert refused(api, first).data["code"] == "action_ended"
        body = {"sessionId": first.session, "decision": "confirm"}
        assert api.post(path(second), body)["state"] == "done"
        assert [each["state"] for each in actions(api, bot)] == ["replaced", "done"]

    def test_the_model_learns_the_named_times_and_the_states_of_proposals(
        self, bot: Bot, api: Api, haircut: str, script: Script, time: Time
    ) -> None:
        first = proposed(script, bot, FIND, book(**ADA))
        decide(api, first)
        model = script("Fine.", END)
        ask(bot, "And now?", sessionId=first.session, features=FEATURES)
        question = model.asked[0][-1].content
        assert '"1": "2026-11-27T10:00 fri Anna"' in question
        assert '{"source": "proposal", "title": "Book: Haircut", "state": "done"}' in question
        time.pass_by(hours=1, minutes=1)
        ask(bot, "And now?", sessionId=first.session, features=FEATURES)
        assert "2026-11-27T10:00 fri" not in model.asked[1][-1].content

    def test_a_time_that_is_named_again_can_be_proposed_for_another_hour(
        self, bot: Bot, haircut: str, script: Script, time: Time
    ) -> None:
        session = proposed(script, bot, FIND).session
        time.pass_by(minutes=50)
        script(FIND, END, "The same times.", END)
        ask(bot, "And now?", sessionId=session, features=FEATURES)
        time.pass_by(minutes=50)
        script(book(**ADA), END, "Please confirm.", END)
        assert card(ask(bot, "At ten.", sessionId=session, features=FEATURES))

    def test_a_replay_repeats_the_open_card_to_the_sessions_holder(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        session = proposed(script, bot, FIND).session
        script(book(**ADA), END, "Please confirm.", END)
        said = {"sessionId": session, "features": FEATURES, "key": "k1"}
        first = ask(bot, ASKED, **said)
        assert card(ask(bot, ASKED, **said)) == card(first)
        decide(api, first)
        assert all(event["type"] != "action" for event in ask(bot, ASKED, **said).events)


class TestOrders:
    def test_a_visitor_confirms_an_order(
        self, bot: Bot, api: Api, order_form: str, script: Script
    ) -> None:
        for name, price in (("Rye bread", 12_000), ("Wheat rolls", 4_000)):
            api.post("/api/products/create", {"name": name, "price": price})
        items = [{"product": "rye", "quantity": 2}, {"product": "Wheat rolls"}]
        reply = proposed(script, bot, call("propose_order", items=items, **ADA))
        shown = card(reply)
        assert [each["label"] for each in shown["details"]] == [
            *("Rye bread", "Wheat rolls", "Total", "Your name", "Phone"),
        ]
        assert "280.00" in shown["details"][2]["value"]
        assert [each["name"] for each in shown["fields"]] == ["address"]
        assert shown["consent"]["text"] == "I agree to the terms."
        assert refused(api, reply).status == 400
        done = decide(api, reply, values={"address": "Nevsky 1", "note": "ignored"})
        lead = api.get(f"/api/forms/collection/{done['orderId']}")["lead"]
        assert [(each["name"], each["quantity"]) for each in lead["data"]["items"]] == [
            ("Rye bread", 2),
            ("Wheat rolls", 1),
        ]
        assert lead["data"]["address"] == "Nevsky 1"
        assert lead["data"]["agree"]["label"] == "I agree to the terms."
        assert "note" not in lead["data"]
        assert decide(api, reply) == done

    def test_a_changed_price_is_not_ordered(
        self, bot: Bot, api: Api, order_form: str, script: Script
    ) -> None:
        product = api.post("/api/products/create", {"name": "Rye", "price": 12_000})["product"]
        reply = proposed(script, bot, call("propose_order", items=[{"product": "rye"}], **ADA))
        api.post("/api/products/update", {"id": product["id"], "price": 13_000})
        assert refused(api, reply, values={"address": "x"}).data["code"] == "changed"
        assert api.get("/api/forms/collection-list")["total"] == 1, "only the lead of the contact"

    def test_an_order_in_a_form_that_was_deleted_has_ended(
        self, bot: Bot, api: Api, order_form: str, script: Script
    ) -> None:
        api.post("/api/products/create", {"name": "Rye", "price": 12_000})
        reply = proposed(script, bot, call("propose_order", items=[{"product": "rye"}], **ADA))
        api.post("/api/forms/delete", {"id": order_form})
        answer = refused(api, reply, values={"address": "x"})
        assert (answer.status, answer.data["code"]) == (409, "action_ended")

    @pytest.mark.parametrize("wrong", [{"product": "granite"}, {"product": "rye", "quantity": 3}])
    def test_what_is_not_sold_or_not_in_stock_is_not_proposed(
        self, wrong: dict[str, Any], bot: Bot, api: Api, order_form: str, script: Script
    ) -> None:
        api.post("/api/products/create", {"name": "Rye", "price": 12_000, "stock": 2})
        reply = proposed(script, bot, call("propose_order", items=[wrong], **ADA))
        assert all(event["type"] != "action" for event in reply.events)

    def test_the_name_is_only_taken_over_into_a_text_with_this_name(
        self, bot: Bot, api: Api, script: Script
    ) -> None:
        api.post("/api/products/create", {"name": "Rye", "price": 12_000})
        city = {"name": "city", "label": "City", "type": "text", "required": True}
        choice = {"label": "Call me", "type": "select", "options": ["Sir"], "required": True}
        for kind, asked in (({"type": "text"}, ["city"]), (choice, ["city", "name"])):
            form_of_orders(api, bot, city, {"name": "name", **kind})
            order = call("propose_order", items=[{"product": "rye"}], **ADA)
            assert [each["name"] for each in card(proposed(script, bot, order))["fields"]] == asked

    def test_a_phone_with_an_extension_is_taken_over(
        self, bot: Bot, api: Api, script: Script
    ) -> None:
        api.post("/api/products/create", {"name": "Rye", "price": 0})
        form_of_orders(api, bot, {"name": "phone", "type": "phone", "required": True})
        phone = "+7 495 123-45-67 ext. 12"
        order = call("propose_order", items=[{"product": "rye"}], phone=phone)
        reply = proposed(script, bot, order, asked=f"My phone is {phone}.")
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
        assert [each["type"] for each in card(reply)["fields"]] == [*kinds]
        errors = refused(api, reply).data["errors"]
        assert {each["field"] for each in errors} == {*values}
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
        made = [decide(api, first, values=values)["orderId"]]
        again = ask(bot, "The same again!", sessionId=first.session, features=FEATURES)
        body = {"sessionId": first.session, "decision": "confirm", "values": values}
        made.append(api.post(path(again), body)["orderId"])
        assert len({*made}) == 2

    def test_without_a_form_no_order_is_proposed(self, bot: Bot, api: Api, script: Script) -> None:
        api.post("/api/products/create", {"name": "Rye", "price": 12_000})
        reply = proposed(script, bot, call("propose_order", items=[{"product": "rye"}]))
        assert all(event["type"] != "action" for event in reply.events)


class TestPeople:
    def test_a_person_is_requested_once_a_day(
        self, bot: Bot, api: Api, script: Script, time: Time
    ) -> None:
        need = call("request_person", reason="A wedding cake")
        model = script(need, END, "Done.", END)
        session = ask(bot, ASKED).session
        (dialog,) = api.get(f"/api/agents/dialogs?agentId={bot.id}")["dialogs"]
        assert dialog["handoverAt"] == "2026-11-23T09:00:00.000Z"
        shown = api.get(f"/api/agents/dialog?id={dialog['id']}")["dialog"]
        assert shown["handoverReason"] == "A wedding cake"
        time.pass_by(hours=2)
        ask(bot, "Again!", sessionId=session)
        assert "already" in model.asked[-1][-1].results[0].content
        time.pass_by(hours=23)
        ask(bot, "Again!", sessionId=session)
        stats = api.get(f"/api/agents/stats?agentId={bot.id}")["actions"]
        assert stats["handovers"] == 2

    def test_without_a_contact_the_bot_has_to_ask_for_one(
        self, bot: Bot, api: Api, script: Script
    ) -> None:
        model = script(call("request_person", reason="A cake"), END, "Who are you?", END)
        ask(bot, "I want a person")
        assert model.asked[1][-1].results[0].is_error
        (dialog,) = api.get(f"/api/agents/dialogs?agentId={bot.id}")["dialogs"]
        assert dialog["handoverAt"] is None


class TestAccess:
    def test_only_the_sessions_holder_finds_an_action(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        script("Hello.", END)
        other = ask(bot, "Hi").session
        agent, dialog, number, last = card(reply)["id"].split("-")
        attempts = [
            (path(reply), other),
            (path(reply), "nonsense"),
            (f"/api/agents/public/actions/{agent}-{dialog}-{number}-9", reply.session),
            (f"/api/agents/public/actions/{agent}-{dialog}-9-{last}", reply.session),
            (f"/api/agents/public/actions/{dialog}-{dialog}-{number}-{last}", reply.session),
            ("/api/agents/public/actions/nonsense", reply.session),
        ]
        for url, session in attempts:
            answer = api.refused("POST", url, {"sessionId": session, "decision": "confirm"})
            assert answer.status == 404, url
        assert bookings(api) == []

    def test_a_private_bot_requires_its_key(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        bot.change(is_private=True)
        key = new_key(bot)
        assert refused(api, reply).status == 404
        assert refused(api, reply, apiKey=key[:-1]).status == 404
        assert decide(api, reply, apiKey=key)["state"] == "done"

    def test_a_disabled_bot_carries_nothing_out(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        bot.change(is_active=False)
        assert refused(api, reply).status == 404

    def test_an_erasure_removes_proposals(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(), asked="A haircut, please.")
        decide(api, reply, values={"name": "Ada", "contact": "ada@example.com"})
        as_operator("erase_client", workspaceId=bot.workspace_id, email="ada@example.com")
        assert "ada@example.com" not in json.dumps(all_rows(), default=str)
        assert "#ACTIONS" not in json.dumps([*all_rows()])

    def test_nothing_is_kept_of_a_dialog_that_is_erased_during_an_answer(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        held = Event()
        person = call("request_person", reason="Ada wants a cake.")
        model = script(FIND, END, held, book(**ADA), END, person, END, "Done.", END)
        answer = answer_to(request_to(bot.id, ASKED, features=FEATURES))
        with ThreadPoolExecutor(1) as executor:
            read = executor.submit(answer.whole_body)
            assert model.waiting.wait(PATIENCE)
            as_operator("erase_client", workspaceId=bot.workspace_id, phone="+74951234567")
            held.set()
            events = [*read_events(read.result())]
        assert all(each["type"] != "action" for each in events)
        kept = json.dumps(all_rows(), default=str, ensure_ascii=False)
        assert "Ada" not in kept
        assert "4951234567" not in kept

    def test_an_erasure_removes_a_proposal_that_is_made_while_it_runs(
        self, bot: Bot, script: Script
    ) -> None:
        script("Hello.", END)
        session = ask(bot, "I am Ada.").session
        dialog = chat_sessions.find(bot.workspace_id, bot.id, session)
        assert dialog
        batches = iter(dialogs.message_batches(bot.workspace_id, dialog.dialog_id))
        removed = [*next(batches)]
        unit = UnitOfWork(bot.workspace_id)
        place = ProposalId(bot.id, dialog.dialog_id, 2, 1)
        made = proposals.stage_new(
            unit, place, "booking", arguments={}, card={}, ends_at=clock.now()
        )
        unit.commit()
        removed += [row for batch in batches for row in batch]
        assert (made.pk, made.sk) in {(row.pk, row.sk) for row in removed}


def test_a_card_speaks_the_visitors_language(
    bot: Bot, api: Api, haircut: str, script: Callable[..., Any]
) -> None:
    reply = proposed(script, bot, FIND, book(), asked="Запишите меня на пятницу")
    shown = card(reply)
    assert (shown["language"], shown["title"]) == ("ru", "Запись: Haircut")
    assert shown["details"][0]["value"].startswith("пятница, 27 ноября 2026")
    assert shown["confirm"] == "Записаться"
    script(book(), END, "+", END)
    later = ask(bot, "+7 495 123-45-67", sessionId=reply.session, features=FEATURES)
    assert card(later)["language"] == "ru"

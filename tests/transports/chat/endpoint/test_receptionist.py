"""Dialogs with the embedded model that has tools, from the first question to the confirmed card."""

from typing import Any

import pytest

from tests.conftest import Api, Time
from tests.factories.chat import Bot, ChatReply, ask, transcript
from tests.factories.salon import FRIDAYS, Salon

pytestmark = pytest.mark.usefixtures("database", "all_capabilities", "monday")

FEATURES = ["actions"]


@pytest.fixture(autouse=True)
def anna(api: Api) -> str:
    """Anna works on Fridays from 10 to 13 in Moscow. Her services take an hour."""
    resource_id: str = api.post("/api/resources/create", {"name": "Анна"})["resource"]["id"]
    Salon.set_hours(api, resource_id, FRIDAYS)
    return resource_id


@pytest.fixture
def haircut(api: Api, anna: str) -> str:
    return service(api, anna, "Haircut")


def service(api: Api, anna: str, name: str) -> str:
    body = {"name": name, "price": 150_000, "durationMin": 60, "resourceIds": [anna]}
    service_id: str = api.post("/api/services/create", body)["service"]["id"]
    return service_id


@pytest.fixture
def bread_shop(api: Api, bot: Bot) -> None:
    """A shop with two kinds of bread, which takes orders with a name and a phone number."""
    fields = [
        {"name": "name", "label": "Name", "type": "text", "required": True},
        {"name": "phone", "label": "Phone", "type": "phone", "required": True},
    ]
    form = api.post("/api/forms/create", {"title": "Order", "fields": fields})["form"]["id"]
    api.call("PUT", f"/api/agents/{bot.id}", {"orderFormId": form})
    for name, stock in (("Rye bread", 5), ("Хлеб пшеничный", None)):
        api.post("/api/products/create", {"name": name, "price": 12_000, "stock": stock})


class Visitor:
    """A visitor in one dialog with a bot, whose client shows cards."""

    def __init__(self, bot: Bot, api: Api, features: list[str] | None = None) -> None:
        self._bot, self._api = bot, api
        self._options: dict[str, Any] = {"features": FEATURES if features is None else features}
        self.reply: ChatReply

    def send(self, message: str) -> str:
        self.reply = ask(self._bot, message, **self._options)
        self._options["sessionId"] = self.reply.session
        return self.reply.text

    @property
    def cards(self) -> list[dict[str, Any]]:
        return [event for event in self.reply.events if event["type"] == "action"]

    @property
    def called(self) -> list[str]:
        """The tools that the model called for the last answer."""
        calls = transcript(self._api, self._bot)[-1].get("toolCalls") or []
        return [call["name"] for call in calls]

    def confirm(self, **values: str) -> Any:
        (card,) = self.cards
        assert {field["name"] for field in card["fields"]} == values.keys()
        body = {"sessionId": self.reply.session, "decision": "confirm", "values": values}
        return self._api.post(f"/api/agents/public/actions/{card['id']}", body)


@pytest.fixture
def visitor(bot: Bot, api: Api) -> Visitor:
    return Visitor(bot, api)


def booking(api: Api) -> tuple[str, str | None, str | None]:
    (booking,) = api.get("/api/bookings/list")["bookings"]
    return booking["startAt"][:16], booking["client"]["name"], booking["client"]["phone"]


class TestBookings:
    def test_a_visitor_asks_for_times_and_books_the_second_one(
        self, visitor: Visitor, api: Api, haircut: str
    ) -> None:
        assert visitor.send("Is there time on Friday?").split("\n") == [
            "Haircut: 1,500 ₽, 60 min.",
            "Free times:",
            "1. Friday, 27 November 2026, 10:00 (Анна)",
            "2. Friday, 27 November 2026, 11:00 (Анна)",
            "3. Friday, 27 November 2026, 12:00 (Анна)",
            "Please also tell me your name and phone number. Which time suits you?",
        ]
        assert visitor.called == ["find_free_times"]
        reply = visitor.send("the second one, I am Ada, +7 495 123-45-67")
        assert reply.endswith("Nothing is booked until then.")
        assert visitor.called == ["propose_booking"]
        assert visitor.confirm()["state"] == "done"
        assert booking(api) == ("2026-11-27T08:00", "Ada", "+74951234567")
        assert visitor.send("Thanks!") == "You are welcome!"

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("Haircut", "Book me a haircut on Friday at 10"),
            ("Стрижка", "Запишите меня на стрижку в пятницу в 10"),
            ("Стрижка", "Свободно ли время: пятница, 27 ноября 2026, 10:00 (Europe/Moscow)?"),
        ],
    )
    def test_a_time_that_is_free_is_proposed_in_the_same_answer(
        self, name: str, message: str, visitor: Visitor, api: Api, anna: str
    ) -> None:
        service(api, anna, name)
        visitor.send(message)
        assert visitor.called == ["find_free_times", "propose_booking"]
        visitor.confirm(name="Ada", contact="+7 495 123-45-67")
        assert booking(api) == ("2026-11-27T07:00", "Ada", "+74951234567")

    def test_a_time_that_was_sold_meanwhile_is_not_proposed(
        self, visitor: Visitor, api: Api, haircut: str
    ) -> None:
        visitor.send("Is there time on Friday?")
        start = "2026-11-27T10:00:00+03:00"
        client = {"name": "Grace", "email": "grace@example.com"}
        api.post("/api/public/bookings", {"serviceId": haircut, "startAt": start, "client": client})
        assert visitor.send("the first one").startswith("This time is no longer free.")
        assert visitor.cards == []
        visitor.send("at 12")
        assert "12:00" in str(visitor.cards)

    def test_offered_times_that_have_expired_are_listed_again(
        self, visitor: Visitor, haircut: str, time: Time
    ) -> None:
        visitor.send("Is there time on Friday?")
        time.pass_by(hours=2)
        assert "3. Friday" in visitor.send("the third")
        assert visitor.called == ["find_free_times"]

    def test_a_client_without_cards_gets_times_and_no_promise(
        self, bot: Bot, api: Api, haircut: str
    ) -> None:
        visitor = Visitor(bot, api, features=[])
        reply = visitor.send("Book me a haircut on Friday at 10")
        assert reply.endswith("10:00 (Анна)\nI cannot book this in the chat.")
        assert visitor.called == ["find_free_times"]

    @pytest.mark.parametrize(
        ("change", "answer"),
        [
            ({"requirePayment": True}, "This service must be paid when you book it."),
            ({"status": "inactive"}, "Usual booking hours:"),
        ],
    )
    def test_what_cannot_be_booked_is_told_plainly(
        self, change: dict[str, Any], answer: str, visitor: Visitor, api: Api, haircut: str
    ) -> None:
        api.post("/api/services/update", {"id": haircut, **change})
        reply = visitor.send("Book me a haircut on 2026-11-27 at 10")
        assert visitor.cards == []
        assert reply.startswith(answer)


@pytest.mark.usefixtures("bread_shop")
class TestOrders:
    def test_a_visitor_orders(self, visitor: Visitor, api: Api) -> None:
        reply = visitor.send("Order 2 rye breads please, I am Ada, +7 495 123-45-67")
        assert reply.endswith("Nothing is ordered until then.")
        decision = visitor.confirm()
        lead = api.get(f"/api/forms/collection/{decision['orderId']}")["lead"]
        assert [(line["name"], line["quantity"]) for line in lead["data"]["items"]] == [
            ("Rye bread", 2)
        ]
        assert (lead["data"]["name"], lead["data"]["phone"]) == ("Ada", "+74951234567")


class TestPeople:
    @pytest.mark.parametrize(
        ("message", "asks", "outcome"),
        [
            ("can I talk to a person", "How can we reach you", "I have notified the team"),
            ("Позовите, пожалуйста, человека", "Как с вами связаться", "Вопрос передан"),
            ("I want to cancel my booking", "How can we reach you", "I have notified the team"),
        ],
    )
    def test_a_person_is_requested_after_a_contact(
        self, message: str, asks: str, outcome: str, visitor: Visitor, api: Api, bot: Bot
    ) -> None:
        assert visitor.send(message).startswith(asks)
        assert visitor.send("ada@example.com").startswith(outcome)
        (dialog,) = api.get(f"/api/agents/dialogs?agentId={bot.id}")["dialogs"]
        dialog_view = api.get(f"/api/agents/dialog?id={dialog['id']}")["dialog"]
        assert dialog_view["handoverReason"] == message


def test_every_answer_costs_what_its_calls_count(visitor: Visitor, bot: Bot, haircut: str) -> None:
    money_before, _ = bot.money
    visitor.send("Book me a haircut on Friday at 10")
    usage = visitor.reply.usage
    cost = -(-(usage["inputTokens"] * 10_000 + usage["outputTokens"] * 30_000) // 10**6)
    assert bot.money == (money_before - cost, 0)
    assert bot.kinds == ["topup", "reserve", "settle"]

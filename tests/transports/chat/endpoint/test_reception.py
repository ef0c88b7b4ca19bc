"""Dialogs with the embedded model that has tools, from the first question to the confirmed card."""

from typing import Any

import pytest

from tests.conftest import Api, Time
from tests.factories.chat import Bot, ChatReply, ask, transcript
from tests.factories.salon import FRIDAYS, Salon

pytestmark = pytest.mark.usefixtures("database", "able", "monday")

FEATURES = ["actions"]


@pytest.fixture(autouse=True)
def anna(api: Api) -> str:
    """Anna works on Fridays from 10 to 13 in Moscow. Her services take an hour."""
    made: str = api.post("/api/resources/create", {"name": "Анна"})["resource"]["id"]
    Salon.set_hours(api, made, FRIDAYS)
    return made


@pytest.fixture
def haircut(api: Api, anna: str) -> str:
    return service(api, anna, "Haircut")


def service(api: Api, anna: str, name: str) -> str:
    body = {"name": name, "price": 150_000, "durationMin": 60, "resourceIds": [anna]}
    made: str = api.post("/api/services/create", body)["service"]["id"]
    return made


@pytest.fixture
def shop(api: Api, bot: Bot) -> None:
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
        return [each["name"] for each in calls]

    def confirm(self, **values: str) -> Any:
        (card,) = self.cards
        assert {each["name"] for each in card["fields"]} == values.keys()
        body = {"sessionId": self.reply.session, "decision": "confirm", "values": values}
        return self._api.post(f"/api/agents/public/actions/{card['id']}", body)


@pytest.fixture
def visitor(bot: Bot, api: Api) -> Visitor:
    return Visitor(bot, api)


def booking(api: Api) -> tuple[str, str | None, str | None]:
    (made,) = api.get("/api/bookings/list")["bookings"]
    return made["startAt"][:16], made["client"]["name"], made["client"]["phone"]


class TestBookings:
    def test_a_visitor_asks_for_times_and_books_the_second_one(
        self, visitor: Visitor, api: Api, haircut: str
    ) -> None:
        assert visitor.send("Is there time on Friday?").split("\n") == [
            "Haircut: 1,500\u00a0₽, 60\u00a0min.",
            "Free times:",
            "1. Friday, 27 November, 10:00 (Анна)",
            "2. Friday, 27 November, 11:00 (Анна)",
            "3. Friday, 27 November, 12:00 (Анна)",
            "Which time suits you? Please tell me your name and phone number, too.",
        ]
        assert visitor.called == ["find_free_times"]
        said = visitor.send("the second one, I am Ada, +7 495 123-45-67")
        assert said.endswith("Until then nothing is booked.")
        assert visitor.called == ["propose_booking"]
        assert visitor.confirm()["state"] == "done"
        assert booking(api) == ("2026-11-27T08:00", "Ada", "+74951234567")
        assert visitor.send("Thanks!") == "You are welcome!"

    def test_a_visitor_who_has_booked_begins_anew(self, visitor: Visitor, haircut: str) -> None:
        visitor.send("Book me a haircut on Friday at eleven. I am Ada, +7 495 123-45-67")
        visitor.confirm()
        visitor.send("My e-mail address is ada@example.com")
        assert visitor.called == []
        said = visitor.send("Is there time on Friday?")
        assert said.endswith(
            "10:00 (Анна)\n2. Friday, 27 November, 12:00 (Анна)\nWhich time suits you?"
        )
        visitor.send("the second")
        assert "12:00" in str(visitor.cards)
        assert visitor.cards[0]["fields"] == []

    def test_a_visitor_books_in_russian(self, visitor: Visitor, api: Api, anna: str) -> None:
        service(api, anna, "Стрижка")
        said = visitor.send("Есть время в пятницу?")
        assert "2. пятница, 27 ноября, 11:00 (Анна)" in said
        assert said.endswith("Напишите также имя и телефон.")
        assert visitor.send("второе, меня зовут Ада, +7 495 123-45-67").startswith(
            "Запись: Стрижка."
        )
        assert "кнопкой" in visitor.send("да")
        visitor.send("меня зовут Ада")
        visitor.confirm()
        assert booking(api) == ("2026-11-27T08:00", "Ада", "+74951234567")

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("Haircut", "Book me a haircut on Friday at ten"),
            ("Стрижка", "Запишите меня на стрижку в пятницу в десять"),
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

    def test_the_nearest_times_are_named_if_a_time_is_not_free(
        self, visitor: Visitor, haircut: str
    ) -> None:
        said = visitor.send("Book me a haircut on Friday at 12:30")
        assert "12:30 is not free. The nearest free times:\n1. Friday, 27 November, 10" in said
        assert visitor.send("Book me tomorrow at ten").split("\n")[1:3] == [
            "There is no free time then. The next one:",
            "1. Friday, 27 November, 10:00 (Анна)",
        ]
        assert visitor.cards == []
        visitor.send("yes, I am Ada")
        assert visitor.called == ["propose_booking"]
        visitor.confirm(contact="ada@example.com")

    def test_a_contact_after_named_times_continues_the_booking(
        self, visitor: Visitor, api: Api, haircut: str
    ) -> None:
        visitor.send("When can I come on Friday?")
        said = visitor.send("I am Ada Lovelace, +7 495 123-45-67")
        assert said.startswith("Which time suits you?\n1. Friday, 27 November, 10:00")
        visitor.send("at 12")
        visitor.confirm()
        assert booking(api) == ("2026-11-27T09:00", "Ada Lovelace", "+74951234567")

    def test_a_contact_after_the_card_makes_a_card_with_it(
        self, visitor: Visitor, api: Api, haircut: str
    ) -> None:
        visitor.send("Is there time on Friday?")
        visitor.send("the first")
        assert [each["name"] for each in visitor.cards[0]["fields"]] == ["name", "contact"]
        visitor.send("I am Ada, +7 495 123-45-67")
        visitor.confirm()
        assert booking(api) == ("2026-11-27T07:00", "Ada", "+74951234567")

    def test_a_visitor_is_asked_which_service(
        self, visitor: Visitor, api: Api, anna: str, haircut: str
    ) -> None:
        service(api, anna, "Manicure")
        assert "Which service" in visitor.send("Book me on Friday at ten")
        assert visitor.called == []
        visitor.send("a manicure")
        assert visitor.cards[0]["title"] == "Book: Manicure"

    def test_a_time_that_was_sold_meanwhile_is_replaced_by_others(
        self, visitor: Visitor, api: Api, haircut: str
    ) -> None:
        visitor.send("Is there time on Friday?")
        start = "2026-11-27T10:00:00+03:00"
        client = {"name": "Grace", "email": "grace@example.com"}
        api.post("/api/public/bookings", {"serviceId": haircut, "startAt": start, "client": client})
        said = visitor.send("the first one")
        assert visitor.called == ["propose_booking", "find_free_times"]
        assert "This time is no longer free." in said
        assert "1. Friday, 27 November, 11:00" in said
        assert visitor.cards == []

    def test_offered_times_that_have_expired_are_found_again(
        self, visitor: Visitor, haircut: str, time: Time
    ) -> None:
        visitor.send("Is there time on Friday?")
        time.pass_by(hours=2)
        visitor.send("the third")
        assert visitor.called == ["find_free_times", "propose_booking"]
        assert "12:00" in str(visitor.cards)

    def test_a_client_without_cards_gets_times_and_no_promise(
        self, bot: Bot, api: Api, haircut: str
    ) -> None:
        visitor = Visitor(bot, api, features=[])
        said = visitor.send("Book me a haircut on Friday at ten")
        assert said.endswith("1. Friday, 27 November, 10:00 (Анна)\nI cannot book it in this chat.")
        assert visitor.called == ["find_free_times"]

    @pytest.mark.parametrize(
        ("change", "answer"),
        [
            ({"requirePayment": True}, "This service has to be paid when it is booked."),
            ({"status": "inactive"}, "Usual booking hours:"),
        ],
    )
    def test_what_cannot_be_booked_is_told_plainly(
        self, change: dict[str, Any], answer: str, visitor: Visitor, api: Api, haircut: str
    ) -> None:
        api.post("/api/services/update", {"id": haircut, **change})
        said = visitor.send("Book me a haircut at ten, 2026-11-27")
        assert visitor.cards == []
        assert said.startswith(answer)


@pytest.mark.usefixtures("shop")
class TestOrders:
    def test_a_visitor_orders(self, visitor: Visitor, api: Api) -> None:
        said = visitor.send("2 rye breads please, I am Ada, +7 495 123-45-67")
        assert said.endswith("Until then nothing is ordered.")
        done = visitor.confirm()
        lead = api.get(f"/api/forms/collection/{done['orderId']}")["lead"]
        assert [(each["name"], each["quantity"]) for each in lead["data"]["items"]] == [
            ("Rye bread", 2)
        ]
        assert (lead["data"]["name"], lead["data"]["phone"]) == ("Ada", "+74951234567")

    def test_a_visitor_orders_in_russian_step_by_step(self, visitor: Visitor) -> None:
        assert visitor.send("Хочу сделать заказ") == "Что бы вы хотели заказать?"
        visitor.send("пшеничный хлеб")
        visitor.send("три штуки")
        visitor.send("и ещё rye bread")
        values = [each["value"] for each in visitor.cards[0]["details"]]
        assert values[0].startswith("3 ×")
        assert values[1].startswith("1 ×")
        visitor.send("меня зовут Ада, +7 495 123-45-67")
        assert visitor.confirm()["state"] == "done"

    @pytest.mark.parametrize(
        ("message", "answer"),
        [
            ("6 rye breads please", "Fewer than 6 of Rye bread are in stock."),
            ("Order 9999 rye breads", "I can take orders of 1 to 1,000 pieces of a product."),
            ("Хочу 6 rye bread", "В наличии меньше 6: Rye bread."),
        ],
    )
    def test_what_cannot_be_ordered_is_told_plainly(
        self, message: str, answer: str, visitor: Visitor
    ) -> None:
        assert visitor.send(message) == answer
        assert visitor.cards == []

    def test_prices_are_answered_without_a_tool(self, visitor: Visitor) -> None:
        assert "Хлеб пшеничный: 120\u00a0₽." in visitor.send("Сколько стоит пшеничный хлеб?")
        assert visitor.called == []


class TestPeople:
    @pytest.mark.parametrize(
        ("message", "asks", "done"),
        [
            ("can I talk to a person", "Please leave a phone number", "I have asked a person"),
            ("Позовите, пожалуйста, человека", "Оставьте, пожалуйста, телефон", "Вопрос передан"),
            (
                "I want to cancel my booking",
                "I cannot look up, change or cancel",
                "I have asked a person",
            ),
        ],
    )
    def test_a_person_is_requested_after_a_contact(
        self, message: str, asks: str, done: str, visitor: Visitor, api: Api, bot: Bot
    ) -> None:
        assert visitor.send(message).startswith(asks)
        assert visitor.send("ada@example.com").startswith(done)
        (dialog,) = api.get(f"/api/agents/dialogs?agentId={bot.id}")["dialogs"]
        shown = api.get(f"/api/agents/dialog?id={dialog['id']}")["dialog"]
        assert shown["handoverReason"] == message

    def test_a_person_is_requested_at_once_if_the_contact_is_known(self, visitor: Visitor) -> None:
        said = "I am Ada, +7 495 123-45-67. Can I talk to a person?"
        assert visitor.send(said) == "I have asked a person, who will contact you."
        again = visitor.send("I want to talk to a person!")
        assert again == "A person has been asked already and will contact you."


def test_every_answer_costs_what_its_calls_count(visitor: Visitor, bot: Bot, haircut: str) -> None:
    before, _ = bot.money
    visitor.send("Book me a haircut on Friday at ten")
    usage = visitor.reply.usage
    cost = -(-(usage["inputTokens"] * 10_000 + usage["outputTokens"] * 30_000) // 10**6)
    assert bot.money == (before - cost, 0)
    assert bot.kinds == ["topup", "reserve", "settle"]

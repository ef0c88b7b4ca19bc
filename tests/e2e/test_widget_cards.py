"""Cards in the chat widget, with which a visitor decides on a bot's proposals."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Site, save_screenshot
from tests.factories.widget import (
    Opened,
    accessibility_errors,
    ask,
    card,
    chatting,
    document,
    field,
    last,
    open_chat,
    settled,
    tag,
)
from tests.fakes.chat_server import (
    CUT,
    DONE,
    Decision,
    FakeChat,
    Refusal,
    Step,
    chunk,
    event,
    saying,
    start,
)

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
DETAILS = {"Когда": "пятница, 27 ноября 2026, 10:00 (Europe/Moscow)", "С кем": "Анна"}
CONTACT = {"name": "contact", "label": "Телефон или эл. почта", "type": "text"}
NAME = {"name": "name", "label": "Имя", "type": "text"}
ICS = "https://api.example.com/api/public/bookings/x.ics"
BOOKED = Decision(
    200,
    {
        "state": "done",
        "message": "Вы записаны: Стрижка.",
        "booking": {"status": "confirmed"},
        "cancelToken": "secret",
        "icsUrl": ICS,
    },
)
ALTERNATIVES = [{"startLocal": f"2026-11-27T{hour}:00:00+03:00"} for hour in (11, 12, 13, 14)]
SOLD = Decision(409, {"code": "slot_unavailable", "alternatives": ALTERNATIVES})
WRONG_PHONE = Decision(
    400, {"code": "validation_error", "errors": [{"field": "client.phone", "message": "English"}]}
)


def action(
    number: int = 1, *fields: dict[str, Any], minutes: float = 15, **values: object
) -> dict[str, Any]:
    """Return a card that ends after some minutes."""
    ends_at = datetime.now(UTC) + timedelta(minutes=minutes)
    return {
        "type": "action",
        "id": f"A-{number}",
        "kind": "booking",
        "language": "ru",
        "title": "Запись: Стрижка",
        "details": [{"label": label, "value": value} for label, value in DETAILS.items()],
        "fields": [{"required": True, "options": [], **field} for field in fields],
        "note": "Время не забронировано, пока вы не подтвердите.",
        "consent": {"text": "Подтверждая, вы соглашаетесь.", "url": "https://shop.example/privacy"},
        "confirm": "Записаться",
        "cancel": "Нет, спасибо",
        "expiresAt": ends_at.isoformat(),
        **values,
    }


def proposing(card: dict[str, Any], text: str = "Проверьте карточку.") -> Sequence[Step]:
    return [start(), event(**card), chunk(text), DONE]


def confirm(page: Page) -> None:
    card(page).get_by_role("button", name="Записаться").click()


def outcome(page: Page) -> Locator:
    return card(page).locator(".note")


def expect_closed(page: Page, text: str) -> None:
    """Expect that the card shows a sentence and nothing to confirm."""
    expect(outcome(page)).to_contain_text(text)
    expect(card(page).locator("form")).to_have_count(0)


class TestConfirming:
    def test_a_confirmed_booking_shows_its_calendar_and_can_be_cancelled(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        chat.will(proposing(action()))
        chat.will_decide(BOOKED, Decision(200, {"status": True}))
        with open_page() as page:
            chatting(page)
            expect(card(page).get_by_role("definition")).to_have_text([*DETAILS.values()])
            expect(card(page)).to_contain_text("Время не забронировано")
            expect(card(page).get_by_role("link", name="Политика")).to_have_attribute(
                "href", "https://shop.example/privacy"
            )
            settled(page)
            confirm(page)
            expect_closed(page, "Вы записаны: Стрижка.")
            expect(card(page)).to_be_focused()
            expect(card(page).get_by_role("link", name="календарь")).to_have_attribute("href", ICS)
            page.reload()
            expect_closed(page, "Вы записаны: Стрижка.")
            cancel = card(page).get_by_role("button")
            expect(cancel).to_have_text("Отменить запись")
            cancel.dblclick()
            expect(cancel).to_have_text("Нажмите ещё раз, чтобы отменить запись")
            cancel.click()
            expect_closed(page, "Запись отменена.")
            expect(card(page).get_by_role("button")).to_have_count(0)
        assert chat.questions[0].body["features"] == ["actions", "sources"]
        assert chat.decided == [
            (
                "/api/agents/public/actions/A-1",
                {"sessionId": "s-1", "decision": "confirm", "values": {}},
            ),
            ("/api/public/bookings/cancel", {"token": "secret"}),
        ]

    def test_a_declined_card_is_closed(self, chat: FakeChat, open_page: Opened) -> None:
        chat.will(proposing(action(1, NAME)))
        chat.will_decide(Decision(200, {"state": "cancelled", "message": "Ничего не сделано."}))
        with open_page() as page:
            chatting(page)
            card(page).get_by_role("button", name="Нет, спасибо").click()
            expect_closed(page, "Ничего не сделано.")
        assert chat.decided[0][1] == {"sessionId": "s-1", "decision": "cancel", "values": {}}

    def test_card_requests_missing_fields_and_shows_errors(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        chat.will(proposing(action(1, NAME, CONTACT)))
        chat.will_decide(WRONG_PHONE, BOOKED)
        with open_page() as page:
            chatting(page)
            settled(page)
            confirm(page)
            name, contact = card(page).get_by_label("Имя"), card(page).get_by_label("Телефон")
            expect(name).to_be_focused()
            expect(name).to_have_accessible_description("Заполните это поле.")
            name.fill("Анна")
            contact.fill("12")
            contact.press("Enter")
            expect(contact).to_be_focused()
            expect(contact).to_have_accessible_description("Проверьте это поле.")
            expect(name).to_have_accessible_description("")
            assert accessibility_errors(page) == []
            contact.fill("+7 999 123-45-67")
            contact.press("Enter")
            expect_closed(page, "Вы записаны")
        values = {"name": "Анна", "contact": "+7 999 123-45-67"}
        assert [body["values"]["contact"] for _, body in chat.decided] == ["12", values["contact"]]
        assert chat.decided[1][1]["values"] == values

    def test_every_type_of_field_is_sent_as_text(self, chat: FakeChat, open_page: Opened) -> None:
        types = {
            "text": "Анна",
            "textarea": "Невский, 1\nкв. 2",
            "phone": "+7 999 123-45-67",
            "email": "anna@example.com",
            "number": "2",
            "date": "2026-11-27",
        }
        specs = [
            {"name": field_type, "label": f"Поле {field_type}", "type": field_type}
            for field_type in types
        ]
        choice = {"name": "how", "label": "Как", "type": "select", "options": ["Заберу", "Курьер"]}
        tick = {"name": "gift", "label": "В подарок", "type": "checkbox"}
        chat.will(proposing(action(1, *specs, choice, tick, kind="order")))
        field_errors = [{"field": "how", "message": "Выберите ещё раз."}]
        ordered = {"orderId": "1", "redirectUrl": "https://shop.example/pay"}
        chat.will_decide(
            Decision(400, {"code": "validation_error", "errors": field_errors}),
            Decision(200, {"state": "done", "message": "Заказ принят.", **ordered}),
        )
        with open_page() as page:
            chatting(page)
            settled(page)
            for name, value in types.items():
                card(page).get_by_label(f"Поле {name}", exact=True).fill(value)
            how = card(page).get_by_label("Как")
            how.select_option("Курьер")
            card(page).get_by_label("В подарок").check()
            assert accessibility_errors(page) == []
            save_screenshot(page, "widget-card-fields")
            confirm(page)
            expect(how).to_have_accessible_description("Выберите ещё раз.")
            confirm(page)
            expect_closed(page, "Заказ принят.")
            expect(card(page).get_by_role("link", name="Продолжить")).to_be_visible()
        assert chat.decided[1][1]["values"] == {**types, "how": "Курьер", "gift": "on"}

    def test_a_time_that_is_sold_meanwhile_shows_others_to_ask_for(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        chat.will(proposing(action()), saying("Да, свободно."))
        chat.will_decide(SOLD)
        with open_page() as page:
            chatting(page)
            settled(page)
            confirm(page)
            expect_closed(page, "Это время уже занято.")
            others = card(page).get_by_role("button")
            expect(others).to_have_text(
                [f"пятница, 27 ноября в {hour}:00" for hour in (11, 12, 13)]
            )
            assert accessibility_errors(page) == []
            save_screenshot(page, "widget-card-sold")
            others.nth(1).click()
            expect(last(page)).to_contain_text("Да, свободно.")
        assert chat.questions[1].body["message"] == (
            "Свободно ли время: пятница, 27 ноября в 12:00?"
        )

    def test_a_card_can_be_decided_on_while_its_answer_arrives(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        more = Event()
        chat.will([start(), event(**action()), chunk("Проверьте"), more, DONE])
        chat.will_decide(SOLD)
        with open_page() as page:
            chatting(page)
            confirm(page)
            expect_closed(page, "Это время уже занято.")
            card(page).get_by_role("button").first.click()
            expect(field(page)).to_have_value("Свободно ли время: пятница, 27 ноября в 11:00?")
            expect(field(page)).to_be_focused()
            more.set()
            settled(page)
        assert len(chat.questions) == 1

    @pytest.mark.parametrize(
        ("refusal", "words"),
        [
            (Refusal(409, "changed"), "Условия изменились."),
            (Refusal(409, "action_ended"), "Эта карточка больше не действует."),
            (Refusal(404, "not_found"), "Эта карточка больше не действует."),
        ],
        ids=["changed", "ended", "unknown"],
    )
    def test_a_card_that_cannot_be_confirmed_says_why(
        self, chat: FakeChat, open_page: Opened, refusal: Refusal, words: str
    ) -> None:
        chat.will(proposing(action()))
        chat.will_decide(refusal)
        with open_page() as page:
            chatting(page)
            confirm(page)
            expect_closed(page, words)

    @pytest.mark.parametrize(
        ("failure", "words"),
        [
            (CUT, "Ответ не пришёл."),
            (Refusal(503, "unavailable"), "Сейчас это не получается."),
            (
                Refusal(429, "rate_limited", {"Retry-After": "40"}),
                "Сейчас это не получается. Попробуйте через 40 секунд.",
            ),
        ],
        ids=["network", "down", "many"],
    )
    def test_a_decision_without_an_answer_can_be_repeated(
        self, chat: FakeChat, open_page: Opened, failure: Refusal | str, words: str
    ) -> None:
        chat.will(proposing(action(1, NAME)))
        chat.will_decide(failure, BOOKED)
        with open_page() as page:
            chatting(page)
            card(page).get_by_label("Имя").fill("Анна")
            confirm(page)
            expect(outcome(page)).to_contain_text(words)
            card(page).get_by_role("button", name="Повторить").click()
            expect_closed(page, "Вы записаны")
        assert chat.decided[0] == chat.decided[1]


class TestLifetime:
    def test_a_card_says_that_its_time_is_over(self, chat: FakeChat, open_page: Opened) -> None:
        chat.will(proposing(action()))
        with open_page() as page:
            chatting(page)
            expect(card(page).get_by_role("button", name="Записаться")).to_be_visible()
            page.clock.fast_forward(15 * 60_000)
            expect_closed(page, "Время на подтверждение вышло.")

    def test_decision_without_a_response_can_be_repeated(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        chat.will(proposing(action()), proposing(action(2, title="Другая")))
        chat.will_decide(CUT, BOOKED)
        with open_page() as page:
            chatting(page)
            settled(page)
            confirm(page)
            expect(outcome(page)).to_contain_text("Ответ не пришёл.")
            page.clock.fast_forward(16 * 60_000)
            ask(page)
            expect(card(page)).to_contain_text("Другая")
            first = page.locator("chat-widget .card").first
            first.get_by_role("button", name="Повторить").click()
            expect(first).to_contain_text("Вы записаны")

    def test_new_card_is_open_although_the_clock_is_fast(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        chat.will(proposing(action(minutes=-60)))
        chat.will_decide(BOOKED)
        with open_page() as page:
            chatting(page)
            confirm(page)
            expect_closed(page, "Вы записаны")

    def test_a_newer_card_replaces_the_open_one(self, chat: FakeChat, open_page: Opened) -> None:
        chat.will(
            [start(), event(**action(1)), event(**action(2)), chunk("Или так?"), DONE],
            proposing(action(3)),
        )
        with open_page() as page:
            chatting(page)
            settled(page)
            ask(page, "А позже?")
            cards = page.locator("chat-widget .card")
            expect(cards).to_have_count(3)
            for old in (0, 1):
                expect(cards.nth(old)).to_contain_text("Её заменила новая карточка.")
            expect(page.get_by_role("button", name="Записаться")).to_have_count(1)
            page.reload()
            expect(cards).to_have_count(3)
            expect(page.get_by_role("button", name="Записаться")).to_have_count(1)

    def test_a_repeated_answer_does_not_show_its_card_twice(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        action_shown = action()
        chat.will([start(), event(**action_shown), chunk("Про"), CUT], proposing(action_shown))
        with open_page() as page:
            chatting(page)
            page.locator(".turn").get_by_role("button", name="Повторить").click()
            expect(last(page)).to_contain_text("Проверьте карточку.")
            settled(page)
            expect(page.locator("chat-widget .card")).to_have_count(1)
            expect(card(page).get_by_role("button", name="Записаться")).to_be_visible()

    def test_a_reloaded_page_keeps_an_open_card(self, chat: FakeChat, open_page: Opened) -> None:
        chat.will(proposing(action()))
        chat.will_decide(BOOKED)
        with open_page() as page:
            chatting(page)
            settled(page)
            page.reload()
            expect(page.locator("chat-widget .turn")).to_have_count(3)
            confirm(page)
            expect_closed(page, "Вы записаны")
        assert chat.decided[0][1]["sessionId"] == "s-1"

    def test_a_reloaded_page_says_that_a_card_is_over(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        chat.will(proposing(action()))
        with open_page() as page:
            chatting(page)
            settled(page)
            page.clock.pause_at(datetime.now(UTC) + timedelta(minutes=20))
            page.reload()
            expect_closed(page, "Время на подтверждение вышло.")


class TestSources:
    def test_sources_become_links_below_the_answer(self, chat: FakeChat, open_page: Opened) -> None:
        sources = [
            {"title": "Доставка", "url": "https://bakery.example/delivery"},
            {"title": "Скрипт", "url": "javascript:alert(1)"},
            {"title": "Цены" * 75, "url": "https://bakery.example/prices"},
        ]
        done_event = json.loads(DONE.removeprefix(b"data: "))
        chat.will([start(), chunk("250 ₽."), event(**{**done_event, "sources": sources})])
        with open_page(**PHONE) as page:
            chatting(page)
            settled(page)
            for _ in range(2):
                links = last(page).get_by_role("link")
                expect(links).to_have_text(["Доставка", "Цены" * 75])
                expect(last(page).locator(".sources")).to_contain_text("Источники:")
                box = links.first.bounding_box()
                assert box is not None
                assert box["height"] >= 44
                assert page.evaluate("document.documentElement.scrollWidth") == 360
                page.reload()
                open_chat(page)


class TestLook:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize(
        ("size", "options"), [("phone", PHONE), ("desktop", {})], ids=["phone", "desktop"]
    )
    def test_a_card_is_accessible_and_does_not_move_the_focus(
        self, chat: FakeChat, open_page: Opened, scheme: str, size: str, options: dict[str, Any]
    ) -> None:
        long = [{"label": "Очень" * 60, "value": "Длинно" * 50}, {"label": "Цена", "value": "1 ₽"}]
        action_shown = action(1, NAME, CONTACT, title="Запись:" + "Стрижка" * 43, details=long)
        chat.will(proposing(action_shown))
        chat.will_decide(BOOKED)
        reduced = {"color_scheme": scheme, "reduced_motion": "reduce"}
        with open_page(**options, **reduced) as page:
            chatting(page)
            settled(page)
            expect(field(page)).to_be_focused()
            expect(page.get_by_role("group", name="Стрижка")).to_be_visible()
            expect(page.locator("chat-widget [aria-live=polite]")).to_contain_text("Подтвердите")
            assert accessibility_errors(page) == []
            save_screenshot(page, f"widget-card-{size}-{scheme}")
            log = page.get_by_role("log")
            assert log.evaluate("node => node.scrollWidth <= node.clientWidth")
            for target in card(page).locator("button, input").all():
                box = target.bounding_box()
                assert box is not None
                assert box["height"] >= 44
            for name in ("name", "contact"):
                card(page).locator(f"[name={name}]").fill("+7 999 123-45-67")
            card(page).locator("[name=contact]").press("Enter")
            expect_closed(page, "Вы записаны")
            assert accessibility_errors(page) == []
            save_screenshot(page, f"widget-card-done-{size}-{scheme}")

    def test_a_card_works_with_the_keyboard_alone(self, chat: FakeChat, open_page: Opened) -> None:
        chat.will(proposing(action(1, NAME)))
        chat.will_decide(BOOKED)
        with open_page() as page:
            chatting(page)
            settled(page)
            card(page).focus()
            page.keyboard.press("Tab")
            page.keyboard.type("Анна")
            page.keyboard.press("Tab")
            expect(card(page).get_by_role("link")).to_be_focused()
            page.keyboard.press("Tab")
            page.keyboard.press("Space")
            expect_closed(page, "Вы записаны")
            expect(card(page)).to_be_focused()
            page.keyboard.press("Tab")
            expect(card(page).get_by_role("link", name="календарь")).to_be_focused()

    def test_a_card_fits_right_to_left_pages(
        self, chat: FakeChat, site: Site, open_url: Opened
    ) -> None:
        site.pages["/"] = document(tag(chat), lang="he", direction="rtl")
        chat.will(proposing(action(1, NAME, language="en", title="Book: " + "תספורת " * 43)))
        with open_url(site.url, viewport={"width": 360, "height": 740}) as page:
            open_chat(page)
            ask(page, "שלום")
            expect(page.get_by_role("button", name="Записаться")).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") == 360
            heading, box = (
                card(page).get_by_role("heading").bounding_box(),
                card(page).bounding_box(),
            )
            assert heading is not None
            assert box is not None
            assert heading["x"] >= box["x"]
            save_screenshot(page, "widget-card-rtl")

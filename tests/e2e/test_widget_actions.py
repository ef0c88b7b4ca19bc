"""Bookings and orders in the widget with the real service and a model that calls tools."""

import json
import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from chalicelib.core import clock
from chalicelib.gateways import llm
from tests.conftest import Api, Owner
from tests.e2e.conftest import Site, save_screenshot
from tests.factories.chat import Bot, new_bot
from tests.factories.widget import (
    Opened,
    accessibility_errors,
    ask,
    card,
    chatting,
    document,
    last,
    settled,
)
from tests.fakes import openai_api
from tests.fakes.openai_api import Answering, OpenAiApi, saying

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
SCREENS = pytest.mark.parametrize("screen", [PHONE, {}], ids=["phone", "desktop"])
TIMES = "В пятницу есть время в 10:00, 11:00 и 12:00. Как вас зовут и по какому номеру звонить?"
CHECK = "Проверьте карточку, пожалуйста."
ADA = {"name": "Ада Лавлейс", "phone": "84951234567"}
SAID = "В десять. Ада Лавлейс, 8 495 123-45-67"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAiApi]:
    """A provider with OpenAI's API that the service uses."""
    with openai_api.serving() as server:
        monkeypatch.setenv("LLM_PROVIDER", "openai")
        monkeypatch.setenv("LLM_BASE_URL", server.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        llm._provider.cache_clear()
        yield server
        llm._provider.cache_clear()


@pytest.fixture
def bot(provider: OpenAiApi, service: str, owner: Owner, api: Api, site: Site) -> Bot:
    """A bot that may do everything, on a page of the site."""
    bot = new_bot(owner, model="gpt-4.1")
    bot.change(capabilities=["catalog", "slots", "booking", "order", "handover"])
    tag = f'<script src="{service}/widget.js" data-agent="{bot.id}" async></script>'
    site.pages["/"] = document(tag)
    return bot


@pytest.fixture
def haircut(api: Api) -> str:
    """A haircut of an hour with Anna, who works on Fridays from 10 to 13."""
    anna = api.post("/api/resources/create", {"name": "Анна", "type": "master"})["resource"]["id"]
    rules = [{"weekday": "fri", "start": "10:00", "end": "13:00"}]
    api.post("/api/resources/set-availability", {"resourceId": anna, "rules": rules})
    service = {"name": "Стрижка", "price": 150_000, "durationMin": 60, "resourceIds": [anna]}
    service_id: str = api.post("/api/services/create", service)["service"]["id"]
    return service_id


def friday() -> date:
    """Return the first Friday after today."""
    today = clock.now().date()
    return today + timedelta(days=(3 - today.weekday()) % 7 + 1)


def calling(name: str, /, **arguments: Any) -> Answering:
    """Answer with a call of a tool, as OpenAI streams it."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": f"call_{name}", "type": "function", "function": function}
    deltas = [({"tool_calls": [call]}, None), ({}, "tool_calls")]
    choices = [{"choices": [{"delta": delta, "finish_reason": why}]} for delta, why in deltas]
    events = [*choices, openai_api.usage(500, 20), openai_api.DONE]
    return openai_api.chunked(*map(openai_api.event, events))


def finding() -> Answering:
    day = friday().isoformat()
    return calling("find_free_times", service="Стрижка", firstDay=day, lastDay=day)


def booking(slot: str = "1") -> Answering:
    return calling("propose_booking", slotId=slot, **ADA)


def bookings(api: Api) -> list[dict[str, Any]]:
    found_bookings: list[dict[str, Any]] = api.get("/api/bookings/list")["bookings"]
    return found_bookings


def ask_for_friday(page: Page) -> None:
    """Ask for times on Friday and name one time, until the card is there."""
    chatting(page, "Когда есть время на стрижку в пятницу?")
    expect(last(page)).to_contain_text(TIMES)
    settled(page)
    ask(page, SAID)
    expect(last(page)).to_contain_text(CHECK)
    settled(page)
    expect(card(page)).to_contain_text("Запись: Стрижка")


def confirm(page: Page) -> None:
    button(page, "Записаться").click()


def button(page: Page, name: str) -> Locator:
    return card(page).get_by_role("button", name=name)


@SCREENS
def test_a_visitor_asks_for_a_time_and_books_it(
    provider: OpenAiApi,
    bot: Bot,
    api: Api,
    haircut: str,
    site: Site,
    open_url: Opened,
    screen: dict[str, Any],
) -> None:
    api.call("PUT", f"/api/agents/{bot.id}", {"privacyUrl": "https://example.com/privacy"})
    provider.answers = [finding(), saying(TIMES), booking(), saying(CHECK)]
    with open_url(site.url, **screen) as page:
        ask_for_friday(page)
        expect(card(page)).to_contain_text("10:00 (Europe/Moscow)")
        expect(card(page)).to_contain_text("Ада Лавлейс")
        assert bookings(api) == []
        assert accessibility_errors(page) == []
        save_screenshot(page, f"widget-booking-{'phone' if screen else 'desktop'}")
        confirm(page)
        expect(card(page)).to_contain_text("Вы записаны: Стрижка, пятница")
        assert accessibility_errors(page) == []
        calendar = card(page).get_by_role("link", name="календарь").get_attribute("href")
        assert calendar
        assert page.request.get(calendar).text().startswith("BEGIN:VCALENDAR")
        (new_booking,) = bookings(api)
        assert (new_booking["source"], new_booking["status"]) == ("chat", "confirmed")
        assert new_booking["startAt"].startswith(f"{friday()}T07:00")
        assert new_booking["client"]["name"] == "Ада Лавлейс"
        assert new_booking["client"]["phone"] == "+74951234567"
        button(page, "Отменить запись").click()
        button(page, "Нажмите ещё раз").click()
        expect(card(page)).to_contain_text("Запись отменена.")
    assert [booking["status"] for booking in bookings(api)] == ["cancelled"]


@SCREENS
def test_visitor_books_another_time_if_the_first_is_sold(
    provider: OpenAiApi,
    bot: Bot,
    api: Api,
    haircut: str,
    site: Site,
    open_url: Opened,
    screen: dict[str, Any],
) -> None:
    provider.answers = [
        *(finding(), saying(TIMES), booking(), saying(CHECK)),
        *(finding(), booking("2"), saying(CHECK)),
    ]
    with open_url(site.url, **screen) as page:
        ask_for_friday(page)
        other = {"name": "Грейс", "email": "grace@example.com"}
        start = f"{friday()}T10:00:00+03:00"
        sold = {"serviceId": haircut, "startAt": start, "client": other}
        api.post("/api/public/bookings", sold)
        confirm(page)
        expect(card(page)).to_contain_text("Это время уже занято.")
        assert accessibility_errors(page) == []
        button(page, "11:00").click()
        expect(page.locator("chat-widget .me").last).to_contain_text("Свободно ли время: пятница")
        expect(page.locator("chat-widget .card")).to_have_count(2)
        settled(page)
        confirm(page)
        expect(card(page)).to_contain_text("Вы записаны")
    starts = {booking["client"]["name"]: booking["startAt"] for booking in bookings(api)}
    assert starts["Ада Лавлейс"].startswith(f"{friday()}T08:00")


def test_a_declined_booking_is_not_made(
    provider: OpenAiApi, bot: Bot, api: Api, haircut: str, site: Site, open_url: Opened
) -> None:
    provider.answers = [finding(), saying(TIMES), booking(), saying(CHECK)]
    with open_url(site.url) as page:
        ask_for_friday(page)
        button(page, "Не нужно").click()
        expect(card(page)).to_contain_text("Хорошо")
        expect(card(page).get_by_role("button")).to_have_count(0)
        page.reload()
        expect(card(page)).to_contain_text("Хорошо")
    assert bookings(api) == []
    (dialog,) = api.get(f"/api/agents/dialogs?agentId={bot.id}")["dialogs"]
    (action,) = api.get(f"/api/agents/dialog?id={dialog['id']}")["actions"]
    assert action["state"] == "cancelled"


@SCREENS
def test_a_visitor_orders_two_products_and_types_an_address(
    provider: OpenAiApi,
    bot: Bot,
    api: Api,
    site: Site,
    open_url: Opened,
    screen: dict[str, Any],
) -> None:
    for name, price in (("Хлеб ржаной", 12_000), ("Булочка", 4_000)):
        api.post("/api/products/create", {"name": name, "price": price})
    fields = [
        {"name": "name", "label": "Имя", "type": "text", "required": True},
        {"name": "phone", "label": "Телефон", "type": "phone", "required": True},
        {"name": "address", "label": "Адрес", "type": "textarea", "required": True},
    ]
    form = api.post("/api/forms/create", {"title": "Заказ", "fields": fields})["form"]["id"]
    api.call("PUT", f"/api/agents/{bot.id}", {"orderFormId": form})
    items = [{"product": "Хлеб ржаной", "quantity": 2}, {"product": "Булочка"}]
    provider.answers = [calling("propose_order", items=items, name="Ада"), saying(CHECK)]
    with open_url(site.url, **screen) as page:
        chatting(page, "Два ржаных и булочку. Я Ада.")
        settled(page)
        expect(card(page)).to_contain_text("280")
        send = button(page, "Заказать")
        phone, address = card(page).get_by_label("Телефон"), card(page).get_by_label("Адрес")
        phone.fill("12")
        send.click()
        expect(address).to_be_focused()
        address.fill("Невский пр., 1\nкв. 2")
        send.click()
        expect(phone).to_be_focused()
        expect(phone).to_have_accessible_description(re.compile("Введите номер телефона"))
        phone.fill("8 495 123-45-67")
        assert accessibility_errors(page) == []
        save_screenshot(page, f"widget-order-{'phone' if screen else 'desktop'}")
        send.click()
        expect(card(page).locator("form")).to_have_count(0)
        assert accessibility_errors(page) == []
    (lead,) = [
        lead
        for lead in api.get("/api/forms/collection-list")["collections"]
        if lead["formId"] == form
    ]
    data = api.get(f"/api/forms/collection/{lead['id']}")["lead"]["data"]
    assert [(item["name"], item["quantity"]) for item in data["items"]] == [
        ("Хлеб ржаной", 2),
        ("Булочка", 1),
    ]
    assert (data["name"], data["address"]) == ("Ада", "Невский пр., 1\nкв. 2")

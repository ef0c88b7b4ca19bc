"""A visitor chats with a real bot in the widget, and the owner sees the lead."""

import re
from collections.abc import Callable
from html import escape
from typing import Any

import pytest
from playwright.sync_api import expect

from chalicelib.gateways.llm import demo
from tests.conftest import Api, Owner
from tests.e2e.conftest import Site, markup_errors, save_screenshot
from tests.factories.chat import Bot, new_bot
from tests.factories.widget import (
    accessibility_errors,
    ask,
    chatting,
    document,
    last,
    launcher,
    settled,
)

Opened = Callable[..., Any]
GREETING = "Здравствуйте! Спросите о хлебе."


@pytest.fixture
def bot(service: str, owner: Owner, api: Api) -> Bot:
    """A bot with the embedded model and some facts in its prompt."""
    api.post("/api/products/create", {"name": "Медовик", "price": 240_000})
    bot = new_bot(owner)
    change(api, bot, welcomeMessage=GREETING, model="demo")
    return bot


def change(api: Api, bot: Bot, **values: Any) -> None:
    assert api.call("PUT", f"/api/agents/{bot.id}", values).status == 200


def tag(service: str, bot: Bot) -> str:
    return f'<script src="{service}/widget.js" data-agent="{bot.id}" async></script>'


def funnel(api: Api, bot: Bot) -> dict[str, int]:
    stages = api.get(f"/api/agents/widget-stats?agentId={bot.id}")["stages"]
    return {stage["stage"]: stage["count"] for stage in stages}


def test_a_visitor_who_leaves_contacts_becomes_the_owners_lead(
    service: str, bot: Bot, api: Api, site: Site, open_url: Opened
) -> None:
    site.pages["/"] = document(tag(service, bot))
    with open_url(f"{site.url}/?utm=1") as page:
        chatting(page, "Сколько стоит медовик?")
        expect(page.locator("chat-widget .turn").first).to_contain_text(GREETING)
        expect(last(page)).to_contain_text("Медовик")
        settled(page)
        ask(page, "А есть ещё?")
        settled(page)
        expect(page.locator("chat-widget .note")).to_have_count(0)
        page.get_by_role("button", name="Оставить контакты").click()
        page.get_by_label("Имя").fill("Анна")
        page.get_by_label("Телефон или эл. почта").fill("8 999 123-45-67")
        page.get_by_label("Даю согласие").check()
        page.get_by_role("button", name="Отправить").click()
        settled(page)
        expect(page.locator("chat-widget .note")).to_have_text("Ваши контакты отправлены.")
        save_screenshot(page, "widget-service")
    (dialog,) = api.get(f"/api/agents/dialogs?agentId={bot.id}")["dialogs"]
    assert (dialog["channel"], dialog["messagesCount"]) == ("widget", 6)
    (lead,) = api.get("/api/forms/collection-list")["collections"]
    assert (lead["phone"], dialog["leadId"]) == ("+79991234567", lead["id"])
    assert lead["source"]["page"] == f"{site.url}/"
    assert funnel(api, bot) == {"loaded": 1, "opened": 1, "started": 1, "engaged": 1, "lead": 1}


def test_the_widget_works_in_a_sandboxed_frame(
    service: str, bot: Bot, site: Site, open_url: Opened
) -> None:
    inside = escape(document(tag(service, bot)))
    frame = f'<iframe sandbox="allow-scripts" srcdoc="{inside}" width="600" height="700"></iframe>'
    site.pages["/"] = document(frame)
    with open_url(site.url) as page:
        sandbox = page.frames[1]
        chatting(sandbox, "Сколько стоит медовик?")
        expect(last(sandbox)).to_contain_text("Медовик")


def test_a_bot_without_money_is_shown_as_unavailable(
    service: str, owner: Owner, api: Api, site: Site, open_url: Opened
) -> None:
    poor = new_bot(owner, money=0)
    site.pages["/"] = document(tag(service, poor))
    with open_url(site.url) as page:
        chatting(page)
        expect(last(page)).to_contain_text("Сейчас чат недоступен.")


def test_a_bot_that_is_switched_off_says_so_and_is_then_hidden(
    service: str, bot: Bot, api: Api, site: Site, open_url: Opened
) -> None:
    site.pages["/"] = document(tag(service, bot))
    with open_url(site.url) as page:
        expect(launcher(page)).to_be_visible()
        change(api, bot, isActive=False)
        chatting(page)
        expect(last(page)).to_contain_text("Этот чат недоступен.")
        with page.expect_console_message(lambda message: "no such bot" in message.text):
            page.reload()
        expect(page.locator("chat-widget")).to_have_count(0)


def test_a_private_bot_and_other_origins_show_no_widget(
    service: str, bot: Bot, api: Api, site: Site, open_url: Opened
) -> None:
    site.pages["/"] = document(tag(service, bot))
    change(api, bot, allowedOrigins=["https://bakery.example", site.url])
    with open_url(site.url) as page:
        expect(launcher(page)).to_be_visible()
        change(api, bot, allowedOrigins=["https://bakery.example"])
        with page.expect_console_message(lambda message: "allowedOrigins" in message.text):
            page.reload()
        change(api, bot, isPrivate=True)
        with page.expect_console_message(lambda message: "private" in message.text):
            page.reload()
        expect(page.locator("chat-widget")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_playground_shows_the_widget_under_a_strict_policy(
    service: str, bot: Bot, open_url: Opened, scheme: str
) -> None:
    messages: list[str] = []
    url = f"{service}/playground?agent={bot.id}&title=%3Cimg+src%3Dx%3E&language=ru"
    with open_url(url, color_scheme=scheme) as page:
        page.on("console", lambda message: messages.append(message.text))
        chatting(page, "Сколько стоит медовик?")
        expect(last(page)).to_contain_text("Медовик")
        expect(page.locator("code").first).to_contain_text(re.compile("(<|&lt;)img src"))
        expect(page.get_by_role("dialog", name="<img src=x>")).to_be_visible()
        settled(page)
        assert accessibility_errors(page) == []
        assert markup_errors(page) == []
        save_screenshot(page, f"playground-{scheme}")
    assert messages == []


def test_the_playground_asks_for_a_bot(service: str, open_url: Opened) -> None:
    with open_url(f"{service}/playground", viewport={"width": 360, "height": 740}) as page:
        page.get_by_label("Bot id").fill('"><script>alert(1)</script>')
        page.get_by_label("Text direction").select_option("rtl")
        save_screenshot(page, "playground-phone")
        with page.expect_console_message(lambda message: "no such bot" in message.text):
            page.get_by_role("button", name="Show").click()
        assert "language" not in page.url
        expect(page.locator("html")).to_have_attribute("dir", "rtl")


ENDINGS = {
    "demo:length": ("This answer begins well", "Ответ неполный: достигнута наибольшая длина."),
    "demo:filter": ("This answer begins well", "Ответ или его часть скрыты фильтром."),
    "demo:cut": ("This answer begins well", "Ответ прервался."),
    "demo:empty": ("", "На это нет ответа. Спросите другими словами."),
    "demo:fail": ("", "Ответ не пришёл."),
    "demo:timeout": ("", "Ответ занял слишком много времени."),
}


def test_the_widget_says_why_an_answer_is_not_whole(
    service: str, bot: Bot, site: Site, open_url: Opened
) -> None:
    assert ENDINGS.keys() == demo.ENDINGS.keys()
    site.pages["/"] = document(tag(service, bot))
    with open_url(site.url) as page:
        chatting(page, "Сколько стоит медовик?")
        settled(page)
        for message, (text, note) in ENDINGS.items():
            ask(page, message)
            settled(page)
            expect(last(page)).to_contain_text(text)
            expect(last(page).locator(".note")).to_contain_text(note)
            retry = last(page).get_by_role("button", name="Повторить")
            expect(retry).to_have_count(0 if message == "demo:length" else 1)
        save_screenshot(page, "widget-endings")

"""Appearance, keyboard, funnel events and contacts of the chat widget."""

import re
from collections.abc import Sequence
from threading import Event
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Site, save_screenshot
from tests.factories.widget import (
    AGENT,
    NAME,
    Opened,
    accessibility_errors,
    ask,
    chatting,
    document,
    field,
    last,
    launcher,
    open_chat,
    panel,
    settled,
    tag,
)
from tests.fakes.chat_server import (
    DONE,
    FakeChat,
    Refusal,
    Step,
    chunk,
    saying,
    start,
)

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}

AGREED = "Даю согласие на обработку контактов."
LOGO = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>"


class TestFunnel:
    def test_each_stage_is_reported_once_and_without_the_query(
        self, chat: FakeChat, open_page: Opened, site: Site
    ) -> None:
        chat.will(saying("Раз"), saying("Два"), saying("Три"))
        with open_page() as page:
            expect(launcher(page)).to_be_visible()
            open_chat(page)
            launcher(page).click()
            open_chat(page)
            for text in ("Раз", "Два", "Три"):
                ask(page)
                expect(last(page)).to_contain_text(text)
                settled(page)
            page.reload()
            expect(launcher(page)).to_be_visible()
        assert chat.stages == ["loaded", "opened", "started", "engaged"]
        assert chat.types == {"text/plain;charset=UTF-8"}
        (visit_id,) = {event["visitId"] for event in chat.events}
        assert re.fullmatch(r"[0-9a-f]{32}", visit_id)
        assert {(event["agentId"], event["pageUrl"]) for event in chat.events} == {
            (AGENT, f"{site.url}/")
        }

    def test_stages_are_reported_without_beacon_support_too(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        head = "<script>navigator.sendBeacon = () => false</script>"
        with open_page(head=head) as page, page.expect_response("**/widget-event"):
            open_chat(page)
        assert chat.stages == ["loaded", "opened"]


class TestTheBusiness:
    def test_the_head_has_its_logo_name_and_colour(self, chat: FakeChat, open_page: Opened) -> None:
        brand = {"name": "Салон", "logoUrl": LOGO, "colors": ["#0b6b70", "#7bd3d6"]}
        chat.agents[AGENT] |= {"brand": brand}
        for scheme, colour in (("light", "rgb(11, 107, 112)"), ("dark", "rgb(123, 211, 214)")):
            with open_page(f'data-theme="{scheme}"') as page:
                open_chat(page)
                head = panel(page).locator("header")
                expect(head.locator("img")).to_be_visible()
                expect(head).to_contain_text(f"{NAME}Салон · Отвечает ИИ")
                expect(head).to_have_css("background-color", colour)
                expect(page.locator("chat-widget .band")).to_have_count(0)
                assert accessibility_errors(page) == []

    def test_the_colour_of_the_tag_wins_and_a_missing_logo_is_left_out(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        brand = {"name": None, "logoUrl": f"{chat.url}/none.png", "colors": ["#0b6b70", "#7bd3d6"]}
        chat.agents[AGENT] |= {"brand": brand}
        with open_page('data-color="#112233"') as page:
            open_chat(page)
            head = panel(page).locator("header")
            expect(head).to_have_css("background-color", "rgb(17, 34, 51)")
            expect(head.locator("img")).to_have_count(0)

    def test_a_bot_of_a_test_workspace_says_so(self, chat: FakeChat, open_page: Opened) -> None:
        chat.agents[AGENT] |= {"isTest": True, "privacyUrl": "https://bakery.example/rules"}
        chat.will(saying("Раз"))
        with open_page() as page:
            chatting(page)
            expect(panel(page)).to_contain_text("Тест: всё не по-настоящему.")
            page.get_by_role("button", name="Оставить контакты").click()
            expect(page.get_by_role("link", name="Политика")).to_have_attribute(
                "href", "https://bakery.example/rules"
            )
            assert accessibility_errors(page) == []


class TestContacts:
    def test_contacts_are_sent_as_a_message_and_as_fields(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        chat.will(saying("Раз"), saying("Спасибо, Анна!"))
        with open_page('data-privacy="https://bakery.example/privacy"') as page:
            leave = page.get_by_role("button", name="Оставить контакты")
            open_chat(page)
            expect(leave).to_have_count(0)
            ask(page)
            leave.click()
            name, reach = page.get_by_label("Имя"), page.get_by_label("Телефон или эл. почта")
            expect(name).to_be_focused()
            expect(page.get_by_role("link", name="Политика")).to_have_attribute(
                "href", "https://bakery.example/privacy"
            )
            assert accessibility_errors(page) == []
            name.fill("Анна")
            reach.fill("позвоните")
            reach.press("Enter")
            expect(page.get_by_role("alert")).to_contain_text("Введите номер телефона")
            expect(reach).to_be_focused()
            assert accessibility_errors(page) == []
            reach.fill("8 999 123-45-67")
            page.get_by_role("button", name="Отправить").click()
            agreed = page.get_by_label("Даю согласие")
            expect(agreed).to_be_focused()
            expect(agreed).not_to_be_checked()
            expect(page.get_by_role("alert")).to_have_text("Заполните это поле.")
            assert len(chat.questions) == 1
            agreed.check()
            page.get_by_role("button", name="Отправить").click()
            expect(last(page)).to_contain_text("Спасибо, Анна!")
            expect(last(page).locator(".note")).to_have_text("Ваши контакты отправлены.")
            expect(field(page)).to_be_focused()
            expect(leave).to_have_count(0)
        body = chat.questions[1].body
        assert body["message"] == "Меня зовут Анна. Мой контакт: 8 999 123-45-67"
        assert body["contact"] == {"name": "Анна", "phone": "8 999 123-45-67", "consent": AGREED}

    def test_the_contact_form_can_be_closed_without_sending(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        chat.will(saying("Раз"))
        with open_page() as page:
            chatting(page)
            leave = page.get_by_role("button", name="Оставить контакты")
            leave.click()
            page.keyboard.press("Escape")
            expect(field(page)).to_be_focused()
            leave.click()
            page.get_by_role("button", name="Назад").click()
            expect(field(page)).to_be_focused()
        assert len(chat.questions) == 1

    def test_a_refused_question_is_kept_with_a_contact(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        chat.will(Refusal(503, "unavailable"))
        with open_page() as page:
            open_chat(page)
            field(page).fill("Есть столик?")
            field(page).press("Enter")
            reach = page.get_by_label("Телефон или эл. почта")
            expect(last(page)).to_contain_text("Оставьте контакты")
            assert accessibility_errors(page) == []
            save_screenshot(page, "widget-refused")
            reach.fill("ada@example.com")
            page.get_by_label("Даю согласие").check()
            reach.press("Enter")
            expect(page.get_by_role("log")).to_contain_text("Ваши контакты отправлены.")
        (contact,) = chat.contacts
        assert contact["message"] == "Есть столик?"
        assert contact["contact"] == {"email": "ada@example.com", "consent": AGREED}


class TestFirstQuestions:
    def test_a_tap_sends_a_first_question(self, chat: FakeChat, open_page: Opened) -> None:
        chat.agents[AGENT] |= {"offersTimes": True}
        chat.will(saying("Завтра в 12:00"))
        with open_page('data-questions="Сколько стоит?|Где вы?"') as page:
            open_chat(page)
            group = page.get_by_role("group", name="Первые вопросы")
            expect(group.get_by_role("button")).to_have_count(3)
            assert accessibility_errors(page) == []
            save_screenshot(page, "widget-first-questions")
            group.get_by_role("button", name="Когда есть свободное время?").click()
            expect(last(page)).to_contain_text("Завтра в 12:00")
            expect(group).to_be_hidden()
        assert chat.questions[0].body["message"] == "Когда есть свободное время?"

    def test_replies_of_the_business_are_shown_when_the_chat_is_opened(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        chat.will(saying("Позову человека."))
        with open_page() as page:
            chatting(page)
            chat.replies.append({"id": "1", "author": "Анна", "text": "Я здесь!", "at": "-"})
            launcher(page).click()
            launcher(page).click()
            expect(page.get_by_role("log")).to_contain_text("Анна: Я здесь!")
            launcher(page).click()
            launcher(page).click()
            page.clock.fast_forward(10_000)  # what a screen reader was told of it has gone
            expect(page.get_by_text("Я здесь!")).to_have_count(1)


class TestKeyboard:
    def test_every_function_works_without_a_mouse(self, chat: FakeChat, open_page: Opened) -> None:
        chat.will(saying("Раз"))
        shortcuts = (
            "addEventListener('keydown', (e) => { if (e.key.length === 1) e.preventDefault() })"
        )
        with open_page(head=f"<script>{shortcuts}</script>") as page:
            expect(launcher(page)).to_be_visible()
            page.keyboard.press("Tab")
            expect(page.get_by_role("link", name="Меню")).to_be_focused()
            page.keyboard.press("Tab")
            expect(launcher(page)).to_be_focused()
            expect(launcher(page)).to_have_attribute("aria-expanded", "false")
            save_screenshot(page, "widget-focus")
            page.keyboard.press("Enter")
            expect(field(page)).to_be_focused()
            expect(launcher(page)).to_have_attribute("aria-expanded", "true")
            page.keyboard.type("One")
            page.keyboard.press("Shift+Enter")
            page.keyboard.type("two")
            expect(field(page)).to_have_value("One\ntwo")
            page.keyboard.press("Enter")
            expect(last(page)).to_contain_text("Раз")
            expect(field(page)).to_have_value("")
            page.keyboard.press("Escape")
            expect(panel(page)).to_be_hidden()
            expect(launcher(page)).to_be_focused()
        assert chat.questions[0].body["message"] == "One\ntwo"

    def test_an_empty_message_is_not_sent(self, chat: FakeChat, open_page: Opened) -> None:
        with open_page() as page:
            open_chat(page)
            ask(page, " \n ")
            expect(page.get_by_role("button", name="Отправить")).to_be_disabled()
        assert chat.questions == []

    def test_screen_readers_read_each_part_of_an_answer_once(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        gates = [Event(), Event(), Event()]
        chat.will(
            [
                start(),
                chunk("Пер"),
                gates[0],
                chunk("вый\n\nВто"),
                gates[1],
                chunk("рой"),
                gates[2],
                DONE,
            ]
        )
        record = """() => {
            window.announced = [];
            const { shadowRoot } = document.querySelector('chat-widget');
            new MutationObserver((all) => all.forEach(({ addedNodes }) =>
                addedNodes.forEach((node) => announced.push(node.textContent))
            )).observe(shadowRoot.querySelector('[aria-live=polite]'), { childList: true });
        }"""
        with open_page() as page:
            open_chat(page)
            page.evaluate(record)
            ask(page)
            for gate, text in zip(gates, ("Пер", "Вто", "Второй"), strict=True):
                expect(last(page).locator(".bubble p").last).to_have_text(text)
                gate.set()
            settled(page)
            assert page.evaluate("announced") == ["Пишу ответ…", "Первый", "Второй"]
            expect(page.get_by_role("log")).to_have_attribute("aria-live", "off")
            page.clock.fast_forward(11_000)
            expect(page.locator("chat-widget [aria-live=polite]")).to_be_empty()

    def test_an_answer_to_a_closed_chat_is_announced_on_the_button(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        more = Event()
        chat.will([start(), chunk("Раз"), more, DONE])
        with open_page() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Раз")
            launcher(page).click()
            more.set()
            expect(page.get_by_role("button", name="есть новый ответ")).to_be_visible()
            launcher(page).click()
            expect(page.get_by_role("button", name="есть новый ответ")).to_have_count(0)


TALK: Sequence[Sequence[Step] | Refusal] = (
    saying(
        "Конечно! Вот наши **торты** на заказ:\n\n",
        "1. *Медовик*: 2 400 ₽ за килограмм\n2. **Наполеон**: 2 600 ₽\n",
        "   - с кремом\n   - без орехов\n\n",
        "Подробнее: [каталог](https://bakery.example/cakes) или `+7 999 123-45-67`.\n\n",
        "```\nкод\n```",
    ),
    Refusal(503, "unavailable"),
)


class TestLook:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize(
        ("size", "options"), [("phone", PHONE), ("desktop", {})], ids=["phone", "desktop"]
    )
    def test_the_widget_is_accessible(
        self, chat: FakeChat, open_page: Opened, scheme: str, size: str, options: dict[str, Any]
    ) -> None:
        chat.will(*TALK)
        reduced = {"color_scheme": scheme, "reduced_motion": "reduce"}
        with open_page(**options, **reduced) as page:
            expect(launcher(page)).to_be_visible()
            assert accessibility_errors(page) == []
            save_screenshot(page, f"widget-closed-{size}-{scheme}")
            chatting(page)
            expect(last(page)).to_contain_text("код")
            save_screenshot(page, f"widget-answer-{size}-{scheme}")
            ask(page, "А на субботу?")
            expect(last(page)).to_contain_text("Сейчас чат не отвечает.")
            assert accessibility_errors(page) == []
            save_screenshot(page, f"widget-{size}-{scheme}")
            expect(page.get_by_label("Телефон или эл. почта")).to_be_visible()
            assert accessibility_errors(page) == []
            save_screenshot(page, f"widget-contacts-{size}-{scheme}")

    @pytest.mark.parametrize("colour", ["#e88c00", "#d92d20", "#767676", "#fff", "#0a7d4b"])
    def test_text_is_readable_on_any_accent_colour(
        self, chat: FakeChat, open_page: Opened, colour: str
    ) -> None:
        chat.will(*TALK)
        with open_page(f'data-color="{colour}"') as page:
            chatting(page)
            expect(last(page)).to_contain_text("код")
            assert accessibility_errors(page) == []

    def test_the_widget_covers_a_phones_page_and_uncovers_it_again(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        with open_page(**PHONE, reduced_motion="reduce") as page:
            launcher(page).tap()
            expect(panel(page)).to_have_attribute("aria-modal", "true")
            expect(panel(page)).to_be_focused()
            assert panel(page).bounding_box() == {"x": 0, "y": 0, "width": 360, "height": 740}
            expect(launcher(page)).to_be_hidden()
            assert page.evaluate("document.body.inert") is True
            assert page.evaluate("document.documentElement.scrollWidth") == 360
            sizes = "nodes => nodes.map((node) => parseFloat(getComputedStyle(node).fontSize))"
            assert min(page.locator("chat-widget :is(textarea, input)").evaluate_all(sizes)) >= 16
            for button in panel(page).locator("button >> visible=true").all():
                box = button.bounding_box()
                assert box is not None
                assert min(box["width"], box["height"]) >= 40
            page.get_by_role("button", name="Закрыть чат").tap()
            expect(launcher(page)).to_be_focused()
            assert page.evaluate("document.body.inert") is False

    def test_turning_a_phone_uncovers_the_page(self, chat: FakeChat, open_page: Opened) -> None:
        with open_page(viewport={"width": 400, "height": 700}) as page:
            open_chat(page)
            assert page.evaluate("document.body.inert") is True
            page.set_viewport_size({"width": 900, "height": 700})
            expect(panel(page)).not_to_have_attribute("aria-modal", "true")
            assert page.evaluate("document.body.inert") is False

    def test_the_widget_is_on_the_left_of_right_to_left_pages(
        self, chat: FakeChat, site: Site, open_url: Opened
    ) -> None:
        site.pages["/"] = document(tag(chat), lang="he", direction="rtl")
        chat.will(saying("שלום! יש לנו **עוגות**:\n\n- עוגת דבש\n- נפוליאון"))
        with open_url(site.url, viewport={"width": 900, "height": 760}) as page:
            chatting(page, "אילו עוגות יש?")
            expect(last(page)).to_contain_text("נפוליאון")
            box, mine = launcher(page).bounding_box(), page.locator(".me").bounding_box()
            theirs = last(page).bounding_box()
            assert box is not None
            assert mine is not None
            assert theirs is not None
            assert box["x"] < 100
            assert mine["x"] < theirs["x"]
            assert accessibility_errors(page) == []
            save_screenshot(page, "widget-rtl")

    def test_the_visitors_larger_font_size_is_kept(self, chat: FakeChat, open_page: Opened) -> None:
        with open_page(head="<style>html{font-size:62.5%}</style>") as page:
            open_chat(page)
            size = "node => getComputedStyle(node).fontSize"
            assert page.locator("chat-widget .bubble").first.evaluate(size) == "16px"

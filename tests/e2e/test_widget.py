"""Embedding of the chat widget, and conversations in the widget."""

import json
import re
from html import escape
from threading import Event
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Site, save_screenshot
from tests.factories.widget import (
    AGENT,
    Opened,
    ask,
    chatting,
    document,
    field,
    last,
    launcher,
    open_chat,
    panel,
    tag,
)
from tests.fakes.chat_server import (
    DONE,
    FakeChat,
    chunk,
    event,
    saying,
    start,
)
from tests.support.patience import PATIENCE

STYLES = (
    "*{all:unset!important;display:none!important;color:red!important;font:8px serif!important}"
    "html,body{display:block!important}div,button,p{position:static!important;zoom:3}"
)


BYTE_BY_BYTE = """
    const real = fetch;
    fetch = async (url, options) => {
        const answer = await real(url, options);
        if (!url.endsWith('chat-stream')) return answer;
        const bytes = new Uint8Array(await answer.arrayBuffer());
        let at = 0;
        const pull = (to) => at < bytes.length ? to.enqueue(bytes.slice(at, ++at)) : to.close();
        return new Response(new ReadableStream({ pull }), answer);
    };
"""
"""Splits a stream as networks may do. Loopback never does."""


class TestConversation:
    def test_an_answer_appears_while_it_streams(
        self, chat: FakeChat, open_page: Opened, site: Site
    ) -> None:
        more = Event()
        chat.will([start(), chunk("Торт стоит "), more, chunk("2 400 ₽."), DONE])
        with open_page() as page:
            chatting(page)
            expect(last(page).locator(".bubble")).to_have_text("Торт стоит")
            more.set()
            expect(last(page).locator(".bubble")).to_have_text("Торт стоит 2 400 ₽.")
        (question,) = chat.questions
        assert question.body == {
            "agentId": AGENT,
            "message": "Сколько стоит торт?",
            "sessionId": None,
            "channel": "widget",
            "pageUrl": f"{site.url}/",
            "visitId": chat.events[0]["visitId"],
            "features": ["actions", "sources"],
        }
        assert re.fullmatch(r"[0-9a-f]{32}", question.key)

    def test_a_session_continues_with_a_new_key_for_each_message(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        chat.will(saying("Один", session="s-7"), saying("Два", session="s-7"))
        with open_page() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Один")
            ask(page, "А два?")
            expect(last(page)).to_contain_text("Два")
        first, second = chat.questions
        assert second.body["sessionId"] == "s-7"
        assert first.key != second.key

    @pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
    def test_a_stream_may_arrive_in_any_pieces(
        self, chat: FakeChat, open_page: Opened, newline: bytes
    ) -> None:
        stream = b"".join(
            [
                b": hello\n\nretry: 5\nid: 1\nevent: message\n",
                start(),
                chunk("Торт 🎂 "),
                b'data: {"type": "chunk",\ndata: "content": "\xe2\x82\xbd"}\n\n',
                b'data:{"type":"chunk","content":" ok"}\n\n',
                b"data\n\ndata: [1]\n\ndata: not json\n\ndata: null\n\n",
                event(type="unheard-of", content="?"),
                b": ping\n\n",
                DONE,
            ]
        )
        chat.will([stream.replace(b"\n", newline)])
        with open_page(head=f"<script>{BYTE_BY_BYTE}</script>") as page:
            chatting(page)
            expect(last(page).locator(".bubble")).to_have_text("Торт 🎂 ₽ ok")
            expect(page.locator("chat-widget .note")).to_have_count(0)

    def test_stopping_keeps_the_text_and_closes_the_stream(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        never = Event()
        chat.will([start(), chunk("Давным-давно"), never], saying("Да?"))
        with open_page() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Давным-давно")
            page.get_by_role("button", name="Остановить ответ").click()
            expect(last(page)).to_contain_text("Остановлено.")
            assert chat.questions[0].visitor_left.wait(PATIENCE)
            expect(page.get_by_role("button", name="Повторить")).to_have_count(0)
            ask(page, "Дальше")
            expect(last(page)).to_contain_text("Да?")
        assert chat.questions[1].body["sessionId"] == "s-1"

    def test_one_question_is_sent_at_a_time(self, chat: FakeChat, open_page: Opened) -> None:
        more = Event()
        chat.will([start(), chunk("Думаю"), more, DONE])
        with open_page() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Думаю")
            ask(page, "Ну?")
            expect(field(page)).to_have_value("Ну?")
            more.set()
            expect(page.get_by_role("button", name="Отправить")).to_be_enabled()
        assert len(chat.questions) == 1

    def test_a_conversation_continues_on_the_next_page(
        self, chat: FakeChat, open_page: Opened, site: Site
    ) -> None:
        chat.will(saying("**Медовик**"), saying("В субботу", session="s-1"))
        with open_page() as page:
            site.pages["/cakes"] = document(tag(chat))
            chatting(page)
            expect(last(page)).to_contain_text("Медовик")
            page.goto(f"{site.url}/cakes")
            expect(panel(page)).to_be_visible()
            expect(last(page).locator("strong")).to_have_text("Медовик")
            expect(field(page)).not_to_be_focused()
            ask(page, "Когда?")
            expect(last(page)).to_contain_text("В субботу")
        assert chat.questions[1].body["sessionId"] == "s-1"
        assert chat.questions[1].body["pageUrl"] == f"{site.url}/cakes"
        assert len({event["visitId"] for event in chat.events}) == 1
        assert chat.stages == ["loaded", "opened", "started", "engaged"]

    def test_half_an_answer_is_still_shown_on_the_next_page(
        self, chat: FakeChat, open_page: Opened, site: Site
    ) -> None:
        chat.will([start(), chunk("Давным-давно"), Event()])
        with open_page() as page:
            site.pages["/cakes"] = document(tag(chat))
            chatting(page)
            expect(last(page)).to_contain_text("Давным-давно")
            page.goto(f"{site.url}/cakes")
            expect(last(page)).to_contain_text("Давным-давно")
            assert chat.questions[0].visitor_left.wait(PATIENCE)

    def test_a_long_conversation_keeps_its_end(self, chat: FakeChat, open_page: Opened) -> None:
        chat.will(*(saying(f"Ответ {number}") for number in range(40)))
        with open_page() as page:
            open_chat(page)
            for number in range(40):
                ask(page, f"Вопрос {number}")
                expect(last(page)).to_contain_text(f"Ответ {number}")
            assert page.locator("chat-widget .turn").count() == 60
            page.reload()
            expect(last(page)).to_contain_text("Ответ 39")
            assert page.locator("chat-widget .turn").count() == 31

    def test_stored_data_is_not_trusted(self, chat: FakeChat, open_page: Opened) -> None:
        stored_state = {
            "session": 5,
            "turns": [None, {"text": 7}, {"text": "Да"}],
            "stages": "x",
            "visit": {},
        }
        chat.will(saying("Хорошо"))
        store = f"sessionStorage.setItem('chat:{AGENT}', {json.dumps(json.dumps(stored_state))})"
        with open_page(head=f"<script>{store}</script>") as page:
            chatting(page)
            expect(last(page)).to_contain_text("Хорошо")
        assert chat.questions[0].body["sessionId"] is None


AGAIN = """() => new Promise((onload) => {
    const { src, dataset } = document.querySelector('script');
    const script = Object.assign(document.createElement('script'), { src, onload });
    Object.assign(script.dataset, dataset);
    document.body.append(script);
})"""


class TestEmbedding:
    def test_styles_of_the_page_and_the_widget_do_not_affect_each_other(
        self, chat: FakeChat, open_page: Opened, open_url: Opened, site: Site
    ) -> None:
        chat.will(saying("Вот"))
        look = (
            "node => { const { color, fontSize } = getComputedStyle(node); "
            "return [color, fontSize, node.offsetWidth] }"
        )
        with open_page() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Вот")
            untouched = last(page).locator(".bubble").evaluate(look)
            heading = page.locator("h1").evaluate("node => getComputedStyle(node).fontSize")
        chat.will(saying("Вот"))
        with open_page(head=f"<style>{STYLES}</style>") as page:
            chatting(page)
            expect(last(page)).to_contain_text("Вот")
            assert last(page).locator(".bubble").evaluate(look) == untouched
            save_screenshot(page, "widget-under-styles")
        site.pages["/plain"] = document()
        with open_url(f"{site.url}/plain") as page:
            assert page.locator("h1").evaluate("node => getComputedStyle(node).fontSize") == heading

    def test_the_widget_works_under_a_strict_content_security_policy(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        policy = (
            f"default-src 'none'; script-src {chat.url}; connect-src {chat.url}; base-uri 'none'; "
            "require-trusted-types-for 'script'; trusted-types 'none'"
        )
        chat.will(saying("**Вот**"))
        messages: list[str] = []
        with open_page(
            head=f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        ) as page:
            page.on("console", lambda message: messages.append(message.text))
            chatting(page)
            expect(last(page).locator("strong")).to_have_text("Вот")
            assert panel(page).evaluate("node => getComputedStyle(node).position") == "fixed"
            bubble = last(page).locator(".bubble")
            assert bubble.evaluate("node => getComputedStyle(node).fontSize") == "16px"
        assert messages == []

    def test_the_widget_works_in_a_sandboxed_frame(
        self, chat: FakeChat, site: Site, open_url: Opened
    ) -> None:
        inside = escape(document(tag(chat)))
        frame = (
            f'<iframe sandbox="allow-scripts" srcdoc="{inside}" width="600" height="700"></iframe>'
        )
        site.pages["/"] = document(frame)
        chat.will(saying("Раз"), saying("Два"))
        with open_url(f"{site.url}/?a=1") as page:
            sandbox = page.frames[1]
            assert sandbox.evaluate("origin") == "null"
            chatting(sandbox)
            expect(last(sandbox)).to_contain_text("Раз")
            ask(sandbox)
            expect(last(sandbox)).to_contain_text("Два")
        assert chat.questions[1].body["sessionId"] == "s-1"
        assert chat.questions[0].body["pageUrl"] == f"{site.url}/"
        assert chat.stages == ["loaded", "opened", "started", "engaged"]

    def test_the_widget_works_on_a_page_that_its_server_sandboxes(
        self, chat: FakeChat, open_url: Opened
    ) -> None:
        policy = {"Content-Security-Policy": "sandbox allow-scripts allow-forms allow-popups"}
        chat.pages["/s/bakery/"] = (document(tag(chat)), {**policy, "Content-Type": "text/html"})
        chat.agents[AGENT]["allowedOrigins"] = ["https://bakery.example"]
        chat.will(saying("Раз"))
        with open_url(f"{chat.url}/s/bakery/") as page:
            assert page.evaluate("origin") == "null"
            chatting(page)
            expect(last(page)).to_contain_text("Раз")
        assert chat.questions[0].body["pageUrl"] == f"{chat.url}/s/bakery/"

    def test_a_repeated_tag_makes_one_widget(
        self, chat: FakeChat, site: Site, open_url: Opened
    ) -> None:
        site.pages["/"] = document(tag(chat), tag(chat))
        with open_url(site.url) as page:
            expect(launcher(page)).to_be_visible()
            page.evaluate(AGAIN)
            expect(page.locator("chat-widget")).to_have_count(1)
        assert chat.stages == ["loaded"]

    def test_launchers_of_two_bots_are_stacked(
        self, chat: FakeChat, site: Site, open_url: Opened
    ) -> None:
        chat.agents["other"] = {**chat.agents[AGENT], "id": "other", "name": "Второй"}
        site.pages["/"] = document(tag(chat), tag(chat, agent="other"))
        chat.will(saying("Раз"))
        with open_url(site.url) as page:
            expect(launcher(page)).to_have_count(2)
            boxes = [button.bounding_box() for button in launcher(page).all()]
            first, second = sorted((box for box in boxes if box), key=lambda box: box["y"])
            assert first["y"] + first["height"] <= second["y"]
            launcher(page).nth(0).click()
            launcher(page).nth(1).click()
            expect(panel(page).locator("visible=true")).to_have_count(1)
            save_screenshot(page, "widget-two")

    @pytest.mark.parametrize("size", [(1280, 900), (360, 740)], ids=["desktop", "phone"])
    def test_no_launcher_of_two_bots_covers_an_open_chat(
        self, chat: FakeChat, site: Site, open_url: Opened, size: tuple[int, int]
    ) -> None:
        chat.agents["other"] = {**chat.agents[AGENT], "id": "other", "name": "Второй"}
        site.pages["/"] = document(tag(chat), tag(chat, agent="other"))
        with open_url(site.url, viewport=dict(zip(("width", "height"), size, strict=True))) as page:
            expect(launcher(page)).to_have_count(2)
            for number in (0, 1):
                launcher(page).nth(number).click()
                visible_panel = panel(page).locator("visible=true")
                expect(visible_panel).to_have_count(1)
                save_screenshot(page, f"widget-two-{number}-{size[0]}")
                visible_panel.locator("textarea").fill("Привет")
                chat.will(saying("Раз"))
                visible_panel.get_by_role(
                    "button", name="Отправить"
                ).click()  # No element covers it.
                expect(visible_panel.locator(".turn").last).to_contain_text("Раз")
                visible_panel.get_by_role("button", name="Закрыть чат").click()

    def test_a_script_in_the_head_waits_for_the_body(
        self, chat: FakeChat, site: Site, open_url: Opened
    ) -> None:
        head = tag(chat).replace(" async", "")
        site.pages["/"] = document(head=head)
        chat.will(saying("Раз"))
        with open_url(site.url) as page:
            chatting(page)
            expect(last(page)).to_contain_text("Раз")

    def test_the_widget_survives_an_application_that_replaces_the_body(
        self, chat: FakeChat, open_page: Opened, site: Site
    ) -> None:
        chat.will(saying("Раз"))
        with open_page() as page:
            open_chat(page)
            page.evaluate(
                "() => { history.pushState(null, '', '/cart?step=2'); "
                "document.body.replaceWith(document.createElement('body')) }"
            )
            ask(page)
            expect(last(page)).to_contain_text("Раз")
            page.evaluate("() => document.querySelector('chat-widget').remove()")
            expect(panel(page)).to_be_visible()
        assert chat.questions[0].body["pageUrl"] == f"{site.url}/cart"
        assert chat.stages == ["loaded", "opened", "started"]

    @pytest.mark.parametrize(
        ("settings", "warning"),
        [
            (404, "no such bot"),
            ({"isPrivate": True, "name": "Тайна"}, "private"),
            ({"allowedOrigins": ["https://bakery.example"]}, "does not allow"),
        ],
        ids=["unknown", "private", "elsewhere"],
    )
    def test_the_widget_stays_hidden_where_it_must_not_be_shown(
        self, chat: FakeChat, open_page: Opened, settings: Any, warning: str
    ) -> None:
        chat.agents[AGENT] = settings
        with open_page(head="<script>addEventListener('load', () => {})</script>") as page:
            if not console_has(page, warning):
                page.wait_for_event("console", lambda message: warning in message.text)
            expect(page.locator("chat-widget")).to_have_count(0)
        assert chat.events == []

    def test_the_widget_appears_on_an_allowed_origin(
        self, chat: FakeChat, open_page: Opened, site: Site
    ) -> None:
        chat.agents[AGENT]["allowedOrigins"] = ["https://bakery.example", site.url]
        with open_page() as page:
            expect(launcher(page)).to_be_visible()

    def test_the_widget_works_if_its_settings_cannot_be_loaded(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        chat.agents[AGENT] = 500
        chat.will(saying("Раз"))
        with open_page('data-title="Помощь"') as page:
            chatting(page)
            expect(page.get_by_role("dialog", name="Помощь")).to_be_visible()
            expect(last(page)).to_contain_text("Раз")

    def test_a_tag_without_a_bot_logs_the_missing_attribute(
        self, chat: FakeChat, site: Site, open_url: Opened
    ) -> None:
        site.pages["/"] = document()
        with open_url(site.url) as page:
            with page.expect_console_message(lambda message: "data-agent" in message.text):
                page.add_script_tag(url=f"{chat.url}/widget.js")
            expect(page.locator("chat-widget")).to_have_count(0)

    @pytest.mark.parametrize("kind", ["text/javascript", "module"])
    def test_a_tag_manager_that_drops_attributes_passes_options_in_the_url(
        self, kind: str, chat: FakeChat, site: Site, open_url: Opened
    ) -> None:
        site.pages["/"] = document()
        url = f"{chat.url}/widget.js?agent={AGENT}&title=Help+%26+more&language=en&color=%23ffd400"
        with open_url(site.url) as page:
            for _ in range(2):
                page.add_script_tag(url=url, type=kind)
            open_chat(page)
            expect(page.get_by_role("dialog", name="Help & more")).to_be_visible()
            expect(page.locator("chat-widget")).to_have_count(1)
            colour = "node => getComputedStyle(node).backgroundColor"
            assert launcher(page).evaluate(colour) == "rgb(255, 212, 0)"

    def test_options_are_set_by_attributes(self, chat: FakeChat, open_page: Opened) -> None:
        options = (
            'data-title="Help &amp; more" data-language="en" data-position="left" '
            'data-color="#ffd400" data-open data-project="01JSITE" data-theme="dark"'
        )
        with open_page(options) as page:
            expect(page.get_by_role("dialog", name="Help & more")).to_be_visible()
            expect(page.get_by_role("button", name="Close chat")).to_have_count(2)
            expect(field(page)).not_to_be_focused()
            box = launcher(page).bounding_box()
            assert box is not None
            assert box["x"] < 100
            colours = (
                "node => [getComputedStyle(node).backgroundColor, getComputedStyle(node).color]"
            )
            assert launcher(page).evaluate(colours) == ["rgb(255, 212, 0)", "rgb(0, 0, 0)"]
        assert {event["projectId"] for event in chat.events} == {"01JSITE"}


def console_has(page: Page, text: str) -> bool:
    """Whether the browser's console already has a message."""
    return any(text in message.text for message in page.console_messages())

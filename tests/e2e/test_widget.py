"""The chat widget in a browser, on pages of another origin, and a server that does as told."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from threading import Event
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Frame, Locator, Page, expect

from tests.e2e.conftest import Site, shoot
from tests.fakes.chat_server import (
    CUT,
    DONE,
    FakeChat,
    Refusal,
    Step,
    chunk,
    event,
    saying,
    serving_chat,
    start,
)

Opened = Callable[..., Any]
AGENT = "01JAGENT"
NAME = "Пекарня «Колосок»"
GREETING = "Здравствуйте! Помочь с тортом?"
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
STYLES = (
    "*{all:unset!important;display:none!important;color:red!important;font:8px serif!important}"
    "html,body{display:block!important}div,button,p{position:static!important;zoom:3}"
)


@pytest.fixture
def chat() -> Iterator[FakeChat]:
    """A server with a public bot."""
    with serving_chat() as chat:
        chat.agents[AGENT] = {
            "id": AGENT,
            "name": NAME,
            "welcomeMessage": GREETING,
            "allowedOrigins": [],
            "isPrivate": False,
        }
        yield chat


@pytest.fixture
def visit(chat: FakeChat, site: Site, opened: Opened) -> Callable[..., Any]:
    """Open a page of a site that has the widget."""

    @contextmanager
    def open_page(attributes: str = "", *, head: str = "", **options: object) -> Iterator[Page]:
        site.pages["/"] = document(tag(chat, attributes), head=head)
        with opened(f"{site.url}/?utm=mail#top", **options) as page:
            yield page

    return open_page


def tag(chat: FakeChat, attributes: str = "", agent: str = AGENT) -> str:
    return f'<script src="{chat.url}/widget.js" data-agent="{agent}" {attributes} async></script>'


def document(*inside: str, head: str = "", lang: str = "ru", direction: str = "ltr") -> str:
    return (
        f'<!doctype html><html lang="{lang}" dir="{direction}"><head><title>Пекарня</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">{head}</head>'
        f"<body><main><h1>Пекарня</h1><p>Хлеб и торты.</p><a href='#x'>Меню</a></main>"
        f"{''.join(inside)}</body></html>"
    )


def launcher(page: Page | Frame) -> Locator:
    return page.locator("chat-widget .launcher")


def panel(page: Page | Frame) -> Locator:
    return page.locator("chat-widget .panel")


def field(page: Page | Frame) -> Locator:
    return page.locator("chat-widget textarea")


def answers(page: Page | Frame) -> Locator:
    """The answers, after the greeting."""
    return page.locator("chat-widget .turn:not(.me) .bubble >> visible=true")


def last(page: Page | Frame) -> Locator:
    return page.locator("chat-widget .turn").last


def open_chat(page: Page | Frame) -> None:
    launcher(page).click()
    expect(panel(page)).to_be_visible()


def ask(page: Page | Frame, text: str = "Сколько стоит торт?") -> None:
    field(page).fill(text)
    field(page).press("Enter")


def chatting(page: Page | Frame, text: str = "Сколько стоит торт?") -> None:
    open_chat(page)
    ask(page, text)


def run_until(page: Page, text: str) -> None:
    """Let time go by, which is the widget's alone, until it says something."""
    for _ in range(100):
        if text in last(page).inner_text():
            return
        page.clock.run_for(500)
        page.wait_for_timeout(20)
    pytest.fail(f"it never said {text}")


def settled(page: Page | Frame) -> None:
    """Wait until an answer has ended."""
    expect(page.get_by_role("button", name="Отправить", exact=True)).to_be_visible()


CONTRASTS = """() => {
    const { shadowRoot } = document.querySelector('chat-widget');
    const parts = (colour) => colour.match(/[0-9.]+/g).map(Number);
    const luminance = (colour) => {
        const [r, g, b] = parts(colour).map((part) => part / 255).map(
            (part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (node) => {
        const colour = getComputedStyle(node).backgroundColor;
        return (parts(colour)[3] ?? 1) === 1 ? colour : behind(node.parentElement);
    };
    return [...shadowRoot.querySelectorAll('*')].flatMap((node) => {
        const own = [...node.childNodes].some((each) => each.nodeType === 3 && each.data.trim());
        const style = getComputedStyle(node, node.placeholder ? '::placeholder' : null);
        if (node.closest('.sr') || !(own || node.placeholder) || !node.checkVisibility()) return [];
        const [dark, light] = [style.color, behind(node)].map(luminance).sort((a, b) => a - b);
        return [[(light + 0.05) / (dark + 0.05), node.outerHTML.slice(0, 80)]];
    });
}"""
"""What axe leaves undecided in a shadow root: text against the colour behind it (WCAG 1.4.3)."""


def barriers(page: Page) -> list[str]:
    """What is in somebody's way: what axe finds, and texts that can hardly be read."""
    found = Axe().run(page, context="chat-widget").response
    contrasts = page.evaluate(CONTRASTS)
    assert contrasts or panel(page).is_hidden()
    return [
        *(
            f"{rule['id']}: {at['html'][:99]}"
            for rule in found["violations"]
            for at in rule["nodes"]
        ),
        *(f"{ratio:.2f}: {html}" for ratio, html in contrasts if ratio < 4.5),
    ]


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
"""What a network may do to a stream, which loopback never does."""


class TestConversation:
    def test_an_answer_appears_as_it_comes(self, chat: FakeChat, visit: Opened, site: Site) -> None:
        more = Event()
        chat.will([start(), chunk("Торт стоит "), more, chunk("2 400 ₽."), DONE])
        with visit() as page:
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
        }
        assert re.fullmatch(r"[0-9a-f]{32}", question.key)

    def test_a_session_goes_on_with_a_key_for_each_message(
        self, chat: FakeChat, visit: Opened
    ) -> None:
        chat.will(saying("Один", session="s-7"), saying("Два", session="s-7"))
        with visit() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Один")
            ask(page, "А два?")
            expect(last(page)).to_contain_text("Два")
        first, second = chat.questions
        assert second.body["sessionId"] == "s-7"
        assert first.key != second.key

    @pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
    def test_a_stream_may_come_in_any_pieces(
        self, chat: FakeChat, visit: Opened, newline: bytes
    ) -> None:
        whole = b"".join(
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
        chat.will([whole.replace(b"\n", newline)])
        with visit(head=f"<script>{BYTE_BY_BYTE}</script>") as page:
            chatting(page)
            expect(last(page).locator(".bubble")).to_have_text("Торт 🎂 ₽ ok")
            expect(page.locator("chat-widget .note")).to_have_count(0)

    def test_stopping_keeps_what_came_and_leaves(self, chat: FakeChat, visit: Opened) -> None:
        never = Event()
        chat.will([start(), chunk("Давным-давно"), never], saying("Да?"))
        with visit() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Давным-давно")
            page.get_by_role("button", name="Остановить ответ").click()
            expect(last(page)).to_contain_text("Остановлено.")
            assert chat.questions[0].left.wait(5)
            expect(page.get_by_role("button", name="Повторить")).to_have_count(0)
            ask(page, "Дальше")
            expect(last(page)).to_contain_text("Да?")
        assert chat.questions[1].body["sessionId"] == "s-1"

    def test_one_question_at_a_time(self, chat: FakeChat, visit: Opened) -> None:
        more = Event()
        chat.will([start(), chunk("Думаю"), more, DONE])
        with visit() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Думаю")
            ask(page, "Ну?")
            expect(field(page)).to_have_value("Ну?")
            more.set()
            expect(page.get_by_role("button", name="Отправить")).to_be_enabled()
        assert len(chat.questions) == 1

    def test_it_goes_on_when_the_page_is_left_for_another(
        self, chat: FakeChat, visit: Opened, site: Site
    ) -> None:
        chat.will(saying("**Медовик**"), saying("В субботу", session="s-1"))
        with visit() as page:
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
        assert len({each["visitId"] for each in chat.events}) == 1
        assert chat.stages == ["loaded", "opened", "started", "engaged"]

    def test_half_an_answer_is_still_there_on_the_next_page(
        self, chat: FakeChat, visit: Opened, site: Site
    ) -> None:
        chat.will([start(), chunk("Давным-давно"), Event()])
        with visit() as page:
            site.pages["/cakes"] = document(tag(chat))
            chatting(page)
            expect(last(page)).to_contain_text("Давным-давно")
            page.goto(f"{site.url}/cakes")
            expect(last(page)).to_contain_text("Давным-давно")
            assert chat.questions[0].left.wait(5)

    def test_a_long_talk_keeps_its_end(self, chat: FakeChat, visit: Opened) -> None:
        chat.will(*(saying(f"Ответ {number}") for number in range(40)))
        with visit() as page:
            open_chat(page)
            for number in range(40):
                ask(page, f"Вопрос {number}")
                expect(last(page)).to_contain_text(f"Ответ {number}")
            assert page.locator("chat-widget .turn").count() == 60
            page.reload()
            expect(last(page)).to_contain_text("Ответ 39")
            assert page.locator("chat-widget .turn").count() == 31

    def test_what_is_stored_need_not_be_ours(self, chat: FakeChat, visit: Opened) -> None:
        kept = {
            "session": 5,
            "turns": [None, {"text": 7}, {"text": "Да"}],
            "stages": "x",
            "visit": {},
        }
        chat.will(saying("Хорошо"))
        store = f"sessionStorage.setItem('chat:{AGENT}', {json.dumps(json.dumps(kept))})"
        with visit(head=f"<script>{store}</script>") as page:
            chatting(page)
            expect(last(page)).to_contain_text("Хорошо")
        assert chat.questions[0].body["sessionId"] is None


class TestFailures:
    @pytest.mark.parametrize(
        ("refusal", "words", "again"),
        [
            (Refusal(400, "validation_error"), "Ответ не пришёл.", False),
            (Refusal(400, "message_too_long"), "Сообщение слишком длинное.", False),
            (Refusal(403, "forbidden"), "Этот чат недоступен.", False),
            (Refusal(404, "not_found"), "Этот чат недоступен.", False),
            (Refusal(409, "idempotency_mismatch"), "Прошлый ответ ещё не закончен.", True),
            (
                Refusal(429, "rate_limited", {"Retry-After": "40"}),
                "Слишком много сообщений подряд. Попробуйте через 40 секунд.",
                True,
            ),
            (
                Refusal(429, "limit_daily", {"Retry-After": "32000"}),
                "Сейчас чат недоступен. Попробуйте через 9 часов.",
                False,
            ),
            (
                Refusal(429, "limit_monthly", {"Retry-After": "200000"}),
                "Сейчас чат недоступен. Попробуйте через 3 дня.",
                False,
            ),
            (Refusal(429, "insufficient_balance"), "Сейчас чат недоступен.", False),
            (Refusal(500, "internal_error"), "Сейчас чат не отвечает.", True),
            (
                Refusal(503, "not_configured", {"Retry-After": "60"}),
                "Сейчас чат не отвечает. Попробуйте через 1 минуту.",
                True,
            ),
        ],
        ids=lambda value: value.code if isinstance(value, Refusal) else "",
    )
    def test_a_refusal_is_said_in_words(
        self, chat: FakeChat, visit: Opened, refusal: Refusal, words: str, again: bool
    ) -> None:
        chat.will(refusal)
        with visit() as page:
            chatting(page)
            expect(last(page).locator(".note")).to_contain_text(words)
            retry = page.get_by_role("button", name="Повторить")
            expect(retry).to_have_count(1 if again else 0)
            expect(page.locator("chat-widget .me")).to_have_text("Вы: Сколько стоит торт?")
        assert len(chat.questions) == 1

    def test_a_busy_session_is_waited_for(self, chat: FakeChat, visit: Opened) -> None:
        busy = Refusal(409, "session_busy", {"Retry-After": "2"})
        chat.will(busy, busy, saying("Вот"))
        with visit() as page:
            chatting(page)
            run_until(page, "Вот")
        assert len({(each.key, each.raw) for each in chat.questions}) == 1

    def test_a_session_that_stays_busy_is_said(self, chat: FakeChat, visit: Opened) -> None:
        busy = Refusal(409, "session_busy", {"Retry-After": "2"})
        chat.will(busy, busy, busy, busy, saying("Вот"))
        with visit() as page:
            chatting(page)
            run_until(page, "Прошлый ответ ещё не закончен.")
            assert len(chat.questions) == 4
            page.get_by_role("button", name="Повторить").click()
            expect(last(page)).to_contain_text("Вот")
            expect(page.locator("chat-widget .note")).to_have_count(0)
        assert len({(each.key, each.raw) for each in chat.questions}) == 1

    def test_a_session_that_is_gone_makes_room_for_a_new_one(
        self, chat: FakeChat, visit: Opened
    ) -> None:
        chat.will(saying("Раз"), Refusal(404, "not_found"), saying("Два", session="s-2"))
        with visit() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Раз")
            ask(page, "Ещё")
            expect(last(page)).to_contain_text("Два")
            expect(page.locator("chat-widget .between")).to_contain_text("Это новый")
        _, refused, second = chat.questions
        assert (refused.body["sessionId"], second.body["sessionId"]) == ("s-1", None)
        assert refused.key != second.key

    def test_what_may_have_been_taken_is_sent_again_with_the_same_key(
        self, chat: FakeChat, visit: Opened
    ) -> None:
        seen = Event()
        chat.will([start(), chunk("Торт стоит "), seen, CUT], saying("Торт стоит 2 400 ₽."))
        with visit() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Торт стоит")
            seen.set()
            expect(last(page)).to_contain_text("Ответ прервался.")
            assert len(chat.questions) == 1
            page.evaluate("history.pushState(null, '', '/elsewhere')")
            page.get_by_role("button", name="Повторить").click()
            expect(last(page).locator(".bubble")).to_have_text("Торт стоит 2 400 ₽.")
            expect(page.locator("chat-widget .note")).to_have_count(0)
        first, second = chat.questions
        assert (first.key, first.raw) == (second.key, second.raw)

    def test_a_stream_that_ends_early_is_cut_too(self, chat: FakeChat, visit: Opened) -> None:
        chat.will([start(), chunk("Торт")])
        with visit() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Ответ прервался.")

    def test_what_failed_for_certain_is_sent_anew(self, chat: FakeChat, visit: Opened) -> None:
        failure: list[Step] = [start(), event(type="error", error="The model is gone <b>.")]
        chat.will(failure, saying("Вот"))
        with visit() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Ответ не пришёл.")
            expect(panel(page)).not_to_contain_text("model")
            page.get_by_role("button", name="Повторить").click()
            expect(last(page)).to_contain_text("Вот")
        first, second = chat.questions
        assert first.key != second.key
        assert second.body["sessionId"] == "s-1"

    def test_a_silent_stream_is_given_up(self, chat: FakeChat, visit: Opened) -> None:
        chat.will([start(), chunk("Торт"), Silence()])
        with visit() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Торт")
            page.clock.fast_forward(46_000)
            expect(last(page)).to_contain_text("Ответ прервался.")
            assert chat.questions[0].left.wait(5)

    def test_pings_keep_it_alive(self, chat: FakeChat, visit: Opened) -> None:
        more = Event()
        chat.will([start(), chunk("Торт"), more, chunk(" готов"), DONE])
        with visit() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Торт")
            for _ in range(4):
                page.clock.run_for(20_000)
                page.wait_for_timeout(200)
            more.set()
            expect(last(page)).to_contain_text("Торт готов")

    def test_without_a_connection_it_says_so(self, chat: FakeChat, visit: Opened) -> None:
        chat.will(saying("Вот"))
        with visit() as page:
            open_chat(page)
            page.context.set_offline(True)
            ask(page)
            expect(last(page)).to_contain_text("Нет связи с интернетом.")
            page.context.set_offline(False)
            page.get_by_role("button", name="Повторить").click()
            expect(last(page)).to_contain_text("Вот")

    def test_a_proxys_page_is_no_answer(self, chat: FakeChat, visit: Opened) -> None:
        with visit() as page:
            page.route(
                "**/chat-stream",
                lambda route: (
                    route.fulfill(
                        body="<h1>Login</h1>",
                        content_type="text/html",
                        headers={"Access-Control-Allow-Origin": "*"},
                    )
                    if route.request.method == "POST"
                    else route.continue_()
                ),
            )
            chatting(page)
            expect(last(page)).to_contain_text("Ответ не пришёл.")


class Silence(Event):
    """What is waited for without a word."""


MARKDOWN = """\
# Торты
Есть **медовик** и *наполеон*, __оба__ свежие; 2*3*4 и snake_case_name остаются.
Вторая строка

1. Первый
   продолжение
2. Второй
   - внутри `code *не курсив*`
   - ещё
3. Третий

- один
- два

```python
<b>x</b> = 1 * 2 * 3
```
---
[Каталог](https://bakery.example/a_b_c?x=1&y=(2)), <https://bakery.example/>, https://bakery.example/d.
[Почта](mailto:hi@bakery.example) и [звонок](tel:+79991234567), \\*не курсив\\*, ***оба***
"""
SHOWN = (
    "<p><strong>Торты</strong></p>"
    "<p>Есть <strong>медовик</strong> и <em>наполеон</em>, <strong>оба</strong> свежие; "
    "2<em>3</em>4 и snake_case_name остаются.<br>Вторая строка</p>"
    "<ol><li>Первый<br>продолжение</li><li>Второй"
    "<ul><li>внутри <code>code *не курсив*</code></li><li>ещё</li></ul></li><li>Третий</li></ol>"
    "<ul><li>один</li><li>два</li></ul>"
    '<pre tabindex="0"><code>&lt;b&gt;x&lt;/b&gt; = 1 * 2 * 3</code></pre>'
    "<hr>"
    '<p><a href="https://bakery.example/a_b_c?x=1&amp;y=(2)" LINK>Каталог</a>, '
    '<a href="https://bakery.example/" LINK>https://bakery.example/</a>, '
    '<a href="https://bakery.example/d" LINK>https://bakery.example/d</a>.<br>'
    '<a href="mailto:hi@bakery.example" rel="noopener nofollow">Почта</a> и '
    '<a href="tel:+79991234567" rel="noopener nofollow">звонок</a>, *не курсив*, '
    "<strong><em>оба</em></strong></p>"
).replace("LINK", 'rel="noopener nofollow" target="_blank"')

HOSTILE = [
    "<script>hit()</script>",
    "<img src=x onerror=hit()>",
    "<svg onload=hit()><animate onbegin=hit() attributeName=x>",
    "<iframe srcdoc='<script>parent.hit()</script>'></iframe>",
    "<details open ontoggle=hit()><summary>x</summary></details>",
    "<math><mtext></mtext><mglyph><style><img src=x onerror=hit()>",
    "<a href='javascript:hit()'>x</a>",
    "<form action=javascript:hit()><button>x</button></form>",
    "<style>@import 'javascript:hit()';*{display:none}</style>",
    "<base href='javascript:hit()//'>",
    "[x](javascript:hit())",
    "[x](JaVaScRiPt:hit())",
    "[x](java\tscript:hit())",
    "[x](java&Tab;script:hit())",
    "[x](\x01javascript:hit())",
    "[x](&#106;avascript:hit())",
    "[x](javascript&colon;hit())",
    "[x](%6aavascript:hit())",
    "[x](//evil.example/javascript:hit())",
    "[x](vbscript:hit())",
    "[x](data:text/html,<script>hit()</script>)",
    "[x](data:text/html;base64,PHNjcmlwdD5oaXQoKTwvc2NyaXB0Pg==)",
    "[x](blob:https://a.example/1)",
    "[x](file:///etc/passwd)",
    "[x](https://bank.example@evil.example/)",
    "[x](<javascript:hit()>)",
    '[x](javascript:hit() "title")',
    "[x][1]\n\n[1]: javascript:hit()",
    "![x](javascript:hit())",
    '![x](https://evil.example/"onerror="hit())',
    '[x](https://evil.example/"onmouseover="hit())',
    "[<img src=x onerror=hit()>](https://evil.example/)",
    "[`<img src=x onerror=hit()>`](https://evil.example/)",
    "<javascript:hit()>",
    '<https://evil.example/"onclick=hit()>',
    "https://evil.example/'><script>hit()</script>",
    "```html\n<script>hit()</script>\n```",
    '```"><script>hit()</script>\nx\n```',
    "`<script>hit()</script>`",
    "**<img src=x onerror=hit()>**",
    "# <img src=x onerror=hit()>",
    "- <img src=x onerror=hit()>",
    "1. [x](javascript:hit())",
    "a\u2028javascript:hit()\u2029b",
    "\u202ehttps://evil.example/\u202c",
    "{{constructor.constructor('hit()')()}}",
    "${hit()}",
    "__proto__",
    "[__proto__](https://evil.example/__proto__)",
    "]]><script>hit()</script>",
    "<!--<img src='--><img src=x onerror=hit()>'>",
]
INSPECT = """() => {
    const found = [], { shadowRoot } = document.querySelector('chat-widget');
    for (const bubble of shadowRoot.querySelectorAll('.bubble'))
        for (const node of bubble.querySelectorAll('*'))
            found.push([node.localName, [...node.attributes].map((a) => [a.name, a.value])]);
    return found;
}"""
ELEMENTS = {"p", "br", "strong", "em", "code", "pre", "ul", "ol", "li", "a", "hr"}


WATCH = """() => {
    window.seen = [];
    const log = document.querySelector('chat-widget').shadowRoot.querySelector('.log');
    new MutationObserver(() => {
        const text = log.lastChild.querySelector('.bubble').textContent;
        if (!log.lastChild.matches('.me') && text) seen.push(text);
    }).observe(log, { childList: true, subtree: true });
}"""


class TestMarkdown:
    def shown(self, page: Page) -> str:
        html: str = last(page).locator(".bubble").evaluate("node => node.innerHTML")
        return html

    def test_a_subset_is_shown(self, chat: FakeChat, visit: Opened) -> None:
        chat.will(saying(MARKDOWN))
        with visit() as page:
            chatting(page)
            expect(last(page)).to_contain_text("оба")
            assert self.shown(page) == SHOWN

    def test_however_it_is_cut_it_ends_the_same(self, chat: FakeChat, visit: Opened) -> None:
        chat.will(saying(*MARKDOWN))
        with visit() as page:
            chatting(page)
            settled(page)
            assert self.shown(page) == SHOWN

    def test_what_is_begun_is_never_seen_raw(self, chat: FakeChat, visit: Opened) -> None:
        text = "Есть **медовик** и `код`, *или* [каталог](https://bakery.example/cakes), **ещё"
        gates = [Event() for _ in text]
        steps: list[Step] = [start()]
        for letter, gate in zip(text, gates, strict=True):
            steps += [chunk(letter), gate]
        chat.will([*steps, DONE])
        with visit() as page:
            open_chat(page)
            page.evaluate(WATCH)
            ask(page)
            for end, gate in enumerate(gates, 1):
                drawn = len(text[:end].replace(" ", ""))  # a space at the end draws nothing
                page.wait_for_function("drawn => seen.length >= drawn", arg=drawn)
                gate.set()
            settled(page)
            seen = page.evaluate("seen")[:drawn]
        assert seen[-1] == "Есть медовик и код, или каталог, ещё"
        # A single sign that emphasises may as well be an asterisk: it shows until it is closed.
        assert [each for each in seen if re.search(r"\*\*|[`\[\]()]|\*$", each)] == []

    def test_what_is_written_stays_in_place(self, chat: FakeChat, visit: Opened) -> None:
        more = Event()
        chat.will([start(), chunk("Первый абзац\n\nВто"), more, chunk("рой абзац"), DONE])
        with visit() as page:
            chatting(page)
            paragraphs = last(page).locator(".bubble p")
            expect(paragraphs).to_have_count(2)
            paragraphs.first.evaluate("node => { node.seen = true }")
            more.set()
            expect(paragraphs.last).to_have_text("Второй абзац")
            assert paragraphs.first.evaluate("node => node.seen") is True

    @pytest.mark.parametrize("pieces", ["whole", "letters"])
    def test_nothing_in_an_answer_runs_or_loads(
        self, chat: FakeChat, visit: Opened, pieces: str
    ) -> None:
        text = "\n\n".join(HOSTILE)
        chat.will(saying(*([text] if pieces == "whole" else text)))
        chat.agents[AGENT]["name"] = chat.agents[AGENT]["welcomeMessage"] = (
            "<img src=x onerror=hit()>"
        )
        hits: list[str] = []
        asked: list[str] = []
        with visit(head="<script>hit = () => { document.title = 'HIT' }</script>") as page:
            page.on("dialog", lambda dialog: hits.append(dialog.message))
            page.on("request", lambda request: asked.append(request.url))
            chatting(page, "<img src=x onerror=hit()> [x](javascript:hit())")
            settled(page)
            for name, attributes in page.evaluate(INSPECT):
                assert name in ELEMENTS
                for attribute, value in attributes:
                    assert attribute in {"href", "rel", "target", "tabindex", "start"}
                    assert attribute != "href" or re.match(r"https://evil\.example/", value), value
            for link in last(page).locator("a").all():
                link.evaluate(
                    "node => { node.target = ''; node.href = '#' + node.href; node.click() }"
                )
            assert page.title() == "Пекарня"
            assert all(url.startswith(chat.url) for url in asked)
            page.reload()
            expect(last(page)).to_contain_text("<script>hit()</script>")
            assert page.title() == "Пекарня"
        assert hits == []

    @pytest.mark.parametrize(
        "text",
        ["*" * 9000, "**a" * 3000, "`" * 9000, "[" * 9000, "[a](" * 2500, "_a_" * 3000, "- " * 4500,
         "\\" * 9000, "https://" * 1200, "<https://" * 1000, "**a** " * 1500, "*a **b " * 1300],
        ids=lambda text: text[:6],
    )  # fmt: skip
    def test_odd_texts_take_no_time(self, chat: FakeChat, visit: Opened, text: str) -> None:
        chat.will(saying(*(text[at : at + 300] for at in range(0, len(text), 300))))
        with visit() as page:
            chatting(page)
            began = page.evaluate("performance.now()")
            settled(page)
            assert page.evaluate("performance.now()") - began < 3_000


AGAIN = """() => new Promise((onload) => {
    const { src, dataset } = document.querySelector('script');
    const script = Object.assign(document.createElement('script'), { src, onload });
    Object.assign(script.dataset, dataset);
    document.body.append(script);
})"""


class TestEmbedding:
    def test_the_pages_styles_and_ours_do_not_meet(
        self, chat: FakeChat, visit: Opened, opened: Opened, site: Site
    ) -> None:
        chat.will(saying("Вот"))
        look = (
            "node => { const { color, fontSize } = getComputedStyle(node); "
            "return [color, fontSize, node.offsetWidth] }"
        )
        with visit() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Вот")
            untouched = last(page).locator(".bubble").evaluate(look)
            heading = page.locator("h1").evaluate("node => getComputedStyle(node).fontSize")
        chat.will(saying("Вот"))
        with visit(head=f"<style>{STYLES}</style>") as page:
            chatting(page)
            expect(last(page)).to_contain_text("Вот")
            assert last(page).locator(".bubble").evaluate(look) == untouched
            shoot(page, "widget-under-styles")
        site.pages["/plain"] = document()
        with opened(f"{site.url}/plain") as page:
            assert page.locator("h1").evaluate("node => getComputedStyle(node).fontSize") == heading

    def test_a_strict_policy_of_the_page_is_kept(self, chat: FakeChat, visit: Opened) -> None:
        policy = (
            f"default-src 'none'; script-src {chat.url}; connect-src {chat.url}; base-uri 'none'; "
            "require-trusted-types-for 'script'; trusted-types 'none'"
        )
        chat.will(saying("**Вот**"))
        said: list[str] = []
        with visit(head=f'<meta http-equiv="Content-Security-Policy" content="{policy}">') as page:
            page.on("console", lambda message: said.append(message.text))
            chatting(page)
            expect(last(page).locator("strong")).to_have_text("Вот")
            assert panel(page).evaluate("node => getComputedStyle(node).position") == "fixed"
            bubble = last(page).locator(".bubble")
            assert bubble.evaluate("node => getComputedStyle(node).fontSize") == "16px"
        assert said == []

    def test_it_works_in_a_sandboxed_frame(
        self, chat: FakeChat, site: Site, opened: Opened
    ) -> None:
        inside = escape(document(tag(chat)))
        frame = (
            f'<iframe sandbox="allow-scripts" srcdoc="{inside}" width="600" height="700"></iframe>'
        )
        site.pages["/"] = document(frame)
        chat.will(saying("Раз"), saying("Два"))
        with opened(f"{site.url}/?a=1") as page:
            sandbox = page.frames[1]
            assert sandbox.evaluate("origin") == "null"
            chatting(sandbox)
            expect(last(sandbox)).to_contain_text("Раз")
            ask(sandbox)
            expect(last(sandbox)).to_contain_text("Два")
        assert chat.questions[1].body["sessionId"] == "s-1"
        assert chat.questions[0].body["pageUrl"] == f"{site.url}/"
        assert chat.stages == ["loaded", "opened", "started", "engaged"]

    def test_it_works_on_a_page_that_its_server_sandboxes(
        self, chat: FakeChat, opened: Opened
    ) -> None:
        policy = {"Content-Security-Policy": "sandbox allow-scripts allow-forms allow-popups"}
        chat.pages["/s/bakery/"] = (document(tag(chat)), {**policy, "Content-Type": "text/html"})
        chat.agents[AGENT]["allowedOrigins"] = ["https://bakery.example"]
        chat.will(saying("Раз"))
        with opened(f"{chat.url}/s/bakery/") as page:
            assert page.evaluate("origin") == "null"
            chatting(page)
            expect(last(page)).to_contain_text("Раз")
        assert chat.questions[0].body["pageUrl"] == f"{chat.url}/s/bakery/"

    def test_the_tag_twice_is_one_widget(self, chat: FakeChat, site: Site, opened: Opened) -> None:
        site.pages["/"] = document(tag(chat), tag(chat))
        with opened(site.url) as page:
            expect(launcher(page)).to_be_visible()
            page.evaluate(AGAIN)
            expect(page.locator("chat-widget")).to_have_count(1)
        assert chat.stages == ["loaded"]

    def test_two_bots_stand_one_above_the_other_and_open_one_at_a_time(
        self, chat: FakeChat, site: Site, opened: Opened
    ) -> None:
        chat.agents["other"] = {**chat.agents[AGENT], "id": "other", "name": "Второй"}
        site.pages["/"] = document(tag(chat), tag(chat, agent="other"))
        chat.will(saying("Раз"))
        with opened(site.url) as page:
            expect(launcher(page)).to_have_count(2)
            boxes = [each.bounding_box() for each in launcher(page).all()]
            first, second = sorted((box for box in boxes if box), key=lambda box: box["y"])
            assert first["y"] + first["height"] <= second["y"]
            launcher(page).nth(0).click()
            launcher(page).nth(1).click()
            expect(panel(page).locator("visible=true")).to_have_count(1)
            shoot(page, "widget-two")

    def test_a_script_in_the_head_waits_for_the_body(
        self, chat: FakeChat, site: Site, opened: Opened
    ) -> None:
        head = tag(chat).replace(" async", "")
        site.pages["/"] = document(head=head)
        chat.will(saying("Раз"))
        with opened(site.url) as page:
            chatting(page)
            expect(last(page)).to_contain_text("Раз")

    def test_it_survives_an_application_that_replaces_the_body(
        self, chat: FakeChat, visit: Opened, site: Site
    ) -> None:
        chat.will(saying("Раз"))
        with visit() as page:
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
    def test_what_must_not_be_shown_is_not(
        self, chat: FakeChat, visit: Opened, settings: Any, warning: str
    ) -> None:
        chat.agents[AGENT] = settings
        with visit(head="<script>addEventListener('load', () => {})</script>") as page:
            if not said_by(page, warning):
                page.wait_for_event("console", lambda message: warning in message.text)
            expect(page.locator("chat-widget")).to_have_count(0)
        assert chat.events == []

    def test_an_allowed_origin_has_it(self, chat: FakeChat, visit: Opened, site: Site) -> None:
        chat.agents[AGENT]["allowedOrigins"] = ["https://bakery.example", site.url]
        with visit() as page:
            expect(launcher(page)).to_be_visible()

    def test_without_its_settings_it_still_answers(self, chat: FakeChat, visit: Opened) -> None:
        chat.agents[AGENT] = 500
        chat.will(saying("Раз"))
        with visit('data-title="Помощь"') as page:
            chatting(page)
            expect(page.get_by_role("dialog", name="Помощь")).to_be_visible()
            expect(last(page)).to_contain_text("Раз")

    def test_a_tag_without_a_bot_says_what_is_missing(
        self, chat: FakeChat, site: Site, opened: Opened
    ) -> None:
        site.pages["/"] = document()
        with opened(site.url) as page:
            with page.expect_console_message(lambda said: "data-agent" in said.text):
                page.add_script_tag(url=f"{chat.url}/widget.js")
            expect(page.locator("chat-widget")).to_have_count(0)

    def test_options_are_attributes(self, chat: FakeChat, visit: Opened) -> None:
        options = (
            'data-title="Help &amp; more" data-language="en" data-position="left" '
            'data-color="#ffd400" data-open data-project="01JSITE" data-theme="dark"'
        )
        with visit(options) as page:
            expect(page.get_by_role("dialog", name="Help & more")).to_be_visible()
            expect(page.get_by_role("button", name="Close the chat")).to_have_count(2)
            expect(field(page)).not_to_be_focused()
            box = launcher(page).bounding_box()
            assert box is not None
            assert box["x"] < 100
            colours = (
                "node => [getComputedStyle(node).backgroundColor, getComputedStyle(node).color]"
            )
            assert launcher(page).evaluate(colours) == ["rgb(255, 212, 0)", "rgb(0, 0, 0)"]
        assert {each["projectId"] for each in chat.events} == {"01JSITE"}


def said_by(page: Page, text: str) -> bool:
    """Whether the console already says a text."""
    return any(text in message.text for message in page.console_messages())


class TestFunnel:
    def test_each_stage_is_reported_once_and_without_the_query(
        self, chat: FakeChat, visit: Opened, site: Site
    ) -> None:
        chat.will(saying("Раз"), saying("Два"), saying("Три"))
        with visit() as page:
            expect(launcher(page)).to_be_visible()
            open_chat(page)
            launcher(page).click()
            open_chat(page)
            for said in ("Раз", "Два", "Три"):
                ask(page)
                expect(last(page)).to_contain_text(said)
                settled(page)
            page.reload()
            expect(launcher(page)).to_be_visible()
        assert chat.stages == ["loaded", "opened", "started", "engaged"]
        assert chat.types == {"text/plain;charset=UTF-8"}
        (visit_id,) = {each["visitId"] for each in chat.events}
        assert re.fullmatch(r"[0-9a-f]{32}", visit_id)
        assert {(each["agentId"], each["pageUrl"]) for each in chat.events} == {
            (AGENT, f"{site.url}/")
        }

    def test_without_beacons_it_is_reported_all_the_same(
        self, chat: FakeChat, visit: Opened
    ) -> None:
        head = "<script>navigator.sendBeacon = () => false</script>"
        with visit(head=head) as page, page.expect_response("**/widget-event"):
            open_chat(page)
        assert chat.stages == ["loaded", "opened"]


class TestContacts:
    def test_they_are_sent_as_a_message_and_apart(self, chat: FakeChat, visit: Opened) -> None:
        chat.will(saying("Раз"), saying("Спасибо, Анна!"))
        with visit('data-privacy="https://bakery.example/privacy"') as page:
            leave = page.get_by_role("button", name="Оставить контакты")
            open_chat(page)
            expect(leave).to_have_count(0)
            ask(page)
            leave.click()
            name, reach = page.get_by_label("Имя"), page.get_by_label("Телефон или e-mail")
            expect(name).to_be_focused()
            expect(page.get_by_role("link", name="Политика")).to_have_attribute(
                "href", "https://bakery.example/privacy"
            )
            assert barriers(page) == []
            name.fill("Анна")
            reach.fill("позвоните")
            reach.press("Enter")
            expect(page.get_by_role("alert")).to_contain_text("Введите номер телефона")
            expect(reach).to_be_focused()
            assert barriers(page) == []
            reach.fill("8 999 123-45-67")
            page.get_by_role("button", name="Отправить").click()
            expect(last(page)).to_contain_text("Спасибо, Анна!")
            expect(last(page).locator(".note")).to_have_text("Ваши контакты переданы.")
            expect(field(page)).to_be_focused()
            expect(leave).to_have_count(0)
        body = chat.questions[1].body
        assert body["message"] == "Меня зовут Анна. Мой контакт: 8 999 123-45-67"
        assert body["contact"] == {"name": "Анна", "phone": "8 999 123-45-67"}

    def test_they_can_be_kept(self, chat: FakeChat, visit: Opened) -> None:
        chat.will(saying("Раз"))
        with visit() as page:
            chatting(page)
            leave = page.get_by_role("button", name="Оставить контакты")
            leave.click()
            page.keyboard.press("Escape")
            expect(field(page)).to_be_focused()
            leave.click()
            page.get_by_role("button", name="Назад").click()
            expect(field(page)).to_be_focused()
        assert len(chat.questions) == 1


class TestKeyboard:
    def test_everything_is_done_without_a_mouse(self, chat: FakeChat, visit: Opened) -> None:
        chat.will(saying("Раз"))
        shortcuts = (
            "addEventListener('keydown', (e) => { if (e.key.length === 1) e.preventDefault() })"
        )
        with visit(head=f"<script>{shortcuts}</script>") as page:
            expect(launcher(page)).to_be_visible()
            page.keyboard.press("Tab")
            expect(page.get_by_role("link", name="Меню")).to_be_focused()
            page.keyboard.press("Tab")
            expect(launcher(page)).to_be_focused()
            expect(launcher(page)).to_have_attribute("aria-expanded", "false")
            shoot(page, "widget-focus")
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

    def test_an_empty_message_is_not_sent(self, chat: FakeChat, visit: Opened) -> None:
        with visit() as page:
            open_chat(page)
            ask(page, " \n ")
            expect(page.get_by_role("button", name="Отправить")).to_be_disabled()
        assert chat.questions == []

    def test_each_part_of_an_answer_is_read_out_once(self, chat: FakeChat, visit: Opened) -> None:
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
            window.spoken = [];
            const { shadowRoot } = document.querySelector('chat-widget');
            new MutationObserver((all) => all.forEach(({ addedNodes }) =>
                addedNodes.forEach((node) => spoken.push(node.textContent))
            )).observe(shadowRoot.querySelector('[aria-live=polite]'), { childList: true });
        }"""
        with visit() as page:
            open_chat(page)
            page.evaluate(record)
            ask(page)
            for gate, text in zip(gates, ("Пер", "Вто", "Второй"), strict=True):
                expect(last(page).locator(".bubble p").last).to_have_text(text)
                gate.set()
            settled(page)
            assert page.evaluate("spoken") == ["Пишу ответ…", "Первый", "Второй"]
            expect(page.get_by_role("log")).to_have_attribute("aria-live", "off")
            page.clock.fast_forward(11_000)
            expect(page.locator("chat-widget [aria-live=polite]")).to_be_empty()

    def test_an_answer_to_a_closed_chat_shows_on_the_button(
        self, chat: FakeChat, visit: Opened
    ) -> None:
        more = Event()
        chat.will([start(), chunk("Раз"), more, DONE])
        with visit() as page:
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
    def test_it_has_no_barriers(
        self, chat: FakeChat, visit: Opened, scheme: str, size: str, options: dict[str, Any]
    ) -> None:
        chat.will(*TALK)
        reduced = {"color_scheme": scheme, "reduced_motion": "reduce"}
        with visit(**options, **reduced) as page:
            expect(launcher(page)).to_be_visible()
            assert barriers(page) == []
            shoot(page, f"widget-closed-{size}-{scheme}")
            chatting(page)
            expect(last(page)).to_contain_text("код")
            shoot(page, f"widget-answer-{size}-{scheme}")
            ask(page, "А на субботу?")
            expect(last(page)).to_contain_text("Сейчас чат не отвечает.")
            assert barriers(page) == []
            shoot(page, f"widget-{size}-{scheme}")
            page.get_by_role("button", name="Оставить контакты").click()
            assert barriers(page) == []
            shoot(page, f"widget-contacts-{size}-{scheme}")

    @pytest.mark.parametrize("colour", ["#e88c00", "#d92d20", "#767676", "#fff", "#0a7d4b"])
    def test_any_colour_can_be_read(self, chat: FakeChat, visit: Opened, colour: str) -> None:
        chat.will(*TALK)
        with visit(f'data-color="{colour}"') as page:
            chatting(page)
            expect(last(page)).to_contain_text("код")
            assert barriers(page) == []

    def test_on_a_phone_it_covers_the_page_and_gives_it_back(
        self, chat: FakeChat, visit: Opened
    ) -> None:
        with visit(**PHONE, reduced_motion="reduce") as page:
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

    def test_turning_a_phone_uncovers_the_page(self, chat: FakeChat, visit: Opened) -> None:
        with visit(viewport={"width": 400, "height": 700}) as page:
            open_chat(page)
            assert page.evaluate("document.body.inert") is True
            page.set_viewport_size({"width": 900, "height": 700})
            expect(panel(page)).not_to_have_attribute("aria-modal", "true")
            assert page.evaluate("document.body.inert") is False

    def test_a_page_read_from_the_right_has_it_on_the_left(
        self, chat: FakeChat, site: Site, opened: Opened
    ) -> None:
        site.pages["/"] = document(tag(chat), lang="he", direction="rtl")
        chat.will(saying("שלום! יש לנו **עוגות**:\n\n- עוגת דבש\n- נפוליאון"))
        with opened(site.url, viewport={"width": 900, "height": 760}) as page:
            chatting(page, "אילו עוגות יש?")
            expect(last(page)).to_contain_text("נפוליאון")
            box, mine = launcher(page).bounding_box(), page.locator(".me").bounding_box()
            theirs = last(page).bounding_box()
            assert box is not None
            assert mine is not None
            assert theirs is not None
            assert box["x"] < 100
            assert mine["x"] < theirs["x"]
            assert barriers(page) == []
            shoot(page, "widget-rtl")

    def test_larger_letters_of_the_visitor_are_kept(self, chat: FakeChat, visit: Opened) -> None:
        with visit(head="<style>html{font-size:62.5%}</style>") as page:
            open_chat(page)
            size = "node => getComputedStyle(node).fontSize"
            assert page.locator("chat-widget .bubble").first.evaluate(size) == "16px"

"""Markdown and HTML in answers, as the chat widget renders them."""

import re
from threading import Event

import pytest
from playwright.sync_api import Page, expect

from tests.factories.widget import AGENT, Opened, ask, chatting, last, open_chat, settled
from tests.fakes.chat_server import (
    DONE,
    FakeChat,
    Step,
    chunk,
    saying,
    start,
)

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
    def visible_html(self, page: Page) -> str:
        html: str = last(page).locator(".bubble").evaluate("node => node.innerHTML")
        return html

    def test_a_subset_of_markdown_is_rendered(self, chat: FakeChat, open_page: Opened) -> None:
        chat.will(saying(MARKDOWN))
        with open_page() as page:
            chatting(page)
            expect(last(page)).to_contain_text("оба")
            assert self.visible_html(page) == SHOWN

    def test_the_result_does_not_depend_on_how_the_text_is_split(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        chat.will(saying(*MARKDOWN))
        with open_page() as page:
            chatting(page)
            settled(page)
            assert self.visible_html(page) == SHOWN

    def test_incomplete_markup_is_never_shown_raw(self, chat: FakeChat, open_page: Opened) -> None:
        text = "Есть **медовик** и `код`, *или* [каталог](https://bakery.example/cakes), **ещё"
        gates = [Event() for _ in text]
        steps: list[Step] = [start()]
        for letter, gate in zip(text, gates, strict=True):
            steps += [chunk(letter), gate]
        chat.will([*steps, DONE])
        with open_page() as page:
            open_chat(page)
            page.evaluate(WATCH)
            ask(page)
            for end, gate in enumerate(gates, 1):
                drawn = len(text[:end].replace(" ", ""))  # a space at the end is not visible
                page.wait_for_function("drawn => seen.length >= drawn", arg=drawn)
                gate.set()
            settled(page)
            seen = page.evaluate("seen")[:drawn]
        assert seen[-1] == "Есть медовик и код, или каталог, ещё"
        # A single marker may also be a plain asterisk. It is shown until the markup is closed.
        assert [text for text in seen if re.search(r"\*\*|[`\[\]()]|\*$", text)] == []

    def test_rendered_text_does_not_move_when_more_arrives(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        more = Event()
        chat.will([start(), chunk("Первый абзац\n\nВто"), more, chunk("рой абзац"), DONE])
        with open_page() as page:
            chatting(page)
            paragraphs = last(page).locator(".bubble p")
            expect(paragraphs).to_have_count(2)
            paragraphs.first.evaluate("node => { node.seen = true }")
            more.set()
            expect(paragraphs.last).to_have_text("Второй абзац")
            assert paragraphs.first.evaluate("node => node.seen") is True

    @pytest.mark.parametrize("pieces", ["whole", "letters"])
    def test_answers_run_no_script_and_load_nothing(
        self, chat: FakeChat, open_page: Opened, pieces: str
    ) -> None:
        text = "\n\n".join(HOSTILE)
        chat.will(saying(*([text] if pieces == "whole" else text)))
        chat.agents[AGENT]["name"] = chat.agents[AGENT]["welcomeMessage"] = (
            "<img src=x onerror=hit()>"
        )
        hits: list[str] = []
        requests: list[str] = []
        with open_page(head="<script>hit = () => { document.title = 'HIT' }</script>") as page:
            page.on("dialog", lambda dialog: hits.append(dialog.message))
            page.on("request", lambda request: requests.append(request.url))
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
            assert all(url.startswith(chat.url) for url in requests)
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
    def test_malformed_markdown_is_rendered_quickly(
        self, chat: FakeChat, open_page: Opened, text: str
    ) -> None:
        chat.will(saying(*(text[at : at + 300] for at in range(0, len(text), 300))))
        with open_page() as page:
            chatting(page)
            processor = page.context.new_cdp_session(page)
            processor.send("Performance.enable", {"timeDomain": "threadTicks"})
            settled(page)
            metrics = processor.send("Performance.getMetrics")["metrics"]
            (seconds,) = (metric["value"] for metric in metrics if metric["name"] == "TaskDuration")
            assert 0 < seconds < 10  # CPU seconds; 0.03 at most

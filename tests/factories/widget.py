"""The chat widget on a test's page, as a visitor opens and uses it."""

from collections.abc import Callable
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Frame, Locator, Page, expect

from tests.fakes.chat_server import (
    FakeChat,
)

Opened = Callable[..., Any]
AGENT = "01JAGENT"
NAME = "Пекарня «Колосок»"
GREETING = "Здравствуйте! Помочь с тортом?"


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


def last(page: Page | Frame) -> Locator:
    return page.locator("chat-widget .turn").last


def card(page: Page | Frame) -> Locator:
    """Return the newest card with an action to confirm."""
    return page.locator("chat-widget .card").last


def open_chat(page: Page | Frame) -> None:
    launcher(page).click()
    expect(panel(page)).to_be_visible()


def ask(page: Page | Frame, text: str = "Сколько стоит торт?") -> None:
    field(page).fill(text)
    field(page).press("Enter")


def chatting(page: Page | Frame, text: str = "Сколько стоит торт?") -> None:
    open_chat(page)
    ask(page, text)


def settled(page: Page | Frame) -> None:
    """Wait until an answer has ended."""
    send = page.locator("chat-widget").get_by_role("button", name="Отправить", exact=True)
    expect(send).to_be_visible()


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
"""Text contrast (WCAG 1.4.3), which axe cannot determine in a shadow root."""


def accessibility_errors(page: Page) -> list[str]:
    """Return the findings of axe, and elements with too little contrast."""
    violations = Axe().run(page, context="chat-widget").response
    contrasts = page.evaluate(CONTRASTS)
    assert contrasts or panel(page).is_hidden()
    return [
        *(
            f"{rule['id']}: {at['html'][:99]}"
            for rule in violations["violations"]
            for at in rule["nodes"]
        ),
        *(f"{ratio:.2f}: {html}" for ratio, html in contrasts if ratio < 4.5),
    ]

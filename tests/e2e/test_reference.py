"""Pages of the API reference are accessible, small and self-contained."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import markup_errors, save_screenshot

WIDTHS = {"phone": 360, "desktop": 1440}
PAGES = {
    "start": "",
    "errors": "/errors",
    "tool-server": "/tool-server",
    "products": "/products",
    "chat": "/chat",
    "search": "?q=create+product",
    "nothing": "?q=%3Cscript%3Ealert(1)%3C/script%3E",
    "missing": "/none",
}
MAX_BYTES, MAX_REQUESTS = 60_000, 6
"""Limits of a page as transferred, with the compression of API Gateway."""


@pytest.fixture
def docs_url(service: str) -> str:
    """The URL of the reference."""
    return f"{service}/api/docs"


@pytest.fixture
def open_docs(browser: Browser) -> Callable[..., Any]:
    """Return a function that opens a page in a new context. Errors in the page fail the test."""

    @contextmanager
    def open_tab(url: str, **options: Any) -> Iterator[Page]:
        context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}} | options)
        page = context.new_page()
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        page.on("console", lambda message: problems.append(message.text))
        problems: list[str] = []
        page.goto(url)
        yield page
        assert [p for p in problems if "404" not in p] == []
        context.close()

    return open_tab


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible_small_and_self_contained(
    width: str, scheme: Any, docs_url: str, browser: Browser
) -> None:
    context = browser.new_context(
        viewport={"width": WIDTHS[width], "height": 900}, color_scheme=scheme, locale="en-US"
    )
    host = docs_url.partition("/api")[0]
    for name, path in PAGES.items():
        page, responses = context.new_page(), []
        page.on("response", lambda response, responses=responses: responses.append(response))
        page.goto(docs_url + path)
        page.wait_for_load_state("networkidle")
        save_screenshot(page, f"reference-{name}-{width}-{scheme}")
        own_responses = [response for response in responses if not response.url.startswith("data:")]
        assert all(response.url.startswith(host) for response in own_responses), name
        assert len(own_responses) <= MAX_REQUESTS
        assert (
            sum(response.request.sizes()["responseBodySize"] for response in own_responses)
            <= MAX_BYTES
        ), name
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
        assert page.locator("h1").count() == 1
        violations = Axe().run(page).response["violations"]
        assert [(v["id"], v["impact"], v["nodes"][0]["html"]) for v in violations] == [], name
        assert markup_errors(page) == [], name
        page.close()
    context.close()


class TestSearch:
    def test_the_search_works_with_the_keyboard_alone(self, docs_url: str, open_docs: Any) -> None:
        with open_docs(docs_url) as page:
            page.keyboard.press("/")
            box = page.get_by_role("combobox")
            expect(box).to_be_focused()
            page.keyboard.type("create prod")
            options = page.get_by_role("option")
            expect(options.first).to_contain_text("Create a product")
            expect(page.get_by_role("status")).to_contain_text("results")
            page.keyboard.press("ArrowDown")
            expect(options.first).to_have_attribute("aria-selected", "true")
            save_screenshot(page, "reference-search-open")
            page.keyboard.press("Enter")
            page.wait_for_url("**/api/docs/products#create_product")

    def test_escape_closes_the_search_and_enter_submits_it_to_the_server(
        self, docs_url: str, open_docs: Any
    ) -> None:
        with open_docs(docs_url) as page:
            box = page.get_by_role("combobox")
            box.fill("svc_find_lead")
            expect(page.get_by_role("option").first).to_be_visible()
            page.keyboard.press("Escape")
            expect(page.get_by_role("listbox")).to_have_count(0)
            page.keyboard.press("Enter")
            page.wait_for_url("**/api/docs?q=svc_find_lead")
            expect(page.locator(".found a").first).to_have_attribute(
                "href", "/api/docs/crm#find_lead"
            )

    def test_the_search_finds_the_same_with_and_without_script(
        self, docs_url: str, open_docs: Any
    ) -> None:
        for query in ("product", "slot", "idempotency", "svc_create", "price stock"):
            with open_docs(f"{docs_url}?q={query}") as page:
                hits = page.locator(".found a").all_inner_texts()[:12]
                page.get_by_role("combobox").fill("")
                page.get_by_role("combobox").fill(query)
                expect(page.get_by_role("option").first).to_be_visible()
                options = page.get_by_role("option").evaluate_all(
                    "found => found.map(each => each.firstChild.textContent)"
                )
                assert options == hits, query

    def test_a_search_text_never_runs_as_script(self, docs_url: str, open_docs: Any) -> None:
        attack = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}"
        with open_docs(docs_url, bypass_csp=True) as page:
            page.get_by_role("combobox").fill(attack)
            page.keyboard.press("Enter")
            page.wait_for_url("**q=*")
            assert page.locator("main img, main script").count() == 0
            expect(page.get_by_role("combobox")).to_have_value(attack)
            expect(page.locator(".lead")).to_contain_text(attack)


class TestWithoutScript:
    def test_the_whole_reference_is_there_without_script(
        self, docs_url: str, open_docs: Any
    ) -> None:
        with open_docs(f"{docs_url}/products", java_script_enabled=False) as page:
            assert page.locator("section.operation").count() >= 15
            operation = page.locator("section.operation", has=page.locator("#create_product"))
            for language in ("Python", "JavaScript", "MCP"):
                operation.get_by_text(language, exact=True).click()
                expect(operation.locator(f'[data-language="{language}"] pre')).to_be_visible()
            page.locator('input[name="q"]').fill("barcode")
            page.keyboard.press("Enter")
            page.wait_for_url("**?q=barcode")
            assert page.locator(".found li").count() > 2

    def test_the_menu_opens_on_a_phone_without_script(self, docs_url: str, open_docs: Any) -> None:
        small = {"width": 360, "height": 740}
        with open_docs(f"{docs_url}/chat", java_script_enabled=False, viewport=small) as page:
            expect(page.locator("#menu")).to_be_hidden()
            page.get_by_role("link", name="Menu", exact=True).click()
            expect(page.locator("#menu")).to_be_visible()
            save_screenshot(page, "reference-menu-phone")
            page.get_by_role("link", name="Close menu").click()
            expect(page.locator("#menu")).to_be_hidden()

    def test_the_first_tab_stop_skips_to_the_content(self, docs_url: str, open_docs: Any) -> None:
        with open_docs(f"{docs_url}/errors", java_script_enabled=False) as page:
            page.keyboard.press("Tab")
            assert page.locator(":focus").inner_text() == "Skip to content"


def test_code_can_be_copied_and_the_language_is_remembered(docs_url: str, open_docs: Any) -> None:
    with open_docs(
        f"{docs_url}/products", permissions=["clipboard-read", "clipboard-write"]
    ) as page:
        operation = page.locator("section.operation", has=page.locator("#list_products"))
        operation.get_by_text("Python", exact=True).click()
        operation.get_by_role("button", name="Copy Python: List products").click()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("import os\n")
        assert "/api/products/list" in copied
        other = page.locator("section.operation", has=page.locator("#get_product"))
        expect(other.locator('[data-language="Python"]')).to_have_attribute("open", "")
        page.goto(f"{docs_url}/bookings")
        first = page.locator('.sample[data-language="Python"]').first
        expect(first).to_have_attribute("open", "")


def test_print_leaves_out_what_is_only_useful_on_a_screen(docs_url: str, open_docs: Any) -> None:
    with open_docs(f"{docs_url}/chat") as page:
        page.emulate_media(media="print")
        expect(page.locator("#menu")).to_be_hidden()
        expect(page.locator(".copy").first).to_be_hidden()
        expect(page.locator('[data-language="Python"] pre').first).to_be_visible()
        page.pdf(path="build/e2e/reference.pdf")


def test_the_blog_links_to_the_reference(service: str, open_docs: Any) -> None:
    with open_docs(f"{service}/blog") as page:
        page.get_by_role("link", name="API", exact=True).click()
        page.wait_for_url("**/api/docs")
        expect(page.locator("h1")).to_have_text("API reference")

"""Pages of sites at the platform's own address: what their sandbox keeps out and what it allows."""

from typing import Any

import pytest
from PIL import ImageFont
from playwright.sync_api import BrowserContext, Frame, Locator, Page, expect

from tests.conftest import Api, call_console
from tests.e2e.conftest import SCREENS, OpenConsole
from tests.e2e.test_booking_page import booking_url, choose_a_time, salon, send
from tests.e2e.test_payments import PAID, paid_service
from tests.factories.console import Place
from tests.factories.files import upload
from tests.factories.pages import create, new_site, save
from tests.factories.widget import Opened

__all__ = ["booking_url", "paid_service", "salon"]

PDF = b"%PDF-1.4\n%%EOF\n"
PROBE = """async base => {
  const seen = {};
  const attempt = async (name, read) => {
    try { seen[name] = await read(); } catch (error) { seen[name] = error.name; }
  };
  await attempt("cookies", () => document.cookie);
  await attempt("storage", () => String(localStorage.length));
  await attempt("console", async () => {
    const response = await fetch(`${base}/console`, { credentials: "include" });
    return response.text();
  });
  return seen;
}"""
"""Reads what a page at the platform's own address must not read."""
NOTHING = {"cookies": "SecurityError", "storage": "SecurityError", "console": "TypeError"}
WAYS = {
    "about:blank": "window.open('about:blank')",
    "no address": "window.open('')",
    "about:blank without an opener": "window.open('about:blank', '_blank', 'noopener')",
    "blob:": "window.open(URL.createObjectURL(new Blob(['<h1>Blob'], {type: 'text/html'})))",
    "a page of a site": "window.open('/s/bakery/menu')",
    "a link to a page": "(() => { const a = document.createElement('a'); a.target = '_blank';"
    "a.href = '/s/bakery/menu'; document.body.append(a); a.click(); })()",
}
"""How a script of a page opens another document."""


@pytest.fixture
def site(service: str, api: Api) -> str:
    """A site with two pages at the platform's own address."""
    site = new_site(api)
    save(api, create(api, site, "Home"), "<h1>Home</h1>")
    save(api, create(api, site, "Menu"), "<h1>Menu</h1>")
    slug = api.get(f"/api/projects/{site}")["project"]["slug"]
    return f"{service}/s/{slug}"


def open_from(page: Page, script: str) -> Page:
    with page.context.expect_page() as popup:
        page.evaluate(f"() => {{ {script} }}")
    popup.value.wait_for_load_state()
    return popup.value


def give_cookie(context: BrowserContext, url: str) -> None:
    """Store a cookie that scripts of the service's own origin can read."""
    context.add_cookies([{"name": "seen", "value": "secret", "url": url}])


class TestWhatIsKeptOut:
    @pytest.mark.parametrize("way", WAYS)
    def test_what_a_page_opens_reads_no_cookies_and_no_console(
        self, way: str, service: str, site: str, open_url: Opened
    ) -> None:
        with open_url(f"{site}/") as page:
            give_cookie(page.context, service)
            assert page.evaluate(PROBE, service) == NOTHING
            popup = open_from(page, WAYS[way])
            assert popup.evaluate("self.origin") == "null"
            assert popup.evaluate(PROBE, service) == NOTHING

    def test_a_page_of_a_site_keeps_its_sandbox_in_a_new_tab(
        self, service: str, site: str, open_url: Opened
    ) -> None:
        with open_url(f"{site}/") as page:
            give_cookie(page.context, service)
            popup = open_from(open_from(page, WAYS["about:blank"]), WAYS["a page of a site"])
            expect(popup.get_by_role("heading")).to_have_text("Menu")
            assert popup.evaluate(PROBE, service) == NOTHING

    def test_a_page_does_not_read_the_console_that_it_opens(
        self, service: str, workspace: Place, site: str, open_console: OpenConsole
    ) -> None:
        # The site comes after the workspace, which is restored with the slugs that were free then.
        with open_console() as tab:
            tab.start_session()
            console = tab.path
            tab.open(f"{site.removeprefix(service)}/")
            expect(tab.page.get_by_role("heading")).to_have_text("Home")
            with tab.page.context.expect_page() as other:
                tab.page.evaluate(f"() => {{ window.other = window.open('{console}') }}")
            # Before it has another address, it is an empty page of this origin.
            other.value.wait_for_url(f"**{console}**")
            read = (
                "() => { try { return other.document.body.innerHTML } catch (e) { return e.name } }"
            )
            assert tab.page.evaluate(read) == "SecurityError"
            assert tab.page.evaluate(PROBE, service) == NOTHING
            send_form = """action => {
              const form = document.createElement("form");
              Object.assign(form, { action, method: "post", target: "_blank" });
              form.innerHTML = '<input name="title" value="Stolen">';
              document.body.append(form);
              form.submit();
            }"""
            with tab.page.context.expect_page() as opened:
                tab.page.evaluate(send_form, f"{service}{console}/sites")
            expect(opened.value.locator("h1")).to_be_visible()
            titles = [
                site["title"]
                for site in call_console(workspace.workspace_id, "list_sites")["projects"]
            ]
            assert "Stolen" not in titles
            tab.errors.clear()


class TestWhatIsAllowed:
    def test_a_file_is_downloaded(self, api: Api, site: str, open_url: Opened) -> None:
        file = upload(api, name="menu.pdf", body=PDF)
        save(api, create(api, new_site(api)), f'<a href="{file["url"]}">Menu</a>')
        with open_url(f"{site}-2/") as page:
            with page.expect_download() as download:
                page.get_by_role("link", name="Menu").click()
            assert download.value.path().read_bytes() == PDF

    def test_a_dialog_is_shown(self, site: str, open_url: Opened) -> None:
        with open_url(f"{site}/") as page:
            page.on("dialog", lambda dialog: dialog.accept())
            assert page.evaluate("confirm('Delete?')") is True

    def test_a_font_of_the_files_is_loaded(self, api: Api, site: str, open_url: Opened) -> None:
        font: Any = ImageFont.load_default(16)
        file = upload(api, name="aileron.ttf", body=font.font_bytes or font.path.getvalue())
        style = (
            f"@font-face {{ font-family: Own; src: url({file['url']}) }} p {{ font-family: Own }}"
        )
        save(api, create(api, new_site(api)), f"<style>{style}</style><p>Rye")
        with open_url(f"{site}-2/") as page:
            loaded = "document.fonts.load('16px Own').then(all => all.map(one => one.status))"
            assert page.evaluate(loaded) == ["loaded"]

    @pytest.mark.usefixtures("paid_service")
    @pytest.mark.parametrize("place", ["a new tab", "a frame"])
    def test_a_payment_from_a_page_has_its_own_origin(
        self, place: str, service: str, booking_url: str, api: Api, site: str, open_url: Opened
    ) -> None:
        html = f'<a href="{booking_url}" target="_blank">Book</a>'
        if place == "a frame":
            html = f'<iframe src="{booking_url}" width="340" height="900"></iframe>'
        save(api, create(api, new_site(api)), html)
        with open_url(f"{site}-2/", **SCREENS["phone"] | {"locale": "en-US"}) as page:
            give_cookie(page.context, service)
            booking: Page | Frame
            tab = page
            if place == "a frame":
                booking = page.frames[1]
                assert booking.evaluate("self.origin") == "null"
            else:
                booking = tab = click(page, page.get_by_role("link", name="Book"))
                assert own_origin(booking) == [service, "seen=secret"]
            choose_a_time(booking)
            send(tab, booking, name="Ada", email="ada@example.com")
            tab = click(page, booking.locator('a[href*="/pay/"]'))
            assert own_origin(tab) == [service, "seen=secret"]
            tab.locator("button.button").click()
            tab.wait_for_url("**/dev/pay/**")
            assert own_origin(tab) == [service, "seen=secret"]
            tab.locator("button[value=pay]").click()
            expect(tab.locator("h1")).to_have_text(PAID)


def click(page: Page, link: Locator) -> Page:
    """Follow a link that opens a new tab, and return the tab."""
    with page.context.expect_page() as opened:
        link.click()
    opened.value.wait_for_load_state()
    return opened.value


def own_origin(page: Page) -> list[str]:
    result: list[str] = page.evaluate("[self.origin, document.cookie]")
    return result

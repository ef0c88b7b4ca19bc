"""The consent page and its redirects in a browser, on any screen."""

import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from chalicelib.core.plans import PLANS
from chalicelib.domains.identity.store import connections
from chalicelib.domains.oauth.rules import registration
from tests.conftest import PASSWORD, call_operator
from tests.e2e.conftest import (
    EMAIL,
    SCREENS,
    ConsoleTab,
    OpenConsole,
    elements,
    findings,
    markup_errors,
    save_screenshot,
)
from tests.e2e.test_console import MOST_BYTES, MOST_REQUESTS, OVERFLOW
from tests.factories.console import Place
from tests.factories.oauth_http import content, exchange_form, path, send_form
from tests.factories.oauth_sdk import SdkApp

LONG = "Application " + "Donaudampfschifffahrtsgesellschaft" * 3


@pytest.fixture
def redirecting_callback() -> Iterator[tuple[str, list[str]]]:
    """A client's callback that redirects to an app, as claude.ai's callback does.

    Yields its URL, and the paths that were requested.
    """
    requested: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested.append(self.path)
            is_hop = self.path.startswith("/hop")
            self.send_response(302 if is_hop else 200)
            if is_hop:
                self.send_header("Location", f"http://app.localhost:{server.server_port}/end")
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>Connected</title><h1>Connected</h1>")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", requested
        server.shutdown()
        thread.join()


def registered(uri: str, name: str = "Claude") -> str:
    client_id: str = registration.register({"client_name": name, "redirect_uris": [uri]})[
        "client_id"
    ]
    return client_id


def request_path(tab: ConsoleTab, uri: str, name: str = "Claude", **changes: str | None) -> str:
    """Return the path of a request of a client with this redirect URI."""
    resource = f"{tab.base}/api/mcp"
    return path(
        client_id=registered(uri, name), redirect_uri=uri, resource=resource, scope=None, **changes
    )


def sign_in(page: Page) -> None:
    page.get_by_label(re.compile("E-mail|Эл. почта")).fill(EMAIL)
    page.get_by_label(re.compile("Password|Пароль")).fill(PASSWORD)
    page.keyboard.press("Enter")


def allow(page: Page) -> None:
    """Allow access as a user does: look at the page, then move to the button and press it."""
    page.locator("#currentPassword").fill(PASSWORD)
    button = page.get_by_role("button", name="Allow")
    button.hover()
    expect(button).to_be_enabled()
    button.click()


@pytest.mark.parametrize("screen", SCREENS)
def test_pages_on_the_way_pass_the_checks_on_any_screen(
    screen: str, workspace: Place, open_console: OpenConsole
) -> None:
    call_operator("create_workspace", owner=EMAIL, name="Салон «Ромашка»", plan=PLANS[0])
    problems: list[str] = []

    def check(tab: ConsoleTab, name: str) -> None:
        page = tab.page
        answers = [response for response in tab.responses if response.status != 303]
        size = sum(len(response.body()) for response in answers)
        if len(answers) > MOST_REQUESTS or size > MOST_BYTES:
            problems.append(f"{name}: {len(answers)} requests, {size} bytes")
        problems.extend(f"{name}: wider: {element}" for element in elements(page, OVERFLOW))
        problems.extend(f"{name}: {markup_error}" for markup_error in markup_errors(page))
        if page.locator("h1").count() != 1 or not page.title():
            problems.append(f"{name}: it has not one h1 and a title")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            rules = [] if scheme == "light" else ["color-contrast"]
            problems.extend(f"{name}: {finding}" for finding in findings(page, *rules))
            save_screenshot(page, f"{name}-{screen}-{scheme}")
        page.emulate_media(color_scheme="light")

    with open_console(**SCREENS[screen]) as tab:
        tab.open(request_path(tab, "http://127.0.0.1:3118/callback"))
        check(tab, "consent-sign-in")
        tab.responses.clear()
        sign_in(tab.page)
        expect(tab.page.locator("#scopes")).to_be_visible()
        check(tab, "consent-loopback")
        tab.responses.clear()
        tab.page.locator("[name=review]").evaluate("field => field.form.submit()")
        expect(tab.page.locator("#scopes")).to_have_count(0)
        check(tab, "consent-review")
        tab.open(request_path(tab, "cursor://anysphere.cursor-mcp/oauth", LONG))
        check(tab, "consent-app")
        tab.page.locator("button[value=allow]").evaluate("b => b.form.noValidate = true")
        tab.page.locator("[name=scopes]").evaluate_all("all => all.map(b => b.checked = false)")
        tab.responses.clear()
        tab.page.locator("button[value=allow]").hover()
        tab.page.locator("button[value=allow]").click()
        expect(tab.page.locator("#problem")).to_be_visible()
        check(tab, "consent-error")
        tab.open(path(client_id="somebody"))
        check(tab, "consent-refused")
        tab.open(request_path(tab, "cursor://anysphere.cursor-mcp/oauth", response_type="zzz"))
        check(tab, "consent-mistake")
        tab.errors = [error for error in tab.errors if "400" not in error]
    assert not problems, "\n".join(problems)


def test_access_is_given_to_an_address_that_redirects_further(
    workspace: Place, open_console: OpenConsole, redirecting_callback: tuple[str, list[str]]
) -> None:
    url, requested = redirecting_callback
    with open_console() as tab:
        page = tab.page
        tab.open(request_path(tab, f"{url}/hop"))
        sign_in(page)
        page.get_by_role("button", name="Read only").click()
        expect(page.get_by_label("Products: write")).not_to_be_checked()
        page.get_by_label("Products: write").check()
        page.locator("#currentPassword").fill(PASSWORD)
        button = page.get_by_role("button", name="Allow")
        button.hover()
        expect(button).to_be_enabled()
        button.dblclick()
        expect(page.get_by_role("heading", name="Connected")).to_be_visible()
        assert urlsplit(page.url).path == "/end"
        hop = next(url for url in requested if url.startswith("/hop"))
        code = parse_qs(urlsplit(hop).query)["code"][0]
        form = {"redirect_uri": f"{url}/hop", "client_id": registered(f"{url}/hop")}
        scope = content(send_form("token", **exchange_form(code, **form)))["scope"]
        assert {"products:read", "products:write"} <= set(scope.split())
        assert "projects:write" not in scope
        tab.open(f"{workspace.path}/apps")
        expect(page.get_by_text("Claude", exact=True).first).to_be_visible()
        page.get_by_role("link", name="Disconnect: Claude").click()
        save_screenshot(page, "console-app-disconnect-desktop-light")
        page.get_by_role("button", name="Disconnect “Claude”").click()
        expect(page.get_by_role("status")).to_have_text("App disconnected.")


def test_access_is_denied_without_script(
    workspace: Place, open_console: OpenConsole, redirecting_callback: tuple[str, list[str]]
) -> None:
    url, requested = redirecting_callback
    with open_console(java_script_enabled=False) as tab:
        tab.open(request_path(tab, f"{url}/hop"))
        sign_in(tab.page)
        tab.page.get_by_role("button", name="Deny").click()
        expect(tab.page.get_by_role("heading", name="Connected")).to_be_visible()
        assert "error=access_denied" in requested[0]


def test_access_is_given_on_a_second_page_without_script(
    workspace: Place, open_console: OpenConsole, redirecting_callback: tuple[str, list[str]]
) -> None:
    url, requested = redirecting_callback
    with open_console(java_script_enabled=False) as tab:
        tab.open(request_path(tab, f"{url}/hop"))
        sign_in(tab.page)
        tab.page.get_by_role("button", name="Allow").click()
        expect(tab.page.get_by_text("Nothing is allowed yet.")).to_be_visible()
        assert requested == []
        tab.page.locator("#currentPassword").fill(PASSWORD)
        tab.page.get_by_role("button", name="Allow").click()
        expect(tab.page.get_by_role("heading", name="Connected")).to_be_visible()
        assert "code=wsac_" in requested[0]


def test_a_click_for_another_page_gives_no_access(
    workspace: Place, open_console: OpenConsole, redirecting_callback: tuple[str, list[str]]
) -> None:
    """A page opens consent under the pointer between the two clicks of a double click."""
    url, requested = redirecting_callback
    with open_console() as tab:
        page = tab.page
        tab.start_session()
        tab.open(request_path(tab, f"{url}/hop"))
        box = page.get_by_role("button", name="Allow").bounding_box()
        assert box
        page.mouse.move(box["x"] + 5, box["y"] + 5)
        page.reload()
        opened_at = page.evaluate("performance.now()")
        page.mouse.down()
        page.mouse.up()
        page.mouse.dblclick(box["x"] + 5, box["y"] + 5)
        button = page.get_by_role("button", name="Allow")
        if page.evaluate("performance.now()") - opened_at < 800:  # Not on a machine that is slow.
            expect(button).to_be_disabled()
            assert requested == []
        expect(button).to_be_enabled()
        # Another window takes the focus, and gives it back.
        page.evaluate("dispatchEvent(new Event('blur'))")
        expect(button).to_be_disabled()


def test_a_button_without_a_gesture_is_active_after_five_seconds_only(
    workspace: Place, open_console: OpenConsole
) -> None:
    with open_console() as tab:
        tab.start_session()
        tab.page.clock.install()
        tab.open(request_path(tab, "https://client.example.com/callback"))
        button = tab.page.locator("button[value=allow]")
        for milliseconds in (700, 200, 3_000):
            expect(button).to_be_disabled()
            tab.page.clock.run_for(milliseconds)
        tab.page.keyboard.press("Tab")
        tab.page.clock.run_for(1)
        expect(button).to_be_enabled()
        tab.page.evaluate("dispatchEvent(new Event('blur'))")
        expect(button).to_be_disabled()
        tab.page.clock.run_for(5_002)
        expect(button).to_be_enabled()


def test_enter_denies_access(
    workspace: Place, open_console: OpenConsole, redirecting_callback: tuple[str, list[str]]
) -> None:
    url, requested = redirecting_callback
    with open_console() as tab:
        tab.start_session()
        tab.open(request_path(tab, f"{url}/hop"))
        tab.page.locator("[name=scopes]").first.focus()
        tab.page.keyboard.press("Enter")
        expect(tab.page.get_by_role("heading")).to_have_text("Connected")
        assert "error=access_denied" in requested[0]


def test_access_is_given_to_an_app_of_the_device(
    workspace: Place, open_console: OpenConsole
) -> None:
    uri = "cursor://anysphere.cursor-mcp/oauth"
    with open_console() as tab:
        tab.open(request_path(tab, uri))
        sign_in(tab.page)
        expect(tab.page.locator("#scopes")).to_be_visible()
        with tab.page.expect_response(lambda response: response.request.method == "POST") as answer:
            allow(tab.page)
        assert answer.value.status == 303
        assert answer.value.headers["location"].startswith(f"{uri}?code=wsac_")
        tab.errors = [error for error in tab.errors if "cursor:" not in error]
    # A blocked redirect would be an error that names the policy.
    assert "form-action" not in str(tab.errors)


def test_another_account_is_chosen_on_the_way(workspace: Place, open_console: OpenConsole) -> None:
    with open_console(**SCREENS["phone"]) as tab:
        tab.start_session()
        tab.open(request_path(tab, "https://client.example.com/callback"))
        tab.page.get_by_role("button", name="Это не вы?").click()
        expect(tab.page.get_by_text("Приложение просит доступ")).to_be_visible()
        sign_in(tab.page)
        expect(tab.page.get_by_role("heading", level=1)).to_contain_text("просит доступ")


def test_the_page_opens_in_a_window_that_its_opener_can_watch(
    workspace: Place, open_console: OpenConsole, redirecting_callback: tuple[str, list[str]]
) -> None:
    url, _ = redirecting_callback
    with open_console() as tab:
        tab.page.goto(f"{url}/opener")
        target = tab.base + request_path(tab, f"{url}/hop")
        with tab.page.expect_popup() as opened:
            tab.page.evaluate("url => { window.popup = open(url, 'w', 'popup') }", target)
        popup = opened.value
        sign_in(popup)
        expect(popup.locator("#scopes")).to_be_visible()
        assert tab.page.evaluate("window.popup.closed") is False
        allow(popup)
        expect(popup.get_by_role("heading", name="Connected")).to_be_visible()
        assert tab.page.evaluate("window.popup.closed") is False
        popup.close()


def test_the_page_is_not_shown_in_a_frame(
    workspace: Place, open_console: OpenConsole, site: object
) -> None:
    with open_console() as tab:
        tab.start_session()
        target = tab.base + request_path(tab, "https://client.example.com/callback")
        site.pages["/"] = f'<!doctype html><iframe src="{target}"></iframe>'  # type: ignore[attr-defined]
        tab.page.goto(site.url)  # type: ignore[attr-defined]
        tab.page.wait_for_load_state("networkidle")
        frames = [frame for frame in tab.page.frames if frame != tab.page.main_frame]
        assert not any(frame.locator("#scopes").count() for frame in frames)
        tab.errors = [error for error in tab.errors if not re.search("rame|404", error)]


def test_the_sdk_connects_with_a_click_in_the_browser(
    workspace: Place, open_console: OpenConsole, redirecting_callback: tuple[str, list[str]]
) -> None:
    url, requested = redirecting_callback
    with open_console() as tab:

        def authorize(target: str) -> str:
            tab.page.goto(target)
            sign_in(tab.page)
            allow(tab.page)
            expect(tab.page.get_by_role("heading", name="Connected")).to_be_visible()
            return next(url for url in requested if url.startswith("/done"))

        app = SdkApp(f"{tab.base}/api/mcp", f"{url}/done", authorize)
        result = app.call_tool("svc_list_products")
        assert not result.is_error
        (connection,) = [
            connection
            for connection in connections.live(workspace.workspace_id)
            if connection.client_name == app.name
        ]
        assert connection.last_used_at is not None

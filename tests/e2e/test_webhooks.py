"""Webhooks that are added in the console reach a server on this machine."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import expect
from standardwebhooks.webhooks import Webhook

from chalicelib.core.settings import settings
from chalicelib.transports.scheduled_functions import run_event_jobs
from tests.e2e.conftest import SCREENS, OpenConsole, findings, save_screenshot
from tests.factories.console import Place


@dataclass
class Shop:
    """A shop's server that receives webhooks. ``status`` is its response."""

    url: str = ""
    status: int = 200
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@pytest.fixture
def webhook_receiver(
    service: str, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> Iterator[Shop]:
    """A receiver on this machine, which webhooks may reach as under make dev."""
    with monkeypatch.context() as under_make_dev:
        under_make_dev.setenv("WEBHOOKS_TO_LOOPBACK", "1")
        under_make_dev.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
        reload_settings()
        assert settings().webhooks_to_loopback
    shop = Shop()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            shop.requests.append((headers, body))
            self.send_response(shop.status)
            self.end_headers()
            self.wfile.write(b"<h1>Thanks</h1>")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        shop.url = f"http://127.0.0.1:{server.server_port}/events"
        yield shop
        server.shutdown()
        thread.join()


def send_what_is_due() -> None:
    while any(run_event_jobs().values()):
        pass


def test_a_test_event_is_received_and_seen_in_the_list(
    webhook_receiver: Shop, workspace: Place, open_console: OpenConsole
) -> None:
    with open_console() as tab:
        page = tab.page
        tab.start_session()
        page.get_by_text("For programmers").click()
        page.get_by_role("link", name="Webhooks").click()
        page.get_by_role("link", name="Add webhook").click()
        page.get_by_label("URL of your server").fill(webhook_receiver.url)
        expect(page.get_by_label("A booking is made")).to_be_hidden()
        page.get_by_label("Only these events").check()
        page.get_by_label("A booking is made").check()
        page.get_by_role("button", name="Add webhook").dblclick()
        expect(page.get_by_role("heading", name="Webhook added")).to_be_visible()
        secret = page.locator("#secret").inner_text()
        assert findings(page) == []
        save_screenshot(page, "console-webhook-secret-desktop-light")
        page.get_by_role("link", name="Done, go to the webhook").click()
        assert secret not in page.content()
        page.get_by_role("button", name="Send a test event").dblclick()
        expect(page.get_by_text("waiting", exact=True)).to_have_count(1)
        send_what_is_due()
        page.get_by_role("link", name="Refresh").click()
        expect(page.get_by_text("delivered", exact=True)).to_have_count(1)
        expect(page.get_by_text("Beginning of the response")).to_have_count(0)
        expect(page.get_by_role("heading", level=1)).to_have_text(webhook_receiver.url)
    ((headers, body),) = webhook_receiver.requests
    Webhook(secret).verify(body, headers)
    assert json.loads(body)["type"] == "webhook.test"


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("language", ["en", "ru"])
def test_a_webhook_is_managed_without_script(
    screen: str, language: str, webhook_receiver: Shop, workspace: Place, open_console: OpenConsole
) -> None:
    options = {**SCREENS[screen], "locale": language, "java_script_enabled": False}
    with open_console(**options) as tab:
        page = tab.page

        def save(name: str) -> None:
            save_screenshot(page, f"console-webhook-{name}-{screen}-{language}")

        tab.start_session()
        tab.open(f"{workspace.path}/webhooks/new")
        page.locator("#url").fill("http://bakery.example")
        page.locator('[value="chosen"]').check()
        page.locator('[value="lead.created"]').check()
        page.locator("main button").click()
        expect(page.locator("#url-error")).to_be_visible()
        expect(page.locator('[value="lead.created"]')).to_be_checked()
        save("error")
        page.locator("#url").fill(webhook_receiver.url)
        page.locator("main button").click()
        secret = page.locator("#secret").inner_text()
        save("secret")
        page.locator("main .button").click()
        save("new")
        for status in (200, 500):
            webhook_receiver.status = status
            page.locator('[action$="/test"] button').click()
            send_what_is_due()
        page.locator("main section .head .button").click()
        expect(page.locator(".rows .good")).to_have_count(1)
        expect(page.locator(".rows .warn")).to_have_count(1)
        for reply in page.locator(".rows summary").all():
            reply.click()
        save("deliveries")
        webhook_receiver.status = 200
        page.locator('[form="again"]').first.click()
        send_what_is_due()
        page.locator("main section .head .button").click()
        expect(page.locator(".rows .good")).to_have_count(2)
        page.locator('[action$="/status"] button').click()
        expect(page.locator('[name="sendWaiting"]')).to_be_checked()
        save("off")
        page.locator('[action$="/status"] button').click()
        page.locator('[href$="/secret"]').click()
        save("replace")
        page.locator("form .button").first.click()
        assert page.locator("#secret").inner_text() != secret
        page.locator("main .button").click()
        page.locator('[href$="/delete"]').click()
        save("delete")
        page.locator("form .danger").click()
        expect(page.get_by_role("status")).to_be_visible()
        expect(page.locator("main .rows > li")).to_have_count(2)
        save("list")
        tab.errors = [error for error in tab.errors if "400" not in error]

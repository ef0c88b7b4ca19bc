"""The Telegram of ``make dev``, and its receiver of webhooks."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from chalicelib.core import clock
from chalicelib.core.principals import PLATFORM
from chalicelib.domains.webhooks.rules.signatures import signed_headers, webhook_secret
from chalicelib.gateways import max_messenger as max_gateway
from chalicelib.gateways import telegram as gateway
from chalicelib.gateways.messenger_errors import MessengerError
from infra.local.data_dir import DataDir
from infra.local.devserver.inboxes import max_messenger, telegram, webhooks
from tests.transports.conftest import LocalServer

BODY = json.dumps({"type": "lead.created", "data": {"name": "<b>Ада</b>"}}).encode()


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    """Start without messages and requests."""
    yield
    telegram.chat.clear()
    max_messenger.messages.clear()
    webhooks.received.clear()


@pytest.fixture
def url(local_server: LocalServer) -> str:
    """The base URL of the server."""
    return f"http://127.0.0.1:{local_server.port}"


@pytest.fixture
def bot(url: str, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]) -> None:
    """The bot of the local Telegram, which the gateway calls."""
    monkeypatch.setenv("TELEGRAM_URL", url + telegram.PATH)
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", telegram.TOKEN)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    reload_settings()


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The secret of the demo's webhook."""
    new_secret = webhook_secret(b"key", "workspace", webhook_id="webhook", version=1)
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    DataDir(tmp_path).demo = {"webhookSecret": new_secret}
    return new_secret


def send_webhook(url: str, secret: str, body: bytes = BODY) -> int:
    headers = signed_headers([secret], "evt_1", clock.now(), BODY)
    return requests.post(url + webhooks.PATH, body, headers=headers, timeout=10).status_code


def page(url: str, path: str, **query: str) -> str:
    reply = requests.get(url + path, query, timeout=10)
    assert reply.status_code == 200
    return reply.text


@pytest.mark.usefixtures("bot")
class TestTelegram:
    def test_a_sent_message_is_shown(self, url: str) -> None:
        gateway.send(1, "Новая заявка <b>", origin=PLATFORM)
        assert "Новая заявка &lt;b&gt;" in page(url, telegram.PATH)

    def test_what_a_developer_writes_is_an_update_until_it_is_confirmed(self, url: str) -> None:
        response = requests.post(url + telegram.PATH, {"text": "/start abc"}, timeout=10)
        assert "/start abc" in response.text
        (update,) = gateway.updates(0, wait=0)
        assert update["message"]["text"] == "/start abc"
        assert update["message"]["chat"]["id"] == telegram.CHAT["id"]
        assert gateway.updates(update["update_id"] + 1, wait=0) == []

    def test_the_link_to_the_bot_fills_in_its_code(self, url: str) -> None:
        shown_page = page(url, f"{telegram.PATH}/{gateway.bot_name()}", start='abc"')
        assert 'value="/start abc&#34;"' in shown_page

    def test_an_empty_message_is_not_sent(self, url: str) -> None:
        requests.post(url + telegram.PATH, {"text": " "}, timeout=10)
        assert gateway.updates(0, wait=0) == []

    def test_updates_are_asked_for_as_there_is_no_webhook(self) -> None:
        assert gateway.webhook()["url"] == ""

    def test_another_token_is_refused(
        self, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
    ) -> None:
        monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "2:local")
        reload_settings()
        with pytest.raises(MessengerError, match="401"):
            gateway.send(1, "x", origin=PLATFORM)

    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [
            ("POST", f"/bot{telegram.TOKEN}/banChatMember", 404),
            ("GET", "/another", 404),
            ("DELETE", "", 405),
        ],
    )
    def test_other_requests_are_refused(
        self, url: str, method: str, path: str, status: int
    ) -> None:
        reply = requests.request(method, url + telegram.PATH + path, timeout=10)
        assert reply.status_code == status


class TestMax:
    @pytest.fixture(autouse=True)
    def _bot(
        self, url: str, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
    ) -> Iterator[None]:
        monkeypatch.setenv("MAX_URL", url + max_messenger.PATH)
        monkeypatch.setenv("MAX_TOKEN", max_messenger.TOKEN)
        monkeypatch.setenv("PUBLIC_URL", url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        reload_settings()
        yield
        max_gateway._bot_name.cache_clear()

    def test_a_sent_message_is_shown(self, url: str) -> None:
        max_gateway.send(1, "Новая запись <b>", origin=PLATFORM)
        assert "Новая запись &lt;b&gt;" in page(url, max_messenger.PATH)

    @pytest.mark.usefixtures("database")
    def test_what_a_developer_writes_goes_to_the_webhook_and_is_answered(self, url: str) -> None:
        for text in ("hello", "/start wrong"):
            requests.post(url + max_messenger.PATH, {"text": text}, timeout=10)
        shown = page(url, max_messenger.PATH)
        assert "To receive messages about your booking here" in shown
        assert "This code is wrong" in shown

    def test_the_link_to_the_bot_fills_in_its_code(self, url: str) -> None:
        shown = page(url, f"{max_messenger.PATH}/{max_gateway.bot_name()}", start='abc"')
        assert 'value="/start abc&#34;"' in shown

    def test_other_requests_are_refused(self, url: str) -> None:
        assert requests.get(f"{url}{max_messenger.PATH}/another", timeout=10).status_code == 404
        assert requests.delete(url + max_messenger.PATH, timeout=10).status_code == 405
        headers = {"Authorization": "wrong"}
        refused = requests.get(f"{url}{max_messenger.PATH}/me", headers=headers, timeout=10)
        assert refused.status_code == 401


@pytest.mark.usefixtures("real_clock")  # with which the verifying library compares
class TestWebhooks:
    @pytest.mark.parametrize(
        ("body", "shown_body"),
        [(BODY, "The signature is valid"), (b"{", "The signature is not valid")],
    )
    def test_a_request_is_shown_with_its_signature(
        self, url: str, secret: str, body: bytes, shown_body: str
    ) -> None:
        assert send_webhook(url, secret, body) == 204
        assert shown_body in page(url, webhooks.PATH)

    def test_values_of_visitors_are_text(self, url: str, secret: str) -> None:
        send_webhook(url, secret)
        assert "&lt;b&gt;Ада&lt;/b&gt;" in page(url, webhooks.PATH)

    def test_a_webhook_of_another_workspace_cannot_be_verified(
        self, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DATA_DIR", str(tmp_path))
        send_webhook(url, webhook_secret(b"key", "another", webhook_id="webhook", version=1))
        assert "is not known here" in page(url, webhooks.PATH)

    def test_other_methods_are_refused(self, url: str) -> None:
        assert requests.delete(url + webhooks.PATH, timeout=10).status_code == 405

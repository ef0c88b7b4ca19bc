"""The gateway to the Bot API of the messenger MAX, against a fake server on loopback."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from chalicelib.core import test_workspaces
from chalicelib.core.errors import InTestWorkspaceError, NotConfiguredError
from chalicelib.core.principals import PLATFORM
from chalicelib.gateways import max_messenger as gateway
from chalicelib.gateways import telegram as telegram_gateway
from chalicelib.gateways.messenger_errors import BusyError, ChatGoneError, MessengerError
from tests import fakes
from tests.fakes.max_messenger import BUSY, NAME, STOPPED, TOKEN, FakeMax, failure
from tests.fakes.telegram import FakeTelegram

PEM = "-----BEGIN CERTIFICATE-----\nplanted\n-----END CERTIFICATE-----"


def test_a_message_goes_to_the_user_as_plain_text_with_the_token_in_a_header(
    max_bot: FakeMax,
) -> None:
    gateway.send(7, "*New*: https://example.com", origin=PLATFORM)
    (request,) = max_bot.requests
    assert (request.method, request.path) == ("POST", "/messages")
    assert request.query == {"user_id": "7", "disable_link_preview": "true"}
    assert request.headers["authorization"] == TOKEN
    assert json.loads(request.body) == {"text": "*New*: https://example.com"}


@pytest.mark.parametrize("length", [4000, 4001, 9000])
def test_a_message_has_at_most_4000_characters(max_bot: FakeMax, length: int) -> None:
    gateway.send(7, "я" * length, origin=PLATFORM)
    (sent,) = max_bot.texts
    assert sent == ("я" * length if length <= 4000 else "я" * 3999 + "…")


@pytest.mark.parametrize(
    "answer",
    [
        STOPPED,
        failure(403, "error.dialog.suspended"),
        failure(404, "chat.not.found"),
        failure(403, "chat.denied", "error.dialog.notfound"),
    ],
)
def test_a_user_who_has_stopped_the_bot_is_gone(max_bot: FakeMax, answer: Any) -> None:
    max_bot.failures = [answer]
    with pytest.raises(ChatGoneError):
        gateway.send(7, "Hello", origin=PLATFORM)


def test_a_busy_bot_says_when_to_try_again(max_bot: FakeMax) -> None:
    max_bot.failures = [BUSY]
    with pytest.raises(BusyError) as caught:
        gateway.send(7, "Hello", origin=PLATFORM)
    assert caught.value.retry_after >= 1


@pytest.mark.parametrize(
    "answer",
    [
        failure(403, "chat.denied", "no rights"),
        failure(401, "verify.token"),
        failure(400, "proto.payload"),
        failure(500, "internal"),
        failure(404, "not.found"),
        (404, "nothing"),
        (503, ["odd"]),
    ],
)
def test_other_refusals_keep_the_chat(max_bot: FakeMax, answer: Any) -> None:
    max_bot.failures = [answer]
    with pytest.raises(MessengerError) as caught:
        gateway.send(7, "Hello", origin=PLATFORM)
    assert type(caught.value) is MessengerError


@pytest.mark.parametrize("breaks", [fakes.status(302), fakes.silent, fakes.huge])
def test_no_failure_names_the_token(
    max_bot: FakeMax,
    breaks: Any,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gateway, "SECONDS", 0.5)
    max_bot.breaks = breaks
    with pytest.raises(MessengerError) as caught:
        gateway.send(7, "Hello", origin=PLATFORM)
    assert caught.value.__cause__ is None
    assert TOKEN not in str(caught.value) + caplog.text


def test_the_link_to_the_bot_carries_the_code(max_bot: FakeMax) -> None:
    assert gateway.start_url("a-_9") == f"https://max.ru/{NAME}?start=a-_9"
    gateway.start_url("b")
    assert len(max_bot.requests) == 1  # The name of the bot is read once.


def test_the_webhook_is_the_only_one_and_has_a_secret_that_max_accepts(max_bot: FakeMax) -> None:
    gateway.set_webhook("https://old.example/hook")
    gateway.set_webhook("https://example.com/hook")
    (subscription,) = max_bot.subscriptions
    assert subscription["url"] == "https://example.com/hook"
    assert set(subscription["update_types"]) == {"bot_started", "bot_stopped", "message_created"}
    secret = subscription["secret"]
    assert secret == gateway.webhook_secret()
    assert 5 <= len(secret) <= 256
    assert secret.isalnum()
    gateway.delete_webhook("https://example.com/hook")
    assert gateway.webhooks() == []


@pytest.mark.usefixtures("max_bot")
def test_a_bot_requires_a_token(
    monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> None:
    monkeypatch.delenv("MAX_TOKEN")
    reload_settings()
    assert not gateway.is_configured()
    for call in (
        gateway.bot_name,
        gateway.webhook_secret,
        lambda: gateway.send(1, "x", origin=PLATFORM),
    ):
        with pytest.raises(NotConfiguredError):
            call()


@pytest.mark.usefixtures("max_bot")
def test_a_malformed_token_is_refused_without_being_repeated(
    monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> None:
    monkeypatch.setenv("MAX_TOKEN", "sec\tret")
    reload_settings()
    with pytest.raises(MessengerError) as caught:
        gateway.send(1, "x", origin=PLATFORM)
    assert "sec" not in str(caught.value)


def test_a_test_workspace_sends_nothing(max_bot: FakeMax) -> None:
    with pytest.raises(InTestWorkspaceError):
        gateway.send(7, "Hello", origin=test_workspaces.new_id())
    assert max_bot.requests == []


@pytest.mark.parametrize("as_text", [True, False])
def test_an_authority_of_max_is_added_for_max_only(
    max_bot: FakeMax,
    telegram: FakeTelegram,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
    tmp_path: Path,
    as_text: bool,
) -> None:
    file = tmp_path / "ca.pem"
    file.write_text(PEM)
    monkeypatch.setenv("MAX_CA", PEM if as_text else str(file))
    reload_settings()
    trusted: dict[str, Any] = {}
    send = requests.request

    def request(method: str, url: str, **content: Any) -> Any:
        trusted[url.rpartition("/")[2]] = content.pop("verify", True)
        return send(method, url, **content)

    monkeypatch.setattr(requests, "request", request)
    gateway.send(7, "Hello", origin=PLATFORM)
    telegram_gateway.send(7, "Hello", origin=PLATFORM)
    authorities = Path(trusted["messages"]).read_text()
    assert "planted" in authorities
    assert authorities.count("BEGIN CERTIFICATE") > 50
    assert trusted["sendMessage"] is True

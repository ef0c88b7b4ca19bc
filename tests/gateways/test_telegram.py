"""The gateway to Telegram's Bot API, against a fake server on loopback."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core import deadline
from chalicelib.core.errors import NotConfiguredError
from chalicelib.core.principals import PLATFORM
from chalicelib.gateways import telegram as gateway
from chalicelib.gateways.messenger_errors import BusyError, ChatGoneError, MessengerError
from tests import fakes
from tests.fakes.telegram import NAME, TOKEN, FakeTelegram, failure, update


def units(text: str) -> int:
    """Return the length of a string in UTF-16 code units."""
    return len(text.encode("utf-16-le")) // 2


def test_a_message_is_sent_as_plain_text_without_link_previews(telegram: FakeTelegram) -> None:
    gateway.send(7, "*New* lead: https://example.com", origin=PLATFORM)
    assert telegram.sent_messages == [
        {
            "chat_id": 7,
            "text": "*New* lead: https://example.com",
            "link_preview_options": {"is_disabled": True},
        }
    ]


@pytest.mark.parametrize(
    "text", ["x" * 4096, "😀" * 2048, "x" * 4097, "😀" * 2049, "x" + "😀" * 3000]
)
def test_a_message_has_at_most_4096_utf_16_code_units(telegram: FakeTelegram, text: str) -> None:
    gateway.send(7, text, origin=PLATFORM)
    (sent_text,) = telegram.texts
    assert sent_text == text if units(text) <= 4096 else units(sent_text) in {4095, 4096}
    assert text.startswith(sent_text.removesuffix("…"))


@pytest.mark.parametrize(
    "answer",
    [
        failure(403, "Forbidden: bot was blocked by the user"),
        failure(403, "Forbidden: user is deactivated"),
        failure(403, "Forbidden: bot was kicked from the group chat"),
        failure(400, "Bad Request: chat not found"),
    ],
)
def test_a_chat_that_takes_no_more_messages_is_gone(telegram: FakeTelegram, answer: Any) -> None:
    telegram.failures = [answer]
    with pytest.raises(ChatGoneError):
        gateway.send(7, "Hello", origin=PLATFORM)


def test_requested_wait_is_passed_on(telegram: FakeTelegram) -> None:
    telegram.failures = [failure(429, "Too Many Requests: retry after 35", retry_after=35)]
    with pytest.raises(BusyError) as caught:
        gateway.send(7, "Hello", origin=PLATFORM)
    assert caught.value.retry_after == 35


@pytest.mark.parametrize(
    "answer",
    [
        failure(403, "Forbidden: bot can't send messages to the user"),
        failure(400, "Bad Request: message text is empty"),
        failure(401, "Unauthorized"),
        failure(500, "Internal Server Error"),
        (200, {"ok": True}),
        (200, ["odd"]),
    ],
)
def test_other_refusals_are_temporary(telegram: FakeTelegram, answer: Any) -> None:
    telegram.failures = [answer]
    with pytest.raises(MessengerError) as caught:
        gateway.send(7, "Hello", origin=PLATFORM)
    assert type(caught.value) is MessengerError


@pytest.mark.parametrize("misbehaviour", [fakes.cut_off, fakes.huge, fakes.body(b"<html>", 502)])
def test_malformed_responses_are_temporary(telegram: FakeTelegram, misbehaviour: Any) -> None:
    telegram.breaks = misbehaviour
    with pytest.raises(MessengerError):
        gateway.send(7, "Hello", origin=PLATFORM)


def test_the_token_is_in_no_log_line_and_in_no_error(
    telegram: FakeTelegram, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    telegram.breaks = fakes.cut_off
    with pytest.raises(MessengerError) as broken:
        gateway.send(7, "Hello", origin=PLATFORM)
    telegram.close()
    with pytest.raises(MessengerError) as unreachable:
        gateway.send(7, "Hello", origin=PLATFORM)
    for error in (broken.value, unreachable.value):
        assert error.__cause__ is None
        assert TOKEN not in str(error)
    assert TOKEN not in caplog.text


def test_a_request_that_hangs_ends_at_the_deadline(telegram: FakeTelegram) -> None:
    telegram.breaks = fakes.silent
    with deadline.within(0.2), pytest.raises(MessengerError, match="did not answer in time"):
        gateway.send(7, "Hello", origin=PLATFORM)


def test_the_name_of_the_bot_is_read_once(telegram: FakeTelegram) -> None:
    assert [gateway.bot_name(), gateway.bot_name()] == [NAME, NAME]
    assert len(telegram.requests) == 1


def test_updates_before_the_offset_are_confirmed(telegram: FakeTelegram) -> None:
    telegram.pending = [update(1, 7, "a"), update(2, 7, "b")]
    assert [update["update_id"] for update in gateway.updates(2, wait=0)] == [2]
    assert len(telegram.pending) == 1


def test_the_webhook_is_registered_with_a_secret_that_telegram_accepts(
    telegram: FakeTelegram,
) -> None:
    gateway.set_webhook("https://example.com/hook")
    assert gateway.webhook()["url"] == "https://example.com/hook"
    secret = telegram.webhook["secret_token"]
    assert secret == gateway.webhook_secret()
    assert len(secret) == 64
    assert secret.isalnum()
    with pytest.raises(MessengerError):
        gateway.updates(0, wait=0)
    gateway.delete_webhook()
    assert gateway.webhook()["url"] == ""


@pytest.mark.usefixtures("telegram")
def test_bot_requires_a_token(
    monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> None:
    monkeypatch.delenv("TELEGRAM_BOT_TOKEN")
    reload_settings()
    assert not gateway.is_configured()
    for call in (
        gateway.bot_name,
        gateway.webhook_secret,
        lambda: gateway.send(1, "x", origin=PLATFORM),
    ):
        with pytest.raises(NotConfiguredError):
            call()


@pytest.mark.usefixtures("telegram")
def test_a_malformed_token_is_refused_without_being_repeated(
    monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "123/../x")
    reload_settings()
    with pytest.raises(MessengerError) as caught:
        gateway.send(1, "x", origin=PLATFORM)
    assert "123/" not in str(caught.value)

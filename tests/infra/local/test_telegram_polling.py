"""Updates of the Telegram bot under ``make dev``, which polls them."""

import threading
from collections.abc import Callable

import pytest

from chalicelib.core.settings import settings
from infra.local import telegram_polling
from tests import fakes
from tests.conftest import Owner
from tests.domains.notifications.helpers import HELP, LINKED, is_linked, new_code
from tests.fakes.telegram import FakeTelegram, failure, update

pytestmark = pytest.mark.usefixtures("database")


def test_polled_updates_are_answered_once(owner: Owner, telegram: FakeTelegram) -> None:
    telegram.pending = [update(5, 7, f"/start {new_code(owner)}"), update(6, 8, "hello")]
    offset = telegram_polling.answer_updates(0, wait=0)
    assert offset == 7
    assert is_linked(owner)
    linked, help_text = telegram.texts
    assert linked.startswith(LINKED)
    assert HELP in help_text
    assert telegram_polling.answer_updates(offset, wait=0) == 7
    assert len(telegram.texts) == 2
    assert telegram.pending == []


def test_an_answer_that_cannot_be_sent_does_not_repeat_its_update(
    owner: Owner, telegram: FakeTelegram
) -> None:
    telegram.pending = [update(5, 7, f"/start {new_code(owner)}"), update(6, 8, "hello")]
    telegram.failures = [failure(403, "Forbidden: bot was blocked by the user")]
    assert telegram_polling.answer_updates(0, wait=0) == 7
    assert is_linked(owner)
    assert len(telegram.texts) == 1


def test_polling_continues_after_failures(telegram: FakeTelegram) -> None:
    telegram.pending = [update(5, 7, "hello")]
    telegram.breaks = fakes.status(502)
    paused: list[float] = []

    def pause(seconds: float) -> None:
        paused.append(seconds)
        if len(paused) == 2:
            telegram.breaks = None

    telegram_polling.poll(stop=lambda: bool(telegram.texts), pause=pause)
    assert paused == [telegram_polling.RETRY_SECONDS] * 2
    assert len(telegram.texts) == 1


def test_a_bot_with_a_webhook_is_not_polled(telegram: FakeTelegram) -> None:
    telegram.webhook = {"url": "https://example.com"}
    telegram.pending = [update(5, 7, "hello")]
    telegram_polling.poll()
    assert len(telegram.pending) == 1


def test_without_a_token_nothing_is_polled(
    monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> None:
    monkeypatch.delenv("TELEGRAM_BOT_TOKEN", raising=False)
    reload_settings()
    assert settings().telegram_bot_token == ""
    telegram_polling.run_in_background()
    assert "telegram-polling" not in {thread.name for thread in threading.enumerate()}

"""``telegram-webhook`` sets the URL to which Telegram sends the updates of a stage's bot."""

from collections.abc import Callable

import pytest

from chalicelib.gateways import telegram as gateway
from tests import fakes
from tests.factories.operator import Operator
from tests.fakes.telegram import NAME, TOKEN, FakeTelegram

URL = "https://api.example.com/api/telegram/webhook"


@pytest.fixture(autouse=True)
def _stage(
    telegram: FakeTelegram, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> None:
    """The settings of a stage with a domain."""
    monkeypatch.setenv("PUBLIC_URL", "https://api.example.com")
    reload_settings()


def test_the_webhook_is_set_shown_and_deleted(operator: Operator, telegram: FakeTelegram) -> None:
    assert operator.run("telegram-webhook")["url"] == ""
    printed = operator.run("telegram-webhook", "--set")
    assert printed == {"bot": NAME, "url": URL, "pending_update_count": 0}
    assert telegram.webhook["secret_token"] == gateway.webhook_secret()
    assert operator.run("telegram-webhook", "--show") == printed
    assert operator.run("telegram-webhook", "--delete")["url"] == ""
    assert TOKEN not in str(printed)


def test_telegram_cannot_reach_a_local_stage(
    operator: Operator,
    telegram: FakeTelegram,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
) -> None:
    monkeypatch.setenv("PUBLIC_URL", "http://127.0.0.1:8000")
    reload_settings()
    assert "--stage" in operator.run_failing("telegram-webhook", "--set")
    assert telegram.webhook["url"] == ""


def test_a_failure_of_telegram_is_one_line(operator: Operator, telegram: FakeTelegram) -> None:
    telegram.breaks = fakes.status(502)
    assert "token" in operator.run_failing("telegram-webhook", "--set")


def test_a_stage_without_a_bot_is_refused(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> None:
    monkeypatch.delenv("TELEGRAM_BOT_TOKEN")
    reload_settings()
    assert "Telegram bot" in operator.run_failing("telegram-webhook", "--set")

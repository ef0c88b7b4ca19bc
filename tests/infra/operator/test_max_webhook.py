"""``max-webhook`` sets the URL to which MAX sends the updates of a stage's bot."""

from collections.abc import Callable

import pytest

from chalicelib.gateways import max_messenger as gateway
from tests import fakes
from tests.factories.operator import Operator
from tests.fakes.max_messenger import NAME, TOKEN, FakeMax

URL = "https://api.example.com/api/max/webhook"


@pytest.fixture(autouse=True)
def _stage(
    max_bot: FakeMax, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> None:
    """The settings of a stage with a domain."""
    monkeypatch.setenv("PUBLIC_URL", "https://api.example.com")
    reload_settings()


def test_the_webhook_is_set_shown_and_deleted(operator: Operator, max_bot: FakeMax) -> None:
    assert operator.run("max-webhook")["urls"] == []
    printed = operator.run("max-webhook", "--set")
    assert printed == {"bot": NAME, "urls": [URL]}
    assert max_bot.subscriptions[0]["secret"] == gateway.webhook_secret()
    assert operator.run("max-webhook", "--show") == printed
    assert operator.run("max-webhook", "--delete")["urls"] == []
    assert TOKEN not in str(printed)


def test_max_cannot_reach_a_local_stage(
    operator: Operator,
    max_bot: FakeMax,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
) -> None:
    monkeypatch.setenv("PUBLIC_URL", "http://127.0.0.1:8000")
    reload_settings()
    assert "--stage" in operator.run_failing("max-webhook", "--set")
    assert max_bot.subscriptions == []


def test_a_failure_of_max_is_one_line(operator: Operator, max_bot: FakeMax) -> None:
    max_bot.breaks = fakes.status(502)
    assert "token" in operator.run_failing("max-webhook", "--set")


def test_a_stage_without_a_bot_is_refused(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> None:
    monkeypatch.delenv("MAX_TOKEN")
    reload_settings()
    assert "MAX" in operator.run_failing("max-webhook", "--set")

"""Bots, prices and scripted models for tests of the chat endpoint."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from chalicelib.domains.bots.rules.capabilities import CAPABILITIES
from chalicelib.domains.chat.flows import stream_answer
from chalicelib.gateways import llm
from tests.conftest import Api, Owner, Time
from tests.factories.chat import (
    Bot,
    ScriptedModel,
    new_bot,
)
from tests.factories.salon import FRIDAYS, Salon

Script = Callable[..., ScriptedModel]

IN, OUT = 150_000, 750_000
"""Micro-kopecks per token of the model that ``priced`` bots have."""


@pytest.fixture
def bot(owner: Owner) -> Bot:
    return new_bot(owner)


@pytest.fixture
def model_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every model a price."""
    spec = llm.resolve("claude-opus-4.1", tenant="w")
    assert (spec.input_price, spec.output_price) == (IN, OUT)
    monkeypatch.setattr(llm, "resolve", lambda _, **_more: spec)


@pytest.fixture
def model_takes_tools(model_prices: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every model a price and tools."""
    spec = llm.resolve("x", tenant="w")._replace(takes_tools=True)
    monkeypatch.setattr(llm, "resolve", lambda _, **_more: spec)


@pytest.fixture
def all_capabilities(bot: Bot) -> None:
    """Let the bot do everything."""
    bot.change(capabilities=list(CAPABILITIES))


@pytest.fixture
def monday(time: Time) -> None:
    """Set the clock to a Monday at noon in Moscow."""
    time.now = datetime(2026, 11, 23, 9, tzinfo=UTC)


@pytest.fixture
def haircut(api: Api) -> str:
    """A haircut of an hour with Anna, who works on Fridays from 10 to 13 in Moscow."""
    return Salon.opened(api, [{"name": "Anna"}], FRIDAYS, price=150_050).service


@pytest.fixture(autouse=True)
def _no_reading_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not continue reading after a visitor leaves, except in tests of that behaviour."""
    monkeypatch.setattr(stream_answer, "USAGE_SECONDS", 0.0)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ScriptedModel]:
    """Set every model to a scripted one."""

    def set_(*steps: Any) -> ScriptedModel:
        model = ScriptedModel(steps)
        monkeypatch.setattr(llm, "chat_model_for", lambda _: model)
        return model

    return set_

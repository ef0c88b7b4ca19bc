"""The chat over HTTP, as ``make dev`` serves it."""

import json
from collections.abc import Iterator
from threading import Event
from typing import Any

import httpx
import pytest
from httpx_sse import connect_sse

import app as application
from chalicelib.domains.chat.flows import exchange as chat_exchange
from chalicelib.domains.chat.flows import stream_answer
from chalicelib.gateways import llm
from chalicelib.gateways.llm import ProviderUsage
from chalicelib.transports.chat import chat_route
from infra.local import devserver
from tests.conftest import Owner, run_concurrently
from tests.factories.chat import RICH, Bot, ScriptedModel, new_bot, read_events
from tests.support.effort import slow_but_for
from tests.support.patience import PATIENCE
from tests.transports.conftest import LocalServer, serving

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(scope="module")
def server(_server: Any) -> Iterator[LocalServer]:
    with serving(application.app, *devserver.ROUTES) as running:
        yield running


@pytest.fixture
def bot(owner: Owner) -> Bot:
    return new_bot(owner)


def url(server: LocalServer) -> str:
    return f"http://127.0.0.1:{server.port}{chat_route.PATH}"


def test_httpx_sse_reads_the_stream(server: LocalServer, bot: Bot) -> None:
    body = {"agentId": bot.id, "message": "How much is rye bread?"}
    with (
        httpx.Client(trust_env=False, timeout=PATIENCE) as client,
        connect_sse(client, "POST", url(server), json=body) as source,
    ):
        assert source.response.status_code == 200
        events = [json.loads(event.data) for event in source.iter_sse()]
    assert [events[0]["type"], events[-1]["type"]] == ["start", "done"]
    assert "I do not know" in "".join(event.get("content", "") for event in events)
    assert bot.money[1] == 0


def test_each_piece_is_sent_before_the_next_is_made(
    server: LocalServer, bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [Event(), Event()]
    model = ScriptedModel(["one", steps[0], "two", steps[1], "three", ProviderUsage(3, 3)])
    monkeypatch.setattr(llm, "chat_model_for", lambda _: model)
    body = {"agentId": bot.id, "message": "Count"}
    with (
        httpx.Client(trust_env=False, timeout=PATIENCE) as client,
        client.stream("POST", url(server), json=body) as response,
    ):
        lines = response.iter_lines()
        data = (json.loads(line[6:]) for line in lines if line)
        assert next(data)["type"] == "start"
        assert next(data)["content"] == "one"
        for step, word in zip(steps, ("two", "three"), strict=True):
            step.set()
            assert next(data)["content"] == word
        assert next(data)["type"] == "done"
        assert not any(lines)


def test_a_visitor_who_disconnects_is_charged_for_the_text_so_far(
    server: LocalServer, bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled = Event()
    close = chat_exchange.Exchange.close

    def closing(exchange: Any, ending: Any) -> Any:
        try:
            return close(exchange, ending)
        finally:
            settled.set()

    monkeypatch.setattr(chat_exchange.Exchange, "close", closing)
    monkeypatch.setattr(stream_answer, "PING_SECONDS", 0.02)
    monkeypatch.setattr(stream_answer, "USAGE_SECONDS", 0.0)
    model = ScriptedModel(["word " * 9, Event()])
    monkeypatch.setattr(llm, "chat_model_for", lambda _: model)
    body = {"agentId": bot.id, "message": "Tell me a tale"}
    with (
        httpx.Client(trust_env=False, timeout=PATIENCE) as client,
        client.stream("POST", url(server), json=body) as response,
    ):
        for line in response.iter_lines():
            if "chunk" in line:
                break
    assert settled.wait(PATIENCE)
    assert bot.kinds == ["topup", "reserve", "settle"]
    assert bot.money[1] == 0
    assert bot.money[0] < RICH


@pytest.mark.parametrize("count", slow_but_for([8], [8, 50]))
def test_many_concurrent_streams_each_come_to_their_end(
    count: int, server: LocalServer, bot: Bot
) -> None:
    def talk(number: int) -> list[dict[str, Any]]:
        body = {"agentId": bot.id, "message": "How much is rye bread?"}
        with httpx.Client(trust_env=False, timeout=PATIENCE) as client:
            answer = client.post(url(server), json=body)
        assert answer.status_code == 200, answer.text
        return list(read_events(answer.content))

    streams = run_concurrently(count, talk)
    assert {events[-1]["type"] for events in streams} == {"done"}
    assert len({events[0]["sessionId"] for events in streams}) == count
    assert bot.money[1] == 0
    assert bot.kinds.count("settle") == count

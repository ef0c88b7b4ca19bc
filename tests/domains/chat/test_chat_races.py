"""Tests of concurrent messages, which a session answers one at a time and which are all charged."""

from collections import Counter
from threading import Event, Semaphore

import pytest

from chalicelib.gateways import llm
from tests.conftest import Api, run_concurrently
from tests.factories.chat import RICH, Bot, ScriptedModel, ask, transcript

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]


def test_a_session_answers_one_concurrent_message_at_a_time(bot: Bot, api: Api) -> None:
    session = ask(bot, "Hi").session
    replies = run_concurrently(8, lambda n: ask(bot, f"Question {n}", sessionId=session))
    answered = [reply for reply in replies if reply.status == 200]
    assert answered
    assert {chat.answer.data["code"] for chat in replies if chat.status != 200} <= {"session_busy"}
    messages = transcript(api, bot)
    assert [m["role"] for m in messages] == ["user", "assistant"] * (1 + len(answered))
    assert {m["status"] for m in messages} == {"ok"}
    assert bot.money[1] == 0
    assert bot.kinds.count("settle") == 1 + len(answered)
    assert ask(bot, "And now?", sessionId=session).status == 200


def test_concurrent_chats_are_each_charged_and_counted(bot: Bot, api: Api) -> None:
    replies = run_concurrently(
        12, lambda n: ask(bot, f"How much is rye bread, {n}?", ip=f"203.0.113.{n}")
    )
    assert {reply.status for reply in replies} == {200}
    assert Counter(bot.kinds) == {"topup": 1, "reserve": 12, "settle": 12}
    counts = api.get(f"/api/agents/stats?agentId={bot.id}")
    assert (counts["dialogs"], counts["messages"]) == (12, 24)
    assert counts["tokens"]["total"] == sum(reply.usage["totalTokens"] for reply in replies)
    assert api.get(f"/api/agents/dialogs?agentId={bot.id}")["total"] == 12
    assert bot.money[1] == 0
    assert bot.money[0] < RICH


def test_concurrent_repeats_of_one_call_are_answered_once(
    bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, answered = Event(), Semaphore(0)
    monkeypatch.setattr(llm, "chat_model_for", lambda _: ScriptedModel(["Rye.", go]))

    def repeat(_: int) -> int:
        reply = ask(bot, "How much is rye bread?", key="k")
        answered.release()
        return reply.status

    def end_the_answer_last(_: int) -> bool:
        others = [answered.acquire(timeout=20) for _ in range(5)]
        go.set()
        return all(others)

    calls = [*[repeat] * 6, end_the_answer_last]
    *statuses, was_last = run_concurrently(7, lambda number: calls[number](number))
    assert was_last
    assert Counter(statuses) == {200: 1, 409: 5}
    assert bot.kinds == ["topup", "reserve", "settle"]


def test_a_visitor_with_several_concurrent_dialogs_is_one_client(bot: Bot, api: Api) -> None:
    run_concurrently(6, lambda n: ask(bot, "I am ada@example.com", ip=f"203.0.113.{n}"))
    (client,) = api.get("/api/clients/list")["clients"]
    assert client["leadsCount"] == 6
    leads = api.get("/api/forms/collection-list")["collections"]
    assert len({lead["dialogId"] for lead in leads}) == 6

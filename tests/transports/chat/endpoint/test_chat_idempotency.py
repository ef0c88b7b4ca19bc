"""Idempotency keys of chats, and the sessions that replays continue."""

from dataclasses import replace
from threading import Event

import pytest
from pydantic_core import from_json, to_json

from chalicelib.core.errors import NotConfiguredError
from chalicelib.engine.idempotency import IdempotencyRow
from chalicelib.gateways import sealing
from chalicelib.gateways.llm import ModelError, ProviderUsage
from tests.conftest import Api, Owner, Time
from tests.factories.chat import (
    Bot,
    answer_to,
    ask,
    new_bot,
    new_key,
)
from tests.factories.examples import request_to
from tests.transports.chat.endpoint.conftest import Script

pytestmark = pytest.mark.usefixtures("database")


def stored_answers() -> list[IdempotencyRow]:
    """Return the stored answers of chats."""
    bodies = IdempotencyRow.scan(IdempotencyRow.body.exists())
    return [row for row in bodies if b'"session":"' in row.body]


def store_session(session: str | None) -> None:
    """Replace the session in the stored answer."""
    for row in stored_answers():
        body = to_json(from_json(row.body) | {"session": session})
        row.update([IdempotencyRow.body.set(body)])


class TestIdempotency:
    def test_a_repeated_call_is_answered_and_charged_once(
        self, bot: Bot, model_prices: None, script: Script
    ) -> None:
        model = script("Rye ", "bread.", ProviderUsage(10, 4))
        reply, repeated = ask(bot, "Hi", key="a"), ask(bot, "Hi", key="a")
        assert len(model.inputs) == 1
        assert (repeated.text, repeated.usage) == (reply.text, reply.usage)
        assert [event["type"] for event in repeated.events] == ["start", "chunk", "done"]
        assert bot.kinds == ["topup", "reserve", "settle"]

    def test_strangers_with_one_ip_and_the_same_key_share_no_session(
        self, bot: Bot, script: Script, api: Api
    ) -> None:
        model = script("Rye.", ProviderUsage(10, 4))
        first, stranger, other = (ask(bot, "Hi", key="order-1") for _ in range(3))
        assert len({first.session, stranger.session, other.session}) == 3
        ask(bot, "My number is 12", sessionId=first.session)
        reply = ask(bot, "What is my number?", sessionId=stranger.session)
        assert reply.session == stranger.session
        assert [text for _, text in model.dialogs[-1][1:]] == ["What is my number?"]
        ask(bot, "And now?", sessionId=stranger.session)
        assert [text for _, text in model.dialogs[-1][1:]] == [
            "What is my number?",
            "Rye.",
            "And now?",
        ]
        ask(bot, "Bye", sessionId=first.session)
        assert "number?" not in repr(model.inputs[-1])
        dialogs = api.get(f"/api/agents/dialogs?agentId={bot.id}")
        assert dialogs["total"] == 2
        assert api.get(f"/api/agents/stats?agentId={bot.id}")["dialogs"] == 2

    def test_a_replayed_session_belongs_to_one_bot_and_expires_unused_after_a_day(
        self, bot: Bot, owner: Owner, time: Time
    ) -> None:
        ask(bot, "Hi", key="order-1")
        one, another = (ask(bot, "Hi", key="order-1").session for _ in range(2))
        assert ask(new_bot(owner), "Hi", sessionId=one).status == 404
        time.pass_by(hours=23)
        assert ask(bot, "Hi", sessionId=one).status == 200
        time.pass_by(hours=2)
        assert ask(bot, "Hi", sessionId=another).status == 404
        assert ask(bot, "Hi", sessionId=one).status == 200

    def test_authenticated_callers_continue_the_session_of_the_first_call(
        self, bot: Bot, script: Script
    ) -> None:
        model = script("Rye.", ProviderUsage(10, 4))
        session = ask(bot, "Hi").session
        reply, repeated = (ask(bot, "Hi", key="a", sessionId=session) for _ in range(2))
        assert reply.session == repeated.session == session
        bot.change(is_private=True)
        key = new_key(bot)
        reply, repeated = (ask(bot, "Hi", key="b", apiKey=key) for _ in range(2))
        assert reply.session == repeated.session != session
        ask(bot, "And?", sessionId=repeated.session, apiKey=key)
        assert [text for _, text in model.dialogs[-1][1:]] == ["Hi", "Rye.", "And?"]

    def test_the_stored_session_is_readable_with_the_master_key_only(self, bot: Bot) -> None:
        bot.change(is_private=True)
        key = new_key(bot)
        reply = ask(bot, "Hi", key="order-1", apiKey=key)
        stored = stored_answers()
        assert stored
        for row in stored:
            # The nonce and the tag make it longer than the token.
            assert len(from_json(row.body)["session"]) > len(reply.session)
            assert reply.session.encode() not in row.body
        assert ask(bot, "Hi", key="order-1", apiKey=key).session == reply.session

    @pytest.mark.parametrize("session", [None, 43 * "A", "not base64!"])
    def test_a_session_that_cannot_be_read_is_replaced_by_a_new_one(
        self, session: str | None, bot: Bot
    ) -> None:
        bot.change(is_private=True)
        key = new_key(bot)
        reply = ask(bot, "Hi", key="a", apiKey=key)
        store_session(session)  # None without the master key
        repeated = ask(bot, "Hi", key="a", apiKey=key)
        assert (repeated.text, repeated.status) == (reply.text, 200)
        assert repeated.session != reply.session
        assert ask(bot, "And?", sessionId=repeated.session, apiKey=key).status == 200

    def test_without_the_master_key_answers_are_charged_and_replayed(
        self, bot: Bot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail() -> bytes:
            raise NotConfiguredError("no master key")

        bot.change(is_private=True)
        key = new_key(bot)
        monkeypatch.setattr(sealing, "master_key", fail)
        reply, repeated = (ask(bot, "Hi", key="a", apiKey=key) for _ in range(2))
        assert (reply.text, reply.status) == (repeated.text, repeated.status)
        assert reply.session != repeated.session

    def test_another_message_under_the_same_key_is_409(self, bot: Bot) -> None:
        ask(bot, "Hi", key="a")
        refusal = ask(bot, "Bye", key="a").answer
        assert (refusal.status, refusal.data["code"]) == (409, "idempotency_mismatch")

    def test_visitors_sessions_and_bots_have_separate_keys(self, bot: Bot, script: Script) -> None:
        model = script("Yes.", ProviderUsage(1, 1))
        session = ask(bot, "Hi", key="a").session
        ask(bot, "Hi", key="a", ip="203.0.113.9")
        ask(bot, "Hi", key="a", sessionId=session)
        ask(new_bot(bot.owner, money=0), "Hi", key="a")
        assert len(model.inputs) == 4

    def test_a_call_that_is_being_answered_is_in_progress(self, bot: Bot, script: Script) -> None:
        go_on = Event()
        script(go_on, "Yes.", ProviderUsage(1, 1))
        first = answer_to(request_to(bot.id, "Hi", key="a"))
        refusal = ask(bot, "Hi", key="a").answer
        assert (refusal.status, refusal.data["code"]) == (409, "in_progress")
        go_on.set()
        first.whole_body()
        assert ask(bot, "Hi", key="a").text == "Yes."

    def test_a_call_that_was_not_charged_may_be_repeated(
        self, bot: Bot, model_prices: None, script: Script
    ) -> None:
        bot.limit(daily=0)
        assert ask(bot, "Hi", key="a").status == 429
        bot.limit(daily=None)
        script(ModelError("unavailable", "x"))
        assert ask(bot, "Hi", key="a").events[-1]["type"] == "error"
        script("Yes.", ProviderUsage(1, 1))
        assert ask(bot, "Hi", key="a").text == "Yes."

    def test_a_failure_that_was_charged_is_replayed(
        self, bot: Bot, script: Script, model_prices: None
    ) -> None:
        script("Half", ModelError("unavailable", "x"))
        reply, repeated = ask(bot, "Hi", key="a"), ask(bot, "Hi", key="a")
        assert repeated.text == reply.text == "Half"
        assert repeated.events[-1] == reply.events[-1]
        assert bot.kinds == ["topup", "reserve", "settle"]

    def test_a_crashed_call_blocks_its_key_for_ten_minutes(
        self, bot: Bot, script: Script, time: Time
    ) -> None:
        script(Event())
        answer_to(request_to(bot.id, "Hi", key="a"))
        time.pass_by(minutes=9, seconds=59)
        assert ask(bot, "Hi", key="a").status == 409
        time.pass_by(seconds=2)
        script("Yes.", ProviderUsage(1, 1))
        assert ask(bot, "Hi", key="a").text == "Yes."

    @pytest.mark.parametrize("key", ["", "x" * 256])
    def test_a_key_must_have_1_to_255_characters(self, key: str, bot: Bot) -> None:
        request = request_to(bot.id, "Hi")
        headers = {**request.headers, "idempotency-key": key}
        assert answer_to(replace(request, headers=headers)).status == 400

"""A chat is charged exactly, within its limits and the balance."""

from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest

from chalicelib.core.errors import UnavailableError
from chalicelib.domains.billing.flows import charging
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.chat.flows import stream_answer
from chalicelib.gateways import llm
from chalicelib.gateways.llm import ModelError, ProviderUsage, Reasoning
from chalicelib.gateways.llm.messages import count_tokens
from chalicelib.transports import scheduled_functions
from chalicelib.transports.http import HttpResponse
from tests.conftest import Api, Owner, Time, call_operator
from tests.factories.chat import (
    RICH,
    Bot,
    ScriptedModel,
    answer_to,
    ask,
    new_bot,
    transcript,
)
from tests.factories.examples import request_to
from tests.support.patience import PATIENCE
from tests.transports.chat.endpoint.conftest import IN, OUT, Script

pytestmark = pytest.mark.usefixtures("database")


class TestSpending:
    @pytest.mark.parametrize(
        ("limits", "code"),
        [
            ({"daily": 0}, "limit_daily"),
            ({"weekly": 0}, "limit_weekly"),
            ({"monthly": 0, "daily": 0}, "limit_monthly"),
        ],
    )
    def test_an_exhausted_limit_is_429(
        self, limits: dict[str, int], code: str, bot: Bot, model_prices: None
    ) -> None:
        bot.limit(**limits)
        refusal = ask(bot, "Hi").answer
        assert (refusal.status, refusal.data["code"]) == (429, code)
        assert int(refusal.headers["Retry-After"]) > 0
        assert bot.kinds == ["topup"]

    def test_an_empty_balance_is_429_without_a_retry_time(
        self, owner: Owner, model_prices: None
    ) -> None:
        bot = new_bot(owner, money=0)
        refusal = ask(bot, "Hi").answer
        assert (refusal.status, refusal.data["code"]) == (429, "insufficient_balance")
        assert "Retry-After" not in refusal.headers

    def test_the_balance_falls_by_exactly_the_price(self, bot: Bot, model_prices: None) -> None:
        spent = 0
        for question in ("How much is rye bread?", "When do you open?"):
            usage = ask(bot, question).usage
            spent += -(-(usage["inputTokens"] * IN + usage["outputTokens"] * OUT) // 10**6)
            assert bot.money == (RICH - spent, 0)
        assert bot.kinds == ["topup", "reserve", "settle", "reserve", "settle"]

    def test_a_low_balance_makes_a_shorter_answer(
        self, owner: Owner, model_prices: None, script: Script
    ) -> None:
        bot = new_bot(owner, money=120)
        model = script("Yes", ProviderUsage(10, 1))
        ask(bot, "Hi")
        assert 64 <= model.output_limits[0] < 4096

    @pytest.mark.parametrize(
        ("value", "granted_tokens"), [("", 2_048), ("300", 300), ("99999", 4_096)]
    )
    def test_a_model_outside_the_catalogue_holds_money_up_to_its_cap(
        self,
        value: str,
        granted_tokens: int,
        owner: Owner,
        script: Script,
        monkeypatch: pytest.MonkeyPatch,
        reload_settings: Callable[[], None],
    ) -> None:
        monkeypatch.setenv("LLM_UNKNOWN_OUTPUT", value)
        reload_settings()
        bot = new_bot(owner, model="our-own-model", capabilities=[])
        spec = llm.resolve("our-own-model", tenant="w")
        model = script("Yes", ProviderUsage(10, 1))
        ask(bot, "Hi")
        assert model.output_limits == [granted_tokens]
        held_money = int(ledger.entries(bot.account_id)[1].held)
        max_cost = spec.input_price * 1_000 + spec.output_price * granted_tokens
        assert spec.output_price * granted_tokens <= held_money * 10**6 <= max_cost

    def test_a_visitor_who_leaves_midway_is_charged_for_the_text_so_far(
        self, bot: Bot, model_prices: None, script: Script, api: Api
    ) -> None:
        streamed = "word " * 40
        go_on = Event()
        model = script(streamed, go_on, "more", ProviderUsage(50, 999))
        stream = answer_to(request_to(bot.id, "Tell me a tale"))
        body = iter(stream.body)
        next(body)  # type: ignore[call-overload]
        next(body)  # type: ignore[call-overload]
        stream.close()
        input_tokens, output_tokens = model.input_tokens, count_tokens(streamed)
        assert bot.money == (RICH - -(-(input_tokens * IN + output_tokens * OUT) // 10**6), 0)
        assert bot.kinds == ["topup", "reserve", "settle"]
        message = transcript(api, bot)[-1]
        assert (message["content"], message["status"]) == (streamed, "partial")
        assert message["tokens"] == output_tokens

    def test_a_visitor_who_leaves_before_the_first_word_pays_for_the_question(
        self, bot: Bot, model_prices: None, script: Script, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = script(Event())
        stream = answer_to(request_to(bot.id, "Tell me a tale"))
        body = iter(stream.body)
        next(body)  # type: ignore[call-overload]
        monkeypatch.setattr(stream_answer, "PING_SECONDS", 0.01)
        assert b": ping" in next(body)  # type: ignore[call-overload]
        assert model.waiting.wait(PATIENCE)
        stream.close()
        input_tokens = model.input_tokens
        assert bot.money == (RICH - -(-(input_tokens * IN) // 10**6), 0)

    @pytest.mark.parametrize("read", [0, 1])
    def test_a_visitor_who_leaves_before_the_request_to_the_model_pays_nothing(
        self, read: int, bot: Bot, model_prices: None, script: Script
    ) -> None:
        model = script("Hello", ProviderUsage(1, 1))
        stream = answer_to(request_to(bot.id, "Hi"))
        for _ in range(read):
            next(iter(stream.body))  # type: ignore[call-overload]
        stream.close()
        assert model.inputs == []
        assert bot.money == (RICH, 0)
        assert bot.kinds == ["topup", "reserve", "release"]

    def test_a_provider_that_fails_at_once_costs_nothing(
        self, bot: Bot, model_prices: None, script: Script, api: Api
    ) -> None:
        script(ModelError("refused", "The key sk-secret is wrong."))
        reply = ask(bot, "Hi")
        assert [event["type"] for event in reply.events] == ["start", "error"]
        assert "secret" not in reply.raw.decode()
        assert bot.money == (RICH, 0)
        assert bot.kinds == ["topup", "reserve", "release"]
        message = transcript(api, bot)[-1]
        assert (message["role"], message["status"]) == ("assistant", "error")

    @pytest.mark.parametrize("problem", [ModelError("unavailable", "hush"), RuntimeError("hush")])
    def test_a_provider_that_fails_midway_is_charged_for_its_text(
        self, problem: Any, bot: Bot, model_prices: None, script: Script, api: Api
    ) -> None:
        model = script("word " * 9, problem)
        reply = ask(bot, "Hi")
        assert reply.events[-1]["code"] == "cut_off"
        assert "hush" not in reply.raw.decode()
        assert bot.money == (RICH - -(-(model.input_tokens * IN + 9 * OUT) // 10**6), 0)
        answer = transcript(api, bot)[-1]
        assert (answer["status"], answer["reason"]) == ("partial", "cut_off")

    @pytest.mark.parametrize(("streamed", "ends"), [([], "release"), (["word "], "settle")])
    def test_a_model_that_never_ends_is_given_up(
        self,
        streamed: list[str],
        ends: str,
        bot: Bot,
        model_prices: None,
        script: Script,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(stream_answer, "PING_SECONDS", 0.01)
        monkeypatch.setattr(stream_answer, "MODEL_SECONDS", -stream_answer.GRACE_SECONDS)
        script(*streamed, Event())
        reply = ask(bot, "Hi")
        assert reply.events[-1]["type"] == "error"
        assert bot.kinds == ["topup", "reserve", ends]
        assert bot.money[1] == 0

    def test_usage_beyond_the_hold_is_not_charged(
        self, bot: Bot, model_prices: None, script: Script
    ) -> None:
        script("Yes", ProviderUsage(10**9, 10**9))
        ask(bot, "Hi")
        reserved = ledger.entries(bot.account_id)[1]
        assert bot.money == (RICH - int(reserved.held), 0)

    def test_an_answer_that_cannot_be_settled_is_completed_and_settled_by_its_job(
        self, bot: Bot, model_prices: None, monkeypatch: pytest.MonkeyPatch, time: Time, api: Api
    ) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise UnavailableError

        with monkeypatch.context() as broken:
            broken.setattr(charging, "settle", fail)
            reply = ask(bot, "How much is rye bread?")
        assert reply.events[-1]["type"] == "done"
        assert bot.money[1] > 0
        time.pass_by(minutes=10, seconds=1)
        scheduled_functions.run_jobs()
        usage = reply.usage
        cost = -(-(usage["inputTokens"] * IN + usage["outputTokens"] * OUT) // 10**6)
        assert bot.money == (RICH - cost, 0)
        message = transcript(api, bot)[-1]
        assert (message["content"], message["status"]) == (reply.text, "ok")

    def test_an_answer_whose_dialog_was_erased_meanwhile_is_charged(
        self, bot: Bot, model_prices: None, script: Script, owner: Owner, api: Api
    ) -> None:
        script("word " * 9, ProviderUsage(50, 9))
        stream = answer_to(request_to(bot.id, "I am ada@example.com"))
        body = iter(stream.body)
        next(body)  # type: ignore[call-overload]
        call_operator("erase_client", workspaceId=owner.workspace.id, email="ada@example.com")
        assert b'"done"' in b"".join(body)  # type: ignore[arg-type]
        stream.close()
        assert bot.money == (RICH - -(-(50 * IN + 9 * OUT) // 10**6), 0)
        assert transcript(api, bot) == []
        stats = api.get(f"/api/agents/stats?agentId={bot.id}")
        assert (stats["messages"], stats["tokens"]["output"]) == (2, 9)


class TestReasoning:
    """Reasoning of a model is charged as output and not shown."""

    def test_reasoning_is_charged_by_the_reported_usage_and_not_shown(
        self, bot: Bot, model_prices: None, script: Script, api: Api
    ) -> None:
        script(Reasoning("They want rye. "), Reasoning("Rye."), "Rye.", ProviderUsage(50, 700))
        reply = ask(bot, "Hi")
        assert [event["type"] for event in reply.events] == ["start", "chunk", "done"]
        assert reply.text == "Rye."
        assert "want" not in reply.raw.decode()
        assert reply.usage["outputTokens"] == 700
        assert bot.money == (RICH - -(-(50 * IN + 700 * OUT) // 10**6), 0)
        assert transcript(api, bot)[-1]["content"] == "Rye."

    def test_a_visitor_who_leaves_is_charged_for_the_reasoning_so_far(
        self, bot: Bot, model_prices: None, script: Script, api: Api
    ) -> None:
        model = script(*[Reasoning("thus ")] * 40, Event())
        thinking(bot, model).close()
        input_tokens = model.input_tokens
        assert bot.money == (RICH - -(-(input_tokens * IN + 40 * OUT) // 10**6), 0)
        assert bot.kinds == ["topup", "reserve", "settle"]
        message = transcript(api, bot)[-1]
        assert (message["content"], message["status"]) == ("", "partial")
        assert message["tokens"] == 40

    def test_the_models_usage_is_still_read_after_the_visitor_has_left(
        self,
        bot: Bot,
        model_prices: None,
        script: Script,
        api: Api,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(stream_answer, "USAGE_SECONDS", PATIENCE)
        go_on = Event()
        model = script(Reasoning("thus "), go_on, "Rye ", "bread.", ProviderUsage(50, 900))
        leaving = Thread(target=thinking(bot, model).close)
        leaving.start()
        leaving.join(0.5)
        assert leaving.is_alive()
        go_on.set()
        leaving.join()
        assert bot.money == (RICH - -(-(50 * IN + 900 * OUT) // 10**6), 0)
        message = transcript(api, bot)[-1]
        assert (message["content"], message["status"]) == ("Rye bread.", "ok")
        assert message["tokens"] == 900

    def test_hidden_and_unreported_reasoning_is_not_charged(
        self, bot: Bot, model_prices: None, script: Script
    ) -> None:
        model = script(Event(), ProviderUsage(50, 900))
        thinking(bot, model).close()
        input_tokens = model.input_tokens
        assert bot.money == (RICH - -(-(input_tokens * IN) // 10**6), 0)

    def test_reasoning_of_a_failing_model_costs_nothing(
        self, bot: Bot, model_prices: None, script: Script, api: Api
    ) -> None:
        script(Reasoning("thus far"), ModelError("unavailable", "hush"))
        reply = ask(bot, "Hi")
        assert [event["type"] for event in reply.events] == ["start", "error"]
        assert bot.money == (RICH, 0)
        assert transcript(api, bot)[-1]["status"] == "error"

    def test_a_model_that_is_refused_after_the_visitor_has_left_costs_nothing(
        self, bot: Bot, model_prices: None, script: Script, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stream_answer, "USAGE_SECONDS", PATIENCE)
        go_on = Event()
        stream = thinking(bot, script(go_on, ModelError("refused", "hush")))
        go_on.set()
        stream.close()
        assert bot.money == (RICH, 0)


def thinking(bot: Bot, model: ScriptedModel) -> HttpResponse:
    """Send a message.

    Return the answer once the visitor has received a ping while the model waits.
    """
    stream = answer_to(request_to(bot.id, "Tell me a tale"))
    body = iter(stream.body)
    next(body)  # type: ignore[call-overload]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_answer, "PING_SECONDS", 0.01)
        assert b": ping" in next(body)  # type: ignore[call-overload]
    assert model.waiting.wait(PATIENCE)
    return stream

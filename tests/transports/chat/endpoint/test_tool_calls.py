"""Answers in which the model calls tools, and what the owner pays."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chalicelib.domains.billing.rules.pricing import LEAST_OUTPUT, Prices, TokenUsage, cost
from chalicelib.domains.chat.flows import chat_history, chat_tools, model_calls
from chalicelib.domains.chat.rules import call_budget
from chalicelib.domains.chat.rules.call_budget import CallBudget
from chalicelib.gateways import llm
from chalicelib.gateways.llm import ModelError, ProviderUsage, Reasoning
from chalicelib.gateways.llm.messages import ToolCall
from tests.conftest import Api, Owner, all_rows
from tests.factories.chat import RICH, Bot, ask, new_bot, transcript
from tests.transports.chat.endpoint.conftest import IN, OUT, Script

pytestmark = pytest.mark.usefixtures("database", "model_prices", "model_takes_tools")

READ_TOOLS = ["find_products", "find_services", "opening_hours"]


def find(query: str, call_id: str = "1") -> ToolCall:
    return ToolCall(call_id, "find_products", json.dumps({"query": query}))


def charged(bot: Bot) -> int:
    available, reserved = bot.money
    assert reserved == 0
    return RICH - available


def price(tokens_in: int, tokens_out: int) -> int:
    return cost(Prices(IN, OUT), TokenUsage(tokens_in, tokens_out))


class TestAnswers:
    def test_the_model_answers_from_the_results_of_its_calls(
        self, bot: Bot, api: Api, script: Script
    ) -> None:
        api.post("/api/products/create", {"name": "Rye bread", "price": 12_000})
        model = script(
            "Let me look.",
            find("rye"),
            ProviderUsage(100, 10),
            "It costs 120 rubles.",
            ProviderUsage(150, 8),
        )
        reply = ask(bot, "How much is rye?")
        assert reply.text == "Let me look.\n\nIt costs 120 rubles."
        assert reply.usage == {"inputTokens": 250, "outputTokens": 18, "totalTokens": 268}
        assert charged(bot) == price(250, 18)
        assert bot.kinds == ["topup", "reserve", "settle"]
        *_, request, answer = model.inputs[1]
        assert request.calls == (find("rye"),)
        (result,) = answer.results
        assert json.loads(result.content)["found"][0]["price_rub"] == 120
        assert transcript(api, bot)[-1]["content"] == reply.text

    def test_a_bot_offers_the_tools_of_its_capabilities(self, bot: Bot, script: Script) -> None:
        model = script("Hi", ProviderUsage(1, 1))
        ask(bot, "Hello")
        bot.change(capabilities=["catalog", "slots"])
        ask(bot, "Hello")
        bot.change(capabilities=[])
        ask(bot, "Hello")
        assert model.tool_names == [READ_TOOLS, [*READ_TOOLS, "find_free_times"], []]

    def test_a_wrong_call_does_not_end_the_answer(self, bot: Bot, script: Script) -> None:
        model = script(
            ToolCall("1", "drop_tables", "{}"),
            ToolCall("2", "find_products", "nonsense"),
            ProviderUsage(10, 1),
            "Sorry.",
            ProviderUsage(10, 1),
        )
        assert ask(bot, "Hello").text == "Sorry."
        assert [result.is_error for result in model.inputs[1][-1].results] == [True, True]

    def test_a_tool_that_breaks_does_not_end_the_answer(
        self, bot: Bot, script: Script, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from chalicelib.domains.chat.flows import chat_facts

        def fail(*_: Any) -> None:
            raise RuntimeError("secret")

        model = script(find("rye"), ProviderUsage(10, 1), "Sorry.", ProviderUsage(10, 1))
        monkeypatch.setattr(chat_facts.Source, "find", lambda *_, **__: ([], 0))
        monkeypatch.setattr("chalicelib.domains.chat.flows.read_tools._offers", fail)
        assert ask(bot, "Hello").text == "Sorry."
        (result,) = model.inputs[1][-1].results
        assert result.is_error
        assert "secret" not in result.content

    def test_tool_calls_are_not_part_of_the_stored_dialog(self, bot: Bot, script: Script) -> None:
        model = script(find("rye"), ProviderUsage(10, 1), "No rye.", ProviderUsage(10, 1))
        session = ask(bot, "Rye?").session
        ask(bot, "And wheat?", sessionId=session)
        assert [role for role, _ in model.dialogs[2]] == ["system", "user", "assistant", "user"]


class TestLimits:
    def test_a_model_that_never_stops_calling_has_to_answer_in_its_fourth_call(
        self, bot: Bot, script: Script
    ) -> None:
        calls = [find(f"rye {number}", str(number)) for number in range(5)]
        model = script("Looking.", *calls, ProviderUsage(100, 10))
        reply = ask(bot, "Rye?")
        assert reply.events[-1]["type"] == "done"
        assert model.final == [False, False, True]
        carried_out = [
            result
            for message in model.inputs[-1]
            for result in message.results
            if result.content != model_calls.TOO_MANY
        ]
        assert len(carried_out) == call_budget.MAX_TOOL_CALLS
        assert charged(bot) == price(300, 30)

    def test_without_money_for_tools_there_is_one_call_without_them(
        self, owner: Owner, script: Script
    ) -> None:
        bot = new_bot(owner, money=150)
        model = script("Yes.", ProviderUsage(10, 1))
        assert ask(bot, "Rye?").status == 200
        assert (model.tool_names, model.final) == ([[]], [True])
        assert bot.kinds == ["topup", "reserve", "settle"]

    def test_a_slow_answer_receives_no_more_tools(
        self, bot: Bot, script: Script, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = script(find("rye"), ProviderUsage(10, 1), "Yes.", ProviderUsage(10, 1))
        monkeypatch.setattr(model_calls, "TOOLS_UNTIL", -1.0)
        ask(bot, "Rye?")
        assert (model.tool_names, model.final) == ([[]], [True])

    def test_a_long_dialog_leaves_room_for_tools_and_their_results(
        self, bot: Bot, api: Api, script: Script, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(20):
            about = "Sourdough. " * 40
            api.post(
                "/api/products/create", {"name": f"Rye {number}", "price": 1, "description": about}
            )
        spec = llm.resolve("x", tenant="w")._replace(context_tokens=6_000)
        monkeypatch.setattr(llm, "resolve", lambda _, **_more: spec)
        end = ProviderUsage(10, 1)
        script("word " * 500, end)
        session = ask(bot, "Hello").session
        for _ in range(10):
            ask(bot, "And now?", sessionId=session)
        model = script(*[find("rye"), end] * 3, "Yes.", end)
        reply = ask(bot, "And now?", sessionId=session)
        assert reply.events[-1]["type"] == "done"
        assert model.tool_names[-1] == READ_TOOLS
        assert any(message.results for message in model.inputs[-1])
        tools = [tool.spec for tool in chat_tools.TOOLS if tool.capability == "catalog"]
        count = chat_history.counter(spec.provider)
        for messages, granted_tokens in zip(model.inputs, model.output_limits, strict=True):
            assert count(messages, tools) + granted_tokens <= 6_000

    def test_a_model_with_a_small_context_has_no_tools(
        self, bot: Bot, script: Script, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        spec = llm.resolve("x", tenant="w")._replace(context_tokens=2_000)
        monkeypatch.setattr(llm, "resolve", lambda _, **_more: spec)
        model = script("Yes.", ProviderUsage(10, 1))
        assert ask(bot, "Rye?").text == "Yes."
        assert (model.tool_names, model.final) == ([[]], [True])

    def test_a_model_that_fails_after_a_tool_call_is_charged_for_what_ended(
        self, bot: Bot, script: Script
    ) -> None:
        script(find("rye"), ProviderUsage(100, 10), ModelError("unavailable", "x"))
        reply = ask(bot, "Rye?")
        assert reply.events[-1]["type"] == "error"
        assert price(100, 10) <= charged(bot)
        assert bot.kinds == ["topup", "reserve", "settle"]

    def test_a_model_that_fails_in_its_first_call_costs_nothing(
        self, bot: Bot, script: Script
    ) -> None:
        script(ModelError("unavailable", "x"))
        ask(bot, "Rye?")
        assert charged(bot) == 0

    TURNS = st.lists(
        st.lists(
            st.one_of(
                st.text(max_size=20),
                st.builds(Reasoning, st.text(max_size=20)),
                st.builds(
                    ToolCall,
                    st.text("ab1", min_size=1, max_size=3),
                    st.sampled_from([*READ_TOOLS, "create_booking", "", "find_free_times"]),
                    st.sampled_from(["{}", "", "[]", '{"query": "rye"}', '{"query": null}'])
                    | st.text(max_size=20),
                ),
            ),
            max_size=8,
        ),
        min_size=1,
        max_size=5,
    )

    @settings(
        max_examples=25,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(TURNS, st.integers(0, 500), st.integers(0, 300))
    def test_whatever_a_model_does_the_stream_ends_and_the_ledger_is_exact(
        self, bot: Bot, script: Script, turns: list[list[Any]], tokens_in: int, tokens_out: int
    ) -> None:
        balance_before, kinds = bot.money[0], len(bot.kinds)
        usage = ProviderUsage(tokens_in, tokens_out)
        model = script(*[step for turn in turns for step in [*turn, usage]])
        reply = ask(bot, "Rye?")
        ended = reply.events[-1]
        assert ended["type"] == "done" or ended["code"] == "empty_answer"
        assert len(model.inputs) <= call_budget.MAX_CALLS
        charge = "settle" if ended["type"] == "done" else "empty"
        assert bot.kinds[kinds:] == ["reserve", charge]
        assert bot.money[1] == 0
        used = reply.usage
        assert balance_before - bot.money[0] == price(used["inputTokens"], used["outputTokens"])
        assert "#BOOKING" not in repr(all_rows())


PRICES = st.builds(Prices, st.integers(0, 10**6), st.integers(0, 10**6))


class TestBudget:
    @given(PRICES, st.integers(0, 10**6), st.data())
    def test_a_call_with_tools_always_leaves_enough_for_a_final_answer(
        self, prices: Prices, held_money: int, data: st.DataObject
    ) -> None:
        budget, spent = CallBudget(prices, held_money, 5_000), TokenUsage(0, 0)
        needed = data.draw(st.integers(1, 10_000))
        for _ in range(call_budget.MAX_CALLS):
            output = budget.output_with_tools(
                spent, needed, result_tokens=call_budget.RESULT_TOKENS
            )
            if output is None:
                return
            output_so_far = data.draw(st.integers(0, output))
            spent = TokenUsage(spent.input_tokens + needed, spent.output_tokens + output_so_far)
            needed += output_so_far + data.draw(st.integers(0, call_budget.RESULT_TOKENS))
            output_left = budget.final_output(spent, needed)
            assert output_left >= LEAST_OUTPUT
            final = TokenUsage(spent.input_tokens + needed, spent.output_tokens + output_left)
            assert cost(prices, final) <= held_money

    @given(st.integers(1, 10**5), st.integers(64, 4_096))
    def test_the_planned_usage_admits_tools_in_the_first_call(
        self, input_tokens: int, max_input: int
    ) -> None:
        prices = Prices(IN, OUT)
        planned = call_budget.planned(input_tokens, max_output_tokens=max_input)
        budget = CallBudget(prices, cost(prices, planned), planned.output_tokens)
        output = budget.output_with_tools(
            TokenUsage(0, 0), input_tokens, result_tokens=call_budget.RESULT_TOKENS
        )
        assert output is not None
        assert output >= min(max_input, call_budget.PLANNED_OUTPUT)

"""What the visitor, the dialog and the ledger receive for each ending of an answer."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.text import is_visible
from chalicelib.domains.billing.rules.pricing import Prices, TokenUsage, cost
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.bots.rules.capabilities import CAPABILITIES
from chalicelib.domains.chat.flows import model_calls
from chalicelib.domains.chat.rules.endings import ERRORS
from chalicelib.gateways import llm
from chalicelib.gateways.llm import (
    ChatModel,
    ModelError,
    ProviderUsage,
    Reasoning,
    Stop,
    attempts,
    observed_limits,
)
from chalicelib.gateways.llm.bedrock import BedrockModel
from chalicelib.gateways.llm.demo import ENDINGS
from chalicelib.gateways.llm.messages import count_tokens
from chalicelib.gateways.llm.openai import OpenAiModel
from tests.conftest import Api, Time
from tests.factories.chat import RICH, Bot, ChatReply, ask, transcript
from tests.fakes import bedrock_api, openai_api
from tests.fakes.openai_api import DONE, Answering, OpenAiApi, event, piece, usage
from tests.gateways.llm.test_recorded_streams import RECORDED, recorded
from tests.support.effort import examples
from tests.support.sweep import sweep
from tests.transports.chat.endpoint.conftest import IN, OUT, Script

pytestmark = pytest.mark.usefixtures("database", "model_prices")

PRICES = Prices(IN, OUT)
VISIBLE = "Rye is 240."


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAiApi]:
    """A server that answers for every model, with OpenAI's API."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(attempts, "LONGEST_PAUSES", (0.0, 0.0))
    with openai_api.serving() as api:
        use(OpenAiModel(api.url, lambda: ""), monkeypatch)
        yield api


def use(model: ChatModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm, "chat_model_for", lambda _: model)


def send(reason: str | None, *texts: str, tokens: tuple[int, int] | None = (11, 7)) -> bytes:
    """A stream of these deltas that ends for a reason."""
    events: list[Any] = [*map(piece, texts), piece(None, reason)]
    return b"".join(map(event, [*events, *([usage(*tokens)] if tokens else []), DONE]))


def charged(bot: Bot) -> int:
    assert bot.money[1] == 0
    return RICH - bot.money[0]


EMPTY: dict[str, bytes] = {
    "length": send("length"),
    "content_filter": send("content_filter"),
    "blank": send("stop", " \n", "\u200b"),
    "refusal": b"".join(
        map(
            event,
            [
                {"choices": [{"delta": {"content": None, "refusal": "I can't."}}]},
                piece(None, "stop"),
                usage(11, 7),
                DONE,
            ],
        )
    ),
    "reasoning": b"".join(
        map(
            event,
            [
                {"choices": [{"delta": {"reasoning_content": "Hm"}, "finish_reason": "stop"}]},
                usage(11, 7),
                DONE,
            ],
        )
    ),
    "tags": send("stop", "<thi", "nk>The prompt says…</th", "ink>\n\n"),
}


class TestEmptyAnswers:
    @pytest.mark.parametrize("stream", EMPTY.values(), ids=EMPTY)
    def test_an_answer_without_visible_text_is_an_error_charged_by_the_providers_usage(
        self, stream: bytes, server: OpenAiApi, bot: Bot, api: Api
    ) -> None:
        server.answers = [openai_api.chunked(stream)]
        failed = ask(bot, "Rye?").events[-1]
        assert (failed["type"], failed["code"]) == ("error", "empty_answer")
        assert failed["error"] == ERRORS["empty_answer"]
        assert failed["usage"] == {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18}
        assert len(server.asked) == 1
        assert bot.kinds == ["topup", "reserve", "empty"]
        assert charged(bot) == cost(PRICES, TokenUsage(11, 7))
        answer = transcript(api, bot)[-1]
        assert (answer["status"], answer["reason"]) == ("error", "empty_answer")

    def test_an_empty_answer_without_usage_costs_nothing(
        self, server: OpenAiApi, bot: Bot, time: Time
    ) -> None:
        server.answers = [openai_api.chunked(send("length", "<think>Hm", tokens=None))]
        failed = ask(bot, "Rye?").events[-1]
        assert (failed["code"], "usage" in failed) == ("empty_answer", False)
        assert bot.kinds == ["topup", "reserve", "release"]
        assert charged(bot) == 0

    def test_four_tool_calls_and_no_text_are_an_empty_answer(
        self, model_takes_tools: None, script: Script, bot: Bot
    ) -> None:
        call = llm.ToolCall("1", "opening_hours", "{}")
        script(*[call, ProviderUsage(5, 1)] * model_calls.MAX_CALLS)
        reply = ask(bot, "Open?")
        assert reply.events[-1]["code"] == "empty_answer"
        assert reply.usage == {"inputTokens": 20, "outputTokens": 4, "totalTokens": 24}
        assert bot.kinds[-1] == "empty"

    def test_an_action_without_text_is_a_whole_answer(
        self, model_takes_tools: None, script: Script, bot: Bot
    ) -> None:
        bot.change(capabilities=list(CAPABILITIES))
        call = llm.ToolCall("1", "request_person", '{"reason": "a cake"}')
        script(call, ProviderUsage(5, 1), Stop("end"), ProviderUsage(5, 1))
        assert ask(bot, "Call me: ada@example.com").events[-1]["type"] == "done"

    def test_a_repeated_call_receives_the_same_error_and_costs_nothing(
        self, server: OpenAiApi, bot: Bot
    ) -> None:
        server.answers = [openai_api.chunked(EMPTY["length"])]
        first, repeated = (ask(bot, "Rye?", key="k").events[-1] for _ in range(2))
        assert repeated == first
        assert bot.kinds == ["topup", "reserve", "empty"]

    def test_a_settlement_by_the_job_is_that_of_an_empty_answer(
        self, script: Script, bot: Bot, api: Api, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from chalicelib.domains.billing.flows import charging
        from chalicelib.transports import scheduled_functions

        script(Reasoning("hm " * 300), Stop("end"), ProviderUsage(5, 4))
        with monkeypatch.context() as patch:
            patch.setattr(charging, "settle", lambda *_, **__: 1 / 0)
            assert ask(bot, "Rye?").events[-1]["code"] == "empty_answer"
        assert bot.kinds == ["topup", "reserve"]
        time.pass_by(minutes=11)
        scheduled_functions.run_jobs()
        assert bot.kinds == ["topup", "reserve", "empty"]
        assert charged(bot) == cost(PRICES, TokenUsage(5, 4))
        assert transcript(api, bot)[-1]["reason"] == "empty_answer"


class TestCutAnswers:
    def test_an_answer_of_maximum_length_is_done_and_truncated(
        self, server: OpenAiApi, bot: Bot, api: Api
    ) -> None:
        server.answers = [openai_api.chunked(send("length", VISIBLE))]
        for _ in range(2):  # the second is a replay
            done_event = ask(bot, "Rye?", key="k").events[-1]
            assert (done_event["type"], done_event["truncated"]) == ("done", True)
        answer = transcript(api, bot)[-1]
        assert (answer["status"], answer["reason"]) == ("partial", "truncated")
        assert bot.kinds == ["topup", "reserve", "settle"]

    def test_a_whole_answer_is_not_truncated(self, server: OpenAiApi, bot: Bot, api: Api) -> None:
        server.answers = [openai_api.chunked(send("stop", VISIBLE))]
        done_event = ask(bot, "Rye?").events[-1]
        assert (done_event["type"], "truncated" in done_event) == ("done", False)
        assert transcript(api, bot)[-1]["reason"] is None

    @pytest.mark.parametrize(
        ("end", "code"),
        [
            (send("content_filter"), "filtered"),
            (send("SAFETY"), "filtered"),
            (send("content_filter: RECITATION"), "filtered"),
            (event({"error": {"code": "content_filter", "message": "hush"}}), "filtered"),
            (send("network_error"), "cut_off"),
            (event({"type": "error", "message": "hush"}), "cut_off"),
            (event({"code": 500, "message": "hush"}), "cut_off"),
            (send("error"), "cut_off"),
            (event({"object": "error", "message": "hush"}), "cut_off"),
            (b'event: error\ndata: {"message": "hush"}\n\n', "cut_off"),
            (b"", "cut_off"),
        ],
        ids=[
            "filter",
            "Gemini's filter",
            "filter with a detail",
            "filter as an error",
            "network error",
            "type error",
            "message alone",
            "finish reason error",
            "error object",
            "error event",
            "end",
        ],
    )
    def test_a_failure_after_some_text_is_an_error_after_the_text(
        self, end: bytes, code: str, server: OpenAiApi, bot: Bot, api: Api
    ) -> None:
        server.answers = [openai_api.chunked(event(piece(VISIBLE)), end)]
        reply = ask(bot, "Rye?")
        assert reply.text == VISIBLE
        assert (reply.events[-1]["type"], reply.events[-1]["code"]) == ("error", code)
        assert "hush" not in reply.raw.decode()
        answer = transcript(api, bot)[-1]
        assert (answer["status"], answer["reason"]) == ("partial", code)
        assert len(server.asked) == 1

    @pytest.mark.parametrize(
        "failure",
        [
            event({"object": "error", "message": "hush"}),
            b"event: error\ndata: overloaded\n\n",
            send("error"),
        ],
    )
    def test_a_failure_before_any_text_is_tried_again(
        self, failure: bytes, server: OpenAiApi, bot: Bot
    ) -> None:
        server.answers = [openai_api.chunked(failure), openai_api.saying(VISIBLE)]
        reply = ask(bot, "Rye?")
        assert (reply.text, reply.events[-1]["type"]) == (VISIBLE, "done")

    @pytest.mark.parametrize(
        ("kind", "code"),
        [
            ("unavailable", "provider_failed"),
            ("timeout", "timed_out"),
            ("filtered", "filtered"),
        ],
    )
    def test_a_failure_before_any_text_has_a_code_and_costs_nothing(
        self, kind: Any, code: str, script: Script, bot: Bot
    ) -> None:
        script(ModelError(kind, "hush"))
        failed = ask(bot, "Rye?").events[-1]
        assert (failed["code"], "usage" in failed) == (code, False)
        assert charged(bot) == 0


class TestUsage:
    @pytest.mark.parametrize(
        ("reported", "used"),
        [
            ([(100, 1), (100, 1500)], (100, 1500)),
            ([(100, 1500), (100, 1400)], (100, 1400)),
            ([(100, 2)], (100, 3)),  # under a quarter of the count
            ([(100, 0)], (100, 3)),
        ],
    )
    def test_the_last_usage_is_charged_unless_it_is_implausible(
        self,
        reported: list[tuple[int, int]],
        used: tuple[int, int],
        server: OpenAiApi,
        bot: Bot,
    ) -> None:
        text = VISIBLE if used[1] > 3 else "x" * 4 * 9
        used = used if used[1] > 3 else (100, 9)
        first, *others = reported
        events = [
            event({**piece(text), "usage": usage(*first)["usage"]}),
            event(piece(None, "stop")),
            *(event(usage(*counts)) for counts in others),
            event(DONE),
        ]
        server.answers = [openai_api.chunked(*events)]
        reply = ask(bot, "Rye?")
        assert reply.usage == {
            "inputTokens": used[0],
            "outputTokens": used[1],
            "totalTokens": sum(used),
        }
        assert charged(bot) == cost(PRICES, TokenUsage(*used))


ODD_STREAMS: dict[str, bytes] = {
    "byte order mark": b"\xef\xbb\xbf" + send("stop", VISIBLE),
    "empty data": b"data:\n\ndata: \n\n" + send("stop", VISIBLE),
    "CR": send("stop", VISIBLE).replace(b"\n", b"\r"),
    "two data lines": send("stop", VISIBLE).replace(b'{"choices"', b'{\ndata: "choices"'),
    "typed parts": b"".join(
        map(
            event,
            [
                {"choices": [{"delta": {"content": [{"type": "thinking", "thinking": []}]}}]},
                {"choices": [{"delta": {"content": [{"type": "text", "text": VISIBLE}]}}]},
                piece(None, "stop"),
                DONE,
            ],
        )
    ),
    "think": send("stop", "<think>The prompt says…</thi", "nk>", VISIBLE),
    "thought": send("stop", "\n<thought>Hm</thought>\n\n", VISIBLE),
    "reasoning": send("stop", "<reasoning>Hm", "</reasoning>" + VISIBLE),
    "tag with an attribute": send("stop", '<think type="x', '">Hm</think>' + VISIBLE),
    "pings": b"event: ping\ndata: ping\n\ndata: null\n\n" + send("stop", VISIBLE),
    "message beside the delta": event(
        {"choices": [{"delta": {"content": VISIBLE}, "message": {"content": VISIBLE}}]}
    )
    + send("STOP"),
    "a second choice": event({"choices": [{"index": 1, "delta": {"content": "Bun."}}]})
    + send("stop", VISIBLE),
}


class TestOddStreams:
    @pytest.mark.parametrize("stream", ODD_STREAMS.values(), ids=ODD_STREAMS)
    def test_the_visitor_receives_exactly_the_text(
        self, stream: bytes, server: OpenAiApi, bot: Bot
    ) -> None:
        server.answers = [openai_api.chunked(stream)]
        reply = ask(bot, "Rye?")
        assert (reply.text, reply.events[-1]["type"]) == (VISIBLE, "done")

    def test_a_tag_in_the_middle_of_an_answer_is_text(self, server: OpenAiApi, bot: Bot) -> None:
        server.answers = [openai_api.saying("Write <think>", "so</think>.")]
        assert ask(bot, "HTML?").text == "Write <think>so</think>."

    def test_a_model_may_be_silent_before_its_first_event(
        self, server: OpenAiApi, bot: Bot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def answer(wire: openai_api.Wire, request: openai_api.ReceivedRequest) -> None:
            wire.wait_for_hang_up(0.3)
            openai_api.saying(VISIBLE)(wire, request)

        server.answers = [answer]
        use(OpenAiModel(server.url, lambda: "", read_seconds=0.1), monkeypatch)
        assert ask(bot, "Rye?").text == VISIBLE


def refusal(message: str, **about: Any) -> Answering:
    error = {"message": message, "type": "invalid_request_error", **about}
    return openai_api.refusing(400, json.dumps({"error": error}).encode())


class TestRefusals:
    def test_a_spoiled_call_takes_the_tools_from_no_bot(
        self, model_takes_tools: None, server: OpenAiApi, bot: Bot
    ) -> None:
        reason = "Tool choice is none, but model called a tool"
        server.answers = [refusal(reason, code="tool_use_failed"), openai_api.saying(VISIBLE)]
        assert ask(bot, "Rye?").text == VISIBLE
        assert ask(bot, "Rye?").text == VISIBLE
        assert all("tools" in request.body for request in server.asked)

    def test_an_organization_that_may_not_stream_is_answered_in_one_piece(
        self, server: OpenAiApi, bot: Bot
    ) -> None:
        reason = "Your organization must be verified to stream this model."
        message = {"role": "assistant", "content": VISIBLE}
        server.answers = [
            refusal(reason, code="unsupported_value", param="stream"),
            openai_api.json_document({**usage(11, 7), "choices": [{"message": message}]}),
        ]
        reply = ask(bot, "Rye?")
        assert (reply.text, reply.events[-1]["type"]) == (VISIBLE, "done")
        assert "stream" not in server.asked[1].body

    def test_a_model_without_tools_receives_a_prompt_that_promises_none(
        self, model_takes_tools: None, server: OpenAiApi, bot: Bot
    ) -> None:
        bot.change(capabilities=list(CAPABILITIES))
        rejection = refusal("x does not support tools", code=None, param=None)
        server.answers = [rejection, openai_api.saying(VISIBLE)]
        assert ask(bot, "Rye?", features=["actions"]).text == VISIBLE
        first, second = (request.body for request in server.asked)
        assert "tools" in first
        assert "propose" in first["messages"][0]["content"]
        assert "tools" not in second
        assert "You cannot make, change or cancel bookings" in second["messages"][0]["content"]

    def test_a_dialog_that_is_too_long_for_the_model_loses_its_older_half(
        self, server: OpenAiApi, bot: Bot, time: Time
    ) -> None:
        server.answers = [openai_api.saying("a")]
        session = None
        for number in range(4):
            session = ask(bot, f"question {number}", sessionId=session).session
        server.asked.clear()
        rejection = refusal("too long", code="context_length_exceeded", param="messages")
        server.answers = [rejection, openai_api.saying("b")]
        assert ask(bot, "question 4", sessionId=session).text == "b"
        full_messages, cut_messages = (request.body["messages"] for request in server.asked)
        assert len(full_messages) == 10
        assert cut_messages == [full_messages[0], *full_messages[5:]]

    def test_the_context_that_a_server_reports_is_remembered_for_ten_minutes(
        self, server: OpenAiApi, bot: Bot, time: Time
    ) -> None:
        spec = llm.resolve("x", tenant="w")
        rejection = refusal("This model's maximum context length is 9000 tokens.")
        server.answers = [rejection, openai_api.saying(VISIBLE)]
        assert ask(bot, "Rye?").text == VISIBLE
        assert observed_limits.context_tokens(spec.provider_id) == 9_000
        time.pass_by(minutes=10, seconds=1)
        assert observed_limits.context_tokens(spec.provider_id) is None

    def test_a_context_that_no_request_fits_ends_the_requests(
        self, server: OpenAiApi, bot: Bot
    ) -> None:
        server.answers = [refusal("maximum context length is 1000 tokens")]
        assert ask(bot, "Rye?").events[-1]["code"] == "provider_failed"
        assert len(server.asked) == 2

    @pytest.mark.parametrize("number", ["", "maximum context length is 900000 tokens"])
    def test_a_message_that_is_too_long_alone_changes_nothing_for_other_bots(
        self, number: str, server: OpenAiApi, bot: Bot
    ) -> None:
        server.answers = [refusal(number, code="context_length_exceeded")]
        assert ask(bot, "Rye?").events[-1]["code"] == "provider_failed"
        assert len(server.asked) == 1
        assert observed_limits.context_tokens(llm.resolve("x", tenant="w").provider_id) is None

    @pytest.mark.parametrize(
        ("message", "about"),
        [
            ("Unknown tool 'book_table'. Available tools: find_products", {}),
            ("Invalid schema", {"code": "invalid_function_parameters", "param": "tools[0].x"}),
            ("Unsupported value", {"code": "unknown_parameter", "param": "tools[0].strict"}),
        ],
    )
    def test_a_fault_of_one_tool_or_call_takes_the_tools_from_no_bot(
        self,
        message: str,
        about: dict[str, str],
        model_takes_tools: None,
        server: OpenAiApi,
        bot: Bot,
    ) -> None:
        server.answers = [refusal(message, **about), openai_api.saying(VISIBLE)]
        assert ask(bot, "Rye?").events[-1]["code"] == "provider_failed"
        assert ask(bot, "Rye?").text == VISIBLE
        assert all("tools" in request.body for request in server.asked)

    def test_an_error_after_reasoning_is_tried_again_and_costs_nothing(
        self, server: OpenAiApi, bot: Bot
    ) -> None:
        failing = openai_api.chunked(recorded("groq-error"))
        server.answers = [failing, openai_api.saying(VISIBLE, tokens=(11, 7))]
        assert ask(bot, "Rye?").text == VISIBLE
        assert charged(bot) == cost(PRICES, TokenUsage(11, 7))
        server.answers = [failing]
        failed = ask(bot, "Rye?").events[-1]
        assert (failed["code"], bot.kinds[-1]) == ("provider_failed", "release")

    def test_a_final_request_whose_stream_fails_by_a_call_is_sent_without_tools(
        self, model_takes_tools: None, server: OpenAiApi, bot: Bot
    ) -> None:
        call = {"index": 0, "id": "c", "function": {"name": "opening_hours", "arguments": "{}"}}
        calls = [{"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}]
        calling = openai_api.chunked(*map(event, [*calls, usage(5, 1), DONE]))
        failing = openai_api.chunked(recorded("groq-error"))
        server.answers = [calling, calling, calling, failing, openai_api.saying(VISIBLE)]
        assert ask(bot, "Open?").text == VISIBLE
        assert "tools" in server.asked[3].body
        assert "tools" not in server.asked[4].body


SERVER_EVENTS = [
    part + b"\n\n"
    for name in RECORDED
    for part in recorded(name).replace(b"\r\n", b"\n").split(b"\n\n")
    if part
]
FRAMES = [
    bedrock_api.START,
    bedrock_api.text("Ржаной "),
    bedrock_api.text("хлеб"),
    bedrock_api.text("<think>да"),
    bedrock_api.text("</think> "),
    bedrock_api.text("\n"),
    bedrock_api.THOUGHT,
    bedrock_api.block_stop(0),
    bedrock_api.tool_start("t1", "find_products"),
    bedrock_api.tool_input('{"text": 1}'),
    bedrock_api.metadata(12, 1),
    bedrock_api.metadata(100, 1500),
    bedrock_api.metadata(12, 0),
    bedrock_api.failing("modelStreamErrorException", "hush"),
    bedrock_api.failing("throttlingException", "hush"),
    *map(
        bedrock_api.stop,
        [
            "end_turn",
            "max_tokens",
            "tool_use",
            "content_filtered",
            "guardrail_intervened",
            "malformed_model_output",
            "model_context_window_exceeded",
            "refusal",
        ],
    ),
]


def check(reply: ChatReply, bot: Bot, money_before: tuple[int, int]) -> None:
    """Check that a ``done`` follows text or an action, and that the charge is what was reported."""
    money, entries = money_before
    *_, last = reply.events
    action_events = [event for event in reply.events if event["type"] == "action"]
    kinds = bot.kinds[entries:]
    used = last.get("usage")
    paid = money - bot.money[0]
    assert bot.money[1] == 0
    if last["type"] == "done":
        assert is_visible(reply.text) or action_events
        assert kinds == ["reserve", "settle"]
        assert 4 * used["outputTokens"] >= count_tokens(reply.text)
    else:
        assert last["error"] == ERRORS[last["code"]]
        assert (last["code"] == "empty_answer") >= (used is not None)
    if used:
        max_held = max(ledger_entry.held for ledger_entry in ledger.entries(bot.account_id)[:2])
        price = cost(PRICES, TokenUsage(used["inputTokens"], used["outputTokens"]))
        assert paid == min(price, max_held)
    elif last["code"] in {"empty_answer", "provider_failed"}:
        assert (paid == 0) == (kinds == ["reserve", "release"])


def try_mixture(
    server: OpenAiApi, bot: Bot, parts: Sequence[bytes], chunked: Callable[..., Any]
) -> None:
    server.answers = [chunked(*parts)]
    money_before = bot.money[0], len(bot.kinds)
    check(ask(bot, "Rye?"), bot, money_before)


def parts_and_cuts(name: str) -> tuple[list[bytes], list[int]]:
    """Return the events of a recorded stream, and the numbers of events that tests let arrive."""
    parts = [part + b"\n\n" for part in recorded(name).split(b"\n\n") if part]
    return parts, sorted({1, len(parts) // 2, len(parts) - 1, len(parts)})


class TestMixtures:
    """Whatever arrives, text or an action precedes ``done``, and the charge is exact."""

    @examples(100)
    @given(st.lists(st.sampled_from(SERVER_EVENTS), max_size=8))
    def test_any_mixture_of_recorded_events_ends_well(
        self, server: OpenAiApi, bot: Bot, parts: list[bytes]
    ) -> None:
        try_mixture(server, bot, parts, openai_api.chunked)

    @examples(100)
    @given(st.lists(st.sampled_from(FRAMES), max_size=8))
    def test_any_mixture_of_bedrock_events_ends_well(
        self,
        server: OpenAiApi,
        bot: Bot,
        monkeypatch: pytest.MonkeyPatch,
        parts: list[bytes],
    ) -> None:
        client = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
        url = server.url.removesuffix("/v1")
        use(BedrockModel(endpoint_url=url, region_name="eu-central-1", **client), monkeypatch)
        try_mixture(server, bot, parts, bedrock_api.chunked)

    @sweep(("number", "name"), list(enumerate(RECORDED)))
    def test_each_recorded_stream_cut_at_one_event_ends_well(
        self, number: int, name: str, server: OpenAiApi, bot: Bot
    ) -> None:
        parts, cuts = parts_and_cuts(name)
        try_mixture(server, bot, parts[: cuts[number % len(cuts)]], openai_api.chunked)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", RECORDED)
    def test_a_recorded_stream_cut_at_any_event_ends_well(
        self, name: str, server: OpenAiApi, bot: Bot
    ) -> None:
        parts, cuts = parts_and_cuts(name)
        for cut in cuts:
            try_mixture(server, bot, parts[:cut], openai_api.chunked)


@pytest.mark.parametrize("message", ENDINGS)
def test_the_embedded_model_ends_as_a_message_requests(message: str, bot: Bot) -> None:
    last = ask(bot, message).events[-1]
    expected = {
        "demo:length": {"type": "done", "truncated": True},
        "demo:filter": {"code": "filtered"},
        "demo:cut": {"code": "cut_off"},
        "demo:empty": {"code": "empty_answer"},
        "demo:fail": {"code": "provider_failed"},
        "demo:timeout": {"code": "timed_out"},
    }
    assert expected[message].items() <= last.items()


def test_the_embedded_model_on_aws_knows_no_such_messages(
    bot: Bot, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "chat")
    llm._provider.cache_clear()
    reload_settings()
    try:
        assert "truncated" not in ask(bot, "demo:length").events[-1]
    finally:
        llm._provider.cache_clear()

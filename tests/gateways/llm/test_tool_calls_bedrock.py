"""Tool calls with Amazon Bedrock's ConverseStream."""

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from chalicelib.gateways.llm import Event, ModelError, ProviderUsage, Reasoning, Stop, TextDelta
from chalicelib.gateways.llm.answers import MAX_ARGUMENTS, MAX_CALLS, MAX_NAME
from chalicelib.gateways.llm.bedrock import BedrockModel
from chalicelib.gateways.llm.converse import ANSWER_NOW, NO_CONTENT, converse_request
from chalicelib.gateways.llm.messages import (
    NO_RESULT,
    Message,
    ToolCall,
    ToolResult,
    ToolSpec,
    count_input,
    count_tokens,
)
from tests.factories.llm import ASKED, events, read_frames
from tests.fakes import bedrock_api
from tests.fakes.bedrock_api import (
    START,
    block_stop,
    failing,
    metadata,
    reasoning,
    stop,
    text,
    tool_input,
    tool_start,
)
from tests.fakes.openai_api import OpenAiApi

FIND = ToolSpec("find", "Find products.", {"type": "object", "properties": {"q": {}}})
RYE, BUN = '{"q": "rye"}', '{"q": "bun"}'
CALL = ToolCall("tooluse_1", "find", RYE)
ANSWERED = [
    *ASKED,
    Message("assistant", "Let me look.", calls=(CALL,)),
    Message("tool", "", results=(ToolResult("tooluse_1", "find", "Rye, 120"),)),
]
ENDED = stop("tool_use") + metadata(20, 9)


def model(openai: OpenAiApi) -> BedrockModel:
    return BedrockModel(
        endpoint_url=openai.url.removesuffix("/v1"),
        region_name="eu-central-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
    )


def read_events(*frames: bytes, final: bool = False) -> list[Event]:
    """Read an answer that consists of these frames."""
    return list(read_frames(frames, [FIND], final=final))


def call_frames(number: int, arguments: str = RYE) -> bytes:
    start = tool_start(f"tooluse_{number}", "find", number)
    return start + tool_input(arguments, number) + block_stop(number)


def tool_blocks(body: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    """Yield the blocks of a kind in the messages of a request."""
    for turn in body["messages"]:
        yield from (block[kind] for block in turn["content"] if kind in block)


class TestReading:
    def test_arguments_arrive_in_pieces_and_are_one_call(self, openai: OpenAiApi) -> None:
        frames = [
            *(START, text("Let me "), text("look."), block_stop(0)),
            *(tool_start("tooluse_1", "find"), tool_input(""), tool_input('{"q": ')),
            *(tool_input('"rye"}'), block_stop(1), ENDED),
        ]
        openai.answers = [bedrock_api.chunked(*frames)]
        assert events(model(openai), tools=[FIND]) == [
            TextDelta("Let me "),
            TextDelta("look."),
            CALL,
            Stop("tools"),
            ProviderUsage(20, 9),
        ]
        assert "toolConfig" in openai.asked[0].body

    def test_pieces_belong_to_the_call_with_their_block_index(self) -> None:
        frames = [
            tool_start("tooluse_1", "find", 1) + tool_start("tooluse_2", "find", 2),
            tool_input('{"q": ', 2) + tool_input('{"q": ', 1),
            tool_input('"rye"}', 1) + tool_input('"bun"}', 2),
            block_stop(1) + block_stop(2),
        ]
        assert read_events(START, *frames, ENDED)[:2] == [CALL, ToolCall("tooluse_2", "find", BUN)]

    def test_tool_input_without_a_start_is_dropped(self) -> None:
        frames = [tool_input(RYE, 3), text("Well.", 0), text(" And.", 2), tool_input(RYE, 0)]
        assert read_events(START, *frames, stop("end_turn"), metadata(1, 2)) == [
            TextDelta("Well."),
            TextDelta(" And."),
            Stop("end"),
            ProviderUsage(1, 2),
        ]

    def test_tool_input_after_the_end_of_its_block_is_dropped(self) -> None:
        assert read_events(START, call_frames(1), tool_input("more"), ENDED)[0] == CALL

    def test_empty_tool_input_is_an_empty_object(self) -> None:
        for empty_input in (b"", tool_input(""), tool_input(" ")):
            frames = tool_start("tooluse_1", "find") + empty_input + block_stop(1)
            assert read_events(START, frames, ENDED)[0] == ToolCall("tooluse_1", "find", "{}")

    @pytest.mark.parametrize(
        ("stop_reason", "reason"),
        [
            ("end_turn", "end"),
            ("stop_sequence", "end"),
            ("tool_use", "other"),
            ("max_tokens", "length"),
            ("model_context_window_exceeded", "length"),
            ("guardrail_intervened", "filtered"),
            ("content_filtered", "filtered"),
            ("malformed_model_output", "other"),
            ("malformed_tool_use", "other"),
            ("a_new_one", "other"),
        ],
    )
    def test_a_stop_names_the_reason_of_an_answer_without_calls(
        self, stop_reason: str, reason: str
    ) -> None:
        assert read_events(START, text("a"), stop(stop_reason))[1] == Stop(reason)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "stop_reason",
        [
            "max_tokens",
            "model_context_window_exceeded",
            "guardrail_intervened",
            "content_filtered",
            "malformed_model_output",
            "malformed_tool_use",
        ],
    )
    def test_calls_of_an_answer_that_was_cut_short_are_dropped(self, stop_reason: str) -> None:
        (only_stop, spent) = read_events(START, call_frames(1), stop(stop_reason))
        assert isinstance(only_stop, Stop)
        assert only_stop.reason != "tools"
        assert isinstance(spent, ProviderUsage)

    def test_missing_usage_is_estimated_with_calls_and_tools(self) -> None:
        spent = count_tokens("Well.") + count_tokens(f"find {RYE}")
        expected = ProviderUsage(count_input(ASKED, [FIND]), spent, estimated=True)
        assert read_events(START, text("Well."), call_frames(1), stop("tool_use"))[-1] == expected

    def test_a_final_answer_drops_further_calls(self) -> None:
        received = read_events(START, text("Well."), call_frames(1), ENDED, final=True)
        assert received == [TextDelta("Well."), Stop("other"), ProviderUsage(20, 9)]

    def test_a_failure_before_the_end_yields_no_call(self) -> None:
        frames = [START, call_frames(1), failing("modelStreamErrorException", "x"), ENDED]
        received: list[Event] = []
        with pytest.raises(ClientError):
            received.extend(read_frames(frames, [FIND]))
        assert received == []

    @pytest.mark.parametrize(
        "frames",
        [
            [tool_start("t", "find"), tool_input("x" * (MAX_ARGUMENTS + 1))],
            [tool_start("t", "find"), *[tool_input("x" * 1024)] * (MAX_ARGUMENTS // 1024 + 1)],
            [call_frames(number) for number in range(MAX_CALLS + 1)],
            [tool_start("t", "f" * (MAX_NAME + 1)), stop("tool_use")],
        ],
        ids=["one large piece", "many pieces", "many calls", "long name"],
    )
    def test_calls_beyond_the_limits_are_garbage(self, frames: list[bytes]) -> None:
        with pytest.raises(ModelError) as caught:
            read_events(START, *frames)
        assert caught.value.kind == "garbage"


class TestRequest:
    def test_tools_are_sent_as_tool_config(self) -> None:
        spec = {
            "name": "find",
            "description": "Find products.",
            "inputSchema": {"json": {"type": "object", "properties": {"q": {}}}},
        }
        assert converse_request("m", ASKED, 50, [FIND])["toolConfig"] == {
            "tools": [{"toolSpec": spec}]
        }
        assert "toolConfig" not in converse_request("m", ASKED, 50)

    def test_calls_and_results_are_sent_back_in_turns(self) -> None:
        turns = converse_request("m", [*ANSWERED, Message("user", "And?")], 50, [FIND])["messages"]
        used = {"toolUseId": "tooluse_1", "name": "find", "input": {"q": "rye"}}
        content = [{"text": "Rye, 120"}]
        result = {"toolUseId": "tooluse_1", "content": content, "status": "success"}
        assert turns[1:] == [
            {"role": "assistant", "content": [{"text": "Let me look."}, {"toolUse": used}]},
            {"role": "user", "content": [{"toolResult": result}, {"text": "And?"}]},
        ]

    def test_every_call_gets_a_result_and_refused_ones_an_error(self) -> None:
        tool_calls = (CALL, ToolCall("tooluse_2", "find", BUN), ToolCall("tooluse_3", "find", "{}"))
        results = (
            ToolResult("tooluse_3", "find", " "),
            ToolResult("tooluse_2", "find", "Not now.", is_error=True),
            ToolResult("tooluse_9", "find", "?"),
        )
        messages = [
            *ASKED,
            Message("assistant", "", calls=tool_calls),
            Message("tool", "", results=results),
        ]
        result_blocks = [
            (block["toolUseId"], block["content"][0]["text"], block["status"])
            for block in tool_blocks(converse_request("m", messages, 50, [FIND]), "toolResult")
        ]
        assert result_blocks == [
            ("tooluse_1", NO_RESULT, "error"),
            ("tooluse_2", "Not now.", "error"),
            ("tooluse_3", NO_CONTENT, "success"),
        ]

    def test_final_request_keeps_the_tools_and_demands_an_answer(self) -> None:
        later = ToolCall("tooluse_2", "find", BUN)
        messages = [*ANSWERED, Message("assistant", "", calls=(later,))]
        body = converse_request("m", messages, 50, [FIND], final=True)
        first, last = (block["content"] for block in tool_blocks(body, "toolResult"))
        assert first == [{"text": "Rye, 120"}]
        assert last == [{"text": NO_RESULT}, {"text": ANSWER_NOW}]
        assert "toolConfig" in body

    def test_a_final_request_without_calls_before_it_offers_no_tools(self) -> None:
        assert "toolConfig" not in converse_request("m", ASKED, 50, [FIND], final=True)

    @pytest.mark.parametrize(
        "arguments", ["{'q': rye}", "[1]", "{", '{"q": 1e999}', '{"q":"\\ud83e"}']
    )
    def test_names_and_arguments_that_converse_refuses_are_replaced(self, arguments: str) -> None:
        call = ToolCall("tooluse_1", "find.all products", arguments)
        body = converse_request("m", [*ASKED, Message("assistant", "", calls=(call,))], 50, [FIND])
        (used,) = tool_blocks(body, "toolUse")
        assert used == {"toolUseId": "tooluse_1", "name": "find_all_products", "input": {}}

    def test_signed_and_redacted_reasoning_goes_back_before_the_calls(self) -> None:
        hidden = base64.b64encode(b"hidden").decode()
        received = read_events(
            START,
            *(reasoning(0, text="They want "), reasoning(0, text="rye.")),
            *(reasoning(0, signature="c2ln"), reasoning(0, signature="bmVk"), block_stop(0)),
            *(reasoning(1, redactedContent=hidden), block_stop(1)),
            *(reasoning(2, text="unsigned"), block_stop(2)),
            call_frames(3),
            ENDED,
        )
        assert received[:2] == [Reasoning("They want "), Reasoning("rye.")]
        *_, call, stopped, _ = received
        assert isinstance(call, ToolCall)
        assert isinstance(stopped, Stop)
        answer = Message("assistant", "", calls=(call,), extra=stopped.extra)
        content = converse_request("m", [*ASKED, answer], 50, [FIND])["messages"][1]["content"]
        signed = {"text": "They want rye.", "signature": "c2lnbmVk"}
        assert content[:2] == [
            {"reasoningContent": {"reasoningText": signed}},
            {"reasoningContent": {"redactedContent": b"hidden"}},
        ]
        assert [*content[2]] == ["toolUse"]
        count_without_extra = count_input([answer._replace(extra=None)])
        assert count_input([answer]) > count_without_extra + count_tokens("They want rye.")

    def test_the_request_is_valid_for_botocore_and_reaches_the_server(
        self, openai: OpenAiApi
    ) -> None:
        openai.answers = [bedrock_api.saying("x")]
        extra = {"reasoning": [{"reasoningContent": {"redactedContent": b"hidden"}}]}
        answer = Message("assistant", "", calls=(CALL,), extra=extra)
        events(model(openai), messages=[*ASKED, answer], tools=[FIND], final=True)
        body = openai.asked[0].body
        hidden = base64.b64encode(b"hidden").decode()
        expected = {"reasoningContent": {"redactedContent": hidden}}
        assert body["messages"][1]["content"][0] == expected

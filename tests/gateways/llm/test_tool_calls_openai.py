"""Tool calls with servers that have OpenAI's API, each with its own way to send them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.gateways.llm import Event, ModelError, ProviderUsage, Stop, TextDelta
from chalicelib.gateways.llm.answers import MAX_ARGUMENTS, MAX_CALLS, MAX_NAME
from chalicelib.gateways.llm.chat_completions import sent_messages
from chalicelib.gateways.llm.converse import converse_request
from chalicelib.gateways.llm.messages import (
    NO_RESULT,
    Message,
    ToolCall,
    ToolResult,
    ToolSpec,
    count_input,
    count_tokens,
)
from tests.factories.llm import ASKED, events, fail, model, read_chunks, speak
from tests.fakes import openai_api
from tests.fakes.openai_api import DONE, OpenAiApi, event, piece, usage
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("pauses")

FIND = ToolSpec("find", "Find products.", {"type": "object", "properties": {"q": {}}})
RYE, BUN = '{"q": "rye"}', '{"q": "bun"}'
CALL = ToolCall("c1", "find", RYE)
ANSWERED = [
    *ASKED,
    Message("assistant", "", calls=(CALL,)),
    Message("tool", "", results=(ToolResult("c1", "find", "Rye, 120"),)),
]


def fragment(index: int | None = 0, /, **fields: Any) -> dict[str, Any]:
    """A delta with a part of a call. ``name`` and ``arguments`` are the function's."""
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    call = {**fields, "function": function} if function else fields
    if index is not None:
        call["index"] = index
    return {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": None}]}


def finish(reason: str = "tool_calls") -> dict[str, Any]:
    return {"choices": [{"delta": {}, "finish_reason": reason}]}


def read_events(
    *chunks: Any,
    messages: list[Message] = ASKED,
    final: bool = False,
    tools: list[ToolSpec] | None = None,
) -> list[Event]:
    """Read an answer that consists of these events."""
    blocks = map(event, chunks)
    tools = [FIND] if tools is None else tools
    return list(read_chunks(blocks, tools, messages=messages, final=final))


def calls(*chunks: Any, **options: Any) -> list[ToolCall]:
    return [event for event in read_events(*chunks, **options) if isinstance(event, ToolCall)]


class TestReading:
    def test_fragments_with_one_index_are_one_call(self) -> None:
        chunks = [
            piece("Let me look."),
            fragment(id="c1", type="function", name="find", arguments=""),
            fragment(arguments='{"q": '),
            fragment(arguments='"rye"}'),
            finish(),
            usage(20, 9),
        ]
        assert read_events(*chunks) == [
            TextDelta("Let me look."),
            CALL,
            Stop("tools"),
            ProviderUsage(20, 9),
        ]

    def test_fragments_of_two_calls_may_alternate(self) -> None:
        chunks = [
            fragment(0, id="c1", name="find", arguments='{"q": '),
            fragment(1, id="c2", name="find", arguments='{"q": '),
            fragment(0, arguments='"rye"}'),
            fragment(1, arguments='"bun"}'),
        ]
        assert calls(*chunks, finish()) == [CALL, ToolCall("c2", "find", BUN)]

    def test_a_new_id_at_a_used_index_begins_another_call(self) -> None:
        chunks = [
            fragment(0, id="c1", name="find", arguments=RYE),
            fragment(0, id="c2", name="find", arguments=BUN),
        ]
        assert calls(*chunks, finish()) == [CALL, ToolCall("c2", "find", BUN)]

    @pytest.mark.parametrize("index", [0, None])
    def test_calls_without_ids_get_different_ids_that_the_turn_does_not_have(
        self, index: int | None
    ) -> None:
        chunks = [
            fragment(index, name="find", arguments='{"q": '),
            fragment(index, arguments='"rye"}'),
            fragment(index, name="find", arguments=BUN),
        ]
        earlier = [Message("assistant", "", calls=(ToolCall("call00001", "find", "{}"),))]
        assert calls(*chunks, finish(), messages=[*ASKED, *earlier]) == [
            ToolCall("call00002", "find", RYE),
            ToolCall("call00003", "find", BUN),
        ]

    def test_an_id_that_the_turn_has_already_is_replaced(self) -> None:
        chunks = [fragment(0, id="c1", name="find"), fragment(1, id="c1", name="find")]
        assert [call.id for call in calls(*chunks, finish(), messages=ANSWERED)] == [
            "call00001",
            "call00002",
        ]

    def test_a_server_may_repeat_id_and_name_in_each_fragment(self) -> None:
        repeated = {"id": "c1", "name": "find"}
        chunks = [fragment(**repeated, arguments=RYE[:4]), fragment(**repeated, arguments=RYE[4:])]
        assert calls(*chunks, finish()) == [CALL]

    def test_a_server_may_send_null_and_empty_values_after_the_first_fragment(self) -> None:
        chunks = [
            fragment(id="c1", name="find", arguments=None),
            fragment(id=None, name=None, arguments=RYE),
            fragment(id="", name="", arguments=""),
        ]
        assert calls(*chunks, finish()) == [CALL]

    @pytest.mark.parametrize("arguments", ["", " ", None, {}])
    def test_empty_arguments_are_an_empty_object(self, arguments: Any) -> None:
        chunk = fragment(id="c1", name="find", arguments=arguments)
        assert calls(chunk, finish()) == [ToolCall("c1", "find", "{}")]

    def test_arguments_may_be_an_object_instead_of_a_text(self) -> None:
        (call,) = calls(fragment(id="c1", name="find", arguments={"q": "Ёж"}), finish())
        assert call.parsed() == {"q": "Ёж"}

    def test_arguments_are_passed_on_as_the_model_wrote_them(self) -> None:
        (call,) = calls(fragment(id="c1", name="find", arguments="{'q': rye}"), finish())
        assert (call.arguments, call.parsed()) == ("{'q': rye}", None)

    def test_an_emoji_of_two_fragments_is_joined_and_a_lone_half_replaced(self) -> None:
        chunks = [
            fragment(id="c1", name="find\udd94", arguments='{"q": "\ud83e'),
            fragment(arguments='\udd94\ud83e"}'),
        ]
        (call,) = calls(*map(json.dumps, chunks), finish())
        assert call == ToolCall("c1", "find\ufffd", '{"q": "🦔\ufffd"}')

    def test_a_call_without_a_name_is_left_out(self) -> None:
        chunks = [fragment(0, arguments=RYE), fragment(1, id="c2", name="find", arguments=BUN)]
        assert calls(*chunks, finish()) == [ToolCall("c2", "find", BUN)]

    def test_an_unstreamed_answer_has_whole_calls(self, openai: OpenAiApi) -> None:
        function = {"name": "find", "arguments": RYE}
        message = {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": function},
                {"id": "c2", "function": {"name": "find", "arguments": {"q": "bun"}}},
            ],
        }
        choice = {"message": message, "finish_reason": "tool_calls"}
        openai.answers = [openai_api.json_document({**usage(5, 6), "choices": [choice]})]
        assert events(model(openai), tools=[FIND]) == [
            TextDelta("Let me look."),
            CALL,
            ToolCall("c2", "find", BUN),
            Stop("tools"),
            ProviderUsage(5, 6),
        ]

    @pytest.mark.parametrize(
        "end", [finish(), finish("stop"), finish("function_call"), DONE], ids=str
    )
    def test_calls_are_valid_with_any_regular_end(self, end: Any) -> None:
        chunk = fragment(id="c1", name="find", arguments=RYE)
        assert read_events(chunk, end)[:2] == [CALL, Stop("tools")]

    def test_the_last_chunk_may_contain_both_the_call_and_the_end(self) -> None:
        chunk = fragment(id="c1", name="find", arguments=RYE)
        chunk["choices"][0]["finish_reason"] = "tool_calls"
        assert read_events(chunk, usage(1, 2)) == [CALL, Stop("tools"), ProviderUsage(1, 2)]

    def test_fragments_after_the_end_are_not_part_of_the_answer(self) -> None:
        late = fragment(arguments=BUN)
        chunk = fragment(id="c1", name="find", arguments=RYE)
        assert read_events(chunk, finish(), late)[:2] == [CALL, Stop("tools")]

    @pytest.mark.parametrize(
        ("finish_reason", "reason"),
        [
            ("stop", "end"),
            ("length", "length"),
            ("content_filter", "filtered"),
            ("tool_calls", "other"),
            ("a new one", "other"),
        ],
    )
    def test_a_stop_names_the_reason_of_an_answer_without_calls(
        self, finish_reason: str, reason: str
    ) -> None:
        assert read_events(piece("a"), finish(finish_reason))[1] == Stop(reason)  # type: ignore[arg-type]

    @pytest.mark.parametrize("finish_reason", ["length", "content_filter", "a new one"])
    def test_calls_of_an_answer_that_was_cut_short_are_dropped(self, finish_reason: str) -> None:
        chunks = [
            fragment(0, id="c1", name="find", arguments=RYE),
            fragment(1, id="c2", name="find"),
        ]
        assert calls(*chunks, finish(finish_reason)) == []

    def test_missing_usage_is_estimated_with_calls_and_tools(self) -> None:
        chunks = [piece("Well."), fragment(id="c1", name="find", arguments=RYE), finish()]
        spent = count_tokens("Well.") + count_tokens(f"find {RYE}")
        expected = ProviderUsage(count_input(ASKED, [FIND]), spent, estimated=True)
        assert read_events(*chunks)[-1] == expected

    def test_a_final_answer_drops_further_calls_and_counts_them(self) -> None:
        chunks = [piece("Well."), fragment(id="c1", name="find", arguments=RYE), finish()]
        delta, stop, spent = read_events(*chunks, final=True)
        assert (delta, stop) == (TextDelta("Well."), Stop("other"))
        assert isinstance(spent, ProviderUsage)
        assert spent.output_tokens > count_tokens("Well.")

    def test_calls_of_unknown_tools_are_dropped(self) -> None:
        assert calls(fragment(id="c1", name="find", arguments=RYE), finish(), tools=[]) == []


TEXTS = st.none() | st.sampled_from(["", "c1", "c2", "find", "{", '"q"', "\ud83e", "x" * 70])
FRAGMENTS = st.fixed_dictionaries(
    {},
    optional={
        "index": st.none() | st.integers(-1, 2),
        "id": TEXTS | st.integers(),
        "function": st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "name": TEXTS,
                "arguments": TEXTS | st.dictionaries(st.text(max_size=3), st.floats()),
            },
        ),
        "extra_content": st.none() | st.dictionaries(st.text(max_size=3), st.text(max_size=3)),
    },
)


@given(
    st.lists(st.lists(FRAGMENTS, max_size=3), max_size=12),
    st.sampled_from(["stop", "tool_calls", "length"]),
    st.booleans(),
)
def test_any_fragments_give_valid_calls_or_a_failure(
    deltas: list[Any], finish_reason: str, final: bool
) -> None:
    chunks = [
        json.dumps({"choices": [{"delta": {"tool_calls": tool_calls}}]}) for tool_calls in deltas
    ]
    try:
        *received_events, stop, spent = read_events(*chunks, finish(finish_reason), final=final)
    except ModelError:
        return
    assert isinstance(stop, Stop)
    assert isinstance(spent, ProviderUsage)
    assert (stop.reason == "tools") is bool(received_events)
    assert not received_events or (finish_reason != "length" and not final)
    received = tuple(event for event in received_events if isinstance(event, ToolCall))
    assert len(received) == len(received_events) == len({call.id for call in received})
    assert all(call.id and 0 < len(call.name) <= MAX_NAME for call in received)
    answer = Message("assistant", "", calls=received, extra=stop.extra)
    assert count_input([answer])
    assert json.dumps(sent_messages([*ASKED, answer]), ensure_ascii=False).encode()
    assert converse_request("m", [*ASKED, answer], 50, [FIND])


class TestLimits:
    @pytest.mark.parametrize(
        "chunks",
        [
            [fragment(id="c1", name="find", arguments="x" * (MAX_ARGUMENTS + 1))],
            [fragment(id="c1", name="find", arguments="ё" * 1024)] * (MAX_ARGUMENTS // 2048 + 1),
            [fragment(n, id=f"c{n}", name="find") for n in range(MAX_CALLS + 1)],
            [fragment(0, name="find") for _ in range(MAX_CALLS + 1)],
            [fragment(id="c1", name="f" * (MAX_NAME + 1))],
        ],
        ids=["one large piece", "many pieces", "many calls", "many calls without ids", "long name"],
    )
    def test_calls_beyond_the_limits_are_garbage(self, chunks: list[Any]) -> None:
        with pytest.raises(ModelError) as caught:
            read_events(*chunks, finish(), DONE)
        assert caught.value.kind == "garbage"

    def test_calls_at_the_limits_are_valid(self) -> None:
        chunks = [
            fragment(n, id=f"c{n}", name="f" * MAX_NAME, arguments="x" * MAX_ARGUMENTS)
            for n in range(MAX_CALLS)
        ]
        assert len(calls(*chunks, finish())) == MAX_CALLS

    def test_reading_ends_at_the_first_byte_beyond_the_limit(self, openai: OpenAiApi) -> None:
        part = event(fragment(id="c1", name="find", arguments="x" * 50_000))
        openai.answers = [openai_api.endless(part)]
        with pytest.raises(ModelError, match="too large"):
            speak(model(openai), tools=[FIND], max_output_tokens=10**6)
        assert openai.hung_up.wait(PATIENCE)


class TestRequest:
    def test_tools_are_sent_as_functions(self, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.saying("x")]
        speak(model(openai), tools=[FIND])
        body = openai.asked[0].body
        function = {
            "name": "find",
            "description": "Find products.",
            "parameters": {"type": "object", "properties": {"q": {}}},
        }
        assert body["tools"] == [{"type": "function", "function": function}]
        assert "tool_choice" not in body

    def test_the_final_request_has_the_tools_and_forbids_calls(self, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.saying("x")]
        speak(model(openai), tools=[FIND], final=True)
        assert openai.asked[0].body["tool_choice"] == "none"
        assert openai.asked[0].body["tools"]
        speak(model(openai), final=True)
        assert not {"tools", "tool_choice"} & openai.asked[1].body.keys()

    def test_calls_and_results_are_sent_back(self, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.saying("x")]
        speak(model(openai), messages=ANSWERED, tools=[FIND])
        assert openai.asked[0].body["messages"][2:] == [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "find", "arguments": RYE}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "name": "find", "content": "Rye, 120"},
        ]
        assert b"null" not in json.dumps(openai.asked[0].body).encode()

    def test_calls_and_results_are_paired(self, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.saying("x")]
        two = (CALL, ToolCall("c2", "find", BUN))
        results = (ToolResult("c2", "find", "Bun, 40"), ToolResult("c9", "find", "?"))
        messages = [
            Message("tool", "", results=(ToolResult("c1", "find", "Not of this call"),)),
            *ASKED,
            Message("assistant", "", calls=two),
            Message("tool", "", results=results),
            Message("assistant", "", calls=(ToolCall("c3", "find", "{}"),)),
            Message("user", "Well?"),
        ]
        speak(model(openai), messages=messages, tools=[FIND])
        sent_messages = openai.asked[0].body["messages"]
        assert [message["role"] for message in sent_messages] == [
            "system",
            "user",
            "assistant",
            "tool",
            "tool",
            "assistant",
            "tool",
            "user",
        ]
        answered = {
            message["tool_call_id"]: message["content"]
            for message in sent_messages
            if message["role"] == "tool"
        }
        assert answered == {"c1": NO_RESULT, "c2": "Bun, 40", "c3": NO_RESULT}

    @pytest.mark.parametrize("arguments", ["{'q': rye}", "[1]", '"rye"', "{", '{"q": NaN}'])
    def test_invalid_arguments_are_sent_back_as_an_empty_object(
        self, arguments: str, openai: OpenAiApi
    ) -> None:
        openai.answers = [openai_api.saying("x")]
        messages = [*ASKED, Message("assistant", "", calls=(ToolCall("c1", "find", arguments),))]
        speak(model(openai), messages=messages, tools=[FIND])
        (sent_call,) = openai.asked[0].body["messages"][2]["tool_calls"]
        assert sent_call["function"]["arguments"] == "{}"

    def test_extra_content_and_reasoning_content_go_back_unchanged(self, openai: OpenAiApi) -> None:
        signature = {"google": {"thought_signature": "c2lnbmVk"}}
        thoughts = [
            {"choices": [{"delta": {"reasoning_content": part, "reasoning": part}}]}
            for part in ("They want ", "rye 🦔.")
        ]
        chunks = [
            *thoughts,
            fragment(0, id="c1", name="find", arguments=RYE, extra_content=signature),
            fragment(1, id="c2", name="find", arguments=BUN),
            finish(),
        ]
        openai.answers = [openai_api.chunked(*map(event, [*chunks, DONE])), openai_api.saying("x")]
        chat_model = model(openai)
        *_, first, second, stop, _ = events(chat_model, tools=[FIND])
        assert isinstance(first, ToolCall)
        assert isinstance(second, ToolCall)
        assert isinstance(stop, Stop)
        answer = Message("assistant", "", calls=(first, second), extra=stop.extra)
        speak(chat_model, messages=[*ASKED, answer], tools=[FIND])
        back = openai.asked[1].body["messages"][2]
        assert back["reasoning_content"] == "They want rye 🦔."
        assert back["tool_calls"][0]["extra_content"] == signature
        assert "extra_content" not in back["tool_calls"][1]
        count_without_extra = count_input([answer._replace(extra=None)])
        assert count_input([answer]) > count_without_extra + count_tokens("They want rye 🦔.")

    def test_reasoning_of_an_answer_without_calls_does_not_go_back(self) -> None:
        thought = {"choices": [{"delta": {"reasoning_content": "hm"}}]}
        assert Stop("end") in read_events(thought, piece("Yes"), finish("stop"))


class TestRefusal:
    @pytest.mark.parametrize(
        "complaint",
        [
            "registry.ollama.ai/library/gemma:2b does not support tools",
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser',
            "Unrecognized request argument supplied: tools",
            "Function calling is not enabled for this model",
        ],
    )
    def test_caller_can_repeat_a_refused_request_without_tools(
        self, complaint: str, openai: OpenAiApi
    ) -> None:
        refusal = openai_api.refusing(400, json.dumps({"error": complaint}).encode())
        openai.answers = [refusal, refusal, openai_api.saying("x")]
        chat_model = model(openai)
        assert fail(chat_model, tools=[FIND])[1].kind == "no_tools"
        assert speak(chat_model, tools=[FIND], final=True)[0] == "x"
        *others, last = (request.body for request in openai.asked)
        assert all("tools" in body for body in others)
        assert not {"tools", "tool_choice"} & last.keys()

    @pytest.mark.parametrize("final", [False, True])
    def test_malformed_call_disables_no_tools(
        self, final: bool, openai: OpenAiApi, pauses: list[float]
    ) -> None:
        message = "Tool choice is none, but model called a tool"
        error = {"message": message, "code": "tool_use_failed", "type": "invalid_request_error"}
        refusal = openai_api.refusing(400, json.dumps({"error": error}).encode())
        openai.answers = [refusal, openai_api.saying("x")]
        chat_model = model(openai)
        assert speak(chat_model, tools=[FIND], final=final)[0] == "x"
        assert speak(chat_model, tools=[FIND])[0] == "x"
        _, second, third = (request.body for request in openai.asked)
        assert ("tools" in second) is not final
        assert "tools" in third
        assert len(pauses) == (0 if final else 1)

    def test_refused_tool_choice_still_sends_the_tools(self, openai: OpenAiApi) -> None:
        refusal = openai_api.refusing(422, b'{"error": "Extra inputs: tool_choice"}')
        openai.answers = [refusal, openai_api.saying("x")]
        assert speak(model(openai), tools=[FIND], final=True)[0] == "x"
        assert "tools" in openai.asked[1].body
        assert "tool_choice" not in openai.asked[1].body

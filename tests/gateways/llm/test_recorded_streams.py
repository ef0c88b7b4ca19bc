"""Recorded streams of providers, whole and cut off after every byte.

The recordings follow the examples in the documentation of OpenAI, DeepSeek, Gemini, Ollama and
Amazon Bedrock. After any cut there is either a failure or the complete answer.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from chalicelib.gateways.llm import (
    Event,
    ModelError,
    ProviderUsage,
    Reasoning,
    Stop,
    TextDelta,
    chat_completions,
    converse,
)
from chalicelib.gateways.llm.chat_completions import ProviderFailedError
from chalicelib.gateways.llm.messages import ToolCall, ToolSpec
from tests.factories.llm import ASKED, events, model
from tests.fakes import bedrock_api, openai_api
from tests.fakes.bedrock_api import (
    START,
    block_stop,
    metadata,
    reasoning,
    stop,
    text,
    tool_input,
    tool_start,
)
from tests.fakes.openai_api import DONE, OpenAiApi, event

TOOLS = [ToolSpec("find_products", "Find products.", {"type": "object"})]


def chunk(delta: dict[str, Any], finish: str | None = None, **beside: Any) -> bytes:
    """An event as OpenAI sends it."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return event(
        {
            "id": "chatcmpl-C9",
            "object": "chat.completion.chunk",
            "created": 1763900000,
            "model": "gpt-5-mini-2025-08-07",
            "service_tier": "default",
            "system_fingerprint": None,
            "choices": [choice],
            "usage": None,
            "obfuscation": "a1B2",
            **beside,
        }
    )


def called(**fields: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, **fields}]}


OPENAI = b"".join(
    [
        chunk({"role": "assistant", "content": None, "refusal": None}),
        chunk(
            called(
                id="call_DdmO9pD3xa9XTPNJ32zg2hcA",
                type="function",
                function={"name": "find_products", "arguments": ""},
            )
        ),
        *(
            chunk(called(function={"arguments": part}))
            for part in ('{"', "text", '":"', "хлеб", '"}')
        ),
        chunk(
            {
                "tool_calls": [
                    {
                        "index": 1,
                        "id": "call_Xa2",
                        "type": "function",
                        "function": {"name": "opening_hours", "arguments": "{}"},
                    }
                ]
            }
        ),
        chunk({}, "tool_calls"),
        chunk(
            {},
            choices=[],
            usage={
                "prompt_tokens": 82,
                "completion_tokens": 17,
                "total_tokens": 99,
                "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
            },
        ),
        event(DONE),
    ]
)

DEEPSEEK = b"".join(
    [
        chunk({"role": "assistant", "content": None, "reasoning_content": ""}),
        chunk({"content": None, "reasoning_content": "Нужен хлеб"}),
        chunk({"content": "Сейчас посмотрю.", "reasoning_content": None}),
        b": keep-alive\n\n",
        chunk(
            called(
                id="call_00_aB",
                type="function",
                function={"name": "find_products", "arguments": ""},
            )
        ),
        chunk(called(function={"arguments": '{"text": "хлеб"}'})),
        chunk(
            {"content": "", "reasoning_content": None},
            "tool_calls",
            usage={"prompt_tokens": 40, "completion_tokens": 21, "total_tokens": 61},
        ),
        event(DONE),
    ]
)

GEMINI = b"".join(
    [
        chunk(
            {
                "role": "assistant",
                **called(
                    id="function-call-1764",
                    type="function",
                    function={"name": "find_products", "arguments": '{"text":"хлеб"}'},
                    extra_content={"google": {"thought_signature": "CiIBVKhc7vB+/sig=="}},
                ),
            },
            usage={"prompt_tokens": 31, "completion_tokens": 5, "total_tokens": 36},
        ),
        chunk(
            {"role": "assistant"},
            "stop",
            usage={"prompt_tokens": 31, "completion_tokens": 18, "total_tokens": 49},
        ),
        event(DONE),
    ]
)

OLLAMA = b"".join(
    [
        *(
            chunk(
                {
                    "role": "assistant",
                    "content": "",
                    **called(
                        id=f"call_{number}",
                        type="function",
                        function={"name": "find_products", "arguments": json.dumps({"n": number})},
                    ),
                }
            )
            for number in (1, 2)
        ),
        chunk({"role": "assistant", "content": ""}, "tool_calls"),
        event(DONE),
    ]
)

UNSTREAMED = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Сейчас.",
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "find_products", "arguments": {"text": "хлеб"}},
                        }
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 8, "total_tokens": 15},
    },
    ensure_ascii=False,
    indent=1,
).encode()

BEDROCK = b"".join(
    [
        START,
        reasoning(0, text="Нужен "),
        reasoning(0, text="хлеб."),
        reasoning(0, signature="EpICCkgI"),
        block_stop(0),
        text("Сейчас ", 1),
        text("посмотрю.", 1),
        block_stop(1),
        tool_start("tooluse_kZJMlvQmRJ6eAyJE5GIl7Q", "find_products", 2),
        tool_input("", 2),
        tool_input('{"te', 2),
        tool_input('xt": "хл', 2),
        tool_input('еб"}', 2),
        block_stop(2),
        tool_start("tooluse_9", "opening_hours", 3),
        tool_input("", 3),
        block_stop(3),
        stop("tool_use"),
        metadata(412, 61),
    ]
)


def read_lines(chunks: Iterable[bytes]) -> Iterator[Event]:
    lines = (line.rstrip(b"\r") for line in b"".join(chunks).split(b"\n"))
    return chat_completions.read(lines, ASKED, TOOLS)


def read_frames(chunks: Iterable[bytes]) -> Iterator[Event]:
    return converse.read(bedrock_api.parsed(chunks), ASKED, TOOLS)


Reader = Callable[[Iterable[bytes]], Iterator[Event]]
RECORDINGS: dict[str, tuple[bytes, Reader, list[Event]]] = {
    "openai": (
        OPENAI,
        read_lines,
        [
            ToolCall("call_DdmO9pD3xa9XTPNJ32zg2hcA", "find_products", '{"text":"хлеб"}'),
            ToolCall("call_Xa2", "opening_hours", "{}"),
            Stop("tools"),
            ProviderUsage(82, 17),
        ],
    ),
    "deepseek": (
        DEEPSEEK,
        read_lines,
        [
            Reasoning("Нужен хлеб"),
            TextDelta("Сейчас посмотрю."),
            ToolCall("call_00_aB", "find_products", '{"text": "хлеб"}'),
            Stop("tools", {"reasoning_content": "Нужен хлеб"}),
            ProviderUsage(40, 21),
        ],
    ),
    "gemini": (
        GEMINI,
        read_lines,
        [
            ToolCall("function-call-1764", "find_products", '{"text":"хлеб"}'),
            Stop(
                "tools",
                {
                    "calls": {
                        "function-call-1764": {
                            "google": {"thought_signature": "CiIBVKhc7vB+/sig=="}
                        }
                    }
                },
            ),
            ProviderUsage(31, 18),
        ],
    ),
    "ollama": (
        OLLAMA,
        read_lines,
        [
            ToolCall("call_1", "find_products", '{"n": 1}'),
            ToolCall("call_2", "find_products", '{"n": 2}'),
            Stop("tools"),
        ],
    ),
    "unstreamed": (
        UNSTREAMED,
        read_lines,
        [
            TextDelta("Сейчас."),
            ToolCall("call_1", "find_products", '{"text": "хлеб"}'),
            Stop("tools"),
            ProviderUsage(7, 8),
        ],
    ),
    "bedrock": (
        BEDROCK,
        read_frames,
        [
            Reasoning("Нужен "),
            Reasoning("хлеб."),
            TextDelta("Сейчас "),
            TextDelta("посмотрю."),
            ToolCall("tooluse_kZJMlvQmRJ6eAyJE5GIl7Q", "find_products", '{"text": "хлеб"}'),
            ToolCall("tooluse_9", "opening_hours", "{}"),
            Stop(
                "tools",
                {
                    "reasoning": [
                        {
                            "reasoningContent": {
                                "reasoningText": {"text": "Нужен хлеб.", "signature": "EpICCkgI"}
                            }
                        }
                    ]
                },
            ),
            ProviderUsage(412, 61),
        ],
    ),
}


def typed(received: list[Event]) -> list[tuple[type, Event]]:
    """Return the events with their types, since text and reasoning are equal as tuples."""
    return [(type(each), each) for each in received]


@pytest.mark.parametrize("provider", RECORDINGS)
def test_a_recorded_stream_has_its_texts_calls_stop_and_usage(provider: str) -> None:
    recording, read, expected = RECORDINGS[provider]
    received = list(read([recording]))
    assert typed(received[: len(expected)]) == typed(expected)
    assert isinstance(received[-1], ProviderUsage)
    assert received == list(read([bytes([byte]) for byte in recording]))


@pytest.mark.parametrize("provider", RECORDINGS)
def test_a_stream_cut_after_any_byte_is_a_failure_or_the_complete_answer(provider: str) -> None:
    recording, read, expected = RECORDINGS[provider]
    complete = [each for each in expected if not isinstance(each, ProviderUsage)]
    for cut in range(len(recording)):
        received: list[Event] = []
        try:
            for each in read([recording[:cut]]):
                received.append(each)  # noqa: PERF402  what came before a failure counts
        except (ModelError, ProviderFailedError, ClientError):
            assert not any(isinstance(each, ToolCall | Stop | ProviderUsage) for each in received)
            assert typed(received) == typed(complete[: len(received)])
        else:
            assert typed(received[:-1]) == typed(complete)
            assert isinstance(received[-1], ProviderUsage)


def test_an_answer_cut_in_the_middle_of_a_call_is_requested_again(
    openai: OpenAiApi, pauses: list[float]
) -> None:
    half = OPENAI[: OPENAI.index("хлеб".encode())].rsplit(b"data:", 1)[0]
    openai.answers = [openai_api.cut(half), openai_api.chunked(OPENAI)]
    assert events(model(openai), tools=TOOLS) == RECORDINGS["openai"][2]
    assert len(pauses) == 1

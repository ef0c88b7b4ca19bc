"""Recorded streams of providers, whole and cut off at every event or byte.

The streams of eight servers are files in ``recorded``, which names their sources. Those below
follow the examples in the documentation of OpenAI, Gemini and Amazon Bedrock.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
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
)
from chalicelib.gateways.llm.messages import ToolCall, ToolSpec
from chalicelib.gateways.llm.provider_errors import ErrorReport, ProviderFailedError
from tests.factories.llm import events, model, read_chunks, read_frames
from tests.fakes import openai_api
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
from tests.support.sweep import sweep

FOLDER = Path(__file__).parent / "recorded"
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


Reader = Callable[[Iterable[bytes], Sequence[ToolSpec]], Iterator[Event]]
RECORDINGS: dict[str, tuple[bytes, Reader, list[Event]]] = {
    "openai": (
        OPENAI,
        read_chunks,
        [
            ToolCall("call_DdmO9pD3xa9XTPNJ32zg2hcA", "find_products", '{"text":"хлеб"}'),
            ToolCall("call_Xa2", "opening_hours", "{}"),
            Stop("tools"),
            ProviderUsage(82, 17),
        ],
    ),
    "gemini": (
        GEMINI,
        read_chunks,
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
    "unstreamed": (
        UNSTREAMED,
        read_chunks,
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


RYE = "Ржаной хлеб стоит 240 рублей."
CUT_RYE = RYE.split(" 240", maxsplit=1)[0]
ERROR = "error"
"""Ends an answer that the provider could not finish."""

RECORDED: dict[str, tuple[str, int, str, tuple[int, int] | None]] = {
    "azure-filter": ("Ржаной хлеб", 0, "filtered", None),
    "azure-filter-async": ("Ржаной хлеб", 0, "filtered", None),
    "azure-filter-late": (RYE, 0, "end", None),
    "azure-length": (CUT_RYE, 0, "length", None),
    "azure-stop": (RYE, 0, "end", (15, 78)),
    "azure-tools": ("", 1, "tools", None),
    "deepseek-length": (CUT_RYE, 0, "length", (13, 6)),
    "deepseek-overload": ("Ржаной хлеб", 0, ERROR, None),
    "deepseek-reasoning": (RYE, 0, "end", (18, 19)),
    "deepseek-stop": (RYE, 0, "end", (13, 11)),
    "deepseek-tools": ("", 1, "tools", (339, 43)),
    "groq-error": ("", 0, ERROR, None),
    "groq-length": (CUT_RYE, 0, "length", (45, 6)),
    "groq-reasoning": (RYE, 0, "end", (71, 21)),
    "groq-stop": (RYE, 0, "end", (45, 12)),
    "groq-tools": ("", 1, "tools", (210, 15)),
    "llamacpp-error": ("Ржаной хлеб", 0, ERROR, None),
    "llamacpp-error-old": ("", 0, ERROR, None),
    "llamacpp-length": (CUT_RYE, 0, "length", None),
    "llamacpp-reasoning": ("", 0, "length", (25, 8)),
    "llamacpp-stop": (RYE, 0, "end", (21, 11)),
    "llamacpp-tools": ("", 1, "tools", (164, 23)),
    "mistral-error": ("Ржаной", 0, ERROR, None),
    "mistral-length": (f"{CUT_RYE} 240", 0, "length", (13, 6)),
    "mistral-reasoning": (RYE, 0, "end", (10, 46)),
    "mistral-reasoning-mixed": (RYE, 0, "end", (10, 232)),
    "mistral-stop": (RYE, 0, "end", (13, 11)),
    "mistral-tools": ("", 2, "tools", (124, 39)),
    "ollama-error": ("Ржаной хлеб", 0, ERROR, None),
    "ollama-length": (f"{CUT_RYE} 240", 0, "length", (26, 7)),
    "ollama-reasoning": (RYE, 0, "end", (28, 17)),
    "ollama-stop": (RYE, 0, "end", (26, 12)),
    "ollama-tools": ("", 2, "tools", (171, 38)),
    "openrouter-error": ("Ржаной хлеб", 0, ERROR, None),
    "openrouter-error-empty": ("", 0, ERROR, None),
    "openrouter-error-late": ("", 0, "length", None),
    "openrouter-length": (CUT_RYE, 0, "length", (21, 16)),
    "openrouter-stop": (RYE, 0, "end", (9, 104)),
    "openrouter-tools": ("Сейчас посмотрю.", 1, "tools", (412, 55)),
    "vllm-error": ("Ржаной хлеб", 0, ERROR, None),
    "vllm-error-old": ("Ржаной", 0, ERROR, None),
    "vllm-length": (f"{CUT_RYE} 240", 0, "length", None),
    "vllm-reasoning": (RYE, 0, "end", (31, 16)),
    "vllm-stop": (RYE, 0, "end", (23, 12)),
    "vllm-think": (RYE, 0, "end", None),
    "vllm-tools": ("", 2, "tools", (187, 41)),
    "vllm-tools-named": ("", 1, "tools", None),
}
"""File -> its text, number of tool calls, stop reason, and the usage that the server reports."""


def recorded(name: str) -> bytes:
    return (FOLDER / f"{name}.sse").read_bytes()


def test_every_recorded_stream_has_an_expectation() -> None:
    assert {path.stem for path in FOLDER.glob("*.sse")} == RECORDED.keys()


@sweep("name", RECORDED)
def test_a_recorded_stream_of_a_server_is_read_whole(name: str) -> None:
    text, calls, reason, usage = RECORDED[name]
    received: list[Event] = []
    stop: str | None = None
    try:
        received.extend(read_chunks([recorded(name)], TOOLS))
    except (ModelError, ProviderFailedError):
        stop = ERROR
    texts = [event.text for event in received if isinstance(event, TextDelta)]
    stop = stop or next(event.reason for event in received if isinstance(event, Stop))
    call_count = sum(isinstance(event, ToolCall) for event in received)
    assert (call_count, stop) == (calls, reason)
    assert stop == ERROR or "".join(texts) == text
    if usage and stop != ERROR:
        assert received[-1] == ProviderUsage(*usage)


def read_to_end(blocks: Iterable[bytes]) -> list[tuple[type, Event]] | str:
    """Return the joined events, or ``ERROR``."""
    try:
        received = list(read_chunks(blocks, TOOLS))
    except (ModelError, ProviderFailedError):
        return ERROR
    text = "".join(event.text for event in received if isinstance(event, TextDelta))
    return pair_with_types(
        [TextDelta(text), *(e for e in received if not isinstance(e, TextDelta))]
    )


WRITTEN: dict[str, Callable[[bytes], bytes]] = {
    "byte order mark": lambda stream: b"\xef\xbb\xbf" + stream,
    "CRLF": lambda stream: stream.replace(b"\n", b"\r\n"),
    "CR": lambda stream: stream.replace(b"\n", b"\r"),
    "empty data": lambda stream: stream.replace(b"data: {", b"data:\n\nid: 1\nretry: 5\ndata:{"),
    "two data lines": lambda stream: stream.replace(b'"choices":', b'\ndata: "choices":'),
    "no blank lines": lambda stream: stream.replace(b"\n\n", b"\n"),
}


@sweep(("name", "change"), product(RECORDED, WRITTEN))
def test_every_standard_form_of_an_event_stream_is_read(name: str, change: str) -> None:
    expected = read_to_end([recorded(name)])
    rewritten = WRITTEN[change](recorded(name))
    assert read_to_end([rewritten]) == expected
    assert read_to_end(rewritten[at : at + 7] for at in range(0, len(rewritten), 7)) == expected


ERRORS = json.loads((FOLDER / "errors.json").read_text())
SENT = {"messages", "max_tokens", "response_format", "stream", "stream_options", "tools"}


@pytest.mark.parametrize("row", ERRORS, ids=lambda row: f"{row['problem']} {row['server']}")
def test_a_refused_request_is_recognized_by_its_code_or_its_parameter(row: dict[str, Any]) -> None:
    problem = row["problem"]
    report = ErrorReport.from_body(row["status"], json.dumps(row["body"]).encode())
    sent_parts = SENT | {"tool_choice"} if problem == "tool_choice" else SENT
    part = report.refused_part(sent_parts)
    match problem:
        case "context":
            assert (report.kind, part) == ("too_long", None)
        case "filter":
            assert (report.kind, part) == ("filtered", None)
        case "tool_use_failed":
            assert (report.kind, part) == ("unavailable", None)
        case "response_format":  # It is left out of a refused request in any case.
            assert part in {None, "response_format"}
            assert report.kind == "refused"
        case _:
            assert part == problem
    if match := re.search(r"context (?:length is|size \()?(\d+)", report.message):
        assert report.context_tokens == int(match[1])


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "Range of input length should be [1, 30720]",
        "Invalid request: Your request exceeded model token limit: 8192",
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000",
    ],
)
def test_other_words_for_a_prompt_that_is_too_long_are_recognized(message: str) -> None:
    body = {"error": {"message": message, "type": "invalid_request_error"}}
    assert ErrorReport.from_body(400, json.dumps(body).encode()).kind == "too_long"


@pytest.mark.parametrize(
    "about",
    [{}, {"param": "stream"}, {"code": "unsupported_value"}, {"code": "x", "param": "stream"}],
)
def test_a_refusal_to_stream_may_lack_a_code_or_a_parameter(about: dict[str, str]) -> None:
    body = {"error": {"message": "Your organization must be verified to stream.", **about}}
    assert ErrorReport.from_body(400, json.dumps(body).encode()).refused_part(SENT) == "stream"


def pair_with_types(received: list[Event]) -> list[tuple[type, Event]]:
    """Return the events with their types, since text and reasoning are equal as tuples."""
    return [(type(event), event) for event in received]


@pytest.mark.parametrize("provider", RECORDINGS)
def test_a_recorded_stream_has_its_texts_calls_stop_and_usage(provider: str) -> None:
    recording, read, expected = RECORDINGS[provider]
    received = list(read([recording], TOOLS))
    assert pair_with_types(received[: len(expected)]) == pair_with_types(expected)
    assert isinstance(received[-1], ProviderUsage)
    assert received == list(read([bytes([byte]) for byte in recording], TOOLS))


@pytest.mark.parametrize("provider", RECORDINGS)
def test_stream_cut_at_any_byte_fails_or_is_complete(provider: str) -> None:
    recording, read, expected = RECORDINGS[provider]
    complete = [event for event in expected if not isinstance(event, ProviderUsage)]
    for cut in range(len(recording)):
        received: list[Event] = []
        try:
            for read_event in read([recording[:cut]], TOOLS):
                received.append(read_event)  # noqa: PERF402  what came before a failure counts
        except (ModelError, ProviderFailedError, ClientError):
            assert not any(isinstance(event, ToolCall | Stop | ProviderUsage) for event in received)
            assert pair_with_types(received) == pair_with_types(complete[: len(received)])
        else:
            assert pair_with_types(received[:-1]) == pair_with_types(complete)
            assert isinstance(received[-1], ProviderUsage)


def test_an_answer_cut_in_the_middle_of_a_call_is_requested_again(
    openai: OpenAiApi, pauses: list[float]
) -> None:
    half = OPENAI[: OPENAI.index("хлеб".encode())].rsplit(b"data:", 1)[0]
    openai.answers = [openai_api.cut(half), openai_api.chunked(OPENAI)]
    assert events(model(openai), tools=TOOLS) == RECORDINGS["openai"][2]
    assert len(pauses) == 1

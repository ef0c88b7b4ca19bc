"""Responses of Bedrock's ConverseStream, byte for byte. ``openai_api.serving`` is the server.

Frames have the format of AWS event streams (Smithy, Amazon Event Stream Specification).
"""

import json
import struct
from collections.abc import Iterable, Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import botocore.session
from botocore.eventstream import EventStream
from botocore.parsers import create_parser

from tests.fakes.openai_api import Answering, ReceivedRequest, Wire

STREAM_TYPE = "application/vnd.amazon.eventstream"


def frame(kind: str, payload: dict[str, Any], message_type: str = "event") -> bytes:
    """One message of the stream: ``messageStart`` and the like, or an exception."""
    body = json.dumps(payload, ensure_ascii=False).encode()
    frame_headers = {
        f":{message_type}-type": kind,
        ":content-type": "application/json",
        ":message-type": message_type,
    }
    headers = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value
        for name, value in ((name, text.encode()) for name, text in frame_headers.items())
    )
    prelude = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack("!I", crc32(prelude)) + headers + body
    return message + struct.pack("!I", crc32(message))


def failing(kind: str, message: str) -> bytes:
    """An exception in the middle of a stream."""
    return frame(kind, {"message": message}, "exception")


START = frame("messageStart", {"p": "abcdefgh", "role": "assistant"})


def text(content: str, index: int = 0, **beside: Any) -> bytes:
    delta = {"text": content}
    return frame(
        "contentBlockDelta", {"contentBlockIndex": index, "delta": delta, "p": "ab", **beside}
    )


def reasoning(index: int = 0, **delta: str) -> bytes:
    """A piece of reasoning: ``text``, or the placeholder of a redacted one."""
    return frame(
        "contentBlockDelta",
        {"contentBlockIndex": index, "delta": {"reasoningContent": delta}, "p": "abc"},
    )


THOUGHT = reasoning(text="hm")


def tool_start(id_: str, name: str, index: int = 1) -> bytes:
    """The beginning of a tool call. Its arguments follow in pieces."""
    start = {"toolUse": {"name": name, "toolUseId": id_}}
    return frame("contentBlockStart", {"contentBlockIndex": index, "p": "abcd", "start": start})


def tool_input(piece: str, index: int = 1) -> bytes:
    """A piece of the arguments of a tool call."""
    delta = {"toolUse": {"input": piece}}
    return frame("contentBlockDelta", {"contentBlockIndex": index, "delta": delta, "p": "abcde"})


def block_stop(index: int) -> bytes:
    return frame("contentBlockStop", {"contentBlockIndex": index, "p": "abcdef"})


def stop(reason: str) -> bytes:
    return frame("messageStop", {"p": "abc", "stopReason": reason})


BLOCK_STOP = block_stop(0)
STOP = stop("end_turn")


def metadata(input_tokens: int, output_tokens: int) -> bytes:
    usage = {
        "inputTokens": input_tokens,
        "outputTokens": output_tokens,
        "totalTokens": input_tokens + output_tokens,
    }
    return frame("metadata", {"metrics": {"latencyMs": 551}, "p": "abcd", "usage": usage})


def chunked(*parts: bytes, end: bytes = b"0\r\n\r\n", keep: bool = False) -> Answering:
    """Respond with 200 and these bytes, each part in its own chunk."""

    def answer(wire: Wire, request: ReceivedRequest) -> None:
        chunks = "Transfer-Encoding: chunked"
        wire.head(200, STREAM_TYPE, chunks, "x-amzn-RequestId: r-1", keep=keep)
        for part in parts:
            wire.chunk(part)
        wire.send(end)

    return answer


def saying(*texts: str, tokens: tuple[int, int] = (11, 7)) -> Answering:
    """Respond as Bedrock does, and keep the connection open."""
    return chunked(START, *map(text, texts), BLOCK_STOP, STOP, metadata(*tokens), keep=True)


def silent_after(*parts: bytes) -> Answering:
    """Send these parts, then nothing."""

    def answer(wire: Wire, request: ReceivedRequest) -> None:
        chunked(*parts, end=b"")(wire, request)
        if wire.wait_for_hang_up():
            raise BrokenPipeError

    return answer


def refusing(status: int, kind: str, message: str) -> Answering:
    """Respond with an error of the AWS protocol."""
    body = json.dumps({"message": message}).encode()
    return lambda wire, _: wire.respond(
        status, body, "application/json", f"x-amzn-ErrorType: {kind}:http://internal.amazon.com/"
    )


@cache
def _stream_shape() -> Any:
    service = botocore.session.get_session().get_service_model("bedrock-runtime")
    return service.operation_model("ConverseStream").output_shape.members["stream"]


def parsed(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream as botocore parses them, without a server."""
    parser = create_parser("rest-json")._event_stream_parser
    body = SimpleNamespace(stream=lambda: iter(chunks))
    return iter(EventStream(body, _stream_shape(), parser, "ConverseStream"))

"""Responses of Bedrock's ConverseStream, byte for byte. ``openai_api.serving`` is the server.

Frames have the format of AWS event streams (Smithy, Amazon Event Stream Specification).
"""

import json
import struct
from typing import Any
from zlib import crc32

from tests.fakes.openai_api import Answering, ReceivedRequest, Wire

STREAM_TYPE = "application/vnd.amazon.eventstream"


def frame(kind: str, payload: dict[str, Any], message_type: str = "event") -> bytes:
    """One message of the stream: ``messageStart`` and the like, or an exception."""
    body = json.dumps(payload, ensure_ascii=False).encode()
    named = {
        f":{message_type}-type": kind,
        ":content-type": "application/json",
        ":message-type": message_type,
    }
    headers = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value
        for name, value in ((name, text.encode()) for name, text in named.items())
    )
    prelude = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack("!I", crc32(prelude)) + headers + body
    return message + struct.pack("!I", crc32(message))


def failing(kind: str, message: str) -> bytes:
    """An exception in the middle of a stream."""
    return frame(kind, {"message": message}, "exception")


START = frame("messageStart", {"p": "abcdefgh", "role": "assistant"})


def text(said: str, **beside: Any) -> bytes:
    return frame(
        "contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": said}, "p": "ab", **beside}
    )


def reasoning(**delta: str) -> bytes:
    """A piece of reasoning: ``text``, or the placeholder of a redacted one."""
    return frame(
        "contentBlockDelta",
        {"contentBlockIndex": 0, "delta": {"reasoningContent": delta}, "p": "abc"},
    )


THOUGHT = reasoning(text="hm")
BLOCK_STOP = frame("contentBlockStop", {"contentBlockIndex": 0, "p": "abcdef"})
STOP = frame("messageStop", {"p": "abc", "stopReason": "end_turn"})


def metadata(asked: int, said: int) -> bytes:
    usage = {"inputTokens": asked, "outputTokens": said, "totalTokens": asked + said}
    return frame("metadata", {"metrics": {"latencyMs": 551}, "p": "abcd", "usage": usage})


def chunked(*parts: bytes, end: bytes = b"0\r\n\r\n", keep: bool = False) -> Answering:
    """Answer 200 with these bytes, each part in its own chunk."""

    def answer(wire: Wire, asked: ReceivedRequest) -> None:
        chunks = "Transfer-Encoding: chunked"
        wire.head(200, STREAM_TYPE, chunks, "x-amzn-RequestId: r-1", keep=keep)
        for part in parts:
            wire.chunk(part)
        wire.send(end)

    return answer


def saying(*texts: str, tokens: tuple[int, int] = (11, 7)) -> Answering:
    """Answer as Bedrock does, on a connection that stays open."""
    return chunked(START, *map(text, texts), BLOCK_STOP, STOP, metadata(*tokens), keep=True)


def silent_after(*parts: bytes) -> Answering:
    """Send these parts, then nothing."""

    def answer(wire: Wire, asked: ReceivedRequest) -> None:
        chunked(*parts, end=b"")(wire, asked)
        if wire.wait_for_hang_up():
            raise BrokenPipeError

    return answer


def refusing(status: int, kind: str, message: str) -> Answering:
    """Answer with an error of the AWS protocol."""
    body = json.dumps({"message": message}).encode()
    return lambda wire, _: wire.whole(
        status, body, "application/json", f"x-amzn-ErrorType: {kind}:http://internal.amazon.com/"
    )

"""Parser for responses of OpenAI's chat completions API, line by line, without I/O.

Compatible servers differ. A stream may contain comments and empty ``choices``, and may lack the
usage and ``[DONE]``. A server without streaming answers with one JSON object.
"""

import codecs
import json
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from chalicelib.gateways.llm import Event, ModelError, ProviderUsage, Reasoning
from chalicelib.gateways.llm.messages import Message, TokenCounter, count_input

_DONE: dict[str, Any] = {"choices": [{"finish_reason": "stop"}]}


class ProviderFailedError(Exception):
    """The provider reports an error inside its answer. ``code`` is an HTTP status, or None."""

    def __init__(self, error: object) -> None:
        super().__init__(str(error))
        code = error.get("code") if isinstance(error, dict) else None
        self.code = code if isinstance(code, int) else None


def read(lines: Iterator[bytes], messages: Sequence[Message]) -> Generator[Event, None, None]:
    """Yield the answer to these messages as its lines arrive, then its usage.

    Raises:
        ModelError: ``garbage``, or ``unavailable`` if the answer ends early.
        ProviderFailedError: the answer contains an error.
    """
    answer_tokens, reasoning_tokens = TokenCounter(), TokenCounter()
    usage: ProviderUsage | None = None
    ended = False
    # JSON may escape an emoji as two surrogates, and a provider may send them in two events.
    surrogates = codecs.getincrementaldecoder("utf-16-le")("replace")
    try:
        for event in _events(lines):
            delta, last = _delta(event)
            if reasoning := _reasoning(delta):
                reasoning_tokens.add(reasoning)
                yield Reasoning(reasoning)
            content = _text(delta, "content").encode("utf-16-le", "surrogatepass")
            if piece := surrogates.decode(content):
                answer_tokens.add(piece)
                yield piece
            ended, usage = ended or last, _usage(event) or usage
            if ended and usage:
                break
    except (ModelError, ProviderFailedError):
        if not ended:  # After the end, the answer is complete and only the usage is missing.
            raise
    if not ended:
        raise ModelError("unavailable", "The provider's answer ended early.")
    counted = answer_tokens.tokens + reasoning_tokens.tokens
    yield usage or ProviderUsage(count_input(messages), counted, estimated=True)


def _events(lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the objects of an event stream, or the one object of an answer that is not streamed."""
    received = False
    for line in lines:
        if line.startswith(b"data:"):
            data = line.removeprefix(b"data:").strip()
            if data == b"[DONE]":
                yield _DONE
                return
            yield _object(data)
            received = True
        elif line.lstrip().startswith(b"{"):
            yield _object(b"\n".join([line, *lines]))
            return
    if not received:
        raise ModelError("garbage", "There is no answer in what the provider sent.")


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data.decode())
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ModelError("garbage", "What the provider sent is not JSON of a chat completion.")
    if error := value.get("error"):
        raise ProviderFailedError(error)
    return value


def _delta(event: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the delta of an event or the message of an answer, and whether it is the last."""
    match event.get("choices"):
        case [{"message": dict(message)}, *_]:
            return message, True
        case [{"delta": dict(delta), **choice}, *_]:
            return delta, bool(choice.get("finish_reason"))
        case [{**choice}, *_]:
            return {}, bool(choice.get("finish_reason"))
        case _:
            return {}, False


def _reasoning(delta: dict[str, Any]) -> str:
    """Return the reasoning. Servers use two names for it, and some send both."""
    return _text(delta, "reasoning_content") or _text(delta, "reasoning")


def _text(delta: dict[str, Any], name: str) -> str:
    text = delta.get(name)
    return text if isinstance(text, str) else ""


def _usage(event: dict[str, Any]) -> ProviderUsage | None:
    """Return the usage in an event, or None if it is missing or invalid."""
    match event.get("usage"):
        case {"prompt_tokens": int(tokens_in), "completion_tokens": int(tokens_out)} if (
            min(tokens_in, tokens_out) >= 0
        ):
            return ProviderUsage(tokens_in, tokens_out)
        case _:
            return None

"""What an answer of OpenAI's chat completions means, line by line. No I/O.

Servers differ in what they leave out: a stream may hold comments, blank ``choices``, no usage and
no ``[DONE]``, and a server that does not stream answers with one JSON object.
"""

import codecs
import json
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from chalicelib.gateways.llm import Event, ModelError, ProviderUsage, Reasoning
from chalicelib.gateways.llm.messages import Message, TokenCounter, count_input

_DONE: dict[str, Any] = {"choices": [{"finish_reason": "stop"}]}


class ProviderFailedError(Exception):
    """The provider reports an error within its answer; ``code`` is an HTTP status, or None."""

    def __init__(self, error: object) -> None:
        super().__init__(str(error))
        code = error.get("code") if isinstance(error, dict) else None
        self.code = code if isinstance(code, int) else None


def read(lines: Iterator[bytes], messages: Sequence[Message]) -> Generator[Event, None, None]:
    """Yield what an answer to these messages says, as its lines come in, then what it took.

    Raises:
        ModelError: ``garbage``, or ``unavailable`` if the answer ends early.
        ProviderFailedError: as the provider says.
    """
    spoken, reasoned = TokenCounter(), TokenCounter()
    usage: ProviderUsage | None = None
    ended = False
    # JSON may escape an emoji as two halves, and a provider may even send them in two events.
    halves = codecs.getincrementaldecoder("utf-16-le")("replace")
    try:
        for event in _events(lines):
            said, last = _said(event)
            if reasoning := _reasoning(said):
                reasoned.add(reasoning)
                yield Reasoning(reasoning)
            if piece := halves.decode(_text(said, "content").encode("utf-16-le", "surrogatepass")):
                spoken.add(piece)
                yield piece
            ended, usage = ended or last, _usage(event) or usage
            if ended and usage:
                break
    except (ModelError, ProviderFailedError):
        if not ended:  # Else all was said, and only the usage is missing.
            raise
    if not ended:
        raise ModelError("unavailable", "The provider's answer ended early.")
    counted = spoken.tokens + reasoned.tokens
    yield usage or ProviderUsage(count_input(messages), counted, estimated=True)


def _events(lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the objects of an event stream, or the one object of an answer that is not streamed."""
    heard = False
    for line in lines:
        if line.startswith(b"data:"):
            data = line.removeprefix(b"data:").strip()
            if data == b"[DONE]":
                yield _DONE
                return
            yield _object(data)
            heard = True
        elif line.lstrip().startswith(b"{"):
            yield _object(b"\n".join([line, *lines]))
            return
    if not heard:
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


def _said(event: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the part of an event or of a whole answer that has texts, and if it is the last."""
    match event.get("choices"):
        case [{"message": dict(said)}, *_]:
            return said, True
        case [{"delta": dict(said), **choice}, *_]:
            return said, bool(choice.get("finish_reason"))
        case [{**choice}, *_]:
            return {}, bool(choice.get("finish_reason"))
        case _:
            return {}, False


def _reasoning(said: dict[str, Any]) -> str:
    """Return the reasoning; servers have two names for it, and some send it under both."""
    return _text(said, "reasoning_content") or _text(said, "reasoning")


def _text(said: dict[str, Any], name: str) -> str:
    text = said.get(name)
    return text if isinstance(text, str) else ""


def _usage(event: dict[str, Any]) -> ProviderUsage | None:
    """Return the usage that an event carries, if it makes sense."""
    match event.get("usage"):
        case {"prompt_tokens": int(asked), "completion_tokens": int(said)} if min(asked, said) >= 0:
            return ProviderUsage(asked, said)
        case _:
            return None

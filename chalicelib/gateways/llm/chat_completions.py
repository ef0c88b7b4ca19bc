"""Requests and responses of OpenAI's chat completions API, without I/O.

Compatible servers differ. A stream may contain comments and empty ``choices``, and may lack the
usage and ``[DONE]``. A server without streaming answers with one JSON object. Tool calls arrive
whole or in fragments, with or without ids.
"""

import codecs
import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from chalicelib.gateways.llm import Event, ModelError, ProviderUsage, StopReason
from chalicelib.gateways.llm.answers import Answer, CallParts
from chalicelib.gateways.llm.messages import Message, ToolCall, ToolSpec, complete_results

_DONE: dict[str, Any] = {"choices": [{"finish_reason": "stop"}]}

_REASONS: dict[str, StopReason] = {
    "stop": "end",
    "eos": "end",
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "model_length": "length",
    "content_filter": "filtered",
}
"""``finish_reason`` of a choice -> our reason. ``eos`` and ``model_length`` are not OpenAI's."""


class ProviderFailedError(Exception):
    """The provider reports an error inside its answer. ``code`` is an HTTP status, or None."""

    def __init__(self, error: object) -> None:
        super().__init__(str(error))
        code = error.get("code") if isinstance(error, dict) else None
        self.code = code if isinstance(code, int) else None


def sent_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return the messages of a request. Each result of a tool call becomes a message."""
    return [sent for message in complete_results(messages) for sent in _sent(message)]


def _sent(message: Message) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        for result in message.results:
            yield {
                "role": "tool",
                "tool_call_id": result.id,
                "name": result.name,
                "content": result.content,
            }
        return
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.calls:
        extra = message.extra or {}
        extras = extra.get("calls", {})
        sent["tool_calls"] = [_sent_call(call, extras.get(call.id)) for call in message.calls]
        if reasoning := extra.get("reasoning_content"):
            sent["reasoning_content"] = reasoning
    yield sent


def _sent_call(call: ToolCall, extra_content: object) -> dict[str, Any]:
    """Return a call as a server expects it. Many servers refuse invalid arguments."""
    arguments = call.arguments if call.parsed() is not None else "{}"
    sent = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }
    return {**sent, "extra_content": extra_content} if extra_content else sent


def sent_tools(tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """Return the tools of a request."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
            },
        }
        for tool in tools
    ]


def read(
    lines: Iterator[bytes],
    messages: Sequence[Message],
    tools: Sequence[ToolSpec] = (),
    *,
    final: bool = False,
) -> Generator[Event, None, None]:
    """Yield the answer to these messages as its lines arrive.

    Raises:
        ModelError: ``garbage``, or ``unavailable`` if the answer ends early.
        ProviderFailedError: the answer contains an error.
    """
    answer = Answer(messages, tools, final=final)
    calls = _Calls(answer)
    reasoning_content: list[str] = []
    # JSON may escape an emoji as two surrogates, and a provider may send them in two events.
    surrogates = codecs.getincrementaldecoder("utf-16-le")("replace")
    try:
        for event in _events(lines):
            delta, reason = _delta(event)
            if reasoning := _reasoning(delta):
                yield answer.reasoning(reasoning)
                reasoning_content.append(_text(delta, "reasoning_content"))
            content = _text(delta, "content").encode("utf-16-le", "surrogatepass")
            if piece := surrogates.decode(content):
                yield answer.text(piece)
            if not answer.reason:
                calls.read(delta)
            answer.reason = answer.reason or reason
            answer.usage = _usage(event) or answer.usage
            if answer.reason and answer.usage:
                break
    except (ModelError, ProviderFailedError):
        if not answer.reason:  # After the end, only the usage is missing.
            raise
    if kept := "".join(reasoning_content):
        answer.extra["reasoning_content"] = kept
    yield from answer.end()


class _Calls:
    """The tool calls of an answer, by their index."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._by_index: dict[int, CallParts] = {}

    def read(self, delta: dict[str, Any]) -> None:
        """Read the fragments of calls in a delta, or the whole calls in a message."""
        fragments = delta.get("tool_calls")
        for position, fragment in enumerate(fragments if isinstance(fragments, list) else ()):
            if isinstance(fragment, dict):
                index = fragment.get("index")
                self._read(index if isinstance(index, int) else position, fragment)

    def _read(self, index: int, fragment: dict[str, Any]) -> None:
        function = fragment.get("function")
        function = function if isinstance(function, dict) else {}
        id_, name = _text(fragment, "id"), _text(function, "name")
        call = self._by_index.get(index)
        if call is None or _begins_another(call, id_, name):
            call = self._by_index[index] = self._answer.begin_call(id_, name)
        call.name = call.name or name
        call.extra = fragment.get("extra_content") or call.extra
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if isinstance(arguments, str):
            self._answer.add_arguments(call, arguments)


def _begins_another(call: CallParts, id_: str, name: str) -> bool:
    """Return whether a fragment begins another call at the index of this one.

    Ollama sends all calls at index 0. The id is in the first fragment of a call, or in none.
    Servers without ids send whole calls, so a second name belongs to another call.
    """
    return id_ != call.id if id_ else bool(name and call.name and not call.id)


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


def _delta(event: dict[str, Any]) -> tuple[dict[str, Any], StopReason | None]:
    """Return the delta of an event or the message of an answer, and the reason if it ends."""
    match event.get("choices"):
        case [{"message": dict(message), **choice}, *_]:
            return message, _reason(choice) or "end"
        case [{"delta": dict(delta), **choice}, *_]:
            return delta, _reason(choice)
        case [{**choice}, *_]:
            return {}, _reason(choice)
        case _:
            return {}, None


def _reason(choice: Mapping[Any, Any]) -> StopReason | None:
    finish_reason = choice.get("finish_reason")
    return _REASONS.get(str(finish_reason), "other") if finish_reason else None


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

"""Requests and responses of OpenAI's chat completions API, without I/O.

Compatible servers differ. A stream may contain empty ``choices``, may report its usage several
times, and may lack the usage and ``[DONE]``. A server without streaming answers with one JSON
object. Tool calls arrive whole or in fragments, with or without ids. An error may arrive inside the
stream, as an object, as an event of type ``error``, or as a finish reason.
"""

import codecs
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from chalicelib.gateways.llm import Event, ModelError, ProviderUsage, StopReason
from chalicelib.gateways.llm.answers import Answer, CallParts
from chalicelib.gateways.llm.event_stream import ServerEvent
from chalicelib.gateways.llm.messages import Message, ToolCall, ToolSpec, complete_results
from chalicelib.gateways.llm.provider_errors import ErrorReport, ProviderFailedError

_END = "[DONE]"
_DONE: dict[str, Any] = {"choices": [{"finish_reason": "stop"}]}
# ``finish_reason`` of a choice -> our reason. Some servers send the reasons of their models.
_REASONS: dict[str, StopReason] = {
    "stop": "end",
    "eos": "end",
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "model_length": "length",
    "max_tokens": "length",
    **dict.fromkeys(["blocklist", "content_filter", "prohibited_content"], "filtered"),
    **dict.fromkeys(["recitation", "refusal", "safety", "sensitive", "spii"], "filtered"),
}
# ``finish_reason`` of an answer that the provider could not finish.
_FAILURES = frozenset(
    {
        *("abort", "cancelled", "error", "failed", "insufficient_system_resource"),
        *("network_error", "timeout"),
    }
)


def sent_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return the messages of a request. Each result of a tool call becomes a message."""
    return [
        wire_message
        for message in complete_results(messages)
        for wire_message in _wire_messages(message)
    ]


def _wire_messages(message: Message) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        for result in message.results:
            yield {
                "role": "tool",
                "tool_call_id": result.id,
                "name": result.name,
                "content": result.content,
            }
        return
    wire_message: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.calls:
        extra = message.extra or {}
        extras = extra.get("calls", {})
        wire_message["tool_calls"] = [
            _wire_call(call, extras.get(call.id)) for call in message.calls
        ]
        if reasoning := extra.get("reasoning_content"):
            wire_message["reasoning_content"] = reasoning
    yield wire_message


def _wire_call(call: ToolCall, extra_content: object) -> dict[str, Any]:
    # Many servers refuse invalid arguments.
    arguments = call.arguments if call.parsed() is not None else "{}"
    wire_call = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }
    return {**wire_call, "extra_content": extra_content} if extra_content else wire_call


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


def read_stream(events: Iterable[ServerEvent], answer: Answer) -> Iterator[Event]:
    """Yield the answer as its events arrive; raise ModelError or ProviderFailedError."""
    calls = _Calls(answer)
    reasoning_content: list[str] = []
    # JSON may escape an emoji as two surrogates, and a provider may send them in two events.
    surrogates = codecs.getincrementaldecoder("utf-16-le")("replace")
    try:
        # Reading continues after the finish reason, because the last usage counts and may follow
        # it.
        for chunk in _chunks(events):
            delta, reason = _delta(chunk)
            reasoning, text = _content(delta)
            if reasoning:
                yield answer.reasoning(reasoning)
                reasoning_content.append(_text(delta, "reasoning_content"))
            if piece := surrogates.decode(text.encode("utf-16-le", "surrogatepass")):
                yield from answer.text(piece)
            if not answer.reason:
                calls.read(delta)
            answer.reason = answer.reason or reason
            answer.usage = _usage(chunk) or answer.usage
    except (ModelError, ProviderFailedError):
        if not answer.reason:  # After the end, only the usage is missing.
            raise
    if reasoning_text := "".join(reasoning_content):
        answer.extra["reasoning_content"] = reasoning_text
    yield from answer.end()


class _Calls:
    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._by_index: dict[int, CallParts] = {}

    def read(self, delta: dict[str, Any]) -> None:
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
        if call is None or _begins_another(call, id_, name=name):
            call = self._by_index[index] = self._answer.begin_call(id_, name=name)
        call.name = call.name or name
        call.extra = fragment.get("extra_content") or call.extra
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if isinstance(arguments, str):
            self._answer.add_arguments(call, arguments)


def _begins_another(call: CallParts, id_: str, *, name: str) -> bool:
    # Ollama sends all calls at index 0. The id is in the first fragment of a call, or in none.
    # Servers without ids send whole calls, so a second name belongs to another call.
    return id_ != call.id if id_ else bool(name and call.name and not call.id)


def _chunks(events: Iterable[ServerEvent]) -> Iterator[dict[str, Any]]:
    has_any = False
    for event in events:
        for value in _values(event.data):
            if value == _END:
                yield _DONE
                return
            _raise_error(value, event)
            if value is None or (event.type and not isinstance(value, dict)):
                continue  # such as a ping
            if not isinstance(value, dict):
                raise ModelError(
                    "garbage", "The provider sent a response that is not a chat completion in JSON."
                )
            yield value
            has_any = True
    # An answer that is not streamed is one object.
    if not has_any:
        raise ModelError("garbage", "The provider sent a response without an answer.")


def _values(data: bytes) -> list[object]:
    # A server that sends no blank lines has a value in each line of what the standard calls an
    # event.
    if data.strip() in {b"", b"ping"}:
        return []
    for parts in ([data], data.split(b"\n")):
        with suppress(ValueError, RecursionError):
            return [
                _END if part.strip() == b"[DONE]" else json.loads(part)
                for part in parts
                if part.strip()
            ]
    return [data.decode(errors="replace")]


def _raise_error(value: object, event: ServerEvent) -> None:
    if event.type.lower() in {"error", "exception"}:
        raise ProviderFailedError(ErrorReport.from_json(value))
    if not isinstance(value, dict):
        return
    is_error = "error" in (value.get("object"), value.get("type")) or value.get("error")
    if is_error or ("choices" not in value and value.keys() & {"detail", "message"}):
        raise ProviderFailedError(ErrorReport.from_json(value))


def _delta(chunk: dict[str, Any]) -> tuple[dict[str, Any], StopReason | None]:
    choices = [choice for choice in _dicts(chunk.get("choices")) if not choice.get("index")]
    match choices[:1]:
        case [{"delta": dict(delta), **choice}]:
            return delta, _reason(choice)
        case [{"message": dict(message), **choice}]:
            return message, _reason(choice) or "end"
        case [dict(other)]:
            return {}, _reason(other)
        case _:
            return {}, None


def _reason(choice: Mapping[Any, Any]) -> StopReason | None:
    finish_reason = str(choice.get("finish_reason") or "").casefold().partition(":")[0]
    if finish_reason in _FAILURES or choice.get("error"):
        raise ProviderFailedError(ErrorReport.from_json(choice.get("error") or finish_reason))
    return _REASONS.get(finish_reason, "other") if finish_reason else None


def _content(delta: dict[str, Any]) -> tuple[str, str]:
    # Servers use two names for the reasoning, and some send both. Mistral sends a list of parts.
    content = delta.get("content")
    content = [content] if isinstance(content, dict) else content
    if not isinstance(content, list):
        reasoning = _text(delta, "reasoning_content") or _text(delta, "reasoning")
        return reasoning, _text(delta, "content")
    reasoning, text = "", ""
    for part in content:
        match part:
            case {"type": "thinking", "thinking": list(thoughts)}:
                reasoning += "".join(_text(thought, "text") for thought in thoughts)
            case str(piece) | {"type": "text" | "output_text", "text": str(piece)}:
                text += piece
    return reasoning, text


def _text(value: object, name: str) -> str:
    text = value.get(name) if isinstance(value, dict) else None
    return text if isinstance(text, str) else ""


def _usage(chunk: dict[str, Any]) -> ProviderUsage | None:
    # The usage is next to the choices, in the choice (Moonshot) or in ``x_groq``.
    places = [chunk, *_dicts(chunk.get("choices")), *_dicts([chunk.get("x_groq")])]
    for place in places:
        match place.get("usage"):
            case {"prompt_tokens": int(tokens_in), "completion_tokens": int(tokens_out)} if (
                min(tokens_in, tokens_out) >= 0
            ):
                return ProviderUsage(tokens_in, tokens_out)
    return None


def _dicts(values: object) -> list[dict[str, Any]]:
    return (
        [candidate for candidate in values if isinstance(candidate, dict)]
        if isinstance(values, list)
        else []
    )

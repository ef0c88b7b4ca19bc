"""Requests and responses of Bedrock's ConverseStream, without I/O."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from botocore.eventstream import ParserError
from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from chalicelib.gateways.llm import Event, ProviderUsage, StopReason
from chalicelib.gateways.llm.answers import Answer, CallParts
from chalicelib.gateways.llm.messages import (
    Message,
    ToolCall,
    ToolResult,
    ToolSpec,
    complete_results,
)

# Added to the last result if the answer must be final. Converse cannot forbid calls.
ANSWER_NOW = "Answer the user now. No further tool calls are possible."
NO_CONTENT = "(empty)"  # stands for a blank result, which Converse refuses
# What botocore raises while it reads a stream.
STREAM_ERRORS = (ClientError, BotoCoreError, HTTPError, ParserError, OSError)
# ``stopReason`` of a message -> our reason.
_REASONS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "filtered",
    "content_filtered": "filtered",
    "malformed_model_output": "other",
    "malformed_tool_use": "other",
}


def converse_request(
    model: str,
    messages: Sequence[Message],
    max_output_tokens: int,
    tools: Sequence[ToolSpec] = (),
    *,
    final: bool = False,
) -> dict[str, Any]:
    """Return the parameters of ConverseStream."""
    turns = _turns(complete_results(messages))
    body: dict[str, Any] = {
        "modelId": model,
        "messages": turns,
        "inferenceConfig": {"maxTokens": max_output_tokens},
    }
    system = [m for m in messages if m.role == "system" and not _is_blank(m.content)]
    if system:
        body["system"] = [{"text": m.content} for m in system]
    last_result = _last_result(turns)
    if final and last_result:
        last_result["content"].append({"text": ANSWER_NOW})
    # Converse requires ``toolConfig`` while there are tool calls in the messages, in the final
    # request, too.
    if tools and (last_result or not final):
        body["toolConfig"] = {"tools": [_sent_tool(tool) for tool in tools]}
    return body


def _sent_tool(tool: ToolSpec) -> dict[str, Any]:
    spec = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": {"json": tool.schema},
    }
    return {"toolSpec": spec}


def _turns(messages: Iterable[Message]) -> list[dict[str, Any]]:
    # The user comes first, roles alternate, and no text is blank. Consecutive messages of one role
    # become one turn. Messages before the first user message are left out.
    turns: list[dict[str, Any]] = []
    for message in messages:
        blocks = list(_blocks(message))
        role = "assistant" if message.role == "assistant" else "user"
        if message.role == "system" or not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif turns or message.role == "user":
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: Message) -> Iterator[dict[str, Any]]:
    # Reasoning has to come before the calls that follow it.
    if message.calls and message.extra:
        yield from message.extra.get("reasoning", ())
    if not _is_blank(message.content):
        yield {"text": message.content}
    yield from map(_tool_use, message.calls)
    yield from map(_tool_result, message.results)


def _tool_use(call: ToolCall) -> dict[str, Any]:
    # Bedrock refuses a request with any other character in a tool's name.
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", call.name)
    # Converse did not check what the model wrote.
    return {"toolUse": {"toolUseId": call.id, "name": name, "input": call.parsed() or {}}}


def _tool_result(result: ToolResult) -> dict[str, Any]:
    text = NO_CONTENT if _is_blank(result.content) else result.content
    status = "error" if result.is_error else "success"
    return {"toolResult": {"toolUseId": result.id, "content": [{"text": text}], "status": status}}


def _last_result(turns: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    blocks = (block for turn in reversed(turns) for block in reversed(turn["content"]))
    return next((block["toolResult"] for block in blocks if "toolResult" in block), None)


def _is_blank(text: str) -> bool:
    return not text.strip()


def read_stream(events: Iterable[dict[str, Any]], answer: Answer) -> Iterator[Event]:
    """Yield the answer as its events arrive; raise ModelError if they end before it does."""
    blocks = _Blocks(answer)
    try:
        for event in events:
            match event:
                case {"messageStop": {"stopReason": str(reason)}}:
                    answer.reason = _REASONS.get(reason, "other")
                # A negative count, which would credit money, is ignored.
                case {
                    "metadata": {
                        "usage": {"inputTokens": int(tokens_in), "outputTokens": int(tokens_out)}
                    }
                } if min(tokens_in, tokens_out) >= 0:
                    answer.usage = ProviderUsage(tokens_in, tokens_out)
                case _ if not answer.reason:
                    yield from blocks.read(event)
    except STREAM_ERRORS:
        if not answer.reason:  # After the end, only the usage is missing.
            raise
    if reasoning := blocks.reasoning():
        answer.extra["reasoning"] = reasoning
    yield from answer.end()


@dataclass
class _ReasoningParts:
    text: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)
    redacted: list[bytes] = field(default_factory=list)


class _Blocks:
    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._calls: dict[int, CallParts] = {}
        self._reasoning: dict[int, _ReasoningParts] = {}

    def read(self, event: dict[str, Any]) -> Iterator[Event]:
        match event:
            # Only a tool call begins with a separate event. Prose begins with its first piece.
            case {
                "contentBlockStart": {
                    "contentBlockIndex": int(index),
                    "start": {"toolUse": {"toolUseId": str(id_), "name": str(name)}},
                }
            }:
                self._calls[index] = self._answer.begin_call(id_, name=name)
            case {"contentBlockDelta": {"contentBlockIndex": int(index), "delta": dict(delta)}}:
                yield from self._read_delta(index, delta)
            case {"contentBlockStop": {"contentBlockIndex": int(index)}}:
                self._calls.pop(index, None)

    def _read_delta(self, index: int, delta: dict[str, Any]) -> Iterator[Event]:
        match delta:
            case {"text": str(text)} if text:
                yield from self._answer.text(text)
            case {"toolUse": {"input": str(piece)}} if index in self._calls:
                self._answer.add_arguments(self._calls[index], piece)
            case {"reasoningContent": dict(reasoning)}:
                yield from self._read_reasoning(index, reasoning)

    def _read_reasoning(self, index: int, reasoning: dict[str, Any]) -> Iterator[Event]:
        parts = self._reasoning.setdefault(index, _ReasoningParts())
        match reasoning:
            case {"text": str(text)} if text:
                parts.text.append(text)
                yield self._answer.reasoning(text)
            case {"signature": str(signature)}:
                parts.signature.append(signature)
            case {"redactedContent": bytes(redacted)}:
                parts.redacted.append(redacted)

    def reasoning(self) -> list[dict[str, Any]]:
        # Models without signatures refuse reasoning in a request.
        blocks: list[dict[str, Any]] = []
        for parts in self._reasoning.values():
            if parts.redacted:
                blocks.append({"redactedContent": b"".join(parts.redacted)})
            elif parts.signature:
                text, signature = "".join(parts.text), "".join(parts.signature)
                blocks.append({"reasoningText": {"text": text, "signature": signature}})
        return [{"reasoningContent": block} for block in blocks]

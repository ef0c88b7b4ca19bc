"""Adapter for ConverseStream of Amazon Bedrock, with the IAM role of the process.

botocore signs requests and parses the event stream. boto3 is not used because it makes the first
call a third slower. ``attempts`` adds retries, the deadline and cancellation.

The functions that build requests and read responses have no I/O.
"""

import logging
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.eventstream import ParserError
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    HTTPClientError,
    ReadTimeoutError,
)
from botocore.exceptions import ConnectionError as UnreachableError
from urllib3.exceptions import HTTPError
from urllib3.exceptions import ReadTimeoutError as StreamTimeoutError

from chalicelib.core.deadline import Deadline
from chalicelib.core.text import cut_bytes
from chalicelib.gateways.llm import (
    STREAM_SECONDS,
    Event,
    FailureKind,
    ModelError,
    ProviderUsage,
    StopReason,
    attempts,
    provider_errors,
)
from chalicelib.gateways.llm.answers import Answer, CallParts
from chalicelib.gateways.llm.cancellation import Cancellation, watch
from chalicelib.gateways.llm.messages import (
    Message,
    ToolCall,
    ToolResult,
    ToolSpec,
    complete_results,
)

ANSWER_NOW = "Answer the user now. No further tool calls are possible."
"""Added to the last result if the answer must be final. Converse cannot forbid calls."""
NO_CONTENT = "(empty)"
"""Stands for a blank result, which Converse refuses."""

STREAM_ERRORS = (ClientError, BotoCoreError, HTTPError, ParserError, OSError)
"""Errors that botocore raises while it reads a stream."""

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
"""``stopReason`` of a message -> our reason."""


def converse_request(
    model: str,
    messages: Sequence[Message],
    max_output_tokens: int,
    tools: Sequence[ToolSpec] = (),
    *,
    final: bool = False,
) -> dict[str, Any]:
    """Return the parameters of ConverseStream.

    Converse requires ``toolConfig`` while there are tool calls in the messages, in the final
    request, too.
    """
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
    """Return the messages in the form that Converse requires.

    The user comes first, roles alternate, and no text is blank. Consecutive messages of one role
    become one turn. Messages before the first user message are left out.
    """
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
    """Yield the content of a message.

    Reasoning has to come before the calls that follow it.
    """
    if message.calls and message.extra:
        yield from message.extra.get("reasoning", ())
    if not _is_blank(message.content):
        yield {"text": message.content}
    yield from map(_tool_use, message.calls)
    yield from map(_tool_result, message.results)


def _tool_use(call: ToolCall) -> dict[str, Any]:
    """Return a call as Converse accepts it, although it did not check what the model wrote."""
    # Bedrock refuses a request with any other character in a tool's name.
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", call.name)
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
    """Yield the answer as its events arrive.

    Raises:
        ModelError: ``garbage``, or ``unavailable`` if the events end before the answer does.
    """
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
    """The content blocks of an answer, by their index."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._calls: dict[int, CallParts] = {}
        self._reasoning: dict[int, _ReasoningParts] = {}

    def read(self, event: dict[str, Any]) -> Iterator[Event]:
        """Yield what an event adds to the answer.

        Only a tool call begins with a separate event. Prose begins with its first piece.
        """
        match event:
            case {
                "contentBlockStart": {
                    "contentBlockIndex": int(index),
                    "start": {"toolUse": {"toolUseId": str(id_), "name": str(name)}},
                }
            }:
                self._calls[index] = self._answer.begin_call(id_, name)
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
        """Return the reasoning to send back: the signed and the redacted blocks.

        Models without signatures refuse reasoning in a request.
        """
        blocks: list[dict[str, Any]] = []
        for parts in self._reasoning.values():
            if parts.redacted:
                blocks.append({"redactedContent": b"".join(parts.redacted)})
            elif parts.signature:
                text, signature = "".join(parts.text), "".join(parts.signature)
                blocks.append({"reasoningText": {"text": text, "signature": signature}})
        return [{"reasoningContent": block} for block in blocks]


CONNECT_SECONDS = 5.0
MAX_CONNECTIONS = 64
"""Maximum connections kept open, one for each thread of the development server."""
_LOGGED_BYTES = 300

_KINDS: dict[str, FailureKind] = {
    "throttling": "rate_limited",
    "toomanyrequests": "rate_limited",
    "servicequotaexceeded": "rate_limited",
    "modelnotready": "rate_limited",
    "modeltimeout": "timeout",
    "accessdenied": "refused",
    "validation": "refused",
    "resourcenotfound": "refused",
    "unrecognizedclient": "refused",
    "expiredtoken": "refused",
    "invalidsignature": "refused",
}
"""Error code without ``Exception`` -> kind of failure. Other codes mean ``unavailable``."""

log = logging.getLogger(__name__)


class BedrockModel:
    """The models of a region.

    ``options`` are passed to the botocore client.
    """

    def __init__(self, *, read_seconds: float = attempts.READ_SECONDS, **options: Any) -> None:  # noqa: ANN401  botocore's
        self._read_seconds = read_seconds
        self._options = options
        self._cached_client: Any = None
        self._creating = Lock()  # botocore sessions are not thread-safe

    def stream(  # noqa: PLR0913  the signature of ChatModel
        self,
        messages: Sequence[Message],
        *,
        model: str,
        max_output_tokens: int,
        seconds: float = STREAM_SECONDS,
        json_object: bool = False,  # noqa: ARG002  Converse has no JSON mode, so the prompt requests JSON
        tools: Sequence[ToolSpec] = (),
        final: bool = False,
        cancellation: Cancellation | None = None,
    ) -> Generator[Event, None, None]:
        """Send the messages, and yield the answer as it arrives."""
        deadline = Deadline(seconds)
        body = converse_request(model, messages, max_output_tokens, tools, final=final)
        answer = partial(Answer, messages, tools, final=final)
        attempt = partial(self._attempt, answer, body, deadline)
        yield from attempts.stream(attempt, deadline, cancellation)

    def _attempt(
        self,
        new_answer: Callable[[], Answer],
        body: dict[str, Any],
        deadline: Deadline,
        cancellation: Cancellation,
    ) -> Generator[Event, None, None]:
        if deadline.passed:
            raise ModelError("timeout", "The time was up before the provider answered.")
        with attempts.enforce_deadline(deadline, cancellation):
            try:
                with cancellation.register_sockets():
                    response = self._client.converse_stream(**body)
                with closing(response["stream"]) as stream:
                    answer = new_answer()
                    events = attempts.paced(stream, answer, cancellation, self._read_seconds)
                    yield from read_stream(events, answer)
            except STREAM_ERRORS as error:
                raise _failure(error, deadline) from None
            except (ValueError, AttributeError) as error:
                # Reading from a socket that another thread has shut raises these errors.
                if not (deadline.passed or cancellation.cancelled):
                    raise
                raise _failure(error, deadline) from None

    @property
    def _client(self) -> Any:  # noqa: ANN401  botocore generates its clients at run time
        with self._creating:
            if self._cached_client is None:
                config = Config(
                    connect_timeout=CONNECT_SECONDS,
                    read_timeout=STREAM_SECONDS,  # until the first event; the deadline is shorter
                    retries={"total_max_attempts": 1},
                    max_pool_connections=MAX_CONNECTIONS,
                )
                client = botocore.session.get_session().create_client(
                    "bedrock-runtime", config=config, **self._options
                )
                # botocore has no public access to its sockets. A test fails if this one breaks.
                watch(client._endpoint.http_session._pool_classes_by_scheme)  # noqa: SLF001
                self._cached_client = client
            return self._cached_client


def _failure(error: Exception, deadline: Deadline) -> ModelError:
    """Return the ``ModelError`` for an error of botocore.

    Log the message of Bedrock.
    """
    name = type(error).__name__
    if isinstance(error, ClientError):
        details = error.response.get("Error", {})
        code = str(details.get("Code", ""))
        message = cut_bytes(str(details.get("Message")), _LOGGED_BYTES)
        log.warning("model provider failed", extra={"status": code, "provider_says": message})
        kind = _KINDS.get(code.lower().removesuffix("exception"), "unavailable")
        if kind == "refused" and provider_errors.is_too_long(message):
            kind = "too_long"  # Bedrock has no codes for what it refuses.
        elif kind == "refused" and "support tool use" in message:
            kind = "no_tools"
        context = provider_errors.context_tokens_in(message)
        return ModelError(kind, f"The provider answered with {code}.", context_tokens=context)
    if deadline.passed or isinstance(
        error, (ConnectTimeoutError, ReadTimeoutError, StreamTimeoutError, TimeoutError)
    ):
        return ModelError("timeout", "The provider did not answer in time.")
    if isinstance(error, ParserError):
        return ModelError(
            "garbage", f"The provider sent a response that is not an event stream ({name})."
        )
    if isinstance(error, (UnreachableError, HTTPClientError, HTTPError, OSError)):
        return ModelError("unavailable", f"The provider cannot be reached or was cut off ({name}).")
    return ModelError("refused", f"The request cannot be sent ({name}).")

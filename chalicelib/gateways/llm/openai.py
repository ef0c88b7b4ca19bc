"""Adapter for servers with OpenAI's chat completions API, ``POST {base}/chat/completions``.

Answers are streamed. If a server refuses an optional part of the request, the request is sent again
without that part. The functions that build requests and read responses have no I/O.

Compatible servers differ. A stream may contain empty ``choices``, may report its usage several
times, and may lack the usage and ``[DONE]``. A server without streaming answers with one JSON
object. Tool calls arrive whole or in fragments, with or without ids. An error may arrive inside the
stream, as an object, as an event of type ``error``, or as a finish reason.
"""

import codecs
import json
import logging
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any

import requests
import requests.adapters
from urllib3.exceptions import HTTPError, ReadTimeoutError

from chalicelib.core.deadline import Deadline
from chalicelib.core.text import cut_bytes
from chalicelib.gateways.llm import (
    STREAM_SECONDS,
    Event,
    ModelError,
    ProviderUsage,
    StopReason,
    attempts,
    event_stream,
    observed_limits,
)
from chalicelib.gateways.llm.answers import Answer, CallParts
from chalicelib.gateways.llm.api_key import ApiKey
from chalicelib.gateways.llm.cancellation import Cancellation, watch
from chalicelib.gateways.llm.event_stream import ServerEvent
from chalicelib.gateways.llm.messages import Message, ToolCall, ToolSpec, complete_results
from chalicelib.gateways.llm.provider_errors import (
    NEW_MAX_TOKENS,
    ErrorReport,
    ProviderFailedError,
)

_END = "[DONE]"
_DONE: dict[str, Any] = {"choices": [{"finish_reason": "stop"}]}

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
"""``finish_reason`` of a choice -> our reason. Some servers send the reasons of their models."""


_FAILURES = frozenset(
    {
        *("abort", "cancelled", "error", "failed", "insufficient_system_resource"),
        *("network_error", "timeout"),
    }
)
"""``finish_reason`` of an answer that the provider could not finish."""


def sent_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return the messages of a request.

    Each result of a tool call becomes a message.
    """
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
    """Return a call as a server expects it.

    Many servers refuse invalid arguments.
    """
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
    """Yield the answer as its events arrive.

    Reading continues after the finish reason, because the last usage counts and may follow it.

    Raises:
        ModelError: ``garbage``, or ``unavailable`` if the answer ends early.
        ProviderFailedError: the answer contains an error.
    """
    calls = _Calls(answer)
    reasoning_content: list[str] = []
    # JSON may escape an emoji as two surrogates, and a provider may send them in two events.
    surrogates = codecs.getincrementaldecoder("utf-16-le")("replace")
    try:
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


def _chunks(events: Iterable[ServerEvent]) -> Iterator[dict[str, Any]]:
    """Yield the chunks of an event stream, or the one object of an answer that is not streamed."""
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
    if not has_any:
        raise ModelError("garbage", "The provider sent a response without an answer.")


def _values(data: bytes) -> list[object]:
    """Return the JSON values of an event: one, none for an empty event, or its text if invalid.

    A server that sends no blank lines has a value in each line of what the standard calls an event.
    """
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
    """Raise ``ProviderFailedError`` if an event is an error."""
    if event.type.lower() in {"error", "exception"}:
        raise ProviderFailedError(ErrorReport.from_json(value))
    if not isinstance(value, dict):
        return
    is_error = "error" in (value.get("object"), value.get("type")) or value.get("error")
    if is_error or ("choices" not in value and value.keys() & {"detail", "message"}):
        raise ProviderFailedError(ErrorReport.from_json(value))


def _delta(chunk: dict[str, Any]) -> tuple[dict[str, Any], StopReason | None]:
    """Return the delta of a chunk or the message of an answer, and the reason if it ends.

    Raises:
        ProviderFailedError: the provider could not finish the answer.
    """
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
    """Return the reasoning and the content of a delta.

    Servers use two names for the reasoning, and some send both. Mistral sends a list of parts.
    """
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
    """Return the usage in a chunk, or None if it is missing or invalid.

    It is next to the choices, in the choice (Moonshot) or in ``x_groq``.
    """
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


CONNECT_SECONDS = 5.0
BYTES_PER_OUTPUT_TOKEN = 4096
"""Bytes that may arrive for each requested output token. An event takes about 300 for a token."""
MIN_BUDGET = 2**18
"""Bytes that may arrive for any request, however few tokens it requests."""
_BLOCK = 2**16
_LOGGED_BYTES = 300

log = logging.getLogger(__name__)


class _Adapter(requests.adapters.HTTPAdapter):
    """HTTP adapter with connections that another thread can shut."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  passed on
        """Create the pools of direct connections."""
        super().init_poolmanager(*args, **options)
        _watch(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:  # noqa: ANN401  passed on
        """Return the pools of connections through a proxy."""
        is_cached = proxy in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **options)
        if not is_cached:
            _watch(manager)
        return manager


def _watch(manager: Any) -> None:  # noqa: ANN401  requests does not type its managers
    manager.pool_classes_by_scheme = dict(manager.pool_classes_by_scheme)
    watch(manager.pool_classes_by_scheme)


class _Session(requests.Session):
    """Session that neither follows a redirect nor reads its body, which could be of any size."""

    def __init__(self) -> None:
        super().__init__()
        for scheme in list(self.adapters):
            self.mount(scheme, _Adapter())

    def get_redirect_target(self, resp: requests.Response) -> str | None:  # noqa: ARG002  redirects are not followed
        """Return no target."""
        return None


class OpenAiModel:
    """Server at a base URL, such as ``https://api.openai.com/v1``. The key may be empty.

    ``api_key`` returns the current key. It is called for each request.
    """

    def __init__(
        self,
        base_url: str,
        api_key: ApiKey,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        read_seconds: float = attempts.READ_SECONDS,
    ) -> None:
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._api_key = api_key
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds

    def stream(  # noqa: PLR0913  the signature of ChatModel
        self,
        messages: Sequence[Message],
        *,
        model: str,
        max_output_tokens: int,
        seconds: float = STREAM_SECONDS,
        json_object: bool = False,
        tools: Sequence[ToolSpec] = (),
        final: bool = False,
        cancellation: Cancellation | None = None,
    ) -> Generator[Event, None, None]:
        """Send the messages, and yield the answer as it arrives."""
        deadline = Deadline(seconds)
        body: dict[str, Any] = {
            "model": model,
            "messages": sent_messages(messages),
            "max_tokens": max_output_tokens,
            "stream": True,
            # Without this option, most servers send no usage with a stream.
            "stream_options": {"include_usage": True},
        }
        if json_object:
            body["response_format"] = {"type": "json_object"}
        if tools:
            body["tools"] = sent_tools(tools)
            if final:
                body["tool_choice"] = "none"
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
        # The budget bounds a server that sends events for ever, whatever its tokens are.
        budget = MIN_BUDGET + BYTES_PER_OUTPUT_TOKEN * body["max_tokens"]
        key = self._api_key()
        with (
            attempts.enforce_deadline(deadline, cancellation),
            closing(self._send(body, key, deadline, cancellation)) as response,
        ):
            answer = new_answer()
            received = event_stream.read(_blocks(response, deadline, budget))
            events = attempts.paced(received, answer, cancellation, self._read_seconds)
            try:
                yield from read_stream(events, answer)
            except ProviderFailedError as failure:
                if failure.report.code == "tool_use_failed" and "tool_choice" in body:
                    del body["tools"], body["tool_choice"]  # for the next attempt
                raise _failure(failure.report, key, response) from None

    def _send(
        self, body: dict[str, Any], key: str, deadline: Deadline, cancellation: Cancellation
    ) -> requests.Response:
        """Return a response of status 200 with its body unread.

        Optional parts that the server refuses are left out, and the request is sent again. If it
        then succeeds, the parts are left out for ten minutes. Nothing is learned from a final
        request, because it is refused for the calls that the model writes nevertheless.

        Raises:
            ModelError: ``no_tools``, if tools are refused: the prompt must not promise them either.
        """
        model, is_final = body["model"], "tool_choice" in body
        refused_before = observed_limits.refused_parts(model)
        refused_parts = {*refused_before}
        while True:
            request_body = _drop_parts(refused_parts, body)
            with cancellation.register_sockets():
                response = self._post(request_body, key, deadline)
            if response.status_code == requests.codes.ok:
                for optional_part in refused_parts - refused_before if not is_final else ():
                    observed_limits.remember_refused(model, optional_part)
                return response
            with closing(response):
                content = _read_beginning(response, deadline)
            report = ErrorReport.from_body(response.status_code, content)
            part = report.refused_part(request_body)
            if is_final and report.code == "tool_use_failed" and "tools" in request_body:
                part = "tools"
            elif part is None and "response_format" in request_body and report.kind == "refused":
                # The prompt requests JSON as well, so the mode is not essential.
                part = "response_format" if response.status_code in {400, 422} else None
            if part is None:
                raise _failure(report, key, response)
            if part == "tools" and not is_final:
                raise ModelError(
                    "no_tools", "The provider reported that the model does not support tools."
                )
            refused_parts.add(part)

    def _post(self, body: dict[str, Any], key: str, deadline: Deadline) -> requests.Response:
        if deadline.passed:
            raise ModelError("timeout", "The time was up before the provider answered.")
        try:
            with _Session() as session:
                return session.post(
                    self._url,
                    json=body,
                    headers={"Accept": "text/event-stream", "Accept-Encoding": "identity"},
                    auth=partial(_authorize, key),
                    stream=True,
                    timeout=(
                        max(deadline.seconds_left(self._connect_seconds), 0.001),
                        max(deadline.seconds_left(), 0.001),
                    ),
                )
        except requests.Timeout:
            raise ModelError("timeout", "The provider did not answer in time.") from None
        except ValueError as error:
            reason = f"The base URL or the key cannot be used ({type(error).__name__})."
            raise ModelError("refused", reason) from None
        except requests.RequestException as error:
            # A connection that was shut at the deadline reports an error of its own.
            if deadline.passed:
                reason = "The provider did not answer in time."
                raise ModelError("timeout", reason) from None
            reason = f"The provider cannot be reached ({type(error).__name__})."
            raise ModelError("unavailable", reason) from None


def _authorize(key: str, request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Add the key.

    Used as ``auth``, so that a .netrc file does not replace the key.
    """
    if key:
        request.headers["Authorization"] = f"Bearer {key}"
    return request


def _failure(report: ErrorReport, key: str, response: requests.Response) -> ModelError:
    """Return the error for a report.

    Log the provider's message without the key.
    """
    # A provider may repeat the key in its message, and the log must not contain it.
    message = report.message.replace(key, "<key>") if key else report.message
    log.warning(
        "model provider failed",
        extra={
            "status": report.status,
            "code": cut_bytes(report.code, _LOGGED_BYTES),
            "provider_says": cut_bytes(message, _LOGGED_BYTES),
        },
    )
    wait = response.headers.get("Retry-After", "")
    status = report.status
    return ModelError(
        report.kind,
        "The provider answered with " + (f"HTTP {status}." if status else "an error."),
        retry_after=float(wait) if wait.isascii() and wait.isdigit() else None,
        context_tokens=report.context_tokens,
    )


def _drop_parts(refused_parts: Collection[str], body: dict[str, Any]) -> dict[str, Any]:
    left_out = {*refused_parts}
    if "tools" in refused_parts:
        left_out.add("tool_choice")  # A choice without tools is refused as well.
    if "stream" in refused_parts:
        left_out.add("stream_options")
    request_body = {name: value for name, value in body.items() if name not in left_out}
    if "max_tokens" in refused_parts:
        request_body[NEW_MAX_TOKENS] = body["max_tokens"]
    return request_body


def _blocks(response: requests.Response, deadline: Deadline, budget: int) -> Iterator[bytes]:
    """Yield the bytes of a response as they arrive, at most ``budget``.

    ``iter_content`` is not used: without chunked encoding it waits until a block is full.
    """
    late = ModelError("timeout", "The provider did not finish in time.")
    while True:
        try:
            block = response.raw.read1(_BLOCK, decode_content=True)
        except ReadTimeoutError:
            raise late from None
        except (HTTPError, OSError, ValueError) as error:
            if deadline.passed:
                raise late from None
            reason = f"The provider's answer was cut off ({type(error).__name__})."
            raise ModelError("unavailable", reason) from None
        if deadline.passed:
            raise late
        if not block:
            return
        budget -= len(block)
        if budget < 0:
            raise ModelError("garbage", "The provider sent a response that is too large.")
        yield block


def _read_beginning(response: requests.Response, deadline: Deadline) -> bytes:
    """Return about the first 64 KB of an error's body, or less if reading fails."""
    body = b""
    with suppress(ModelError):
        for block in _blocks(response, deadline, 2 * _BLOCK):
            body += block
            if len(body) >= _BLOCK:
                break
    return body

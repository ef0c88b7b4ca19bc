"""Adapter for servers with OpenAI's chat completions API, ``POST {base}/chat/completions``."""

import logging
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any

import requests.adapters
from urllib3.exceptions import HTTPError, ReadTimeoutError

from chalicelib.core.deadline import Deadline
from chalicelib.core.text import cut_bytes
from chalicelib.gateways.llm import (
    STREAM_SECONDS,
    Event,
    ModelError,
    attempts,
    event_stream,
    observed_limits,
)
from chalicelib.gateways.llm.answers import Answer
from chalicelib.gateways.llm.api_key import ApiKey
from chalicelib.gateways.llm.cancellation import Cancellation, watch
from chalicelib.gateways.llm.chat_completions import read_stream, sent_messages, sent_tools
from chalicelib.gateways.llm.messages import Message, ToolSpec
from chalicelib.gateways.llm.provider_errors import NEW_MAX_TOKENS, ErrorReport, ProviderFailedError

CONNECT_SECONDS = 5.0
# Bytes that may arrive for each requested output token. An event takes about 300 for a token.
BYTES_PER_OUTPUT_TOKEN = 4096
MIN_BUDGET = 2**18  # Bytes that may arrive for any request, however few tokens it requests.
_BLOCK = 2**16
_LOGGED_BYTES = 300
log = logging.getLogger(__name__)


class _Adapter(requests.adapters.HTTPAdapter):
    def init_poolmanager(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  passed on
        super().init_poolmanager(*args, **options)
        _watch(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:  # noqa: ANN401  passed on
        is_cached = proxy in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **options)
        if not is_cached:
            _watch(manager)
        return manager


def _watch(manager: Any) -> None:  # noqa: ANN401  requests does not type its managers
    manager.pool_classes_by_scheme = dict(manager.pool_classes_by_scheme)
    watch(manager.pool_classes_by_scheme)


class _Session(requests.Session):
    def __init__(self) -> None:
        super().__init__()
        for scheme in list(self.adapters):
            self.mount(scheme, _Adapter())

    def get_redirect_target(self, resp: requests.Response) -> str | None:  # noqa: ARG002  redirects are not followed
        return None  # A redirect's body could be of any size.


class OpenAiModel:
    """Server at a base URL, such as ``https://api.openai.com/v1``.

    ``api_key`` returns the current key, which may be empty. It is called for each request.
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
        # Optional parts that the server refuses are left out, and the request is sent again. If it
        # then succeeds, the parts are left out for ten minutes. Nothing is learned from a final
        # request, because it is refused for the calls that the model writes nevertheless.
        model, is_final = body["model"], "tool_choice" in body
        refused_before = observed_limits.refused_parts(model)
        refused_parts = {*refused_before}
        while True:
            request_body = _drop_parts(refused_parts, body)
            with cancellation.register_sockets():
                response = self._post(request_body, key, deadline)
            if response.status_code == requests.codes.ok:
                for optional_part in refused_parts - refused_before if not is_final else ():
                    observed_limits.remember_refused(model, part=optional_part)
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
                # The prompt must not promise tools either.
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
    # Used as ``auth``, so that a .netrc file does not replace the key.
    if key:
        request.headers["Authorization"] = f"Bearer {key}"
    return request


def _failure(report: ErrorReport, key: str, response: requests.Response) -> ModelError:
    # Log the provider's message without the key.
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
    # ``iter_content`` is not used: without chunked encoding it waits until a block is full.
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
    body = b""  # about the first 64 KB, or less if reading fails
    with suppress(ModelError):
        for block in _blocks(response, deadline, 2 * _BLOCK):
            body += block
            if len(body) >= _BLOCK:
                break
    return body

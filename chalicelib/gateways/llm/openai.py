"""Adapter for servers with OpenAI's chat completions API: ``POST {base}/chat/completions``.

Answers are streamed. If a server refuses an optional part of the request, the request is sent
again without that part.
"""

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any

import requests
import requests.adapters
from urllib3.exceptions import HTTPError, ReadTimeoutError

from chalicelib.core.deadline import Deadline
from chalicelib.core.text import cut_bytes
from chalicelib.gateways.llm import STREAM_SECONDS, Event, FailureKind, ModelError, attempts
from chalicelib.gateways.llm.api_key import ApiKey
from chalicelib.gateways.llm.cancellation import Cancellation, watch
from chalicelib.gateways.llm.chat_completions import (
    ProviderFailedError,
    read,
    sent_messages,
    sent_tools,
)
from chalicelib.gateways.llm.messages import Message, ToolSpec

CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
"""Longest wait for the next byte. Reasoning models take long until their first token."""
MAX_LINE = 2**20
BYTES_PER_OUTPUT_TOKEN = 4096
"""Bytes that may arrive for each requested output token. An event takes about 300 for a token."""
MIN_BUDGET = 2**18
"""Bytes that may arrive for any request, however few tokens it requests."""
_BLOCK = 2**16
_LOGGED_BYTES = 300

_NEW_MAX_TOKENS = "max_completion_tokens"
"""Name of ``max_tokens`` in newer models of OpenAI. All other servers accept the old name."""

log = logging.getLogger(__name__)


class _Adapter(requests.adapters.HTTPAdapter):
    """HTTP adapter with connections that another thread can shut."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  passed on
        """Create the pools of direct connections."""
        super().init_poolmanager(*args, **options)
        _watch(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:  # noqa: ANN401  passed on
        """Return the pools of connections through a proxy."""
        known = proxy in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **options)
        if not known:
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
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._api_key = api_key
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._refused: dict[str, frozenset[str]] = {}  # model -> optional parts that it refuses

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
            "stream_options": {"include_usage": True},
        }
        if json_object:
            body["response_format"] = {"type": "json_object"}
        if tools:
            body["tools"] = sent_tools(tools)
            if final:
                body["tool_choice"] = "none"
        reader = partial(read, messages=messages, tools=tools, final=final)
        attempt = partial(self._attempt, reader, body, deadline)
        yield from attempts.stream(attempt, deadline, cancellation)

    def _attempt(
        self,
        reader: Callable[[Iterator[bytes]], Iterator[Event]],
        body: dict[str, Any],
        deadline: Deadline,
        cancellation: Cancellation,
    ) -> Generator[Event, None, None]:
        budget = MIN_BUDGET + BYTES_PER_OUTPUT_TOKEN * body["max_tokens"]
        key = self._api_key()
        with (
            attempts.enforce_deadline(deadline, cancellation),
            closing(self._send(body, key, deadline, cancellation)) as response,
        ):
            try:
                yield from reader(_lines(response, deadline, budget))
            except ProviderFailedError as failure:
                raise _failure(failure.code, str(failure), key, response) from None

    def _send(
        self, body: dict[str, Any], key: str, deadline: Deadline, cancellation: Cancellation
    ) -> requests.Response:
        """Return a response of status 200 with its body unread.

        Optional parts that the server refuses are left out, and the request is sent again.
        """
        refused = self._refused.get(body["model"], frozenset())
        while True:
            sent = _without(refused, body)
            with cancellation.register_sockets():
                response = self._post(sent, key, deadline)
            if response.status_code == requests.codes.ok:
                if refused:
                    self._remember(body["model"], refused)
                return response
            with closing(response):
                error = _read_beginning(response, deadline)
            newly_refused = _refused_parts(response.status_code, error, sent)
            if not newly_refused:
                message = error.decode(errors="replace")
                raise _failure(response.status_code, message, key, response)
            refused |= newly_refused

    def _remember(self, model: str, refused: frozenset[str]) -> None:
        """Leave these parts out of further requests to this model."""
        if refused != self._refused.get(model):
            log.warning(
                "model provider refuses parts of requests",
                extra={"model": model, "parts": sorted(refused)},
            )
            self._refused[model] = refused

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
                        max(deadline.left(self._connect_seconds), 0.001),
                        max(deadline.left(self._read_seconds), 0.001),
                    ),
                )
        except requests.Timeout:
            raise ModelError("timeout", "The provider did not answer in time.") from None
        except ValueError as error:
            reason = f"The base URL or the key cannot be used ({type(error).__name__})."
            raise ModelError("refused", reason) from None
        except requests.RequestException as error:
            if deadline.passed:
                reason = "The provider did not answer in time."
                raise ModelError("timeout", reason) from None
            reason = f"The provider cannot be reached ({type(error).__name__})."
            raise ModelError("unavailable", reason) from None


def _authorize(key: str, request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Add the key. Used as ``auth``, so that a .netrc file does not replace the key."""
    if key:
        request.headers["Authorization"] = f"Bearer {key}"
    return request


def _failure(status: object, message: str, key: str, response: requests.Response) -> ModelError:
    """Return the error for a status. Log the provider's message without the key."""
    if key:
        message = message.replace(key, "<key>")
    log.warning(
        "model provider failed",
        extra={"status": status, "provider_says": cut_bytes(message, _LOGGED_BYTES)},
    )
    wait = response.headers.get("Retry-After", "")
    return ModelError(
        _kind(status),
        "The provider answered with " + (f"HTTP {status}." if status else "an error."),
        retry_after=float(wait) if wait.isascii() and wait.isdigit() else None,
    )


def _kind(status: object) -> FailureKind:
    """Return the kind of failure of an HTTP status. Other codes mean ``unavailable``."""
    match status:
        case 408 | 504:
            return "timeout"
        case 429:
            return "rate_limited"
        case int() if status < 500:  # noqa: PLR2004  the status classes of HTTP
            return "refused"
        case _:
            return "unavailable"


_REFUSAL_WORDS = {
    "response_format": (b"response_format",),
    "stream_options": (b"stream_options",),
    "max_tokens": (_NEW_MAX_TOKENS.encode(),),
    "tool_choice": (b"tool_choice",),
    "tools": (b"tools", b"tool choice", b"tool use", b"function calling"),
}
"""Optional part of the request -> texts of an error message that refuses it."""


def _refused_parts(status: int, error: bytes, sent: dict[str, Any]) -> frozenset[str]:
    """Return the optional parts of the request that an error message refuses.

    If the message names none, the JSON mode counts as refused. The prompt also requests JSON, so
    the mode is not essential.
    """
    if status not in {400, 422}:
        return frozenset()
    lower = error.lower()
    named = frozenset(
        part
        for part, words in _REFUSAL_WORDS.items()
        if part in sent and any(each in lower for each in words)
    )
    return named or frozenset({"response_format"} & sent.keys())


def _without(refused: frozenset[str], body: dict[str, Any]) -> dict[str, Any]:
    if "tools" in refused:
        refused |= {"tool_choice"}  # A choice without tools is refused as well.
    sent = {name: value for name, value in body.items() if name not in refused}
    if "max_tokens" in refused:
        sent[_NEW_MAX_TOKENS] = body["max_tokens"]
    return sent


def _blocks(response: requests.Response, deadline: Deadline) -> Iterator[bytes]:
    """Yield the bytes of a response as they arrive.

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
        yield block


def _read_beginning(response: requests.Response, deadline: Deadline) -> bytes:
    """Return about the first 64 KB of an error's body, or less if reading fails."""
    body = b""
    with suppress(ModelError):
        for block in _blocks(response, deadline):
            body += block
            if len(body) >= _BLOCK:
                break
    return body


def _lines(response: requests.Response, deadline: Deadline, budget: int) -> Iterator[bytes]:
    """Yield the lines of a response as they arrive, without line ends.

    Lines are bytes, so that a character split over two blocks stays whole.
    """
    pending = b""
    for block in _blocks(response, deadline):
        budget -= len(block)
        *lines, pending = (pending + block).split(b"\n")
        if budget < 0 or len(pending) > MAX_LINE:
            raise ModelError("garbage", "The provider sends more than an answer can take.")
        yield from (line.rstrip(b"\r") for line in lines)
    yield pending

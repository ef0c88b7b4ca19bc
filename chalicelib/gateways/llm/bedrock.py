"""Adapter for ConverseStream of Amazon Bedrock, with the IAM role of the process.

botocore signs requests and parses the event stream. boto3 is not used because it makes the first
call a third slower. Retries, deadline and cancellation are those of ``attempts``.
"""

import logging
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
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
    Reasoning,
    attempts,
)
from chalicelib.gateways.llm.cancellation import Cancellation, watch
from chalicelib.gateways.llm.messages import Message, TokenCounter, count_input

CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
"""Longest wait for the next byte. Reasoning models take long until their first token."""
MAX_CONNECTIONS = 64
"""Connections kept open, one for each thread of the development server."""
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
    """The models of a region. ``options`` are passed to the botocore client."""

    def __init__(self, *, read_seconds: float = READ_SECONDS, **options: Any) -> None:  # noqa: ANN401  botocore's
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
        cancellation: Cancellation | None = None,
    ) -> Generator[Event, None, None]:
        """Send the messages, yield the answer's text in pieces, then one ``ProviderUsage``."""
        deadline = Deadline(seconds)
        body = {
            "modelId": model,
            "messages": _turns(messages),
            "inferenceConfig": {"maxTokens": max_output_tokens},
        }
        system = [m for m in messages if m.role == "system" and not _is_blank(m)]
        if system:
            body["system"] = [{"text": m.content} for m in system]
        attempt = partial(self._attempt, messages, body, deadline)
        yield from attempts.stream(attempt, deadline, cancellation)

    def _attempt(
        self,
        messages: Sequence[Message],
        body: dict[str, Any],
        deadline: Deadline,
        cancellation: Cancellation,
    ) -> Generator[Event, None, None]:
        if deadline.passed:
            raise ModelError("timeout", "The time was up before the provider answered.")
        with attempts.enforce_deadline(deadline, cancellation):
            try:
                with cancellation.register_sockets():
                    answer = self._client.converse_stream(**body)
                with closing(answer["stream"]) as events:
                    yield from _read(events, messages)
            except (ClientError, BotoCoreError, HTTPError, ParserError, OSError) as error:
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
                    read_timeout=self._read_seconds,
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


def _is_blank(message: Message) -> bool:
    return not message.content.strip()


def _turns(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return the messages in the form that Converse requires.

    The user comes first, roles alternate, and no text is blank. Consecutive messages of one role
    become one turn. Messages of the assistant before the first user message are left out.
    """
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system" or _is_blank(message):
            continue
        if turns and turns[-1]["role"] == message.role:
            turns[-1]["content"].append({"text": message.content})
        elif turns or message.role == "user":
            turns.append({"role": message.role, "content": [{"text": message.content}]})
    return turns


def _read(
    events: Iterable[dict[str, Any]], messages: Sequence[Message]
) -> Generator[Event, None, None]:
    """Yield the texts of the events, then the usage.

    Redacted reasoning has no text and is skipped. The usage that Bedrock reports includes it.

    Raises:
        ModelError: ``unavailable``, if the events end before the answer does.
    """
    answer_tokens, reasoning_tokens = TokenCounter(), TokenCounter()
    usage: ProviderUsage | None = None
    ended = False
    try:
        for event in events:
            match event:
                case {"contentBlockDelta": {"delta": {"text": str(text)}}} if text:
                    answer_tokens.add(text)
                    yield text
                case {
                    "contentBlockDelta": {"delta": {"reasoningContent": {"text": str(text)}}}
                } if text:
                    reasoning_tokens.add(text)
                    yield Reasoning(text)
                case {"messageStop": _}:
                    ended = True
                case {
                    "metadata": {
                        "usage": {"inputTokens": int(tokens_in), "outputTokens": int(tokens_out)}
                    }
                }:
                    usage = ProviderUsage(tokens_in, tokens_out)
    except (ClientError, BotoCoreError, HTTPError, ParserError, OSError):
        if not ended:  # After the end, the answer is complete and only the usage is missing.
            raise
    if not ended:
        raise ModelError("unavailable", "The provider's answer ended early.")
    counted = answer_tokens.tokens + reasoning_tokens.tokens
    yield usage or ProviderUsage(count_input(messages), counted, estimated=True)


def _failure(error: Exception, deadline: Deadline) -> ModelError:
    """Return the ``ModelError`` for an error of botocore. Log the message of Bedrock."""
    name = type(error).__name__
    if isinstance(error, ClientError):
        details = error.response.get("Error", {})
        code = str(details.get("Code", ""))
        message = cut_bytes(str(details.get("Message")), _LOGGED_BYTES)
        log.warning("model provider failed", extra={"status": code, "provider_says": message})
        kind = _KINDS.get(code.lower().removesuffix("exception"), "unavailable")
        return ModelError(kind, f"The provider answered with {code}.")
    if deadline.passed or isinstance(
        error, (ConnectTimeoutError, ReadTimeoutError, StreamTimeoutError, TimeoutError)
    ):
        return ModelError("timeout", "The provider did not answer in time.")
    if isinstance(error, ParserError):
        return ModelError("garbage", f"What the provider sent is no event stream ({name}).")
    if isinstance(error, (UnreachableError, HTTPClientError, HTTPError, OSError)):
        return ModelError("unavailable", f"The provider cannot be reached or was cut off ({name}).")
    return ModelError("refused", f"The request cannot be sent ({name}).")

"""Amazon Bedrock's ConverseStream, by the role that the process runs under.

botocore signs and frames (boto3 would add a third to the time that its first use takes); trying
again, the deadline and cancelling are ours, as for every provider.
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
"""The longest silence, before the first token (models that think are slow to start) or after."""
AT_ONCE = 64
"""Connections that are kept, as many as the development server has threads."""
_LOGGED = 300

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
"""What an error means, by its code without ``Exception``; others stand for one that fails."""

log = logging.getLogger(__name__)


class BedrockModel:
    """The models of a region; ``options`` are botocore's for a client, such as an endpoint."""

    def __init__(self, *, read_seconds: float = READ_SECONDS, **options: Any) -> None:  # noqa: ANN401  botocore's
        self._read_seconds = read_seconds
        self._options = options
        self._made: Any = None
        self._making = Lock()  # A session makes one client at a time.

    def stream(  # noqa: PLR0913  as every model
        self,
        messages: Sequence[Message],
        *,
        model: str,
        max_output_tokens: int,
        seconds: float = STREAM_SECONDS,
        json_object: bool = False,  # noqa: ARG002  Converse has no such mode; the prompt asks for it
        cancellation: Cancellation | None = None,
    ) -> Generator[Event, None, None]:
        """Ask, and yield the answer's text in pieces as they come, then one ``ProviderUsage``."""
        deadline = Deadline(seconds)
        body = {
            "modelId": model,
            "messages": _turns(messages),
            "inferenceConfig": {"maxTokens": max_output_tokens},
        }
        if system := [{"text": m.content} for m in messages if _is_said(m) and m.role == "system"]:
            body["system"] = system
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
        with attempts.until(deadline, cancellation):
            try:
                with cancellation.watching():
                    answer = self._client.converse_stream(**body)
                with closing(answer["stream"]) as events:
                    yield from _read(events, messages)
            except (ClientError, BotoCoreError, HTTPError, ParserError, OSError) as error:
                raise _failure(error, deadline) from None
            except (ValueError, AttributeError) as error:
                # What reading a response comes to whose socket was shut under it.
                if not (deadline.passed or cancellation.cancelled):
                    raise
                raise _failure(error, deadline) from None

    @property
    def _client(self) -> Any:  # noqa: ANN401  botocore makes its clients at run time
        with self._making:
            if self._made is None:
                config = Config(
                    connect_timeout=CONNECT_SECONDS,
                    read_timeout=self._read_seconds,
                    retries={"total_max_attempts": 1},
                    max_pool_connections=AT_ONCE,
                )
                self._made = botocore.session.get_session().create_client(
                    "bedrock-runtime", config=config, **self._options
                )
                # botocore shows no way to the sockets; a test sees to it that this one stays.
                watch(self._made._endpoint.http_session._pool_classes_by_scheme)  # noqa: SLF001
            return self._made


def _is_said(message: Message) -> bool:
    return bool(message.content.strip())


def _turns(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return the turns as Converse takes them: the user first, then by turns, none of them blank.

    Neighbours of the same role are paragraphs of one turn; what an assistant says first is left
    out.
    """
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system" or not _is_said(message):
            continue
        if turns and turns[-1]["role"] == message.role:
            turns[-1]["content"].append({"text": message.content})
        elif turns or message.role == "user":
            turns.append({"role": message.role, "content": [{"text": message.content}]})
    return turns


def _read(
    events: Iterable[dict[str, Any]], messages: Sequence[Message]
) -> Generator[Event, None, None]:
    """Yield what the events say, then what it took.

    Of reasoning that is redacted nothing is known but that it was; Bedrock's usage counts it.

    Raises:
        ModelError: ``unavailable``, if they end before the answer does.
    """
    spoken, reasoned = TokenCounter(), TokenCounter()
    usage: ProviderUsage | None = None
    ended = False
    try:
        for event in events:
            match event:
                case {"contentBlockDelta": {"delta": {"text": str(text)}}} if text:
                    spoken.add(text)
                    yield text
                case {
                    "contentBlockDelta": {"delta": {"reasoningContent": {"text": str(text)}}}
                } if text:
                    reasoned.add(text)
                    yield Reasoning(text)
                case {"messageStop": _}:
                    ended = True
                case {
                    "metadata": {"usage": {"inputTokens": int(asked), "outputTokens": int(said)}}
                }:
                    usage = ProviderUsage(asked, said)
    except (ClientError, BotoCoreError, HTTPError, ParserError, OSError):
        if not ended:  # Else all was said, and only the usage is missing.
            raise
    if not ended:
        raise ModelError("unavailable", "The provider's answer ended early.")
    counted = spoken.tokens + reasoned.tokens
    yield usage or ProviderUsage(count_input(messages), counted, estimated=True)


def _failure(error: Exception, deadline: Deadline) -> ModelError:
    """Return what an error of botocore's means, and log what Bedrock says."""
    name = type(error).__name__
    if isinstance(error, ClientError):
        told = error.response.get("Error", {})
        code = str(told.get("Code", ""))
        log.warning(
            "model provider failed",
            extra={"status": code, "provider_says": cut_bytes(str(told.get("Message")), _LOGGED)},
        )
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

"""Adapter for ConverseStream of Amazon Bedrock, with the IAM role of the process."""

import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from threading import Lock
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.eventstream import ParserError
from botocore.exceptions import ClientError, ConnectTimeoutError, HTTPClientError, ReadTimeoutError
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
    attempts,
    provider_errors,
)
from chalicelib.gateways.llm.answers import Answer
from chalicelib.gateways.llm.cancellation import Cancellation, watch
from chalicelib.gateways.llm.converse import STREAM_ERRORS, converse_request, read_stream
from chalicelib.gateways.llm.messages import Message, ToolSpec

CONNECT_SECONDS = 5.0
MAX_CONNECTIONS = 64  # kept open, one for each thread of the development server
_LOGGED_BYTES = 300
# Error code without ``Exception`` -> kind of failure. Other codes mean ``unavailable``.
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
log = logging.getLogger(__name__)


class BedrockModel:
    """The models of a region. ``options`` are passed to the botocore client."""

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
                # boto3 would make the first call a third slower.
                client = botocore.session.get_session().create_client(
                    "bedrock-runtime", config=config, **self._options
                )
                # botocore has no public access to its sockets. A test fails if this one breaks.
                watch(client._endpoint.http_session._pool_classes_by_scheme)  # noqa: SLF001
                self._cached_client = client
            return self._cached_client


def _failure(error: Exception, deadline: Deadline) -> ModelError:
    # Log the message of Bedrock.
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

"""The one connection to DynamoDB: how long it waits, what it tries again, and what a failure means.

botocore's own retries are off. They would send a transaction again without asking whether the first
time did it, and they know nothing of the request's deadline. A read, or a write of one row, is
tried three times; a transaction only by ``engine.transactions``, which can tell.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NoReturn, cast

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session
from pynamodb.connection import Connection
from pynamodb.exceptions import PynamoDBException

from chalicelib import USER_AGENT
from chalicelib.core import deadline
from chalicelib.core.errors import UnavailableError
from chalicelib.core.retry import backoff

CONNECT_SECONDS = 1
READ_SECONDS = 2
"""An answer takes milliseconds; one that takes longer than this is lost more likely than late."""
ATTEMPTS = 3

CONDITION_FAILED = "ConditionalCheckFailedException"
IN_PROGRESS = "TransactionInProgressException"
"""The transaction with this very token is still being carried out: not another writer's."""
CONFLICTS = frozenset({"TransactionConflict", "TransactionConflictException"})
THROTTLED = frozenset(
    {
        "LimitExceededException",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingError",
        "ThrottlingException",
    }
)
"""Refusals for now: DynamoDB did nothing."""


class _Connection(Connection):
    """PynamoDB's connection with retries that end before the request's deadline."""

    @property
    def session(self) -> Session:
        """The session that makes the client, which names the service and nothing else.

        botocore would describe the machine and its own features in each request's User-Agent: that
        takes 0.1 ms, a third of the CPU time of a call.
        """
        session = super().session
        if session.get_default_client_config() is None:
            session.set_default_client_config(Config(user_agent=USER_AGENT))
        return session

    def _make_api_call(self, operation_name: str, operation_kwargs: dict[str, Any]) -> Any:  # noqa: ANN401  an answer of any shape
        attempts = 1 if operation_name == "TransactWriteItems" else ATTEMPTS
        for number in range(attempts):
            if deadline.passed():
                raise UnavailableError from TimeoutError("the request's time is up")
            try:
                return super()._make_api_call(operation_name, operation_kwargs)
            except (BotoCoreError, ClientError) as error:
                if number + 1 == attempts or not is_passing(error):
                    raise
            backoff(number)
        raise AssertionError("unreachable")


@cache
def connection() -> Connection:
    """Return the one connection all tables share.

    A client costs a tenth of a second to make (chalice.md).
    """
    return _Connection(
        connect_timeout_seconds=CONNECT_SECONDS,
        read_timeout_seconds=READ_SECONDS,
        retry_configuration=cast("Any", {"total_max_attempts": 1, "mode": "standard"}),
        max_pool_connections=64,
    )


def error_code(error: BaseException) -> str:
    """Return DynamoDB's code of a failure, or "" when it never answered in its own words.

    PynamoDB's own ``cause_response_code`` trips over botocore's time-outs, whose response is None.
    """
    cause = error.cause if isinstance(error, PynamoDBException) else error
    response = getattr(cause, "response", None) or {}
    code: str = response.get("Error", {}).get("Code", "")
    return code


def is_unknown(error: BaseException) -> bool:
    """Whether DynamoDB may have done what it was asked to all the same: the answer is lost."""
    cause = error.cause if isinstance(error, PynamoDBException) else error
    if isinstance(cause, ClientError):
        return error_code(error) == IN_PROGRESS or _status(cause) >= 500  # noqa: PLR2004  server errors
    return cause is None or isinstance(cause, BotoCoreError)


def is_passing(error: BaseException) -> bool:
    """Whether asking again may help: DynamoDB is out of reach, overloaded or failing."""
    return is_unknown(error) or error_code(error) in THROTTLED


def _status(error: ClientError) -> int:
    """Return the HTTP status; PynamoDB's wrapper keeps it in what it was raised from only."""
    for each in (error, error.__cause__):
        metadata = (getattr(each, "response", None) or {}).get("ResponseMetadata", {})
        if status := metadata.get("HTTPStatusCode"):
            return int(status)
    return 500 if error_code(error) == "InternalServerError" else 400


@contextmanager
def reaching() -> Iterator[None]:
    """Turn a database that keeps failing into a clear 503.

    What it refuses for good, such as a malformed request, is our mistake, and no 503.
    """
    try:
        yield
    except PynamoDBException as error:
        raise_failure(error)


def raise_failure(error: PynamoDBException | UnavailableError) -> NoReturn:
    """Raise what a failed request to DynamoDB means to the caller.

    An error that keeps its meaning is raised as it is. It must not be raised ``from`` itself:
    its chain of causes would have no end.

    Raises:
        UnavailableError: asking again may help.
    """
    if is_passing(error):
        raise UnavailableError from error
    raise error

"""Connect to DynamoDB, with time-outs, retries and an interpretation of failures."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NoReturn, cast

from botocore import handlers
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session
from pynamodb.connection import Connection
from pynamodb.exceptions import GetError, PynamoDBException

from chalicelib import USER_AGENT
from chalicelib.core import deadline
from chalicelib.core.errors import StorageLimitError, UnavailableError
from chalicelib.core.retry import backoff
from chalicelib.engine.answer_parser import AnswerParsers

CONNECT_SECONDS = 1
READ_SECONDS = 2  # Responses take milliseconds, so a later one is probably lost.
ATTEMPTS = 3

CONDITION_FAILED = "ConditionalCheckFailedException"
# A transaction with the same token is still being carried out. No other writer is involved.
IN_PROGRESS = "TransactionInProgressException"
CONFLICTS = frozenset({"TransactionConflict", "TransactionConflictException"})
# Temporary refusals. DynamoDB has not carried out the request.
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
# A partition of a table with local indexes has reached 10 GB (ADR 53). The first is the reason of a
# cancelled transaction, the second the code of a single write.
PARTITION_FULL = frozenset(
    {"ItemCollectionSizeLimitExceeded", "ItemCollectionSizeLimitExceededException"}
)


class _Connection(Connection):
    @property
    def session(self) -> Session:
        if getattr(self._local, "session", None) is None:
            # The handlers of S3 and many other services take a thirtieth of a cold start.
            session = Session(include_builtin_handlers=False)
            for event, handler, *_order in handlers.BUILTIN_HANDLERS:
                if "." not in event or ".dynamodb" in event:
                    session.register(event, handler)
            # botocore would add the machine and its own features to the User-Agent of each request,
            # which takes 0.1 ms, a third of the CPU time of a call.
            session.set_default_client_config(Config(user_agent=USER_AGENT))
            session.register_component("response_parser_factory", AnswerParsers())
            self._local.session = session
        return self._local.session

    def _make_api_call(self, operation_name: str, operation_kwargs: dict[str, Any]) -> Any:  # noqa: ANN401  an answer of any shape
        # Only engine.transactions repeats transactions, because it can check their outcome.
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
    """Return the connection that all tables share. Creating a client takes a tenth of a second."""
    return _Connection(
        connect_timeout_seconds=CONNECT_SECONDS,
        read_timeout_seconds=READ_SECONDS,
        # botocore's own retries would repeat a transaction without checking whether the first
        # attempt succeeded, and they ignore the request's deadline.
        retry_configuration=cast("Any", {"total_max_attempts": 1, "mode": "standard"}),
        # Threads of one request use more connections than botocore's default of 10. Further
        # connections are not reused, and each costs a TLS handshake.
        max_pool_connections=64,
    )


def batch_get(tables: dict[str, Any]) -> dict[str, Any]:
    """Read rows of several tables in one request, in DynamoDB's JSON, or raise GetError."""
    # PynamoDB's own method takes one table.
    try:
        answer: dict[str, Any] = connection().dispatch("BatchGetItem", {"RequestItems": tables})
    except (BotoCoreError, ClientError) as error:
        msg = "the rows could not be read"
        raise GetError(msg, error) from error
    return answer


def error_code(error: BaseException) -> str:
    """Return DynamoDB's code of a failure, or "" without a response that has a code."""
    # PynamoDB's cause_response_code fails on botocore's time-outs, which have no response.
    cause = error.cause if isinstance(error, PynamoDBException) else error
    response = getattr(cause, "response", None) or {}
    code: str = response.get("Error", {}).get("Code", "")
    return code


def is_unknown(error: BaseException) -> bool:
    """Whether DynamoDB may have carried out the request although no response confirms it."""
    cause = error.cause if isinstance(error, PynamoDBException) else error
    if isinstance(cause, ClientError):
        return error_code(error) == IN_PROGRESS or _status(cause) >= 500  # noqa: PLR2004  server errors
    return cause is None or isinstance(cause, BotoCoreError)


def is_passing(error: BaseException) -> bool:
    """Whether a retry may help: DynamoDB is unreachable, overloaded, failing, or a row is busy."""
    # DynamoDB refuses the write of a single row while a transaction holds the row.
    return is_unknown(error) or error_code(error) in THROTTLED | CONFLICTS


def _status(error: ClientError) -> int:
    # PynamoDB's wrapper has the response only in the exception that caused the wrapper.
    for failure in (error, error.__cause__):
        metadata = (getattr(failure, "response", None) or {}).get("ResponseMetadata", {})
        if status := metadata.get("HTTPStatusCode"):
            return int(status)
    return 500 if error_code(error) == "InternalServerError" else 400


@contextmanager
def reaching() -> Iterator[None]:
    """Turn lasting failures of the database into a 503, and a full partition into a 409."""
    try:
        yield
    except PynamoDBException as error:
        # Other refusals, such as of a malformed request, are this service's errors and pass.
        raise_failure(error)


def raise_failure(error: PynamoDBException | UnavailableError) -> NoReturn:
    """Raise StorageLimitError (a full partition), UnavailableError (retry) or the error itself."""
    if error_code(error) in PARTITION_FULL:
        raise StorageLimitError from error
    if is_passing(error):
        raise UnavailableError from error
    # Not ``from`` itself: the chain of causes would have no end.
    raise error

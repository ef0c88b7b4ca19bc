"""The failures of the database, in the form in which botocore raises them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    ReadTimeoutError,
)

from chalicelib.engine.audit import AuditRow
from chalicelib.engine.connection import CONNECT_SECONDS, READ_SECONDS
from chalicelib.engine.tables import ContentRow

DETAIL = "detail-that-no-caller-may-see"
"""Part of the message of every failure of the database. No response may contain it."""
_ENDPOINT = f"http://{DETAIL}"
_TRANSACTION = "TransactWriteItems"
_WRITES = ("PutItem", "UpdateItem", "DeleteItem")

Proceed = Callable[[], Any]


@dataclass(frozen=True)
class Fault:
    """A failure of one call. ``act`` takes the place of the call, and may carry it out first.

    ``seconds`` is how long the caller waits.
    """

    name: str
    act: Callable[[Proceed], Any]
    seconds: float = 0.01


def raising(name: str, make: Callable[[], BaseException], seconds: float = 0.01) -> Fault:
    """Return a fault that raises instead of carrying out the call."""

    def act(_: Proceed) -> Any:
        raise make()

    return Fault(name, act, seconds)


def store_faults(operation: str, request: dict[str, Any]) -> Iterator[Fault]:
    """Yield every failure that DynamoDB or the network may have for a request.

    The developer guide lists them under Error Handling, and TransactWriteItems its reasons.
    """
    codes = dict(_CODES)
    if operation in _WRITES:
        codes["TransactionConflictException"] = 400
        if _can_be_full(request):
            codes["ItemCollectionSizeLimitExceededException"] = 400
        if "ConditionExpression" in request:
            codes["ConditionalCheckFailedException"] = 400
    if operation == _TRANSACTION:
        codes["TransactionInProgressException"] = 400
    for code, status in codes.items():
        yield raising(code, lambda code=code, status=status: refusal(operation, code, status))
    for name, (make, seconds) in _CONNECTIONS.items():
        yield raising(name, make, seconds)
    if operation in {*_WRITES, _TRANSACTION}:
        yield Fault("answer lost", _lose_answer, READ_SECONDS)
    if operation == _TRANSACTION:
        yield from _cancellations(request["TransactItems"])
    if operation == "BatchGetItem":
        yield Fault("UnprocessedKeys", lambda _: _nothing_processed(request))


_CODES = {
    "ThrottlingException": 400,
    "InternalServerError": 500,
    "ValidationException": 400,
    "AccessDeniedException": 400,
}
_CONNECTIONS: dict[str, tuple[Callable[[], BotoCoreError], float]] = {
    "connection closed": (lambda: ConnectionClosedError(endpoint_url=_ENDPOINT), 0.01),
    "unreachable": (lambda: EndpointConnectionError(endpoint_url=_ENDPOINT), CONNECT_SECONDS),
    "read time-out": (
        lambda: ReadTimeoutError(endpoint_url=_ENDPOINT),
        CONNECT_SECONDS + READ_SECONDS,
    ),
}
_REASONS = ("TransactionConflict", "ThrottlingError", "ValidationError")


def refusal(operation: str, code: str, status: int, **more: Any) -> ClientError:
    """Return the error of a refused request."""
    metadata = {"HTTPStatusCode": status, "HTTPHeaders": {}}
    answer = {"Error": {"Code": code, "Message": DETAIL}, "ResponseMetadata": metadata, **more}
    return ClientError(answer, operation)  # type: ignore[arg-type]  more than botocore names


def _can_be_full(write: dict[str, Any]) -> bool:
    """Whether the write is to the table with local indexes. Only its partitions have a limit."""
    return bool(write["TableName"] == ContentRow.Meta.table_name)


def _lose_answer(proceed: Proceed) -> Any:
    proceed()
    raise ReadTimeoutError(endpoint_url=_ENDPOINT)


def _nothing_processed(request: dict[str, Any]) -> dict[str, Any]:
    return {
        "Responses": {table: [] for table in request["RequestItems"]},
        "UnprocessedKeys": request["RequestItems"],
        "ResponseMetadata": {"HTTPStatusCode": 200, "HTTPHeaders": {}},
    }


def _cancellations(items: list[dict[str, Any]]) -> Iterator[Fault]:
    """Yield each reason of a cancelled transaction, and each condition that may fail."""
    for code in _REASONS:
        yield _cancelled(code, len(items), len(items) - 1, {"Code": code, "Message": DETAIL})
    growing = [
        position
        for position, item in enumerate(items)
        for action, write in item.items()
        if action in {"Put", "Update"} and _can_be_full(write)
    ]
    if growing:
        full = {"Code": "ItemCollectionSizeLimitExceeded", "Message": DETAIL}
        yield _cancelled(full["Code"], len(items), growing[-1], full)
    for position, item in enumerate(items):
        ((action, write),) = item.items()
        if "ConditionExpression" in write:
            reason: dict[str, Any] = {"Code": "ConditionalCheckFailed", "Message": DETAIL}
            name = f"ConditionalCheckFailed of {action} {position}"
            refused = _cancelled(name, len(items), position, reason)
            yield _carried_out(refused) if _is_marker(write) else refused
            if write.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" and "Item" in write:
                reason_with_row = reason | {"Item": write["Item"]}
                yield _cancelled(f"{name} with the row", len(items), position, reason_with_row)


def _is_marker(write: dict[str, Any]) -> bool:
    """Whether the write is of the log's record, which is new in each transaction.

    It is there already only if the same transaction was carried out, and its answer was lost.
    """
    return bool(write["TableName"] == AuditRow.Meta.table_name)


def _carried_out(fault: Fault) -> Fault:
    def act(proceed: Proceed) -> Any:
        proceed()
        return fault.act(proceed)

    return Fault(f"{fault.name}, carried out", act, fault.seconds)


def _cancelled(name: str, count: int, position: int, reason: dict[str, Any]) -> Fault:
    reasons: list[dict[str, Any]] = [{"Code": "None"} for _ in range(count)]
    reasons[position] = reason
    return raising(
        name,
        lambda: refusal(
            _TRANSACTION, "TransactionCanceledException", 400, CancellationReasons=reasons
        ),
    )

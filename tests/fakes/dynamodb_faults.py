"""Faults of DynamoDB, injected into botocore before or after a request."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    ReadTimeoutError,
)

from chalicelib.engine.connection import connection

TRANSACTION = "TransactWriteItems"
ALWAYS = 10**9
ENDPOINT = "http://nowhere"

Fault = Callable[[Any, dict[str, Any]], None]
"""Raises an exception in place of a response, or turns the response into an error."""


def closed(_http: Any, _parsed: dict[str, Any]) -> None:
    raise ConnectionClosedError(endpoint_url=ENDPOINT)


def refusal(code: str, status: int) -> Fault:
    def refuse(http: Any, parsed: dict[str, Any]) -> None:
        http.status_code = status
        parsed.clear()
        parsed["Error"] = {"Code": code, "Message": "no"}
        parsed["ResponseMetadata"] = {"HTTPStatusCode": status}

    refuse.__name__ = code
    return refuse


crashed = refusal("InternalServerError", 500)
in_progress = refusal("TransactionInProgressException", 400)


@contextmanager
def faulty(api_call: str, fault: Fault, when: str, times: int = ALWAYS) -> Iterator[list[str]]:
    """Apply a fault to the next ``times`` requests. Yields the requests that were made.

    ``when`` is "before" if the request is not sent, and "after" if DynamoDB has processed it.
    """
    seen: list[str] = []

    def fail_before(**_: Any) -> Any:
        seen.append(api_call)
        if when == "before" and len(seen) <= times:
            http, parsed = SimpleNamespace(status_code=200), dict[str, Any]()
            fault(http, parsed)
            return http, parsed
        return None

    def fail_after(http_response: Any, parsed: dict[str, Any], **_: Any) -> None:
        if when == "after" and len(seen) <= times:
            fault(http_response, parsed)

    events = connection().client.meta.events
    events.register_first(f"before-call.dynamodb.{api_call}", fail_before)
    events.register_first(f"after-call.dynamodb.{api_call}", fail_after)
    try:
        yield seen
    finally:
        events.unregister(f"before-call.dynamodb.{api_call}", fail_before)
        events.unregister(f"after-call.dynamodb.{api_call}", fail_after)


FAULTS = [closed, crashed, in_progress]
TIMES = ["before", "after"]
"""Values of ``when`` in ``faulty``, not of ``times``."""


@contextmanager
def failing(operation: str, times: int, fault: Callable[[], Exception]) -> Iterator[list[str]]:
    """Let the next calls of a DynamoDB operation fail before they are sent."""
    seen: list[str] = []

    def interfere(**_: Any) -> None:
        seen.append(operation)
        if len(seen) <= times:
            raise fault()

    events = connection().client.meta.events
    events.register_first(f"before-call.dynamodb.{operation}", interfere)
    try:
        yield seen
    finally:
        events.unregister(f"before-call.dynamodb.{operation}", interfere)


def conflict() -> ClientError:
    return ClientError(
        {
            "Error": {"Code": "TransactionCanceledException", "Message": "cancelled"},
            "CancellationReasons": [{"Code": "None"}, {"Code": "TransactionConflict"}],
        },
        "TransactWriteItems",
    )


def busy_row() -> ClientError:
    code = "TransactionConflictException"
    return ClientError({"Error": {"Code": code, "Message": "a transaction is going on"}}, "Any")


def throttled() -> ClientError:
    code = "ProvisionedThroughputExceededException"
    return ClientError({"Error": {"Code": code, "Message": "slow down"}}, "Any")


def unreachable() -> EndpointConnectionError:
    return EndpointConnectionError(endpoint_url=ENDPOINT)


def timed_out() -> ReadTimeoutError:
    return ReadTimeoutError(endpoint_url=ENDPOINT)

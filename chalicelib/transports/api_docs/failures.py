"""Failures in the OpenAPI document: statuses, error codes, and the codes of each operation."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from chalicelib.core import errors
from chalicelib.core.operations import Operation
from chalicelib.core.principals import Audience
from chalicelib.domains.billing.rules.spending_windows import (
    DailyLimitError,
    InsufficientBalanceError,
    MonthlyLimitError,
    WeeklyLimitError,
)
from chalicelib.domains.chat.flows.chat_history import MessageTooLongError
from chalicelib.domains.chat.store.chat_sessions import SessionBusyError

STATUSES = {
    "400": "The input is invalid; `errors` lists the fields.",
    "401": "The key is missing or invalid.",
    "403": "The plan, the scope or the account's role does not allow it.",
    "404": "The workspace has no record with this id.",
    "405": "The path does not accept this method; `Allow` lists those it accepts.",
    "409": "The request conflicts with the current state.",
    "413": "The body, a field or the response is too large.",
    "415": "The operation does not accept the type of the body.",
    "429": "Too many requests; `Retry-After` is the time to wait in seconds.",
    "500": "An internal error; report the `requestId`.",
    "502": "An external service failed or sent an invalid response.",
    "503": "Unavailable, overloaded or not configured; has `Retry-After` if a retry may help.",
}
_ALWAYS: tuple[type[errors.AppError], ...] = (
    errors.ValidationError,
    errors.NotFoundError,
    errors.MethodNotAllowedError,
    errors.PayloadTooLargeError,
    errors.RateLimitedError,
    errors.InternalError,
    errors.UnavailableError,
)
# Errors that the bot chat returns before the first byte of its stream.
CHAT: tuple[type[errors.AppError], ...] = (
    *_ALWAYS,
    MessageTooLongError,
    errors.ForbiddenError,
    errors.IdempotencyMismatchError,
    errors.InProgressError,
    errors.InTestWorkspaceError,
    errors.StorageLimitError,
    SessionBusyError,
    errors.UnsupportedMediaTypeError,
    DailyLimitError,
    WeeklyLimitError,
    MonthlyLimitError,
    InsufficientBalanceError,
    errors.NotConfiguredError,
)
# Errors that paths without an operation return.
_REFUSALS = (errors.UnauthorizedError, errors.ForbiddenError)


def errors_of(operation: Operation) -> Iterator[type[errors.AppError]]:
    """Yield the errors of an operation, which its declaration implies or lists."""
    yield from _ALWAYS
    if Audience.KEY in operation.audience:
        yield from (errors.UnauthorizedError, errors.PlanRequiredError)
    if operation.scope is not None:
        yield errors.InsufficientScopeError
        if operation.scope.admin_only:
            yield errors.AdminRequiredError
    if not operation.reads_query:
        yield errors.UnsupportedMediaTypeError
    if not operation.read_only:
        yield from (errors.InTestWorkspaceError, errors.StorageLimitError)
    if operation.accepts_idempotency_key:
        yield from (errors.IdempotencyMismatchError, errors.InProgressError)
        if operation.secret is not None:
            yield errors.AlreadyCreatedError
    if operation.open_world:
        yield from (errors.UpstreamFailedError, errors.NotConfiguredError)
    yield from operation.errors


def failure_codes(which: Iterator[type[errors.AppError]]) -> dict[str, list[str]]:
    """Return the codes of these errors by their HTTP status, both in ascending order."""
    codes_by_status: dict[str, set[str]] = {}
    for error in which:
        codes_by_status.setdefault(str(error.status), set()).add(error.code)
    return {status: sorted(codes_by_status[status]) for status in sorted(codes_by_status)}


def catalogue(operations: Iterable[Operation]) -> list[dict[str, Any]]:
    """Return every error code of the API and the chat with its meaning, sorted by status."""
    every: set[type[errors.AppError]] = {*CHAT, *_REFUSALS}
    every.update(*map(errors_of, operations))
    # An error of a more exact class follows the one whose code it has.
    sorted_errors = sorted(
        every, key=lambda error: (error.status, error.code, len(error.mro()), error.__name__)
    )
    return [
        {"code": error.code, "status": error.status, "description": _meaning(error)}
        for error in sorted_errors
    ]


def _meaning(error: type[errors.AppError]) -> str:
    return " ".join((error.__doc__ or "").replace("``", "`").split())


def schema(warnings: Mapping[str, Any], error_codes: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the schema of a failure. ``error_codes`` is the result of ``catalogue``.

    ``warnings`` are the fields of warnings with their schemas.
    """
    text = {"type": "string"}
    field = {
        "type": "object",
        "properties": {
            "field": text,
            "message": text,
            "key": {**text, "description": "Stable kind of the problem, such as required."},
        },
        "required": ["field", "message", "key"],
    }
    data = {
        "type": "object",
        "required": ["status", "message", "code", "requestId"],
        "properties": {
            "status": {"type": "boolean", "description": "false: the call failed."},
            "message": {
                **text,
                "description": "The expected value, the received value and what to do.",
            },
            "code": {
                **text,
                "description": "Stable code.",
                "examples": sorted(error_code["code"] for error_code in error_codes),
            },
            "key": {
                **text,
                "description": "Stable reason, if several reasons have the same code.",
                "examples": ["role_required"],
            },
            "errors": {
                "type": "array",
                "items": field,
                "description": "The invalid fields, on 400 only.",
            },
            **warnings,
            "requestId": {**text, "description": "Send this id when you report a problem."},
        },
    }
    return {"type": "object", "required": ["data"], "properties": {"data": data}}

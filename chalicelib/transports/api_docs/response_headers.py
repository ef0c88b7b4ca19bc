"""The headers of responses, as the OpenAPI document declares them."""

from collections.abc import Mapping
from typing import Any

from chalicelib.core.limits import RateLimitStatus
from chalicelib.core.operations import Operation
from chalicelib.core.principals import Audience

REF = "#/components/headers/"
REQUEST_ID, RETRY_AFTER, ALLOW, ETAG = "X-Request-Id", "Retry-After", "Allow", "ETag"
PREFERENCE_APPLIED, REPLAYED = "Preference-Applied", "Idempotency-Replayed"
RATE_LIMIT = tuple(RateLimitStatus(0, 0, 0).headers)
_COUNT = {"type": "integer", "minimum": 0}
_TEXT = {"type": "string"}
COMPONENTS: Mapping[str, Mapping[str, Any]] = {
    REQUEST_ID: {
        "description": "Id of the request. Send it when you report a problem.",
        "schema": _TEXT,
    },
    RETRY_AFTER: {"description": "Seconds to wait before another attempt.", "schema": _COUNT},
    ALLOW: {"description": "Methods that the path has.", "schema": _TEXT},
    PREFERENCE_APPLIED: {
        "description": "`handling=strict`, if the request has `Prefer: handling=strict`.",
        "schema": {**_TEXT, "enum": ["handling=strict"]},
    },
    REPLAYED: {
        "description": "`true`, if this is the stored response of an earlier call with the same "
        "idempotency key.",
        "schema": {**_TEXT, "enum": ["true"]},
    },
    ETAG: {
        "description": "Tag of the content. With it in `If-None-Match`, an unchanged response is "
        "304.",
        "schema": _TEXT,
    },
    **{
        name: {"description": f"{what} Absent without a limit.", "schema": _COUNT}
        for name, what in zip(
            RATE_LIMIT,
            (
                "Calls that the limit allows in its window.",
                "Calls that are left in the window.",
                "Seconds until the window ends.",
            ),
            strict=True,
        )
    },
}
# Statuses whose responses may tell when to try again: a request in progress, too many requests, a
# failed provider, an overload.
_RETRIED = {"409", "429", "502", "503"}


def refs(*names: str) -> dict[str, Any]:
    """Return the ``headers`` of a response."""
    return {name: {"$ref": f"{REF}{name}"} for name in names}


def of_success(operation: Operation) -> dict[str, Any]:
    """Return the headers of an operation's successful response."""
    names = [REQUEST_ID, PREFERENCE_APPLIED]
    if operation.is_cached or (operation.served_as and operation.served_as.is_calendar):
        names.append(ETAG)
    # The owner of a workspace can limit the calls of each key. What one visitor has left is not in
    # a response that others may get from a cache.
    if not operation.is_cached and (operation.limit or Audience.KEY in operation.audience):
        names += RATE_LIMIT
    if operation.accepts_idempotency_key:
        names.append(REPLAYED)
    return refs(*names)


def of_failure(status: str) -> dict[str, Any]:
    """Return the headers of a failed response."""
    names = [REQUEST_ID]
    if status in _RETRIED:
        names.append(RETRY_AFTER)
    if status == "429":
        names += RATE_LIMIT
    if status == "405":
        names.append(ALLOW)
    return refs(*names)

"""HTTP without a framework: a request, a response, and the rules every one of ours follows."""

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any
from uuid import uuid4

from pydantic_core import from_json

from chalicelib.core.errors import (
    AppError,
    InternalError,
    PayloadTooLargeError,
    UnsupportedMediaTypeError,
    ValidationError,
    envelope,
)

MAX_BODY_BYTES = 5_000_000
"""Lambda takes 6 MB, base64 included (contract, Envelope)."""
JSON_TYPE = "application/json"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request.

    Header names are lower-case; query values keep their repetitions; path values are decoded.
    """

    method: str
    route: str
    headers: Mapping[str, str]
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    path: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    client_ip: str = ""
    request_id: str = field(default_factory=lambda: str(uuid4()))


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response with its whole body."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    log: Mapping[str, Any] = field(default_factory=dict)
    """What the request's log line says beyond method, route and status."""


def failure(error: AppError, request_id: str, **headers: str) -> HttpResponse:
    """Return the answer to a failed request."""
    body = envelope(error, request_id)
    return HttpResponse(
        error.status,
        body,
        {"Content-Type": JSON_TYPE, **headers, **error.headers},
        {"code": error.code},
    )


def handle(request: HttpRequest, handler: Callable[[HttpRequest], HttpResponse]) -> HttpResponse:
    """Run a handler.

    Whatever happens, the answer is an envelope with a request id, and one line is logged.
    """
    started = time.perf_counter()
    try:
        response = handler(request)
    except AppError as error:
        response = failure(error, request.request_id)
    except Exception:
        log.exception(
            "a handler crashed", extra={"requestId": request.request_id, "route": request.route}
        )
        response = failure(InternalError(), request.request_id)
    log.info(
        "request",
        extra={
            "requestId": request.request_id,
            "method": request.method,
            "route": request.route,
            "status": response.status,
            "ms": round((time.perf_counter() - started) * 1000, 1),
            **response.log,
        },
    )
    headers = {**response.headers, "X-Request-Id": request.request_id, "Cache-Control": "no-store"}
    return HttpResponse(response.status, response.body, headers)


def check_body(request: HttpRequest, *others: str) -> None:
    """Refuse bodies that are too large or not JSON, before anything else is looked at.

    ``others`` are content types that are taken, too.

    Raises:
        PayloadTooLargeError: more than 5 MB.
        UnsupportedMediaTypeError: another content type; none at all counts as JSON.
    """
    check_size(request)
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if request.body and coding != "identity":
        msg = f'The body is encoded as "{coding[:80]}". Send it plain, without Content-Encoding.'
        raise UnsupportedMediaTypeError(msg)
    kind = media_type(request)
    if (
        request.body
        and kind not in {JSON_TYPE, *others}
        and not (kind.startswith("application/") and kind.endswith("+json"))
    ):
        msg = f'The body is of type "{kind[:80]}". Send JSON, as Content-Type: application/json.'
        raise UnsupportedMediaTypeError(msg)


def media_type(request: HttpRequest) -> str:
    """Return the type of a request's body without parameters; none counts as JSON."""
    return request.headers.get("content-type", JSON_TYPE).partition(";")[0].strip().lower()


def check_size(request: HttpRequest) -> None:
    """Refuse a body over the limit.

    Raises:
        PayloadTooLargeError: more than 5 MB.
    """
    if len(request.body) > MAX_BODY_BYTES:
        raise body_too_large(len(request.body))


def body_too_large(size: int, limit: int = MAX_BODY_BYTES) -> PayloadTooLargeError:
    """Return the error for a body over the limit."""
    return PayloadTooLargeError(
        f"The body has {size:,} bytes; the limit is {limit:,}. Send less at once."
    )


_MAY_OVERFLOW = re.compile(rb"[0-9][eE]\+?0*[0-9]{2}|[0-9]{200}")
"""What a number too large for a float looks like; bodies without it need no second look."""


def parse_json(body: bytes) -> Any:  # noqa: ANN401  any JSON value
    """Parse JSON.

    Raises:
        ValueError: malformed, or with NaN, an infinity, a lone surrogate or a number out of range.
    """
    value = from_json(body, allow_inf_nan=False)
    if _MAY_OVERFLOW.search(body) and not _finite(value):
        raise ValueError("number out of range")
    return value


def _finite(value: object) -> bool:
    match value:
        case float():
            return isfinite(value)
        case dict():
            return all(map(_finite, value.values()))
        case list():
            return all(map(_finite, value))
        case _:
            return True


def json_object(body: bytes) -> dict[str, Any]:
    """Parse a body that must be a JSON object; an empty one counts as ``{}``.

    Raises:
        ValidationError: malformed JSON (NaN, infinities and lone surrogates included) or another
        kind of value.
    """
    if not body.strip():
        return {}
    try:
        value = parse_json(body)
    except ValueError as error:
        msg = f"The body is not valid JSON: {error}."
        raise ValidationError(msg) from None
    if not isinstance(value, dict):
        what = "an array" if isinstance(value, list) else "a bare value"
        msg = f"The body must be a JSON object, such as {{}}; it is {what}."
        raise ValidationError(msg)
    return value

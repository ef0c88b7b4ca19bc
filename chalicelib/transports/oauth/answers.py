"""Responses of the OAuth endpoints that programs call, in the JSON of RFC 6749.

They do not use the envelope. A failure has ``error`` and ``error_description`` (RFC 6749, 5.2; RFC
7591, 3.2.2).
"""

import logging
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from pydantic_core import to_json

from chalicelib.core.errors import AppError, InternalError, ValidationError, log_fields
from chalicelib.domains.oauth.rules.errors import ErrorCode, OAuthError
from chalicelib.transports import form_data
from chalicelib.transports.http import (
    JSON_TYPE,
    MAX_PUBLIC_BODY_BYTES,
    HttpRequest,
    HttpResponse,
    check_size,
    media_type,
)

REPEATABLE = frozenset({"resource"})  # Parameters that a request may repeat (RFC 8707, 2).
# Headers of every response (RFC 6749, 5.1).
_HEADERS = {"Cache-Control": "no-store", "Pragma": "no-cache"}
# Characters that an ``error_description`` cannot have (RFC 6749, 5.2).
_NOT_DESCRIBABLE = re.compile(r"[^ !#-\[\]-~]")

Handler = Callable[[HttpRequest], HttpResponse]

log = logging.getLogger(__name__)


def json_answer(content: Mapping[str, Any], status: int = 200) -> HttpResponse:
    """Return a response that no cache stores."""
    return HttpResponse(status, to_json(content), {"Content-Type": JSON_TYPE, **_HEADERS})


def failures_as_json(handler: Handler, invalid: ErrorCode = "invalid_request") -> Handler:
    """Return a handler that returns failures as RFC 6749 defines them.

    ``invalid`` is the code for input that cannot be read.
    """

    def run(request: HttpRequest) -> HttpResponse:
        try:
            return handler(request)
        except AppError as error:
            return _failure(error, invalid, request)
        except Exception:
            log.exception("a handler crashed", extra={"requestId": request.request_id})
            return _failure(InternalError(), invalid, request)

    return run


def _failure(error: AppError, invalid: ErrorCode, request: HttpRequest) -> HttpResponse:
    code = _code(error, invalid)
    content = {"error": code, "error_description": describe(error.message)}
    answer = json_answer(content, error.status)
    headers = {**answer.headers, **error.headers}
    if code == "invalid_client" and "authorization" in request.headers:
        headers["WWW-Authenticate"] = "Basic"  # RFC 6749, 5.2
    return answer._replace(headers=headers, log={**log_fields(error), "error": code})


def _code(error: AppError, invalid: ErrorCode) -> ErrorCode:
    if isinstance(error, OAuthError):
        return error.error
    if error.status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}:
        return "temporarily_unavailable"
    return invalid if error.status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error"


def describe(message: str) -> str:
    """Return a message with the characters that an ``error_description`` may have."""
    return _NOT_DESCRIBABLE.sub("'", message)


def read_form(request: HttpRequest) -> dict[str, str]:
    """Return a form's parameters. Empty ones count as omitted (RFC 6749, 3.2).

    Raises:
        PayloadTooLargeError: the body has more than 32 KB.
        OAuthError: the body is not an urlencoded form, or repeats a parameter.
    """
    check_size(request, MAX_PUBLIC_BODY_BYTES)
    if media_type(request) != form_data.URLENCODED:
        msg = f"expected a body of the type {form_data.URLENCODED}, received another type."
        raise OAuthError("invalid_request", msg)
    try:
        fields = form_data.read_fields(request)
    except ValidationError as error:
        raise OAuthError("invalid_request", error.message) from None
    return single_values(fields)


def single_values(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return parameters that have a value, each with one value.

    Raises:
        OAuthError: a parameter is repeated (RFC 6749, 3.1), or its values differ.
    """
    single: dict[str, str] = {}
    for name, values in parameters.items():
        provided = [value for value in values if value]
        if len(values) > 1 and (name not in REPEATABLE or len(set(provided)) > 1):
            msg = f"{name[:100]}: expected one value, received {len(values)}."
            code: ErrorCode = "invalid_target" if name in REPEATABLE else "invalid_request"
            raise OAuthError(code, msg)
        if provided:
            single[name] = provided[0]
    return single

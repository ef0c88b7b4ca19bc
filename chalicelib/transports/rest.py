"""REST routes of the registry, one for each operation, with the common envelope."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from pydantic_core import to_json

from chalicelib import SERVICE, VERSION
from chalicelib.application.invoke import Reply, invoke
from chalicelib.core import clock, idempotency_keys
from chalicelib.core.clock import iso
from chalicelib.core.errors import AppError, ValidationError
from chalicelib.core.operations import Operation
from chalicelib.core.principals import Audience, Principal
from chalicelib.core.wire import parsing
from chalicelib.transports import form_data, preferences
from chalicelib.transports.auth import EndedKeyError, identify
from chalicelib.transports.http import (
    CACHED,
    JSON_TYPE,
    MAX_BODY_BYTES,
    MAX_PUBLIC_BODY_BYTES,
    TEXT_TYPE,
    HttpRequest,
    HttpResponse,
    check_body,
    etag,
    failure,
    json_object,
    media_type,
)


def serve(operation: Operation, request: HttpRequest) -> HttpResponse:
    """Respond to a request to an operation's route."""
    # The body's size and type are checked first, then the key. ``invoke`` makes all other checks.
    try:
        check_input(operation, request)
    except AppError as error:
        if Audience.PUBLIC not in operation.audience:
            # Only the list of the key's errors needs the key now.
            with suppress(AppError):
                _store_failure(error, identify(operation, request), operation, request)
        raise
    try:
        principal = identify(operation, request)
    except EndedKeyError as error:
        _store_failure(error, None, operation, request)
        raise
    prefer = request.headers.get(preferences.HEADER)
    is_strict = prefer is not None and preferences.is_strict(prefer)
    try:
        if Audience.PUBLIC in operation.audience:
            reply = _call_publicly(operation, principal, request, is_strict=is_strict)
        else:
            read = partial(_read_input, operation, request)
            reply = call(operation, principal, request, read, is_strict=is_strict)
        response = success(reply)
        if operation.is_cached:
            response = _shared(response)
    except AppError as error:
        _store_failure(error, principal, operation, request)
        response = failure(error, request.request_id)
    except Exception as error:
        _store_failure(error, principal, operation, request)
        raise
    if is_strict:
        response = response.with_headers({**response.headers, **preferences.APPLIED})
    return response.with_log_fields(operation=operation.name, **principal.log_fields)


def _store_failure(
    error: Exception, principal: Principal | None, operation: Operation, request: HttpRequest
) -> None:
    from chalicelib.transports import key_failures  # saves cold starts the import

    route = f"{request.method} {request.route}"
    key_failures.store(
        error, principal, request_id=request.request_id, route=route, operation=operation.name
    )


def _call_publicly(
    operation: Operation, principal: Principal, request: HttpRequest, *, is_strict: bool
) -> Reply:
    # The body is read first, because it is small and the visitor needs no access.
    values, key = idempotency_keys.split(operation, _read_input(operation, request))
    return call(operation, principal, request, lambda: values, key, is_strict=is_strict)


def check_input(operation: Operation, request: HttpRequest) -> None:
    """Refuse a body of a size or type that the operation does not accept.

    Raises:
        PayloadTooLargeError: the body is over the limit, which is lower for visitors.
        UnsupportedMediaTypeError: the body has another type.
    """
    if operation.reads_query:
        return
    public = Audience.PUBLIC in operation.audience
    limit = MAX_PUBLIC_BODY_BYTES if public else MAX_BODY_BYTES
    advice = operation.if_too_large
    check_body(request, *body_types(operation), limit=limit, if_too_large=advice)


def call(  # noqa: PLR0913  the parts of a call
    operation: Operation,
    principal: Principal,
    request: HttpRequest,
    read: Callable[[], Mapping[str, Any]],
    key: str | None = None,
    *,
    is_strict: bool = False,
) -> Reply:
    """Run an operation for a request.

    The idempotency key is ``key``, or by default the key in the request's header. Raises AppError
    for any failure that a client can see.
    """
    return invoke(
        operation,
        principal,
        read,
        request_id=request.request_id,
        idempotency_key=request.idempotency_key if key is None else key,
        is_strict=is_strict,
    )


def success(reply: Reply) -> HttpResponse:
    """Return the response to a successful call."""
    headers = {"Content-Type": JSON_TYPE}
    if reply.rate_limit is not None:
        headers.update(reply.rate_limit.headers)
    if reply.replayed:
        headers["Idempotency-Replayed"] = "true"
    return HttpResponse(reply.status, reply.body, headers)


def _shared(response: HttpResponse) -> HttpResponse:
    # What one visitor has left of a limit is not for others, to whom a cache may pass the response.
    tag = etag(response.whole_body())
    headers = {"Content-Type": JSON_TYPE, "Cache-Control": CACHED, "ETag": tag, "Vary": "Prefer"}
    return response.with_headers(headers)


def _read_input(operation: Operation, request: HttpRequest) -> dict[str, Any]:
    # Path parameters override the query and the body.
    values: dict[str, Any]
    if operation.reads_query:
        _check_encoding(request.query)
        values = parsing.from_query(operation.input, request.query)
    elif media_type(request) not in _form_types(operation):
        values = json_object(request.body)
    elif operation.file_field:
        values = dict(form_data.read_file(request, operation.file_field))
    else:
        values = parsing.from_query(operation.input, form_data.read_fields(request))
    values.update(request.path)
    return values


_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def _check_encoding(query: Mapping[str, Sequence[str]]) -> None:
    # The gateway decodes the query, and inserts a replacement character for bytes that are not
    # UTF-8.
    for name, values in query.items():
        if _REPLACEMENT in "".join((name, *values)):
            msg = "expected percent-encoded UTF-8, such as %D1%91 for \u0451 and %25 for %"
            raise ValidationError.of(name, message=msg)


def body_types(operation: Operation) -> tuple[str, ...]:
    """Return the content types that an operation accepts besides ``application/json``."""
    # Visitors' JSON may be sent as plain text, which needs no preflight request (Fetch).
    forms = _form_types(operation)
    return (TEXT_TYPE, *forms) if Audience.PUBLIC in operation.audience else forms


def _form_types(operation: Operation) -> tuple[str, ...]:
    if operation.file_field:
        return (form_data.MULTIPART,)
    return form_data.TYPES if operation.form else ()


def health(_request: HttpRequest) -> HttpResponse:
    """Report that the service is running, and whether its SQLite has full-text search."""
    from chalicelib.domains.knowledge.flows.index_file import has_fts5

    now = iso(clock.now())
    about = {"service": SERVICE, "version": VERSION, "time": now, "fullTextSearch": has_fts5()}
    data = {"status": True, **about}
    return HttpResponse(200, to_json({"data": data}), {"Content-Type": JSON_TYPE})

"""The registry as REST routes: each operation answers on its own route, in the common envelope."""

from functools import cache
from typing import Any

from pydantic_core import to_json

from chalicelib import SERVICE, VERSION
from chalicelib.core import clock, parsing
from chalicelib.core.errors import AppError
from chalicelib.core.operations import Operation
from chalicelib.core.schema import iso
from chalicelib.flows.invoke import invoke
from chalicelib.transports import form_data, openapi
from chalicelib.transports.auth import authenticate
from chalicelib.transports.http import (
    JSON_TYPE,
    HttpRequest,
    HttpResponse,
    check_body,
    etag,
    failure,
    json_object,
    media_type,
)


def serve(operation: Operation, request: HttpRequest) -> HttpResponse:
    """Answer a request to an operation's route.

    Checks in the contract's order: body size and type, key; ``invoke`` does the rest.
    """
    if not operation.reads_query:
        check_body(request, *sorted(_form_types(operation)), if_too_large=operation.if_too_large)
    principal = authenticate(request.headers, request.client_ip)
    about = {"operation": operation.name, **principal.log_fields}
    try:
        reply = invoke(
            operation,
            principal,
            lambda: _input(operation, request),
            request_id=request.request_id,
            idempotency_key=request.headers.get("idempotency-key"),
        )
    except AppError as error:
        refused = failure(error, request.request_id)
        return HttpResponse(refused.status, refused.body, refused.headers, {**refused.log, **about})
    headers = {"Content-Type": JSON_TYPE}
    if reply.rate_limit is not None:
        headers.update(reply.rate_limit.headers)
    if reply.replayed:
        headers["Idempotency-Replayed"] = "true"
    return HttpResponse(200, reply.body, headers, about)


def _input(operation: Operation, request: HttpRequest) -> dict[str, Any]:
    """Read the query or the body; path parameters win over both."""
    if operation.reads_query:
        return {**parsing.from_query(operation.input, request.query), **request.path}
    if media_type(request) not in _form_types(operation):
        return {**json_object(request.body), **request.path}
    if operation.file_field:
        return {**form_data.read_file(request, operation.file_field), **request.path}
    return {**parsing.from_query(operation.input, form_data.read_fields(request)), **request.path}


def _form_types(operation: Operation) -> frozenset[str]:
    """Return the types of bodies that an operation takes beside JSON."""
    if operation.file_field:
        return frozenset({form_data.MULTIPART})
    return form_data.TYPES if operation.form else frozenset()


def health(_request: HttpRequest) -> HttpResponse:
    """Say that the service is up."""
    now = iso(clock.now())
    data = {"status": True, "service": SERVICE, "version": VERSION, "time": now}
    return HttpResponse(200, to_json({"data": data}), {"Content-Type": JSON_TYPE})


@cache
def _openapi() -> HttpResponse:
    body = to_json(openapi.document())
    headers = {"Content-Type": JSON_TYPE, "ETag": etag(body), "Cache-Control": "no-cache"}
    return HttpResponse(200, body, headers)


def openapi_json(_request: HttpRequest) -> HttpResponse:
    """Return the OpenAPI document, made once per process; a copy is asked after before each use."""
    return _openapi()


PUBLIC_ROUTES = {"/api/health": health, "/api/openapi.json": openapi_json}
"""GET routes that need no key and are no operations."""

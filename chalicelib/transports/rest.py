"""The registry as REST routes: each operation answers on its own route, in the common envelope."""

import hashlib
from functools import cache
from typing import Any

from pydantic_core import to_json

from chalicelib import SERVICE, VERSION
from chalicelib.core import clock, parsing
from chalicelib.core.errors import AppError
from chalicelib.core.operations import Operation
from chalicelib.core.schema import iso
from chalicelib.flows.invoke import invoke
from chalicelib.transports import multipart, openapi
from chalicelib.transports.auth import authenticate
from chalicelib.transports.http import (
    JSON_TYPE,
    HttpRequest,
    HttpResponse,
    check_body,
    failure,
    json_object,
    media_type,
)


def serve(operation: Operation, request: HttpRequest) -> HttpResponse:
    """Answer a request to an operation's route.

    Checks in the contract's order: body size and type, key; ``invoke`` does the rest.
    """
    if not operation.reads_query:
        check_body(request, *([multipart.MULTIPART] if operation.file_field else []))
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
    if operation.file_field and media_type(request) == multipart.MULTIPART:
        return {**multipart.read(request, operation.file_field), **request.path}
    return {**json_object(request.body), **request.path}


def health(_request: HttpRequest) -> HttpResponse:
    """Say that the service is up."""
    now = iso(clock.now())
    data = {"status": True, "service": SERVICE, "version": VERSION, "time": now}
    return HttpResponse(200, to_json({"data": data}), {"Content-Type": JSON_TYPE})


@cache
def _openapi() -> tuple[bytes, str]:
    body = to_json(openapi.document())
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def openapi_json(request: HttpRequest) -> HttpResponse:
    """Return the OpenAPI document, made once per process."""
    body, etag = _openapi()
    if request.headers.get("if-none-match") == etag:
        return HttpResponse(304, b"", {"ETag": etag})
    return HttpResponse(200, body, {"Content-Type": JSON_TYPE, "ETag": etag})


PUBLIC_ROUTES = {"/api/health": health, "/api/openapi.json": openapi_json}
"""GET routes that need no key and are no operations."""

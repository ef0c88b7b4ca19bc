"""What the pages of visitors read from a request, and the operations that they call for it."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from chalicelib.application.invoke import invoke
from chalicelib.core.operations import REGISTRY
from chalicelib.transports.auth import visitor
from chalicelib.transports.http import HttpRequest


def call(
    request: HttpRequest, operation: str, arguments: Mapping[str, Any], key: str = ""
) -> dict[str, Any]:
    """Call an operation for a visitor and return ``data`` of its envelope."""
    reply = invoke(
        REGISTRY[operation],
        visitor(request),
        lambda: arguments,
        request_id=request.request_id,
        idempotency_key=key or None,
    )
    data: dict[str, Any] = from_json(reply.body)["data"]
    return data


def query_value(request: HttpRequest, name: str) -> str:
    """Return the last value of a query parameter, or "" if it is missing."""
    return (list(request.query.get(name, ())) or [""])[-1]

"""What the pages of visitors read from a request, and the operations that they call for it."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from chalicelib.application.invoke import invoke
from chalicelib.core.operations import REGISTRY
from chalicelib.transports.auth import visitor
from chalicelib.transports.http import HttpRequest

MAX_DIGITS = 12  # Maximum digits of a number in a form.


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


def find_number(text: str) -> int | None:
    """Return the number of kopecks or minutes in a field of a form, or None."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else None

"""Calendar files and feeds, served with their own media type instead of the envelope."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic_core import from_json

from chalicelib.core.operations import Operation
from chalicelib.transports import rest
from chalicelib.transports.http import HttpRequest, HttpResponse, etag

MEDIA_TYPE = "text/calendar"
MAX_TAGS = 1000  # characters of ``If-None-Match``


def responses() -> Mapping[str, Any]:
    """Return the responses in the OpenAPI document, which adds an example of each operation."""
    content = {MEDIA_TYPE: {"schema": {"type": "string"}}}
    return {"200": {"description": "The file.", "content": content}}


def serve_file(operation: Operation, request: HttpRequest) -> HttpResponse:
    """Return the file of a booking, or a failure in the envelope."""
    response = rest.serve(operation, request)
    if response.status != 200:  # noqa: PLR2004  the only success
        return response
    body = _data(response)["content"].encode()
    # A calendar that subscribes to this URL fetches it again and receives changes to the booking.
    return _file(response, body, "booking.ics", etag(body))


def serve_feed(operation: Operation, request: HttpRequest) -> HttpResponse:
    """Return a feed, 304 to a caller whose copy is current, or a failure in the envelope."""
    # The operation gets the tags, because a current copy needs none of the bookings' records.
    # A longer header than any program sends counts as none.
    tags = request.headers.get("if-none-match", "")
    query = {"ifNoneMatch": [tags]} if 0 < len(tags) <= MAX_TAGS else request.query
    response = rest.serve(operation, replace(request, query=query))
    # Nobody finds a calendar with a search engine, whatever the answer.
    response = response.with_headers({**response.headers, "X-Robots-Tag": "noindex"})
    if response.status != 200:  # noqa: PLR2004  as above
        return response
    data = _data(response)
    if data["content"] is not None:
        return _file(response, data["content"].encode(), "calendar.ics", data["etag"])
    response = _file(response, b"", "calendar.ics", data["etag"])
    headers = {name: value for name, value in response.headers.items() if name != "Content-Type"}
    return response._replace(status=304, headers=headers)


def _data(response: HttpResponse) -> dict[str, Any]:
    # A calendar program expects the bare file and cannot read the envelope.
    data: dict[str, Any] = from_json(response.whole_body())["data"]
    return data


def _file(response: HttpResponse, body: bytes, name: str, tag: str) -> HttpResponse:
    headers = {
        **response.headers,
        "Content-Type": f"{MEDIA_TYPE}; charset=utf-8",
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "private, no-cache",
        "ETag": tag,
    }
    return response._replace(body=body, headers=headers)

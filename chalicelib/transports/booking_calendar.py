"""A booking's calendar file, as calendars fetch it: its own media type in place of an envelope."""

from pydantic_core import from_json

from chalicelib.core.operations import Operation
from chalicelib.transports import rest
from chalicelib.transports.http import HttpRequest, HttpResponse, etag

MEDIA_TYPE = "text/calendar"


def serve(operation: Operation, request: HttpRequest) -> HttpResponse:
    """Answer with the file; with the envelope if there is none.

    A calendar that subscribes to its address asks again, and hears of what has changed.
    """
    response = rest.serve(operation, request)
    if response.status != 200:  # noqa: PLR2004  the one success
        return response
    body = from_json(response.whole_body())["data"]["content"].encode()
    headers = {
        **response.headers,
        "Content-Type": f"{MEDIA_TYPE}; charset=utf-8",
        "Content-Disposition": 'attachment; filename="booking.ics"',
        "Cache-Control": "private, no-cache",
        "ETag": etag(body),
    }
    return response._replace(body=body, headers=headers)

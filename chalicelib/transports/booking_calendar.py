"""A booking's calendar file, served with its own media type instead of the envelope."""

from pydantic_core import from_json

from chalicelib.core.operations import Operation
from chalicelib.transports import rest
from chalicelib.transports.http import HttpRequest, HttpResponse, etag

MEDIA_TYPE = "text/calendar"


def serve(operation: Operation, request: HttpRequest) -> HttpResponse:
    """Return the file, or a failure in the envelope."""
    response = rest.serve(operation, request)
    if response.status != 200:  # noqa: PLR2004  the only success
        return response
    # A calendar program expects the bare file and cannot read the envelope.
    body = from_json(response.whole_body())["data"]["content"].encode()
    headers = {
        **response.headers,
        "Content-Type": f"{MEDIA_TYPE}; charset=utf-8",
        "Content-Disposition": 'attachment; filename="booking.ics"',
        # A calendar that subscribes to this URL fetches it again and receives changes to the
        # booking.
        "Cache-Control": "private, no-cache",
        "ETag": etag(body),
    }
    return response._replace(body=body, headers=headers)

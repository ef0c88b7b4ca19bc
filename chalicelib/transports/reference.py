"""The reference: the OpenAPI document as it is answered, from the manifest or made here."""

from functools import cache

from pydantic_core import to_json

from chalicelib.core import manifest
from chalicelib.core.settings import settings
from chalicelib.transports.http import JSON_TYPE, HttpRequest, HttpResponse, etag

SERVER = "https://server.invalid"
"""Stands for the server's base URL where that is not known: in the manifest."""


def openapi_json(_request: HttpRequest) -> HttpResponse:
    """Return the OpenAPI document, made once per process; a copy is asked after before each use."""
    return _response()


@cache
def _response() -> HttpResponse:
    server = settings().public_url
    if (made := manifest.openapi()) is not None:
        body = made.replace(to_json(SERVER), to_json(server))
    else:
        from chalicelib.transports import openapi  # noqa: PLC0415  it imports all there is

        body = to_json(openapi.document(server))
    headers = {"Content-Type": JSON_TYPE, "ETag": etag(body), "Cache-Control": "no-cache"}
    return HttpResponse(200, body, headers)

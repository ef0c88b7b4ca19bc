"""Discovery documents for OAuth clients (RFC 9728, RFC 8414)."""

from typing import Any

from pydantic_core import to_json

from chalicelib.domains.oauth.rules import resources
from chalicelib.transports import edge
from chalicelib.transports.http import (
    JSON_TYPE,
    HttpRequest,
    HttpResponse,
    etag,
)

# A change of the service's address reaches clients after five minutes.
CACHE = "public, max-age=300"


def resource(request: HttpRequest) -> HttpResponse:
    """Return the metadata of the tool server."""
    return _document(resources.resource_metadata(edge.authority(request.headers)))


def server(request: HttpRequest) -> HttpResponse:
    """Return the metadata of the authorization server."""
    return _document(resources.server_metadata(edge.authority(request.headers)))


def keys(_: HttpRequest) -> HttpResponse:
    """Return the service's public keys, an empty set (RFC 7517, 5)."""
    return _document({"keys": []})


def _document(content: dict[str, Any]) -> HttpResponse:
    body = to_json(content)
    headers = {"Content-Type": JSON_TYPE, "Cache-Control": CACHE, "ETag": etag(body)}
    return HttpResponse(200, body, headers)

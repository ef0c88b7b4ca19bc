"""Discovery documents and the registration endpoint for OAuth clients.

Documents: RFC 9728 and RFC 8414. Registration: RFC 7591, 3.
"""

from typing import Any

from pydantic_core import to_json

from chalicelib.core.errors import ValidationError
from chalicelib.domains.oauth.rules import registration, resources
from chalicelib.domains.oauth.rules.errors import OAuthError
from chalicelib.transports import edge
from chalicelib.transports.http import (
    JSON_TYPE,
    MAX_PUBLIC_BODY_BYTES,
    HttpRequest,
    HttpResponse,
    check_body,
    etag,
    json_object,
)
from chalicelib.transports.oauth.answers import failures_as_json, json_answer

CACHE = "public, max-age=300"
"""A change of the service's address reaches clients after five minutes."""


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


_CREATED = 201


def register(request: HttpRequest) -> HttpResponse:
    """Return the id of a client, which contains its metadata."""
    return failures_as_json(_register, "invalid_client_metadata")(request)


def _register(request: HttpRequest) -> HttpResponse:
    check_body(request, limit=MAX_PUBLIC_BODY_BYTES)
    try:
        metadata = json_object(request.body)
    except ValidationError as error:
        raise OAuthError("invalid_client_metadata", error.message) from None
    return json_answer(registration.register(metadata), _CREATED)

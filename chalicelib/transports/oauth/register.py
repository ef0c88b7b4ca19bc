"""The registration endpoint for OAuth clients (RFC 7591, 3)."""

from chalicelib.core.errors import ValidationError
from chalicelib.domains.oauth.rules import registration
from chalicelib.domains.oauth.rules.errors import OAuthError
from chalicelib.transports.http import (
    MAX_PUBLIC_BODY_BYTES,
    HttpRequest,
    HttpResponse,
    check_body,
    json_object,
)
from chalicelib.transports.oauth.answers import failures_as_json, json_answer

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

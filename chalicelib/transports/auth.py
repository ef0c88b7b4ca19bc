"""Identify the caller by an API key, a connected app's token, or as a visitor.

Authenticating an API key or an access token needs one strongly consistent read.
"""

from collections.abc import Mapping
from datetime import date

from chalicelib.core.errors import UnauthorizedError
from chalicelib.core.operations import Operation
from chalicelib.core.principals import (
    ApiKeyPrincipal,
    Audience,
    OAuthPrincipal,
    Principal,
    VisitorPrincipal,
)
from chalicelib.core.scopes import expand
from chalicelib.domains.identity.store import api_keys, connections
from chalicelib.domains.identity.store.api_keys import ApiKeyRow
from chalicelib.engine import visitors
from chalicelib.lib import tokens
from chalicelib.transports.http import HttpRequest, check_sender


class EndedKeyError(UnauthorizedError):
    """The key of a workspace is revoked or expired, which the caller is not told."""

    def __init__(self, message: str, *, key: str, row: ApiKeyRow) -> None:
        super().__init__(message, key=key)
        self.workspace_id, self.key_id = row.workspace_id, row.key_id


def bearer_token(headers: Mapping[str, str]) -> str:
    """Return the token of the ``Authorization`` header, or raise UnauthorizedError."""
    value = headers.get("authorization", "")
    scheme, _, token = value.strip().partition(" ")
    if not value:
        msg = "Expected an API key, received none. Send the header Authorization: Bearer <API_KEY>."
        raise UnauthorizedError(msg, key="missing_key")
    if scheme.lower() != "bearer" or not token.strip():
        msg = "Authorization: expected the form Bearer <API_KEY>, received another one."
        raise UnauthorizedError(msg, key="wrong_scheme")
    return token.strip()


def authenticate(headers: Mapping[str, str], client_ip: str) -> ApiKeyPrincipal:
    """Return the principal of an API key. Names in ``headers`` are lower-case.

    Raises:
        UnauthorizedError: the key is missing or malformed, or unknown, revoked or expired. The
            message does not reveal which of the last three.
    """
    token = bearer_token(headers)
    if token.startswith(tokens.OAUTH_PREFIXES):
        msg = (
            "Expected an API key, received an OAuth token, which is valid only for POST "
            "/api/mcp. Send an API key."
        )
        raise UnauthorizedError(msg, key="oauth_token")
    return _key_principal(token, client_ip=client_ip)


def _key_principal(token: str, *, client_ip: str) -> ApiKeyPrincipal:
    key = api_keys.find_by_token(token)
    if key is None or not key.live:
        msg = (
            "This API key is mistyped, revoked or expired. Check the key, or create a new one "
            "in the console."
        )
        if key is not None:
            raise EndedKeyError(msg, key="invalid_key", row=key)
        raise UnauthorizedError(msg, key="invalid_key")
    api_keys.touch(key)
    attributes = key.attribute_values  # PynamoDB's attribute access is ten times slower.
    limit = attributes.get("calls_per_minute")
    return ApiKeyPrincipal(
        workspace_id=attributes["workspace_id"],
        account_id=attributes["account_id"],
        role=attributes["role"],
        plan=attributes["plan"],
        scopes=expand(tuple(attributes["scopes"])),
        calls_per_minute=None if limit is None else int(limit),
        key_id=attributes["key_id"],
        client_ip=client_ip,
    )


def authenticate_tool_call(headers: Mapping[str, str], client_ip: str) -> ApiKeyPrincipal:
    """Return the principal of an API key or OAuth access token, which only tool calls take.

    Raises:
        UnauthorizedError: as ``authenticate``, or the token is unknown or expired, or its
            connection ended.
    """
    token = bearer_token(headers)
    if not token.startswith(tokens.OAUTH_PREFIXES):
        return _key_principal(token, client_ip=client_ip)
    token_match = connections.authenticate(token)
    if token_match is None:
        msg = (
            "This access token has expired, or its app was disconnected. Refresh the token, or "
            "connect the app again."
        )
        raise UnauthorizedError(msg, key="token_expired")
    connections.touch(token_match.connection)
    attributes = token_match.connection.attribute_values  # As above.
    return OAuthPrincipal(
        workspace_id=attributes["workspace_id"],
        account_id=attributes["account_id"],
        role=attributes["role"],
        plan=attributes["plan"],
        scopes=expand(tuple(token_match.scopes)),
        key_id=token_match.connection.id,
        client_name=attributes["client_name"],
        client_ip=client_ip,
    )


def identify(operation: Operation, request: HttpRequest) -> Principal:
    """Return the caller: a visitor of a public operation, else as ``authenticate`` does."""
    if Audience.PUBLIC in operation.audience:
        return visitor(request)
    return authenticate(request.headers, request.client_ip)


def visitor(request: HttpRequest, day: date | None = None) -> VisitorPrincipal:
    """Return a visitor by hashes of the client IP, which change each ``day`` (default: in UTC).

    The result does not contain the IP. Raises ValidationError for requests that this service sends.
    """
    check_sender(request)
    return VisitorPrincipal(
        visitor=visitors.visitor_hash(request.client_ip, day),
        network=visitors.network_hash(request.client_ip),
    )

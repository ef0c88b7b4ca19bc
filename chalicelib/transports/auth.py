"""Authenticates a request: an API key, in one consistent read, or a visitor."""

from collections.abc import Mapping
from datetime import date

from chalicelib.core.errors import UnauthorizedError
from chalicelib.core.operations import Operation
from chalicelib.core.principals import ApiKeyPrincipal, Audience, Principal, VisitorPrincipal
from chalicelib.core.scopes import expand
from chalicelib.domains.identity.store import api_keys
from chalicelib.engine import visitors
from chalicelib.transports.http import HttpRequest


def bearer_token(headers: Mapping[str, str]) -> str:
    """Return the token of the ``Authorization`` header.

    Raises:
        UnauthorizedError: the header is missing, or not in the form ``Bearer <API_KEY>``.
    """
    value = headers.get("authorization", "")
    scheme, _, token = value.strip().partition(" ")
    if not value:
        msg = "No API key. Send the header Authorization: Bearer <API_KEY>."
        raise UnauthorizedError(msg)
    if scheme.lower() != "bearer" or not token.strip():
        msg = "The Authorization header is not of the form: Bearer <API_KEY>."
        raise UnauthorizedError(msg)
    return token.strip()


def authenticate(headers: Mapping[str, str], client_ip: str) -> ApiKeyPrincipal:
    """Return the principal of an API key. Names in ``headers`` are lower-case.

    Raises:
        UnauthorizedError: the key is missing, malformed, unknown, revoked or expired. All cases but
            the first have the same answer.
    """
    key = api_keys.authenticate(bearer_token(headers))
    if key is None:
        msg = "This API key is not valid: mistyped, revoked or expired. Create one in the console."
        raise UnauthorizedError(msg)
    api_keys.touch(key)
    stored = key.attribute_values  # PynamoDB's attributes are ten times slower.
    return ApiKeyPrincipal(
        workspace_id=stored["workspace_id"],
        account_id=stored["account_id"],
        role=stored["role"],
        plan=stored["plan"],
        scopes=expand(tuple(stored["scopes"])),
        key_id=stored["key_id"],
        client_ip=client_ip,
    )


def identify(operation: Operation, request: HttpRequest) -> Principal:
    """Return the caller of an operation's route: a visitor if it is public, else the key's holder.

    Raises:
        UnauthorizedError: as ``authenticate`` does.
    """
    if Audience.PUBLIC in operation.audience:
        return visitor(request)
    return authenticate(request.headers, request.client_ip)


def visitor(request: HttpRequest, day: date | None = None) -> VisitorPrincipal:
    """Return a visitor, identified by a hash of the client IP. The IP itself goes no further.

    The hash changes every day: at midnight UTC, or with ``day`` where that is given.
    """
    return VisitorPrincipal(visitor=visitors.visitor_hash(request.client_ip, day))

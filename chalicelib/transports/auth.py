"""From a request to a principal: a key, in one consistent read, or a visitor."""

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
        UnauthorizedError: there is none, or not in the form ``Bearer <API_KEY>``.
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
    """Return who calls with a key. Names in ``headers`` are lower-case.

    Raises:
        UnauthorizedError: missing, malformed, unknown, revoked or expired key: one answer for all
        but the first.
    """
    key = api_keys.authenticate(bearer_token(headers))
    if key is None:
        msg = "This API key is not valid: mistyped, revoked or expired. Create one in the console."
        raise UnauthorizedError(msg)
    api_keys.touch(key)
    stored = key.attribute_values  # PynamoDB's attribute access costs ten times a dictionary's.
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
    """Return who calls an operation's route: anybody a public one, else the holder of a key.

    Raises:
        UnauthorizedError: as ``authenticate`` does.
    """
    if Audience.PUBLIC in operation.audience:
        return visitor(request)
    return authenticate(request.headers, request.client_ip)


def visitor(request: HttpRequest, day: date | None = None) -> VisitorPrincipal:
    """Return a visitor; what is known of the client IP is its hash, and the IP goes no further.

    The hash is that of the UTC day, or of the ``day`` that it is where it counts.
    """
    return VisitorPrincipal(visitor=visitors.visitor_hash(request.client_ip, day))

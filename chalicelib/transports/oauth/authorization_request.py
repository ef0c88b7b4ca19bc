"""Check an authorization request's parameters, in the order that decides who gets the error.

The client and its redirect URI come first. Until both are known, nothing may be sent to the URI.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from chalicelib.core.scopes import PATTERNS, expand
from chalicelib.domains.oauth.rules import resources
from chalicelib.domains.oauth.rules.client_metadata import Client
from chalicelib.domains.oauth.rules.errors import OAuthError
from chalicelib.transports import edge
from chalicelib.transports.http import HttpRequest
from chalicelib.transports.oauth.answers import single_values

Query = Mapping[str, Sequence[str]]
# The format of a challenge of the method S256 (RFC 7636, 4.2).
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


@dataclass(frozen=True)
class ClientRequest:
    """A client, and the checked URI of the response."""

    client: Client
    redirect_uri: str
    state: str  # returned unchanged
    issuer: str  # identifier of the authorization server that the client uses


@dataclass(frozen=True)
class AuthorizationRequest:
    client: ClientRequest
    scopes: frozenset[str]  # which the client requests and the user may grant
    code_challenge: str


def read_client(http: HttpRequest, find: Callable[[str], Client]) -> ClientRequest:
    """Return the client of a request.

    Raises:
        OAuthError: the client is unknown, or has not registered the redirect URI. Neither error may
            be sent by a redirect (RFC 6749, 4.1.2.1).
    """
    query = http.query
    client_fields = {name: query.get(name, ()) for name in ("client_id", "redirect_uri")}
    parameters = single_values(client_fields)
    if "client_id" not in parameters:
        raise OAuthError("invalid_request", "client_id: expected the client's id, received none.")
    client = find(parameters["client_id"])
    redirect_uri = parameters.get("redirect_uri") or client.only_redirect_uri
    if redirect_uri is None or not client.allows(redirect_uri):
        received = f"{redirect_uri:.200}" if redirect_uri else "none"
        registered = ", ".join(client.redirect_uris)
        msg = f"redirect_uri: expected a URI that the app has registered ({registered:.400}), "
        raise OAuthError("invalid_request", f"{msg}received {received}.")
    # No parameter may be repeated (RFC 6749, 3.1), so no value of a repeated one is returned.
    states = query.get("state", ())
    state = states[0] if len(states) == 1 else ""
    issuer = resources.issuer(edge.authority(http.headers))
    return ClientRequest(client, redirect_uri, state, issuer)


def parse_request(client: ClientRequest, query: Query, *, admin: bool) -> AuthorizationRequest:
    """Return a request, with the scopes that an account of this role may grant.

    A request without scopes is for all scopes in the metadata. Unknown scopes are left out, and a
    request with no other scopes is for all that read. Raises OAuthError, which its client receives.
    """
    parameters = single_values(query)
    if (kind := parameters.get("response_type")) != "code":
        msg = f"response_type: expected code, received {kind or 'none':.100}."
        code = "unsupported_response_type" if kind else "invalid_request"
        raise OAuthError(code, msg)  # type: ignore[arg-type]  # both are codes
    if (mode := parameters.get("response_mode", "query")) != "query":
        msg = f"response_mode: expected query, received {mode:.100}."
        raise OAuthError("invalid_request", msg)
    challenge = parameters.get("code_challenge", "")
    # The method ``plain`` would give an observer of the request the verifier (RFC 9700, 2.1.1).
    if parameters.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(challenge):
        msg = (
            "code_challenge: expected 43 characters with code_challenge_method=S256 (RFC 7636), "
            "which are required."
        )
        raise OAuthError("invalid_request", msg)
    resources.check_resource(parameters.get("resource", ""))
    return AuthorizationRequest(client, _scopes(parameters.get("scope"), admin=admin), challenge)


def _scopes(text: str | None, *, admin: bool) -> frozenset[str]:
    requested = set((text or "").split())
    if not requested:
        return frozenset(map(str, resources.SCOPES))
    known_scopes = requested & {*PATTERNS, *map(str, resources.REQUESTABLE)}
    if not known_scopes:
        return frozenset(str(scope) for scope in resources.SCOPES if scope.endswith(":read"))
    expanded = expand(tuple(sorted(known_scopes)))
    scopes = frozenset(str(scope) for scope in expanded if admin or not scope.admin_only)
    if not scopes:
        msg = f"scope: expected scopes from {' '.join(resources.SCOPES)}, received none of them."
        raise OAuthError("invalid_scope", msg)
    return scopes

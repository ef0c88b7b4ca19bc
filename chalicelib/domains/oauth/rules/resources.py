"""Describe the protected resource and its authorization server to clients."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from chalicelib import SERVICE
from chalicelib.core.scopes import Scope
from chalicelib.core.settings import settings
from chalicelib.domains.oauth.rules.client_metadata import AUTH_METHODS
from chalicelib.domains.oauth.rules.errors import OAuthError
from chalicelib.domains.oauth.rules.registration import GRANT_TYPES, RESPONSE_TYPES
from chalicelib.lib.origins import spellings

TOOL_SERVER = "/api/mcp"
AUTHORIZE, TOKEN, REGISTER, REVOKE = (
    f"/oauth/{name}" for name in ("authorize", "token", "register", "revoke")
)
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
SERVER_METADATA = "/.well-known/oauth-authorization-server"
KEYS = "/.well-known/jwks.json"
CODE_CHALLENGE_METHODS = ("S256",)
# Scopes that a client may request. Those that are granted by name are for keys: no tool needs them.
REQUESTABLE: tuple[Scope, ...] = tuple(scope for scope in Scope if not scope.by_name)
# Scopes in the metadata for clients. Scopes of the blog are for ADMIN accounts only.
SCOPES: tuple[Scope, ...] = tuple(scope for scope in REQUESTABLE if not scope.admin_only)
# Signatures of client assertions: by a key pair. ``none`` and shared secrets are excluded (RFC
# 8725, 3.1). So is ``EdDSA``, which RFC 9864 replaces by ``Ed25519``.
SIGNATURES = (
    *("ES256", "ES384", "ES512", "Ed25519"),
    *("PS256", "PS384", "PS512", "RS256", "RS384", "RS512"),
)


def issuer(authority: str = "") -> str:
    """Return the identifier of the authorization server.

    It is the same string in all responses. A client compares it with ``iss`` (RFC 9207, 2.4) and
    with its metadata (RFC 8414, 3.3). On the own machine it has the loopback name of the request's
    ``authority`` (host and port), because the client also compares the metadata with the URL that
    it was given.
    """
    own_issuers = issuers()
    return next((url for url in own_issuers if urlsplit(url).netloc == authority), own_issuers[0])


def issuers() -> tuple[str, ...]:
    """Return all identifiers of the server. A development server has one for each host name."""
    return spellings(settings().public_url)


def resource(authority: str = "") -> str:
    """Return the identifier of the tool server, for which tokens are issued (RFC 8707, 2)."""
    return issuer(authority) + TOOL_SERVER


def check_resource(requested: str) -> None:
    """Check that the ``resource`` of a request is empty or the tool server (RFC 8707, 2).

    Raises OAuthError ``invalid_target``, also for a fragment, which no resource may have.
    """
    known_resources = {_comparable(issuer_url + TOOL_SERVER) for issuer_url in issuers()}
    if requested and ("#" in requested or _comparable(requested) not in known_resources):
        msg = f"resource: expected {resource()}, received {requested[:200]}."
        raise OAuthError("invalid_target", msg)


def _comparable(uri: str) -> tuple[str, str, str]:
    # Clients add or leave out the query and the final slash.
    try:
        parts = urlsplit(uri)
    except ValueError:
        return "", "", uri
    return parts.scheme.lower(), parts.netloc.lower(), parts.path.removesuffix("/")


def resource_metadata(authority: str) -> dict[str, Any]:
    """Return the metadata of the tool server (RFC 9728, 2)."""
    return {
        "resource": resource(authority),
        "authorization_servers": [issuer(authority)],
        "scopes_supported": [scope.value for scope in SCOPES],
        "bearer_methods_supported": ["header"],
        "resource_name": SERVICE,
        "resource_documentation": f"{issuer(authority)}/api/docs/tool-server",
    }


def server_metadata(authority: str) -> dict[str, Any]:
    """Return the metadata of the authorization server (RFC 8414, 2)."""
    base = issuer(authority)
    return {
        "issuer": base,
        "authorization_endpoint": base + AUTHORIZE,
        "token_endpoint": base + TOKEN,
        "registration_endpoint": base + REGISTER,
        "revocation_endpoint": base + REVOKE,
        "jwks_uri": base + KEYS,
        # The service signs nothing and issues no id tokens. The official TypeScript SDK requires
        # the three fields about them in a document of OpenID Connect, which is the same document
        # here.
        "subject_types_supported": [],
        "id_token_signing_alg_values_supported": [],
        "scopes_supported": [scope.value for scope in SCOPES],
        "response_types_supported": list(RESPONSE_TYPES),
        "response_modes_supported": ["query"],
        "grant_types_supported": list(GRANT_TYPES),
        "code_challenge_methods_supported": list(CODE_CHALLENGE_METHODS),
        "token_endpoint_auth_methods_supported": list(AUTH_METHODS),
        "token_endpoint_auth_signing_alg_values_supported": list(SIGNATURES),
        "revocation_endpoint_auth_methods_supported": list(AUTH_METHODS),
        "revocation_endpoint_auth_signing_alg_values_supported": list(SIGNATURES),
        "client_id_metadata_document_supported": True,
        "authorization_response_iss_parameter_supported": True,
        "service_documentation": f"{base}/api/docs/tool-server",
    }


def challenge(authority: str = "", *, had_token: bool) -> str:
    """Return the ``WWW-Authenticate`` header of a refused call (RFC 9728, 5.1; RFC 6750, 3)."""
    values = {"resource_metadata": _metadata_url(authority), "scope": " ".join(SCOPES)}
    # The token of the call was not valid.
    if had_token:
        values = {"error": "invalid_token", **values}
    return _bearer(values)


def scope_challenge(authority: str, scopes: Iterable[Scope]) -> str:
    """Return the header of a call whose token lacks one of these scopes (RFC 6750, 3.1)."""
    wanted = {"error": "insufficient_scope", "scope": " ".join(scopes)}
    return _bearer({**wanted, "resource_metadata": _metadata_url(authority)})


def _metadata_url(authority: str) -> str:
    return f"{issuer(authority)}{RESOURCE_METADATA}{TOOL_SERVER}"


def _bearer(values: Mapping[str, str]) -> str:
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in values.items())

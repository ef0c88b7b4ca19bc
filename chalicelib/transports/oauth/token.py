"""Serve the token endpoint and the revocation endpoint (RFC 6749, 3.2; RFC 7009)."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from chalicelib.application.invoke import invoke
from chalicelib.core.operations import REGISTRY
from chalicelib.domains.identity.store import connections
from chalicelib.domains.oauth.flows import clients
from chalicelib.domains.oauth.rules import registration, resources
from chalicelib.domains.oauth.rules.client_metadata import Client
from chalicelib.domains.oauth.rules.errors import OAuthError
from chalicelib.lib import tokens
from chalicelib.transports import auth
from chalicelib.transports.http import HttpRequest, HttpResponse
from chalicelib.transports.oauth.answers import failures_as_json, json_answer, read_form


def client_of(token: str, prefixes: tuple[str, ...], client_id: str) -> Client:
    """Return the client that presents a code or token.

    Raises:
        OAuthError: ``invalid_client``: the client does not exist. ``invalid_grant``: the token
            belongs to no connection of the client.
    """
    if client_id.startswith(registration.PREFIX) or not client_id.startswith("https://"):
        return clients.find(client_id)
    # A metadata document is requested only for a token of a connection with that client. Otherwise
    # anybody could make this service send requests to any server.
    connection = connections.find_by_token(token, *prefixes)
    if connection is None or not connection.is_of(client_id):
        msg = (
            "The code or token is unknown, or it was issued to another client. Connect the "
            "app again."
        )
        raise OAuthError("invalid_grant", msg)
    return clients.find(client_id)


def issue(request: HttpRequest) -> HttpResponse:
    """Exchange a code or a refresh token for tokens."""
    return failures_as_json(_issue)(request)


def revoke(request: HttpRequest) -> HttpResponse:
    """End the connection of a token. The response to an unknown token is a success, too."""
    return failures_as_json(_revoke)(request)


def _issue(request: HttpRequest) -> HttpResponse:
    form = read_form(request)
    # A token for another resource must not be issued here (RFC 8707, 2).
    resources.check_resource(form.get("resource", ""))
    match _required(form, "grant_type"):
        case "authorization_code":
            tokens = _exchange(request, form)
        case "refresh_token":
            tokens = _refresh(request, form)
        case other:
            msg = f"expected authorization_code or refresh_token, received {other[:100]}."
            raise OAuthError("unsupported_grant_type", msg)
    return json_answer(
        {
            "access_token": tokens["accessToken"],
            "token_type": "Bearer",
            "expires_in": tokens["expiresIn"],
            "refresh_token": tokens["refreshToken"],
            "scope": " ".join(tokens["scopes"]),
        }
    )


def _exchange(request: HttpRequest, form: Mapping[str, str]) -> dict[str, Any]:
    code = _required(form, "code")
    # RFC 9700, 2.1.1, recommends the verifier also to clients with a secret; here, each needs one.
    verifier = _required(form, "code_verifier")
    client = client_of(code, (tokens.CODE_PREFIX,), _client_id(form))
    _authenticate(client, form, resources.TOKEN)
    redirect_uri = form.get("redirect_uri") or client.only_redirect_uri
    if redirect_uri is None:
        raise _missing("redirect_uri")
    return _call(
        request,
        "exchange_code",
        code=code,
        clientId=client.id,
        redirectUri=redirect_uri,
        codeVerifier=verifier,
    )


def _refresh(request: HttpRequest, form: Mapping[str, str]) -> dict[str, Any]:
    token = _required(form, "refresh_token")
    client = client_of(token, (tokens.REFRESH_PREFIX,), _client_id(form))
    _authenticate(client, form, resources.TOKEN)
    scope_argument = {"scopes": form["scope"].split()} if "scope" in form else {}
    return _call(
        request, "refresh_tokens", refreshToken=token, clientId=client.id, **scope_argument
    )


def _revoke(request: HttpRequest) -> HttpResponse:
    form = read_form(request)
    token = _required(form, "token")
    client_id = _client_id(form)
    try:
        client = client_of(token, (tokens.ACCESS_PREFIX, tokens.REFRESH_PREFIX), client_id)
    except OAuthError as error:
        if error.error != "invalid_grant":
            raise
        # RFC 7009, 2.2: the purpose of the request is already achieved for an invalid token.
        return json_answer({})
    _authenticate(client, form, resources.REVOKE)
    _call(request, "revoke_token", token=token, clientId=client.id)
    return json_answer({})


def _call(request: HttpRequest, operation: str, /, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
    reply = invoke(
        REGISTRY[operation],
        auth.visitor(request),
        lambda: arguments,
        request_id=request.request_id,
    )
    data: dict[str, Any] = from_json(reply.body)["data"]
    return data


def _authenticate(client: Client, form: Mapping[str, str], path: str) -> None:
    paths = ("", path, resources.TOKEN)
    audiences = tuple(base + issuer for base in resources.issuers() for issuer in paths)
    clients.authenticate(client, form, audiences=audiences)


def _client_id(form: Mapping[str, str]) -> str:
    # A client assertion names the client's id, too (RFC 7521, 4.2).
    client_id = form.get("client_id") or _subject(form.get("client_assertion", ""))
    if not client_id:
        msg = "client_id: expected the client's id in the body, received none."
        raise OAuthError("invalid_client", msg)
    return client_id


def _subject(assertion: str) -> str:
    # The assertion is not verified yet.
    payload = assertion.partition(".")[2].partition(".")[0]
    try:
        # The signature is verified later, with the key of the client that this subject names.
        claims = from_json(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (binascii.Error, ValueError):
        return ""
    subject = claims.get("sub") if isinstance(claims, dict) else None
    return subject if isinstance(subject, str) else ""


def _required(form: Mapping[str, str], name: str) -> str:
    if name not in form:
        raise _missing(name)
    return form[name]


def _missing(name: str) -> OAuthError:
    return OAuthError("invalid_request", f"{name}: expected a value, received none.")

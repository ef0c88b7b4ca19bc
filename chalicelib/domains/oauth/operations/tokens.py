"""Exchange, refresh and revoke the tokens of a connection (RFC 6749, RFC 7009)."""

import re
from collections.abc import Iterable
from datetime import timedelta
from hmac import compare_digest
from typing import Annotated, Any, NamedTuple

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.principals import PLATFORM
from chalicelib.core.retry import high_contention
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Wire, optional
from chalicelib.domains.identity.flows.connection_changes import end_at_once, stage_endings
from chalicelib.domains.identity.rules import token_pairs
from chalicelib.domains.identity.store import connections
from chalicelib.domains.identity.store.connections import ConnectionRow
from chalicelib.domains.oauth.operations.grants import (
    MAX_CLIENT_ID,
    MAX_REDIRECT_URI,
    replaced_connections,
)
from chalicelib.domains.oauth.rules.errors import OAuthError
from chalicelib.engine.events.outbox import Event
from chalicelib.gateways.master_key import master_key
from chalicelib.lib import tokens

_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_UNKNOWN = "The refresh token is unknown, expired or revoked. Connect the app again."
Token = Annotated[str, StringConstraints(min_length=1, max_length=200)]
ClientId = Annotated[str, StringConstraints(min_length=1, max_length=MAX_CLIENT_ID)]


class CodeExchange(Wire):
    """A code that a client exchanges for tokens. The transport has authenticated the client."""

    code: Token = Field(description="The authorization code.")
    client_id: ClientId = Field(description="The client's id.")
    redirect_uri: Annotated[str, StringConstraints(max_length=MAX_REDIRECT_URI)] = Field(
        description="Redirect URI of the authorization request."
    )
    code_verifier: Annotated[str, StringConstraints(max_length=128)] = Field(
        description="PKCE verifier (RFC 7636, 4.1): 43 to 128 characters."
    )


class TokenRefresh(Wire):
    """A refresh token that a client exchanges for new tokens."""

    refresh_token: Token = Field(description="The refresh token.")
    client_id: ClientId = Field(description="The client's id.")
    scopes: list[str] | None = optional("Scopes of the new access token; those granted if omitted.")


class TokenPair(Wire):
    """An access token and a refresh token."""

    access_token: str = Field(description="Access token, valid for a short time.")
    refresh_token: str = Field(description="Refresh token, valid for one use.")
    expires_in: int = Field(description="Seconds for which the access token is valid.")
    scopes: list[Scope] = Field(description="Scopes of the access token.")


class TokenRevocation(Wire):
    """A token that its client gives up."""

    token: Token = Field(description="An access token or a refresh token.")
    client_id: ClientId = Field(description="The client's id.")


class TokenRevoked(Wire):
    """Answer to a revocation. It does not reveal whether the token was valid (RFC 7009, 2.2)."""


# For one IP address and one connection. Hosted clients share their addresses.
REQUESTS = Limit(
    "oauth-tokens",
    "token requests per minute for one connection",
    60,
    timedelta(minutes=1),
    within=lambda args: _connection_id(args) or "",
)


def _token(args: CodeExchange | TokenRefresh | TokenRevocation) -> tuple[str, tuple[str, ...]]:
    match args:
        case CodeExchange():
            return args.code, (tokens.CODE_PREFIX,)
        case TokenRefresh():
            return args.refresh_token, (tokens.REFRESH_PREFIX,)
        case _:
            return args.token, (tokens.ACCESS_PREFIX, tokens.REFRESH_PREFIX)


def _connection_id(args: CodeExchange | TokenRefresh | TokenRevocation) -> str | None:
    token, prefixes = _token(args)
    return next(filter(None, (tokens.owner_id(token, prefix=prefix) for prefix in prefixes)), None)


def _tenant(args: CodeExchange | TokenRefresh | TokenRevocation) -> str:
    token, prefixes = _token(args)
    connection = connections.find_by_token(token, *prefixes)
    return PLATFORM if connection is None else str(connection.workspace_id)


@operation(
    title="Exchange an authorization code",
    audience=PUBLIC,
    resolve=_tenant,
    limit=REQUESTS,
    accepts_idempotency_key=False,
    while_halted=True,
)
def exchange_code(ctx: Context, args: CodeExchange) -> TokenPair:
    """Exchange an authorization code for tokens (RFC 6749, 4.1.3).

    A code is valid for 60 seconds and for one use. A second use ends the connection, because the
    code has leaked (RFC 6749, 4.1.2).
    """
    connection = connections.find_by_token(args.code, tokens.CODE_PREFIX)
    if connection is None or connection.code_hash != tokens.short_digest(args.code):
        raise OAuthError("invalid_grant", "The code is unknown. Start the authorization again.")
    if connection.pairs is not None:
        end_at_once(ctx, connection)
        msg = "The code was used before, so the connection was revoked. Connect the app again."
        raise OAuthError("invalid_grant", msg)
    if connection.state != "pending":
        raise OAuthError("invalid_grant", "The code has expired. Start the authorization again.")
    if not connection.is_of(args.client_id):
        raise OAuthError("invalid_grant", "The code was issued to another client.")
    if connection.redirect_hash != tokens.short_digest(args.redirect_uri):
        msg = (
            "redirect_uri: expected the redirect_uri of the authorization request, received "
            "another one."
        )
        raise OAuthError("invalid_grant", msg)
    if not _proves(args.code_verifier, connection.challenge):
        msg = "code_verifier: expected 43 to 128 characters whose SHA-256 is the code_challenge."
        raise OAuthError("invalid_grant", msg)
    issued = ctx.unit.run_side_effect_once("tokens", lambda: _new_tokens(connection.id))
    family = tokens.family(issued.refresh)
    _stage(ctx, connection, connections.exchange_actions(connection, _pair(issued), family))
    former = replaced_connections(
        connection.workspace_id,
        account_id=connection.account_id,
        client_id=args.client_id,
        redirect_uri=args.redirect_uri,
    )
    # Not before the exchange: a consent whose code gets lost must not end a working connection.
    # Another use of the code may have made this connection live in the meantime.
    stage_endings(ctx.unit, [row for row in former if row.id != connection.id])
    ctx.unit.mention(f"connection:{connection.id}")
    ctx.unit.outbox.emit(Event("connection.created", connection.id))
    return _answer(connection, issued, connection.scopes)


@operation(
    audience=PUBLIC,
    resolve=_tenant,
    limit=REQUESTS,
    accepts_idempotency_key=False,
    audit=False,
    while_halted=True,
)
def refresh_tokens(ctx: Context, args: TokenRefresh) -> TokenPair:
    """Exchange a refresh token for new tokens (RFC 6749, 6).

    The presented token is replaced by its successor. Presented again within two minutes, it gets a
    new access token and the same successor, unless that was used, too. Later that ends the
    connection, because the token has leaked (RFC 9700, 4.14.2).
    """
    ctx.unit.retry_policy = high_contention()  # Processes of one client refresh at the same time.
    connection = connections.find_by_token(args.refresh_token, tokens.REFRESH_PREFIX)
    if connection is None or connection.pairs is None or connection.is_over:
        raise OAuthError("invalid_grant", _UNKNOWN)
    if not connection.is_of(args.client_id):
        raise OAuthError("invalid_grant", "The refresh token was issued to another client.")
    scopes = _narrowed(args.scopes, connection.scopes)
    following = tokens.successor(args.refresh_token, master_key())
    issued = _Issued(_new_access_token(connection.id), following)
    new = _pair(issued)._replace(scope_mask=connection.mask_of(scopes))
    try:
        pairs = token_pairs.rotate(
            connection.token_pairs,
            tokens.short_digest(args.refresh_token),
            new,
            is_family=connection.is_family(args.refresh_token),
        )
    except token_pairs.RejectedError as rejected:
        if not rejected.is_replay:
            raise OAuthError("invalid_grant", _UNKNOWN) from None
        end_at_once(ctx, connection)
        msg = (
            "The refresh token was used before, so the connection was revoked. Connect the app "
            "again."
        )
        raise OAuthError("invalid_grant", msg) from None
    _stage(ctx, connection, connections.token_actions(connection, pairs))
    return _answer(connection, issued, scopes)


@operation(audience=PUBLIC, resolve=_tenant, limit=REQUESTS, idempotent=True, while_halted=True)
def revoke_token(ctx: Context, args: TokenRevocation) -> TokenRevoked:
    """End the connection that a token belongs to. An invalid token is no error (RFC 7009, 2.2)."""
    prefixes = (tokens.ACCESS_PREFIX, tokens.REFRESH_PREFIX)
    connection = connections.find_by_token(args.token, *prefixes)
    if connection is None or not connection.live or not _is_issued(connection, args.token):
        return TokenRevoked()
    if not connection.is_of(args.client_id):
        raise OAuthError("invalid_grant", "The token was issued to another client.")
    stage_endings(ctx.unit, [connection])
    return TokenRevoked()


class _Issued(NamedTuple):
    access: str
    refresh: str


def _new_tokens(connection_id: str) -> _Issued:
    refresh = tokens.generate_for(connection_id, prefix=tokens.REFRESH_PREFIX)
    return _Issued(_new_access_token(connection_id), refresh)


def _new_access_token(connection_id: str) -> str:
    return tokens.generate_for(connection_id, prefix=tokens.ACCESS_PREFIX)


def _pair(issued: _Issued) -> token_pairs.TokenPair:
    return token_pairs.TokenPair(
        access=tokens.short_digest(issued.access),
        refresh=tokens.short_digest(issued.refresh),
        issued_at=connections.seconds(clock.now()),
    )


def _stage(ctx: Context, connection: ConnectionRow, actions: list[Any]) -> None:
    # If the connection has changed in the meantime, the call is retried.
    ctx.unit.update(connection, actions, connections.unchanged(connection))
    for row in connections.lookups(connection):
        ctx.unit.update(row, connections.lookup_expiry(connection))


def _answer(connection: ConnectionRow, issued: _Issued, scopes: Iterable[str]) -> TokenPair:
    remaining = connections.seconds(connection.ends_at) - connections.seconds(clock.now())
    return TokenPair(
        access_token=issued.access,
        refresh_token=issued.refresh,
        expires_in=min(token_pairs.ACCESS_SECONDS, remaining),
        scopes=list(map(Scope, scopes)),
    )


def _proves(verifier: str, challenge: str | None) -> bool:
    # The method S256 (RFC 7636, 4.6).
    if not _VERIFIER.fullmatch(verifier) or challenge is None:
        return False
    return compare_digest(tokens.short_digest(verifier), challenge)


def _narrowed(requested_scopes: list[str] | None, granted_scopes: list[str]) -> list[str]:
    if requested_scopes is None:
        return granted_scopes
    # Scopes that were not granted are left out, because clients repeat the scopes of their first
    # request.
    scopes = [scope for scope in granted_scopes if scope in requested_scopes]
    if not scopes:
        msg = "scope: expected scopes that were granted, received none of them."
        raise OAuthError("invalid_scope", msg)
    return scopes


def _is_issued(connection: ConnectionRow, token: str) -> bool:
    # Old access tokens are forgotten.
    if token.startswith(tokens.ACCESS_PREFIX):
        digest = tokens.short_digest(token)
        return any(digest == pair.access for pair in connection.token_pairs)
    return connection.is_family(token)

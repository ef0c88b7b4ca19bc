"""Tokens of a connection: exchange of its code, refresh and revocation (RFC 6749, RFC 7009)."""

from typing import Annotated

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core.operations import operation
from chalicelib.core.principals import Audience
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Wire, optional
from chalicelib.domains.oauth.operations.grants import MAX_CLIENT_ID, MAX_REDIRECT_URI

PUBLIC = (Audience.PUBLIC,)
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

    access_token: str = Field(description="Access token.")
    refresh_token: str = Field(description="Refresh token.")
    expires_in: int = Field(description="Seconds for which the access token is valid.")
    scopes: list[Scope] = Field(description="Scopes of the access token.")


class TokenRevocation(Wire):
    """A token that its client gives up."""

    token: Token = Field(description="An access token or a refresh token.")
    client_id: ClientId = Field(description="The client's id.")


class TokenRevoked(Wire):
    """Answer to a revocation. It does not reveal whether the token was valid (RFC 7009, 2.2)."""


@operation(title="Exchange an authorization code", audience=PUBLIC, platform=True)
def exchange_code(ctx: Context, args: CodeExchange) -> TokenPair:
    """Exchange an authorization code for tokens. A second use ends the connection."""
    raise NotImplementedError


@operation(title="Refresh tokens", audience=PUBLIC, platform=True)
def refresh_tokens(ctx: Context, args: TokenRefresh) -> TokenPair:
    """Exchange a refresh token for new tokens."""
    raise NotImplementedError


@operation(title="Revoke a token", audience=PUBLIC, platform=True)
def revoke_token(ctx: Context, args: TokenRevocation) -> TokenRevoked:
    """End the connection that a token belongs to."""
    raise NotImplementedError

"""Consent: a person lets an AI client call the tools of a workspace."""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core.operations import operation
from chalicelib.core.principals import Audience
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Wire, printable

MAX_CLIENT_NAME = 100
"""Characters of a client's name."""
MAX_CLIENT_ID = 2_048
MAX_REDIRECT_URI = 2_048


class GrantCreate(Wire):
    """Consent of the caller. The transport has checked the client and its redirect URI."""

    client_id: Annotated[str, StringConstraints(min_length=1, max_length=MAX_CLIENT_ID)] = Field(
        description="The client's id."
    )
    client_name: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_CLIENT_NAME),
        AfterValidator(printable),
    ] = Field(description="The client's name, at most 100 characters.")
    client_host: Annotated[str, StringConstraints(max_length=253)] = Field(
        default="", description="Host of the client's metadata document, or empty."
    )
    redirect_uri: Annotated[str, StringConstraints(min_length=1, max_length=MAX_REDIRECT_URI)] = (
        Field(description="Redirect URI of the request.")
    )
    code_challenge: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$")] = Field(
        description="PKCE challenge of the method S256 (RFC 7636, 4.2): 43 characters."
    )
    scopes: list[str] = Field(description="Scopes that the person grants.")


class GrantCreated(Wire):
    """A new connection and its authorization code, which is valid for 60 seconds."""

    connection_id: Id = Field(description="Connection id.")
    code: str | None = Field(description="The authorization code; shown once.")
    scopes: list[Scope] = Field(description="Scopes that the connection has.")


@operation(
    title="Connect an app",
    audience=(Audience.SESSION,),
    secret="code",  # noqa: S106  the name of the field
)
def grant_access(ctx: Context, args: GrantCreate) -> GrantCreated:
    """Connect an AI client to the session's workspace, and return an authorization code.

    Owners and managers of a workspace on Business or above can connect clients. Scopes that the
    person cannot grant are left out.
    """
    raise NotImplementedError

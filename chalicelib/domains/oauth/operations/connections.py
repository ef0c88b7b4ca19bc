"""Connected apps: the connections of a workspace's members to AI clients."""

from typing import Literal

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.operations import operation
from chalicelib.core.principals import Audience
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.domains.identity.store import workspaces

MANAGED = (Audience.SESSION, Audience.OPERATOR)


class ConnectionOwner(Wire):
    """Account that connected an app."""

    id: Id = Field(description="Account id.")
    name: str = Field(description="Its name.")
    email: str = Field(description="Its e-mail address.")


class ConnectionOut(Wire):
    """A connected app."""

    id: Id = Field(description="Connection id.")
    client_name: str = Field(description="Name that the client gave itself.")
    client_host: str = Field(description="Host of its metadata document, or empty.")
    scopes: list[Scope] = Field(description="Scopes.")
    state: Literal["live", "expired", "ended"] = Field(description="live, expired or ended.")
    account: ConnectionOwner | None = Field(description="Account that connected it.")
    created_at: Timestamp = Field(description="When it was connected.")
    last_used_at: Timestamp | None = Field(
        description="When it was last used, within ten minutes; null for never."
    )
    ended_at: Timestamp | None = Field(description="When it ended, or null.")


class ConnectionListQuery(Wire):
    """Arguments of listing connections."""

    workspace_id: Id | None = optional("The workspace; the session's own if omitted.")


class ConnectionList(Wire):
    """Connected apps of a workspace."""

    connections: list[ConnectionOut] = Field(
        description="Newest first. Ended connections are listed for 30 days."
    )
    live: int = Field(description="Number of live connections in the workspace.")
    most: int = Field(description="Maximum number of live connections.")


class ConnectionRef(Wire):
    """Reference to a connection."""

    id: Id = Field(description="Connection id.")


class ConnectionEnded(Wire):
    """A connection that has ended."""

    connection_id: Id = Field(description="Connection id.")
    ended_at: Timestamp = Field(description="When it ended.")


@operation(
    title="List connected apps",
    audience=MANAGED,
    resolve=lambda args: workspaces.get(args.workspace_id or "").id,
    reads=True,
)
def list_connections(ctx: Context, args: ConnectionListQuery) -> ConnectionList:
    """List the connected apps of a workspace, newest first. Plain members see only their own."""
    raise NotImplementedError


@operation(title="Disconnect an app", audience=MANAGED, resolve=lambda _: "", idempotent=True)
def end_connection(ctx: Context, args: ConnectionRef) -> ConnectionEnded:
    """End a connection for good. Ending it again keeps the time of its first end."""
    raise NotImplementedError

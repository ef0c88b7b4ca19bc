"""List and end the connections of a workspace's members to AI clients."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ConflictError, ForbiddenError
from chalicelib.core.operations import MANAGED, operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.domains.identity.flows.confirmation import confirmed
from chalicelib.domains.identity.flows.connection_changes import check_holder, stage_endings
from chalicelib.domains.identity.store import accounts, connections, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.connections import ConnectionRow
from chalicelib.domains.oauth.operations.grants import grantable


class ConnectionOwner(Wire):
    """Account that connected an app."""

    id: Id = Field(description="Account id.")
    name: str = Field(description="Name of the account.")
    email: str = Field(description="Its e-mail address.")


class ConnectionRef(Wire):
    """Reference to a connection."""

    id: Id = Field(description="Connection id.")


class ConnectionOut(ConnectionRef):
    """A connected app."""

    client_name: str = Field(description="Name that the client gave itself.")
    client_host: str = Field(description="Host of its metadata document, or empty.")
    scopes: list[Scope] = Field(description="Scopes that the app may use.")
    state: Literal["live", "expired", "ended"] = Field(description="live, expired or ended.")
    account: ConnectionOwner | None = Field(description="Account that connected it.")
    created_at: Timestamp = Field(description="When it was connected.")
    last_used_at: Timestamp | None = Field(
        description="When it was last used, within ten minutes; null for never."
    )
    ends_at: Timestamp = Field(description="When it must be connected again, 180 days after that.")
    ended_at: Timestamp | None = Field(description="When it ended, or null.")

    @classmethod
    def from_record(cls, row: ConnectionRow, owners: Mapping[str, AccountRow]) -> Self:
        owner = owners.get(row.account_id)
        connection_owner = owner and ConnectionOwner.model_validate(owner)
        return cls.from_row(
            row.attribute_values,
            id=row.id,
            state=row.state,
            ends_at=row.ends_at,
            account=connection_owner,
        )


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


class ConnectionWidening(ConnectionRef):
    """Scopes that an app gets in addition."""

    scopes: list[str] = Field(description="Scopes to add.")

    @property
    def writes(self) -> bool:
        return any(scope.endswith(":write") for scope in self.scopes)


class ConnectionScopes(ConnectionRef):
    """Scopes of a connection."""

    scopes: list[Scope] = Field(description="Scopes that the app may use now.")


class ConnectionEnded(Wire):
    """A connection that has ended."""

    connection_id: Id = Field(description="Connection id.")
    ended_at: Timestamp = Field(description="When it ended.")


@operation(
    title="List connected apps",
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=lambda args: workspaces.get(args.workspace_id or "").id,
)
def list_connections(ctx: Context, args: ConnectionListQuery) -> ConnectionList:
    """List the connected apps of a workspace, newest first."""
    rows = connections.read_all(ctx.workspace_id)[::-1]
    live_rows = [row for row in rows if row.pairs is not None]
    owners = accounts.read_by_id({row.account_id for row in live_rows})
    return ConnectionList(
        connections=[ConnectionOut.from_record(row, owners) for row in live_rows],
        live=sum(row.live for row in rows),
        most=connections.MAX_LIVE,
    )


@operation(
    title="Allow an app more",
    role=Role.MANAGER,
    idempotent=True,
    confirm=confirmed(when=lambda args: args.writes),
    example={"id": "CONNECTION_ID", "scopes": ["pages:write"]},
)
def widen_connection(ctx: Context, args: ConnectionWidening) -> ConnectionScopes:
    """Give a connected app further scopes at once, without another sign-in in the app.

    Only the account that connected the app can do so. Scopes that it cannot grant are left out.
    """
    row = connections.require(args.id, ctx.workspace_id)
    account = accounts.get(ctx.principal.account_id)
    if row.account_id != account.id:
        raise ForbiddenError(
            "Only the account that connected the app can allow it more.", key="other_account"
        )
    if row.state != "live":
        raise ConflictError(
            "The app is no longer connected. Connect it again.", key="not_connected"
        )
    check_holder(account, ctx.workspace_id, what="connected apps")
    added = [scope for scope in grantable(args.scopes, account.role) if scope not in row.scopes]
    if added:
        is_live = connections.unchanged(row) & ConnectionRow.ended_at.does_not_exist()
        ctx.unit.update(row, connections.widen_actions(row, added), is_live)
        ctx.unit.mention(f"connection:{row.id}")
    return ConnectionScopes(id=row.id, scopes=[*map(Scope, (*row.scopes, *added))])


@operation(
    title="Disconnect an app",
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=lambda args: connections.require(args.id).workspace_id,
    idempotent=True,
    example={"id": "CONNECTION_ID"},
)
def end_connection(ctx: Context, args: ConnectionRef) -> ConnectionEnded:
    """Disconnect an app for good. Its tokens stop working at once.

    Anyone who manages the workspace can disconnect any app of it. Doing so again keeps the time
    of the first end.
    """
    row = connections.require(args.id, ctx.workspace_id)
    ended_at = row.ended_at
    if ended_at is None:
        ended_at = clock.now()
        stage_endings(ctx.unit, [row])
    return ConnectionEnded(connection_id=row.id, ended_at=ended_at)

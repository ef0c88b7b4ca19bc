"""Grant an AI client the tools of a workspace, with the user's consent."""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.application.invoke import require_plan
from chalicelib.core import clock
from chalicelib.core.errors import ConflictError, UnauthorizedError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import operation
from chalicelib.core.principals import PLATFORM, Principal, Role
from chalicelib.core.scopes import PATTERNS, Scope, expand
from chalicelib.core.wire.schema import Id, Pattern, Wire, printable
from chalicelib.domains.identity.flows.confirmation import confirmed
from chalicelib.domains.identity.flows.connection_changes import check_holder, check_room
from chalicelib.domains.identity.store import (
    accounts,
    api_keys,
    connections,
    console_sessions,
    workspaces,
)
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.connections import ConnectionRow
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.oauth.rules import redirect_uris, resources
from chalicelib.domains.oauth.rules.errors import OAuthError
from chalicelib.engine import locks
from chalicelib.lib import tokens

MAX_CLIENT_NAME = 100  # characters
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
    code_challenge: Annotated[
        str, Pattern("[A-Za-z0-9_-]{43}", "43 characters of base64url, a SHA-256")
    ] = Field(description="PKCE challenge of the method S256 (RFC 7636, 4.2): 43 characters.")
    scopes: list[str] = Field(description="Scopes that the person grants.")


class GrantCreated(Wire):
    """A new connection and its authorization code, which is valid for 60 seconds."""

    connection_id: Id = Field(description="Connection id.")
    code: str | None = Field(description="The authorization code; shown once.")
    scopes: list[Scope] = Field(description="Scopes that the connection has.")


@operation(
    title="Connect an app",
    role=Role.MANAGER,
    secret="code",  # noqa: S106  the name of the field
    confirm=confirmed(),
)
def grant_access(ctx: Context, args: GrantCreate) -> GrantCreated:
    """Connect an AI client to the session's workspace, and return an authorization code.

    Owners and managers of a workspace on Business or above can connect clients. Scopes that the
    person cannot grant are left out.
    """
    account_id = ctx.principal.account_id
    lock = locks.lock_row(ctx.workspace_id, what=api_keys.LOCK)
    own_lock = locks.lock_row(PLATFORM, what=connections.lock_name(account_id))
    workspace = workspaces.get(ctx.workspace_id)
    require_plan(workspace.plan_of_keys)
    account = accounts.get(account_id)
    check_holder(account, workspace.id, what="connected apps")
    _check_session(ctx.principal, account)
    scopes = grantable(args.scopes, account.role)
    replaced = replaced_connections(
        workspace.id,
        account_id=account.id,
        client_id=args.client_id,
        redirect_uri=args.redirect_uri,
    )
    _check_limits(workspace.id, account_id=account.id, replaced=len(replaced))
    connection_id = ctx.unit.run_side_effect_once("id", new_id)
    code = ctx.unit.run_side_effect_once(
        "code", lambda: tokens.generate_for(connection_id, prefix=tokens.CODE_PREFIX)
    )
    connection = connections.row(
        connection_id,
        workspace_id=workspace.id,
        account_id=account.id,
        role=account.role,
        plan=workspace.plan_of_keys,
        scopes=scopes,
        client_name=args.client_name,
        client_host=args.client_host,
        client_hash=tokens.short_digest(args.client_id),
        redirect_hash=tokens.short_digest(args.redirect_uri),
        challenge=args.code_challenge,
        code_hash=tokens.short_digest(code),
        created_at=clock.now(),
    )
    ctx.unit.save(lock)
    ctx.unit.save(own_lock)
    ctx.unit.require(workspace, WorkspaceRow.plan == workspace.plan)
    signed_in = AccountRow.session_epoch == int(account.session_epoch)
    ctx.unit.require(account, AccountRow.disabled_at.does_not_exist() & signed_in)
    ctx.unit.create(connection)
    for row in connections.lookups(connection):
        ctx.unit.create(row)
    ctx.unit.mention(f"connection:{connection.id}")
    return GrantCreated(connection_id=connection.id, code=code, scopes=list(map(Scope, scopes)))


def grantable(requested_scopes: list[str], role: str) -> list[str]:
    """Return the requested scopes that a role can grant. Raises OAuthError if there are none."""
    known_scopes = {*PATTERNS, *resources.REQUESTABLE}
    expanded_scopes = expand(
        tuple(sorted(scope for scope in requested_scopes if scope in known_scopes))
    )
    grantable = [
        str(s)
        for s in resources.REQUESTABLE
        if s in expanded_scopes and (role == "admin" or not s.admin_only)
    ]
    if not grantable:
        msg = (
            "scopes: expected at least one scope that you can grant, received none. Select a scope."
        )
        raise OAuthError("invalid_scope", msg)
    return grantable


def _check_session(principal: Principal, account: AccountRow) -> None:
    # Without this check, *sign out everywhere* could miss a connection that is created at the same
    # time.
    session_id = getattr(principal, "session_id", "")
    living = (session.session_id for session in console_sessions.read_live(account))
    if session_id and session_id not in living:
        raise UnauthorizedError("This session has ended. Sign in again.", key="session_ended")


def replaced_connections(
    workspace_id: str, *, account_id: str, client_id: str, redirect_uri: str
) -> list[ConnectionRow]:
    """Return the live connections that end when the app is connected once more."""
    # A hosted app has one connection of an account to a workspace. A program on the user's device
    # has one for each device, because all devices have the same client id.
    if not redirect_uris.parse(redirect_uri).is_hosted:
        return []
    return [
        row
        for row in connections.live(workspace_id, account_id)
        if row.is_of(client_id) and row.state == "live"
    ]


def _check_limits(workspace_id: str, *, account_id: str, replaced: int) -> None:
    count = len(connections.live(workspace_id)) - replaced
    if count >= connections.MAX_LIVE:
        msg = (
            f"The workspace has {count} connected apps, which is the maximum. Disconnect an "
            "app first."
        )
        raise ConflictError(msg, key="too_many_apps", details={"maximum": connections.MAX_LIVE})
    connection_count = len(connections.live_of_account(account_id)) - replaced
    if connection_count >= connections.MAX_LIVE:
        msg = (
            f"Your account has {connection_count} connected apps, which is the maximum. "
            "Disconnect an app first."
        )
        raise ConflictError(
            msg, key="too_many_apps_of_account", details={"maximum": connections.MAX_LIVE}
        )
    check_room(len(api_keys.live(workspace_id)), connected=count)

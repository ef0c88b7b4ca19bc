"""Let the operator admit, suspend and resume workspaces."""

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ConflictError
from chalicelib.core.operations import OPERATOR, operation
from chalicelib.core.wire.schema import Id, Timestamp, Wire
from chalicelib.domains.identity.flows import halting
from chalicelib.domains.identity.store import directory, workspaces


class WorkspaceRef(Wire):
    """Reference to a workspace."""

    workspace_id: Id = Field(description="Workspace id.")


class WorkspaceSuspension(WorkspaceRef):
    """Suspension of a workspace, or its end."""

    lift: bool = Field(default=False, description="Whether to end the suspension.")


class WorkspaceStanding(Wire):
    """What the operator has decided on a workspace."""

    workspace_id: Id = Field(description="Workspace id.")
    awaits_review: bool = Field(description="Whether it came by sign-up and nobody looked at it.")
    suspended_at: Timestamp | None = Field(description="When it was suspended, or null.")


@operation(
    audience=OPERATOR,
    resolve=lambda args: args.workspace_id,
    idempotent=True,
    example={"workspaceId": "WORKSPACE_ID"},
)
def admit_workspace(ctx: Context, args: WorkspaceRef) -> WorkspaceStanding:
    """Let search engines list a workspace that came by sign-up, and let it take own domains."""
    workspace = workspaces.get(args.workspace_id)
    if workspace.awaits_review:
        workspace.awaits_review = None
        ctx.unit.save(workspace)
        directory.follow_workspace(ctx.unit)
        ctx.unit.mention(f"workspace:{workspace.id}")
    return _standing(workspace)


@operation(
    audience=OPERATOR,
    resolve=lambda args: args.workspace_id,
    idempotent=True,
    example={"workspaceId": "WORKSPACE_ID"},
)
def suspend_workspace(ctx: Context, args: WorkspaceSuspension) -> WorkspaceStanding:
    """Suspend a workspace: visitors see nothing of it, and its keys and bots do not work.

    Members are told by e-mail, and can sign in. ``lift`` ends the suspension, and tells them, too.
    """
    lock = halting.lock_row(args.workspace_id)
    workspace = workspaces.get(args.workspace_id)
    if workspace.closed_at is not None:
        raise ConflictError("The owner has closed this workspace.", key="workspace_closed")
    if (workspace.suspended_at is None) is not args.lift:
        workspace.suspended_at = None if args.lift else clock.now()
        workspace.halt = None if args.lift else "suspended"
        halting.stage(ctx.unit, lock, workspace, "resumed" if args.lift else "suspended")
    return _standing(workspace)


def _standing(workspace: workspaces.WorkspaceRow) -> WorkspaceStanding:
    return WorkspaceStanding(
        workspace_id=workspace.id,
        awaits_review=bool(workspace.awaits_review),
        suspended_at=workspace.suspended_at,
    )

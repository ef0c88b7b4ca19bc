"""Workspaces, as a key sees them."""

from pydantic import Field

from chalicelib.core.operations import Context, operation
from chalicelib.core.schema import Id, NoInput, Timestamp, Wire
from chalicelib.store import workspaces


class WorkspaceOut(Wire):
    """A workspace and the account's place in it (spec, Workspace record)."""

    id: Id = Field(description="Workspace id.")
    name: str = Field(description="Display name.")
    slug: str = Field(description="Unique short name.")
    logo_url: str | None = Field(description="Address of the logo, or null.")
    owner_id: Id = Field(description="Account that owns the workspace.")
    role: str = Field(description="The account's role in it: owner, manager or member.")
    joined_at: Timestamp = Field(description="When the account joined.")
    is_owner: bool = Field(description="Whether the account owns it.")


class WorkspaceList(Wire):
    """All workspaces of the key's account."""

    workspaces: list[WorkspaceOut] = Field(
        description="Workspaces the key's owner belongs to, oldest first."
    )
    active_workspace_id: Id = Field(description="The workspace that this key works in.")


@operation(
    tool="svc_list_workspaces", rest="GET /api/workspaces/list", scope=None, title="List workspaces"
)
def list_workspaces(ctx: Context, args: NoInput) -> WorkspaceList:  # noqa: ARG001  every handler has this shape
    """List the workspaces that the key's owner belongs to, and which one this key works in.

    Use it to learn whose data you are about to change; every other call works in activeWorkspaceId
    alone.
    """
    rows = workspaces.of_account(ctx.account_id)
    return WorkspaceList(
        workspaces=[
            WorkspaceOut(
                id=workspace.id,
                name=workspace.name,
                slug=workspace.slug,
                logo_url=workspace.logo_url,
                owner_id=workspace.owner_id,
                role=membership.role,
                joined_at=membership.joined_at,
                is_owner=workspace.owner_id == ctx.account_id,
            )
            for workspace, membership in rows
        ],
        active_workspace_id=ctx.workspace_id,
    )

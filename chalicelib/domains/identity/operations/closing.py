"""Let an owner close a workspace, and reopen it within 30 days."""

from datetime import timedelta

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.errors import ConflictError, InTestWorkspaceError
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.test_workspaces import is_test
from chalicelib.core.wire.schema import Id, NoInput, Timestamp, Wire
from chalicelib.domains.identity.flows import halting
from chalicelib.domains.identity.flows.confirmation import confirmed
from chalicelib.domains.identity.rules.job_kinds import CANCEL_BOOKINGS, DELETE_WORKSPACE
from chalicelib.domains.identity.store import workspaces
from chalicelib.engine import jobs

GRACE = timedelta(days=30)


class WorkspaceClosing(Wire):
    """A workspace that is closed, or open again."""

    workspace_id: Id = Field(description="Workspace id.")
    closed_at: Timestamp | None = Field(description="When it was closed, or null.")
    deletion_at: Timestamp | None = Field(description="When its records are deleted, or null.")


@operation(role=Role.OWNER, idempotent=True, destructive=True, confirm=confirmed(is_fresh=True))
def close_workspace(ctx: Context, args: NoInput) -> WorkspaceClosing:
    """Close the workspace: visitors see nothing of it, and its keys and bots do not work.

    Its future bookings are cancelled, and their clients are told. In 30 days its records are
    deleted, unless the owner reopens it. Members are told.
    """
    if is_test(ctx.workspace_id):
        raise InTestWorkspaceError("A test workspace is emptied, not closed.", key="closing")
    lock = halting.lock_row(ctx.workspace_id)
    workspace = workspaces.get(ctx.workspace_id)
    if workspace.suspended_at is not None:
        msg = "The operator has suspended this workspace. Ask the operator to close it."
        raise ConflictError(msg, key="workspace_suspended")
    if workspace.closed_at is None:
        now = clock.now()
        workspace.closed_at, workspace.halt = now, "closed"
        workspace.deletion_at = now + GRACE
        halting.stage(ctx.unit, lock, workspace, "closed")
        payload = {"closedAt": iso(now)}
        # A year of bookings would take longer than a request has.
        ctx.unit.create_job(jobs.row(CANCEL_BOOKINGS, workspace.id, payload), at_once=False)
        deletion = jobs.row(DELETE_WORKSPACE, workspace.id, payload, workspace.deletion_at)
        ctx.unit.create_job(deletion, at_once=False)
    return _result(workspace)


@operation(role=Role.OWNER, idempotent=True, confirm=confirmed())
def reopen_workspace(ctx: Context, args: NoInput) -> WorkspaceClosing:
    """Open a closed workspace again, before its records are deleted.

    Its pages, keys and bots work as before. Bookings that were cancelled stay cancelled.
    """
    lock = halting.lock_row(ctx.workspace_id)
    workspace = workspaces.get(ctx.workspace_id)
    deletion_at = workspace.deletion_at
    if deletion_at is not None and clock.now() >= deletion_at:
        msg = "The 30 days are over, and the records of this workspace are being deleted."
        raise ConflictError(msg, key="workspace_deleted")
    if workspace.closed_at is not None:
        workspace.closed_at = workspace.deletion_at = workspace.halt = None
        halting.stage(ctx.unit, lock, workspace, "reopened")
    return _result(workspace)


def _result(workspace: workspaces.WorkspaceRow) -> WorkspaceClosing:
    return WorkspaceClosing(
        workspace_id=workspace.id,
        closed_at=workspace.closed_at,
        deletion_at=workspace.deletion_at,
    )

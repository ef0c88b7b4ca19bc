"""Empty a test workspace on demand."""

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.operations import MANAGED, operation
from chalicelib.core.principals import Role
from chalicelib.core.test_workspaces import is_test
from chalicelib.core.wire.schema import Id, Wire, optional
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.overview.flows.emptying import WIPE
from chalicelib.engine import jobs


class TestWorkspaceRef(Wire):
    """Reference to a test workspace."""

    workspace_id: Id | None = optional("The workspace; the session's own if omitted.")


class TestWorkspaceWiped(Wire):
    """Whether a workspace is being emptied."""

    workspace_id: Id = Field(description="Workspace id.")
    is_wiped: bool = Field(description="Whether it is emptied: only a test workspace is.")


@operation(
    audience=MANAGED,
    role=Role.OWNER,
    resolve=lambda args: workspaces.get(args.workspace_id or "").id,
    idempotent=True,
    destructive=True,
)
def wipe_test_workspace(ctx: Context, args: TestWorkspaceRef) -> TestWorkspaceWiped:
    """Delete all records, payments and statistics of a test workspace, for good.

    It is empty within minutes. Its settings, members and keys stay. Another workspace is left as it
    is.
    """
    if is_test(ctx.workspace_id):
        # A second call while the job runs makes no second job.
        ctx.unit.save(jobs.row(WIPE, ctx.workspace_id, {}, clock.now(), job_id=ctx.workspace_id))
        ctx.unit.mention(f"workspace:{ctx.workspace_id}")
    return TestWorkspaceWiped(workspace_id=ctx.workspace_id, is_wiped=is_test(ctx.workspace_id))

"""Link a member of a workspace to a member of the staff."""

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Id, Wire, optional
from chalicelib.domains.notifications.flows import member_choices
from chalicelib.domains.services.store.resources import RESOURCES


class StaffLink(Wire):
    """A member of the workspace, and the member of the staff that the account is."""

    account_id: Id = Field(description="Account id of the member.")
    resource_id: Id | None = optional("Resource id; null ends the link.")


@operation(
    title="Link a member to the staff",
    role=Role.MANAGER,
    idempotent=True,
    example={"accountId": "MEMBER_ID", "resourceId": "RESOURCE_ID"},
)
def link_member(ctx: Context, args: StaffLink) -> StaffLink:
    """Link a member to a member of the staff.

    The member then sees the own calendar first, and gets messages about the own bookings.
    """
    if args.resource_id is not None:
        RESOURCES.require(ctx.workspace_id, record_id=args.resource_id)
    member_choices.stage_link(
        ctx.unit, ctx.workspace_id, account_id=args.account_id, resource_id=args.resource_id
    )
    return args

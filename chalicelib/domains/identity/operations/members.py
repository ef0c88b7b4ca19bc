"""Members of a workspace."""

from typing import Any, Literal

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.errors import ConflictError, ForbiddenError, NotFoundError
from chalicelib.core.operations import MANAGED, OPERATOR, operation
from chalicelib.core.own_part import OWN_ACCOUNT
from chalicelib.core.principals import Audience, Role
from chalicelib.core.wire.schema import Id, NoInput, Timestamp, Wire, optional
from chalicelib.domains.identity.flows import memberships
from chalicelib.domains.identity.flows.confirmation import confirmed
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.workspaces import MembershipRow
from chalicelib.engine.locks import LockRow
from chalicelib.lib.contact_fields import Email

MemberRole = Literal["staff", "member", "manager"]


# The role *staff* is nothing without it.
STAFF_ID: Any = optional("Staff member that the account is; required for the role staff.")


class MemberRef(Wire):
    """Reference to a member of a workspace."""

    workspace_id: Id | None = optional("The workspace; the session's own if omitted.")
    email: Email = Field(description="E-mail address of the account.")


class MemberAdd(MemberRef):
    """A new member, or a member's new role."""

    role: MemberRole = Field(default="member", description="Role in the workspace.")
    resource_id: Id | None = STAFF_ID


class MemberRoleSet(MemberRef):
    """A member's new role."""

    role: MemberRole = Field(description="Role: staff, member or manager.")
    resource_id: Id | None = STAFF_ID


class MemberOut(Wire):
    """A member."""

    workspace_id: Id = Field(description="Workspace id.")
    account_id: Id = Field(description="Account id.")
    role: str = Field(description="staff, member or manager.")


class MemberRemoved(Wire):
    """A removed member."""

    workspace_id: Id = Field(description="Workspace id.")
    account_id: Id = Field(description="Account id.")
    revoked_keys: int = Field(description="Keys of the account that were revoked with it.")
    ended_connections: int = Field(description="Connected apps of the account that were ended.")


class MemberListed(Wire):
    """A member, in the list for other members."""

    account_id: Id = Field(description="Account id.")
    name: str = Field(description="Name of the account.")
    email: str = Field(description="E-mail address.")
    role: str = Field(description="owner, manager, member or staff.")
    joined_at: Timestamp = Field(description="When they joined.")
    resource_id: Id | None = Field(description="Staff member that they are, or null.")


class MemberListQuery(Wire):
    """Arguments of listing members."""

    workspace_id: Id | None = optional("The workspace; the session's own if omitted.")


class MemberList(Wire):
    """All members of a workspace."""

    members: list[MemberListed] = Field(description="Members, in the order in which they joined.")


def _workspace(args: MemberRef | MemberListQuery) -> str:
    return workspaces.get(args.workspace_id or "").id


@operation(audience=MANAGED, role=Role.MEMBER, resolve=_workspace)
def list_members(ctx: Context, args: MemberListQuery) -> MemberList:
    """List the members of a workspace, in the order in which they joined."""
    return MemberList(
        members=[
            MemberListed.from_row(
                {**account.attribute_values, **membership.attribute_values}, account_id=account.id
            )
            for account, membership in workspaces.members(ctx.workspace_id)
        ]
    )


@operation(
    audience=OPERATOR,
    resolve=_workspace,
    idempotent=True,
    example={"workspaceId": "WORKSPACE_ID", "email": "NEWCOMER_EMAIL"},
)
def add_member(ctx: Context, args: MemberAdd) -> MemberOut:
    """Add an account to a workspace, or change its role there. The owner's role cannot change.

    Only managers can have keys and connected apps. If a manager gets a lower role, the account's
    keys in the workspace are revoked, and its connected apps are disconnected.
    """
    lock, account = memberships.lock_row(ctx.workspace_id), accounts.require_by_email(args.email)
    membership = workspaces.membership(account.id, workspace_id=ctx.workspace_id)
    former_id = membership.resource_id if membership else None
    link = memberships.staff_link(ctx.unit, Role(args.role), args.resource_id, former_id)
    if membership is None:
        memberships.stage_joining(ctx.unit, account.id, Role(args.role), link)
    else:
        _check_is_not_owner(account, membership, f"become a {args.role}")
        memberships.stage_role(ctx.unit, lock, membership, Role(args.role), link)
    return MemberOut(workspace_id=ctx.workspace_id, account_id=account.id, role=args.role)


@operation(
    title="Change a member's role",
    role=Role.OWNER,
    idempotent=True,
    confirm=confirmed(),
    example={"email": "MEMBER_EMAIL", "role": "manager"},
)
def set_member_role(ctx: Context, args: MemberRoleSet) -> MemberOut:
    """Give a member another role: staff, member or manager.

    Only managers can have keys and connected apps. If a manager gets a lower role, the account's
    keys in the workspace are revoked, and its connected apps are disconnected.
    """
    lock = memberships.lock_row(ctx.workspace_id)
    account, membership = _member(ctx, args.email)
    _check_is_not_owner(account, membership, f"become a {args.role}")
    role = Role(args.role)
    link = memberships.staff_link(ctx.unit, role, args.resource_id, membership.resource_id)
    memberships.stage_role(ctx.unit, lock, membership, role, link)
    return MemberOut(workspace_id=ctx.workspace_id, account_id=account.id, role=args.role)


@operation(
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=_workspace,
    idempotent=True,
    example={"email": "MEMBER_EMAIL"},
)
def remove_member(ctx: Context, args: MemberRef) -> MemberRemoved:
    """Remove an account from a workspace, revoke its keys there and disconnect its apps.

    The owner cannot be removed. A manager can remove plain members only.
    """
    lock = memberships.lock_row(ctx.workspace_id)
    account, membership = _member(ctx, args.email)
    _check_is_not_owner(account, membership, "be removed from it")
    if Role(membership.role).includes(_caller_role(ctx)):
        raise ForbiddenError(
            "Only the owner of a workspace can remove a manager. Ask the owner.",
            key="role_required",
            details={"role": Role.OWNER},
        )
    return _stage_removal(ctx, lock, membership)


@operation(role=Role.MEMBER, own=OWN_ACCOUNT, idempotent=True)
def leave_workspace(ctx: Context, args: NoInput) -> MemberRemoved:
    """End the caller's own membership. Their keys are revoked, their apps are disconnected.

    The owner cannot leave.
    """
    lock = memberships.lock_row(ctx.workspace_id)
    account = accounts.get(ctx.principal.account_id)
    membership = workspaces.membership(account.id, workspace_id=ctx.workspace_id)
    if membership is None:
        raise _no_member()
    _check_is_not_owner(account, membership, "leave it")
    return _stage_removal(ctx, lock, membership)


def _caller_role(ctx: Context) -> Role:
    # Read after the lock row, because it may have changed since the request.
    # The operator may do what the owner may.
    if ctx.principal.audience is Audience.OPERATOR:
        return Role.OWNER
    membership = workspaces.membership(ctx.principal.account_id, workspace_id=ctx.workspace_id)
    return Role(membership.role) if membership else Role.ACCOUNT


def _member(ctx: Context, email: str) -> tuple[AccountRow, MembershipRow]:
    is_operator = ctx.principal.audience is Audience.OPERATOR
    # Callers other than the operator do not learn whether an account has the address.
    account = accounts.require_by_email(email) if is_operator else accounts.find_by_email(email)
    if account is None:
        raise _no_member()
    membership = workspaces.membership(account.id, workspace_id=ctx.workspace_id)
    if membership is None:
        raise _no_member()
    return account, membership


def _no_member() -> NotFoundError:
    return NotFoundError("No member of this workspace has this e-mail address.", key="member")


def _check_is_not_owner(account: AccountRow, membership: MembershipRow, what: str) -> None:
    if membership.role == Role.OWNER:
        msg = f"{account.email} owns this workspace, and cannot {what}."
        raise ConflictError(msg, key="is_owner")


def _stage_removal(ctx: Context, lock: LockRow, membership: MembershipRow) -> MemberRemoved:
    revoked, ended = memberships.stage_removal(ctx.unit, lock, membership)
    return MemberRemoved(
        workspace_id=ctx.workspace_id,
        account_id=membership.account_id,
        revoked_keys=revoked,
        ended_connections=ended,
    )

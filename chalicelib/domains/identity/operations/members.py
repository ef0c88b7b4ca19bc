"""Members of a workspace.

Removing a member revokes the member's keys in the workspace, and ends the member's connections.
"""

from typing import Literal

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.errors import ConflictError, NotFoundError
from chalicelib.core.jobs import MEMBERSHIP_ENDED
from chalicelib.core.operations import operation
from chalicelib.core.principals import Audience, Role
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.domains.identity.flows.connections import stage_endings
from chalicelib.domains.identity.operations.keys import stage_revocations
from chalicelib.domains.identity.store import accounts, api_keys, connections, workspaces
from chalicelib.engine import jobs, locks
from chalicelib.engine.events.outbox import Event
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib.contact_fields import Email

OPERATOR = (Audience.OPERATOR,)


class MemberRef(Wire):
    """Reference to a member of a workspace."""

    workspace_id: Id = Field(description="Workspace id.")
    email: Email = Field(description="E-mail address of the account.")


class MemberAdd(MemberRef):
    """A new member, or a member's new role."""

    role: Literal["member", "manager"] = Field(default="member", description="Role.")


class MemberOut(Wire):
    """A member."""

    workspace_id: Id = Field(description="Workspace id.")
    account_id: Id = Field(description="Account id.")
    role: str = Field(description="member or manager.")


class MemberRemoved(Wire):
    """A removed member."""

    workspace_id: Id = Field(description="Workspace id.")
    account_id: Id = Field(description="Account id.")
    revoked_keys: int = Field(description="Keys of the account that were revoked with it.")
    ended_connections: int = Field(description="Connected apps of the account that were ended.")


class MemberListed(Wire):
    """A member, in the list for other members."""

    account_id: Id = Field(description="Account id.")
    name: str = Field(description="Name.")
    email: str = Field(description="E-mail address.")
    role: str = Field(description="owner, manager or member.")
    joined_at: Timestamp = Field(description="When they joined.")


class MemberListQuery(Wire):
    """Arguments of listing members."""

    workspace_id: Id | None = optional("The workspace; the session's own if omitted.")


class MemberList(Wire):
    """All members of a workspace."""

    members: list[MemberListed] = Field(description="Members, in the order in which they joined.")


def _workspace(args: MemberRef) -> str:
    return args.workspace_id


@operation(
    title="List members",
    audience=(Audience.SESSION, Audience.OPERATOR),
    role=Role.MEMBER,
    resolve=lambda args: workspaces.get(args.workspace_id or "").id,
    reads=True,
)
def list_members(ctx: Context, args: MemberListQuery) -> MemberList:  # noqa: ARG001  every handler has this shape
    """List the members of a workspace, in the order in which they joined."""
    return MemberList(
        members=[
            MemberListed.from_row(
                {**account.attribute_values, **membership.attribute_values}, account_id=account.id
            )
            for account, membership in workspaces.members(ctx.workspace_id)
        ]
    )


@operation(title="Add a member", audience=OPERATOR, resolve=_workspace, idempotent=True)
def add_member(ctx: Context, args: MemberAdd) -> MemberOut:
    """Add an account to a workspace, or change its role there. The owner's role cannot change.

    A plain member cannot have keys or connected apps. If a manager becomes a plain member, the
    account's keys in the workspace are revoked, and its connected apps are disconnected.
    """
    workspace, account = workspaces.get(args.workspace_id), accounts.by_email(args.email)
    if account.id == workspace.owner_id:
        msg = f"{account.email} owns this workspace; an owner cannot become a {args.role}."
        raise ConflictError(msg)
    before = workspaces.membership(account.id, workspace.id)
    joined_at = before.joined_at if before else clock.now()
    place = workspaces.membership_row(account.id, workspace.id, role=args.role, joined_at=joined_at)
    if before is None:
        ctx.unit.create(place)  # retried if the account has joined meanwhile, possibly with keys
        ctx.unit.outbox.emit(Event("member.added", account.id))
    else:
        ctx.unit.save(place)
        if args.role == "member":
            _stage_revocations(ctx.unit, account.id)
        if before.role != args.role:
            ctx.unit.outbox.emit(Event("member.role_changed", account.id))
    ctx.unit.save(workspaces.member_row(account.id, workspace.id))
    ctx.unit.mention(f"account:{account.id}")
    return MemberOut(workspace_id=workspace.id, account_id=account.id, role=args.role)


@operation(title="Remove a member", audience=OPERATOR, resolve=_workspace, idempotent=True)
def remove_member(ctx: Context, args: MemberRef) -> MemberRemoved:
    """Remove an account from a workspace, revoke its keys there and disconnect its apps."""
    workspace, account = workspaces.get(args.workspace_id), accounts.by_email(args.email)
    if account.id == workspace.owner_id:
        msg = f"{account.email} owns this workspace and cannot be removed from it."
        raise ConflictError(msg)
    membership = workspaces.membership(account.id, workspace.id)
    if membership is None:
        msg = f"{account.email} is no member of this workspace."
        raise NotFoundError(msg)
    ctx.unit.delete(membership)
    ctx.unit.delete(workspaces.member_row(account.id, workspace.id))
    revoked, ended = _stage_revocations(ctx.unit, account.id)
    payload = {"accountId": account.id, "endedAt": iso(clock.now())}
    ctx.unit.create(jobs.row(MEMBERSHIP_ENDED, workspace.id, payload))
    ctx.unit.outbox.emit(Event("member.removed", account.id))
    ctx.unit.mention(f"account:{account.id}")
    return MemberRemoved(
        workspace_id=workspace.id,
        account_id=account.id,
        revoked_keys=revoked,
        ended_connections=ended,
    )


def _stage_revocations(unit: UnitOfWork, account_id: str) -> tuple[int, int]:
    """Stage the end of an account's keys and connections in the workspace; return how many it has.

    The unit saves the lock row that the creation of a key or a connection saves, too. So one that
    is created at the same time is either revoked here, or its creation fails.
    """
    lock = locks.lock_row(unit.workspace_id, api_keys.LOCK)
    keys = api_keys.live(unit.workspace_id, account_id)
    connected = connections.live(unit.workspace_id, account_id)
    unit.save(lock)
    stage_revocations(unit, keys)
    stage_endings(unit, connected)
    return len(keys), len(connected)

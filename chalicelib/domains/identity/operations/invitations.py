"""Create, revoke and accept invitations to a workspace.

A link works for seven days, once, and for the address that the inviter typed. The inviter's role is
checked again when it is accepted. The link that is mailed proves the address, but the link that the
inviter sees does not.
"""

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ConflictError, ForbiddenError, NotFoundError
from chalicelib.core.ids import new_id
from chalicelib.core.limits import Limit
from chalicelib.core.operations import MANAGED, PUBLIC, operation
from chalicelib.core.principals import Audience, Role
from chalicelib.core.wire.schema import Id, NoInput, Timestamp, Wire, optional
from chalicelib.domains.identity.flows import invitation_links, memberships
from chalicelib.domains.identity.flows.confirmation import confirmed
from chalicelib.domains.identity.flows.invitation_links import OpenInvitation
from chalicelib.domains.identity.operations.accounts import (
    MemberName,
    Password,
    stage_account,
    stage_proof_mail,
    stage_taking,
)
from chalicelib.domains.identity.operations.members import STAFF_ID, MemberRole
from chalicelib.domains.identity.operations.sessions import MAX_BROWSER, begin_session
from chalicelib.domains.identity.rules.job_kinds import MAIL_INVITATION
from chalicelib.domains.identity.store import accounts, invitations, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.workspaces import MembershipRow
from chalicelib.engine import jobs, locks
from chalicelib.gateways import mail
from chalicelib.lib import emails
from chalicelib.lib.contact_fields import Email
from chalicelib.lib.localized import Language

MAX_OPEN = 50  # of a workspace
# Lock row (``engine.locks``) of the creation of invitations, so that they can be counted.
LOCK = "invitations"
INVITATIONS = Limit("invitations", "invitations per hour", 30, timedelta(hours=1))
ACCEPTANCES = Limit(
    "invitation-acceptances",
    "attempts to accept an invitation within 15 minutes",
    20,
    timedelta(minutes=15),
)

Token = Annotated[str, StringConstraints(max_length=100)]


class InvitationCreate(Wire):
    """A new invitation."""

    workspace_id: Id | None = optional("The workspace; the session's own if omitted.")
    email: Email = Field(description="E-mail address of the person to invite.")
    role: MemberRole = Field(
        default="member", description="Role, which must be lower than the inviter's own."
    )
    resource_id: Id | None = STAFF_ID


class InvitationRef(Wire):
    """Reference to an invitation."""

    id: Id = Field(description="Invitation id.")


class InvitationCreated(InvitationRef):
    """A new invitation with its link. The link is shown only in this answer."""

    email: str = Field(description="E-mail address of the invited person.")
    role: str = Field(description="staff, member or manager.")
    url: str | None = Field(description="The link; it cannot be shown again.")
    expires_at: Timestamp = Field(description="When the link stops working.")
    is_mailed: bool = Field(description="Whether a link has been mailed to the address, too.")
    mail: str | None = Field(
        description="waiting: it will be mailed; withheld; or null: mail is not set up."
    )


class InvitationListed(InvitationRef):
    """An open invitation."""

    email: str = Field(description="E-mail address of the invited person.")
    role: str = Field(description="staff, member or manager.")
    resource_id: Id | None = Field(description="Staff member that they become, or null.")
    inviter: str = Field(description="Name of the member who made it.")
    created_at: Timestamp = Field(description="When it was made.")
    expires_at: Timestamp = Field(description="When the link stops working.")
    works: bool = Field(description="Whether its inviter may still invite to this role.")
    mail: str | None = Field(description="What became of the mail: waiting, sent, withheld, null.")
    mail_reason: str | None = Field(description="Why it waits or is withheld, or null.")


class InvitationList(Wire):
    """Open invitations of a workspace."""

    invitations: list[InvitationListed] = Field(description="Open invitations, newest first.")


class InvitationRevoked(InvitationRef):
    """An invitation that no longer works."""


class InvitationToken(Wire):
    """The token of an invitation's link."""

    token: Token = Field(description="Token of the link.")


class InvitationShown(Wire):
    """An invitation, as the person who has its link sees it."""

    workspace: str = Field(description="Name of the workspace.")
    inviter: str = Field(description="Name of the member who made the invitation.")
    email: str = Field(description="E-mail address that it is for.")
    role: str = Field(description="staff, member or manager.")
    expires_at: Timestamp = Field(description="When the link stops working.")
    has_account: bool = Field(description="Whether an account has the address.")
    is_for_caller: bool = Field(description="Whether the caller's account has the address.")


class InvitedAccountCreate(InvitationToken):
    """A new account for an invited person. Its address is that of the invitation."""

    name: MemberName = Field(description="Name, as other members see it.")
    password: Password = Field(description="Password, of at least 8 characters.")
    browser: Annotated[str, AfterValidator(lambda text: text[:MAX_BROWSER])] = Field(
        default="", description="The browser's User-Agent header."
    )
    language: Language | None = optional("Language of the console: ru or en.")


class InvitationAccepted(Wire):
    """A workspace that the caller is a member of."""

    workspace_id: Id = Field(description="Workspace id.")
    slug: str = Field(description="Unique short name of the workspace.")
    role: str = Field(description="The caller's role in it.")


class InvitedAccount(InvitationAccepted):
    """A new account that has joined a workspace, with its first session."""

    account_id: Id = Field(description="Account id.")
    token: str | None = Field(description="The session's token, for its cookie.")


def _invited_to(args: InvitationToken) -> str:
    # A repeated call finds its stored response in the workspace of the invitation.
    return invitation_links.workspace_of(args.token)


@operation(
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=lambda args: workspaces.get(args.workspace_id or "").id,
    limit=INVITATIONS,
    secret="url",  # noqa: S106  the name of the field
    confirm=confirmed(when=lambda args: Role(args.role).includes(Role.MANAGER)),
    example={"email": "new@example.com", "role": "manager"},
)
def invite_member(ctx: Context, args: InvitationCreate) -> InvitationCreated:
    """Make a link with which a person joins the workspace, and mail it if mail is set up.

    An earlier open invitation for the same address ends. An invitation that the operator makes is
    the owner's.
    """
    lock = locks.lock_row(ctx.workspace_id, what=LOCK)
    workspace = workspaces.get(ctx.workspace_id)
    inviter_id = ctx.principal.account_id or workspace.owner_id
    term = _check_may_invite(inviter_id, workspace_id=workspace.id, role=args.role)
    resource_id = memberships.staff_link(ctx.unit, Role(args.role), args.resource_id)
    invited = accounts.find_by_email(args.email)
    if invited and workspaces.membership(invited.id, workspace_id=workspace.id):
        msg = f"{args.email} is already a member of this workspace."
        raise ConflictError(msg, key="already_member")
    pending = invitations.open_ones(workspace.id)
    replaced = [row for row in pending if emails.key(row.email) == emails.key(args.email)]
    if len(pending) - len(replaced) >= MAX_OPEN:
        msg = (
            f"The workspace has {MAX_OPEN} open invitations, which is the maximum. Revoke an "
            "invitation first."
        )
        raise ConflictError(msg, key="too_many_invitations", details={"maximum": MAX_OPEN})
    for row in replaced:
        invitation_links.stage_revocation(ctx.unit, row)
    invitation_id = ctx.unit.run_side_effect_once("id", new_id)
    token = invitation_links.token(invitation_id)
    is_supported = mail.takes(args.email)
    state = ("waiting" if is_supported else "withheld") if mail.is_on() else None
    row = invitations.row(
        token,
        invitation_id=invitation_id,
        workspace_id=workspace.id,
        email=args.email,
        role=args.role,
        resource_id=resource_id,
        inviter_id=inviter_id,
        inviter_term=term,
        created_at=clock.now(),
        mail=state,
        mail_reason="unsupported" if state == "withheld" else None,
    )
    ctx.unit.save(lock)
    ctx.unit.create(row)
    ctx.unit.create(invitations.lookup(row))
    ctx.unit.mention(f"invitation:{row.invitation_id}")
    if state == "waiting":
        payload = {"invitationId": row.invitation_id}
        ctx.unit.create(jobs.row(MAIL_INVITATION, workspace.id, payload))
    return InvitationCreated(
        id=row.invitation_id,
        email=row.email,
        role=row.role,
        url=invitation_links.page_url(token),
        expires_at=row.expires_at,
        is_mailed=False,
        mail=state,
    )


@operation(role=Role.MANAGER)
def list_invitations(ctx: Context, args: NoInput) -> InvitationList:
    """List the open invitations of the workspace, newest first."""
    rows = invitations.open_ones(ctx.workspace_id)
    people = accounts.read_by_id({row.inviter_id for row in rows})
    inviters = {
        account.id: membership
        for account, membership in (workspaces.members(ctx.workspace_id) if rows else ())
        if account.disabled_at is None
    }
    return InvitationList(
        invitations=[
            InvitationListed.from_row(
                row.attribute_values,
                id=row.invitation_id,
                inviter=people[row.inviter_id].name,
                works=row.inviter_id in inviters
                and invitation_links.still_invites(inviters[row.inviter_id], row),
            )
            for row in rows
        ]
    )


@operation(role=Role.MANAGER, idempotent=True, example={"id": "OPEN_INVITATION_ID"})
def revoke_invitation(ctx: Context, args: InvitationRef) -> InvitationRevoked:
    """End an open invitation, so that its link no longer works.

    Anyone who manages the workspace can revoke any invitation to it.
    """
    row = invitations.find_by_id(ctx.workspace_id, invitation_id=args.id)
    if row is None:
        raise NotFoundError(
            "The workspace has no open invitation with this id. List the invitations to find "
            "valid ids.",
            key="invitation",
        )
    invitation_links.stage_revocation(ctx.unit, row)
    return InvitationRevoked(id=row.invitation_id)


@operation(
    audience=(Audience.PUBLIC, Audience.SESSION),
    role=Role.ACCOUNT,
    platform=True,
    example={"token": "INVITATION_TOKEN"},
)
def get_invitation(ctx: Context, args: InvitationToken) -> InvitationShown:
    """Return an invitation that works to the person who has its link."""
    invitation = invitation_links.read(args.token)
    account = accounts.find_by_email(invitation.row.email)
    caller = ctx.principal.account_id
    return InvitationShown.from_row(
        invitation.row.attribute_values,
        workspace=invitation.workspace.name,
        inviter=invitation.inviter.name,
        has_account=account is not None and not _may_be_taken(invitation, account),
        is_for_caller=account is not None and account.id == caller,
    )


@operation(
    role=Role.ACCOUNT, resolve=_invited_to, limit=ACCEPTANCES, example={"token": "INVITATION_TOKEN"}
)
def accept_invitation(ctx: Context, args: InvitationToken) -> InvitationAccepted:
    """Join a workspace with the account that has the invitation's address.

    An account that is a member by then keeps its role.
    """
    invitation = invitation_links.read(args.token)
    account = accounts.get(ctx.principal.account_id)
    owner_of_address = accounts.find_by_email(invitation.row.email)
    if owner_of_address is None or owner_of_address.id != account.id:
        msg = f"This invitation is for {invitation.row.email}. Sign in with that account."
        raise ForbiddenError(msg, key="other_account")
    if invitation.is_mailed and not account.is_proved:
        accounts.stage_proof(ctx.unit, account)
    membership = _stage_joining(ctx, invitation, account.id)
    return InvitationAccepted(
        workspace_id=invitation.workspace.id,
        slug=invitation.workspace.slug,
        role=membership.role if membership else invitation.row.role,
    )


@operation(
    title="Accept an invitation with a new account",
    audience=PUBLIC,
    resolve=_invited_to,
    limit=ACCEPTANCES,
    secret="token",  # noqa: S106  the name of the field
)
def create_invited_account(ctx: Context, args: InvitedAccountCreate) -> InvitedAccount:
    """Create an account with the invitation's address, join the workspace and start a session.

    The mailed link proves the address. If somebody has made an account with it and has not proved
    it, the account becomes that of the person who has the mailed link: the password is replaced,
    and sessions and connected apps end. Another link makes an account that proves it by e-mail.
    """
    invitation = invitation_links.read(args.token)
    account = accounts.find_by_email(invitation.row.email)
    if account is not None and _may_be_taken(invitation, account):
        stage_taking(ctx.unit, account, password=args.password, name=args.name)
    else:
        account = stage_account(
            ctx.unit,
            invitation.row.email,
            password=args.password,
            name=args.name,
            language=args.language,
            proved=invitation.is_mailed,
        )
    if not invitation.is_mailed:
        stage_proof_mail(ctx.unit, account.id)
    membership = _stage_joining(ctx, invitation, account.id)
    return InvitedAccount(
        workspace_id=invitation.workspace.id,
        slug=invitation.workspace.slug,
        role=membership.role if membership else invitation.row.role,
        account_id=account.id,
        token=begin_session(ctx, account, args.browser),
    )


def _stage_joining(
    ctx: Context, invitation: OpenInvitation, account_id: str
) -> MembershipRow | None:
    # An account that is a member by then keeps its membership.
    invitation_links.stage_use(ctx.unit, invitation)
    membership = workspaces.membership(account_id, workspace_id=invitation.workspace.id)
    if membership is None:
        # If the resource is deleted by then, there is nothing that a member of the staff may see.
        row = invitation.row
        memberships.stage_joining(ctx.unit, account_id, Role(row.role), row.resource_id)
    return membership


def _may_be_taken(invitation: OpenInvitation, account: AccountRow) -> bool:
    return invitation.is_mailed and not account.is_proved and account.disabled_at is None


def _check_may_invite(inviter_id: str, *, workspace_id: str, role: str) -> str | None:
    # The role may have changed since the request was authorized.
    membership = workspaces.membership(inviter_id, workspace_id=workspace_id)
    inviter_role = Role(membership.role) if membership else Role.ACCOUNT
    if membership is None or not invitation_links.may_invite(inviter_role, invited=Role(role)):
        msg = f"Your role, {inviter_role}, cannot invite users with the role {role}. Ask the owner."
        raise ForbiddenError(msg, key="role_required", details={"role": Role.OWNER})
    return membership.term

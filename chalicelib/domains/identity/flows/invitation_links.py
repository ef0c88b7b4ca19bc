"""Links of invitations to a workspace.

An invitation has two tokens. The inviter sees the one, and the other is only mailed, so it proves
that its holder reads the mailbox (ADR 73). The shown token is computed from the invitation's id
with the master key, and the database has its hash only. The mailed token is that hash, signed.
"""

import hmac
from typing import NamedTuple

from chalicelib.core import clock
from chalicelib.core.errors import NotFoundError
from chalicelib.core.principals import Role
from chalicelib.core.settings import settings
from chalicelib.domains.identity.store import accounts, invitations, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.invitations import InvitationRow
from chalicelib.domains.identity.store.workspaces import MembershipRow, WorkspaceRow
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways.master_key import derived_token
from chalicelib.lib import tokens

PAGE = "/console/invitations/{token}"
_SIGNATURE_LENGTH = 22  # characters, of 132 bits


class OpenInvitation(NamedTuple):
    """An invitation that works now, with its workspace and the member who made it."""

    row: InvitationRow
    workspace: WorkspaceRow
    inviter: AccountRow
    inviter_membership: MembershipRow
    is_mailed: bool = False  # found by the token that was only mailed


def token(invitation_id: str) -> str:
    """Return an invitation's shown token, 43 URL-safe characters. Raises as ``master_key``."""
    return derived_token(f"invitation:{invitation_id}")


def mailed_token(invitation_id: str) -> str:
    """Return the token that is mailed and never shown, of 87 characters. Raises as ``token``."""
    place = tokens.digest(token(invitation_id))
    return f"{place}.{_signature(place)}"


def _signature(place: str) -> str:
    return derived_token(f"invitation-mail:{place}")[:_SIGNATURE_LENGTH]


def _find(invitation_token: str) -> tuple[InvitationRow | None, bool]:
    place, dot, signature = invitation_token.partition(".")
    if not dot:
        return invitations.find(invitation_token), False
    # The comparison takes constant time, so that a signature cannot be guessed byte by byte.
    is_genuine = hmac.compare_digest(_signature(place).encode(), signature.encode())
    return (invitations.at(place) if is_genuine else None), True


def page_url(invitation_token: str) -> str:
    """Return the URL of the page on which an invitation is accepted."""
    return settings().public_url + PAGE.format(token=invitation_token)


def may_invite(inviter: Role, *, invited: Role) -> bool:
    """Whether a role may invite to another role. Managers and owners may invite to a lower role."""
    return inviter.includes(Role.MANAGER) and not invited.includes(inviter)


def read(invitation_token: str) -> OpenInvitation:
    """Return the invitation of a token, or raise NotFoundError if it does not work."""
    row, is_mailed = _find(invitation_token)
    # The error is the same for an unknown, expired, used or revoked one, and if its inviter may no
    # longer invite to its role.
    invitation = working(row)
    if invitation is None:
        raise _gone()
    return invitation._replace(is_mailed=is_mailed)


def workspace_of(invitation_token: str) -> str:
    """Return the workspace of an invitation, whether it works or not, or raise NotFoundError."""
    row, _ = _find(invitation_token)
    # The error is the same as for an expired invitation.
    if row is None:
        raise _gone()
    return str(row.workspace_id)


def working(row: InvitationRow | None) -> OpenInvitation | None:
    """Return an invitation with its workspace and inviter, or None if it does not work."""
    if row is None or row.state != "open":
        return None
    membership = workspaces.membership(row.inviter_id, workspace_id=row.workspace_id)
    if membership is None or not still_invites(membership, row):
        return None
    inviter = accounts.get(row.inviter_id)
    if inviter.disabled_at is not None:
        return None
    return OpenInvitation(row, workspaces.get(row.workspace_id), inviter, membership)


def still_invites(membership: MembershipRow, row: InvitationRow) -> bool:
    """Whether the inviter has had the right to invite to the role since making the invitation."""
    # A member who lost the role and got it back must not revive old invitations.
    is_same_term = membership.term == row.inviter_term
    return is_same_term and may_invite(Role(membership.role), invited=Role(row.role))


def _gone() -> NotFoundError:
    return NotFoundError(
        "This invitation is no longer valid. Ask for a new invitation.", key="invitation"
    )


def stage_use(unit: UnitOfWork, invitation: OpenInvitation) -> None:
    """Stage the use of an invitation, under the condition that it still works at commit."""
    row, inviter, membership = invitation.row, invitation.inviter, invitation.inviter_membership
    unit.update(row, [InvitationRow.used_at.set(clock.now())], invitations.is_unused())
    unit.delete(invitations.lookup(row))
    # The inviter may lose the role or the account between the read and the commit.
    unit.require(membership, MembershipRow.role == membership.role)
    unit.require(inviter, AccountRow.disabled_at.does_not_exist())
    unit.mention(f"invitation:{row.invitation_id}")


def stage_revocation(unit: UnitOfWork, row: InvitationRow) -> None:
    """Stage the end of an invitation. If it is used at the same time, the unit starts again."""
    unit.update(row, [InvitationRow.revoked_at.set(clock.now())], invitations.is_unused())
    unit.delete(invitations.lookup(row))
    unit.mention(f"invitation:{row.invitation_id}")

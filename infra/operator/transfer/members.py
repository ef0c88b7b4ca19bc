"""Export and import members by e-mail address, because account ids differ between stages."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from chalicelib.core.errors import NotFoundError
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.identity.store.workspaces import MembershipRow, WorkspaceRow


def list_members(workspace: WorkspaceRow) -> list[dict[str, Any]]:
    """Return the members without the owner, in the order in which they joined."""
    return [
        {
            "email": account.email,
            "role": membership.role,
            "joinedAt": membership.joined_at.isoformat(),
        }
        for account, membership in workspaces.members(workspace.id)
        if account.id != workspace.owner_id
    ]


def new_memberships(
    members: list[dict[str, Any]], workspace_id: str, *, owner_id: str
) -> Iterator[tuple[str, MembershipRow | None]]:
    """Yield the e-mail address and the new membership of each member, except the new owner.

    No membership is returned if this stage has no account with that address.
    """
    for member in members:
        try:
            account = accounts.require_by_email(member["email"])
        except NotFoundError:
            yield member["email"], None
            continue
        if account.id != owner_id:
            joined = datetime.fromisoformat(member["joinedAt"])
            yield (
                member["email"],
                workspaces.membership_row(
                    account.id, workspace_id=workspace_id, role=member["role"], joined_at=joined
                ),
            )

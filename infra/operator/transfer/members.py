"""Who works in a workspace, by e-mail: accounts have other ids in another place."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from chalicelib.core.errors import NotFoundError
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.identity.store.workspaces import MembershipRow, WorkspaceRow


def of_workspace(workspace: WorkspaceRow) -> list[dict[str, Any]]:
    """Return the members besides the owner, in the order that they joined."""
    return [
        {
            "email": account.email,
            "role": membership.role,
            "joinedAt": membership.joined_at.isoformat(),
        }
        for account, membership in workspaces.members(workspace.id)
        if account.id != workspace.owner_id
    ]


def with_accounts(
    members: list[dict[str, Any]], workspace_id: str, owner_id: str
) -> Iterator[tuple[str, MembershipRow | None]]:
    """Yield the e-mail of each member and the membership to be; None without an account here."""
    for member in members:
        try:
            account = accounts.by_email(member["email"])
        except NotFoundError:
            yield member["email"], None
            continue
        if account.id != owner_id:
            joined = datetime.fromisoformat(member["joinedAt"])
            yield (
                member["email"],
                workspaces.membership_row(
                    account.id, workspace_id, role=member["role"], joined_at=joined
                ),
            )

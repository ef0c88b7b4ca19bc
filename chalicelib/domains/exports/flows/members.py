"""Export members by e-mail address, because account ids differ between stages."""

from typing import Any

from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.notifications.store import choices


def list_members(workspace: WorkspaceRow, *, is_by_key: bool) -> list[dict[str, Any]]:
    """Return the members in the order in which they joined, for a key the owner only.

    ``resourceId`` is the member of the staff that they are. ``notifications`` is what they want to
    be told, or null for a member who has chosen nothing.
    """
    chosen = choices.read_all(workspace.id)
    return [
        {
            "email": account.email,
            "role": membership.role,
            "joinedAt": membership.joined_at.isoformat(),
            "resourceId": membership.resource_id,
            "notifications": _exported(chosen.get(account.id)),
        }
        for account, membership in workspaces.members(workspace.id)
        if not is_by_key or account.id == workspace.owner_id
    ]


def _exported(row: choices.ChoicesRow | None) -> dict[str, Any] | None:
    return {"chosen": dict(row.chosen), "language": row.language} if row else None

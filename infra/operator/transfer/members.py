"""Import members by e-mail address, because account ids differ between stages."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from chalicelib.core.errors import NotFoundError
from chalicelib.core.principals import Role
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.identity.store.workspaces import MembershipRow
from chalicelib.domains.notifications.store import choices
from chalicelib.domains.notifications.store.choices import ChoicesRow


class NewMember(NamedTuple):
    """A member of the file, with the rows that they get here.

    Without an account with their address, they get none. The owner of the file gets a membership
    only as the owner here, which is the caller's to create.
    """

    email: str
    has_account: bool
    membership: MembershipRow | None = None
    choices: ChoicesRow | None = None


def new_members(
    members: list[dict[str, Any]],
    workspace_id: str,
    *,
    owner_id: str,
    rewrite: Callable[[str], str],
) -> Iterator[NewMember]:
    """Yield the members of a file. ``rewrite`` replaces the ids of a copy."""
    for member in members:
        email, is_owner = member["email"], member["role"] == Role.OWNER
        try:
            account = accounts.require_by_email(email)
        except NotFoundError:
            if not is_owner:
                yield NewMember(email, has_account=False)
            continue
        is_new_owner = account.id == owner_id
        if is_owner and not is_new_owner:
            continue
        # Files of version 2 have neither the member of the staff nor choices.
        resource_id = member.get("resourceId")
        membership = workspaces.membership_row(
            account.id,
            workspace_id=workspace_id,
            role=member["role"],
            resource_id=resource_id and rewrite(resource_id),
            joined_at=datetime.fromisoformat(member["joinedAt"]),
        )
        chosen = member.get("notifications")
        yield NewMember(
            email,
            has_account=True,
            membership=None if is_new_owner else membership,
            choices=chosen and choices.new_row(workspace_id, account_id=account.id, **chosen),
        )

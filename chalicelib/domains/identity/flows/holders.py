"""Accounts that may hold API keys and connections of a workspace."""

from chalicelib.core.errors import ConflictError, ForbiddenError
from chalicelib.core.principals import Role
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.accounts import AccountRow


def check_holder(account: AccountRow, workspace_id: str, what: str) -> None:
    """Check that an account may manage a workspace. ``what`` names what it wants, such as "keys".

    The call was authorized earlier, so the membership is read again here, after the lock row was
    read. Removing a member saves the lock row. A removal after this read therefore conflicts with
    the commit. Disabling an account does not save the lock row, so the commit must also require
    that the account is not disabled.

    Raises:
        ForbiddenError: the account neither owns nor manages the workspace.
        ConflictError: the account is disabled.
    """
    membership = workspaces.membership(account.id, workspace_id)
    if membership is None or not Role(membership.role).includes(Role.MANAGER):
        holders = "the owner and the managers of a workspace"
        msg = f"{what.capitalize()} are for {holders}. Ask one of them."
        raise ForbiddenError(msg)
    if account.disabled_at is not None:
        msg = f"The account {account.email} is disabled, and can have no {what}."
        raise ConflictError(msg)

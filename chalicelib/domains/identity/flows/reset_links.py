"""Links with which users set a new password, and whether they still work."""

from typing import NamedTuple

from chalicelib.core import clock
from chalicelib.core.settings import settings
from chalicelib.domains.identity.store import accounts, password_resets
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.password_resets import PasswordResetRow
from chalicelib.gateways.master_key import derived_token

PAGE = "/console/reset-password/{token}"
REQUEST_PAGE = "/console/forgot-password"


class OpenReset(NamedTuple):
    """A link that works now, and the account whose password it sets."""

    row: PasswordResetRow
    account: AccountRow


def token(reset_id: str) -> str:
    """Return the token of a link, or raise as ``derived_token``."""
    # As for invitations, a token is computed from an id with the master key. The database has its
    # hash only, and the job that sends the link can compute it again.
    return derived_token(f"password-reset:{reset_id}")


def page_url(reset_token: str) -> str:
    """Return the URL of the page on which the new password is set."""
    return settings().public_url + PAGE.format(token=reset_token)


def working(reset_token: str) -> OpenReset | None:
    """Return the link of a token, or None if it does not work."""
    # A link works once, for an hour, until the account is disabled or gets a new password in
    # another way. The clock decides, because DynamoDB removes expired rows up to two days late.
    row = password_resets.find(reset_token)
    if row is None or clock.now() >= row.expires_at:
        return None
    account = accounts.find_by_hash(row.address_hash)
    # An unproved address may belong to someone else, who would get the account with the link.
    if account is None or account.disabled_at is not None or not account.is_proved:
        return None
    changed_at = account.password_set_at
    # A link that was mailed before the last change of the password must not change it again.
    is_outdated = changed_at is not None and changed_at > row.created_at
    return None if is_outdated else OpenReset(row, account)

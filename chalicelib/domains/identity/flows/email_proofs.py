"""The proof of an account's address: a link that is mailed to it and shown nowhere else."""

import hmac

from chalicelib.core.settings import settings
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.gateways.master_key import derived_token
from chalicelib.lib import emails

PAGE = "/console/account/proof/{token}"


def page_url(account: AccountRow) -> str:
    """Return the URL of the page on which an account proves its address.

    Raises:
        NotConfiguredError: there is no master key.
        UnavailableError: the master key cannot be read.
    """
    return settings().public_url + PAGE.format(token=_token(account))


def is_genuine(token: str, account: AccountRow) -> bool:
    """Whether a token was mailed to an account."""
    return hmac.compare_digest(_token(account).encode(), token.encode())


def _token(account: AccountRow) -> str:
    return derived_token(f"proof:{account.id}:{emails.key(account.email)}")

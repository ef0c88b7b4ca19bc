"""Prove e-mail addresses of accounts by a link."""

import hmac

from chalicelib.core.settings import settings
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.gateways.master_key import derived_token
from chalicelib.lib import emails

PROOF_PAGE = "/console/account/proof/{token}"


def proof_page_url(account: AccountRow) -> str:
    """Return the URL of the page that proves an address. Raises the errors of ``master_key``."""
    return settings().public_url + PROOF_PAGE.format(token=_token(account))


def is_genuine(token: str, account: AccountRow) -> bool:
    """Whether a token was mailed to an account."""
    # The comparison takes constant time, so that a token cannot be guessed byte by byte.
    return hmac.compare_digest(_token(account).encode(), token.encode())


def _token(account: AccountRow) -> str:
    # The token contains the address, so a change of the address makes it useless.
    return derived_token(f"proof:{account.id}:{emails.key(account.email)}")

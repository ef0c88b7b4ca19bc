"""Links with which people make an account, and whether they still work."""

from chalicelib.core import clock
from chalicelib.core.errors import ForbiddenError, NotConfiguredError, NotFoundError
from chalicelib.core.settings import settings
from chalicelib.domains.identity.store import sign_ups
from chalicelib.domains.identity.store.sign_ups import SignUpRow
from chalicelib.gateways import mail
from chalicelib.gateways.master_key import derived_token

PAGE = "/console/sign-up/{token}"
SIGN_IN_PAGE = "/console/sign-in"


def is_open() -> bool:
    """Whether people can sign up: the operator has opened it, and mail is set up."""
    return settings().is_sign_up_open and mail.is_on()


def require_open() -> None:
    """Raise ForbiddenError unless the operator has opened sign-up."""
    if not settings().is_sign_up_open:
        msg = "Accounts and workspaces are made by the operator of this server. Ask the operator."
        raise ForbiddenError(msg, key="sign_up_closed")


def require_mail() -> None:
    """Raise NotConfiguredError unless links can be mailed."""
    if not mail.is_on():
        msg = "E-mail is not set up on this server. Ask the operator for an account."
        raise NotConfiguredError(msg, key="mail")


def token(sign_up_id: str) -> str:
    """Return the token of a link, or raise as ``derived_token``."""
    # As for new passwords, the database has the hash of a token only, and the job that sends the
    # link can compute the token again.
    return derived_token(f"sign-up:{sign_up_id}")


def page_url(sign_up_token: str) -> str:
    """Return the URL of the page on which the account is made."""
    return settings().public_url + PAGE.format(token=sign_up_token)


def read(sign_up_token: str) -> SignUpRow:
    """Return the row of a link that has not expired, used or not, or raise NotFoundError."""
    row = sign_ups.find(sign_up_token)
    # DynamoDB removes expired rows up to two days late.
    if row is None or clock.now() >= row.expires_at:
        raise gone()
    return row


def gone() -> NotFoundError:
    """Return the error for an unknown, an expired and a used link."""
    return NotFoundError("This link is no longer valid. Sign up again, or sign in.", key="link")

"""Prove between two requests that a browser knows a password, or was remembered after a code."""

import hmac
import re
from collections.abc import Iterator
from datetime import timedelta

from chalicelib.core import clock
from chalicelib.core.errors import UnauthorizedError
from chalicelib.domains.identity.store import accounts
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.gateways.master_key import derived_token

PASSWORD_LASTS = timedelta(minutes=10)  # in which a code must follow the password
REMEMBERED_FOR = timedelta(days=30)  # for which a browser needs no code
MAX_ACCOUNTS = 20  # that a browser is remembered for
MAX_LENGTH = 100
MAX_COOKIE = MAX_ACCOUNTS * MAX_LENGTH
_PROOF = re.compile(r"([0-9A-Z]{26})\.([0-9]{1,12})\.([\w-]{43})", re.ASCII)


def after_password(account: AccountRow) -> str:
    """Return the proof of a browser that has sent the password of an account."""
    return _proof("password", account, _now() + int(PASSWORD_LASTS.total_seconds()))


def account_of(proof: str) -> AccountRow:
    """Return the account whose password a browser has sent, or raise UnauthorizedError."""
    match = _PROOF.fullmatch(proof)
    account = accounts.read_by_id([match[1]]).get(match[1]) if match else None
    if account is None or account.disabled_at is not None or not account.signs_in_by_code:
        raise UnauthorizedError(
            "This sign-in is out of date. Sign in again.", key="sign_in_expired"
        )
    # The proof is wrong or too old, or the account has changed since.
    if not _is_valid(proof, purpose="password", account=account):
        raise UnauthorizedError(
            "This sign-in is out of date. Sign in again.", key="sign_in_expired"
        )
    return account


def is_remembered(cookie: str, account: AccountRow) -> bool:
    """Whether a browser needs no code of an account, by its cookie."""
    return any(_is_valid(proof, purpose="browser", account=account) for proof in _proofs(cookie))


def remember(cookie: str, account: AccountRow) -> str:
    """Return the cookie of a browser that needs no code of an account from now on."""
    others = [proof for proof in _proofs(cookie) if not proof.startswith(account.id)]
    until = _now() + int(REMEMBERED_FOR.total_seconds())
    return "~".join([*others[1 - MAX_ACCOUNTS :], _proof("browser", account, until)])


def _proofs(cookie: str) -> Iterator[str]:
    return (proof for proof in cookie.split("~", MAX_ACCOUNTS) if _PROOF.fullmatch(proof))


def _is_valid(proof: str, *, purpose: str, account: AccountRow) -> bool:
    account_id, until, _ = proof.split(".")
    if account_id != account.id or int(until) <= _now():
        return False
    # The comparison takes constant time, so that a proof cannot be guessed byte by byte.
    return hmac.compare_digest(_proof(purpose, account, int(until)), proof)


# Nothing is stored: a proof is computed with the master key. It ends with a new password, *sign out
# everywhere* and another second factor.
def _proof(purpose: str, account: AccountRow, until: int) -> str:
    epochs = f"{int(account.session_epoch)}\0{int(account.factor_epoch or 0)}"
    facts = f"{account.id}\0{epochs}\0{account.factor_salt}\0{until}"
    token = derived_token(f"sign-in\0{purpose}\0{facts}")
    return f"{account.id}.{until}.{token}"


def _now() -> int:
    return int(clock.now().timestamp())

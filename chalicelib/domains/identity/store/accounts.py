"""Accounts: who signs in, owns workspaces and makes keys."""

from collections.abc import Iterable
from typing import Any

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core.errors import NotFoundError
from chalicelib.engine.claims import ClaimRow, claim, name_hash
from chalicelib.engine.reading import Key, fetch
from chalicelib.engine.tables import IdentityRow

EMAIL_CLAIM = "email"
SORT_KEY = "account"


class AccountRow(IdentityRow):
    """An account.

    ``role`` is ``user`` or ``admin``; the password is kept as an argon2id hash only. Sessions of
    another ``session_epoch`` are over.
    """

    email = UnicodeAttribute()
    name = UnicodeAttribute()
    role = UnicodeAttribute()
    password_hash = UnicodeAttribute()
    password_set_at = UTCDateTimeAttribute(null=True)
    session_epoch = NumberAttribute(default=0)
    disabled_at = UTCDateTimeAttribute(null=True)
    created_at = UTCDateTimeAttribute()

    @property
    def id(self) -> str:
        """The account's id."""
        return self.pk.partition("#")[2]


def row(account_id: str, **attributes: Any) -> AccountRow:  # noqa: ANN401  the row's attributes
    """Return an account's row, to be staged."""
    return AccountRow(f"ACCOUNT#{account_id}", SORT_KEY, **attributes)


def email_claim(account: AccountRow) -> ClaimRow:
    """Return the claim of an account on its e-mail address, by which it is found."""
    return claim(EMAIL_CLAIM, name_hash(account.email), account.id)


def get(account_id: str) -> AccountRow:
    """Return an account by id.

    Raises:
        NotFoundError: there is none.
    """
    account = AccountRow.find(f"ACCOUNT#{account_id}", SORT_KEY)
    if account is None:
        msg = f'No account has the id "{account_id}".'
        raise NotFoundError(msg)
    return account


def is_disabled(account_id: str) -> bool:
    """Return whether an account is disabled."""
    account = AccountRow.find(f"ACCOUNT#{account_id}", SORT_KEY)
    return account is not None and account.disabled_at is not None


def find_by_email(email: str) -> AccountRow | None:
    """Return the account with this (normal) e-mail address, or None."""
    held = ClaimRow.find_claim(EMAIL_CLAIM, name_hash(email))
    return None if held is None else get(held.target)


def key(account_id: str) -> Key:
    """Return an account's key, to ``fetch`` it with others."""
    return Key(AccountRow, f"ACCOUNT#{account_id}", SORT_KEY)


def of_ids(account_ids: Iterable[str]) -> dict[str, AccountRow]:
    """Return the accounts that have these ids, by id, in one request; unknown ones are left out."""
    return {row.id: row for row in fetch(map(key, account_ids)) if isinstance(row, AccountRow)}


def by_email(email: str) -> AccountRow:
    """Return the account with this (normal) e-mail address.

    Raises:
        NotFoundError: nobody has it.
    """
    account = find_by_email(email)
    if account is None:
        msg = f"No account has the address {email}. Create it with create-account."
        raise NotFoundError(msg)
    return account

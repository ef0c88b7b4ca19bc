"""Accounts. An account signs in, owns workspaces and creates keys."""

from collections.abc import Iterable
from typing import Any

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core.errors import NotFoundError
from chalicelib.engine.claims import ClaimRow, claim, name_hash
from chalicelib.engine.reading import Key, Rows, fetch
from chalicelib.engine.tables import IdentityRow

EMAIL_CLAIM = "email"
SORT_KEY = "account"


class AccountRow(IdentityRow):
    """An account.

    ``role`` is ``user`` or ``admin``. The password is stored only as an argon2id hash. A session is
    valid only while its epoch equals ``session_epoch``. ``language`` is that of the console and of
    messages; without one, the browser and the workspace's country decide.
    """

    email = UnicodeAttribute()
    name = UnicodeAttribute()
    role = UnicodeAttribute()
    password_hash = UnicodeAttribute()
    password_set_at = UTCDateTimeAttribute(null=True)
    session_epoch = NumberAttribute(default=0)
    disabled_at = UTCDateTimeAttribute(null=True)
    language = UnicodeAttribute(null=True)
    created_at = UTCDateTimeAttribute()

    @property
    def id(self) -> str:
        """Id of the account."""
        return self.pk.partition("#")[2]


def row(account_id: str, **attributes: Any) -> AccountRow:  # noqa: ANN401  the row's attributes
    """Return the row of a new account. The caller stages it."""
    return AccountRow(f"ACCOUNT#{account_id}", SORT_KEY, **attributes)


def email_claim(account: AccountRow) -> ClaimRow:
    """Return the claim of an account on its e-mail address. Look-ups by address read the claim."""
    return claim(EMAIL_CLAIM, name_hash(account.email), account.id)


def get(account_id: str) -> AccountRow:
    """Return an account by id.

    Raises:
        NotFoundError: the account does not exist.
    """
    account = AccountRow.find(f"ACCOUNT#{account_id}", SORT_KEY)
    if account is None:
        msg = f'No account has the id "{account_id}".'
        raise NotFoundError(msg)
    return account


def is_disabled(account_id: str, rows: Rows | None = None) -> bool:
    """Return whether an account is disabled. It is taken from ``rows`` if they are given."""
    if rows is None:
        account = AccountRow.find(f"ACCOUNT#{account_id}", SORT_KEY)
    else:
        account = rows.find(AccountRow, key(account_id))
    return account is not None and account.disabled_at is not None


def find_by_email(email: str) -> AccountRow | None:
    """Return the account with this (normalised) e-mail address, or None."""
    held = ClaimRow.find_claim(EMAIL_CLAIM, name_hash(email))
    return None if held is None else get(held.target)


def key(account_id: str) -> Key:
    """Return an account's key, to ``fetch`` the account with other rows."""
    return Key(AccountRow, f"ACCOUNT#{account_id}", SORT_KEY)


def of_ids(account_ids: Iterable[str]) -> dict[str, AccountRow]:
    """Return the accounts with these ids, by id, in one request. Unknown ids are left out."""
    return {row.id: row for row in fetch(map(key, account_ids)) if isinstance(row, AccountRow)}


def by_email(email: str) -> AccountRow:
    """Return the account with this (normalised) e-mail address.

    Raises:
        NotFoundError: no account has the address.
    """
    account = find_by_email(email)
    if account is None:
        msg = f"No account has the address {email}. Create it with create-account."
        raise NotFoundError(msg)
    return account

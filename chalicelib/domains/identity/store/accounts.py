"""Manage accounts, which sign in, own workspaces and create keys."""

from collections.abc import Iterable
from typing import Any

from pynamodb.attributes import (
    BooleanAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.core.errors import NotFoundError
from chalicelib.engine.claims import ClaimRow, claim, exact_hash
from chalicelib.engine.conditional_updates import update_if
from chalicelib.engine.reading import Key, Rows, fetch
from chalicelib.engine.tables import IdentityRow
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import emails

EMAIL_CLAIM = "email"
SORT_KEY = "account"


class AccountRow(IdentityRow):
    email = UnicodeAttribute()
    name = UnicodeAttribute()
    role = UnicodeAttribute()  # ``user`` or ``admin``
    password_hash = UnicodeAttribute()  # argon2id
    password_set_at = UTCDateTimeAttribute(null=True)
    session_epoch = NumberAttribute(default=0)  # A session is valid only with the same epoch.
    disabled_at = UTCDateTimeAttribute(null=True)
    # Of the console and of messages; without one, the browser and the workspace's country decide.
    language = UnicodeAttribute(null=True)
    page_language = UnicodeAttribute(null=True)  # of the last sign-in page
    created_at = UTCDateTimeAttribute()
    email_verified_at = UTCDateTimeAttribute(null=True)
    # Set for an account whose address nobody has proved: one that was made by a link which the
    # inviter has seen.
    awaits_proof = BooleanAttribute(null=True)
    # When the account got the one e-mail by which it proves its address.
    proof_mailed_at = UTCDateTimeAttribute(null=True)
    factor_salt = UnicodeAttribute(null=True)  # set while a second factor is on
    factor_step = NumberAttribute(null=True)  # the last time step whose code was used
    factor_used = NumberAttribute(null=True)  # a bit for each recovery code that was used
    # Browsers that were remembered at a lower epoch are not any more.
    factor_epoch = NumberAttribute(null=True)
    sign_in_factor = BooleanAttribute(null=True)  # false if signing in needs no code

    @property
    def is_proved(self) -> bool:
        """Whether the owner has read an e-mail at the address, or is known to the operator."""
        return not self.awaits_proof

    @property
    def signs_in_by_code(self) -> bool:
        return self.factor_salt is not None and self.sign_in_factor is not False

    @property
    def mail_language(self) -> str | None:
        return self.language or self.page_language

    @property
    def id(self) -> str:
        return self.pk.partition("#")[2]


def row(account_id: str, **attributes: Any) -> AccountRow:  # noqa: ANN401  the row's attributes
    """Return the row of a new account, for the caller to stage."""
    return AccountRow(f"ACCOUNT#{account_id}", SORT_KEY, **attributes)


def stage_email_claim(unit: UnitOfWork, account: AccountRow, taken_error: Exception | None) -> None:
    """Stage the claim of a new account on its address.

    A taken one raises ``taken_error``. Without it, the unit starts again.
    """
    row = claim(EMAIL_CLAIM, name=email_hash(account.email), target=account.id)
    unit.create(row, on_conflict=taken_error)


def stage_proof(unit: UnitOfWork, account: AccountRow, *actions: Action) -> None:
    """Stage that the address of an account is proved, with other changes of the account."""
    proof = [AccountRow.email_verified_at.set(clock.now()), AccountRow.awaits_proof.remove()]
    unit.update(account, [*proof, *actions])


def stage_second_factor(
    unit: UnitOfWork, account: AccountRow, salt: str, *, step: int, at_sign_in: bool
) -> None:
    """Stage a new second factor, whose code of a time step was used to prove it."""
    actions: list[Action] = [
        AccountRow.factor_salt.set(salt),
        AccountRow.factor_step.set(step),
        AccountRow.factor_used.set(0),
        AccountRow.sign_in_factor.set(at_sign_in),
    ]
    unit.update(account, actions, AccountRow.factor_salt.does_not_exist())


def stage_factor_use(unit: UnitOfWork, account: AccountRow, *, step: int, used: int) -> None:
    """Stage the use of a code. Another use of the account's codes since its read is a conflict."""
    unchanged = (
        (AccountRow.factor_salt == account.factor_salt)
        & (AccountRow.factor_step == account.factor_step)
        & (AccountRow.factor_used == account.factor_used)
        & (AccountRow.password_hash == account.password_hash)
    )
    actions: list[Action] = [AccountRow.factor_step.set(step), AccountRow.factor_used.set(used)]
    unit.update(account, actions, unchanged)


def stage_factor_end(unit: UnitOfWork, account: AccountRow) -> None:
    """Stage the end of a second factor. Another one that was switched on since is a conflict."""
    actions: list[Action] = [AccountRow.factor_salt.remove(), AccountRow.sign_in_factor.remove()]
    unit.update(account, actions, AccountRow.factor_salt == account.factor_salt)


def note_proof_mailed(account: AccountRow) -> None:
    """Record that an account got the e-mail by which it proves its address."""
    update_if(account, [AccountRow.proof_mailed_at.set(clock.now())], AccountRow.pk.exists())


def email_hash(email: str) -> str:
    """Return the hash under which an e-mail address is claimed."""
    return exact_hash(emails.key(email))


def get(account_id: str) -> AccountRow:
    """Return an account by id, or raise NotFoundError."""
    account = AccountRow.find(f"ACCOUNT#{account_id}", SORT_KEY)
    if account is None:
        msg = f'No account has the id "{account_id}".'
        raise NotFoundError(msg, key="account")
    return account


def is_disabled(account_id: str, rows: Rows | None = None) -> bool:
    """Return whether an account is disabled. It is taken from ``rows`` if they are given."""
    if rows is None:
        account = AccountRow.find(f"ACCOUNT#{account_id}", SORT_KEY)
    else:
        account = rows.find(AccountRow, key(account_id))
    return account is not None and account.disabled_at is not None


def find_by_email(email: str) -> AccountRow | None:
    """Return the account with this e-mail address, or None."""
    return find_by_hash(email_hash(email))


def find_by_hash(hashed: str) -> AccountRow | None:
    """Return the account with the address of this hash (``email_hash``), or None."""
    row = ClaimRow.find_claim(EMAIL_CLAIM, name=hashed)
    # The same number of requests for known and unknown addresses hides which accounts exist.
    account_id = row.target if row else "-"
    return read_by_id([account_id]).get(account_id)


def key(account_id: str) -> Key:
    """Return an account's key, to ``fetch`` the account with other rows."""
    return Key(AccountRow, f"ACCOUNT#{account_id}", SORT_KEY)


def read_by_id(account_ids: Iterable[str]) -> dict[str, AccountRow]:
    """Return the accounts with these ids, by id, in one request. Unknown ids are left out."""
    return {row.id: row for row in fetch(map(key, account_ids)) if isinstance(row, AccountRow)}


def require_by_email(email: str) -> AccountRow:
    """Return the account with this e-mail address, or raise NotFoundError."""
    account = find_by_email(email)
    if account is None:
        msg = f"No account has the e-mail address {email}. Create the account with create-account."
        raise NotFoundError(msg, key="account")
    return account

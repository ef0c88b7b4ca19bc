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
from chalicelib.engine.claims import ClaimRow, claim, claim_key, exact_hash, name_hash
from chalicelib.engine.conditional_updates import update_if
from chalicelib.engine.reading import Key, Rows, fetch
from chalicelib.engine.tables import IdentityRow
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import emails

EMAIL_CLAIM = "email"
SORT_KEY = "account"


class AccountRow(IdentityRow):
    """An account.

    ``role`` is ``user`` or ``admin``. The password is stored only as an argon2id hash. A session is
    valid only while its epoch equals ``session_epoch``. ``language`` applies to the console and to
    messages; without one, the browser and the workspace's country decide. ``page_language`` is the
    language of the last sign-in page. ``awaits_proof`` is set
    for an account whose address nobody has proved: one that was made by a link which the inviter
    has seen. Earlier releases set neither it nor ``email_verified_at``. ``proof_mailed_at`` is when
    the account got the one e-mail by which it proves its address. ``factor_salt`` is set while a
    second factor is on. ``factor_step`` is the last time step whose code was used, and
    ``factor_used`` has a bit for each recovery code that was used. ``sign_in_factor`` is false if
    signing in needs no code. Browsers that were remembered at a lower ``factor_epoch`` are not any
    more.
    """

    email = UnicodeAttribute()
    name = UnicodeAttribute()
    role = UnicodeAttribute()
    password_hash = UnicodeAttribute()
    password_set_at = UTCDateTimeAttribute(null=True)
    session_epoch = NumberAttribute(default=0)
    disabled_at = UTCDateTimeAttribute(null=True)
    language = UnicodeAttribute(null=True)
    page_language = UnicodeAttribute(null=True)
    created_at = UTCDateTimeAttribute()
    email_verified_at = UTCDateTimeAttribute(null=True)
    awaits_proof = BooleanAttribute(null=True)
    proof_mailed_at = UTCDateTimeAttribute(null=True)
    factor_salt = UnicodeAttribute(null=True)
    factor_step = NumberAttribute(null=True)
    factor_used = NumberAttribute(null=True)
    factor_epoch = NumberAttribute(null=True)
    sign_in_factor = BooleanAttribute(null=True)

    @property
    def is_proved(self) -> bool:
        """Whether the owner has read an e-mail at the address, or is known to the operator.

        An account of an earlier release counts as proved.
        """
        return not self.awaits_proof

    @property
    def signs_in_by_code(self) -> bool:
        """Whether signing in needs a code of the second factor, except in remembered browsers.

        A factor of an earlier release is asked for, too.
        """
        return self.factor_salt is not None and self.sign_in_factor is not False

    @property
    def mail_language(self) -> str | None:
        """The chosen language of messages, or else the language of the last sign-in page."""
        return self.language or self.page_language

    @property
    def id(self) -> str:
        """Id of the account."""
        return self.pk.partition("#")[2]


def row(account_id: str, **attributes: Any) -> AccountRow:  # noqa: ANN401  the row's attributes
    """Return the row of a new account, for the caller to stage."""
    return AccountRow(f"ACCOUNT#{account_id}", SORT_KEY, **attributes)


def stage_email_claims(unit: UnitOfWork, account: AccountRow, taken_error: Exception) -> None:
    """Stage the claims of a new account on its e-mail address, by which it is found.

    The release before this one finds it by a former key, unless another account has that key
    (ADR 69). If another account has the address, ``taken_error`` is raised.
    """
    if find_by_email(account.email) is not None:
        raise taken_error
    current, *former = claim_hashes(account.email)
    # A claim that only the release before this one uses may be replaced (ADR 69).
    free = ClaimRow.pk.does_not_exist() | ClaimRow.is_former.exists()
    changes: list[Action] = [ClaimRow.target.set(account.id), ClaimRow.is_former.remove()]
    unit.update(
        claim(EMAIL_CLAIM, name=current, target=account.id), changes, free, on_conflict=taken_error
    )
    for name in set(former) - (ClaimRow.find_claimed(EMAIL_CLAIM, former) if former else set()):
        row = claim(EMAIL_CLAIM, name=name, target=account.id)
        row.is_former = True
        unit.create(row)


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
    """Record that an account got the e-mail by which it proves its address.

    Raises:
        UnavailableError: the database is unavailable.
    """
    update_if(account, [AccountRow.proof_mailed_at.set(clock.now())], AccountRow.pk.exists())


def unclaimed_email(account: AccountRow) -> ClaimRow | None:
    """Return the claim of an account under its current key, unless there is one."""
    name = email_hash(account.email)
    return (
        None
        if ClaimRow.find_claimed(EMAIL_CLAIM, [name])
        else claim(EMAIL_CLAIM, name=name, target=account.id)
    )


def email_hash(email: str) -> str:
    """Return the hash under which an e-mail address is claimed."""
    return exact_hash(emails.key(email))


def claim_hashes(email: str) -> list[str]:
    """Return the hash of an address, and the hash of the release before this one if it differs."""
    return list(dict.fromkeys((email_hash(email), name_hash(email))))


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
    """Return whether an account is disabled.

    It is taken from ``rows`` if they are given.
    """
    if rows is None:
        account = AccountRow.find(f"ACCOUNT#{account_id}", SORT_KEY)
    else:
        account = rows.find(AccountRow, key(account_id))
    return account is not None and account.disabled_at is not None


def find_by_email(email: str) -> AccountRow | None:
    """Return the account with this e-mail address, or None, after as many requests in either case.

    The former key of an address may belong to another address, too. So the account's own address
    decides.
    """
    return find_by_hashes(claim_hashes(email))


def find_by_hashes(hashes: list[str]) -> AccountRow | None:
    """Return the account with the address of these hashes (``claim_hashes``), or None."""
    keys = [Key(ClaimRow, *claim_key(EMAIL_CLAIM, name=name)) for name in hashes]
    targets = [row.target for row in fetch(keys) if isinstance(row, ClaimRow)]
    # The same number of requests for known and unknown addresses hides which accounts exist.
    candidates = read_by_id(targets or ["-"]).values()
    # The former key may be the key of another account's address, so the address itself decides.
    return next((account for account in candidates if email_hash(account.email) == hashes[0]), None)


def key(account_id: str) -> Key:
    """Return an account's key, to ``fetch`` the account with other rows."""
    return Key(AccountRow, f"ACCOUNT#{account_id}", SORT_KEY)


def read_by_id(account_ids: Iterable[str]) -> dict[str, AccountRow]:
    """Return the accounts with these ids, by id, in one request.

    Unknown ids are left out.
    """
    return {row.id: row for row in fetch(map(key, account_ids)) if isinstance(row, AccountRow)}


def require_by_email(email: str) -> AccountRow:
    """Return the account with this e-mail address.

    Raises:
        NotFoundError: no account has the address.
    """
    account = find_by_email(email)
    if account is None:
        msg = f"No account has the e-mail address {email}. Create the account with create-account."
        raise NotFoundError(msg)
    return account

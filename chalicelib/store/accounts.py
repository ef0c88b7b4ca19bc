"""Accounts: who logs in, owns workspaces and makes keys."""

from functools import cache
from typing import TYPE_CHECKING

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core import clock
from chalicelib.core.errors import ConflictError, NotFoundError, ValidationError
from chalicelib.core.ids import new_id
from chalicelib.core.text import fold
from chalicelib.store.claims import ClaimRow, claim, name_hash
from chalicelib.store.tables import IdentityRow
from chalicelib.store.unit import UnitOfWork

if TYPE_CHECKING:
    from argon2 import PasswordHasher

MIN_PASSWORD = 8
EMAIL_CLAIM = "email"


class AccountRow(IdentityRow):
    """An account.

    ``role`` is ``user`` or ``admin``; the password is kept as an argon2id hash only.
    """

    email = UnicodeAttribute()
    name = UnicodeAttribute()
    role = UnicodeAttribute()
    password_hash = UnicodeAttribute()
    created_at = UTCDateTimeAttribute()

    @property
    def id(self) -> str:
        """The account's id."""
        return self.pk.partition("#")[2]


SORT_KEY = "account"


@cache
def _hasher() -> "PasswordHasher":
    from argon2 import PasswordHasher  # noqa: PLC0415  only log-in and account creation need it

    return PasswordHasher()


def _normal_email(email: str) -> str:
    from email_validator import EmailNotValidError, validate_email  # noqa: PLC0415  as above

    try:
        return fold(
            validate_email(email, check_deliverability=False, test_environment=True).normalized
        )
    except EmailNotValidError as error:
        raise ValidationError.of("email", f'{error}; received "{email[:80]}"') from None


def create(email: str, password: str, role: str = "user", name: str = "") -> AccountRow:
    """Create an account.

    Raises:
        ValidationError: a malformed e-mail address or a password under 8 characters.
        ConflictError: the address has an account already.
    """
    email = _normal_email(email)
    if len(password) < MIN_PASSWORD:
        raise ValidationError.of(
            "password", f"expected at least {MIN_PASSWORD} characters, received {len(password)}"
        )
    account = AccountRow(
        f"ACCOUNT#{new_id()}",
        SORT_KEY,
        email=email,
        name=name or email.partition("@")[0],
        role=role,
        password_hash=_hasher().hash(password),
        created_at=clock.now(),
    )
    unit = UnitOfWork("", account.id)
    unit.create(account)
    taken = ConflictError(f"{email} has an account already. Log in, or use another address.")
    unit.create(claim(EMAIL_CLAIM, name_hash(email), account.id), on_conflict=taken)
    unit.commit()
    return account


def get(account_id: str) -> AccountRow:
    """Return an account by id."""
    account = AccountRow.find(f"ACCOUNT#{account_id}", SORT_KEY)
    if account is None:
        msg = f'No account has the id "{account_id}".'
        raise NotFoundError(msg)
    return account


def by_email(email: str) -> AccountRow:
    """Return the account with this e-mail address.

    Raises:
        NotFoundError: nobody has it.
    """
    held = ClaimRow.find_claim(EMAIL_CLAIM, name_hash(_normal_email(email)))
    if held is None:
        msg = f"No account has the address {email}. Create it with create-account."
        raise NotFoundError(msg)
    return get(held.target)

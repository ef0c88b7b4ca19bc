"""Links with which users set a new password, stored under the hashes of their tokens."""

from datetime import timedelta

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core import clock
from chalicelib.engine.tables import IdentityRow
from chalicelib.lib import tokens

LIFE = timedelta(hours=1)
SORT_KEY = "password-reset"


class PasswordResetRow(IdentityRow):
    """A request for a new password, until the link is used, or for an hour after its expiry."""

    # The hash under which an account may have claimed the address. Whether there is one is not
    # looked up before the e-mail is made.
    address_hash = UnicodeAttribute(attr_name="address_hashes")
    language = UnicodeAttribute()
    created_at = UTCDateTimeAttribute()
    expires_at = UTCDateTimeAttribute()


def row(token: str, *, address_hash: str, language: str) -> PasswordResetRow:
    """Return the row of a new link, for the caller to stage."""
    now = clock.now()
    return PasswordResetRow(
        _partition(token),
        SORT_KEY,
        address_hash=address_hash,
        language=language,
        created_at=now,
        expires_at=now + LIFE,
        expires=now + 2 * LIFE,
    )


def find(token: str) -> PasswordResetRow | None:
    """Return the row of a token, expired or not, in one consistent read."""
    return PasswordResetRow.find(_partition(token), SORT_KEY)


def _partition(token: str) -> str:
    return f"PASSWORD-RESET#{tokens.digest(token)}"

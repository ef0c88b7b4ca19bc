"""Links with which people make an account, stored under the hashes of their tokens."""

from datetime import timedelta

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute
from pynamodb.expressions.condition import Condition

from chalicelib.core import clock
from chalicelib.engine.tables import IdentityRow
from chalicelib.lib import tokens

LIFE = timedelta(hours=24)
SORT_KEY = "sign-up"


class SignUpRow(IdentityRow):
    """A request for an account, until a day after its expiry."""

    email = UnicodeAttribute()
    language = UnicodeAttribute()
    # The id of the workspace that the link will make. A repeated call finds the same one.
    workspace_id = UnicodeAttribute()
    created_at = UTCDateTimeAttribute()
    expires_at = UTCDateTimeAttribute()
    used_at = UTCDateTimeAttribute(null=True)
    account_id = UnicodeAttribute(null=True)  # that the link has made


def row(token: str, *, email: str, language: str, workspace_id: str) -> SignUpRow:
    """Return the row of a new link, for the caller to stage."""
    now = clock.now()
    return SignUpRow(
        _partition(token),
        SORT_KEY,
        email=email,
        language=language,
        workspace_id=workspace_id,
        created_at=now,
        expires_at=now + LIFE,
        expires=now + 2 * LIFE,
    )


def find(token: str) -> SignUpRow | None:
    """Return the row of a token, used and expired or not, in one consistent read."""
    return SignUpRow.find(_partition(token), SORT_KEY)


def is_unused() -> Condition:
    """Return the condition that a link has made no account yet."""
    unused: Condition = SignUpRow.used_at.does_not_exist() & SignUpRow.pk.exists()
    return unused


def _partition(token: str) -> str:
    return f"SIGN-UP#{tokens.digest(token)}"

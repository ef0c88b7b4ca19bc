"""Sessions of the console, stored under the hash of their tokens. Only the cookie has the token."""

import hashlib
from datetime import datetime, timedelta

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UTCDateTimeAttribute
from pynamodb.exceptions import UpdateError

from chalicelib.core import clock
from chalicelib.core.errors import UnavailableError
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.engine.reading import fetch_of
from chalicelib.engine.tables import IdentityRow

# A session ends 12 hours after its last use, 30 days after its start, or when it is ended by a
# call. All sessions of an account end when the account's ``session_epoch`` is raised.
IDLE = timedelta(hours=12)
LONGEST = timedelta(days=30)
# Minimum time between two writes of a session's last use, as for API keys.
SEEN_PRECISION = timedelta(minutes=10)
SORT_KEY = "session"


class ConsoleSessionRow(IdentityRow):
    session_id = UnicodeAttribute()
    account_id = UnicodeAttribute()
    epoch = NumberAttribute()
    # The user agent at sign-in, so that its owner can recognise it.
    browser = UnicodeAttribute(default="")
    created_at = UTCDateTimeAttribute()
    seen_at = UTCDateTimeAttribute()
    # Until then, no further proof of the user is needed.
    factor_until = UTCDateTimeAttribute(null=True)

    @property
    def is_confirmed(self) -> bool:
        return self.factor_until is not None and clock.now() < self.factor_until

    @property
    def ends_at(self) -> datetime:
        """Time at which the session ends unless it is used again."""
        return min(self.seen_at + IDLE, self.created_at + LONGEST)

    def lives(self, account: AccountRow) -> bool:
        # Raising the epoch of the account ends all its sessions with one write.
        same_epoch = int(self.epoch) == int(account.session_epoch)
        return same_epoch and account.disabled_at is None and clock.now() < self.ends_at


class ConsoleSessionLookupRow(IdentityRow):
    """Reference to an account's session."""

    record_pk = UnicodeAttribute()


def _partition(token: str) -> str:
    # The row has only the hash, so a copy of the database gives no access.
    return f"SESSION#{hashlib.sha256(token.encode()).hexdigest()}"


def _account_partition(account_id: str) -> str:
    return f"ACCOUNT#{account_id}#SESSIONS"


def row(token: str, account: AccountRow, session_id: str, *, browser: str) -> ConsoleSessionRow:
    """Return the row of a session that starts now, for the caller to stage."""
    now = clock.now()
    return ConsoleSessionRow(
        _partition(token),
        SORT_KEY,
        session_id=session_id,
        account_id=account.id,
        epoch=int(account.session_epoch),
        browser=browser,
        created_at=now,
        seen_at=now,
        expires=now + LONGEST,
    )


def lookup(session: ConsoleSessionRow) -> ConsoleSessionLookupRow:
    """Return the look-up row of a session, under its account."""
    return ConsoleSessionLookupRow(
        _account_partition(session.account_id),
        session.session_id,
        record_pk=session.pk,
        expires=session.expires,
    )


def find(token: str) -> ConsoleSessionRow | None:
    """Return the session with this token, ended or not, in one consistent read."""
    return ConsoleSessionRow.find(_partition(token), SORT_KEY)


def find_by_id(account_id: str, *, session_id: str) -> ConsoleSessionRow | None:
    """Return a session of an account, ended or not."""
    place = ConsoleSessionLookupRow.find(_account_partition(account_id), session_id)
    return ConsoleSessionRow.find(place.record_pk, SORT_KEY) if place is not None else None


def read_live(account: AccountRow) -> list[ConsoleSessionRow]:
    """Return an account's live sessions, newest first."""
    places = ConsoleSessionLookupRow.partition(_account_partition(account.id))
    rows = fetch_of(ConsoleSessionRow, ((place.record_pk, SORT_KEY) for place in places))
    living = [row for row in rows if row.lives(account)]
    return sorted(living, key=lambda row: row.session_id, reverse=True)


def touch(session: ConsoleSessionRow) -> None:
    """Write the time of a session's last use, unless it was written within the last ten minutes."""
    now = clock.now()
    if now - session.seen_at >= SEEN_PRECISION:
        try:
            session.update(
                [ConsoleSessionRow.seen_at.set(now)], condition=ConsoleSessionRow.pk.exists()
            )
        except (UpdateError, UnavailableError):
            return  # A failed write of the last use must not fail the request.

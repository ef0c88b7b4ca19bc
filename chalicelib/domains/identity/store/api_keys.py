"""API keys.

The record under a key's hash carries all a request needs, so authentication is one consistent read.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Literal

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute
from pynamodb.exceptions import UpdateError

from chalicelib.core import clock
from chalicelib.core.errors import NotFoundError, UnavailableError
from chalicelib.engine.connection import reaching
from chalicelib.engine.reading import Key, fetch
from chalicelib.engine.tables import IdentityRow, JsonAttribute
from chalicelib.lib import tokens

LAST_USE_PRECISION = timedelta(minutes=10)
"""A key's last use is written at most this often (security.md, Audit)."""
SORT_KEY = "key"
LOCK = "keys"
"""The lock row (``engine.locks``) of changes to which keys live, and on which plan."""
KeyState = Literal["live", "expired", "revoked"]


class ApiKeyRow(IdentityRow):
    """A key, under the SHA-256 of its token; ``masked`` is what may be displayed of it."""

    key_id = UnicodeAttribute()
    name = UnicodeAttribute()
    masked = UnicodeAttribute()
    workspace_id = UnicodeAttribute()
    account_id = UnicodeAttribute()
    role = UnicodeAttribute()
    plan = UnicodeAttribute()
    scopes: JsonAttribute = JsonAttribute()
    created_at = UTCDateTimeAttribute()
    expires_at = UTCDateTimeAttribute(null=True)
    revoked_at = UTCDateTimeAttribute(null=True)
    last_used_at = UTCDateTimeAttribute(null=True)

    @property
    def expired(self) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and bool(self.expires_at <= clock.now())

    @property
    def state(self) -> KeyState:
        """Whether it still works, or why not; a revoked one that has expired, too, was revoked."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expired else "live"

    @property
    def live(self) -> bool:
        """Whether it still works."""
        return self.state == "live"


class ApiKeyLookupRow(IdentityRow):
    """Where a key is.

    By workspace, and by key id for callers who have no workspace at hand.
    """

    record_pk = UnicodeAttribute()


def row(token: str, **attributes: Any) -> ApiKeyRow:  # noqa: ANN401  the row's attributes
    """Return the row of a new key, to be staged."""
    masked = f"{tokens.PREFIX}…{token[-4:]}"
    return ApiKeyRow(f"KEY#{tokens.digest(token)}", SORT_KEY, masked=masked, **attributes)


def lookups(key: ApiKeyRow) -> list[ApiKeyLookupRow]:
    """Return the rows that lead to a key."""
    places = ((_by_workspace(key.workspace_id), key.key_id), (_by_id(key.key_id), SORT_KEY))
    return [ApiKeyLookupRow(pk, sk, record_pk=key.pk) for pk, sk in places]


def _by_workspace(workspace_id: str) -> str:
    return f"W#{workspace_id}#APIKEY"


def _by_id(key_id: str) -> str:
    return f"KEYID#{key_id}"


def of_workspace(workspace_id: str) -> list[ApiKeyRow]:
    """Return all keys of a workspace, revoked ones included, in the order of their creation."""
    places = ApiKeyLookupRow.partition(_by_workspace(workspace_id))
    with reaching():
        rows = list(
            ApiKeyRow.batch_get([(p.record_pk, SORT_KEY) for p in places], consistent_read=True)
        )
    return sorted(rows, key=lambda row: row.key_id)


def of_ids(workspace_id: str, key_ids: Iterable[str]) -> dict[str, ApiKeyRow]:
    """Return the workspace's keys that have these ids, by id; revoked ones included."""
    places = [Key(ApiKeyLookupRow, _by_workspace(workspace_id), each) for each in key_ids]
    found = [row.record_pk for row in fetch(places) if isinstance(row, ApiKeyLookupRow)]
    rows = fetch(Key(ApiKeyRow, pk, SORT_KEY) for pk in found)
    return {row.key_id: row for row in rows if isinstance(row, ApiKeyRow)}


def live(workspace_id: str, account_id: str | None = None) -> list[ApiKeyRow]:
    """Return the keys that still work; those of one account, if one is given."""
    return [
        key
        for key in of_workspace(workspace_id)
        if key.live and (account_id is None or key.account_id == account_id)
    ]


def by_id(key_id: str, workspace_id: str | None = None) -> ApiKeyRow:
    """Return a key, revoked or not, by its id; of one workspace, if one is given.

    Raises:
        NotFoundError: no key, or none of that workspace, has this id.
    """
    place = ApiKeyLookupRow.find(_by_id(key_id), SORT_KEY)
    key = place and ApiKeyRow.find(place.record_pk, SORT_KEY)
    if not key or workspace_id not in {None, key.workspace_id}:
        # What was sent may be a token pasted by mistake: it is not repeated.
        raise NotFoundError("No key has this id. List the workspace's keys for valid ids.")
    return key


def authenticate(token: str) -> ApiKeyRow | None:
    """Return the live key with this token, in one consistent read, or None.

    A token with a wrong prefix, length or checksum costs no read at all.
    """
    if not tokens.well_formed(token):
        return None
    key = ApiKeyRow.find(f"KEY#{tokens.digest(token)}", SORT_KEY)
    return key if key is not None and key.live else None


def touch(key: ApiKeyRow) -> None:
    """Write the key's last use, unless that was done within ten minutes."""
    now = clock.now()
    if key.last_used_at is None or now - key.last_used_at >= LAST_USE_PRECISION:
        try:
            key.update([ApiKeyRow.last_used_at.set(now)], condition=ApiKeyRow.pk.exists())
        except (UpdateError, UnavailableError):
            return  # A missed note of use must not fail the request it notes.

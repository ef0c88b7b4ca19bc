"""API keys, stored so that authentication is one consistent read of a row with all it needs."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Literal

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UTCDateTimeAttribute
from pynamodb.exceptions import UpdateError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.core.errors import NotFoundError, UnavailableError
from chalicelib.core.test_workspaces import is_test
from chalicelib.engine.reading import fetch_of
from chalicelib.engine.tables import IdentityRow, JsonAttribute
from chalicelib.lib import tokens

LAST_USE_PRECISION = timedelta(minutes=10)  # minimum between two writes of a key's last use
SORT_KEY = "key"
# Lock row (``engine.locks``) that serialises changes of keys, members and plans.
LOCK = "keys"
KeyState = Literal["live", "expired", "revoked"]


class ApiKeyRow(IdentityRow):
    """A key, stored under the SHA-256 hash of its token."""

    key_id = UnicodeAttribute()
    name = UnicodeAttribute()
    masked = UnicodeAttribute()  # the token for display
    workspace_id = UnicodeAttribute()
    account_id = UnicodeAttribute()
    role = UnicodeAttribute()
    plan = UnicodeAttribute()
    scopes: JsonAttribute = JsonAttribute()
    created_at = UTCDateTimeAttribute()
    expires_at = UTCDateTimeAttribute(null=True)
    revoked_at = UTCDateTimeAttribute(null=True)
    last_used_at = UTCDateTimeAttribute(null=True)
    calls_per_minute = NumberAttribute(null=True)  # at most, if the owner has set a limit

    # Each request of a key reads these. PynamoDB's attribute access is ten times slower.
    @property
    def expired(self) -> bool:
        expires_at = self.attribute_values.get("expires_at")
        return expires_at is not None and bool(expires_at <= clock.now())

    @property
    def state(self) -> KeyState:
        if self.attribute_values.get("revoked_at") is not None:
            return "revoked"
        return "expired" if self.expired else "live"

    @property
    def live(self) -> bool:
        return self.state == "live"


class ApiKeyLookupRow(IdentityRow):
    """Reference to a key's row, by workspace, or by key id if the workspace is unknown."""

    record_pk = UnicodeAttribute()


def row(token: str, **attributes: Any) -> ApiKeyRow:  # noqa: ANN401  the row's attributes
    """Return the row of a new key, for the caller to stage."""
    masked = f"{prefix_for(attributes['workspace_id'])}…{token[-4:]}"
    return ApiKeyRow(f"KEY#{tokens.digest(token)}", SORT_KEY, masked=masked, **attributes)


def prefix_for(workspace_id: str) -> str:
    """Return the prefix of the keys of a workspace."""
    return tokens.TEST_PREFIX if is_test(workspace_id) else tokens.PREFIX


def lookups(key: ApiKeyRow) -> list[ApiKeyLookupRow]:
    """Return the look-up rows of a key."""
    places = (
        (_workspace_partition(key.workspace_id), key.key_id),
        (_id_partition(key.key_id), SORT_KEY),
    )
    return [ApiKeyLookupRow(pk, sk, record_pk=key.pk) for pk, sk in places]


def _workspace_partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#APIKEY"


def _id_partition(key_id: str) -> str:
    return f"KEYID#{key_id}"


def read_all(workspace_id: str) -> list[ApiKeyRow]:
    """Return all keys of a workspace, revoked ones included, in the order of their creation."""
    places = ApiKeyLookupRow.partition(_workspace_partition(workspace_id))
    rows = fetch_of(ApiKeyRow, ((place.record_pk, SORT_KEY) for place in places))
    return sorted(rows, key=lambda row: row.key_id)


def read_by_id(workspace_id: str, key_ids: Iterable[str]) -> dict[str, ApiKeyRow]:
    """Return the workspace's keys with these ids, including revoked keys, by id."""
    partition = _workspace_partition(workspace_id)
    places = fetch_of(ApiKeyLookupRow, ((partition, key_id) for key_id in key_ids))
    rows = fetch_of(ApiKeyRow, ((place.record_pk, SORT_KEY) for place in places))
    return {row.key_id: row for row in rows}


def is_as_read(key: ApiKeyRow) -> Condition:
    """Return the condition that a key is live, and has the name and the limit that were read."""
    limit = ApiKeyRow.calls_per_minute
    most = key.calls_per_minute
    has_limit = limit.does_not_exist() if most is None else limit == most
    is_live: Condition = ApiKeyRow.revoked_at.does_not_exist()
    is_same: Condition = (ApiKeyRow.name == key.name) & has_limit & is_live
    return is_same


def changes(key: ApiKeyRow) -> list[Action]:
    """Return the actions that give a stored key its name and its limit."""
    limit, most = ApiKeyRow.calls_per_minute, key.calls_per_minute
    return [ApiKeyRow.name.set(key.name), limit.remove() if most is None else limit.set(most)]


def live(workspace_id: str, account_id: str | None = None) -> list[ApiKeyRow]:
    """Return the keys that still work, optionally only the keys of one account."""
    return [
        key
        for key in read_all(workspace_id)
        if key.live and (account_id is None or key.account_id == account_id)
    ]


def require(key_id: str, workspace_id: str | None = None) -> ApiKeyRow:
    """Return a key by its id, revoked or not, or raise NotFoundError, also in another workspace."""
    place = ApiKeyLookupRow.find(_id_partition(key_id), SORT_KEY)
    key = place and ApiKeyRow.find(place.record_pk, SORT_KEY)
    if not key or workspace_id not in {None, key.workspace_id}:
        # The id may be a token, pasted by mistake, so the error does not repeat it.
        raise NotFoundError(
            "No key has this id. List the workspace's keys to find valid ids.", key="key"
        )
    return key


def find_by_token(token: str) -> ApiKeyRow | None:
    """Return the key with this token, live or not, in one consistent read, or None."""
    # The checksum rejects a mistyped or invented key without the cost of a read.
    prefix = tokens.TEST_PREFIX if token.startswith(tokens.TEST_PREFIX) else tokens.PREFIX
    if not tokens.well_formed(token, prefix=prefix):
        return None
    key = ApiKeyRow.find(f"KEY#{tokens.digest(token)}", SORT_KEY)
    return key if key is not None and prefix == prefix_for(key.workspace_id) else None


def touch(key: ApiKeyRow) -> None:
    """Write the time of a key's last use, unless it was written within the last ten minutes."""
    now, last_used_at = clock.now(), key.attribute_values.get("last_used_at")
    # A write in each request would cost more than the read of the request.
    if last_used_at is None or now - last_used_at >= LAST_USE_PRECISION:
        try:
            key.update([ApiKeyRow.last_used_at.set(now)], condition=ApiKeyRow.pk.exists())
        except (UpdateError, UnavailableError):
            return  # A failed write of the last use must not fail the request.

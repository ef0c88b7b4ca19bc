"""API keys.

The record under a key's hash carries all a request needs, so authentication is one consistent read.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pynamodb.attributes import JSONAttribute, UnicodeAttribute, UTCDateTimeAttribute
from pynamodb.exceptions import UpdateError

from chalicelib.core import clock
from chalicelib.core.errors import ConflictError, NotFoundError, ValidationError
from chalicelib.core.ids import new_id
from chalicelib.core.retry import retry_on_conflict
from chalicelib.core.scopes import parse_grants
from chalicelib.core.unit import AuditEvent
from chalicelib.rules import tokens
from chalicelib.store import accounts, locks
from chalicelib.store.tables import IdentityRow, reaching
from chalicelib.store.unit import UnitOfWork

if TYPE_CHECKING:
    from chalicelib.store.workspaces import WorkspaceRow

MAX_LIVE_KEYS = 50
"""Live keys of one workspace (contract, Keys and scopes)."""
LAST_USE_PRECISION = timedelta(minutes=10)
"""A key's last use is written at most this often (security.md, Audit)."""
SORT_KEY = "key"


class ApiKeyRow(IdentityRow):
    """A key, under the SHA-256 of its token; ``masked`` is what may be displayed of it."""

    key_id = UnicodeAttribute()
    name = UnicodeAttribute()
    masked = UnicodeAttribute()
    workspace_id = UnicodeAttribute()
    account_id = UnicodeAttribute()
    role = UnicodeAttribute()
    plan = UnicodeAttribute()
    scopes: JSONAttribute = JSONAttribute()
    created_at = UTCDateTimeAttribute()
    expires_at = UTCDateTimeAttribute(null=True)
    revoked_at = UTCDateTimeAttribute(null=True)
    last_used_at = UTCDateTimeAttribute(null=True)


class ApiKeyLookupRow(IdentityRow):
    """Where a key is.

    By workspace, and by key id for the operator, who has no workspace at hand.
    """

    record_pk = UnicodeAttribute()


def _by_workspace(workspace_id: str) -> str:
    return f"W#{workspace_id}#APIKEY"


def of_workspace(workspace_id: str) -> list[ApiKeyRow]:
    """Return all keys of a workspace, revoked ones included, in the order of their creation."""
    places = ApiKeyLookupRow.partition(_by_workspace(workspace_id))
    with reaching():
        rows = list(
            ApiKeyRow.batch_get([(p.record_pk, SORT_KEY) for p in places], consistent_read=True)
        )
    return sorted(rows, key=lambda row: row.key_id)


def live(workspace_id: str) -> list[ApiKeyRow]:
    """Return the keys that still work."""
    now = clock.now()
    return [
        key
        for key in of_workspace(workspace_id)
        if key.revoked_at is None and not _expired(key, now)
    ]


def create(
    workspace: "WorkspaceRow", name: str, scopes: list[str], expires_at: datetime | None = None
) -> tuple[ApiKeyRow, str]:
    """Create a key of the workspace's owner; return it with its token, shown this once.

    Raises:
        ValidationError: an unknown scope, an empty name or an expiry in the past.
        ConflictError: the workspace has 50 live keys.
    """
    now = clock.now()
    if not name.strip():
        raise ValidationError.of("name", "expected at least one character, received none")
    if expires_at is not None and expires_at <= now:
        raise ValidationError.of(
            "expires", f"expected a moment in the future, received {expires_at.isoformat()}"
        )
    try:
        grants = parse_grants(scopes)
    except ValueError as error:
        raise ValidationError.of("scopes", str(error)) from None
    token = tokens.generate()
    key = ApiKeyRow(
        f"KEY#{tokens.digest(token)}",
        SORT_KEY,
        key_id=new_id(),
        name=name.strip(),
        masked=f"{tokens.PREFIX}…{token[-4:]}",
        workspace_id=workspace.id,
        account_id=workspace.owner_id,
        role=accounts.get(workspace.owner_id).role,
        plan=workspace.plan,
        scopes=grants,
        created_at=now,
        expires_at=expires_at,
    )
    moved = ConflictError("The workspace's plan changed at this moment. Try again.")
    places = ((_by_workspace(workspace.id), key.key_id), (f"KEYID#{key.key_id}", SORT_KEY))

    def add() -> None:
        lock = locks.lock_row(workspace.id, "keys")
        count = len(live(workspace.id))
        if count >= MAX_LIVE_KEYS:
            msg = f"The workspace has {count} live keys, the most it can have. Revoke one first."
            raise ConflictError(msg)
        unit = UnitOfWork(workspace.id, key.key_id)
        unit.save(lock)
        unit.require(workspace, type(workspace).plan == workspace.plan, on_conflict=moved)
        unit.create(key)
        for pk, sk in places:
            unit.create(ApiKeyLookupRow(pk, sk, record_pk=key.pk))
        unit.commit(AuditEvent.by_operator("create_key", f"key:{key.key_id}"))

    retry_on_conflict(add)
    return key, token


def _expired(key: ApiKeyRow, now: datetime) -> bool:
    return key.expires_at is not None and key.expires_at <= now


def revoke(key_id: str) -> ApiKeyRow:
    """Revoke a key for good; revoking it again keeps the first time.

    Raises:
        NotFoundError: no key has this id.
    """
    place = ApiKeyLookupRow.find(f"KEYID#{key_id}", SORT_KEY)
    key = place and ApiKeyRow.find(place.record_pk, SORT_KEY)
    if not key:
        # What was sent may be a token pasted by mistake: it is not repeated.
        raise NotFoundError("No key has this id; create-key printed it as keyId.")
    if key.revoked_at is None:
        key.revoked_at = clock.now()
        unit = UnitOfWork(key.workspace_id, key_id)
        unit.update(key, [ApiKeyRow.revoked_at.set(key.revoked_at)])
        unit.commit(AuditEvent.by_operator("revoke_key", f"key:{key_id}"))
    return key


def authenticate(token: str) -> ApiKeyRow | None:
    """Return the live key with this token, in one consistent read, or None.

    A token with a wrong prefix, length or checksum costs no read at all.
    """
    if not tokens.well_formed(token):
        return None
    key = ApiKeyRow.find(f"KEY#{tokens.digest(token)}", SORT_KEY)
    now = clock.now()
    if key is None or key.revoked_at is not None or _expired(key, now):
        return None
    return key


def touch(key: ApiKeyRow) -> None:
    """Write the key's last use, unless that was done within ten minutes."""
    now = clock.now()
    if key.last_used_at is None or now - key.last_used_at >= LAST_USE_PRECISION:
        try:
            key.update([ApiKeyRow.last_used_at.set(now)], condition=ApiKeyRow.pk.exists())
        except UpdateError:
            return  # A missed note of use must not fail the request it notes.

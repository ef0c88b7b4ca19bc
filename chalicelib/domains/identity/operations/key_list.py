"""List a workspace's API keys with their owners, scopes and states."""

from collections.abc import Mapping
from typing import Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.operations import MANAGED, operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.domains.identity.operations.keys import MAX_LIVE_KEYS
from chalicelib.domains.identity.store import accounts, api_keys, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.api_keys import ApiKeyRow, KeyState


class KeyOwner(Wire):
    """Account that owns a key."""

    id: Id = Field(description="Account id.")
    name: str = Field(description="Name of the account.")
    email: str = Field(description="Its e-mail address.")


class KeyOut(Wire):
    """An API key without its token. The token is not stored; only its creator has it."""

    id: Id = Field(description="Key id.")
    name: str = Field(description="Name of the key.")
    masked: str = Field(description="Masked token: prefix and last four characters.")
    scopes: list[str] = Field(description="Scopes of the key.")
    state: KeyState = Field(description="live, expired or revoked.")
    account: KeyOwner | None = Field(description="Account that owns the key.")
    created_at: Timestamp = Field(description="When it was created.")
    expires_at: Timestamp | None = Field(description="When it expires, or null for never.")
    revoked_at: Timestamp | None = Field(description="When it was revoked, or null.")
    last_used_at: Timestamp | None = Field(
        description="When it was last used, within ten minutes; null for never."
    )
    calls_per_minute: int | None = Field(
        description="Maximum calls a minute, or null without a limit of its own."
    )

    @classmethod
    def from_record(cls, key: ApiKeyRow, owners: Mapping[str, AccountRow]) -> Self:
        owner = owners.get(key.account_id)
        key_owner = owner and KeyOwner.model_validate(owner)
        return cls.from_row(key.attribute_values, id=key.key_id, state=key.state, account=key_owner)


class KeyListQuery(Wire):
    """Arguments of listing a workspace's keys."""

    workspace_id: Id | None = optional("The workspace; the session's own if omitted.")


class KeyList(Wire):
    """All keys of a workspace."""

    keys: list[KeyOut] = Field(
        description="All keys, newest first, including revoked and expired ones."
    )
    live: int = Field(description="Number of live keys.")
    most: int = Field(description="Maximum number of live keys.")


@operation(
    title="List API keys",
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=lambda args: workspaces.get(args.workspace_id or "").id,
)
def list_keys(ctx: Context, args: KeyListQuery) -> KeyList:
    """List all API keys of a workspace, newest first, without their tokens."""
    rows = api_keys.read_all(ctx.workspace_id)[::-1]
    owners = accounts.read_by_id(key.account_id for key in rows)
    return KeyList(
        keys=[KeyOut.from_record(key, owners) for key in rows],
        live=sum(key.live for key in rows),
        most=MAX_LIVE_KEYS,
    )

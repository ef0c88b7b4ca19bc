"""API keys, which the console and the operator create with the same operation."""

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.application.invoke import require_plan
from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.errors import ConflictError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import MANAGED, operation
from chalicelib.core.principals import Audience, Role
from chalicelib.core.scopes import parse_grants
from chalicelib.core.wire.schema import (
    RECEIVED,
    Id,
    Patch,
    Timestamp,
    Wire,
    optional,
    printable,
)
from chalicelib.core.wire.times import Moment
from chalicelib.domains.identity.flows.confirmation import confirmed
from chalicelib.domains.identity.flows.connection_changes import check_holder, check_room
from chalicelib.domains.identity.flows.memberships import stage_revocations
from chalicelib.domains.identity.store import accounts, api_keys, connections, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine import locks
from chalicelib.engine.events.outbox import Event
from chalicelib.lib import tokens

MAX_LIVE_KEYS = 50  # in one workspace
# The longest life of a key: 100 years. Moments near the year 9999 overflow in some time zones.
LONGEST_LIFE = timedelta(days=36_525)
MAX_CALLS_PER_MINUTE = 60_000


def _check_grants(scopes: list[str]) -> list[str]:
    try:
        return parse_grants(scopes)
    except ValueError as error:
        raise PydanticCustomError(
            "unknown_scope", "{reason}", {"reason": str(error), RECEIVED: True}
        ) from None


def _check_in_future(moment: datetime) -> datetime:
    now = clock.now()
    if moment <= now:
        raise PydanticCustomError("past", "expected a time in the future")
    if moment > now + LONGEST_LIFE:
        message = "expected a time within the next 100 years, received {moment}"
        raise PydanticCustomError("too_late", message, {"moment": iso(moment), RECEIVED: True})
    return moment


KeyName = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=200),
    AfterValidator(printable),
]


class KeyCreate(Wire):
    """A new API key of a workspace."""

    workspace_id: Id | None = optional("The workspace; the session's own if omitted.")
    name: KeyName = Field(description="Name of the key, such as its purpose.")
    scopes: Annotated[list[str], AfterValidator(_check_grants)] = Field(
        description="Scopes, such as projects:read or *:write."
    )
    expires: Annotated[Moment, AfterValidator(_check_in_future)] | None = optional(
        "When it expires, in ISO 8601, UTC without an offset; never if omitted."
    )


class KeyCreated(Wire):
    """A new key with its token. The token is shown only in this answer."""

    key_id: Id = Field(description="Key id, for revoking the key.")
    token: str | None = Field(description="The token; it cannot be shown again.")
    scopes: list[str] = Field(description="Scopes of the key.")


class KeyRef(Wire):
    """Reference to a key."""

    id: Id = Field(description="Key id.")


class KeyPatch(Patch, KeyRef):
    """Changes to a key."""

    name: KeyName = optional("Name of the key, such as its purpose.")
    calls_per_minute: Annotated[int, Field(ge=1, le=MAX_CALLS_PER_MINUTE)] | None = optional(
        "Maximum calls a minute; null removes the limit."
    )


class KeyChanged(Wire):
    """A key after a change."""

    key_id: Id = Field(description="Key id.")
    name: str = Field(description="Name of the key.")
    calls_per_minute: int | None = Field(
        description="Maximum calls a minute, or null without a limit of its own."
    )


class KeyRevoked(Wire):
    """A revoked key."""

    key_id: Id = Field(description="Key id.")
    revoked_at: Timestamp = Field(description="When it was revoked.")


@operation(
    title="Create an API key",
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=lambda args: args.workspace_id or "",
    secret="token",  # noqa: S106  the name of the field
    confirm=confirmed(),
    example={"name": "Laptop", "scopes": ["*:read"]},
)
def create_key(ctx: Context, args: KeyCreate) -> KeyCreated:
    """Create an API key. Its token is shown only in this answer.

    A key belongs to the account that creates it. A key that the operator creates belongs to the
    workspace's owner. On a plan without API access, only the operator can create keys, which work
    after an upgrade. An account that is disabled, or cannot manage the workspace, gets no key.
    """
    lock = locks.lock_row(ctx.workspace_id, what=api_keys.LOCK)
    workspace = workspaces.get(ctx.workspace_id)
    if ctx.principal.audience is not Audience.OPERATOR:
        require_plan(workspace.plan_of_keys)
    account = accounts.get(ctx.principal.account_id or workspace.owner_id)
    check_holder(account, workspace.id, what="keys")
    count = len(api_keys.live(workspace.id))
    if count >= MAX_LIVE_KEYS:
        msg = f"The workspace has {count} active keys, which is the maximum. Revoke a key first."
        raise ConflictError(msg, key="too_many_keys", details={"maximum": MAX_LIVE_KEYS})
    check_room(count, connected=len(connections.live(workspace.id)))
    prefix = api_keys.prefix_for(workspace.id)
    token = ctx.unit.run_side_effect_once("token", lambda: tokens.generate(prefix))
    key = api_keys.row(
        token,
        key_id=new_id(),
        name=args.name,
        workspace_id=workspace.id,
        account_id=account.id,
        role=account.role,
        plan=workspace.plan_of_keys,
        scopes=args.scopes,
        created_at=clock.now(),
        expires_at=args.expires,
    )
    ctx.unit.save(lock)
    ctx.unit.require(workspace, WorkspaceRow.plan == workspace.plan)
    ctx.unit.require(account, AccountRow.disabled_at.does_not_exist())
    ctx.unit.create(key)
    for row in api_keys.lookups(key):
        ctx.unit.create(row)
    ctx.unit.mention(f"key:{key.key_id}")
    ctx.unit.outbox.emit(Event("key.created", key.key_id))
    return KeyCreated(key_id=key.key_id, token=token, scopes=key.scopes)


@operation(
    title="Revoke an API key",
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=lambda args: api_keys.require(args.id).workspace_id,
    idempotent=True,
    example={"id": "KEY_ID"},
)
def revoke_key(ctx: Context, args: KeyRef) -> KeyRevoked:
    """Revoke a key for good. Revoking it again keeps the time of the first revocation.

    Anyone who manages the workspace can revoke any key of it, because a leaked key cannot wait for
    the account that created it.
    """
    key = api_keys.require(args.id, ctx.workspace_id)
    if key.revoked_at is None:
        key.revoked_at = clock.now()
        stage_revocations(ctx.unit, [key])
        ctx.unit.outbox.emit(Event("key.revoked", key.key_id))
    return KeyRevoked(key_id=key.key_id, revoked_at=key.revoked_at)


@operation(
    title="Change an API key",
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=lambda args: api_keys.require(args.id).workspace_id,
    idempotent=True,
    example={"id": "KEY_ID", "name": "Laptop of Ada", "callsPerMinute": 100},
    errors=(ConflictError,),
)
def update_key(ctx: Context, args: KeyPatch) -> KeyChanged:
    """Rename a key, or limit how many calls a minute it may make.

    A limit holds from the next call on. Minutes begin when those of the clock do.
    """
    key = api_keys.require(args.id, ctx.workspace_id)
    if key.revoked_at is not None:
        raise ConflictError(
            "This key is revoked, so it cannot be changed. Choose another key.", key="key_revoked"
        )
    is_unchanged = api_keys.is_as_read(key)
    for name, value in args.changes.items():
        setattr(key, name, value)
    ctx.unit.update(key, api_keys.changes(key), is_unchanged)
    ctx.unit.mention(f"key:{key.key_id}")
    return KeyChanged.from_row(key.attribute_values)

"""List, add, change and delete the webhooks of a workspace."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import (
    ConflictError,
    InsufficientScopeError,
    NotConfiguredError,
    ValidationError,
)
from chalicelib.core.events import EVENT_TYPES
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import ATTEMPTS_END, WEBHOOK_REPLIES
from chalicelib.core.operations import KEYS_AND_MANAGED, operation
from chalicelib.core.principals import ApiKeyPrincipal, Principal, Role
from chalicelib.core.scopes import Scope
from chalicelib.core.test_workspaces import is_test
from chalicelib.core.wire.schema import (
    DeletedResult,
    Id,
    NoInput,
    Patch,
    Timestamp,
    Wire,
    optional,
)
from chalicelib.domains.identity.store import api_keys
from chalicelib.domains.identity.store.api_keys import ApiKeyRow
from chalicelib.domains.sites.store import sites
from chalicelib.domains.webhooks.flows import challenges, sending_times
from chalicelib.domains.webhooks.flows.wanted_types import stage_wanted_types
from chalicelib.domains.webhooks.rules import readable_types
from chalicelib.domains.webhooks.rules.signatures import webhook_secret
from chalicelib.domains.webhooks.store import webhooks
from chalicelib.domains.webhooks.store.webhooks import (
    ACTIVE,
    LOCK,
    MAX_WEBHOOKS,
    WEBHOOKS,
    WebhookRow,
)
from chalicelib.engine import jobs, locks
from chalicelib.engine.events.outbox import Event
from chalicelib.gateways import post
from chalicelib.gateways.master_key import master_key
from chalicelib.gateways.public_http import RefusedUrlError
from chalicelib.lib import public_urls

# For which the row of a deleted webhook stays. The e-mail about it waits at most a day.
KEPT_FOR_MAIL = timedelta(days=3)


def _receiver(url: str) -> str:
    try:
        parsed = post.parse_url(url)
    except RefusedUrlError as error:
        raise PydanticCustomError(
            "own_url" if error.key == "own_url" else "public_url",
            "{reason}",
            {"reason": error.reason},
        ) from None
    if parsed.is_private_address and parsed.scheme == "https":  # http is a developer's receiver
        raise PydanticCustomError("public_url", "expected a URL on the public internet")
    return str(parsed)


def _check_receiver(ctx: Context, url: str, *, former: str | None = None) -> None:
    # This service serves the sites, too.
    if sites.find_by_host(post.parse_url(url).host) is not None:
        msg = "expected a URL of another service, received the URL of a site of this service"
        raise ValidationError.of("url", message=msg, key="own_url")
    if url != former and is_test(ctx.workspace_id):
        ctx.unit.run_side_effect_once(
            "challenge", lambda: challenges.require_answer(ctx.workspace_id, url)
        )


def _event_type(name: str) -> str:
    if name in EVENT_TYPES:
        return name
    known_types = ", ".join(sorted(EVENT_TYPES))
    raise PydanticCustomError(
        "unknown_event_type", "expected one of {known}", {"known": known_types}
    )


Receiver = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=public_urls.MAX_LENGTH),
    AfterValidator(_receiver),
]
EventTypeName = Annotated[str, AfterValidator(_event_type)]
EventTypes = Annotated[list[EventTypeName], Field(max_length=len(EVENT_TYPES))]


class WebhookCreate(Wire):
    """A new webhook."""

    url: Receiver = Field(description="Public https URL that receives the events.")
    events: EventTypes | None = optional(
        "Types of events. All if omitted; for a key, all whose records it may read."
    )


class WebhookRef(Wire):
    """Id of a webhook."""

    id: Id = Field(description="Webhook id.")


class WebhookPatch(Patch):
    """Changes to a webhook."""

    CONDITIONS = frozenset({"id", "send_waiting"})

    id: Id = Field(description="Webhook id.")
    url: Receiver = optional("Public https URL that receives the events.")
    events: EventTypes = optional(
        "Types of events. An empty list means all; for a key, all whose records it may read."
    )
    status: Literal["active", "off"] = optional("active, or off: nothing is sent.")
    send_waiting: bool = Field(
        default=True,
        description="Whether events that waited are sent when it is switched on again.",
    )


class WebhookOut(Wire):
    """A webhook. Its secret is not stored."""

    id: Id = Field(description="Webhook id.")
    url: str = Field(description="URL that receives the events.")
    events: list[str] = Field(description="Types of events. An empty list means all.")
    hidden_events: int = Field(
        description="Number of further types, which this key may not read. Such a webhook is only "
        "listed: the key cannot change it, nor see what is sent to it. 0 for other callers."
    )
    status: str = Field(description="active, or off: nothing is sent.")
    off_because: str | None = Field(
        description="gone: the receiver answered 410. failing: it failed for 72 hours. "
        "key_revoked: a key that made or changed it was revoked. imported: the workspace was "
        "imported from a file; it has another secret here. null: somebody switched it off, or it "
        "is active."
    )
    key_ids: list[Id] = Field(
        description="Keys that made or changed it. It is switched off if one is revoked."
    )
    created_at: Timestamp = Field(description="When it was created.")

    @classmethod
    def from_record(cls, webhook: WebhookRow, principal: Principal) -> Self:
        hidden = readable_types.hidden_from(principal, webhook.types or EVENT_TYPES)
        shown = sorted({*(webhook.types or EVENT_TYPES)} - {*hidden}) if hidden else webhook.types
        return cls.from_row(webhook.values, events=shown, hidden_events=len(hidden))


class WebhookResult(Wire):
    """One webhook."""

    webhook: WebhookOut = Field(description="The webhook.")


class WebhookSecret(WebhookResult):
    """A webhook with its new secret. The secret is returned only once."""

    secret: str | None = Field(description="Secret of the signatures. It cannot be shown again.")


class WebhookList(Wire):
    """All webhooks of a workspace."""

    webhooks: list[WebhookOut] = Field(description="Webhooks, newest first.")
    most: int = Field(description="Maximum number of webhooks of a workspace.")


def workspace_of_webhook(args: WebhookRef | WebhookPatch) -> str:
    """Return the workspace of a webhook that a call names."""
    return WEBHOOKS.found(WEBHOOKS.workspace_of(args.id))


def require_readable(ctx: Context, webhook_id: str) -> WebhookRow:
    """Return a webhook, or raise InsufficientScopeError for a key that may not read all its types.

    Otherwise a key could send what it may not read to another URL, or get the secret of it.
    """
    webhook = WEBHOOKS.require(ctx.workspace_id, record_id=webhook_id)
    readable_types.check(ctx.principal, webhook.types or EVENT_TYPES, where="This webhook")
    return webhook


@operation(
    rest="GET /api/webhooks/list",
    scope=Scope.WEBHOOKS_READ,
    audience=KEYS_AND_MANAGED,
    role=Role.MANAGER,
    example={},
)
def list_webhooks(ctx: Context, args: NoInput) -> WebhookList:
    """List the webhooks of the workspace, newest first.

    A key sees only types of events whose records it may read.
    """
    rows = webhooks.read_all(ctx.workspace_id)
    return WebhookList(
        webhooks=[WebhookOut.from_record(webhook, ctx.principal) for webhook in rows],
        most=MAX_WEBHOOKS,
    )


@operation(
    title="Add a webhook",
    rest="POST /api/webhooks/create",
    scope=Scope.WEBHOOKS_WRITE,
    audience=KEYS_AND_MANAGED,
    role=Role.MANAGER,
    secret="secret",  # noqa: S106  the name of the field
    example={"url": "https://example.com/events", "events": ["lead.created"]},
    errors=(ConflictError, NotConfiguredError),
)
def create_webhook(ctx: Context, args: WebhookCreate) -> WebhookSecret:
    """Add a URL that receives events as signed requests (Standard Webhooks).

    The secret, with which the receiver verifies them, is shown only once. A key needs the read
    scope of each type's records. The owner of the workspace is told by mail. In a test workspace,
    the URL must answer a challenge.
    """
    _check_receiver(ctx, args.url)
    lock = locks.lock_row(ctx.workspace_id, what=LOCK)
    if len(webhooks.read_all(ctx.workspace_id)) >= MAX_WEBHOOKS:
        msg = (
            f"The workspace has {MAX_WEBHOOKS} webhooks, which is the maximum. Delete a webhook "
            "first."
        )
        raise ConflictError(msg, key="too_many_webhooks", details={"maximum": MAX_WEBHOOKS})
    webhook = WebhookRow(
        WEBHOOKS.partition(ctx.workspace_id),
        ctx.unit.run_side_effect_once("webhook id", new_id),
        url=args.url,
        types=_chosen_types(ctx.principal, args.events or ()),
        status=ACTIVE,
    )
    _note_change(ctx, webhook)
    ctx.unit.save(lock)
    ctx.unit.create(webhook)
    stage_wanted_types(ctx.unit, changed_webhook=webhook)
    return _with_secret(ctx, webhook)


@operation(
    title="Change a webhook",
    rest="POST /api/webhooks/update",
    scope=Scope.WEBHOOKS_WRITE,
    audience=KEYS_AND_MANAGED,
    role=Role.MANAGER,
    resolve=workspace_of_webhook,
    idempotent=True,
    example={"id": "WEBHOOK_ID", "events": ["lead.created", "booking.created"]},
)
def update_webhook(ctx: Context, args: WebhookPatch) -> WebhookResult:
    """Change a webhook's URL or types, or switch it off or on.

    Events that happen while it is off are not sent later. Events that waited when it was switched
    off are sent when it is on again, unless ``sendWaiting`` is false. Waiting events of a type that
    is left out are not sent. The owner of the workspace is told by mail.
    """
    lock = locks.lock_row(ctx.workspace_id, what=LOCK)
    webhook = require_readable(ctx, args.id)
    changes = args.changes
    if "url" in changes:
        _check_receiver(ctx, changes["url"], former=webhook.url)
        webhook.url = changes["url"]
    if "events" in changes:
        webhook.types = _chosen_types(ctx.principal, changes["events"])
    status = changes.get("status", webhook.status)
    is_switched_on = status == ACTIVE != webhook.status
    if is_switched_on:
        webhook.switch_on(send_waiting=args.send_waiting)
        sending_times.send_soon(ctx.unit, webhook.id, forget_failures=True)
    elif status != webhook.status:
        webhook.switch_off(None)
    _note_change(ctx, webhook, is_adopted=is_switched_on or "url" in changes)
    ctx.unit.save(lock)
    ctx.unit.save(webhook)
    stage_wanted_types(ctx.unit, changed_webhook=webhook)
    return WebhookResult(webhook=WebhookOut.from_record(webhook, ctx.principal))


@operation(
    title="Replace a webhook's secret",
    rest="POST /api/webhooks/rotate-secret",
    scope=Scope.WEBHOOKS_WRITE,
    audience=KEYS_AND_MANAGED,
    role=Role.MANAGER,
    resolve=workspace_of_webhook,
    secret="secret",  # noqa: S106  the name of the field
    example={"id": "WEBHOOK_ID"},
    errors=(NotConfiguredError,),
)
def rotate_webhook_secret(ctx: Context, args: WebhookRef) -> WebhookSecret:
    """Replace the secret of a webhook. The new one is shown only once.

    For 24 hours, requests are signed with the former secret as well. The owner of the workspace is
    told by mail.
    """
    webhook = require_readable(ctx, args.id)
    webhook.rotate()
    _note_change(ctx, webhook)
    ctx.unit.save(webhook)
    return _with_secret(ctx, webhook)


@operation(
    rest="POST /api/webhooks/delete",
    scope=Scope.WEBHOOKS_WRITE,
    audience=KEYS_AND_MANAGED,
    role=Role.MANAGER,
    resolve=workspace_of_webhook,
    example={"id": "WEBHOOK_ID"},
)
def delete_webhook(ctx: Context, args: WebhookRef) -> DeletedResult:
    """Delete a webhook. What waits for it is not sent.

    The owner of the workspace is told by mail.
    """
    lock = locks.lock_row(ctx.workspace_id, what=LOCK)
    webhook = require_readable(ctx, args.id)
    _note_author(ctx, webhook)
    ctx.unit.save(lock)
    ctx.unit.soft_delete(webhook, until=clock.now() + KEPT_FOR_MAIL)
    ctx.unit.outbox.emit(Event("webhook.deleted", webhook.id))
    # An erasure does not find the replies of a webhook that is gone.
    due_at, payload = clock.now() + ATTEMPTS_END, {"webhookId": webhook.id}
    ctx.unit.create(jobs.row(WEBHOOK_REPLIES, ctx.workspace_id, payload, due_at))
    stage_wanted_types(ctx.unit, deleted=webhook)
    return DeletedResult(id=webhook.id, deleted=True)


def _chosen_types(principal: Principal, names: Iterable[str]) -> list[str]:
    # A type that is added to the service later may be of records that the key cannot read, so all
    # types of a key are those of today.
    chosen = sorted(set(names))
    if chosen or not isinstance(principal, ApiKeyPrincipal):
        readable_types.check(principal, chosen, where="events")
        return chosen
    readable = sorted({*EVENT_TYPES} - {*readable_types.hidden_from(principal, EVENT_TYPES)})
    if not readable:
        msg = "Expected a key that may read records with events, such as crm:read for leads."
        raise InsufficientScopeError(msg)
    return readable


def _note_change(ctx: Context, webhook: WebhookRow, *, is_adopted: bool = False) -> None:
    _note_author(ctx, webhook, is_adopted=is_adopted)
    ctx.unit.outbox.emit(Event("webhook.changed", webhook.id))


def _note_author(ctx: Context, webhook: WebhookRow, *, is_adopted: bool = False) -> None:
    caller = ctx.principal
    webhook.changed_by, webhook.changed_with = caller.audit_actor, None
    if isinstance(caller, ApiKeyPrincipal):
        webhook.changed_with = caller.key_id
        webhook.key_ids = [*dict.fromkeys((*webhook.key_ids, caller.key_id))]
        # The job of a revocation at the same time finds the webhook, or this change fails.
        key = api_keys.require(caller.key_id, ctx.workspace_id)
        ctx.unit.require(key, ApiKeyRow.revoked_at.does_not_exist())
    elif is_adopted:
        webhook.key_ids = []


def _with_secret(ctx: Context, webhook: WebhookRow) -> WebhookSecret:
    version = int(webhook.secret_version)
    secret = webhook_secret(master_key(), ctx.workspace_id, webhook_id=webhook.id, version=version)
    return WebhookSecret(webhook=WebhookOut.from_record(webhook, ctx.principal), secret=secret)

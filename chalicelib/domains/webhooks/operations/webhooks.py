"""List, add, change and delete the webhooks of a workspace."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ConflictError, ValidationError
from chalicelib.core.events import EVENT_TYPES
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import ATTEMPTS_END, WEBHOOK_REPLIES
from chalicelib.core.operations import MANAGED, operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import DeletedResult, Id, Patch, Timestamp, Wire, optional
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.sites.store import sites
from chalicelib.domains.webhooks.flows import sending_times
from chalicelib.domains.webhooks.flows.wanted_types import stage_wanted_types
from chalicelib.domains.webhooks.rules.signatures import webhook_secret
from chalicelib.domains.webhooks.store import webhooks
from chalicelib.domains.webhooks.store.webhooks import (
    ACTIVE,
    LOCK,
    MAX_WEBHOOKS,
    OFF,
    WEBHOOKS,
    WebhookRow,
)
from chalicelib.engine import jobs, locks
from chalicelib.gateways import post
from chalicelib.gateways.master_key import master_key
from chalicelib.gateways.public_http import RefusedUrlError
from chalicelib.lib import public_urls


def _receiver(url: str) -> str:
    try:
        parsed = post.parse_url(url)
    except RefusedUrlError as error:
        raise PydanticCustomError("receiver", "{reason}", {"reason": error.reason}) from None
    if parsed.is_private_address and parsed.scheme == "https":  # http is a developer's receiver
        raise PydanticCustomError("receiver", "expected a URL on the public internet")
    return str(parsed)


def _check_receiver(url: str) -> None:
    # This service serves the sites, too.
    if sites.find_by_host(post.parse_url(url).host) is not None:
        msg = "expected a URL of another service, received the URL of a site of this service"
        raise ValidationError.of("url", message=msg)


def _event_type(name: str) -> str:
    if name in EVENT_TYPES:
        return name
    known_types = ", ".join(sorted(EVENT_TYPES))
    raise PydanticCustomError("event_type", "expected one of {known}", {"known": known_types})


Receiver = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=public_urls.MAX_LENGTH),
    AfterValidator(_receiver),
]
EventTypeName = Annotated[str, AfterValidator(_event_type)]
EventTypes = Annotated[list[EventTypeName], Field(max_length=len(EVENT_TYPES))]


class WebhookCreate(Wire):
    """A new webhook."""

    workspace_id: Id | None = optional("Workspace id.")
    url: Receiver = Field(description="Public https URL that receives the events.")
    types: EventTypes | None = optional("Types of events; all of them if omitted.")


class WebhookCreated(Wire):
    """A new webhook with its secret. The secret is returned only once."""

    webhook_id: Id = Field(description="Webhook id.")
    secret: str | None = Field(description="Secret of the signatures. It cannot be shown again.")


class WebhookRef(Wire):
    """Id of a webhook."""

    webhook_id: Id = Field(description="Webhook id.")


class WebhookPatch(Patch):
    """Changes to a webhook."""

    CONDITIONS = frozenset({"webhook_id", "send_waiting"})

    webhook_id: Id = Field(description="Webhook id.")
    url: Receiver = optional("Public https URL that receives the events.")
    types: EventTypes = optional("Types of events; an empty list means all.")
    status: Literal["active", "off"] = optional("active, or off: nothing is sent.")
    send_waiting: bool = Field(
        default=True,
        description="Whether events that waited are sent when it is switched on again.",
    )


class WebhookListQuery(Wire):
    """Workspace whose webhooks to list."""

    workspace_id: Id | None = optional("Workspace id.")


class WebhookOut(Wire):
    """A webhook. Its secret is not stored."""

    id: Id = Field(description="Webhook id.")
    url: str = Field(description="URL that receives the events.")
    types: list[str] = Field(description="Types of events. An empty list means all.")
    status: str = Field(description="active, or off: nothing is sent.")
    off_because: str | None = Field(
        description="gone: the receiver answered 410. failing: it failed for 72 hours. null: a "
        "person switched it off, or it is active."
    )
    created_at: Timestamp = Field(description="When it was created.")


class WebhookResult(Wire):
    """One webhook."""

    webhook: WebhookOut = Field(description="The webhook.")


class WebhookList(Wire):
    """All webhooks of a workspace."""

    webhooks: list[WebhookOut] = Field(description="Webhooks, newest first.")
    most: int = Field(description="Maximum number of webhooks of a workspace.")


def workspace_of_webhook(args: WebhookRef | WebhookPatch) -> str:
    """Return the workspace of a webhook that a call names."""
    return WEBHOOKS.found(WEBHOOKS.workspace_of(args.webhook_id))


@operation(
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=lambda args: workspaces.get(args.workspace_id or "").id,
)
def list_webhooks(ctx: Context, args: WebhookListQuery) -> WebhookList:
    """List the webhooks of a workspace, newest first."""
    rows = webhooks.read_all(ctx.workspace_id)
    return WebhookList(webhooks=[_to_wire(webhook) for webhook in rows], most=MAX_WEBHOOKS)


@operation(
    title="Add a webhook",
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=lambda args: workspaces.get(args.workspace_id or "").id,
    secret="secret",  # noqa: S106  the name of the field
    errors=(ConflictError,),
)
def create_webhook(ctx: Context, args: WebhookCreate) -> WebhookCreated:
    """Add a URL that receives events as signed requests (Standard Webhooks).

    The secret, with which the receiver verifies them, is shown only once.
    """
    _check_receiver(args.url)
    lock = locks.lock_row(ctx.workspace_id, what=LOCK)
    if len(webhooks.read_all(ctx.workspace_id)) >= MAX_WEBHOOKS:
        msg = (
            f"The workspace has {MAX_WEBHOOKS} webhooks, which is the maximum. Delete a webhook "
            "first."
        )
        raise ConflictError(msg)
    webhook = WebhookRow(
        WEBHOOKS.partition(ctx.workspace_id),
        ctx.unit.run_side_effect_once("webhook id", new_id),
        url=args.url,
        types=sorted(set(args.types or ())),
        status=ACTIVE,
    )
    ctx.unit.save(lock)
    ctx.unit.create(webhook)
    stage_wanted_types(ctx.unit, changed_webhook=webhook)
    return WebhookCreated(webhook_id=webhook.id, secret=_secret(ctx, webhook))


@operation(
    title="Change a webhook",
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=workspace_of_webhook,
)
def update_webhook(ctx: Context, args: WebhookPatch) -> WebhookResult:
    """Change a webhook's URL or types, or switch it off or on.

    Events that happen while it is off are not sent later. Events that waited when it was switched
    off are sent when it is on again, unless ``sendWaiting`` is false.
    """
    lock = locks.lock_row(ctx.workspace_id, what=LOCK)
    webhook = WEBHOOKS.require(ctx.workspace_id, record_id=args.webhook_id)
    changes = args.changes
    if "url" in changes:
        _check_receiver(changes["url"])
    webhook.url = changes.get("url", webhook.url)
    webhook.types = sorted(set(changes.get("types", webhook.types)))
    if (status := changes.get("status", webhook.status)) != webhook.status:
        if status == OFF:
            webhook.switch_off(None)
        else:
            webhook.switch_on(send_waiting=args.send_waiting)
            sending_times.send_soon(ctx.unit, webhook.id, forget_failures=True)
    ctx.unit.save(lock)
    ctx.unit.save(webhook)
    stage_wanted_types(ctx.unit, changed_webhook=webhook)
    return WebhookResult(webhook=_to_wire(webhook))


@operation(
    title="Replace a webhook's secret",
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=workspace_of_webhook,
    secret="secret",  # noqa: S106  the name of the field
)
def rotate_webhook_secret(ctx: Context, args: WebhookRef) -> WebhookCreated:
    """Replace the secret of a webhook. The new one is shown only once.

    For 24 hours, requests are signed with the former secret as well.
    """
    webhook = WEBHOOKS.require(ctx.workspace_id, record_id=args.webhook_id)
    webhook.rotate()
    ctx.unit.save(webhook)
    return WebhookCreated(webhook_id=webhook.id, secret=_secret(ctx, webhook))


@operation(audience=MANAGED, role=Role.MANAGER, resolve=workspace_of_webhook)
def delete_webhook(ctx: Context, args: WebhookRef) -> DeletedResult:
    """Delete a webhook. What waits for it is not sent."""
    lock = locks.lock_row(ctx.workspace_id, what=LOCK)
    webhook = WEBHOOKS.require(ctx.workspace_id, record_id=args.webhook_id)
    ctx.unit.save(lock)
    ctx.unit.delete(webhook)
    # An erasure does not find the replies of a webhook that is gone.
    due_at, payload = clock.now() + ATTEMPTS_END, {"webhookId": webhook.id}
    ctx.unit.create(jobs.row(WEBHOOK_REPLIES, ctx.workspace_id, payload, due_at))
    stage_wanted_types(ctx.unit, deleted=webhook)
    return DeletedResult(id=webhook.id, deleted=True)


def _secret(ctx: Context, webhook: WebhookRow) -> str:
    version = int(webhook.secret_version)
    return webhook_secret(master_key(), ctx.workspace_id, webhook_id=webhook.id, version=version)


def _to_wire(webhook: WebhookRow) -> WebhookOut:
    return WebhookOut.from_row(webhook.values)

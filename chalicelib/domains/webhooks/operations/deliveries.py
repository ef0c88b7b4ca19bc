"""Send events to webhooks by jobs, and list the deliveries."""

from functools import partial

from pydantic import Field

from chalicelib.application import records
from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ConflictError, NotFoundError
from chalicelib.core.events import TEST_EVENT
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import WEBHOOK_REPLIES, Job, job_handler
from chalicelib.core.operations import KEYS_AND_MANAGED, MANAGED, operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Timestamp, Wire
from chalicelib.domains.webhooks.flows import (
    due_deliveries,
    make_deliveries,
    sending,
    sending_times,
)
from chalicelib.domains.webhooks.flows.sending_times import DELIVER_WEBHOOK
from chalicelib.domains.webhooks.operations.webhooks import (
    WebhookRef,
    require_readable,
    workspace_of_webhook,
)
from chalicelib.domains.webhooks.rules import readable_types
from chalicelib.domains.webhooks.store import deliveries, webhooks
from chalicelib.domains.webhooks.store.deliveries import DeliveryRow
from chalicelib.domains.webhooks.store.webhooks import ACTIVE, WEBHOOKS, WebhookRow
from chalicelib.engine.events.outbox import Event

LISTED = 50


class DeliveryRef(Wire):
    """Id of a delivery."""

    delivery_id: str = Field(min_length=1, max_length=200, description="Delivery id.")


class DeliveryOut(Wire):
    """A delivery of an event, with the outcome of its latest attempt."""

    id: str = Field(description="Delivery id, to send the event again.")
    event_id: str = Field(description="Event id, which the receiver gets as webhook-id.")
    type: str = Field(description="Type of the event.")
    record_id: str = Field(description="Id of the record that changed.")
    occurred_at: Timestamp = Field(description="When it happened.")
    state: str = Field(description="waiting, delivered, or failed: it is not sent again.")
    attempts: int = Field(description="Number of attempts.")
    attempted_at: Timestamp | None = Field(description="Time of the latest attempt, or null.")
    next_attempt_at: Timestamp | None = Field(description="Time of the next attempt, or null.")
    status: int | None = Field(description="HTTP status of the receiver, or null.")
    milliseconds: int | None = Field(description="Duration of the latest attempt, or null.")
    reply: str | None = Field(
        description="Beginning of the receiver's answer to a failed attempt, or null."
    )
    error: str | None = Field(description="Why there was no answer, or null.")


class DeliveryList(Wire):
    """The latest deliveries of a webhook."""

    deliveries: list[DeliveryOut] = Field(description="Deliveries, newest first.")


class DeliveryQueued(Wire):
    """An event that is sent soon."""

    delivery_id: str = Field(description="Delivery id.")
    event_id: str = Field(description="Event id.")


def _workspace_of_delivery(args: DeliveryRef) -> str:
    return WEBHOOKS.found(WEBHOOKS.workspace_of(deliveries.webhook_of(args.delivery_id)))


@operation(
    title="List deliveries",
    rest="GET /api/webhooks/{id}/deliveries",
    scope=Scope.WEBHOOKS_READ,
    audience=KEYS_AND_MANAGED,
    resolve=workspace_of_webhook,
    role=Role.MANAGER,
    example={"id": "WEBHOOK_ID"},
)
def list_webhook_deliveries(ctx: Context, args: WebhookRef) -> DeliveryList:
    """List the latest 50 deliveries of a webhook, newest first. They are kept for 30 days.

    A key does not see those of types that it may not read.
    """
    webhook = require_readable(ctx, args.id)
    latest_rows = deliveries.latest(ctx.workspace_id, webhook_id=webhook.id, limit=LISTED)
    # The webhook may have had other types before.
    hidden = readable_types.hidden_from(ctx.principal, {row.type for row in latest_rows})
    return DeliveryList(deliveries=[_to_wire(row) for row in latest_rows if row.type not in hidden])


@operation(
    title="Send an event again",
    rest="POST /api/webhooks/resend",
    scope=Scope.WEBHOOKS_WRITE,
    audience=KEYS_AND_MANAGED,
    role=Role.MANAGER,
    resolve=_workspace_of_delivery,
    example={"deliveryId": "DELIVERY_ID"},
    errors=(ConflictError,),
)
def resend_webhook_delivery(ctx: Context, args: DeliveryRef) -> DeliveryQueued:
    """Send an event to a webhook again, whatever came of it before."""
    webhook = _active(ctx, deliveries.webhook_of(args.delivery_id))
    delivery = deliveries.find(ctx.workspace_id, args.delivery_id)
    if delivery is None:
        msg = "The webhook has no delivery with this id. Deliveries are kept for 30 days."
        raise NotFoundError(msg, key="delivery")
    readable_types.check(ctx.principal, [delivery.type], where="This delivery")
    ctx.unit.mention(f"webhook:{webhook.id}")
    ctx.unit.update(*deliveries.to_send_again(delivery))
    sending_times.send_soon(ctx.unit, webhook.id)
    return DeliveryQueued(delivery_id=delivery.id, event_id=delivery.event_id)


@operation(
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=workspace_of_webhook,
    errors=(ConflictError,),
    example={"id": "WEBHOOK_ID"},
)
def send_test_event(ctx: Context, args: WebhookRef) -> DeliveryQueued:
    """Send an event of the type webhook.test to a webhook, whatever types it receives."""
    webhook = _active(ctx, args.id)
    event_id = ctx.unit.run_side_effect_once("event id", lambda: f"evt_{new_id()}")
    event = Event(TEST_EVENT, webhook.id)
    actor = ctx.principal.audit_actor
    ctx.unit.mention(f"webhook:{webhook.id}")
    delivery = make_deliveries.new_delivery(
        ctx.workspace_id,
        webhook_id=webhook.id,
        event_id=event_id,
        event=event,
        actor=actor,
        at=clock.now(),
    )
    ctx.unit.create(delivery)
    sending_times.send_soon(ctx.unit, webhook.id)
    return DeliveryQueued(delivery_id=delivery.id, event_id=event_id)


def _active(ctx: Context, webhook_id: str) -> WebhookRow:
    webhook = require_readable(ctx, webhook_id)
    if webhook.status != ACTIVE:
        msg = "The webhook is switched off, so no event can be sent. Switch the webhook on first."
        raise ConflictError(msg, key="webhook_off")
    return webhook


def _to_wire(delivery: DeliveryRow) -> DeliveryOut:
    return DeliveryOut.from_row(
        delivery.attribute_values,
        id=delivery.id,
        event_id=delivery.event_id,
        next_attempt_at=delivery.due_at,
    )


@job_handler(DELIVER_WEBHOOK)
def deliver(job: Job) -> None:
    """Send the due events of a webhook."""
    due_deliveries.take(
        job.workspace_id, webhook_id=job.payload["webhookId"], send=partial(_send, job.workspace_id)
    )


@job_handler(WEBHOOK_REPLIES)
def forget_replies(job: Job) -> None:
    """Remove the replies to events of erased records or of a deleted webhook."""
    if webhook_id := job.payload.get("webhookId"):
        return deliveries.forget_replies(job.workspace_id, webhook_id=webhook_id)
    erased = set(job.payload["recordIds"])
    for webhook in webhooks.read_all(job.workspace_id):
        deliveries.forget_replies(job.workspace_id, webhook_id=webhook.id, record_ids=erased)
    return None


def _send(workspace_id: str, webhook: WebhookRow, delivery: DeliveryRow) -> sending.Attempt:
    record = records.read(workspace_id, event_type=delivery.type, record_id=delivery.record_id)
    return sending.send_delivery(workspace_id, webhook, delivery, record)

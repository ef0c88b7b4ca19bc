"""Make the deliveries of events to the webhooks that want them."""

from datetime import datetime

from chalicelib.core import clock, deadline
from chalicelib.core.jobs import WEBHOOK_EVENTS, Job, job_handler
from chalicelib.domains.webhooks.flows.sending_times import schedule_turn
from chalicelib.domains.webhooks.store import deliveries, webhooks
from chalicelib.domains.webhooks.store.deliveries import DeliveryRow
from chalicelib.engine.events.outbox import Event

PARALLEL_WRITES = 8


@job_handler(WEBHOOK_EVENTS)
def make_deliveries(job: Job) -> None:
    """Make the deliveries of the events in a job, each once, and wake their webhooks."""
    occurred_at = datetime.fromisoformat(job.payload["at"])
    receivers = webhooks.read_all(job.workspace_id)
    delivery_rows: list[DeliveryRow] = []
    woken: dict[str, None] = {}
    for number, values in enumerate(job.payload["events"]):
        event = Event(*values)
        for webhook in receivers:
            if webhook.receives(event.type, occurred_at):
                woken[webhook.id] = None
                delivery_rows.append(
                    new_delivery(
                        job.workspace_id,
                        webhook_id=webhook.id,
                        event_id=f"evt_{job.job_id}_{number}",
                        event=event,
                        actor=job.payload["actor"],
                        at=occurred_at,
                    )
                )
    # A delivery that exists is not written again, so a repeated job makes none twice.
    deadline.map_in_threads(deliveries.add, delivery_rows, PARALLEL_WRITES)
    for webhook_id in woken:
        schedule_turn(job.workspace_id, webhook_id=webhook_id, due_at=clock.now())


def new_delivery(  # noqa: PLR0913  the parts of a delivery
    workspace_id: str,
    *,
    webhook_id: str,
    event_id: str,
    event: Event,
    actor: str,
    at: datetime,
) -> DeliveryRow:
    """Return the delivery of an event to a webhook."""
    return deliveries.row(
        workspace_id,
        webhook_id=webhook_id,
        event_id=event_id,
        type=event.type,
        record_id=event.id,
        record_revision=event.revision,
        previous_status=event.previous_status,
        actor=actor or None,
        occurred_at=at,
    )

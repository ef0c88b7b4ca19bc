"""Makes the deliveries of events: one for each event and each webhook that receives it."""

from datetime import datetime

from chalicelib.core import clock, deadline
from chalicelib.core.jobs import DELIVER_WEBHOOK, WEBHOOK_EVENTS, Job, job_handler
from chalicelib.domains.webhooks.store import deliveries, turns, webhooks
from chalicelib.domains.webhooks.store.deliveries import DeliveryRow
from chalicelib.engine import jobs
from chalicelib.engine.events import wake
from chalicelib.engine.events.outbox import Event
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.unit import UnitOfWork

PARALLEL_WRITES = 8


@job_handler(WEBHOOK_EVENTS)
def make_deliveries(job: Job) -> None:
    """Make the deliveries of the events in a job, and wake their webhooks.

    It may run more than once: an event has the same id each time, and a delivery is made once.

    Raises:
        UnavailableError: the database is unavailable.
    """
    occurred_at = datetime.fromisoformat(job.payload["at"])
    receivers = webhooks.of_workspace(job.workspace_id)
    made: list[DeliveryRow] = []
    woken: dict[str, None] = {}
    for number, values in enumerate(job.payload["events"]):
        event = Event(*values)
        for webhook in receivers:
            if webhook.receives(event.type, occurred_at):
                woken[webhook.id] = None
                place = (job.workspace_id, webhook.id, f"evt_{job.job_id}_{number}")
                made.append(new_delivery(*place, event, actor=job.payload["actor"], at=occurred_at))
    deadline.map_in_threads(deliveries.add, made, PARALLEL_WRITES)
    for webhook_id in woken:
        schedule(job.workspace_id, webhook_id, clock.now())


def new_delivery(  # noqa: PLR0913  the parts of a delivery
    workspace_id: str,
    webhook_id: str,
    event_id: str,
    event: Event,
    *,
    actor: str,
    at: datetime,
) -> DeliveryRow:
    """Return the delivery of an event to a webhook."""
    return deliveries.row(
        workspace_id,
        webhook_id,
        event_id,
        type=event.type,
        record_id=event.id,
        record_revision=event.revision,
        previous_status=event.previous_status,
        actor=actor or None,
        occurred_at=at,
    )


def schedule(workspace_id: str, webhook_id: str, due_at: datetime) -> None:
    """Schedule a turn of a webhook. Turns at the same time are one.

    Raises:
        UnavailableError: the database is unavailable.
    """
    jobs.schedule(turn(workspace_id, webhook_id, due_at))


def send_soon(unit: UnitOfWork, webhook_id: str, *, forget_failures: bool = False) -> None:
    """Stage a turn of a webhook that is due now, even if the webhook rests after a failure."""
    state = turns.without_rest(unit.workspace_id, webhook_id, forget_failures=forget_failures)
    unit.update(*state)
    unit.save(turn(unit.workspace_id, webhook_id, clock.now()))
    unit.after_commit(wake.wake)


def turn(workspace_id: str, webhook_id: str, due_at: datetime) -> JobRow:
    """Return the job for a turn of a webhook.

    Turns that are due by now are one for each second, so that many events make few of them.
    """
    payload = {"webhookId": webhook_id}
    if due_at <= clock.now():
        due_at = due_at.replace(microsecond=0)
    return jobs.row(DELIVER_WEBHOOK, workspace_id, payload, due_at, job_id=webhook_id)

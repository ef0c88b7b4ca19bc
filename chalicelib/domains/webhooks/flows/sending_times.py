"""Schedule when the due deliveries of a webhook are sent."""

from datetime import datetime

from chalicelib.core import clock
from chalicelib.core.jobs import JobKind, Queue
from chalicelib.domains.webhooks.store import turns
from chalicelib.engine import jobs
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.unit import UnitOfWork

DELIVER_WEBHOOK = JobKind("deliver-webhook", Queue.EVENTS)  # sends what is due to one webhook


def schedule_turn(workspace_id: str, *, webhook_id: str, due_at: datetime) -> None:
    """Schedule a turn of a webhook. Turns at the same time are one."""
    jobs.schedule(turn(workspace_id, webhook_id=webhook_id, due_at=due_at))


def send_soon(unit: UnitOfWork, webhook_id: str, *, forget_failures: bool = False) -> None:
    """Stage a turn of a webhook that is due now, even if the webhook rests after a failure."""
    state = turns.end_rest(
        unit.workspace_id, webhook_id=webhook_id, forget_failures=forget_failures
    )
    unit.update(*state)
    unit.save(turn(unit.workspace_id, webhook_id=webhook_id, due_at=clock.now()))


def turn(workspace_id: str, *, webhook_id: str, due_at: datetime) -> JobRow:
    """Return the job for a turn of a webhook. Turns that are due by now are one for each second."""
    payload = {"webhookId": webhook_id}
    if due_at <= clock.now():
        # Turns of the same second have the same key, so that many events make one job.
        due_at = due_at.replace(microsecond=0)
    return jobs.row(DELIVER_WEBHOOK, workspace_id, payload, due_at, job_id=webhook_id)

"""Switch off the webhooks of revoked keys."""

from chalicelib.core.jobs import Job, job_handler
from chalicelib.domains.identity.rules.job_kinds import PAUSE_WEBHOOKS
from chalicelib.domains.webhooks.flows.due_deliveries import switch_off
from chalicelib.domains.webhooks.store import webhooks
from chalicelib.domains.webhooks.store.webhooks import KEY_REVOKED


@job_handler(PAUSE_WEBHOOKS)
def pause_webhooks(job: Job) -> None:
    """Switch off the webhooks that revoked keys have made or changed."""
    revoked = set(job.payload["keyIds"])
    for webhook in webhooks.read_all(job.workspace_id):
        if revoked.intersection(webhook.key_ids):
            switch_off(job.workspace_id, webhook_id=webhook.id, reason=KEY_REVOKED)

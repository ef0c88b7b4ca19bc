"""The types of events that the webhooks of a workspace want."""

from chalicelib.domains.webhooks.store import webhooks
from chalicelib.domains.webhooks.store.webhooks import WebhookRow
from chalicelib.engine.events import subscriptions
from chalicelib.engine.unit import UnitOfWork


def stage_wanted_types(
    unit: UnitOfWork,
    *,
    changed_webhook: WebhookRow | None = None,
    deleted: WebhookRow | None = None,
) -> None:
    """Stage the types that webhooks want, after a staged change. The unit saves the lock row."""
    there = {webhook.id: webhook for webhook in webhooks.read_all(unit.workspace_id)}
    if changed_webhook is not None:
        there[changed_webhook.id] = changed_webhook
    if deleted is not None:
        del there[deleted.id]
    types = set[str]().union(*(webhook.wanted_types for webhook in there.values()))
    # A unit of work stores no job for an event that no webhook wants.
    unit.update(*subscriptions.change_of_webhooks(unit.workspace_id, types))
    unit.after_commit(subscriptions.forget)

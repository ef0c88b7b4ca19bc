"""The events that the webhooks of a workspace want."""

from chalicelib.domains.webhooks.store import webhooks
from chalicelib.domains.webhooks.store.webhooks import WebhookRow
from chalicelib.engine.events import subscriptions
from chalicelib.engine.unit import UnitOfWork


def stage_wanted_types(
    unit: UnitOfWork, *, changed: WebhookRow | None = None, deleted: WebhookRow | None = None
) -> None:
    """Stage the types that the webhooks want, after a change or a deletion that is staged.

    The unit saves the lock row of the workspace's webhooks.
    """
    there = {each.id: each for each in webhooks.of_workspace(unit.workspace_id)}
    if changed is not None:
        there[changed.id] = changed
    if deleted is not None:
        del there[deleted.id]
    types = set[str]().union(*(each.wanted_types for each in there.values()))
    unit.update(*subscriptions.change_of_webhooks(unit.workspace_id, types))
    unit.after_commit(subscriptions.forget)

"""The webhook of the demo, which reports events to ``/dev/webhooks`` of ``make dev``."""

from chalicelib.core.settings import settings
from infra.local.data_dir import DataDir
from infra.operator.operation_commands import call


def ensure(data: DataDir) -> None:
    """Give the demo a webhook that leads to the receiver of this stack, whose port may change.

    A webhook that the developer has deleted is not made again. One whose secret was lost, because
    an earlier start was killed, is replaced.
    """
    demo, url = data.demo, f"{settings().public_url}/dev/webhooks"
    if demo.get("webhookUrl") == url:
        return
    webhooks = call("list_webhooks", {"workspaceId": demo["workspaceId"]})["webhooks"]
    webhook_ids = {webhook["id"] for webhook in webhooks}
    if demo.get("webhookId") in webhook_ids:
        call("update_webhook", {"id": demo["webhookId"], "url": url})
    elif "webhookId" not in demo:
        for webhook in webhooks:
            if webhook["url"] == url:
                call("delete_webhook", {"id": webhook["id"]})
        created_webhook = call("create_webhook", {"workspaceId": demo["workspaceId"], "url": url})
        demo |= {
            "webhookId": created_webhook["webhook"]["id"],
            "webhookSecret": created_webhook["secret"],
        }
    data.demo = {**demo, "webhookUrl": url}

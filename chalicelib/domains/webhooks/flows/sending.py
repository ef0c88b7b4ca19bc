"""Send one delivery to its webhook, as a signed request."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

from pydantic_core import to_json

from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.events import EVENT_TYPES
from chalicelib.core.operations import REGISTRY
from chalicelib.core.settings import settings
from chalicelib.core.test_workspaces import is_test
from chalicelib.domains.webhooks.rules.signatures import signed_headers, webhook_secret
from chalicelib.domains.webhooks.store.deliveries import DeliveryRow
from chalicelib.domains.webhooks.store.webhooks import WebhookRow
from chalicelib.gateways import post
from chalicelib.gateways.master_key import master_key
from chalicelib.gateways.public_http import FetchError

# Maximum size of an event with its record. A larger event has only ids, and the URL of its record.
MAX_BODY_BYTES = 20_000


class Attempt(NamedTuple):
    """Outcome of an attempt."""

    status: int | None
    milliseconds: int
    reply: str = ""
    error: str | None = None  # why there was no response
    retry_after: timedelta | None = None

    @property
    def is_ok(self) -> bool:
        return self.status is not None and 200 <= self.status <= 299  # noqa: PLR2004  the statuses of success


Send = Callable[[WebhookRow, DeliveryRow], Attempt]


def send_delivery(
    workspace_id: str, webhook: WebhookRow, delivery: DeliveryRow, record: dict[str, Any] | None
) -> Attempt:
    """Send an event with its record as it is now. ``record`` is None if it is deleted or erased."""
    body = body_of(workspace_id, delivery, record)
    # The time is signed, so it must be the time of this attempt (Standard Webhooks).
    now, key = clock.now(), master_key()
    versions = webhook.valid_versions
    secrets = [
        webhook_secret(key, workspace_id, webhook_id=webhook.id, version=version)
        for version in versions
    ]
    headers = signed_headers(secrets, delivery.event_id, now, body)
    try:
        reply = post.post(webhook.url, body, {"Content-Type": "application/json", **headers})
    except FetchError as error:
        elapsed = round((clock.now() - now).total_seconds() * 1000)
        return Attempt(None, elapsed, error=error.reason)
    return Attempt(
        reply.status,
        reply.milliseconds,
        reply.body.decode(errors="replace"),
        retry_after=timedelta(seconds=reply.retry_after) if reply.retry_after else None,
    )


def body_of(workspace_id: str, delivery: DeliveryRow, record: dict[str, Any] | None) -> bytes:
    """Return the body of an event. If it would be too large, it has ids and a URL instead.

    An event of a test workspace says so.
    """
    optional = {
        "revision": delivery.record_revision,
        "actor": delivery.actor,
        "previousStatus": delivery.previous_status,
    }
    known_values = {name: value for name, value in optional.items() if value is not None}
    data: dict[str, Any] = {"id": delivery.record_id, **known_values}
    event: dict[str, Any] = {"type": delivery.type, "timestamp": iso(delivery.occurred_at)}
    if is_test(workspace_id):
        event["isTest"] = True
    body = to_json({**event, "data": {**data, "object": record}})
    if len(body) <= MAX_BODY_BYTES:
        return body
    return to_json({**event, "data": {**data, "url": _url(delivery)}})


def _url(delivery: DeliveryRow) -> str:
    path = REGISTRY[EVENT_TYPES[delivery.type].read_by].path
    if "{id}" not in path:
        path += "?id={id}"
    return settings().public_url + path.replace("{id}", delivery.record_id)

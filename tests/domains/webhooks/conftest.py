"""Fixtures for tests of webhooks."""

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.events import EVENT_TYPES
from chalicelib.gateways import post
from tests.conftest import Owner, Time, call_operator
from tests.domains.notifications.conftest import inbox  # noqa: F401  a fixture
from tests.factories.examples import Things
from tests.fakes.receiver import Receiver

URL = "https://receiver.example/events"
AddWebhook = Callable[..., dict[str, Any]]


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Receiver:
    """A receiver of all webhooks."""
    fake = Receiver()
    monkeypatch.setattr(post, "post", fake.post)
    return fake


@pytest.fixture
def add_webhook(owner: Owner, receiver: Receiver) -> AddWebhook:
    """Add a webhook of the workspace, and return it with its secret."""

    def add(*types: str, url: str = URL) -> dict[str, Any]:
        chosen = {"events": list(types)} if types else {}
        created = call_operator("create_webhook", workspaceId=owner.workspace.id, url=url, **chosen)
        return {**created["webhook"], "secret": created["secret"]}

    return add


@pytest.fixture
def webhook(add_webhook: AddWebhook, things: Things, time: Time) -> dict[str, Any]:
    """A webhook that receives all events of leads, and others, but not those of new clients."""
    return add_webhook(*sorted({*EVENT_TYPES} - {"client.created"}))


def send_test(webhook: dict[str, Any]) -> str:
    """Send a test event, and return its id."""
    event_id: str = call_operator("send_test_event", id=webhook["id"])["eventId"]
    return event_id


def change(webhook: dict[str, Any], **values: Any) -> None:
    """Change the webhook."""
    call_operator("update_webhook", id=webhook["id"], **values)


def deliveries(webhook: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the deliveries of a webhook, newest first."""
    listed_deliveries: list[dict[str, Any]] = call_operator(
        "list_webhook_deliveries", id=webhook["id"]
    )["deliveries"]
    return listed_deliveries

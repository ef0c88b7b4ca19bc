"""Fixtures for tests of webhooks."""

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.gateways import post
from tests.conftest import Owner, Time, call_operator
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
    """Add a webhook of the workspace, and return its id and secret."""

    def add(*types: str, url: str = URL) -> dict[str, Any]:
        type_arguments = {"types": list(types)} if types else {}
        webhook: dict[str, Any] = call_operator(
            "create_webhook", workspaceId=owner.workspace.id, url=url, **type_arguments
        )
        return webhook

    return add


@pytest.fixture
def webhook(add_webhook: AddWebhook, things: Things, time: Time) -> dict[str, Any]:
    """A webhook that receives all events."""
    return add_webhook()


def send_test(webhook: dict[str, Any]) -> str:
    """Send a test event, and return its id."""
    event_id: str = call_operator("send_test_event", webhookId=webhook["webhookId"])["eventId"]
    return event_id


def change(webhook: dict[str, Any], **values: Any) -> None:
    """Change the webhook."""
    call_operator("update_webhook", webhookId=webhook["webhookId"], **values)


def deliveries(webhook: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the deliveries of a webhook, newest first."""
    listed_deliveries: list[dict[str, Any]] = call_operator(
        "list_webhook_deliveries", webhookId=webhook["webhookId"]
    )["deliveries"]
    return listed_deliveries

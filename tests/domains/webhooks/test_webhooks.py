"""Creation, changes, deletion and secrets of webhooks."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from chalicelib.core.errors import (
    AppError,
    ConflictError,
    NotFoundError,
    UnavailableError,
    ValidationError,
)
from chalicelib.core.settings import settings
from chalicelib.domains.webhooks.operations import webhooks as operations
from chalicelib.gateways import post
from tests.conftest import Api, Owner, Time, call_console, call_operator, run_concurrently
from tests.domains.webhooks.conftest import URL, AddWebhook, change, send_test
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things, submit
from tests.fakes.dynamodb_faults import TRANSACTION, closed, faulty
from tests.fakes.receiver import Receiver
from tests.support.keyed import keyed

pytestmark = pytest.mark.usefixtures("database")


def list_webhooks(owner: Owner) -> list[dict[str, object]]:
    webhooks: list[dict[str, object]] = call_console(owner.workspace.id, "list_webhooks")[
        "webhooks"
    ]
    return webhooks


@pytest.mark.usefixtures("real_clock")  # The verifying library compares with the real time.
def test_a_new_webhook_receives_signed_events(
    add_webhook: AddWebhook, receiver: Receiver, things: Things
) -> None:
    webhook = add_webhook("lead.created")
    lead = submit(things.form, name="Ada", email="ada@example.com")
    run_until_idle()
    (request,) = receiver.requests
    request.verify(webhook["secret"])
    assert request.url == URL
    assert request.event["type"] == "lead.created"
    assert request.event["data"]["id"] == lead
    assert request.event["data"]["object"]["email"] == "ada@example.com"


def test_a_webhook_is_listed_without_its_secret(add_webhook: AddWebhook, owner: Owner) -> None:
    webhook = add_webhook("lead.created", "order.created")
    (listed_webhook,) = list_webhooks(owner)
    assert listed_webhook.pop("createdAt")
    assert listed_webhook == {
        "id": webhook["id"],
        "url": URL,
        "events": ["lead.created", "order.created"],
        "hiddenEvents": 0,
        "status": "active",
        "offBecause": None,
        "keyIds": [],
    }


@pytest.mark.parametrize(
    "url",
    [
        "http://receiver.example/",
        "https://localhost/",
        "https://127.0.0.1/",
        "https://10.0.0.1/",
        "https://100.64.0.1/",
        "https://169.254.169.254/latest",
        "https://[::1]/",
        "https://[fd00::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[64:ff9b::a00:1]/",
        "https://192.0.2.1/",
        "https://printer.local/",
        "https://api.prod.internal/",
        "https://router.home.arpa/",
        "https://app.localhost/",
        "https://name.INVALID./",
        "https://user:password@receiver.example/",
        "ftp://receiver.example/",
        "receiver.example",
    ],
)
@pytest.mark.parametrize("to_loopback", [False, True])
def test_a_url_that_is_not_public_https_is_refused(
    url: str,
    to_loopback: bool,
    add_webhook: AddWebhook,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Under make dev, too, where only http to this machine is a developer's receiver."""
    changed_settings = replace(settings(), webhooks_to_loopback=to_loopback)
    for module in (post, operations):
        monkeypatch.setattr(module, "settings", lambda: changed_settings, raising=False)
    with pytest.raises(ValidationError) as caught:
        add_webhook(url=url)
    assert [error.field for error in caught.value.errors] == ["url"]


def test_of_many_concurrent_webhooks_ten_are_added(add_webhook: AddWebhook, owner: Owner) -> None:
    def add(_number: int) -> bool:
        try:
            add_webhook()
        except ConflictError:
            return False
        return True

    for _ in range(7):
        add_webhook()
    assert sum(run_concurrently(6, add)) == 3
    assert len(list_webhooks(owner)) == 10


def test_a_changed_webhook_receives_other_events_at_another_url(
    add_webhook: AddWebhook, receiver: Receiver, api: Api, things: Things
) -> None:
    webhook = add_webhook("lead.created")
    other = "https://other.example/"
    call_operator("update_webhook", id=webhook["id"], url=other, events=["product.low_stock"])
    submit(things.form, name="Ada", email="ada@example.com")
    product = api.post("/api/products/create", {"name": "Rye", "price": 1, "stock": 6})["product"]
    api.post("/api/products/update", {"id": product["id"], "stockDelta": -1})
    run_until_idle()
    assert [(request.url, request.event["type"]) for request in receiver.requests] == [
        (other, "product.low_stock")
    ]


def test_a_deleted_webhook_receives_nothing(
    add_webhook: AddWebhook, receiver: Receiver, things: Things, owner: Owner
) -> None:
    webhook = add_webhook("lead.created")
    submit(things.form, name="Ada", email="ada@example.com")
    call_operator("delete_webhook", id=webhook["id"])
    submit(things.form, name="Bob", email="bob@example.com")
    run_until_idle()
    assert receiver.requests == []
    assert webhook["id"] not in [listed["id"] for listed in list_webhooks(owner)]
    with pytest.raises(NotFoundError):
        call_operator("delete_webhook", id=webhook["id"])


class TestSecrets:
    def test_for_a_day_requests_are_signed_with_the_former_secret_too(
        self, add_webhook: AddWebhook, receiver: Receiver, time: Time
    ) -> None:
        webhook = add_webhook()
        renewed = call_operator("rotate_webhook_secret", id=webhook["id"])
        assert renewed["secret"] != webhook["secret"]
        signatures = []
        for hours in (0, 23, 2):
            time.pass_by(hours=hours)
            call_operator("send_test_event", id=webhook["id"])
            run_until_idle()
            signatures.append(len(receiver.requests[-1].headers["webhook-signature"].split()))
        assert signatures == [2, 2, 1]

    def test_a_secret_is_not_shown_again(self, owner: Owner) -> None:
        body = {"url": URL, "workspaceId": owner.workspace.id}
        webhook = call_console(owner.workspace.id, "create_webhook", key="one", url=URL)
        assert webhook["secret"].startswith("whsec_")
        with pytest.raises(AppError, match="returned the secret"):
            call_console(owner.workspace.id, "create_webhook", key="one", url=URL)
        assert body["url"] == list_webhooks(owner)[0]["url"]

    def test_each_webhook_has_its_own_secret(self, add_webhook: AddWebhook) -> None:
        assert add_webhook()["secret"] != add_webhook()["secret"]


class TestOff:
    def test_events_while_a_webhook_is_off_are_not_sent(
        self, add_webhook: AddWebhook, receiver: Receiver, things: Things
    ) -> None:
        webhook = add_webhook("lead.created")
        call_operator("update_webhook", id=webhook["id"], status="off")
        submit(things.form, name="Ada", email="ada@example.com")
        run_until_idle()
        call_operator("update_webhook", id=webhook["id"], status="active")
        run_until_idle()
        assert receiver.requests == []

    @pytest.mark.parametrize(("send_waiting", "count"), [(True, 1), (False, 0)])
    def test_waiting_events_are_sent_or_dropped_when_on_again(
        self,
        send_waiting: bool,
        count: int,
        add_webhook: AddWebhook,
        receiver: Receiver,
        things: Things,
    ) -> None:
        webhook = add_webhook("lead.created")
        submit(things.form, name="Ada", email="ada@example.com")
        call_operator("update_webhook", id=webhook["id"], status="off")
        run_until_idle()
        assert receiver.requests == []
        call_operator(
            "update_webhook",
            id=webhook["id"],
            status="active",
            sendWaiting=send_waiting,
        )
        run_until_idle()
        assert len(receiver.requests) == count

    @pytest.mark.parametrize("call", ["send_test_event", "resend_webhook_delivery"])
    def test_nothing_is_sent_by_hand_to_a_webhook_that_is_off(
        self, call: str, add_webhook: AddWebhook
    ) -> None:
        webhook = add_webhook()
        call_operator("update_webhook", id=webhook["id"], status="off")
        resent = {"deliveryId": f"{webhook['id']}.evt_1"}
        arguments = resent if call == "resend_webhook_delivery" else {"id": webhook["id"]}
        with pytest.raises(ConflictError, check=keyed("webhook_off")):
            call_operator(call, **arguments)


def test_failed_switch_on_keeps_the_waiting_events(
    webhook: dict[str, Any], receiver: Receiver
) -> None:
    send_test(webhook)
    change(webhook, status="off")
    with faulty(TRANSACTION, closed, "before"), pytest.raises(UnavailableError):
        change(webhook, status="active", sendWaiting=False)
    change(webhook, status="active")
    run_until_idle()
    assert len(receiver.requests) == 1


def test_three_secrets_are_valid_after_two_replacements(
    webhook: dict[str, Any], receiver: Receiver
) -> None:
    secrets = [webhook["secret"]]
    secrets += [
        call_operator("rotate_webhook_secret", id=webhook["id"])["secret"] for _ in range(3)
    ]
    send_test(webhook)
    run_until_idle()
    (request,) = receiver.requests
    now = datetime.fromtimestamp(int(request.headers["webhook-timestamp"]), UTC)
    sign = [
        Webhook(secret).sign(request.event_id, now, request.body.decode()) for secret in secrets
    ]
    assert request.headers["webhook-signature"].split() == sign[:0:-1]

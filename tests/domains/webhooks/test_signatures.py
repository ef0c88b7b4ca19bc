"""Signatures, verified by the library that receivers use, and secrets."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from chalicelib.domains.webhooks.rules.signatures import signed_headers, webhook_secret

MASTER_KEY = bytes(range(32))
OLD, NEW = (
    webhook_secret(MASTER_KEY, "ws1", webhook_id="ep1", version=version) for version in (1, 2)
)
BODY = '{"type":"lead.created","data":{"name":"Ёлка"}}'.encode()


def now() -> datetime:
    """Return the real time, which the library compares with the timestamp."""
    return datetime.now(UTC)


def test_a_receiver_verifies_a_signed_webhook() -> None:
    headers = signed_headers([OLD], "msg_1", now(), BODY)
    assert headers["webhook-id"] == "msg_1"
    received = Webhook(OLD).verify(BODY, headers)
    assert received == {"type": "lead.created", "data": {"name": "Ёлка"}}


def test_the_signature_equals_the_example_of_the_specification() -> None:
    headers = signed_headers(
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        datetime.fromtimestamp(1614265330, UTC),
        b'{"test": 2432232314}',
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@pytest.mark.parametrize("secret", [OLD, NEW])
def test_both_secrets_verify_during_a_rotation(
    secret: str,
) -> None:
    headers = signed_headers([NEW, OLD], "msg_1", now(), BODY)
    assert len(headers["webhook-signature"].split(" ")) == 2
    Webhook(secret).verify(BODY, headers)


@pytest.mark.parametrize(
    ("changed_headers", "body"),
    [
        ({}, BODY + b" "),
        ({"webhook-id": "msg_2"}, BODY),
    ],
    ids=["body", "id"],
)
def test_a_receiver_refuses_a_changed_webhook(changed_headers: dict[str, str], body: bytes) -> None:
    headers = signed_headers([OLD], "msg_1", now(), BODY) | changed_headers
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        Webhook(OLD).verify(body, headers)


def test_a_receiver_refuses_a_webhook_with_another_time() -> None:
    headers = signed_headers([OLD], "msg_1", now(), BODY)
    headers["webhook-timestamp"] = str(int(headers["webhook-timestamp"]) - 60)
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        Webhook(OLD).verify(BODY, headers)


def test_a_receiver_refuses_a_webhook_that_is_sent_again_later() -> None:
    headers = signed_headers([OLD], "msg_1", now() - timedelta(minutes=6), BODY)
    with pytest.raises(WebhookVerificationError, match="too old"):
        Webhook(OLD).verify(BODY, headers)


def test_a_receiver_with_another_secret_refuses_a_webhook() -> None:
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        Webhook(NEW).verify(BODY, signed_headers([OLD], "msg_1", now(), BODY))


def test_a_secret_is_32_bytes_in_the_form_of_the_specification() -> None:
    prefix, _, encoded = OLD.partition("_")
    assert prefix == "whsec"
    assert len(base64.b64decode(encoded, validate=True)) == 32


def test_secret_depends_on_key_workspace_endpoint_and_version() -> None:
    inputs = [
        (MASTER_KEY, "ws1", "ep1", 1),
        (MASTER_KEY, "ws1", "ep1", 2),
        (MASTER_KEY, "ws1", "ep2", 1),
        (MASTER_KEY, "ws2", "ep1", 1),
        (bytes(32), "ws1", "ep1", 1),
    ]
    secrets = [
        webhook_secret(key, workspace, webhook_id=endpoint, version=version)
        for key, workspace, endpoint, version in inputs
    ]
    assert len(set(secrets)) == len(inputs)
    assert secrets[0] == OLD

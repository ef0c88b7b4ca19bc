"""Deliveries of events to webhooks, with attempts and repetitions."""

from datetime import timedelta
from typing import Any

import pytest

from chalicelib.domains.webhooks.rules.retries import PAUSES
from chalicelib.gateways.post import PostReply
from chalicelib.gateways.public_http import UpstreamError
from tests.conftest import Time, call_operator
from tests.domains.webhooks.conftest import change, deliveries, send_test
from tests.factories.event_runs import run_until_idle
from tests.fakes.receiver import OK, Receiver, Request, status

pytestmark = pytest.mark.usefixtures("database")


class TestAttempts:
    def test_a_failed_delivery_is_repeated_with_the_same_id_and_growing_pauses(
        self, webhook: dict[str, Any], receiver: Receiver, time: Time
    ) -> None:
        receiver.answer = lambda _: status(500, b"oops")
        event_id = send_test(webhook)
        run_until_idle()
        for number, pause in enumerate(PAUSES, start=1):
            (delivery,) = deliveries(webhook)
            assert (delivery["state"], delivery["attempts"]) == ("waiting", number)
            time.now += pause * 0.99
            run_until_idle()
            assert len(receiver.requests) == number
            time.now += pause * 0.22 + timedelta(minutes=6)
            run_until_idle()
        (delivery,) = deliveries(webhook)
        assert (delivery["state"], delivery["attempts"]) == ("failed", len(PAUSES) + 1)
        assert (delivery["status"], delivery["reply"]) == (500, "oops")
        assert {request.event_id for request in receiver.requests} == {event_id}

    def test_a_delivery_shows_whether_the_receiver_accepted_it(
        self, webhook: dict[str, Any], receiver: Receiver
    ) -> None:
        event_id = send_test(webhook)
        run_until_idle()
        (delivery,) = deliveries(webhook)
        assert delivery == {
            "id": f"{webhook['id']}.{event_id}",
            "eventId": event_id,
            "type": "webhook.test",
            "recordId": webhook["id"],
            "occurredAt": "2027-01-15T12:00:00.000Z",
            "state": "delivered",
            "attempts": 1,
            "attemptedAt": "2027-01-15T12:00:00.000Z",
            "nextAttemptAt": None,
            "status": 200,
            "milliseconds": 12,
            "reply": None,
            "error": None,
        }

    def test_a_receiver_that_cannot_be_reached_is_tried_again(
        self, webhook: dict[str, Any], receiver: Receiver, time: Time
    ) -> None:
        def fail(_request: Request) -> PostReply:
            raise UpstreamError("receiver.example is away", key="connection_closed")

        receiver.answer = fail
        send_test(webhook)
        run_until_idle()
        (delivery,) = deliveries(webhook)
        assert delivery["error"] == "receiver.example is away"
        assert (delivery["state"], delivery["status"]) == ("waiting", None)
        receiver.answer = lambda _: OK
        time.pass_by(minutes=1)
        run_until_idle()
        assert deliveries(webhook)[0]["state"] == "delivered"

    def test_receiver_can_request_a_longer_pause(
        self, webhook: dict[str, Any], receiver: Receiver, time: Time
    ) -> None:
        receiver.answer = lambda _: status(429, retry_after=3_600)
        send_test(webhook)
        run_until_idle()
        time.pass_by(minutes=59)
        run_until_idle()
        assert len(receiver.requests) == 1
        time.pass_by(minutes=2)
        run_until_idle()
        assert len(receiver.requests) == 2

    def test_a_redirect_is_a_failure(self, webhook: dict[str, Any], receiver: Receiver) -> None:
        receiver.answer = lambda _: status(302)
        send_test(webhook)
        run_until_idle()
        assert deliveries(webhook)[0]["state"] == "waiting"

    def test_an_event_is_sent_again_on_request(
        self, webhook: dict[str, Any], receiver: Receiver
    ) -> None:
        event_id = send_test(webhook)
        run_until_idle()
        call_operator("resend_webhook_delivery", deliveryId=f"{webhook['id']}.{event_id}")
        run_until_idle()
        assert [request.event_id for request in receiver.requests] == [event_id, event_id]


def test_an_event_that_was_given_up_can_be_sent_again(
    webhook: dict[str, Any], receiver: Receiver, time: Time
) -> None:
    event_id = send_test(webhook)
    change(webhook, status="off")
    time.pass_by(seconds=1)
    change(webhook, status="active", sendWaiting=False)
    run_until_idle()
    assert deliveries(webhook)[0]["state"] == "failed"
    call_operator("resend_webhook_delivery", deliveryId=f"{webhook['id']}.{event_id}")
    run_until_idle()
    assert deliveries(webhook)[0]["state"] == "delivered"

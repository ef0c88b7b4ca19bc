"""Deliveries of events to webhooks, with attempts, repetitions and replies."""

from datetime import timedelta
from threading import Event
from typing import Any

import pytest

from chalicelib.domains.webhooks.flows.due_deliveries import TURN
from chalicelib.domains.webhooks.rules import PAUSES
from chalicelib.gateways.post import PostReply
from chalicelib.gateways.public_http import UpstreamError
from chalicelib.transports.scheduled_functions import run_event_jobs
from tests.conftest import Api, Owner, Time, call_console, call_operator, run_concurrently
from tests.domains.webhooks.conftest import URL, AddWebhook, deliveries
from tests.factories.chat import Bot, ask
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things, submit
from tests.fakes.receiver import OK, Receiver, Request, status

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def webhook(add_webhook: AddWebhook, things: Things, time: Time) -> dict[str, Any]:
    """A webhook that receives all events."""
    return add_webhook()


def send_test(webhook: dict[str, Any]) -> str:
    """Send a test event, and return its id."""
    event_id: str = call_operator("send_test_event", webhookId=webhook["webhookId"])["eventId"]
    return event_id


def state(owner: Owner) -> tuple[str, str | None]:
    """Return the status of the workspace's only webhook, and why it is off."""
    (webhook,) = call_console(owner.workspace.id, "list_webhooks")["webhooks"]
    return webhook["status"], webhook["offBecause"]


class TestEvents:
    def test_an_event_has_an_id_a_type_a_time_and_its_record(
        self, webhook: dict[str, Any], receiver: Receiver, things: Things, api: Api
    ) -> None:
        lead = submit(things.form, name="Ada", email="ada@example.com")
        run_until_idle()
        (request,) = receiver.requests
        assert request.event_id.startswith("evt_")
        assert request.headers["Content-Type"] == "application/json"
        stored_lead = api.get(f"/api/forms/collection/{lead}")["lead"]
        event = request.event
        assert event["type"] == "lead.created"
        assert event["timestamp"] == "2027-01-15T12:00:00.000Z"
        assert event["data"]["object"] == stored_lead
        assert event["data"]["id"] == stored_lead["id"]
        assert event["data"]["revision"] >= 1

    def test_two_events_of_one_change_have_different_ids_and_are_both_received(
        self, webhook: dict[str, Any], receiver: Receiver, things: Things
    ) -> None:
        item = {"productId": things.product, "quantity": 1}
        lead = submit(things.form, name="Ada", email="ada@example.com", items=[item])
        run_until_idle()
        assert sorted(receiver.types) == ["lead.created", "order.created"]
        assert [event["data"]["id"] for event in receiver.events] == [lead, lead]
        assert len({request.event_id for request in receiver.requests}) == 2

    def test_a_chat_is_an_event_with_its_dialog(
        self, webhook: dict[str, Any], receiver: Receiver, things: Things, owner: Owner
    ) -> None:
        ask(Bot(owner.workspace.id, things.agent), "Hello")
        run_until_idle()
        (event,) = receiver.events
        assert event["type"] == "dialog.started"
        assert event["data"]["object"]["agentId"] == things.agent

    def test_a_status_change_names_the_former_status(
        self, webhook: dict[str, Any], receiver: Receiver, things: Things, api: Api
    ) -> None:
        api.post("/api/forms/collection-status", {"id": things.lead, "status": "in_progress"})
        run_until_idle()
        (event,) = receiver.events
        assert event["type"] == "lead.status_changed"
        assert event["data"]["previousStatus"] == "new"
        assert event["data"]["object"]["status"] == "in_progress"

    def test_the_record_is_read_at_each_attempt(
        self, webhook: dict[str, Any], receiver: Receiver, things: Things, api: Api, time: Time
    ) -> None:
        receiver.answer = lambda _: status(500)
        api.post("/api/forms/collection-update", {"id": things.lead, "notes": "First"})
        run_until_idle()
        receiver.answer = lambda _: OK
        api.post("/api/forms/collection-update", {"id": things.lead, "notes": "Second"})
        time.pass_by(minutes=1)
        run_until_idle()
        notes = [event["data"]["object"]["notes"] for event in receiver.events]
        assert notes[0] == "First"
        assert set(notes[1:]) == {"Second"}

    def test_event_of_a_deleted_record_has_only_its_id(
        self, webhook: dict[str, Any], receiver: Receiver, api: Api
    ) -> None:
        product = api.post("/api/products/create", {"name": "Rye", "price": 1, "stock": 9})
        place = {"id": product["product"]["id"]}
        api.post("/api/products/update", place | {"stock": 2})
        api.post("/api/products/delete", place)
        run_until_idle()
        (event,) = receiver.events
        assert (event["data"]["id"], event["data"]["object"]) == (place["id"], None)

    def test_a_large_record_is_a_url(
        self, webhook: dict[str, Any], receiver: Receiver, things: Things, api: Api
    ) -> None:
        lead = submit(things.form, name="Ada", email="ada@example.com", message="ж" * 4_900)
        api.post("/api/forms/collection-update", {"id": lead, "notes": "ж" * 5_000})
        run_until_idle()
        data = receiver.events[-1]["data"]
        assert "object" not in data
        assert data["url"].endswith(f"/api/forms/collection/{lead}")
        assert len(receiver.requests[-1].body) < 1_000

    def test_an_erased_client_is_an_event_without_personal_data(
        self, webhook: dict[str, Any], receiver: Receiver, things: Things, owner: Owner
    ) -> None:
        submit(things.form, name="Ada", email="ada@example.com")
        call_operator("erase_client", workspaceId=owner.workspace.id, email="ada@example.com")
        run_until_idle()
        assert "client.erased" in receiver.types
        assert all("ada@example.com" not in request.body.decode() for request in receiver.requests)

    def test_events_of_another_workspace_are_not_received(
        self, webhook: dict[str, Any], receiver: Receiver, new_owner: Any
    ) -> None:
        stranger = new_owner().api()
        product = stranger.post("/api/products/create", {"name": "Rye", "price": 1, "stock": 9})
        stranger.post("/api/products/update", {"id": product["product"]["id"], "stock": 1})
        run_until_idle()
        assert receiver.requests == []


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
            "eventId": event_id,
            "type": "webhook.test",
            "recordId": webhook["webhookId"],
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
            raise UpstreamError("receiver.example refused or closed the connection")

        receiver.answer = fail
        send_test(webhook)
        run_until_idle()
        (delivery,) = deliveries(webhook)
        assert delivery["error"] == "receiver.example refused or closed the connection"
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
        call_operator("resend_webhook_delivery", webhookId=webhook["webhookId"], eventId=event_id)
        run_until_idle()
        assert [request.event_id for request in receiver.requests] == [event_id, event_id]


class TestSwitchingOff:
    def test_webhook_of_a_gone_receiver_is_switched_off_immediately(
        self, webhook: dict[str, Any], receiver: Receiver, owner: Owner
    ) -> None:
        receiver.answer = lambda _: status(410)
        send_test(webhook)
        run_until_idle()
        assert state(owner) == ("off", "gone")

    def test_a_receiver_that_fails_for_three_days_is_switched_off(
        self, webhook: dict[str, Any], receiver: Receiver, owner: Owner, time: Time
    ) -> None:
        receiver.answer = lambda _: status(500)
        send_test(webhook)
        run_until_idle()
        for _ in range(23):
            time.pass_by(hours=3)
            send_test(webhook)
            run_until_idle()
        assert state(owner) == ("active", None)
        time.pass_by(hours=4)
        run_until_idle()
        assert state(owner) == ("off", "failing")

    def test_one_success_restarts_the_three_days(
        self, webhook: dict[str, Any], receiver: Receiver, owner: Owner, time: Time
    ) -> None:
        for hour in range(0, 80, 4):
            receiver.answer = lambda _, hour=hour: OK if hour == 40 else status(500)
            send_test(webhook)
            time.pass_by(hours=4)
            run_until_idle()
        assert state(owner) == ("active", None)

    def test_few_failures_switch_nothing_off(
        self, webhook: dict[str, Any], receiver: Receiver, owner: Owner, time: Time
    ) -> None:
        receiver.answer = lambda _: status(500)
        send_test(webhook)
        run_until_idle()
        time.pass_by(days=4)
        run_until_idle()
        assert state(owner) == ("active", None)


class TestTurns:
    def test_one_worker_at_a_time_sends_to_a_webhook(
        self, webhook: dict[str, Any], receiver: Receiver
    ) -> None:
        for _ in range(30):
            send_test(webhook)
        run_concurrently(4, lambda _: run_event_jobs())
        run_until_idle()
        ids = [request.event_id for request in receiver.requests]
        assert len(ids) == len({*ids}) == 30

    def test_a_slow_webhook_does_not_delay_another(
        self, add_webhook: AddWebhook, receiver: Receiver, time: Time
    ) -> None:
        slow, quick = add_webhook(url="https://slow.example/"), add_webhook(url=URL)
        answered = Event()

        def answer(request: Request) -> PostReply:
            if request.url == URL:
                answered.set()
                return OK
            assert answered.wait(30)
            return OK

        receiver.answer = answer
        send_test(slow)
        send_test(quick)
        run_until_idle()
        assert [delivery["state"] for delivery in deliveries(slow) + deliveries(quick)] == [
            "delivered",
            "delivered",
        ]

    def test_a_worker_that_is_killed_is_followed_by_another(
        self, webhook: dict[str, Any], receiver: Receiver, time: Time
    ) -> None:
        class Killed(BaseException):
            pass

        def kill(_request: Request) -> PostReply:
            raise Killed

        receiver.answer = kill
        send_test(webhook)
        with pytest.raises(Killed):
            run_event_jobs()
        receiver.answer = lambda _: OK
        run_until_idle()
        assert len(receiver.requests) == 1
        time.now += TURN + timedelta(minutes=6)
        run_until_idle()
        assert deliveries(webhook)[0]["state"] == "delivered"

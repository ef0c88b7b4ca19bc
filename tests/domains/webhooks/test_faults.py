"""Turns of webhooks when records, receivers or workers fail."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from chalicelib.application import records
from chalicelib.core import deadline
from chalicelib.core.errors import UnavailableError
from chalicelib.core.jobs import WEBHOOK_EVENTS
from chalicelib.domains.webhooks.flows import due_deliveries, make_deliveries, sending_times
from chalicelib.domains.webhooks.flows.sending_times import DELIVER_WEBHOOK
from chalicelib.domains.webhooks.operations import deliveries as operations
from chalicelib.domains.webhooks.store import deliveries as deliveries_store
from chalicelib.engine import jobs
from chalicelib.gateways.post import PostReply
from chalicelib.transports.scheduled_functions import run_event_jobs
from tests.conftest import Owner, Time, all_rows, call_console, call_operator
from tests.domains.webhooks.conftest import AddWebhook, deliveries
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things, submit
from tests.fakes.dynamodb_faults import TRANSACTION, closed, faulty
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


def change(webhook: dict[str, Any], **values: Any) -> None:
    """Change the webhook."""
    call_operator("update_webhook", webhookId=webhook["webhookId"], **values)


def test_one_run_sends_all_waiting_events(
    webhook: dict[str, Any], receiver: Receiver, things: Things
) -> None:
    submit(things.form, name="Ada", email="ada@example.com")
    run_event_jobs()
    assert receiver.types == ["lead.created"]


def test_a_job_of_events_that_runs_twice_sends_each_event_once(
    webhook: dict[str, Any], receiver: Receiver, things: Things, owner: Owner
) -> None:
    submit(things.form, name="Ada", email="ada@example.com")
    (job,) = (
        job for job in jobs.read_workspace_jobs(owner.workspace.id) if job.kind == WEBHOOK_EVENTS
    )
    make_deliveries.make_deliveries(job)
    run_until_idle()
    assert receiver.types == ["lead.created"]


def test_a_record_that_cannot_be_read_does_not_hold_back_other_events(
    webhook: dict[str, Any],
    receiver: Receiver,
    things: Things,
    time: Time,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = records.read
    broken = submit(things.form, name="Ada", email="ada@example.com")

    def fail(workspace_id: str, event_type: str, record_id: str) -> Any:
        if record_id == broken:
            raise RuntimeError
        return read(workspace_id, event_type, record_id)

    monkeypatch.setattr(records, "read", fail)
    run_until_idle()
    time.pass_by(minutes=2)
    for _ in range(30):
        send_test(webhook)
    run_until_idle()
    assert receiver.types == ["webhook.test"] * 30


def test_a_webhook_that_is_switched_on_again_has_three_days_again(
    webhook: dict[str, Any], receiver: Receiver, owner: Owner, time: Time
) -> None:
    receiver.answer = lambda _: status(500)
    for _ in range(24):
        send_test(webhook)
        run_until_idle()
        time.pass_by(hours=3)
    time.pass_by(hours=1)
    run_until_idle()
    (listed_webhook,) = call_console(owner.workspace.id, "list_webhooks")["webhooks"]
    assert listed_webhook["offBecause"] == "failing"
    change(webhook, status="active")
    run_until_idle()
    (listed_webhook,) = call_console(owner.workspace.id, "list_webhooks")["webhooks"]
    assert listed_webhook["status"] == "active"


def test_turn_with_a_slow_receiver_ends_within_its_lease(
    webhook: dict[str, Any],
    receiver: Receiver,
    owner: Owner,
    time: Time,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = time.now
    monkeypatch.setattr(deadline, "monotonic", lambda: time.now.timestamp())  # noqa: PLW0108  it moves
    monkeypatch.setattr(due_deliveries, "PARALLEL_REQUESTS", 1)
    send_times: list[timedelta] = []

    def answer(_request: Request) -> PostReply:
        send_times.append(time.now - started)
        time.pass_by(seconds=14)
        return OK

    receiver.answer = answer
    for _ in range(20):
        send_test(webhook)
    operations.deliver(sending_times.turn(owner.workspace.id, webhook["webhookId"], time.now))
    assert max(send_times) + timedelta(seconds=15) <= due_deliveries.TURN


def test_event_without_a_stored_outcome_is_sent_once_a_turn(
    webhook: dict[str, Any],
    receiver: Receiver,
    owner: Owner,
    time: Time,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deliveries_store, "note_attempt", lambda *_, **__: None)
    event_ids = [send_test(webhook) for _ in range(due_deliveries.BATCH + 1)]
    turn = sending_times.turn(owner.workspace.id, webhook["webhookId"], time.now)
    operations.deliver(turn)
    received_ids = sorted(request.event_id for request in receiver.requests)
    assert received_ids == sorted(event_ids[: due_deliveries.BATCH])

    operations.deliver(turn)
    assert len(receiver.requests) == due_deliveries.BATCH
    time.pass_by(seconds=due_deliveries.REST_AFTER_FAILURE.seconds)
    operations.deliver(turn)
    assert len(receiver.requests) == 2 * due_deliveries.BATCH


def test_a_turn_stops_when_the_webhook_is_switched_off(
    webhook: dict[str, Any], receiver: Receiver
) -> None:
    def answer(_request: Request) -> PostReply:
        if len(receiver.requests) == 1:
            change(webhook, status="off")
        return OK

    receiver.answer = answer
    for _ in range(60):
        send_test(webhook)
    run_until_idle()
    assert len(receiver.requests) <= due_deliveries.BATCH


def test_the_state_of_a_deleted_webhook_is_removed(
    webhook: dict[str, Any], receiver: Receiver
) -> None:
    send_test(webhook)
    run_until_idle()
    call_operator("delete_webhook", webhookId=webhook["webhookId"])
    turn_rows = [row for row in all_rows().values() if "WEBHOOK-TURN" in row["pk"]["S"]]
    assert all("expires" in row for row in turn_rows)


def test_an_event_that_is_given_up_during_an_attempt_is_not_tried_again(
    webhook: dict[str, Any], receiver: Receiver, time: Time
) -> None:
    def answer(_request: Request) -> PostReply:
        change(webhook, status="off")
        time.pass_by(seconds=1)
        change(webhook, status="active", sendWaiting=False)
        return status(500)

    receiver.answer = answer
    send_test(webhook)
    run_until_idle()
    time.pass_by(hours=1)
    run_until_idle()
    assert len(receiver.requests) == 1
    assert deliveries(webhook)[0]["state"] == "failed"


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


def test_an_event_that_was_given_up_can_be_sent_again(
    webhook: dict[str, Any], receiver: Receiver, time: Time
) -> None:
    event_id = send_test(webhook)
    change(webhook, status="off")
    time.pass_by(seconds=1)
    change(webhook, status="active", sendWaiting=False)
    run_until_idle()
    assert deliveries(webhook)[0]["state"] == "failed"
    call_operator("resend_webhook_delivery", webhookId=webhook["webhookId"], eventId=event_id)
    run_until_idle()
    assert deliveries(webhook)[0]["state"] == "delivered"


def test_three_secrets_are_valid_after_two_replacements(
    webhook: dict[str, Any], receiver: Receiver
) -> None:
    secrets = [webhook["secret"]]
    secrets += [
        call_operator("rotate_webhook_secret", webhookId=webhook["webhookId"])["secret"]
        for _ in range(3)
    ]
    send_test(webhook)
    run_until_idle()
    (request,) = receiver.requests
    now = datetime.fromtimestamp(int(request.headers["webhook-timestamp"]), UTC)
    sign = [
        Webhook(secret).sign(request.event_id, now, request.body.decode()) for secret in secrets
    ]
    assert request.headers["webhook-signature"].split() == sign[:0:-1]


def test_failing_events_share_their_next_turn(
    webhook: dict[str, Any], receiver: Receiver, things: Things, owner: Owner, time: Time
) -> None:
    receiver.answer = lambda _: status(500)
    for number in range(8):
        time.pass_by(seconds=1)
        submit(things.form, name="Ada", email=f"ada{number}@example.com")
        run_until_idle()
    waiting = jobs.read_workspace_jobs(owner.workspace.id)
    assert len([job for job in waiting if job.kind == DELIVER_WEBHOOK]) == 1


def test_events_within_a_second_share_their_turn(
    webhook: dict[str, Any], receiver: Receiver, things: Things, owner: Owner, time: Time
) -> None:
    for number in range(8):
        time.pass_by(milliseconds=100)
        submit(things.form, name="Ada", email=f"ada{number}@example.com")
        for job in jobs.read_workspace_jobs(owner.workspace.id):
            if job.kind == WEBHOOK_EVENTS:
                jobs.attempt(job, make_deliveries.make_deliveries)
    kinds = [job.kind for job in jobs.read_workspace_jobs(owner.workspace.id)]
    assert kinds.count(DELIVER_WEBHOOK) == 1
    run_until_idle()
    assert receiver.types == ["lead.created"] * 8


def test_a_new_event_does_not_end_the_rest_that_a_receiver_asked_for(
    webhook: dict[str, Any], receiver: Receiver, things: Things, time: Time
) -> None:
    receiver.answer = lambda _: status(429, retry_after=600)
    submit(things.form, name="Ada", email="ada@example.com")
    run_until_idle()
    request_count = len(receiver.requests)
    submit(things.form, name="Bob", email="bob@example.com")
    run_until_idle()
    assert len(receiver.requests) == request_count
    time.pass_by(seconds=601)
    receiver.answer = lambda _: OK
    run_until_idle()
    assert len(receiver.requests) > request_count


def test_event_of_any_visitor_has_the_actor_visitor(
    webhook: dict[str, Any], receiver: Receiver, things: Things
) -> None:
    submit(things.form, name="Ada", email="ada@example.com")
    run_until_idle()
    assert receiver.events[0]["data"]["actor"] == "visitor"

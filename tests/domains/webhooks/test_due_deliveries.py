"""Turns of webhooks: one worker at a time sends what is due, whatever fails."""

from datetime import timedelta
from threading import Event
from typing import Any

import pytest

from chalicelib.application import records
from chalicelib.core import deadline
from chalicelib.domains.webhooks.flows import due_deliveries, sending_times
from chalicelib.domains.webhooks.flows.due_deliveries import TURN
from chalicelib.domains.webhooks.operations import deliveries as operations
from chalicelib.domains.webhooks.store import deliveries as deliveries_store
from chalicelib.gateways.post import PostReply
from chalicelib.transports.scheduled_functions import run_event_jobs
from tests.conftest import Owner, Time, all_rows, call_console, call_operator, run_concurrently
from tests.domains.webhooks.conftest import URL, AddWebhook, change, deliveries, send_test
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things, submit
from tests.fakes.receiver import OK, Receiver, Request, status

pytestmark = pytest.mark.usefixtures("database")


def state(owner: Owner) -> tuple[str, str | None]:
    """Return the status of the workspace's newest webhook, and why it is off."""
    webhook, _ = call_console(owner.workspace.id, "list_webhooks")["webhooks"]
    return webhook["status"], webhook["offBecause"]


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


def test_one_run_sends_all_waiting_events(
    webhook: dict[str, Any], receiver: Receiver, things: Things
) -> None:
    submit(things.form, name="Ada", email="ada@example.com")
    run_event_jobs()
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
        return read(workspace_id, event_type=event_type, record_id=record_id)

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
    listed_webhook, _ = call_console(owner.workspace.id, "list_webhooks")["webhooks"]
    assert listed_webhook["offBecause"] == "failing"
    change(webhook, status="active")
    run_until_idle()
    listed_webhook, _ = call_console(owner.workspace.id, "list_webhooks")["webhooks"]
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
    operations.deliver(
        sending_times.turn(owner.workspace.id, webhook_id=webhook["id"], due_at=time.now)
    )
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
    turn = sending_times.turn(owner.workspace.id, webhook_id=webhook["id"], due_at=time.now)
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
    call_operator("delete_webhook", id=webhook["id"])
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

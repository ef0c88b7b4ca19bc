"""Messages that wake the runner of events are shared and never delay a commit."""

import logging
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import boto3
import pytest
from moto import mock_aws

from chalicelib.core import clock
from chalicelib.core.errors import UnavailableError
from chalicelib.core.jobs import JobKind
from chalicelib.domains.exports.rules.job_kinds import EXPORT
from chalicelib.domains.webhooks.flows.sending_times import DELIVER_WEBHOOK
from chalicelib.engine import jobs
from chalicelib.engine.events import subscriptions, wake
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time
from tests.factories.salon import Salon
from tests.support.aws_calls import PLACE

QUEUE = "workspace-api-test-events"
URL = f"https://sqs.{PLACE.region}.amazonaws.com/{PLACE.account}/{QUEUE}"


@pytest.fixture(autouse=True)
def _queue_url(
    monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> Iterator[None]:
    monkeypatch.setenv("EVENTS_QUEUE_URL", URL)
    reload_settings()
    wake._queue.cache_clear()
    subscriptions.forget()
    yield
    wake._queue.cache_clear()
    subscriptions.forget()


@pytest.fixture
def receive_messages() -> Iterator[Callable[[], list[str]]]:
    """A queue of moto's. Call it for the messages that have arrived since the last call."""
    with mock_aws():
        client: Any = boto3.client("sqs", PLACE.region)
        client.create_queue(QueueName=QUEUE)

        def messages() -> list[str]:
            received = client.receive_message(QueueUrl=URL, MaxNumberOfMessages=10)
            return [message["Body"] for message in received.get("Messages", ())]

        yield messages
        client.delete_queue(QueueUrl=URL)


def want(owner: Owner, *types: str) -> None:
    def stage(unit: UnitOfWork) -> None:
        unit.update(*subscriptions.change_of_webhooks(owner.workspace.id, types))

    run_unit(owner.workspace.id, None, stage)
    subscriptions.forget()


def new_booking(api: Api) -> dict[str, Any]:
    """Return a booking to make, of a new service."""
    service = api.post("/api/services/create", {"name": "Cut", "durationMin": 30})["service"]["id"]
    api.post("/api/resources/create", {"name": "Anna", "serviceIds": [service]})
    client = {"name": "Ada", "email": "ada@example.com"}
    booking = {"serviceId": service, "startAt": "2027-02-01T12:00", "client": client}
    return booking | {"ignoreSchedule": True}


def test_a_wake_sends_a_message_without_content(receive_messages: Callable[[], list[str]]) -> None:
    wake.wake()
    assert receive_messages() == ["wake"]


def test_wakes_share_a_message_while_the_queue_delays_it(
    receive_messages: Callable[[], list[str]], time: Time
) -> None:
    for _ in range(100):
        wake.wake()
    time.pass_by(milliseconds=499)
    wake.wake()
    assert receive_messages() == ["wake"]
    time.pass_by(milliseconds=1)
    wake.wake()
    assert receive_messages() == ["wake"]


def test_a_clock_that_was_set_back_stops_no_message(
    receive_messages: Callable[[], list[str]], time: Time
) -> None:
    wake.wake()
    time.pass_by(hours=-1)
    wake.wake()
    assert receive_messages() == ["wake", "wake"]


@pytest.mark.usefixtures("database")
class TestWrites:
    def test_a_write_with_an_event_sends_a_message_once_it_is_committed(
        self, api: Api, owner: Owner, receive_messages: Callable[[], list[str]]
    ) -> None:
        booking = new_booking(api)
        assert receive_messages() == []
        want(owner, "booking.created")
        api.post("/api/bookings/create", booking)
        assert receive_messages() == ["wake"]

    def test_a_scheduled_job_with_an_event_sends_a_message(
        self, api: Api, owner: Owner, receive_messages: Callable[[], list[str]], time: Time
    ) -> None:
        salon = Salon.opened(api, requirePayment=True)
        salon.book("2027-01-18T10:00")
        want(owner, "booking.hold_expired")
        time.pass_by(hours=1)
        assert run_jobs()["lapse-of-hold"] == 1
        assert receive_messages() == ["wake"]

    @pytest.mark.parametrize("write", [UnitOfWork.create, UnitOfWork.save])
    def test_due_jobs_of_events_send_one_message_whoever_stages_them(
        self,
        write: Callable[[UnitOfWork, JobRow], None],
        owner: Owner,
        receive_messages: Callable[[], list[str]],
    ) -> None:
        def stage(unit: UnitOfWork) -> None:
            for _ in range(2):
                write(unit, jobs.row(DELIVER_WEBHOOK, owner.workspace.id, {}))

        run_unit(owner.workspace.id, None, stage)
        assert receive_messages() == ["wake"]

    @pytest.mark.parametrize(
        ("kind", "pause"),
        [(DELIVER_WEBHOOK, timedelta(seconds=1)), (EXPORT, timedelta(0))],
        ids=["due later", "of the other queue"],
    )
    def test_other_jobs_send_none(
        self,
        kind: JobKind,
        pause: timedelta,
        owner: Owner,
        receive_messages: Callable[[], list[str]],
    ) -> None:
        job = jobs.row(kind, owner.workspace.id, {}, clock.now() + pause)
        run_unit(owner.workspace.id, None, lambda unit: unit.create(job))
        assert receive_messages() == []

    def test_an_attempt_that_is_not_committed_sends_none(
        self, owner: Owner, receive_messages: Callable[[], list[str]]
    ) -> None:
        def stage(unit: UnitOfWork) -> None:
            unit.create(jobs.row(DELIVER_WEBHOOK, owner.workspace.id, {}))
            raise UnavailableError

        with pytest.raises(UnavailableError):
            run_unit(owner.workspace.id, None, stage)
        assert receive_messages() == []

    @pytest.mark.parametrize("dead", ["refuses", "silent", "missing"])
    def test_a_write_succeeds_although_the_queue_does_not_work(
        self,
        dead: str,
        api: Api,
        owner: Owner,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        booking = new_booking(api)
        want(owner, "booking.created")
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            if dead == "silent":
                server.listen()
            if dead != "missing":
                monkeypatch.setenv(
                    "AWS_ENDPOINT_URL_SQS", f"http://127.0.0.1:{server.getsockname()[1]}"
                )
            with mock_aws(), caplog.at_level(logging.WARNING, wake.log.name):
                api.post("/api/bookings/create", booking)
        (logged,) = [record for record in caplog.records if "was not woken" in record.message]
        assert logged.levelno == logging.WARNING

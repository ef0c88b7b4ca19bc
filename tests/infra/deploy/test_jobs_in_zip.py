"""Every kind of job and every type of events, in processes that have only the unpacked zip.

Each test creates the row of a job as the product does. Most rows are left by a process that dies
before the end of its work. A fresh process then runs the handler that Lambda calls, so that it has
imported no module for another kind. It reaches the database of the test, S3 and SES over HTTP.
"""

import os
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from moto.ses.models import ses_backends

from chalicelib.core import clock
from chalicelib.core.events import (
    EVENT_TYPES,
    INTERNAL_TYPES,
    MESSAGE_KINDS,
    TEST_EVENT,
    VISITOR_EVENTS,
)
from chalicelib.core.jobs import Queue
from chalicelib.core.manifest import Manifest
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.engine import jobs
from chalicelib.engine.jobs import JobRow
from infra.deploy.package import build as package
from tests.conftest import OBJECTS, call_operator
from tests.domains.events.conftest import receiver, world  # noqa: F401  fixtures
from tests.domains.notifications.clients import ADA
from tests.domains.notifications.helpers import link
from tests.domains.notifications.inbox import choose
from tests.domains.sites.test_site_domains import Records
from tests.factories.event_triggers import TRIGGERS, World
from tests.factories.examples import submit
from tests.fakes import ses_reports
from tests.fakes.receiver import status
from tests.fakes.telegram import TOKEN, FakeTelegram
from tests.infra.deploy.conftest import ENVIRONMENT, FUNCTION
from tests.infra.deploy.zip_job_rows import FOLLOWING, ROWS, deliveries
from tests.infra.deploy.zip_stage import (
    AS_ON_AWS,
    BUCKET,
    SesInbox,
    Stage,
    WebhookReceiver,
    book_noon,
    delete_all_jobs_except,
    run_jobs_here,
    waiting_jobs,
)
from tests.support.database_over_http import endpoint  # noqa: F401  a fixture
from tests.support.registers import check_register

pytestmark = [
    pytest.mark.package,
    pytest.mark.timeout(1800),
    pytest.mark.usefixtures("database"),
]


@pytest.fixture
def stage(
    world: World,  # noqa: F811  the fixture
    txt_records: Records,
    endpoint: str,  # noqa: F811  the fixture
    unpacked_zip: Path,
    built_zip: package.Package,
    reload_settings: Callable[[], None],
) -> Iterator[Stage]:
    """A stage that uses AWS for objects, e-mail and hosts."""
    mails = ses_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"]
    mails.verify_email_identity(AS_ON_AWS["MAIL_FROM"])
    store = boto3.client("s3")
    store.create_bucket(
        Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
    )
    for path in OBJECTS.rglob("*"):
        if path.is_file():
            store.put_object(
                Bucket=BUCKET, Key=path.relative_to(OBJECTS).as_posix(), Body=path.read_bytes()
            )
    os.environ |= AS_ON_AWS
    reload_settings()
    shared = {"STAGE": "test", "RATE_LIMIT_SCALE": "1000", "AWS_ENDPOINT_URL": endpoint}
    variables = {**ENVIRONMENT, **FUNCTION, **AS_ON_AWS, **shared}
    # The environment's own Python would let its child processes import installed packages.
    python = str(Path(built_zip.python.path).resolve())
    yield Stage(
        world,
        SesInbox(Path()),
        txt_records,
        endpoint,
        unpacked_zip,
        python,
        variables,
        reload_settings,
    )
    mails.reset()
    s3_backends[DEFAULT_ACCOUNT_ID]["aws"].reset()


def test_every_kind_of_job_in_the_zip_has_a_row_here(unpacked_zip: Path) -> None:
    packed = runpy.run_path(str(unpacked_zip / "chalicelib" / "manifest.py"))["MANIFEST"]
    check_register(
        ROWS,
        declared=Manifest(*packed).jobs,
        place="ROWS of tests/infra/deploy/zip_job_rows.py",
        line="a function that causes the job, yields, and checks what the job has done",
    )


@pytest.mark.parametrize("kind", ROWS)
def test_job_runs_from_the_zip_alone(kind: str, stage: Stage) -> None:
    steps = ROWS[kind](stage)
    with stage.world.monkeypatch.context() as killed:
        # The process is killed after each commit, before the work that would follow.
        killed.setattr(jobs, "attempt", lambda *_: False)
        next(steps)
    rows = waiting_jobs(kind)
    delete_all_jobs_except(rows)
    stage.world.time.now = max(clock.now(), *(job.due_at for job in rows))
    outcome = stage.run("run_events" if rows[0].queue == Queue.EVENTS else "run_jobs")
    assert outcome == {kind: len(rows)} | FOLLOWING.get(kind, {})
    assert not {job.sk for job in rows} & {job.sk for job in waiting_jobs(kind)}
    assert next(steps, None) is None


def events_of(kind: str, event_type: str) -> list[JobRow]:
    """Return the waiting jobs of a kind whose events have a type."""
    return [
        job
        for job in waiting_jobs(kind)
        if event_type in {event[0] for event in job.payload["events"]}
    ]


@pytest.mark.parametrize("event_type", [*EVENT_TYPES, TEST_EVENT])
def test_event_is_sent_to_a_webhook_from_the_zip_alone(event_type: str, stage: Stage) -> None:
    with WebhookReceiver() as server:
        webhook = stage.webhook(server, *({event_type} & EVENT_TYPES.keys()))
        if event_type == TEST_EVENT:
            call_operator("send_test_event", id=webhook)
            rows, first = waiting_jobs("deliver-webhook"), {}
        else:
            TRIGGERS[event_type](stage.world)
            rows, first = events_of("webhook-events", event_type), {"webhook-events": 1}
        delete_all_jobs_except(rows)
        assert stage.run("run_events") == first | {"deliver-webhook": 1}
    (event,) = server.events
    assert event["type"] == event_type
    assert deliveries(webhook) == [(event_type, "delivered")]
    if event_type.endswith(".deleted"):
        assert event["data"]["object"] is None
    elif event_type != TEST_EVENT:
        assert event["data"]["object"]["id"] == event["data"]["id"]


def switch_webhook_off(stage: Stage) -> None:
    """Let a delivery switch a webhook off. The trigger would also send the message of that."""
    call_operator("create_webhook", workspaceId=stage.workspace_id, url="https://gone.example/")
    stage.world.receiver.answer = lambda _: status(410)
    submit(stage.things.form, name="Ada", email=ADA)
    run_jobs_here("webhook-events", "deliver-webhook")


OF_PAYMENTS = {
    *("balance.returned", "booking.paid", "booking.refund_done", "booking.refund_failed"),
    *("booking.disputed", "payment.refused"),
}
"""Types whose triggers pay at the test merchant, which exists in a local stack only."""


def test_every_internal_type_of_events_has_a_message() -> None:
    silent = INTERNAL_TYPES.keys() - {kind.type for kind in MESSAGE_KINDS.values()}
    assert silent == set(), "add a MessageKind to MESSAGE_KINDS of chalicelib/core/events.py"


@pytest.mark.parametrize("message", MESSAGE_KINDS)
def test_event_is_mailed_to_the_owner_from_the_zip_alone(message: str, stage: Stage) -> None:
    event_type = MESSAGE_KINDS[message].type
    only = {kind: ["mail"] if kind == message else [] for kind in MESSAGE_KINDS}
    choose(stage.owner, stage.owner.workspace.owner_id, "owner", **only)
    if event_type in OF_PAYMENTS:
        stage.use_local_stack()
    if event_type == "webhook.switched_off":
        switch_webhook_off(stage)
    else:
        TRIGGERS[event_type](stage.world)
    delete_all_jobs_except(events_of("people-events", event_type))
    assert stage.run("run_events") == {"people-events": 1, "notify-member": 1}
    assert stage.inbox.kinds == [message]


def test_event_is_sent_to_telegram_from_the_zip_alone(stage: Stage, telegram: FakeTelegram) -> None:
    stage.variables |= {"TELEGRAM_URL": telegram.url, "TELEGRAM_BOT_TOKEN": TOKEN}
    stage.variables["no_proxy"] = "127.0.0.1"
    link(stage.owner, 7)
    choose(stage.owner, stage.owner.workspace.owner_id, "owner", lead=["telegram"])
    submit(stage.things.form, name="Ada", email=ADA)
    delete_all_jobs_except(events_of("people-events", "lead.created"))
    assert stage.run("run_events") == {"people-events": 1, "notify-member": 1}
    assert [message["chat_id"] for message in telegram.sent_messages] == [7]
    assert stage.inbox.kinds == []


def move_booking(stage: Stage) -> None:
    body = {"id": book_noon(stage), "startAt": "2027-03-03T13:00:00Z"}
    stage.api.post("/api/bookings/reschedule", body)


def cancel_booking(stage: Stage) -> None:
    stage.api.post("/api/bookings/set-status", {"id": book_noon(stage), "status": "cancelled"})


BOOKING_CHANGES: dict[str, Callable[[Stage], object]] = {
    "booking.created": book_noon,
    "booking.moved": move_booking,
    "booking.status_changed": cancel_booking,
}


@pytest.mark.parametrize("event_type", sorted(VISITOR_EVENTS))
def test_event_is_mailed_to_the_client_from_the_zip_alone(event_type: str, stage: Stage) -> None:
    BOOKING_CHANGES[event_type](stage)
    delete_all_jobs_except(events_of("visitor-events", event_type))
    assert stage.run("run_events") == {"visitor-events": 1, "mail-client": 1}
    assert [mail["To"] for mail in stage.inbox.mails] == [ADA]


def test_report_of_a_bounced_mail_is_recorded_from_the_zip_alone(stage: Stage) -> None:
    report = ses_reports.batch(ses_reports.bounced("message-1", stage.workspace_id))
    assert stage.run("run_events", report) == {}
    assert mail_gate.is_suppressed(ses_reports.VISITOR)

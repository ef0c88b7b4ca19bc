"""Reports of SES suppress addresses and pause the emails to visitors."""

import hashlib
import json
import logging
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from moto import mock_aws

import app
from chalicelib.core import retry
from chalicelib.domains.identity.store import accounts
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.mails.store.suppressions import SuppressionRow
from chalicelib.engine.tables import ControlRow
from tests.conftest import Owner, Time, call_operator
from tests.domains.notifications.inbox import Inbox
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things, submit
from tests.fakes.dynamodb_faults import failing, unreachable
from tests.fakes.ses_reports import (
    VISITOR,
    batch,
    bounced,
    complained,
    delivered,
    send_event,
    wrap_in_envelope,
)

REGION = "eu-central-1"
pytestmark = pytest.mark.usefixtures("database", "time")


def report(*bodies: Any) -> list[str]:
    """Let Lambda pass reports to the function, and return the ids that the queue keeps."""
    answer = app.run_events(batch(*bodies), None)
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def send_many(workspace: str, number: int) -> None:
    assert report(*(send_event(f"sent-{index}", workspace) for index in range(number))) == []


def bounce_many(workspace: str, number: int) -> None:
    assert report(*(bounced(f"sent-{index}", workspace) for index in range(number))) == []


class TestSuppressions:
    @pytest.mark.parametrize("wrapped", [wrap_in_envelope, dict])
    @pytest.mark.parametrize("make_report", [bounced, complained])
    def test_a_permanent_bounce_and_a_complaint_suppress_the_address(
        self, make_report: Callable[[str], dict[str, Any]], wrapped: Callable[[Any], Any]
    ) -> None:
        assert not mail_gate.is_suppressed(VISITOR)
        assert report(wrapped(make_report("one"))) == []
        assert mail_gate.is_suppressed(f" {VISITOR.upper()}")
        assert not mail_gate.is_suppressed("bob@example.com")

    @pytest.mark.parametrize(
        "harmless",
        [
            lambda: send_event("one"),
            lambda: delivered("one"),
            lambda: bounced("one", kind="Transient", subtype="MailboxFull"),
            lambda: bounced("one", kind="Undetermined", subtype="Undetermined"),
            lambda: complained("one", feedback="not-spam"),
        ],
    )
    def test_other_reports_suppress_nothing(self, harmless: Callable[[], Any]) -> None:
        assert report(harmless()) == []
        assert not mail_gate.is_suppressed(VISITOR)

    def test_addressed_mailbox_is_suppressed_instead_of_the_forwarded_one(self) -> None:
        assert report(bounced("one", final_recipient="ada@elsewhere.example")) == []
        assert mail_gate.is_suppressed(VISITOR)
        assert not mail_gate.is_suppressed("ada@elsewhere.example")

    def test_international_domain_is_suppressed_in_both_forms(self) -> None:
        assert report(bounced("one", recipient="ada@xn--e1afmkfd.xn--p1ai")) == []
        assert mail_gate.is_suppressed("ada@пример.рф")

    def test_suppression_stores_only_a_hash_of_the_address(self) -> None:
        assert report(bounced("one")) == []
        (row,) = SuppressionRow.scan(SuppressionRow.pk.contains("MAIL-SUPPRESSION"))
        assert row.pk.endswith(hashlib.sha256(VISITOR.encode()).hexdigest())
        assert "ada" not in str(row.serialize())

    @pytest.mark.parametrize(("make_report", "days"), [(bounced, 90), (complained, 730)])
    def test_a_suppression_ends(
        self, make_report: Callable[[str], Any], days: int, time: Time
    ) -> None:
        assert report(make_report("one")) == []
        time.pass_by(days=days - 1)
        assert mail_gate.is_suppressed(VISITOR)
        time.pass_by(days=1)
        assert not mail_gate.is_suppressed(VISITOR)

    def test_bounce_does_not_shorten_the_suppression_of_a_complaint(self, time: Time) -> None:
        assert report(complained("one"), bounced("two")) == []
        time.pass_by(days=91)
        assert mail_gate.is_suppressed(VISITOR)

    def test_the_operator_allows_an_address_again(self) -> None:
        assert report(bounced("one")) == []
        assert call_operator("allow_mail", email=VISITOR) == {"wasSuppressed": True}
        assert not mail_gate.is_suppressed(VISITOR)
        assert call_operator("allow_mail", email=VISITOR) == {"wasSuppressed": False}

    def test_suppressed_member_gets_no_email(
        self, inbox: Inbox, owner: Owner, things: Things
    ) -> None:
        report(bounced("one", recipient=accounts.get(owner.workspace.owner_id).email))
        submit(things.form, name="Ada", email=VISITOR)
        run_until_idle()
        assert inbox.mails == []

    @pytest.mark.parametrize("raw", ["true", "false"])
    def test_a_report_is_read_from_a_queue_with_and_without_raw_delivery(self, raw: str) -> None:
        with mock_aws():
            sns, sqs = boto3.client("sns", REGION), boto3.client("sqs", REGION)
            topic = sns.create_topic(Name="mail-feedback")["TopicArn"]
            url = sqs.create_queue(QueueName="mail-feedback")["QueueUrl"]
            arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
            sns.subscribe(
                TopicArn=topic,
                Protocol="sqs",
                Endpoint=arn["Attributes"]["QueueArn"],
                Attributes={"RawMessageDelivery": raw},
            )
            sns.publish(TopicArn=topic, Message=json.dumps(bounced("one")))
            (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
        assert report(message["Body"]) == []
        assert mail_gate.is_suppressed(VISITOR)


class TestPauses:
    def test_more_than_five_percent_of_bounces_pause_visitors_emails(self) -> None:
        send_many("ws", 60)
        bounce_many("ws", 3)
        assert not mail_gate.is_paused("ws", "stranger")
        bounce_many("ws", 4)
        assert mail_gate.is_paused("ws", "stranger")
        assert not mail_gate.is_paused("other", "stranger")

    def test_bounces_of_fewer_than_fifty_emails_pause_nothing(self) -> None:
        send_many("ws", 49)
        bounce_many("ws", 49)
        assert not mail_gate.is_paused("ws", "stranger")

    def test_second_complaint_pauses_the_emails(self) -> None:
        send_many("ws", 20)
        assert report(complained("sent-1", "ws")) == []
        assert not mail_gate.is_paused("ws", "stranger")
        assert report(complained("sent-2", "ws")) == []
        assert mail_gate.is_paused("ws", "stranger")

    def test_the_same_report_counts_once(self) -> None:
        send_many("ws", 20)
        complaint = complained("sent-1", "ws")
        assert report(complaint, complaint, wrap_in_envelope(complaint)) == []
        assert not mail_gate.is_paused("ws", "stranger")

    def test_undelivered_suppressed_email_does_not_count(self) -> None:
        send_many("ws", 50)
        skipped = (
            bounced(f"sent-{index}", "ws", subtype="OnAccountSuppressionList")
            for index in range(50)
        )
        assert report(*skipped) == []
        assert not mail_gate.is_paused("ws", "stranger")

    def test_emails_to_members_do_not_count(self) -> None:
        assert report(*(send_event(f"sent-{index}") for index in range(50))) == []
        assert report(*(complained(f"sent-{index}") for index in range(50))) == []
        assert not [row.pk for row in ControlRow.scan() if "#MAIL-DAYS" in row.pk]

    def test_emails_older_than_thirty_days_do_not_count(self, time: Time) -> None:
        send_many("ws", 20)
        assert report(complained("sent-1", "ws")) == []
        time.pass_by(days=31)
        assert report(send_event("new", "ws"), complained("new", "ws")) == []
        assert not mail_gate.is_paused("ws", "stranger")

    def test_operator_resumes_emails_and_resets_the_counts(self, owner: Owner) -> None:
        workspace = owner.workspace.id
        send_many(workspace, 60)
        bounce_many(workspace, 10)
        assert mail_gate.is_paused(workspace, "stranger")
        assert call_operator("resume_mail", workspaceId=workspace) == {"wasPaused": True}
        assert not mail_gate.is_paused(workspace, "stranger")
        assert report(bounced("sent-11", workspace)) == []
        assert not mail_gate.is_paused(workspace, "stranger")
        assert call_operator("resume_mail", workspaceId=workspace) == {"wasPaused": False}


class TestFaults:
    @pytest.fixture(autouse=True)
    def _no_pauses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(retry, "sleep", lambda _: None)

    @pytest.mark.parametrize(
        "body",
        [
            "Successfully validated SNS topic for Amazon SES event publishing.",
            "",
            "[]",
            "null",
            "{}",
            '{"Type": "Notification"}',
            '{"eventType": "Bounce", "mail": {}}',
            f'{{"eventType": "Bounce", "bounce": "{VISITOR}", "mail": "{VISITOR}"}}',
            f'{{"mail": {{"destination": ["{VISITOR}"]}}}}',
        ],
    )
    def test_a_malformed_message_is_dropped_and_logged_without_addresses(
        self, body: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        assert report(body, bounced("one")) == []
        assert mail_gate.is_suppressed(VISITOR)
        assert VISITOR not in caplog.text
        assert "no report" in caplog.text or "Bounce" in body

    def test_a_report_with_a_malformed_workspace_is_dropped(self) -> None:
        assert report(bounced("one", "ws#other")) == []
        assert not mail_gate.is_suppressed(VISITOR)

    def test_database_failure_keeps_only_the_affected_reports(self) -> None:
        with failing("UpdateItem", 50, unreachable):
            assert report(bounced("one"), delivered("two"), complained("three")) == [
                "message-0",
                "message-2",
            ]
        assert not mail_gate.is_suppressed(VISITOR)
        assert report(bounced("one")) == []
        assert mail_gate.is_suppressed(VISITOR)

    @pytest.mark.parametrize("operation", ["TransactWriteItems", "Query", "UpdateItem"])
    def test_repeated_report_counts_once_after_a_failed_write(self, operation: str) -> None:
        send_many("ws", 20)
        assert report(complained("sent-1", "ws")) == []
        with failing(operation, 50, unreachable):
            assert report(complained("sent-2", "ws")) == ["message-0"]
        assert report(complained("sent-2", "ws")) == []
        assert mail_gate.is_paused("ws", "stranger")

    def test_a_message_of_the_other_queue_runs_the_jobs(self) -> None:
        event = batch("wake")
        event["Records"][0]["eventSourceARN"] = event["Records"][0]["eventSourceARN"].replace(
            "mail-feedback", "events"
        )
        assert "batchItemFailures" not in app.run_events(event, None)

"""Reports of Amazon SES on e-mails, in messages of an SQS queue.

The records are copied from "Examples of event data that Amazon SES publishes to Amazon SNS", with
other addresses and times.
"""

import json
from typing import Any

from chalicelib.core import clock
from chalicelib.core.clock import iso

VISITOR = "ada@example.com"
QUEUE_ARN = "arn:aws:sqs:eu-central-1:123456789012:workspace-api-dev-mail-feedback"


def record(
    kind: str,
    message: str,
    workspace: str | None = None,
    recipient: str = VISITOR,
    *,
    cause: str | None = None,
    **detail: Any,
) -> dict[str, Any]:
    """Return a record. ``detail`` is its object of that kind, such as ``bounce``."""
    tags = {
        "ses:configuration-set": ["workspace-api-dev"],
        "ses:source-ip": ["192.0.2.0"],
        "ses:from-domain": ["notify.example.com"],
        "mail": ["01J-1"],
    }
    if workspace is not None:
        tags["workspace"] = [workspace]
    if cause is not None:
        tags["cause"] = [cause]
    return {
        "eventType": kind,
        **detail,
        "mail": {
            "timestamp": iso(clock.now()),
            "source": "Bakery via Service <mail@notify.example.com>",
            "sourceArn": "arn:aws:ses:eu-central-1:123456789012:identity/notify.example.com",
            "sendingAccountId": "123456789012",
            "messageId": message,
            "destination": [recipient],
            "headersTruncated": False,
            "headers": [{"name": "To", "value": recipient}],
            "commonHeaders": {"to": [recipient], "messageId": message, "subject": "Booked"},
            "tags": tags,
        },
    }


def send_event(message: str, workspace: str | None = None, **more: Any) -> dict[str, Any]:
    return record("Send", message, workspace, send={}, **more)


def delivered(message: str, workspace: str | None = None, recipient: str = VISITOR) -> Any:
    delivery = {
        "timestamp": iso(clock.now()),
        "processingTimeMillis": 11893,
        "recipients": [recipient],
        "smtpResponse": "250 2.6.0 Message received",
        "reportingMTA": "mta.example.com",
    }
    return record("Delivery", message, workspace, recipient, delivery=delivery)


def bounced(
    message: str,
    workspace: str | None = None,
    recipient: str = VISITOR,
    kind: str = "Permanent",
    subtype: str = "General",
    final_recipient: str | None = None,
) -> dict[str, Any]:
    bounce = {
        "bounceType": kind,
        "bounceSubType": subtype,
        "bouncedRecipients": [
            {
                "emailAddress": final_recipient or recipient,
                "action": "failed",
                "status": "5.1.1",
                "diagnosticCode": "smtp; 550 5.1.1 user unknown",
            }
        ],
        "timestamp": iso(clock.now()),
        "feedbackId": "01000157c44f053b-61b59c11-9236-11e6-8f96-7be8aexample-000000",
        "reportingMTA": "dsn; mta.example.com",
    }
    return record("Bounce", message, workspace, recipient, bounce=bounce)


def complained(
    message: str,
    workspace: str | None = None,
    recipient: str = VISITOR,
    feedback: str = "abuse",
    cause: str | None = None,
) -> dict[str, Any]:
    complaint = {
        "complainedRecipients": [{"emailAddress": recipient}],
        "timestamp": iso(clock.now()),
        "feedbackId": "01000157c44f053b-61b59c11-9236-11e6-8f96-7be8aexample-000000",
        "userAgent": "Mail/1.0",
        "complaintFeedbackType": feedback,
        "arrivalDate": iso(clock.now()),
    }
    return record("Complaint", message, workspace, recipient, cause=cause, complaint=complaint)


def wrap_in_envelope(report: dict[str, Any]) -> dict[str, Any]:
    """Return a record as SNS delivers it without raw delivery."""
    return {
        "Type": "Notification",
        "MessageId": "165545c9-2a5c-472c-8df2-7ff2be2b3b1b",
        "TopicArn": "arn:aws:sns:eu-central-1:123456789012:workspace-api-dev-mail-feedback",
        "Subject": "Amazon SES Email Event Notification",
        "Message": json.dumps(report),
        "Timestamp": iso(clock.now()),
        "SignatureVersion": "1",
        "Signature": "EXAMPLE",
    }


def batch(*bodies: dict[str, Any] | str) -> dict[str, Any]:
    """Return the event with which Lambda passes messages of the queue to the function."""
    return {
        "Records": [
            {
                "messageId": f"message-{number}",
                "receiptHandle": "AQEB",
                "body": body if isinstance(body, str) else json.dumps(body),
                "attributes": {"ApproximateReceiveCount": "1"},
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": QUEUE_ARN,
                "awsRegion": "eu-central-1",
            }
            for number, body in enumerate(bodies)
        ]
    }

"""Process the reports of Amazon SES on e-mail, which arrive in a queue of SQS.

Bounces and complaints suppress addresses. Reports about visitors' e-mails also count for the
workspace, and pause its e-mails to visitors at high rates. A report that arrives again changes
nothing more. AWS describes the format in "Contents of event data that Amazon SES publishes to
Amazon SNS".
"""

import json
import logging
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from functools import partial
from typing import Any, Literal, NamedTuple

from chalicelib.domains.notifications.store import mail_rates, suppressions
from chalicelib.engine.unit import run_unit
from chalicelib.gateways.mail.ses import WORKSPACE_TAG

Measure = Literal["sent", "bounced", "complained"]
Suppression = Literal["bounce", "complaint"]

_NOT_SENT = "OnAccountSuppressionList"
"""Subtype of a bounce of an e-mail that SES has not tried to deliver. SES does not count it
either."""
_WORKSPACE_ID = re.compile(r"[\w-]{1,64}", re.ASCII)


class Report(NamedTuple):
    """A report of SES on an e-mail.

    ``measure`` is what to count, ``suppression`` the reason to send nothing more to ``addresses``.
    ``workspace_id`` is set for an e-mail to a visitor.
    """

    message_id: str
    day: date
    measure: Measure | None
    suppression: Suppression | None
    addresses: tuple[str, ...]
    workspace_id: str | None


def parse(body: str) -> Report | None:
    """Return the report in a message, with or without the envelope of SNS, or None if it is unused.

    Raises:
        ValueError: the message is not a report of SES. The error may contain parts of the message.
    """
    try:
        record = json.loads(body)
        if record.get("Type") == "Notification":
            record = json.loads(record["Message"])
        return _report(record)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(type(error).__name__) from None


def _report(record: Mapping[str, Any]) -> Report | None:
    mail = record["mail"]
    match record:
        case {"eventType": "Send"}:
            return _parse_mail(mail, "sent")
        case {"eventType": "Bounce", "bounce": {"bounceType": "Permanent"} as bounce}:
            # SES reports a bounce that it expects to pass as Transient or Undetermined.
            measure: Measure | None = "bounced" if bounce["bounceSubType"] != _NOT_SENT else None
            return _parse_mail(mail, measure, "bounce", bounce["bouncedRecipients"])
        case {"eventType": "Complaint", "complaint": complaint}:
            # A recipient who takes an e-mail out of the spam folder is reported as a complaint,
            # too.
            if complaint.get("complaintFeedbackType") == "not-spam":
                return None
            return _parse_mail(mail, "complained", "complaint", complaint["complainedRecipients"])
        case {"eventType": str()}:
            return None
    msg = "expected eventType"
    raise ValueError(msg)


def _parse_mail(
    mail: Mapping[str, Any],
    measure: Measure | None,
    suppression: Suppression | None = None,
    recipients: list[dict[str, str]] | None = None,
) -> Report:
    addresses = [recipient["emailAddress"] for recipient in recipients or ()]
    if suppression and len(mail["destination"]) == 1:
        # If the recipient forwards e-mails, the report names the address that they are forwarded
        # to.
        addresses = mail["destination"]
    (workspace_id,) = mail.get("tags", {}).get(WORKSPACE_TAG, [None])
    # The id becomes a part of a key, and the message comes from outside.
    if workspace_id is not None and not _WORKSPACE_ID.fullmatch(workspace_id):
        msg = "the workspace's tag is malformed"
        raise ValueError(msg)
    sent_at = datetime.fromisoformat(mail["timestamp"])
    return Report(
        mail["messageId"], sent_at.date(), measure, suppression, tuple(addresses), workspace_id
    )


PAUSED = "mails of a workspace to visitors are paused"

log = logging.getLogger(__name__)


def receive(messages: Iterable[Mapping[str, Any]]) -> list[str]:
    """Handle messages of the queue, and return the ids of the messages that the queue must keep.

    Neither a log line nor an error names an address. A message that is not a report is dropped.
    """
    failed_ids = []
    for message in messages:
        try:
            _handle(message)
        except Exception as error:  # noqa: BLE001  One failure must not repeat the other messages.
            # The trace may contain an address.
            cause = type(error).__name__
            log.warning("a report of SES waits for another attempt", extra={"cause": cause})
            failed_ids.append(message["messageId"])
    return failed_ids


def _handle(message: Mapping[str, Any]) -> None:
    try:
        report = parse(message["body"])
    except ValueError:
        extra = {"messageId": message["messageId"]}
        log.warning("a message in the queue of SES is no report", extra=extra)
        return
    if report is None:
        return
    if report.suppression is not None:
        for address in report.addresses:
            suppressions.suppress(address, report.suppression)
        extra = {"reason": report.suppression, "addresses": len(report.addresses)}
        log.info("SES reported a mail", extra=extra)
    if report.workspace_id is not None and report.measure is not None:
        _count(report, report.workspace_id, report.measure)


def _count(report: Report, workspace_id: str, measure: Measure) -> None:
    stage = partial(
        mail_rates.stage_count, message_id=report.message_id, day=report.day, measure=measure
    )
    # Without an audit event, a lost response is not retried. SQS then delivers the report again.
    run_unit(workspace_id, None, stage)
    if measure == "sent":
        return
    # A repeated report gets here, too: the first attempt may have ended before the pause.
    reason = mail_rates.counts(workspace_id).pause
    if reason is not None and mail_rates.pause(workspace_id, reason):
        log.warning(PAUSED, extra={"workspaceId": workspace_id, "reason": reason})

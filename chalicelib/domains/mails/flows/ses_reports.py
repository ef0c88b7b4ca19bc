"""Reports of Amazon SES on e-mails that were sent, bounced or complained of."""

import json
import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, NamedTuple, get_args

from chalicelib.domains.mails.rules.mail_reputation import Cause, Measure, Suppression
from chalicelib.gateways.mail.ses import CAUSE_TAG, WORKSPACE_TAG

# Subtype of a bounce of an e-mail that SES has not tried to deliver. SES does not count it either.
_NOT_SENT = "OnAccountSuppressionList"
_WORKSPACE_ID = re.compile(r"[\w-]{1,64}", re.ASCII)


# AWS describes the format in "Contents of event data that Amazon SES publishes to Amazon SNS".
class Report(NamedTuple):
    """A report of SES on an e-mail."""

    message_id: str
    day: date
    measure: Measure | None  # what to count
    suppression: Suppression | None  # the reason to send nothing more to the addresses
    addresses: tuple[str, ...]
    workspace_id: str | None  # of an e-mail to a visitor
    cause: Cause


def parse(body: str) -> Report | None:
    """Return the report in a message of SES or SNS, or None if it is unused.

    Raises ValueError, which may contain parts of the message, if it is not a report.
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
    # An e-mail that another program sends by the same SES identity has no tag.
    (named_cause,) = mail.get("tags", {}).get(CAUSE_TAG, ["stranger"])
    return Report(
        mail["messageId"],
        datetime.fromisoformat(mail["timestamp"]).date(),
        measure,
        suppression,
        tuple(addresses),
        workspace_id,
        named_cause if named_cause in get_args(Cause) else "stranger",
    )

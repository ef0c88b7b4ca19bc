"""Process the reports of Amazon SES on e-mail, which arrive in a queue of SQS.

Bounces and complaints suppress addresses. High rates of e-mails that strangers have caused, or that
advertise, pause these in their workspace, and high rates of the others are reported to the
operator. A report that arrives again changes nothing more.
"""

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from chalicelib.domains.mails.flows.ses_reports import Report, parse
from chalicelib.domains.mails.rules.mail_reputation import PAUSED_BY_RATES, Measure
from chalicelib.domains.mails.store import mail_rates, suppressions
from chalicelib.engine.unit import run_unit

PAUSED = "mails of a workspace that strangers cause, or that advertise, are paused"
RATES_ARE_HIGH = "mails of a workspace have high rates of bounces or complaints"
log = logging.getLogger(__name__)


def receive(messages: Iterable[Mapping[str, Any]]) -> list[str]:
    """Handle messages of the queue, and return the ids of the messages that the queue must keep."""
    # Neither a log line nor an error names an address. A message that is not a report is dropped.
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
        mail_rates.stage_count,
        message_id=report.message_id,
        day=report.day,
        measure=measure,
        cause=report.cause,
    )
    # Without an audit event, a lost response is not retried. SQS then delivers the report again.
    run_unit(workspace_id, None, stage)
    if measure == "sent":
        return
    # A repeated report gets here, too: the first attempt may have ended before the pause.
    reason = mail_rates.counts(workspace_id, report.cause).pause
    if reason is None:
        return
    fields = {"workspaceId": workspace_id, "reason": reason}
    if report.cause not in PAUSED_BY_RATES:
        log.warning(RATES_ARE_HIGH, extra=fields)
    elif mail_rates.pause(workspace_id, report.cause, reason):
        log.warning(PAUSED, extra=fields | {"cause": report.cause})

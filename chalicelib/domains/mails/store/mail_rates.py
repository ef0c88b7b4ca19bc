"""Counts of the e-mails of a workspace to visitors by day, and the pause of these e-mails."""

from datetime import UTC, date, datetime, time, timedelta
from typing import cast

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core import clock
from chalicelib.domains.mails.rules.mail_reputation import Counts, Measure, Pause
from chalicelib.engine.conditional_updates import update_if
from chalicelib.engine.tables import ControlRow
from chalicelib.engine.unit import UnitOfWork

WINDOW = timedelta(days=30)
"""E-mails sent in this time count. A complaint may come days after the e-mail."""
KEPT_FOR = timedelta(days=35)
SORT_KEY = "-"


class MailDayRow(ControlRow):
    """E-mails that were sent on a day, and how many of these bounced or were complained of."""

    sent = NumberAttribute(default=0)
    bounced = NumberAttribute(default=0)
    complained = NumberAttribute(default=0)


class MailReportRow(ControlRow):
    """A report that was counted.

    SQS may deliver it again within 14 days.
    """


class MailPauseRow(ControlRow):
    """Pause of a workspace's e-mails to visitors.

    ``reason`` is ``bounces`` or ``complaints``.
    """

    reason = UnicodeAttribute()
    since = UTCDateTimeAttribute()


_ALWAYS_TRUE = MailDayRow.pk.exists() | MailDayRow.pk.does_not_exist()


def stage_count(unit: UnitOfWork, message_id: str, day: date, measure: Measure) -> None:
    """Stage the count of a report, unless it was counted before."""
    report = MailReportRow(f"W#{unit.tenant}#MAIL-REPORTS", f"{message_id}#{measure}")
    # A failed transaction costs as much as one that is carried out, so the report is looked up
    # first.
    if MailReportRow.find(report.pk, report.sk) is not None:
        return
    report.expires = clock.now() + KEPT_FOR
    expires = datetime.combine(day, time(), UTC) + KEPT_FOR
    counter: NumberAttribute = getattr(MailDayRow, measure)
    # The report and the count are written together, so a repeated report counts nothing.
    unit.create(report)
    unit.update(
        MailDayRow(_days(unit.tenant), day.isoformat()),
        [counter.add(1), MailDayRow.expires.set(expires)],
        _ALWAYS_TRUE,
    )


def counts(workspace_id: str) -> Counts:
    """Return the counts of the last 30 days, or since the end of the last pause."""
    first = (clock.now() - WINDOW).date().isoformat()
    # Old days may still exist, because DynamoDB removes expired rows late.
    rows = [row for row in MailDayRow.partition(_days(workspace_id)) if row.sk >= first]
    return Counts(
        sent=sum(int(row.sent) for row in rows),
        bounced=sum(int(row.bounced) for row in rows),
        complained=sum(int(row.complained) for row in rows),
    )


def pause(workspace_id: str, reason: Pause) -> bool:
    """Pause the e-mails of a workspace to visitors, and return whether they were not paused before.

    Raises:
        UnavailableError: the database is unavailable.
    """
    return update_if(
        MailPauseRow(_pause(workspace_id), SORT_KEY),
        [MailPauseRow.reason.set(reason), MailPauseRow.since.set(clock.now())],
        MailPauseRow.pk.does_not_exist(),
    )


def pause_reason(workspace_id: str) -> Pause | None:
    """Return why the e-mails of a workspace to visitors are paused, or None if they are not."""
    pause = MailPauseRow.find(_pause(workspace_id), SORT_KEY)
    return cast("Pause", pause.reason) if pause else None


def stage_resumption(unit: UnitOfWork) -> bool:
    """Stage the end of the pause of the unit's workspace, and return whether there is one.

    Counting begins again, so that the e-mails sent before do not pause it once more.
    """
    pause = MailPauseRow.find(_pause(unit.tenant), SORT_KEY)
    if pause is None:
        return False
    unit.delete(pause)
    for day in MailDayRow.partition(_days(unit.tenant)):
        unit.delete(day)
    return True


def _days(workspace_id: str) -> str:
    return f"W#{workspace_id}#MAIL-DAYS"


def _pause(workspace_id: str) -> str:
    return f"W#{workspace_id}#MAIL-PAUSE"

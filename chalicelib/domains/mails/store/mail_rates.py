"""Count e-mails of a workspace to visitors, their bounces and complaints, and pause e-mails."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple, cast, get_args

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core import clock
from chalicelib.domains.mails.rules.mail_reputation import (
    Cause,
    Counts,
    Measure,
    Pause,
    next_pause,
)
from chalicelib.engine.conditional_updates import update_if
from chalicelib.engine.reading import Key, Rows
from chalicelib.engine.tables import ControlRow
from chalicelib.engine.unit import UnitOfWork

WINDOW = timedelta(days=30)  # E-mails sent in this time count. A complaint may come days after.
KEPT_FOR = timedelta(days=35)
# Sort keys of the pauses that follow from rates.
SORT_KEYS: Mapping[Cause, str] = {"stranger": "-", "advertising": "advertising"}
BY_OPERATOR = "operator"  # sort key of the operator's pause of all e-mails to clients


class MailDayRow(ControlRow):
    """E-mails that were sent on a day, and how many of these bounced or were complained of."""

    sent = NumberAttribute(default=0)
    bounced = NumberAttribute(default=0)
    complained = NumberAttribute(default=0)


class MailReportRow(ControlRow):
    """A report that was counted. SQS may deliver it again within 14 days."""


class MailPauseRow(ControlRow):
    """A pause of e-mails. It is kept for a time after its end, because the next one is longer."""

    reason = UnicodeAttribute()  # ``bounces`` or ``complaints``
    since = UTCDateTimeAttribute()
    until = UTCDateTimeAttribute(null=True)  # None if the operator ends it

    @property
    def ends_at(self) -> datetime:
        ends_at: datetime = self.until or self.since + next_pause(None)
        return ends_at


class PausedMails(NamedTuple):
    reason: Pause
    until: datetime | None  # None if it does not end by itself


_ALWAYS_TRUE = MailDayRow.pk.exists() | MailDayRow.pk.does_not_exist()


def stage_count(
    unit: UnitOfWork, message_id: str, day: date, *, measure: Measure, cause: Cause
) -> None:
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
        MailDayRow(_days(unit.tenant, cause), day.isoformat()),
        [counter.add(1), MailDayRow.expires.set(expires)],
        _ALWAYS_TRUE,
    )


def counts(workspace_id: str, cause: Cause) -> Counts:
    """Return the counts of e-mails with a cause of the last 30 days, or since the last pause."""
    first = (clock.now() - WINDOW).date()
    sort_key = SORT_KEYS.get(cause)
    if sort_key is not None and (pause := _find(workspace_id, sort_key=sort_key)) is not None:
        first = max(first, pause.ends_at.date())
    # Old days may still exist, because DynamoDB removes expired rows late.
    days = MailDayRow.partition(_days(workspace_id, cause))
    rows = [row for row in days if row.sk >= first.isoformat()]
    return Counts(
        sent=sum(int(row.sent) for row in rows),
        bounced=sum(int(row.bounced) for row in rows),
        complained=sum(int(row.complained) for row in rows),
    )


def pause(workspace_id: str, cause: Cause, reason: Pause) -> bool:
    """Pause e-mails with a cause in ``SORT_KEYS``, and return whether this is a new pause."""
    sort_key = SORT_KEYS[cause]
    now, last = clock.now(), _find(workspace_id, sort_key=sort_key)
    if last is not None and last.ends_at > now:
        return False
    # A pause within 30 days after the last one is twice as long, up to a week.
    is_recent = last is not None and last.ends_at > now - WINDOW
    length = next_pause(last.ends_at - last.since if last is not None and is_recent else None)
    unchanged = (
        MailPauseRow.pk.does_not_exist() if last is None else MailPauseRow.since == last.since
    )
    return update_if(
        MailPauseRow(_pauses(workspace_id), sort_key),
        [
            MailPauseRow.reason.set(reason),
            MailPauseRow.since.set(now),
            MailPauseRow.until.set(now + length),
            MailPauseRow.expires.set(now + length + KEPT_FOR),
        ],
        unchanged,
    )


def stage_pause(unit: UnitOfWork, reason: Pause) -> bool:
    """Stage the operator's pause of all e-mails to clients, and return whether it is new."""
    if _find(unit.tenant, sort_key=BY_OPERATOR) is not None:
        return False
    unit.create(MailPauseRow(_pauses(unit.tenant), BY_OPERATOR, reason=reason, since=clock.now()))
    return True


def pause_keys(workspace_id: str, cause: Cause) -> list[Key]:
    """Return the keys of the pauses of e-mails with a cause, to read ahead for ``find_pause``."""
    sort_keys = [BY_OPERATOR, *([SORT_KEYS[cause]] if cause in SORT_KEYS else [])]
    return [Key(MailPauseRow, _pauses(workspace_id), sort_key) for sort_key in sort_keys]


def find_pause(workspace_id: str, cause: Cause, rows: Rows | None = None) -> PausedMails | None:
    """Return the pause of a workspace's e-mails with a cause, or None.

    What ``SORT_KEYS`` names has a pause of its own beside the operator's.
    """

    def find(sort_key: str) -> MailPauseRow | None:
        key = Key(MailPauseRow, _pauses(workspace_id), sort_key)
        return rows.find(MailPauseRow, key) if rows else _find(workspace_id, sort_key=sort_key)

    if (pause := find(BY_OPERATOR)) is not None:
        return PausedMails(cast("Pause", pause.reason), None)
    pause = find(SORT_KEYS[cause]) if cause in SORT_KEYS else None
    if pause is None or pause.ends_at <= clock.now():
        return None
    return PausedMails(cast("Pause", pause.reason), pause.ends_at)


def stage_resumption(unit: UnitOfWork) -> bool:
    """Stage the end of the pauses of the unit's workspace, and return whether there was one."""
    was_paused = any(find_pause(unit.tenant, cause) is not None for cause in SORT_KEYS)
    if not was_paused:
        return False
    for sort_key in (*SORT_KEYS.values(), BY_OPERATOR):
        if (pause := _find(unit.tenant, sort_key=sort_key)) is not None:
            unit.delete(pause)
    # Counting begins again, so that the e-mails sent before do not pause it once more.
    for cause in get_args(Cause):
        for day in MailDayRow.partition(_days(unit.tenant, cause)):
            unit.delete(day)
    return True


def _find(workspace_id: str, *, sort_key: str) -> MailPauseRow | None:
    return MailPauseRow.find(_pauses(workspace_id), sort_key)


def _days(workspace_id: str, cause: Cause) -> str:
    names = {"stranger": "", "business": "#BUSINESS", "advertising": "#ADVERTISING"}
    return f"W#{workspace_id}#MAIL-DAYS{names[cause]}"


def _pauses(workspace_id: str) -> str:
    return f"W#{workspace_id}#MAIL-PAUSE"

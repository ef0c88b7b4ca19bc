"""Store the calendars of the staff in which they are busy elsewhere (ADR 135).

A row is the calendar of one resource, by the id of the resource. Its link is a secret: who has it
reads a person's whole calendar. The busy times themselves are in the days that slots read
(``bookings.store.calendar_days``).
"""

from datetime import timedelta
from typing import Self

from pynamodb.attributes import (
    BooleanAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)

from chalicelib.core import clock
from chalicelib.engine.tables import ContentRow
from chalicelib.engine.unit import UnitOfWork

WAITING, READ, FAILING = "waiting", "read", "failing"
TOLD_AFTER = timedelta(days=1)  # of failures


class BusyCalendarRow(ContentRow):
    """A calendar that is read for busy times. Its sort key is the id of its resource."""

    version = VersionAttribute()
    sealed_link = UnicodeAttribute()
    host = UnicodeAttribute()  # of the link: all that is shown of it
    added_at = UTCDateTimeAttribute()
    # The next reading has this number. A job with another number does nothing.
    turn = NumberAttribute()
    next_at = UTCDateTimeAttribute()
    read_at = UTCDateTimeAttribute(null=True)  # last try
    succeeded_at = UTCDateTimeAttribute(null=True)
    failures = NumberAttribute(default=0)  # in a row
    failing_since = UTCDateTimeAttribute(null=True)
    told = BooleanAttribute(default=False)  # that it has failed for a day
    problem = UnicodeAttribute(null=True)  # code of the last failure
    reason = UnicodeAttribute(null=True)  # a clause of the fetcher, which has no path
    skipped = NumberAttribute(default=0)  # events that could not be read
    # ETag, Last-Modified and the URL after redirects, which is a secret, too.
    sealed_validators = UnicodeAttribute(null=True)
    # What the days have: the UTC day from which they were written, the zone of the resource and a
    # digest. Days before it were cleared, and may have busy times from ``first_day`` on.
    first_day = UnicodeAttribute(null=True)
    zone = UnicodeAttribute(null=True)
    digest = UnicodeAttribute(null=True)

    @classmethod
    def of(cls, workspace_id: str, resource_id: str) -> Self | None:
        """Return the calendar of a resource, read consistently, or None."""
        return cls.find(partition(workspace_id), resource_id)

    @classmethod
    def all_of(cls, workspace_id: str) -> list[Self]:
        """Return the calendars of a workspace, read consistently."""
        return cls.partition(partition(workspace_id))

    @property
    def status(self) -> str:
        if self.failures:
            return FAILING
        return READ if self.succeeded_at else WAITING

    def forget_readings(self) -> None:
        """Forget the results of all readings, for another link."""
        self.read_at = self.succeeded_at = self.failing_since = None
        self.failures, self.told, self.skipped = 0, False, 0
        self.problem = self.reason = self.sealed_validators = self.zone = self.digest = None


def new(workspace_id: str, resource_id: str) -> BusyCalendarRow:
    """Return the first calendar of a resource, without a link, to create."""
    return BusyCalendarRow(partition(workspace_id), resource_id, turn=0, next_at=clock.now())


def stage_deletion(unit: UnitOfWork, resource_id: str) -> None:
    """Stage the deletion of a resource's calendar, if there is one."""
    # Whichever version it has.
    unit.delete(ContentRow(partition(unit.workspace_id), resource_id))


def partition(workspace_id: str) -> str:
    """Return the partition of the calendars of a workspace."""
    return f"W#{workspace_id}#BUSY_CALENDAR"

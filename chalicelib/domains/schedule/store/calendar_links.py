"""Store the secret links of calendar feeds (ADR 133).

A row is the link of one calendar: that of a resource, by the id of the resource, or that of the
whole business, by the id of the workspace. Its secret signs the link, so another secret, or no row,
ends it.
"""

from typing import Self

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute, VersionAttribute

from chalicelib.core import clock
from chalicelib.domains.bookings.rules import booking_tokens
from chalicelib.engine.tables import ContentRow
from chalicelib.engine.unit import UnitOfWork


class CalendarLinkRow(ContentRow):
    """The link of a calendar feed. Its sort key is the id of its resource, or of the workspace."""

    version = VersionAttribute()
    secret = UnicodeAttribute()
    made_at = UTCDateTimeAttribute()

    @classmethod
    def of(cls, workspace_id: str, calendar_id: str) -> Self | None:
        """Return the link of a calendar, read consistently, or None."""
        return cls.find(_partition(workspace_id), calendar_id)

    @classmethod
    def all_of(cls, workspace_id: str) -> list[Self]:
        """Return the links of a workspace, read consistently."""
        return cls.partition(_partition(workspace_id))

    def renew(self) -> None:
        """Take a new secret, which ends the former link at the commit."""
        self.secret, self.made_at = booking_tokens.new_secret(), clock.now()


def new(workspace_id: str, calendar_id: str) -> CalendarLinkRow:
    """Return the first link of a calendar, to create."""
    row = CalendarLinkRow(_partition(workspace_id), calendar_id)
    row.renew()
    return row


def stage_deletion(unit: UnitOfWork, calendar_id: str) -> None:
    """Stage the deletion of a calendar's link, if there is one."""
    # Whichever version it has.
    unit.delete(ContentRow(_partition(unit.workspace_id), calendar_id))


def _partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#CALENDAR_LINK"

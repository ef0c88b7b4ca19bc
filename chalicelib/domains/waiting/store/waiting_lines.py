"""Store who waits for a free time of a service on a day, and to whom one is offered (ADR 142).

A line is one row with the order of those who wait and the one open offer. Every change of a line
writes this row over the version that was read, so two offers can never be open. The contacts are in
a row for each who waits, which is written and deleted with the line's.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple, Self

from pynamodb.attributes import (
    ListAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.waiting.rules.line_steps import Line, Offer, Waiting
from chalicelib.engine.reading import fetch_of
from chalicelib.engine.tables import ContentRow, DateAttribute, JsonAttribute
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import emails

KEPT_FOR = timedelta(days=3)  # after the day, if the job that ends the line should fail


class LinePlace(NamedTuple):
    """The day and the service of a line."""

    day: date  # in the zone in which the service shows its times
    service_id: str

    @property
    def sk(self) -> str:
        return f"{self.day.isoformat()}#{self.service_id}"


class WaitingRow(ContentRow):
    """One who waits. Its sort key is a new id. Only ``told`` changes."""

    day = DateAttribute()
    service_id = UnicodeAttribute()
    resource_id = UnicodeAttribute(null=True)
    client_id = UnicodeAttribute(null=True)
    name = UnicodeAttribute(null=True)
    email = UnicodeAttribute(null=True)
    phone = UnicodeAttribute(null=True)
    contacts: ListAttribute[str] = ListAttribute(default=list)  # in normal form
    source = UnicodeAttribute()
    language = UnicodeAttribute(null=True)  # of the page
    visitor_shares: ListAttribute[str] = ListAttribute(null=True)
    created_at = UTCDateTimeAttribute()
    # What became of the last message: its id, channel, state and reason.
    told: JsonAttribute = JsonAttribute(null=True)

    @property
    def place(self) -> LinePlace:
        return LinePlace(self.day, self.service_id)

    def is_of(self, client_id: str | None, contacts: Iterable[str | None]) -> bool:
        """Whether a client, or somebody with one of these contacts, is the one who waits."""
        if client_id is not None and client_id == self.client_id:
            return True
        return not {emails.key(each) for each in contacts if each}.isdisjoint(self.contacts)


class WaitingLineRow(ContentRow):
    """A line. Its sort key is the day and the service.

    An emptied line stays until some days after its day. A new row of the same day would start its
    versions again, and a rival that read the former one could commit.
    """

    version = VersionAttribute()
    waiting: JsonAttribute = JsonAttribute()  # pairs of id and resource, in order
    offered_to = UnicodeAttribute(null=True)
    offered_until = UTCDateTimeAttribute(null=True)
    # The job of this time attends to the line. One of another time does nothing.
    check_at = UTCDateTimeAttribute(null=True)

    @classmethod
    def of(cls, workspace_id: str, place: LinePlace) -> Self | None:
        """Return a line, read consistently, or None."""
        return cls.find(_lines(workspace_id), place.sk)

    @property
    def place(self) -> LinePlace:
        day, _, service_id = self.sk.partition("#")
        return LinePlace(date.fromisoformat(day), service_id)

    @property
    def line(self) -> Line:
        waiting = tuple(
            Waiting(waiting_id, resource_id) for waiting_id, resource_id in self.waiting
        )
        if self.offered_to is None or self.offered_until is None:
            return Line(waiting)
        return Line(waiting, Offer(self.offered_to, epoch_ms(self.offered_until)))

    def has(self, waiting_id: str) -> bool:
        return any(each == waiting_id for each, _ in self.waiting)

    def set_line(self, line: Line) -> None:
        self.waiting = [list(each) for each in line.waiting]
        self.offered_to = line.offer.waiting_id if line.offer else None
        self.offered_until = clock.moment_at(line.offer.until) if line.offer else None


def new_line(workspace_id: str, place: LinePlace) -> WaitingLineRow:
    """Return a line without anybody, to create."""
    return WaitingLineRow(_lines(workspace_id), place.sk, waiting=[], expires=_expiry(place))


def new_waiting(workspace_id: str, waiting_id: str, place: LinePlace) -> WaitingRow:
    """Return the row of one who begins to wait. The caller sets contacts and source."""
    return WaitingRow(
        _partition(workspace_id),
        waiting_id,
        day=place.day,
        service_id=place.service_id,
        created_at=clock.now(),
        expires=_expiry(place),
    )


def find(workspace_id: str, waiting_id: str) -> WaitingRow | None:
    """Return one who waits, read consistently, or None."""
    return WaitingRow.find(_partition(workspace_id), waiting_id)


def fetch(workspace_id: str, ids: Iterable[str]) -> list[WaitingRow]:
    """Return those who wait with some ids, in the order of the ids, read consistently."""
    ids = list(ids)
    found = fetch_of(WaitingRow, ((_partition(workspace_id), each) for each in ids))
    by_id = {row.sk: row for row in found}
    return [by_id[each] for each in ids if each in by_id]


def lines_between(workspace_id: str, first: date, *, last: date) -> list[WaitingLineRow]:
    """Return the lines of some days, by day, read consistently."""
    days = WaitingLineRow.sk.between(first.isoformat(), f"{last.isoformat()}#~")
    return WaitingLineRow.partition(_lines(workspace_id), range_key_condition=days)


def all_waiting(workspace_id: str) -> list[WaitingRow]:
    """Return all who wait in a workspace, read consistently."""
    return WaitingRow.partition(_partition(workspace_id))


def naming(
    workspace_id: str, contacts: Collection[str], client_ids: Collection[str] = ()
) -> list[WaitingRow]:
    """Return those who wait with one of these contacts, or as one of these clients."""
    return [
        row
        for row in all_waiting(workspace_id)
        if row.client_id in client_ids or row.is_of(None, contacts)
    ]


def stage_told(unit: UnitOfWork, waiting_id: str, told: Mapping[str, Any]) -> None:
    """Stage what became of a message to one who waits. Nothing happens if the waiting has ended."""
    row = find(unit.workspace_id, waiting_id)
    if row is not None:
        unit.update(row, [WaitingRow.told.set(dict(told))])


def stage_untold(unit: UnitOfWork, waiting_id: str, message_id: str) -> None:
    """Stage that no channel led to one who waits, unless something was noted about the message."""
    row = find(unit.workspace_id, waiting_id)
    if row is not None and (row.told or {}).get("message") != message_id:
        told = {"message": message_id, "channel": None, "state": "none", "reason": None}
        unit.update(row, [WaitingRow.told.set(told)])


def _expiry(place: LinePlace) -> datetime:
    return clock.moment_of(place.day, "UTC", end=True) + KEPT_FOR


def _partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#WAITING"


def _lines(workspace_id: str) -> str:
    return f"W#{workspace_id}#WAITING_LINE"

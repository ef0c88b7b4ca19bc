"""The events of a unit of work, and the jobs that its transaction writes (ADR 60)."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.events import MESSAGE_KINDS
from chalicelib.core.jobs import PEOPLE_EVENTS, VISITOR_EVENTS, WEBHOOK_EVENTS
from chalicelib.core.unit import AuditEvent
from chalicelib.engine import jobs
from chalicelib.engine.events import subscriptions
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.tables import Record, Row


class Event(NamedTuple):
    """A change that members, clients or webhooks may be notified of."""

    type: str  # a name in core.events
    id: str  # of the record
    revision: int | None = None  # after the change
    previous_status: str | None = None  # if the status changes


class Outbox:
    def __init__(self, workspace_id: str) -> None:
        self._workspace_id = workspace_id
        self._changed: dict[str, tuple[Listing[Any], Record]] = {}
        self._deleted: dict[str, Event] = {}
        self._emitted: list[Event] = []
        self.is_confirmed = False
        """Whether the actor has confirmed the change, and is told of it by an e-mail of its own."""

    def emit(self, event: Event) -> None:
        """Add an event that does not follow from the change of a record."""
        self._emitted.append(event)

    def note(self, listing: Listing[Any] | None, row: Row) -> None:
        if listing and listing.events and isinstance(row, Record):
            self._changed[row.id] = (listing, row)

    def note_deletion(self, listing: Listing[Any] | None, row: Row) -> None:
        if listing and listing.deletion_event and isinstance(row, Record):
            self._deleted[row.id] = Event(listing.deletion_event, row.id, row.revision)

    def jobs(self, change: AuditEvent | None) -> list[JobRow]:
        """Return the jobs for the events to which the workspace subscribes.

        Each kind of receiver has its own job, so that none waits for another. ``change`` is the
        unit's entry in the audit log. The jobs do not distinguish visitors, and do not contain a
        visitor's hash. ``byKey`` is set if a program made the change with a key, and
        ``isConfirmed`` if the actor is told of it already.
        """
        events = self.events()
        if not events:
            return []
        subscribed = subscriptions.read_subscribed(self._workspace_id)
        events_by_kind = {
            WEBHOOK_EVENTS: [event for event in events if event.type in subscribed.by_webhooks],
            PEOPLE_EVENTS: [
                event
                for event in events
                if event.type in subscribed.by_people and _has_message(event, events)
            ],
            VISITOR_EVENTS: [event for event in events if event.type in subscribed.by_visitors],
        }
        actor = change.actor if change else ""
        who = "visitor" if actor.startswith("visitor:") else actor
        common: dict[str, Any] = {"actor": who, "at": iso(clock.now())}
        if change and change.key_id:
            common["byKey"] = True
        if self.is_confirmed:
            common["isConfirmed"] = True
        return [
            # Names and ids only: a receiver of an event reads the live record.
            jobs.row(
                kind, self._workspace_id, {"events": [list(event) for event in some], **common}
            )
            for kind, some in events_by_kind.items()
            if some
        ]

    def events(self) -> list[Event]:
        """Return the events of all staged changes, whether anybody subscribes to them or not."""
        events = [*self._emitted]
        for listing, record in self._changed.values():
            events += _derive(listing, record)
        return [*events, *self._deleted.values()]


def _has_message(event: Event, events: list[Event]) -> bool:
    # Another event of the record may notify members instead.
    other_types = {other.type for other in events if other.id == event.id}
    return any(
        kind.type == event.type and kind.unless not in other_types
        for kind in MESSAGE_KINDS.values()
    )


def _derive(listing: Listing[Any], record: Record) -> Iterable[Event]:
    old_record = record.original
    former = getattr(old_record, listing.status) if old_record and listing.status else None
    if listing.status and former == getattr(record, listing.status):
        former = None
    for name, rule in listing.events.items():
        if rule(old_record, record):
            yield Event(name, record.id, record.revision, former)

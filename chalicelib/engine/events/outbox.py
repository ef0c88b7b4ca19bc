"""The events of a unit of work, and the job that its transaction writes for them (ADR 60).

The job has names and ids only. Whoever receives an event reads the live record.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.jobs import WEBHOOK_EVENTS
from chalicelib.engine import jobs
from chalicelib.engine.events import subscriptions
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.tables import Record


class Event(NamedTuple):
    """A change that others may want to know of.

    ``type`` is a name in ``core.events``. ``id`` is that of the record, and ``revision`` is the
    record's after the change. ``previous_status`` is set if the status changes.
    """

    type: str
    id: str
    revision: int | None = None
    previous_status: str | None = None


def derive(listing: Listing[Any], record: Record) -> Iterable[Event]:
    """Yield the events of a record that was read or created, and is about to be written."""
    before = record.as_read
    former = getattr(before, listing.status) if before and listing.status else None
    if listing.status and former == getattr(record, listing.status):
        former = None
    for name, rule in listing.events.items():
        if rule(before, record):
            yield Event(name, record.id, record.revision, former)


def job(workspace_id: str, events: list[Event], actor: str) -> JobRow | None:
    """Return the job for those of the events that the workspace wants, or None."""
    wanted = subscriptions.wanted(workspace_id, {event.type for event in events})
    chosen = [list(event) for event in events if event.type in wanted]
    if not chosen:
        return None
    payload = {"events": chosen, "actor": actor, "at": iso(clock.now())}
    return jobs.row(WEBHOOK_EVENTS, workspace_id, payload)

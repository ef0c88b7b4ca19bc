"""Find the members to notify of events, and make a job for each message."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from chalicelib.core import deadline
from chalicelib.core.events import MESSAGE_KINDS
from chalicelib.core.jobs import PEOPLE_EVENTS, Job, job_handler
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.identity.store import connections
from chalicelib.domains.notifications.flows import member_choices
from chalicelib.domains.notifications.rules.job_kinds import NOTIFY_MEMBER
from chalicelib.domains.notifications.rules.who_is_told import MEMBER_KINDS
from chalicelib.engine import jobs
from chalicelib.engine.events import wake
from chalicelib.engine.events.outbox import Event
from chalicelib.engine.jobs import JobRow

PARALLEL_WRITES = 8


@job_handler(PEOPLE_EVENTS)
def make_messages(job: Job) -> None:
    """Make a job for each message that a member wants, with the same ids in each run."""
    members = member_choices.members(job.workspace_id)
    # A key acts under its owner's account, but the owner has not seen what the program did.
    actor = "" if job.payload.get("byKey") else job.payload["actor"]
    job_rows: list[JobRow] = []
    events = [Event(*values) for values in job.payload["events"]]
    for number, event, ids in _by_visit(job.workspace_id, events):
        for name, kind in MESSAGE_KINDS.items():
            told = MEMBER_KINDS[name]
            if kind.type != event.type:
                continue
            confirmed_by = _confirmed_by(job, event)
            for member, own_choices in members:
                if told.for_others and member.account.id == actor:
                    continue
                for channel in own_choices.channels(name):
                    if channel == "mail" and member.account.id == confirmed_by:
                        continue  # An e-mail about the confirmation has told this member.
                    message: dict[str, Any] = {
                        "kind": name,
                        "recordId": event.id,
                        "accountId": member.account.id,
                        "channel": channel,
                        "at": job.payload["at"],
                        **({"visitIds": ids} if len(ids) > 1 else {}),
                    }
                    # The id is the same if the job runs again, so the same jobs are written once
                    # more.
                    # Jobs that have already run are then sent twice, and both e-mails have the same
                    # id.
                    message_id = f"{job.job_id}-{number}-{name}-{member.account.id}-{channel}"
                    job_rows.append(_row(job.workspace_id, message, message_id))
    # A workspace may have many members, and each write takes a round trip.
    deadline.map_in_threads(jobs.schedule, job_rows, PARALLEL_WRITES)
    if job_rows:
        wake.wake()


def _confirmed_by(job: Job, event: Event) -> str | None:
    """Return the account that has confirmed what an event is about, or None.

    An app uses the consent that a member has confirmed.
    """
    if event.type == "connection.created":
        connection = connections.find(event.id)
        return None if connection is None else str(connection.account_id)
    return str(job.payload["actor"]) if job.payload.get("isConfirmed") else None


def _by_visit(workspace_id: str, events: Sequence[Event]) -> Iterator[tuple[int, Event, list[str]]]:
    """Yield each event with its number, and with the bookings of the visit that have it.

    The event of the first one stands for those of the others.
    """
    ids = [event.id for event in events if event.type.startswith("booking.")]
    visits = {each: group for group in bookings.ids_by_visit(workspace_id, ids) for each in group}
    for number, event in enumerate(events):
        visit = visits.get(event.id, [event.id])
        same = {other.id for other in events if other.type == event.type}
        group = [each for each in visit if each in same]
        if event.id == group[0]:
            yield number, event, group


def _row(workspace_id: str, message: dict[str, Any], message_id: str) -> JobRow:
    due_at = datetime.fromisoformat(message["at"])
    return jobs.row(NOTIFY_MEMBER, workspace_id, message, due_at, job_id=message_id)

"""Mails to clients that follow events of their bookings, and the reminders before the start.

Each mail is a job of its own with ids only. It is made from the live booking, so a client who was
erased meanwhile gets none. A booking has one job of a reminder at a time, which makes the next. Its
id follows from the booking, the start and the minutes before it. So a job that is made twice is
one job, and a job of an earlier start does nothing.
"""

from datetime import datetime, timedelta

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.jobs import (
    MAIL_BOOKING_LINK,
    MAIL_CLIENT,
    REMIND_CLIENT,
    VISITOR_EVENTS,
    Job,
    job_handler,
)
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.domains.notifications.flows import client_mails
from chalicelib.domains.notifications.flows.client_mails import MailOptions
from chalicelib.domains.notifications.rules import client_mails as texts
from chalicelib.domains.notifications.rules.mail_budgets import MailClass
from chalicelib.engine import jobs
from chalicelib.engine.events import wake
from chalicelib.engine.events.outbox import Event
from chalicelib.gateways import mail


@job_handler(VISITOR_EVENTS)
def make_mails(job: Job) -> None:
    """Make a job for each booking of the events. If it runs again, it makes the same jobs.

    Raises:
        UnavailableError: the database is unavailable.
    """
    events = [Event(*values) for values in job.payload["events"]]
    at = datetime.fromisoformat(job.payload["at"])
    for booking_id in dict.fromkeys(event.id for event in events):
        own = [event for event in events if event.id == booking_id]
        payload = {
            "bookingId": booking_id,
            "events": [event.type for event in own],
            "previousStatus": next((e.previous_status for e in own if e.previous_status), None),
            "at": job.payload["at"],
            "actor": job.payload["actor"],
        }
        mail_id = f"{job.job_id}-{booking_id}"
        jobs.schedule(jobs.row(MAIL_CLIENT, job.workspace_id, payload, at, job_id=mail_id))
    wake.wake()


@job_handler(MAIL_CLIENT)
def mail_client(job: Job) -> None:
    """Make the job of the booking's next reminder, and send the mail that follows the events.

    Raises:
        MailDelayedError: the mail may be sent later.
        UnavailableError: the database is unavailable.
    """
    booking = BOOKINGS.find(job.workspace_id, job.payload["bookingId"])
    at = datetime.fromisoformat(job.payload["at"])
    if booking is None or booking.client_email is None or booking.starts_at <= at:
        return
    options = client_mails.options_of(job.workspace_id, booking.service_id)
    if not options.has_mails:
        return
    _schedule_next(job.workspace_id, booking, options)  # first: the mail may fail
    kind = texts.kind_of(job.payload["events"], job.payload["previousStatus"], booking.status)
    if kind is not None:
        client_mails.send(job, booking, kind, _class_of(job.payload.get("actor")), at)


@job_handler(MAIL_BOOKING_LINK)
def mail_booking_link(job: Job) -> None:
    """Send the link that books what a visitor has requested, unless it was used or has ended.

    Raises:
        MailDelayedError: the mail may be sent later.
        UnavailableError: the database is unavailable.
    """
    token = booking_links.book_token(job.workspace_id, job.payload["requestId"])
    requested = bookings.find_awaited(job.workspace_id, token)
    if requested is not None and mail.is_on():
        client_mails.send_link(job, requested, token)


@job_handler(REMIND_CLIENT)
def remind_client(job: Job) -> None:
    """Make the job of the next reminder, and send this one if the booking still stands.

    Raises:
        MailDelayedError: the mail may be sent later.
        UnavailableError: the database is unavailable.
    """
    booking = BOOKINGS.find(job.workspace_id, job.payload["bookingId"])
    if booking is None or booking.client_email is None:
        return
    if booking.status != "confirmed" or epoch_ms(booking.starts_at) != job.payload["startMs"]:
        return
    options = client_mails.options_of(job.workspace_id, booking.service_id)
    if not options.has_mails:
        return
    _schedule_next(job.workspace_id, booking, options)  # first: the mail may fail
    if job.payload["minutes"] in options.reminders:
        due_at = booking.starts_at - timedelta(minutes=job.payload["minutes"])
        own: MailClass = "stranger_reminder" if booking.is_unproved else "reminder"
        client_mails.send(job, booking, "reminder", own, due_at)


def _class_of(actor: str | None) -> MailClass:
    """Return the class of the mail about a change. The actor is that of the change.

    A visitor has proved nothing. Nor has the visitor whose unpaid hold a job ends. The job of an
    earlier release names no actor.
    """
    return "stranger" if actor in {None, "visitor", "job"} else "business"


def _schedule_next(workspace_id: str, booking: BookingRow, options: MailOptions) -> None:
    """Make the job of the next reminder. Reminders whose time has passed are left out."""
    if booking.status != "confirmed":
        return
    now, start_ms = clock.now(), epoch_ms(booking.starts_at)
    for minutes in options.reminders:
        due_at = booking.starts_at - timedelta(minutes=minutes)
        if due_at > now:
            payload = {"bookingId": booking.id, "startMs": start_ms, "minutes": minutes}
            job_id = f"{booking.id}-{start_ms}-{minutes}"
            jobs.schedule(jobs.row(REMIND_CLIENT, workspace_id, payload, due_at, job_id=job_id))
            return
